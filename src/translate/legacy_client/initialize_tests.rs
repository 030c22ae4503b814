//! What clients say of themselves, by rule or vector id.
#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::translate::legacy_client::testing::{LIMITS, answer, asked, body, client, id, request, value};
use crate::translate::legacy_client::{discovered, initialize};
use serde_json::json;

fn declared(version: &str, capabilities: &str) -> (String, Can) {
    let client = client(&format!(
        r#"{{"protocolVersion":"{version}","clientInfo":{{"name":"c","version":"1"}},"capabilities":{capabilities}}}"#
    ));
    assert_eq!(client.can, Can::of(&client.capabilities));
    (String::from_utf8(client.capabilities.to_vec()).unwrap(), client.can)
}

#[test]
fn d69_the_revision_is_the_one_asked_for_or_the_latest_that_has_a_handshake() {
    for (asked, answered) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("x", "2025-11-25"),
    ] {
        let client = client(&format!(r#"{{"protocolVersion":"{asked}"}}"#));
        assert_eq!(client.revision.as_str(), answered);
    }
}

#[test]
fn d69_the_answer_has_what_the_server_says_of_itself_and_no_modern_words() {
    let response = answer(
        r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"instructions":"\u00e9 x","ttlMs":5,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}"#,
    );
    let server = discovered::read(&response, body(&response), LIMITS).unwrap();
    let result = initialize::result(&id(), LegacyRevision::V2025_06_18, &server);
    assert_eq!(
        value(&result),
        json!({"jsonrpc":"2.0","id":"c","result":{"protocolVersion":"2025-06-18",
            "capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"s","version":"1"},"instructions":"é x"}})
    );
    // Who says nothing of itself is not given a name that says where it is (A9.1).
    let response = answer(r#"{"supportedVersions":["2026-07-28"]}"#);
    let server = discovered::read(&response, body(&response), LIMITS).unwrap();
    let result = value(&initialize::result(&id(), LegacyRevision::LATEST, &server));
    assert_eq!(result["result"]["serverInfo"], json!({"name":"unknown","version":"0"}));
    assert_eq!(result["result"].as_object().unwrap().len(), 3);
}

#[test]
fn d72_capabilities_are_put_in_modern_words() {
    let can = |form, url| Can { form, url, ..Can::default() };
    let roots = |can| Can { roots: true, ..can };
    for (version, said, expected, able) in [
        (
            "2025-06-18",
            r#"{"elicitation":{},"roots":{"listChanged":true},"tasks":{}}"#,
            r#"{"elicitation":{"form":{}},"roots":{}}"#,
            roots(can(true, false)),
        ),
        ("2024-11-05", r#"{"elicitation":{},"roots":{}}"#, r#"{"roots":{}}"#, roots(can(false, false))),
        ("2025-03-26", r#"{"elicitation":{"form":{}}}"#, "{}", can(false, false)),
        // What is inside has no meaning in 2025-06-18.
        ("2025-06-18", r#"{"elicitation":{"url":{}}}"#, r#"{"elicitation":{"form":{}}}"#, can(true, false)),
        ("2025-11-25", r#"{"elicitation":{}}"#, r#"{"elicitation":{"form":{}}}"#, can(true, false)),
        ("2025-11-25", r#"{"elicitation":{"url":{ }}}"#, r#"{"elicitation":{"url":{}}}"#, can(false, true)),
        ("2025-11-25", r#"{"elicitation":{"form":true}}"#, "{}", can(false, false)),
        ("2025-11-25", r#"{"elicitation":5,"roots":null}"#, "{}", can(false, false)),
        ("2025-11-25", r#"{"roots":{},"roots":{}}"#, "{}", can(false, false)),
    ] {
        assert_eq!(declared(version, said), (expected.to_owned(), able), "{version} {said}");
    }
}

#[test]
fn a3_4_sampling_has_its_parts_in_the_latest_revision_alone() {
    let said = r#"{"sampling":{"tools":{},"context":{},"x":1}}"#;
    let sampling = Can { sampling: true, ..Can::default() };
    assert_eq!(declared("2025-06-18", said), (r#"{"sampling":{}}"#.to_owned(), sampling));
    let all = Can { sampling: true, tools: true, context: true, ..Can::default() };
    assert_eq!(declared("2025-11-25", said), (r#"{"sampling":{"context":{},"tools":{}}}"#.to_owned(), all));
}

#[test]
fn a3_2_a3_7_what_is_not_the_protocols_own_goes_up_as_far_as_it_is_neutral() {
    let said = r#"{"experimental":{"a":{},"b":5},"extensions":{"io.modelcontextprotocol/ui":{"m":[1]},"io.modelcontextprotocol/tasks":{}},"com.acme":{"n":1e400}}"#;
    let expected = r#"{"com.acme":{"n":1e400},"experimental":{"a":{}},"extensions":{"io.modelcontextprotocol/ui":{"m":[1]}}}"#;
    assert_eq!(declared("2025-11-25", said).0, expected);
    assert_eq!(declared("2025-11-25", r#"{"extensions":{"x/y":{}},"experimental":{"b":5}}"#).0, "{}");
}

#[test]
fn what_is_declared_is_bounded_and_what_can_be_asked_comes_first() {
    let long = "x".repeat(MOST_CAPABILITIES);
    let said = format!(r#"{{"a":{{"v":"{long}"}},"roots":{{}},"elicitation":{{}},"b":{{}}}}"#);
    let expected = r#"{"elicitation":{"form":{}},"roots":{},"b":{}}"#;
    assert_eq!(declared("2025-11-25", &said).0, expected);
}

#[test]
fn a9_who_a_client_is_can_always_be_said() {
    let info = |info: &str| {
        let client = client(&format!(r#"{{"protocolVersion":"x","clientInfo":{info}}}"#));
        String::from_utf8(client.info.to_vec()).unwrap()
    };
    let unknown = r#"{"name":"unknown","version":"0"}"#;
    for broken in ["null", "5", "[]", "{}", r#"{"name":5}"#, r#"{"name":"\ud800","version":7}"#] {
        assert_eq!(info(broken), unknown, "{broken}");
    }
    assert_eq!(info(r#"{"name":"c"}"#), r#"{"name":"c","version":"0"}"#);
    assert_eq!(info(r#"{"version":"2","title":"T"}"#), r#"{"name":"unknown","version":"2","title":"T"}"#);
    assert_eq!(info(r#"{"name":"c","name":"d","version":"2"}"#), r#"{"name":"unknown","version":"2"}"#);
    // In its own order; what a strict server would refuse every request for is left out.
    assert_eq!(
        info(
            r#"{ "version":"1", "x" : [1, 2], "name":"\u0063", "title":5, "websiteUrl":"u", "icons":[{"src":"i"}] }"#
        ),
        r#"{"version":"1","x":[1,2],"name":"\u0063","websiteUrl":"u","icons":[{"src":"i"}]}"#
    );
    assert_eq!(info(r#"{"name":"c","version":"1","icons":[{"src":5}]}"#), r#"{"name":"c","version":"1"}"#);
    let long = "é".repeat(2000);
    let cut = "é".repeat(100);
    assert_eq!(
        info(&format!(r#"{{"name":"{long}","version":"1","title":"t","description":"{long}"}}"#)),
        format!(r#"{{"name":"{cut}","version":"1","title":"t"}}"#)
    );
}

#[test]
fn what_cannot_be_read_is_refused_in_words() {
    for (params, part) in [
        ("{}", "protocolVersion"),
        (r#"{"protocolVersion":5}"#, "protocolVersion"),
        (r#"{"protocolVersion":"a","protocolVersion":"b"}"#, "more than once"),
        (r#"{"protocolVersion":"a","capabilities":{},"capabilities":{}}"#, "more than once"),
        (r#"{"protocolVersion":"a","clientInfo":{},"clientInf\u006f":{}}"#, "more than once"),
        ("null", "params"),
    ] {
        let fault = read(&asked("initialize", params), LIMITS).unwrap_err();
        assert_eq!(fault.kind, FaultKind::InvalidParams);
        assert!(fault.text.contains(part), "{params}: {}", fault.text);
    }
    assert!(read(&request(r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#), LIMITS).is_err());
}

#[test]
fn a_client_that_is_not_to_be_asked_declares_nothing() {
    let client = client(r#"{"protocolVersion":"2025-11-25","capabilities":{"roots":{}}}"#);
    assert!(client.can.anything());
    let silent = client.silent();
    assert_eq!((&silent.capabilities[..], silent.can.anything()), (&b"{}"[..], false));
}
