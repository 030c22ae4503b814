//! A12.17, A12.21, C03, C34, C35, C58: what a legacy client is told when its server does not answer.

use crate::shield::SHIELD;
use crate::support::{LegacyServer, Net, Old, Proxy, Reply, Upstream, json};

/// A client in session, and the answers to `tools/call`, GET and one notification spoilt.
async fn spoilt<F, T>(lines: &str, answer: F) -> (Proxy, Upstream, Old)
where
    F: Fn(Reply) -> T + Clone + Send + Sync + 'static,
    T: Future<Output = ()> + Send + 'static,
{
    let net = Net::new();
    let mut server = LegacyServer::new();
    for method in ["tools/call", "GET", "notifications/x", "response"] {
        let answer = answer.clone();
        server = server.on(method, move |_, reply: Reply| answer(reply));
    }
    let up = server.start(&net);
    let proxy = Proxy::with(&net, &format!("{lines}\ntimeouts = {{ request = \"20s\" }}")).await;
    let old = Old::latest(&proxy).await;
    (proxy, up, old)
}

async fn spoil(what: &'static str, reply: Reply) {
    match what {
        "reset" => reply.reset(),
        "closed" => drop(reply),
        "html" => reply.body(200, "text/html", "<html>welcome</html>").await,
        "500" => reply.body(500, "text/html", "<html>oops</html>").await,
        "503" => reply.with("Retry-After", "9").json(503, r#"{"error":"x"}"#).await,
        "302" => reply.with("Location", "http://else.test/").empty(302).await,
        "never" => reply.never().await,
        other => panic!("{other}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a12_21_an_upstream_failure_is_an_answer() {
    let all = ["reset", "closed", "html", "500", "503", "302", "never"];
    for (what, lines) in all.into_iter().flat_map(|what| ["", SHIELD].map(|lines| (what, lines))) {
        let (proxy, up, old) = spoilt(lines, move |reply| spoil(what, reply)).await;
        for (n, id) in ["7", r#""x""#].into_iter().enumerate() {
            let done = proxy.send(&old.call("charge", "{}").id(id)).await;
            done.is_answered_error(-32603);
            assert!(!done.raw.contains("<html>") && !done.raw.contains("up.test"), "{}", done.raw);
            assert_eq!(up.posts("tools/call").len(), n + 1, "{what}: never sent again");
            let retry = (what == "503").then(|| "9".to_owned());
            assert_eq!(done.headers.get("retry-after"), retry, "{what}");
        }
        assert_eq!(up.posts("initialize").len(), 1, "C03: no storm of sessions");
        let expected = if what == "never" { 504 } else { 502 };
        assert_eq!(proxy.send(&old.get()).await.status, expected, "GET, {what}");
        // Any 2xx is an acceptance of what needs no answer.
        if what != "html" {
            assert_eq!(proxy.send(&old.note("notifications/x")).await.status, expected, "{what}");
            assert_eq!(proxy.send(&old.answer("5", "{}")).await.status, expected, "{what}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn c04_a_success_without_an_answer() {
    for (status, lines) in [200, 202, 204].into_iter().flat_map(|status| ["", SHIELD].map(|l| (status, l))) {
        let (proxy, _up, old) = spoilt(lines, move |reply| reply.empty(status)).await;
        proxy.send(&old.call("echo", "{}").id("7")).await.is_answered_error(-32603);
        let done = proxy.send(&old.note("notifications/x")).await;
        assert_eq!(done.status, status, "what the server said of a message");
    }
}

#[tokio::test(start_paused = true)]
async fn a12_21_a_server_that_cannot_be_reached() {
    let net = Net::new();
    let up = LegacyServer::new().start(&net);
    // Without connections kept open, a server that refuses new ones is out of reach.
    let proxy = Proxy::with(&net, "limits = { pool_connections = 0 }").await;
    up.refuse();
    proxy.send(&Old::initialize("2025-11-25")).await.is_answered_error(-32603);
    up.restore();
    // C35: nothing was learnt from it.
    let old = Old::latest(&proxy).await;
    up.refuse();
    proxy.send(&old.call("echo", "{}").id("7")).await.is_answered_error(-32603);
    assert_eq!(proxy.send(&old.note("notifications/x")).await.status, 502);
    assert_eq!(proxy.send(&old.delete()).await.status, 502);
    up.restore();
    proxy.send(&old.call("echo", "{}").id("7")).await.result();
}

#[tokio::test(start_paused = true)]
async fn a12_21_each_request_of_an_array_is_told() {
    let (proxy, _up, old) = spoilt("", |reply| spoil("500", reply)).await;
    let net = Net::new();
    let server = LegacyServer::new().version("2025-03-26").sessionless();
    let up = server.start(&net);
    let proxy_03 = Proxy::start(&net).await;
    let array = r#"[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":"b","method":"a"}]"#;
    let stranger = Old { session: None, version: None, token: None };
    up.refuse();
    let done = proxy_03.send(&stranger.raw(array)).await;
    assert_eq!(done.status, 200);
    let ids: Vec<_> =
        done.message.as_array().unwrap().iter().map(|m| (&m["id"], &m["error"]["code"])).collect();
    assert_eq!(ids, [(&json!(1), &json!(-32603)), (&json!("b"), &json!(-32603))]);
    // And one alone is no array.
    proxy.send(&old.call("echo", "{}").id("1")).await.is_answered_error(-32603);
}

#[tokio::test(start_paused = true)]
async fn c58_challenges_and_rate_limits_pass() {
    for (status, lines) in [401, 403, 429].into_iter().flat_map(|status| ["", SHIELD].map(|l| (status, l))) {
        let (proxy, up, old) = spoilt(lines, move |reply| {
            let reply = reply.with("WWW-Authenticate", "Bearer scope=\"x\"").with("Retry-After", "7");
            reply.json(status, r#"{"jsonrpc":"2.0","error":{"code":-1,"message":"no"},"id":null}"#)
        })
        .await;
        for ask in [old.call("echo", "{}"), old.get(), old.note("notifications/x")] {
            let done = proxy.send(&ask).await;
            assert_eq!(done.status, status);
            assert_eq!(done.headers.get("www-authenticate").as_deref(), Some("Bearer scope=\"x\""));
            assert_eq!(done.headers.get("retry-after").as_deref(), Some("7"));
        }
        proxy.send(&old.ask("tools/list")).await.result();
        assert_eq!(up.posts("initialize").len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn c34_a_challenge_to_the_probe_reaches_the_client() {
    let refuse = |reply: Reply| reply.with("WWW-Authenticate", "Bearer x=\"y\"").empty(401);
    let server = LegacyServer::new().on("server/discover", move |seen, reply: Reply| async move {
        match seen.header("authorization") {
            None => refuse(reply).await,
            Some(_) => reply.json(400, "{}").await,
        }
    });
    let (proxy, up) = Proxy::before(&server).await;
    let done = proxy.send(&Old::initialize("2025-11-25")).await;
    assert_eq!(done.status, 401);
    assert_eq!(done.headers.get("www-authenticate").as_deref(), Some("Bearer x=\"y\""));
    assert_eq!(up.briefs(), ["server/discover"], "nothing is learnt, and nothing else is sent");
    let old = Old::open_as(&proxy, "2025-11-25", Some("t")).await;
    proxy.send(&old.ask("tools/list")).await.result();
}
