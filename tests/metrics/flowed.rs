//! Large results of legacy servers, which go to the client while they still come.

use crate::requests::{REQUESTS, one};
use crate::scrape::scrape;
use crate::support::{LegacyServer, Net, Proxy, Reply, call, pass};

/// A result above `flow_bytes` (64 KiB).
fn large(end: &str) -> String {
    format!(r#"{{"content":[{{"type":"text","text":"{}"}}]{end}}}"#, "x".repeat(300_000))
}

#[tokio::test(start_paused = true)]
async fn a_result_that_passes_is_one_result() {
    let server = LegacyServer::new().on("tools/call", |seen, reply: Reply| async move {
        pass(300).await;
        let end = match seen.text() {
            text if text.contains("failed") => r#","isError":true"#,
            text if text.contains("fine") => r#","isError":false,"other":{"isError":true}"#,
            _ => "",
        };
        reply.result(&seen, &large(end)).await;
    });
    let (proxy, _up) = Proxy::before(&server).await;
    for arguments in ["{}", r#"{"x":"fine"}"#, r#"{"x":"failed"}"#] {
        for accept in ["application/json, text/event-stream", "text/event-stream"] {
            proxy.send(&call("echo", arguments).header("Accept", accept)).await.result();
        }
    }
    let seen = scrape(&proxy).await;
    assert_eq!(seen.listed(REQUESTS), [one("modern", "tools/call", "result", "legacy", 6)]);
    assert_eq!(seen.listed("mcp_janus_results_flowed_total"), ["upstream=up 6"]);
    assert_eq!(seen.listed("mcp_janus_tool_errors_total"), ["upstream=up 2"]);
    let server_part = "mcp_janus_upstream_duration_seconds";
    assert_eq!(seen.count(&format!("{server_part}_count"), &[("method", "tools/call")]), 6);
    let sum = seen.sum(&format!("{server_part}_sum"), &[("method", "tools/call")]);
    assert!((sum - 6.0 * 0.3).abs() < 0.02, "{sum}");
    // Pieces wait for their client as a matter of course.
    assert_eq!(seen.count("mcp_janus_limit_hits_total", &[]), 0);
}

#[tokio::test(start_paused = true)]
async fn one_without_an_end_is_broken_off_and_one_too_large_is_a_limit() {
    let server = LegacyServer::new().on("tools/call", |seen, mut reply: Reply| async move {
        let whole = crate::support::rpc::result_message(&seen.id(), &large(""));
        reply.stream().await;
        reply.chunk(&[b"data: ", &whole.as_bytes()[..whole.len() - 10]].concat()).await;
    });
    let (proxy, _up) = Proxy::before(&server).await;
    let mut answer = proxy.open(&call("echo", "{}")).await;
    assert!(answer.broke().await);
    let seen = scrape(&proxy).await;
    assert_eq!(seen.listed(REQUESTS), [one("modern", "tools/call", "broken-off", "legacy", 1)]);
    assert_eq!(seen.count("mcp_janus_results_flowed_total", &[]), 0);

    // A member that is rewritten, and so held, above `message_bytes`.
    let meta = format!(r#","_meta":{{"x":"{}"}}"#, "x".repeat(300_000));
    let server = LegacyServer::new().result("tools/call", &large(&meta));
    let net = Net::new();
    server.start(&net);
    let proxy = Proxy::with(&net, "limits.message_bytes = \"128KiB\"\n").await;
    let mut answer = proxy.open(&call("echo", "{}")).await;
    assert!(answer.broke().await);
    let seen = scrape(&proxy).await;
    let hits = seen.listed("mcp_janus_upstream_limit_hits_total");
    assert_eq!(hits, ["limit=limits.message_bytes,upstream=up 1"]);
}
