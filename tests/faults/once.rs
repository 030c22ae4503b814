//! Invariant 3: a call reaches its server at most once, unless the server proved that it did not run it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::net::{Receiver, handler};
use crate::support::rpc::error_message;
use crate::support::{LegacyServer, ModernServer, Net, Proxy, Reply, Value, call, json, list};

#[tokio::test(start_paused = true)]
async fn a_modern_servers_own_400_is_its_answer() {
    let server = ModernServer::new().on("tools/call", |seen, reply: Reply| async move {
        reply.error(400, &seen, r#"{"code":-32000,"message":"no"}"#).await;
    });
    let (proxy, up) = Proxy::before_modern(&server).await;
    let done = proxy.send(&call("echo", "{}").id("7")).await;
    assert_eq!((done.status, done.code(), &done.message["id"]), (400, -32000, &json!(7)));
    assert_eq!(up.posts("tools/call").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_is_no_json_rpc_is_looked_into_but_not_sent_again() {
    for status in [400, 404, 405, 422] {
        let server = ModernServer::new().on("tools/call", move |_, reply: Reply| async move {
            reply.body(status, "text/html", "<p>no</p>").await;
        });
        let (proxy, up) = Proxy::before_modern(&server).await;
        proxy.send(&call("echo", "{}").id("7")).await.is_error(502, -32603);
        assert_eq!(up.posts("tools/call").len(), 1, "{status}: {:?}", up.briefs());
    }
}

#[tokio::test(start_paused = true)]
async fn a_legacy_servers_own_code_of_the_reserved_range_is_its_answer() {
    for code in ["-32020", "-32022"] {
        let error = format!(r#"{{"code":{code},"message":"mine"}}"#);
        let server = LegacyServer::new().on("tools/call", move |seen, reply: Reply| {
            let error = error.clone();
            async move { reply.error(400, &seen, &error).await }
        });
        let (proxy, up) = Proxy::before(&server).await;
        let done = proxy.send(&call("echo", "{}").id("7")).await;
        // A11.12.
        assert_eq!((done.code(), &done.message["id"]), (-32603, &json!(7)), "{}", done.raw);
        assert_eq!(done.data()["originalCode"].to_string(), code);
        assert_eq!(up.posts("tools/call").len(), 1, "{:?}", up.briefs());
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_without_an_id_is_the_calls_and_no_lost_session() {
    let server = LegacyServer::new().on("tools/call", |_, reply: Reply| async move {
        reply
            .json(200, r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"tool crashed"}}"#)
            .await;
    });
    let (proxy, up) = Proxy::before(&server).await;
    let done = proxy.send(&call("echo", "{}").id("7")).await;
    assert_eq!((done.code(), &done.message["id"]), (-32000, &json!(7)));
    assert_eq!((up.posts("tools/call").len(), up.posts("initialize").len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn progress_proves_that_the_call_has_begun() {
    let server = LegacyServer::new().on("tools/call", |seen, mut reply: Reply| async move {
        let token = &seen.json()["params"]["_meta"]["progressToken"];
        reply.stream().await;
        let params = json!({"progressToken": token, "progress": 1});
        reply
            .event(&json!({"jsonrpc":"2.0","method":"notifications/progress","params":params}).to_string())
            .await;
        reply
            .event(&error_message(&seen.id(), r#"{"code":-32000,"message":"Server not initialized"}"#))
            .await;
        reply.end().await;
    });
    let (proxy, up) = Proxy::before(&server).await;
    let done = proxy.send(&call("echo", "{}").id("7").meta("progressToken", "1")).await;
    assert_eq!((done.code(), done.before.len()), (-32000, 1));
    assert_eq!(up.posts("tools/call").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn c03_a_known_gate_is_believed_once() {
    for status in [200, 400] {
        let lost = Arc::new(AtomicBool::new(true));
        let server = LegacyServer::new().on("tools/call", move |seen, reply: Reply| {
            let first = lost.swap(false, Ordering::SeqCst);
            async move {
                if first {
                    reply.error(status, &seen, r#"{"code":-32000,"message":"Server not initialized"}"#).await;
                } else {
                    reply.result(&seen, r#"{"content":[]}"#).await;
                }
            }
        });
        let (proxy, up) = Proxy::before(&server).await;
        proxy.send(&call("echo", "{}")).await.result();
        assert_eq!((up.posts("tools/call").len(), up.posts("initialize").len()), (2, 2), "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn c39_all_who_meet_a_changed_era_are_answered() {
    let (legacy, modern) = (LegacyServer::new(), ModernServer::new());
    let changed = Arc::new(AtomicBool::new(false));
    let now = Arc::clone(&changed);
    let old = legacy.clone();
    let net = Net::new();
    let peer = handler(move |seen, reply| {
        let (legacy, modern) = (legacy.clone(), modern.clone());
        let modern_now = now.load(Ordering::SeqCst);
        async move { if modern_now { modern.answer(seen, reply).await } else { legacy.answer(seen, reply).await } }
    });
    let up = net.serve("up.test", Receiver::Unchecked, peer);
    let proxy = Proxy::start(&net).await;
    proxy.send(&list("tools/list")).await.result();
    changed.store(true, Ordering::SeqCst);
    old.forget_sessions();
    let asked: Vec<_> = (0..8).map(|n| proxy.spawn(&list("tools/list").id(&n.to_string()))).collect();
    for (n, done) in asked.into_iter().enumerate() {
        let done = done.await.unwrap();
        done.result();
        assert_eq!(done.message["id"], json!(n));
    }
    assert!(up.posts("server/discover").len() <= 3, "no storm: {:?}", up.briefs());
}

#[tokio::test(start_paused = true)]
async fn a15_5_a_refused_initialize_questions_the_verdict() {
    for refusal in [
        (400, r#"{"code":-32602,"message":"_meta is required"}"#),
        (200, r#"{"code":-32601,"message":"no initialize"}"#),
    ] {
        let (legacy, modern) = (LegacyServer::new(), ModernServer::new());
        let changed = Arc::new(AtomicBool::new(false));
        let now = Arc::clone(&changed);
        let net = Net::new();
        let peer = handler(move |seen, reply: Reply| {
            let (legacy, modern) = (legacy.clone(), modern.clone());
            let modern_now = now.load(Ordering::SeqCst);
            async move {
                let claims =
                    seen.json()["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] != Value::Null;
                match (modern_now, claims) {
                    (false, _) => legacy.answer(seen, reply).await,
                    (true, true) => modern.answer(seen, reply).await,
                    (true, false) if seen.rpc_method() == "initialize" => {
                        reply.error(refusal.0, &seen, refusal.1).await;
                    }
                    (true, false) => reply.empty(404).await,
                }
            }
        });
        let up = net.serve("up.test", Receiver::Unchecked, peer);
        let proxy = Proxy::start(&net).await;
        proxy.send(&list("tools/list")).await.result();
        changed.store(true, Ordering::SeqCst);
        let done = proxy.send(&list("tools/list").id("5")).await;
        assert_eq!(done.result()["resultType"], "complete", "{refusal:?} {:?}", up.briefs());
    }
}
