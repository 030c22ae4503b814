//! Why a call ended without its server's answer.
//!
//! One type for the whole core; each downstream era has a table from it to the wire (`downstream::modern::respond`).

use crate::telemetry::metrics::Ended;
use hyper::header::HeaderValue;
use std::borrow::Cow;

/// A failure, in words for the caller. Never holds arguments, credentials or the upstream's address.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{text}")]
pub struct Fault {
    pub kind: FaultKind,
    pub text: Cow<'static, str>,
    /// JSON text for the error's `data`.
    pub data: Option<String>,
    /// `Retry-After` of the side that refused, passed on as it is.
    pub retry_after: Option<HeaderValue>,
}

/// What went wrong, which decides status and code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultKind {
    /// The request's own fault: -32602.
    InvalidParams,
    /// -32601.
    MethodNotFound,
    /// The server needs a capability that the request does not declare: -32021; `data` holds `requiredCapabilities`.
    MissingCapability,
    /// The upstream asks for a credential (401) or refuses the one it got (403); its challenge goes to the caller.
    Unauthorized { status: u16, challenges: Vec<HeaderValue> },
    /// The upstream limits the rate: 429.
    RateLimited,
    /// The upstream could not be reached, broke off, or answered with something that is no MCP.
    BadGateway,
    /// Time ran out.
    Timeout,
    /// A bound of the proxy is reached: 503.
    Busy,
    /// The process is about to end: 503.
    Draining,
    /// The server asks its client something, and there will be no answer.
    Unanswered,
    /// A fault of the proxy itself.
    Internal,
}

/// What is said of a call that nobody knows the end of.
pub const LOST: &str = "the proxy was stopped, or lost track of this call";

impl Fault {
    pub fn new(kind: FaultKind, text: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, text: text.into(), data: None, retry_after: None }
    }

    pub fn with_data(mut self, data: impl Into<String>) -> Self {
        self.data = Some(data.into());
        self
    }

    pub fn with_retry_after(mut self, value: Option<HeaderValue>) -> Self {
        self.retry_after = value;
        self
    }

    /// The process ends before the call does.
    pub fn cut_short() -> Self {
        Self::new(FaultKind::Draining, "the proxy was stopped before the call was done; it may have run")
    }

    /// A driver or an edge ended without saying how: a fault of the proxy.
    pub fn lost() -> Self {
        Self::new(FaultKind::Internal, LOST)
    }

    pub fn bad_gateway(text: impl Into<Cow<'static, str>>) -> Self {
        Self::new(FaultKind::BadGateway, text)
    }
}

impl FaultKind {
    /// For logs and metrics.
    pub fn ended(&self) -> Ended {
        match self {
            FaultKind::InvalidParams => Ended::InvalidParams,
            FaultKind::MethodNotFound => Ended::MethodNotFound,
            FaultKind::MissingCapability => Ended::MissingCapability,
            FaultKind::Unauthorized { .. } => Ended::Unauthorized,
            FaultKind::RateLimited => Ended::RateLimited,
            FaultKind::BadGateway => Ended::BadGateway,
            FaultKind::Timeout => Ended::Timeout,
            FaultKind::Busy => Ended::Busy,
            FaultKind::Draining => Ended::Draining,
            FaultKind::Unanswered => Ended::Unanswered,
            FaultKind::Internal => Ended::Internal,
        }
    }
}
