//! D89, D103, A2.2, A12.19, B2.8, B14, C23: what ends a call, and what does not.

use crate::stage::{ACCEPT, FORM, REVISIONS, ROOTS, Stage, opened};
use crate::support::{End, pass};

#[tokio::test(start_paused = true)]
async fn d89_loop_cancel() {
    for revision in REVISIONS {
        let stage = Stage::new().await;
        let user = stage.user(revision).await;
        let entries = [("a", crate::stage::SAMPLE), ("b", ROOTS)];
        let ask = user.old.call("ask", "{}").id("\"c\"");
        let stream = stage.asked_at(&user, &ask, &entries, Some(r#""S""#)).await;
        let questions = stream.questions(2).await;
        user.cancel("\"c\"").await;
        assert_eq!(stream.end().await, End::Clean, "{revision}");
        let mut told: Vec<_> = stream
            .notes("notifications/cancelled")
            .iter()
            .map(|note| note["params"]["requestId"].to_string())
            .collect();
        let mut asked: Vec<_> = questions.iter().map(|question| question["id"].to_string()).collect();
        told.sort();
        asked.sort();
        assert_eq!(told, asked, "{revision}: what it was asked is withdrawn");
        assert!(!stream.briefs().contains(&"answer".to_owned()), "{revision}: no response");
        user.answer(&questions[0], crate::stage::SAMPLED).await;
        user.answer(&questions[1], crate::stage::ROOTED).await;
        pass(60_000).await;
        stage.is_over(1).await;
        stage.nothing_is_left().await;
    }
}

#[tokio::test(start_paused = true)]
async fn d89_cancelled_while_the_server_works() {
    for revision in REVISIONS {
        let stage = Stage::new().await;
        let user = stage.user(revision).await;
        let (stream, call) = stage.begin_at(&user, &user.old.call("ask", "{}").id("7")).await;
        call.log("info", "x");
        user.cancel("7").await;
        assert_eq!(stream.end().await, End::Clean, "{revision}");
        pass(1000).await;
        assert!(!call.is_open(), "{revision}: the stream at the server is closed, which cancels it");
        assert!(!stream.briefs().contains(&"answer".to_owned()), "{revision}");
        stage.is_over(1).await;
        assert!(user.lives().await);
    }
}

/// In the second round, after an answer, while the server works.
#[tokio::test(start_paused = true)]
async fn d89_cancelled_in_a_later_round() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    let stream = stage.asked(&user, &[("k", FORM)], Some(r#""S""#)).await;
    user.answer(&stream.question().await, ACCEPT).await;
    let second = stage.retried(1).await;
    user.cancel("1").await;
    stream.end().await;
    pass(1000).await;
    assert!(!second.is_open());
    let told = stream.notes("notifications/cancelled");
    assert_eq!(told, [] as [crate::support::Value; 0], "nothing is asked any more");
    stage.is_over(2).await;
}

/// C23c: what names nothing, or another's, is ignored.
#[tokio::test(start_paused = true)]
async fn d89_cancels_of_nothing() {
    let stage = Stage::new().await;
    let (user, other) = (stage.latest().await, stage.latest().await);
    let (stream, call) = stage.begin_at(&user, &user.old.call("ask", "{}").id("7")).await;
    other.cancel("7").await;
    for id in ["8", r#""7""#, "0", "null", "7.0"] {
        user.cancel(id).await;
    }
    let bare = user.old.note("notifications/cancelled");
    assert_eq!(stage.proxy.send(&bare).await.status, 202);
    pass(1000).await;
    assert!(call.is_open());
    call.completes("done");
    stream.result().await;
    // Too late: it has its answer.
    user.cancel("7").await;
    assert!(user.lives().await);
}

/// A client whose connection is gone can still cancel, and nothing is kept for it then.
#[tokio::test(start_paused = true)]
async fn d89_cancelled_without_a_connection() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    let (stream, call) = stage.begin_at(&user, &user.old.call("ask", "{}").id("7")).await;
    let last = stream.last_id();
    stream.drop_connection().await;
    pass(5000).await;
    assert!(call.is_open());
    user.cancel("7").await;
    pass(1000).await;
    assert!(!call.is_open());
    let resumed = user.resume(&last).await;
    assert_eq!(resumed.status, 405, "there is nothing left of it");
}

/// B14: a client that drops its connection has not cancelled.
#[tokio::test(start_paused = true)]
async fn d103_cancel_http_legacy() {
    for revision in REVISIONS {
        let stage = Stage::new().await;
        let user = stage.user(revision).await;
        let (stream, call) = stage.begin(&user).await;
        call.log("info", "x");
        stream.wait(1).await;
        stream.drop_connection().await;
        pass(300_000).await;
        assert!(call.is_open(), "{revision}: the stream at the server stays open");
        call.completes("done");
        stage.is_over(1).await;
        assert_eq!(stage.calls.all().len(), 1, "{revision}: run once");
    }
}

/// The same before anything of an answer has come, and for one that is answered whole.
#[tokio::test(start_paused = true)]
async fn d103_before_the_head_of_the_answer() {
    for capabilities in ["{}", r#"{"roots":{}}"#] {
        for accept in ["application/json, text/event-stream", "application/json"] {
            let stage = Stage::new().await;
            let user = stage.user_with(crate::stage::LATEST, capabilities).await;
            let ask = user.old.call("ask", "{}").header("Accept", accept);
            let (opening, call) = stage.start(&user, &ask).await;
            opening.abort();
            pass(60_000).await;
            assert!(call.is_open(), "{capabilities} {accept}: a disconnect is no cancel");
            call.completes("done");
            stage.is_over(1).await;
        }
    }
}

/// A question stays open without its client: it finds it when it comes back (see `resuming`), and it expires.
#[tokio::test(start_paused = true)]
async fn d103_a_question_without_its_client() {
    let stage = Stage::with("timeouts.answer = \"1m\"").await;
    let user = stage.latest().await;
    let stream = stage.asked(&user, &[("k", FORM)], Some(r#""S""#)).await;
    let question = stream.question().await;
    stream.drop_connection().await;
    pass(30_000).await;
    user.answer(&question, ACCEPT).await;
    let second = stage.retried(1).await;
    second.asks(&[("k", FORM)], Some(r#""S2""#));
    pass(90_000).await;
    stage.is_over(2).await;
    stage.nothing_is_left().await;
}

/// Calls of one session are each their own.
#[tokio::test(start_paused = true)]
async fn d89_other_calls_go_on() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    let (first, of_first) = stage.begin_at(&user, &user.old.call("ask", "{}").id("1")).await;
    let (second, of_second) = stage.begin_at(&user, &user.old.call("ask", "{}").id("2")).await;
    user.cancel("1").await;
    first.end().await;
    pass(1000).await;
    assert_eq!((of_first.is_open(), of_second.is_open()), (false, true));
    of_second.completes("done");
    second.result().await;
    let (opening, third) = stage.start(&user, &user.old.call("ask", "{}").id("1")).await;
    third.completes("again");
    opened(opening).await.result().await;
}
