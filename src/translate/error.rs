//! A legacy server's error as a modern client is to see it.
//!
//! Rules: A7.6, A11, B3; vectors D16, D24-D26, D29.

use crate::wire::json::{Limits, Splice};
use crate::wire::jsonrpc::{self, Id, Request, Response, RpcError, code};
use crate::wire::method::Method;
use crate::wire::payload::Payload;

/// The code that the client sees and the whole message under its id.
pub fn to_modern(
    response: &Response,
    error: &RpcError,
    request: &Request,
    method: Method,
    limits: Limits,
) -> (i64, Payload) {
    match error.code {
        code::RESOURCE_NOT_FOUND if method == Method::ResourcesRead => {
            (code::INVALID_PARAMS, not_found(response, error, request, limits))
        }
        // No modern meaning under any other method, and codes that the modern revision reserves for itself:
        // passed on as they are, the client would act on a meaning that the server did not have (A11.6, A11.12).
        code::RESOURCE_NOT_FOUND | -32099..=-32020 => {
            (code::INTERNAL_ERROR, wrapped(response, error, &request.id))
        }
        other if error.message.is_none() => (other, without_message(response, error, &request.id)),
        other => (other, under_id(response, &request.id, Splice::new(&response.text))),
    }
}

/// -32002 becomes -32602; `data` is kept, and `data.uri` added so that the client can tell which one (B3).
fn not_found(response: &Response, error: &RpcError, request: &Request, limits: Limits) -> Payload {
    let mut splice = Splice::new(&response.text);
    let code = match error.message {
        Some(_) => code::INVALID_PARAMS.to_string(),
        None => {
            return without_message(
                response,
                &RpcError { code: code::INVALID_PARAMS, ..error.clone() },
                &request.id,
            );
        }
    };
    splice.replace(error.code_span, code);
    let uri = request.params.body().and_then(|body| body.object.first(&request.text, "uri"));
    if let Some(uri) = uri {
        let uri = String::from_utf8_lossy(uri.of(&request.text));
        match error.data {
            None => {
                // Right behind the code, so that the comma is always right.
                let at = crate::wire::json::Span { start: error.code_span.end, end: error.code_span.end };
                splice.replace(at, format!(",\"data\":{{\"uri\":{uri}}}"));
            }
            Some(span) => {
                let data = crate::wire::json::object(&response.text, span, limits);
                if let Some(data) = data.filter(|data| data.first(&response.text, "uri").is_none()) {
                    splice.rewrite(&data, |_| true, format!("\"uri\":{uri}"));
                }
            }
        }
    }
    under_id(response, &request.id, splice)
}

/// -32603 that keeps the server's own code and data where no client takes them for the protocol's.
fn wrapped(response: &Response, error: &RpcError, id: &Id) -> Payload {
    let data = match error.data {
        // Its data is made of legacy vocabulary.
        Some(_) if error.code == code::URL_ELICITATION_REQUIRED => None,
        data => data,
    };
    let data = match data {
        Some(span) => {
            let original = String::from_utf8_lossy(span.of(&response.text));
            format!("{{\"originalCode\":{},\"originalData\":{original}}}", error.code)
        }
        None => format!("{{\"originalCode\":{}}}", error.code),
    };
    let message = error.message(&response.text);
    Payload::from(jsonrpc::error(Some(id), code::INTERNAL_ERROR, &message, Some(&data)))
}

/// `message` is required of every revision; a server that sends none gets one.
pub(super) fn without_message(response: &Response, error: &RpcError, id: &Id) -> Payload {
    let data = error.data.map(|span| String::from_utf8_lossy(span.of(&response.text)));
    let message = "the server gave no message";
    Payload::from(jsonrpc::error(Some(id), error.code, message, data.as_deref()))
}

pub(super) fn under_id(response: &Response, id: &Id, mut splice: Splice<'_>) -> Payload {
    let text = &response.text;
    match response.id {
        Some(span) => {
            splice.replace(span, id.raw().clone());
            splice.rewrite(&response.top, |member| !member.is(text, "result"), "");
        }
        // The server could not tell the id; the answer is ours to address.
        None => {
            let mut add = b"\"id\":".to_vec();
            add.extend_from_slice(id.raw());
            splice.rewrite(&response.top, |member| !member.is(text, "id") && !member.is(text, "result"), add);
        }
    }
    splice.finish()
}
