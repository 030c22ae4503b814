//! What any answer to a legacy client must look like, from the texts of its revisions; applied to every exchange.
//!
//! Owns checks that hold whatever the request was: form, id, headers of streams, and that no modern vocabulary gets
//! through. Does not own what one test expects.

use serde_json::json;

use super::shape::assert_only;
use super::{Ask, Done, rpc};

/// Fails the test where the answer breaks a rule of the specification.
pub fn check(ask: &Ask, done: &Done) {
    let context = format!("answer to {} {}: {} {}", ask.verb, ask.method, done.status, done.raw);
    let body = ask.body();
    let id = rpc::id(&body).filter(|_| rpc::method(&body).is_some());
    let media_type = done.headers.media_type();
    if media_type.as_deref() == Some("text/event-stream") {
        assert_eq!(done.status, 200, "a stream has status 200: {context}");
        // C16: no intermediary may hold a stream back.
        assert_eq!(done.headers.get("x-accel-buffering").as_deref(), Some("no"), "{context}");
    }
    if done.status == 200 && ask.verb == "POST" {
        let control = done.headers.get("cache-control").unwrap_or_default();
        assert!(control.contains("no-store") && control.contains("no-cache"), "Cache-Control: {context}");
    }
    let Some(id) = id else {
        assert_ne!((done.status, done.raw.is_empty()), (202, false), "202 has no body: {context}");
        return;
    };
    // C04: a request is never answered by nothing; A12.21: what goes wrong upstream is an answer all the same.
    assert!(done.status != 202 && done.status < 500, "a request gets an answer: {context}");
    if done.status != 200 {
        return;
    }
    let message = done.message.as_object().unwrap_or_else(|| panic!("a message: {context}"));
    assert_only(message, &["jsonrpc", "id", "result", "error"], &context);
    assert_eq!(message.get("jsonrpc"), Some(&json!("2.0")), "{context}");
    assert_eq!(message.contains_key("result"), !message.contains_key("error"), "result or error: {context}");
    assert_eq!(
        rpc::id(done.raw.as_bytes()).as_deref(),
        Some(&*id),
        "the caller's id as it was written: {context}"
    );
    let code = done.message["error"]["code"].as_i64();
    assert!(code.is_none_or(|code| !(-32022..=-32020).contains(&code)), "a modern code: {context}");
}
