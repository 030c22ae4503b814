//! A text without the white space that means nothing.

use std::borrow::Cow;

/// `raw`, which a scan has accepted, without white space outside strings.
pub fn compact(raw: &[u8]) -> Cow<'_, [u8]> {
    let space = |byte: &u8| matches!(byte, b' ' | b'\n' | b'\r' | b'\t');
    if !raw.iter().any(space) {
        return Cow::Borrowed(raw);
    }
    let mut out = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(&byte) = rest.first() {
        let take = if byte == b'"' { string(rest) } else { 1 };
        let (token, after) = rest.split_at(take);
        if !space(&byte) {
            out.extend_from_slice(token);
        }
        rest = after;
    }
    Cow::Owned(out)
}

/// How long the string is that `text` begins with, quotes included.
fn string(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(found) = text.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found;
        if text[at] == b'"' {
            return at + 1;
        }
        // The escaped byte is no closing quote.
        at += 2;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_goes_outside_strings_alone() {
        let compacted = |text: &'static str| String::from_utf8_lossy(&compact(text.as_bytes())).into_owned();
        assert_eq!(compacted("{ \"a b\" :\t[ 1e400 ,\r\n-0 ] }"), "{\"a b\":[1e400,-0]}");
        assert_eq!(compacted(r#"["\" \\", "\\ " ]"#), r#"["\" \\","\\ "]"#);
        assert!(matches!(compact(b"{\"a\":1}"), Cow::Borrowed(_)));
    }
}
