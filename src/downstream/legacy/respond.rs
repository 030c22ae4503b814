//! How what comes back is spelt for a legacy client.
//!
//! Owns the head of a relayed response and the table from a fault to status and code. To a legacy client's request a fault
//! is an answer with status 200: another status is a failure of its transport, and 404 the end of its session.
//! Rules: A11.3, A12.14, A12.17, A12.21, A13; cases C16, C58.

use crate::downstream::body::FrontBody;
use crate::downstream::ends::Ends;
use crate::downstream::modern::respond::{self, json};
use crate::downstream::record::Record;
use crate::exchange::{Fault, FaultKind};
use crate::upstream::UpstreamBody;
use crate::upstream::legacy::Carries;
use crate::wire::headers::MCP_SESSION_ID;
use crate::wire::jsonrpc::{self, code};
use crate::wire::payload::Payload;
use hyper::header::{HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};
use std::time::Duration;

/// The server's own response. Its status is the client's: 400, 404 and 405 mean something in a session.
pub(super) fn relayed(
    response: Response<UpstreamBody>,
    keep_alive: Duration,
    ends: Ends,
) -> Response<FrontBody> {
    let session = response.headers().get(MCP_SESSION_ID).cloned();
    let mut relayed = respond::relayed(response, keep_alive, ends);
    relayed.headers_mut().extend(session.map(|id| (HeaderName::from_static(MCP_SESSION_ID), id)));
    relayed
}

/// There is no response of the server.
pub(super) fn fault(fault: &Fault, carries: &Carries, record: &mut Record) -> Response<FrontBody> {
    record.fault(fault);
    let (status, message) = match carries {
        Carries::Initialize(id) | Carries::Request(id) => (
            in_band(&fault.kind),
            jsonrpc::error(Some(id), code(&fault.kind), &fault.text, fault.data.as_deref()),
        ),
        Carries::Batch(ids) => {
            let mut messages = Vec::new();
            for id in ids {
                messages.push(if messages.is_empty() { b'[' } else { b',' });
                messages.extend_from_slice(&jsonrpc::error(Some(id), code(&fault.kind), &fault.text, None));
            }
            messages.push(b']');
            (in_band(&fault.kind), messages.into())
        }
        Carries::Unanswered | Carries::Stream | Carries::End => {
            (status(&fault.kind), jsonrpc::error(None, code::INTERNAL_ERROR, &fault.text, None))
        }
    };
    let mut response = json(status, Payload::from(message));
    let headers = response.headers_mut();
    if let FaultKind::Unauthorized { challenges, .. } = &fault.kind {
        headers.extend(challenges.iter().map(|challenge| (WWW_AUTHENTICATE, challenge.clone())));
    }
    if fault.kind == FaultKind::Busy {
        headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    if let Some(value) = &fault.retry_after {
        headers.insert(RETRY_AFTER, value.clone());
    }
    response
}

/// The code of an answer under a request's id.
pub(super) fn code(kind: &FaultKind) -> i64 {
    match kind {
        FaultKind::InvalidParams => code::INVALID_PARAMS,
        FaultKind::MethodNotFound => code::METHOD_NOT_FOUND,
        FaultKind::MissingCapability
        | FaultKind::Unauthorized { .. }
        | FaultKind::RateLimited
        | FaultKind::BadGateway
        | FaultKind::Timeout
        | FaultKind::Busy
        | FaultKind::Draining
        | FaultKind::Unanswered
        | FaultKind::Internal => code::INTERNAL_ERROR,
    }
}

/// The status of an answer under a request's id.
fn in_band(kind: &FaultKind) -> StatusCode {
    match kind {
        FaultKind::Unauthorized { .. } | FaultKind::RateLimited | FaultKind::Busy => status(kind),
        FaultKind::InvalidParams
        | FaultKind::MethodNotFound
        | FaultKind::MissingCapability
        | FaultKind::BadGateway
        | FaultKind::Timeout
        | FaultKind::Draining
        | FaultKind::Unanswered
        | FaultKind::Internal => StatusCode::OK,
    }
}

/// The status where it is all that there is.
fn status(kind: &FaultKind) -> StatusCode {
    match kind {
        FaultKind::Unauthorized { status, .. } => {
            StatusCode::from_u16(*status).unwrap_or(StatusCode::UNAUTHORIZED)
        }
        FaultKind::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        FaultKind::InvalidParams | FaultKind::MethodNotFound | FaultKind::MissingCapability => {
            StatusCode::BAD_REQUEST
        }
        FaultKind::BadGateway | FaultKind::Unanswered => StatusCode::BAD_GATEWAY,
        FaultKind::Timeout => StatusCode::GATEWAY_TIMEOUT,
        FaultKind::Busy | FaultKind::Draining => StatusCode::SERVICE_UNAVAILABLE,
        FaultKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
