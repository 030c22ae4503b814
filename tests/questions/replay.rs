//! D37, B1.6: a state that is presented twice. The server is answered once, whatever the client does.

use crate::stage::{Stage, asking, done, ends_with, next_round};
use crate::support::questions::{ACCEPT, DECLINE, elicit};
use crate::support::{Ask, Call, Done, Round, Value, pass};

/// A call whose retry, `id`, has been answered for good.
async fn finished(stage: &Stage, ask: &Ask, text: &str) -> (Round, Ask) {
    let (round, call) = stage.asked(ask, &[&elicit("7", "m")]).await;
    let retry = round.answer("2", ACCEPT);
    let client = stage.run(&retry);
    stage.elicited("7").await;
    call.finish(text);
    ends_with(&done(client).await, text);
    (round, retry)
}

/// The result with its id taken off.
fn result(done: &Done) -> Value {
    done.result().clone()
}

#[tokio::test(start_paused = true)]
async fn d37_state_double_use() {
    for gap in [0, 1, 50] {
        let stage = Stage::new().await;
        let (round, call) = stage.asked(&asking(1), &[&elicit("7", "m")]).await;
        let first = stage.run(&round.answer("2", ACCEPT));
        pass(gap).await;
        let second = stage.run(&round.answer("3", ACCEPT));
        stage.elicited("7").await;
        pass(2000).await;
        call.finish("the end");
        let (first, second) = (done(first).await, done(second).await);
        // One of them has won; the other has the same, or the refusal.
        let won = [&first, &second].into_iter().filter(|done| done.message.get("result").is_some()).count();
        assert!(won >= 1, "{} and {}", first.raw, second.raw);
        for done in [&first, &second] {
            match done.message.get("result") {
                Some(_) => ends_with(done, "the end"),
                None => Stage::is_state_refused(done),
            }
        }
        assert_eq!(stage.answers().len(), 1, "{:?}", stage.answers());
        stage.is_over(1).await;
    }
}

/// While the first use runs, another with another answer changes nothing.
#[tokio::test(start_paused = true)]
async fn b1_6_a_state_in_use() {
    let stage = Stage::new().await;
    let (round, call) = stage.asked(&asking(1), &[&elicit("7", "m")]).await;
    let first = stage.run(&round.answer("2", ACCEPT));
    stage.elicited("7").await;
    stage.refuses(&round.answer("3", DECLINE)).await;
    assert_eq!(stage.metric(crate::stage::STATES_REFUSED, &["used"]), 1.0);
    call.finish("the end");
    ends_with(&done(first).await, "the end");
    assert_eq!(stage.elicited("7").await["action"], "accept");
    stage.is_over(1).await;
}

#[tokio::test(start_paused = true)]
async fn b1_6_the_last_answer_is_kept_for_a_client_that_lost_it() {
    let stage = Stage::new().await;
    let (round, retry) = finished(&stage, &asking(1), "the end").await;
    for id in ["3", r#""four""#] {
        pass(5_000).await;
        let again = stage.unmoved(stage.proxy.send(&retry.clone().id(id))).await;
        ends_with(&again, "the end");
        assert_eq!(again.message["id"].to_string(), id);
    }
    // Others than the caller, and other requests, get nothing of it.
    stage.refuses(&retry.clone().bearer("bob")).await;
    let other = crate::support::rounds::retry(&asking(2), "5", "{}", round.state());
    stage.refuses(&other).await;
    pass(30_000).await;
    stage.refuses(&retry).await;
    stage.is_over(1).await;
    stage.nothing_is_left().await;
}

#[tokio::test(start_paused = true)]
async fn b1_6_an_error_is_an_answer_too() {
    let stage = Stage::new().await;
    let (round, call) = stage.asked(&asking(1), &[&elicit("7", "m")]).await;
    let retry = round.answer("2", ACCEPT);
    let client = stage.run(&retry);
    stage.elicited("7").await;
    call.error(r#"{"code":1234,"message":"no luck","data":{"k":1.50}}"#);
    let first = done(client).await;
    first.is_error(200, 1234);
    let again = stage.unmoved(stage.proxy.send(&retry.id("3"))).await;
    assert_eq!(again.message["error"], first.message["error"]);
    stage.is_over(1).await;
}

#[tokio::test(start_paused = true)]
async fn b1_6_nothing_is_kept_where_the_setting_says_so() {
    let stage = Stage::with("[upstream.up.timeouts]\nreplay = \"0s\"\n").await;
    let (_, retry) = finished(&stage, &asking(1), "the end").await;
    pass(1).await;
    stage.refuses(&retry).await;
    stage.is_over(1).await;
}

/// The answer that was lost asked the next question: asked again, or refused; never answered twice.
#[tokio::test(start_paused = true)]
async fn b1_6_a_round_that_was_lost() {
    let stage = Stage::new().await;
    let (round, call) = stage.asked(&asking(1), &[&elicit("7", "first")]).await;
    let retry = round.answer("2", ACCEPT);
    let client = stage.run(&retry);
    stage.elicited("7").await;
    call.event(&elicit("8", "second"));
    let lost = next_round(&retry, client).await;
    let again = retry.clone().id("3");
    let repeated = stage.unmoved(stage.proxy.send(&again)).await;
    let next = if repeated.message.get("result").is_some() {
        let repeated = Round::of(&again, repeated);
        assert_eq!(repeated.entries(), lost.entries(), "the same questions under the same keys");
        repeated
    } else {
        Stage::is_state_refused(&repeated);
        lost
    };
    let client = stage.run(&next.answer("4", DECLINE));
    assert_eq!(stage.elicited("8").await["action"], "decline");
    call.finish("the end");
    ends_with(&done(client).await, "the end");
    assert_eq!(stage.answers().len(), 2, "{:?}", stage.answers());
    stage.is_over(1).await;
}

/// An old round's state, when the call is two rounds further or over.
#[tokio::test(start_paused = true)]
async fn b1_6_old_states_are_used_up() {
    let stage = Stage::new().await;
    let (round, call) = stage.asked(&asking(1), &[&elicit("1", "q1")]).await;
    let mut rounds = vec![round];
    for n in 2..4 {
        let retry = rounds.last().unwrap().answer(&n.to_string(), ACCEPT);
        let client = stage.run(&retry);
        stage.elicited(&(n - 1).to_string()).await;
        call.event(&elicit(&n.to_string(), &format!("q{n}")));
        rounds.push(next_round(&retry, client).await);
    }
    stage.refuses(&rounds[0].answer("20", DECLINE)).await;
    let client = stage.run(&rounds[2].answer("21", ACCEPT));
    stage.elicited("3").await;
    call.finish("the end");
    ends_with(&done(client).await, "the end");
    for old in [&rounds[0], &rounds[1]] {
        let repeated = stage.unmoved(stage.proxy.send(&old.answer("22", DECLINE))).await;
        Stage::is_state_refused(&repeated);
    }
    assert_eq!(stage.answers().len(), 3);
    stage.is_over(1).await;
}

/// Invariant 5: what is kept is bounded in bytes; what is not kept any more is refused and never run again.
#[tokio::test(start_paused = true)]
async fn inv5_what_is_kept_is_bounded() {
    let stage = Stage::bounded("[limits]\nreplay_bytes = \"64KiB\"\n", "").await;
    let text = "x".repeat(40 * 1024);
    let mut retries = Vec::new();
    for n in 1..4 {
        let (round, call): (_, std::sync::Arc<Call>) =
            stage.asked(&asking(n), &[&elicit(&n.to_string(), "m")]).await;
        let retry = round.answer("2", ACCEPT);
        let client = stage.run(&retry);
        stage.elicited(&n.to_string()).await;
        call.finish(&text);
        ends_with(&done(client).await, &text);
        retries.push(retry);
    }
    let mut kept = 0;
    for retry in &retries {
        let again = stage.unmoved(stage.proxy.send(retry)).await;
        match again.message.get("result") {
            Some(_) => kept += usize::from(result(&again)["content"][0]["text"] == text),
            None => Stage::is_state_refused(&again),
        }
    }
    assert!(kept <= 1, "{kept} answers of 40 KiB within 64 KiB");
    stage.is_over(3).await;
}

/// Nor does one that is too large to be kept drive the others out.
#[tokio::test(start_paused = true)]
async fn inv5_a_large_answer_drives_no_other_out() {
    let stage = Stage::bounded("[limits]\nreplay_bytes = \"16KiB\"\n", "").await;
    let (_, alices) = finished(&stage, &asking(1).bearer("alice"), "the end").await;
    let (round, call) = stage.asked(&asking(2).bearer("bob"), &[&elicit("8", "m")]).await;
    let bobs = round.answer("2", ACCEPT);
    let client = stage.run(&bobs);
    stage.elicited("8").await;
    call.finish(&"x".repeat(40 * 1024));
    done(client).await.result();
    stage.refuses(&bobs).await;
    ends_with(&stage.unmoved(stage.proxy.send(&alices)).await, "the end");
    stage.is_over(2).await;
}

/// The same on several threads and in real time: one of many uses wins.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn d37_on_several_threads() {
    let stage = Stage::with("[upstream.up.timeouts]\ngather = \"1ms\"\n").await;
    for n in 1..41 {
        let id = n.to_string();
        let (round, call) = stage.asked(&asking(n), &[&elicit(&id, "m")]).await;
        let uses: Vec<_> = (0..6).map(|other| stage.run(&round.answer(&other.to_string(), ACCEPT))).collect();
        stage.elicited(&id).await;
        call.finish("the end");
        let mut won = 0;
        for one in uses {
            let done = done(one).await;
            if done.message.get("result").is_some() {
                ends_with(&done, "the end");
                won += 1;
            } else {
                Stage::is_state_refused(&done);
            }
        }
        assert!(won >= 1);
        assert_eq!(stage.answers_to(&id).len(), 1);
    }
    assert_eq!(stage.calls.all().len(), 40);
}
