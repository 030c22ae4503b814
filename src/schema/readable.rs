//! JSON that has texts and numbers for which the validator's reader has no value.
//!
//! Owns writing another of its kind in the place of each: half a surrogate pair becomes U+FFFD, a number beyond 64-bit floats
//! becomes 0. What is said of where something stands in the schema does not depend on them. Case C62: one escape must not switch
//! a check off.

use memchr::memchr2;

/// `text` is JSON that was scanned before.
pub(super) fn as_readable(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        let end = match byte {
            b'"' => string(text, at, &mut out),
            b'-' | b'0'..=b'9' => number(text, at, &mut out),
            _ => {
                out.push(byte);
                at + 1
            }
        };
        at = end;
    }
    out
}

/// The end of the string that begins at `at`.
fn string(text: &[u8], at: usize, out: &mut Vec<u8>) -> usize {
    let mut from = at;
    let mut at = at + 1;
    while let Some(found) = text.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += found;
        if text[at] == b'"' {
            out.extend_from_slice(&text[from..=at]);
            return at + 1;
        }
        match unit(text, at) {
            Some(0xd800..=0xdbff) if matches!(unit(text, at + 6), Some(0xdc00..=0xdfff)) => at += 12,
            Some(0xd800..=0xdfff) => {
                out.extend_from_slice(&text[from..at]);
                out.extend_from_slice(b"\\ufffd");
                at += 6;
                from = at;
            }
            Some(_) => at += 6,
            None => at += 2,
        }
    }
    out.extend_from_slice(text.get(from..).unwrap_or_default());
    text.len()
}

/// The UTF-16 unit of the escape `\uXXXX` at `at`, if there is one.
fn unit(text: &[u8], at: usize) -> Option<u16> {
    let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// The end of the number that begins at `at`.
fn number(text: &[u8], at: usize, out: &mut Vec<u8>) -> usize {
    let part = |byte: &u8| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
    let length = text[at..].iter().position(|byte| !part(byte)).unwrap_or(text.len() - at);
    let raw = &text[at..at + length];
    let value = std::str::from_utf8(raw).ok().and_then(|raw| raw.parse::<f64>().ok());
    out.extend_from_slice(if value.is_some_and(f64::is_finite) { raw } else { b"0" });
    at + length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c62_what_has_no_value_becomes_one_that_has() {
        for (text, readable) in [
            (r#"{"a":"\ud83d\ude00","b":-1.5e3}"#, r#"{"a":"\ud83d\ude00","b":-1.5e3}"#),
            (
                r#"{"\ud800":"x\udc00\ud800y\\","n":[1e999,-1E999,0]}"#,
                r#"{"\ufffd":"x\ufffd\ufffdy\\","n":[0,0,0]}"#,
            ),
            (r#""\\ud800""#, r#""\\ud800""#),
        ] {
            let out = as_readable(text.as_bytes());
            assert_eq!(String::from_utf8(out.clone()).unwrap(), readable);
            assert!(serde_json::from_slice::<serde_json::Value>(&out).is_ok(), "{readable}");
        }
    }
}
