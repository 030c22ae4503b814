//! One channel, and the requests that wait in it for their answers: `state` is what is known of them, `exchange` what becomes of
//! one, `inbox` what comes.
//!
//! Owns whose a message is that comes in it: an answer by its id, progress by its token, what a subscription tells by the
//! subscription's id; all else goes to the stream of the session, or, where a legacy client has none open, to the newest of its
//! own requests. In a modern server's channel ids and tokens are ours (`rename`), since several requests share it that know
//! nothing of each other. Does not own which channel a request goes to, nor when a channel ends (`mod`).
//! Rules: A2.2, A14.2-A14.4, A14.9, B8.3, B14, B15, B17; cases C20, C21, C23, C53.

mod exchange;
mod inbox;
mod state;

pub use exchange::Unanswered;
pub(super) use exchange::{Answered, NoAnswer, accepted};
use exchange::{What, event_stream};

use state::{Asked, Sort, State, Waiting, key, own};

use super::super::body::Body;
use super::super::error::SendError;
use super::super::http::Speaker;
use super::super::pipe::{Pipe, Trouble};
use super::rename::{self, Addressee};
use super::stream::{ChannelBody, Head, Lost, Room, Tail, queue};
use super::{Host, Kind};
use crate::telemetry::metrics::UpstreamMetrics;
use crate::upstream::places::{Place, Places};
use crate::wire::json::Limits;
use crate::wire::jsonrpc::{Id, Message, Notification, Request};
use crate::wire::meta;
use crate::wire::payload::Payload;
use bytes::Bytes;
use http::{HeaderMap, Response};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use tokio::time::{Duration, Instant};

/// What a probe is sent under: unlike any id of ours or of a client's, since the channel may become a legacy client's own.
const PROBE: &str = "\"mcp-janus-probe\"";

pub(super) struct Connection {
    setting: Setting,
    state: Mutex<State>,
    /// What goes with messages of our own.
    headers: HeaderMap,
    pipe: OnceLock<Arc<dyn Pipe>>,
    host: Weak<Host>,
}

/// What all channels of one server share.
#[derive(Clone)]
pub(super) struct Setting {
    pub(super) upstream: Arc<str>,
    pub(super) kind: Kind,
    pub(super) limits: Limits,
    pub(super) room: Room,
    pub(super) metrics: Arc<UpstreamMetrics>,
    pub(super) places: Places,
}

/// Who speaks in the channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Nobody yet, a probe apart.
    Untold,
    Modern,
    Legacy(Speaker),
}

/// Whoever lets go of this no longer waits for the answers.
struct Expects {
    connection: Arc<Connection>,
    keys: Vec<(Bytes, u64)>,
}

impl Drop for Expects {
    fn drop(&mut self) {
        for (key, serial) in &self.keys {
            self.connection.given_up(key, *serial);
        }
    }
}

/// Whoever lets go of this no longer listens to the session.
struct Listens(Arc<Connection>);

impl Drop for Listens {
    fn drop(&mut self) {
        self.0.lock().used = Instant::now();
    }
}

impl Connection {
    /// For the caller of these headers.
    pub(super) fn new(setting: Setting, place: Place, headers: &HeaderMap, host: Weak<Host>) -> Arc<Self> {
        let (state, headers) = (Mutex::new(State::new(place)), headers.clone());
        Arc::new(Self { setting, state, headers, pipe: OnceLock::new(), host })
    }

    pub(super) fn opened(&self, pipe: Arc<dyn Pipe>) {
        let _ = self.pipe.set(pipe);
    }

    /// Sends a request of a modern client, or of a driver to a modern server, under an id of ours.
    pub(super) async fn modern(
        self: &Arc<Self>,
        request: &Request,
        headers: &HeaderMap,
    ) -> Result<Answered, NoAnswer> {
        let what;
        let (head, line) = {
            let mut state = self.lock();
            if let Mode::Legacy(_) = state.mode {
                return Err(NoAnswer::Over);
            }
            let discovers = request.method == "server/discover" && state.mode == Mode::Untold;
            let probes = discovers && !state.probed;
            state.probed |= probes;
            if !discovers {
                state.mode = Mode::Modern;
            }
            state.serial += 1;
            what = if probes { What::Probe } else { What::Modern };
            let id = if probes { probe_id() } else { Id::number(state.serial) };
            let (line, token) = rename::request(request, &id);
            let asked = Asked {
                serial: state.serial,
                id: id.clone(),
                caller: Some(request.id.clone()),
                token_key: token.is_some().then(|| id.raw().clone()),
                token,
                sort: match request.method.as_str() {
                    _ if probes => Sort::Probe,
                    "subscriptions/listen" => Sort::Listen,
                    _ if wants_logs(request) => Sort::Logged,
                    _ => Sort::Call,
                },
            };
            (self.expect(&mut state, vec![(id.raw().clone(), asked)])?, line)
        };
        self.exchange(head, line, headers, what).await
    }

    /// Sends a legacy request as it is: its id is unlike those of all others in this channel.
    pub(super) async fn legacy(
        self: &Arc<Self>,
        request: &Request,
        headers: &HeaderMap,
    ) -> Result<Answered, NoAnswer> {
        let head = {
            let mut state = self.lock();
            let (key, asked) = own(&mut state, request, self.setting.room);
            if request.method == "initialize" {
                state.opening = Some(key.clone());
            }
            self.expect(&mut state, vec![(key, asked)])?
        };
        let what = if request.method == "initialize" { What::Initialize } else { What::Legacy };
        self.exchange(head, Payload::from(request.text.clone()), headers, what).await
    }

    /// Sends the messages of an array one by one (A14.1); the answers come as an event stream.
    pub(super) async fn batch(
        self: &Arc<Self>,
        messages: Vec<Message>,
        headers: &HeaderMap,
    ) -> Result<Response<Body>, NoAnswer> {
        let head = {
            let mut state = self.lock();
            let requests = messages.iter().filter_map(|message| match message {
                Message::Request(request) => Some(request),
                Message::Notification(_) | Message::Response(_) => None,
            });
            let asked: Vec<_> = requests.map(|request| own(&mut state, request, self.setting.room)).collect();
            (!asked.is_empty()).then(|| self.expect(&mut state, asked)).transpose()?
        };
        let mut sent = false;
        for message in messages {
            let (said, request) = match message {
                Message::Request(request) => (
                    self.say(Payload::from(request.text.clone()), headers).await,
                    Some(key(request.id.raw())),
                ),
                Message::Notification(notification) => (self.notify(&notification, headers).await, None),
                Message::Response(answer) => (self.say(Payload::from(answer.text), headers).await, None),
            };
            match said {
                Ok(()) => sent = true,
                // Nothing has run yet.
                Err(refused) if !sent => return Err(refused),
                // Of what has been handed over the answers are still to come, so the whole is not refused.
                Err(_) => {
                    if let Some(waiting) = request.and_then(|key| self.lock().remove(&key)) {
                        waiting.lose(Lost::Ended(self.setting.kind.name()));
                    }
                }
            }
        }
        Ok(match head {
            Some(head) => event_stream(ChannelBody::events(None, head)),
            None => accepted(),
        })
    }

    /// Passes a notification on. A request that it cancels is waited for no more.
    pub(super) async fn notify(
        self: &Arc<Self>,
        notification: &Notification,
        headers: &HeaderMap,
    ) -> Result<(), NoAnswer> {
        let Addressee::Cancelled(id) = rename::addressee(notification) else {
            return self.say(Payload::from(notification.text.clone()), headers).await;
        };
        {
            let mut state = self.lock();
            match state.remove(&key(id)) {
                Some(waiting) => waiting.tail.without_answer(),
                None if state.never_sent(&key(id)) => return Ok(()),
                // It has its answer, or never was: the server need not hear of it (C23).
                None if state.mode == Mode::Legacy(Speaker::Client) => return Ok(()),
                None => {}
            }
        }
        // Of use at once or not at all.
        self.tell(Payload::from(notification.text.clone()));
        Ok(())
    }

    /// Hands one message over as it is.
    pub(super) async fn say(&self, text: Payload, headers: &HeaderMap) -> Result<(), NoAnswer> {
        let Some(pipe) = self.pipe.get() else { return Err(NoAnswer::Over) };
        {
            let mut state = self.lock();
            if state.place.is_none() {
                return Err(NoAnswer::Over);
            }
            state.used = Instant::now();
        }
        match pipe.send(text, headers).await {
            // It is about to be over, and nothing has been read.
            Err(Trouble::Send(SendError::Unsent { .. }))
                if self.setting.kind == Kind::Process || self.is_over() =>
            {
                self.end();
                Err(NoAnswer::Over)
            }
            sent => Ok(sent?),
        }
    }

    /// The stream of the session, in the place of one that is open already.
    pub(super) fn stream(self: &Arc<Self>) -> Option<Response<Body>> {
        let (tail, head) = queue(usize::MAX, Listens(self.clone()));
        let mut state = self.lock();
        state.place.as_ref()?;
        state.used = Instant::now();
        for text in std::mem::take(&mut state.early) {
            tail.offer(text, self.setting.room);
        }
        state.early_bytes = 0;
        if let Some(before) = state.told.replace(tail) {
            before.end();
        }
        Some(event_stream(ChannelBody::events(None, head)))
    }

    /// Takes it for an `initialize`, if it has seen nothing but the probe: one that nobody has used, or, for a legacy client of
    /// its own, a modern server's, which may be both (`relay::like`).
    pub(super) fn becomes_legacy(&self, speaker: Speaker) -> bool {
        let mut state = self.lock();
        let unused = match (state.mode, speaker) {
            (Mode::Untold, _) => true,
            (Mode::Modern, Speaker::Client) => state.probed && state.serial == 1,
            (Mode::Modern, Speaker::Driver) | (Mode::Legacy(_), _) => false,
        };
        if !unused || state.place.is_none() || !state.pending.is_empty() {
            return false;
        }
        state.shown_modern = state.mode == Mode::Modern;
        state.mode = Mode::Legacy(speaker);
        true
    }

    /// Whether the discover result of a modern server, late as it is, says something of it: not once it is a session's.
    fn is_late(&self) -> bool {
        let mut state = self.lock();
        match state.mode {
            Mode::Untold => state.mode = Mode::Modern,
            Mode::Legacy(_) if state.opening.is_some() => state.shown_modern = true,
            Mode::Modern | Mode::Legacy(_) => return false,
        }
        true
    }

    /// The `initialize` that took it has come to nothing. Whether it is a modern server's all the same, of use as such.
    pub(super) fn is_given_back(&self) -> bool {
        let mut state = self.lock();
        let modern = state.shown_modern && state.place.is_some();
        if modern {
            state.mode = Mode::Modern;
        }
        modern
    }

    pub(super) fn mode(&self) -> Mode {
        self.lock().mode
    }

    /// For how long it has been there without a word; `None` once a message has come.
    pub(super) fn silent(&self) -> Option<Duration> {
        let state = self.lock();
        (!state.heard).then(|| state.born.elapsed())
    }

    pub(super) fn is_over(&self) -> bool {
        self.lock().place.is_none()
    }

    pub(super) fn was_probed(&self) -> bool {
        self.lock().probed
    }

    /// How long nothing has been going on in it; `None` while something does.
    pub(super) fn idle(&self) -> Option<Duration> {
        self.idle_of(&self.lock())
    }

    /// Whether it is a session of the pool's that the pool does not follow: as long as it uses one, it reads its stream.
    pub(super) fn is_left(&self) -> bool {
        let state = self.lock();
        state.mode == Mode::Legacy(Speaker::Driver) && !state.told.as_ref().is_some_and(Tail::is_read)
    }

    /// Ends it, if nothing has been going on in it for so long; whether it ends now.
    pub(super) fn end_if_idle(&self, idle: Duration) -> bool {
        let state = self.lock();
        let free = state.place.is_some() && self.idle_of(&state).is_some_and(|since| since >= idle);
        if free {
            self.ends(state);
        }
        free
    }

    pub(super) fn end(&self) {
        let state = self.lock();
        if state.place.is_some() {
            self.ends(state);
        }
    }

    /// From now on nobody finds it, and its place is being freed.
    fn ends(&self, mut state: MutexGuard<'_, State>) {
        state.ending = state.place.take().map(|place| self.setting.places.ending(place));
        drop(state);
        if let Some(pipe) = self.pipe.get() {
            pipe.end();
        }
    }

    fn idle_of(&self, state: &State) -> Option<Duration> {
        let listened_to = matches!(state.mode, Mode::Legacy(Speaker::Client))
            && state.told.as_ref().is_some_and(Tail::is_read);
        (state.pending.is_empty() && !listened_to).then(|| state.used.elapsed())
    }

    /// For a message that has come.
    fn hear(&self) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        state.heard = true;
        state
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing in here panics half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn expect(self: &Arc<Self>, state: &mut State, asked: Vec<(Bytes, Asked)>) -> Result<Head, NoAnswer> {
        if state.place.is_none() || self.pipe.get().is_none() {
            return Err(NoAnswer::Over);
        }
        let mut seen = HashSet::new();
        if asked
            .iter()
            .any(|(key, _)| state.pending.contains_key(key) || asked.len() > 1 && !seen.insert(key))
        {
            return Err(NoAnswer::Duplicate);
        }
        state.used = Instant::now();
        let keys = asked.iter().map(|(key, asked)| (key.clone(), asked.serial)).collect();
        let (tail, head) = queue(asked.len(), Expects { connection: self.clone(), keys });
        for (key, asked) in asked {
            if let Some(token) = &asked.token_key {
                state.tokens.insert(token.clone(), key.clone());
            }
            state.pending.insert(key, Waiting { tail: tail.clone(), asked });
        }
        if state.mode == Mode::Legacy(Speaker::Client)
            && state.opening.is_none()
            && !state.told.as_ref().is_some_and(Tail::is_read)
        {
            // A client without a stream of its own hears on this one what has waited for it.
            for text in std::mem::take(&mut state.early) {
                tail.offer(text, self.setting.room);
            }
            state.early_bytes = 0;
        }
        Ok(head)
    }

    /// Nobody waits for this answer any more. A modern server is told so; to a legacy one whoever gives up says so itself
    /// (B14).
    fn given_up(&self, key: &Bytes, serial: u64) {
        let cancelled = {
            let mut state = self.lock();
            if state.pending.get(key).is_none_or(|waiting| waiting.asked.serial != serial) {
                return;
            }
            let modern = state.mode == Mode::Modern && state.place.is_some();
            let waiting = state.remove(key);
            // What was never handed over is not cancelled either, whoever would say so.
            let sent = waiting.as_ref().is_some_and(|waiting| waiting.tail.was_sent());
            if !sent && !modern {
                state.was_not_sent(key, self.setting.room);
            }
            waiting.filter(|waiting| modern && sent && waiting.asked.sort != Sort::Probe)
        };
        if let Some(waiting) = cancelled {
            self.tell(rename::cancelled(&waiting.asked.id, None));
        }
    }

    /// Says something of our own. Nobody waits for it, so it does not wait either: a server that does not read what it is sent is
    /// not sent that.
    fn tell(&self, text: Payload) {
        let told = self.pipe.get().is_some_and(|pipe| pipe.offer(text, &self.headers));
        if !told {
            tracing::debug!(upstream = %self.setting.upstream, "the server does not read, or has ended: it is not told");
        }
    }
}

fn wants_logs(request: &Request) -> bool {
    request.params.meta().is_some_and(|meta| meta.first(&request.text, meta::LOG_LEVEL).is_some())
}

fn probe_id() -> Id {
    let text = Bytes::from_static(PROBE.as_bytes());
    let span = crate::wire::json::Span::new(0, text.len());
    Id::accept(&text, span).unwrap_or_else(|| Id::number(0))
}
