//! What a result that asks the client (`input_required`) must look like, from the 2026-07-28 text (basic/patterns/mrtr,
//! client/elicitation, client/sampling, client/roots) and from what a proxy may pass on of an older server's question.
//!
//! Owns the checks of the result and of each question in it; applied to every round (`rounds`). Does not own what one test
//! expects to be asked.

use serde_json::Value;

use super::shape::assert_only;
use super::{Ask, CAPS, rpc};

/// Members that belong to the message around a question, or to vocabulary of 2025-11-25 alone (B1.1, A1.12, A8.8).
const NEVER: [&str; 5] = ["id", "jsonrpc", "_meta", "task", "elicitationId"];

/// Fails the test where the result breaks a rule for the request that it answers.
pub fn check(ask: &Ask, result: &Value) {
    let context = format!("questions of {}: {result}", ask.method);
    assert_only(
        result.as_object().expect("a result is an object"),
        &["resultType", "inputRequests", "requestState", "_meta"],
        &context,
    );
    assert!(result["requestState"].as_str().is_some_and(|state| !state.is_empty()), "a state: {context}");
    let meta = result["_meta"].as_object().unwrap_or_else(|| panic!("_meta: {context}"));
    assert_only(meta, &["io.modelcontextprotocol/serverInfo"], &context);
    let info = &meta["io.modelcontextprotocol/serverInfo"];
    assert!(info["name"].is_string() && info["version"].is_string(), "serverInfo: {context}");
    let entries = result["inputRequests"].as_object().unwrap_or_else(|| panic!("questions: {context}"));
    assert!(!entries.is_empty(), "something is asked: {context}");
    let body = rpc::value(&ask.body()).expect("a request");
    let declared = &body["params"]["_meta"][CAPS];
    for (key, entry) in entries {
        assert!(!key.is_empty(), "a key: {context}");
        question(declared, entry, &context);
    }
}

fn question(declared: &Value, entry: &Value, context: &str) {
    let object = entry.as_object().unwrap_or_else(|| panic!("a question is an object: {context}"));
    assert_only(object, &["method", "params"], context);
    let params = &entry["params"];
    for word in NEVER {
        assert!(params.get(word).is_none(), "{word} in a question: {context}");
    }
    match entry["method"].as_str() {
        Some("elicitation/create") => elicitation(&declared["elicitation"], params, context),
        Some("sampling/createMessage") => sampling(&declared["sampling"], params, context),
        Some("roots/list") => {
            assert!(declared["roots"].is_object(), "roots were not declared: {context}");
            assert!(object.get("params").is_none(), "D43: {context}");
        }
        _ => panic!("no question of this revision: {context}"),
    }
}

fn elicitation(declared: &Value, params: &Value, context: &str) {
    assert!(declared.is_object(), "elicitation was not declared: {context}");
    assert!(params["message"].is_string(), "a message: {context}");
    match params.get("mode").map(|mode| mode.as_str()) {
        None | Some(Some("form")) => {
            let bare = declared.as_object().is_some_and(|modes| modes.is_empty());
            assert!(bare || declared["form"].is_object(), "forms were not declared: {context}");
            let schema = &params["requestedSchema"];
            assert_eq!(schema["type"], "object", "requestedSchema: {context}");
            assert!(schema["properties"].is_object(), "requestedSchema: {context}");
        }
        Some(Some("url")) => {
            assert!(declared["url"].is_object(), "URLs were not declared: {context}");
            assert!(params["url"].is_string(), "a url: {context}");
        }
        Some(_) => panic!("mode: {context}"),
    }
}

fn sampling(declared: &Value, params: &Value, context: &str) {
    assert!(declared.is_object(), "sampling was not declared: {context}");
    assert!(params["messages"].is_array() && params["maxTokens"].is_i64(), "sampling: {context}");
    let tools = params.get("tools").is_some() || params.get("toolChoice").is_some();
    assert!(!tools || declared["tools"].is_object(), "sampling tools were not declared: {context}");
    let included = params.get("includeContext").is_some_and(|include| include != "none");
    assert!(!included || declared["context"].is_object(), "A8.10: {context}");
}
