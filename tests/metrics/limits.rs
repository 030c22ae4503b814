//! Limits: each one that is reached, once and by its setting. Invariant 5.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::scrape::scrape;
use crate::support::{Ask, LegacyServer, ModernServer, Net, Proxy, Reply, call, json, list, pass};

const HITS: &str = "mcp_janus_limit_hits_total";
const UPSTREAM_HITS: &str = "mcp_janus_upstream_limit_hits_total";

async fn hits(proxy: &Proxy) -> Vec<String> {
    scrape(proxy).await.listed(HITS)
}

async fn upstream_hits(proxy: &Proxy) -> Vec<String> {
    scrape(proxy).await.listed(UPSTREAM_HITS)
}

async fn limited(limits: &str, server: &LegacyServer) -> Proxy {
    let net = Net::new();
    server.start(&net);
    Proxy::configured(&net, &format!("{limits}\n[upstream.up]\nurl = \"http://up.test/mcp\"\n")).await
}

#[tokio::test(start_paused = true)]
async fn bodies_and_heads() {
    let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(200), "]".repeat(200));
    let wide = format!("{{{}}}", (0..1100).map(|n| format!(r#""m{n}":1"#)).collect::<Vec<_>>().join(","));
    for (limits, ask, status, limit) in [
        (
            "[limits]\nbody_bytes = 1024",
            call("echo", &format!(r#"{{"a":"{}"}}"#, "x".repeat(2000))),
            413,
            "limits.body_bytes",
        ),
        ("", list("tools/list").header("X-Much", &"x".repeat(33_000)), 431, "limits.header_bytes"),
        ("", call("echo", &deep), 400, "limits.nesting"),
        ("", list("tools/list").raw_body(wide.as_bytes()), 400, "limits.members"),
    ] {
        let proxy = limited(limits, &LegacyServer::new()).await;
        let done = proxy.send(&ask).await;
        assert_eq!(done.status, status, "{limit}: {}", done.raw);
        assert_eq!(hits(&proxy).await, [format!("limit={limit} 1")]);
    }
}

#[tokio::test(start_paused = true)]
async fn requests_in_work() {
    let server = LegacyServer::new().on("tools/call", |seen, reply: Reply| async move {
        pass(10_000).await;
        reply.result(&seen, r#"{"content":[]}"#).await;
    });
    let proxy = limited("[limits]\nrequests = 1", &server).await;
    let first = proxy.spawn(&call("echo", "{}"));
    pass(1000).await;
    proxy.send(&list("tools/list")).await.is_error(503, -32603);
    first.await.unwrap().result();
    assert_eq!(hits(&proxy).await, ["limit=limits.requests 1"]);
    let seen = scrape(&proxy).await;
    assert_eq!(seen.listed("mcp_janus_refusals_total"), ["reason=requests,upstream=up 1"]);
}

#[tokio::test(start_paused = true)]
async fn slow_bodies_and_slow_heads() {
    let proxy = limited("", &LegacyServer::new()).await;
    let ask = list("tools/list").bytes();
    let mut slow = proxy.connect();
    slow.write_all(&ask[..ask.len() - 1]).await.unwrap();
    let mut answer = String::new();
    let _ = slow.read_to_string(&mut answer).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    drop(slow);
    assert_eq!(hits(&proxy).await, ["limit=timeouts.body 1"]);
    let mut slow = proxy.connect();
    slow.write_all(b"POST /mcp HTTP/1.1\r\nHost: lo").await.unwrap();
    let _ = slow.read_to_string(&mut String::new()).await;
    assert_eq!(hits(&proxy).await, ["limit=timeouts.body 1", "limit=timeouts.header 1"]);
}

#[tokio::test(start_paused = true)]
async fn b9_subscriptions_and_the_resources_of_one() {
    let proxy = limited("[limits]\nstreams = 1\nsubscriptions = 1", &LegacyServer::new()).await;
    let listen =
        |what: &str| Ask::new("subscriptions/listen").params(&format!(r#""notifications":{{{what}}}"#));
    proxy.send(&listen(r#""resourceSubscriptions":["a:1","a:2"]"#)).await.is_error(200, -32602);
    assert_eq!(hits(&proxy).await, ["limit=limits.subscriptions 1"]);
    let mut first = proxy.open(&listen("")).await;
    first.message().await;
    proxy.send(&listen("")).await.is_error(503, -32603);
    assert_eq!(hits(&proxy).await, ["limit=limits.streams 1", "limit=limits.subscriptions 1"]);
    let seen = scrape(&proxy).await;
    assert_eq!(seen.listed("mcp_janus_refusals_total"), ["reason=streams,upstream=up 1"]);
}

/// A server that sends `count` notifications of `size` bytes and then its result.
fn chatty(count: usize, size: usize) -> LegacyServer {
    LegacyServer::new().on("tools/call", move |seen, mut reply: Reply| async move {
        reply.stream().await;
        let text = "x".repeat(size);
        for n in 0..count {
            let params = json!({"n": n, "text": text});
            let message = json!({"jsonrpc": "2.0", "method": "notifications/x/y", "params": params});
            reply.event(&message.to_string()).await;
        }
        reply.result_event(&seen, r#"{"content":[]}"#).await;
        reply.end().await;
    })
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_slows_its_server_down() {
    for (limits, size, limit) in [
        ("[limits]\nevents = 1", 4_000, "limits.events"),
        ("[limits]\nevent_bytes = 1024\nevents = 1000", 4_000, "limits.event_bytes"),
    ] {
        let proxy = limited(limits, &chatty(400, size)).await;
        let answer = proxy.open(&call("echo", "{}")).await;
        pass(5_000).await;
        let seen = scrape(&proxy).await;
        assert!(seen.count(HITS, &[("limit", limit)]) > 0, "{limit}: {:?}", seen.listed(HITS));
        let (messages, broken) = answer.rest().await;
        assert_eq!((messages.len(), broken), (401, false));
    }
    let proxy = limited("", &chatty(3, 10)).await;
    proxy.send(&call("echo", "{}")).await.result();
    assert_eq!(hits(&proxy).await, Vec::<String>::new(), "nobody had to wait");
}

#[tokio::test(start_paused = true)]
async fn sessions() {
    let server = LegacyServer::new().on("tools/call", |_, reply: Reply| reply.never());
    let net = Net::new();
    let up = server.start(&net);
    let proxy = Proxy::with(&net, "session.max = 1\n").await;
    proxy.send(&list("tools/list").bearer("a")).await.result();
    assert_eq!(upstream_hits(&proxy).await, Vec::<String>::new());
    // The idle one makes room.
    proxy.send(&list("tools/list").bearer("b")).await.result();
    assert_eq!(upstream_hits(&proxy).await, ["limit=session.max,upstream=up 1"]);
    let _busy = proxy.spawn(&call("echo", "{}").bearer("b"));
    up.wait("tools/call", 1).await;
    proxy.send(&list("tools/list").bearer("c")).await.is_error(503, -32603);
    assert_eq!(upstream_hits(&proxy).await, ["limit=session.max,upstream=up 2"]);
}

#[tokio::test(start_paused = true)]
async fn messages_of_the_server() {
    let large = format!(r#"{{"content":[],"x":"{}"}}"#, "x".repeat(2000));
    let deep = format!(r#"{{"content":[],"x":{}{}}}"#, "[".repeat(200), "]".repeat(200));
    for (result, limit) in [(large, "limits.message_bytes"), (deep, "json")] {
        let net = Net::new();
        LegacyServer::new().result("tools/call", &result).start(&net);
        let proxy = Proxy::with(&net, "limits.message_bytes = 1024\n").await;
        proxy.send(&call("echo", "{}")).await.is_error(502, -32603);
        assert_eq!(upstream_hits(&proxy).await, [format!("limit={limit},upstream=up 1")]);
    }
}

#[tokio::test(start_paused = true)]
async fn redirects_and_resumptions() {
    let server = ModernServer::new().on("x/y", |_, reply: Reply| async move {
        reply.with("Location", "/mcp").empty(307).await;
    });
    let (proxy, _up) = Proxy::before_modern(&server).await;
    proxy.send(&Ask::new("x/y")).await.is_error(502, -32603);
    assert_eq!(upstream_hits(&proxy).await, ["limit=limits.redirects,upstream=up 1"]);

    // D104: the stream ends without the answer, again and again.
    let server = LegacyServer::new()
        .on("tools/call", |_, mut reply: Reply| async move {
            reply.stream().await;
            reply.chunk(b"id: 1\ndata:\n\n").await;
            reply.end().await;
        })
        .on("GET", |_, mut reply: Reply| async move {
            reply.stream().await;
            reply.chunk(b"id: 2\ndata:\n\n").await;
            reply.end().await;
        });
    let (proxy, _up) = Proxy::before(&server).await;
    proxy.send(&call("echo", "{}").header("Accept", "application/json")).await.is_error(502, -32603);
    assert_eq!(upstream_hits(&proxy).await, ["limit=limits.resumptions,upstream=up 1"]);
    let seen = scrape(&proxy).await;
    assert_eq!(seen.listed("mcp_janus_streams_resumed_total"), ["upstream=up 5"]);
}
