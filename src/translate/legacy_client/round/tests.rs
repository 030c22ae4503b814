//! Vectors of what a server asks, by rule or vector id; expected values are written from the rules.
//!
//! The helpers serve the vectors of the requests, forms and answers too.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::translate::legacy_client::initialize::Can;
use crate::wire::jsonrpc::{self, Message, Reply};
use crate::wire::payload::Payload;
use crate::wire::version::LegacyRevision;

pub(in super::super) const LIMITS: Limits = Limits { nesting: 64, members: 64 };

pub(in super::super) fn response(text: &str) -> Response {
    match jsonrpc::parse(Bytes::copy_from_slice(text.as_bytes()), LIMITS).unwrap() {
        Message::Response(response) => response,
        other => panic!("{other:?}"),
    }
}

pub(in super::super) fn result(result: &str) -> Response {
    response(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#))
}

pub(in super::super) fn client(revision: &str) -> Client {
    let revision = LegacyRevision::parse(revision).unwrap();
    let new = revision == LegacyRevision::V2025_11_25;
    let form = revision >= LegacyRevision::V2025_06_18;
    Client {
        revision,
        info: Bytes::from_static(br#"{"name":"c","version":"1"}"#),
        capabilities: Bytes::from_static(b"{}"),
        can: Can { form, url: new, sampling: true, tools: new, context: false, roots: true },
    }
}

pub(in super::super) fn text(payload: &Payload) -> String {
    String::from_utf8(payload.to_bytes().to_vec()).unwrap()
}

pub(in super::super) fn asked(body: &str) -> Result<Asked, Unusable> {
    let response = result(body);
    let Reply::Result(body) = &response.reply else { panic!() };
    read(&response, body, 4, LIMITS)
}

/// The one entry with this method and these params.
pub(in super::super) fn one(method: &str, params: &str) -> Result<Entry, Unusable> {
    let request = format!(r#"{{"method":"{method}","params":{params}}}"#);
    let read = asked(&format!(r#"{{"resultType":"input_required","inputRequests":{{"k":{request}}}}}"#))?;
    Ok(read.entries.into_iter().next().unwrap())
}

const FORM: &str = r#"{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}}"#;
const ROOTS: &str = r#"{"method":"roots/list"}"#;

/// D84, B2.3: keys and state are the server's bytes.
#[test]
fn d84_entries_stand_under_their_keys_beside_the_state() {
    let read = asked(&format!(
        r#"{{"resultType":"input_required","inputRequests":{{"\u0061":{FORM},"b \"/":{ROOTS}}},"requestState":"S\u00e9\/"}}"#
    ))
    .unwrap();
    assert_eq!(read.state.unwrap(), r#""S\u00e9\/""#);
    let keys: Vec<&[u8]> = read.entries.iter().map(|entry| &**entry.key()).collect();
    assert_eq!(keys, [br#""\u0061""#.as_slice(), br#""b \"/""#]);
    assert_eq!(read.entries[0].kind(), Kind::Form);
    assert_eq!(read.entries[1].kind(), Kind::Roots);
}

/// D85, D86: either may stand alone, and what some serialisers write for nothing is nothing.
#[test]
fn d86_a_state_alone_is_a_round() {
    for body in [
        r#"{"requestState":""}"#,
        r#"{"requestState":"","inputRequests":{}}"#,
        r#"{"requestState":"","inputRequests":null}"#,
    ] {
        let read = asked(body).unwrap();
        assert!(read.entries.is_empty() && read.state.as_deref() == Some(b"\"\"".as_slice()), "{body}");
    }
    let read = asked(&format!(r#"{{"inputRequests":{{"a":{ROOTS}}},"requestState":null}}"#)).unwrap();
    assert!(read.entries.len() == 1 && read.state.is_none());
}

/// D87.
#[test]
fn d87_neither_is_no_round() {
    for body in ["{}", r#"{"inputRequests":{}}"#, r#"{"inputRequests":null,"requestState":null}"#] {
        assert_eq!(asked(body).unwrap_err(), Unusable::Nothing, "{body}");
    }
}

#[test]
fn b2_4_what_cannot_be_read_is_refused() {
    assert_eq!(asked(r#"{"requestState":1}"#).unwrap_err(), Unusable::State);
    assert_eq!(asked(r#"{"requestState":"a","inputRequests":[]}"#).unwrap_err(), Unusable::Requests);
    let five = ["a", "b", "c", "d", "e"].map(|key| format!(r#""{key}":{ROOTS}"#)).join(",");
    let five = asked(&format!(r#"{{"inputRequests":{{{five}}}}}"#));
    assert_eq!(five.unwrap_err(), Unusable::TooMany(4));
    for body in [
        format!(r#"{{"inputRequests":{{"a":{ROOTS},"\u0061":{ROOTS}}}}}"#),
        format!(r#"{{"inputRequests":{{"\ud800":{ROOTS},"\ud800":{ROOTS}}}}}"#),
        r#"{"requestState":"a","requestState":"a"}"#.to_owned(),
    ] {
        assert!(matches!(asked(&body), Err(Unusable::Duplicate(_))), "{body}");
    }
}

fn wrong(method: &str, params: &str) -> String {
    match one(method, params) {
        Err(Unusable::Entry { key, what }) if key == "k" => what.into_owned(),
        other => panic!("{method} {params}: {other:?}"),
    }
}

/// A1.12-A1.14, invariant 6: nobody is asked what no client could read.
#[test]
fn a1_13_a_malformed_question_is_refused_with_its_key() {
    const SCHEMA: &str = r#"{"type":"object","properties":{}}"#;
    for (method, params) in [
        ("roots/list", "[]"),
        ("elicitation/create", "null"),
        ("elicitation/create", "{}"),
        ("elicitation/create", r#"{"message":"m"}"#),
        ("elicitation/create", r#"{"message":"m","requestedSchema":{"type":"object"}}"#),
        ("elicitation/create", r#"{"message":"m","requestedSchema":{"properties":{}}}"#),
        ("elicitation/create", r#"{"message":"m","requestedSchema":{"type":"object","properties":{"a":1}}}"#),
        (
            "elicitation/create",
            r#"{"message":"m","requestedSchema":{"type":"object","properties":{"a":{}}}}"#,
        ),
        (
            "elicitation/create",
            r#"{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"object"}}}}"#,
        ),
        (
            "elicitation/create",
            r#"{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}}}}}"#,
        ),
        (
            "elicitation/create",
            r#"{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"string"},"\u0061":{"type":"string"}}}}"#,
        ),
        (
            "elicitation/create",
            r#"{"message":"m","requestedSchema":{"type":"object","properties":{},"required":[1]}}"#,
        ),
        ("elicitation/create", r#"{"mode":"url","message":"m"}"#),
        ("elicitation/create", r#"{"mode":"url","message":"m","url":"/a"}"#),
        ("elicitation/create", r#"{"mode":"url","url":"https://s/x"}"#),
        ("elicitation/create", &format!(r#"{{"mode":"other","message":"m","requestedSchema":{SCHEMA}}}"#)),
        ("elicitation/create", &format!(r#"{{"message":1,"requestedSchema":{SCHEMA}}}"#)),
        ("elicitation/create", &format!(r#"{{"message":"m","message":"n","requestedSchema":{SCHEMA}}}"#)),
        ("sampling/createMessage", "{}"),
        ("sampling/createMessage", r#"{"messages":[],"maxTokens":1.5}"#),
        ("sampling/createMessage", r#"{"messages":{},"maxTokens":1}"#),
        ("tools/call", "{}"),
        ("tasks/get", "{}"),
    ] {
        wrong(method, params);
    }
    assert_eq!(wrong("ping\\u0000", "{}"), "\"ping \" is no request for input");
    for entry in ["1", "{}", r#"{"method":1}"#, r#"{"method":"roots/list","method":"roots/list"}"#] {
        let read = asked(&format!(r#"{{"inputRequests":{{"k":{entry}}}}}"#));
        assert!(matches!(read, Err(Unusable::Entry { .. })), "{entry}");
    }
}

/// B2.1.
#[test]
fn b2_1_what_the_client_did_not_declare() {
    let form = one(
        "elicitation/create",
        r#"{"mode":"form","message":"m","requestedSchema":{"type":"object","properties":{}}}"#,
    );
    let url = one("elicitation/create", r#"{"mode":"url","message":"m","url":"https://s/x"}"#).unwrap();
    let sampled = |more: &str| {
        one("sampling/createMessage", &format!(r#"{{"messages":[],"maxTokens":1{more}}}"#)).unwrap()
    };
    let used = one(
        "sampling/createMessage",
        r#"{"messages":[{"role":"assistant","content":{"type":"tool_use","id":"i","name":"n","input":{}}}],"maxTokens":1}"#,
    )
    .unwrap();
    let none = Can { form: false, url: false, sampling: false, tools: false, context: false, roots: false };
    let table = [
        (form.unwrap(), none, "elicitation"),
        (url.clone(), Can { form: true, ..none }, "elicitation.url"),
        (sampled(""), none, "sampling"),
        (sampled(r#","tools":[]"#), Can { sampling: true, ..none }, "sampling.tools"),
        (sampled(r#","toolChoice":{"mode":"none"}"#), Can { sampling: true, ..none }, "sampling.tools"),
        (used, Can { sampling: true, ..none }, "sampling.tools"),
        (asked(&format!(r#"{{"inputRequests":{{"k":{ROOTS}}}}}"#)).unwrap().entries.remove(0), none, "roots"),
    ];
    let all = client("2025-11-25");
    for (entry, can, name) in table {
        assert_eq!(entry.lacks(&Client { can, ..all.clone() }), Some(name));
        assert_eq!(entry.lacks(&all), None, "{name}");
    }
    // Context is left out for clients that do not know it (A8.10).
    let context = sampled(r#","includeContext":"thisServer""#);
    assert_eq!(context.lacks(&Client { can: Can { sampling: true, ..none }, ..all }), None);
    assert_eq!(url.url(), Some("https://s/x"));
}

/// D84, D85.
#[test]
fn d85_responses_stand_under_the_servers_keys() {
    let pair = |key: &'static str, value: &'static str| (Bytes::from(key), Bytes::from(value));
    assert_eq!(responses(&[]), "{}");
    assert_eq!(
        responses(&[pair(r#""\u0061""#, r#"{"action":"cancel"}"#), pair(r#""b""#, r#"{"roots":[]}"#)]),
        r#"{"\u0061":{"action":"cancel"},"b":{"roots":[]}}"#
    );
}
