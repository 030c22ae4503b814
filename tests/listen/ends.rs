//! B9.6, A14.7, C10, invariant 5: how a subscription ends, what is left of it, and how many there may be.

use std::time::Duration;

use crate::stage::{A, SOME, Stage, TOOLS, TOOLS_ONLY, uris};
use crate::support::{Ask, Begin, Gets, LegacyServer, Listener, Reply, call, json, listen, pass};

const IDLE: &str = "[upstream.up.session]\nidle = \"1m\"\n";

#[tokio::test(start_paused = true)]
async fn b9_6_a_session_is_idle_when_its_last_listener_has_gone() {
    let stage = Stage::with(LegacyServer::telling(), Gets::open(), IDLE).await;
    let one = stage.listens("1", SOME).await;
    let two = stage.listens("2", TOOLS_ONLY).await;
    pass(3_600_000).await;
    assert_eq!(stage.server.deleted(), Vec::<String>::new(), "not while somebody listens");
    one.close();
    pass(3_600_000).await;
    assert_eq!(stage.server.deleted(), Vec::<String>::new(), "not while somebody listens");
    two.close();
    pass(30_000).await;
    assert_eq!(stage.server.deleted(), Vec::<String>::new(), "not before its time");
    stage.nothing_is_left().await;
    assert_eq!(stage.server.deleted(), ["S1"]);
    assert_eq!(stage.proxy.sessions(), 0);
}

/// A listener that was promised nothing needs no session.
#[tokio::test(start_paused = true)]
async fn b9_1_an_empty_promise_keeps_no_session() {
    let stage = Stage::with(LegacyServer::telling(), Gets::script(|_| Begin::Empty(405)), IDLE).await;
    let listener = stage.listens("1", SOME).await;
    pass(120_000).await;
    assert_eq!(stage.server.deleted(), ["S1"]);
    assert!(!listener.is_over());
    stage.proxy.send(&call("echo", "{}")).await.result();
    stage.proxy.drain();
    listener.ended_gracefully().await;
}

#[tokio::test(start_paused = true)]
async fn b9_6_a_drain_ends_every_subscription_with_its_result() {
    let stage = Stage::new().await;
    let mut listeners = Vec::new();
    for id in ["1", r#""1""#, r#""\u0041\"\\""#, "-5"] {
        listeners.push(stage.listens(id, SOME).await);
    }
    listeners.push(stage.listens("6", "{}").await);
    stage.gets.tell(TOOLS);
    pass(1000).await;
    stage.proxy.drain();
    for listener in &listeners {
        tokio::time::timeout(Duration::from_secs(1), listener.ended_gracefully()).await.expect("at once");
    }
    assert_eq!(listeners[0].changes(), ["tools"]);
    pass(1000).await;
    assert_eq!(stage.gets.now(), 0);
}

/// One that comes while the proxy drains is answered, one way or the other.
#[tokio::test(start_paused = true)]
async fn a14_7_a_subscription_that_comes_in_the_drain() {
    let stage = Stage::new().await;
    let kept = stage.proxy.connection();
    stage.proxy.send(&call("echo", "{}")).await.result();
    stage.proxy.drain();
    let answer = kept.open(&listen("1", SOME)).await;
    if answer.is_stream() {
        let (messages, broken) = answer.rest().await;
        assert!(!broken, "{messages:?}");
        assert_eq!(messages[0]["method"], "notifications/subscriptions/acknowledged", "{messages:?}");
        assert_eq!(messages.last().unwrap()["result"]["resultType"], "complete", "{messages:?}");
    } else {
        answer.done().await.is_error(503, -32603);
    }
    assert_eq!(stage.gets.all().len(), 0);
}

/// A slow reader is no reason for the drain to hang: what it was told and the result are there when it reads.
#[tokio::test(start_paused = true)]
async fn b9_6_a_drain_with_a_client_that_does_not_read() {
    let stage = Stage::new().await;
    let slow = stage.proxy.open(&listen("1", TOOLS_ONLY)).await;
    pass(1000).await;
    for _ in 0..20 {
        stage.gets.tell(TOOLS);
    }
    pass(1000).await;
    stage.proxy.drain();
    pass(1000).await;
    let (messages, broken) = slow.rest().await;
    assert!(!broken);
    assert_eq!(messages[0]["method"], "notifications/subscriptions/acknowledged");
    assert!(messages.last().unwrap().get("result").is_some());
}

#[tokio::test(start_paused = true)]
async fn b9_6_a_client_that_goes_in_every_phase() {
    // Its stream hangs, is refused for now, or breaks again and again.
    for begin in [Begin::Hang, Begin::Empty(503), Begin::Only(String::new()), Begin::Cut] {
        for millis in [0, 100, 700, 5000] {
            let shown = format!("{begin:?} after {millis} ms");
            let begin = begin.clone();
            let stage = Stage::of(LegacyServer::telling(), Gets::script(move |_| begin.clone())).await;
            let listener = Listener::open(&stage.proxy, &listen("1", SOME)).await;
            pass(millis).await;
            listener.close();
            stage.nothing_is_left().await;
            let (on, off) = (stage.asked("resources/subscribe"), stage.asked("resources/unsubscribe"));
            assert_eq!(on, off, "{shown}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn inv5_as_many_streams_as_the_setting_says() {
    let front = "[limits]\nstreams = 2\nrequests = 1\n";
    let stage = Stage::configured(LegacyServer::telling(), Gets::open(), front, "").await;
    let one = stage.listens("1", SOME).await;
    let _two = stage.listens("2", "{}").await;
    // They take no place of a request.
    stage.proxy.send(&call("echo", "{}")).await.result();
    for id in ["3", r#""three""#] {
        let done = stage.proxy.send(&listen(id, SOME)).await;
        done.is_error(503, -32603);
        let after = done.headers.get("retry-after").expect("Retry-After");
        assert!(after.parse::<u64>().is_ok(), "{after}");
        assert_eq!(done.message["id"].to_string(), id);
    }
    one.close();
    pass(1000).await;
    let again = stage.listens("4", SOME).await;
    stage.gets.tell(TOOLS);
    again.wait(2).await;
    again.close();
    pass(1000).await;
    // Neither one that is refused nor one whose client went keeps a place.
    for n in 0..5 {
        let bad = Ask::new("subscriptions/listen").id("5").params(r#""notifications":1"#);
        assert_eq!(stage.proxy.send(&bad).await.code(), -32602, "{n}");
    }
    stage.listens("6", TOOLS_ONLY).await.close();
    pass(1000).await;
    stage.listens("7", TOOLS_ONLY).await;
}

/// A listener is one of those that keep a session busy, so `session.max` counts it.
#[tokio::test(start_paused = true)]
async fn inv5_a_session_with_listeners_is_not_evicted() {
    let lines = "[upstream.up.session]\nmax = 1\n";
    let stage = Stage::with(LegacyServer::telling(), Gets::open(), lines).await;
    let alice = Listener::open(&stage.proxy, &listen("1", TOOLS_ONLY).bearer("alice")).await;
    alice.wait(1).await;
    stage.proxy.send(&call("echo", "{}").bearer("bob")).await.is_error(503, -32603);
    stage.proxy.send(&listen("2", TOOLS_ONLY).bearer("bob")).await.is_error(503, -32603);
    stage.gets.tell(TOOLS);
    alice.wait(2).await;
    alice.close();
    pass(1000).await;
    stage.proxy.send(&call("echo", "{}").bearer("bob")).await.result();
    assert_eq!(stage.server.deleted(), ["S1"]);
}

/// Races with subscriptions that are on their way.
#[tokio::test(start_paused = true)]
async fn b9_6_a_client_that_goes_while_its_subscription_is_made() {
    let server = LegacyServer::telling().on("resources/subscribe", |seen, reply: Reply| async move {
        pass(2000).await;
        reply.result(&seen, "{}").await;
    });
    let stage = Stage::of(server, Gets::open()).await;
    let stays = stage.listens("1", TOOLS_ONLY).await;
    let goes = Listener::open(&stage.proxy, &listen("2", &uris(&[A]))).await;
    stage.up.wait("resources/subscribe", 1).await;
    goes.close();
    pass(10_000).await;
    assert_eq!(stage.asked("resources/unsubscribe"), [A], "taken back once it is made");
    stays.close();
    stage.nothing_is_left().await;
}

#[tokio::test(start_paused = true)]
async fn b9_2_wanted_again_while_it_is_given_up() {
    let server = LegacyServer::telling().on("resources/unsubscribe", |seen, reply: Reply| async move {
        pass(2000).await;
        reply.result(&seen, "{}").await;
    });
    let stage = Stage::of(server, Gets::open()).await;
    stage.listens("1", &uris(&[A])).await.close();
    stage.up.wait("resources/unsubscribe", 1).await;
    let again = Listener::open(&stage.proxy, &listen("2", &uris(&[A]))).await;
    assert_eq!(again.promised().await, json!({"resourceSubscriptions": [A]}));
    let order: Vec<_> =
        stage.up.briefs().into_iter().filter(|brief| brief.starts_with("resources/")).collect();
    assert_eq!(order, ["resources/subscribe", "resources/unsubscribe", "resources/subscribe"]);
    stage.gets.tell(&crate::stage::updated(A));
    again.wait(2).await;
    again.close();
    pass(2000).await;
    stage.nothing_is_left().await;
}

/// Whoever comes while the last one's leave is being told finds the stream, or gets another.
#[tokio::test(start_paused = true)]
async fn b9_2_a_listener_that_comes_while_the_stream_is_being_closed() {
    for millis in [0, 1, 100, 1999, 2000, 2001] {
        let server = LegacyServer::telling().on("resources/unsubscribe", |seen, reply: Reply| async move {
            pass(2000).await;
            reply.result(&seen, "{}").await;
        });
        let stage = Stage::of(server, Gets::open()).await;
        stage.listens("1", &uris(&[A])).await.close();
        stage.up.wait("resources/unsubscribe", 1).await;
        pass(millis).await;
        let start = tokio::time::Instant::now();
        let next = stage.listens("2", TOOLS_ONLY).await;
        assert!(next.at(0) - start <= Duration::from_millis(600), "after {millis} ms");
        assert_eq!(next.promised().await, json!({"toolsListChanged": true}), "after {millis} ms");
        pass(10_000).await;
        assert_eq!(stage.gets.now(), 1, "after {millis} ms");
        stage.gets.tell(TOOLS);
        next.wait(2).await;
        pass(1000).await;
        assert_eq!(next.changes(), ["tools"], "after {millis} ms");
        next.close();
        stage.nothing_is_left().await;
    }
}
