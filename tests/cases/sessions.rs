//! C01-C06: sessions that the proxy owns at a legacy server, and how they get lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::net::{Receiver, handler};
use crate::support::{Ask, LegacyServer, Net, Proxy, Reply, call, json, list, pass, within};

#[tokio::test(start_paused = true)]
async fn c01_a_modern_client_of_a_stateful_server() {
    for ask in [list("tools/list"), list("tools/list").header("Mcp-Session-Id", "junk")] {
        let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
        let done = proxy.send(&ask).await;
        assert_eq!(done.message["id"], 1);
        assert_eq!(done.result()["resultType"], "complete");
        assert!(!done.headers.has("mcp-session-id"));
        assert_eq!(up.after_probe(), ["initialize", "notifications/initialized", "tools/list"]);
        assert_eq!(up.only("notifications/initialized").session().as_deref(), Some("S1"));
        assert_eq!(up.only("tools/list").session().as_deref(), Some("S1"));
    }
}

#[tokio::test(start_paused = true)]
async fn c01_a_claim_in_the_body_alone_is_a_header_error() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    let done = proxy.send(&Ask::new("server/discover").without("MCP-Protocol-Version")).await;
    done.is_error(400, -32020);
    assert_eq!(up.briefs(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn c02_three_calls_find_their_session_gone() {
    let server = LegacyServer::new().on("tools/call", |seen, reply: Reply| async move {
        reply
            .result(&seen, &format!(r#"{{"content":[],"n":{}}}"#, seen.json()["params"]["arguments"]["n"]))
            .await;
    });
    let (proxy, up) = Proxy::before(&server).await;
    proxy.send(&list("tools/list")).await.result();
    server.forget_sessions();
    let calls: Vec<_> = [11, 12, 13]
        .iter()
        .map(|n| proxy.spawn(&call("echo", &format!(r#"{{"n":{n}}}"#)).id(&n.to_string())))
        .collect();
    for (call, n) in calls.into_iter().zip([11, 12, 13]) {
        let done = call.await.unwrap();
        assert_eq!((&done.message["id"], &done.result()["n"]), (&json!(n), &json!(n)));
    }
    assert_eq!(up.posts("initialize").len(), 2, "one more initialize for all three");
    let sent = up.posts("tools/call");
    assert!(sent.len() <= 6, "each sent again once: {:?}", up.briefs());
    assert_eq!(sent.iter().filter(|s| s.session().as_deref() == Some("S2")).count(), 3);
}

#[tokio::test(start_paused = true)]
async fn c02_a_version_negotiated_anew_is_used_from_then_on() {
    let before = LegacyServer::new();
    let after = before.clone().version("2025-06-18");
    let restarted = Arc::new(AtomicBool::new(false));
    let now = Arc::clone(&restarted);
    let old = before.clone();
    let net = Net::new();
    let peer = handler(move |seen, reply| {
        let server = if now.load(Ordering::SeqCst) { &after } else { &before };
        server.clone().answer(seen, reply)
    });
    let up = net.serve("up.test", Receiver::Legacy, peer);
    let proxy = Proxy::start(&net).await;
    proxy.send(&list("tools/list")).await.result();
    restarted.store(true, Ordering::SeqCst);
    old.forget_sessions();
    proxy.send(&list("prompts/list")).await.result();
    proxy.send(&call("echo", "{}")).await.result();
    let versions = |method: &str| -> Vec<_> {
        up.posts(method).iter().map(|s| s.header("mcp-protocol-version").unwrap()).collect()
    };
    assert_eq!(versions("prompts/list"), ["2025-11-25", "2025-06-18"]);
    assert_eq!(versions("tools/call"), ["2025-06-18"]);
}

#[tokio::test(start_paused = true)]
async fn c02_a_stream_on_a_dead_session_ends_in_an_error() {
    let server = LegacyServer::new().on("tools/call", |_, mut reply: Reply| async move {
        reply.stream().await;
        pass(2000).await;
        drop(reply);
    });
    let (proxy, up) = Proxy::before(&server).await;
    let running = proxy.spawn(&call("echo", "{}").id("9"));
    up.wait("tools/call", 1).await;
    server.forget_sessions();
    let done = within("the running call", running).await.unwrap();
    assert_eq!(done.code(), -32603, "{}", done.raw);
    assert_eq!(done.message["id"], 9);
    assert_eq!(up.posts("tools/call").len(), 1, "it may have run: never again");
    proxy.send(&list("tools/list")).await.result();
}

#[tokio::test(start_paused = true)]
async fn c03_session_lost_in_other_dialects() {
    let lost_400 = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}"#;
    let lost_200 = r#"{"code":-32000,"message":"Server not initialized"}"#;
    for dialect in ["404", "404 html", "404 json", "400 -32000", "200 -32000"] {
        let counter = LegacyServer::new();
        let server = counter.clone().on("tools/call", move |seen, reply: Reply| {
            let first = counter.count("tools/call") == 0;
            async move {
                match (first, dialect) {
                    (false, _) => reply.result(&seen, r#"{"content":[]}"#).await,
                    (_, "404") => reply.empty(404).await,
                    (_, "404 html") => reply.body(404, "text/html", "<p>").await,
                    (_, "404 json") => {
                        reply.error(404, &seen, r#"{"code":-32001,"message":"Session not found"}"#).await
                    }
                    (_, "400 -32000") => reply.json(400, lost_400).await,
                    _ => reply.error(200, &seen, lost_200).await,
                }
            }
        });
        let (proxy, up) = Proxy::before(&server).await;
        let done = proxy.send(&call("echo", "{}").id("2")).await;
        assert_eq!(done.status, 200, "{dialect}: {}", done.raw);
        done.result();
        assert_eq!(up.posts("initialize").len(), 2, "{dialect}");
        assert_eq!(up.posts("tools/call").len(), 2, "{dialect}: refused at the gate, sent again once");
    }
}

#[tokio::test(start_paused = true)]
async fn c03_what_is_not_a_lost_session() {
    let argument = r#"{"code":-32602,"message":"Invalid arguments: session is required"}"#;
    for what in ["400 -32602", "503", "500"] {
        let server = LegacyServer::new().on("tools/call", move |seen, reply: Reply| async move {
            match what {
                "400 -32602" => reply.error(400, &seen, argument).await,
                "503" => reply.empty(503).await,
                _ => reply.empty(500).await,
            }
        });
        let (proxy, up) = Proxy::before(&server).await;
        for id in ["1", "2", "3"] {
            let done = proxy.send(&call("echo", "{}").id(id)).await;
            match what {
                "400 -32602" => {
                    let error = json!({"code": -32602, "message": "Invalid arguments: session is required"});
                    assert_eq!(done.message["error"], error, "{what}: relayed untouched");
                }
                _ => done.is_error(502, -32603),
            }
        }
        assert_eq!(up.posts("initialize").len(), 1, "{what}: no storm");
        assert_eq!(up.posts("tools/call").len(), 3, "{what}: each sent once");
    }
}

#[tokio::test(start_paused = true)]
async fn c04_a_server_without_session_ids() {
    let (proxy, up) = Proxy::before(&LegacyServer::new().sessionless()).await;
    for ask in [list("tools/list"), call("echo", "{}"), list("prompts/list")] {
        proxy.send(&ask).await.result();
    }
    assert!(up.requests().iter().all(|s| s.session().is_none()), "no session header");
    assert_eq!(up.posts("initialize").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn c06_only_initialize_names_the_session() {
    let server = LegacyServer::new().on("tools/call", |seen, reply: Reply| async move {
        reply.with("Mcp-Session-Id", "other").result(&seen, r#"{"content":[]}"#).await;
    });
    let (proxy, up) = Proxy::before(&server).await;
    for _ in 0..2 {
        let done = proxy.send(&call("echo", "{}")).await;
        done.result();
    }
    let sessions: Vec<_> = up.posts("tools/call").iter().map(|s| s.session().unwrap()).collect();
    assert_eq!(sessions, ["S1", "S1"]);
}

#[tokio::test(start_paused = true)]
async fn c06_initialize_never_carries_an_old_session() {
    let server = LegacyServer::new();
    let (proxy, up) = Proxy::before(&server).await;
    for _ in 0..3 {
        proxy.send(&list("tools/list").header("Mcp-Session-Id", "stale")).await.result();
        server.forget_sessions();
    }
    for initialize in up.posts("initialize") {
        assert_eq!(initialize.session(), None);
    }
    let sessions: Vec<_> =
        up.posts("notifications/initialized").iter().map(|s| s.session().unwrap()).collect();
    assert_eq!(sessions, ["S1", "S2", "S3"], "never two initializes on one id");
}

#[tokio::test(start_paused = true)]
async fn c06_an_idle_session_is_closed() {
    let server = LegacyServer::new();
    let net = Net::new();
    let up = server.start(&net);
    let proxy = Proxy::with(&net, "[upstream.up.session]\nidle = \"10m\"\n").await;
    proxy.send(&list("tools/list")).await.result();
    pass(9 * 60_000).await;
    assert_eq!(server.live_sessions(), 1);
    pass(11 * 60_000).await;
    assert_eq!(server.deleted(), ["S1"], "{:?}", up.briefs());
    proxy.send(&list("tools/list")).await.result();
    assert_eq!(up.posts("initialize").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn c04_each_principal_and_scope_has_its_own_session() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    for token in ["a", "b", "a"] {
        proxy.send(&call("echo", "{}").bearer(token)).await.result();
    }
    let sessions: Vec<_> = up.posts("tools/call").iter().map(|s| s.session().unwrap()).collect();
    assert_eq!(sessions, ["S1", "S2", "S1"], "same principal, same session");
    let (net, server) = (Net::new(), LegacyServer::new());
    let up = server.start(&net);
    let proxy = Proxy::with(&net, "[upstream.up.session]\nscope = \"request\"\n").await;
    for _ in 0..5 {
        proxy.send(&call("echo", "{}")).await.result();
    }
    let mut sessions: Vec<_> = up.posts("tools/call").iter().map(|s| s.session().unwrap()).collect();
    sessions.sort();
    sessions.dedup();
    assert_eq!(sessions.len(), 5, "a fresh session for every call");
    pass(60_000).await;
    assert!(server.live_sessions() <= 1, "ended after its call: {} are left", server.live_sessions());
}

#[tokio::test(start_paused = true)]
async fn c04_an_affinity_value_splits_a_principals_sessions() {
    for setting in ["header:x-conversation", "meta:com.acme/conversation"] {
        let net = Net::new();
        let up = LegacyServer::new().start(&net);
        let proxy = Proxy::with(&net, &format!("[upstream.up.session]\naffinity = \"{setting}\"\n")).await;
        for talk in ["a", "b", "a"] {
            let ask = call("echo", "{}").header("X-Conversation", talk);
            proxy.send(&ask.meta("com.acme/conversation", &format!(r#""{talk}""#))).await.result();
        }
        let sessions: Vec<_> = up.posts("tools/call").iter().map(|s| s.session().unwrap()).collect();
        assert_eq!(sessions[0], sessions[2], "{setting}");
        assert_ne!(sessions[0], sessions[1], "{setting}");
    }
}
