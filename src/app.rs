//! The process put together: settings in, a serving proxy out. The only file that knows everyone.
//!
//! Owns the order of starting and stopping. A stop is: accept nothing new, let calls finish within the grace period, end
//! the sessions at upstream servers, exit.

use crate::config::{Config, Target};
use crate::demo;
use crate::downstream::{Brought, Client, Front, FrontBody, Inbound};
use crate::listen::admin::{self, Admin};
use crate::listen::{self, BindError, Bound, Guard, Server, stdio};
use crate::net::{BoxIo, Dial, Launch, Processes, TcpDialer};
use crate::relay::Relay;
use crate::seal::SealError;
use crate::shutdown::{Ending, Shutdown};
use crate::telemetry::metrics::{Metrics, MetricsError};
use crate::upstream::era::{Verdicts, VerdictsError};
use crate::upstream::parked::{Bounds, Parked};
use crate::upstream::transport::TransportBuildError;
use crate::upstream::{Asking, Common, Room, Upstream, Ways};
use crate::wire::json::Limits;
use futures_util::future::{join, join_all};
use hyper::body::Incoming;
use hyper::{HeaderMap, Request, Response};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// How long the last lines for a stdio host may take to be written.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Lines of a stdio host that wait to be taken, and messages that wait to be written.
const TEXTS: usize = 8;
const MESSAGES: usize = 16;

/// Why the process cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Bind(#[from] BindError),
    #[error(transparent)]
    Upstream(#[from] TransportBuildError),
    #[error(transparent)]
    Verdicts(#[from] VerdictsError),
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    #[error(transparent)]
    Seal(#[from] SealError),
    #[error("the built-in demo server: {0}")]
    Demo(io::Error),
    #[error("signal handlers: {0}")]
    Signals(io::Error),
}

/// What the listener hands requests to: `downstream` does not know the listener, nor the listener it.
#[derive(Clone)]
struct Clients(Front);

impl listen::Handler for Clients {
    type Body = FrontBody;

    async fn handle(&self, request: Request<Incoming>) -> Response<FrontBody> {
        self.0.handle(request).await
    }

    fn ready(&self) -> bool {
        self.0.ready()
    }
}

/// How the process reaches servers. `None` is the real thing; tests bring their own, in memory.
#[derive(Clone, Default)]
pub struct Reach {
    pub dial: Option<Arc<dyn Dial>>,
    pub launch: Option<Arc<dyn Launch>>,
}

/// A proxy with its upstreams, not yet bound to a socket.
pub struct App {
    config: Config,
    relay: Arc<Relay>,
    clients: Clients,
    parked: Arc<Parked>,
    metrics: Arc<Metrics>,
    shutdown: Shutdown,
    /// The end of the admin listener, which outlives the drain.
    admin_end: Shutdown,
}

/// The sockets of one proxy, bound and not yet served.
pub struct Sockets {
    pub clients: Bound,
    pub admin: Option<Bound>,
}

impl App {
    /// Builds the proxy. `dial` overrides how upstreams are connected to; `None` is TCP.
    pub async fn new(config: Config, dial: Option<Arc<dyn Dial>>) -> Result<Self, StartError> {
        Self::reaching(config, Reach { dial, launch: None }).await
    }

    /// As [`new`](Self::new), with a way of its own to processes too.
    pub async fn reaching(mut config: Config, reach: Reach) -> Result<Self, StartError> {
        let shutdown = Shutdown::new(config.shutdown_grace);
        let metrics = Arc::new(Metrics::new()?);
        let verdicts = Arc::new(Verdicts::load(config.era_cache_file.as_deref())?);
        let limits = Limits { nesting: config.limits.nesting, members: config.limits.members };
        let parked = Parked::new(Bounds::of(&config.limits), shutdown.clone())?;
        let room = Room {
            events: config.limits.events,
            bytes: config.limits.event_bytes,
            hold: config.timeouts.hold,
        };
        let launch = reach.launch.unwrap_or_else(|| Arc::new(Processes::default()));
        let common = Common { verdicts, parked: parked.clone(), asking: Arc::new(Asking::new()?), room };
        let mut upstreams = Vec::with_capacity(config.upstreams.len());
        for settings in &mut config.upstreams {
            if settings.target == Target::Demo {
                settings.target = Target::Http(start_demo(&shutdown).await.map_err(StartError::Demo)?);
            }
            let dial =
                reach.dial.clone().unwrap_or_else(|| Arc::new(TcpDialer::new(settings.timeouts.connect)));
            let ways = Ways { dial, launch: launch.clone() };
            let (common, shutdown) = (common.clone(), shutdown.clone());
            let metrics = metrics.upstream(&settings.name);
            let upstream = Upstream::new(settings.clone(), limits, ways, common, shutdown, metrics)?;
            upstreams.push(Arc::new(upstream));
        }
        let relay = Arc::new(Relay::new(upstreams, config.limits.clone(), shutdown.clone()));
        let (limits, timeouts) = (config.limits.clone(), config.timeouts.clone());
        let front = Front::new(relay.clone(), limits, timeouts, shutdown.clone(), metrics.front().clone())?;
        let clients = Clients(front);
        let admin_end = Shutdown::new(Duration::ZERO);
        Ok(Self { config, relay, clients, parked, metrics, shutdown, admin_end })
    }

    pub async fn bind(&self) -> Result<Sockets, StartError> {
        let clients = Server::bind(&self.config.listen).await?.metered(self.metrics.front());
        let admin = match &self.config.admin {
            Some(settings) => Some(Server::bind_admin(settings).await?),
            None => None,
        };
        Ok(Sockets { clients, admin })
    }

    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    pub fn shutdown(&self) -> &Shutdown {
        &self.shutdown
    }

    /// Calls that wait for their clients.
    pub fn parked(&self) -> &Arc<Parked> {
        &self.parked
    }

    pub fn relay(&self) -> &Arc<Relay> {
        &self.relay
    }

    /// Serves until the drain begins and is over.
    pub async fn serve(&self, sockets: Sockets) -> Ending {
        let (limits, timeouts) = (&self.config.limits, &self.config.timeouts);
        if let Some(bound) = sockets.admin {
            let (handler, end) = (self.admin(), self.admin_end.clone());
            let (limits, timeouts) = (admin::limits(limits), timeouts.clone());
            // Owned by the tracker of its own end, which comes last of all.
            drop(self.admin_end.spawn(async move { bound.run(handler, &limits, &timeouts, end).await }));
        }
        sockets.clients.run(self.clients.clone(), limits, timeouts, self.shutdown.clone()).await;
        let ending = self.shutdown.finished().await;
        self.farewell().await;
        ending
    }

    /// Serves one stdio host, in front of the only upstream, until its input ends, its output is gone, or a drain is over.
    pub async fn serve_stdio(
        &self,
        input: impl AsyncRead + Send + Unpin,
        output: impl AsyncWrite + Send + Unpin,
    ) -> Ending {
        let Some(upstream) = self.config.upstreams.first() else { return Ending::Drained };
        let (texts, taken) = mpsc::channel(TEXTS);
        let (out, messages) = mpsc::channel(MESSAGES);
        let gone = CancellationToken::new();
        let client = Client {
            path: upstream.path.clone(),
            headers: HeaderMap::new(),
            texts: taken,
            out,
            gone: gone.clone(),
        };
        let metrics = self.metrics.front();
        let make = |line| {
            metrics.stdio_in();
            match line {
                stdio::Line::Text(text) => Inbound::Text { text, brought: Brought::default() },
                stdio::Line::TooLong(id) => Inbound::TooLong(id),
            }
        };
        let at_work = self.shutdown.at_work();
        let reading = stdio::read(input, self.config.limits.body_bytes, texts, make, &gone);
        // Boxed: each is large and lives as long as the process.
        let mut serving = Box::pin(join(reading, self.clients.0.serve_channel(client)));
        let mut writing = Box::pin(stdio::write(output, messages, || metrics.stdio_out()));
        let served = async {
            tokio::select! {
                biased;
                written = &mut writing => {
                    if let Err(error) = written {
                        tracing::info!(%error, "standard output is gone");
                    }
                    gone.cancel();
                    serving.await;
                }
                _ = &mut serving => {
                    let _ = timeout(LAST_LINES, writing).await;
                }
            }
            let left = !self.shutdown.is_draining();
            drop(at_work);
            if left {
                tracing::info!("the host is gone");
                self.shutdown.cut();
            }
            left
        };
        let (left, ending) = join(served, self.shutdown.finished()).await;
        self.farewell().await;
        // What the host had under way is nobody's any more.
        if left { Ending::Drained } else { ending }
    }

    /// After the calls, so that none loses its session in the middle.
    async fn farewell(&self) {
        join_all(self.relay.upstreams().iter().map(|upstream| upstream.close())).await;
        self.admin_end.end();
    }

    fn admin(&self) -> Admin {
        Admin::new(self.metrics.clone(), self.shutdown.clone())
    }

    /// Serves one connection that did not come from a socket, as if it had come to the listen address.
    pub async fn serve_connection(&self, io: BoxIo) {
        let guard = Guard::new(&self.config.listen, self.config.listen.address);
        let (limits, timeouts) = (&self.config.limits, &self.config.timeouts);
        let front = listen::Front::new(self.clients.clone(), guard, limits, timeouts, self.shutdown.clone())
            .metered(Some(self.metrics.front().clone()));
        Arc::new(front).serve_connection(io, listen::Admission::Admitted).await;
    }

    /// Serves one connection that did not come from a socket, as if it had come to a loopback admin address.
    pub async fn serve_admin_connection(&self, io: BoxIo) {
        let guard = admin::guard(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let (limits, timeouts) = (admin::limits(&self.config.limits), &self.config.timeouts);
        let front = listen::Front::new(self.admin(), guard, &limits, timeouts, self.admin_end.clone());
        Arc::new(front).serve_connection(io, listen::Admission::Admitted).await;
    }
}

/// Starts the built-in legacy server on a free loopback port.
pub(crate) async fn start_demo(shutdown: &Shutdown) -> io::Result<url::Url> {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
    let address = listener.local_addr()?;
    let stop = shutdown.clone();
    // Outside the tracker: it must outlive the calls that are being drained. Ends with the process.
    tokio::spawn(async move { demo::serve(listener, async move { stop.ended().await }).await });
    url::Url::parse(&format!("http://{address}/mcp")).map_err(io::Error::other)
}
