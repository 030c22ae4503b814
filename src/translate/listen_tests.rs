//! Vectors of `listen`.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::wire::jsonrpc::{self, Message};

const LIMITS: Limits = Limits { nesting: 64, members: 64 };

fn request(notifications: &str) -> Request {
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":"s\u0031","method":"subscriptions/listen","params":{{"_meta":{{}}{notifications}}}}}"#
    );
    match jsonrpc::parse(Bytes::from(text), LIMITS).unwrap() {
        Message::Request(request) => request,
        other => panic!("{other:?}"),
    }
}

fn notification(text: &str) -> Notification {
    match jsonrpc::parse(Bytes::from(text.to_owned()), LIMITS).unwrap() {
        Message::Notification(notification) => notification,
        other => panic!("{other:?}"),
    }
}

fn read(notifications: &str) -> Result<Filter, FilterFault> {
    Filter::read(&request(&format!(r#","notifications":{notifications}"#)), LIMITS, 3)
}

/// Spec subscriptions, Notification Filter: every field is optional.
#[test]
fn a_filter_is_what_was_asked_for() {
    assert!(read("{}").unwrap().is_empty());
    assert!(read(r#"{"toolsListChanged":false,"vendor":[1]}"#).unwrap().is_empty());
    let all = read(
        r#"{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,
            "resourceSubscriptions":["a","\u0061","b/"]}"#,
    )
    .unwrap();
    assert!(all.tools && all.prompts && all.resources);
    assert_eq!(all.uris, [Arc::from("a"), Arc::from("b/")], "each URI once, however it is escaped");
}

#[test]
fn what_is_no_filter_is_refused() {
    assert_eq!(Filter::read(&request(""), LIMITS, 3), Err(FilterFault::Missing));
    assert_eq!(read("[]"), Err(FilterFault::Missing));
    assert_eq!(read(r#"{"toolsListChanged":1}"#), Err(FilterFault::Flag("toolsListChanged")));
    assert_eq!(read(r#"{"toolsListChanged":null}"#), Err(FilterFault::Flag("toolsListChanged")));
    assert_eq!(read(r#"{"resourceSubscriptions":"a"}"#), Err(FilterFault::Uris));
    assert_eq!(read(r#"{"resourceSubscriptions":["a",1]}"#), Err(FilterFault::Uris));
    assert_eq!(read(r#"{"resourceSubscriptions":["a","b","c","d"]}"#), Err(FilterFault::TooMany(3)));
    assert_eq!(
        read(r#"{"toolsListChanged":true,"toolsListChanged":true}"#),
        Err(FilterFault::Twice("toolsListChanged"))
    );
}

/// D98, B9.4.
#[test]
fn a_subscription_covers_sub_resources() {
    for (subscribed, uri, covered) in [
        ("file:///d", "file:///d", true),
        ("file:///d", "file:///d/a", true),
        ("file:///d", "file:///dx", false),
        ("file:///d/", "file:///d/a", true),
        ("file:///d/", "file:///d", false),
        ("file:///d/a", "file:///d", false),
    ] {
        let filter = Filter { uris: vec![Arc::from(subscribed)], ..Filter::default() };
        assert_eq!(filter.covers(&Change::Updated(Arc::from(uri))), covered, "{subscribed} and {uri}");
    }
}

/// A4.9: the id with its JSON type; what else the notification says stays (B9).
#[test]
fn a_notice_is_tagged_with_its_listeners_id() {
    let key = meta::SUBSCRIPTION_ID;
    for (came, goes) in [
        (
            r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#.to_owned(),
            format!(
                r#"{{"params":{{"_meta":{{"{key}":"s\u0031"}}}},"jsonrpc":"2.0","method":"notifications/tools/list_changed"}}"#
            ),
        ),
        (
            r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":null}"#.to_owned(),
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{{"_meta":{{"{key}":"s\u0031"}}}}}}"#
            ),
        ),
        (
            r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a","x":1.0}}"#
                .to_owned(),
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"_meta":{{"{key}":"s\u0031"}},"uri":"a","x":1.0}}}}"#
            ),
        ),
        (
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":"a","_meta":{{"{key}":7,"v/x":1}}}}}}"#
            ),
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":"a","_meta":{{"{key}":"s\u0031","v/x":1}}}}}}"#
            ),
        ),
    ] {
        let notice = Notice::of(notification(&came)).unwrap();
        assert_eq!(notice.tagged(&request("").id).to_bytes(), goes);
    }
}

#[test]
fn a_large_notice_is_reduced_to_its_change() {
    let text = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":"a\"b","x":"{}"}}}}"#,
        "y".repeat(LARGE)
    );
    let notice = Notice::of(notification(&text)).unwrap();
    let expected = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"_meta":{{"{}":5}},"uri":"a\"b"}}}}"#,
        meta::SUBSCRIPTION_ID
    );
    assert_eq!(notice.tagged(&Id::number(5)).to_bytes(), expected);
}

#[test]
fn only_changes_are_notices() {
    assert!(Notice::of(notification(r#"{"jsonrpc":"2.0","method":"notifications/message"}"#)).is_none());
    let without = r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{}}"#;
    assert!(Notice::of(notification(without)).is_none());
}
