//! What a legacy server asks in the middle of a call, while questions do not reach the client yet.
//!
//! Owns the answers that the proxy gives in the client's place: `ping` is answered, everything else is refused at once.
//! Rules: A1.2, A11.9, B1.11, B1.12; cases C44, C46.

use crate::exchange::{Fault, FaultKind};
use crate::translate::capabilities::Capabilities;
use crate::translate::question::{Kind, Need};
use crate::wire::json::Limits;
use crate::wire::jsonrpc::{self, Request, code, string};
use crate::wire::payload::Payload;
use crate::wire::version::LegacyRevision;

/// The answer to a server's request, and what becomes of the call it came in.
pub(super) struct Answer {
    pub(super) message: Payload,
    /// Set where the call cannot go on.
    pub(super) ends: Option<Fault>,
}

/// `caller` is the client's request; `can_ask` says whether its method may carry questions at all.
pub(super) fn answer(asked: &Request, caller: &Request, can_ask: bool, limits: Limits) -> Answer {
    if asked.method == "ping" {
        return Answer { message: result(asked, "{}"), ends: None };
    }
    let Some(question) = Kind::of(&asked.method).map(|question| mode(asked, question)) else {
        let message = error(asked, code::METHOD_NOT_FOUND, "method not found");
        return Answer { message, ends: None };
    };
    if !can_ask {
        // The call goes on without an answer (B1.12).
        let message = match question {
            Kind::Elicitation | Kind::UrlElicitation => result(asked, r#"{"action":"cancel"}"#),
            Kind::Sampling => error(asked, -1, "sampling is not possible during this request"),
            Kind::Roots => {
                error(asked, code::METHOD_NOT_FOUND, "roots are not available during this request")
            }
        };
        return Answer { message, ends: None };
    }
    let code = match question {
        Kind::Elicitation | Kind::UrlElicitation => code::INVALID_PARAMS,
        Kind::Sampling | Kind::Roots => code::METHOD_NOT_FOUND,
    };
    let message = error(asked, code, "the client did not declare this capability");
    Answer { message, ends: Some(fault(question, caller, limits)) }
}

/// The answer to a request that comes outside any call: a `ping` is answered, nothing else was declared possible.
pub(super) fn unasked(asked: &Request) -> Payload {
    if asked.method == "ping" {
        return result(asked, "{}");
    }
    let code = match Kind::of(&asked.method) {
        Some(Kind::Elicitation | Kind::UrlElicitation) => code::INVALID_PARAMS,
        Some(Kind::Sampling | Kind::Roots) | None => code::METHOD_NOT_FOUND,
    };
    error(asked, code, "the client did not declare this capability")
}

/// What the caller is told when its call needs an answer that this version does not fetch.
pub(super) fn fault(question: Kind, caller: &Request, limits: Limits) -> Fault {
    let need = match question {
        Kind::Elicitation => Need::Form,
        Kind::UrlElicitation => Need::Url,
        Kind::Sampling => Need::Sampling,
        Kind::Roots => Need::Roots,
    };
    if Capabilities::of(caller, limits).allows(need, LegacyRevision::LATEST) {
        let text = format!(
            "the upstream server asked its client ({}) in the middle of the call; \
             this version of mcp-janus does not carry such questions to modern clients yet",
            question.name()
        );
        return Fault::new(FaultKind::NotBridged, text);
    }
    let text = format!(
        "the server needs a client capability that the request does not declare: {}",
        question.name()
    );
    Fault::new(FaultKind::MissingCapability, text)
        .with_data(format!("{{\"requiredCapabilities\":{}}}", need.required()))
}

fn mode(asked: &Request, question: Kind) -> Kind {
    let mode = asked.params.body().and_then(|body| body.object.first(&asked.text, "mode"));
    let url = mode.and_then(|span| string(&asked.text, span)).is_some_and(|mode| mode == "url");
    if url && question == Kind::Elicitation { Kind::UrlElicitation } else { question }
}

fn result(asked: &Request, result: &str) -> Payload {
    let id = String::from_utf8_lossy(asked.id.raw());
    Payload::from(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}"))
}

fn error(asked: &Request, code: i64, message: &str) -> Payload {
    Payload::from(jsonrpc::error(Some(&asked.id), code, message, None))
}
