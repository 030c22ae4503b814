//! What the tools of the peer do, and what it says of itself.

use std::process::exit;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::Peer;

pub(crate) fn server_info() -> Value {
    json!({"io.modelcontextprotocol/serverInfo": {"name": "stdio_peer", "version": "1"}})
}

pub(crate) fn discovered() -> Value {
    json!({
        "resultType": "complete", "ttlMs": 0, "cacheScope": "private", "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}}, "_meta": server_info(),
    })
}

pub(crate) fn initialized(params: &Value) -> Value {
    let asked = params["protocolVersion"].as_str().unwrap_or_default();
    let known = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
    let version = if known.contains(&asked) { asked } else { known[0] };
    json!({
        "protocolVersion": version, "capabilities": {"tools": {}},
        "serverInfo": {"name": "stdio_peer", "version": "1"},
    })
}

pub(crate) fn list() -> Value {
    let names = ["echo", "pid", "sleep", "die", "hang", "large", "elicit", "sample", "roots"];
    let tools = names.map(|name| json!({"name": name, "inputSchema": {"type": "object"}}));
    json!({"tools": tools})
}

/// What the tool says, or the whole result of a modern one that asks.
pub(crate) fn call(peer: &Peer, params: &Value) -> Result<String, Value> {
    let arguments = &params["arguments"];
    let number = |name: &str| arguments[name].as_u64().unwrap_or_default();
    Ok(match params["name"].as_str().unwrap_or_default() {
        "echo" => arguments["text"].as_str().unwrap_or_default().to_owned(),
        "pid" => json!([std::process::id(), peer.grandchild()]).to_string(),
        "sleep" => {
            thread::sleep(Duration::from_millis(number("ms")));
            "slept".to_owned()
        }
        "die" => exit(3),
        "hang" => {
            // Whoever waits for it knows that it has come.
            if let Some(mark) = arguments["mark"].as_str() {
                std::fs::write(mark, "").expect("a file to write");
            }
            loop {
                thread::park();
            }
        }
        "large" => "x".repeat(number("bytes") as usize),
        "elicit" => {
            let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
            let params_of = json!({"message": "your name?", "requestedSchema": schema});
            asked(peer, params, "elicitation/create", params_of)?["content"]["name"].to_string()
        }
        "sample" => {
            let message = json!({"role": "user", "content": {"type": "text", "text": "hi"}});
            let params_of = json!({"messages": [message], "maxTokens": 5});
            asked(peer, params, "sampling/createMessage", params_of)?["content"]["text"].to_string()
        }
        "roots" => asked(peer, params, "roots/list", json!({}))?["roots"][0]["uri"].to_string(),
        other => format!("no tool {other}"),
    })
}

/// The answer of the client: asked for on the pipe, or, by a modern server, brought by the retry.
fn asked(peer: &Peer, call: &Value, method: &str, params: Value) -> Result<Value, Value> {
    if !peer.is("modern") {
        let answer = peer.ask(method, params);
        return Ok(answer.get("result").cloned().unwrap_or_else(|| answer["error"].clone()));
    }
    match call["inputResponses"].get("q") {
        Some(response) => Ok(response.clone()),
        None => Err(json!({
            "resultType": "input_required", "inputRequests": {"q": {"method": method, "params": params}},
            "requestState": "asked", "_meta": server_info(),
        })),
    }
}
