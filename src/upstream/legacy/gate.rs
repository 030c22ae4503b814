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
const NO_SESSION: [&str; 6] = [
    "Server not initialized",
    "Bad Request: Server not initialized",
    "Bad Request: No valid session ID provided",
    "Bad Request: Missing session ID",
    "Bad Request: Mcp-Session-Id header is required",
    "Session not found",
];

/// Judges a refusal of a request that was sent under `number`.
pub(super) fn judge(refusal: &Refusal, number: u64, has_session: bool) -> Gate {
    let ours = refusal.answer.as_ref().is_some_and(|answer| answer.answers(number));
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
            if refusal.answer.as_ref().is_some_and(|answer| no_session(answer, number, has_session)) =>
        {
            Gate::Lost
        }
        StatusCode::BAD_REQUEST if ours => Gate::Answer,
        _ => Gate::Refused,
    }
}

/// Whether an answer inside or outside of a 200 is the session gate's. `number` is the id that was sent.
pub(super) fn no_session(answer: &Response, number: u64, has_session: bool) -> bool {
    let Reply::Error(error) = &answer.reply else { return false };
    let text = error.message(&answer.text);
    match error.code {
        // Under another id, or none, the server has not read the request as one: its transport has refused it.
        -32000 if !answer.answers(number) && has_session => true,
        -32000 => text == NO_SESSION[0] || text == NO_SESSION[1],
        code::INVALID_REQUEST => !answer.answers(number) && has_session && NO_SESSION.contains(&&*text),
        _ => false,
    }
}
