//! Invariants 1 and 6: whatever a legacy server sends, its client gets one answer, and that one is well-formed.

use crate::support::{Ask, LegacyServer, Proxy, Reply, call, json, list, read, rpc};

/// A server whose answers to calls are `body`, with `ID` for the request's id.
fn says(body: &'static str, streamed: bool) -> LegacyServer {
    LegacyServer::new().on("tools/call", move |seen, mut reply: Reply| async move {
        let body = body.replace("ID", &seen.id());
        if streamed {
            reply.stream().await;
            reply.event(&body).await;
            reply.end().await;
        } else {
            reply.json(200, &body).await;
        }
    })
}

#[tokio::test(start_paused = true)]
async fn inv1_an_answer_that_is_no_answer_is_a_gateway_error() {
    let bodies = [
        r#"{"jsonrpc":"2.0","id":ID}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{},"error":{"code":1,"message":"m"}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":5}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":null}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":[]}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{},"result":{"a":1}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"error":"text"}"#,
        r#"{"jsonrpc":"2.0","id":"another","result":{"content":[]}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/x"}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[]}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[]}} trailing"#,
        "null",
        "[]",
        "\u{0}",
    ];
    for body in bodies {
        for streamed in [false, true] {
            let (proxy, up) = Proxy::before(&says(body, streamed)).await;
            let done = proxy.send(&call("echo", "{}").id(r#""i""#)).await;
            // A custom notification is handed on (A2.11), and then the head is out.
            let status = if body.contains("method") { 200 } else { 502 };
            assert_eq!(
                (done.status, done.code()),
                (status, -32603),
                "{body} streamed {streamed}: {}",
                done.raw
            );
            assert_eq!(done.message["id"], "i");
            assert_eq!(up.posts("tools/call").len(), 1, "{body}: never sent twice");
            proxy.send(&list("tools/list")).await.result();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn inv6_a_malformed_error_does_not_get_through() {
    let errors = [
        r#"{"code":"x","message":"m"}"#,
        r#"{"code":1.5,"message":"m"}"#,
        r#"{"message":"m"}"#,
        r#"{"code":5}"#,
        r#"{"code":5,"message":null}"#,
        r#"{}"#,
        "null",
    ];
    for error in errors {
        let (proxy, up) = Proxy::before(&LegacyServer::new().error("tools/call", error)).await;
        let done = proxy.send(&call("echo", "{}").id("4")).await;
        // Repaired or replaced; its form is checked for every answer.
        assert!(done.message.get("error").is_some(), "{error}: {}", done.raw);
        assert_eq!(up.posts("tools/call").len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn inv6_members_that_the_proxy_writes_occur_once() {
    let result = r#"{"resultType":"a","resultType":"b","ttlMs":1,"ttlMs":2,"content":[]}"#;
    let (proxy, _up) = Proxy::before(&LegacyServer::new().result("tools/call", result)).await;
    let done = proxy.send(&call("echo", "{}").id("4")).await;
    for word in ["resultType", "serverInfo"] {
        assert!(done.raw.matches(word).count() <= 1, "{}", done.raw);
    }
    assert!(done.message.get("result").is_some() || done.code() == -32603, "{}", done.raw);
    let result = r#"{"_meta":{"a":1},"_meta":{"b":2},"content":[]}"#;
    let (proxy, _up) = Proxy::before(&LegacyServer::new().result("tools/call", result)).await;
    let done = proxy.send(&call("echo", "{}")).await;
    assert!(done.raw.matches(r#""_meta""#).count() <= 1, "{}", done.raw);
    for odd in ["5", "null", "[]", r#""x""#] {
        let result = format!(r#"{{"_meta":{odd},"content":[]}}"#);
        let (proxy, _up) = Proxy::before(&LegacyServer::new().result("tools/call", &result)).await;
        let done = proxy.send(&call("echo", "{}").id("4")).await;
        assert!(done.message.get("result").is_some() || done.code() == -32603, "{odd}: {}", done.raw);
    }
}

#[tokio::test(start_paused = true)]
async fn a2_3_odd_progress_does_not_get_through() {
    let server = LegacyServer::new().on("tools/call", |seen, mut reply: Reply| async move {
        let token = seen.json()["params"]["_meta"]["progressToken"].to_string();
        reply.stream().await;
        let odd = [r#""progress":"1""#, r#""total":5"#, r#""progress":null"#];
        for params in odd {
            let params = format!(r#"{{"progressToken":{token},{params}}}"#);
            reply
                .event(&format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{params}}}"#))
                .await;
        }
        reply.event(r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#).await;
        for at in ["0", "0", "0.25", "0.5", "0.50", "1e0", "0.75"] {
            let params = format!(r#"{{"progressToken":{token},"progress":{at}}}"#);
            reply
                .event(&format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{params}}}"#))
                .await;
        }
        reply.result_event(&seen, r#"{"content":[]}"#).await;
        reply.end().await;
    });
    let (proxy, _up) = Proxy::before(&server).await;
    let done = proxy.send(&call("echo", "{}").meta("progressToken", r#""t""#)).await;
    done.result();
    let seen: Vec<f64> = done.before.iter().map(|m| m["params"]["progress"].as_f64().unwrap()).collect();
    assert_eq!(seen, [0.0, 0.25, 0.5, 1.0], "each more than the one before");
}

#[tokio::test(start_paused = true)]
async fn a13_7_media_types_are_read_as_http_writes_them() {
    let json = ["application/json; charset=utf-8", "Application/JSON", "application/json;charset=\"UTF-8\""];
    let stream = ["text/event-stream;charset=utf-8", "Text/Event-Stream"];
    for media_type in json.into_iter().chain(stream) {
        let server = LegacyServer::new().on("tools/call", move |seen, reply: Reply| async move {
            let message = rpc::result_message(&seen.id(), r#"{"content":[]}"#);
            let stream = media_type.to_lowercase().starts_with("text/event");
            let body = if stream { format!("data: {message}\n\n") } else { message };
            reply.body(200, media_type, &body).await;
        });
        let (proxy, _up) = Proxy::before(&server).await;
        proxy.send(&call("echo", "{}")).await.result();
    }
}

#[tokio::test(start_paused = true)]
async fn a12_1_a_body_that_ends_with_its_connection() {
    let server = LegacyServer::new().on("tools/call", |seen, mut reply: Reply| async move {
        let message = rpc::result_message(&seen.id(), r#"{"content":[]}"#);
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n";
        reply.raw(format!("{head}{message}").as_bytes()).await;
    });
    let (proxy, _up) = Proxy::before(&server).await;
    for _ in 0..2 {
        proxy.send(&call("echo", "{}")).await.result();
    }
}

#[tokio::test(start_paused = true)]
async fn inv6_lists_and_reads_of_a_broken_form() {
    let table = [
        (list("tools/list"), r#"{"tools":null}"#),
        (list("tools/list"), r#"{"tools":{}}"#),
        (list("tools/list"), r#"{}"#),
        (list("tools/list"), r#"{"tools":[5,null,"x"]}"#),
        (
            Ask::new("completion/complete")
                .params(r#""ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}"#),
            r#"{"completion":{"values":[],"total":0}}"#,
        ),
        (read("file:///x"), r#"{"contents":[]}"#),
    ];
    for (ask, result) in table {
        let (proxy, _up) = Proxy::before(&LegacyServer::new().result(&ask.method, result)).await;
        let done = proxy.send(&ask.id("3")).await;
        let answered = done.message.get("result").is_some() || done.code() == -32603;
        assert!(answered, "{result}: {}", done.raw);
    }
}

#[tokio::test(start_paused = true)]
async fn inv6_a_handshake_of_a_broken_form() {
    let results = [
        r#"{}"#,
        "null",
        "5",
        r#"{"protocolVersion":5,"capabilities":{},"serverInfo":{"name":"a","version":"1"}}"#,
        r#"{"protocolVersion":"2026-07-28","capabilities":{},"serverInfo":{"name":"a","version":"1"}}"#,
    ];
    for result in results {
        let server = LegacyServer::new().on("initialize", move |seen, reply: Reply| async move {
            reply.with("Mcp-Session-Id", "S").result(&seen, result).await;
        });
        let (proxy, up) = Proxy::before(&server).await;
        proxy.send(&call("echo", "{}").id("3")).await.is_error(502, -32603);
        assert_eq!(up.posts("tools/call").len(), 0, "{result}");
    }
    // What is only missing can be done without.
    for result in
        [r#"{"protocolVersion":"2025-11-25"}"#, r#"{"protocolVersion":"2025-11-25","capabilities":{}}"#]
    {
        let server =
            LegacyServer::new().sessionless().on("initialize", move |seen, reply: Reply| async move {
                reply.result(&seen, result).await;
            });
        let (proxy, _up) = Proxy::before(&server).await;
        let done = proxy.send(&Ask::new("server/discover").id("3")).await;
        assert!(done.status == 502 || done.result()["capabilities"] == json!({}), "{result}: {}", done.raw);
    }
}
