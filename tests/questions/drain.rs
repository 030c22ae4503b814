//! A14.7: the end of the process with parked calls. Nobody can come back for them, so the servers are told at once.

use crate::stage::{Stage, asking, done, ends_with};
use crate::support::questions::{ACCEPT, CONSENT, URL, elicit, roots, sample, url_required};
use crate::support::{Gets, LegacyServer, Reply, call, json, pass};

#[tokio::test(start_paused = true)]
async fn a14_7_a_parked_call_is_ended_by_the_drain() {
    let stage = Stage::new().await;
    let questions = [elicit("1", "m"), sample("2", "p"), roots("3")];
    let (round, at) = stage.asked(&asking(1), &questions.each_ref().map(String::as_str)).await;
    let began = tokio::time::Instant::now();
    stage.proxy.drain();
    assert_eq!(stage.elicited("1").await, json!({"action": "cancel"}));
    assert_eq!(stage.refused("2", "sampling/createMessage").await, -1);
    assert_eq!(stage.refused("3", "roots/list").await, -32603);
    stage.is_cancelled_once(&at).await;
    assert!(began.elapsed().as_millis() < 3_000, "at once: {:?}", began.elapsed());
    assert_eq!(stage.metric("mcp_janus_parked_ended_total", &["drained"]), 1.0);
    stage.is_over(1).await;
    let late = stage.proxy.send(&round.answer_all("2", ACCEPT)).await;
    assert!(late.status == 503 || late.code() == -32602, "{} {}", late.status, late.raw);
    pass(1_000).await;
    assert_eq!(stage.answers().len(), 3, "nothing was answered twice");
}

/// Many of them, with some resumed: those run to their end within the grace period.
#[tokio::test(start_paused = true)]
async fn a14_7_a_resumed_call_may_finish() {
    let stage = Stage::new().await;
    let (first, at) = stage.asked(&asking(1), &[&elicit("1", "m")]).await;
    let mut parked = Vec::new();
    for n in 2..20 {
        parked.push(stage.asked(&asking(n), &[&elicit(&n.to_string(), "m")]).await.1);
    }
    let client = stage.run(&first.answer("2", ACCEPT));
    stage.elicited("1").await;
    stage.proxy.drain();
    for (n, call) in (2..20).zip(&parked) {
        assert_eq!(stage.elicited(&n.to_string()).await, json!({"action": "cancel"}));
        stage.is_cancelled_once(call).await;
    }
    at.finish("the end");
    ends_with(&done(client).await, "the end");
    stage.is_over(19).await;
}

/// One that would park now is not asked any more: its client is told that the process ends, its server too.
#[tokio::test(start_paused = true)]
async fn a14_7_a_question_during_the_drain() {
    let stage = Stage::new().await;
    let begun = stage.begin(&asking(1)).await;
    stage.proxy.drain();
    pass(100).await;
    let at = begun.call.clone();
    at.event(&elicit("7", "m"));
    let done = begun.done().await;
    assert_ne!(done.message["result"]["resultType"], "input_required", "nobody could answer: {}", done.raw);
    assert_eq!(done.status, 503, "{}", done.raw);
    assert_eq!(stage.elicited("7").await, json!({"action": "cancel"}));
    stage.is_cancelled_once(&at).await;
    stage.is_over(1).await;
}

/// One that waits for a URL has nothing open at the server.
#[tokio::test(start_paused = true)]
async fn a14_7_a_call_that_waits_for_a_url() {
    let stage = Stage::new().await;
    let begun = stage.begin(&call("pay", "{}").caps(URL)).await;
    begun.call.whole_error(&url_required(&["e1"]));
    let round = begun.round().await;
    stage.proxy.drain();
    pass(1_000).await;
    assert_eq!((stage.parked(), stage.answers().len(), stage.cancelled().len()), (0, 0, 0));
    let late = stage.proxy.send(&round.answer("2", CONSENT)).await;
    assert!(late.status == 503 || late.code() == -32602, "{} {}", late.status, late.raw);
    stage.is_over(1).await;
}

/// The second step: whoever waits in a resumed round is told.
#[tokio::test(start_paused = true)]
async fn a14_7_a_resumed_call_is_cut() {
    let stage = Stage::new().await;
    let (round, at) = stage.asked(&asking(1), &[&elicit("7", "m")]).await;
    let client = stage.run(&round.answer("2", ACCEPT));
    stage.elicited("7").await;
    stage.proxy.drain();
    pass(1_000).await;
    assert!(!client.is_finished());
    stage.proxy.cut();
    let done = done(client).await;
    assert_eq!(done.code(), -32603, "{}", done.raw);
    stage.is_cancelled_once(&at).await;
    stage.is_over(1).await;
}

/// The process does not stay for people who may take minutes to answer.
#[tokio::test(start_paused = true)]
async fn a14_7_parked_calls_do_not_hold_the_process() {
    let stage = Stage::new().await;
    for n in 1..4 {
        stage.asked(&asking(n), &[&elicit(&n.to_string(), "m")]).await;
    }
    let began = tokio::time::Instant::now();
    stage.proxy.drain();
    stage.proxy.finished().await;
    assert!(began.elapsed().as_millis() < 5_000, "{:?}", began.elapsed());
    assert_eq!((stage.answers().len(), stage.cancelled().len()), (3, 3));
}

/// A server that takes no answers holds it no longer than the grace period.
#[tokio::test(start_paused = true)]
async fn a14_7_a_server_that_takes_no_answers() {
    let server = LegacyServer::telling()
        .on("response", |_, reply: Reply| reply.never())
        .on("notifications/cancelled", |_, reply: Reply| reply.never());
    let stage = Stage::of(server, Gets::open(), "shutdown_grace = \"2s\"\n", "").await;
    stage.asked(&asking(1), &[&elicit("7", "m")]).await;
    let began = tokio::time::Instant::now();
    stage.proxy.drain();
    stage.proxy.finished().await;
    assert!(began.elapsed().as_millis() < 5_000, "{:?}", began.elapsed());
}
