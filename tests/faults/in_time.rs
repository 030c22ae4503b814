//! Invariant 5 and the deadline of a call: every wait and queue ends, whatever the server does.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::support::{Ask, LegacyServer, ModernServer, Net, Proxy, Reply, call, list};

const ONE_SECOND: &str = "timeouts = { request = \"1s\" }";

async fn legacy(server: &LegacyServer, lines: &str) -> (Proxy, crate::support::Upstream) {
    let net = Net::new();
    let up = server.start(&net);
    (Proxy::with(&net, lines).await, up)
}

#[tokio::test(start_paused = true)]
async fn an_array_of_thousands_is_refused() {
    let server = LegacyServer::new().on("tools/call", |_, reply: Reply| async move {
        let items = vec!["1"; 5000].join(",");
        reply.json(200, &format!("[{items}]")).await;
    });
    let (proxy, _up) = Proxy::before(&server).await;
    proxy.send(&call("echo", "{}").id("3")).await.is_error(502, -32603);
}

#[tokio::test(start_paused = true)]
async fn the_calls_time_covers_initialize() {
    let server = LegacyServer::new().on("initialize", |_, reply: Reply| async move { reply.never().await });
    let (proxy, _up) = legacy(&server, ONE_SECOND).await;
    let start = Instant::now();
    proxy.send(&call("echo", "{}").id("3")).await.is_error(504, -32603);
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn the_calls_time_covers_a_modern_refusal_that_stalls() {
    let server = ModernServer::new().on("tools/call", |_, mut reply: Reply| async move {
        reply
            .raw(
                b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
            )
            .await;
        reply.never().await;
    });
    let net = Net::new();
    server.start(&net);
    let proxy = Proxy::with(&net, ONE_SECOND).await;
    let start = Instant::now();
    proxy.send(&call("echo", "{}").id("3")).await.is_error(504, -32603);
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn the_calls_time_covers_a_modern_stream_that_does_not_end() {
    for accept in ["application/json", "application/json, text/event-stream"] {
        let server = ModernServer::new().on("tools/call", |_, mut reply: Reply| async move {
            reply.stream().await;
            reply.never().await;
        });
        let net = Net::new();
        server.start(&net);
        let proxy = Proxy::with(&net, ONE_SECOND).await;
        let start = Instant::now();
        let answer = proxy.open(&call("echo", "{}").id("3").header("Accept", accept)).await;
        let (_, broken) = answer.rest().await;
        assert!(start.elapsed() < Duration::from_secs(3), "{accept}: {:?}", start.elapsed());
        assert_eq!(broken, accept != "application/json", "a stream that is cut off does not end well");
    }
}

#[tokio::test(start_paused = true)]
async fn answers_to_a_servers_pings_are_few_at_a_time() {
    let waiting = Arc::new(AtomicUsize::new(0));
    let count = waiting.clone();
    let server = LegacyServer::new().on("tools/call", |seen, mut reply: Reply| async move {
        reply.stream().await;
        for n in 0..100 {
            reply.event(&format!(r#"{{"jsonrpc":"2.0","id":{},"method":"ping"}}"#, 1000 + n)).await;
        }
        crate::support::pass(500).await;
        reply.result_event(&seen, r#"{"content":[]}"#).await;
        reply.never().await;
    });
    let net = Net::new();
    let usual = server.clone();
    let peer = crate::support::net::handler(move |seen, reply: Reply| {
        let (usual, count) = (usual.clone(), count.clone());
        async move {
            let answer = seen.json().get("result").is_some();
            if answer {
                count.fetch_add(1, Ordering::SeqCst);
                reply.never().await;
            } else {
                usual.answer(seen, reply).await;
            }
        }
    });
    net.serve("up.test", crate::support::net::Receiver::Legacy, peer);
    let proxy = Proxy::with(&net, ONE_SECOND).await;
    let done = proxy.spawn(&call("echo", "{}").id("3"));
    crate::support::pass(900).await;
    let sent = waiting.load(Ordering::SeqCst);
    assert!((1..=8).contains(&sent), "{sent} answers are on their way");
    drop(done);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_only_primed_is_not_resumed_for_ever() {
    let gets = Arc::new(AtomicUsize::new(0));
    let count = gets.clone();
    let server = LegacyServer::new().on("tools/call", |_, mut reply: Reply| async move {
        reply.stream().await;
        reply.chunk(b"id: 1\nretry: 0\ndata: \n\n").await;
        reply.end().await;
    });
    let net = Net::new();
    let usual = server.clone();
    let peer = crate::support::net::handler(move |seen, mut reply: Reply| {
        let (usual, count) = (usual.clone(), count.clone());
        async move {
            if seen.header("last-event-id").is_some() {
                count.fetch_add(1, Ordering::SeqCst);
                reply.stream().await;
                reply.chunk(b"id: 2\nretry: 0\ndata: \n\n").await;
                reply.end().await;
            } else {
                usual.answer(seen, reply).await;
            }
        }
    });
    net.serve("up.test", crate::support::net::Receiver::Legacy, peer);
    let proxy = Proxy::start(&net).await;
    let done = proxy.send(&call("echo", "{}").id("3")).await;
    assert_eq!(done.code(), -32603);
    assert_eq!(gets.load(Ordering::SeqCst), 5, "limits.resumptions");
}

#[tokio::test(start_paused = true)]
async fn a_session_keeps_its_place_until_the_server_knows_that_it_is_over() {
    for (lines, max) in [("session = { max = 2 }", 2), ("session = { max = 1, scope = \"request\" }", 1)] {
        let server = LegacyServer::new();
        let usual = server.clone();
        let peer = crate::support::net::handler(move |seen, reply: Reply| {
            let usual = usual.clone();
            async move {
                if seen.brief().starts_with("DELETE") {
                    crate::support::pass(300).await;
                }
                usual.answer(seen, reply).await;
            }
        });
        let net = Net::new();
        net.serve("up.test", crate::support::net::Receiver::Legacy, peer);
        let proxy = Proxy::with(&net, lines).await;
        for n in 0..6 {
            proxy.send(&call("echo", "{}").bearer(&format!("u{n}"))).await.result();
            assert!(server.live_sessions() <= max, "{lines}: {} sessions", server.live_sessions());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn too_many_requests_in_work_are_told_so() {
    let server = LegacyServer::new().on("tools/call", |_, reply: Reply| async move { reply.never().await });
    let net = Net::new();
    let up = server.start(&net);
    let toml = format!("[limits]\nrequests = 1\n[upstream.up]\npath = \"/mcp\"\nurl = \"{}\"\n", up.url());
    let proxy = Proxy::configured(&net, &toml).await;
    let first = proxy.spawn(&call("echo", "{}").id("1"));
    up.wait("tools/call", 1).await;
    let done = proxy.send(&list("tools/list").id("2")).await;
    done.is_error(503, -32603);
    assert_eq!(done.message["id"], 2);
    assert!(done.headers.has("retry-after"));
    first.abort();
}

#[tokio::test(start_paused = true)]
async fn a_notification_whose_refusal_stalls_is_answered_in_time() {
    let server = LegacyServer::new().on("notifications/acme", |_, mut reply: Reply| async move {
        reply.raw(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 100\r\n\r\n{").await;
        reply.never().await;
    });
    let (proxy, _up) = legacy(&server, "timeouts = { initialize = \"2s\" }").await;
    let start = Instant::now();
    let answer = proxy.open(&Ask::new("notifications/acme").notification()).await;
    assert_eq!(answer.status, 502);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}
