//! Vectors of a client's answers, by rule or vector id; expected values are written from the rules.
#![allow(clippy::unwrap_used)]

use super::super::round::tests::{LIMITS, client, one, response, result};
use super::{Restore, accepts};

const FORM: (&str, &str) = (
    "elicitation/create",
    r#"{"message":"m","requestedSchema":{"type":"object","properties":{"n":{"type":"string"}}}}"#,
);
const URL: (&str, &str) = ("elicitation/create", r#"{"mode":"url","message":"m","url":"https://s/x"}"#);
const SAMPLING: (&str, &str) = ("sampling/createMessage", r#"{"messages":[],"maxTokens":1}"#);
const ROOTS: (&str, &str) = ("roots/list", "{}");

fn restore((method, params): (&str, &str)) -> Restore {
    one(method, params).unwrap().ask(1, &client("2025-11-25"), Some("e")).unwrap().restore
}

fn answered(question: (&str, &str), answer: &str) -> Result<String, String> {
    let answer = restore(question).answer(&result(answer), LIMITS);
    answer.map(|answer| String::from_utf8(answer.to_vec()).unwrap()).map_err(|refusal| refusal.to_string())
}

/// D84, A4.15, A8.7, B2.7.
#[test]
fn d84_an_answer_to_a_form() {
    for (given, expected) in [
        (
            r#"{ "action" : "accept", "content" : {"n": "\u00e9"} }"#,
            r#"{"action":"accept","content":{"n":"\u00e9"}}"#,
        ),
        (
            r#"{"_meta":{},"action":"accept","content":{"n":"x"},"resultType":"complete","task":{},"more":1}"#,
            r#"{"action":"accept","content":{"n":"x"},"more":1}"#,
        ),
        (
            r#"{"action":"accept","content":{"a":["x"],"b":2.50,"c":true}}"#,
            r#"{"action":"accept","content":{"a":["x"],"b":2.50,"c":true}}"#,
        ),
        (r#"{"action":"accept","content":{"n":null,"b":1}}"#, r#"{"action":"accept","content":{"b":1}}"#),
        (r#"{"action":"accept"}"#, r#"{"content":{},"action":"accept"}"#),
        (r#"{"action":"accept","content":null}"#, r#"{"action":"accept","content":{}}"#),
        (r#"{"action":"decline","content":{"n":"x"},"_meta":{}}"#, r#"{"action":"decline"}"#),
        (r#"{"action":"cancel","content":null}"#, r#"{"action":"cancel"}"#),
    ] {
        assert_eq!(answered(FORM, given).unwrap(), expected, "{given}");
    }
    for given in [
        "{}",
        r#"{"action":"yes"}"#,
        r#"{"action":"accept","action":"decline"}"#,
        r#"{"action":"accept","content":[]}"#,
        r#"{"action":"accept","content":{"n":{}}}"#,
        r#"{"action":"accept","content":{"n":[1]}}"#,
        r#"{"roots":[]}"#,
    ] {
        let refused = answered(FORM, given).unwrap_err();
        assert!(
            refused.starts_with("the client's answer to the server's elicitation/create request"),
            "{refused}"
        );
    }
}

/// D90: consent has no content.
#[test]
fn d90_an_answer_to_a_url() {
    assert_eq!(
        answered(URL, r#"{"action":"accept","content":{"a":1},"_meta":{}}"#).unwrap(),
        r#"{"action":"accept"}"#
    );
    assert_eq!(answered(URL, r#"{"action":"decline"}"#).unwrap(), r#"{"action":"decline"}"#);
    answered(URL, "{}").unwrap_err();
    for (value, accepted) in [
        (r#"{"action":"accept"}"#, true),
        (r#"{"content":{},"action":"\u0061ccept"}"#, true),
        (r#"{"action":"decline"}"#, false),
        (r#"{"roots":[]}"#, false),
    ] {
        assert_eq!(accepts(&value.into()), accepted, "{value}");
    }
}

/// A4.15, A8.11, A8.12.
#[test]
fn a4_15_an_answer_to_sampling() {
    let with = |content: &str, more: &str| {
        format!(r#"{{"role":"assistant","model":"m","content":{content}{more}}}"#)
    };
    let block = r#"{"type":"text","text":"a"}"#;
    for same in [
        with(block, r#","stopReason":"toolUse""#),
        with(block, r#","_meta":{"a":1}"#),
        with(r#"{"type":"audio","data":"","mimeType":""}"#, ""),
        with(&format!(r#"[{block},{{"type":"tool_use","id":"i","name":"n","input":{{"a":1e400}}}}]"#), ""),
        with("[]", ""),
        // The server's revision has values of any kind.
        with(r#"[{"type":"tool_result","toolUseId":"t","content":[],"structuredContent":[1]}]"#, ""),
    ] {
        assert_eq!(answered(SAMPLING, &same).unwrap(), same);
    }
    for more in [
        r#","stopReason":null,"_meta":null"#,
        r#","_meta":{"io.modelcontextprotocol/related-task":{},"io.modelcontextprotocol/serverInfo":{}}"#,
        r#","resultType":"complete","task":{}"#,
    ] {
        assert_eq!(answered(SAMPLING, &with(block, more)).unwrap(), with(block, ""), "{more}");
    }
    assert_eq!(
        answered(SAMPLING, &with(r#"{"type":"text","text":"a","annotations":null,"_meta":null}"#, ""))
            .unwrap(),
        with(block, "")
    );
    for given in [
        r#"{"role":"assistant","content":{"type":"text","text":""}}"#.to_owned(),
        r#"{"role":"system","model":"m","content":{"type":"text","text":""}}"#.to_owned(),
        r#"{"role":"user","model":"m"}"#.to_owned(),
        with("1", ""),
        with("[1]", ""),
        with(r#"{"type":"resource","resource":{}}"#, ""),
        with(r#"{"type":"text"}"#, ""),
        with(block, r#","stopReason":1"#),
        with(block, r#","role":"user""#),
        r#"{"action":"accept"}"#.to_owned(),
    ] {
        answered(SAMPLING, &given).unwrap_err();
    }
}

/// A8.13, A8.14.
#[test]
fn a8_13_an_answer_with_roots() {
    for (given, expected) in [
        (r#"{"roots":[]}"#, r#"{"roots":[]}"#),
        (
            r#"{"roots":[{"uri":"file:///\u00e9","name":"n","_meta":{"a":1}},{"uri":"x"}],"_meta":{},"resultType":"complete"}"#,
            r#"{"roots":[{"uri":"file:///\u00e9","name":"n","_meta":{"a":1}},{"uri":"x"}]}"#,
        ),
        (r#"{"roots":[{"uri":"file:///a","name":null,"_meta":null}]}"#, r#"{"roots":[{"uri":"file:///a"}]}"#),
    ] {
        assert_eq!(answered(ROOTS, given).unwrap(), expected);
    }
    for given in [
        "{}",
        r#"{"roots":{}}"#,
        r#"{"roots":[1]}"#,
        r#"{"roots":[{}]}"#,
        r#"{"roots":[{"uri":"a","name":1}]}"#,
    ] {
        answered(ROOTS, given).unwrap_err();
    }
}

/// D88, A11.13, B2.6.
#[test]
fn d88_an_error_is_no_answer() {
    let error = |error: &str| {
        let response = response(&format!(r#"{{"jsonrpc":"2.0","id":1,"error":{error}}}"#));
        restore(SAMPLING).answer(&response, LIMITS).unwrap_err().to_string()
    };
    assert_eq!(
        error(r#"{"code":-1,"message":"User rejected\nsampling"}"#),
        "the client answered the server's sampling/createMessage request with error -1: User rejected sampling"
    );
    assert_eq!(
        error(r#"{"code":-32601}"#),
        "the client answered the server's sampling/createMessage request with error -32601"
    );
}
