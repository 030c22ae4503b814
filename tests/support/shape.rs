//! What any answer to a modern client must look like, from the 2026-07-28 text; applied to every exchange.
//!
//! Owns checks that hold whatever the request was: status against code, result members, ids, stream form, and that
//! no legacy vocabulary gets through. Does not own requests to servers (`shape_requests`) or what one test expects.

use serde_json::{Map, Value, json};

use super::{Ask, Done, rpc};

/// Methods whose complete results are cacheable (server/utilities/caching, "Cacheable Results").
const CACHEABLE: [&str; 6] = [
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
];
/// Notifications that have a meaning somewhere, but not on the stream of a request of this revision.
const NOT_ON_A_REQUEST: [&str; 10] = [
    "notifications/cancelled",
    "notifications/elicitation/complete",
    "notifications/initialized",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
    "notifications/resources/updated",
    "notifications/roots/list_changed",
    "notifications/subscriptions/acknowledged",
    "notifications/tasks/status",
    "notifications/tools/list_changed",
];
/// Methods that may be answered `input_required` (basic/patterns/mrtr, "Supported Requests").
const INTERACTIVE: [&str; 3] = ["tools/call", "prompts/get", "resources/read"];

/// Fails the test where the answer breaks a rule of the specification.
pub fn check(ask: &Ask, done: &Done, fields: &[String]) {
    let context = format!("answer to {} {}: {} {}", ask.verb, ask.method, done.status, done.raw);
    assert!(!done.headers.has("mcp-session-id"), "a session id in {context}");
    let body = ask.body();
    // Only a request has an id to be answered under; a response, a batch or garbage has none.
    let id = rpc::id(&body).filter(|id| rpc::method(&body).is_some() && is_id(id));
    match done.headers.media_type().as_deref() {
        Some("text/event-stream") => {
            assert_eq!(done.status, 200, "a stream has status 200: {context}");
            assert_eq!(
                done.headers.get("x-accel-buffering").as_deref(),
                Some("no"),
                "X-Accel-Buffering: {context}"
            );
            let allowed = |f: &&String| !["", "data", "event"].contains(&f.as_str());
            assert_eq!(
                fields.iter().find(allowed),
                None,
                "a field without meaning to a modern client: {context}"
            );
            for message in &done.before {
                assert_modern_notification(message, &context);
            }
        }
        Some("application/json") => assert!(!done.message.is_null(), "a JSON body is JSON: {context}"),
        other => {
            assert!(
                done.status != 200 || ask.verb != "POST",
                "a request is never answered {other:?}: {context}"
            );
            return;
        }
    }
    if let Some(control) = done.headers.get("cache-control") {
        assert!(control.contains("no-store"), "cache-control {control}: {context}");
    } else {
        assert_ne!(done.status, 200, "Cache-Control: no-store on results: {context}");
    }
    if done.message.get("jsonrpc").is_some() {
        assert_modern_response(ask, id.as_deref(), done, &context);
    }
}

fn assert_modern_response(ask: &Ask, id: Option<&str>, done: &Done, context: &str) {
    let message = done.message.as_object().expect("a response is an object");
    assert_only(message, &["jsonrpc", "id", "result", "error"], context);
    assert_eq!(message.get("jsonrpc"), Some(&json!("2.0")), "{context}");
    assert_eq!(message.contains_key("result"), !message.contains_key("error"), "result or error: {context}");
    // The id exactly as the caller wrote it, in its own JSON type; none where the caller's cannot be known.
    let unread =
        [403, 406, 408, 413, 415, 421, 431, 503].contains(&done.status) && !message.contains_key("id");
    let shapeless = matches!(message.get("error").and_then(|e| e["code"].as_i64()), Some(-32600 | -32700));
    match id {
        Some(_) if unread => {}
        // What is no proper request may have had an id all the same.
        _ if shapeless => {
            let given = rpc::id(done.raw.as_bytes()).map(|id| format!("\"id\":{id}"));
            let sent = String::from_utf8_lossy(&ask.body()).into_owned();
            assert!(given.is_none_or(|id| sent.contains(&id)), "an id of its own making: {context}");
        }
        Some(_) => assert_eq!(rpc::id(done.raw.as_bytes()).as_deref(), id, "the caller's id: {context}"),
        None => assert!(!message.contains_key("id"), "no id where the caller has none: {context}"),
    }
    if let Some(result) = message.get("result") {
        assert_eq!(done.status, 200, "a result has status 200: {context}");
        assert_modern_result(&ask.method, result);
    } else {
        let in_stream = done.headers.media_type().as_deref() == Some("text/event-stream");
        let asks = ["tools/call", "prompts/get", "resources/read"].contains(&ask.method.as_str());
        if !asks && !in_stream && message["error"]["code"] == -32601 {
            assert_eq!(done.status, 404, "{context}");
        }
        assert_modern_error((!in_stream).then_some(done.status), &message["error"]);
    }
}

/// `resultType`, cache members exactly on the six, `serverInfo`, required members of the method, no legacy words.
pub fn assert_modern_result(method: &str, result: &Value) {
    let context = format!("result of {method}: {result}");
    let object = result.as_object().expect("a result is an object");
    match result["resultType"].as_str() {
        Some("complete") => {}
        Some("input_required") => {
            assert!(INTERACTIVE.contains(&method), "{context}");
            assert!(object.contains_key("inputRequests") || object.contains_key("requestState"), "{context}");
            assert!(!object.contains_key("ttlMs") && !object.contains_key("cacheScope"), "{context}");
            return;
        }
        _ => panic!("resultType: {context}"),
    }
    if CACHEABLE.contains(&method) {
        assert!(result["ttlMs"].as_u64().is_some(), "ttlMs: {context}");
        assert!(
            ["public", "private"].contains(&result["cacheScope"].as_str().unwrap_or_default()),
            "cacheScope: {context}"
        );
    } else {
        assert!(
            !object.contains_key("ttlMs") && !object.contains_key("cacheScope"),
            "not cacheable: {context}"
        );
    }
    let info = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert!(info["name"].is_string() && info["version"].is_string(), "serverInfo: {context}");
    for word in ["protocolVersion", "serverInfo", "task", "elicitationId"] {
        assert!(!object.contains_key(word), "legacy member {word}: {context}");
    }
    assert!(result["_meta"].get("io.modelcontextprotocol/related-task").is_none(), "{context}");
    assert_result_of_method(method, result, &context);
}

fn assert_result_of_method(method: &str, result: &Value, context: &str) {
    let array =
        |name: &str| result[name].as_array().unwrap_or_else(|| panic!("{name} is an array: {context}"));
    let text = |value: &Value, name: &str| assert!(value[name].is_string(), "{name} is text: {context}");
    match method {
        "server/discover" => {
            let versions = array("supportedVersions");
            assert!(versions.contains(&json!("2026-07-28")), "{context}");
            assert!(
                result["capabilities"].is_object() && result["capabilities"].get("tasks").is_none(),
                "{context}"
            );
        }
        "tools/list" => {
            for tool in array("tools") {
                text(tool, "name");
                assert_eq!(tool["inputSchema"]["type"], "object", "{context}");
                assert!(tool.get("execution").is_none(), "{context}");
            }
        }
        "tools/call" => array("content").iter().for_each(|block| text(block, "type")),
        "prompts/list" => array("prompts").iter().for_each(|p| text(p, "name")),
        "prompts/get" => array("messages").iter().for_each(|m| text(m, "role")),
        "resources/list" => array("resources").iter().for_each(|r| text(r, "uri")),
        "resources/templates/list" => array("resourceTemplates").iter().for_each(|t| text(t, "uriTemplate")),
        "resources/read" => array("contents").iter().for_each(|c| text(c, "uri")),
        "completion/complete" => {
            let values = result["completion"]["values"].as_array().expect("completion values");
            assert!(values.len() <= 100, "{context}");
        }
        _ => {}
    }
}

/// Codes a modern server may send, and the HTTP status that goes with each (basic/index, "Error Codes").
pub fn assert_modern_error(status: Option<u16>, error: &Value) {
    let context = format!("error with status {status:?}: {error}");
    assert_only(error.as_object().expect("an error is an object"), &["code", "message", "data"], &context);
    let code = error["code"].as_i64().unwrap_or_else(|| panic!("an integer code: {context}"));
    assert!(error["message"].as_str().is_some_and(|m| !m.is_empty()), "a message: {context}");
    assert!(code != -32002 && code != -32042, "a code of earlier revisions: {context}");
    if (-32099..=-32020).contains(&code) {
        assert!([-32020, -32021, -32022].contains(&code), "a reserved code without meaning: {context}");
    }
    let expected = match code {
        -32020 | -32022 => Some(400),
        -32021 => {
            assert!(error["data"]["requiredCapabilities"].is_object(), "requiredCapabilities: {context}");
            Some(400)
        }
        // Of a tool, prompt or resource a server may say it too (B11); `check` knows the method.
        -32601 if status == Some(200) => None,
        -32601 => Some(404),
        _ => None,
    };
    if code == -32022 {
        assert!(error["data"]["supported"].as_array().is_some_and(|s| !s.is_empty()), "supported: {context}");
        assert!(error["data"]["requested"].is_string(), "requested: {context}");
    }
    if let (Some(status), Some(expected)) = (status, expected) {
        assert_eq!(status, expected, "{context}");
    }
}

fn is_id(raw: &str) -> bool {
    let integer = |r: &str| !r.is_empty() && r.bytes().all(|b| b.is_ascii_digit());
    raw.starts_with('"') || integer(raw.strip_prefix('-').unwrap_or(raw))
}

pub fn assert_modern_notification(message: &Value, context: &str) {
    assert_only(message.as_object().expect("an object"), &["jsonrpc", "method", "params"], context);
    assert_eq!(message["jsonrpc"], "2.0", "{context}");
    let params = &message["params"];
    match message["method"].as_str() {
        Some("notifications/progress") => {
            assert!(params["progressToken"].is_string() || params["progressToken"].is_i64(), "{message}");
            assert!(params["progress"].is_number(), "{message}");
        }
        Some("notifications/message") => {
            assert!(params["level"].is_string() && params.get("data").is_some(), "{message}")
        }
        Some(custom) if !NOT_ON_A_REQUEST.contains(&custom) => {}
        _ => panic!("not a notification for a request's stream: {message} in {context}"),
    }
}

pub fn assert_only(object: &Map<String, Value>, members: &[&str], context: &str) {
    let foreign = object.keys().find(|k| !members.contains(&k.as_str()));
    assert_eq!(foreign, None, "unknown member: {context}");
}
