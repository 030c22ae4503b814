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
mod either;
mod error;
mod http;
mod link;
mod old_sse;
mod pipe;
mod place;
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
pub use channel::{Room, Unanswered};
pub use error::{NoEndpoint, Phase, RedirectRefusal, SendError, TransportBuildError};

pub(in crate::upstream) use self::http::Head;

use self::http::within;
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
use either::Either;
use old_sse::OldSse;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// A way to one server. Clones share what is behind it.
#[derive(Clone)]
pub enum Transport {
    /// Streamable HTTP.
    Http(HttpTransport),
    /// HTTP, as Streamable HTTP or as HTTP+SSE of 2024.
    Either(Either),
    /// HTTP+SSE of 2024.
    OldSse { host: Arc<Host>, http: HttpTransport },
    /// A child process.
    Child { host: Arc<Host>, endpoint: Arc<str> },
}

/// The transports of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    StreamableHttp,
    /// HTTP+SSE of 2024.
    OldSse,
    Stdio,
}

impl Found {
    /// As the settings have it.
    pub fn word(self) -> &'static str {
        match self {
            Found::StreamableHttp => "streamable-http",
            Found::OldSse => "sse",
            Found::Stdio => "stdio",
        }
    }
}

/// In words for people.
impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Found::StreamableHttp => "Streamable HTTP",
            Found::OldSse => "HTTP+SSE",
            Found::Stdio => "stdio",
        })
    }
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
        // How deep a message may be depends on what it answers, which is for its reader to say.
        let limits = Limits { nesting: usize::MAX, ..limits };
        let host =
            |kind, open| Host::new(kind, open, settings, limits, room, shutdown.clone(), metrics.clone());
        if let Target::Command(command) = &settings.target {
            let child = Child::new(settings, command, ways.launch, shutdown.clone(), metrics.clone());
            let host = host(Kind::Process, Arc::new(child));
            return Ok(Transport::Child { host, endpoint: command.fingerprint().into() });
        }
        let http = HttpTransport::new(settings, ways.dial, metrics.clone())?;
        let old = || OldSse::new(settings, http.clone(), shutdown.clone()).map(Arc::new);
        Ok(match settings.transport {
            config::HttpTransport::StreamableHttp => Transport::Http(http),
            config::HttpTransport::Sse => {
                let host = host(Kind::EventStream, old()?);
                Transport::OldSse { host, http }
            }
            config::HttpTransport::Auto => {
                let old = old()?;
                let host = host(Kind::EventStream, old.clone());
                Transport::Either(Either::new(settings, http, old, host, limits))
            }
        })
    }

    /// Sends one request and waits for the head of the response, `timeouts.request` at most.
    pub async fn send(&self, head: RequestHead, body: Payload) -> Result<Response<Body>, SendError> {
        match self {
            Transport::Http(http) => http.send(head, body).await,
            Transport::Either(either) => either.send(head, body).await,
            Transport::OldSse { host, .. } | Transport::Child { host, .. } => host.send(head, body).await,
        }
    }

    /// As [`send`](Self::send), for a call, whose own deadline comes no later. `head` makes the same head each time.
    pub async fn send_due(&self, head: &Head<'_>, body: Payload) -> Result<Response<Body>, SendError> {
        match self {
            Transport::Http(http) => http.send_due(head, body).await,
            Transport::Either(either) => either.send_due(head, body).await,
            Transport::OldSse { host, .. } | Transport::Child { host, .. } => {
                host.deliver(head(), body).await
            }
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
            Transport::Either(either) => either.send_within(limit, head, body).await,
            Transport::OldSse { host, .. } | Transport::Child { host, .. } => {
                within(limit, pin!(host.deliver(head, body))).await
            }
        }
    }

    /// Sends `initialize`, with which a legacy server's transport is found out (C42), within `limit`.
    pub async fn open(
        &self,
        limit: Duration,
        head: RequestHead,
        body: Payload,
    ) -> Result<Response<Body>, SendError> {
        match self {
            Transport::Either(either) => either.open(limit, head, body).await,
            Transport::Http(_) | Transport::OldSse { .. } | Transport::Child { .. } => {
                self.send_within(limit, head, body).await
            }
        }
    }

    /// What a verdict on the server's era is filed under: an endpoint's URL without the query (B13), a command by its name
    /// and the hash of all that makes it what it is. Holds no credential.
    pub fn endpoint(&self) -> String {
        match self {
            Transport::Http(http) | Transport::OldSse { http, .. } => endpoint(http),
            Transport::Either(either) => endpoint(either.http()),
            Transport::Child { endpoint, .. } => endpoint.to_string(),
        }
    }

    /// Whether all that is not the answer to a request comes in one channel, so that its GET stream is to be open at all
    /// times.
    pub fn is_channel(&self) -> bool {
        match self {
            Transport::Http(_) => false,
            Transport::Either(either) => either.is_old(),
            Transport::OldSse { .. } | Transport::Child { .. } => true,
        }
    }

    /// Whether only a legacy server can be there.
    pub fn is_legacy_only(&self) -> bool {
        match self {
            Transport::OldSse { .. } => true,
            Transport::Http(_) | Transport::Either(_) | Transport::Child { .. } => false,
        }
    }

    /// Whether the server is a process that has to be started.
    pub fn is_process(&self) -> bool {
        match self {
            Transport::Http(_) | Transport::Either(_) | Transport::OldSse { .. } => false,
            Transport::Child { .. } => true,
        }
    }

    /// Which transport it is, as far as that is known.
    pub fn found(&self) -> Found {
        match self {
            Transport::Http(_) => Found::StreamableHttp,
            Transport::Either(either) if either.is_old() => Found::OldSse,
            Transport::Either(_) => Found::StreamableHttp,
            Transport::OldSse { .. } => Found::OldSse,
            Transport::Child { .. } => Found::Stdio,
        }
    }

    /// The answer to a probe that came when nobody waited for it any more, if one has.
    pub fn late_answer(&self) -> Option<Answer> {
        match self {
            Transport::Http(_) | Transport::Either(_) | Transport::OldSse { .. } => None,
            Transport::Child { host, .. } => host.late_answer(),
        }
    }

    /// Ends what is open and does not end by itself, and resolves when it is over.
    pub async fn close(&self) {
        match self {
            Transport::Http(_) => {}
            Transport::Either(either) => either.close().await,
            Transport::OldSse { host, .. } | Transport::Child { host, .. } => host.close().await,
        }
    }
}

fn endpoint(http: &HttpTransport) -> String {
    let mut url = http.url().clone();
    url.set_query(None);
    url.into()
}
