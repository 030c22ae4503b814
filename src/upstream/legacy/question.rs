//! The answers that the proxy gives to what a legacy server asks outside any call.
//!
//! Rules: A1.2, B5; case C44.

use crate::translate::answer;
use crate::translate::question::Kind;
use crate::wire::jsonrpc::{self, Request, code};
use crate::wire::payload::Payload;

/// A `ping` is answered; nobody can be asked anything.
pub(super) fn unasked(asked: &Request) -> Payload {
    if asked.method == "ping" {
        return answer::pong(asked);
    }
    let code = match Kind::of(&asked.method) {
        Some(Kind::Elicitation | Kind::UrlElicitation) => code::INVALID_PARAMS,
        Some(Kind::Sampling | Kind::Roots) | None => code::METHOD_NOT_FOUND,
    };
    Payload::from(jsonrpc::error(Some(&asked.id), code, "the client did not declare this capability", None))
}
