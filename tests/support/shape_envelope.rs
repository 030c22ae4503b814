//! What a request that the proxy makes of a legacy client's must look like to a modern server, from the 2026-07-28 text
//! (basic, transports, patterns/mrtr): every envelope is the proxy's own work here, so everything in it must be there.
//!
//! Owns the checks beyond those of any request to a modern server (`shape_requests`): nothing of a session, all of the
//! envelope, capabilities in this revision's spelling, mirrored headers that say what the body says. Does not own what a
//! single test expects.

use base64::Engine as _;
use serde_json::Value;

use super::{Seen, rpc};

/// Methods and notifications that no modern server is sent over HTTP (A1, A2).
const LEGACY_ONLY: [&str; 14] = [
    "ping",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
    "sampling/createMessage",
    "elicitation/create",
    "roots/list",
    "tasks/result",
    "tasks/list",
    "notifications/initialized",
    "notifications/cancelled",
    "notifications/progress",
    "notifications/roots/list_changed",
    "notifications/elicitation/complete",
];
/// Methods of this revision; whatever else there is has members of its own.
const KNOWN: [&str; 10] = [
    "server/discover",
    "subscriptions/listen",
    "tools/list",
    "tools/call",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "completion/complete",
];
const MAY_ASK: [&str; 3] = ["tools/call", "prompts/get", "resources/read"];
const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
const PREFIX: &str = "io.modelcontextprotocol/";

/// The breaches in one request; empty is good.
pub fn faults(seen: &Seen) -> Vec<String> {
    let mut found = Vec::new();
    let Ok(message) = rpc::value(&seen.body) else {
        return vec![format!("{} without a message to a modern server", seen.verb)];
    };
    let Some(method) = message["method"].as_str() else { return found };
    // A server of both eras may be asked which it is to be.
    if method == "initialize" {
        return found;
    }
    let mut that = |holds: bool, rule: &str| {
        if !holds {
            let headers: Vec<_> =
                seen.headers.0.iter().map(|(n, v)| format!("{n}: {}", String::from_utf8_lossy(v))).collect();
            found.push(format!("{rule}\n  in {} {headers:?}\n  {message}", seen.verb));
        }
    };
    // Over pipes there is no stream that could be closed instead (A2.2).
    let cancels = method == "notifications/cancelled" && seen.is_piped();
    that(cancels || !LEGACY_ONLY.contains(&method), "a method of this era");
    that(!seen.headers.has("last-event-id"), "no Last-Event-ID");
    names(seen, method, &message["params"], &mut that);
    let params = &message["params"];
    let custom = !KNOWN.contains(&method);
    that(custom || params.get("task").is_none(), "no task (A10)");
    if message.get("id").is_some() {
        meta(method, &params["_meta"], &mut that);
    }
    for word in ["inputResponses", "requestState"] {
        let may = custom || MAY_ASK.contains(&method);
        that(may || params.get(word).is_none(), &format!("{word} only where it may be"));
    }
    that(custom || params.get("requestState").is_none_or(Value::is_string), "requestState is text");
    if let Some(responses) = params.get("inputResponses").filter(|_| !custom) {
        that(responses.is_object(), "inputResponses is an object");
        for value in responses.as_object().into_iter().flat_map(|all| all.values()) {
            that(is_response(value), "an input response is a plain result of its kind (A4.15, B2.7)");
        }
    }
    if method == "subscriptions/listen" {
        that(params["notifications"].is_object(), "a listen has a filter");
    }
    found
}

/// Mcp-Name says what the body says, encoded where it must be, and is there for the three methods only.
fn names(seen: &Seen, method: &str, params: &Value, that: &mut impl FnMut(bool, &str)) {
    let named = match method {
        "tools/call" | "prompts/get" => params["name"].as_str(),
        "resources/read" => params["uri"].as_str(),
        _ => None,
    };
    let headers = seen.headers.all("mcp-name");
    match named {
        Some(name) => that(headers.len() == 1 && decoded(&headers[0]) == name, "Mcp-Name is the name"),
        None => that(headers.is_empty(), "no Mcp-Name where nothing is named"),
    }
    for (name, value) in &seen.headers.0 {
        let name = name.to_ascii_lowercase();
        if name.starts_with("mcp-param-") {
            that(method == "tools/call", "Mcp-Param-* on tools/call only");
        }
        let visible = value.iter().all(|byte| matches!(byte, 0x20..=0x7e | b'\t'));
        that(visible, &format!("{name} holds visible ASCII"));
    }
}

/// The value of a header that may be encoded (Value Encoding).
pub fn decoded(value: &str) -> String {
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(encoded) => {
            let bytes = base64::engine::general_purpose::STANDARD.decode(encoded).expect("base64");
            String::from_utf8(bytes).expect("UTF-8")
        }
        None => value.to_owned(),
    }
}

fn meta(method: &str, meta: &Value, that: &mut impl FnMut(bool, &str)) {
    let key = |name: &str| meta.get(format!("{PREFIX}{name}"));
    for member in ["name", "version"] {
        let text = key("clientInfo").is_some_and(|info| info[member].is_string());
        that(text, &format!("clientInfo has a {member}"));
    }
    that(key("logLevel").is_none_or(|level| LEVELS.contains(&level.as_str().unwrap_or("?"))), "logLevel");
    that(key("related-task").is_none(), "no related-task (A4.8)");
    that(key("subscriptionId").is_none() && key("serverInfo").is_none(), "only keys of requests");
    let Some(caps) = key("clientCapabilities").and_then(Value::as_object) else { return };
    for (name, value) in caps {
        that(value.is_object(), &format!("capability {name} is an object (A4.17)"));
        let keys: Vec<_> = value.as_object().into_iter().flat_map(|o| o.keys()).map(String::as_str).collect();
        match name.as_str() {
            "roots" => that(keys.is_empty(), "roots is {} (A3.3)"),
            "sampling" => that(keys.iter().all(|k| ["context", "tools"].contains(k)), "sampling (A3.4)"),
            "elicitation" => {
                let known = keys.iter().all(|k| ["form", "url"].contains(k));
                that(known && !keys.is_empty(), "elicitation names its modes (A3.5)");
            }
            "experimental" => {}
            "extensions" => {
                let passed = keys.iter().all(|k| *k == "io.modelcontextprotocol/ui");
                that(passed, "extensions that are era-neutral only (A3.7)");
            }
            other => that(false, &format!("{other} is no capability of {method}'s sender (A3)")),
        }
    }
}

fn is_response(value: &Value) -> bool {
    let bare = |value: &Value| value.get("_meta").is_none() && value.get("resultType").is_none();
    let elicited = ["accept", "decline", "cancel"].contains(&value["action"].as_str().unwrap_or_default())
        && value.get("content").is_none_or(Value::is_object)
        && bare(value);
    let sampled =
        value["role"].is_string() && value["model"].is_string() && value.get("resultType").is_none();
    let rooted = value["roots"].is_array() && bare(value);
    elicited || sampled || rooted
}
