//! Vectors of a server's questions and their answers, by rule or vector id; expected values are written from the rules.
#![allow(clippy::unwrap_used)]

use super::answer::{self, AnswerFault, Responses, Why};
use super::capabilities::Capabilities;
use super::input_required;
use super::question::{Asked, Kind, Need, Question, url_required};
use crate::wire::json::{Limits, Span};
use crate::wire::jsonrpc::{self, Message, Reply, Request, Response};
use crate::wire::payload::Payload;
use crate::wire::version::LegacyRevision::{self, V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25};
use bytes::Bytes;

const LIMITS: Limits = Limits { nesting: 64, members: 64 };
const SCHEMA: &str = r#"{"type":"object","properties":{"n":{"type":"string"}}}"#;

fn request(text: &str) -> Request {
    match jsonrpc::parse(Bytes::copy_from_slice(text.as_bytes()), LIMITS).unwrap() {
        Message::Request(request) => request,
        other => panic!("{other:?}"),
    }
}

fn response(text: &str) -> Response {
    match jsonrpc::parse(Bytes::copy_from_slice(text.as_bytes()), LIMITS).unwrap() {
        Message::Response(response) => response,
        other => panic!("{other:?}"),
    }
}

fn text(payload: &Payload) -> String {
    String::from_utf8(payload.to_bytes().to_vec()).unwrap()
}

fn declaring(capabilities: &str) -> Capabilities {
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"_meta":{{"io.modelcontextprotocol/clientCapabilities":{capabilities}}}}}}}"#
    );
    Capabilities::of(&request(&text), LIMITS)
}

fn asked(method: &str, params: &str, capabilities: &str) -> Asked {
    let text = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{params}}}"#);
    Question::of(&request(&text), &declaring(capabilities), LIMITS)
}

fn question(method: &str, params: &str) -> Question {
    match asked(method, params, "{}") {
        Asked::Question(question) => question,
        other => panic!("{other:?}"),
    }
}

fn form() -> Question {
    question("elicitation/create", &format!(r#"{{"message":"m","requestedSchema":{SCHEMA}}}"#))
}

fn sampling() -> Question {
    question("sampling/createMessage", r#"{"messages":[],"maxTokens":1}"#)
}

fn roots() -> Question {
    question("roots/list", "{}")
}

fn down(question: &Question, value: &str, revision: LegacyRevision) -> Result<answer::Answer, AnswerFault> {
    let text = Bytes::from(format!("  {value} "));
    answer::to_legacy(question, Span::new(2, 2 + value.len()), &text, revision, LIMITS)
}

fn result(question: &Question, value: &str, revision: LegacyRevision) -> String {
    let message = text(&down(question, value, revision).unwrap().message);
    let head = r#"{"jsonrpc":"2.0","id":7,"result":"#;
    message.strip_prefix(head).unwrap().strip_suffix('}').unwrap().to_owned()
}

#[test]
fn d33_a_form_is_an_entry_without_its_envelope() {
    let question = form();
    assert_eq!((question.kind, question.need), (Kind::Elicitation, Need::Form));
    assert_eq!(
        text(question.entry()),
        format!(r#"{{"method":"elicitation/create","params":{{"message":"m","requestedSchema":{SCHEMA}}}}}"#)
    );
    let accepted = r#"{"action":"accept","content":{"n":"x"}}"#;
    assert_eq!(result(&question, accepted, V2025_11_25), accepted);
    assert_eq!(down(&question, accepted, V2025_11_25).unwrap().accepted, Some(true));
}

#[test]
fn d33_the_answer_that_asks() {
    let (form, roots) = (form(), roots());
    let id = request(r#"{"jsonrpc":"2.0","id":"c","method":"m"}"#).id;
    let info = Bytes::from_static(br#"{"name":"s","version":"1"}"#);
    let entries = [("s1", form.entry()), ("s2", roots.entry())];
    assert_eq!(
        text(&input_required::message(&id, entries.into_iter(), "st", &info)),
        format!(
            r#"{{"jsonrpc":"2.0","id":"c","result":{{"resultType":"input_required","inputRequests":{{"s1":{{"method":"elicitation/create","params":{{"message":"m","requestedSchema":{SCHEMA}}}}},"s2":{{"method":"roots/list"}}}},"requestState":"st","_meta":{{"io.modelcontextprotocol/serverInfo":{{"name":"s","version":"1"}}}}}}}}"#
        )
    );
}

#[test]
fn d43_roots_are_asked_for_and_forwarded() {
    let question = roots();
    assert_eq!((question.kind, question.need), (Kind::Roots, Need::Roots));
    assert_eq!(text(question.entry()), r#"{"method":"roots/list"}"#);
    let answer = r#"{"roots":[{"uri":"file:///a","name":"a"}]}"#;
    assert_eq!(result(&question, answer, V2024_11_05), answer);
    assert_eq!(down(&question, answer, V2024_11_05).unwrap().roots.unwrap(), answer);
}

#[test]
fn d27_url_entries_of_the_error() {
    let text_of = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32042,"message":"m","data":{"elicitations":[{"mode":"url","elicitationId":"e1","url":"https://s/x","message":"m"}]}}}"#;
    let response = response(text_of);
    let Reply::Error(error) = &response.reply else { panic!("an error") };
    let all = url_required(&response, error, LIMITS).unwrap();
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].elicitation_id, "e1");
    assert_eq!(
        text(&all[0].entry),
        r#"{"method":"elicitation/create","params":{"mode":"url","url":"https://s/x","message":"m"}}"#
    );
}

#[test]
fn b1_11_b1_12_refusals() {
    let tools = question("sampling/createMessage", r#"{"messages":[],"maxTokens":1,"tools":[]}"#);
    assert_eq!(tools.need, Need::SamplingTools);
    let cases = [
        (form(), Why::Cancelled, r#""result":{"action":"cancel"}"#),
        (form(), Why::NotPossible, r#""result":{"action":"cancel"}"#),
        (form(), Why::Undeclared, r#""error":{"code":-32602,"#),
        (sampling(), Why::Cancelled, r#""error":{"code":-1,"#),
        (sampling(), Why::NotPossible, r#""error":{"code":-1,"#),
        (sampling(), Why::Undeclared, r#""error":{"code":-32601,"#),
        (tools, Why::Undeclared, r#""error":{"code":-32602,"#),
        (roots(), Why::Cancelled, r#""error":{"code":-32603,"#),
        (roots(), Why::NotPossible, r#""error":{"code":-32601,"#),
        (roots(), Why::Undeclared, r#""error":{"code":-32601,"#),
    ];
    for (question, why, rest) in cases {
        let message = text(&answer::refused(&question, why));
        assert!(message.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":7,{rest}"#)), "{why:?}: {message}");
    }
    let cached = Bytes::from_static(br#"{"roots":[]}"#);
    assert_eq!(text(&answer::roots(&roots(), &cached)), r#"{"jsonrpc":"2.0","id":7,"result":{"roots":[]}}"#);
}

#[test]
fn b1_5_responses_are_found_by_key() {
    let retry = |responses: &str| {
        let params = format!(r#"{{"name":"t","inputResponses":{responses}}}"#);
        request(&format!(r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{params}}}"#))
    };
    let two = retry(r#"{"s1":{"action":"cancel"},"s\u0032":{"roots":[]}}"#);
    let read = Responses::read(&two, LIMITS).unwrap();
    assert_eq!(read.get("s2").unwrap().of(&two.text), br#"{"roots":[]}"#);
    assert_eq!(read.get("s3"), None);
    assert!(Responses::read(&retry("null"), LIMITS).unwrap().is_empty());
    assert!(Responses::read(&retry(r#"{"s1":{},"\u00731":{}}"#), LIMITS).is_err());
    assert!(Responses::read(&retry("[]"), LIMITS).is_err());
}

#[test]
fn a6_7_a_list_of_blocks_becomes_one_for_older_servers() {
    let answer = r#"{"role":"assistant","model":"m","content":[{"type":"text","text":"a"},{"type":"text","text":"\"b"}]}"#;
    assert_eq!(result(&sampling(), answer, V2025_11_25), answer);
    for revision in [V2024_11_05, V2025_03_26, V2025_06_18] {
        assert_eq!(
            result(&sampling(), answer, revision),
            r#"{"role":"assistant","model":"m","content":{"type":"text","text":"a\n\"b"}}"#
        );
    }
}
