//! The admin listener: metrics, for whoever runs the proxy and not for its clients.
//!
//! Owns which paths there are on it and its own small bound of connections. `/healthz` and `/readyz` are those of every
//! listener. Does not own what the metrics are; and nothing is counted of the requests here.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use ::http::{HeaderValue, Method, Request, Response, StatusCode, header};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;

use super::body::own;
use super::{Guard, Handler};
use crate::config::{Limits, Listen};
use crate::shutdown::Shutdown;
use crate::telemetry::metrics::{Metrics, TEXT_FORMAT};

/// A few scrapers and probes; more are answered 503.
const CONNECTIONS: usize = 16;

const TEXT: &str = "text/plain; charset=utf-8";

/// The handler of the admin listener.
#[derive(Clone)]
pub struct Admin {
    metrics: Arc<Metrics>,
    /// The proxy's, which readiness speaks of; the admin listener itself outlives its drain.
    proxy: Shutdown,
}

impl Admin {
    pub fn new(metrics: Arc<Metrics>, proxy: Shutdown) -> Self {
        Self { metrics, proxy }
    }

    fn answer(&self, method: &Method, path: &str) -> Response<Bytes> {
        if path != "/metrics" {
            let told = "not found; there are /metrics, /healthz and /readyz\n";
            return own(StatusCode::NOT_FOUND, TEXT, Bytes::from_static(told.as_bytes()));
        }
        if *method != Method::GET && *method != Method::HEAD {
            let mut response = own(StatusCode::METHOD_NOT_ALLOWED, TEXT, Bytes::from_static(b"GET only\n"));
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        match self.metrics.render() {
            Ok(text) => own(StatusCode::OK, TEXT_FORMAT, Bytes::from(text)),
            Err(error) => {
                tracing::warn!(%error, "metrics cannot be written");
                own(StatusCode::INTERNAL_SERVER_ERROR, TEXT, Bytes::from_static(b"see the log\n"))
            }
        }
    }
}

impl Handler for Admin {
    type Body = Full<Bytes>;

    fn handle(&self, request: Request<Incoming>) -> impl Future<Output = Response<Full<Bytes>>> + Send {
        std::future::ready(self.answer(request.method(), request.uri().path()).map(Full::new))
    }

    fn ready(&self) -> bool {
        !self.proxy.is_draining()
    }
}

/// The limits of the clients' listener, but for the connections.
pub fn limits(limits: &Limits) -> Limits {
    Limits { connections: CONNECTIONS.min(limits.connections), ..limits.clone() }
}

/// Only loopback names on a loopback address; no web page anywhere.
pub fn guard(bound: SocketAddr) -> Guard {
    Guard::new(&Listen { address: bound, ..Listen::default() }, bound).fixed()
}
