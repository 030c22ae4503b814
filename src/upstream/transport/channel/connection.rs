//! One channel, and the requests that wait in it for their answers: `state` is what is known of them, `inbox` what comes.
//!
//! Owns whose a message is that comes in it: an answer by its id, progress by its token, what a subscription tells by the
//! subscription's id; all else goes to the stream of the session, or, where a legacy client has none open, to the newest of its
//! own requests. In a modern server's channel ids and tokens are ours (`rename`), since several requests share it that know
//! nothing of each other. Does not own which channel a request goes to, nor when a channel ends (`mod`).
//! Rules: A2.2, A14.2-A14.4, A14.9, B8.3, B14, B15, B17; cases C20, C21, C23, C53.

mod inbox;
mod state;

pub(super) use inbox::offers_modern;

use state::{Asked, State, Waiting, key, own};

use super::super::body::Body;
use super::super::error::SendError;
use super::super::http::Speaker;
use super::super::pipe::{Pipe, Trouble};
use super::rename::{self, Addressee};
use super::stream::{ChannelBody, End, Head, Room, Standing, Step, Tail, queue};
use super::{Host, Kind};
use crate::shutdown::Shutdown;
use crate::telemetry::metrics::UpstreamMetrics;
use crate::wire::headers::{EVENT_STREAM, JSON};
use crate::wire::json::Limits;
use crate::wire::jsonrpc::{Id, Message, Notification, Request, code};
use crate::wire::meta;
use crate::wire::payload::Payload;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::{Duration, Instant};

/// What a probe is sent under: unlike any id of ours or of a client's, since the channel may become a legacy client's own.
const PROBE: &str = "\"mcp-janus-probe\"";

pub(super) struct Connection {
    setting: Setting,
    state: Mutex<State>,
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
    pub(super) shutdown: Shutdown,
    pub(super) metrics: Arc<UpstreamMetrics>,
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

/// What became of a request.
pub(super) struct Answered {
    pub(super) response: Response<Body>,
    /// The answer is an error.
    pub(super) error: bool,
}

/// Why there is no answer.
pub(super) enum NoAnswer {
    /// The channel was over before the request was in it.
    Over,
    /// Another request of the same id waits (C20).
    Duplicate,
    Send(SendError),
    Refused(Box<Response<Body>>),
}

impl From<Trouble> for NoAnswer {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Send(error) => NoAnswer::Send(error),
            Trouble::Refused(response) => NoAnswer::Refused(response),
        }
    }
}

impl Connection {
    pub(super) fn new(setting: Setting, place: OwnedSemaphorePermit, host: Weak<Host>) -> Arc<Self> {
        let state = State::new(place);
        Arc::new(Self { setting, state: Mutex::new(state), pipe: OnceLock::new(), host })
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
        let (head, line) = {
            let mut state = self.lock();
            let probes = request.method == "server/discover" && state.mode == Mode::Untold && !state.probed;
            state.probed |= probes;
            if !probes {
                state.mode = Mode::Modern;
            }
            state.serial += 1;
            let mut id = if probes { probe_id() } else { Id::number(state.serial) };
            // A legacy client's `initialize` may wait in it too, under an id of its own.
            while state.pending.contains_key(id.raw()) {
                state.serial += 1;
                id = Id::number(state.serial);
            }
            let (line, token) = rename::request(request, &id);
            let asked = Asked {
                serial: state.serial,
                id: id.raw().clone(),
                caller: Some(request.id.clone()),
                token_key: token.is_some().then(|| id.raw().clone()),
                token,
                listens: request.method == "subscriptions/listen",
                wants_logs: request
                    .params
                    .meta()
                    .is_some_and(|meta| meta.first(&request.text, meta::LOG_LEVEL).is_some()),
                probes,
            };
            (self.expect(&mut state, vec![(id.raw().clone(), asked)])?, line)
        };
        self.exchange(head, line, headers, true).await
    }

    /// Sends a legacy request as it is: its id is unlike those of all others in this channel.
    pub(super) async fn legacy(
        self: &Arc<Self>,
        request: &Request,
        headers: &HeaderMap,
    ) -> Result<Answered, NoAnswer> {
        let head = {
            let mut state = self.lock();
            let (key, asked) = own(&mut state, request);
            if request.method == "initialize" {
                state.opening = Some(key.clone());
            }
            self.expect(&mut state, vec![(key, asked)])?
        };
        self.exchange(head, Payload::from(request.text.clone()), headers, false).await
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
            let asked: Vec<_> = requests.map(|request| own(&mut state, request)).collect();
            (!asked.is_empty()).then(|| self.expect(&mut state, asked)).transpose()?
        };
        for message in messages {
            match message {
                Message::Request(request) => self.say(Payload::from(request.text), headers).await?,
                Message::Notification(notification) => self.notify(&notification, headers).await?,
                Message::Response(answer) => self.say(Payload::from(answer.text), headers).await?,
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
        let waiting = {
            let mut state = self.lock();
            let waiting = state.remove(&key(id));
            if waiting.is_none() && state.mode == Mode::Legacy(Speaker::Client) {
                // It has its answer, or never was: the server need not hear of it (C23).
                return Ok(());
            }
            waiting
        };
        let said = self.say(Payload::from(notification.text.clone()), headers).await;
        if let Some(waiting) = waiting {
            waiting.tail.without_answer();
        }
        said
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
            Err(Trouble::Send(SendError::Unsent { .. })) if self.setting.kind == Kind::Process => {
                Err(NoAnswer::Over)
            }
            sent => Ok(sent?),
        }
    }

    /// The stream of the session, in the place of one that is open already.
    pub(super) fn stream(&self) -> Option<Response<Body>> {
        let (tail, head) = queue(usize::MAX, ());
        let mut state = self.lock();
        state.place.as_ref()?;
        state.used = Instant::now();
        for text in std::mem::take(&mut state.early) {
            tail.offer(text, self.setting.room);
        }
        state.early_bytes = 0;
        if let Some(before) = state.told.replace(tail) {
            before.end(End::Done);
        }
        Some(event_stream(ChannelBody::events(None, head)))
    }

    /// From now on it is a legacy server's; `false` if it is somebody's already, or over.
    pub(super) fn becomes_legacy(&self, speaker: Speaker) -> bool {
        let mut state = self.lock();
        if state.mode != Mode::Untold || state.place.is_none() {
            return false;
        }
        state.mode = Mode::Legacy(speaker);
        // The answer to a probe that nobody waits for any more is told apart by its id.
        state.pending.clear();
        state.tokens.clear();
        true
    }

    /// A modern server's that has been asked nothing but the probe.
    pub(super) fn is_only_probed(&self) -> bool {
        let state = self.lock();
        state.mode == Mode::Modern && state.probed && state.serial == 1 && state.pending.is_empty()
    }

    /// It has initialized: the channel is a session's from now on.
    pub(super) fn is_both(&self, speaker: Speaker) {
        self.lock().mode = Mode::Legacy(speaker);
    }

    /// A modern server after all: it has answered the probe, if late.
    pub(super) fn becomes_modern(&self) {
        self.lock().mode = Mode::Modern;
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
        let state = self.lock();
        let listened_to = matches!(state.mode, Mode::Legacy(Speaker::Client))
            && state.told.as_ref().is_some_and(Tail::is_read);
        (state.pending.is_empty() && !listened_to).then(|| state.used.elapsed())
    }

    pub(super) fn end(&self) {
        if let Some(pipe) = self.pipe.get() {
            pipe.end();
        }
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
        let twice = |at: usize, key: &Bytes| asked[..at].iter().any(|(other, _)| other == key);
        if asked.iter().enumerate().any(|(at, (key, _))| state.pending.contains_key(key) || twice(at, key)) {
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
        Ok(head)
    }

    /// Hands a request over and waits for what comes first.
    async fn exchange(
        self: &Arc<Self>,
        mut head: Head,
        line: Payload,
        headers: &HeaderMap,
        modern: bool,
    ) -> Result<Answered, NoAnswer> {
        let first = match self.setting.kind {
            Kind::Process => {
                self.say(line, headers).await?;
                head.next().await
            }
            Kind::EventStream => self.beside(&mut head, line, headers).await?,
        };
        match first {
            Step::Message(text) => match head.whole() {
                Some(Standing { error }) => {
                    let mut response = Response::new(Body::Channel(ChannelBody::whole(text)));
                    *response.status_mut() = error.map_or(StatusCode::OK, |code| status(code, modern));
                    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
                    Ok(Answered { response, error: error.is_some() })
                }
                None => {
                    let response = event_stream(ChannelBody::events(Some(text), head));
                    Ok(Answered { response, error: false })
                }
            },
            // It was cancelled in words.
            Step::End(End::Done) => {
                let mut response = accepted();
                response.extensions_mut().insert(Unanswered);
                Ok(Answered { response, error: false })
            }
            Step::End(End::Lost(what)) => Err(NoAnswer::Send(SendError::Ended { what })),
            Step::End(End::TooLarge) => Err(NoAnswer::Send(SendError::TooLarge)),
        }
    }

    /// Where a message goes by a request of its own, what comes of it may be there first, and the request goes on without
    /// whoever gives its answer up.
    async fn beside(
        self: &Arc<Self>,
        head: &mut Head,
        line: Payload,
        headers: &HeaderMap,
    ) -> Result<Step, NoAnswer> {
        let (said, mut heard) = oneshot::channel();
        let (connection, headers) = (self.clone(), headers.clone());
        // Owned by the tracker; bounded by the time that the pipe gives a message.
        drop(self.setting.shutdown.spawn(async move {
            let _ = said.send(connection.say(line, &headers).await);
        }));
        tokio::select! {
            biased;
            step = head.next() => match (step, heard.try_recv()) {
                // The server has refused the message and with it the session, which says that the message did not run.
                (Step::End(End::Lost(_)), Ok(Err(refused))) => Err(refused),
                (step, _) => Ok(step),
            },
            said = &mut heard => {
                said.unwrap_or(Err(NoAnswer::Over))?;
                Ok(head.next().await)
            }
        }
    }

    /// Nobody waits for this answer any more. A modern server is told so; to a legacy one whoever gives up says so itself
    /// (B14).
    fn given_up(self: &Arc<Self>, key: &Bytes, serial: u64) {
        let modern = {
            let mut state = self.lock();
            if state.pending.get(key).is_none_or(|waiting| waiting.asked.serial != serial) {
                return;
            }
            let probes = state.remove(key).is_some_and(|waiting| waiting.asked.probes);
            state.mode == Mode::Modern && !probes && state.place.is_some()
        };
        if modern {
            self.tell(rename::cancelled(&Id::number(serial), None));
        }
    }

    /// Says something of our own, in the background.
    fn tell(self: &Arc<Self>, text: Payload) {
        let connection = self.clone();
        // Owned by the tracker; ends when the server reads, or with the channel.
        drop(self.setting.shutdown.spawn(async move {
            if connection.say(text, &HeaderMap::new()).await.is_err() {
                tracing::debug!(upstream = %connection.setting.upstream, "the channel was over before the server was told");
            }
        }));
    }
}

fn probe_id() -> Id {
    let text = Bytes::from_static(PROBE.as_bytes());
    let span = crate::wire::json::Span::new(0, text.len());
    Id::accept(&text, span).unwrap_or_else(|| Id::number(0))
}

/// What an error is over HTTP (A12.5-A12.10), a modern server's; of a legacy one what tells that it is none.
fn status(error: i64, modern: bool) -> StatusCode {
    match error {
        code::UNSUPPORTED_PROTOCOL_VERSION | code::HEADER_MISMATCH | code::MISSING_CLIENT_CAPABILITY => {
            StatusCode::BAD_REQUEST
        }
        code::METHOD_NOT_FOUND if modern => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    }
}

/// Marks the response to a request that its own client has cancelled: there is no answer, and that is right.
#[derive(Debug, Clone, Copy)]
pub struct Unanswered;

pub(super) fn accepted() -> Response<Body> {
    let mut response = Response::new(Body::Channel(ChannelBody::empty()));
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

fn event_stream(body: ChannelBody) -> Response<Body> {
    let mut response = Response::new(Body::Channel(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    response
}
