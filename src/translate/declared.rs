//! What a modern request declares about its client: capabilities, log level, name.
//!
//! Rules: A4.2-A4.4, A9.1; what the capabilities mean is in `capabilities`. Only reads; the checks that refuse a request stand in `downstream::modern`.

use crate::wire::json::Span;
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
