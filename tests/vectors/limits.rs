//! Invariant 5: every bound has an error of its own, and what lies beyond it harms nobody else.

use crate::support::{LegacyServer, Net, Proxy, Reply, call, list, pass};

async fn configured(lines: &str, server: &LegacyServer) -> (Proxy, crate::support::Upstream) {
    let net = Net::new();
    let up = server.start(&net);
    let toml = format!("{lines}\n[upstream.up]\nurl = \"http://up.test/mcp\"\n");
    (Proxy::configured(&net, &toml).await, up)
}

async fn bounded(upstream_lines: &str, server: &LegacyServer) -> (Proxy, crate::support::Upstream) {
    let net = Net::new();
    let up = server.start(&net);
    (Proxy::with(&net, upstream_lines).await, up)
}

#[tokio::test(start_paused = true)]
async fn inv5_body_size() {
    let (proxy, up) = configured("[limits]\nbody_bytes = \"2KiB\"", &LegacyServer::new()).await;
    let done = proxy.send(&call("echo", &format!(r#"{{"a":"{}"}}"#, "x".repeat(3000)))).await;
    assert_eq!(done.status, 413, "{}", done.raw);
    assert_eq!(up.briefs(), Vec::<String>::new());
    proxy.send(&call("echo", "{}")).await.result();
}

#[tokio::test(start_paused = true)]
async fn inv5_header_size() {
    let (proxy, up) = configured("[limits]\nheader_bytes = \"8KiB\"", &LegacyServer::new()).await;
    let done = proxy.send(&call("echo", "{}").header("X-Long", &"x".repeat(10_000))).await;
    assert_eq!(done.status, 431, "{}", done.raw);
    assert_eq!(up.briefs(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn inv5_nesting() {
    let (proxy, up) = configured("[limits]\nnesting = 16", &LegacyServer::new()).await;
    let deep = |n: usize| format!(r#"{{"a":{}{}}}"#, "[".repeat(n), "]".repeat(n));
    let done = proxy.send(&call("echo", &deep(40)).id("5")).await;
    assert_eq!(done.status, 400, "{}", done.raw);
    assert_eq!(up.briefs(), Vec::<String>::new());
    proxy.send(&call("echo", &deep(8))).await.result();
}

#[tokio::test(start_paused = true)]
async fn inv5_nesting_at_its_default_outlives_any_depth() {
    let (proxy, _up) = configured("", &LegacyServer::new()).await;
    for open in ["[", r#"{"a":"#] {
        let done = proxy.send(&list("tools/list").raw_body(open.repeat(500_000).as_bytes())).await;
        assert_eq!(done.status, 400, "{}", done.raw);
    }
    proxy.send(&call("echo", "{}")).await.result();
}

#[tokio::test(start_paused = true)]
async fn inv5_members() {
    let (proxy, up) = configured("[limits]\nmembers = 8", &LegacyServer::new()).await;
    let many: Vec<String> = (0..20).map(|n| format!(r#""m{n}":{n}"#)).collect();
    let done = proxy.send(&call("echo", "{}").params(&format!(r#""name":"echo",{}"#, many.join(",")))).await;
    assert_eq!(done.status, 400, "{}", done.raw);
    assert_eq!(up.briefs(), Vec::<String>::new());
    proxy.send(&call("echo", &format!("{{{}}}", many.join(",")))).await.result();
}

#[tokio::test(start_paused = true)]
async fn inv5_requests_at_once() {
    let server = LegacyServer::new().on("tools/call", |seen, reply: Reply| async move {
        pass(10_000).await;
        reply.result(&seen, r#"{"content":[]}"#).await;
    });
    let (proxy, up) = configured("[limits]\nrequests = 1", &server).await;
    let first = proxy.spawn(&call("echo", "{}"));
    up.wait("tools/call", 1).await;
    let done = proxy.send(&call("echo", "{}").id("2")).await;
    assert_eq!(done.status, 503, "{}", done.raw);
    assert!(done.headers.has("retry-after"));
    first.await.unwrap().result();
    proxy.send(&list("tools/list")).await.result();
}

#[tokio::test(start_paused = true)]
async fn inv5_an_upstream_message_too_large() {
    for streamed in [false, true] {
        let server = LegacyServer::new().on("tools/call", move |seen, reply: Reply| async move {
            let result = format!(r#"{{"content":[{{"type":"text","text":"{}"}}]}}"#, "x".repeat(10_000));
            match streamed {
                true => reply.streamed_result(&seen, &result).await,
                false => reply.result(&seen, &result).await,
            }
        });
        let (proxy, up) = bounded("[upstream.up.limits]\nmessage_bytes = \"4KiB\"\n", &server).await;
        let done = proxy.send(&call("echo", "{}").id("4")).await;
        done.is_error(502, -32603);
        assert_eq!(up.posts("tools/call").len(), 1, "streamed: {streamed}");
        proxy.send(&list("tools/list")).await.result();
    }
}

#[tokio::test(start_paused = true)]
async fn inv5_sessions() {
    let server = LegacyServer::new();
    let (proxy, _up) = bounded("[upstream.up.session]\nmax = 2\n", &server).await;
    for user in ["a", "b", "c", "d"] {
        proxy.send(&call("echo", "{}").bearer(user)).await.result();
        pass(1000).await;
    }
    assert!(server.live_sessions() <= 2, "{} sessions", server.live_sessions());
    assert_eq!(server.deleted(), ["S1", "S2"], "the one unused for longest goes first");
}

#[tokio::test(start_paused = true)]
async fn inv5_sessions_in_use_are_not_taken_away() {
    let server = LegacyServer::new().on("tools/call", |seen, reply: Reply| async move {
        pass(10_000).await;
        reply.result(&seen, r#"{"content":[]}"#).await;
    });
    let (proxy, up) = bounded("[upstream.up.session]\nmax = 1\n", &server).await;
    let busy = proxy.spawn(&call("echo", "{}").bearer("a"));
    up.wait("tools/call", 1).await;
    let done = proxy.send(&list("tools/list").bearer("b").id("2")).await;
    assert_eq!(done.status, 503, "{}", done.raw);
    busy.await.unwrap().result();
    proxy.send(&list("tools/list").bearer("b")).await.result();
}

#[tokio::test(start_paused = true)]
async fn inv5_the_time_of_a_call() {
    let server = LegacyServer::new().on("tools/call", |_, reply: Reply| reply.never());
    let (proxy, up) = bounded("[upstream.up.timeouts]\nrequest = \"300ms\"\n", &server).await;
    let done = proxy.send(&call("echo", "{}").id("9")).await;
    done.is_error(504, -32603);
    let cancelled = up.wait("notifications/cancelled", 1).await;
    assert_eq!(cancelled[0].json()["params"]["requestId"], up.only("tools/call").json()["id"]);
}
