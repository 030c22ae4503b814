//! D1-D4, D6, D23: discovery, the hidden handshake with a legacy server, and what HTTP shows of it.
//!
//! Expected values are those of the vectors and of `basic/lifecycle` of the legacy revisions.

use crate::support::{Ask, INFO, LegacyServer, Net, Proxy, call, json, list, pass};

#[tokio::test(start_paused = true)]
async fn d01_disc_from_init() {
    let server = LegacyServer::new()
        .capabilities(r#"{"tools":{"listChanged":true},"tasks":{"requests":{"tools":{"call":{}}}}}"#)
        .instructions("x");
    let (proxy, up) = Proxy::before(&server).await;
    let done = proxy.send(&Ask::new("server/discover").id(r#""d""#)).await;
    assert_eq!(done.message["id"], "d");
    let expected = json!({
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {"listChanged": true}},
        "instructions": "x",
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "old", "version": "7"}},
    });
    assert_eq!(*done.result(), expected);
    up.wait("notifications/initialized", 1).await;
    pass(1000).await;
    assert_eq!(up.briefs(), ["server/discover", "initialize", "notifications/initialized"]);
}

#[tokio::test(start_paused = true)]
async fn d02_init_order() {
    let base = LegacyServer::new();
    let slow = base.clone().on("initialize", move |seen, reply| {
        let base = base.clone();
        async move {
            pass(5000).await;
            base.initialize_as_usual(&seen, reply).await;
        }
    });
    let (proxy, up) = Proxy::before(&slow).await;
    let early = [proxy.spawn(&list("tools/list").id("1")), proxy.spawn(&list("prompts/list").id("2"))];
    for one in early {
        one.await.unwrap().result();
    }
    let order = up.after_probe();
    assert_eq!(order[..2], ["initialize", "notifications/initialized"]);
    assert_eq!(order.len(), 4, "{order:?}");
}

#[tokio::test(start_paused = true)]
async fn d03_init_no_version_header() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    proxy.send(&list("tools/list")).await.result();
    assert_eq!(up.only("initialize").header("mcp-protocol-version"), None);
    for method in ["notifications/initialized", "tools/list"] {
        let version = up.only(method).header("mcp-protocol-version");
        assert_eq!(version.as_deref(), Some("2025-11-25"), "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn d04_init_downgrade() {
    for version in ["2025-06-18", "2025-03-26", "2024-11-05"] {
        let (proxy, up) = Proxy::before(&LegacyServer::new().version(version)).await;
        proxy.send(&call("echo", "{}")).await.result();
        let sent = up.only("tools/call").header("mcp-protocol-version");
        match version {
            "2025-06-18" => assert_eq!(sent.as_deref(), Some(version)),
            // The header has no meaning before 2025-06-18; a request may do without it.
            _ => assert!(sent.as_deref().is_none_or(|v| v == version), "{version}: {sent:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn d04_init_with_an_unknown_version() {
    let (proxy, up) = Proxy::before(&LegacyServer::new().version("1999-01-01")).await;
    let done = proxy.send(&call("echo", "{}").id("8")).await;
    done.is_error(502, -32603);
    assert_eq!(up.posts("tools/call").len(), 0);
    assert_eq!(up.posts("notifications/initialized").len(), 0);
}

#[tokio::test(start_paused = true)]
async fn d06_meta_no_clientinfo_ok() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    proxy.send(&list("tools/list").without_meta(INFO)).await.result();
    let info = &up.only("initialize").json()["params"]["clientInfo"];
    assert!(info["name"].as_str().is_some_and(|n| !n.is_empty()), "{info}");
    assert!(info["version"].as_str().is_some_and(|v| !v.is_empty()), "{info}");
}

#[tokio::test(start_paused = true)]
async fn d23_get_delete_modern() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    for verb in ["GET", "DELETE", "PUT"] {
        let done = proxy.send(&Ask::verb(verb)).await;
        assert_eq!(done.status, 405, "{verb}");
        assert_eq!(done.headers.get("allow").as_deref(), Some("POST"), "{verb}");
    }
    assert_eq!(up.briefs(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn d23_session_and_event_headers_are_ignored() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    let ask = call("echo", "{}").header("Mcp-Session-Id", "x").header("Last-Event-ID", "9");
    let done = proxy.send(&ask).await;
    done.result();
    let seen = up.only("tools/call");
    assert_eq!(seen.session().as_deref(), Some("S1"));
    assert_eq!(seen.header("last-event-id"), None);
}

#[tokio::test(start_paused = true)]
async fn a14_7_nothing_is_dialled_before_a_client_asks() {
    let net = Net::new();
    let _up = LegacyServer::new().start(&net);
    let _proxy = Proxy::start(&net).await;
    pass(60_000).await;
    assert_eq!(net.dialled(), Vec::<String>::new());
}
