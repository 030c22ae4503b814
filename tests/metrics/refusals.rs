//! Refusals: each request that the proxy itself turns away, once and by its reason.

use crate::requests::REQUESTS;
use crate::scrape::scrape;
use crate::support::{Ask, CAPS, INFO, LegacyServer, Proxy, VERSION, call, list};

const REFUSALS: &str = "mcp_janus_refusals_total";

/// (what is wrong, the status that says so, the reason that is counted).
fn at_the_endpoint() -> Vec<(Ask, u16, &'static str)> {
    let good = list("tools/list");
    let twice = r#""name":"a","name":"b""#;
    vec![
        (Ask::verb("GET"), 405, "http-method"),
        (good.clone().header("Content-Type", "text/plain"), 415, "content-type"),
        (good.clone().raw_body(b"{"), 400, "envelope"),
        (good.clone().raw_body(b"[]"), 400, "envelope"),
        (good.clone().raw_body(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#), 400, "response"),
        (good.clone().without("Mcp-Method"), 400, "header"),
        (good.clone().header("MCP-Protocol-Version", "2026-01-01"), 400, "header"),
        (
            good.clone().header("MCP-Protocol-Version", "2099-01-01").meta(VERSION, r#""2099-01-01""#),
            400,
            "version",
        ),
        (good.clone().header("Accept", "text/html"), 406, "accept"),
        (good.clone().without_meta(CAPS), 400, "capabilities"),
        (good.clone().meta(INFO, "1"), 400, "client-info"),
        (good.clone().meta("io.modelcontextprotocol/logLevel", r#""loud""#), 400, "log-level"),
        (good.clone().meta("progressToken", "true"), 400, "progress-token"),
        (Ask::new("tasks/get"), 400, "name"),
        (call("a", "{}").params(twice), 400, "duplicate"),
        (Ask::new("roots/list"), 404, "method"),
        (good.notification(), 400, "no-id"),
    ]
}

fn before_it() -> Vec<(Ask, u16, &'static str)> {
    let good = list("tools/list");
    vec![
        (good.clone().path("/other"), 404, "path"),
        (good.clone().header("Host", "evil.example"), 403, "host"),
        (good.clone().header("Origin", "https://evil.example"), 403, "origin"),
        (good.header("X-Much", &"x".repeat(33_000)), 431, "header-bytes"),
    ]
}

#[tokio::test(start_paused = true)]
async fn inv7_each_refusal_is_counted_once_by_its_reason() {
    for (upstream, table) in [("up", at_the_endpoint()), ("", before_it())] {
        for (ask, status, reason) in table {
            let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
            let done = proxy.send(&ask).await;
            assert_eq!(done.status, status, "{reason}: {}", done.raw);
            let seen = scrape(&proxy).await;
            assert_eq!(seen.listed(REFUSALS), [format!("reason={reason},upstream={upstream} 1")]);
            let requests = u64::from(upstream == "up");
            assert_eq!(seen.count(REQUESTS, &[]), requests, "{reason}");
            assert_eq!(seen.count(REQUESTS, &[("outcome", "refused"), ("server", "none")]), requests);
            assert_eq!(seen.count("mcp_janus_request_duration_seconds_count", &[]), 0, "{reason}");
            assert!(up.requests().is_empty(), "{reason}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn health_is_no_refusal_and_no_request() {
    let (proxy, _up) = Proxy::before(&LegacyServer::new()).await;
    for path in ["/healthz", "/readyz"] {
        assert_eq!(proxy.send(&Ask::verb("GET").path(path)).await.status, 200);
    }
    let seen = scrape(&proxy).await;
    assert_eq!(seen.count(REFUSALS, &[]) + seen.count(REQUESTS, &[]), 0);
    assert_eq!(seen.count("mcp_janus_client_connections_opened_total", &[]), 2);
}
