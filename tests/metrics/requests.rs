//! Requests and times: each request once, in its cell, under its outcome.

use crate::scrape::scrape;
use crate::support::{Ask, LegacyServer, ModernServer, Net, Proxy, Reply, call, json, list, pass};

pub(crate) const REQUESTS: &str = "mcp_janus_requests_total";
const UP: (&str, &str) = ("upstream", "up");

/// All families that there are.
pub(crate) fn names() -> Vec<&'static str> {
    mcp_janus::telemetry::metrics::Metrics::new().unwrap().names().to_vec()
}

/// The one series of a request.
pub(crate) fn one(client: &str, method: &str, outcome: &str, server: &str, count: u64) -> String {
    format!("client={client},method={method},outcome={outcome},server={server},upstream=up {count}")
}

#[tokio::test(start_paused = true)]
async fn a_legacy_server_behind_a_modern_client() {
    let server = LegacyServer::new()
        .on("tools/call", |seen, reply: Reply| async move {
            let failed = seen.text().contains("fail");
            reply.result(&seen, &format!(r#"{{"content":[],"isError":{failed}}}"#)).await;
        })
        .error("prompts/get", r#"{"code":-32602,"message":"no such prompt"}"#)
        .error("x/y", r#"{"code":-32601,"message":"Method not found"}"#);
    let (proxy, up) = Proxy::before(&server).await;
    proxy.send(&call("echo", "{}")).await.result();
    proxy.send(&call("echo", "{}")).await.result();
    proxy.send(&call("echo", r#"{"fail":true}"#)).await.result();
    proxy.send(&list("tools/list")).await.result();
    proxy.send(&crate::support::get_prompt("p")).await.is_error(200, -32602);
    proxy.send(&Ask::new("x/y")).await.is_error(404, -32601);
    assert_eq!(proxy.send(&Ask::new("notifications/x").notification()).await.status, 202);
    proxy.send(&call("echo", "{}").params(r#""name":"echo","requestState":"s""#)).await.code();
    up.refuse();
    let seen = scrape(&proxy).await;
    let mut expected = vec![
        one("modern", "tools/call", "result", "legacy", 3),
        one("modern", "tools/call", "invalid-params", "legacy", 1),
        one("modern", "tools/list", "result", "legacy", 1),
        one("modern", "prompts/get", "error", "legacy", 1),
        one("modern", "custom", "unimplemented", "legacy", 1),
        one("modern", "notification", "accepted", "legacy", 1),
    ];
    expected.sort();
    assert_eq!(seen.listed(REQUESTS), expected);
    assert_eq!(seen.listed("mcp_janus_tool_errors_total"), ["upstream=up 1"]);
    assert_eq!(seen.count("mcp_janus_request_duration_seconds_count", &[UP]), 8);
    // What no server was asked, and what has no answer, has no time there.
    assert_eq!(seen.count("mcp_janus_upstream_duration_seconds_count", &[UP, ("server", "legacy")]), 6);
    assert_eq!(seen.count("mcp_janus_upstream_duration_seconds_count", &[]), 6);
    // The probe (400), `initialize`, `notifications/initialized`, six calls and a notification.
    let delivered = "mcp_janus_upstream_requests_total";
    assert_eq!(seen.listed(delivered), ["result=2xx,upstream=up 9", "result=4xx,upstream=up 1"]);
    assert_eq!(seen.listed("mcp_janus_era_detections_total"), ["upstream=up,verdict=legacy 1"]);
    assert_eq!(seen.listed("mcp_janus_initializations_total"), ["result=ok,upstream=up 1"]);
    assert_eq!(seen.listed("mcp_janus_refusals_total"), Vec::<String>::new());
    assert_eq!(seen.count("mcp_janus_build_info", &[("version", env!("CARGO_PKG_VERSION"))]), 1);
    assert!(seen.count("process_start_time_seconds", &[]) > 1_700_000_000);
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_behind_a_modern_client() {
    let server = ModernServer::new()
        .on("prompts/get", |_, reply: Reply| async move {
            reply.half(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, 10).await;
        })
        .on("resources/list", |_, mut reply: Reply| async move {
            reply.stream().await;
            reply.never().await;
        });
    let (proxy, _up) = Proxy::before_modern(&server).await;
    proxy.send(&call("echo", "{}")).await.result();
    proxy.send(&Ask::new("x/y")).await.is_error(404, -32601);
    let mut broken = proxy.open(&crate::support::get_prompt("p")).await;
    assert_eq!(broken.status, 200);
    assert!(broken.broke().await, "half an answer");
    let left = proxy.open(&list("resources/list")).await;
    left.close();
    let seen = scrape(&proxy).await;
    let mut expected = vec![
        one("modern", "tools/call", "relayed", "modern", 1),
        one("modern", "custom", "relayed-error", "modern", 1),
        one("modern", "prompts/get", "broken-off", "modern", 1),
        one("modern", "resources/list", "cancelled", "modern", 1),
    ];
    expected.sort();
    assert_eq!(seen.listed(REQUESTS), expected);
    assert_eq!(seen.listed("mcp_janus_era_detections_total"), ["upstream=up,verdict=modern 1"]);
    assert_eq!(seen.count("mcp_janus_upstream_duration_seconds_count", &[UP, ("server", "modern")]), 4);
}

#[tokio::test(start_paused = true)]
async fn times_end_with_the_first_message_and_with_the_last_byte() {
    let server = LegacyServer::new().on("tools/call", |seen, mut reply: Reply| async move {
        pass(200).await;
        reply.stream().await;
        let token = seen.json()["params"]["_meta"]["progressToken"].clone();
        let params = json!({"progressToken": token, "progress": 1});
        let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
        reply.event(&progress.to_string()).await;
        pass(500).await;
        reply.result_event(&seen, r#"{"content":[]}"#).await;
        reply.end().await;
    });
    let (proxy, _up) = Proxy::before(&server).await;
    proxy.send(&call("echo", "{}").meta("progressToken", "7")).await.result();
    let seen = scrape(&proxy).await;
    let call = [("upstream", "up"), ("method", "tools/call")];
    let near = |name: &str, wanted: f64| {
        let sum = seen.sum(name, &call);
        assert!((sum - wanted).abs() < 0.01, "{name}: {sum}, not {wanted}");
    };
    near("mcp_janus_upstream_duration_seconds_sum", 0.2);
    near("mcp_janus_request_duration_seconds_sum", 0.7);
    let below = |name: &str, le: &str| seen.count(name, &[call[0], call[1], ("le", le)]);
    assert_eq!(below("mcp_janus_upstream_duration_seconds_bucket", "0.1"), 0);
    assert_eq!(below("mcp_janus_upstream_duration_seconds_bucket", "0.25"), 1);
    assert_eq!(below("mcp_janus_request_duration_seconds_bucket", "0.0005"), 0);
    assert_eq!(below("mcp_janus_request_duration_seconds_bucket", "0.5"), 0);
    assert_eq!(below("mcp_janus_request_duration_seconds_bucket", "1"), 1);
    assert_eq!(below("mcp_janus_request_duration_seconds_bucket", "60"), 1);
}

#[tokio::test(start_paused = true)]
async fn a12_19_a_call_whose_client_goes_is_one_cancelled_request() {
    let server = LegacyServer::new().on("tools/call", |_, reply: Reply| reply.never());
    let (proxy, up) = Proxy::before(&server).await;
    // Before the head of the answer, and in the middle of its stream.
    let early = proxy.spawn(&call("echo", "{}"));
    up.wait("tools/call", 1).await;
    early.abort();
    let late = proxy.open(&call("echo", "{}")).await;
    assert!(late.is_stream());
    late.close();
    up.wait("notifications/cancelled", 2).await;
    let seen = scrape(&proxy).await;
    assert_eq!(seen.listed(REQUESTS), [one("modern", "tools/call", "cancelled", "legacy", 2)]);
    assert_eq!(seen.count("mcp_janus_upstream_duration_seconds_count", &[]), 0, "nothing was answered");
    // One still waited for the head of its answer.
    assert_eq!(seen.listed("mcp_janus_requests_in_progress"), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn what_goes_wrong_at_the_server_is_told_apart() {
    let server = LegacyServer::new()
        .on("tools/call", |_, reply: Reply| reply.never())
        .on("prompts/get", |_, reply: Reply| async move { reply.reset() })
        .on("resources/list", |_, reply: Reply| async move { reply.empty(500).await });
    let net = Net::new();
    let up = server.start(&net);
    let proxy = Proxy::with(&net, "timeouts.request = \"5s\"\n").await;
    proxy.send(&call("echo", "{}").header("Accept", "application/json")).await.is_error(504, -32603);
    proxy.send(&crate::support::get_prompt("p")).await.is_error(502, -32603);
    proxy.send(&list("resources/list")).await.is_error(502, -32603);
    up.refuse();
    proxy.send(&list("tools/list")).await;
    let seen = scrape(&proxy).await;
    assert_eq!(seen.count(REQUESTS, &[("outcome", "timeout"), ("method", "tools/call")]), 1);
    assert_eq!(seen.count(REQUESTS, &[("outcome", "bad-gateway"), ("method", "prompts/get")]), 1);
    assert_eq!(seen.count(REQUESTS, &[("outcome", "bad-gateway"), ("method", "resources/list")]), 1);
    let delivered = |result: &str| seen.count("mcp_janus_upstream_requests_total", &[("result", result)]);
    assert_eq!(delivered("broken"), 1);
    assert_eq!(delivered("5xx"), 1);
    assert_eq!(delivered("timeout") + delivered("given-up"), 1, "the call that was not answered");
}

#[tokio::test(start_paused = true)]
async fn bytes_are_those_of_http() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    let ask = call("echo", r#"{"text":"0123456789"}"#);
    let done = proxy.send(&ask).await;
    let seen = scrape(&proxy).await;
    assert_eq!(seen.count("mcp_janus_client_received_bytes_total", &[]), ask.bytes().len() as u64);
    let sent = seen.count("mcp_janus_client_sent_bytes_total", &[]);
    assert!(
        (1..400).contains(&(sent - done.body.len() as u64)),
        "a body of {} and a head: {sent}",
        done.body.len()
    );
    let bodies: usize = up.requests().iter().map(|request| request.body.len()).sum();
    let sent = seen.count("mcp_janus_upstream_sent_bytes_total", &[UP]);
    let heads = sent - bodies as u64;
    assert!((400..4000).contains(&heads), "four bodies of {bodies} and their heads: {sent}");
    assert!(seen.count("mcp_janus_upstream_received_bytes_total", &[UP]) > 300);
    assert_eq!(seen.count("mcp_janus_client_connections_opened_total", &[]), 1, "not the scrape's own");
    let opened = seen.count("mcp_janus_upstream_connections_opened_total", &[UP]);
    assert_eq!(opened, up.connections() as u64);
}

#[tokio::test(start_paused = true)]
async fn two_upstreams_do_not_mix_and_no_client_makes_a_series() {
    let net = Net::new();
    LegacyServer::new().start_at(&net, "a.test");
    ModernServer::new().start_at(&net, "b.test");
    let toml = "[upstream.a]\nurl = \"http://a.test/mcp\"\n[upstream.b]\nurl = \"http://b.test/mcp\"\n";
    let proxy = Proxy::configured(&net, toml).await;
    for n in 0..20 {
        let method = format!("made/up/{n}");
        let ask = Ask::new(&method).path("/a/mcp");
        proxy.send(&ask).await;
        proxy.send(&ask.path("/b/mcp")).await;
        proxy.send(&list("tools/list").path(&format!("/made-up/{n}"))).await;
    }
    let seen = scrape(&proxy).await;
    let mut expected = vec![
        "client=modern,method=custom,outcome=unimplemented,server=legacy,upstream=a 20",
        "client=modern,method=custom,outcome=relayed-error,server=modern,upstream=b 20",
    ];
    expected.sort_unstable();
    assert_eq!(seen.listed(REQUESTS), expected);
    assert_eq!(seen.listed("mcp_janus_refusals_total"), ["reason=path,upstream= 20"]);
}

#[test]
fn the_readme_lists_every_metric_and_no_other() {
    let readme = include_str!("../../README.md");
    let rows: Vec<&str> = readme
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .filter_map(|row| row.split('`').next())
        .filter(|name| name.starts_with("mcp_janus_") || name.starts_with("process_"))
        .map(|name| name.split('{').next().unwrap())
        .collect();
    let mut listed = rows.clone();
    listed.sort_unstable();
    let mut named = names();
    named.sort_unstable();
    assert_eq!(listed, named);
}
