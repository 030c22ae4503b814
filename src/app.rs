//! The process put together: settings in, a serving proxy out. The only file that knows everyone.
//!
//! Owns the order of starting and stopping. A stop is: accept nothing new, let calls finish within the grace period, end
//! the sessions at upstream servers, exit.

use crate::config::{Config, Target};
use crate::demo;
use crate::downstream::{Front, FrontBody};
use crate::listen::{self, BindError, Bound, Guard, Server};
use crate::net::{BoxIo, Dial, TcpDialer};
use crate::relay::Relay;
use crate::shutdown::{Ending, Shutdown};
use crate::upstream::Upstream;
use crate::upstream::era::{Verdicts, VerdictsError};
use crate::upstream::transport::TransportBuildError;
use crate::wire::json::Limits;
use hyper::body::Incoming;
use hyper::{Request, Response};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::timeout;

/// How long ending all upstream sessions may take once calls are done.
const FAREWELL: Duration = Duration::from_secs(3);

/// Why the process cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Bind(#[from] BindError),
    #[error(transparent)]
    Upstream(#[from] TransportBuildError),
    #[error(transparent)]
    Verdicts(#[from] VerdictsError),
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

/// A proxy with its upstreams, not yet bound to a socket.
pub struct App {
    config: Config,
    relay: Arc<Relay>,
    clients: Clients,
    shutdown: Shutdown,
}

impl App {
    /// Builds the proxy. `dial` overrides how upstreams are connected to; `None` is TCP.
    pub async fn new(mut config: Config, dial: Option<Arc<dyn Dial>>) -> Result<Self, StartError> {
        let shutdown = Shutdown::new(config.shutdown_grace);
        let verdicts = Arc::new(Verdicts::load(config.era_cache_file.as_deref())?);
        let limits = Limits { nesting: config.limits.nesting, members: config.limits.members };
        let mut upstreams = Vec::with_capacity(config.upstreams.len());
        for settings in &mut config.upstreams {
            if settings.target == Target::Demo {
                settings.target = Target::Http(start_demo(&shutdown).await.map_err(StartError::Demo)?);
            }
            let dial = dial.clone().unwrap_or_else(|| Arc::new(TcpDialer::new(settings.timeouts.connect)));
            let upstream = Upstream::new(settings.clone(), limits, dial, verdicts.clone(), shutdown.clone())?;
            upstreams.push(Arc::new(upstream));
        }
        let relay = Arc::new(Relay::new(upstreams, config.limits.clone(), shutdown.clone()));
        let front =
            Front::new(relay.clone(), config.limits.clone(), config.timeouts.clone(), shutdown.clone());
        let clients = Clients(front);
        Ok(Self { config, relay, clients, shutdown })
    }

    pub async fn bind(&self) -> Result<Bound, StartError> {
        Ok(Server::bind(&self.config.listen).await?)
    }

    pub fn shutdown(&self) -> &Shutdown {
        &self.shutdown
    }

    pub fn relay(&self) -> &Arc<Relay> {
        &self.relay
    }

    /// Serves until the drain begins and is over.
    pub async fn serve(&self, bound: Bound) -> Ending {
        let (limits, timeouts) = (&self.config.limits, &self.config.timeouts);
        bound.run(self.clients.clone(), limits, timeouts, self.shutdown.clone()).await;
        let ending = self.shutdown.finished().await;
        // After the calls, so that none loses its session in the middle.
        let goodbyes = self.relay.upstreams().iter().map(|upstream| upstream.legacy.close());
        if timeout(FAREWELL, futures_util::future::join_all(goodbyes)).await.is_err() {
            tracing::warn!("not every upstream session could be ended in time");
        }
        ending
    }

    /// Serves one connection that did not come from a socket, as if it had come to the listen address.
    pub async fn serve_connection(&self, io: BoxIo) {
        let guard = Guard::new(&self.config.listen, self.config.listen.address);
        let (limits, timeouts) = (&self.config.limits, &self.config.timeouts);
        let front = listen::Front::new(self.clients.clone(), guard, limits, timeouts, self.shutdown.clone());
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
