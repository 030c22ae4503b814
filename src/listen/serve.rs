//! One client connection, from its first byte to its last.
//!
//! Owns the protocol settings, the connection's times and its part in a drain. Does not own sockets, nor which requests
//! are refused ([`refuse`](super::refuse)).

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;

use super::Handler;
use super::body::EdgeBody;
use super::guard::Guard;
use super::refuse;
use super::watch::{Activity, InWork, Verdict, Version, Watched};
use crate::config::{FrontTimeouts, Limits};
use crate::net::{BoxIo, Stream};
use crate::shutdown::{Dormant, Shutdown};
use crate::telemetry::metrics::{FrontMetrics, Limit};

/// hyper's own bound on a head lies this far above `limits.header_bytes`, so that the refusal is almost always ours.
const BACKSTOP: usize = 64 * 1024;
/// Streams of one HTTP/2 connection that may be open at once.
const STREAMS: u32 = 256;
/// HTTP/2 pings find clients that vanished with a stream open.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// A connection over the limit gets this long to send its request and read the refusal.
const REFUSAL_TIME: Duration = Duration::from_secs(2);
/// A head of which a part has come when the drain begins gets this long to be completed.
const REST_OF_HEAD: Duration = Duration::from_secs(1);

/// Everything that the connections of one listener share.
pub struct Front<H> {
    handler: H,
    guard: Guard,
    header_bytes: usize,
    timeouts: FrontTimeouts,
    shutdown: Shutdown,
    tls: Option<TlsAcceptor>,
    http1: auto::Builder<Shutdown>,
    http2: auto::Builder<Shutdown>,
    /// `None` where nothing is counted, as on the admin listener.
    metrics: Option<Arc<FrontMetrics>>,
}

/// What happens to a connection from our side.
enum Beside {
    Drain,
    /// Its times are looked at.
    Look,
    End,
}

/// Whether a connection found room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    Admitted,
    /// The connection limit is reached: every request is answered 503.
    Refused,
}

impl<H: Handler> Front<H> {
    pub fn new(
        handler: H,
        guard: Guard,
        limits: &Limits,
        timeouts: &FrontTimeouts,
        shutdown: Shutdown,
    ) -> Self {
        let builder = builder(limits, &shutdown);
        Self {
            handler,
            guard,
            header_bytes: limits.header_bytes,
            timeouts: timeouts.clone(),
            http1: builder.clone().http1_only(),
            http2: builder.http2_only(),
            shutdown,
            tls: None,
            metrics: None,
        }
    }

    /// Counts what happens here.
    pub fn metered(mut self, metrics: Option<Arc<FrontMetrics>>) -> Self {
        self.metrics = metrics;
        self
    }

    pub(super) fn with_tls(mut self, tls: Option<TlsAcceptor>) -> Self {
        self.tls = tls;
        self
    }

    /// Serves one connection until either side ends it, it has idled too long, or a drain is over.
    pub async fn serve_connection(self: Arc<Self>, io: BoxIo, admission: Admission) {
        let (header, idle) = match admission {
            Admission::Admitted => (self.timeouts.header, self.timeouts.idle),
            Admission::Refused => (REFUSAL_TIME.min(self.timeouts.header), REFUSAL_TIME),
        };
        let counted = self.metrics.as_ref().map(|metrics| metrics.connection());
        let stream = match self.handshake(io, admission).await {
            Some(stream) => stream,
            None => return,
        };
        let activity = Activity::new();
        let mut io = Watched::new(stream, Arc::clone(&activity), counted);
        let builder = match self.version(&mut io, &activity, header, idle).await {
            Some(Version::Http1) => &self.http1,
            Some(Version::Http2) => &self.http2,
            None => return,
        };
        let service = service_fn(|request| {
            let (front, work) = (Arc::clone(&self), activity.begin());
            async move { Ok::<_, Infallible>(front.answer(request, work, admission).await) }
        });
        let mut connection = pin!(builder.serve_connection(TokioIo::new(io), service));
        let mut look = pin!(sleep_until(Instant::now()));
        let mut draining = pin!(self.shutdown.draining());
        let mut closing = false;
        loop {
            // These come once in a while, the connection's own wake-ups several times a request.
            let beside = Dormant::new(async {
                tokio::select! {
                    biased;
                    () = &mut draining, if !closing => Beside::Drain,
                    () = &mut look => Beside::Look,
                    () = self.shutdown.ended() => Beside::End,
                }
            });
            let turn = tokio::select! {
                biased;
                result = &mut connection => {
                    if let Err(error) = result {
                        tracing::debug!(%error, "client connection");
                    }
                    return;
                }
                turn = beside => turn,
            };
            match turn {
                Beside::Drain => {
                    connection.as_mut().graceful_shutdown();
                    closing = true;
                    look.as_mut().reset(Instant::now() + REST_OF_HEAD.min(header));
                }
                Beside::Look => match activity.verdict(header, idle) {
                    // Draining, and no request has been taken yet, so there is none to wait for.
                    _ if closing && activity.in_head() => return,
                    Verdict::Fine(until) => look.as_mut().reset(until),
                    Verdict::SlowHead => {
                        self.limit(Limit::Header);
                        return;
                    }
                    // Already asked to close: what is left is a peer that does not read its last response.
                    Verdict::Idle if closing => return,
                    Verdict::Idle => {
                        connection.as_mut().graceful_shutdown();
                        closing = true;
                        look.as_mut().reset(Instant::now() + header);
                    }
                },
                Beside::End => return,
            }
        }
    }

    /// What the client speaks; `None` if the connection is over before that is known.
    async fn version(
        &self,
        io: &mut Watched,
        activity: &Activity,
        header: Duration,
        idle: Duration,
    ) -> Option<Version> {
        let mut version = pin!(io.version());
        let mut look = pin!(sleep_until(Instant::now()));
        loop {
            tokio::select! {
                biased;
                version = &mut version => {
                    return version.inspect_err(|error| tracing::debug!(%error, "client connection")).ok();
                }
                () = self.shutdown.draining() => return None,
                () = &mut look => match activity.verdict(header, idle) {
                    Verdict::Fine(until) => look.as_mut().reset(until),
                    Verdict::SlowHead => {
                        self.limit(Limit::Header);
                        return None;
                    }
                    Verdict::Idle => return None,
                },
                () = self.shutdown.ended() => return None,
            }
        }
    }

    async fn handshake(&self, io: BoxIo, admission: Admission) -> Option<Stream> {
        let Some(acceptor) = &self.tls else { return Some(Stream::Plain(io)) };
        let limit = match admission {
            Admission::Admitted => self.timeouts.handshake,
            Admission::Refused => REFUSAL_TIME.min(self.timeouts.handshake),
        };
        let handshake = async {
            tokio::select! {
                biased;
                () = self.shutdown.draining() => None,
                done = timeout(limit, acceptor.accept(io)) => Some(done),
            }
        };
        match handshake.await? {
            Ok(Ok(tls)) => Some(Stream::Tls(Box::new(tls.into()))),
            Ok(Err(error)) => {
                tracing::debug!(%error, "TLS handshake with a client");
                None
            }
            Err(_elapsed) => {
                self.limit(Limit::Handshake);
                None
            }
        }
    }

    /// Health is answered here too, and no refusal.
    fn count(&self, answer: &refuse::Answer) {
        if let Some(metrics) = &self.metrics
            && let Some(reason) = answer.reason
        {
            metrics.refused(reason);
            if reason == refuse::HEADER_BYTES {
                metrics.limit(Limit::HeaderBytes);
            }
        }
    }

    pub(super) fn limit(&self, limit: Limit) {
        if let Some(metrics) = &self.metrics {
            metrics.limit(limit);
        }
    }

    async fn answer(
        &self,
        request: Request<Incoming>,
        work: InWork,
        admission: Admission,
    ) -> Response<EdgeBody<H::Body>> {
        let refusal = match admission {
            Admission::Refused => Some(refuse::over_connection_limit()),
            Admission::Admitted => refuse::before_handler(&request, &self.guard, self.header_bytes, || {
                !self.shutdown.is_draining() && self.handler.ready()
            }),
        };
        let Some(refusal) = refusal else {
            return self.handler.handle(request).await.map(|body| EdgeBody::handler(body, work));
        };
        self.count(&refusal);
        let last = admission == Admission::Refused;
        refuse::finish(refusal.response, request, last).await.map(|bytes| EdgeBody::own(bytes, work))
    }
}

fn builder(limits: &Limits, shutdown: &Shutdown) -> auto::Builder<Shutdown> {
    let backstop = limits.header_bytes.saturating_add(BACKSTOP);
    let mut builder = auto::Builder::new(shutdown.clone());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(backstop);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(u32::try_from(backstop).unwrap_or(u32::MAX))
        .max_concurrent_streams(STREAMS)
        .adaptive_window(true)
        .keep_alive_interval(PING_INTERVAL);
    builder
}
