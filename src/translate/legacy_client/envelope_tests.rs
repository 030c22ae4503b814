//! Requests on their way up, by rule or vector id.
#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::translate::legacy_client::testing::{able, request as read, text, value};
use serde_json::json;

const META: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{},"url":{}}}"#;

fn up(message: &str) -> String {
    up_with(message, None, &Round::default())
}

fn up_with(message: &str, level: Option<LogLevel>, round: &Round) -> String {
    let asked = read(message);
    text(&request(&asked, Method::of(&asked.method), &able(), level, 77, round))
}

#[test]
fn d71_every_request_gets_the_envelope_and_a_clients_own_is_overwritten() {
    assert_eq!(
        up(
            r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"t","arguments":{"b":-0,"a":1,"a":2},"_meta":{"io.modelcontextprotocol/protocolVersion":"9","traceparent":"00-x","io.modelcontextprotocol/\u0063lientInfo":{},"com.acme/x":1e400}}}"#
        ),
        format!(
            r#"{{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{{"name":"t","arguments":{{"b":-0,"a":1,"a":2}},"_meta":{{{META},"traceparent":"00-x","com.acme/x":1e400}}}}}}"#
        )
    );
}

#[test]
fn a1_4_params_are_there_even_where_the_client_has_none() {
    let listed =
        |params: &str| format!(r#"{{"jsonrpc":"2.0","id":77,"method":"tools/list","params":{params}}}"#);
    let null = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":null}"#;
    assert_eq!(up(null), listed(&format!(r#"{{"_meta":{{{META}}}}}"#)), "C32");
    let absent = up(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    assert_eq!(
        absent,
        format!(r#"{{"params":{{"_meta":{{{META}}}}},"jsonrpc":"2.0","id":77,"method":"tools/list"}}"#)
    );
    let empty = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#;
    assert_eq!(up(empty), listed(&format!(r#"{{"_meta":{{{META}}}}}"#)));
    let cursor = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":""}}"#;
    assert_eq!(up(cursor), listed(&format!(r#"{{"_meta":{{{META}}},"cursor":""}}"#)), "A4.18");
    let own = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{}}}"#;
    assert_eq!(up(own), listed(&format!(r#"{{"_meta":{{{META}}}}}"#)));
}

#[test]
fn a4_5_the_progress_token_is_the_rounds_number() {
    let with = |token: &str| {
        up(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{{"progressToken":{token},"a":1}}}}}}"#
        ))
    };
    let params = |token: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":77,"method":"tools/list","params":{{"_meta":{{{META}{token},"a":1}}}}}}"#
        )
    };
    assert_eq!(with("\"t\""), params(r#","progressToken":77"#));
    assert_eq!(with("5"), params(r#","progressToken":77"#));
    assert_eq!(with("null"), params(""));
    assert_eq!(with("{}"), params(""));
}

#[test]
fn d102_the_log_level_of_the_session_goes_on_every_request() {
    let message = r#"{"jsonrpc":"2.0","id":1,"method":"prompts/list"}"#;
    let level = up_with(message, Some(LogLevel::Warning), &Round::default());
    assert!(level.contains(r#","io.modelcontextprotocol/logLevel":"warning""#), "{level}");
    assert!(!up(message).contains("logLevel"));
    // Not the client's to say here.
    let own = r#"{"jsonrpc":"2.0","id":1,"method":"prompts/list","params":{"_meta":{"io.modelcontextprotocol/logLevel":"debug"}}}"#;
    assert!(!up(own).contains("logLevel"));
}

#[test]
fn d111_a1_5_no_task_is_asked_for_and_no_answer_is_smuggled_in() {
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"task":{"ttl":1},"name":"t","inputResponses":{},"request\u0053tate":"x","arguments":null,"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"x"}}}}"#;
    assert_eq!(
        up(call),
        format!(
            r#"{{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{{"name":"t","_meta":{{{META}}}}}}}"#
        )
    );
    // Of a method that no revision defines, no member is known to mean that.
    let custom = r#"{"jsonrpc":"2.0","id":1,"method":"acme/run","params":{"task":1,"requestState":2,"arguments":null}}"#;
    let custom: serde_json::Value = serde_json::from_str(&up(custom)).unwrap();
    let params = custom["params"].as_object().unwrap();
    assert_eq!(params.keys().collect::<Vec<_>>(), ["_meta", "arguments", "requestState", "task"], "A1.16");
}

#[test]
fn d84_d85_a_round_brings_its_own_answers_and_state_byte_for_byte() {
    let message = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#;
    let round = Round {
        responses: Some(Bytes::from_static(br#"{"a":{"action":"accept","content":{"n":2.50}}}"#)),
        state: Some(Bytes::from_static(br#""S\u0031""#)),
    };
    assert_eq!(
        up_with(message, None, &round),
        format!(
            r#"{{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{{"inputResponses":{{"a":{{"action":"accept","content":{{"n":2.50}}}}}},"requestState":"S\u0031","_meta":{{{META}}},"name":"t"}}}}"#
        )
    );
    let round = Round { state: None, ..round };
    assert!(!up_with(message, None, &round).contains("requestState"));
    let round = Round { responses: None, state: Some(Bytes::from_static(b"\"\"")) };
    assert!(
        up_with(message, None, &round).contains(r#"{"requestState":"","_meta":"#),
        "an empty state is one"
    );
}

#[test]
fn requests_of_the_proxys_own_have_the_same_envelope() {
    let listed = own("tools/list", r#""cursor":"c""#, &able(), 9);
    assert_eq!(
        text(&listed),
        format!(
            r#"{{"jsonrpc":"2.0","id":9,"method":"tools/list","params":{{"cursor":"c","_meta":{{{META}}}}}}}"#
        )
    );
    let meta = value(&own("server/discover", "", &able().silent(), 9))["params"].clone();
    assert_eq!(meta["_meta"]["io.modelcontextprotocol/clientCapabilities"], json!({}));
}

#[test]
fn a2_11_a_notification_has_no_envelope() {
    let told = |params: &str| {
        let message = format!(r#"{{"jsonrpc":"2.0","method":"notifications/acme"{params}}}"#);
        text(&notification(&crate::translate::legacy_client::testing::notification(&message)))
    };
    assert_eq!(
        told(r#","params":{"a":1}"#),
        r#"{"jsonrpc":"2.0","method":"notifications/acme","params":{"a":1}}"#
    );
    let foreign = r#","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"9","io.modelcontextprotocol/related-task":{}}}"#;
    assert_eq!(told(foreign), r#"{"jsonrpc":"2.0","method":"notifications/acme"}"#);
}
