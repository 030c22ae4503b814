//! The edge to servers: one configured upstream, whatever its era.
//!
//! Owns what belongs to the upstream as a whole: its settings, its transport, the verdict on its era (`era`), the schema guard (`guard`), and the
//! two drivers (`legacy` with its session pool, `modern`). Does not own the choice between them for a call: `relay`
//! plans. Imports nothing from `downstream`.

mod asking;
mod backoff;
pub mod era;
mod flight;
pub mod guard;
mod head;
pub mod legacy;
pub mod modern;
pub mod parked;
mod places;
mod reply;
pub mod transport;

use crate::config;
use crate::exchange::{Fault, FaultKind};
use crate::net::{Dial, Launch};
use crate::shutdown::Shutdown;
use crate::telemetry::metrics::UpstreamMetrics;
use crate::translate::capabilities::Recent;
use crate::wire::json::Limits;
use crate::wire::method::Method;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::timeout;
use transport::{NoEndpoint, Phase, SendError, Transport, TransportBuildError};

pub use asking::Asking;
pub use reply::UpstreamBody;
pub use transport::{Body as UpstreamStream, Found, Room};

/// One upstream and everything that is kept for it.
pub struct Upstream {
    pub settings: config::Upstream,
    pub era: era::Detector,
    pub legacy: Arc<legacy::Legacy>,
    pub modern: Arc<modern::Modern>,
    pub metrics: Arc<UpstreamMetrics>,
    pub guard: Arc<guard::Guard>,
    /// What passes between like pairs goes through it.
    pub sieve: Arc<guard::sieve::Sieve>,
    shared: Arc<Shared>,
}

/// How long ending all sessions of an upstream may take once calls are done.
const FAREWELL: Duration = Duration::from_secs(3);

/// What all upstreams of a process share.
#[derive(Clone)]
pub struct Common {
    pub verdicts: Arc<era::Verdicts>,
    pub parked: Arc<parked::Parked>,
    pub asking: Arc<Asking>,
    /// How much may wait on one stream of a server behind a channel.
    pub room: Room,
}

/// How servers are reached.
#[derive(Clone)]
pub struct Ways {
    pub dial: Arc<dyn Dial>,
    pub launch: Arc<dyn Launch>,
}

/// What the parts of one upstream share.
pub(crate) struct Shared {
    settings: config::Upstream,
    transport: Transport,
    heads: head::Heads,
    /// Bounds of an upstream message's JSON.
    limits: Limits,
    shutdown: Shutdown,
    metrics: Arc<UpstreamMetrics>,
    declared: Recent,
    guard: Arc<guard::Guard>,
    /// Ids and progress tokens of our own. One row for all sessions: a server without session ids sees them side by
    /// side, and may key its streams by them (A14.2, C20).
    numbers: AtomicU64,
    asking: Arc<Asking>,
}

impl Shared {
    #[allow(clippy::too_many_arguments, reason = "one caller")]
    fn new(
        settings: config::Upstream,
        limits: Limits,
        ways: Ways,
        asking: Arc<Asking>,
        room: Room,
        shutdown: Shutdown,
        metrics: Arc<UpstreamMetrics>,
    ) -> Result<Arc<Self>, TransportBuildError> {
        let transport = Transport::new(&settings, limits, ways, room, &shutdown, &metrics)?;
        let heads = head::Heads::new(&settings);
        let numbers = AtomicU64::new(1);
        let declared = Recent::default();
        let guard = Arc::new(guard::Guard::new(&settings, metrics.clone()));
        Ok(Arc::new(Self {
            settings,
            transport,
            heads,
            limits,
            shutdown,
            metrics,
            declared,
            guard,
            numbers,
            asking,
        }))
    }

    /// How long the opening of a session may take: a process has to start first.
    fn opening(&self) -> Duration {
        self.settings.opening()
    }

    /// Bounds of the answer to a request of `method`. Lists of tools may hold schemas of any depth, so that one tool does not cost
    /// the others; how deep a schema may be is the guard's to say (D68).
    fn limits_of(&self, method: Method) -> Limits {
        match method {
            Method::ToolsList => Limits { nesting: usize::MAX, ..self.limits },
            _ => self.limits,
        }
    }

    fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts it where it is a limit that broke an answer off.
    fn broken(&self, broken: reply::Break) -> reply::Break {
        broken.limit().inspect(|limit| self.metrics.limit(*limit));
        broken
    }
}

impl Upstream {
    /// `limits` bound the JSON of upstream messages. Connects to nothing yet.
    pub fn new(
        settings: config::Upstream,
        limits: Limits,
        ways: Ways,
        common: Common,
        shutdown: Shutdown,
        metrics: Arc<UpstreamMetrics>,
    ) -> Result<Self, TransportBuildError> {
        let shared = Shared::new(
            settings.clone(),
            limits,
            ways,
            common.asking,
            common.room,
            shutdown,
            metrics.clone(),
        )?;
        let legacy = legacy::Legacy::new(shared.clone(), common.parked.clone());
        let modern = modern::Modern::new(shared.clone(), common.parked);
        let era = era::Detector::new(shared.clone(), legacy.clone(), common.verdicts);
        let guard = shared.guard.clone();
        let sieve = guard::sieve::Sieve::new(shared.clone(), legacy.clone(), common.room);
        Ok(Self { settings, era, legacy, modern, metrics, guard, sieve, shared })
    }

    /// Which transport the server has, as far as that is known.
    pub fn transport(&self) -> Found {
        self.shared.transport.found()
    }

    /// Ends all that is open at the server, and resolves when it is over: sessions first, then what they ran in.
    pub async fn close(&self) {
        // A session whose end cannot be told is over with what it ran in.
        let _ = timeout(FAREWELL, self.legacy.close()).await;
        self.shared.transport.close().await;
    }
}

/// What the caller is told; the address and the cause go to the log alone.
fn send_fault(name: &str, error: &SendError) -> Fault {
    tracing::warn!(upstream = name, %error, "upstream request failed");
    unsent(error)
}

/// The same for what is tried again by itself, of which the log has other words.
fn unsent(error: &SendError) -> Fault {
    match error {
        SendError::Connect { .. } => Fault::bad_gateway("cannot connect to the upstream server"),
        SendError::Tls { .. } => Fault::bad_gateway("no TLS session with the upstream server"),
        SendError::Start { .. } => Fault::bad_gateway("the upstream server's process cannot be started"),
        SendError::Pausing { wait, .. } => {
            let seconds = wait.as_secs() + 1;
            let text = format!(
                "the upstream server's process cannot be started, or ends before it answers; it is started again in {seconds} s at the earliest"
            );
            Fault::new(FaultKind::Busy, text).with_retry_after(Some(seconds.into()))
        }
        SendError::Full { .. } => Fault::new(
            FaultKind::Busy,
            "the upstream server has as many processes or streams as it may, and all are in use",
        ),
        SendError::Ended { what } => {
            Fault::bad_gateway(format!("{what} ended before an answer; the request may have run"))
        }
        SendError::NoMessage => Fault::bad_gateway("the upstream server's answer is not a JSON-RPC message"),
        SendError::TooLarge => {
            Fault::bad_gateway("the upstream server's answer is larger than the limit `message_bytes`")
        }
        SendError::Unsent { .. } => {
            Fault::bad_gateway("the connection to the upstream server broke before the request was sent")
        }
        SendError::Broken { .. } => Fault::bad_gateway(
            "the connection to the upstream server broke before an answer; the request may have run",
        ),
        SendError::Timeout { phase: Phase::Start, after } => Fault::new(
            FaultKind::Timeout,
            format!(
                "the upstream server's process has said nothing within {after:?} of its start (timeouts.start)"
            ),
        ),
        SendError::Timeout { .. } => {
            Fault::new(FaultKind::Timeout, "the upstream server did not answer in time")
        }
        SendError::Endpoint(none) => no_endpoint(none),
        SendError::Redirect(_) => {
            Fault::bad_gateway("the upstream server answered with a redirect that is not followed")
        }
    }
}

fn no_endpoint(none: &NoEndpoint) -> Fault {
    match none {
        NoEndpoint::Late(_) => Fault::new(
            FaultKind::Timeout,
            "the upstream server's event stream did not say in time where messages go (its `endpoint` event)",
        ),
        NoEndpoint::NotAStream(_) | NoEndpoint::Ended | NoEndpoint::Unusable { .. } => Fault::bad_gateway(
            "the upstream server has no event stream that says where messages go (its `endpoint` event)",
        ),
        NoEndpoint::CrossOrigin { .. } => Fault::bad_gateway(
            "the upstream server's `endpoint` event names another origin, to which nothing is sent",
        ),
    }
}
