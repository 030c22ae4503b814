//! C08, A13.5, B9.3: when a stream that broke off is opened again, from where, and what the listeners hear of it.

use std::time::Duration;

use crate::stage::{A, SOME, Stage, TOOLS, updated};
use crate::support::{Begin, Gets, LegacyServer, Reply, call, pass};

fn pauses(stage: &Stage) -> Vec<Duration> {
    let times: Vec<_> = stage.gets.all().iter().map(|get| get.at).collect();
    times.windows(2).map(|two| two[1] - two[0]).collect()
}

#[track_caller]
fn about(pause: Duration, millis: u64) {
    let base = Duration::from_millis(millis);
    assert!(pause >= base && pause <= base.mul_f64(1.26), "{pause:?} is {base:?} and up to a quarter more");
}

#[tokio::test(start_paused = true)]
async fn c08_pauses_double_up_to_the_setting() {
    let gets = Gets::script(|n| if (1..=8).contains(&n) { Begin::Cut } else { Begin::Open });
    let stage = Stage::of(LegacyServer::telling(), gets).await;
    let listener = stage.listens("1", SOME).await;
    pass(10_000).await;
    stage.gets.wait(1).await.cut();
    stage.gets.wait(10).await;
    pass(5000).await;
    let expected = [2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000, 30_000];
    for (pause, millis) in pauses(&stage)[1..].iter().zip(expected) {
        about(*pause, millis);
    }
    about(pauses(&stage)[0] - Duration::from_secs(10), 1000);
    assert_eq!(listener.changes(), ["tools", A], "one set after the gap");
    // It stood, so the next pause is a first one again.
    pass(60_000).await;
    let standing = stage.gets.wait(10).await;
    standing.cut();
    let again = stage.gets.wait(11).await;
    about(again.at - standing.at - Duration::from_secs(65), 1000);
}

/// `retry` of the event stream format holds with and without ids, until the server names another.
#[tokio::test(start_paused = true)]
async fn a13_5_the_servers_own_pause() {
    for (told, millis) in [
        ("retry: 5000\n\n", 5000),
        ("id: e1\nretry: 5000\n\n", 5000),
        ("id: e1\nretry: 5000\ndata: \n\n", 5000),
        ("retry: 0\n\n", 100),
        ("retry: 86400000\n\n", 30_000),
        ("retry: 5s\n\n", 1000),
    ] {
        let stage = Stage::of(LegacyServer::telling(), Gets::script(|_| Begin::Open)).await;
        let _listener = stage.listens("1", SOME).await;
        let first = stage.gets.wait(1).await;
        first.bytes(told.as_bytes());
        pass(10_000).await;
        first.end();
        let second = stage.gets.wait(2).await;
        about(second.at - first.at - Duration::from_secs(10), millis);
        // The next stream says nothing of it.
        pass(10_000).await;
        second.end();
        let third = stage.gets.wait(3).await;
        about(third.at - second.at - Duration::from_secs(10), millis);
    }
}

/// Nothing can have been missed where the server takes the stream up from the id that it gave.
#[tokio::test(start_paused = true)]
async fn a13_5_a_stream_with_ids_goes_on_without_notices() {
    let stage = Stage::new().await;
    let listener = stage.listens("1", SOME).await;
    let first = stage.gets.wait(1).await;
    assert_eq!(first.last_event(), None);
    first.bytes(format!("id: s:1\ndata: {}\n\n", updated(A)).as_bytes());
    pass(10_000).await;
    first.cut();
    let second = stage.gets.wait(2).await;
    assert_eq!(second.last_event().as_deref(), Some("s:1"));
    second.bytes(format!("id: s:2\ndata: {TOOLS}\n\n").as_bytes());
    pass(10_000).await;
    second.end();
    // Quiet from here: an event's id holds until another comes.
    for n in 3..=5 {
        let quiet = stage.gets.wait(n).await;
        assert_eq!(quiet.last_event().as_deref(), Some("s:2"), "stream {n}");
        pass(60_000).await;
        quiet.cut();
    }
    stage.gets.wait(6).await;
    pass(5000).await;
    assert_eq!(listener.changes(), [A, "tools"], "nothing beyond what was told");
}

/// An id that is taken back (`id` without a value) leaves nothing to go on from.
#[tokio::test(start_paused = true)]
async fn a13_5_an_id_that_is_taken_back() {
    let stage = Stage::new().await;
    let listener = stage.listens("1", SOME).await;
    let first = stage.gets.wait(1).await;
    first.bytes(format!("id: s:1\ndata: {TOOLS}\n\nid:\ndata: {TOOLS}\n\n").as_bytes());
    pass(10_000).await;
    first.end();
    assert_eq!(stage.gets.wait(2).await.last_event(), None);
    pass(5000).await;
    assert_eq!(listener.changes(), ["tools", "tools", "tools", A]);
}

/// A server that does not know the id any more, in a session that lives, is asked for a stream from now on.
#[tokio::test(start_paused = true)]
async fn a13_5_an_id_that_the_server_does_not_know() {
    for status in [400, 404, 409, 410, 422] {
        let gets = Gets::script(move |n| if n == 1 { Begin::Empty(status) } else { Begin::Open });
        let stage = Stage::of(LegacyServer::telling(), gets).await;
        let listener = stage.listens("1", SOME).await;
        let first = stage.gets.wait(1).await;
        first.bytes(format!("id: s:1\ndata: {TOOLS}\n\n").as_bytes());
        pass(10_000).await;
        first.end();
        pass(10_000).await;
        assert!(!listener.is_over(), "{status}: {:?}", listener.messages());
        let gets = stage.gets.all();
        assert_eq!(gets[1].last_event().as_deref(), Some("s:1"), "{status}");
        assert_eq!(gets.len(), 3, "{status}");
        // A conflict says nothing of the id.
        let from = (status == 409).then_some("s:1");
        assert_eq!(gets[2].last_event().as_deref(), from, "{status}");
        assert_eq!(listener.changes(), ["tools", "tools", A], "{status}: one set after the gap");
        assert_eq!(stage.up.posts("initialize").len(), 1, "{status}");
    }
}

/// 409: the server holds the former stream for alive, which passes.
#[tokio::test(start_paused = true)]
async fn c08_a_conflict_with_the_stream_that_broke() {
    let gets = Gets::script(|n| if (1..=3).contains(&n) { Begin::Empty(409) } else { Begin::Open });
    let stage = Stage::of(LegacyServer::telling(), gets).await;
    let listener = stage.listens("1", SOME).await;
    pass(10_000).await;
    stage.gets.wait(1).await.cut();
    pass(60_000).await;
    assert!(!listener.is_over(), "{:?}", listener.messages());
    assert_eq!(stage.gets.all().len(), 5);
    assert_eq!(listener.changes(), ["tools", A]);
}

/// D104 beside a listener: a call's stream is taken up by a GET of its own, and the listener's stays as it is.
#[tokio::test(start_paused = true)]
async fn d104_a_call_is_resumed_while_somebody_listens() {
    let gets = Gets::script(|n| {
        let result = r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[],"n":1}}"#;
        if n == 1 { Begin::With(format!("id: c:2\ndata: {result}\n\n")) } else { Begin::Open }
    });
    let streams = gets.clone();
    let server = LegacyServer::telling().on("tools/call", move |seen, mut reply: Reply| {
        streams.put("ID", &seen.id());
        async move {
            reply.stream().await;
            reply.chunk(b"id: c:1\nretry: 1500\ndata: \n\n").await;
            reply.end().await;
        }
    });
    let stage = Stage::of(server, gets).await;
    let listener = stage.listens("1", SOME).await;
    let done = stage.proxy.send(&call("echo", "{}").id("2")).await;
    assert_eq!(done.result()["n"], 1);
    let all = stage.gets.all();
    let from: Vec<_> = all.iter().map(|get| get.last_event()).collect();
    assert_eq!(from, [None, Some("c:1".to_owned())]);
    assert_eq!(stage.up.posts("tools/call").len(), 1);
    all[0].event(TOOLS);
    listener.wait(2).await;
    pass(5000).await;
    assert_eq!((listener.changes(), stage.gets.all().len()), (vec!["tools".to_owned()], 2));
}

/// Subscriptions of a server without session ids may have gone with its process, so they are made again.
#[tokio::test(start_paused = true)]
async fn c48_a_server_without_session_ids_comes_back() {
    let stage = Stage::of(LegacyServer::telling().sessionless(), Gets::open()).await;
    let listener = stage.listens("1", SOME).await;
    pass(10_000).await;
    stage.gets.wait(1).await.cut();
    stage.gets.wait(2).await;
    pass(5000).await;
    assert_eq!(listener.changes(), ["tools", A]);
    assert_eq!(stage.asked("resources/subscribe"), [A, A]);
    listener.close();
    stage.nothing_is_left().await;
}
