//! JSON as hosts write it: into the same values as TOML, so that both go through the same checks.
//!
//! Owns the reading: comments and commas before a closing bracket are let pass, as some hosts write them; a name that stands
//! twice is refused, as two readers could take it for two things. No error shows a value. Does not own what is in the file.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use toml::{Table, Value};

use super::error::ConfigError;

/// Whether a text is JSON rather than TOML, which begins with neither.
pub(super) fn looks_like(text: &str) -> bool {
    let text = text.trim_start_matches(BOM).trim_start();
    ["{", "//", "/*"].iter().any(|start| text.starts_with(start))
}

/// The value of a text. What is `null` in an object is as if it were not there.
pub(super) fn parse(text: &str) -> Result<Value, ConfigError> {
    let plain = plain(text.trim_start_matches(BOM));
    match serde_json::from_str::<Json>(&plain) {
        Ok(Json(value)) => Ok(value.unwrap_or(Value::Boolean(false))),
        Err(error) => {
            let text = error.to_string();
            let message = text.split(" at line ").next().unwrap_or_default().to_owned();
            let (line, column) = (error.line(), error.column().max(1));
            Err(ConfigError::Syntax { line, column, language: "JSON", message })
        }
    }
}

const BOM: char = '\u{feff}';

/// The same text with blanks in the place of comments and superfluous commas, so that places in it stay what they are.
fn plain(text: &str) -> String {
    let mut out: Vec<u8> = text.as_bytes().to_vec();
    let (mut at, mut comma, mut before) = (0, None, b'[');
    while let Some(byte) = out.get(at).copied() {
        let rest = &text.as_bytes()[at..];
        let length = match byte {
            b'"' => string_length(rest),
            b'/' if rest.starts_with(b"//") => memchr::memchr(b'\n', rest).unwrap_or(rest.len()),
            b'/' if rest.starts_with(b"/*") => {
                memchr::memmem::find(rest, b"*/").map_or(rest.len(), |end| end + 2)
            }
            _ => 1,
        };
        let end = (at + length).min(out.len());
        match byte {
            b'/' if length > 1 => blank(&mut out[at..end]),
            b',' => comma = (!b"[{,:".contains(&before)).then_some(at),
            b'}' | b']' => comma.take().into_iter().for_each(|comma| out[comma] = b' '),
            other if other.is_ascii_whitespace() => {}
            _ => comma = None,
        }
        if !(byte.is_ascii_whitespace() || byte == b'/') {
            before = byte;
        }
        at = end;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Lines stay lines.
fn blank(bytes: &mut [u8]) {
    bytes.iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
}

/// From its first quote to its last.
fn string_length(rest: &[u8]) -> usize {
    let mut escaped = false;
    let closes = |byte: &u8| {
        let closes = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        closes
    };
    rest[1..].iter().position(closes).map_or(rest.len(), |at| at + 2)
}

/// `None` is `null`.
struct Json(Option<Value>);

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json(None))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json(Some(Value::Boolean(value))))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json(Some(Value::Integer(value))))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        // What is too large for an integer is not exact in JSON either.
        Ok(Json(Some(i64::try_from(value).map_or(Value::Float(value as f64), Value::Integer))))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json(Some(Value::Float(value))))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json(Some(Value::String(value.to_owned()))))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut all = Vec::new();
        while let Some(Json(item)) = items.next_element()? {
            // Nothing else has a place for it, and no check lets an empty table pass for a text.
            all.push(item.unwrap_or_else(|| Value::Table(Table::new())));
        }
        Ok(Json(Some(Value::Array(all))))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Json, A::Error> {
        let (mut table, mut seen) = (Table::new(), std::collections::BTreeSet::new());
        while let Some(name) = members.next_key::<Cow<'de, str>>()? {
            if !seen.insert(name.clone()) {
                let name = super::error::quoted(&name);
                return Err(de::Error::custom(format_args!("the name {name} stands twice in one object")));
            }
            if let Json(Some(value)) = members.next_value()? {
                table.insert(name.into_owned(), value);
            }
        }
        Ok(Json(Some(Value::Table(table))))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn toml(text: &str) -> Value {
        Value::Table(toml::from_str(text).unwrap())
    }

    #[test]
    fn values_are_those_of_toml() {
        let text = r#"{"a": {"b": [1, -2.5, "x\"//y", true, null], "c": null}, "d": 18446744073709551615}"#;
        let expected = toml("a.b = [1, -2.5, 'x\"//y', true, {}]\nd = 18446744073709551615.0");
        assert_eq!(parse(text).unwrap(), expected);
        assert_eq!(parse("null").unwrap(), Value::Boolean(false));
    }

    #[test]
    fn comments_and_commas_at_the_end_are_let_pass() {
        let text = "\u{feff}// first\n{ /* a\n , } */ \"a\": [1, 2, /* , */ ], // \"b\": 3\n \"c\": \"/* x */ , ]\", }";
        assert_eq!(parse(text).unwrap(), toml("a = [1, 2]\nc = '/* x */ , ]'"));
        for (text, place) in [
            ("{ /* a\n\n */ \"a\": }", "line 3, column 10"),
            ("{\"a\": 1,, \"b\": 2}", "line 1, column 9"),
            ("[,]", "line 1, column 2"),
            ("{\"a\": \"abcdef", "line 1, column 13"),
            ("{\"a\": /* abcdef", "line 1, column 15"),
            ("", "line 1, column 1"),
        ] {
            let error = parse(text).map(|value| value.to_string()).unwrap_or_else(|error| error.to_string());
            assert!(error.starts_with(place) && error.contains("not JSON"), "{text}: {error}");
            assert!(!error.contains("abcdef"), "{error}");
        }
    }

    #[test]
    fn a_name_stands_once() {
        let error = parse("{\"a\": {\"b\": 1,\n \"\\u0062\": 2}}").unwrap_err().to_string();
        assert!(error.starts_with("line 2, ") && error.contains("the name \"b\" stands twice"), "{error}");
    }

    #[test]
    fn json_is_told_from_toml() {
        for text in ["{}", " \n{", "// x\n{}", "/* */ {}", "\u{feff}{}"] {
            assert!(looks_like(text), "{text}");
        }
        for text in ["", "[upstream.a]", "# {}", "a = {}"] {
            assert!(!looks_like(text), "{text}");
        }
    }
}
