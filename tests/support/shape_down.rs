//! What a legacy client may be sent by a proxy that stands before a modern server, from the texts and schemas of its own
//! revision: results, errors, requests and notifications, each by revision and by what the client has declared.
//!
//! Owns the form of single messages and of a whole stream (architecture, invariant 6). Does not own what one test expects,
//! or what a legacy server's own messages, which are passed on as they are, may look like (`shape_legacy`).

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::shape::assert_only;
use super::shape_down_asks::question;

/// Members of 2026-07-28 that no earlier revision knows.
const MODERN: [&str; 6] =
    ["resultType", "ttlMs", "cacheScope", "inputRequests", "inputResponses", "requestState"];
const RESERVED: [&str; 6] =
    ["protocolVersion", "clientInfo", "clientCapabilities", "logLevel", "subscriptionId", "serverInfo"];
/// Notifications that belong on the stream that the client opens by GET (A2.5, B9.8).
pub const CHANGES: [&str; 4] = [
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
    "notifications/resources/updated",
];

/// Whose eyes a message is looked at with.
#[derive(Debug, Clone)]
pub struct View {
    pub revision: String,
    /// What the client has declared.
    pub declared: Value,
}

/// What a stream answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Of {
    /// Requests under these ids (raw JSON), each with its method and its progress token.
    Requests(Vec<(String, String, Option<Value>)>),
    /// The client's GET.
    Session,
    /// A GET that takes up another stream: what it is of is not known here.
    Taken,
}

/// One event of a stream; an empty one holds no message.
#[derive(Debug, Clone)]
pub struct Heard {
    pub id: String,
    pub raw: String,
    pub message: Value,
}

/// Fails the test where the events of one stream, in order, break a rule.
pub fn stream(view: &View, of: &Of, heard: &[Heard]) {
    let texts: Vec<_> = heard.iter().map(|one| &one.raw).collect();
    let context = format!("a stream to a client of {}: {of:?} {texts:?}", view.revision);
    let mut ids = HashSet::new();
    let mut progress: HashMap<String, f64> = HashMap::new();
    let mut answered = HashSet::new();
    for (n, one) in heard.iter().enumerate() {
        if !one.id.is_empty() {
            assert!(ids.insert(&one.id), "an event id is used once: {context}");
        }
        if one.raw.is_empty() {
            // A13.5: the first event of a stream to the latest of them.
            assert!(view.revision == "2025-11-25" && n == 0, "an event without a message: {context}");
            assert!(!one.id.is_empty(), "a priming event has an id: {context}");
            continue;
        }
        let message = &one.message;
        match message.get("method").and_then(Value::as_str) {
            Some(method) if message.get("id").is_some() => {
                assert!(*of != Of::Session, "B2.2: a question on its call's stream: {context}");
                question(view, method, message, &context);
            }
            Some(method) => notification(view, of, method, message, &mut progress, &context),
            None => {
                assert!(*of != Of::Session, "no answers on a GET stream: {context}");
                assert!(answered.insert(message["id"].to_string()), "one answer: {context}");
                let known = match of {
                    Of::Requests(all) => {
                        let raw = super::rpc::id(one.raw.as_bytes()).unwrap_or_default();
                        let found = all.iter().find(|(id, ..)| *id == raw);
                        let found = found.unwrap_or_else(|| panic!("an answer to nothing: {context}"));
                        let last = answered.len() == all.len();
                        assert!(!last || n + 1 == heard.len(), "nothing comes after the answer: {context}");
                        Some(found.1.as_str())
                    }
                    Of::Session | Of::Taken => None,
                };
                answer(view, known, message, &context);
            }
        }
    }
}

/// Fails the test where a response breaks a rule; the method is that of the request, if it is known.
pub fn answer(view: &View, method: Option<&str>, message: &Value, context: &str) {
    let object = object(message, context);
    assert_only(object, &["jsonrpc", "id", "result", "error"], context);
    assert_eq!(message["jsonrpc"], "2.0", "{context}");
    assert_eq!(object.contains_key("result"), !object.contains_key("error"), "result or error: {context}");
    match object.get("result") {
        Some(result) => {
            no_modern_words(result, context);
            if let Some(method) = method {
                result_of(view, method, result, context);
            }
        }
        None => error(&message["error"], context),
    }
}

fn error(error: &Value, context: &str) {
    assert_only(object(error, context), &["code", "message", "data"], context);
    let code = error["code"].as_i64().unwrap_or_else(|| panic!("an integer code: {context}"));
    assert!(error["message"].as_str().is_some_and(|m| !m.is_empty()), "a message: {context}");
    assert!(!(-32022..=-32020).contains(&code), "a code of 2026-07-28: {context}");
    assert_ne!(code, -32042, "B4.3: {context}");
}

/// No member and no reserved key of 2026-07-28 at the top of a result or of parameters.
pub fn no_modern_words(holder: &Value, context: &str) {
    for word in MODERN {
        assert!(holder.get(word).is_none(), "{word} to a legacy client: {context}");
    }
    for key in RESERVED {
        let key = format!("io.modelcontextprotocol/{key}");
        assert!(holder["_meta"].get(&key).is_none(), "{key} to a legacy client: {context}");
    }
    let empty = holder["_meta"].as_object().is_some_and(Map::is_empty);
    assert!(!empty, "an empty _meta is left out: {context}");
}

fn notification(
    view: &View,
    of: &Of,
    method: &str,
    message: &Value,
    progress: &mut HashMap<String, f64>,
    context: &str,
) {
    assert_only(object(message, context), &["jsonrpc", "method", "params"], context);
    assert_eq!(message["jsonrpc"], "2.0", "{context}");
    let params = &message["params"];
    no_modern_words(params, context);
    match method {
        "notifications/progress" => {
            let token = &params["progressToken"];
            if let Of::Requests(all) = of {
                let own = all.iter().any(|(_, _, own)| own.as_ref() == Some(token));
                assert!(own, "progress under another token: {context}");
            }
            let now = params["progress"].as_f64().unwrap_or_else(|| panic!("progress: {context}"));
            let before = progress.insert(token.to_string(), now);
            assert!(before.is_none_or(|before| before < now), "progress MUST increase: {context}");
        }
        "notifications/message" => {
            let told = params["level"].is_string() && params.get("data").is_some();
            assert!(told, "a log message: {context}");
        }
        "notifications/cancelled" => {
            assert!(params["requestId"].is_i64() || params["requestId"].is_string(), "{context}");
        }
        "notifications/elicitation/complete" => {
            assert_eq!(view.revision, "2025-11-25", "B4.4: {context}");
            assert!(params["elicitationId"].is_string(), "{context}");
        }
        "notifications/resources/updated" => {
            assert!(!matches!(of, Of::Requests(_)), "a change on a call's stream: {context}");
            assert!(params["uri"].is_string(), "{context}");
        }
        change if CHANGES.contains(&change) => {
            assert!(!matches!(of, Of::Requests(_)), "a change on a call's stream: {context}");
        }
        "notifications/initialized" | "notifications/roots/list_changed" => {
            panic!("a client's own notification: {context}")
        }
        modern if modern.starts_with("notifications/subscriptions/") => panic!("A2.10: {context}"),
        _ => {}
    }
}

fn result_of(view: &View, method: &str, result: &Value, context: &str) {
    let array = |name: &str| result[name].as_array().unwrap_or_else(|| panic!("{name}: {context}"));
    let text = |value: &Value, name: &str| assert!(value[name].is_string(), "{name} is text: {context}");
    match method {
        "initialize" => initialized(view, result, context),
        "tools/list" => array("tools").iter().for_each(|tool| self::tool(view, tool, context)),
        "tools/call" => called(view, result, context),
        "prompts/list" => array("prompts").iter().for_each(|prompt| text(prompt, "name")),
        "prompts/get" => {
            for message in array("messages") {
                text(message, "role");
                block(view, &message["content"], false, context);
            }
        }
        "resources/list" => array("resources").iter().for_each(|resource| {
            text(resource, "uri");
            text(resource, "name");
        }),
        "resources/templates/list" => {
            array("resourceTemplates").iter().for_each(|template| text(template, "uriTemplate"));
        }
        "resources/read" => array("contents").iter().for_each(|content| {
            text(content, "uri");
            assert!(content["text"].is_string() || content["blob"].is_string(), "{context}");
        }),
        "completion/complete" => {
            let values = result["completion"]["values"].as_array();
            assert!(values.is_some_and(|values| values.len() <= 100), "{context}");
        }
        "ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" => {
            assert_eq!(*result, json!({}), "{context}");
        }
        _ => {}
    }
}

fn initialized(view: &View, result: &Value, context: &str) {
    assert_eq!(result["protocolVersion"], json!(view.revision), "{context}");
    for member in ["name", "version"] {
        assert!(result["serverInfo"][member].is_string(), "serverInfo: {context}");
    }
    assert!(result.get("supportedVersions").is_none(), "{context}");
    assert!(result.get("instructions").is_none_or(Value::is_string), "{context}");
    for (name, value) in object(&result["capabilities"], context) {
        assert!(value.is_object(), "capability {name}: {context}");
        let known = ["experimental", "extensions", "logging", "completions", "prompts", "resources", "tools"];
        assert!(known.contains(&name.as_str()), "capability {name} (A3.12): {context}");
    }
}

fn tool(view: &View, tool: &Value, context: &str) {
    assert!(tool["name"].is_string(), "a tool's name: {context}");
    assert_eq!(tool["inputSchema"]["type"], "object", "{context}");
    assert!(tool.get("execution").is_none(), "A5.8: {context}");
    match (view.revision.as_str(), tool.get("outputSchema")) {
        ("2024-11-05" | "2025-03-26", schema) => assert_eq!(schema, None, "B6.6: {context}"),
        (_, Some(schema)) => assert_eq!(schema["type"], "object", "B6.1: {context}"),
        (_, None) => {}
    }
}

fn called(view: &View, result: &Value, context: &str) {
    let content = result["content"].as_array().unwrap_or_else(|| panic!("content (A5.14): {context}"));
    content.iter().for_each(|one| block(view, one, false, context));
    assert!(result.get("isError").is_none_or(Value::is_boolean), "{context}");
    match (view.revision.as_str(), result.get("structuredContent")) {
        ("2024-11-05" | "2025-03-26", value) => assert_eq!(value, None, "B6.6: {context}"),
        (_, value) => assert!(value.is_none_or(Value::is_object), "A5.6: {context}"),
    }
}

/// A content block of the client's revision (A6); in a message of sampling there are others.
pub fn block(view: &View, block: &Value, sampling: bool, context: &str) {
    let revision = view.revision.as_str();
    let kind = block["type"].as_str().unwrap_or_else(|| panic!("a block has a type: {context}"));
    let known = match kind {
        "text" => block["text"].is_string(),
        "image" => block["data"].is_string() && block["mimeType"].is_string(),
        "audio" => revision >= "2025-03-26" && block["data"].is_string() && block["mimeType"].is_string(),
        "resource" => !sampling && block["resource"]["uri"].is_string(),
        "resource_link" => {
            !sampling && revision >= "2025-06-18" && block["uri"].is_string() && block["name"].is_string()
        }
        "tool_use" | "tool_result" => sampling && revision == "2025-11-25",
        _ => false,
    };
    assert!(known, "{kind} is no block of {revision}: {context}");
    if kind == "resource" {
        let held = &block["resource"];
        assert!(held["text"].is_string() || held["blob"].is_string(), "a resource holds it: {context}");
    }
}

pub fn object<'a>(value: &'a Value, context: &str) -> &'a Map<String, Value> {
    value.as_object().unwrap_or_else(|| panic!("an object, not {value}: {context}"))
}
