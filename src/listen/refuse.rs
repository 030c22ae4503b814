//! What the listener answers itself, without asking the handler.
//!
//! Owns the order of checks on a head, the health endpoints, and leaving the client able to read a refusal. Does not own
//! the rules of provenance ([`guard`](super::guard)). A12.11, case C61.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, Version, header};
use http_body::Body;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::timeout;

use super::body::{own, refusal};
use super::guard::{Foreign, Guard};
use crate::wire::jsonrpc::code;

/// A body that nobody wants is read up to this size and time before a refusal: closing a connection with unread bytes
/// resets it, and the client might never see why.
const LEFTOVER_BYTES: u64 = 64 * 1024;
const LEFTOVER_TIME: Duration = Duration::from_millis(500);

/// Why a head was too large, for metrics.
pub(super) const HEADER_BYTES: &str = "header-bytes";

/// What the listener answers itself, and for metrics why, where it is a refusal.
pub(super) struct Answer {
    pub(super) response: Response<Bytes>,
    pub(super) reason: Option<&'static str>,
}

/// The answer to a request that does not get as far as the handler. `Origin` comes first, whatever the method and path.
pub(super) fn before_handler<B>(
    request: &Request<B>,
    guard: &Guard,
    header_bytes: usize,
    ready: impl FnOnce() -> bool,
) -> Option<Answer> {
    if let Err(foreign) = guard.check_origin(request) {
        return Some(forbidden(foreign, request));
    }
    // A probe of an orchestrator knows an address, not a name; on loopback there is no such excuse.
    let health = Health::of(request.uri().path());
    if (guard.is_loopback() || health.is_none())
        && let Err(foreign) = guard.check_host(request)
    {
        return Some(forbidden(foreign, request));
    }
    let size = head_size(request);
    if size > header_bytes {
        let message = format!("the request head has {size} bytes; `limits.header_bytes` is {header_bytes}");
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        let response = refusal(status, code::INVALID_REQUEST, &message);
        return Some(Answer { response, reason: Some(HEADER_BYTES) });
    }
    health.map(|health| Answer { response: health.answer(request.method(), ready), reason: None })
}

/// The answer on a connection over the limit.
pub(super) fn over_connection_limit() -> Answer {
    let message = "too many connections; `limits.connections` is reached";
    let mut response = refusal(StatusCode::SERVICE_UNAVAILABLE, code::INTERNAL_ERROR, message);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    Answer { response, reason: Some("connections") }
}

/// Sees to it that the client can read the answer: takes in what is left of the request, within bounds, and closes the
/// connection after the answer if that was not all, or if it is to be the `last`.
pub(super) async fn finish(
    mut response: Response<Bytes>,
    request: Request<Incoming>,
    last: bool,
) -> Response<Bytes> {
    let http1 = request.version() <= Version::HTTP_11;
    let complete = read_leftover(request).await;
    if http1 && (last || !complete) {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Not at a higher level: anyone can cause these. What was refused is told, which is what would have to be allowed.
fn forbidden<B>(foreign: Foreign, request: &Request<B>) -> Answer {
    let named = foreign.named(request);
    tracing::info!(status = 403, reason = ?foreign.to_string(), ?named, "refused before an endpoint");
    let response = refusal(StatusCode::FORBIDDEN, code::INVALID_REQUEST, &foreign.to_string());
    Answer { response, reason: Some(foreign.reason()) }
}

/// Request line and header lines, as HTTP/1 would write them.
fn head_size<B>(request: &Request<B>) -> usize {
    let uri = request.uri();
    let target = uri.authority().map_or(0, |authority| authority.as_str().len())
        + uri.path_and_query().map_or(1, |path| path.as_str().len());
    let line = request.method().as_str().len() + target + " HTTP/1.1\r\n ".len();
    let headers = request.headers().iter();
    line + headers.map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len()).sum::<usize>()
}

#[derive(Debug, Clone, Copy)]
enum Health {
    /// `/healthz`: the process lives.
    Live,
    /// `/readyz`: new requests are welcome.
    Ready,
}

impl Health {
    fn of(path: &str) -> Option<Self> {
        match path {
            "/healthz" => Some(Self::Live),
            "/readyz" => Some(Self::Ready),
            _ => None,
        }
    }

    fn answer(self, method: &Method, ready: impl FnOnce() -> bool) -> Response<Bytes> {
        const TEXT: &str = "text/plain; charset=utf-8";
        if *method != Method::GET && *method != Method::HEAD {
            let mut response = own(StatusCode::METHOD_NOT_ALLOWED, TEXT, Bytes::from_static(b"GET only\n"));
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        let ok = match self {
            Self::Live => true,
            Self::Ready => ready(),
        };
        match ok {
            true => own(StatusCode::OK, TEXT, Bytes::from_static(b"ok\n")),
            false => own(StatusCode::SERVICE_UNAVAILABLE, TEXT, Bytes::from_static(b"draining\n")),
        }
    }
}

/// Whether the body came to its end. A client that waits for `100 Continue` has not sent it and is not asked to.
async fn read_leftover(request: Request<Incoming>) -> bool {
    let waits = request.headers().contains_key(header::EXPECT);
    let mut body = request.into_body();
    if body.is_end_stream() {
        return true;
    }
    if waits || body.size_hint().lower() > LEFTOVER_BYTES {
        return false;
    }
    let reading = async {
        let mut left = LEFTOVER_BYTES;
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { return false };
            let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
            let Some(rest) = left.checked_sub(bytes) else { return false };
            left = rest;
        }
        true
    };
    timeout(LEFTOVER_TIME, reading).await.unwrap_or(false)
}
