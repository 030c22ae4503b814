//! A13.5, B14: what is kept of a stream for a client that comes back, for how long, and what it is told when it is gone.

use crate::resuming::{logs, lost};
use crate::stage::{ACCEPT, FORM, ROOTED, ROOTS, Stage, opened};
use crate::support::{End, pass};

/// Within `session.replay` an answer can be had again; then, and when there is nothing left, there is no stream (405).
#[tokio::test(start_paused = true)]
async fn b14_for_how_long() {
    let stage = Stage::with("session.replay = \"1m\"").await;
    let user = stage.latest().await;
    let (last, call) = lost(&stage, &user).await;
    call.completes("done");
    pass(30_000).await;
    let resumed = user.resume(&last).await;
    resumed.result().await;
    let end = resumed.last_id();
    let over = user.resume(&end).await;
    let allowed = over.headers.get("allow");
    assert_eq!(
        (over.status, allowed.as_deref()),
        (405, Some("GET, POST, DELETE")),
        "the answer was the last of it"
    );
    user.resume(&last).await.result().await;
    pass(120_000).await;
    let late = user.resume(&last).await;
    assert_eq!(late.status, 405, "{}", late.text());
    assert!(user.lives().await);
}

/// What is kept is bounded; questions and the answer are kept before all else.
#[tokio::test(start_paused = true)]
async fn inv5_what_is_kept_is_bounded() {
    let stage = Stage::with("session.replay_events = 6").await;
    let user = stage.latest().await;
    let (last, call) = lost(&stage, &user).await;
    call.asks(&[("k", ROOTS)], Some(r#""S""#));
    pass(1000).await;
    let resumed = user.resume(&last).await;
    let question = resumed.question().await;
    resumed.drop_connection().await;
    user.answer(&question, ROOTED).await;
    let second = stage.retried(1).await;
    for n in 0..50 {
        second.log("info", &format!("{n}"));
    }
    second.asks(&[("k", FORM)], Some(r#""S""#));
    pass(1000).await;
    let again = user.resume(&last).await;
    let question = again.question().await;
    let kept = logs(&again);
    assert!(kept.len() <= 6, "{kept:?}");
    assert_eq!(kept.last().map(String::as_str), Some("49"), "the newest");
    user.answer(&question, ACCEPT).await;
    stage.retried(2).await.completes("done");
    again.result().await;
    assert!(stage.metric("mcp_janus_replay_dropped_total", &["notice"]) >= 40.0);
}

/// An answer that is larger than what may be kept, and was lost: an error says so.
#[tokio::test(start_paused = true)]
async fn inv5_an_answer_that_was_too_large_to_keep() {
    let stage = Stage::with("session.replay_bytes = \"4KiB\"").await;
    let user = stage.latest().await;
    let (last, call) = lost(&stage, &user).await;
    call.completes(&"x".repeat(100_000));
    pass(5000).await;
    let resumed = user.resume(&last).await;
    assert_eq!(resumed.code().await, -32603);
    assert_eq!(resumed.messages().last().unwrap()["id"], 1);
    // With its client there it is no matter how large it is.
    let (stream, call) = stage.begin(&user).await;
    call.completes(&"x".repeat(100_000));
    assert_eq!(stream.result().await["content"][0]["text"].as_str().unwrap().len(), 100_000);
}

/// A connection that breaks in the middle of a large answer.
#[tokio::test(start_paused = true)]
async fn b14_in_the_middle_of_a_large_answer() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    let ask = user.old.call("ask", "{}");
    let mut answer = tokio::spawn({
        let (proxy, ask) = (stage.proxy.clone(), ask.clone());
        async move { proxy.open(&ask).await }
    });
    let call = stage.calls.wait(1).await;
    let mut stream = (&mut answer).await.unwrap();
    let primed = stream.event().await.unwrap();
    call.completes(&"x".repeat(4_000_000));
    // Nothing is read; the connection is full.
    pass(5000).await;
    drop(stream);
    pass(5000).await;
    let resumed = user.resume(&primed.id).await;
    let answer = resumed.answer().await;
    let whole = answer["result"]["content"][0]["text"].as_str().is_some_and(|text| text.len() == 4_000_000);
    assert!(whole || answer["error"]["code"] == -32603, "whole, or an error in words");
    assert_eq!(answer["id"], 1);
    pass(60_000).await;
    stage.is_over(1).await;
}

/// Ids that name nothing of this session: an own stream for those that look like one, no stream for the others; never 404.
#[tokio::test(start_paused = true)]
async fn b14_ids_of_nothing() {
    let stage = Stage::new().await;
    let (user, other) = (stage.latest().await, stage.latest().await);
    let (last, call) = lost(&stage, &user).await;
    for id in ["nonsense", "", "1", "c999-1", "c1-999999999999999999999", "-", "\u{7f}", &"9".repeat(5000)] {
        let resumed = stage.proxy.open(&user.old.get().header("Last-Event-ID", id)).await;
        let fits = [200, 405].contains(&resumed.status) || resumed.status == 400;
        assert!(fits, "{id:?}: {}", resumed.status);
    }
    assert!(user.lives().await);
    // Another session has not got it.
    let theirs = other.resume(&last).await;
    call.log("info", "secret");
    call.completes("secret");
    pass(5000).await;
    let told = theirs.text() + &format!("{:?}", theirs.messages());
    assert!(!told.contains("secret"), "{told}");
    let resumed = user.resume(&last).await;
    resumed.result().await;
}

/// `session.poll`: a client of the latest revision is let go and comes back.
#[tokio::test(start_paused = true)]
async fn a13_5_poll() {
    let stage = Stage::with("session.poll = \"30s\"").await;
    let user = stage.latest().await;
    let (stream, call) = stage.begin(&user).await;
    let began = tokio::time::Instant::now();
    assert_eq!(stream.end().await, End::Clean);
    assert!((25..=31).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    assert_eq!(stream.retry(), Some(1000));
    assert!(!stream.briefs().contains(&"answer".to_owned()));
    pass(1000).await;
    let resumed = user.resume(&stream.last_id()).await;
    let last = stream.last_id();
    assert_eq!(resumed.end().await, End::Clean, "anew for each");
    assert!(call.is_open());
    let again = user.resume(&last).await;
    pass(10_000).await;
    call.completes("done");
    again.result().await;
    // Its own stream is not polled, nor are clients of other revisions.
    let get = user.get().await;
    let older = stage.user("2025-06-18").await;
    let (stream, call) = stage.begin(&older).await;
    pass(120_000).await;
    assert!(!get.is_over() && !stream.is_over());
    call.completes("done");
    stream.result().await;
}

/// The calls of an array share a stream, which is taken up as any other.
#[tokio::test(start_paused = true)]
async fn b16_a_batch_is_taken_up_too() {
    let stage = Stage::new().await;
    let user = stage.user("2025-03-26").await;
    user.level("debug").await.result();
    let call = |id: u32| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"ask","arguments":{{"n":{id}}}}}}}"#
        )
    };
    let ask = user.old.raw(&format!("[{},{}]", call(1), call(2)));
    let opening = tokio::spawn({
        let user = user.clone();
        async move { user.open(&ask).await }
    });
    let (one, two) = (stage.calls.marked(1).await, stage.calls.marked(2).await);
    one.log("info", "x");
    let stream = opened(opening).await;
    stream.wait(1).await;
    let last = stream.last_id();
    stream.drop_connection().await;
    one.completes("one");
    pass(1000).await;
    let resumed = user.resume(&last).await;
    two.completes("two");
    let mut all = resumed.answers(2).await;
    all.sort_by_key(|answer| answer["id"].to_string());
    let texts: Vec<_> = all.iter().map(|answer| answer["result"]["content"][0]["text"].clone()).collect();
    assert_eq!(texts, ["one", "two"]);
    assert_eq!(resumed.end().await, End::Clean);
}
