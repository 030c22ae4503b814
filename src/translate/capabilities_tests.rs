//! Vectors of what sessions declare, by rule or vector id; expected values are written from the rules.
#![allow(clippy::unwrap_used)]

use super::capabilities::Capabilities;
use super::question::Need::{Form, Roots, Sampling, SamplingTools, Url};
use crate::wire::json::Limits;
use crate::wire::jsonrpc::{self, Message};
use crate::wire::version::LegacyRevision::{self, V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25};
use bytes::Bytes;

const LIMITS: Limits = Limits { nesting: 64, members: 64 };
const ALL: [LegacyRevision; 4] = [V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25];

fn of(capabilities: &str) -> Capabilities {
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"_meta":{{"io.modelcontextprotocol/clientCapabilities":{capabilities}}}}}}}"#
    );
    match jsonrpc::parse(Bytes::from(text), LIMITS).unwrap() {
        Message::Request(request) => Capabilities::of(&request, LIMITS),
        other => panic!("{other:?}"),
    }
}

fn declared(capabilities: &str, revision: LegacyRevision) -> String {
    String::from_utf8(of(capabilities).declared_to(revision).to_vec()).unwrap()
}

#[test]
fn d54_url_mode_alone_is_not_declared_to_2025_06_18() {
    let url = r#"{"elicitation":{"url":{}}}"#;
    assert_eq!(ALL.map(|revision| declared(url, revision)), ["{}", "{}", "{}", url]);
    assert_eq!(ALL.map(|revision| of(url).misread_by(revision)), [false, false, true, false]);
    for form in [r#"{"elicitation":{}}"#, r#"{"elicitation":{"form":{}}}"#] {
        assert_eq!(ALL.map(|revision| declared(form, revision)), ["{}", "{}", r#"{"elicitation":{}}"#, form]);
        assert!(ALL.iter().all(|revision| !of(form).misread_by(*revision)));
    }
    let both = r#"{"elicitation":{"form":{},"url":{}}}"#;
    assert_eq!(ALL.map(|revision| declared(both, revision)), ["{}", "{}", r#"{"elicitation":{}}"#, both]);
    assert!(!of(both).misread_by(V2025_06_18));
}

#[test]
fn d53_roots_have_no_list_changed() {
    for revision in ALL {
        assert_eq!(declared(r#"{"roots":{"listChanged":true}}"#, revision), r#"{"roots":{}}"#);
    }
}

#[test]
fn a3_4_sampling_is_copied_to_2025_11_25_alone() {
    let text = r#"{"sampling":{"context":{},"tools":{}}}"#;
    let plain = r#"{"sampling":{}}"#;
    assert_eq!(ALL.map(|revision| declared(text, revision)), [plain, plain, plain, text]);
}

#[test]
fn a3_5_what_a_server_may_ask() {
    let allows = |text: &str, need| ALL.map(|revision| of(text).allows(need, revision));
    let (no, all, last) = ([false; 4], [true; 4], [false, false, false, true]);
    let from_06 = [false, false, true, true];
    assert_eq!(allows(r#"{"elicitation":{}}"#, Form), from_06);
    assert_eq!(allows(r#"{"elicitation":{}}"#, Url), no);
    assert_eq!(allows(r#"{"elicitation":{"url":{}}}"#, Form), no);
    assert_eq!(allows(r#"{"elicitation":{"url":{}}}"#, Url), last);
    assert_eq!(allows(r#"{"sampling":{}}"#, Sampling), all);
    assert_eq!(allows(r#"{"sampling":{}}"#, SamplingTools), no);
    assert_eq!(allows(r#"{"sampling":{"tools":{}}}"#, SamplingTools), last);
    assert_eq!(allows(r#"{"sampling":{}}"#, Roots), no);
    assert_eq!(allows(r#"{"roots":{}}"#, Roots), all);
    assert_eq!(allows("{}", Form), no);
}
