//! How legacy servers say that they did not run a request because of its session.
//!
//! Owns the one table of dialects (C03). The protocol's own way is 404; the others are what deployed servers do. Texts
//! are compared whole, never searched: what is not in the table is the server's own answer and goes to the caller.

use super::super::reply::Refusal;
use crate::wire::jsonrpc::{Reply, Response, code};
use hyper::StatusCode;

/// What a refusal says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gate {
    /// The session is gone; the request did not run.
    Lost,
    /// The server speaks the modern era; the request did not run.
    OtherEra,
    /// The body is the server's answer to the request, whatever the status.
    Answer,
    /// None of these.
    Refused,
}

/// Error texts of SDK servers whose transport has no session for the request.
const NO_SESSION: [&str; 7] = [
    NOT_INITIALIZED[0],
    NOT_INITIALIZED[1],
    "No valid session ID provided",
    "Bad Request: No valid session ID provided",
    "Missing session ID",
    "Bad Request: Missing session ID",
    "Bad Request: Mcp-Session-Id header is required",
];

/// Those that also come inside of a 200, and from servers without session ids.
const NOT_INITIALIZED: [&str; 2] = ["Server not initialized", "Bad Request: Server not initialized"];

/// Judges a refusal of a request that was sent under `number`, or of a notification.
pub(super) fn judge(refusal: &Refusal, number: Option<u64>, has_session: bool) -> Gate {
    let answers = |answer: &Response| number.is_some_and(|number| answer.answers(number));
    judge_by(refusal, refusal.answer.as_ref().is_some_and(answers), has_session)
}

/// As [`judge`], where the caller knows whether the refusal's body is under the id of the request.
pub(super) fn judge_by(refusal: &Refusal, ours: bool, has_session: bool) -> Gate {
    let code = refusal.code();
    match refusal.status {
        // A12.22: an unknown method that the server names under our id leaves the session alive.
        StatusCode::NOT_FOUND if ours && code == Some(code::METHOD_NOT_FOUND) => Gate::Answer,
        StatusCode::NOT_FOUND if has_session => Gate::Lost,
        StatusCode::BAD_REQUEST
            if matches!(code, Some(code::UNSUPPORTED_PROTOCOL_VERSION | code::HEADER_MISMATCH)) =>
        {
            Gate::OtherEra
        }
        StatusCode::BAD_REQUEST
            if refusal.answer.as_ref().is_some_and(|answer| refused(answer, has_session)) =>
        {
            Gate::Lost
        }
        StatusCode::BAD_REQUEST if ours => Gate::Answer,
        _ => Gate::Refused,
    }
}

fn refused(answer: &Response, has_session: bool) -> bool {
    let Reply::Error(error) = &answer.reply else { return false };
    let text = error.message(&answer.text);
    matches!(error.code, -32000 | code::INVALID_REQUEST)
        && (NOT_INITIALIZED.contains(&&*text) || has_session && NO_SESSION.contains(&&*text))
}

/// Whether an answer with a status of success is the session gate's all the same.
pub(super) fn not_initialized(answer: &Response) -> bool {
    let Reply::Error(error) = &answer.reply else { return false };
    error.code == -32000 && NOT_INITIALIZED.contains(&&*error.message(&answer.text))
}
