//! Request and response header values as both eras define them: names, the base64 form of values, `Accept`,
//! `Content-Type`.
//!
//! Owns how one value is read and written (specification 2026-07-28, Streamable HTTP, "Value Encoding"; A13, C25).
//! Does not own which headers a request must have or what they are compared with (`downstream`), nor which ones are
//! passed on (`upstream`).

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A13.1
pub const MCP_PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// A13.2
pub const MCP_METHOD: &str = "mcp-method";
/// A13.2
pub const MCP_NAME: &str = "mcp-name";
/// A13.3: the rest of the name is the tool's `x-mcp-header`.
pub const MCP_PARAM_PREFIX: &str = "mcp-param-";
/// A13.4
pub const MCP_SESSION_ID: &str = "mcp-session-id";
/// A13.5
pub const LAST_EVENT_ID: &str = "last-event-id";

pub const JSON: &str = "application/json";
pub const EVENT_STREAM: &str = "text/event-stream";
/// What every POST to an upstream says, word for word, whatever the client sent (C25).
pub const ACCEPT_BOTH: &str = "application/json, text/event-stream";

const MARKER_START: &str = "=?base64?";
const MARKER_END: &str = "?=";

/// Why the value of an `Mcp-Name` or `Mcp-Param-*` header cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HeaderFault {
    #[error("it has a character other than visible ASCII, space and tab, and is not in base64 form")]
    NotVisible,
    #[error("what stands between `=?base64?` and `?=` is not base64 with padding")]
    NotBase64,
    #[error("its base64 form does not hold UTF-8")]
    NotUtf8,
}

/// The text that a header value stands for.
pub fn decode_value(value: &[u8]) -> Result<Cow<'_, str>, HeaderFault> {
    // Whitespace around a field value is not part of it, and HTTP/2 does not have it removed on the way.
    let value = trim_whitespace(value);
    if !value.iter().all(|&byte| is_field_byte(byte)) {
        return Err(HeaderFault::NotVisible);
    }
    let text = std::str::from_utf8(value).map_err(|_| HeaderFault::NotVisible)?;
    if !is_marked(text) {
        return Ok(Cow::Borrowed(text));
    }
    // In `=?base64?=` the two markers share a character: marked, but with nothing that could be decoded.
    let coded = text
        .strip_prefix(MARKER_START)
        .and_then(|rest| rest.strip_suffix(MARKER_END))
        .ok_or(HeaderFault::NotBase64)?;
    let bytes = STANDARD.decode(coded).map_err(|_| HeaderFault::NotBase64)?;
    String::from_utf8(bytes).map(Cow::Owned).map_err(|_| HeaderFault::NotUtf8)
}

/// The header value that stands for a text: the text itself if a header can carry it unchanged.
pub fn encode_value(text: &str) -> Cow<'_, str> {
    // An empty header value is legal but some stacks drop it.
    let plain = !text.is_empty()
        && text.bytes().all(is_field_byte)
        && trim_whitespace(text.as_bytes()).len() == text.len()
        && !is_marked(text);
    if plain {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("{MARKER_START}{}{MARKER_END}", STANDARD.encode(text)))
    }
}

/// Without the whitespace that HTTP allows around a field value; other control bytes stay, to be refused.
fn trim_whitespace(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

fn is_field_byte(byte: u8) -> bool {
    matches!(byte, b'\t' | b' '..=b'~')
}

fn is_marked(text: &str) -> bool {
    text.starts_with(MARKER_START) && text.ends_with(MARKER_END)
}

/// What forms of answer a client takes. Neither: the caller answers 406.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepts {
    pub json: bool,
    pub event_stream: bool,
}

impl Accepts {
    /// Reads all `Accept` lines of a request as one list (C25).
    ///
    /// The most specific range that covers a type decides, so `*/*, text/event-stream;q=0` takes JSON only. What
    /// cannot be read is passed over; if nothing is left, or there was no line at all, both forms are taken.
    pub fn parse<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut lines = lines.into_iter();
        let begins = [lines.next(), lines.next()];
        // What clients are told to send, and almost all do.
        if let [Some(b"application/json, text/event-stream" | b"text/event-stream, application/json"), None] =
            begins
        {
            return Self { json: true, event_stream: true };
        }
        let mut any = false;
        let mut json = Preference::default();
        let mut event_stream = Preference::default();
        for line in begins.into_iter().flatten().chain(lines) {
            for range in split_unquoted(line, b',').filter_map(Range::parse) {
                any = true;
                json.consider(&range, "application", "json");
                event_stream.consider(&range, "text", "event-stream");
            }
        }
        Self { json: !any || json.admitted, event_stream: !any || event_stream.admitted }
    }

    pub fn nothing(self) -> bool {
        !self.json && !self.event_stream
    }
}

/// What the ranges read so far say about one media type.
#[derive(Default)]
struct Preference {
    specificity: u8,
    admitted: bool,
}

impl Preference {
    fn consider(&mut self, range: &Range<'_>, kind: &str, subtype: &str) {
        let specificity = match (range.kind, range.subtype) {
            ("*", "*") => 1,
            (k, "*") if k.eq_ignore_ascii_case(kind) => 2,
            (k, s) if k.eq_ignore_ascii_case(kind) && s.eq_ignore_ascii_case(subtype) => 3,
            _ => return,
        };
        if specificity > self.specificity {
            *self = Self { specificity, admitted: range.wanted };
        } else if specificity == self.specificity {
            // The same range with and without `q=0`: read in the client's favour.
            self.admitted |= range.wanted;
        }
    }
}

/// One media range, such as `text/*;q=0.5`. Parameters other than `q` do not matter for the two types at hand.
struct Range<'a> {
    kind: &'a str,
    subtype: &'a str,
    wanted: bool,
}

impl<'a> Range<'a> {
    fn parse(range: &'a [u8]) -> Option<Self> {
        let mut parts = split_unquoted(range, b';');
        let (kind, subtype) = std::str::from_utf8(parts.next()?).ok()?.trim_ascii().split_once('/')?;
        if !is_token(kind) || !is_token(subtype) {
            return None;
        }
        let mut wanted = true;
        for parameter in parts {
            let Some((name, value)) = std::str::from_utf8(parameter).ok().and_then(|p| p.split_once('='))
            else {
                continue;
            };
            if name.trim_ascii().eq_ignore_ascii_case("q") {
                wanted = is_wanted(value.trim_ascii())?;
            }
        }
        Some(Self { kind, subtype, wanted })
    }
}

/// Whether a weight is above zero; `None` if it is not a number in digits.
fn is_wanted(weight: &str) -> Option<bool> {
    let (whole, fraction) = weight.split_once('.').unwrap_or((weight, ""));
    let digits = whole.bytes().chain(fraction.bytes());
    if whole.is_empty() || !digits.clone().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    Some(digits.into_iter().any(|digit| digit != b'0'))
}

fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// Splits at a separator, but not inside a quoted string.
fn split_unquoted(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let mut quoted = false;
    let mut escaped = false;
    text.split(move |&byte| {
        if escaped {
            escaped = false;
        } else if quoted && byte == b'\\' {
            escaped = true;
        } else if byte == b'"' {
            quoted = !quoted;
        }
        byte == separator && !quoted
    })
}

/// What a body is, by its `Content-Type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentType {
    Json,
    EventStream,
    Other,
}

impl ContentType {
    /// Parameters, such as a charset, are allowed and ignored; case does not matter.
    pub fn parse(value: &[u8]) -> Self {
        let end = memchr::memchr(b';', value).unwrap_or(value.len());
        let essence = value[..end].trim_ascii();
        if essence.eq_ignore_ascii_case(JSON.as_bytes()) {
            Self::Json
        } else if essence.eq_ignore_ascii_case(EVENT_STREAM.as_bytes()) {
            Self::EventStream
        } else {
            Self::Other
        }
    }
}

#[cfg(test)]
mod tests;
