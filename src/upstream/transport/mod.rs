//! How bytes reach a server and come back: one transport per file, none of them knows an era.
//!
//! Owns connections and their failures. Does not own what is said over them: the era drivers build heads and payloads.

mod connect;
mod error;
mod http;
mod link;
mod redirect;
mod tls;

#[cfg(test)]
mod http_tests;
#[cfg(test)]
pub(super) mod peer;
#[cfg(test)]
mod redirect_tests;

pub use error::{Phase, RedirectRefusal, SendError, TransportBuildError};
pub use http::{HttpTransport, RequestHead};
