//! D48, B5 (start gently, learn): when calls of one session wait for each other, and when they do not.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::stage::{QUESTIONS_REFUSED, Stage, asking, done, ends_with, next_round};
use crate::support::questions::{ACCEPT, ALL, elicit};
use crate::support::{Done, Round, list, pass};

/// The calls of these numbers, sent at once.
fn send(stage: &Stage, numbers: std::ops::Range<usize>) -> Vec<JoinHandle<Done>> {
    numbers.map(|n| stage.run(&asking(n))).collect()
}

/// When each call came, after `began`, in milliseconds.
async fn arrivals(stage: &Stage, numbers: std::ops::Range<usize>, began: Instant) -> Vec<u64> {
    let mut all = Vec::new();
    for n in numbers {
        let at = stage.calls.marked(n as i64).await.at;
        all.push(at.duration_since(began).as_millis() as u64);
    }
    all.sort_unstable();
    all
}

/// An upstream that has asked beside a call once.
async fn learned() -> Stage {
    let stage = Stage::new().await;
    let begun = stage.begin(&asking(100)).await;
    stage.gets.wait(1).await.event(&elicit("100", "m"));
    let (at, round) = (begun.call.clone(), begun.round().await);
    let client = stage.run(&round.answer("2", ACCEPT));
    stage.elicited("100").await;
    at.finish("the end");
    ends_with(&done(client).await, "the end");
    stage
}

#[tokio::test(start_paused = true)]
async fn d48_then_one_at_a_time() {
    let stage = learned().await;
    let clients = send(&stage, 1..4);
    for n in 2..5 {
        pass(2_000).await;
        assert_eq!((stage.calls.all().len(), stage.calls.running()), (n, 1), "one at a time");
        // Lists run beside it.
        stage.proxy.send(&list("tools/list").caps(ALL)).await.result();
        stage.calls.all()[n - 1].finish("done");
    }
    for client in clients {
        ends_with(&done(client).await, "done");
    }
}

/// D47 for an upstream that has learned: what declares nothing cannot be asked, and does not wait.
#[tokio::test(start_paused = true)]
async fn d47_calls_without_capabilities_do_not_wait() {
    let stage = learned().await;
    let clients: Vec<_> = (1..4).map(|n| stage.run(&asking(n).caps("{}"))).collect();
    let took = arrivals(&stage, 1..4, Instant::now()).await;
    assert!(took.iter().all(|took| *took < 200), "{took:?}");
    stage.calls.all().iter().for_each(|call| call.finish("done"));
    for client in clients {
        ends_with(&done(client).await, "done");
    }
}

/// A parked call does not hold the place of the one that may run.
#[tokio::test(start_paused = true)]
async fn b5_a_parked_call_holds_no_place() {
    let stage = learned().await;
    let first = stage.begin(&asking(1)).await;
    let second = stage.run(&asking(2));
    pass(2_000).await;
    assert_eq!(stage.calls.running(), 1);
    stage.gets.wait(1).await.event(&elicit("7", "one"));
    let (at, round) = (first.call.clone(), first.round().await);
    let other = stage.calls.marked(2).await;
    assert_eq!(stage.calls.running(), 2, "the parked one and the next");
    other.finish("two");
    ends_with(&done(second).await, "two");
    let client = stage.run(&round.answer("2", ACCEPT));
    stage.elicited("7").await;
    at.finish("one");
    ends_with(&done(client).await, "one");
}

/// Two calls of one session that each ask twice, both taken up at once: the one that was answered second goes on when the
/// other has asked again, so that no second question can be of either (C45).
#[tokio::test(start_paused = true)]
async fn b5_calls_that_are_taken_up_take_turns() {
    let stage = learned().await;
    let (mut calls, mut rounds) = (Vec::new(), Vec::new());
    for (n, id) in [(1, "11"), (2, "21")] {
        let begun = stage.begin(&asking(n)).await;
        stage.gets.wait(1).await.event(&elicit(id, &format!("first of {n}")));
        calls.push(begun.call.clone());
        rounds.push(begun.round().await);
    }
    let retries: Vec<_> = rounds.iter().map(|round| round.answer("2", ACCEPT)).collect();
    let one = stage.run(&retries[0]);
    stage.elicited("11").await;
    let two = stage.run(&retries[1]);
    pass(1_000).await;
    assert!(stage.answers_to("21").is_empty(), "the other one may ask again");
    stage.gets.wait(1).await.event(&elicit("12", "second of 1"));
    let one = next_round(&retries[0], one).await;
    one.key_of("second of 1");
    stage.elicited("21").await;
    stage.gets.wait(1).await.event(&elicit("22", "second of 2"));
    let two = next_round(&retries[1], two).await;
    two.key_of("second of 2");
    for (at, (round, id)) in [(&two, "22"), (&one, "12")].into_iter().enumerate() {
        let client = stage.run(&round.answer("3", ACCEPT));
        stage.elicited(id).await;
        calls[1 - at].finish("done");
        ends_with(&done(client).await, "done");
    }
    assert_eq!(stage.metric(QUESTIONS_REFUSED, &[]), 0.0);
}

/// A call that runs for long does not keep the answers of another for ever: what is asked then is held until it is clear.
#[tokio::test(start_paused = true)]
async fn b5_a_turn_is_waited_for_as_long_as_a_question_is_held() {
    let stage = learned().await;
    let first = stage.begin(&asking(1)).await;
    stage.gets.wait(1).await.event(&elicit("11", "first"));
    let (at, round) = (first.call.clone(), first.round().await);
    let long = stage.begin(&asking(2)).await;
    let retry = round.answer("2", ACCEPT);
    let client = stage.run(&retry);
    pass(9_000).await;
    assert!(stage.answers_to("11").is_empty());
    pass(2_000).await;
    stage.elicited("11").await;
    stage.gets.wait(1).await.event(&elicit("12", "second"));
    pass(1_000).await;
    long.call.finish("long");
    ends_with(&long.done().await, "long");
    let round = next_round(&retry, client).await;
    round.key_of("second");
    let client = stage.run(&round.answer("3", ACCEPT));
    stage.elicited("12").await;
    at.finish("first");
    ends_with(&done(client).await, "first");
}

/// The server has taken its only question back while its client was away: nothing is left to wait for a turn for, and what
/// it asks next reaches the client at once.
#[tokio::test(start_paused = true)]
async fn b1_9_a_question_taken_back_holds_up_nobody() {
    let stage = learned().await;
    let first = stage.begin(&asking(1)).await;
    stage.gets.wait(1).await.event(&elicit("11", "first"));
    let (at, round) = (first.call.clone(), first.round().await);
    at.withdraw("11");
    pass(100).await;
    let began = Instant::now();
    let retry = round.answer("2", ACCEPT);
    let client = stage.run(&retry);
    pass(100).await;
    at.event(&elicit("12", "second"));
    next_round(&retry, client).await.key_of("second");
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert!(stage.answers_to("11").is_empty(), "D45");
}

/// The client goes away before its answers had their turn: the call is given up, and its question answered in its place.
#[tokio::test(start_paused = true)]
async fn b14_gone_before_its_answers_had_their_turn() {
    let stage = learned().await;
    let first = stage.begin(&asking(1)).await;
    stage.gets.wait(1).await.event(&elicit("11", "first"));
    let (at, round) = (first.call.clone(), first.round().await);
    let other = stage.begin(&asking(2)).await;
    let client = stage.run(&round.answer("2", ACCEPT));
    pass(1_000).await;
    client.abort();
    stage.is_cancelled_once(&at).await;
    assert_eq!(stage.elicited("11").await["action"], "cancel");
    other.call.finish("other");
    ends_with(&other.done().await, "other");
}

/// Others than the session's own calls do not wait: another principal has another session.
#[tokio::test(start_paused = true)]
async fn b5_sessions_do_not_wait_for_each_other() {
    let stage = learned().await;
    let _first = stage.begin(&asking(1)).await;
    let second = stage.begin(&asking(2).bearer("bob")).await;
    second.call.finish("two");
    ends_with(&second.done().await, "two");
}

/// The caller that waits for its turn goes away: its call never reaches the server.
#[tokio::test(start_paused = true)]
async fn b14_gone_while_it_waits_for_its_turn() {
    let stage = learned().await;
    let first = stage.begin(&asking(1)).await;
    let second = stage.run(&asking(2));
    let third = stage.run(&asking(3));
    pass(2_000).await;
    second.abort();
    pass(2_000).await;
    first.call.finish("one");
    ends_with(&first.done().await, "one");
    stage.calls.marked(3).await.finish("three");
    ends_with(&done(third).await, "three");
    stage.is_over(3).await;
    assert_eq!(stage.cancelled().len(), 0, "nothing to cancel");
}

/// Start gently: the next call waits until the one before has run for 250 ms.
#[tokio::test(start_paused = true)]
async fn b5_start_gently() {
    let stage = Stage::new().await;
    stage.proxy.send(&list("tools/list").caps(ALL)).await.result();
    let began = Instant::now();
    let clients = send(&stage, 1..4);
    let took = arrivals(&stage, 1..4, began).await;
    let [first, second, third] = took[..] else { panic!("{took:?}") };
    assert!(first < 100 && (250..400).contains(&second) && (500..750).contains(&third), "{took:?}");
    stage.calls.all().iter().for_each(|call| call.finish("done"));
    for client in clients {
        ends_with(&done(client).await, "done");
    }
}

/// Start gently: or until it has finished, or asked.
#[tokio::test(start_paused = true)]
async fn b5_start_gently_ends_with_a_result_or_a_question() {
    let stage = Stage::new().await;
    stage.proxy.send(&list("tools/list").caps(ALL)).await.result();
    let began = Instant::now();
    let mut clients = send(&stage, 1..3);
    let first = stage.calls.wait(1).await;
    pass(50).await;
    first.event(&elicit("7", "m"));
    let second = stage.calls.wait(2).await;
    assert!(began.elapsed() < Duration::from_millis(200), "{:?}", began.elapsed());
    second.finish("done");
    let third = stage.run(&asking(3));
    let at = stage.calls.wait(3).await;
    at.finish("done");
    ends_with(&done(third).await, "done");
    let (one, two) = (done(clients.remove(0)).await, done(clients.remove(0)).await);
    let (asked, other) = if one.raw.contains("input_required") { (one, two) } else { (two, one) };
    ends_with(&other, "done");
    let n = first.argument("n").as_u64().unwrap() as usize;
    let round = Round::of(&asking(n), asked);
    let client = stage.run(&round.answer("2", ACCEPT));
    stage.elicited("7").await;
    first.finish("the end");
    ends_with(&done(client).await, "the end");
}

/// An upstream that asks on the calls' own streams is never serialised.
#[tokio::test(start_paused = true)]
async fn b5_who_asks_on_the_calls_stream_is_never_serialised() {
    let stage = Stage::new().await;
    let (round, at) = stage.asked(&asking(100), &[&elicit("100", "m")]).await;
    let client = stage.run(&round.answer("2", ACCEPT));
    stage.elicited("100").await;
    at.finish("the end");
    ends_with(&done(client).await, "the end");
    let began = Instant::now();
    let clients = send(&stage, 1..9);
    let took = arrivals(&stage, 1..9, began).await;
    assert!(took.iter().all(|took| *took < 200), "{took:?}");
    stage.calls.all().iter().for_each(|call| call.finish("done"));
    for client in clients {
        ends_with(&done(client).await, "done");
    }
}

/// 16 calls without a question have shown the style: from then on nothing waits.
#[tokio::test(start_paused = true)]
async fn b5_sixteen_calls_without_a_question() {
    let stage = Stage::new().await;
    for n in 0..16 {
        let begun = stage.begin(&asking(100 + n)).await;
        begun.call.finish("done");
        ends_with(&begun.done().await, "done");
    }
    let began = Instant::now();
    let clients = send(&stage, 1..9);
    let took = arrivals(&stage, 1..9, began).await;
    assert!(took.iter().all(|took| *took < 200), "{took:?}");
    stage.calls.all().iter().for_each(|call| call.finish("done"));
    for client in clients {
        ends_with(&done(client).await, "done");
    }
    // What is calm may still ask: learned from its first question beside a call.
    let begun = stage.begin(&asking(200)).await;
    stage.gets.wait(1).await.event(&elicit("7", "m"));
    let (at, round) = (begun.call.clone(), begun.round().await);
    let client = stage.run(&round.answer("2", ACCEPT));
    stage.elicited("7").await;
    at.finish("done");
    ends_with(&done(client).await, "done");
    let clients = send(&stage, 301..303);
    pass(5_000).await;
    assert_eq!(stage.calls.running(), 1);
    stage.calls.all().iter().for_each(|call| call.finish("done"));
    pass(1_000).await;
    stage.calls.all().iter().for_each(|call| call.finish("done"));
    for client in clients {
        ends_with(&done(client).await, "done");
    }
}

/// Learned, with room for further sessions instead of a queue.
#[tokio::test(start_paused = true)]
async fn b5_max_per_key() {
    let stage = Stage::with("[upstream.up.session]\nmax_per_key = 2\n").await;
    let begun = stage.begin(&asking(100)).await;
    stage.gets.wait(1).await.event(&elicit("100", "m"));
    let (at, round) = (begun.call.clone(), begun.round().await);
    let client = stage.run(&round.answer("2", ACCEPT));
    stage.elicited("100").await;
    at.finish("the end");
    ends_with(&done(client).await, "the end");
    let clients = send(&stage, 1..4);
    pass(5_000).await;
    let running: Vec<_> = stage.calls.all().into_iter().filter(|call| call.is_open()).collect();
    assert_eq!(running.len(), 2, "two sessions of the key");
    assert_ne!(running[0].session(), running[1].session());
    for _ in 0..3 {
        stage.calls.all().iter().for_each(|call| call.finish("done"));
        pass(1_000).await;
    }
    for client in clients {
        ends_with(&done(client).await, "done");
    }
    stage.nothing_is_left().await;
}

/// Invariant 5: the queue is bounded; one more is refused with an error that says so.
#[tokio::test(start_paused = true)]
async fn inv5_waiting_calls() {
    let stage = Stage::with("[upstream.up.limits]\nwaiting_calls = 2\n").await;
    let begun = stage.begin(&asking(100)).await;
    stage.gets.wait(1).await.event(&elicit("100", "m"));
    let (at, round) = (begun.call.clone(), begun.round().await);
    let client = stage.run(&round.answer("2", ACCEPT));
    stage.elicited("100").await;
    at.finish("the end");
    ends_with(&done(client).await, "the end");
    let mut clients = send(&stage, 1..4);
    pass(1_000).await;
    let refused = stage.proxy.send(&asking(4)).await;
    assert_eq!(refused.status, 503, "{}", refused.raw);
    assert!(refused.raw.contains("limits.waiting_calls"), "{}", refused.raw);
    for _ in 0..3 {
        stage.calls.all().iter().for_each(|call| call.finish("done"));
        pass(1_000).await;
    }
    for client in clients.drain(..) {
        ends_with(&done(client).await, "done");
    }
    stage.is_over(4).await;
}

/// A burst at a server that has shown nothing yet: beginning gently is a precaution, and refuses nobody.
#[tokio::test(start_paused = true)]
async fn inv5_a_burst_before_anything_is_known() {
    let stage = Stage::with("[upstream.up.limits]\nwaiting_calls = 2\n").await;
    let clients = send(&stage, 1..20);
    pass(3_000).await;
    assert_eq!(stage.calls.all().len(), 19);
    stage.calls.all().iter().for_each(|call| call.finish("done"));
    for client in clients {
        ends_with(&done(client).await, "done");
    }
}

/// A14.7: who still waits for its turn when the process ends is told, and never sent.
#[tokio::test(start_paused = true)]
async fn a14_7_the_end_comes_before_the_turn() {
    let stage = learned().await;
    let first = stage.begin(&asking(1)).await;
    let second = stage.run(&asking(2));
    pass(1_000).await;
    stage.proxy.drain();
    stage.proxy.cut();
    let (first, second) = (first.done().await, done(second).await);
    for done in [first, second] {
        assert_eq!(done.code(), -32603, "{}", done.raw);
    }
    pass(10_000).await;
    assert_eq!(stage.calls.all().len(), 2, "the one that was learned from, and the first");
}

/// The time of a call counts while it waits for its turn, too.
#[tokio::test(start_paused = true)]
async fn inv5_the_wait_for_a_turn_is_bounded() {
    let stage = learned().await;
    let _first = stage.begin(&asking(1)).await;
    pass(60_000).await;
    let began = Instant::now();
    let second = done(stage.run(&asking(2))).await;
    assert_eq!(second.code(), -32603, "{}", second.raw);
    assert!(began.elapsed() <= Duration::from_secs(601), "timeouts.request: {:?}", began.elapsed());
}
