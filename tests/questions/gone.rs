//! D39, B1.7, B14: clients that never come back, and clients that go away in the middle of a round.

use crate::stage::{PARKED, Stage, asking, done, ends_with};
use crate::support::questions::{ACCEPT, elicit, elicit_url, roots, sample};
use crate::support::{Gets, LegacyServer, Reply, Value, json, list, pass};

/// What the server is told when nobody answers: by kind of question.
fn is_given_up(method: &str, answer: &Value) {
    match method {
        "elicitation/create" => assert_eq!(answer["result"], json!({"action": "cancel"}), "{answer}"),
        "sampling/createMessage" => assert_eq!(answer["error"]["code"], -1, "{answer}"),
        _ => assert_eq!(answer["error"]["code"], -32603, "{answer}"),
    }
}

#[tokio::test(start_paused = true)]
async fn d39_park_ttl() {
    let table = [
        (elicit("7", "m"), "elicitation/create"),
        (elicit_url("7", "m", "e"), "elicitation/create"),
        (sample("7", "p"), "sampling/createMessage"),
        (roots("7"), "roots/list"),
    ];
    for (question, method) in table {
        let stage = Stage::new().await;
        let (round, call) = stage.asked(&asking(1), &[&question]).await;
        pass(299_000).await;
        assert_eq!((stage.parked(), stage.answers().len(), stage.cancelled().len()), (1, 0, 0));
        pass(2_000).await;
        is_given_up(method, &stage.answer("7", method).await);
        stage.is_cancelled_once(&call).await;
        stage.is_over(1).await;
        assert_eq!(stage.metric("mcp_janus_parked_ended_total", &["expired"]), 1.0);
        stage.refuses(&round.answer("2", ACCEPT)).await;
        stage.nothing_is_left().await;
        assert!(!call.is_open());
    }
}

/// B1.7 for all open questions of one call, the ones not told yet included; the time is a setting.
#[tokio::test(start_paused = true)]
async fn b1_7_every_open_question_is_answered() {
    let stage = Stage::with("[upstream.up.timeouts]\nanswer = \"10s\"\n").await;
    let questions = [elicit("1", "m"), sample(r#""2""#, "p"), roots("3")];
    let (_, call) = stage.asked(&asking(1), &questions.each_ref().map(String::as_str)).await;
    call.event(&elicit("4", "after the round"));
    pass(11_000).await;
    for (id, method) in [
        ("1", "elicitation/create"),
        (r#""2""#, "sampling/createMessage"),
        ("3", "roots/list"),
        ("4", "elicitation/create"),
    ] {
        is_given_up(method, &stage.answer(id, method).await);
    }
    stage.is_cancelled_once(&call).await;
    stage.is_over(1).await;
}

/// A server that does not take the answers in the client's place is told of the cancellation all the same.
#[tokio::test(start_paused = true)]
async fn b1_7_the_cancellation_does_not_hang_on_the_answers() {
    for deaf in [true, false] {
        let server = LegacyServer::telling().on("response", move |_, reply: Reply| async move {
            if deaf { reply.never().await } else { reply.empty(500).await }
        });
        let stage = Stage::of(server, Gets::open(), "", "").await;
        let questions = [elicit("1", "m"), sample(r#""2""#, "p")];
        let (_, call) = stage.asked(&asking(1), &questions.each_ref().map(String::as_str)).await;
        pass(301_000).await;
        pass(31_000).await;
        stage.is_cancelled_once(&call).await;
        assert_eq!(stage.answers().len(), 2, "each once");
    }
}

/// Each round has the whole time; answering one question in time keeps the call.
#[tokio::test(start_paused = true)]
async fn b1_7_the_time_begins_anew_with_each_round() {
    let stage = Stage::new().await;
    let (mut round, call) = stage.asked(&asking(1), &[&elicit("0", "q")]).await;
    for n in 1..4 {
        pass(240_000).await;
        let retry = round.answer(&format!("{}", n + 1), ACCEPT);
        let client = stage.run(&retry);
        stage.elicited(&(n - 1).to_string()).await;
        call.event(&elicit(&n.to_string(), "q"));
        round = crate::stage::next_round(&retry, client).await;
    }
    let client = stage.run(&round.answer("9", ACCEPT));
    stage.elicited("3").await;
    call.finish("the end");
    ends_with(&done(client).await, "the end");
    stage.is_over(1).await;
}

/// D39: the place of the one that was given up is free again.
#[tokio::test(start_paused = true)]
async fn d39_the_slot_is_freed() {
    let stage = Stage::bounded("[limits]\nparked = 1\n", "").await;
    let (_, _call) = stage.asked(&asking(1), &[&elicit("7", "m")]).await;
    pass(301_000).await;
    assert_eq!(stage.metric(PARKED, &[]), 0.0);
    let (round, call) = stage.asked(&asking(2), &[&elicit("8", "m")]).await;
    let client = stage.run(&round.answer("2", ACCEPT));
    stage.elicited("8").await;
    call.finish("the end");
    ends_with(&done(client).await, "the end");
    stage.is_over(2).await;
}

/// B14, A12.19: gone before anything was asked.
#[tokio::test(start_paused = true)]
async fn b14_gone_before_the_first_question() {
    let stage = Stage::new().await;
    let call = stage.begin(&asking(1)).await.leave().await;
    stage.is_cancelled_once(&call).await;
    // A question that comes all the same is no one's; the session lives.
    stage.gets.wait(1).await.event(&elicit("7", "late"));
    pass(20_000).await;
    assert_ne!(stage.elicited("7").await["action"], "accept");
    stage.proxy.send(&list("tools/list").caps(crate::support::questions::ALL)).await.result();
    stage.is_over(1).await;
    stage.nothing_is_left().await;
}

/// Gone in the quiet time in which the proxy waits for more questions.
#[tokio::test(start_paused = true)]
async fn b14_gone_while_the_round_is_collected() {
    let stage = Stage::with("[upstream.up.timeouts]\ngather = \"900ms\"\n").await;
    let begun = stage.begin(&asking(1)).await;
    begun.call.event(&elicit("7", "m"));
    pass(100).await;
    let call = begun.leave().await;
    stage.is_cancelled_once(&call).await;
    stage.is_over(1).await;
    assert!(stage.answers_to("7").len() <= 1);
    stage.nothing_is_left().await;
}

/// Between the rounds nothing is open that could be closed: only the time ends it (B14).
#[tokio::test(start_paused = true)]
async fn b14_between_the_rounds_nobody_needs_to_be_there() {
    let stage = Stage::new().await;
    let (round, call) = stage.asked(&asking(1), &[&elicit("7", "m")]).await;
    pass(200_000).await;
    assert!(call.is_open() && stage.cancelled().is_empty());
    let client = stage.run(&round.answer("2", ACCEPT));
    stage.elicited("7").await;
    call.finish("the end");
    ends_with(&done(client).await, "the end");
}

/// Gone after its answer went to the server: the call is cancelled, once, and its state is worth nothing any more.
#[tokio::test(start_paused = true)]
async fn b14_gone_in_a_resumed_round() {
    let stage = Stage::new().await;
    let (round, call) = stage.asked(&asking(1), &[&elicit("7", "m")]).await;
    let client = stage.run(&round.answer("2", ACCEPT));
    stage.elicited("7").await;
    client.abort();
    stage.is_cancelled_once(&call).await;
    stage.is_over(1).await;
    stage.refuses(&round.answer("3", ACCEPT)).await;
    assert_eq!(stage.answers().len(), 1);
    stage.nothing_is_left().await;
}

/// The same with a question open that the client has not seen yet.
#[tokio::test(start_paused = true)]
async fn b14_gone_in_a_resumed_round_that_asks() {
    let stage = Stage::with("[upstream.up.timeouts]\ngather = \"900ms\"\n").await;
    let (round, call) = stage.asked(&asking(1), &[&elicit("7", "m")]).await;
    let client = stage.run(&round.answer("2", ACCEPT));
    stage.elicited("7").await;
    call.event(&elicit("8", "next"));
    pass(100).await;
    client.abort();
    stage.is_cancelled_once(&call).await;
    stage.is_over(1).await;
    assert!(stage.answers_to("8").len() <= 1);
    stage.nothing_is_left().await;
}

/// A slow reader that goes away while it is being asked by way of an event stream.
#[tokio::test(start_paused = true)]
async fn b14_gone_after_progress_and_before_the_question() {
    let stage = Stage::new().await;
    let begun = stage.begin(&asking(1).meta("progressToken", "1")).await;
    begun.call.progress(1);
    pass(1000).await;
    let call = begun.leave().await;
    stage.is_cancelled_once(&call).await;
    stage.is_over(1).await;
}

/// A parked call keeps its session: neither idleness nor another caller's need for room closes it.
#[tokio::test(start_paused = true)]
async fn b1_1_the_session_of_a_parked_call_is_in_use() {
    let stage = Stage::with("[upstream.up.session]\nidle = \"20s\"\nmax = 1\n").await;
    let (round, call) = stage.asked(&asking(1).bearer("alice"), &[&elicit("7", "m")]).await;
    pass(100_000).await;
    let bob = stage.run(&list("tools/list").bearer("bob"));
    pass(60_000).await;
    assert!(!stage.server.deleted().contains(&call.session()), "{:?}", stage.server.deleted());
    let client = stage.run(&round.answer("2", ACCEPT));
    stage.elicited("7").await;
    call.finish("the end");
    ends_with(&done(client).await, "the end");
    done(bob).await;
    stage.nothing_is_left().await;
}
