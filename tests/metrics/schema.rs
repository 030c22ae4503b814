//! The schema guard: findings once until they change, lists by whether they were known, calls that are refused. A5.3, C65.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::scrape::scrape;
use crate::support::{LegacyServer, Net, Proxy, Reply, call, list};

const GOOD: &str = r#"{"name":"good","inputSchema":{"type":"object"}}"#;
const BAD: &str = r#"{"name":"bad","inputSchema":{"type":"array"}}"#;
const MENDED: &str = r#"{"name":"mended","inputSchema":{}}"#;
const FINDINGS: &str = "mcp_janus_schema_findings_total";
const LISTS: &str = "mcp_janus_schema_lists_total";
const REFUSED: &str = "mcp_janus_schema_calls_refused_total";

#[tokio::test(start_paused = true)]
async fn findings_once_lists_and_refused_calls_each_time() {
    let sound = Arc::new(AtomicBool::new(false));
    let now = sound.clone();
    let server = LegacyServer::new().on("tools/list", move |seen, reply: Reply| {
        let bad = if now.load(Ordering::Relaxed) { BAD.replace("array", "object") } else { BAD.to_owned() };
        async move { reply.result(&seen, &format!(r#"{{"tools":[{GOOD},{bad},{MENDED}]}}"#)).await }
    });
    let net = Net::new();
    server.start(&net);
    let proxy = Proxy::with(&net, "").await;
    for _ in 0..3 {
        proxy.send(&list("tools/list")).await.result();
    }
    let seen = scrape(&proxy).await;
    assert_eq!(seen.listed(FINDINGS), ["kind=input_root,upstream=up 1", "kind=type_added,upstream=up 1"]);
    assert_eq!(seen.listed(LISTS), ["how=judged,upstream=up 1", "how=known,upstream=up 2"]);
    assert!(seen.count("mcp_janus_schema_cache_bytes", &[]) > 0);
    for _ in 0..2 {
        proxy.send(&call("bad", "{}")).await.is_error(200, -32602);
    }
    proxy.send(&call("good", "{}")).await.result();
    assert_eq!(scrape(&proxy).await.listed(REFUSED), ["upstream=up 2"]);

    sound.store(true, Ordering::Relaxed);
    proxy.send(&list("tools/list")).await.result();
    proxy.send(&call("bad", "{}")).await.result();
    sound.store(false, Ordering::Relaxed);
    proxy.send(&list("tools/list")).await.result();
    let seen = scrape(&proxy).await;
    assert_eq!(seen.count(REFUSED, &[]), 2);
    assert_eq!(seen.listed(LISTS), ["how=judged,upstream=up 2", "how=known,upstream=up 3"]);
    assert_eq!(seen.count(FINDINGS, &[("kind", "type_added")]), 1);
}

#[tokio::test(start_paused = true)]
async fn with_warn_findings_are_counted_and_no_call_is_refused() {
    let server = LegacyServer::new().result("tools/list", &format!(r#"{{"tools":[{BAD}]}}"#));
    let net = Net::new();
    server.start(&net);
    let proxy = Proxy::with(&net, "schema.policy = \"warn\"").await;
    proxy.send(&list("tools/list")).await.result();
    proxy.send(&call("bad", "{}")).await.result();
    let seen = scrape(&proxy).await;
    assert_eq!(seen.listed(FINDINGS), ["kind=input_root,upstream=up 1"]);
    assert_eq!(seen.count(REFUSED, &[]), 0);
}
