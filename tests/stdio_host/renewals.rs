//! A12.13, A14.2, A13.4: what happens while a session is opened anew: cancellations, the end, and a server that refuses it halfway.

use std::sync::Arc;

use super::stage::{Host, INITIALIZED, cancelled, echo, initialize, is_error, legacy, text};
use super::support::{LegacyServer, Proxy, Reply, Seen, json, pass};

/// A14.2: a call that is cancelled while its session is opened anew has not run, and does not run then.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_cancelled_while_its_session_is_opened_anew() {
    let server = LegacyServer::new();
    let slow = server.clone().on("initialize", {
        let server = server.clone();
        move |seen: Arc<Seen>, reply: Reply| {
            let server = server.clone();
            async move {
                if server.count("initialize") > 0 {
                    pass(5000).await;
                }
                server.initialize_as_usual(&seen, reply).await;
            }
        }
    });
    let (proxy, up) = Proxy::before(&slow).await;
    let mut host = Host::initialized(&proxy, "2025-11-25", "{}").await;
    host.say(&legacy("0", "ping", "")).await;
    host.answer("0").await;
    server.forget_sessions();
    for id in ["1", "2"] {
        host.say(&echo(id, "{}")).await;
    }
    up.wait("tools/call", 2).await;
    up.wait("initialize", 2).await;
    host.say(&cancelled("1")).await;
    text(&host.answer("2").await);
    host.quiet(10_000).await;
    let again = up.posts("tools/call").into_iter().skip(2).map(|seen| seen.json()["id"].clone());
    assert_eq!(again.collect::<Vec<_>>(), [json!(2)]);
    assert!(up.posts("notifications/cancelled").is_empty(), "there is nothing to be cancelled anywhere");
}

/// Answers the second `notifications/initialized` like this.
fn second_refused(server: &LegacyServer, status: Option<u16>) -> LegacyServer {
    let counts = server.clone();
    server.clone().on("notifications/initialized", move |_seen: Arc<Seen>, reply: Reply| {
        let counts = counts.clone();
        async move {
            match (counts.count("initialized"), status) {
                (1, Some(status)) => reply.empty(status).await,
                (1, None) => reply.never().await,
                _ => reply.empty(202).await,
            }
        }
    })
}

/// A session that was begun in the place of a lost one, and does not take it, is ended: whatever keeps it from that.
#[tokio::test(start_paused = true)]
async fn a_session_that_does_not_take_the_lost_ones_place_is_ended() {
    let server = LegacyServer::new();
    let (proxy, up) = Proxy::before(&second_refused(&server, Some(400))).await;
    let mut host = Host::initialized(&proxy, "2025-11-25", "{}").await;
    host.say(&legacy("0", "ping", "")).await;
    host.answer("0").await;
    server.forget_sessions();
    host.say(&echo("1", "{}")).await;
    is_error(&host.answer("1").await, -32603);
    up.wait("DELETE", 1).await;
    host.say(&echo("2", "{}")).await;
    text(&host.answer("2").await);
    assert_eq!((server.deleted(), server.live_sessions()), (vec!["S2".to_owned()], 1));
    assert_eq!(host.end().await, "Drained");
    assert_eq!(server.deleted(), ["S2", "S3"]);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_being_opened_anew_ends_with_its_host_or_with_another_session() {
    for leaves in [true, false] {
        let server = LegacyServer::new();
        let (proxy, up) = Proxy::before(&second_refused(&server, None)).await;
        let mut host = Host::initialized(&proxy, "2025-11-25", "{}").await;
        host.say(&legacy("0", "ping", "")).await;
        host.answer("0").await;
        server.forget_sessions();
        host.say(&echo("1", "{}")).await;
        up.wait("notifications/initialized", 2).await;
        if !leaves {
            host.say(&initialize("9", "2025-11-25", "{}")).await;
            host.answer("9").await;
            is_error(&host.answer("1").await, -32603);
            host.say(INITIALIZED).await;
            host.say(&echo("2", "{}")).await;
            text(&host.answer("2").await);
            host.quiet(5000).await;
            assert_eq!(server.deleted(), ["S2"]);
        }
        assert_eq!(host.end().await, "Drained");
        assert_eq!(server.live_sessions(), 0, "leaves: {leaves}");
    }
}
