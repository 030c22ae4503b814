//! A modern server's error as a legacy client is to see it.
//!
//! Owns which codes a legacy client may see and what becomes of the others. HTTP statuses belong to the edge, and so does
//! trying again first (-32020, -32022). Rules: A11, B3; vectors D75-D77, D80; case C49.

use super::result::tool_error;
use crate::translate::error::{under_id, without_message};
use crate::wire::json::{Limits, Object, Span, Splice, object, once};
use crate::wire::jsonrpc::{self, Request, Response, RpcError, code, string};
use crate::wire::method::Method;
use crate::wire::payload::Payload;

/// The whole message under the client's id.
#[derive(Debug)]
pub enum Answered {
    Error(Payload),
    /// The model is told what went wrong, not the program.
    Result(Payload),
}

/// `not_found`: what a modern server says of a resource that it does not have is put in the words of the legacy revisions.
pub fn to_legacy(
    response: &Response,
    error: &RpcError,
    request: &Request,
    method: Method,
    not_found: bool,
    limits: Limits,
) -> Answered {
    let id = &request.id;
    match error.code {
        code::INVALID_PARAMS
            if not_found
                && method == Method::ResourcesRead
                && is_not_found(response, error, request, limits) =>
        {
            let error = RpcError { code: code::RESOURCE_NOT_FOUND, ..error.clone() };
            if error.message.is_none() {
                return Answered::Error(without_message(response, &error, id));
            }
            let mut splice = Splice::new(&response.text);
            splice.replace(error.code_span, error.code.to_string());
            Answered::Error(under_id(response, id, splice))
        }
        code::MISSING_CLIENT_CAPABILITY => lacks_capability(response, error, request, method, limits),
        // They are about what the proxy sent, or not a modern server's to say at all: a client that knows the code would act
        // on a meaning that it does not have here (A11.7, A11.8, A11.10).
        code::HEADER_MISMATCH | code::UNSUPPORTED_PROTOCOL_VERSION | code::URL_ELICITATION_REQUIRED => {
            let words = error.brief(&response.text);
            let message = format!("the upstream server did not take the request: {words}");
            Answered::Error(Payload::from(jsonrpc::error(Some(id), code::INTERNAL_ERROR, &message, None)))
        }
        _ if error.message.is_none() => Answered::Error(without_message(response, error, id)),
        _ => Answered::Error(under_id(response, id, Splice::new(&response.text))),
    }
}

/// -32602 says of a resource that it is not there, and of parameters that they are wrong; only the first has a code of its
/// own in the legacy revisions (B3).
fn is_not_found(response: &Response, error: &RpcError, request: &Request, limits: Limits) -> bool {
    let text = &response.text;
    let asked = request.params.body().and_then(|body| once(&body.object, &request.text, "uri"));
    let asked = asked.and_then(|span| string(&request.text, span));
    let data = error.data.and_then(|span| object(text, span, limits));
    let (Some(asked), Some(data)) = (asked, data) else { return false };
    let said = once(&data, text, "uri").and_then(|span| string(text, span));
    if said.is_none_or(|said| said != asked) {
        return false;
    }
    data.members.len() == 1 || error.message(text).to_lowercase().contains("not found")
}

/// A legacy client cannot say more of itself for one request: the model is told, or the program (A11.9).
fn lacks_capability(
    response: &Response,
    error: &RpcError,
    request: &Request,
    method: Method,
    limits: Limits,
) -> Answered {
    let text = &response.text;
    let data = error.data.and_then(|span| object(text, span, limits));
    let required = data.and_then(|data| object(text, once(&data, text, "requiredCapabilities")?, limits));
    let named = required.map(|required| names(text, &required, limits)).unwrap_or_default();
    let words = error.brief(text);
    let message = if named.is_empty() {
        format!("the server needs a capability that this client does not declare: {words}")
    } else {
        format!("the server needs a capability that this client does not declare ({named}): {words}")
    };
    if method == Method::ToolsCall {
        return Answered::Result(tool_error(&request.id, &message));
    }
    let data = error.data.map(|span| String::from_utf8_lossy(span.of(text)));
    let error = jsonrpc::error(Some(&request.id), code::INTERNAL_ERROR, &message, data.as_deref());
    Answered::Error(Payload::from(error))
}

/// `elicitation.url, sampling`: as far as one line should go.
fn names(text: &[u8], required: &Object, limits: Limits) -> String {
    let plain = |name: &str| -> String { name.chars().filter(|char| !char.is_control()).take(40).collect() };
    let mut names = Vec::new();
    for member in required.members.iter().take(8) {
        let Some(name) = member.name(text) else { continue };
        let span: Span = member.value;
        let inner = object(text, span, limits);
        let parts = inner.map(|inner| inner.members).unwrap_or_default();
        if parts.is_empty() {
            names.push(plain(&name));
        }
        for part in parts.iter().take(4).filter_map(|part| part.name(text)) {
            names.push(format!("{}.{}", plain(&name), plain(&part)));
        }
    }
    names.join(", ")
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
