//! From an origin to a ready connection: dial, then TLS where the origin asks for it, within one time limit.
//!
//! Owns the hand-over between [`Dial`], rustls and hyper's pool. Does not own either of them.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::Uri;
use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::link::Link;
use crate::net::{Dial, Origin, Stream};
use crate::telemetry::metrics::UpstreamMetrics;

#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    #[error(transparent)]
    Tcp(io::Error),
    #[error(transparent)]
    Tls(io::Error),
    #[error("not within {0:?}")]
    Timeout(Duration),
}

/// Everything needed to connect to the one origin of an upstream.
pub(super) struct Route {
    pub(super) origin: Origin,
    pub(super) dial: Arc<dyn Dial>,
    /// Present exactly for `https`.
    pub(super) tls: Option<(TlsConnector, ServerName<'static>)>,
    pub(super) limit: Duration,
    pub(super) metrics: Arc<UpstreamMetrics>,
}

impl Route {
    async fn connect(&self) -> Result<Link, ConnectError> {
        let connecting = async {
            let io = self.dial.dial(&self.origin).await.map_err(ConnectError::Tcp)?;
            let Some((connector, name)) = &self.tls else { return Ok(Stream::Plain(io)) };
            let tls = connector.connect(name.clone(), io).await.map_err(ConnectError::Tls)?;
            Ok(Stream::Tls(Box::new(tls.into())))
        };
        let stream = timeout(self.limit, connecting)
            .await
            .unwrap_or_else(|_elapsed| Err(ConnectError::Timeout(self.limit)))?;
        Ok(Link::new(stream, self.metrics.connection()))
    }
}

/// The connector that hyper's pool calls. The URI is not looked at: whatever it says, only the one origin is dialled.
#[derive(Clone)]
pub(super) struct Connector(pub(super) Arc<Route>);

impl tower_service::Service<Uri> for Connector {
    type Response = TokioIo<Link>;
    type Error = ConnectError;
    type Future = BoxFuture<'static, Result<Self::Response, ConnectError>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _uri: Uri) -> Self::Future {
        let route = Arc::clone(&self.0);
        Box::pin(async move { route.connect().await.map(TokioIo::new) })
    }
}
