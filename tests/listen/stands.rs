//! B5: the stream of a session whose client can be asked is open as long as the session, listened to or not.

use std::time::Duration;

use tokio::time::Instant;

use crate::stage::{PROMPTS, SOME, Stage, TOOLS, TOOLS_ONLY};
use crate::support::{Ask, Begin, Gets, LegacyServer, Listener, call, json, list, listen, pass};

const FORM: &str = r#"{"elicitation":{}}"#;

fn asking() -> Ask {
    call("echo", "{}").caps(FORM)
}

/// The sessions that a stream was asked for in.
fn asked_in(stage: &Stage) -> Vec<String> {
    stage.gets.all().iter().map(|get| get.session()).collect()
}

#[tokio::test(start_paused = true)]
async fn b5_one_stream_for_each_session_whose_client_can_be_asked() {
    let stage = Stage::new().await;
    for _ in 0..3 {
        stage.proxy.send(&call("echo", "{}")).await.result();
        stage.proxy.send(&asking()).await.result();
        stage.proxy.send(&list("tools/list").caps(FORM)).await.result();
    }
    stage.proxy.send(&asking().bearer("b")).await.result();
    pass(60_000).await;
    assert_eq!(asked_in(&stage), ["S2", "S3"], "none without capabilities");
    assert_eq!((stage.gets.now(), stage.proxy.feeds()), (2, 0));
    let of_b = &stage.gets.all()[1].seen;
    assert_eq!(of_b.header("authorization").as_deref(), Some("Bearer b"));
}

/// What the server cannot ask by its revision, or by the settings, needs no stream.
#[tokio::test(start_paused = true)]
async fn b5_what_can_be_asked() {
    let now = |caps: &'static str, version: &'static str, lines: &'static str| async move {
        let stage = Stage::with(LegacyServer::telling().version(version), Gets::open(), lines).await;
        stage.proxy.send(&call("echo", "{}").caps(caps)).await.result();
        pass(1000).await;
        stage.gets.now()
    };
    for caps in [r#"{"sampling":{}}"#, r#"{"roots":{}}"#, r#"{"elicitation":{"url":{}}}"#, FORM] {
        assert_eq!(now(caps, "2025-11-25", "").await, 1, "{caps}");
        assert_eq!(now(caps, "2025-11-25", "interactive = false").await, 0, "{caps}");
    }
    assert_eq!(now(r#"{"experimental":{"x":{}}}"#, "2025-11-25", "").await, 0);
    assert_eq!(now(r#"{"elicitation":{"url":{}}}"#, "2025-06-18", "").await, 0);
    assert_eq!(now(FORM, "2025-03-26", "").await, 0);
    assert_eq!(now(r#"{"sampling":{}}"#, "2024-11-05", "").await, 1);
}

#[tokio::test(start_paused = true)]
async fn b5_it_ends_with_a_session_that_nobody_uses() {
    let idle = "session.idle = \"10s\"";
    let stage = Stage::with(LegacyServer::telling(), Gets::open(), idle).await;
    stage.proxy.send(&asking()).await.result();
    pass(5_000).await;
    assert_eq!((stage.gets.now(), stage.proxy.sessions()), (1, 1));
    pass(10_000).await;
    assert_eq!((stage.gets.now(), stage.proxy.sessions()), (0, 0));
    assert_eq!(stage.server.deleted(), ["S1"]);
    stage.nothing_is_left().await;
}

#[tokio::test(start_paused = true)]
async fn b5_it_ends_with_a_session_that_makes_room() {
    let stage = Stage::with(LegacyServer::telling(), Gets::open(), "session.max = 1").await;
    for token in ["a", "b", "a"] {
        stage.proxy.send(&asking().bearer(token)).await.result();
        pass(100).await;
        assert_eq!((stage.gets.now(), stage.proxy.sessions()), (1, 1), "{token}");
    }
    assert_eq!(asked_in(&stage), ["S1", "S2", "S3"]);
    assert_eq!(stage.server.deleted(), ["S1", "S2"]);
}

#[tokio::test(start_paused = true)]
async fn b5_it_ends_with_the_call_that_has_the_session_alone() {
    let stage = Stage::with(LegacyServer::telling(), Gets::open(), "session.scope = \"request\"").await;
    stage.proxy.send(&asking()).await.result();
    stage.proxy.send(&asking()).await.result();
    pass(1000).await;
    let sessions = stage.server.deleted();
    assert!(asked_in(&stage).iter().all(|session| sessions.contains(session)), "{:?}", asked_in(&stage));
    assert_eq!((stage.gets.now(), stage.proxy.sessions(), stage.server.live_sessions()), (0, 0, 0));
    stage.nothing_is_left().await;
}

/// As for those who listen: taken up where it broke off, with pauses, in the same session.
#[tokio::test(start_paused = true)]
async fn a13_5_it_is_taken_up_again() {
    let stage = Stage::new().await;
    stage.proxy.send(&asking()).await.result();
    let first = stage.gets.wait(1).await;
    first.bytes(b"id: e1\ndata: \n\n");
    pass(2_000).await;
    first.cut();
    let second = stage.gets.wait(2).await;
    assert_eq!(second.last_event().as_deref(), Some("e1"));
    pass(2_000).await;
    second.end();
    let third = stage.gets.wait(3).await;
    assert!(third.at - second.at >= Duration::from_secs(3), "after a pause");
    assert_eq!(asked_in(&stage), ["S1", "S1", "S1"]);
    pass(60_000).await;
    assert_eq!(stage.gets.now(), 1);
}

/// A balancer cuts what is quiet: a call that comes in the pause after that has the stream opened before it is sent, else
/// the server would drop its question. One that cannot be opened keeps calls waiting a few times only.
#[tokio::test(start_paused = true)]
async fn b5_a_call_does_not_go_without_a_stream_that_was_cut() {
    let stage = Stage::new().await;
    stage.proxy.send(&asking()).await.result();
    pass(60_000).await;
    stage.gets.wait(1).await.cut();
    pass(50).await;
    stage.proxy.send(&asking()).await.result();
    let order = stage.up.briefs();
    let last = |what: &str| order.iter().rposition(|brief| brief == what);
    assert!(last("GET") < last("tools/call"), "the stream first: {order:?}");
    assert_eq!((stage.gets.all().len(), stage.gets.now()), (2, 1));
    let gets = |n| match n {
        1..=3 => Begin::Empty(503),
        _ => Begin::Open,
    };
    let stage = Stage::of(LegacyServer::telling(), Gets::script(gets)).await;
    stage.proxy.send(&asking()).await.result();
    pass(60_000).await;
    stage.gets.wait(1).await.cut();
    pass(50).await;
    for _ in 0..10 {
        stage.proxy.send(&asking()).await.result();
    }
    assert_eq!(stage.gets.all().len(), 4, "three times without a pause");
    // It is not given up for that: a call that comes somewhat later has it tried again.
    pass(1_500).await;
    stage.proxy.send(&asking()).await.result();
    let order = stage.up.briefs();
    let last = |what: &str| order.iter().rposition(|brief| brief == what);
    assert!(last("GET") < last("tools/call"), "{order:?}");
    assert_eq!((stage.gets.all().len(), stage.gets.now()), (5, 1));
}

/// Hosts without long answers end the stream as soon as it is there: no call waits for it to stay.
#[tokio::test(start_paused = true)]
async fn b5_a_stream_that_ends_at_once_keeps_no_call_waiting() {
    let gets = Gets::script(|_| Begin::Body(200, "text/event-stream", ""));
    let stage = Stage::of(LegacyServer::telling(), gets).await;
    stage.proxy.send(&asking()).await.result();
    let start = Instant::now();
    for _ in 0..10 {
        stage.proxy.send(&asking()).await.result();
    }
    assert!(start.elapsed() < Duration::from_millis(200), "{:?}", start.elapsed());
    assert!(stage.gets.all().len() <= 6, "{}", stage.gets.all().len());
}

/// A12.14: asked for once, and no call minds.
#[tokio::test(start_paused = true)]
async fn b5_a_server_without_one_is_not_asked_again() {
    for begin in [Begin::Empty(405), Begin::Empty(404), Begin::Body(200, "application/json", "{}")] {
        let what = format!("{begin:?}");
        let stage = Stage::of(LegacyServer::telling(), Gets::script(move |_| begin.clone())).await;
        for _ in 0..3 {
            stage.proxy.send(&asking()).await.result();
        }
        pass(120_000).await;
        assert_eq!((stage.gets.all().len(), stage.up.posts("initialize").len()), (1, 1), "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn b5_a_server_that_is_silent_or_away_keeps_no_call_waiting_for_long() {
    for begin in [Begin::Hang, Begin::Cut, Begin::Empty(503), Begin::Empty(401), Begin::Late(60_000)] {
        let what = format!("{begin:?}");
        let stage = Stage::of(LegacyServer::telling(), Gets::script(move |_| begin.clone())).await;
        let start = Instant::now();
        stage.proxy.send(&asking()).await.result();
        let first = start.elapsed();
        assert!(first <= Duration::from_millis(600), "{what}: {first:?}, timeouts.stream is 500ms");
        stage.proxy.send(&asking()).await.result();
        assert!(start.elapsed() - first <= Duration::from_millis(100), "{what}: and once");
    }
}

/// A12.13 without anyone who listens: the session is let go, and the next call has another with a stream of its own.
#[tokio::test(start_paused = true)]
async fn d31_a_session_that_is_lost_while_nobody_uses_it() {
    let stage = Stage::new().await;
    stage.proxy.send(&asking()).await.result();
    let get = stage.gets.wait(1).await;
    pass(2_000).await;
    stage.server.forget_sessions();
    get.end();
    pass(120_000).await;
    assert_eq!((stage.proxy.sessions(), stage.gets.now()), (0, 0));
    assert_eq!(stage.up.posts("initialize").len(), 1, "nobody needs another");
    stage.proxy.send(&asking()).await.result();
    pass(1000).await;
    assert_eq!(stage.up.posts("tools/call").len(), 2, "the second is sent once");
    assert_eq!((stage.gets.now(), stage.gets.all().last().unwrap().session()), (1, "S2".to_owned()));
}

/// One stream serves both, and those who listen are told to look again after a loss.
#[tokio::test(start_paused = true)]
async fn d31_those_who_listen_share_it_and_move_with_it() {
    let stage = Stage::new().await;
    let listener = Listener::open(&stage.proxy, &listen("1", SOME).caps(FORM)).await;
    listener.wait(1).await;
    stage.proxy.send(&asking()).await.result();
    let get = stage.gets.wait(1).await;
    stage.gets.tell(TOOLS);
    listener.wait(2).await;
    assert_eq!(listener.changes(), ["tools"]);
    pass(2_000).await;
    stage.server.forget_sessions();
    get.end();
    listener.wait(4).await;
    assert_eq!(listener.changes()[1..], ["tools", "file:///a"], "once each, after all stands again");
    pass(10_000).await;
    assert_eq!(asked_in(&stage).last().map(String::as_str), Some("S2"));
    assert_eq!((stage.gets.now(), stage.up.posts("initialize").len()), (1, 2));
    stage.gets.tell(TOOLS);
    listener.wait(5).await;
    listener.close();
    pass(1000).await;
    assert_eq!((stage.gets.now(), stage.proxy.feeds()), (1, 0), "the session lives, and so does its stream");
}

/// Who begins to listen in the middle has missed nothing, and waits for nothing.
#[tokio::test(start_paused = true)]
async fn b9_1_who_comes_later_finds_it_open() {
    let stage = Stage::new().await;
    stage.proxy.send(&asking()).await.result();
    stage.gets.wait(1).await;
    stage.gets.tell(TOOLS);
    pass(2_000).await;
    let start = Instant::now();
    let listener = Listener::open(&stage.proxy, &listen("1", TOOLS_ONLY).caps(FORM)).await;
    listener.wait(1).await;
    assert!(start.elapsed() < Duration::from_millis(100), "{:?}", start.elapsed());
    assert_eq!(listener.promised().await, json!({"toolsListChanged": true}));
    pass(10_000).await;
    assert_eq!(listener.changes(), Vec::<String>::new());
    stage.gets.tell(PROMPTS);
    stage.gets.tell(TOOLS);
    listener.wait(2).await;
    assert_eq!((stage.gets.all().len(), listener.changes()), (1, vec!["tools".to_owned()]));
}

/// A14.7: the drain does not wait for it, and it outlives the calls that are being finished.
#[tokio::test(start_paused = true)]
async fn a14_7_the_drain_ends_it_after_the_last_call() {
    let stage = Stage::new().await;
    stage.proxy.send(&asking()).await.result();
    stage.gets.wait(1).await;
    stage.proxy.drain();
    pass(1000).await;
    assert_eq!(stage.gets.now(), 0);

    let server = LegacyServer::telling().on("tools/call", |seen, reply| async move {
        pass(5_000).await;
        reply.result(&seen, r#"{"content":[]}"#).await;
    });
    let stage = Stage::of(server, Gets::open()).await;
    let running = stage.proxy.spawn(&asking());
    stage.gets.wait(1).await;
    stage.up.wait("tools/call", 1).await;
    stage.proxy.drain();
    pass(3_000).await;
    assert_eq!(stage.gets.now(), 1, "the call may still ask");
    running.await.unwrap().result();
    pass(1000).await;
    assert_eq!(stage.gets.now(), 0);
}
