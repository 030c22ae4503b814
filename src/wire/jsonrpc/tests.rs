//! Envelope rules: kinds of message, ids in their own type, duplicates, bounds.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::wire::json::Limits;

const LIMITS: Limits = Limits { nesting: 16, members: 16 };

fn read(text: &str) -> Result<Message, Malformed> {
    parse(Bytes::copy_from_slice(text.as_bytes()), LIMITS)
}

fn request(text: &str) -> Request {
    match read(text).unwrap() {
        Message::Request(request) => request,
        other => panic!("{other:?}"),
    }
}

#[test]
fn c18_ids_keep_their_text_and_type() {
    let long = format!("\"{}\"", "x".repeat(200));
    for id in
        ["\"1\"", "\"init-1\"", "\"\"", "\"0\"", "0", "-1", "\"\\u0031\"", "12345678901234567890", &long]
    {
        let text = format!(r#"{{"method":"m","jsonrpc":"2.0","id":{id}}}"#);
        assert_eq!(request(&text).id.raw(), id);
        assert_eq!(
            error(Some(&request(&text).id), -1, "m", None),
            format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-1,"message":"m"}}}}"#)
        );
    }
}

#[test]
fn c21_null_or_odd_ids_are_refused_and_a_missing_one_makes_a_notification() {
    for id in ["null", "1.5", "1e3", "true", "[]", "{}"] {
        let fault = read(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#)).unwrap_err();
        assert_eq!((fault.fault.code(), fault.id), (code::INVALID_REQUEST, None), "{id}");
    }
    assert!(matches!(read(r#"{"jsonrpc":"2.0","method":"m"}"#), Ok(Message::Notification(_))));
}

#[test]
fn c31_arrays_and_other_values_are_refused() {
    for text in ["[]", " \n[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}]"] {
        assert_eq!(read(text).unwrap_err().fault, Fault::Batch);
    }
    for text in ["1", "\"x\"", "null"] {
        assert_eq!(read(text).unwrap_err().fault.code(), code::INVALID_REQUEST);
    }
    for text in ["", "{", "[", "[}", "{]", "\u{0}"] {
        assert_eq!(read(text).unwrap_err().fault.code(), code::PARSE_ERROR, "{text:?}");
    }
}

#[test]
fn c32_params_null_absent_or_of_another_type() {
    assert!(matches!(
        request(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":null}"#).params,
        Params::Null(_)
    ));
    assert!(matches!(request(r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#).params, Params::Absent));
    for params in ["[]", "\"x\"", "1", "{\"_meta\":1}", "{\"_meta\":{},\"_meta\":{}}"] {
        let fault =
            read(&format!(r#"{{"jsonrpc":"2.0","id":"a","method":"m","params":{params}}}"#)).unwrap_err();
        assert_eq!(fault.fault.code(), code::INVALID_REQUEST);
        assert_eq!(fault.id.unwrap().raw(), "\"a\"", "the caller's id is known by then");
    }
}

#[test]
fn duplicates_of_deciding_members_are_refused_also_under_escapes() {
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"id":1,"method":"m"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m","m\u0065thod":"n"}"#,
        r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"m"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{},"params":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"result":{}}"#,
    ] {
        assert!(matches!(read(text).unwrap_err().fault, Fault::Duplicate(_)), "{text}");
    }
    // Deeper ones pass as bytes.
    request(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"arguments":{"a":1,"a":2}}}"#);
}

#[test]
fn answers_are_told_apart() {
    let Message::Response(response) =
        read(r#"{"jsonrpc":"2.0","id":"5","error":{"code":-32601,"message":"a\nb"}}"#).unwrap()
    else {
        panic!("an answer");
    };
    assert!(response.answers(5) && !response.answers(6));
    let Reply::Error(error) = &response.reply else { panic!("an error") };
    assert_eq!((error.code, error.message(&response.text).as_ref()), (-32601, "a\nb"));
    for text in [
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":[]}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":"x"}}"#,
        r#"{"jsonrpc":"1.0","id":1,"result":{}}"#,
        r#"{"id":1,"result":{}}"#,
    ] {
        assert!(read(text).is_err(), "{text}");
    }
}

#[test]
fn the_id_is_found_in_a_text_that_is_too_deep_or_cut_off() {
    let deep = format!(
        r#"{{"jsonrpc":"2.0","method":"m","params":{}1{},"id":"d"}}"#,
        "[".repeat(99),
        "]".repeat(99)
    );
    assert_eq!(read(&deep).unwrap_err().id.unwrap().raw(), "\"d\"");
    let cut = |text: &'static str| find_id(&Bytes::from_static(text.as_bytes())).map(|id| id.raw().clone());
    assert_eq!(cut(r#"{"id":7,"params":{"a":"xxx"#).unwrap(), "7");
    assert_eq!(cut(r#"{"id":7"#), None, "it may go on");
    assert_eq!(cut(r#"{"params":{"id":7,"a":"xxx"#), None);
    assert_eq!(cut(r#"{"id":7,"id":8,"params":"x"#), None);
}
