//! What a legacy client may be asked, from the texts and schemas of its own revision (client/elicitation, client/sampling,
//! client/roots): only what it declared, in the words that its revision has.
//!
//! Owns the form of the requests to clients (`shape_down` has the rest). Does not own what one test expects to be asked.

use serde_json::Value;

use super::shape::assert_only;
use super::shape_down::{View, block, no_modern_words, object};

/// Fails the test where a request to the client breaks a rule.
pub fn question(view: &View, method: &str, message: &Value, context: &str) {
    assert_only(object(message, context), &["jsonrpc", "id", "method", "params"], context);
    assert_eq!(message["jsonrpc"], "2.0", "{context}");
    assert!(message["id"].is_i64() || message["id"].is_string(), "a question's id: {context}");
    let params = &message["params"];
    no_modern_words(params, context);
    for word in ["task", "jsonrpc", "id"] {
        assert!(params.get(word).is_none(), "{word} in a question: {context}");
    }
    match method {
        "elicitation/create" => elicitation(view, params, context),
        "sampling/createMessage" => sampling(view, params, context),
        "roots/list" => {
            assert!(view.declared["roots"].is_object(), "roots were not declared: {context}");
            assert!(message.get("params").is_none_or(Value::is_object), "{context}");
        }
        "ping" => {}
        _ => panic!("{method} is no request to a client: {context}"),
    }
}

fn elicitation(view: &View, params: &Value, context: &str) {
    let declared = &view.declared["elicitation"];
    assert!(declared.is_object(), "elicitation was not declared: {context}");
    assert!(view.revision.as_str() >= "2025-06-18", "A1.13: {context}");
    assert!(params["message"].is_string(), "a message: {context}");
    let latest = view.revision == "2025-11-25";
    match params.get("mode").and_then(Value::as_str) {
        Some("url") => {
            assert!(latest && declared["url"].is_object(), "URLs were not declared: {context}");
            assert!(params["url"].is_string(), "a url: {context}");
            assert!(params["elicitationId"].as_str().is_some_and(|id| !id.is_empty()), "A8.2: {context}");
        }
        mode => {
            assert!(mode.is_none_or(|mode| mode == "form"), "mode: {context}");
            assert!(latest || params.get("mode").is_none(), "A8.1: {context}");
            let bare = declared.as_object().is_some_and(|modes| modes.is_empty());
            assert!(!latest || bare || declared["form"].is_object(), "forms not declared: {context}");
            assert!(params.get("elicitationId").is_none() && params.get("url").is_none(), "{context}");
            form(latest, &params["requestedSchema"], context);
        }
    }
}

fn form(latest: bool, schema: &Value, context: &str) {
    assert_eq!(schema["type"], "object", "requestedSchema: {context}");
    let fields = object(&schema["properties"], context);
    if !latest {
        assert_only(object(schema, context), &["type", "properties", "required"], context);
    }
    for required in schema["required"].as_array().into_iter().flatten() {
        let named = required.as_str().is_some_and(|name| fields.contains_key(name));
        assert!(named, "a required field that is none: {context}");
    }
    for (name, field) in fields {
        let kind = field["type"].as_str().unwrap_or_default();
        let known = match kind {
            "string" | "number" | "integer" | "boolean" => true,
            "array" => latest && (field["items"]["enum"].is_array() || field["items"]["anyOf"].is_array()),
            _ => false,
        };
        assert!(known, "field {name} of type {kind}: {context}");
        if latest {
            continue;
        }
        // A8.4, A8.5, B10: what a form of 2025-06-18 can be.
        for word in ["oneOf", "anyOf", "const", "items"] {
            assert!(field.get(word).is_none(), "{word} in field {name}: {context}");
        }
        let default = field.get("default");
        assert!(default.is_none() || kind == "boolean", "a default in field {name}: {context}");
        if let Some(names) = field.get("enumNames") {
            let (names, values) = (names.as_array(), field["enum"].as_array());
            assert_eq!(names.map(Vec::len), values.map(Vec::len), "field {name}: {context}");
        }
    }
}

fn sampling(view: &View, params: &Value, context: &str) {
    let declared = &view.declared["sampling"];
    assert!(declared.is_object(), "sampling was not declared: {context}");
    assert!(params["maxTokens"].is_i64(), "maxTokens: {context}");
    let latest = view.revision == "2025-11-25";
    let tools = params.get("tools").is_some() || params.get("toolChoice").is_some();
    assert!(!tools || latest && declared["tools"].is_object(), "A8.9: {context}");
    let included = params.get("includeContext").is_some_and(|include| include != "none");
    assert!(!included || latest && declared["context"].is_object(), "A8.10: {context}");
    let messages = params["messages"].as_array().unwrap_or_else(|| panic!("messages: {context}"));
    assert!(!messages.is_empty(), "messages: {context}");
    for message in messages {
        let role = message["role"].as_str().unwrap_or_default();
        assert!(["user", "assistant"].contains(&role), "a role: {context}");
        match message["content"].as_array() {
            Some(blocks) => {
                assert!(latest, "A6.7: {context}");
                blocks.iter().for_each(|one| block(view, one, true, context));
            }
            None => block(view, &message["content"], true, context),
        }
    }
}
