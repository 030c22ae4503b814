//! A1.1, A15, C27, C39-C41: which server a legacy client's request may reach, and what it is told otherwise.

use crate::support::{
    Ask, LegacyServer, ModernServer, Net, Old, Proxy, Reply, Upstream, call, json, list, pass,
};

fn asks() -> Vec<(&'static str, Ask)> {
    let old = Old { session: Some("S1".into()), version: Some("2025-06-18".into()), token: None };
    vec![("2025-11-25", Old::initialize("2025-11-25")), ("2025-06-18", old.ask("tools/list"))]
}

/// A modern server whose legacy clients are not served (D83).
async fn modern_only() -> (Proxy, Upstream) {
    let net = Net::new();
    let up = ModernServer::new().start(&net);
    (Proxy::with(&net, "legacy_clients = false").await, up)
}

#[tokio::test(start_paused = true)]
async fn a1_1_in_front_of_a_modern_server_the_served_version_is_named() {
    let (proxy, up) = modern_only().await;
    for (version, ask) in asks() {
        let done = proxy.send(&ask).await;
        assert_eq!((done.status, done.code()), (400, -32022), "{}", done.raw);
        assert_eq!(*done.data(), json!({"supported": ["2026-07-28"], "requested": version}));
    }
    let old = Old { session: Some("S1".into()), version: Some("2025-06-18".into()), token: None };
    assert_eq!(proxy.send(&old.note("notifications/x")).await.status, 400);
    assert_eq!(proxy.send(&old.answer("5", "{}")).await.status, 400);
    for ask in [old.get(), old.delete()] {
        let done = proxy.send(&ask).await;
        assert_eq!((done.status, done.headers.get("allow").as_deref()), (405, Some("POST")));
    }
    let bare = Old { version: None, session: None, token: None };
    assert_eq!(proxy.send(&bare.ask("tools/list")).await.code(), -32020, "neither claim nor header");
    let probes = |brief: &String| ["server/discover", "initialize"].contains(&brief.as_str());
    assert!(up.briefs().iter().all(probes), "nothing else of them reaches the server: {:?}", up.briefs());
}

#[tokio::test(start_paused = true)]
async fn c40_only_the_probe_comes_before_the_client() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    let first = Old::latest(&proxy).await;
    Old::latest(&proxy).await;
    proxy.send(&first.ask("tools/list")).await.result();
    let probes = up.posts("server/discover").len();
    assert_eq!((probes, up.posts("initialize").len()), (1, 2), "{:?}", up.briefs());
    // A modern client's session is another one, opened only now.
    proxy.send(&call("echo", "{}")).await.result();
    assert_eq!(up.posts("initialize").len(), 3);
}

#[tokio::test(start_paused = true)]
async fn c39_a_server_that_has_become_modern() {
    for discover in [true, false] {
        let net = Net::new();
        LegacyServer::new().start(&net);
        let proxy = Proxy::with(&net, "legacy_clients = false").await;
        if discover {
            // A verdict instead of a presumption.
            proxy.send(&list("tools/list")).await.result();
        }
        let old = Old::latest(&proxy).await;
        pass(5000).await;
        let refuse = |status, code: i64| {
            move |seen: std::sync::Arc<crate::support::Seen>, reply: Reply| async move {
                reply.error(status, &seen, &format!(r#"{{"code":{code},"message":"m","data":{{"supported":["2026-07-28"],"requested":"x"}}}}"#)).await;
            }
        };
        let up = ModernServer::new()
            .on("initialize", refuse(404, -32601))
            .on("tools/list", refuse(400, -32022))
            .start_unchecked(&net);
        for ask in [Old::initialize("2025-11-25"), old.ask("tools/list")] {
            let done = proxy.send(&ask).await;
            assert_eq!((done.status, done.code()), (400, -32022), "{}", done.raw);
            assert_eq!(done.data()["supported"], json!(["2026-07-28"]));
        }
        let looks = up.briefs();
        assert!(
            looks.len() <= 3 && looks.starts_with(&["initialize".to_owned(), "server/discover".to_owned()]),
            "one look, then it is known: {looks:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn c39_a_legacy_servers_own_use_of_the_code_is_its_answer() {
    let server = LegacyServer::new().on("tools/call", |seen, reply: Reply| async move {
        reply.error(400, &seen, r#"{"code":-32022,"message":"mine"}"#).await;
    });
    let (proxy, up) = Proxy::before(&server).await;
    let old = Old::latest(&proxy).await;
    for _ in 0..3 {
        let done = proxy.send(&old.call("echo", "{}").id("7")).await;
        assert_eq!((done.status, &done.message["error"]["message"]), (400, &json!("mine")));
    }
    assert_eq!(up.posts("tools/call").len(), 3);
    assert!(up.posts("server/discover").len() <= 2, "C39e: no storm: {:?}", up.briefs());
}

#[tokio::test(start_paused = true)]
async fn c39_a_server_that_has_become_legacy() {
    let net = Net::new();
    ModernServer::new().start(&net);
    let proxy = Proxy::with(&net, "legacy_clients = false").await;
    assert_eq!(proxy.send(&Old::initialize("2025-11-25")).await.code(), -32022);
    LegacyServer::new().start(&net);
    assert_eq!(proxy.send(&Old::initialize("2025-11-25")).await.code(), -32022, "known for a while");
    pass(61_000).await;
    let old = Old::latest(&proxy).await;
    proxy.send(&old.ask("tools/list")).await.result();
}

#[tokio::test(start_paused = true)]
async fn c27_what_names_no_version_is_refused_wherever_it_goes() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    let old = Old { session: Some("S1".into()), version: None, token: None };
    for version in ["1999-01-01", "foobar", "2025-11-24"] {
        let done = proxy.send(&old.ask("tools/list").header("MCP-Protocol-Version", version)).await;
        assert_eq!((done.status, done.code()), (400, -32022), "{version}");
    }
    let two = old
        .ask("tools/list")
        .add_header("MCP-Protocol-Version", b"2025-11-25")
        .add_header("MCP-Protocol-Version", b"2025-06-18");
    assert_eq!(proxy.send(&two).await.status, 400);
    assert_eq!(up.briefs(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn c27_initialize_may_ask_for_anything() {
    // (e) The server answers with a legacy version, and the proxy does not interfere.
    let (proxy, _up) = Proxy::before(&LegacyServer::new()).await;
    let done = proxy.send(&Old::initialize("2026-07-28")).await;
    assert_eq!(done.result()["protocolVersion"], "2025-11-25");
}

#[tokio::test(start_paused = true)]
async fn a_fixed_era_needs_no_probe() {
    let net = Net::new();
    let up = LegacyServer::new().start(&net);
    let proxy = Proxy::with(&net, "era = \"legacy\"").await;
    let old = Old::latest(&proxy).await;
    proxy.send(&old.ask("tools/list")).await.result();
    assert_eq!(up.briefs(), ["initialize", "notifications/initialized", "tools/list"]);
}
