//! The JSON-RPC 2.0 envelope: what kind of message a text is, where its members stand, and the errors of our own.
//!
//! Owns the one pass over a message that finds every member anything is decided by (`id`, `method`, `params` with its
//! `_meta`, `result` with its `_meta`, `error`), the refusal of duplicates among them, and the writing of error
//! answers. Does not know which methods exist or which header belongs to a member.
//! Spec: basic/index, Messages; architecture section 4, "Raw JSON".

use super::json::{self, Cursor, Duplicate, Limits, Object, ScanError, ScanFault, Span};
use bytes::Bytes;
use std::borrow::Cow;

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
    fn accept(text: &Bytes, span: Span) -> Option<Self> {
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

/// Takes one message apart.
pub fn parse(text: Bytes, limits: Limits) -> Result<Message, Malformed> {
    let mut found = Found::default();
    let top = match scan(&text, limits, &mut found) {
        Ok(top) => top,
        Err(fault) => {
            let bound = matches!(&fault, Fault::Scan(scan) if Fault::Scan(*scan).code() != code::PARSE_ERROR);
            let id = if bound { find_id(&text) } else { None };
            return Err(Malformed { fault, id });
        }
    };
    let id = top.get(&text, "id");
    found
        .build(&text, top)
        .map_err(|fault| Malformed { fault, id: id.ok().flatten().and_then(|span| Id::accept(&text, span)) })
}

/// The id in a text that is not taken any further: too long, too deep, or cut off. Nested values before it are
/// passed over whatever their depth; a second `id` makes it unknown.
pub fn find_id(prefix: &Bytes) -> Option<Id> {
    let mut ids = Vec::new();
    let limits = Limits { nesting: usize::MAX, members: usize::MAX };
    let mut cursor = Cursor::on_prefix(prefix, limits);
    // The end of a cut text is an error like any other; what was found before it counts.
    let _ = cursor.object(|cursor, member| {
        let value = cursor.skip()?;
        if member.is(prefix, "id") && ids.len() < 2 {
            ids.push(value);
        }
        Ok(value)
    });
    match ids[..] {
        // A value that touches the cut may be half a number.
        [one] if one.end < prefix.len() as u32 => Id::accept(prefix, one),
        _ => None,
    }
}

#[derive(Default)]
struct Found {
    params: Option<Body>,
    result: Option<Body>,
    error: Option<Object>,
}

fn scan(text: &Bytes, limits: Limits, found: &mut Found) -> Result<Object, Fault> {
    let mut cursor = Cursor::new(text, limits)?;
    match cursor.peek() {
        Some(b'[') => {
            // A batch is refused as such only if it is JSON at all.
            cursor.skip()?;
            cursor.end()?;
            return Err(Fault::Batch);
        }
        Some(b'{') | None => {}
        Some(_) => {
            cursor.skip()?;
            cursor.end()?;
            return Err(Fault::Shape("the message is not a JSON object"));
        }
    }
    let top = cursor.object(|cursor, member| {
        if cursor.peek() != Some(b'{') {
            return cursor.skip();
        }
        if member.is(text, "params") {
            return keep(&mut found.params, body(cursor)?, |body| body.object.span);
        }
        if member.is(text, "result") {
            return keep(&mut found.result, body(cursor)?, |body| body.object.span);
        }
        if member.is(text, "error") {
            return keep(&mut found.error, cursor.object(|cursor, _| cursor.skip())?, |object| object.span);
        }
        cursor.skip()
    })?;
    cursor.end()?;
    Ok(top)
}

fn keep<T>(slot: &mut Option<T>, value: T, span: impl Fn(&T) -> Span) -> Result<Span, ScanError> {
    Ok(span(slot.insert(value)))
}

fn body(cursor: &mut Cursor<'_>) -> Result<Body, ScanError> {
    let text = cursor.text();
    let mut meta = None;
    let object = cursor.object(|cursor, member| {
        if member.is(text, "_meta") && cursor.peek() == Some(b'{') {
            let object = cursor.object(|cursor, _| cursor.skip())?;
            let span = object.span;
            meta = Some(object);
            return Ok(span);
        }
        cursor.skip()
    })?;
    Ok(Body { object, meta })
}

impl Found {
    fn build(self, text: &Bytes, top: Object) -> Result<Message, Fault> {
        match top.get(text, "jsonrpc")?.map(|span| span.of(text)) {
            Some(br#""2.0""#) => {}
            _ => return Err(Fault::Shape("member \"jsonrpc\" must be \"2.0\"")),
        }
        let id_span = top.get(text, "id")?;
        let method = top.get(text, "method")?;
        let params = top.get(text, "params")?;
        let result = top.get(text, "result")?;
        let error = top.get(text, "error")?;
        let Some(method) = method else {
            return self.response(text, top, id_span, result, error);
        };
        if result.is_some() || error.is_some() {
            return Err(Fault::Shape("a message with \"method\" cannot have \"result\" or \"error\""));
        }
        let method =
            string(text, method).ok_or(Fault::Shape("member \"method\" must be a string"))?.into_owned();
        let params = match (params, self.params) {
            (None, _) => Params::Absent,
            (Some(span), _) if span.of(text) == b"null" => Params::Null(span),
            (Some(_), Some(body)) => {
                check_meta(text, &body)?;
                Params::Object(body)
            }
            (Some(_), None) => return Err(Fault::Shape("member \"params\" must be an object")),
        };
        let text = text.clone();
        let Some(id_span) = id_span else {
            return Ok(Message::Notification(Notification { text, top, method, params }));
        };
        let id =
            Id::accept(&text, id_span).ok_or(Fault::Shape("member \"id\" must be a string or an integer"))?;
        Ok(Message::Request(Request { text, top, id, id_span, method, params }))
    }

    fn response(
        self,
        text: &Bytes,
        top: Object,
        id: Option<Span>,
        result: Option<Span>,
        error: Option<Span>,
    ) -> Result<Message, Fault> {
        // Serialisers that write every member put `null` beside the one that counts.
        let null = |span: &Span| span.of(text) == b"null";
        let (result, error) = match (result, error) {
            (Some(result), Some(error)) if null(&error) => (Some(result), None),
            (Some(result), Some(error)) if null(&result) => (None, Some(error)),
            both => both,
        };
        let reply = match (result, error) {
            (Some(_), None) => {
                let body = self.result.ok_or(Fault::Shape("member \"result\" must be an object"))?;
                if body.object.get(text, "_meta")?.is_some_and(|meta| !null(&meta)) {
                    check_meta(text, &body)?;
                }
                Reply::Result(body)
            }
            (None, Some(_)) => {
                let object = self.error.ok_or(Fault::Shape("member \"error\" must be an object"))?;
                Reply::Error(RpcError::read(text, &object)?)
            }
            (Some(_), Some(_)) => {
                return Err(Fault::Shape("an answer cannot have both \"result\" and \"error\""));
            }
            (None, None) => {
                return Err(Fault::Shape("the message has neither \"method\" nor \"result\" nor \"error\""));
            }
        };
        let id = match id {
            Some(span) if span.of(text) == b"null" => None,
            Some(span) => {
                Id::accept(text, span).ok_or(Fault::Shape("member \"id\" must be a string or an integer"))?;
                Some(span)
            }
            None => None,
        };
        Ok(Message::Response(Response { text: text.clone(), top, id, reply }))
    }
}

/// `_meta` may occur once and is an object (spec basic/index, `_meta`).
fn check_meta(text: &Bytes, body: &Body) -> Result<(), Fault> {
    match (body.object.get(text, "_meta")?, &body.meta) {
        (Some(_), None) => Err(Fault::Shape("member \"_meta\" must be an object")),
        (None, _) | (Some(_), Some(_)) => Ok(()),
    }
}

impl RpcError {
    fn read(text: &Bytes, object: &Object) -> Result<Self, Fault> {
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
        let raw = span.of(&self.text);
        let digits = raw.strip_prefix(b"\"").and_then(|raw| raw.strip_suffix(b"\"")).unwrap_or(raw);
        std::str::from_utf8(digits).is_ok_and(|digits| digits.parse() == Ok(number))
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
