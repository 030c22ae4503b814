//! Vectors of a server's questions, by rule or vector id; expected values are written from the rules.
//!
//! The helpers serve the vectors of the answers too (`answer_tests`).
#![allow(clippy::unwrap_used)]

use super::capabilities::Capabilities;
use super::question::{Asked, Kind, Need, Question, UrlQuestion, url_required};
use crate::wire::json::Limits;
use crate::wire::jsonrpc::{self, Message, Request};
use crate::wire::payload::Payload;
use bytes::Bytes;

pub(super) const LIMITS: Limits = Limits { nesting: 64, members: 64 };
const SCHEMA: &str = r#"{"type":"object","properties":{"n":{"type":"string"}}}"#;

pub(super) fn request(text: &str) -> Request {
    match jsonrpc::parse(Bytes::copy_from_slice(text.as_bytes()), LIMITS).unwrap() {
        Message::Request(request) => request,
        other => panic!("{other:?}"),
    }
}

pub(super) fn text(payload: &Payload) -> String {
    String::from_utf8(payload.to_bytes().to_vec()).unwrap()
}

fn asked(method: &str, params: &str, capabilities: &str) -> Asked {
    let declares = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"_meta":{{"io.modelcontextprotocol/clientCapabilities":{capabilities}}}}}}}"#
    );
    let text = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{params}}}"#);
    Question::of(&request(&text), &Capabilities::of(&request(&declares), LIMITS), LIMITS)
}

pub(super) fn question(method: &str, params: &str) -> Question {
    match asked(method, params, "{}") {
        Asked::Question(question) => question,
        other => panic!("{other:?}"),
    }
}

fn entry(method: &str, params: &str) -> String {
    text(question(method, params).entry())
}

/// The params of the entry that a question with these becomes.
fn elicited(params: &str) -> String {
    let entry = entry("elicitation/create", params);
    let params = entry.strip_prefix(r#"{"method":"elicitation/create","params":"#).unwrap();
    params.strip_suffix('}').unwrap().to_owned()
}

fn sampled(params: &str) -> String {
    let entry = entry("sampling/createMessage", params);
    let params = entry.strip_prefix(r#"{"method":"sampling/createMessage","params":"#).unwrap();
    params.strip_suffix('}').unwrap().to_owned()
}

fn malformed(method: &str, params: &str) {
    let read = asked(method, params, r#"{"sampling":{"context":{}}}"#);
    assert!(matches!(read, Asked::Malformed(_)), "{params}: {read:?}");
}

pub(super) fn form() -> Question {
    question("elicitation/create", &format!(r#"{{"message":"m","requestedSchema":{SCHEMA}}}"#))
}

pub(super) fn sampling() -> Question {
    question("sampling/createMessage", r#"{"messages":[],"maxTokens":1}"#)
}

pub(super) fn roots() -> Question {
    question("roots/list", "{}")
}

#[test]
fn d33_a_form_is_an_entry_without_its_envelope() {
    let question = form();
    assert_eq!(
        (question.kind, question.need, question.id.raw()),
        (Kind::Elicitation, Need::Form, &"7".into())
    );
    assert_eq!(
        text(question.entry()),
        format!(r#"{{"method":"elicitation/create","params":{{"message":"m","requestedSchema":{SCHEMA}}}}}"#)
    );
}

#[test]
fn a8_1_the_mode_is_left_as_it_is() {
    let form = format!(r#"{{"mode":"form","message":"m","requestedSchema":{SCHEMA}}}"#);
    assert_eq!(elicited(&form), form);
    // `null` is what some serialisers write for what is not there (C32).
    let null = format!(r#"{{"mode":null,"message":"m","requestedSchema":{SCHEMA}}}"#);
    assert_eq!(elicited(&null), format!(r#"{{"message":"m","requestedSchema":{SCHEMA}}}"#));
    let url = question("elicitation/create", r#"{"mode":"url","message":"m","url":"https://s/x"}"#);
    assert_eq!((url.kind, url.need), (Kind::UrlElicitation, Need::Url));
    let escaped = r#"{"\u006dode":"u\u0072l","message":"m","url":"https://s/x","elicitationId":"e"}"#;
    let question = question("elicitation/create", escaped);
    assert_eq!(question.kind, Kind::UrlElicitation);
    assert_eq!(
        text(question.entry()),
        r#"{"method":"elicitation/create","params":{"\u006dode":"u\u0072l","message":"m","url":"https://s/x"}}"#
    );
}

#[test]
fn a8_2_a8_8_only_the_questions_own_members_are_taken_out() {
    // The same names deeper down are the server's data.
    let schema = r#"{ "type":"object", "properties":{"task":{"type":"string"},"elicitationId":{"type":"number","default":1e400},"_meta":{"type":"boolean"}},"task":{"a":1,"a":2}}"#;
    let params = format!(
        r#"{{"t\u0061sk":{{"ttl":1}},"_meta":{{"io.modelcontextprotocol/related-task":{{"taskId":"x"}},"progressToken":1}},"message":"\ud800 é\u0041","elicitationId":"e","requestedSchema":{schema},"task":2,"x\ud800":-0}}"#
    );
    assert_eq!(
        elicited(&params),
        format!(r#"{{"message":"\ud800 é\u0041","requestedSchema":{schema},"x\ud800":-0}}"#)
    );
}

#[test]
fn a8_3_a8_4_a8_5_schemas_pass_as_they_are() {
    for schema in [
        r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{},"required":[]}"#,
        r#"{"type":"object","properties":{"a":{"type":"string","enum":["x"],"enumNames":["X"]},"b":{"type":"array","items":{"anyOf":[{"const":"y","title":"Y"}]}}}}"#,
        r#"{"type":"object","properties":{"s":{"type":"string","default":"d"},"n":{"type":"number","default":1.50},"b":{"type":"boolean","default":false},"m":{"type":"array","items":{"type":"string","enum":["x"]},"default":["x"]}}}"#,
        // No primitive of any revision, and which of the two is meant nobody can tell.
        r#"{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"integer"}],"default":null}}}"#,
    ] {
        let params = format!(r#"{{"message":"m","requestedSchema":{schema}}}"#);
        assert_eq!(elicited(&params), params);
    }
}

#[test]
fn a8_5_a_field_that_may_be_null_is_one_that_may_be_left_out() {
    let asked = r#"{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"anyOf":[{"type":"integer"},{"type":"null"}],"default":null},"b":{"type":"string"}},"required":["b"]},"elicitationId":"e"}"#;
    let expected = r#"{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["b"]}}"#;
    assert_eq!(elicited(asked), expected);
}

#[test]
fn what_no_modern_client_could_read_is_malformed() {
    for params in [
        "null",
        "{}",
        r#"{"message":"m"}"#,
        r#"{"message":1,"requestedSchema":{"type":"object","properties":{}}}"#,
        r#"{"message":"m","requestedSchema":{"type":"object"}}"#,
        r#"{"message":"m","requestedSchema":{"properties":{}}}"#,
        r#"{"message":"m","requestedSchema":{"type":"array","properties":{}}}"#,
        r#"{"message":"m","requestedSchema":{"type":"object","properties":[]}}"#,
        r#"{"message":"m","requestedSchema":{"type":"object","properties":{"a":true}}}"#,
        r#"{"message":"m","requestedSchema":{"type":"object","properties":{},"required":"a"}}"#,
        r#"{"message":"m","requestedSchema":{"type":"object","properties":{},"type":"object"}}"#,
        r#"{"message":"m","message":"n","requestedSchema":{"type":"object","properties":{}}}"#,
        r#"{"message":"m","mode":"url","\u006dode":"form","url":"u","requestedSchema":{"type":"object","properties":{}}}"#,
        r#"{"message":"m","mode":"other","requestedSchema":{"type":"object","properties":{}}}"#,
        r#"{"message":"m","mode":"\ud800","requestedSchema":{"type":"object","properties":{}}}"#,
        r#"{"message":"m","mode":1,"requestedSchema":{"type":"object","properties":{}}}"#,
        r#"{"message":"m","mode":"url"}"#,
        r#"{"message":"m","mode":"url","url":{}}"#,
        r#"{"message":"m","mode":"url","url":"a","url":"b"}"#,
    ] {
        malformed("elicitation/create", params);
    }
    for params in [
        "null",
        r#"{"messages":[]}"#,
        r#"{"messages":[],"maxTokens":"1"}"#,
        r#"{"messages":[],"maxTokens":1.5}"#,
        r#"{"messages":[],"maxTokens":1e400}"#,
        r#"{"messages":[],"maxTokens":1,"maxTokens":2}"#,
        r#"{"messages":{},"maxTokens":1}"#,
        r#"{"messages":[1],"maxTokens":1}"#,
        r#"{"messages":[{"role":"system","content":{}}],"maxTokens":1}"#,
        r#"{"messages":[{"role":"user","content":"hi"}],"maxTokens":1}"#,
        r#"{"messages":[],"maxTokens":1,"tools":{}}"#,
        r#"{"messages":[],"maxTokens":1,"tools":[],"\u0074ools":[]}"#,
        r#"{"messages":[],"maxTokens":1,"toolChoice":"auto"}"#,
        r#"{"messages":[],"maxTokens":1,"metadata":[]}"#,
        r#"{"messages":[],"maxTokens":1,"temperature":"warm"}"#,
        r#"{"messages":[],"maxTokens":1,"includeContext":"everything"}"#,
    ] {
        malformed("sampling/createMessage", params);
    }
}

#[test]
fn bounds_hold_for_what_is_taken_apart() {
    let properties = |count: usize| {
        let all: Vec<_> = (0..count).map(|n| format!(r#""p{n}":{{}}"#)).collect();
        let schema = format!(r#"{{"type":"object","properties":{{{}}}}}"#, all.join(","));
        format!(r#"{{"message":"m","requestedSchema":{schema}}}"#)
    };
    assert!(matches!(asked("elicitation/create", &properties(64), "{}"), Asked::Question(_)));
    malformed("elicitation/create", &properties(65));
    // What is long is no question of bounds: the message's own holds.
    let long = "x".repeat(1 << 20);
    let params = format!(r#"{{"message":"{long}","requestedSchema":{SCHEMA}}}"#);
    assert_eq!(elicited(&params), params);
    let question = question("elicitation/create", &params);
    assert_eq!(question.entry().parts().len(), 1);
}

#[test]
fn a8_8_a8_9_sampling_passes_without_tasks_and_says_what_it_needs() {
    let params = r#"{"messages":[{"role":"user","content":{"type":"text","text":"hi","task":1}},{"role":"assistant","content":[]}],"maxTokens":1e2,"systemPrompt":"s","temperature":-0,"stopSequences":["x"],"metadata":{"task":{},"b":1e400},"com.acme/x":[1]}"#;
    assert_eq!(sampled(params), params);
    assert_eq!(
        sampled(
            r#"{"_meta":{},"messages":[],"task":{"ttl":1},"maxTokens":100.0,"tools":null,"temperature":null}"#
        ),
        r#"{"messages":[],"maxTokens":100.0}"#
    );
    let need = |more: &str| {
        let params = format!(r#"{{"messages":[],"maxTokens":1{more}}}"#);
        question("sampling/createMessage", &params).need
    };
    assert_eq!(need(""), Need::Sampling);
    assert_eq!(need(r#","tools":null,"toolChoice":null"#), Need::Sampling);
    assert_eq!(need(r#","tools":[]"#), Need::SamplingTools);
    assert_eq!(need(r#","to\u006flChoice":{"mode":"auto"}"#), Need::SamplingTools);
}

#[test]
fn a8_10_context_is_dropped_unless_it_was_declared() {
    let context = |value: &str, capabilities: &str| {
        let params = format!(r#"{{"messages":[],"includeContext":{value},"maxTokens":1}}"#);
        let Asked::Question(question) = asked("sampling/createMessage", &params, capabilities) else {
            panic!("a question")
        };
        text(question.entry()).contains("includeContext")
    };
    assert!(!context(r#""thisServer""#, r#"{"sampling":{}}"#));
    assert!(!context(r#""allServers""#, r#"{"sampling":{"tools":{}}}"#));
    assert!(context(r#""allServers""#, r#"{"sampling":{"context":{}}}"#));
    assert!(context(r#""none""#, r#"{"sampling":{}}"#));
    assert!(!context("null", r#"{"sampling":{"context":{}}}"#));
}

#[test]
fn d43_roots_are_asked_for_by_their_method_alone() {
    for params in ["{}", "null", r#"{"_meta":{"progressToken":1},"x":1}"#] {
        let question = question("roots/list", params);
        assert_eq!((question.kind, question.need), (Kind::Roots, Need::Roots));
        assert_eq!(text(question.entry()), r#"{"method":"roots/list"}"#);
    }
    let bare = request(r#"{"jsonrpc":"2.0","id":"\u0037","method":"roots/list"}"#);
    let Asked::Question(question) = Question::of(&bare, &Capabilities::none(), LIMITS) else {
        panic!("a question")
    };
    assert_eq!(question.id.raw(), r#""\u0037""#);
}

#[test]
fn d46_a10_16_what_is_no_question() {
    assert!(matches!(asked("ping", "{}", "{}"), Asked::Ping));
    for method in
        ["tasks/get", "tasks/list", "tasks/result", "tasks/cancel", "com.acme/ask", "tools/call", "Ping"]
    {
        assert!(matches!(asked(method, "{}", "{}"), Asked::Unknown), "{method}");
    }
}

#[test]
fn a11_9_what_a_question_needs_of_the_client() {
    let needs = [Need::Form, Need::Url, Need::Sampling, Need::SamplingTools, Need::Roots];
    assert_eq!(
        needs.map(Need::required),
        [
            r#"{"elicitation":{}}"#,
            r#"{"elicitation":{"url":{}}}"#,
            r#"{"sampling":{}}"#,
            r#"{"sampling":{"tools":{}}}"#,
            r#"{"roots":{}}"#
        ]
    );
}

fn required(data: &str) -> Option<Vec<UrlQuestion>> {
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":-32042,"message":"m"{data}}}}}"#);
    let Message::Response(response) = jsonrpc::parse(Bytes::from(text), LIMITS).unwrap() else {
        panic!("a response")
    };
    url_required(&response, LIMITS)
}

#[test]
fn d27_b4_1_url_entries_of_the_error() {
    let all = required(
        r#","data":{"elicitations":[{"mode":"url","elicitationId":"e1","url":"https://s/x","message":"m"},{"message":"\u006e","task":{},"elicitation\u0049d":"\u0065 2","_meta":{},"url":"https://s/y","mode":"url","x":1e400}],"x":1}"#,
    )
    .unwrap();
    let entry = |params: &str| format!(r#"{{"method":"elicitation/create","params":{params}}}"#);
    assert_eq!(all.len(), 2);
    assert_eq!((all[0].elicitation_id.as_str(), all[1].elicitation_id.as_str()), ("e1", "e 2"));
    assert_eq!(text(&all[0].entry), entry(r#"{"mode":"url","url":"https://s/x","message":"m"}"#));
    assert_eq!(
        text(&all[1].entry),
        entry(r#"{"message":"\u006e","url":"https://s/y","mode":"url","x":1e400}"#)
    );
}

#[test]
fn b4_1_errors_that_cannot_be_asked() {
    let url = r#"{"mode":"url","elicitationId":"e","url":"u","message":"m"}"#;
    assert!(required(&format!(r#","data":{{"elicitations":[{url}]}}"#)).is_some());
    for data in [
        String::new(),
        r#","data":null"#.to_owned(),
        r#","data":[]"#.to_owned(),
        r#","data":{}"#.to_owned(),
        r#","data":{"elicitations":[]}"#.to_owned(),
        format!(r#","data":{{"elicitations":{url}}}"#),
        format!(r#","data":{{"elicitations":[{url}],"elicitations":[{url}]}}"#),
        format!(r#","data":{{"elicitations":[{url},1]}}"#),
        format!(r#","data":{{"elicitations":[{url},{{"message":"m","elicitationId":"e","requestedSchema":{SCHEMA}}}]}}"#),
        r#","data":{"elicitations":[{"mode":"url","url":"u","message":"m"}]}"#.to_owned(),
        r#","data":{"elicitations":[{"mode":"url","url":"u","message":"m","elicitationId":"\ud800"}]}"#.to_owned(),
        r#","data":{"elicitations":[{"mode":"url","url":"u","message":"m","elicitationId":"e","elicitationId":"f"}]}"#.to_owned(),
        format!(r#","data":{{"elicitations":[{}]}}"#, vec![url; LIMITS.members + 1].join(",")),
    ] {
        assert!(required(&data).is_none(), "{data}");
    }
}
