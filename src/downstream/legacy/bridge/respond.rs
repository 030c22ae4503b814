//! How what comes of a legacy client's message is spelt before a modern server.
//!
//! Owns the choice of form (JSON, or an event stream of one event for a client that takes nothing else) and statuses. To a
//! legacy client a fault is an answer with status 200; a challenge, a rate limit and a bound of the proxy have their own.
//! Rules: A11.3, A12.2, A12.15, A12.17, A12.21.

use super::super::respond;
use crate::downstream::FrontBody;
use crate::downstream::modern::respond::{json, message_response};
use crate::downstream::record::Record;
use crate::exchange::{Fault, Outcome};
use crate::telemetry::metrics::Ended;
use crate::upstream::legacy::Carries;
use crate::wire::headers::Accepts;
use crate::wire::jsonrpc::{self, Id};
use crate::wire::payload::Payload;
use hyper::{Response, StatusCode};

/// A whole answer.
pub(super) fn message(message: Payload, accepts: Accepts) -> Response<FrontBody> {
    message_response(StatusCode::OK, message, accepts)
}

/// A notification or an answer was taken.
pub(super) fn accepted() -> Response<FrontBody> {
    let mut response = Response::new(FrontBody::whole(Payload::default()));
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

/// The session is no more.
pub(super) fn ended() -> Response<FrontBody> {
    Response::new(FrontBody::whole(Payload::default()))
}

/// The session has ended, by its client's wish or because its server is not modern any more.
pub(super) fn gone(id: &Id) -> Response<FrontBody> {
    let text = "the session has ended; `initialize` begins another";
    let told = jsonrpc::error(Some(id), jsonrpc::code::INVALID_REQUEST, text, None);
    json(StatusCode::NOT_FOUND, Payload::from(told))
}

pub(super) fn fault(fault: &Fault, id: &Id, record: &mut Record) -> Response<FrontBody> {
    respond::fault(fault, &Carries::Request(id.clone()), record)
}

/// An outcome before any header was sent.
pub(super) fn outcome(
    outcome: Outcome,
    id: &Id,
    accepts: Accepts,
    record: &mut Record,
) -> Response<FrontBody> {
    match outcome {
        Outcome::Fault(fault) => self::fault(&fault, id, record),
        outcome => {
            let (told, ended) = in_band(outcome, id);
            record.outcome(ended);
            message(told, accepts)
        }
    }
}

/// An outcome as a message, and what it is called.
pub(super) fn in_band(outcome: Outcome, id: &Id) -> (Payload, Ended) {
    match outcome {
        Outcome::Result(message) => (message, Ended::Result),
        Outcome::Error(message) | Outcome::Unimplemented(message) => (message, Ended::Error),
        Outcome::Fault(fault) => (Payload::from(told(&fault, id)), fault.kind.ended()),
        Outcome::Replan(replan) => in_band(replan.otherwise, id),
        // None of them comes from a modern server's driver without something before it.
        Outcome::InputRequired(_) | Outcome::Flowed => {
            (Payload::from(told(&Fault::lost(), id)), Ended::Internal)
        }
    }
}

fn told(fault: &Fault, id: &Id) -> bytes::Bytes {
    jsonrpc::error(Some(id), respond::code(&fault.kind), &fault.text, fault.data.as_deref())
}
