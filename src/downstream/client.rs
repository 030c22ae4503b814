//! Which era a client is of.
//!
//! Owns just that choice, made for each request from its headers and body. A claim (a version in `params._meta`) is modern,
//! whatever else is there, a session of the proxy's own apart (`front` looks at that); without one, `initialize`, a legacy
//! version header, or no version header at all is legacy. What names a version that does not exist is left to the modern
//! checks, which refuse it. Rules: A1.1, A13.1, A13.4; cases C01b, C01c, C27; spec 2026-07-28 basic/versioning, Backward
//! Compatibility.

use super::modern::check::{Header, header};
use crate::wire::jsonrpc::{Fault, Malformed, Message, Params};
use crate::wire::meta;
use crate::wire::version::{Era, LegacyRevision, MODERN};
use hyper::HeaderMap;

/// The era of the sender of a POST. A body that is no message is of the era in which that is said best: both say the same,
/// except that arrays once were messages.
pub(super) fn era(headers: &HeaderMap, message: &Result<Message, Malformed>) -> Era {
    let (method, params, text) = match message {
        Ok(Message::Request(request)) => (Some(&*request.method), &request.params, &request.text),
        Ok(Message::Notification(sent)) => (Some(&*sent.method), &sent.params, &sent.text),
        Ok(Message::Response(answer)) => (None, &Params::Absent, &answer.text),
        Err(Malformed { fault: Fault::Batch, .. }) if takes_arrays(headers) => return Era::Legacy,
        Err(_) => return Era::Modern,
    };
    let claims = params.meta().is_some_and(|meta| meta.first(text, meta::PROTOCOL_VERSION).is_some());
    if claims || method == Some("server/discover") {
        return Era::Modern;
    }
    match header(headers) {
        Header::One(MODERN) => Era::Modern,
        Header::One(_) | Header::Unusable if method == Some("initialize") => Era::Legacy,
        Header::One(version) if LegacyRevision::parse(version).is_none() => Era::Modern,
        Header::Unusable => Era::Modern,
        Header::One(_) | Header::Absent => Era::Legacy,
    }
}

/// Whether the version header leaves that open.
pub(super) fn may_be_legacy(headers: &HeaderMap) -> bool {
    match header(headers) {
        Header::Absent => true,
        Header::One(version) => LegacyRevision::parse(version).is_some(),
        Header::Unusable => false,
    }
}

/// Arrays were messages in 2025-03-26 alone, whose clients send no version header or that one (A12.4).
fn takes_arrays(headers: &HeaderMap) -> bool {
    match header(headers) {
        Header::Absent => true,
        Header::One(version) => LegacyRevision::parse(version) == Some(LegacyRevision::V2025_03_26),
        Header::Unusable => false,
    }
}
