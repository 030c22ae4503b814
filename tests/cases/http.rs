//! C25, C27, C30-C32: `Accept`, versions in headers, connections that close, batches, and odd `params`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::{Ask, LegacyServer, Net, Proxy, Reply, VERSION, call, json, list, pass, rpc};

/// A server that answers calls as a stream and insists on both types in `Accept` (checked on every request).
fn streaming() -> LegacyServer {
    LegacyServer::new().on("tools/call", |seen, reply: Reply| async move {
        reply.streamed_result(&seen, r#"{"content":[]}"#).await;
    })
}

#[tokio::test(start_paused = true)]
async fn c25_accept() {
    let (proxy, _up) = Proxy::before(&streaming()).await;
    let accept = |value: &str| call("echo", "{}").header("Accept", value);
    let two_lines =
        call("echo", "{}").header("Accept", "application/json").add_header("Accept", b"text/event-stream");
    let table = [
        call("echo", "{}").without("Accept"),
        accept("*/*"),
        accept("application/json"),
        accept("application/*"),
        accept("application/json;q=0.5, text/event-stream;q=0"),
        accept("text/event-stream, application/json"),
        accept("APPLICATION/JSON, Text/Event-Stream"),
        two_lines,
    ];
    for ask in table {
        let done = proxy.send(&ask).await;
        done.result();
        assert_eq!(done.headers.media_type().as_deref(), Some("application/json"), "{:?}", ask.headers);
    }
    let done = proxy.send(&accept("text/event-stream")).await;
    done.result();
    let done = proxy.send(&accept("text/html").id("3")).await;
    assert!(done.status == 406 || done.status == 200, "{} {}", done.status, done.raw);
}

#[tokio::test(start_paused = true)]
async fn c25_only_json_is_answered_json_whatever_comes_first() {
    let server = LegacyServer::new().on("tools/call", |seen, mut reply: Reply| async move {
        let token = seen.json()["params"]["_meta"]["progressToken"].clone();
        reply.stream().await;
        let params = json!({"progressToken": token, "progress": 1});
        reply
            .event(
                &json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}).to_string(),
            )
            .await;
        pass(5000).await;
        reply.result_event(&seen, r#"{"content":[]}"#).await;
        reply.end().await;
    });
    let (proxy, _up) = Proxy::before(&server).await;
    let done =
        proxy.send(&call("echo", "{}").meta("progressToken", "1").header("Accept", "application/json")).await;
    done.result();
    assert_eq!(done.headers.media_type().as_deref(), Some("application/json"), "the stream is collapsed");
}

#[tokio::test(start_paused = true)]
async fn c25_content_type_is_json() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    for good in ["application/json", "application/json; charset=utf-8", "Application/JSON"] {
        proxy.send(&list("tools/list").header("Content-Type", good)).await.result();
    }
    let before = up.requests().len();
    for bad in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"] {
        assert_eq!(proxy.send(&list("tools/list").header("Content-Type", bad)).await.status, 415, "{bad}");
    }
    assert_eq!(up.requests().len(), before);
}

#[tokio::test(start_paused = true)]
async fn c27_versions_that_are_not_served() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    let plain = list("tools/list")
        .raw_body(br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#)
        .without("Mcp-Method");
    let header = |value: &[u8]| {
        plain.clone().without("MCP-Protocol-Version").add_header("MCP-Protocol-Version", value)
    };
    for value in ["1999-01-01", "foobar"] {
        let done = proxy.send(&header(value.as_bytes())).await;
        done.is_error(400, -32022);
        assert_eq!(done.data()["supported"], json!(["2026-07-28"]));
    }
    let two = header(b"2025-11-25").add_header("MCP-Protocol-Version", b"2025-06-18");
    for ask in [header(b""), header(b"2026\xe9"), two] {
        let done = proxy.send(&ask).await;
        assert_eq!(done.status, 400, "{}", done.raw);
        assert!([-32020, -32022].contains(&done.code()), "{}", done.raw);
    }
    // (d) and (f): a body that claims an old version is not served with modern fields.
    proxy.send(&list("tools/list").meta(VERSION, r#""2025-11-25""#)).await.is_error(400, -32020);
    let both =
        list("tools/list").meta(VERSION, r#""2025-11-25""#).header("MCP-Protocol-Version", "2025-11-25");
    proxy.send(&both).await.is_error(400, -32022);
    assert_eq!(up.briefs(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn c27_the_negotiated_version_is_the_one_sent() {
    let (proxy, up) = Proxy::before(&LegacyServer::new().version("2025-03-26")).await;
    for ask in [list("tools/list"), call("echo", "{}")] {
        proxy.send(&ask).await.result();
    }
    for seen in up.requests() {
        let version = seen.header("mcp-protocol-version");
        match seen.brief().as_str() {
            "server/discover" => assert_eq!(version.as_deref(), Some("2026-07-28")),
            "initialize" => assert_eq!(version, None),
            other => assert!(version.is_none_or(|v| v == "2025-03-26"), "{other}"),
        }
    }
}

/// Counts runs of the tool; `fault` says what becomes of the answer.
fn ledger<F, T>(fault: F) -> (LegacyServer, Arc<AtomicUsize>)
where
    F: Fn(usize, Arc<crate::support::Seen>, Reply) -> T + Send + Sync + 'static,
    T: Future<Output = ()> + Send + 'static,
{
    let runs = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&runs);
    let server = LegacyServer::new()
        .on("tools/call", move |seen, reply: Reply| fault(count.fetch_add(1, Ordering::SeqCst), seen, reply));
    (server, runs)
}

#[tokio::test(start_paused = true)]
async fn c30_a_pooled_connection_that_the_server_closed() {
    let server = LegacyServer::new().on("tools/list", |seen, reply: Reply| async move {
        reply.json_then_close(200, &rpc::result_message(&seen.id(), r#"{"tools":[]}"#)).await;
    });
    let (proxy, up) = Proxy::before(&server).await;
    for _ in 0..3 {
        proxy.send(&list("tools/list")).await.result();
        pass(1000).await;
        proxy.send(&call("echo", "{}")).await.result();
    }
    assert_eq!(up.posts("tools/call").len(), 3, "each ran once");
    assert_eq!(up.posts("initialize").len(), 1, "the session lives");
}

#[tokio::test(start_paused = true)]
async fn c30_a_reset_after_the_tool_ran() {
    let (server, runs) = ledger(|_, _, reply| async move { reply.reset() });
    let (proxy, up) = Proxy::before(&server).await;
    proxy.send(&list("tools/list")).await.result();
    let done = proxy.send(&call("charge", "{}").id("4")).await;
    done.is_error(502, -32603);
    assert_eq!(runs.load(Ordering::SeqCst), 1, "no replay");
    proxy.send(&list("tools/list")).await.result();
    assert_eq!(up.posts("initialize").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn c30_half_an_answer() {
    for n in [0, 10, 40] {
        let (server, runs) = ledger(move |_, seen, reply| async move {
            let whole =
                rpc::result_message(&seen.id(), r#"{"content":[{"type":"text","text":"long enough"}]}"#);
            reply.half(&whole, n).await;
        });
        let (proxy, _up) = Proxy::before(&server).await;
        let done = proxy.send(&call("charge", "{}").id("4")).await;
        done.is_error(502, -32603);
        assert_eq!(runs.load(Ordering::SeqCst), 1, "{n} bytes: no replay");
        proxy.send(&list("tools/list")).await.result();
    }
}

#[tokio::test(start_paused = true)]
async fn c30_half_a_stream() {
    let (server, runs) = ledger(|_, _, mut reply| async move {
        reply.stream().await;
        reply.chunk(b"data: {\"jsonrpc\":\"2.0\",\"id\":").await;
    });
    let (proxy, _up) = Proxy::before(&server).await;
    let done = proxy.send(&call("charge", "{}").id("4")).await;
    assert_eq!(done.code(), -32603, "{}", done.raw);
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn c30_a_server_that_answers_no_more() {
    let (server, runs) = ledger(|_, _, reply| reply.never());
    let (proxy, up) = Proxy::before(&server).await;
    let done = proxy.send(&call("charge", "{}").id("4")).await;
    assert_eq!(done.code(), -32603, "{}", done.raw);
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    assert_eq!(
        up.posts("notifications/cancelled").len(),
        1,
        "what timed out is cancelled: {:?}",
        up.briefs()
    );
}

#[tokio::test(start_paused = true)]
async fn c31_batches() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    let one = String::from_utf8(list("tools/list").body()).unwrap();
    let note = r#"{"jsonrpc":"2.0","method":"notifications/x"}"#;
    for body in [
        "[]".to_owned(),
        format!("[{one}]"),
        format!("  \n[{one},{note}]"),
        format!("[{note}]"),
        "[1]".to_owned(),
    ] {
        proxy.send(&list("tools/list").raw_body(body.as_bytes())).await.is_error(400, -32600);
    }
    assert_eq!(up.briefs(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn c31_a_server_answers_with_an_array_of_one() {
    for streamed in [false, true] {
        let server = LegacyServer::new().version("2025-03-26").on(
            "tools/list",
            move |seen, mut reply: Reply| async move {
                let batch = format!("[{}]", rpc::result_message(&seen.id(), r#"{"tools":[]}"#));
                if streamed {
                    reply.stream().await;
                    reply.event(&batch).await;
                    reply.end().await;
                } else {
                    reply.json(200, &batch).await;
                }
            },
        );
        let (proxy, _up) = Proxy::before(&server).await;
        assert_eq!(
            proxy.send(&list("tools/list")).await.result()["tools"],
            json!([]),
            "streamed: {streamed}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn c32_odd_params() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    let body = |params: &str| {
        list("tools/list")
            .raw_body(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list"{params}}}"#).as_bytes())
    };
    for params in ["", r#","params":null"#, r#","params":{}"#] {
        proxy.send(&body(params)).await.is_error(400, -32602);
    }
    for params in [r#","params":[]"#, r#","params":"x""#, r#","params":5"#] {
        let done = proxy.send(&body(params)).await;
        assert_eq!(done.status, 400, "{params}: {}", done.raw);
        assert!([-32602, -32600].contains(&done.code()), "{params}: {}", done.raw);
    }
    assert_eq!(up.briefs(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn c32_calls_without_arguments() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    let bare = Ask::new("tools/call").header("Mcp-Name", "echo");
    proxy.send(&bare.clone().params(r#""name":"echo""#)).await.result();
    assert_eq!(up.only("tools/call").json()["params"], json!({"name": "echo"}));
    let done = proxy.send(&bare.params(r#""name":"echo","arguments":null"#)).await;
    assert!(done.message.get("result").is_some() || done.message.get("error").is_some(), "{}", done.raw);
    for sent in up.posts("tools/call") {
        assert!(
            !sent.json()["params"].get("arguments").is_some_and(serde_json::Value::is_null),
            "never null upstream"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn c30_connections_are_pooled() {
    let net = Net::new();
    let up = LegacyServer::new().start(&net);
    let proxy = Proxy::start(&net).await;
    for _ in 0..10 {
        proxy.send(&call("echo", "{}")).await.result();
    }
    assert!(up.connections() <= 2, "{} connections for calls in turn", up.connections());
}
