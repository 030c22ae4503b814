//! The contents of JSON strings: from raw bytes to text and back.

use std::borrow::Cow;

/// The text of a string's raw contents (between the quotes). `None` if it names half a surrogate pair, which no
/// Rust string can hold; such a string still passes through the proxy as bytes.
pub fn unescape(raw: &[u8]) -> Option<Cow<'_, str>> {
    let text = std::str::from_utf8(raw).ok()?;
    let Some(first) = memchr::memchr(b'\\', raw) else {
        return Some(Cow::Borrowed(text));
    };
    let mut out = String::with_capacity(text.len());
    out.push_str(&text[..first]);
    let mut rest = &text[first..];
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let (decoded, used) = escape(&rest[at + 1..])?;
        out.push(decoded);
        rest = &rest[at + 1 + used..];
    }
    out.push_str(rest);
    Some(Cow::Owned(out))
}

/// `text` as a JSON string, quotes included.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    quote_into(&mut out, text);
    out
}

/// Appends `text` as a JSON string, quotes included.
pub fn quote_into(out: &mut String, text: &str) {
    use std::fmt::Write;
    out.push('"');
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // Separators that weak readers of event streams take for line ends (C14).
            '\u{2028}' | '\u{2029}' | '\u{0}'..='\u{1f}' => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{:04x}", char as u32);
            }
            _ => out.push(char),
        }
    }
    out.push('"');
}

/// Decodes one escape after its backslash: the character and how many bytes it took.
fn escape(rest: &str) -> Option<(char, usize)> {
    Some(match rest.as_bytes().first()? {
        b'"' => ('"', 1),
        b'\\' => ('\\', 1),
        b'/' => ('/', 1),
        b'b' => ('\u{8}', 1),
        b'f' => ('\u{c}', 1),
        b'n' => ('\n', 1),
        b'r' => ('\r', 1),
        b't' => ('\t', 1),
        b'u' => {
            let high = unit(rest.get(1..5)?)?;
            if let Some(char) = char::from_u32(high) {
                return Some((char, 5));
            }
            let low = rest.get(5..11)?.strip_prefix("\\u").and_then(unit)?;
            let both = char::decode_utf16([high as u16, low as u16]).next()?.ok()?;
            (both, 11)
        }
        _ => return None,
    })
}

fn unit(digits: &str) -> Option<u32> {
    u32::from_str_radix(digits, 16).ok()
}
