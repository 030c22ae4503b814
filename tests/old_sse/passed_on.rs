//! Legacy clients of Streamable HTTP before a server of the old transport: like pairs, with a session of their own each.

use std::sync::Arc;

use crate::support::questions::{ACCEPT, elicit};
use crate::support::{Calls, LegacyServer, Net, Old, OldSseServer, Proxy, Reply, User, json, pass};

const REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

async fn proxy(net: &Net, lines: &str) -> Arc<Proxy> {
    Arc::new(Proxy::of_old_sse(net, lines).await)
}

#[tokio::test(start_paused = true)]
async fn every_revision_is_served() {
    for lines in ["", "transport = \"sse\"", "session = { shield = true }"] {
        for revision in REVISIONS {
            let net = Net::new();
            let server = OldSseServer::new(&LegacyServer::new().version(revision));
            let up = server.start(&net);
            let proxy = proxy(&net, lines).await;
            let user = User::begin(&proxy, revision).await;
            assert_eq!(user.list("tools/list").await["tools"][0]["name"], "echo", "{revision} {lines}");
            assert_eq!(user.call("echo", "{}").await.result().await["content"][0]["text"], "done");
            assert_eq!((server.streams().len(), up.posts("tools/list").len()), (1, 1), "{revision} {lines}");
            assert!(up.only("tools/list").session().is_none(), "the session is the proxy's own affair");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_client_has_a_stream_of_its_own() {
    let net = Net::new();
    let server = OldSseServer::new(&LegacyServer::new());
    server.start(&net);
    let proxy = proxy(&net, "").await;
    let one = User::begin(&proxy, "2025-11-25").await;
    let two = User::begin(&proxy, "2025-11-25").await;
    assert_ne!(one.session(), two.session());
    assert_eq!(server.open_streams(), 2);
    assert!([200, 204].contains(&one.delete().await.status));
    server.stream(1).await.closed().await;
    assert!(!one.lives().await);
    assert!(two.lives().await);
    assert_eq!(server.open_streams(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_reaches_the_client_by_get_or_by_its_call() {
    for (lines, get) in [("", true), ("", false), ("session = { shield = true }", true)] {
        let (net, calls) = (Net::new(), Calls::new());
        let server = OldSseServer::new(&calls.of(LegacyServer::new()));
        let up = server.start(&net);
        let proxy = proxy(&net, lines).await;
        let user = User::begin(&proxy, "2025-11-25").await;
        let mut stream = if get { Some(proxy.open(&user.old.get()).await) } else { None };
        let calling = {
            let user = user.clone();
            tokio::spawn(async move { user.call("ask", "{}").await })
        };
        let running = calls.wait(1).await;
        running.event(&elicit("7", "m"));
        let (question, own) = match &mut stream {
            Some(stream) => (stream.message().await, Err(calling)),
            None => {
                let own = calling.await.unwrap();
                (own.question().await, Ok(own))
            }
        };
        user.answer(&question, ACCEPT).await;
        up.wait("response", 1).await;
        running.finish("thanks");
        let answer = match own {
            Ok(own) => own.result().await,
            Err(calling) => calling.await.unwrap().result().await,
        };
        assert_eq!(question["params"]["message"], "m");
        assert_eq!(up.posts("")[0].json()["result"]["action"], "accept", "{lines} {get}");
        assert_eq!(answer["content"][0]["text"], "thanks");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_stream_is_a_lost_session_unless_it_is_shielded() {
    for shield in [false, true] {
        let net = Net::new();
        let server = OldSseServer::new(&LegacyServer::new());
        server.start(&net);
        let proxy = proxy(&net, &format!("session = {{ shield = {shield} }}")).await;
        let user = User::begin(&proxy, "2025-11-25").await;
        assert!(user.lives().await);
        server.stream(1).await.end();
        server.stream(1).await.closed().await;
        pass(10).await;
        assert_eq!(user.lives().await, shield, "404 tells the client to begin anew");
        let again = User::begin(&proxy, "2025-11-25").await;
        assert!(again.lives().await);
    }
}

#[tokio::test(start_paused = true)]
async fn refusals_of_the_stream_are_the_clients_to_hear() {
    for status in [401, 403, 429, 500] {
        let net = Net::new();
        let server = OldSseServer::new(&LegacyServer::new())
            .on("GET", move |_, reply: Reply| reply.with("WWW-Authenticate", "Bearer x").empty(status));
        server.start(&net);
        let proxy = proxy(&net, "transport = \"sse\"").await;
        let done = proxy.send(&Old::initialize("2025-06-18")).await;
        match status {
            // A12.21
            500 => done.is_answered_error(-32603),
            _ => assert_eq!(done.status, status, "{status}: {}", done.raw),
        }
        if status == 401 {
            assert_eq!(done.headers.get("www-authenticate").as_deref(), Some("Bearer x"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_outside_of_a_session_opens_nothing() {
    let net = Net::new();
    let server = OldSseServer::new(&LegacyServer::new());
    server.start(&net);
    let proxy = proxy(&net, "transport = \"sse\"").await;
    let bare = Old { session: None, version: Some("2025-06-18".to_owned()), token: None };
    let done = proxy.send(&bare.ask("tools/list").id("3")).await;
    assert_eq!((done.status, &done.message["id"]), (400, &json!(3)), "{}", done.raw);
    assert_eq!(server.streams().len(), 0);
}
