//! Notifications on their way down, by rule or vector id.
#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::translate::legacy_client::testing::{LIMITS, notification, text};

fn told(method: &str, params: &str) -> Notification {
    notification(&format!(r#"{{"jsonrpc":"2.0","method":"notifications/{method}","params":{params}}}"#))
}

fn progress(token: &str, progress: &str) -> Notification {
    told("progress", &format!(r#"{{"progressToken":{token},"progress":{progress},"message":"m"}}"#))
}

#[test]
fn d93_one_token_over_all_rounds_on_which_progress_only_grows() {
    let mut seen = Progress::default();
    // Round 1 says 1, 2; round 2 begins anew with 1, 3.
    let rounds = [(7, "1", true), (7, "2", true), (8, "1", false), (8, "2.0", false), (8, "3", true)];
    for (number, value, passes) in rounds {
        let message = seen.to_legacy(&progress(&number.to_string(), value), number, b"\"t\"");
        let expected = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":"t","progress":{value},"message":"m"}}}}"#
        );
        assert_eq!(message.map(|message| text(&message)), passes.then_some(expected), "{number} {value}");
    }
}

#[test]
fn a2_3_what_is_no_progress_of_this_round_is_left_out() {
    let mut seen = Progress::default();
    assert!(seen.to_legacy(&progress("\"7\"", "1"), 7, b"1").is_some(), "C17");
    for (token, value) in
        [("7", "2"), ("9", "3"), ("null", "3"), ("8", "\"3\""), ("8", "null"), ("8", "1e999")]
    {
        assert!(seen.to_legacy(&progress(token, value), 8, b"1").is_none(), "{token} {value}");
    }
    let twice = told("progress", r#"{"progressToken":8,"progress":5,"progress":6}"#);
    assert!(seen.to_legacy(&twice, 8, b"1").is_none());
    let bare = notification(r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#);
    assert!(seen.to_legacy(&bare, 8, b"1").is_none());
    let meta = told(
        "progress",
        r#"{"progressToken":8,"progress":5,"_meta":{"io.modelcontextprotocol/subscriptionId":1,"k":2}}"#,
    );
    let out = text(&seen.to_legacy(&meta, 8, b"1").unwrap());
    assert!(out.contains(r#""_meta":{"k":2}"#), "{out}");
}

#[test]
fn a2_4_log_messages_and_custom_ones_lose_modern_words_alone() {
    let log = told(
        "message",
        r#"{"level":"info","data":{"a":-0},"_meta":{"io.modelcontextprotocol/serverInfo":{},"k":1}}"#,
    );
    assert_eq!(
        text(&stripped(&log)),
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":{"a":-0},"_meta":{"k":1}}}"#
    );
}

#[test]
fn d99_a_change_comes_without_the_subscription_it_came_on() {
    let on = r#"{"_meta":{"io.modelcontextprotocol/subscriptionId":"s"}}"#;
    for (method, expected) in [
        ("tools/list_changed", Change::Tools),
        ("prompts/list_changed", Change::Prompts),
        ("resources/list_changed", Change::Resources),
    ] {
        let told = told(method, on);
        assert_eq!(subscription_id(&told), Some(&b"\"s\""[..]));
        let (change, message) = change(&told).unwrap();
        let bare = format!(r#"{{"jsonrpc":"2.0","method":"notifications/{method}"}}"#);
        assert_eq!((change.clone(), text(&message)), (expected.clone(), bare.clone()));
        assert_eq!(text(&announce(&expected)), bare, "B9.7");
    }
    let updated = told(
        "resources/updated",
        r#"{"uri":"file:///\u0061","_meta":{"io.modelcontextprotocol/subscriptionId":1}}"#,
    );
    let (change_seen, message) = change(&updated).unwrap();
    assert_eq!(change_seen, Change::Updated("file:///a".into()));
    assert_eq!(
        text(&message),
        r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///\u0061"}}"#
    );
    assert_eq!(
        text(&announce(&Change::Updated("a\"b".into()))),
        r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a\"b"}}"#
    );
    for (method, params) in
        [("resources/updated", "{}"), ("resources/updated", r#"{"uri":5}"#), ("message", "{}")]
    {
        assert!(change(&told(method, params)).is_none());
    }
    assert_eq!(subscription_id(&told("tools/list_changed", "{}")), None);
}

#[test]
fn a2_10_what_a_server_agrees_to_tell() {
    let acknowledged = |notifications: &str| {
        let told = told(
            "subscriptions/acknowledged",
            &format!(
                r#"{{"notifications":{notifications},"_meta":{{"io.modelcontextprotocol/subscriptionId":1}}}}"#
            ),
        );
        super::acknowledged(&told, LIMITS)
    };
    let all = acknowledged(
        r#"{"toolsListChanged":true,"promptsListChanged":false,"resourcesListChanged":"yes","resourceSubscriptions":["a","\u0062",5]}"#,
    );
    let expected =
        Acknowledged { tools: true, uris: vec!["a".into(), "b".into()], ..Acknowledged::default() };
    assert_eq!(all, Some(expected));
    assert_eq!(acknowledged("{}"), Some(Acknowledged::default()));
    assert_eq!(acknowledged(r#"{"resourceSubscriptions":"a"}"#), Some(Acknowledged::default()));
    for broken in ["null", "5", "[]"] {
        assert_eq!(acknowledged(broken), None);
    }
    assert_eq!(super::acknowledged(&told("tools/list_changed", "{}"), LIMITS), None);
}

#[test]
fn what_the_proxy_says_itself() {
    assert_eq!(
        text(&cancelled(5, "the \"call\" is over")),
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5,"reason":"the \"call\" is over"}}"#
    );
    assert_eq!(
        text(&elicitation_complete("e1")),
        r#"{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"e1"}}"#
    );
}
