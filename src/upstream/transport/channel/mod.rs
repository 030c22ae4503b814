//! A server behind channels, as an endpoint of Streamable HTTP.
//!
//! Owns which channel a request goes to: one for each session of a legacy server, one for each principal of a modern one;
//! how many there may be (`limits.max_processes`) and for how long nobody uses them; and what the answers of Streamable HTTP
//! are to requests for which no channel is there (unknown session 404). Below it `connection` is one channel and the requests
//! that wait in it, `rename` puts ids and tokens of ours in the place of the callers' where several share one channel, `stream`
//! is a response's body, `open` is how channels are opened, `slots` are those of modern clients, `starts` the pauses before what fails is started again. Does not own how a channel comes about
//! (`pipe`), nor what an era means by its messages.
//!
//! A channel that has seen nothing but the probe is anybody's: `initialize` takes it, so that a server is not started twice
//! to be found out; one that has ended at the probe is started again without it (A15.1, C38).
//! Rules: A2.2, A14.2-A14.9, A15.1, B5, B14, B17; cases C20, C23, C53, C56.

mod connection;
mod open;
mod rename;
mod slots;
mod starts;
mod stream;

pub use connection::Unanswered;
pub(super) use stream::ChannelBody;
pub use stream::Room;

use super::body::Body;
use super::either::Channels;
use super::error::SendError;
use super::http::{RequestHead, Speaker};
use super::pipe::{Open, Trouble};
use crate::config;
use crate::exchange::Principal;
use crate::seal::unguessable;
use crate::shutdown::Shutdown;
use crate::telemetry::metrics::UpstreamMetrics;
use crate::upstream::places::Places;
use crate::wire::headers::{JSON, MCP_SESSION_ID};
use crate::wire::json::Limits;
use crate::wire::jsonrpc::{self, Id, Message, Request, Response as Answer, code};
use crate::wire::payload::Payload;
use bytes::Bytes;
use connection::{Answered, Connection, Mode, NoAnswer, Setting, accepted};
use dashmap::DashMap;
use futures_util::future::BoxFuture;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use slots::Slots;
use starts::Starts;
use std::pin::pin;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// What a channel is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::upstream::transport) enum Kind {
    Process,
    EventStream,
}

impl Kind {
    /// In texts for the caller.
    fn name(self) -> &'static str {
        match self {
            Kind::Process => "the upstream server's process",
            Kind::EventStream => "the upstream server's event stream",
        }
    }
}

/// See the module.
pub struct Host {
    open: Arc<dyn Open>,
    setting: Setting,
    /// `timeouts.request`
    response_limit: Duration,
    /// From its start to its first message.
    start: Duration,
    /// How long a channel that is to make room may take to end.
    farewell: Duration,
    idle: Duration,
    max: usize,
    /// Those who look for a place.
    looking: AtomicUsize,
    starts: Starts,
    /// What session ids of this host begin with.
    mark: String,
    sessions: DashMap<String, (Principal, Arc<Connection>)>,
    modern: Slots,
    /// The answer to a probe that came when nobody waited for it any more.
    late: Mutex<Option<Answer>>,
    me: Weak<Host>,
}

impl Host {
    pub(in crate::upstream::transport) fn new(
        kind: Kind,
        open: Arc<dyn Open>,
        settings: &config::Upstream,
        limits: Limits,
        room: Room,
        shutdown: Shutdown,
        metrics: Arc<UpstreamMetrics>,
    ) -> Arc<Self> {
        let max = match kind {
            Kind::Process => settings.limits.max_processes,
            Kind::EventStream => settings.session.max,
        };
        let setting = Setting {
            upstream: settings.name.as_str().into(),
            kind,
            limits,
            room,
            metrics,
            places: Places::new(max),
        };
        let host = Arc::new_cyclic(|me| Self {
            open,
            setting,
            response_limit: settings.timeouts.request,
            start: settings.timeouts.start,
            farewell: settings.timeouts.stop * 3,
            idle: settings.session.idle,
            max,
            looking: AtomicUsize::new(0),
            starts: Starts::default(),
            // Told apart from ids of the server's own by it; not what makes one unguessable.
            mark: unguessable().map_or_else(|_| "janus.".to_owned(), |mark| format!("{mark}.")),
            sessions: DashMap::new(),
            modern: Slots::default(),
            late: Mutex::default(),
            me: me.clone(),
        });
        // Owned by the tracker; ends with the drain or with the host.
        drop(shutdown.spawn_until_drain(reap(Arc::downgrade(&host))));
        host
    }

    /// Sends one request and waits for the head of the response, `timeouts.request` at most.
    pub(in crate::upstream) async fn send(
        &self,
        head: RequestHead,
        body: Payload,
    ) -> Result<Response<Body>, SendError> {
        super::http::within(self.response_limit, pin!(self.deliver(head, body))).await
    }

    /// The same without a limit of its own.
    pub(in crate::upstream) async fn deliver(
        &self,
        head: RequestHead,
        body: Payload,
    ) -> Result<Response<Body>, SendError> {
        if self.setting.kind == Kind::EventStream {
            // Its POSTs are counted one by one.
            return self.answer(head, body).await;
        }
        super::http::counted(&self.setting.metrics, self.answer(head, body), Response::status).await
    }

    /// Whether the session that a request names is, or was, one of this host's.
    pub(in crate::upstream) fn owns(&self, headers: &HeaderMap) -> bool {
        session_id(headers).is_some_and(|id| id.starts_with(&self.mark))
    }

    /// The answer to a probe that came too late for it; taken once.
    pub(in crate::upstream) fn late_answer(&self) -> Option<Answer> {
        self.late.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Ends all channels, and resolves when they are over.
    pub(in crate::upstream) async fn close(&self) {
        self.open.close().await;
    }

    async fn answer(&self, head: RequestHead, body: Payload) -> Result<Response<Body>, SendError> {
        match head.method {
            Method::POST => self.post(&head, body).await,
            Method::GET => Ok(match self.session(&head.headers).and_then(|channel| channel.stream()) {
                Some(response) => response,
                None => no_session(&head.headers, None),
            }),
            _ => Ok(self.delete(&head.headers)),
        }
    }

    async fn post(&self, head: &RequestHead, body: Payload) -> Result<Response<Body>, SendError> {
        let text = body.to_bytes();
        if text.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[') {
            return self.batch(head, text).await;
        }
        let message = match jsonrpc::parse(text, self.setting.limits) {
            Ok(message) => message,
            Err(malformed) => {
                let (code, told) = (malformed.fault.code(), malformed.fault.to_string());
                return Ok(refusal(StatusCode::BAD_REQUEST, malformed.id.as_ref(), code, &told));
            }
        };
        let headers = &head.headers;
        let named = headers.contains_key(MCP_SESSION_ID);
        match message {
            Message::Request(request) if request.method == "initialize" && !named => {
                self.initialize(head, &request).await
            }
            Message::Request(request) if named || head.speaker == Speaker::Client => {
                let Some(channel) = self.session(headers) else {
                    return Ok(no_session(headers, Some(&request.id)));
                };
                self.settle(channel.legacy(&request, headers).await, headers, Some(&request.id))
            }
            Message::Request(request) => self.modern(&request, headers).await,
            Message::Notification(notification) => {
                let channel = match (named, head.speaker) {
                    (false, Speaker::Driver) => self.modern_channel(headers).await.map(Some),
                    (true, _) | (false, Speaker::Client) => Ok(self.session(headers)),
                };
                match channel {
                    Ok(None) => Ok(no_session(headers, None)),
                    Ok(Some(channel)) => {
                        let told = channel.notify(&notification, headers).await;
                        self.settle(
                            told.map(|()| Answered { response: accepted(), error: false }),
                            headers,
                            None,
                        )
                    }
                    Err(trouble) => refused(trouble),
                }
            }
            Message::Response(answer) => {
                let Some(channel) = self.session(headers) else { return Ok(no_session(headers, None)) };
                let said = channel.say(Payload::from(answer.text), headers).await;
                self.settle(said.map(|()| Answered { response: accepted(), error: false }), headers, None)
            }
        }
    }

    /// An array of a client of 2025-03-26.
    async fn batch(&self, head: &RequestHead, text: Bytes) -> Result<Response<Body>, SendError> {
        let headers = &head.headers;
        let Some(channel) = self.session(headers) else { return Ok(no_session(headers, None)) };
        let messages = super::super::reply::messages(text, self.setting.limits);
        let answered = channel.batch(messages, headers).await;
        self.settle(answered.map(|response| Answered { response, error: false }), headers, None)
    }

    async fn modern(&self, request: &Request, headers: &HeaderMap) -> Result<Response<Body>, SendError> {
        if request.method == "server/discover" {
            // What an earlier one has brought too late is not this one's.
            self.late_answer();
        }
        // A second time, if the channel was over before the request was in it.
        for _ in 0..2 {
            let channel = match self.modern_channel(headers).await {
                Ok(channel) => channel,
                Err(trouble) => return refused(trouble),
            };
            match channel.modern(request, headers).await {
                Err(NoAnswer::Over) => {}
                answered => return self.settle(answered, headers, Some(&request.id)),
            }
        }
        let origin = self.setting.kind.name().to_owned();
        Err(SendError::Unsent { origin, source: "it ended before the request was in it".into() })
    }

    /// The channel of the principal's requests without a session.
    async fn modern_channel(&self, headers: &HeaderMap) -> Result<Arc<Connection>, Trouble> {
        let turn = self.modern.turn(principal(headers));
        // An async lock, since opening one takes time and is to be done once for all.
        let mut slot = turn.slot.lock().await;
        if let Some(channel) = slot.as_ref()
            && !channel.is_over()
            && !matches!(channel.mode(), Mode::Legacy(_))
        {
            return Ok(channel.clone());
        }
        let channel = self.start(headers).await?;
        *slot = Some(channel.clone());
        Ok(channel)
    }

    fn all(&self) -> Vec<Arc<Connection>> {
        let sessions = self.sessions.iter().map(|entry| entry.value().1.clone());
        self.modern.all().into_iter().chain(sessions).filter(|channel| !channel.is_over()).collect()
    }

    /// The session that the request names, if it is its principal's: behind a channel nobody else looks at who comes
    /// (invariant 2).
    fn session(&self, headers: &HeaderMap) -> Option<Arc<Connection>> {
        let entry = self.sessions.get(session_id(headers)?)?;
        let (owner, channel) = entry.value();
        (*owner == principal(headers) && !channel.is_over()).then(|| channel.clone())
    }

    fn delete(&self, headers: &HeaderMap) -> Response<Body> {
        match self.session(headers) {
            Some(channel) => {
                self.forget(&channel);
                channel.end();
                let mut response = accepted();
                *response.status_mut() = StatusCode::NO_CONTENT;
                response
            }
            None => no_session(headers, None),
        }
    }

    fn settle(
        &self,
        answered: Result<Answered, NoAnswer>,
        headers: &HeaderMap,
        id: Option<&Id>,
    ) -> Result<Response<Body>, SendError> {
        match answered {
            Ok(answered) => Ok(answered.response),
            Err(NoAnswer::Over) => Ok(no_session(headers, id)),
            Err(NoAnswer::Duplicate) => {
                let told = "a request with this id is in work already";
                Ok(refusal(StatusCode::BAD_REQUEST, id, code::INVALID_REQUEST, told))
            }
            Err(NoAnswer::Send(error)) => Err(error),
            Err(NoAnswer::Refused(response)) => Ok(*response),
        }
    }

    /// A channel is over; `failed`: before it had answered anything, and when it was begun.
    fn ended(&self, channel: &Arc<Connection>, failed: Option<Instant>) {
        if let (Kind::Process, Some(begun)) = (self.setting.kind, failed) {
            self.starts.failed(begun);
        }
        self.forget(channel);
    }

    /// A channel has answered.
    fn works(&self) {
        self.starts.worked();
    }

    fn forget(&self, channel: &Arc<Connection>) {
        self.sessions.retain(|_, (_, other)| !Arc::ptr_eq(other, channel));
        self.modern.tidy();
    }

    /// The discover result of a modern server has come when nobody waited for it any more.
    fn late(&self, answer: Answer) {
        tracing::info!(upstream = %self.setting.upstream, "the server has answered server/discover after all");
        *self.late.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
    }
}

impl Channels for Host {
    fn send(&self, head: RequestHead, body: Payload) -> BoxFuture<'_, Result<Response<Body>, SendError>> {
        Box::pin(self.deliver(head, body))
    }

    fn owns(&self, headers: &HeaderMap) -> bool {
        self.owns(headers)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.close())
    }
}

/// Ends channels that nobody uses: those of modern clients, and those of legacy clients that have gone without a word (C10).
/// Sessions of the pool end by its own rule, with DELETE.
async fn reap(host: Weak<Host>) {
    let Some(idle) = host.upgrade().map(|host| host.idle) else { return };
    let mut tick = interval((idle / 4).max(Duration::from_millis(50)));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let Some(host) = host.upgrade() else { return };
        for channel in host.all() {
            // The pool ends its sessions itself; what it has given up as lost, it does not know any more.
            let patience = match channel.mode() {
                Mode::Legacy(Speaker::Driver) if !channel.is_left() => continue,
                Mode::Legacy(Speaker::Driver) => idle * 2,
                Mode::Legacy(Speaker::Client) | Mode::Modern | Mode::Untold => idle,
            };
            if channel.end_if_idle(patience) {
                tracing::debug!(upstream = %host.setting.upstream, "a channel that nobody uses is ended");
            }
        }
    }
}

fn principal(headers: &HeaderMap) -> Principal {
    Principal::of(headers.get(AUTHORIZATION))
}

fn session_id(headers: &HeaderMap) -> Option<&str> {
    headers.get(MCP_SESSION_ID)?.to_str().ok()
}

fn refused(trouble: Trouble) -> Result<Response<Body>, SendError> {
    match trouble {
        Trouble::Send(error) => Err(error),
        Trouble::Refused(response) => Ok(*response),
    }
}

/// What Streamable HTTP answers where there is no such session, or none is named (A12.12, A12.13).
fn no_session(headers: &HeaderMap, id: Option<&Id>) -> Response<Body> {
    match headers.contains_key(MCP_SESSION_ID) {
        true => refusal(StatusCode::NOT_FOUND, id, -32001, "session not found"),
        false => refusal(StatusCode::BAD_REQUEST, id, -32000, "the Mcp-Session-Id header is required"),
    }
}

fn refusal(status: StatusCode, id: Option<&Id>, code: i64, text: &str) -> Response<Body> {
    let body = ChannelBody::whole(jsonrpc::error(id, code, text, None));
    let mut response = Response::new(Body::Channel(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    response
}
