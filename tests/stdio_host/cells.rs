//! Host era by server era, over stdio on the host's side and HTTP on the server's.

use super::stage::{Host, echo, legacy, modern, modern_echo, text};
use super::support::{LegacyServer, ModernServer, Proxy};

const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

#[tokio::test(start_paused = true)]
async fn a_modern_host_before_a_legacy_server() {
    for version in VERSIONS {
        let (proxy, up) = Proxy::before(&LegacyServer::new().version(version)).await;
        modern_host(&proxy).await;
        assert!(up.only("tools/call").text().contains(r#""arguments":{"n":1e400}"#), "{version}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_modern_host_before_a_modern_server() {
    let (proxy, up) = Proxy::before_modern(&ModernServer::new()).await;
    modern_host(&proxy).await;
    assert!(up.only("tools/call").text().contains(r#""arguments":{"n":1e400}"#));
}

#[tokio::test(start_paused = true)]
async fn a_legacy_host_before_a_legacy_server() {
    for version in VERSIONS {
        let (proxy, up) = Proxy::before(&LegacyServer::new().version(version)).await;
        legacy_host(&proxy, version).await;
        assert!(up.only("tools/call").text().contains(r#""arguments":{"n":1e400}"#), "{version}");
        assert_eq!(up.posts("initialize").len(), 1, "{version}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_legacy_host_before_a_modern_server() {
    for version in VERSIONS {
        let (proxy, up) = Proxy::before_modern(&ModernServer::new()).await;
        legacy_host(&proxy, version).await;
        assert!(up.only("tools/call").text().contains(r#""arguments":{"n":1e400}"#), "{version}");
    }
}

async fn modern_host(proxy: &Proxy) {
    let mut host = Host::launch(proxy);
    host.say(&modern(r#""d""#, "server/discover", "")).await;
    let discovered = host.answer(r#""d""#).await;
    assert_eq!(discovered["result"]["resultType"], "complete");
    assert!(discovered["result"]["capabilities"].get("tools").is_some(), "{discovered}");
    host.say(&modern("2", "tools/list", "")).await;
    assert_eq!(host.answer("2").await["result"]["tools"][0]["name"], "echo");
    host.say(&modern_echo("3", r#"{"n":1e400}"#)).await;
    text(&host.answer("3").await);
    host.say(&modern("4", "acme/unknown", "")).await;
    assert_eq!(host.answer("4").await["error"]["code"], -32601);
    host.quiet(1000).await;
    assert_eq!(host.end().await, "Drained");
}

async fn legacy_host(proxy: &Proxy, version: &str) {
    let mut host = Host::initialized(proxy, version, "{}").await;
    host.say(&legacy("2", "tools/list", "")).await;
    assert_eq!(host.answer("2").await["result"]["tools"][0]["name"], "echo");
    host.say(&echo("\"3\"", r#"{"n":1e400}"#)).await;
    let called = host.answer("\"3\"").await;
    text(&called);
    assert!(called["result"].get("resultType").is_none(), "{called}");
    host.say(&legacy("4", "ping", "")).await;
    assert_eq!(host.answer("4").await["result"], super::support::json!({}));
    host.say(&legacy("5", "acme/unknown", "")).await;
    assert_eq!(host.answer("5").await["error"]["code"], -32601);
    host.quiet(1000).await;
    assert_eq!(host.end().await, "Drained");
}
