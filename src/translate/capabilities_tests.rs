//! Vectors of what sessions declare, by rule or vector id; expected values are written from the rules.
#![allow(clippy::unwrap_used)]

use super::capabilities::{Capabilities, Recent};
use super::question::Need::{Form, Roots, Sampling, SamplingTools, Url};
use super::question_tests::{LIMITS, request};
use crate::wire::version::LegacyRevision::{self, V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25};
use std::hash::{DefaultHasher, Hash, Hasher};

const ALL: [LegacyRevision; 4] = [V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25];

fn of(capabilities: &str) -> Capabilities {
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"_meta":{{"io.modelcontextprotocol/clientCapabilities":{capabilities}}}}}}}"#
    );
    Capabilities::of(&request(&text), LIMITS)
}

fn declared(capabilities: &str, revision: LegacyRevision) -> String {
    String::from_utf8(of(capabilities).declared_to(revision).to_vec()).unwrap()
}

#[test]
fn d54_url_mode_alone_is_not_declared_to_2025_06_18() {
    let url = r#"{"elicitation":{"url":{}}}"#;
    assert_eq!(ALL.map(|revision| declared(url, revision)), ["{}", "{}", "{}", url]);
    assert_eq!(ALL.map(|revision| of(url).misread_by(V2025_11_25, revision)), [false, false, true, false]);
    for form in [r#"{"elicitation":{}}"#, r#"{"elicitation":{"form":{}}}"#] {
        assert_eq!(ALL.map(|revision| declared(form, revision)), ["{}", "{}", r#"{"elicitation":{}}"#, form]);
        assert!(ALL.iter().all(|revision| !of(form).misread_by(V2025_11_25, *revision)));
    }
    let both = r#"{"elicitation":{"form":{},"url":{}}}"#;
    assert_eq!(ALL.map(|revision| declared(both, revision)), ["{}", "{}", r#"{"elicitation":{}}"#, both]);
    assert!(!of(both).misread_by(V2025_11_25, V2025_06_18));
}

#[test]
fn a3_5_a_server_that_has_become_newer_was_told_too_little() {
    let again = |text: &str, told| ALL.map(|revision| of(text).misread_by(told, revision));
    assert_eq!(again(r#"{"elicitation":{"url":{}}}"#, V2025_06_18), [false, false, false, true]);
    assert_eq!(again(r#"{"elicitation":{}}"#, V2024_11_05), [false, false, true, true]);
    assert_eq!(again(r#"{"elicitation":{}}"#, V2025_06_18), [false; 4]);
    assert_eq!(again(r#"{"sampling":{"tools":{}}}"#, V2025_03_26), [false, false, false, true]);
    assert_eq!(again(r#"{"sampling":{},"roots":{}}"#, V2024_11_05), [false; 4]);
    assert_eq!(again("{}", V2024_11_05), [false; 4]);
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

fn same(one: &str, other: &str) {
    let hash = |capabilities: &Capabilities| {
        let mut hasher = DefaultHasher::new();
        capabilities.hash(&mut hasher);
        hasher.finish()
    };
    let (one, other) = (of(one), of(other));
    assert_eq!(one, other);
    assert_eq!(hash(&one), hash(&other));
}

#[test]
fn d51_equal_capabilities_are_equal_however_they_are_written() {
    same(
        r#"{"sampling":{"tools":{},"context":{}},"elicitation":{"form":{"a b":1}}}"#,
        "{ \"elicit\\u0061tion\" : {\"form\":{ \"a b\" :1}},\n\t\"sampling\":{\"context\":{},\"tools\":{ }},\"tasks\":{\"list\":{}} }",
    );
    same(r#"{"roots":{"listChanged":true}}"#, r#"{"roots":{}}"#);
    assert_ne!(of(r#"{"sampling":{}}"#), of("{}"));
    assert_ne!(of(r#"{"sampling":{}}"#), of(r#"{"sampling":{"tools":{}}}"#));
    assert_ne!(of(r#"{"elicitation":{"form":{"a":1}}}"#), of(r#"{"elicitation":{"form":{"a":2}}}"#));
    let all =
        r#"{"roots":{},"sampling":{"tools":{}},"elicitation":{"url":{},"form":{}},"com.acme/x":{"a":1e400}}"#;
    assert_eq!(
        declared(all, V2025_11_25),
        r#"{"com.acme/x":{"a":1e400},"elicitation":{"form":{},"url":{}},"roots":{},"sampling":{"tools":{}}}"#
    );
}

#[test]
fn nothing_declared_is_nothing() {
    for nothing in ["{}", "{ }", r#"{"tasks":{}}"#, r#"{"extensions":{}}"#, r#"{"experimental":{}}"#] {
        same(nothing, "{}");
        assert!(of(nothing).is_empty() && !of(nothing).can_be_asked(V2025_11_25));
        assert_eq!(declared(nothing, V2025_11_25), "{}");
    }
    assert_eq!(of("{}"), Capabilities::none());
    assert_eq!(Capabilities::none(), Capabilities::default());
}

#[test]
fn a3_2_experimental_passes_to_every_revision() {
    let text = r#"{"experimental":{"a":{"deep":[ 1, {"x y":-0} ]},"b":1}}"#;
    for revision in ALL {
        assert_eq!(declared(text, revision), r#"{"experimental":{"a":{"deep":[1,{"x y":-0}]}}}"#);
        assert!(!of(text).is_empty() && !of(text).can_be_asked(revision));
    }
}

#[test]
fn a3_6_tasks_are_never_declared() {
    let text = r#"{"t\u0061sks":{"requests":{"elicitation":{"create":{}}}},"roots":{}}"#;
    assert_eq!(declared(text, V2025_11_25), r#"{"roots":{}}"#);
}

#[test]
fn a3_7_extensions_pass_by_allow_list() {
    let text = r#"{"extensions":{"io.modelcontextprotocol/tasks":{},"io.modelcontextprotocol/ui":{"mimeTypes":["text/html"]},"com.acme/x":{}}}"#;
    for revision in ALL {
        assert_eq!(
            declared(text, revision),
            r#"{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html"]}}}"#
        );
    }
    assert!(of(r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#).is_empty());
}

#[test]
fn a3_5_questions_of_a_revision_that_has_none() {
    let form = of(r#"{"elicitation":{}}"#);
    assert_eq!(ALL.map(|revision| form.can_be_asked(revision)), [false, false, true, true]);
    let url = of(r#"{"elicitation":{"url":{}}}"#);
    assert_eq!(ALL.map(|revision| url.can_be_asked(revision)), [false, false, false, true]);
    assert!(ALL.iter().all(|revision| of(r#"{"roots":{}}"#).can_be_asked(*revision)));
}

#[test]
fn a8_10_context_is_known_whatever_the_revision() {
    assert!(of(r#"{"sampling":{"context":{}}}"#).allows_context());
    assert!(!of(r#"{"sampling":{"tools":{}}}"#).allows_context());
    assert!(!of(r#"{"context":{}}"#).allows_context());
}

#[test]
fn what_cannot_be_read_is_not_declared() {
    for odd in [
        r#"{"elicitation":true}"#,
        r#"{"elicitation":null}"#,
        r#"{"elicitation":[]}"#,
        // A mode was meant, but which one cannot be told.
        r#"{"elicitation":{"url":true}}"#,
        r#"{"elicitation":{"form":1}}"#,
        r#"{"elicitation":{"url":{},"url":{}}}"#,
        r#"{"elicitation":{},"elicit\u0061tion":{"url":{}}}"#,
        r#"{"sampling":1}"#,
        r#"{"roots":[]}"#,
        r#"{"\ud800":{}}"#,
        "[]",
        "null",
    ] {
        assert!(of(odd).is_empty(), "{odd}");
    }
    let tools = r#"{"sampling":{"tools":true,"context":{},"context":{}}}"#;
    assert_eq!(declared(tools, V2025_11_25), r#"{"sampling":{}}"#);
    assert!(!of(tools).allows(SamplingTools, V2025_11_25) && !of(tools).allows_context());
    assert!(of(tools).allows(Sampling, V2025_11_25));
    let none = request(r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#);
    assert!(Capabilities::of(&none, LIMITS).is_empty());
}

#[test]
fn what_a_session_keeps_of_a_declaration_is_bounded() {
    let long = "x".repeat(64 * 1024);
    let text = format!(r#"{{"experimental":{{"a":{{"b":"{long}"}}}},"sampling":{{}}}}"#);
    assert_eq!(declared(&text, V2025_11_25), r#"{"sampling":{}}"#);
    let many: Vec<_> = (0..65).map(|n| format!(r#""c{n}":{{}}"#)).collect();
    assert!(of(&format!("{{{}}}", many.join(","))).is_empty());
}

/// D51: what was read last is given only for the same text.
#[test]
fn d51_what_was_read_last_is_no_other_requests() {
    let recent = Recent::default();
    let long = format!(r#"{{"experimental":{{"x":{{"y":"{}"}}}}}}"#, "z".repeat(5000));
    let texts =
        [r#"{"sampling":{}}"#, r#"{"sampling":{} }"#, "{}", r#"{"roots":{}}"#, &long, r#"{"roots":{}}"#];
    for text in texts.iter().chain(&texts) {
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"_meta":{{"io.modelcontextprotocol/clientCapabilities":{text}}}}}}}"#
        );
        assert_eq!(recent.of(&request(&message), LIMITS), of(text), "{text}");
    }
}
