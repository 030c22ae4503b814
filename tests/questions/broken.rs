//! D104, C30, C02 and invariant 3 for parked calls: the server or its stream goes away while the client is asked.

use crate::stage::{Stage, asking, done, ends_with, next_round};
use crate::support::questions::{ACCEPT, ALL, elicit};
use crate::support::{Begin, Done, Gets, LegacyServer, ModernServer, Reply, list, pass};

/// An error of the way to the server, under the caller's id.
#[track_caller]
fn is_lost(done: &Done) {
    assert_eq!(done.code(), -32603, "{}", done.raw);
    assert!([200, 502, 504].contains(&done.status), "{} {}", done.status, done.raw);
}

#[tokio::test(start_paused = true)]
async fn c30_the_server_dies_while_the_call_is_parked() {
    for reset in [false, true] {
        let stage = Stage::new().await;
        let (round, at) = stage.asked(&asking(1), &[&elicit("7", "m")]).await;
        if reset {
            at.reset()
        } else {
            at.cut()
        }
        pass(10_000).await;
        is_lost(&stage.proxy.send(&round.answer("2", ACCEPT)).await);
        pass(1_000).await;
        assert_eq!(stage.up.posts("tools/call").len(), 1, "never again");
        stage.is_over(1).await;
        // The upstream itself is well.
        stage.proxy.send(&list("tools/list").caps(ALL)).await.result();
        stage.nothing_is_left().await;
    }
}

/// The stream ends without the answer and cannot be taken up again.
#[tokio::test(start_paused = true)]
async fn c30_the_stream_ends_while_the_call_is_parked() {
    let stage = Stage::new().await;
    let (round, at) = stage.asked(&asking(1), &[&elicit("7", "m")]).await;
    at.end();
    pass(10_000).await;
    is_lost(&stage.proxy.send(&round.answer("2", ACCEPT)).await);
    stage.is_over(1).await;
}

/// The same after the answer: the tool may have run.
#[tokio::test(start_paused = true)]
async fn c30_the_server_dies_after_it_was_answered() {
    let stage = Stage::new().await;
    let (round, at) = stage.asked(&asking(1), &[&elicit("7", "m")]).await;
    let client = stage.run(&round.answer("2", ACCEPT));
    stage.elicited("7").await;
    at.reset();
    is_lost(&done(client).await);
    stage.refuses_or_repeats(&round).await;
    assert_eq!((stage.up.posts("tools/call").len(), stage.answers().len()), (1, 1));
    stage.is_over(1).await;
}

/// Nobody comes for the call that died: its place is freed all the same.
#[tokio::test(start_paused = true)]
async fn b1_7_a_dead_call_that_nobody_comes_for() {
    let stage = Stage::new().await;
    let (round, at) = stage.asked(&asking(1), &[&elicit("7", "m")]).await;
    at.reset();
    pass(400_000).await;
    assert_eq!(stage.parked(), 0);
    stage.refuses(&round.answer("2", ACCEPT)).await;
    stage.nothing_is_left().await;
}

/// A server of 2025-11-25 that saves connections: it closes the stream of the parked call and goes on by GET (D104).
#[tokio::test(start_paused = true)]
async fn d104_the_stream_is_taken_up_again_while_the_call_is_parked() {
    let stage = Stage::of(LegacyServer::telling(), Gets::open(), "", "").await;
    let begun = stage.begin(&asking(1)).await;
    let at = begun.call.clone();
    at.bytes(b"id: p-1\nretry: 200\ndata: \n\n");
    at.bytes(format!("id: p-2\ndata: {}\n\n", elicit("7", "m")).as_bytes());
    let round = begun.round().await;
    at.end();
    let resumed = stage.gets.after("p-2").await;
    let client = stage.run(&round.answer("2", ACCEPT));
    assert_eq!(stage.elicited("7").await["action"], "accept");
    let result = crate::support::calls::result_of("tools/call", "the end");
    resumed.event(&crate::support::rpc::result_message(&at.seen.id(), &result));
    ends_with(&done(client).await, "the end");
    stage.is_over(1).await;
}

/// The question itself comes on the stream that was taken up again.
#[tokio::test(start_paused = true)]
async fn d104_a_question_on_a_resumed_stream() {
    let stage = Stage::new().await;
    let begun = stage.begin(&asking(1)).await;
    let at = begun.call.clone();
    at.bytes(b"id: p-1\nretry: 200\ndata: \n\n");
    pass(100).await;
    at.end();
    let resumed = stage.gets.after("p-1").await;
    resumed.event(&elicit("7", "m"));
    let round = begun.round().await;
    let client = stage.run(&round.answer("2", ACCEPT));
    assert_eq!(stage.elicited("7").await["action"], "accept");
    let result = crate::support::calls::result_of("tools/call", "the end");
    resumed.event(&crate::support::rpc::result_message(&at.seen.id(), &result));
    ends_with(&done(client).await, "the end");
    stage.is_over(1).await;
}

/// C02: the session is lost while the call is parked, so its answer is refused: an error, and no second run.
#[tokio::test(start_paused = true)]
async fn c02_the_session_is_lost_while_the_call_is_parked() {
    let stage = Stage::new().await;
    let (round, at) = stage.asked(&asking(1), &[&elicit("7", "m")]).await;
    stage.server.forget_sessions();
    at.cut();
    pass(1_000).await;
    is_lost(&stage.proxy.send(&round.answer("2", ACCEPT)).await);
    pass(60_000).await;
    assert_eq!(stage.up.posts("tools/call").len(), 1);
    stage.proxy.send(&list("tools/list").caps(ALL)).await.result();
    stage.is_over(1).await;
}

/// The same, and the stream of the call stays open: the client does not wait for ever.
#[tokio::test(start_paused = true)]
async fn c02_the_answer_is_refused_by_the_session_gate() {
    let stage = Stage::new().await;
    let (round, _at) = stage.asked(&asking(1), &[&elicit("7", "m")]).await;
    stage.server.forget_sessions();
    is_lost(&stage.proxy.send(&round.answer("2", ACCEPT)).await);
    assert_eq!(stage.up.posts("tools/call").len(), 1);
    stage.is_over(1).await;
}

/// A server that takes the answer only after a while, or with another status than 202.
#[tokio::test(start_paused = true)]
async fn a12_2_the_answer_is_taken_in_many_ways() {
    for (status, millis) in [(200, 0), (204, 0), (202, 5_000)] {
        let server = LegacyServer::telling().on("response", move |_, reply: Reply| async move {
            pass(millis).await;
            reply.empty(status).await;
        });
        let stage = Stage::of(server, Gets::open(), "", "").await;
        let (round, at) = stage.asked(&asking(1), &[&elicit("7", "m")]).await;
        let client = stage.run(&round.answer("2", ACCEPT));
        stage.elicited("7").await;
        pass(6_000).await;
        at.finish("the end");
        ends_with(&done(client).await, "the end");
        stage.is_over(1).await;
    }
}

/// B5: no GET stream at all is fine for a server that asks on its calls' streams.
#[tokio::test(start_paused = true)]
async fn b5_a_server_without_a_get_stream() {
    let gets = Gets::script(|_| Begin::Empty(405));
    let stage = Stage::of(LegacyServer::telling(), gets, "", "").await;
    let (round, at) = stage.asked(&asking(1), &[&elicit("7", "m")]).await;
    let retry = round.answer("2", ACCEPT);
    let client = stage.run(&retry);
    stage.elicited("7").await;
    at.event(&elicit("8", "n"));
    let next = next_round(&retry, client).await;
    let client = stage.run(&next.answer("3", ACCEPT));
    stage.elicited("8").await;
    at.finish("the end");
    ends_with(&done(client).await, "the end");
    stage.is_over(1).await;
    pass(120_000).await;
    assert!(stage.gets.all().len() <= 2, "405 is its answer: {}", stage.gets.all().len());
}

/// A server without sessions asks as well (C04).
#[tokio::test(start_paused = true)]
async fn c04_a_server_without_sessions() {
    let stage = Stage::of(LegacyServer::telling().sessionless(), Gets::open(), "", "").await;
    let (round, at) = stage.asked(&asking(1), &[&elicit("7", "m")]).await;
    let client = stage.run(&round.answer("2", ACCEPT));
    stage.elicited("7").await;
    at.finish("the end");
    ends_with(&done(client).await, "the end");
    stage.is_over(1).await;
}

/// The server is replaced by a modern one while the call is parked: the state is no word for that one to start from.
#[tokio::test(start_paused = true)]
async fn b1_2_another_generation_in_its_place() {
    let stage = Stage::new().await;
    let (round, at) = stage.asked(&asking(1), &[&elicit("7", "m")]).await;
    let modern = ModernServer::new().start_unchecked(&stage.net);
    at.cut();
    pass(1_000).await;
    // The proxy finds out by a call that may be sent again.
    for _ in 0..2 {
        stage.proxy.send(&list("tools/list").caps(ALL)).await;
    }
    let done = stage.proxy.send(&round.answer("2", ACCEPT)).await;
    assert!(done.message.get("error").is_some(), "{}", done.raw);
    assert_eq!(modern.posts("tools/call").len(), 0, "{}", done.raw);
}
