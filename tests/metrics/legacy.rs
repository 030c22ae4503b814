//! The cell of legacy client and legacy server: the server's own responses, sessions of the client's own.

use crate::requests::{REQUESTS, one};
use crate::scrape::scrape;
use crate::support::{LegacyServer, Old, Proxy, Reply, pass};

#[tokio::test(start_paused = true)]
async fn a_legacy_server_behind_a_legacy_client() {
    let server = LegacyServer::new()
        .on("tools/call", |seen, reply: Reply| async move {
            pass(300).await;
            reply.result(&seen, r#"{"content":[],"isError":true}"#).await;
        })
        .on("GET", |_, mut reply: Reply| async move {
            reply.stream().await;
            reply.never().await;
        });
    let (proxy, _up) = Proxy::before(&server).await;
    let old = Old::latest(&proxy).await;
    proxy.send(&old.call("echo", "{}")).await.result();
    assert_eq!(proxy.send(&old.answer("5", "{}")).await.status, 202);
    let stream = proxy.open(&old.get()).await;
    assert!(stream.is_stream());
    let seen = scrape(&proxy).await;
    assert_eq!(seen.listed("mcp_janus_open_streams"), ["kind=client-get,upstream=up 1"]);
    stream.close();
    assert_eq!(proxy.send(&old.delete()).await.status, 200);
    assert_eq!(proxy.send(&old.call("echo", "{}")).await.status, 404, "the session is over");
    let seen = scrape(&proxy).await;
    let mut expected = vec![
        one("legacy", "initialize", "relayed", "legacy", 1),
        one("legacy", "notification", "relayed", "legacy", 1),
        one("legacy", "tools/call", "relayed", "legacy", 1),
        one("legacy", "tools/call", "relayed-error", "legacy", 1),
        one("legacy", "response", "relayed", "legacy", 1),
        one("legacy", "get", "cancelled", "legacy", 1),
        one("legacy", "delete", "relayed", "legacy", 1),
    ];
    expected.sort();
    assert_eq!(seen.listed(REQUESTS), expected);
    assert_eq!(seen.raised().iter().filter(|gauge| !gauge.contains("upstream_connections")).count(), 0);
    assert_eq!(seen.count("mcp_janus_stream_duration_seconds_count", &[("kind", "client-get")]), 1);
    // The stream that a client opens by GET has no latency.
    assert_eq!(seen.count("mcp_janus_request_duration_seconds_count", &[]), 6);
    let server_part = "mcp_janus_upstream_duration_seconds";
    assert_eq!(seen.count(&format!("{server_part}_count"), &[("server", "legacy")]), 6);
    let called = seen.sum(&format!("{server_part}_sum"), &[("method", "tools/call")]);
    assert!((called - 0.3).abs() < 0.01, "{called}");
    // The proxy has opened none of its own, and has looked once.
    assert_eq!(seen.count("mcp_janus_initializations_total", &[]), 0);
    assert_eq!(seen.listed("mcp_janus_era_detections_total"), ["upstream=up,verdict=legacy 1"]);
}

#[tokio::test(start_paused = true)]
async fn b16_what_a_legacy_client_is_refused_for() {
    let note = r#"{"jsonrpc":"2.0","method":"notifications/x"}"#;
    let deep = format!(
        r#"[{{"jsonrpc":"2.0","id":1,"method":"x/y","params":{{"a":{}{}}}}}]"#,
        "[".repeat(200),
        "]".repeat(200)
    );
    for (body, reason, limit) in [
        ("[]".to_owned(), "batch", None),
        (format!("[{}]", vec![note; 1025].join(",")), "batch", Some("limits.members")),
        (deep, "envelope", Some("limits.nesting")),
    ] {
        let (proxy, _up) = Proxy::before(&LegacyServer::new()).await;
        let old = Old { session: None, version: None, token: None };
        assert_eq!(proxy.send(&old.raw(&body)).await.status, 400, "{reason}");
        let seen = scrape(&proxy).await;
        assert_eq!(seen.listed("mcp_janus_refusals_total"), [format!("reason={reason},upstream=up 1")]);
        let limits: Vec<_> = limit.map(|limit| format!("limit={limit} 1")).into_iter().collect();
        assert_eq!(seen.listed("mcp_janus_limit_hits_total"), limits);
    }
}
