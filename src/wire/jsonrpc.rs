//! The JSON-RPC 2.0 envelope: what kind of message a text is, where its members stand, and the errors of our own.
//!
//! Owns what a message is once it is taken apart (`parse` does that; `late_id` where a text is
//! too long to be held) and the writing of error answers. Does not know which methods exist or which header belongs to a member.
//! Spec: basic/index, Messages; architecture section 4, "Raw JSON".

use super::json::{self, Duplicate, Object, ScanError, ScanFault, Span};
use bytes::Bytes;
use std::borrow::Cow;

mod late_id;
mod parse;

pub use late_id::LateId;
pub use parse::{find_id, parse};

/// Error codes that the protocol defines (translation A11).
pub mod code {
    pub const PARSE_ERROR: i64 = -32700;
    pub const INVALID_REQUEST: i64 = -32600;
    pub const METHOD_NOT_FOUND: i64 = -32601;
    pub const INVALID_PARAMS: i64 = -32602;
    pub const INTERNAL_ERROR: i64 = -32603;
    /// Legacy only.
    pub const RESOURCE_NOT_FOUND: i64 = -32002;
    /// 2025-11-25 only.
    pub const URL_ELICITATION_REQUIRED: i64 = -32042;
    pub const HEADER_MISMATCH: i64 = -32020;
    pub const MISSING_CLIENT_CAPABILITY: i64 = -32021;
    pub const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;
}

/// A request id exactly as its sender wrote it: `1`, `"1"` and `"\u0031"` are three different texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Id(Bytes);

impl Id {
    /// An id of our own.
    pub fn number(value: u64) -> Self {
        Self(Bytes::from(value.to_string()))
    }

    /// The JSON text.
    pub fn raw(&self) -> &Bytes {
        &self.0
    }

    /// A string or an integer, else `None` (spec basic/index, Requests).
    pub fn accept(text: &Bytes, span: Span) -> Option<Self> {
        let raw = span.of(text);
        let fits = match json::Kind::of(raw)? {
            json::Kind::String => true,
            json::Kind::Number => !raw.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E')),
            json::Kind::Object | json::Kind::Array | json::Kind::Bool | json::Kind::Null => false,
        };
        // A copy, so that a short id does not keep a long body alive.
        fits.then(|| Self(Bytes::copy_from_slice(raw)))
    }
}

/// One message, taken apart.
#[derive(Debug, Clone)]
pub enum Message {
    Request(Request),
    Notification(Notification),
    Response(Response),
}

#[derive(Debug, Clone)]
pub struct Request {
    pub text: Bytes,
    /// The message's own members.
    pub top: Object,
    pub id: Id,
    /// Where the id stands in `text`.
    pub id_span: Span,
    pub method: String,
    pub params: Params,
}

#[derive(Debug, Clone)]
pub struct Notification {
    pub text: Bytes,
    /// The message's own members.
    pub top: Object,
    pub method: String,
    pub params: Params,
}

/// An answer, of either kind.
#[derive(Debug, Clone)]
pub struct Response {
    pub text: Bytes,
    /// The message's own members.
    pub top: Object,
    /// `None` where it is absent or `null`, as in an answer to a message that could not be read.
    pub id: Option<Span>,
    pub reply: Reply,
}

#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant, reason = "the large variant is the usual one")]
pub enum Reply {
    Result(Body),
    Error(RpcError),
}

/// An object member that is itself taken apart, with its `_meta` if that is an object.
#[derive(Debug, Clone)]
pub struct Body {
    pub object: Object,
    pub meta: Option<Object>,
}

#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant, reason = "the large variant is the usual one")]
pub enum Params {
    Absent,
    /// `params: null`: some senders write it for "absent" (C32).
    Null(Span),
    Object(Body),
}

/// The `error` member of an answer.
#[derive(Debug, Clone)]
pub struct RpcError {
    pub span: Span,
    pub code: i64,
    pub code_span: Span,
    /// Raw JSON of the message, where it is a string.
    pub message: Option<Span>,
    pub data: Option<Span>,
}

/// A text that is not one message; `id` is the caller's wherever it could be told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{fault}")]
pub struct Malformed {
    pub fault: Fault,
    pub id: Option<Id>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error(transparent)]
    Scan(#[from] ScanError),
    #[error(transparent)]
    Duplicate(#[from] Duplicate),
    #[error("a JSON-RPC batch is not accepted; send one message in one request")]
    Batch,
    #[error("{0}")]
    Shape(&'static str),
}

impl Fault {
    /// The code of an answer to a message with this fault.
    pub fn code(&self) -> i64 {
        match self {
            Fault::Scan(ScanError { fault, .. }) => match fault {
                ScanFault::Syntax | ScanFault::Truncated | ScanFault::Utf8 => code::PARSE_ERROR,
                ScanFault::Nesting(_) | ScanFault::Members(_) | ScanFault::Length => code::INVALID_REQUEST,
            },
            Fault::Duplicate(_) | Fault::Batch | Fault::Shape(_) => code::INVALID_REQUEST,
        }
    }
}

impl RpcError {
    pub(super) fn read(text: &Bytes, object: &Object) -> Result<Self, Fault> {
        let code_span = object.get(text, "code")?;
        let code = code_span.and_then(|span| std::str::from_utf8(span.of(text)).ok()?.parse().ok());
        let (Some(code_span), Some(code)) = (code_span, code) else {
            return Err(Fault::Shape("member \"code\" of \"error\" must be an integer"));
        };
        let is_string = |span: &Span| json::Kind::of(span.of(text)) == Some(json::Kind::String);
        let message = object.first(text, "message").filter(is_string);
        Ok(Self { span: object.span, code, code_span, message, data: object.first(text, "data") })
    }

    /// The message as text; empty where there is none.
    pub fn message<'a>(&self, text: &'a [u8]) -> Cow<'a, str> {
        self.message.and_then(|span| string(text, span)).unwrap_or_default()
    }
}

impl RpcError {
    /// The beginning of the message for a text of our own: one line, whatever the peer wrote.
    pub fn brief(&self, text: &[u8]) -> String {
        self.message(text).chars().take(300).map(|char| if char.is_control() { ' ' } else { char }).collect()
    }
}

impl Response {
    /// Whether it answers the request that was sent under `number`; `"5"` is taken for `5`, since our ids are
    /// unambiguous in both readings (C17).
    pub fn answers(&self, number: u64) -> bool {
        let Some(span) = self.id else { return false };
        is_number(span.of(&self.text), number)
    }
}

impl Params {
    pub fn body(&self) -> Option<&Body> {
        match self {
            Params::Object(body) => Some(body),
            Params::Absent | Params::Null(_) => None,
        }
    }

    pub fn meta(&self) -> Option<&Object> {
        self.body()?.meta.as_ref()
    }
}

/// Whether a raw id or token is `number`, written as a number or as a string (C17).
pub fn is_number(raw: &[u8], number: u64) -> bool {
    let digits = raw.strip_prefix(b"\"").and_then(|raw| raw.strip_suffix(b"\"")).unwrap_or(raw);
    std::str::from_utf8(digits).is_ok_and(|digits| digits.parse() == Ok(number))
}

/// The text of a string value at `span`; `None` if it is no string or holds half a surrogate pair.
pub fn string(text: &[u8], span: Span) -> Option<Cow<'_, str>> {
    let raw = span.of(text).strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    json::unescape(raw)
}

/// An error answer. `data` is JSON text. Without an id the member is left out, which 2026-07-28 allows and
/// `null` is not (schema JSONRPCErrorResponse).
pub fn error(id: Option<&Id>, code: i64, message: &str, data: Option<&str>) -> Bytes {
    use std::fmt::Write;
    let mut out = String::with_capacity(96 + message.len() + data.map_or(0, str::len));
    out.push_str("{\"jsonrpc\":\"2.0\",");
    if let Some(id) = id {
        // An id is a piece of a text that was checked for UTF-8.
        let _ = write!(out, "\"id\":{},", String::from_utf8_lossy(&id.0));
    }
    let _ = write!(out, "\"error\":{{\"code\":{code},\"message\":");
    json::quote_into(&mut out, message);
    if let Some(data) = data {
        let _ = write!(out, ",\"data\":{data}");
    }
    out.push_str("}}");
    Bytes::from(out)
}

#[cfg(test)]
mod tests;
