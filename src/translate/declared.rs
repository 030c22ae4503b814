//! What a modern request declares about its client: capabilities, log level, name.
//!
//! Rules: A4.2-A4.4, A9.1; what the capabilities mean is in `capabilities`. Only reads; the checks that refuse a request stand in `downstream::modern`.

use crate::wire::json::{Cursor, Limits, Object, Span};
use crate::wire::jsonrpc::{Request, string};
pub use crate::wire::log_level::LogLevel;
use crate::wire::meta;

/// The raw `clientCapabilities` object.
pub fn capabilities(request: &Request) -> Option<Span> {
    request.params.meta()?.first(&request.text, meta::CLIENT_CAPABILITIES)
}

/// The raw `clientInfo` object.
pub fn client_info(request: &Request) -> Option<&[u8]> {
    Some(request.params.meta()?.first(&request.text, meta::CLIENT_INFO)?.of(&request.text))
}

/// The level below which the request wants no log messages; `None`: it wants none at all (A2.4).
pub fn log_level(request: &Request) -> Option<LogLevel> {
    let span = request.params.meta()?.first(&request.text, meta::LOG_LEVEL)?;
    LogLevel::parse(&string(&request.text, span)?)
}

/// The raw progress token of a request.
pub fn progress_token(request: &Request) -> Option<&[u8]> {
    Some(request.params.meta()?.first(&request.text, meta::PROGRESS_TOKEN)?.of(&request.text))
}

/// For texts that a bounded scan has passed over, and for texts of our own.
pub const UNBOUNDED: Limits = Limits { nesting: usize::MAX, members: usize::MAX };

/// The member's value; a member that occurs twice has none, since two readers could take either.
pub fn once(object: &Object, text: &[u8], name: &str) -> Option<Span> {
    object.get(text, name).ok().flatten()
}

/// Takes the object at `span` apart; `None` if it is no object or breaks a bound.
pub fn object(text: &[u8], span: Span, limits: Limits) -> Option<Object> {
    // Spans of a part are turned into spans of the whole, so that callers keep one text.
    let part = span.of(text);
    let mut cursor = Cursor::on_prefix(part, limits);
    let mut object = cursor.object(|cursor, _| cursor.skip()).ok()?;
    object.shift(span.start);
    Some(object)
}
