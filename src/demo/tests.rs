//! The demo server over a real socket, spoken to in plain HTTP text.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

pub(super) struct Reply {
    pub(super) status: u16,
    session: Option<String>,
    body: String,
}

impl Reply {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// The messages of an event stream that is written as this server writes them.
    pub(super) fn events(&self) -> Vec<Value> {
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        data.map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

pub(super) struct Client {
    port: u16,
    session: Option<String>,
    version: &'static str,
    /// Dropped, it stops the server.
    _stop: oneshot::Sender<()>,
}

impl Client {
    async fn start() -> Self {
        Self::start_with(Duration::from_secs(60)).await
    }

    /// With a server that waits so long for an answer to its question.
    pub(super) async fn start_with(patience: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (stop, stopped) = oneshot::channel::<()>();
        tokio::spawn(super::server::serve_with(listener, stopped, patience));
        Self { port, session: None, version: "2025-11-25", _stop: stop }
    }

    async fn initialized(version: &'static str) -> Self {
        let mut client = Self::start().await;
        client.initialize(version, json!({})).await;
        client
    }

    /// Opens a session, instead of the one before.
    pub(super) async fn initialize(&mut self, version: &'static str, capabilities: Value) {
        (self.session, self.version) = (None, version);
        let params = json!({
            "protocolVersion": version, "capabilities": capabilities, "clientInfo": { "name": "t", "version": "1" },
        });
        let reply =
            self.post(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })).await;
        assert_eq!(reply.json()["result"]["protocolVersion"], version);
        self.session = reply.session;
        let reply = self.post(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        assert_eq!((reply.status, &*reply.body), (202, ""));
    }

    pub(super) async fn post(&self, message: &Value) -> Reply {
        self.send("POST", "", &message.to_string()).await
    }

    pub(super) async fn call(&self, method: &str, params: Value) -> Value {
        let message = json!({ "jsonrpc": "2.0", "id": "x", "method": method, "params": params });
        let reply = self.post(&message).await.json();
        assert_eq!(reply["id"], "x");
        reply
    }

    pub(super) async fn send(&self, method: &str, headers: &str, body: &str) -> Reply {
        let mut stream = self.open(method, headers, body).await;
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        parse(&reply)
    }

    pub(super) async fn open(&self, method: &str, headers: &str, body: &str) -> TcpStream {
        let session = self.session.iter().map(|id| format!("Mcp-Session-Id: {id}\r\n")).collect::<String>();
        let mut head =
            format!("{method} /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{session}{headers}");
        for (name, value) in [
            ("Accept", "application/json, text/event-stream"),
            ("Content-Type", "application/json"),
            ("MCP-Protocol-Version", self.version),
        ] {
            if !headers.contains(name) {
                head += &format!("{name}: {value}\r\n");
            }
        }
        head += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        stream
    }
}

pub(super) fn parse(reply: &str) -> Reply {
    let (head, body) = reply.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no HTTP answer: {reply:?}"));
    let header = |name: &str| {
        let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with(&format!("{name}:")))?;
        Some(line[name.len() + 1..].trim().to_owned())
    };
    let mut body = body.to_owned();
    if header("transfer-encoding").is_some() {
        let mut rest = std::mem::take(&mut body);
        while let Some((size, tail)) = rest.split_once("\r\n") {
            let size = usize::from_str_radix(size, 16).unwrap();
            body += &tail[..size];
            rest = tail[size + 2..].to_owned();
        }
    }
    Reply { status: head[9..12].parse().unwrap(), session: header("mcp-session-id"), body }
}

#[tokio::test]
async fn a_modern_request_gets_what_a_legacy_sdk_answers() {
    let client = Client { version: "2026-07-28", ..Client::start().await };
    let discover = json!({ "jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": { "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    } } });
    let reply = client.send("POST", "Mcp-Method: server/discover\r\n", &discover.to_string()).await;
    assert_eq!(reply.status, 400);
    let reply = reply.json();
    assert_eq!((&reply["id"], &reply["error"]["code"]), (&Value::Null, &json!(-32000)));
    assert!(reply["error"]["message"].as_str().unwrap().starts_with("Bad Request: "));
}

#[tokio::test]
async fn sessions_begin_and_end() {
    let mut client = Client::initialized("2025-06-18").await;
    assert_eq!(client.call("ping", json!({})).await["result"], json!({}));
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    assert_eq!(client.send("POST", "MCP-Protocol-Version: 2026-07-28\r\n", ping).await.status, 400);
    assert_eq!(client.send("GET", "", "").await.status, 405);
    assert_eq!(client.send("DELETE", "", "").await.status, 200);
    assert_eq!(client.send("DELETE", "", "").await.status, 404);
    let gone = client.send("POST", "", ping).await;
    assert_eq!((gone.status, &gone.json()["error"]["code"]), (404, &json!(-32001)));
    client.session = None;
    assert_eq!(client.send("POST", "", ping).await.status, 400);
}

#[tokio::test]
async fn unknown_versions_get_the_newest() {
    let client = Client::start().await;
    let params = json!({ "protocolVersion": "2026-07-28", "capabilities": {}, "clientInfo": {} });
    assert_eq!(client.call("initialize", params).await["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(client.call("initialize", json!({})).await["error"]["code"], -32602);
}

#[tokio::test]
async fn tools() {
    let client = Client::initialized("2025-11-25").await;
    let list = client.call("tools/list", json!({})).await;
    assert_eq!(list["result"]["tools"].as_array().map(Vec::len), Some(4));
    assert!(list["result"]["tools"][1]["outputSchema"].is_object());
    let echo = client.call("tools/call", json!({ "name": "echo", "arguments": { "text": "é\n" } })).await;
    assert_eq!(echo["result"]["content"][0]["text"], "é\n");
    let add = client.call("tools/call", json!({ "name": "add", "arguments": { "a": 2, "b": -5 } })).await;
    assert_eq!(add["result"]["structuredContent"], json!({ "sum": -3 }));
    for arguments in [json!({ "a": 1 }), json!({ "a": i64::MAX, "b": 1 }), json!({ "a": 1.5, "b": 1 })] {
        let add = client.call("tools/call", json!({ "name": "add", "arguments": arguments })).await;
        assert_eq!(add["result"]["isError"], true);
    }
    assert_eq!(client.call("tools/call", json!({ "name": "none" })).await["error"]["code"], -32602);
    assert_eq!(client.call("tools/list", json!({ "cursor": "1" })).await["error"]["code"], -32602);
    assert_eq!(client.call("logging/setLevel", json!({})).await["error"]["code"], -32601);
}

#[tokio::test]
async fn count_reports_progress() {
    let client = Client::initialized("2025-11-25").await;
    let count = |id: Value, meta: Value| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": { "name": "count", "arguments": { "n": 3 }, "_meta": meta } })
    };
    let events = client.post(&count(json!(7), json!({ "progressToken": "p" }))).await.events();
    assert_eq!(events.len(), 4);
    assert_eq!(
        events[1]["params"],
        json!({ "progressToken": "p", "progress": 2, "total": 3, "message": "2 of 3" })
    );
    assert_eq!(
        (&events[3]["id"], &events[3]["result"]["content"][0]["text"]),
        (&json!(7), &json!("Counted to 3."))
    );
    assert_eq!(client.post(&count(json!("7"), json!({}))).await.events().len(), 1);
    let none = client.call("tools/call", json!({ "name": "count", "arguments": { "n": 0 } })).await;
    assert_eq!(none["result"]["isError"], true);
}

#[tokio::test]
async fn a_cancelled_count_ends_without_a_response() {
    let client = Client::initialized("2025-11-25").await;
    let count = json!({ "jsonrpc": "2.0", "id": "c", "method": "tools/call",
        "params": { "name": "count", "arguments": { "n": 100 }, "_meta": { "progressToken": 1 } } });
    let cancel = |id: &str| json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
    let mut call = client.open("POST", "", &count.to_string()).await;
    let mut reply = String::new();
    while !reply.contains("notifications/progress") {
        let mut bytes = [0; 4096];
        let read = call.read(&mut bytes).await.unwrap();
        reply += std::str::from_utf8(&bytes[..read]).unwrap();
    }
    assert_eq!(client.post(&count).await.json()["error"]["code"], -32600, "the id is in use");
    assert_eq!(client.post(&cancel("other")).await.status, 202);
    assert_eq!(client.post(&cancel("c")).await.status, 202);
    call.read_to_string(&mut reply).await.unwrap();
    let events = parse(&reply).events();
    assert!(events.len() < 100 && events.iter().all(|event| event["method"] == "notifications/progress"));
}

#[tokio::test]
async fn resources_prompts_completion() {
    let client = Client::initialized("2025-11-25").await;
    for (uri, text) in [("demo://greeting", "Hello, everybody!"), ("demo://greeting/Ada", "Hello, Ada!")] {
        let read = client.call("resources/read", json!({ "uri": uri })).await;
        assert_eq!(read["result"]["contents"][0]["text"], text);
    }
    for uri in ["demo://greeting/", "demo://greeting/a/b", "demo://greetings", "file:///x"] {
        let error = &client.call("resources/read", json!({ "uri": uri })).await["error"];
        assert_eq!((&error["code"], &error["data"]["uri"]), (&json!(-32002), &json!(uri)));
    }
    let prompt = client.call("prompts/get", json!({ "name": "greet", "arguments": { "name": "Ada" } })).await;
    assert!(prompt["result"]["messages"][0]["content"]["text"].as_str().unwrap().contains("Ada"));
    assert_eq!(client.call("prompts/get", json!({ "name": "greet" })).await["error"]["code"], -32602);
    let argument = json!({ "name": "name", "value": "a" });
    let reference = json!({ "type": "ref/prompt", "name": "greet" });
    let completion =
        client.call("completion/complete", json!({ "ref": reference, "argument": argument })).await;
    assert_eq!(completion["result"]["completion"]["values"], json!(["Ada", "Alan"]));
    for (method, key) in [("resources/list", "resources"), ("prompts/list", "prompts")] {
        assert_eq!(client.call(method, json!({})).await["result"][key].as_array().map(Vec::len), Some(1));
    }
}

#[tokio::test]
async fn older_clients_see_no_newer_members_and_may_batch() {
    let client = Client::initialized("2025-03-26").await;
    let batch = json!([
        { "jsonrpc": "2.0", "id": 1, "method": "tools/list" },
        { "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 9 } },
        { "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "add", "arguments": { "a": 1, "b": 1 } } },
    ]);
    let replies = client.post(&batch).await;
    assert!(!replies.body.contains("outputSchema") && !replies.body.contains("structuredContent"));
    assert_eq!(replies.json()[1]["id"], 2);
    assert_eq!(Client::initialized("2025-06-18").await.post(&batch).await.status, 400);
}

#[tokio::test]
async fn malformed_requests() {
    let client = Client::initialized("2025-11-25").await;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let large = format!("\"{}\"", "x".repeat(1 << 20));
    let table = [
        ("", "{", 400),
        ("", "[]", 400),
        ("", "1", 400),
        ("", r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, 400),
        ("", r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, 400),
        ("", r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, 202),
        ("", &large, 413),
        ("Accept: application/json\r\n", ping, 406),
        ("Accept: */*\r\n", ping, 406),
        ("Content-Type: text/plain\r\n", ping, 415),
        ("Origin: https://evil.example\r\n", ping, 403),
        ("Origin: http://localhost:5173\r\n", ping, 200),
    ];
    for (headers, body, status) in table {
        assert_eq!(client.send("POST", headers, body).await.status, status, "{headers:?} {:.60}", body);
    }
}

#[tokio::test]
async fn stopping_ends_what_runs() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (stop, stopped) = oneshot::channel::<()>();
    let served = tokio::spawn(super::serve(listener, stopped));
    let idle = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stop.send(()).unwrap();
    served.await.unwrap();
    drop(idle);
    assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err());
}
