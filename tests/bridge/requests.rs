//! A1, A2, A13, C18, C21, C25, C27, C32: requests of legacy clients as HTTP and JSON-RPC have them, whatever they ask for.

use crate::stage::{LATEST, REVISIONS, Stage};
use crate::support::{Ask, ModernServer, Old, Reply, modern, pass, rpc};

/// A1.3, A1.9, A1.15: methods of the other era, and of tasks, are not served.
#[tokio::test(start_paused = true)]
async fn a1_methods_of_the_other_era_stay_here() {
    let stage = Stage::before(ModernServer::full()).await;
    for revision in REVISIONS {
        let user = stage.user(revision).await;
        for (method, params) in [
            ("server/discover", ""),
            ("subscriptions/listen", r#""notifications":{"toolsListChanged":true}"#),
            ("tasks/get", r#""taskId":"t""#),
            ("tasks/result", r#""taskId":"t""#),
            ("tasks/list", ""),
            ("tasks/cancel", r#""taskId":"t""#),
            ("tasks/update", r#""taskId":"t","inputResponses":{}"#),
        ] {
            let done = stage.unmoved(user.send(&user.old.ask(method).params(params).id("7"))).await;
            assert_eq!((done.status, done.code()), (200, -32601), "{revision} {method}: {}", done.raw);
        }
        assert!(user.lives().await, "{revision}");
    }
}

/// A2.1, A2.3, A2.7: notifications of a session are the proxy's.
#[tokio::test(start_paused = true)]
async fn a2_a_sessions_own_notifications_stay_here() {
    let stage = Stage::before(ModernServer::full()).await;
    let user = stage.latest().await;
    let notes = [
        user.old.note("notifications/initialized"),
        user.old.note("notifications/roots/list_changed"),
        user.old.note("notifications/progress").params(r#""progressToken":5,"progress":1"#),
        user.old.note("notifications/cancelled").params(r#""requestId":101"#),
        user.old.note("notifications/cancelled"),
    ];
    for note in notes {
        let done = stage.unmoved(stage.proxy.send(&note)).await;
        assert_eq!((done.status, done.raw.as_str()), (202, ""), "{}", note.method);
    }
}

/// C18, C20: ids of every kind come back as they were, and two requests under one id each get their own.
#[tokio::test(start_paused = true)]
async fn c18_ids_come_back_as_they_were() {
    let server = ModernServer::full().on("tools/call", |seen, reply: Reply| async move {
        let n = seen.json()["params"]["arguments"]["n"].as_u64().unwrap();
        pass(100 - n * 10).await;
        let members = format!(r#""content":[],"n":{n}"#);
        reply.result(&seen, &modern::complete("tools/call", &members)).await;
    });
    let stage = Stage::before(server).await;
    let user = stage.latest().await;
    let long = format!("\"{}\"", "l".repeat(200));
    let ids = [r#""1""#, "1", r#""init-1""#, r#""""#, r#""0""#, "0", "-1", &long, "9007199254740993"];
    for id in ids {
        for ask in [user.old.ask("tools/list").id(id), user.old.ask("acme/none").id(id)] {
            // The id as it was written is looked at on every exchange.
            let done = user.send(&ask).await;
            assert_eq!(rpc::id(done.raw.as_bytes()).as_deref(), Some(id), "{}", done.raw);
        }
    }
    let mut running = Vec::new();
    for n in 0..8u64 {
        let ask = user.old.call("echo", &format!(r#"{{"n":{n}}}"#)).id("1");
        let user = user.clone();
        running.push((n, tokio::spawn(async move { user.open(&ask).await.result().await })));
    }
    for (n, running) in running {
        assert_eq!(running.await.unwrap()["n"], n);
    }
}

#[tokio::test(start_paused = true)]
async fn c21_no_id_and_no_id_at_all() {
    let stage = Stage::before(ModernServer::full()).await;
    let user = stage.latest().await;
    let none = user.old.raw(r#"{"jsonrpc":"2.0","method":"tools/list"}"#);
    let done = stage.unmoved(stage.proxy.send(&none)).await;
    assert!(done.status == 202 && done.raw.is_empty() || (400..500).contains(&done.status), "{}", done.raw);
    assert!(!done.raw.contains("result"), "{}", done.raw);
    let null = user.old.raw(r#"{"jsonrpc":"2.0","id":null,"method":"tools/list"}"#);
    stage.unmoved(stage.proxy.send(&null)).await.is_error(400, -32600);
    assert!(user.lives().await);
}

#[tokio::test(start_paused = true)]
async fn c32_params_that_are_null_or_no_object() {
    let stage = Stage::before(ModernServer::full()).await;
    let user = stage.latest().await;
    for good in [
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":null}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"_meta":{}}}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":null}}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo"}}"#,
    ] {
        let done = stage.proxy.send(&user.old.raw(good)).await;
        assert!(done.message.get("result").is_some(), "{good}: {} {}", done.status, done.raw);
        assert_eq!(done.message["id"], 7);
    }
    for bad in [
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":[]}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":"x"}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":[1]}"#,
    ] {
        let done = stage.unmoved(stage.proxy.send(&user.old.raw(bad))).await;
        assert!([-32600, -32602].contains(&done.code()), "{bad}: {}", done.raw);
        assert_eq!(done.message["id"], 7, "{bad}");
    }
    assert!(user.lives().await);
}

/// C25: a client takes what it says that it takes; the server is always told both.
#[tokio::test(start_paused = true)]
async fn c25_what_a_client_takes() {
    let stage = Stage::before(ModernServer::full()).await;
    let user = stage.latest().await;
    let json_only = ["application/json", "application/*;q=0.5, text/event-stream;q=0"];
    for accept in json_only {
        for ask in [user.old.ask("tools/list"), user.old.call("echo", "{}")] {
            let done = user.send(&ask.header("Accept", accept)).await;
            done.result();
            assert_eq!(done.headers.media_type().as_deref(), Some("application/json"), "{accept}");
        }
    }
    for accept in ["*/*", "application/json, text/event-stream", "text/event-stream, application/json;q=0.1"]
    {
        user.send(&user.old.call("echo", "{}").header("Accept", accept)).await.result();
    }
    user.send(&user.old.call("echo", "{}").without("Accept")).await.result();
    let sse = user.send(&user.old.call("echo", "{}").header("Accept", "text/event-stream")).await;
    sse.result();
    assert_eq!(sse.headers.media_type().as_deref(), Some("text/event-stream"));
    let none = user.old.ask("tools/list").header("Accept", "image/png").id("7");
    assert_eq!(stage.unmoved(stage.proxy.send(&none)).await.status, 406);
    let get = user.old.get().header("Accept", "application/json");
    assert_eq!(stage.proxy.send(&get).await.status, 406);
}

/// A13.10: credentials go by the setting, with every request that is made for the client.
#[tokio::test(start_paused = true)]
async fn a13_10_credentials_go_by_the_settings() {
    let fixed = "authorization = { value = \"Bearer own\" }";
    for (lines, wanted) in
        [("", Some("Bearer alice")), ("authorization = \"strip\"", None), (fixed, Some("Bearer own"))]
    {
        let stage = Stage::before_with(ModernServer::full(), lines).await;
        let user = stage.user_as("alice").await;
        user.list("tools/list").await;
        user.subscribe("file:///x").await.result();
        user.send(&user.old.note("notifications/acme")).await;
        pass(1000).await;
        assert!(stage.listens.now() > 0, "{lines}");
        for seen in stage.up.requests() {
            assert_eq!(seen.header("authorization").as_deref(), wanted, "{lines}: {}", seen.brief());
        }
    }
}

/// C27: which version a session's requests may name.
#[tokio::test(start_paused = true)]
async fn c27_versions_that_a_session_may_name() {
    let stage = Stage::before(ModernServer::full()).await;
    let user = stage.user("2025-06-18").await;
    for bad in ["1999-01-01", "foobar", "2026-13-01"] {
        let done = stage.proxy.send(&user.old.ask("tools/list").header("MCP-Protocol-Version", bad)).await;
        assert_eq!(done.status, 400, "{bad}: {}", done.raw);
    }
    let two = user.old.ask("tools/list").add_header("MCP-Protocol-Version", b"2025-11-25");
    assert_eq!(stage.proxy.send(&two).await.status, 400);
    // None at all: the session knows.
    user.send(&user.old.ask("tools/list").without("MCP-Protocol-Version")).await.result();
    user.list("tools/list").await;
    // D69: whatever else, the outcome of a handshake is never a modern version.
    let done = stage.proxy.send(&Old::initialize("2026-07-28")).await;
    assert_eq!(done.result()["protocolVersion"], LATEST);
}

/// A modern request is one whatever session it names.
#[tokio::test(start_paused = true)]
async fn a13_4_a_modern_request_has_no_session() {
    let stage = Stage::before(ModernServer::full()).await;
    let user = stage.latest().await;
    let ask: Ask =
        crate::support::list("tools/list").header("Mcp-Session-Id", user.session()).id("\"modern\"");
    let done = stage.proxy.send(&ask).await;
    assert_eq!(done.result()["resultType"], "complete");
}
