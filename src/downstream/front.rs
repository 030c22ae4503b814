//! One HTTP request of a client, from its head to the head of the response.
//!
//! Owns the order of the steps: route, body within its bounds, place among the requests in work, envelope, checks,
//! start, and how long the response's head is held back (B11). Each refusal carries the caller's id as soon as a body
//! could be read. Rules: A12.1-A12.6, A12.14, A12.16; cases C18, C21, C25, C31.

use super::body::{Ends, FrontBody};
use super::client;
use super::modern::check::{self, Refusal};
use super::modern::respond;
use super::read::Reader;
use super::record::Record;
use crate::config::{FrontTimeouts, Limits};
use crate::exchange::{Call, Fault, FaultKind, Outcome, Principal, Step};
use crate::relay::{Exchange, Relay, Reply};
use crate::shutdown::Shutdown;
use crate::telemetry::metrics::{Ended, FrontMetrics, Limit, What};
use crate::translate::notify;
use crate::upstream::modern::is_event_stream;
use crate::upstream::{Upstream, UpstreamBody};
use crate::wire::headers::{Accepts, ContentType};
use crate::wire::json;
use crate::wire::jsonrpc::{self, Id, Message, Notification, Request, code};
use crate::wire::method::Method;
use crate::wire::version::{Era, MODERN};
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, ALLOW, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use hyper::{HeaderMap, Method as HttpMethod, Response, StatusCode};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout_at};
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
    streams: Arc<Semaphore>,
    pub(super) shutdown: Shutdown,
    pub(super) metrics: Arc<FrontMetrics>,
}

impl Front {
    pub fn new(
        relay: Arc<Relay>,
        limits: Limits,
        timeouts: FrontTimeouts,
        shutdown: Shutdown,
        metrics: Arc<FrontMetrics>,
    ) -> Self {
        let requests = Arc::new(Semaphore::new(limits.requests.min(Semaphore::MAX_PERMITS)));
        let streams = Arc::new(Semaphore::new(limits.streams.min(Semaphore::MAX_PERMITS)));
        Self { inner: Arc::new(Inner { relay, limits, timeouts, requests, streams, shutdown, metrics }) }
    }

    /// Answers one request. Dropping the future, or later the body, cancels the call.
    pub async fn handle(&self, request: hyper::Request<Incoming>) -> Response<FrontBody> {
        let inner = &self.inner;
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
        let (mut response, place) = match inner.answer(upstream, request, &mut record).instrument(span).await
        {
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

    /// Whether new requests are taken.
    pub fn ready(&self) -> bool {
        !self.inner.shutdown.is_draining()
    }
}

impl Inner {
    fn reader(&self) -> Reader<'_> {
        Reader { limit: self.limits.body_bytes, time: self.timeouts.body, shutdown: &self.shutdown }
    }
}

/// A response, and the request's place among those in work.
type Answered = (Response<FrontBody>, Option<OwnedSemaphorePermit>);

impl Inner {
    async fn answer(
        &self,
        upstream: &Arc<Upstream>,
        request: hyper::Request<Incoming>,
        record: &mut Record,
    ) -> Result<Answered, Refusal> {
        if request.method() != HttpMethod::POST {
            return self.bare(upstream, request.method(), request.headers(), record).await;
        }
        let (head, body) = request.into_parts();
        // Before the body, so that bodies count among the requests in work.
        let Ok(place) = self.requests.clone().try_acquire_owned() else {
            let refusal = self.no_place();
            return Err(refusal.with_id(self.reader().glance(body).await));
        };
        let text = self.reader().read(&head.headers, body).await?;
        let content_type = head.headers.get(CONTENT_TYPE).map(|value| ContentType::parse(value.as_bytes()));
        let encoded = head.headers.get(CONTENT_ENCODING).is_some_and(|value| value != "identity");
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
        let mut place = place;
        let response = self.message(upstream, head.headers, text, record, &mut place).await?;
        Ok((response, Some(place)))
    }

    /// A request without a body. Sessions, and with them GET and DELETE, belong to legacy clients (A12.14).
    async fn bare(
        &self,
        upstream: &Arc<Upstream>,
        verb: &HttpMethod,
        headers: &HeaderMap,
        record: &mut Record,
    ) -> Result<Answered, Refusal> {
        // A stream of the server's own is open as long as its client, like a subscription.
        let place = if verb == HttpMethod::GET {
            self.stream_place()?
        } else {
            self.requests.clone().try_acquire_owned().map_err(|_| self.no_place())?
        };
        if let Some(response) = self.legacy_verb(upstream, verb, headers, record).await? {
            return Ok((response, Some(place)));
        }
        let text = "only POST is served here, and in front of legacy servers GET and DELETE in a session";
        Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, code::INVALID_REQUEST, "http-method", text))
    }

    fn no_place(&self) -> Refusal {
        tracing::warn!(requests = self.limits.requests, "all places are taken; raise limits.requests");
        let text = "the proxy has as many requests in work as it may";
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, code::INTERNAL_ERROR, "requests", text)
            .at(Limit::Requests)
    }

    fn stream_place(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        self.streams.clone().try_acquire_owned().map_err(|_| {
            tracing::warn!(streams = self.limits.streams, "all streams are taken; raise limits.streams");
            let text = "the proxy has as many streams open as it may";
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, code::INTERNAL_ERROR, "streams", text)
                .at(Limit::Streams)
        })
    }

    async fn message(
        &self,
        upstream: &Arc<Upstream>,
        headers: HeaderMap,
        text: Bytes,
        record: &mut Record,
        place: &mut OwnedSemaphorePermit,
    ) -> Result<Response<FrontBody>, Refusal> {
        let limits = json::Limits { nesting: self.limits.nesting, members: self.limits.members };
        let message = jsonrpc::parse(text.clone(), limits);
        if client::era(&headers, &message) == Era::Legacy
            && let Some(response) = self.legacy_post(upstream, &headers, &message, &text, record).await?
        {
            return Ok(response);
        }
        // The client is modern, or its server is: then the checks of that era tell it so.
        let message = message.map_err(|malformed| {
            let (reason, fault) = ("envelope", malformed.fault);
            Refusal::new(StatusCode::BAD_REQUEST, fault.code(), reason, fault.to_string())
                .bounded_by(&fault)
                .with_id(malformed.id)
        })?;
        match message {
            Message::Request(request) => self.request(upstream, headers, request, record, place).await,
            Message::Notification(notification) => {
                self.notification(upstream, headers, notification, record).await
            }
            Message::Response(_) => {
                let text = format!("responses are not accepted: {MODERN} clients answer by a new request");
                Err(Refusal::new(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, "response", text))
            }
        }
    }

    async fn request(
        &self,
        upstream: &Arc<Upstream>,
        headers: HeaderMap,
        request: Request,
        record: &mut Record,
        place: &mut OwnedSemaphorePermit,
    ) -> Result<Response<FrontBody>, Refusal> {
        let id = request.id.clone();
        let checked = check::request(&headers, &request);
        let method = checked.as_ref().map_or_else(|_| Method::of(&request.method), |c| c.method);
        let era = checked.as_ref().map_or_else(check::Refusal::era, |_| Era::Modern);
        record.about(What::Method(method), era, name(&request).as_deref());
        checked?;
        let accepts = Accepts::parse(headers.get_all(ACCEPT).iter().map(HeaderValue::as_bytes));
        if accepts.nothing() {
            let text = "the Accept header admits neither application/json nor text/event-stream";
            return Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, code::INVALID_REQUEST, "accept", text)
                .with_id(Some(id)));
        }
        if method == Method::Listen && !accepts.event_stream {
            let text = "subscriptions/listen is answered by an event stream; the Accept header must admit text/event-stream";
            return Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, code::INVALID_REQUEST, "accept", text)
                .with_id(Some(id)));
        }
        if method == Method::Listen {
            // From here on it counts among those and not among the requests in work.
            *place = self.stream_place().map_err(|refusal| refusal.with_id(Some(id)))?;
        }
        let call = Arc::new(Call {
            request,
            method,
            principal: Principal::of(headers.get(AUTHORIZATION)),
            headers,
            deadline: Instant::now() + upstream.settings.timeouts.request,
            meter: record.meter(),
        });
        Ok(self.run(upstream, call, accepts, record).await)
    }

    /// Runs a call up to the head of its response.
    async fn run(
        &self,
        upstream: &Arc<Upstream>,
        call: Arc<Call>,
        accepts: Accepts,
        record: &mut Record,
    ) -> Response<FrontBody> {
        let (id, deadline, method) = (call.id().clone(), call.deadline, call.method);
        let streams = accepts.event_stream;
        let mut reply = self.in_time(deadline, self.relay.start(upstream, call, streams)).await;
        let mut replanned = false;
        loop {
            let mut exchange = match reply {
                Err(fault) => return respond::fault(&fault, &id, record),
                Ok(Reply::Done(outcome)) => return respond::outcome(outcome, &id, accepts, record),
                Ok(Reply::Relayed(response)) => return self.relayed(response, method, id, deadline, record),
                Ok(Reply::Exchange(exchange)) => exchange,
            };
            match self.first(&mut exchange, accepts).await {
                First::Passing(first) => {
                    let receiver = exchange.detach(&self.shutdown);
                    return respond::passing(receiver, first, Ends::cut(self.shutdown.clone()));
                }
                First::Stream(first) => {
                    let ends = Ends::cut(self.shutdown.clone());
                    return respond::stream(FrontBody::stream(
                        exchange.detach(&self.shutdown),
                        id,
                        first,
                        self.timeouts.keep_alive,
                        ends,
                    ));
                }
                // A second time only where nothing of the call has run, and once at most.
                First::Outcome(Outcome::Replan(replan)) if !replanned => {
                    replanned = true;
                    reply = self.in_time(deadline, self.relay.restart(upstream, *replan, streams)).await;
                }
                First::Outcome(outcome) => return respond::outcome(outcome, &id, accepts, record),
            }
        }
    }

    /// A start that takes as long as the call itself may is over; what it began for others goes on without it.
    pub(super) async fn in_time<T>(
        &self,
        deadline: Instant,
        start: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        tokio::select! {
            biased;
            started = timeout_at(deadline, start) => started.unwrap_or_else(|_| {
                Err(Fault::new(FaultKind::Timeout, "the upstream server did not answer in time"))
            }),
            () = self.shutdown.cut_short() => Err(Fault::cut_short()),
        }
    }

    /// What the response begins with (B11).
    async fn first(&self, exchange: &mut Exchange, accepts: Accepts) -> First {
        let mut hold = std::pin::pin!(sleep(self.timeouts.hold));
        loop {
            let step = tokio::select! {
                biased;
                step = exchange.next() => step,
                () = self.shutdown.cut_short() => return First::Outcome(Outcome::Fault(Fault::cut_short())),
                () = &mut hold, if accepts.event_stream => return First::Stream(None),
            };
            match step {
                Some(Step::Outcome(outcome)) => return First::Outcome(outcome),
                // Its beginning: from here on nothing else can come.
                Some(Step::Piece(piece)) if accepts.json => return First::Passing(piece),
                Some(step @ (Step::Event(_) | Step::Piece(_))) if accepts.event_stream => {
                    return First::Stream(Some(step));
                }
                // A client that takes only JSON gets only the outcome (C25).
                Some(Step::Event(_) | Step::Piece(_)) => {}
                None => {
                    let fault = Fault::new(FaultKind::Internal, "the proxy lost track of this call");
                    return First::Outcome(Outcome::Fault(fault));
                }
            }
        }
    }

    fn relayed(
        &self,
        response: Response<UpstreamBody>,
        method: Method,
        id: Id,
        deadline: Instant,
        record: &mut Record,
    ) -> Response<FrontBody> {
        let (mut head, body) = response.into_parts();
        record.outcome(if head.status.is_success() { Ended::Relayed } else { Ended::RelayedError });
        let streams = is_event_stream(&head.headers);
        respond::end_to_end(&mut head.headers);
        if streams {
            respond::stream_headers(&mut head.headers);
        }
        // A subscription lives until either side ends it, or the proxy drains; every other answer is due in time.
        let ends = match method {
            Method::Listen => Ends::drain(self.shutdown.clone(), &id),
            _ => Ends::at(deadline, self.shutdown.clone()),
        };
        let mut relayed = Response::new(FrontBody::relayed(body, streams, self.timeouts.keep_alive, ends));
        *relayed.status_mut() = head.status;
        *relayed.headers_mut() = head.headers;
        relayed
    }

    async fn notification(
        &self,
        upstream: &Arc<Upstream>,
        headers: HeaderMap,
        notification: Notification,
        record: &mut Record,
    ) -> Result<Response<FrontBody>, Refusal> {
        let checked = check::notification(&headers, &notification.params);
        let era = checked.as_ref().map_or_else(check::Refusal::era, |()| Era::Modern);
        record.about(What::Notification, era, None);
        checked?;
        if Method::of(&notification.method) != Method::Custom {
            // Without an id there is nobody to answer, and a server may run it all the same (C21).
            let text =
                format!("{} is a request and needs an \"id\"", Method::of(&notification.method).label());
            return Err(Refusal::new(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, "no-id", text));
        }
        if notify::Kind::of(&notification.method) == notify::Kind::Custom {
            let principal = Principal::of(headers.get(AUTHORIZATION));
            let deadline = Instant::now() + upstream.settings.timeouts.request;
            let passed =
                self.relay.notify(upstream, notification, headers, principal, deadline, record.meter());
            let passed = timeout_at(deadline, passed).await.unwrap_or_else(|_| {
                Err(Fault::new(FaultKind::Timeout, "the upstream server did not answer in time"))
            });
            if let Err(fault) = passed {
                record.fault(&fault.kind);
                // There is no id to answer under.
                let reason = fault.kind.ended().label();
                let told = Refusal::new(StatusCode::BAD_GATEWAY, code::INTERNAL_ERROR, reason, fault.text);
                return Ok(respond::refusal(&told));
            }
        }
        record.outcome(Ended::Accepted);
        let mut response = Response::new(FrontBody::whole(Default::default()));
        *response.status_mut() = StatusCode::ACCEPTED;
        Ok(response)
    }
}

enum First {
    Outcome(Outcome),
    /// A result that passes; what has come of it.
    Passing(Bytes),
    /// What has come.
    Stream(Option<Step>),
}

/// What the request is about, for the log: a tool's, prompt's or resource's name.
pub(super) fn name(request: &Request) -> Option<String> {
    let member = Method::of(&request.method).name_member()?;
    let span = request.params.body()?.object.first(&request.text, member.as_str())?;
    jsonrpc::string(&request.text, span).map(|name| name.into_owned())
}
