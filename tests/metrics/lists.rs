//! Lists of a modern server that are kept for its legacy clients (`cache_lists`).

use std::sync::Arc;

use crate::scrape::scrape;
use crate::support::{Listens, ModernServer, Net, Proxy, User, modern, pass};

const LATEST: &str = "2025-11-25";

#[tokio::test(start_paused = true)]
async fn lists_that_are_kept() {
    let net = Net::new();
    let listens = Listens::open();
    let tools = modern::kept(r#""tools":[]"#, 60_000, "private");
    listens.of(ModernServer::full().result("tools/list", &tools)).start_bridged(&net);
    let proxy = Arc::new(Proxy::with(&net, "cache_lists = true").await);
    let user = User::begin(&proxy, LATEST).await;
    listens.wait(1).await;
    pass(1000).await;
    for _ in 0..3 {
        user.list("tools/list").await;
    }
    let seen = scrape(&proxy).await;
    assert_eq!(
        seen.listed("mcp_janus_list_cache_total"),
        ["how=hit,upstream=up 2", "how=miss,upstream=up 1", "how=stored,upstream=up 1"]
    );
    assert!(seen.count("mcp_janus_list_cache_bytes", &[]) > 0);
    listens.tell("tools");
    pass(1000).await;
    let seen = scrape(&proxy).await;
    assert_eq!(seen.count("mcp_janus_list_cache_total", &[("how", "dropped")]), 1);
    assert_eq!(seen.count("mcp_janus_list_cache_bytes", &[]), 0);
}
