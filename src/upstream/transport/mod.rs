//! How bytes reach a server and come back: one transport per folder, none of them knows an era.
//!
//! Owns connections and their failures. Does not own what is said over them: the era drivers build heads and payloads.
//!
//! The drivers speak Streamable HTTP, in which a message goes up alone and what belongs to it comes back as the response to
//! it, and all else on the stream of a GET. Two transports have one channel for everything instead: the pipes of a child
//! process, and HTTP+SSE of 2024. `channel` presents such a channel as an endpoint of Streamable HTTP, in memory, so that
//! there is one driver for each era and not one for each transport; `pipe` is what it needs of the channel below it, `child`
//! and `old_sse` are the two. `either` finds out which of the two transports over HTTP an endpoint has.

mod body;
mod channel;
mod child;
mod connect;
mod error;
mod http;
mod link;
mod pipe;
mod redirect;
mod tls;

#[cfg(test)]
mod http_tests;
#[cfg(test)]
pub(super) mod peer;
#[cfg(test)]
mod redirect_tests;

pub use self::http::{HttpTransport, RequestHead, Speaker};
pub use body::{Body, BoxError};
pub use channel::Room;
pub use error::{Phase, RedirectRefusal, SendError, TransportBuildError};

pub(in crate::upstream) use self::http::Head;

use super::Ways;
use crate::config::{self, Target};
use crate::shutdown::Shutdown;
use crate::telemetry::metrics::UpstreamMetrics;
use crate::wire::json::Limits;
use crate::wire::jsonrpc::Response as Answer;
use crate::wire::payload::Payload;
use ::http::Response;
use channel::{Host, Kind};
use child::Child;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// A way to one server. Clones share what is behind it.
#[derive(Clone)]
pub enum Transport {
    Http(HttpTransport),
    /// A child process.
    Child {
        host: Arc<Host>,
        endpoint: Arc<str>,
    },
}

impl Transport {
    /// The way to the settings' target. Connects to nothing and starts nothing yet.
    pub(in crate::upstream) fn new(
        settings: &config::Upstream,
        limits: Limits,
        ways: Ways,
        room: Room,
        shutdown: &Shutdown,
        metrics: &Arc<UpstreamMetrics>,
    ) -> Result<Self, TransportBuildError> {
        let Target::Command(command) = &settings.target else {
            return Ok(Transport::Http(HttpTransport::new(settings, ways.dial, metrics.clone())?));
        };
        let child = Child::new(settings, command, ways.launch, shutdown.clone(), metrics.clone());
        let (shutdown, metrics) = (shutdown.clone(), metrics.clone());
        let host = Host::new(Kind::Process, Arc::new(child), settings, limits, room, shutdown, metrics);
        Ok(Transport::Child { host, endpoint: command.fingerprint().into() })
    }

    /// Sends one request and waits for the head of the response, `timeouts.request` at most.
    pub async fn send(&self, head: RequestHead, body: Payload) -> Result<Response<Body>, SendError> {
        match self {
            Transport::Http(http) => http.send(head, body).await,
            Transport::Child { host, .. } => host.send(head, body).await,
        }
    }

    /// As [`send`](Self::send), for a call, whose own deadline comes no later. `head` makes the same head each time.
    pub async fn send_due(&self, head: &Head<'_>, body: Payload) -> Result<Response<Body>, SendError> {
        match self {
            Transport::Http(http) => http.send_due(head, body).await,
            Transport::Child { host, .. } => host.deliver(head(), body).await,
        }
    }

    /// As [`send`](Self::send), with a limit of its own (probe, `initialize`). Dropping the future gives the request up.
    pub async fn send_within(
        &self,
        limit: Duration,
        head: RequestHead,
        body: Payload,
    ) -> Result<Response<Body>, SendError> {
        match self {
            Transport::Http(http) => http.send_within(limit, head, body).await,
            Transport::Child { host, .. } => within(limit, host.deliver(head, body)).await,
        }
    }

    /// Sends `initialize`, with which a legacy server's transport is found out (C42), within `limit`.
    pub async fn open(
        &self,
        limit: Duration,
        head: RequestHead,
        body: Payload,
    ) -> Result<Response<Body>, SendError> {
        self.send_within(limit, head, body).await
    }

    /// What a verdict on the server's era is filed under: an endpoint's URL without the query (B13), a command by its name
    /// and the hash of all that makes it what it is. Holds no credential.
    pub fn endpoint(&self) -> String {
        match self {
            Transport::Http(http) => {
                let mut url = http.url().clone();
                url.set_query(None);
                url.into()
            }
            Transport::Child { endpoint, .. } => endpoint.to_string(),
        }
    }

    /// Whether all that is not the answer to a request comes in one channel, so that its GET stream is to be open at all
    /// times.
    pub fn is_channel(&self) -> bool {
        match self {
            Transport::Http(_) => false,
            Transport::Child { .. } => true,
        }
    }

    /// Whether the server is a process that has to be started.
    pub fn is_process(&self) -> bool {
        match self {
            Transport::Http(_) => false,
            Transport::Child { .. } => true,
        }
    }

    /// The answer to a probe that came when nobody waited for it any more, if one has.
    pub fn late_answer(&self) -> Option<Answer> {
        match self {
            Transport::Http(_) => None,
            Transport::Child { host, .. } => host.late_answer(),
        }
    }

    /// Ends what is open and does not end by itself, and resolves when it is over.
    pub async fn close(&self) {
        match self {
            Transport::Http(_) => {}
            Transport::Child { host, .. } => host.close().await,
        }
    }
}

async fn within(
    limit: Duration,
    sent: impl Future<Output = Result<Response<Body>, SendError>>,
) -> Result<Response<Body>, SendError> {
    let sent = timeout(limit, sent).await;
    sent.unwrap_or(Err(SendError::Timeout { phase: Phase::Response, after: limit }))
}
