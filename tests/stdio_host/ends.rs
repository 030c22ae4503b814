//! A14.7, spec basic/transports/stdio (Shutdown): the end of standard input, of standard output, and a drain.

use tokio::time::Instant;

use super::stage::{Host, echo, is_error, legacy, modern_echo, text};
use super::support::{Calls, Gets, LegacyServer, ModernServer, Proxy, json, pass, within};

/// What runs is cancelled in the server's era, and the sessions are ended.
#[tokio::test(start_paused = true)]
async fn a14_7_the_end_of_standard_input_cancels_what_runs() {
    for (modern_host, modern_server) in [(true, true), (true, false), (false, true), (false, false)] {
        let calls = Calls::new();
        let legacy_server = calls.of(LegacyServer::new());
        let (proxy, up) = match modern_server {
            true => Proxy::before_modern(&calls.of_modern(ModernServer::new())).await,
            false => Proxy::before(&legacy_server).await,
        };
        let context = format!("host modern: {modern_host}, server modern: {modern_server}");
        let mut host = match modern_host {
            true => Host::launch(&proxy),
            false => Host::initialized(&proxy, "2025-11-25", "{}").await,
        };
        for id in ["1", "2"] {
            host.say(&if modern_host { modern_echo(id, "{}") } else { echo(id, "{}") }).await;
        }
        let (first, second) = (calls.wait(1).await, calls.wait(2).await);
        let began = Instant::now();
        assert_eq!(host.end().await, "Drained", "{context}");
        assert!(began.elapsed().as_secs() < 5, "{context}: {:?}", began.elapsed());
        if modern_server {
            within("the end of the calls", async {
                while first.is_open() || second.is_open() {
                    pass(10).await;
                }
            })
            .await;
        } else {
            let told = up.posts("notifications/cancelled");
            let mut ids: Vec<_> =
                told.iter().map(|seen| seen.json()["params"]["requestId"].to_string()).collect();
            let mut expected = vec![first.id().to_string(), second.id().to_string()];
            ids.sort();
            expected.sort();
            assert_eq!(ids, expected, "{context}");
            assert_eq!(legacy_server.live_sessions(), 0, "{context}");
        }
    }
}

/// The end is the same while a session comes about, and while its server says nothing at all.
#[tokio::test(start_paused = true)]
async fn the_end_waits_for_nobody() {
    let never = |_seen, reply: super::support::Reply| async move { reply.never().await };
    let (proxy, _up) = Proxy::before(&LegacyServer::new().on("initialize", never)).await;
    let mut host = Host::launch(&proxy);
    host.say(&super::stage::initialize("0", "2025-11-25", "{}")).await;
    host.say(&echo("1", "{}")).await;
    pass(1000).await;
    let began = Instant::now();
    assert_eq!(host.end().await, "Drained");
    assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());

    let net = super::support::Net::new();
    LegacyServer::new().on("DELETE", never).start(&net);
    let proxy = Proxy::start(&net).await;
    let host = Host::initialized(&proxy, "2025-11-25", "{}").await;
    let began = Instant::now();
    assert_eq!(host.end().await, "Drained");
    assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
}

/// A host that has gone from its end of standard output is gone.
#[tokio::test(start_paused = true)]
async fn the_end_of_standard_output_is_the_end() {
    let server = LegacyServer::new();
    let (proxy, _up) = Proxy::before(&server).await;
    let mut host = Host::initialized(&proxy, "2025-11-25", "{}").await;
    host.hang_up();
    host.say(&legacy("1", "ping", "")).await;
    assert_eq!(host.ending().await, "Drained");
    assert_eq!(server.live_sessions(), 0);
}

/// A drain: what runs comes to its end, nothing new begins, and then the process ends by itself.
#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_what_runs() {
    for modern_host in [true, false] {
        let calls = Calls::new();
        let (gets, server) = (Gets::open(), LegacyServer::new());
        let server = calls.of(gets.of(server));
        let (proxy, up) = Proxy::before(&server).await;
        let mut host = match modern_host {
            true => Host::launch(&proxy),
            false => Host::initialized(&proxy, "2025-11-25", super::support::questions::ALL).await,
        };
        let call = |id: &str| if modern_host { modern_echo(id, "{}") } else { echo(id, "{}") };
        host.say(&call("1")).await;
        let running = calls.wait(1).await;
        if !modern_host {
            running.event(&super::support::questions::roots("7"));
            host.told("roots/list").await;
        }
        proxy.drain();
        host.say(&call("2")).await;
        is_error(&host.answer("2").await, -32603);
        if !modern_host {
            // An answer is nothing new.
            host.say(r#"{"jsonrpc":"2.0","id":7,"result":{"roots":[]}}"#).await;
            up.wait("response", 1).await;
        }
        running.finish("done");
        assert_eq!(text(&host.answer("1").await), "done");
        assert_eq!(host.ending().await, "Drained");
        assert_eq!(server.live_sessions(), 0);
        assert_eq!(up.posts("tools/call").len(), 1);
    }
}

/// What is still at work when the grace period ends is answered with an error.
#[tokio::test(start_paused = true)]
async fn a_drain_that_takes_too_long_answers_what_runs() {
    for modern_host in [true, false] {
        let calls = Calls::new();
        let (proxy, _up) = Proxy::before(&calls.of(LegacyServer::new())).await;
        let mut host = match modern_host {
            true => Host::launch(&proxy),
            false => Host::initialized(&proxy, "2025-11-25", "{}").await,
        };
        host.say(&if modern_host { modern_echo("1", "{}") } else { echo("1", "{}") }).await;
        calls.wait(1).await;
        proxy.drain();
        is_error(&host.answer("1").await, -32603);
        assert_eq!(host.ending().await, "OutOfTime");
    }
}

/// A session without a call in it is no reason to stay.
#[tokio::test(start_paused = true)]
async fn a_drain_of_an_idle_host_is_quick() {
    let gets = Gets::open();
    let server = gets.of(LegacyServer::new());
    let (proxy, _up) = Proxy::before(&server).await;
    let mut host = Host::initialized(&proxy, "2025-11-25", "{}").await;
    gets.wait(1).await;
    host.say(&legacy("1", "ping", "")).await;
    assert_eq!(host.answer("1").await["result"], json!({}));
    let began = Instant::now();
    proxy.drain();
    assert_eq!(host.ending().await, "Drained");
    assert!(began.elapsed().as_secs() < 2, "{:?}", began.elapsed());
    assert_eq!(server.live_sessions(), 0);
}
