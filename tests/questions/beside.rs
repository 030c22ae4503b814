//! D48, D49, D52, B5: questions that come on the GET stream, where nothing says which call they belong to.
//! How an upstream that does this is treated from then on is in `one_at_a_time`.

use std::time::Duration;

use tokio::time::Instant;

use crate::stage::{Begun, QUESTIONS_REFUSED, Stage, asking, done, ends_with, next_round};
use crate::support::questions::{ACCEPT, ALL, ROOTS, elicit, roots, sample};
use crate::support::{Begin, Gets, LegacyServer, Reply, Value, call, json, list, pass};

const MARK: &str = "the question of call number 2";

/// Calls 1 to `n` of one caller, all at the server.
async fn running(stage: &Stage, n: usize) -> Vec<Begun> {
    let mut all = Vec::new();
    for n in 1..=n {
        all.push(stage.begin(&asking(n)).await);
    }
    all
}

#[tokio::test(start_paused = true)]
async fn d48_wait_to_attribute() {
    let stage = Stage::new().await;
    let mut all = running(&stage, 3).await;
    stage.gets.wait(1).await.event(&elicit("7", MARK));
    pass(200).await;
    assert_eq!(stage.answers().len(), 0);
    let third = all.pop().unwrap();
    let second = all.pop().unwrap();
    let first = all.pop().unwrap();
    assert!(!second.client.is_finished(), "held: it could be anyone's");
    // No new candidate comes in meanwhile; lists go on.
    let fourth = stage.run(&asking(4));
    stage.proxy.send(&list("tools/list").caps(ALL)).await.result();
    pass(1000).await;
    assert_eq!(stage.calls.all().len(), 3, "no new call while a question is held");
    first.call.finish("one");
    third.call.finish("three");
    ends_with(&first.done().await, "one");
    ends_with(&third.done().await, "three");
    let at = second.call.clone();
    let round = second.round().await;
    assert_eq!(round.entry(&round.only())["params"]["message"], MARK);
    let client = stage.run(&round.answer("2", ACCEPT));
    assert_eq!(stage.elicited("7").await["action"], "accept");
    at.finish("two");
    ends_with(&done(client).await, "two");
    stage.calls.marked(4).await.finish("four");
    ends_with(&done(fourth).await, "four");
    stage.is_over(4).await;
}

#[tokio::test(start_paused = true)]
async fn d49_ambiguous_refuse() {
    let stage = Stage::new().await;
    let all = running(&stage, 2).await;
    let get = stage.gets.wait(1).await;
    get.event(&elicit("7", "whose?"));
    get.event(&elicit("8", "and this?"));
    pass(9_000).await;
    assert_eq!(stage.answers().len(), 0, "held for ten seconds");
    pass(2_000).await;
    for id in ["7", "8"] {
        assert_eq!(stage.elicited(id).await, json!({"action": "cancel"}));
    }
    assert_eq!(stage.metric(QUESTIONS_REFUSED, &["ambiguous"]), 2.0);
    for begun in all {
        begun.call.finish("without it");
        let done = begun.done().await;
        ends_with(&done, "without it");
        assert!(!done.raw.contains("whose?") && !done.raw.contains("and this?"));
    }
    stage.is_over(2).await;
}

/// The other kinds, and the time, which is a setting.
#[tokio::test(start_paused = true)]
async fn d49_the_other_kinds() {
    let stage = Stage::with("[upstream.up.timeouts]\nattribute = \"2s\"\n").await;
    let all = running(&stage, 2).await;
    let get = stage.gets.wait(1).await;
    get.event(&sample("7", "p"));
    get.event(&roots("8"));
    pass(1_500).await;
    assert_eq!(stage.answers().len(), 0);
    pass(1_000).await;
    assert_eq!(stage.refused("7", "sampling/createMessage").await, -1);
    assert_eq!(stage.refused("8", "roots/list").await, -32601);
    all.iter().for_each(|begun| begun.call.finish("without it"));
    for begun in all {
        ends_with(&begun.done().await, "without it");
    }
}

#[tokio::test(start_paused = true)]
async fn d52_get_stream_elicit() {
    let stage = Stage::new().await;
    let begun = stage.begin(&asking(1)).await;
    let get = stage.gets.wait(1).await;
    get.event(&elicit("7", "m"));
    let (at, round) = (begun.call.clone(), begun.round().await);
    let client = stage.run(&round.answer("2", ACCEPT));
    assert_eq!(stage.elicited("7").await["action"], "accept");
    assert_eq!(stage.up.posts("")[0].session().unwrap_or_default(), get.session());
    at.finish("the end");
    ends_with(&done(client).await, "the end");
    assert_eq!(stage.metric("mcp_janus_questions_total", &["beside"]), 1.0);
    // Nobody is at work now.
    for (id, question) in [("8", elicit("8", "m")), ("9", sample("9", "p")), ("10", roots("10"))] {
        get.event(&question);
        let answer = stage.up.wait("response", stage.answers().len() + 1).await.pop().unwrap().json();
        assert_eq!(answer["id"].to_string(), id);
        let found = answer.get("result").unwrap_or(&answer["error"]["code"]).clone();
        let wanted = [json!({"action": "cancel"}), json!(-1), json!(-32601)];
        assert!(wanted.contains(&found), "{answer}");
    }
    assert_eq!(stage.elicited("8").await, json!({"action": "cancel"}));
    assert_eq!(stage.metric(QUESTIONS_REFUSED, &["no-call"]), 3.0);
    stage.is_over(1).await;
}

/// Roots that the session has learned are still known when nobody is at work.
#[tokio::test(start_paused = true)]
async fn b5_roots_that_the_session_knows() {
    let stage = Stage::new().await;
    let (round, at) = stage.asked(&asking(1), &[&roots("7")]).await;
    let client = stage.run(&round.answer("2", ROOTS));
    stage.answer("7", "roots/list").await;
    at.finish("the end");
    ends_with(&done(client).await, "the end");
    stage.gets.wait(1).await.event(&roots("8"));
    let answer = stage.answer("8", "roots/list").await;
    assert_eq!(answer["result"], serde_json::from_str::<Value>(ROOTS).unwrap());
}

/// Undeclared, outside any call: only refused (B5).
#[tokio::test(start_paused = true)]
async fn b5_an_undeclared_question_beside_the_call_harms_nobody() {
    let stage = Stage::new().await;
    let begun = stage.begin(&call("ask", "{}").caps(r#"{"roots":{}}"#)).await;
    let get = stage.gets.wait(1).await;
    get.event(&sample("7", "p"));
    get.event(&elicit("8", "m"));
    assert_eq!(stage.refused("7", "sampling/createMessage").await, -32601);
    assert_eq!(stage.refused("8", "elicitation/create").await, -32602);
    begun.call.finish("the end");
    ends_with(&begun.done().await, "the end");
}

/// Only a call with the needed capability is a candidate, and only one that may ask: a list in flight is none.
#[tokio::test(start_paused = true)]
async fn b5_lists_are_no_candidates() {
    let calls = crate::support::Calls::new();
    let stage = Stage::of(calls.on(LegacyServer::telling(), "tools/list"), Gets::open(), "", "").await;
    let begun = stage.begin(&asking(1)).await;
    let listing = stage.run(&list("tools/list").caps(ALL));
    let at_list = calls.wait(1).await;
    stage.gets.wait(1).await.event(&elicit("7", "m"));
    let (at, round) = (begun.call.clone(), begun.round().await);
    at_list.result(r#"{"tools":[]}"#);
    done(listing).await.result();
    let client = stage.run(&round.answer("2", ACCEPT));
    stage.elicited("7").await;
    at.finish("the end");
    ends_with(&done(client).await, "the end");
}

/// A parked call is set aside: the question is of the one that runs.
#[tokio::test(start_paused = true)]
async fn b5_a_parked_call_is_set_aside() {
    let stage = Stage::new().await;
    let (parked, first) = stage.asked(&asking(1), &[&elicit("7", "one")]).await;
    let begun = stage.begin(&asking(2)).await;
    stage.gets.wait(1).await.event(&elicit("8", "two"));
    let (second, round) = (begun.call.clone(), begun.round().await);
    assert_eq!(round.entry(&round.only())["params"]["message"], "two");
    // Only parked ones are left, and there are two: nobody's.
    stage.gets.wait(1).await.event(&elicit("9", "whose?"));
    pass(11_000).await;
    assert_eq!(stage.elicited("9").await, json!({"action": "cancel"}));
    for (round, at, id) in [(&parked, first, "7"), (&round, second, "8")] {
        let client = stage.run(&round.answer("2", ACCEPT));
        stage.elicited(id).await;
        at.finish("the end");
        ends_with(&done(client).await, "the end");
    }
    stage.is_over(2).await;
}

/// Exactly one parked call, nobody else: its question, told with the next round.
#[tokio::test(start_paused = true)]
async fn b5_the_only_parked_call() {
    let stage = Stage::new().await;
    let (round, at) = stage.asked(&asking(1), &[&elicit("7", "one")]).await;
    stage.gets.wait(1).await.event(&elicit("8", "two"));
    pass(20_000).await;
    assert_eq!(stage.answers().len(), 0);
    let retry = round.answer("2", ACCEPT);
    let next = next_round(&retry, stage.run(&retry)).await;
    assert_eq!(next.entry(&next.only())["params"]["message"], "two");
    let client = stage.run(&next.answer("3", ACCEPT));
    stage.elicited("8").await;
    at.finish("the end");
    ends_with(&done(client).await, "the end");
}

/// Once resumed, a call is a candidate again.
#[tokio::test(start_paused = true)]
async fn b5_a_resumed_call_is_a_candidate_again() {
    let stage = Stage::new().await;
    let (round, first) = stage.asked(&asking(1), &[&elicit("7", "one")]).await;
    let second = stage.begin(&asking(2)).await;
    let client = stage.run(&round.answer("2", ACCEPT));
    stage.elicited("7").await;
    stage.gets.wait(1).await.event(&elicit("8", "whose?"));
    pass(11_000).await;
    assert_eq!(stage.elicited("8").await, json!({"action": "cancel"}), "two candidates");
    first.finish("one");
    second.call.finish("two");
    ends_with(&done(client).await, "one");
    ends_with(&second.done().await, "two");
}

/// A parked call whose only question was taken back waits for nobody: its server is at work and may ask again.
#[tokio::test(start_paused = true)]
async fn b5_a_parked_call_without_an_open_question_is_a_candidate() {
    let stage = Stage::new().await;
    let (round, first) = stage.asked(&asking(1), &[&elicit("7", "one")]).await;
    first.withdraw("7");
    pass(1_000).await;
    let second = stage.begin(&asking(2)).await;
    stage.gets.wait(1).await.event(&elicit("8", "whose?"));
    pass(11_000).await;
    assert_eq!(stage.elicited("8").await, json!({"action": "cancel"}), "two candidates");
    second.call.finish("two");
    ends_with(&second.done().await, "two");
    first.finish("one");
    ends_with(&stage.proxy.send(&round.retry("2", &[])).await, "one");
}

/// Never guess: a call that was just cancelled may still ask, as it does not know yet, or what it asked is on its way. Its
/// question is nobody else's.
#[tokio::test(start_paused = true)]
async fn b5_a_call_that_was_just_cancelled_may_still_ask() {
    let deaf = LegacyServer::telling()
        .on("notifications/cancelled", |_, reply: Reply| async move { reply.never().await });
    for (after, server) in [(1, LegacyServer::telling()), (50, LegacyServer::telling()), (500, deaf)] {
        let stage = Stage::of(server, Gets::open(), "", "").await;
        let first = stage.begin(&asking(1)).await;
        let second = stage.begin(&asking(2)).await;
        first.client.abort();
        pass(after).await;
        stage.gets.wait(1).await.event(&elicit("7", "the question of call number 1"));
        pass(12_000).await;
        assert!(!second.client.is_finished(), "{after} ms: asked what call number 1 wants to know");
        second.call.finish("two");
        ends_with(&second.done().await, "two");
        assert_eq!(stage.elicited("7").await, json!({"action": "cancel"}), "{after} ms");
    }
}

/// A client that gives a call up and makes the next one at once: the server has heard of it, and what it asks is the next
/// one's.
#[tokio::test(start_paused = true)]
async fn b5_the_call_after_one_that_was_given_up_is_asked() {
    let stage = Stage::new().await;
    let first = stage.begin(&asking(1)).await;
    first.client.abort();
    let second = stage.begin(&asking(2)).await;
    stage.gets.wait(1).await.event(&elicit("7", "of the second"));
    let (at, round) = (second.call.clone(), second.round().await);
    let client = stage.run(&round.answer("2", ACCEPT));
    stage.elicited("7").await;
    at.finish("two");
    ends_with(&done(client).await, "two");
}

/// The stream is there also when the call goes on: it was cut while the call waited for its turn, or for its client.
#[tokio::test(start_paused = true)]
async fn b5_the_stream_stands_before_the_call_goes_on() {
    let stage = Stage::new().await;
    let first = stage.begin(&asking(1)).await;
    stage.gets.wait(1).await.event(&elicit("7", "one"));
    let (at, round) = (first.call.clone(), first.round().await);
    pass(5_000).await;
    stage.gets.wait(1).await.cut();
    let client = stage.run(&round.answer("2", ACCEPT));
    stage.elicited("7").await;
    assert_eq!(stage.gets.now(), 1, "before the answer");
    let waiting = stage.run(&asking(2));
    pass(5_000).await;
    assert_eq!(stage.calls.all().len(), 1, "it waits for its turn");
    stage.gets.all().last().unwrap().cut();
    at.finish("one");
    ends_with(&done(client).await, "one");
    let second = stage.calls.wait(2).await;
    assert_eq!(stage.gets.now(), 1, "before the call");
    second.finish("two");
    ends_with(&done(waiting).await, "two");
}

/// The stream is there before the call is sent: servers drop a question silently where there is none.
#[tokio::test(start_paused = true)]
async fn b5_the_stream_stands_before_the_call() {
    for (begin, least) in
        [(Begin::Late(300), 300), (Begin::Open, 0), (Begin::Empty(405), 0), (Begin::Hang, 400)]
    {
        let script = begin.clone();
        let stage = Stage::of(LegacyServer::telling(), Gets::script(move |_| script.clone()), "", "").await;
        let began = Instant::now();
        let begun = stage.begin(&asking(1)).await;
        let get = stage.gets.wait(1).await;
        let waited = begun.call.at.duration_since(get.at);
        assert!(waited >= Duration::from_millis(least), "{begin:?}: {waited:?}");
        assert!(began.elapsed() <= Duration::from_millis(1500), "{begin:?}: bounded by timeouts.stream");
        begun.call.finish("the end");
        ends_with(&begun.done().await, "the end");
    }
}

/// It does not keep an idle session alive.
#[tokio::test(start_paused = true)]
async fn b5_the_stream_keeps_no_session_alive() {
    for lines in ["session.idle = \"30s\"\n", "session.scope = \"request\"\n"] {
        let stage = Stage::with(lines).await;
        let begun = stage.begin(&asking(1)).await;
        begun.call.finish("the end");
        ends_with(&begun.done().await, "the end");
        pass(60_000).await;
        assert_eq!((stage.proxy.sessions(), stage.proxy.feeds(), stage.gets.now()), (0, 0, 0), "{lines}");
        assert_eq!(stage.server.live_sessions(), 0, "{lines}");
        stage.nothing_is_left().await;
    }
}

/// The stream breaks while the call is parked and is opened again; the answer does not depend on it.
#[tokio::test(start_paused = true)]
async fn b5_the_stream_breaks_while_the_call_is_parked() {
    for reset in [false, true] {
        let stage = Stage::new().await;
        let begun = stage.begin(&asking(1)).await;
        let get = stage.gets.wait(1).await;
        get.event(&elicit("7", "m"));
        let (at, round) = (begun.call.clone(), begun.round().await);
        if reset {
            get.reset()
        } else {
            get.end()
        }
        pass(5_000).await;
        let retry = round.answer("2", ACCEPT);
        let client = stage.run(&retry);
        assert_eq!(stage.elicited("7").await["action"], "accept");
        stage.gets.wait(2).await.event(&elicit("8", "n"));
        let next = next_round(&retry, client).await;
        let client = stage.run(&next.answer("3", ACCEPT));
        stage.elicited("8").await;
        at.finish("the end");
        ends_with(&done(client).await, "the end");
        stage.is_over(1).await;
        stage.nothing_is_left().await;
    }
}

/// B1.9 for a question that is held: nobody is asked, nothing is answered, and calls may come in again.
#[tokio::test(start_paused = true)]
async fn b1_9_a_held_question_is_taken_back() {
    let stage = Stage::new().await;
    let all = running(&stage, 2).await;
    let get = stage.gets.wait(1).await;
    get.event(&elicit("7", "whose?"));
    pass(1_000).await;
    get.event(&crate::support::calls::withdrawal("7"));
    pass(20_000).await;
    for begun in all {
        begun.call.finish("done");
        ends_with(&begun.done().await, "done");
    }
    assert_eq!((stage.answers().len(), stage.metric(QUESTIONS_REFUSED, &[])), (0, 0.0));
    let third = stage.begin(&asking(3)).await;
    third.call.finish("done");
    ends_with(&third.done().await, "done");
    stage.is_over(3).await;
}
