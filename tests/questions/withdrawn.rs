//! D45, B1.9: the server takes a question of its own back, or is done without the answer.

use crate::stage::{Stage, asking, done, ends_with, next_round};
use crate::support::calls::withdrawal;
use crate::support::questions::{ACCEPT, CONSENT, ROOTS, SAMPLED, elicit, elicit_url, roots, sample};
use crate::support::{Gets, LegacyServer, pass};

#[tokio::test(start_paused = true)]
async fn d45_legacy_cancels_own() {
    let table = [
        (elicit("7", "m"), ACCEPT),
        (elicit_url("7", "m", "e"), CONSENT),
        (sample("7", "p"), SAMPLED),
        (roots("7"), ROOTS),
    ];
    for (question, answer) in table {
        let stage = Stage::new().await;
        let (round, call) = stage.asked(&asking(1), &[&question]).await;
        call.withdraw("7");
        pass(1000).await;
        let client = stage.run(&round.answer("2", answer));
        pass(1000).await;
        assert_eq!(stage.answers_to("7").len(), 0, "its answer is dropped");
        call.finish("the end");
        ends_with(&done(client).await, "the end");
        stage.is_over(1).await;
        assert_eq!(stage.answers_to("7").len(), 0);
        assert_eq!(stage.cancelled().len(), 0, "the client sees nothing of it, nor is the call cancelled");
    }
}

/// The retry leaves out what it was asked: nothing is open any more, so nothing is asked again.
#[tokio::test(start_paused = true)]
async fn b1_9_what_was_taken_back_is_not_asked_again() {
    let stage = Stage::new().await;
    let (round, call) = stage.asked(&asking(1), &[&elicit("7", "m")]).await;
    call.withdraw("7");
    pass(1000).await;
    let client = stage.run(&round.retry("2", &[]));
    pass(60_000).await;
    assert!(!client.is_finished(), "it waits for the result");
    call.finish("the end");
    ends_with(&done(client).await, "the end");
    stage.is_over(1).await;
}

/// One of two; the other is answered, and only that one.
#[tokio::test(start_paused = true)]
async fn b1_9_one_of_two() {
    let stage = Stage::new().await;
    let (round, call) = stage.asked(&asking(1), &[&elicit("7", "first"), &elicit(r#""7""#, "second")]).await;
    call.withdraw("7");
    pass(1000).await;
    let client = stage.run(&round.answer_all("2", ACCEPT));
    assert_eq!(stage.elicited(r#""7""#).await["action"], "accept");
    call.finish("the end");
    ends_with(&done(client).await, "the end");
    assert_eq!(stage.answers().len(), 1, "{:?}", stage.answers());
}

/// One that is not there, or over already, or the call's own id: nothing happens.
#[tokio::test(start_paused = true)]
async fn b1_9_of_nothing() {
    let stage = Stage::new().await;
    let (round, call) = stage.asked(&asking(1), &[&elicit("7", "m")]).await;
    for id in ["8", r#""7""#, &call.id().to_string(), "null", "{}"] {
        call.withdraw(id);
    }
    call.event(r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#);
    pass(1000).await;
    let client = stage.run(&round.answer("2", ACCEPT));
    assert_eq!(stage.elicited("7").await["action"], "accept");
    call.withdraw("7");
    pass(1000).await;
    call.finish("the end");
    ends_with(&done(client).await, "the end");
}

/// Before the round went out: the client is never asked.
#[tokio::test(start_paused = true)]
async fn b1_9_before_the_client_was_asked() {
    let stage = Stage::new().await;
    let begun = stage.begin(&asking(1)).await;
    begun.call.event(&elicit("7", "m"));
    begun.call.withdraw("7");
    pass(5_000).await;
    assert!(!begun.client.is_finished(), "it waits for the result");
    begun.call.finish("the end");
    ends_with(&begun.done().await, "the end");
    stage.is_over(1).await;
    assert_eq!(stage.answers().len(), 0);
}

/// A server may ask the same anew after that; it is a new question.
#[tokio::test(start_paused = true)]
async fn b1_9_and_asked_anew() {
    let stage = Stage::new().await;
    let (round, call) = stage.asked(&asking(1), &[&elicit("7", "old")]).await;
    call.withdraw("7");
    call.event(&elicit("8", "new"));
    pass(1000).await;
    let retry = round.answer("2", ACCEPT);
    let next = next_round(&retry, stage.run(&retry)).await;
    assert_ne!(next.only(), round.only());
    assert_eq!(next.entry(&next.only())["params"]["message"], "new");
    let client = stage.run(&next.answer("3", ACCEPT));
    stage.elicited("8").await;
    call.finish("the end");
    ends_with(&done(client).await, "the end");
    assert_eq!(stage.answers().len(), 1);
}

/// The question came on the GET stream, and so does its withdrawal.
#[tokio::test(start_paused = true)]
async fn b1_9_beside_the_calls_stream() {
    let stage = Stage::of(LegacyServer::telling(), Gets::open(), "", "").await;
    let begun = stage.begin(&asking(1)).await;
    let get = stage.gets.wait(1).await;
    get.event(&elicit("7", "m"));
    let (call, round) = (begun.call.clone(), begun.round().await);
    get.event(&withdrawal("7"));
    pass(1000).await;
    let client = stage.run(&round.answer("2", ACCEPT));
    pass(1000).await;
    assert_eq!(stage.answers().len(), 0);
    call.finish("the end");
    ends_with(&done(client).await, "the end");
}

/// The server does not wait for the answer: its result is kept until the client comes for it, and the answer, which
/// nobody waits for, goes nowhere (invariant 1).
#[tokio::test(start_paused = true)]
async fn b1_9_the_server_finishes_without_the_answer() {
    for answered in [true, false] {
        let stage = Stage::new().await;
        let (round, call) = stage.asked(&asking(1), &[&elicit("7", "m")]).await;
        call.finish("gave up waiting");
        pass(60_000).await;
        let retry = if answered { round.answer("2", ACCEPT) } else { round.retry("2", &[]) };
        ends_with(&stage.proxy.send(&retry).await, "gave up waiting");
        pass(1000).await;
        assert_eq!(stage.answers().iter().filter(|answer| answer["result"]["action"] == "accept").count(), 0);
        assert_eq!(stage.cancelled().len(), 0, "it is over at the server");
        stage.is_over(1).await;
        stage.nothing_is_left().await;
    }
}

/// C46: the server's own request times out meanwhile, and the call fails of it.
#[tokio::test(start_paused = true)]
async fn c46_the_servers_question_times_out() {
    let stage = Stage::new().await;
    let (round, call) = stage.asked(&asking(1), &[&elicit("7", "m")]).await;
    pass(30_000).await;
    call.withdraw("7");
    call.error(r#"{"code":-32001,"message":"Request timed out"}"#);
    pass(10_000).await;
    let done = stage.proxy.send(&round.answer("2", ACCEPT)).await;
    done.is_error(200, -32001);
    assert_eq!(stage.answers().len(), 0);
    stage.is_over(1).await;
}

/// The same, and the client never comes: the result is dropped in its time, and the server is not cancelled.
#[tokio::test(start_paused = true)]
async fn b1_7_a_result_that_nobody_comes_for() {
    let stage = Stage::new().await;
    let (round, call) = stage.asked(&asking(1), &[&elicit("7", "m")]).await;
    call.finish("gave up waiting");
    pass(400_000).await;
    stage.is_over(1).await;
    assert_eq!(stage.cancelled().len(), 0);
    stage.refuses(&round.answer("2", ACCEPT)).await;
    stage.nothing_is_left().await;
}

/// A url question is over with the client's consent; what follows is the server's own (B4.2).
#[tokio::test(start_paused = true)]
async fn b4_2_consent_is_forwarded_at_once() {
    let stage = Stage::new().await;
    let (round, call) = stage.asked(&asking(1), &[&elicit_url("7", "go", "e-1")]).await;
    let began = tokio::time::Instant::now();
    let client = stage.run(&round.answer("2", CONSENT));
    assert_eq!(stage.elicited("7").await, crate::support::json!({"action": "accept"}));
    assert!(began.elapsed() < std::time::Duration::from_millis(500), "{:?}", began.elapsed());
    stage.gets.wait(1).await.event(&crate::support::questions::completed("e-1"));
    pass(1000).await;
    call.finish("the end");
    let done = done(client).await;
    ends_with(&done, "the end");
    assert_eq!(done.before.len(), 0, "notifications/elicitation/complete is not leaked");
}
