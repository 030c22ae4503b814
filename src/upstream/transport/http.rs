//! Requests to an HTTP upstream: one endpoint, pooled connections, and a response or a typed reason why there is none.
//!
//! Owns the pool, `Host`, redirects and the one safe kind of retry. Does not own headers beyond `Host`, nor bodies of
//! responses: those stream to the caller. Architecture, "Retries"; cases C30 and C61 (second half).
//!
//! Tasks: hyper runs each pooled connection in a task of its own. Such a task belongs to the transport and ends when the
//! peer closes, when the connection has idled for `pool_idle`, or when the transport and the last response body on that
//! connection are dropped. It is not tracked by the shutdown, whose grace period would otherwise wait for idle ones.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::body::Body;
use super::connect::{Connector, Route};
use super::error::{Again, Failure, Phase, RedirectRefusal, SendError, TransportBuildError};
use super::place::{NoPlace, Place};
use super::{redirect, tls};
use crate::config::{Target, Upstream};
use crate::net::{Dial, Origin, Scheme};
use crate::telemetry::metrics::{Delivered, UpstreamLimit, UpstreamMetrics};
use crate::wire::payload::Payload;

/// Interval and patience of HTTP/2 pings, so that a connection to a peer that vanished does not stay in use.
const PING_INTERVAL: Duration = Duration::from_secs(15);
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of one HTTP/2 response that may wait to be read. The connection's own window is as wide as can be, so that a
/// response which nobody reads stops its own stream and none beside it; a window that adapts is one for both.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = (1 << 31) - 1;

/// The part of a request that the caller decides; the URI is the upstream's, and so is `Host`.
#[derive(Debug, Clone)]
pub struct RequestHead {
    pub method: Method,
    pub headers: HeaderMap,
    pub speaker: Speaker,
}

/// Whose words the request carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// A driver's, whose ids are unlike those of all its other requests in a session; or a modern client's, passed on by one.
    Driver,
    /// A legacy client's own, in a session of its own at the server.
    Client,
}

/// A way to one HTTP endpoint. Clones share the pool.
#[derive(Clone)]
pub struct HttpTransport {
    inner: Arc<Inner>,
}

struct Inner {
    client: Client<Connector, Payload>,
    origin: Origin,
    /// `origin` as errors show it.
    shown: String,
    /// The endpoint.
    home: Place,
    /// Set for `http`, where only HTTP/1.1 is spoken; otherwise hyper derives it once the protocol is known.
    host: Option<HeaderValue>,
    redirects: usize,
    /// Pooled connections that may turn out dead, one after the other, before a new one is made.
    stale: usize,
    response_limit: Duration,
    metrics: Arc<UpstreamMetrics>,
}

impl HttpTransport {
    /// Reads certificate authorities if the upstream is `https`; connects to nothing yet.
    pub fn new(
        upstream: &Upstream,
        dial: Arc<dyn Dial>,
        metrics: Arc<UpstreamMetrics>,
    ) -> Result<Self, TransportBuildError> {
        let Target::Http(url) = &upstream.target else {
            return Err(TransportBuildError::NotHttp { upstream: upstream.name.clone() });
        };
        let refused = |reason: String| TransportBuildError::Url {
            upstream: upstream.name.clone(),
            url: without_credentials(url),
            reason,
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refused("credentials belong in `authorization`, not in the URL".to_owned()));
        }
        let origin = Origin::try_from(url).map_err(|error| refused(error.to_string()))?;
        let home = Place::home(url.clone()).map_err(|error| refused(error.to_string()))?;
        let host = match (origin.scheme, home.uri().authority()) {
            (Scheme::Http, Some(authority)) => HeaderValue::from_str(authority.as_str()).ok(),
            (Scheme::Http, None) | (Scheme::Https, _) => None,
        };
        let route = Route {
            tls: tls::connector(upstream, &origin)?,
            origin: origin.clone(),
            dial,
            limit: upstream.timeouts.connect,
            metrics: metrics.clone(),
        };
        let inner = Inner {
            client: client(upstream, Connector(Arc::new(route))),
            shown: origin.to_string(),
            origin,
            home,
            host,
            redirects: upstream.limits.redirects,
            stale: upstream.limits.pool_connections,
            response_limit: upstream.timeouts.request,
            metrics,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Sends one request to the endpoint and waits for the head of the response, `timeouts.request` at most.
    pub async fn send(&self, head: RequestHead, body: Payload) -> Result<Response<Body>, SendError> {
        self.send_within(self.inner.response_limit, head, body).await
    }

    /// As [`send`](Self::send), for a call, whose own deadline comes no later. `head` makes the same head each time.
    pub async fn send_due(&self, head: &Head<'_>, body: Payload) -> Result<Response<Body>, SendError> {
        self.inner.counted(pin!(self.inner.follow(head, body)), Response::status).await
    }

    /// As [`send`](Self::send), with a limit of its own (probe, `initialize`). Dropping the future gives the request up:
    /// HTTP/1 closes the connection, HTTP/2 resets the stream.
    pub async fn send_within(
        &self,
        limit: Duration,
        head: RequestHead,
        body: Payload,
    ) -> Result<Response<Body>, SendError> {
        let head = || head.clone();
        let followed = pin!(self.inner.follow(&head, body));
        self.inner.counted(pin!(within(limit, followed)), Response::status).await
    }

    /// The endpoint, for logs; holds no credentials.
    pub fn url(&self) -> &Url {
        self.inner.home.url()
    }

    /// As [`send`](Self::send), to another place of the same upstream and with a limit of its own. Also says which place the
    /// response is from in the end.
    pub(super) async fn send_to(
        &self,
        limit: Duration,
        place: &Place,
        head: RequestHead,
        body: Payload,
    ) -> Result<(Response<Body>, Place), SendError> {
        let head = || head.clone();
        let requests = self.inner.redirects.saturating_add(1);
        let followed = pin!(self.inner.follow_on(place.clone(), requests, &head, &body));
        let sent = pin!(within(limit, followed));
        self.inner.counted(sent, |(response, _)| response.status()).await
    }

    /// The endpoint as a place.
    pub(super) fn home(&self) -> &Place {
        &self.inner.home
    }

    /// Where `reference`, read at `from`, leads to.
    pub(super) fn place(&self, reference: &str, from: &Place) -> Result<Place, NoPlace> {
        Place::resolve(reference, from.url(), &self.inner.origin)
    }

    pub(super) fn origin(&self) -> &Origin {
        &self.inner.origin
    }
}

/// The same with a limit in time.
pub(super) async fn within<T>(
    limit: Duration,
    // By reference: it is large, and is not to be moved about.
    sent: impl Future<Output = Result<T, SendError>> + Unpin,
) -> Result<T, SendError> {
    let sent = timeout_at(Instant::now() + limit, sent).await;
    sent.unwrap_or(Err(SendError::Timeout { phase: Phase::Response, after: limit }))
}

/// Counts what becomes of a request, also where nobody waits for it to the end.
pub(super) async fn counted<T>(
    metrics: &UpstreamMetrics,
    sent: impl Future<Output = Result<T, SendError>>,
    status: impl Fn(&T) -> StatusCode,
) -> Result<T, SendError> {
    let mut delivery = Delivery { metrics, result: Delivered::GivenUp };
    let sent = sent.await;
    delivery.result = delivered(sent.as_ref().map(status));
    sent
}

/// Counts one request when it is over, also where its future is dropped.
struct Delivery<'a> {
    metrics: &'a UpstreamMetrics,
    result: Delivered,
}

impl Drop for Delivery<'_> {
    fn drop(&mut self) {
        self.metrics.delivered(self.result);
    }
}

fn delivered(sent: Result<StatusCode, &SendError>) -> Delivered {
    match sent {
        Ok(status) => match status.as_u16() {
            ..300 => Delivered::Success,
            300..400 => Delivered::Redirected,
            400..500 => Delivered::ClientError,
            500.. => Delivered::ServerError,
        },
        Err(
            SendError::Connect { .. }
            | SendError::Start { .. }
            | SendError::Pausing { .. }
            | SendError::Full { .. }
            | SendError::Endpoint(_),
        ) => Delivered::Connect,
        Err(SendError::Tls { .. }) => Delivered::Tls,
        Err(SendError::Unsent { .. }) => Delivered::Unsent,
        Err(
            SendError::Broken { .. } | SendError::Ended { .. } | SendError::NoMessage | SendError::TooLarge,
        ) => Delivered::Broken,
        Err(SendError::Timeout { .. }) => Delivered::Timeout,
        Err(SendError::Redirect(_)) => Delivered::Redirect,
    }
}

/// Makes the head of a request, once for each time it is sent.
pub(in crate::upstream) type Head<'a> = dyn Fn() -> RequestHead + Send + Sync + 'a;

impl Inner {
    /// Shares the bytes of the body.
    fn request(&self, uri: &Uri, mut head: RequestHead, body: &Payload) -> Request<Payload> {
        match &self.host {
            Some(host) => head.headers.insert(header::HOST, host.clone()),
            None => head.headers.remove(header::HOST),
        };
        let mut request = Request::new(body.clone());
        *request.method_mut() = head.method;
        *request.uri_mut() = uri.clone();
        *request.headers_mut() = head.headers;
        request
    }

    async fn counted<T>(
        &self,
        // By reference: it is large, and is not to be moved about.
        sent: impl Future<Output = Result<T, SendError>> + Unpin,
        status: impl Fn(&T) -> StatusCode,
    ) -> Result<T, SendError> {
        let sent = counted(&self.metrics, sent, status).await;
        if let Err(SendError::Redirect(RedirectRefusal::TooMany { .. })) = &sent {
            self.metrics.limit(UpstreamLimit::Redirects);
        }
        sent
    }

    async fn follow(&self, head: &Head<'_>, body: Payload) -> Result<Response<Body>, SendError> {
        let response = self.deliver(self.home.uri(), head, &body).await?;
        let Some(target) = self.redirected(&response, &self.home) else { return Ok(response) };
        self.follow_on(target?, self.redirects, head, &body).await.map(|(response, _)| response)
    }

    /// Sends to one place, and on to where it leads, so many requests at most. Kept out of the future of `follow`, where it is
    /// rare.
    async fn follow_on(
        &self,
        mut place: Place,
        requests: usize,
        head: &Head<'_>,
        body: &Payload,
    ) -> Result<(Response<Body>, Place), SendError> {
        for _ in 0..requests {
            let response = self.deliver(place.uri(), head, body).await?;
            place = match self.redirected(&response, &place) {
                None => return Ok((response, place)),
                Some(next) => next?,
            };
        }
        Err(RedirectRefusal::TooMany { limit: self.redirects }.into())
    }

    fn redirected(&self, response: &Response<Body>, from: &Place) -> Option<Result<Place, RedirectRefusal>> {
        redirect::target(response.status(), response.headers(), from, &self.origin)
    }

    /// Sends until the request was handed over in full once, and never after that.
    async fn deliver(&self, uri: &Uri, head: &Head<'_>, body: &Payload) -> Result<Response<Body>, SendError> {
        let mut stale = self.stale;
        let mut once = true;
        loop {
            let failure = match self.client.request(self.request(uri, head(), body)).await {
                Ok(response) => return Ok(response.map(Body::Http)),
                Err(error) => Failure::of(error, &self.shown),
            };
            match failure.again {
                Again::StalePool if stale > 0 => stale -= 1,
                Again::StalePool | Again::Once if once => once = false,
                Again::No | Again::StalePool | Again::Once => return Err(failure.error),
            }
        }
    }
}

fn client(upstream: &Upstream, connector: Connector) -> Client<Connector, Payload> {
    Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(upstream.timeouts.pool_idle)
        .pool_max_idle_per_host(upstream.limits.pool_connections)
        .retry_canceled_requests(true)
        .http2_initial_stream_window_size(STREAM_WINDOW)
        .http2_initial_connection_window_size(CONNECTION_WINDOW)
        .http2_keep_alive_interval(PING_INTERVAL)
        .http2_keep_alive_timeout(PING_TIMEOUT)
        .http2_keep_alive_while_idle(true)
        .build(connector)
}

fn without_credentials(url: &Url) -> String {
    let mut url = url.clone();
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.into()
}
