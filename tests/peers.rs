//! The test peers tried on each other, so that a red test elsewhere speaks of the proxy.
//!
//! Owns a handful of exchanges between the raw client and the raw servers, without a proxy in between.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use support::http1::Buffered;
use support::{Calls, Gets, LegacyServer, Net, Running, Value, json, shape, sse, within};
use tokio::io::AsyncWriteExt;

#[tokio::test(start_paused = true)]
async fn the_event_reader_follows_every_line_end() {
    for end in ["\n", "\r", "\r\n"] {
        let mut reader = sse::Reader::default();
        for byte in format!(": c{end}data: a{end}data: b{end}{end}data: c{end}{end}").bytes() {
            reader.push(&[byte]);
        }
        assert_eq!(reader.next().unwrap().data, "a\nb");
        assert_eq!(reader.next().unwrap().data, "c");
        assert_eq!(reader.next(), None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_legacy_server_guards_its_sessions() {
    let net = Net::new();
    let server = support::LegacyServer::new();
    let up = server.start(&net);
    let mut io = Buffered::new(net.dial("up.test", 80).await.unwrap());
    let mut post = async |session: &str, body: &str| {
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: up.test\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{session}Content-Length: {}\r\n\r\n",
            body.len()
        );
        io.io.write_all(head.as_bytes()).await.unwrap();
        io.io.write_all(body.as_bytes()).await.unwrap();
        let head = within("head", io.head()).await.unwrap().unwrap();
        let status: u16 = head.line.split(' ').nth(1).unwrap().parse().unwrap();
        let body = io.whole(support::http1::Framing::of_response(status, &head.headers)).await.unwrap();
        (status, head.headers.get("mcp-session-id"), String::from_utf8(body).unwrap())
    };
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    assert_eq!(post("", list).await.0, 400);
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"b"}}}"#;
    let (status, session, _) = post("", initialize).await;
    assert_eq!((status, session.as_deref()), (200, Some("S1")));
    let held = "Mcp-Session-Id: S1\r\n";
    assert_eq!(post(held, list).await.0, 400, "before initialized");
    assert_eq!(post(held, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await.0, 202);
    let (status, _, body) = post(held, list).await;
    assert_eq!(status, 200);
    assert!(body.contains(r#""id":2,"result":{"tools":"#), "{body}");
    server.forget_sessions();
    assert_eq!(post(held, list).await.0, 404);
    assert_eq!(up.connections(), 1);
    assert_eq!(net.faults(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_breach_in_a_request_is_recorded() {
    let net = Net::new();
    let _up = support::LegacyServer::new().start(&net);
    let mut io = Buffered::new(net.dial("up.test", 80).await.unwrap());
    io.io
        .write_all(b"POST /mcp HTTP/1.1\r\nHost: evil\r\nMcp-Method: x\r\nContent-Length: 2\r\n\r\n[]")
        .await
        .unwrap();
    within("head", io.head()).await.unwrap().unwrap();
    let faults = net.faults().join("\n");
    for rule in ["Host is", "Accept names", "Content-Type is", "never a batch"] {
        assert!(faults.contains(rule), "{rule} in {faults}");
    }
}

/// Whether a check of the shapes objects.
fn objects(check: impl FnOnce() + std::panic::UnwindSafe) -> bool {
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let caught = std::panic::catch_unwind(check).is_err();
    std::panic::set_hook(quiet);
    caught
}

#[test]
fn the_shapes_object_to_what_the_specification_forbids() {
    let meta = json!({"io.modelcontextprotocol/serverInfo": {"name": "n", "version": "1"}});
    let good =
        json!({"resultType": "complete", "tools": [], "ttlMs": 0, "cacheScope": "private", "_meta": meta});
    shape::assert_modern_result("tools/list", &good);
    for missing in ["resultType", "tools", "ttlMs", "cacheScope", "_meta"] {
        let mut bad = good.clone();
        bad.as_object_mut().unwrap().remove(missing);
        assert!(objects(move || shape::assert_modern_result("tools/list", &bad)), "{missing}");
    }
    let cached =
        json!({"resultType": "complete", "content": [], "ttlMs": 0, "cacheScope": "private", "_meta": meta});
    assert!(objects(move || shape::assert_modern_result("tools/call", &cached)));
    let asks = json!({"resultType": "input_required", "requestState": "s"});
    shape::assert_modern_result("tools/call", &asks);
    assert!(objects(move || shape::assert_modern_result("tools/list", &asks)));
    shape::assert_modern_error(Some(404), &json!({"code": -32601, "message": "m"}));
    let table = [
        (Some(400), json!({"code": -32601, "message": "m"})),
        (Some(200), json!({"code": -32002, "message": "m"})),
        (Some(200), json!({"code": -32042, "message": "m"})),
        (Some(200), json!({"code": -32055, "message": "m"})),
        (Some(400), json!({"code": -32021, "message": "m"})),
        (Some(400), json!({"code": -32022, "message": "m", "data": {"supported": []}})),
        (None, json!({"code": "x", "message": "m"})),
        (None, json!({"code": 1})),
        (None, json!({"code": 1, "message": "m", "extra": 1})),
    ];
    for (status, error) in table {
        let shown = error.to_string();
        assert!(objects(move || shape::assert_modern_error(status, &error)), "{shown}");
    }
}

/// Writes lines to a program of the network, each when so many have been read, and reads those that it answers.
async fn piped(net: &Net, lines: &[(usize, &str)], answers: usize) -> (Vec<Value>, std::sync::Arc<Running>) {
    use tokio::io::{AsyncBufReadExt, BufReader};
    let mut started = net.programs().start("server", Vec::new(), Vec::new(), None).unwrap();
    let mut output = BufReader::new(started.stdout).lines();
    let mut heard = Vec::new();
    for (before, line) in lines.iter().copied().chain([(answers, "")]) {
        while heard.len() < before {
            let line = within("a line", output.next_line()).await.unwrap().expect("a line");
            heard.push(serde_json::from_str(&line).unwrap());
        }
        if !line.is_empty() {
            started.stdin.write_all(format!("{line}\n").as_bytes()).await.unwrap();
        }
    }
    drop(started.stdin);
    assert_eq!(started.running.ended().await.1, "exit status: 0");
    assert!(output.next_line().await.unwrap().is_none());
    (heard, started.running)
}

#[tokio::test(start_paused = true)]
async fn a_legacy_server_is_the_same_behind_pipes() {
    let net = Net::new();
    let (calls, gets) = (Calls::new(), Gets::open());
    let up = calls.of(gets.of(LegacyServer::new())).start_program(&net, "server");
    let held = calls.clone();
    tokio::spawn(async move {
        held.wait(1).await.log("info", "m");
        gets.wait(1).await.event(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
        crate::support::pass(10).await;
        held.wait(1).await.finish("x");
    });
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    let early = r#"{"jsonrpc":"2.0","id":0,"method":"tools/list"}"#;
    let (heard, _) = piped(&net, &[(0, early)], 1).await;
    assert_eq!(heard[0]["error"]["code"], -32000);
    let done = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t"}}"#;
    let (heard, running) = piped(&net, &[(0, initialize), (1, done), (1, call)], 4).await;
    assert_eq!(heard[0]["result"]["protocolVersion"], "2025-11-25");
    let methods: Vec<_> = heard[1..3].iter().map(|one| one["method"].as_str().unwrap()).collect();
    assert_eq!(methods, ["notifications/message", "notifications/tools/list_changed"]);
    assert_eq!(heard[3]["result"]["content"][0]["text"], "x");
    assert_eq!(running.briefs(), ["initialize", "notifications/initialized", "tools/call"]);
    assert_eq!(up.briefs().len(), 4);
    assert!(running.input_ended().is_some() && !running.is_reaped());
    assert_eq!(net.faults(), [] as [String; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_is_the_same_behind_pipes() {
    let net = Net::new();
    let listens = support::Listens::open();
    listens.of(support::ModernServer::new()).start_program(&net, "server");
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let listen = format!(
        r#"{{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{{{meta},"notifications":{{}}}}}}"#
    );
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"l"}}"#;
    let list = format!(r#"{{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{{{meta}}}}}"#);
    let (heard, running) = piped(&net, &[(0, &listen), (0, &list)], 2).await;
    let of = |id: &str| heard.iter().any(|one| one.to_string().contains(id));
    assert!(of("subscriptions/acknowledged") && of("\"tools\""), "{heard:?}");
    assert_eq!(listens.now(), 0, "it went with its process");
    piped(&net, &[(0, &listen), (1, cancel), (1, &list)], 2).await;
    assert!(running.terminate().is_ok());
    running.reap().await;
    assert!(running.terminate().is_err(), "there is nothing left");
    assert_eq!(net.faults(), [] as [String; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_program_that_is_not_there_does_not_start() {
    let net = Net::new();
    let none = net.programs().start("server", Vec::new(), Vec::new(), None);
    assert_eq!(none.err().map(|error| error.kind()), Some(std::io::ErrorKind::NotFound));
}
