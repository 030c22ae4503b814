//! The listening socket: binding, accepting, and how many connections there may be.
//!
//! Owns the accept loop, which outlives every error of `accept`, and the connection limit. Does not own what happens on a
//! connection ([`Front`]).
//!
//! Tasks: one per connection, spawned through the shutdown. It ends with the connection, or at the end of a drain.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;

use super::serve::{Admission, Front};
use super::tls::{self, TlsError};
use super::{Guard, Handler, admin};
use crate::config::{self, FrontTimeouts, Limits, Listen};
use crate::net::{BoxIo, prepare_tcp};
use crate::shutdown::Shutdown;
use crate::telemetry::metrics::{FrontMetrics, Limit};

/// Connections over the limit that are being told so; beyond these a connection is closed without a word.
const REFUSALS: usize = 64;
/// Pause after an error of `accept` that another attempt at once would only repeat.
const PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// `setting` is where the address is set.
    #[error("{setting}: {address}: {source}")]
    Address { setting: &'static str, address: SocketAddr, source: io::Error },
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// Where connections come from: a TCP listener, or a test's own.
pub trait Accept: Send {
    fn accept(&mut self) -> impl Future<Output = io::Result<BoxIo>> + Send;
}

impl Accept for TcpListener {
    async fn accept(&mut self) -> io::Result<BoxIo> {
        let (tcp, _peer) = TcpListener::accept(self).await?;
        // The peer may be gone already; the connection's first read will say so.
        if let Err(error) = prepare_tcp(&tcp) {
            tracing::debug!(%error, "socket options");
        }
        Ok(Box::new(tcp))
    }
}

/// The entry point.
pub struct Server;

impl Server {
    /// Reads certificate and key, if any, and binds the socket. Connections queue up from here on.
    pub async fn bind(settings: &Listen) -> Result<Bound, BindError> {
        let tls = settings.tls.as_ref().map(tls::acceptor).transpose()?;
        let (listener, local_addr) = bind("listen.address", settings.address).await?;
        Ok(Bound { listener, local_addr, guard: Guard::new(settings, local_addr), tls, metrics: None })
    }

    /// Binds the admin socket.
    pub async fn bind_admin(settings: &config::Admin) -> Result<Bound, BindError> {
        let (listener, local_addr) = bind("admin.address", settings.address).await?;
        let guard = admin::guard(local_addr);
        Ok(Bound { listener, local_addr, guard, tls: None, metrics: None })
    }
}

async fn bind(setting: &'static str, address: SocketAddr) -> Result<(TcpListener, SocketAddr), BindError> {
    let failed = |source| BindError::Address { setting, address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let local_addr = listener.local_addr().map_err(failed)?;
    Ok((listener, local_addr))
}

/// A bound socket on which nothing is accepted yet.
pub struct Bound {
    listener: TcpListener,
    local_addr: SocketAddr,
    guard: Guard,
    tls: Option<TlsAcceptor>,
    metrics: Option<Arc<FrontMetrics>>,
}

impl Bound {
    /// The address, with the real port where 0 was asked for.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    pub fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Counts what happens here.
    pub fn metered(mut self, metrics: &Arc<FrontMetrics>) -> Self {
        self.metrics = Some(metrics.clone());
        self
    }

    /// Serves until the drain begins, then closes the socket. Open connections finish on their own;
    /// [`Shutdown::finished`] waits for them.
    pub async fn run<H: Handler>(
        self,
        handler: H,
        limits: &Limits,
        timeouts: &FrontTimeouts,
        shutdown: Shutdown,
    ) {
        let front = Front::new(handler, self.guard, limits, timeouts, shutdown.clone())
            .with_tls(self.tls)
            .metered(self.metrics);
        accept_all(self.listener, Arc::new(front), limits.connections, shutdown).await;
    }
}

/// Accepts until the drain begins.
pub async fn accept_all<H: Handler>(
    mut listener: impl Accept,
    front: Arc<Front<H>>,
    connections: usize,
    shutdown: Shutdown,
) {
    let room = Arc::new(Semaphore::new(connections.min(Semaphore::MAX_PERMITS)));
    let refusals = Arc::new(Semaphore::new(REFUSALS));
    loop {
        let accepted = tokio::select! {
            biased;
            () = shutdown.draining() => return,
            accepted = listener.accept() => accepted,
        };
        let io = match accepted {
            Ok(io) => io,
            Err(error) => {
                if !recover(&error, &shutdown).await {
                    return;
                }
                continue;
            }
        };
        let (permit, admission) = match Arc::clone(&room).try_acquire_owned() {
            Ok(permit) => (permit, Admission::Admitted),
            Err(_full) => {
                front.limit(Limit::Connections);
                match Arc::clone(&refusals).try_acquire_owned() {
                    Ok(permit) => (permit, Admission::Refused),
                    Err(_full) => continue,
                }
            }
        };
        let front = Arc::clone(&front);
        drop(shutdown.spawn_minding(async move {
            front.serve_connection(io, admission).await;
            drop(permit);
        }));
    }
}

/// Waits as the error demands. `false`: the drain has begun meanwhile.
async fn recover(error: &io::Error, shutdown: &Shutdown) -> bool {
    match error.kind() {
        // One peer's misfortune, over with it.
        io::ErrorKind::ConnectionAborted
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionRefused
        | io::ErrorKind::Interrupted => true,
        // Most often no file descriptor is left (EMFILE, ENFILE): one is free again once a connection has ended.
        _ => {
            tracing::warn!(%error, "cannot accept a connection; trying again shortly");
            tokio::select! {
                () = shutdown.draining() => false,
                () = sleep(PAUSE) => true,
            }
        }
    }
}
