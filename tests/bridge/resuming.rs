//! A12.19, A13.5, B14, D103: event ids, and streams that are taken up again with `Last-Event-ID`.

use std::collections::HashSet;

use crate::stage::{ACCEPT, FORM, LATEST, REVISIONS, ROOTED, ROOTS, Stage};
use crate::support::{End, Stream, User, json, pass};

/// A call whose client has heard something of it, and then lost its connection.
pub(crate) async fn lost(stage: &Stage, user: &User) -> (String, std::sync::Arc<crate::support::Call>) {
    user.level("debug").await.result();
    let (stream, call) = stage.begin(user).await;
    call.log("info", "one");
    stream.wait(1).await;
    let last = stream.last_id();
    assert!(!last.is_empty(), "every event has an id");
    stream.drop_connection().await;
    (last, call)
}

pub(crate) fn logs(stream: &Stream) -> Vec<String> {
    let notes = stream.notes("notifications/message");
    notes.iter().map(|note| note["params"]["data"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn b14_an_answer_is_found_again() {
    for revision in REVISIONS {
        let stage = Stage::new().await;
        let user = stage.user(revision).await;
        let (last, call) = lost(&stage, &user).await;
        call.log("info", "two");
        pass(5000).await;
        call.log("info", "three");
        call.completes("done");
        pass(60_000).await;
        let resumed = user.resume(&last).await;
        assert!(resumed.is_stream(), "{revision}: {}", resumed.status);
        assert_eq!(resumed.result().await["content"][0]["text"], "done", "{revision}");
        assert_eq!(resumed.messages().last().unwrap()["id"], 1);
        assert_eq!(logs(&resumed), ["two", "three"], "{revision}: what came after that event, in order");
        assert_eq!(resumed.end().await, End::Clean, "{revision}: the answer is the end");
        stage.is_over(1).await;
    }
}

/// Taken up before there is an answer: it goes on where it was.
#[tokio::test(start_paused = true)]
async fn b14_the_stream_goes_on() {
    for revision in REVISIONS {
        let stage = Stage::new().await;
        let user = stage.user(revision).await;
        let (last, call) = lost(&stage, &user).await;
        let resumed = user.resume(&last).await;
        assert!(resumed.is_stream());
        call.log("info", "two");
        pass(1000).await;
        assert_eq!(logs(&resumed), ["two"]);
        // Lost again, and taken up again.
        let last = resumed.last_id();
        resumed.drop_connection().await;
        call.log("info", "three");
        pass(1000).await;
        let again = user.resume(&last).await;
        call.completes("done");
        again.result().await;
        assert_eq!(logs(&again), ["three"], "{revision}");
    }
}

/// Of the latest revision the priming event is enough to come back with.
#[tokio::test(start_paused = true)]
async fn a13_5_the_priming_event_is_enough() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    let (stream, call) = stage.begin(&user).await;
    pass(2000).await;
    let events = stream.events();
    assert_eq!((events.len(), events[0].raw.as_str()), (1, ""), "{events:?}");
    assert_eq!(stream.retry(), Some(1000));
    stream.drop_connection().await;
    call.completes("done");
    pass(1000).await;
    let resumed = user.resume(&events[0].id).await;
    assert_eq!(resumed.result().await["content"][0]["text"], "done");
}

#[tokio::test(start_paused = true)]
async fn a13_5_no_other_revision_is_primed() {
    for revision in &REVISIONS[1..] {
        let stage = Stage::new().await;
        let user = stage.user(revision).await;
        let (stream, call) = stage.begin(&user).await;
        pass(30_000).await;
        assert_eq!(stream.events().len(), 0, "{revision}");
        call.completes("done");
        stream.result().await;
        assert_eq!(stream.events().len(), 1, "{revision}");
    }
}

/// A question that its client lost is asked again, under its own id.
#[tokio::test(start_paused = true)]
async fn b14_a_question_is_found_again() {
    for revision in REVISIONS {
        let stage = Stage::new().await;
        let user = stage.user(revision).await;
        let (last, call) = lost(&stage, &user).await;
        call.asks(&[("k", ROOTS)], Some(r#""S""#));
        pass(20_000).await;
        let resumed = user.resume(&last).await;
        let question = resumed.question().await;
        user.answer(&question, ROOTED).await;
        let second = stage.retried(1).await;
        second.log("info", "two");
        second.completes("done");
        assert_eq!(resumed.result().await["content"][0]["text"], "done", "{revision}");
        assert_eq!(resumed.asked(), 1, "{revision}");
        stage.is_over(2).await;
    }
}

/// Asked before the loss, answered after it, on another connection: the answer comes on the resumed stream.
#[tokio::test(start_paused = true)]
async fn b14_an_answer_to_a_question_of_before() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    let stream = stage.asked(&user, &[("k", FORM)], Some(r#""S""#)).await;
    let question = stream.question().await;
    let last = stream.last_id();
    stream.drop_connection().await;
    pass(5000).await;
    let resumed = user.resume(&last).await;
    pass(1000).await;
    assert_eq!(resumed.asked(), 0, "it has heard that one");
    user.answer(&question, ACCEPT).await;
    stage.retried(1).await.completes("done");
    resumed.result().await;
}

/// Ids are of the session, each used once, whatever the stream.
#[tokio::test(start_paused = true)]
async fn a13_5_event_ids_are_unique_in_the_session() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    user.level("debug").await.result();
    let mut streams = vec![user.get().await];
    for _ in 0..3 {
        let (stream, call) = stage.begin(&user).await;
        call.log("info", "x");
        call.completes("done");
        stream.result().await;
        streams.push(stream);
    }
    stage.listens.tell("tools");
    streams[0].wait(1).await;
    let mut seen = HashSet::new();
    for event in streams.iter().flat_map(Stream::events) {
        assert!(!event.id.is_empty(), "{event:?}");
        assert!(seen.insert(event.id.clone()), "{} twice", event.id);
        assert!(event.id.bytes().all(|byte| (0x21..0x7f).contains(&byte)), "{}", event.id);
    }
}

/// Each stream is its own: nothing of another is told on it.
#[tokio::test(start_paused = true)]
async fn b14_only_that_streams_messages() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    let get = user.get().await;
    let (last, call) = lost(&stage, &user).await;
    let (other, of_other) = stage.begin_at(&user, &user.old.call("ask", "{}").id("2")).await;
    let resumed = user.resume(&last).await;
    stage.listens.tell("tools");
    of_other.log("info", "other");
    call.log("info", "own");
    get.wait(1).await;
    other.wait(1).await;
    pass(1000).await;
    assert_eq!((logs(&resumed), resumed.changes().len()), (vec!["own".to_owned()], 0));
    assert_eq!((logs(&other), get.changes()), (vec!["other".to_owned()], vec!["tools".to_owned()]));
    assert!(!get.is_over() && !other.is_over(), "side by side");
    of_other.completes("other");
    call.completes("own");
    assert_eq!(resumed.result().await["content"][0]["text"], "own");
    assert_eq!(other.result().await["content"][0]["text"], "other");
}

/// A newer reader takes over from an older one.
#[tokio::test(start_paused = true)]
async fn b14_the_newer_connection_has_it() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    user.level("debug").await.result();
    let (stream, call) = stage.begin(&user).await;
    call.log("info", "one");
    stream.wait(1).await;
    let resumed = user.resume(&stream.last_id()).await;
    assert_eq!(stream.end().await, End::Clean, "the first is over");
    call.log("info", "two");
    call.completes("done");
    resumed.result().await;
    assert_eq!((logs(&stream), logs(&resumed)), (vec!["one".to_owned()], vec!["two".to_owned()]));
}

/// The client's own stream is taken up, too: what came meanwhile, then what comes.
#[tokio::test(start_paused = true)]
async fn b14_the_sessions_own_stream() {
    for revision in REVISIONS {
        let stage = Stage::new().await;
        let user = stage.user(revision).await;
        let get = user.get().await;
        stage.listens.wait(1).await;
        pass(1000).await;
        stage.listens.tell("tools");
        get.wait(1).await;
        let last = get.last_id();
        get.drop_connection().await;
        stage.listens.tell("prompts");
        pass(1000).await;
        let resumed = user.resume(&last).await;
        pass(1000).await;
        stage.listens.tell("resources");
        pass(1000).await;
        assert_eq!(resumed.changes(), ["prompts", "resources"], "{revision}");
        // It is the stream of the session now.
        let newer = user.get().await;
        assert_eq!(resumed.end().await, End::Clean);
        stage.listens.tell("tools");
        newer.wait(1).await;
    }
}

/// One of an earlier process, or long gone: the session's stream from now on.
#[tokio::test(start_paused = true)]
async fn b14_an_own_stream_of_an_earlier_process() {
    let mut stage = Stage::with(&format!("session.key = \"{}\"", "ab".repeat(32))).await;
    let user = stage.latest().await;
    let get = user.get().await;
    pass(1000).await;
    let last = get.last_id();
    drop(get);
    stage.restart().await;
    let user = user.at(&stage.proxy);
    let resumed = user.resume(&last).await;
    assert!(resumed.is_stream(), "{}", resumed.status);
    pass(5000).await;
    stage.listens.tell("tools");
    pass(2000).await;
    assert_eq!(resumed.changes().last().map(String::as_str), Some("tools"));
}

/// A client that cannot be asked, and one whose answer came at once.
#[tokio::test(start_paused = true)]
async fn b14_streams_of_clients_that_are_asked_nothing() {
    let stage = Stage::new().await;
    let user = stage.user_with(LATEST, "{}").await;
    let (stream, call) = stage.begin(&user).await;
    let last = stream.last_id();
    stream.drop_connection().await;
    call.completes("done");
    pass(1000).await;
    if !last.is_empty() {
        assert_eq!(
            user.resume(&last).await.result().await["content"],
            json!([{"type": "text", "text": "done"}])
        );
    }
    stage.is_over(1).await;
}
