//! What a subscription's stream must look like to a modern client, from the 2026-07-28 text (basic/patterns/subscriptions).
//!
//! Owns the checks of everything that comes on one `subscriptions/listen` stream: the acknowledgement first, then only
//! what it names, each tagged with the request's id in its own type, then at most one result. Does not own what one test
//! expects to hear.

use serde_json::Value;

use super::shape::assert_only;

pub const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
/// Of the task vocabulary of 2025-11-25.
const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
const FLAGS: [(&str, &str); 3] = [
    ("notifications/tools/list_changed", "toolsListChanged"),
    ("notifications/prompts/list_changed", "promptsListChanged"),
    ("notifications/resources/list_changed", "resourcesListChanged"),
];

/// Fails the test where the messages of one stream, in order, break a rule. `asked` is `params.notifications`.
pub fn check(id: &Value, asked: &Value, messages: &[Value]) {
    let Some((first, rest)) = messages.split_first() else { return };
    let context = format!("subscription {id} for {asked}: {messages:?}");
    let honoured = acknowledgement(id, asked, first, &context);
    for (n, message) in rest.iter().enumerate() {
        if message.get("method").is_some() {
            change(id, honoured, message, &context);
        } else {
            assert_eq!(n + 1, rest.len(), "nothing comes after the result: {context}");
            result(id, message, &context);
        }
    }
}

fn acknowledgement<'a>(id: &Value, asked: &Value, message: &'a Value, context: &str) -> &'a Value {
    assert_only(object(message, context), &["jsonrpc", "method", "params"], context);
    assert_eq!(message["jsonrpc"], "2.0", "{context}");
    assert_eq!(message["method"], "notifications/subscriptions/acknowledged", "first of all: {context}");
    let params = &message["params"];
    assert_only(object(params, context), &["_meta", "notifications"], context);
    tag(id, params, context);
    let honoured = &params["notifications"];
    for (name, value) in object(honoured, context) {
        match name.as_str() {
            "resourceSubscriptions" => {
                let uris = value.as_array().unwrap_or_else(|| panic!("an array: {context}"));
                let wanted = asked["resourceSubscriptions"].as_array().cloned().unwrap_or_default();
                assert!(!uris.is_empty(), "what is not honoured is left out: {context}");
                for uri in uris {
                    assert!(wanted.contains(uri), "{uri} was not asked for: {context}");
                    let times = uris.iter().filter(|other| *other == uri).count();
                    assert_eq!(times, 1, "{uri} once: {context}");
                }
            }
            flag if FLAGS.iter().any(|(_, known)| *known == flag) => {
                assert_eq!(value, true, "{flag} is honoured or left out: {context}");
                assert_eq!(asked[flag], true, "{flag} was not asked for: {context}");
            }
            other => panic!("{other} is no member of a filter: {context}"),
        }
    }
    honoured
}

fn change(id: &Value, honoured: &Value, message: &Value, context: &str) {
    assert_only(object(message, context), &["jsonrpc", "method", "params"], context);
    assert_eq!(message["jsonrpc"], "2.0", "{context}");
    let method = message["method"].as_str().unwrap_or_default();
    let params = &message["params"];
    tag(id, params, context);
    if let Some((_, flag)) = FLAGS.iter().find(|(known, _)| *known == method) {
        assert_eq!(honoured[flag], true, "{method} was not promised: {context}");
        return;
    }
    assert_eq!(method, "notifications/resources/updated", "no change notification: {context}");
    let uri = params["uri"].as_str().unwrap_or_else(|| panic!("an update names its resource: {context}"));
    let subscribed = honoured["resourceSubscriptions"].as_array().cloned().unwrap_or_default();
    let within = |parent: &str| {
        uri == parent
            || parent.ends_with('/') && uri.starts_with(parent)
            || uri.starts_with(&format!("{parent}/"))
    };
    let covered = subscribed.iter().any(|parent| within(parent.as_str().unwrap_or_default()));
    assert!(covered, "{uri} is within nothing that was subscribed to: {context}");
}

fn result(id: &Value, message: &Value, context: &str) {
    assert_only(object(message, context), &["jsonrpc", "id", "result"], context);
    assert_eq!(message["jsonrpc"], "2.0", "{context}");
    assert_eq!(&message["id"], id, "the caller's id in its own type: {context}");
    assert_eq!(message["result"]["resultType"], "complete", "{context}");
    assert_only(object(&message["result"], context), &["resultType", "_meta"], context);
    tag(id, &message["result"], context);
}

/// `_meta` names the subscription, and holds no vocabulary of the other era.
fn tag(id: &Value, holder: &Value, context: &str) {
    assert_eq!(&holder["_meta"][SUBSCRIPTION], id, "the subscription's id in its own type: {context}");
    assert!(!object(&holder["_meta"], context).contains_key(RELATED_TASK), "{RELATED_TASK}: {context}");
}

fn object<'a>(value: &'a Value, context: &str) -> &'a serde_json::Map<String, Value> {
    value.as_object().unwrap_or_else(|| panic!("an object, not {value}: {context}"))
}
