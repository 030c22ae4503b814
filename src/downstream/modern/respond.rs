//! How outcomes are spelt for a modern client.
//!
//! Owns the table from a fault to status and code, the choice between a JSON body and an event stream (B11), and the
//! headers of both. Rules: A11, A12, A13.7-A13.9; cases C16, C25, C60.

use super::check::Refusal;
use crate::downstream::body::FrontBody;
use crate::downstream::ends::Ends;
use crate::downstream::record::Record;
use crate::exchange::{Fault, FaultKind, Outcome, Receiver};
use crate::telemetry::metrics::Ended;
use crate::upstream::UpstreamBody;
use crate::upstream::modern::is_event_stream;
use crate::wire::headers::{Accepts, EVENT_STREAM, JSON};
use crate::wire::jsonrpc::{self, Id, code};
use crate::wire::payload::Payload;
use bytes::Bytes;
use hyper::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER,
    WWW_AUTHENTICATE,
};
use hyper::{Response, StatusCode};
use smallvec::SmallVec;
use std::time::Duration;

/// `no-transform` keeps intermediaries from compressing, and so from buffering, a stream.
const NO_STORE: HeaderValue = HeaderValue::from_static("no-cache, no-store, no-transform");

/// How long a caller is asked to wait where a bound of ours is reached.
const SOON: HeaderValue = HeaderValue::from_static("1");

/// Status and code of a fault.
fn spelling(kind: &FaultKind) -> (StatusCode, i64) {
    match kind {
        FaultKind::InvalidParams => (StatusCode::OK, code::INVALID_PARAMS),
        FaultKind::MethodNotFound => (StatusCode::NOT_FOUND, code::METHOD_NOT_FOUND),
        FaultKind::MissingCapability => (StatusCode::BAD_REQUEST, code::MISSING_CLIENT_CAPABILITY),
        FaultKind::Unauthorized { status, .. } => {
            (StatusCode::from_u16(*status).unwrap_or(StatusCode::UNAUTHORIZED), code::INTERNAL_ERROR)
        }
        FaultKind::RateLimited => (StatusCode::TOO_MANY_REQUESTS, code::INTERNAL_ERROR),
        FaultKind::BadGateway => (StatusCode::BAD_GATEWAY, code::INTERNAL_ERROR),
        FaultKind::Timeout => (StatusCode::GATEWAY_TIMEOUT, code::INTERNAL_ERROR),
        FaultKind::Busy | FaultKind::Draining => (StatusCode::SERVICE_UNAVAILABLE, code::INTERNAL_ERROR),
        FaultKind::Unanswered => (StatusCode::OK, code::INTERNAL_ERROR),
        FaultKind::Internal => (StatusCode::INTERNAL_SERVER_ERROR, code::INTERNAL_ERROR),
    }
}

/// An outcome that comes before any header was sent.
pub(in crate::downstream) fn outcome(
    outcome: Outcome,
    id: &Id,
    accepts: Accepts,
    record: &mut Record,
) -> Response<FrontBody> {
    match outcome {
        Outcome::Result(message) => {
            record.outcome(Ended::Result);
            message_response(StatusCode::OK, message, accepts)
        }
        Outcome::InputRequired(message) => {
            record.outcome(Ended::InputRequired);
            message_response(StatusCode::OK, message, accepts)
        }
        Outcome::Error(message) => {
            record.outcome(Ended::Error);
            message_response(StatusCode::OK, message, accepts)
        }
        Outcome::Flowed => self::fault(&Fault::lost(), id, record),
        // A method that is not implemented has a status of its own (A11.3, B11).
        Outcome::Unimplemented(message) => {
            record.outcome(Ended::Unimplemented);
            message_response(StatusCode::NOT_FOUND, message, accepts)
        }
        Outcome::Fault(fault) => self::fault(&fault, id, record),
        Outcome::Replan(replan) => self::outcome(replan.otherwise, id, accepts, record),
    }
}

/// An outcome as the last event of a stream; its caller's id is in the message already, or is put there by `id`.
pub(in crate::downstream) fn in_band(outcome: Outcome, id: &Id, record: &mut Option<Record>) -> Payload {
    match outcome {
        Outcome::Result(message) => {
            told(record, |record| record.outcome(Ended::Result));
            message
        }
        Outcome::InputRequired(message) => {
            told(record, |record| record.outcome(Ended::InputRequired));
            message
        }
        Outcome::Error(message) | Outcome::Unimplemented(message) => {
            told(record, |record| record.outcome(Ended::Error));
            message
        }
        // The end of a result without a beginning, which no driver reports.
        Outcome::Flowed => in_band(Outcome::Fault(Fault::lost()), id, record),
        Outcome::Fault(fault) => {
            told(record, |record| record.fault(&fault));
            Payload::from(fault_message(&fault, id))
        }
        Outcome::Replan(replan) => in_band(replan.otherwise, id, record),
    }
}

fn told(record: &mut Option<Record>, tell: impl FnOnce(&mut Record)) {
    if let Some(record) = record {
        tell(record);
    }
}

/// A fault before any header was sent.
pub(in crate::downstream) fn fault(fault: &Fault, id: &Id, record: &mut Record) -> Response<FrontBody> {
    record.fault(fault);
    let (status, _) = spelling(&fault.kind);
    let mut response = json(status, Payload::from(fault_message(fault, id)));
    let headers = response.headers_mut();
    match &fault.kind {
        FaultKind::Unauthorized { challenges, .. } => {
            headers.extend(challenges.iter().map(|challenge| (WWW_AUTHENTICATE, challenge.clone())));
        }
        FaultKind::Busy | FaultKind::Draining => {
            headers.insert(RETRY_AFTER, SOON);
        }
        FaultKind::InvalidParams
        | FaultKind::MethodNotFound
        | FaultKind::MissingCapability
        | FaultKind::RateLimited
        | FaultKind::BadGateway
        | FaultKind::Timeout
        | FaultKind::Unanswered
        | FaultKind::Internal => {}
    }
    if let Some(value) = &fault.retry_after {
        headers.insert(RETRY_AFTER, value.clone());
    }
    response
}

fn fault_message(fault: &Fault, id: &Id) -> bytes::Bytes {
    let (_, code) = spelling(&fault.kind);
    jsonrpc::error(Some(id), code, &fault.text, fault.data.as_deref())
}

/// A request that was not taken.
pub(in crate::downstream) fn refusal(refusal: &Refusal) -> Response<FrontBody> {
    let message = jsonrpc::error(refusal.id.as_ref(), refusal.code, &refusal.text, refusal.data.as_deref());
    let mut response = json(refusal.status, Payload::from(message));
    if refusal.status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(RETRY_AFTER, SOON);
    }
    response
}

pub(in crate::downstream) fn message_response(
    status: StatusCode,
    message: Payload,
    accepts: Accepts,
) -> Response<FrontBody> {
    if accepts.json || !status.is_success() {
        return json(status, message);
    }
    stream(FrontBody::event(&message))
}

/// A result whose beginning has come.
pub(in crate::downstream) fn passing(receiver: Receiver, first: Bytes, ends: Ends) -> Response<FrontBody> {
    json_body(StatusCode::OK, FrontBody::passing(receiver, first, ends))
}

pub(in crate::downstream) fn json(status: StatusCode, message: Payload) -> Response<FrontBody> {
    json_body(status, FrontBody::whole(message))
}

fn json_body(status: StatusCode, body: FrontBody) -> Response<FrontBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    headers.insert(CACHE_CONTROL, NO_STORE);
    response
}

pub(in crate::downstream) fn stream(body: FrontBody) -> Response<FrontBody> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    stream_headers(headers);
    response
}

fn stream_headers(headers: &mut HeaderMap) {
    headers.insert(CACHE_CONTROL, NO_STORE);
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
}

/// Response headers that end at the proxy.
const OWN: [&str; 13] = [
    "connection",
    "content-length",
    "set-cookie",
    "transfer-encoding",
    "upgrade",
    "keep-alive",
    "proxy-authenticate",
    "proxy-connection",
    "trailer",
    "mcp-session-id",
    // Whom the client may go to, and which pages may read the answer, is said by the proxy and not by the server.
    "location",
    "access-control-allow-origin",
    "access-control-allow-credentials",
];

/// The server's own response on its way to the client.
pub(in crate::downstream) fn relayed(
    response: Response<UpstreamBody>,
    keep_alive: Duration,
    ends: Ends,
) -> Response<FrontBody> {
    let (mut head, body) = response.into_parts();
    let streams = is_event_stream(&head.headers);
    end_to_end(&mut head.headers);
    if streams {
        stream_headers(&mut head.headers);
    }
    let mut relayed = Response::new(FrontBody::relayed(body, streams, keep_alive, ends));
    *relayed.status_mut() = head.status;
    *relayed.headers_mut() = head.headers;
    relayed
}

/// Takes out of a server's response headers what is between the proxy and the server alone (A13.4, A13.10).
fn end_to_end(headers: &mut HeaderMap) {
    let listed: SmallVec<[HeaderName; 4]> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    // Few are there, so these are looked for among those, not those among all that might be.
    let ends = |name: &&HeaderName| OWN.contains(&name.as_str()) || listed.contains(name);
    let ending: SmallVec<[HeaderName; 8]> = headers.keys().filter(ends).cloned().collect();
    for name in ending {
        headers.remove(name);
    }
    headers.insert(CACHE_CONTROL, NO_STORE);
}
