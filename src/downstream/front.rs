//! One HTTP request of a client, from its head to the head of the response.
//!
//! Owns the order of the first steps: route, body within its bounds, place among the requests in work, envelope, era of
//! the client, whose front then goes on (`modern::serve`, `legacy::serve`). Each refusal carries the caller's id as soon as
//! a body could be read. Rules: A12.1-A12.4, A12.14, A12.16; cases C18, C31.

use super::body::FrontBody;
use super::client;
use super::legacy::{Place, Post, Sessions};
use super::modern::check::Refusal;
use super::modern::{Sent, respond};
use super::old_sse::OldClients;
use super::read::{ClientBody, Reader};
use super::record::Record;
use crate::config::{FrontTimeouts, Limits};
use crate::exchange::{Binding, Fault, FaultKind};
use crate::relay::Relay;
use crate::seal::SealError;
use crate::shutdown::Shutdown;
use crate::telemetry::metrics::{FrontMetrics, Limit};
use crate::upstream::Upstream;
use crate::upstream::modern::is_event_stream;
use crate::wire::headers::{ContentType, MCP_SESSION_ID};
use crate::wire::json;
use crate::wire::jsonrpc::{self, Message, Request, code};
use crate::wire::method::Method;
use crate::wire::version::{Era, MODERN};
use bytes::Bytes;
use hyper::header::{ALLOW, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method as HttpMethod, Response, StatusCode};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until};
use tracing::Instrument;

/// The handler of all client connections.
#[derive(Clone)]
pub struct Front {
    inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) relay: Arc<Relay>,
    pub(super) limits: Limits,
    pub(super) timeouts: FrontTimeouts,
    requests: Arc<Semaphore>,
    /// For what lets go of a place where all are taken: a session's answers, cancellations and ends.
    reserve: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    pub(super) shutdown: Shutdown,
    pub(super) metrics: Arc<FrontMetrics>,
    /// Of legacy clients before modern servers, by upstream.
    sessions: HashMap<String, Arc<Sessions>>,
    pub(super) old_clients: Arc<OldClients>,
}

impl Front {
    pub fn new(
        relay: Arc<Relay>,
        limits: Limits,
        timeouts: FrontTimeouts,
        shutdown: Shutdown,
        metrics: Arc<FrontMetrics>,
    ) -> Result<Self, SealError> {
        let mut sessions = HashMap::new();
        for upstream in relay.upstreams().iter().filter(|upstream| upstream.settings.legacy_clients) {
            let table = Sessions::new(
                &upstream.settings,
                &limits,
                timeouts.keep_alive,
                &shutdown,
                upstream.metrics.clone(),
            )?;
            sessions.insert(upstream.settings.name.clone(), table);
        }
        let requests = Arc::new(Semaphore::new(limits.requests.min(Semaphore::MAX_PERMITS)));
        let reserve = Arc::new(Semaphore::new((limits.requests / 8).clamp(8, 64)));
        let streams = Arc::new(Semaphore::new(limits.streams.min(Semaphore::MAX_PERMITS)));
        let old_clients = OldClients::new(&relay);
        let inner = Inner {
            relay,
            limits,
            timeouts,
            requests,
            reserve,
            streams,
            shutdown,
            metrics,
            sessions,
            old_clients,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Answers one request. Dropping the future, or later the body, cancels a modern client's call; a legacy client's goes on
    /// (B14), and can be cancelled in words alone.
    pub async fn handle<B: ClientBody>(&self, request: hyper::Request<B>) -> Response<FrontBody> {
        let inner = &self.inner;
        if let Some(at) = inner.old_clients.at(request.uri().path()) {
            return Box::pin(self.old_sse(at, request)).await;
        }
        let Some(upstream) = inner.relay.route(request.uri().path()) else {
            let refusal = Refusal::new(
                StatusCode::NOT_FOUND,
                code::INVALID_REQUEST,
                "path",
                "no MCP endpoint is served at this path",
            );
            inner.metrics.refused(refusal.reason);
            return respond::refusal(&refusal);
        };
        let mut record = Record::new(&upstream.settings.name, &upstream.metrics);
        let span = record.span.clone();
        // Boxed: each connection has room for the whole future as long as it is open, and the future is moved several times
        // on its way down.
        let answer = Box::pin(inner.answer(upstream, request, &mut record).instrument(span));
        let (mut response, place) = match answer.await {
            Ok(answered) => answered,
            Err(refusal) => {
                tracing::debug!(parent: &record.span, reason = refusal.reason, text = %refusal.text, "refused");
                record.refused(refusal.reason);
                refusal.limit.inspect(|limit| inner.metrics.limit(*limit));
                (respond::refusal(&refusal), None)
            }
        };
        if response.status() == StatusCode::METHOD_NOT_ALLOWED {
            response.headers_mut().entry(ALLOW).or_insert(HeaderValue::from_static("POST"));
        }
        if is_event_stream(response.headers()) {
            record.streams();
        }
        record.status(response.status().as_u16());
        response.map(|body| body.with(record, place))
    }

    pub(super) fn inner(&self) -> &Inner {
        &self.inner
    }

    /// Whether new requests are taken.
    pub fn ready(&self) -> bool {
        !self.inner.shutdown.is_draining()
    }
}

impl Inner {
    /// Of this upstream; `None` where it serves legacy clients before legacy servers alone.
    pub(super) fn sessions(&self, upstream: &Upstream) -> Option<&Arc<Sessions>> {
        self.sessions.get(&upstream.settings.name)
    }

    pub(super) fn reader(&self) -> Reader<'_> {
        Reader { limit: self.limits.body_bytes, time: self.timeouts.body, shutdown: &self.shutdown }
    }
}

/// Whether a message keeps no place for long: it is no request, of which an array may hold some.
fn is_short(text: &Bytes, limits: json::Limits) -> bool {
    matches!(jsonrpc::parse(text.clone(), limits), Ok(Message::Notification(_) | Message::Response(_)))
}

/// A response, and the request's place among those in work.
type Answered = (Response<FrontBody>, Option<OwnedSemaphorePermit>);

impl Inner {
    async fn answer<B: ClientBody>(
        &self,
        upstream: &Arc<Upstream>,
        request: hyper::Request<B>,
        record: &mut Record,
    ) -> Result<Answered, Refusal> {
        if request.method() != HttpMethod::POST {
            let (head, _) = request.into_parts();
            return Box::pin(self.bare(upstream, &head, record)).await;
        }
        let (head, body) = request.into_parts();
        let in_session = head.headers.contains_key(MCP_SESSION_ID);
        let (text, mut place) = self.text(&head.headers, in_session, body).await?;
        let binding = head.extensions.get::<Binding>().copied().unwrap_or_default();
        let sent = Sent { headers: head.headers, binding };
        let response = self.message(upstream, sent, text, record, &mut place).await?;
        Ok((response, place))
    }

    /// The body of a POST, and a place among the requests in work for what it asks.
    pub(super) async fn text<B: ClientBody>(
        &self,
        headers: &HeaderMap,
        in_session: bool,
        body: B,
    ) -> Result<(Bytes, Place), Refusal> {
        // Before the body, so that bodies count among the requests in work.
        let place = self.place();
        let reserve = if place.is_none() && in_session { self.reserved() } else { None };
        if place.is_none() && reserve.is_none() {
            let refusal = self.no_place();
            return Err(refusal.with_id(Box::pin(self.reader().glance(body)).await));
        }
        let text = self.reader().read(headers, body).await?;
        let content_type = headers.get(CONTENT_TYPE).map(|value| ContentType::parse(value.as_bytes()));
        let encoded = headers.get(CONTENT_ENCODING).is_some_and(|value| value != "identity");
        if content_type != Some(ContentType::Json) || encoded {
            let told = "the Content-Type must be application/json, without a Content-Encoding";
            return Err(Refusal::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                code::INVALID_REQUEST,
                "content-type",
                told,
            )
            .with_id(jsonrpc::find_id(&text)));
        }
        let limits = json::Limits { nesting: self.limits.nesting, members: self.limits.members };
        if reserve.is_some() && !is_short(&text, limits) {
            return Err(self.no_place().with_id(jsonrpc::find_id(&text)));
        }
        Ok((text, place.or(reserve)))
    }

    /// A request without a body. Sessions, and with them GET and DELETE, belong to legacy clients (A12.14).
    async fn bare(
        &self,
        upstream: &Arc<Upstream>,
        head: &Parts,
        record: &mut Record,
    ) -> Result<Answered, Refusal> {
        let (verb, headers) = (&head.method, &head.headers);
        let place = match (verb == HttpMethod::GET, head.extensions.get().copied().unwrap_or_default()) {
            // A stream of the server's own is open as long as its client, like a subscription.
            (true, Binding::Http) => Some(self.stream_place()?),
            // What the client hears on its one channel, which has a place itself.
            (true, Binding::Channel) => None,
            (false, _) => {
                let in_session = headers.contains_key(MCP_SESSION_ID);
                let reserved = || if in_session { self.reserved() } else { None };
                Some(self.place().or_else(reserved).ok_or_else(|| self.no_place())?)
            }
        };
        if let Some(response) = self.legacy_verb(upstream, verb, headers, record).await? {
            return Ok((response, place));
        }
        let text = "only POST is served here, and to legacy clients GET and DELETE in a session";
        Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, code::INVALID_REQUEST, "http-method", text))
    }

    /// A place where all are taken, for a message in a session.
    fn reserved(&self) -> Place {
        self.reserve.clone().try_acquire_owned().ok()
    }

    /// One more place among the requests in work.
    pub(super) fn place(&self) -> Place {
        self.requests.clone().try_acquire_owned().ok()
    }

    fn no_place(&self) -> Refusal {
        tracing::warn!(requests = self.limits.requests, "all places are taken; raise limits.requests");
        let text = "the proxy has as many requests in work as it may";
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, code::INTERNAL_ERROR, "requests", text)
            .at(Limit::Requests)
    }

    pub(super) fn stream_place(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        self.streams.clone().try_acquire_owned().map_err(|_| {
            tracing::warn!(streams = self.limits.streams, "all streams are taken; raise limits.streams");
            let text = "the proxy has as many streams open as it may";
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, code::INTERNAL_ERROR, "streams", text)
                .at(Limit::Streams)
        })
    }

    /// What is large is boxed, so that none makes the other's room.
    async fn message(
        &self,
        upstream: &Arc<Upstream>,
        Sent { headers, binding }: Sent,
        text: Bytes,
        record: &mut Record,
        place: &mut Place,
    ) -> Result<Response<FrontBody>, Refusal> {
        let limits = json::Limits { nesting: self.limits.nesting, members: self.limits.members };
        let message = jsonrpc::parse(text.clone(), limits);
        // Who names a session of ours is a legacy client, whatever its `_meta` claims (A4.7).
        let legacy = client::era(&headers, &message) == Era::Legacy;
        let ours = (legacy || message.is_ok() && client::may_be_legacy(&headers))
            .then(|| self.our_session(upstream, &headers))
            .flatten();
        let (mut headers, mut message) = (headers, message);
        if legacy || ours.is_some() {
            let post = Post { upstream, headers, message, text, ours };
            match self.legacy_post(post, record, place).await? {
                Ok(response) => return Ok(response),
                Err(post) => (headers, message) = (post.headers, post.message),
            }
        }
        // The client is modern, or its server is: then the checks of that era tell it so.
        let message = message.map_err(|malformed| {
            let (reason, fault) = ("envelope", malformed.fault);
            Refusal::new(StatusCode::BAD_REQUEST, fault.code(), reason, fault.to_string())
                .bounded_by(&fault)
                .with_id(malformed.id)
        })?;
        match message {
            Message::Request(request) => {
                let sent = Sent { headers, binding };
                Box::pin(self.request(upstream, sent, request, record, place)).await
            }
            Message::Notification(notification) => {
                Box::pin(self.notification(upstream, headers, notification, record)).await
            }
            Message::Response(_) => {
                let text = format!("responses are not accepted: {MODERN} clients answer by a new request");
                Err(Refusal::new(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, "response", text))
            }
        }
    }

    /// A start that takes as long as the call itself may is over; what it began for others goes on without it.
    pub(super) async fn in_time<T>(
        &self,
        deadline: Instant,
        // By reference: it is large, and is not to be moved about.
        start: impl Future<Output = Result<T, Fault>> + Unpin,
    ) -> Result<T, Fault> {
        tokio::select! {
            biased;
            started = start => started,
            () = sleep_until(deadline) => {
                Err(Fault::new(FaultKind::Timeout, "the upstream server did not answer in time"))
            }
            () = self.shutdown.cut_short() => Err(Fault::cut_short()),
        }
    }
}

/// What the request is about, for the log: a tool's, prompt's or resource's name.
pub(super) fn name(request: &Request) -> Option<String> {
    let member = Method::of(&request.method).name_member()?;
    let span = request.params.body()?.object.first(&request.text, member.as_str())?;
    jsonrpc::string(&request.text, span).map(|name| name.into_owned())
}
