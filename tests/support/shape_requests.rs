//! What any request to a server must look like, from the text of the server's revision; applied as requests arrive.
//!
//! Owns the checks of both eras' HTTP and JSON-RPC form. Breaches are collected, not raised here: a peer runs in a
//! task of its own, and the test fails when it lets go of the proxy. Does not own answers to clients (`shape`).

use serde_json::Value;

use super::net::Receiver;
use super::{Seen, shape_answers, shape_envelope};

pub const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
const MODERN: &str = "2026-07-28";
const RESERVED: &str = "io.modelcontextprotocol/";
/// Names that no revision before 2026-07-28 gives a meaning to.
const MODERN_ONLY: [&str; 4] =
    ["server/discover", "subscriptions/listen", "tasks/update", "notifications/subscriptions/acknowledged"];
const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
/// Headers that must not pass from a client to a server.
const NOT_PASSED: [&str; 4] = ["origin", "cookie", "last-event-id", "proxy-authorization"];

/// The breaches in one request; empty is good.
pub fn faults(receiver: Receiver, authority: &str, seen: &Seen) -> Vec<String> {
    let mut checks = Checks { seen, found: Vec::new() };
    if receiver == Receiver::Unchecked {
        return checks.found;
    }
    checks.http(authority);
    if receiver == Receiver::OldSse {
        checks.that(!seen.headers.has("mcp-session-id"), "no session id over HTTP+SSE");
        checks.that(!seen.headers.has("last-event-id"), "nothing is resumed over HTTP+SSE");
        checks.that(seen.verb != "DELETE", "nothing is deleted over HTTP+SSE");
    }
    if receiver == Receiver::Bridged {
        checks.found.extend(shape_envelope::faults(seen));
    }
    if seen.verb == "POST" {
        match super::rpc::value(&seen.body) {
            Ok(message) => checks.message(receiver, &message),
            Err(e) => checks.that(false, &format!("the body is JSON: {e}")),
        }
    }
    checks.found
}

struct Checks<'a> {
    seen: &'a Seen,
    found: Vec<String>,
}

impl Checks<'_> {
    fn that(&mut self, holds: bool, rule: &str) {
        if !holds {
            let seen = self.seen;
            let (verb, body) = (&seen.verb, String::from_utf8_lossy(&seen.body));
            self.found.push(format!("{rule}\n  in {verb} {:?}\n  {body}", headers_as_text(seen)));
        }
    }

    fn http(&mut self, authority: &str) {
        let seen = self.seen;
        self.that(["POST", "GET", "DELETE"].contains(&seen.verb.as_str()), "a verb of Streamable HTTP");
        self.that(seen.header("host").as_deref() == Some(authority), "Host is the server's own authority");
        let accept =
            if seen.verb == "GET" { "text/event-stream" } else { "application/json, text/event-stream" };
        if seen.verb != "DELETE" {
            self.that(
                seen.header("accept").as_deref() == Some(accept),
                "Accept names both types (one on GET)",
            );
        }
        if seen.verb == "GET" {
            self.that(!seen.headers.has("content-type") && seen.body.is_empty(), "a GET has no body");
        }
        if seen.verb == "POST" {
            self.that(
                seen.header("content-type").as_deref() == Some("application/json"),
                "Content-Type is JSON",
            );
        }
        for name in NOT_PASSED {
            let resumes = name == "last-event-id" && seen.verb == "GET";
            self.that(resumes || !seen.headers.has(name), &format!("{name} is not passed on"));
        }
    }

    fn message(&mut self, receiver: Receiver, message: &Value) {
        self.that(message.is_object(), "a message is an object, never a batch");
        self.that(message["jsonrpc"] == "2.0", "jsonrpc is 2.0");
        let Some(method) = message["method"].as_str() else {
            let takes = matches!(receiver, Receiver::Legacy | Receiver::OldSse | Receiver::Dual);
            self.that(takes, "a modern server is sent no responses");
            self.that(message.get("id").is_some_and(is_id), "a response has an id");
            for fault in shape_answers::faults(message) {
                self.that(false, &fault);
            }
            return;
        };
        let notification = method.starts_with("notifications/");
        self.that(notification != message.get("id").is_some(), "requests have an id, notifications none");
        self.that(message.get("id").is_none_or(is_id), "an id is an integer or a string");
        self.that(message.get("params").is_none_or(Value::is_object), "params is an object");
        let token = message["params"]["_meta"].get("progressToken");
        self.that(token.is_none_or(is_id), "a progress token is an integer or a string");
        self.params(method, &message["params"]);
        let probe = method == "server/discover"
            && self.seen.header("mcp-protocol-version").as_deref() == Some(MODERN);
        let claims = self.seen.header("mcp-protocol-version").as_deref() == Some(MODERN);
        match receiver {
            Receiver::Legacy | Receiver::OldSse if !probe => self.legacy(method, message),
            Receiver::Dual if !claims => self.legacy(method, message),
            // A client's own: whether the server is one of both eras is asked so, and what it says is the client's.
            Receiver::Bridged | Receiver::Modern if method == "initialize" => {
                self.that(self.seen.session().is_none(), "initialize has no session id");
            }
            Receiver::Legacy
            | Receiver::OldSse
            | Receiver::Dual
            | Receiver::Modern
            | Receiver::Bridged
            | Receiver::Unchecked => self.modern(method, message),
        }
    }

    /// Required parameters, the same in all revisions.
    fn params(&mut self, method: &str, params: &Value) {
        match method {
            "tools/call" => {
                self.that(params["name"].is_string(), "a tool's name is text");
                self.that(params.get("arguments").is_none_or(Value::is_object), "arguments is an object");
            }
            "prompts/get" => {
                self.that(params["name"].is_string(), "a prompt's name is text");
                let texts = |a: &Value| a.as_object().is_some_and(|o| o.values().all(Value::is_string));
                self.that(params.get("arguments").is_none_or(texts), "prompt arguments are text");
            }
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" => {
                self.that(params["uri"].is_string(), "a resource's uri is text");
            }
            "completion/complete" => {
                self.that(params["ref"]["type"].is_string(), "a completion has a ref");
                self.that(params["argument"]["name"].is_string(), "a completion has an argument");
            }
            "logging/setLevel" => {
                let level = params["level"].as_str().unwrap_or_default();
                self.that(LEVELS.contains(&level), "a log level of RFC 5424");
            }
            "notifications/cancelled" => self.that(is_id(&params["requestId"]), "a cancel names a request"),
            _ => {}
        }
    }

    fn legacy(&mut self, method: &str, message: &Value) {
        let seen = self.seen;
        self.that(!MODERN_ONLY.contains(&method), "a method of this era");
        let meta = message["params"]["_meta"].as_object();
        let reserved = meta.is_some_and(|m| m.keys().any(|k| k.starts_with(RESERVED)));
        self.that(!reserved, "no reserved _meta key goes to a legacy server");
        self.that(meta.is_none_or(|m| !m.is_empty()), "an empty _meta is left out");
        for word in ["inputResponses", "requestState"] {
            self.that(message["params"].get(word).is_none(), &format!("no {word}"));
        }
        for (name, _) in &seen.headers.0 {
            let name = name.to_ascii_lowercase();
            let modern = name == "mcp-method" || name == "mcp-name" || name.starts_with("mcp-param-");
            self.that(!modern, &format!("no {name} to a legacy server"));
        }
        let version = seen.header("mcp-protocol-version");
        if method != "initialize" {
            self.that(
                version.is_none_or(|v| LEGACY.contains(&v.as_str())),
                "the header names a legacy version",
            );
            return;
        }
        self.that(version.is_none(), "initialize has no MCP-Protocol-Version");
        self.that(seen.session().is_none(), "initialize has no session id");
        let params = &message["params"];
        // A legacy client's own says what that client wants.
        let passed_on = params["clientInfo"]["name"] == super::old::NAME;
        self.that(
            passed_on || params["protocolVersion"] == LEGACY[0],
            "initialize asks for the latest legacy version",
        );
        self.that(params["capabilities"].as_object().is_some(), "initialize declares capabilities");
        for member in ["name", "version"] {
            let text = params["clientInfo"][member].as_str().is_some_and(|t| !t.is_empty());
            self.that(text, &format!("clientInfo has a {member}"));
        }
    }

    fn modern(&mut self, method: &str, message: &Value) {
        let seen = self.seen;
        self.that(seen.session().is_none(), "no session id to a modern server");
        self.that(seen.header("mcp-protocol-version").as_deref() == Some(MODERN), "the version header");
        self.that(seen.header("mcp-method").as_deref() == Some(method), "Mcp-Method is the method");
        let params = &message["params"];
        let named = match method {
            "tools/call" | "prompts/get" => params["name"].as_str(),
            "resources/read" => params["uri"].as_str(),
            _ => None,
        };
        if named.is_some_and(|n| n.bytes().all(|b| (0x21..0x7f).contains(&b)))
            && !seen.headers.has("mcp-name")
        {
            self.that(false, "Mcp-Name is there");
        }
        if message.get("id").is_some() {
            let meta = &params["_meta"];
            self.that(meta["io.modelcontextprotocol/protocolVersion"] == MODERN, "_meta names the version");
            self.that(
                meta["io.modelcontextprotocol/clientCapabilities"].is_object(),
                "_meta has the capabilities",
            );
        }
    }
}

fn is_id(value: &Value) -> bool {
    value.is_string() || value.is_i64() || value.is_u64()
}

fn headers_as_text(seen: &Seen) -> Vec<String> {
    seen.headers.0.iter().map(|(n, v)| format!("{n}: {}", String::from_utf8_lossy(v))).collect()
}
