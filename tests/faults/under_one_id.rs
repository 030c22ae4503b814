//! Invariants 1, 2 and 6: one answer under the caller's id, nobody else's words, and valid whatever the server wrote.

use crate::support::net::Receiver;
use crate::support::{Ask, LegacyServer, ModernServer, Net, Proxy, Reply, call, get_prompt, json, list};

#[tokio::test(start_paused = true)]
async fn inv1_a_result_without_an_id_is_no_answer() {
    for id in ["", r#""id":null,"#] {
        let body = format!(r#"{{"jsonrpc":"2.0",{id}"result":{{"content":[]}}}}"#);
        let server = LegacyServer::new().on("tools/call", move |_, reply: Reply| {
            let body = body.clone();
            async move { reply.json(200, &body).await }
        });
        let (proxy, up) = Proxy::before(&server).await;
        let done = proxy.send(&call("echo", "{}").id(r#""a""#)).await;
        done.is_error(502, -32603);
        assert_eq!(done.message["id"], "a");
        assert_eq!(up.posts("tools/call").len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_null_beside_the_member_that_counts_is_nothing() {
    let table = [
        (r#""result":{"content":[],"_meta":null},"error":null"#, true),
        (r#""error":{"code":5,"message":"m"},"result":null"#, false),
    ];
    for (members, good) in table {
        for streamed in [false, true] {
            let server = LegacyServer::new().on("tools/call", move |seen, mut reply: Reply| async move {
                let body = format!(r#"{{"jsonrpc":"2.0","id":{},{members}}}"#, seen.id());
                if streamed {
                    reply.stream().await;
                    reply.event(&body).await;
                    reply.end().await;
                } else {
                    reply.json(200, &body).await;
                }
            });
            let (proxy, _up) = Proxy::before(&server).await;
            let done = proxy.send(&call("echo", "{}").id("3")).await;
            assert_eq!(done.message.get("result").is_some(), good, "{}", done.raw);
            assert_eq!(done.message.get("error").is_some(), !good, "{}", done.raw);
            assert!(done.raw.matches(r#""_meta""#).count() <= 1, "{}", done.raw);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_answer_in_a_stream_is_an_error_at_once() {
    let server = LegacyServer::new().on("tools/call", |seen, mut reply: Reply| async move {
        reply.stream().await;
        reply.event(&format!(r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":"x"}}}}"#, seen.id())).await;
        reply.never().await;
    });
    let (proxy, _up) = Proxy::before(&server).await;
    proxy.send(&call("echo", "{}").id("3")).await.is_error(502, -32603);
}

#[tokio::test(start_paused = true)]
async fn inv2_what_the_server_told_one_principal_is_not_told_another() {
    let server = LegacyServer::new().on("initialize", |seen, reply: Reply| async move {
        let who = seen.header("authorization").unwrap_or_default();
        crate::support::pass(50).await;
        reply
            .error(200, &seen, &format!(r#"{{"code":-32603,"message":"the account of {who} is locked"}}"#))
            .await;
    });
    let (proxy, _up) = Proxy::before(&server).await;
    let alice = proxy.spawn(&list("tools/list").bearer("alice-word"));
    let bob = proxy.spawn(&list("tools/list").bearer("bob-word"));
    let (alice, bob) = (alice.await.unwrap(), bob.await.unwrap());
    alice.is_error(502, -32603);
    bob.is_error(502, -32603);
    assert!(!bob.raw.contains("alice-word") && !alice.raw.contains("bob-word"), "{} {}", alice.raw, bob.raw);
}

#[tokio::test(start_paused = true)]
async fn inv2_ids_are_told_apart_on_a_server_without_sessions() {
    let (proxy, up) = Proxy::before(&LegacyServer::new().sessionless()).await;
    for who in ["a", "b", "a"] {
        proxy.send(&call("echo", "{}").bearer(who).meta("progressToken", "1")).await.result();
    }
    // The probe's own id is not in the row, and notifications have none.
    let sent = up.requests();
    let requests =
        sent.iter().map(|seen| seen.json()).filter(|message| message["method"] != "server/discover");
    let mut ids: Vec<_> =
        requests.map(|message| message["id"].to_string()).filter(|id| id != "null").collect();
    let all = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), all, "{:?}", up.briefs());
}

#[tokio::test(start_paused = true)]
async fn inv6_a_second_list_does_not_pass_beside_the_first() {
    let twice = r#"{"tools":[],"tools":[{"name":"t","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}]}"#;
    let (proxy, _up) = Proxy::before(&LegacyServer::new().result("tools/list", twice)).await;
    let done = proxy.send(&list("tools/list").id("3")).await;
    done.is_error(502, -32603);
    assert!(!done.raw.contains("taskSupport"));
}

#[tokio::test(start_paused = true)]
async fn b11_a_missing_tool_is_not_a_missing_method() {
    let error = r#"{"code":-32601,"message":"no such tool"}"#;
    let server = LegacyServer::new().capabilities(r#"{"tools":{}}"#);
    let (proxy, _up) = Proxy::before(&server.clone().error("tools/call", error)).await;
    proxy.send(&call("nope", "{}").id("3")).await.is_error(200, -32601);
    let (proxy, _up) = Proxy::before(&server.error("prompts/get", error)).await;
    proxy.send(&get_prompt("p").id("3")).await.is_error(404, -32601);
}

#[tokio::test(start_paused = true)]
async fn a12_21_a_modern_servers_page_is_no_answer() {
    for (status, media_type, body) in
        [(200, "text/html", "<p>"), (202, "text/plain", ""), (500, "text/html", "<p>")]
    {
        let server = ModernServer::new().on("tools/call", move |_, reply: Reply| async move {
            reply.body(status, media_type, body).await;
        });
        let (proxy, up) = Proxy::before_modern(&server).await;
        let done = proxy.send(&call("echo", "{}").id(r#""x""#)).await;
        done.is_error(502, -32603);
        assert_eq!((&done.message["id"], up.posts("tools/call").len()), (&json!("x"), 1));
    }
}

#[tokio::test(start_paused = true)]
async fn c58_every_challenge_reaches_the_client() {
    let net = Net::new();
    let peer = crate::support::net::handler(|_, reply: Reply| async move {
        let reply = reply.with("WWW-Authenticate", "Basic realm=\"a\"");
        reply.with("WWW-Authenticate", "Bearer scope=\"b\"").body(401, "text/plain", "").await;
    });
    net.serve("up.test", Receiver::Unchecked, peer);
    let proxy = Proxy::start(&net).await;
    let done = proxy.send(&list("tools/list").id("3")).await;
    assert_eq!(done.status, 401);
    assert_eq!(done.headers.all("www-authenticate").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_subscription_needs_a_stream() {
    let (proxy, _up) = Proxy::before(&LegacyServer::new()).await;
    let ask =
        Ask::new("subscriptions/listen").params(r#""notifications":{}"#).header("Accept", "application/json");
    let done = proxy.send(&ask.id("4")).await;
    assert_eq!((done.status, &done.message["id"]), (406, &json!(4)));
}
