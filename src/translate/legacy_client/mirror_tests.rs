//! Headers that repeat parts of a request, by vector or case id; values from the table of the specification.
#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::schema::header::of;
use crate::translate::legacy_client::testing::{LIMITS, asked};
use crate::wire::json::UNBOUNDED;

const SCHEMA: &str = r#"{"type":"object","properties":{
    "region":{"type":"string","x-mcp-header":"Region"},
    "n":{"type":"integer","x-mcp-header":"N"},
    "b":{"type":"boolean","x-mcp-header":"B"},
    "o":{"type":"object","properties":{"i":{"properties":{"d\u0065ep":{"type":"string","x-mcp-header":"Deep"}}}}},
    "plain":{"type":"string"}}}"#;

fn mirrors(schema: &str) -> Mirrors {
    let object = object(schema.as_bytes(), Span::new(0, schema.len()), UNBOUNDED).unwrap();
    of(schema.as_bytes(), &object)
}

fn sent(params: &str) -> Vec<(String, String)> {
    let all = headers(&mirrors(SCHEMA), &asked("tools/call", params), LIMITS);
    all.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect()
}

fn one(arguments: &str) -> Option<String> {
    let all = sent(&format!(r#"{{"name":"t","arguments":{arguments}}}"#));
    assert!(all.len() <= 1, "{all:?}");
    all.into_iter().next().map(|(_, value)| value)
}

#[test]
fn d78_every_annotated_value_has_its_header() {
    let all = sent(
        r#"{"name":"t","arguments":{"plain":"p","o":{"i":{"deep":"d"}},"b":false,"n":42,"region":"us-west1"}}"#,
    );
    let expected = [
        ("mcp-param-region", "us-west1"),
        ("mcp-param-n", "42"),
        ("mcp-param-b", "false"),
        ("mcp-param-deep", "d"),
    ];
    assert_eq!(all, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
}

#[test]
fn d78_text_is_written_as_the_table_says() {
    for (text, header) in [
        ("us-west1", "us-west1"),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        (r"line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        (r"X\r\nEvil: 1", "=?base64?WA0KRXZpbDogMQ==?="),
        (r"\u0061", "a"),
        ("", "=?base64??="),
    ] {
        assert_eq!(one(&format!(r#"{{"region":"{text}"}}"#)).as_deref(), Some(header), "{text}");
    }
}

#[test]
fn d78_what_has_no_value_has_no_header() {
    for arguments in [
        "{}",
        r#"{"region":null}"#,
        r#"{"region":{}}"#,
        r#"{"region":["a"]}"#,
        r#"{"region":"\ud800"}"#,
        // Two readers could take either.
        r#"{"region":"a","region":"b"}"#,
        r#"{"o":null}"#,
        r#"{"o":"i"}"#,
        r#"{"o":{"i":[{"deep":"d"}]}}"#,
        r#"{"o.i.deep":"d"}"#,
        "null",
        "[]",
    ] {
        assert_eq!(one(arguments), None, "{arguments}");
    }
    assert_eq!(sent(r#"{"name":"t"}"#), []);
    let twice = r#"{"name":"t","arguments":{"n":1},"arguments":{"n":2}}"#;
    assert_eq!(sent(twice), []);
}

/// Servers compare integers as numbers, but only in decimal notation; some of them exactly.
#[test]
fn d78_numbers_are_written_in_decimal_notation() {
    for (number, header) in [
        ("42", "42"),
        ("-7", "-7"),
        ("0", "0"),
        ("-0", "0"),
        ("42.0", "42"),
        ("1e3", "1000"),
        ("1.5E+1", "15"),
        ("-12.340e1", "-123.4"),
        ("120e-1", "12"),
        ("0.05", "0.05"),
        ("5e-3", "0.005"),
        ("0e5", "0"),
        ("9007199254740993", "9007199254740993"),
    ] {
        assert_eq!(one(&format!(r#"{{"n":{number}}}"#)).as_deref(), Some(header), "{number}");
    }
    for number in ["1e400", "1e99999999999999999999", "1e-9223372036854775808"] {
        assert_eq!(one(&format!(r#"{{"n":{number}}}"#)), None, "{number}");
    }
}

/// A value of another type than the schema's is repeated too: that it is wrong is for the server to say.
#[test]
fn d78_a_value_of_the_wrong_type_is_repeated() {
    assert_eq!(one(r#"{"n":"abc"}"#).as_deref(), Some("abc"));
    assert_eq!(one(r#"{"region":5}"#).as_deref(), Some("5"));
    assert_eq!(one(r#"{"b":"true"}"#).as_deref(), Some("true"));
}

#[test]
fn d79_the_name_is_repeated_in_a_form_that_a_header_can_hold() {
    let of = |method: &str, params: &str| {
        let value = name(&asked(method, params), Method::of(method))?;
        Some(value.to_str().unwrap().to_owned())
    };
    assert_eq!(
        of("resources/read", r#"{"uri":"file:///é"}"#).as_deref(),
        Some("=?base64?ZmlsZTovLy/DqQ==?=")
    );
    assert_eq!(of("tools/call", r#"{"name":"ech\u006f"}"#).as_deref(), Some("echo"));
    assert_eq!(of("prompts/get", r#"{"name":"p"}"#).as_deref(), Some("p"));
    for (method, params) in [
        ("tools/list", r#"{"name":"x"}"#),
        ("tools/call", r#"{"name":5}"#),
        ("tools/call", "{}"),
        ("tools/call", r#"{"name":"a","name":"b"}"#),
    ] {
        assert_eq!(of(method, params), None, "{method} {params}");
    }
}
