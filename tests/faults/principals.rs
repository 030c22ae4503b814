//! Invariant 2, A4.5, A14.2, A14.4: what must differ between principals and sessions, and what must not pass between them.

use std::collections::BTreeSet;

use crate::support::{LegacyServer, Net, Proxy, Reply, Upstream, call, list, pass};

/// Every id and progress token that reached the server was sent once.
fn assert_distinct(up: &Upstream, calls: usize) {
    let (mut ids, mut tokens) = (Vec::new(), Vec::new());
    for seen in up.requests().iter().filter(|s| s.verb == "POST") {
        let message = seen.json();
        ids.extend(message.get("id").map(ToString::to_string));
        tokens.extend(message["params"]["_meta"].get("progressToken").map(ToString::to_string));
    }
    assert_eq!(tokens.len(), calls, "each call has a token");
    for sent in [ids, tokens] {
        let distinct: BTreeSet<_> = sent.iter().collect();
        assert_eq!(distinct.len(), sent.len(), "{sent:?} to {:?}", up.briefs());
    }
}

#[tokio::test(start_paused = true)]
async fn a14_2_principals_of_a_server_without_sessions_share_no_id_or_token() {
    let server = LegacyServer::new().sessionless().on("tools/call", |seen, reply: Reply| async move {
        pass(1000).await;
        reply.result(&seen, r#"{"content":[]}"#).await;
    });
    let (proxy, up) = Proxy::before(&server).await;
    let ask = || call("echo", "{}").id("1").meta("progressToken", "1");
    let running: Vec<_> = ["a", "b", "a", "b"].iter().map(|user| proxy.spawn(&ask().bearer(user))).collect();
    for one in running {
        one.await.unwrap().result();
    }
    proxy.send(&list("tools/list").bearer("a")).await.result();
    proxy.send(&list("tools/list").bearer("b")).await.result();
    assert_distinct(&up, 4);
}

#[tokio::test(start_paused = true)]
async fn a14_2_sessions_of_single_requests_share_no_id_or_token() {
    let net = Net::new();
    let up = LegacyServer::new().start(&net);
    let proxy = Proxy::with(&net, "[upstream.up.session]\nscope = \"request\"\n").await;
    let ask = || call("echo", "{}").id("1").meta("progressToken", r#""t""#);
    for _ in 0..3 {
        proxy.send(&ask()).await.result();
    }
    let running: Vec<_> = (0..3).map(|_| proxy.spawn(&ask())).collect();
    for one in running {
        one.await.unwrap().result();
    }
    assert_distinct(&up, 6);
}

#[tokio::test(start_paused = true)]
async fn inv2_the_words_of_a_detection_are_only_for_whom_it_ran() {
    let server = LegacyServer::new()
        .on("server/discover", |_, reply: Reply| async move {
            pass(500).await;
            reply.body(400, "text/plain", "no").await;
        })
        .on("initialize", |seen, reply: Reply| async move {
            pass(500).await;
            let who = seen.header("authorization").unwrap_or_default();
            let error = format!(r#"{{"code":-32603,"message":"no licence for {who}"}}"#);
            reply.error(200, &seen, &error).await;
        });
    let (proxy, up) = Proxy::before(&server).await;
    let alice = proxy.spawn(&list("tools/list").id("1").bearer("alice-secret"));
    up.wait("server/discover", 1).await;
    let bob = proxy.spawn(&list("tools/list").id("2").bearer("bob-secret"));
    let carol = proxy.spawn(&list("tools/list").id("3"));
    for (who, one) in [("alice", alice), ("bob", bob), ("carol", carol)] {
        let done = one.await.unwrap();
        assert_eq!(done.code(), -32603, "{who}: {}", done.raw);
        let head = format!("{:?}", done.headers);
        for other in ["alice", "bob"] {
            let seen =
                done.raw.contains(&format!("{other}-secret")) || head.contains(&format!("{other}-secret"));
            assert!(!seen || who == other, "{who} was told: {}", done.raw);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn inv2_the_words_of_a_probe_are_only_for_whom_it_ran() {
    let server = LegacyServer::new().on("server/discover", |seen, reply: Reply| async move {
        pass(500).await;
        let who = seen.header("authorization").unwrap_or_default();
        let error = format!(r#"{{"code":-32603,"message":"no licence for {who}"}}"#);
        reply.error(500, &seen, &error).await;
    });
    let (proxy, up) = Proxy::before(&server).await;
    let alice = proxy.spawn(&list("tools/list").id("1").bearer("alice-secret"));
    up.wait("server/discover", 1).await;
    let bob = proxy.spawn(&list("tools/list").id("2").bearer("bob-secret"));
    let (alice, bob) = (alice.await.unwrap(), bob.await.unwrap());
    assert!(!bob.raw.contains("alice-secret"), "{}", bob.raw);
    assert!(!alice.raw.contains("bob-secret"), "{}", alice.raw);
}
