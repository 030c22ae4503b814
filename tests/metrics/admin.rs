//! The admin listener: its paths, who may read, and that it goes on while the proxy drains.

use crate::scrape::scrape;
use crate::support::{Ask, LegacyServer, Proxy, Reply, call, pass};

#[tokio::test(start_paused = true)]
async fn it_serves_metrics_and_health_and_nothing_else() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    for (verb, path, status) in [
        ("GET", "/metrics", 200),
        ("HEAD", "/metrics", 200),
        ("POST", "/metrics", 405),
        ("DELETE", "/metrics", 405),
        ("GET", "/healthz", 200),
        ("GET", "/readyz", 200),
        ("POST", "/healthz", 405),
        ("GET", "/", 404),
        ("GET", "/metrics/", 404),
        ("GET", "/mcp", 404),
        ("POST", "/mcp", 404),
    ] {
        let status_line = format!("{verb} {path}");
        let ask = Ask::verb(verb).path(path).header("Connection", "close");
        let answer = proxy.admin_open(&ask).await;
        assert_eq!(answer.status, status, "{status_line}");
        assert_eq!(answer.headers.get("allow").is_some(), status == 405, "{status_line}");
        assert_eq!(answer.headers.get("cache-control").as_deref(), Some("no-store"), "{status_line}");
    }
    // Nor are they at the clients' address.
    assert_eq!(proxy.send(&Ask::verb("GET").path("/metrics")).await.status, 404);
    assert!(up.requests().is_empty());
}

/// A12.11: a web page that its visitor's browser opened must not read it, whatever name it found for 127.0.0.1.
#[tokio::test(start_paused = true)]
async fn a12_11_only_loopback_names_are_let_in() {
    let (proxy, _up) = Proxy::before(&LegacyServer::new()).await;
    let ask = || Ask::verb("GET").path("/metrics");
    for (ask, status) in [
        (ask().header("Host", "localhost:9464"), 200),
        (ask().header("Host", "evil.example"), 403),
        (ask().header("Origin", "https://evil.example"), 403),
        (ask().path("/healthz").header("Host", "evil.example"), 403),
    ] {
        let done = proxy.admin(&ask).await;
        assert_eq!(done.status, status, "{}", done.raw);
        assert!(!done.raw.contains("allowed_"), "no setting lets it in: {}", done.raw);
    }
    // The proxy's own counts are of its clients only.
    let seen = scrape(&proxy).await;
    for name in [
        "mcp_janus_refusals_total",
        "mcp_janus_client_connections_opened_total",
        "mcp_janus_client_received_bytes_total",
        "mcp_janus_client_sent_bytes_total",
    ] {
        assert_eq!(seen.count(name, &[]), 0, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn it_goes_on_while_the_proxy_drains() {
    let server = LegacyServer::new().on("tools/call", |seen, reply: Reply| async move {
        pass(2_000).await;
        reply.result(&seen, r#"{"content":[]}"#).await;
    });
    let (proxy, up) = Proxy::before(&server).await;
    let running = proxy.spawn(&call("echo", "{}"));
    up.wait("tools/call", 1).await;
    proxy.drain();
    pass(1).await;
    let ready = proxy.admin(&Ask::verb("GET").path("/readyz")).await;
    assert_eq!((ready.status, ready.raw.as_str()), (503, "draining\n"));
    assert_eq!(proxy.admin(&Ask::verb("GET").path("/healthz")).await.status, 200);
    assert_eq!(scrape(&proxy).await.count("mcp_janus_requests_in_progress", &[]), 1);
    running.await.unwrap().result();
    let seen = scrape(&proxy).await;
    assert_eq!(seen.count("mcp_janus_requests_in_progress", &[]), 0);
    assert_eq!(seen.count(crate::requests::REQUESTS, &[("outcome", "result")]), 1);
}
