//! What the demo server offers: four tools, a resource, a resource template, a prompt and its completion.
//!
//! Owns every JSON-RPC method that is one request and one answer. The tools `count` and `book` take time; here is only that
//! they are there, `calls` runs them.

use serde_json::{Map, Value, json};

use super::booking;

/// Newest first. Without agreement the first one is offered.
pub(super) const VERSIONS: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];
/// The most steps that one call of `count` takes.
pub(super) const MOST_STEPS: u64 = 100;

const NAMES: [&str; 6] = ["Ada", "Alan", "Barbara", "Edsger", "Grace", "Margaret"];
const GREETING: &str = "demo://greeting";

/// A JSON-RPC error.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) data: Option<Value>,
}

impl Refusal {
    pub(super) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    fn params(message: impl Into<String>) -> Self {
        Self::new(-32602, message)
    }
}

/// Agrees on a version: the client's if it is known here, else the newest.
pub(super) fn negotiate(params: &Value) -> Result<&'static str, Refusal> {
    let asked = params["protocolVersion"].as_str();
    if asked.is_none() || !params["capabilities"].is_object() || !params["clientInfo"].is_object() {
        return Err(Refusal::params("initialize needs protocolVersion, capabilities and clientInfo"));
    }
    Ok(VERSIONS.into_iter().find(|version| Some(*version) == asked).unwrap_or(VERSIONS[0]))
}

/// The answer to `initialize`.
pub(super) fn introduction(version: &str) -> Value {
    let result = json!({
        "protocolVersion": version,
        "capabilities": { "tools": {}, "resources": {}, "prompts": {}, "completions": {} },
        "serverInfo": {
            "name": "mcp-janus-demo",
            "title": "mcp-janus demo server",
            "version": env!("CARGO_PKG_VERSION"),
        },
        "instructions": "A server to try things on. Nothing that it does has an effect.",
    });
    as_of(version, result)
}

/// The answer to a request that is none of `initialize` and `tools/call` of `count` or `book`.
pub(super) fn answer(version: &str, method: &str, params: &Value) -> Result<Value, Refusal> {
    if method.ends_with("/list") && !params["cursor"].is_null() {
        return Err(Refusal::params("no such cursor: every list here is one page"));
    }
    let result = match method {
        "ping" => json!({}),
        "tools/list" => json!({ "tools": tools() }),
        "tools/call" => call(params)?,
        "resources/list" => json!({ "resources": [{
            "uri": GREETING, "name": "greeting", "title": "Greeting", "mimeType": "text/plain",
            "description": "A greeting to everybody.",
        }] }),
        "resources/templates/list" => json!({ "resourceTemplates": [{
            "uriTemplate": "demo://greeting/{name}", "name": "greeting-to", "title": "Greeting to someone",
            "mimeType": "text/plain", "description": "A greeting to the one named.",
        }] }),
        "resources/read" => read(params)?,
        "prompts/list" => json!({ "prompts": [{
            "name": "greet", "title": "Greet", "description": "Asks the model to greet someone.",
            "arguments": [{ "name": "name", "description": "Who is greeted.", "required": true }],
        }] }),
        "prompts/get" => prompt(params)?,
        "completion/complete" => complete(params)?,
        _ => return Err(Refusal::new(-32601, "Method not found")),
    };
    Ok(as_of(version, result))
}

/// A tool result that is only text.
pub(super) fn text_result(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

/// A tool result that tells the model what it did wrong.
pub(super) fn tool_error(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }], "isError": true })
}

fn tools() -> Value {
    json!([
        {
            "name": "echo",
            "title": "Echo",
            "description": "Says the same text again.",
            "inputSchema": {
                "type": "object",
                "properties": { "text": { "type": "string", "description": "What to say." } },
                "required": ["text"],
            },
        },
        {
            "name": "add",
            "title": "Add",
            "description": "Adds two integers.",
            "inputSchema": {
                "type": "object",
                "properties": { "a": { "type": "integer" }, "b": { "type": "integer" } },
                "required": ["a", "b"],
            },
            "outputSchema": {
                "type": "object",
                "properties": { "sum": { "type": "integer" } },
                "required": ["sum"],
            },
        },
        {
            "name": "count",
            "title": "Count",
            "description": "Counts slowly and reports each step as progress.",
            "inputSchema": {
                "type": "object",
                "properties": { "n": {
                    "type": "integer", "minimum": 1, "maximum": MOST_STEPS, "description": "How far to count.",
                } },
                "required": ["n"],
            },
        },
        booking::tool(),
    ])
}

fn call(params: &Value) -> Result<Value, Refusal> {
    let arguments = &params["arguments"];
    match params["name"].as_str() {
        Some("echo") => Ok(match arguments["text"].as_str() {
            Some(text) => text_result(text),
            None => tool_error("echo needs a text"),
        }),
        Some("add") => Ok(add(arguments)),
        Some(name) => Err(Refusal::params(format!("Unknown tool: {name}"))),
        None => Err(Refusal::params("tools/call needs a name")),
    }
}

fn add(arguments: &Value) -> Value {
    let (Some(a), Some(b)) = (arguments["a"].as_i64(), arguments["b"].as_i64()) else {
        return tool_error("add needs two integers of at most 64 bits, a and b");
    };
    let Some(sum) = a.checked_add(b) else {
        return tool_error("the sum does not fit 64 bits");
    };
    let mut result = text_result(&json!({ "sum": sum }).to_string());
    result["structuredContent"] = json!({ "sum": sum });
    result
}

fn read(params: &Value) -> Result<Value, Refusal> {
    let uri = params["uri"].as_str().ok_or_else(|| Refusal::params("resources/read needs a uri"))?;
    let name = match uri.strip_prefix(GREETING) {
        Some("") => Some("everybody"),
        Some(rest) => rest.strip_prefix('/').filter(|name| !name.is_empty() && !name.contains('/')),
        None => None,
    };
    match name {
        Some(name) => Ok(json!({ "contents": [{
            "uri": uri, "mimeType": "text/plain", "text": format!("Hello, {name}!"),
        }] })),
        None => Err(Refusal {
            code: -32002,
            message: "Resource not found".to_owned(),
            data: Some(json!({ "uri": uri })),
        }),
    }
}

fn prompt(params: &Value) -> Result<Value, Refusal> {
    if params["name"] != "greet" {
        return Err(Refusal::params("Unknown prompt"));
    }
    let name = params["arguments"]["name"].as_str().ok_or_else(|| Refusal::params("greet needs a name"))?;
    Ok(json!({
        "description": "Asks the model to greet someone.",
        "messages": [{
            "role": "user",
            "content": { "type": "text", "text": format!("Greet {name} in one friendly sentence.") },
        }],
    }))
}

fn complete(params: &Value) -> Result<Value, Refusal> {
    let reference = &params["ref"];
    let known = match reference["type"].as_str() {
        Some("ref/prompt") => reference["name"] == "greet",
        Some("ref/resource") => reference["uri"] == "demo://greeting/{name}",
        _ => false,
    };
    let (true, Some(start)) = (known, params["argument"]["value"].as_str()) else {
        return Err(Refusal::params("completion needs a known ref and an argument with name and value"));
    };
    let start = start.to_lowercase();
    let values: Vec<&str> = match params["argument"]["name"].as_str() {
        Some("name") => NAMES.into_iter().filter(|name| name.to_lowercase().starts_with(&start)).collect(),
        _ => Vec::new(),
    };
    Ok(json!({ "completion": { "values": values, "total": values.len(), "hasMore": false } }))
}

/// Leaves out what the version does not have yet. No value here holds these keys as a client's data.
fn as_of(version: &str, mut result: Value) -> Value {
    if version < "2025-06-18" {
        remove_newer(&mut result);
    }
    result
}

fn remove_newer(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for key in ["title", "outputSchema", "structuredContent"] {
                Map::remove(members, key);
            }
            members.values_mut().for_each(remove_newer);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_newer),
        _ => {}
    }
}
