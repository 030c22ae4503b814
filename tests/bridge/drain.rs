//! A14.7: the end of the process, with legacy clients in the middle of something.

use crate::stage::{FORM, ROOTED, ROOTS, Stage};
use crate::support::{End, pass, within};

/// New things are not begun, what runs may come to its end, and streams that have none of their own end at once.
#[tokio::test(start_paused = true)]
async fn a14_7_drain() {
    let stage = Stage::bounded("shutdown_grace = \"60s\"", "").await;
    let user = stage.latest().await;
    let get = user.get().await;
    stage.listens.wait(1).await;
    let (stream, call) = stage.begin(&user).await;
    stage.proxy.drain();
    assert_eq!(get.end().await, End::Clean);
    pass(2000).await;
    assert!(!stream.is_over() && call.is_open(), "the call is not cut");
    call.completes("done");
    stream.result().await;
    within("the end", stage.proxy.finished()).await;
    pass(1000).await;
    assert_eq!((stage.listens.now(), stage.calls.running()), (0, 0));
}

/// A call in the middle of a round may be answered while there is time.
#[tokio::test(start_paused = true)]
async fn a14_7_a_round_may_come_to_its_end() {
    let stage = Stage::bounded("shutdown_grace = \"60s\"", "").await;
    let user = stage.latest().await;
    let stream = stage.asked(&user, &[("k", ROOTS)], Some(r#""S""#)).await;
    let question = stream.question().await;
    stage.proxy.drain();
    pass(2000).await;
    let done = stage.proxy.open(&user.old.answer(&question["id"].to_string(), ROOTED)).await;
    if done.status == 202 && stage.calls.all().len() == 2 {
        stage.retried(1).await.completes("done");
        stream.result().await;
    } else {
        // Or it is told that it is over: in words, under its id.
        let answer = stream.answer().await;
        assert!(answer["error"]["code"] == -32603 || answer["result"]["isError"] == true, "{answer}");
    }
    within("the end", stage.proxy.finished()).await;
}

/// Invariant 1: what is cut off has its error.
#[tokio::test(start_paused = true)]
async fn inv1_cut() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    let get = user.get().await;
    let (running, _call) = stage.begin(&user).await;
    let asked = stage.asked(&user, &[("k", FORM)], Some(r#""S""#)).await;
    asked.question().await;
    stage.proxy.drain();
    pass(100).await;
    stage.proxy.cut();
    for stream in [&running, &asked] {
        let answer = stream.answer().await;
        let failed = answer["error"]["code"] == -32603 || answer["result"]["isError"] == true;
        assert!(failed && answer["id"] == 1, "{answer}");
        assert_eq!(stream.end().await, End::Clean);
    }
    get.end().await;
    within("the end", stage.proxy.finished()).await;
    pass(1000).await;
    assert_eq!((stage.listens.now(), stage.calls.running()), (0, 0));
}

/// A call without its client is no reason to wait for ever, nor is a page that nobody visits.
#[tokio::test(start_paused = true)]
async fn a14_7_what_nobody_waits_for() {
    let stage = Stage::bounded("shutdown_grace = \"10s\"", "").await;
    let user = stage.latest().await;
    let (stream, call) = stage.begin(&user).await;
    stream.drop_connection().await;
    let asked = stage.asked(&user, &[("k", FORM)], Some(r#""S""#)).await;
    asked.question().await;
    asked.drop_connection().await;
    stage.proxy.drain();
    pass(11_000).await;
    stage.proxy.cut();
    within("the end", stage.proxy.finished()).await;
    pass(1000).await;
    assert!(!call.is_open());
    assert_eq!((stage.listens.now(), stage.calls.running()), (0, 0));
}
