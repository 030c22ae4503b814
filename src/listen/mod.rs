//! Sockets towards clients.
//!
//! Owns accepting, TLS, HTTP framing, connection limits and times, `Host` and `Origin`, the health endpoints, the
//! refusals that follow from those, and the listener for whoever runs the proxy ([`admin`]). Does not own anything that needs a body to be read: a [`Handler`] gets every request
//! that passed.

pub mod admin;
pub mod body;
pub mod guard;
pub mod http;
mod refuse;
mod serve;
pub mod stdio;
mod tls;
mod watch;

#[cfg(test)]
mod guard_tests;
#[cfg(test)]
mod http_tests;

use std::error::Error;
use std::future::Future;

use ::http::{Request, Response};
use bytes::Bytes;
use hyper::body::Incoming;

pub use body::EdgeBody;
pub use guard::Guard;
pub use http::{Accept, BindError, Bound, Server};
pub use serve::{Admission, Front};
pub use tls::TlsError;

/// What the listener hands requests to. One clone serves all connections.
pub trait Handler: Clone + Send + Sync + 'static {
    type Body: http_body::Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static;

    /// Answers one request. Dropped when the client goes away before the head of the response was sent; after that,
    /// the body is.
    fn handle(&self, request: Request<Incoming>) -> impl Future<Output = Response<Self::Body>> + Send;

    /// Whether new requests can be served, for `/readyz`. While draining the answer is no without asking.
    fn ready(&self) -> bool {
        true
    }
}
