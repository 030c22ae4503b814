//! What can go wrong between a request and the head of its response, and whether the request may have run.
//!
//! Owns [`SendError`] and how it is found out from typed error chains, never from text. Does not own what the client is
//! told. Architecture, "Retries"; case C30.

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::connect::ConnectError;
use super::link::HandoverBroken;

type BoxError = Box<dyn Error + Send + Sync>;

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// No connection; nothing was sent.
    #[error("cannot connect to {origin}: {source}")]
    Connect { origin: String, source: io::Error },
    /// No TLS session, most often because the certificate is not trusted; nothing was sent.
    #[error("no TLS session with {origin}: {source}")]
    Tls { origin: String, source: io::Error },
    /// The connection broke before the request was handed over in full, or the server declared it untouched.
    #[error("the connection to {origin} broke before the request was sent: {source}")]
    Unsent { origin: String, source: BoxError },
    /// The request was written in full and no valid response came. It may have run and is never sent again.
    #[error("the connection to {origin} broke before a response: {source}")]
    Broken { origin: String, source: BoxError },
    #[error("{phase} took longer than {after:?}")]
    Timeout { phase: Phase, after: Duration },
    /// No process: nothing was sent.
    #[error("cannot start the server: {source}")]
    Start { source: io::Error },
    /// It has failed so often in a row that it is left alone for a while; nothing was sent.
    #[error(
        "the server has ended {failures} times in a row without a word; it is started again in {wait:?} at the earliest"
    )]
    Pausing { failures: u32, wait: Duration },
    /// As many channels as may; nothing was sent.
    #[error("as many channels are open as may: {limit}")]
    Full { limit: usize },
    /// The channel ended with the request in it. It may have run and is never sent again.
    #[error("{what} ended before a response")]
    Ended { what: &'static str },
    /// What came under the request's id is no message.
    #[error("the answer is not a JSON-RPC message")]
    NoMessage,
    /// The answer was longer than the limit.
    #[error("the answer is larger than the limit `message_bytes`")]
    TooLarge,
    /// The server of HTTP+SSE named no place that messages may be sent to, so none was sent.
    #[error("no channel of HTTP+SSE: {0}")]
    Endpoint(#[from] NoEndpoint),
    /// The server redirected to where the same request will not be sent.
    #[error("redirect refused: {0}")]
    Redirect(#[from] RedirectRefusal),
}

/// What a time limit cut short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// TCP and TLS; nothing was sent.
    Connect,
    /// From the start of a process to its first message; nothing but `initialize` was sent.
    Start,
    /// From the request to the head of the response.
    Response,
}

/// Why messages cannot be sent to a server of HTTP+SSE, whose stream has to say first where they go (C42).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoEndpoint {
    #[error("the GET request was answered with {0}, no event stream")]
    NotAStream(String),
    #[error("the event stream ended before its `endpoint` event")]
    Ended,
    #[error("the `endpoint` event did not come within {0:?}")]
    Late(Duration),
    #[error(
        "the `endpoint` event names `{endpoint}`, which is not on {origin}; nothing is sent there (`sse_endpoint` can name another place on {origin})"
    )]
    CrossOrigin { endpoint: String, origin: String },
    #[error("the `endpoint` event names `{endpoint}`, which is no URL")]
    Unusable { endpoint: String },
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RedirectRefusal {
    #[error("`{location}` is not on {origin}")]
    CrossOrigin { location: String, origin: String },
    #[error("more than {limit} in a row")]
    TooMany { limit: usize },
    #[error("status {status} without a usable Location")]
    NoLocation { status: u16 },
    #[error("status 303 asks for a different request (GET {location})")]
    SeeOther { location: String },
}

/// Why a transport cannot be built from its settings.
#[derive(Debug, thiserror::Error)]
pub enum TransportBuildError {
    #[error("upstream.{upstream}: not an HTTP upstream")]
    NotHttp { upstream: String },
    #[error("upstream.{upstream}: {url}: {reason}")]
    Url { upstream: String, url: String, reason: String },
    #[error("upstream.{upstream}: {}: {reason}", path.display())]
    CaFile { upstream: String, path: PathBuf, reason: String },
    #[error(
        "upstream.{upstream}: no certificate authority is known: the system has none and no CA file is set"
    )]
    NoRoots { upstream: String },
    #[error("upstream.{upstream}: TLS: {source}")]
    Tls { upstream: String, source: tokio_rustls::rustls::Error },
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Connect => "connecting",
            Self::Start => "the start of the server's process",
            Self::Response => "the response",
        })
    }
}

impl SendError {
    /// Whether the server certainly did not act on the request.
    pub fn did_not_run(&self) -> bool {
        match self {
            Self::Connect { .. }
            | Self::Tls { .. }
            | Self::Unsent { .. }
            | Self::Start { .. }
            | Self::Pausing { .. }
            | Self::Full { .. }
            | Self::Endpoint(_) => true,
            Self::Broken { .. } | Self::Ended { .. } | Self::NoMessage | Self::TooLarge => false,
            Self::Timeout { phase, .. } => match phase {
                Phase::Connect | Phase::Start => true,
                Phase::Response => false,
            },
            Self::Redirect(refusal) => match refusal {
                RedirectRefusal::CrossOrigin { .. }
                | RedirectRefusal::TooMany { .. }
                | RedirectRefusal::NoLocation { .. } => true,
                // "See other" is how a server points at the outcome of what it has done.
                RedirectRefusal::SeeOther { .. } => false,
            },
        }
    }
}

/// One failed attempt.
pub(super) struct Failure {
    pub(super) error: SendError,
    pub(super) again: Again,
}

/// Whether the same request may be tried once more without anyone noticing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Again {
    No,
    /// Yes: a pooled connection turned out to be dead.
    StalePool,
    /// Once: even a new connection broke.
    Once,
}

impl Failure {
    /// Reads the kind of a failure off the typed errors in its chain.
    pub(super) fn of(error: hyper_util::client::legacy::Error, origin: &str) -> Self {
        let origin = origin.to_owned();
        if error.is_connect() {
            return Self { error: connect_failure(error, origin), again: Again::No };
        }
        match handover(&error) {
            Handover::Written => {
                Self { error: SendError::Broken { origin, source: Box::new(error) }, again: Again::No }
            }
            Handover::Unwritten { reused } => Self {
                error: SendError::Unsent { origin, source: Box::new(error) },
                again: if reused { Again::StalePool } else { Again::Once },
            },
        }
    }
}

fn connect_failure(error: hyper_util::client::legacy::Error, origin: String) -> SendError {
    let known = error.source().and_then(|source| source.downcast_ref::<ConnectError>());
    match known {
        Some(ConnectError::Tcp(source)) => SendError::Connect { origin, source: copy(source) },
        Some(ConnectError::Tls(source)) => SendError::Tls { origin, source: copy(source) },
        Some(ConnectError::Timeout(after)) => SendError::Timeout { phase: Phase::Connect, after: *after },
        // The HTTP/2 preface failed, or the pool gave up: no request was written yet.
        None => SendError::Unsent { origin, source: Box::new(error) },
    }
}

/// An owned error with the same kind and cause text; the chain only lends its own.
fn copy(source: &io::Error) -> io::Error {
    match source.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(source.kind(), source.to_string()),
    }
}

enum Handover {
    Written,
    Unwritten { reused: bool },
}

fn handover(error: &(dyn Error + 'static)) -> Handover {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(broken) = HandoverBroken::find(error) {
            return Handover::Unwritten { reused: broken.reused };
        }
        if let Some(http) = error.downcast_ref::<hyper::Error>()
            && http.is_canceled()
        {
            // hyper still held the request, and has tried another connection if this one was reused.
            return Handover::Unwritten { reused: false };
        }
        if let Some(h2) = error.downcast_ref::<h2::Error>()
            && h2.is_remote()
            && (h2.is_go_away() || h2.reason() == Some(h2::Reason::REFUSED_STREAM))
        {
            // The peer's word that it has not begun: RFC 9113, 6.8 (streams above the last one named) and 8.7.
            return Handover::Unwritten { reused: false };
        }
        next = error.source();
    }
    Handover::Written
}
