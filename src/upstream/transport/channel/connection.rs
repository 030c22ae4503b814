//! One channel, and the requests that wait in it for their answers.
//!
//! Owns whose a message is that comes in it: an answer by its id, progress by its token, what a subscription tells by the
//! subscription's id; all else goes to the stream of the session, or, where a legacy client has none open, to the newest of its
//! own requests. In a modern server's channel ids and tokens are ours (`rename`), since several requests share it that know
//! nothing of each other. Does not own which channel a request goes to, nor when a channel ends (`mod`).
//! Rules: A2.2, A14.2-A14.4, A14.9, B8.3, B14, B15, B17; cases C20, C21, C23, C53.

use super::super::body::Body;
use super::super::error::SendError;
use super::super::http::Speaker;
use super::super::pipe::{Inbox, Pipe, Trouble};
use super::rename::{self, Addressee, Renamed, Token};
use super::stream::{ChannelBody, End, Head, Room, Standing, Step, Tail, queue};
use super::{Host, Kind, Use};
use crate::shutdown::Shutdown;
use crate::telemetry::metrics::UpstreamMetrics;
use crate::translate::discover;
use crate::wire::headers::{EVENT_STREAM, JSON};
use crate::wire::json::Limits;
use crate::wire::jsonrpc::{self, Id, Message, Notification, Reply, Request, Response as Answer, code};
use crate::wire::meta;
use crate::wire::payload::Payload;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
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

struct State {
    mode: Mode,
    /// `None`: it is over.
    place: Option<OwnedSemaphorePermit>,
    pending: HashMap<Bytes, Waiting>,
    /// Ids of requests by their progress tokens, both as they stand in the channel.
    tokens: HashMap<Bytes, Bytes>,
    serial: u64,
    /// The stream of the session.
    told: Option<Tail>,
    /// What is for that stream and came before it.
    early: VecDeque<Bytes>,
    early_bytes: usize,
    /// The key of an `initialize` that waits.
    opening: Option<Bytes>,
    probed: bool,
    /// It has answered anything but the probe, or told of a subscription.
    answered: bool,
    born: Instant,
    /// Any message has come.
    heard: bool,
    used: Instant,
    strays: Strays,
}

/// A request that waits for its answer.
struct Waiting {
    tail: Tail,
    asked: Asked,
}

impl Waiting {
    /// Its answer will not come.
    fn lose(self, end: End) {
        let id = self.asked.caller.as_ref().map_or(&self.asked.id, Id::raw).clone();
        self.tail.lose(id, end);
    }
}

/// What is known of a request.
struct Asked {
    serial: u64,
    /// As it stands in the channel.
    id: Bytes,
    /// The caller's, where ours stand in the channel.
    caller: Option<Id>,
    token: Option<Token>,
    /// What stands in `tokens`.
    token_key: Option<Bytes>,
    listens: bool,
    wants_logs: bool,
    probes: bool,
}

/// Texts that are no messages, logged seldom.
#[derive(Default)]
struct Strays {
    since: Option<Instant>,
    more: u64,
}

const SELDOM: Duration = Duration::from_secs(10);

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
        let state = State {
            mode: Mode::Untold,
            place: Some(place),
            pending: HashMap::new(),
            tokens: HashMap::new(),
            serial: 0,
            told: None,
            early: VecDeque::new(),
            early_bytes: 0,
            opening: None,
            probed: false,
            answered: false,
            born: Instant::now(),
            heard: false,
            used: Instant::now(),
            strays: Strays::default(),
        };
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
            let id = if probes { probe_id() } else { Id::number(state.serial) };
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

/// A request under its own id.
fn own(state: &mut State, request: &Request) -> (Bytes, Asked) {
    state.serial += 1;
    let token = request.params.meta().and_then(|meta| meta.first(&request.text, meta::PROGRESS_TOKEN));
    let asked = Asked {
        serial: state.serial,
        id: request.id.raw().clone(),
        caller: None,
        token: None,
        token_key: token.map(|span| key(span.of(&request.text))),
        listens: false,
        wants_logs: false,
        probes: false,
    };
    (key(request.id.raw()), asked)
}

fn probe_id() -> Id {
    let text = Bytes::from_static(PROBE.as_bytes());
    let span = crate::wire::json::Span::new(0, text.len());
    Id::accept(&text, span).unwrap_or_else(|| Id::number(0))
}

/// What an id or a token is found by: strings by what they say, however it is spelled.
fn key(raw: &[u8]) -> Bytes {
    if raw.contains(&b'\\')
        && let Some(inner) = raw.strip_prefix(b"\"").and_then(|raw| raw.strip_suffix(b"\""))
        && let Some(text) = crate::wire::json::unescape(inner)
    {
        return Bytes::from(format!("\"{text}\""));
    }
    Bytes::copy_from_slice(raw)
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

impl State {
    fn remove(&mut self, key: &Bytes) -> Option<Waiting> {
        let waiting = self.pending.remove(key)?;
        if let Some(token) = &waiting.asked.token_key {
            self.tokens.remove(token);
        }
        if self.opening.as_ref() == Some(key) {
            self.opening = None;
        }
        Some(waiting)
    }

    /// The request that an answer of this id is for. Numbers of ours are unambiguous as texts too (C17).
    fn answered_under(&mut self, id: &Bytes) -> Option<Waiting> {
        let waiting = self.remove(id);
        if waiting.is_some() || self.mode == Mode::Legacy(Speaker::Client) {
            return waiting;
        }
        let digits = id.strip_prefix(b"\"").and_then(|id| id.strip_suffix(b"\""))?;
        digits.iter().all(u8::is_ascii_digit).then(|| self.remove(&Bytes::copy_from_slice(digits))).flatten()
    }

    /// The newest request that waits.
    fn newest(&self) -> Option<&Waiting> {
        self.pending.values().max_by_key(|waiting| waiting.asked.serial)
    }

    /// The one request that may be sent log messages.
    fn logged(&self) -> Option<&Waiting> {
        let mut all = self.pending.values().filter(|waiting| waiting.asked.wants_logs);
        all.next().filter(|_| all.next().is_none())
    }
}

/// What comes.
impl Inbox for Arc<Connection> {
    fn text(&self, text: Bytes) {
        let mut first = text.iter().filter(|byte| !byte.is_ascii_whitespace());
        if first.next() == Some(&b'[') {
            return self.array(&text);
        }
        match jsonrpc::parse(text.clone(), self.setting.limits) {
            Ok(message) => self.message(message),
            Err(malformed) => self.stray(&text, malformed.id.as_ref()),
        }
    }

    fn too_long(&self, id: Option<Id>) {
        let waiting = id.and_then(|id| self.lock().remove(&key(id.raw())));
        match waiting {
            Some(waiting) => waiting.lose(End::TooLarge),
            None => {
                self.setting.metrics.not_a_message();
                tracing::warn!(upstream = %self.setting.upstream, "a message longer than `message_bytes` is left out; it answers no request that is known");
            }
        }
    }

    fn ended(&self, why: Cow<'static, str>) {
        let (waiting, told, answered, probed) = {
            let mut state = self.lock();
            state.place = None;
            state.tokens.clear();
            state.opening = None;
            let waiting: Vec<_> = state.pending.drain().map(|(_, waiting)| waiting).collect();
            (waiting, state.told.take(), state.answered, state.probed && state.mode == Mode::Untold)
        };
        tracing::debug!(upstream = %self.setting.upstream, %why, pending = waiting.len(), "a channel to the server is over");
        waiting.into_iter().for_each(|waiting| waiting.lose(End::Lost(self.setting.kind.name())));
        if let Some(told) = told {
            told.end(End::Done);
        }
        if let Some(host) = self.host.upgrade() {
            host.ended(
                self,
                match (answered, probed) {
                    (true, _) => Use::Answered,
                    (false, true) => Use::Probed,
                    (false, false) => Use::None,
                },
            );
        }
    }
}

impl Connection {
    fn array(self: &Arc<Self>, text: &Bytes) {
        let messages = super::super::super::reply::messages(text.clone(), self.setting.limits);
        if messages.is_empty() {
            self.stray(text, None);
        }
        messages.into_iter().for_each(|message| self.message(message));
    }

    fn message(self: &Arc<Self>, message: Message) {
        self.lock().heard = true;
        match message {
            Message::Response(answer) => self.answer(answer),
            Message::Notification(notification) => self.notification(&notification),
            Message::Request(request) => self.asked(&request),
        }
    }

    fn answer(self: &Arc<Self>, answer: Answer) {
        let error = match &answer.reply {
            Reply::Error(error) => Some(error.code),
            Reply::Result(_) => None,
        };
        let waiting = {
            let mut state = self.lock();
            let id = match answer.id {
                Some(span) => Some(key(span.of(&answer.text))),
                // One that could not read what it was sent; at the beginning that is known (C38).
                None if error.is_some() => state.opening.clone().or_else(|| state.probe()),
                None => None,
            };
            let waiting = id.as_ref().and_then(|id| state.answered_under(id));
            state.answered |= waiting.as_ref().is_some_and(|waiting| !waiting.asked.probes);
            if waiting.as_ref().is_some_and(|waiting| waiting.asked.probes) && offers_modern(&answer) {
                // It answers modern requests: it is nobody's to initialize.
                state.mode = Mode::Modern;
            }
            if waiting.is_none() && id.as_deref() == Some(PROBE.as_bytes()) {
                drop(state);
                if let Some(host) = self.host.upgrade() {
                    host.late(self, answer);
                }
                return;
            }
            waiting
        };
        let Some(waiting) = waiting else {
            tracing::debug!(upstream = %self.setting.upstream, "an answer that nobody waits for is left out");
            return;
        };
        let text = match &waiting.asked.caller {
            Some(caller) => rename::response(&answer, caller, waiting.asked.listens).to_bytes(),
            None => answer.text,
        };
        waiting.tail.answer(text, Standing { error });
    }

    fn notification(self: &Arc<Self>, notification: &Notification) {
        let room = self.setting.room;
        let addressee = rename::addressee(notification);
        let mut state = self.lock();
        // A listen has no other answer for as long as it lasts.
        state.answered |= matches!(addressee, Addressee::Subscription(_));
        let taken = match (addressee, state.mode) {
            (Addressee::Progress(token), mode) => {
                let waiting = state.tokens.get(&key(token)).and_then(|id| state.pending.get(id));
                match (waiting, mode) {
                    (Some(waiting), _) => {
                        let text = match &waiting.asked.token {
                            Some(own) => {
                                rename::notification(notification, Renamed::Progress(own)).to_bytes()
                            }
                            None => notification.text.clone(),
                        };
                        waiting.tail.offer(text, room)
                    }
                    (None, _) => false,
                }
            }
            (_, Mode::Legacy(_)) => self.to_session(&mut state, &notification.text),
            (Addressee::Subscription(id), Mode::Modern | Mode::Untold) => {
                let Some(waiting) = state.pending.get(&key(id)) else { return };
                let Some(caller) = &waiting.asked.caller else { return };
                let text = rename::notification(notification, Renamed::Subscription(caller)).to_bytes();
                let taken = waiting.tail.offer(text, room);
                if !taken {
                    // What is missed is missed for good: whoever listens finds out by the end, and begins anew.
                    let id = caller.raw().clone();
                    waiting.tail.lose(id, End::Lost("the subscription, whose reader was too slow,"));
                }
                taken
            }
            (Addressee::Cancelled(id), Mode::Modern | Mode::Untold) => {
                let waiting = state.remove(&key(id));
                drop(state);
                return end_of_listen(waiting);
            }
            (Addressee::None, Mode::Modern | Mode::Untold) => {
                let waiting = match notification.method.as_str() {
                    "notifications/message" => state.logged(),
                    // Of a subscription that it does not name.
                    "notifications/tools/list_changed"
                    | "notifications/prompts/list_changed"
                    | "notifications/resources/list_changed"
                    | "notifications/resources/updated"
                    | "notifications/subscriptions/acknowledged" => None,
                    _ => state.newest().filter(|one| state.pending.len() == 1 && !one.asked.listens),
                };
                waiting.is_some_and(|waiting| waiting.tail.offer(notification.text.clone(), room))
            }
        };
        if !taken {
            tracing::debug!(upstream = %self.setting.upstream, method = %notification.method, "a notification that is nobody's, or for which there is no room, is left out");
        }
    }

    /// Something for a legacy session as a whole; `false` if there is no room for it.
    fn to_session(&self, state: &mut State, text: &Bytes) -> bool {
        let room = self.setting.room;
        if let Some(told) = state.told.as_ref().filter(|told| told.is_read()) {
            return told.offer(text.clone(), room);
        }
        if state.mode == Mode::Legacy(Speaker::Client)
            && let Some(waiting) = state.newest()
            && state.opening.is_none()
        {
            return waiting.tail.offer(text.clone(), room);
        }
        let fits = state.early.len() < room.events && state.early_bytes + text.len() <= room.bytes;
        if fits {
            state.early_bytes += text.len();
            state.early.push_back(text.clone());
        }
        fits
    }

    /// The server asks something.
    fn asked(self: &Arc<Self>, request: &Request) {
        let mut state = self.lock();
        let told = match state.mode {
            // A modern server has no requests of its own to send.
            Mode::Modern | Mode::Untold => {
                drop(state);
                return self.stray(&request.text, None);
            }
            Mode::Legacy(_) if state.opening.is_some() => {
                drop(state);
                return self.tell(early(request));
            }
            Mode::Legacy(_) => {
                let heard = state.told.as_ref().is_some_and(Tail::is_read)
                    || state.mode == Mode::Legacy(Speaker::Client) && !state.pending.is_empty();
                if request.method == "ping" && !heard {
                    drop(state);
                    return self.tell(pong(&request.id));
                }
                self.to_session(&mut state, &request.text)
            }
        };
        drop(state);
        if !told {
            tracing::warn!(upstream = %self.setting.upstream, method = %request.method, "a request of the server is refused: too many wait for the client");
            let text = "too many messages wait for the client";
            let refusal = jsonrpc::error(Some(&request.id), code::INTERNAL_ERROR, text, None);
            self.tell(Payload::from(refusal));
        }
    }

    /// A text that is no message, or none that may come. If it has the id of a request, that one is answered by nothing else.
    fn stray(&self, text: &[u8], id: Option<&Id>) {
        self.setting.metrics.not_a_message();
        let mut state = self.lock();
        let lost = id.and_then(|id| state.remove(&key(id.raw())));
        let strays = &mut state.strays;
        if strays.since.is_some_and(|since| since.elapsed() < SELDOM) {
            strays.more += 1;
        } else {
            let shown: String =
                String::from_utf8_lossy(&text[..text.len().min(200)]).escape_debug().take(200).collect();
            let before = std::mem::take(&mut strays.more);
            tracing::warn!(upstream = %self.setting.upstream, text = %shown, left_out_before = before, "a text that is no MCP message is passed over");
            strays.since = Some(Instant::now());
        }
        drop(state);
        if let Some(lost) = lost {
            lost.lose(End::Lost("the upstream server's answer, which is no JSON-RPC message,"));
        }
    }
}

impl State {
    /// The key of a probe that waits.
    fn probe(&self) -> Option<Bytes> {
        self.pending.iter().find(|(_, waiting)| waiting.asked.probes).map(|(key, _)| key.clone())
    }
}

/// Whether it is a discover result of a modern server.
pub(super) fn offers_modern(answer: &Answer) -> bool {
    match &answer.reply {
        Reply::Result(body) => discover::offers_modern(answer, body) == Some(true),
        Reply::Error(_) => false,
    }
}

/// The server has ended a subscription: to its reader that is what its result says (B9.6).
fn end_of_listen(waiting: Option<Waiting>) {
    let Some(waiting) = waiting else { return };
    let Some(caller) = waiting.asked.caller.filter(|_| waiting.asked.listens) else {
        return waiting.tail.without_answer();
    };
    let id = String::from_utf8_lossy(caller.raw());
    let text = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"resultType\":\"complete\",\"_meta\":{{\"{}\":{id}}}}}}}",
        meta::SUBSCRIPTION_ID
    );
    waiting.tail.answer(Bytes::from(text), Standing::default());
}

fn pong(id: &Id) -> Payload {
    let id = String::from_utf8_lossy(id.raw());
    Payload::from(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}"))
}

/// What a server is answered that asks before it has answered `initialize` (B15).
fn early(request: &Request) -> Payload {
    if request.method == "ping" {
        return pong(&request.id);
    }
    let text = "nothing can be asked before the session is initialized";
    Payload::from(jsonrpc::error(Some(&request.id), code::INTERNAL_ERROR, text, None))
}
