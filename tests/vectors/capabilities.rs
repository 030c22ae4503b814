//! D51, D53, D54, A3.1-A3.7: what a legacy server is told of the clients for which a session is opened.
//!
//! Owns the declarations themselves; what comes of them when the server asks is the questions' (`questions`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::net::{Receiver, handler};
use crate::support::{LegacyServer, Net, Proxy, Reply, Upstream, Value, call, json, list, pass, within};

const URL: &str = r#"{"elicitation":{"url":{}}}"#;

/// The capabilities of every `initialize`, in order.
fn declared(up: &Upstream) -> Vec<Value> {
    up.posts("initialize").iter().map(|seen| seen.json()["params"]["capabilities"].clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn d51_caps_partition() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    let (none, sampling) = (call("echo", "{}"), call("echo", "{}").caps(r#"{"sampling":{}}"#));
    proxy.send(&none).await.result();
    proxy.send(&sampling).await.result();
    proxy.send(&none).await.result();
    // Equal however they are written.
    proxy.send(&list("tools/list").caps("{ \"s\\u0061mpling\" :{ },\"tasks\":{}}")).await.result();
    assert_eq!(declared(&up), [json!({}), json!({"sampling": {}})]);
    let sessions: Vec<_> = up.posts("tools/call").iter().map(|seen| seen.session().unwrap()).collect();
    assert_eq!(sessions, ["S1", "S2", "S1"]);
    assert_eq!(up.only("tools/list").session().as_deref(), Some("S2"));
}

#[tokio::test(start_paused = true)]
async fn d51_capabilities_and_principals_both_count() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    for token in ["a", "b", "a"] {
        proxy.send(&call("echo", "{}").bearer(token).caps(r#"{"roots":{}}"#)).await.result();
    }
    assert_eq!(declared(&up), [json!({"roots": {}}), json!({"roots": {}})]);
}

#[tokio::test(start_paused = true)]
async fn d53_roots_no_listchanged() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    proxy.send(&list("tools/list").caps(r#"{"roots":{"listChanged":true}}"#)).await.result();
    assert_eq!(declared(&up), [json!({"roots": {}})]);
}

#[tokio::test(start_paused = true)]
async fn a3_2_a3_6_a3_7_what_else_is_declared() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    let caps = r#"{"tasks":{"list":{}},"experimental":{"x":{"a":1}},"extensions":{"io.modelcontextprotocol/tasks":{},"io.modelcontextprotocol/ui":{"mimeTypes":["text/html"]}}}"#;
    proxy.send(&list("tools/list").caps(caps)).await.result();
    let ui = json!({"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html"]}});
    assert_eq!(declared(&up), [json!({"experimental": {"x": {"a": 1}}, "extensions": ui})]);
}

#[tokio::test(start_paused = true)]
async fn interactive_off_declares_nothing() {
    let net = Net::new();
    let up = LegacyServer::new().start(&net);
    let proxy = Proxy::with(&net, "interactive = false").await;
    proxy.send(&call("echo", "{}").caps(r#"{"sampling":{},"elicitation":{}}"#)).await.result();
    proxy.send(&call("echo", "{}").caps(r#"{"roots":{}}"#)).await.result();
    assert_eq!(declared(&up), [json!({})], "and clients that differ in them alone share a session");
}

#[tokio::test(start_paused = true)]
async fn d54_2025_11_25_is_told_what_the_client_declares() {
    for caps in [
        URL,
        r#"{"elicitation":{}}"#,
        r#"{"elicitation":{"form":{},"url":{}}}"#,
        r#"{"sampling":{"tools":{},"context":{}}}"#,
    ] {
        let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
        proxy.send(&call("echo", "{}").caps(caps)).await.result();
        assert_eq!(declared(&up), [serde_json::from_str::<Value>(caps).unwrap()]);
    }
}

#[tokio::test(start_paused = true)]
async fn d54_caps_elicit_url_only_to_06() {
    let server = LegacyServer::new().version("2025-06-18");
    let (proxy, up) = Proxy::before(&server).await;
    proxy.send(&call("echo", "{}").caps(URL)).await.result();
    // Its revision turns up in the answer to the first one.
    assert_eq!(declared(&up), [json!({"elicitation": {"url": {}}}), json!({})]);
    assert_eq!(
        up.after_probe(),
        ["initialize", "DELETE", "initialize", "notifications/initialized", "tools/call"]
    );
    assert_eq!(server.deleted(), ["S1"]);
    let ended = &up.wait("DELETE", 1).await[0];
    assert_eq!(ended.header("mcp-protocol-version").as_deref(), Some("2025-06-18"));
    assert_eq!(up.only("notifications/initialized").session().as_deref(), Some("S2"));
    assert_eq!(up.only("tools/call").session().as_deref(), Some("S2"));
    // From then on its revision is known.
    proxy.send(&call("echo", "{}").bearer("b").caps(URL)).await.result();
    proxy.send(&call("echo", "{}").caps(r#"{"elicitation":{"form":{},"url":{}}}"#)).await.result();
    assert_eq!(declared(&up)[2..], [json!({}), json!({"elicitation": {}})]);
    assert_eq!(server.deleted(), ["S1"]);
    pass(1000).await;
    assert_eq!(proxy.sessions(), 3);
    assert_eq!(server.live_sessions(), 3);
}

#[tokio::test(start_paused = true)]
async fn d54_form_mode_is_told_2025_06_18_at_once() {
    for caps in
        [r#"{"elicitation":{}}"#, r#"{"elicitation":{"form":{}}}"#, r#"{"elicitation":{"form":{},"url":{}}}"#]
    {
        let (proxy, up) = Proxy::before(&LegacyServer::new().version("2025-06-18")).await;
        proxy.send(&call("echo", "{}").caps(caps)).await.result();
        proxy.send(&call("echo", "{}").bearer("b").caps(caps)).await.result();
        let first = serde_json::from_str::<Value>(caps).unwrap();
        assert_eq!(declared(&up), [first, json!({"elicitation": {}})]);
    }
}

#[tokio::test(start_paused = true)]
async fn d54_revisions_without_elicitation_are_not_told_of_it() {
    for version in ["2024-11-05", "2025-03-26"] {
        let server = LegacyServer::new().version(version);
        let (proxy, up) = Proxy::before(&server).await;
        let caps = r#"{"elicitation":{"url":{}},"sampling":{"tools":{}}}"#;
        proxy.send(&call("echo", "{}").caps(caps)).await.result();
        proxy.send(&call("echo", "{}").bearer("b").caps(caps)).await.result();
        // The first one is not repeated: what the server does not know it passes over.
        assert_eq!(declared(&up)[1..], [json!({"sampling": {}})]);
        assert_eq!(server.deleted(), Vec::<String>::new());
    }
}

#[tokio::test(start_paused = true)]
async fn a3_5_a_server_that_was_upgraded_is_told_all() {
    let before = LegacyServer::new().version("2025-06-18");
    let after = before.clone().version("2025-11-25");
    let upgraded = Arc::new(AtomicBool::new(false));
    let (old, now) = (before.clone(), Arc::clone(&upgraded));
    let net = Net::new();
    let peer = handler(move |seen, reply| {
        let server = if now.load(Ordering::SeqCst) { &after } else { &before };
        server.clone().answer(seen, reply)
    });
    let up = net.serve("up.test", Receiver::Legacy, peer);
    let proxy = Proxy::start(&net).await;
    let ask = call("echo", "{}").caps(r#"{"elicitation":{"form":{},"url":{}}}"#);
    proxy.send(&ask).await.result();
    upgraded.store(true, Ordering::SeqCst);
    old.forget_sessions();
    proxy.send(&ask).await.result();
    let all = json!({"elicitation": {"form": {}, "url": {}}});
    assert_eq!(declared(&up), [all.clone(), json!({"elicitation": {}}), all]);
    assert_eq!(old.deleted(), ["S2"]);
    assert_eq!(up.posts("tools/call").last().unwrap().session().as_deref(), Some("S3"));
}

#[tokio::test(start_paused = true)]
async fn a3_5_a_second_initialize_that_is_refused_ends_the_call_and_is_not_needed_again() {
    let base = LegacyServer::new().version("2025-06-18");
    let counter = base.clone();
    let server = base.clone().on("initialize", move |seen, reply| {
        let (base, second) = (base.clone(), counter.count("initialize") == 1);
        async move {
            match second {
                true => reply.error(400, &seen, r#"{"code":-32600,"message":"already initialized"}"#).await,
                false => base.initialize_as_usual(&seen, reply).await,
            }
        }
    });
    let (proxy, up) = Proxy::before(&server).await;
    let done = proxy.send(&call("echo", "{}").caps(URL)).await;
    done.is_error(502, -32603);
    proxy.send(&call("echo", "{}").caps(URL)).await.result();
    assert_eq!(declared(&up)[1..], [json!({}), json!({})]);
    assert_eq!(proxy.sessions(), 1);
}

#[tokio::test(start_paused = true)]
async fn a3_5_a_server_that_does_not_end_the_first_session_is_not_waited_for_for_ever() {
    let server = LegacyServer::new()
        .version("2025-06-18")
        .on("DELETE", |_, reply: Reply| async move { reply.never().await });
    let (proxy, up) = Proxy::before(&server).await;
    let both = [proxy.spawn(&call("echo", "{}").caps(URL)), proxy.spawn(&call("echo", "{}").caps(URL))];
    for one in both {
        within("the call", one).await.unwrap().result();
    }
    assert_eq!(declared(&up)[1..], [json!({})], "one for both");
}

#[tokio::test(start_paused = true)]
async fn a3_5_a_server_without_session_ids_is_told_again_too() {
    let (proxy, up) = Proxy::before(&LegacyServer::new().version("2025-06-18").sessionless()).await;
    proxy.send(&call("echo", "{}").caps(URL)).await.result();
    assert_eq!(
        up.after_probe(),
        ["initialize", "initialize", "notifications/initialized", "tools/call"],
        "nothing to end"
    );
    assert_eq!(declared(&up)[1], json!({}));
}

#[tokio::test(start_paused = true)]
async fn a3_5_a_session_for_one_call_is_told_right_too() {
    let server = LegacyServer::new().version("2025-06-18");
    let net = Net::new();
    let up = server.start(&net);
    let proxy = Proxy::with(&net, "[upstream.up.session]\nscope = \"request\"").await;
    proxy.send(&call("echo", "{}").caps(URL)).await.result();
    proxy.send(&call("echo", "{}").caps(URL)).await.result();
    // The first one came with the look at its era.
    assert!(declared(&up)[1..].iter().all(|caps| *caps == json!({})), "{:?}", declared(&up));
    pass(1000).await;
    assert_eq!(server.deleted().len(), declared(&up).len());
    assert_eq!((proxy.sessions(), server.live_sessions()), (0, 0));
}
