//! D34, D35, B1.3, B1.4, B1.5: what is asked together, what is asked again, and which keys stand for what.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;

use crate::stage::{Stage, asking, done, ends_with, next_round};
use crate::support::questions::{ACCEPT, DECLINE, ROOTS, SAMPLED, elicit, roots, sample};
use crate::support::{json, pass};

#[tokio::test(start_paused = true)]
async fn d34_elicit_two_at_once() {
    let stage = Stage::new().await;
    let begun = stage.begin(&asking(1)).await;
    let call = begun.call.clone();
    call.event(&elicit("7", "first"));
    pass(10).await;
    call.event(&elicit("8", "second"));
    let round = begun.round().await;
    let (first, second) = (round.key_of("first"), round.key_of("second"));
    assert_ne!(first, second);
    let retry = round.retry("2", &[(&first, ACCEPT), (&second, DECLINE)]);
    let client = stage.run(&retry);
    assert_eq!(stage.elicited("7").await["action"], "accept");
    assert_eq!(stage.elicited("8").await["action"], "decline");
    call.event(&elicit("9", "third"));
    let next = next_round(&retry, client).await;
    let third = next.key_of("third");
    assert_eq!(next.keys().len(), 1, "{}", next.done.raw);
    assert!(third != first && third != second, "a key of its own");
    assert_ne!(next.state(), round.state(), "a state of its own");
    let client = stage.run(&next.answer("3", ACCEPT));
    stage.elicited("9").await;
    call.finish("the end");
    ends_with(&done(client).await, "the end");
    stage.is_over(1).await;
    assert_eq!(stage.answers().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn d35_elicit_missing_key() {
    let stage = Stage::new().await;
    let (round, call) = stage.asked(&asking(1), &[&elicit("7", "first"), &elicit("8", "second")]).await;
    let (first, second) = (round.key_of("first"), round.key_of("second"));
    let retry = round.retry("2", &[(&second, ACCEPT)]);
    let client = stage.run(&retry);
    stage.elicited("8").await;
    let again = next_round(&retry, client).await;
    assert_eq!(again.only(), first, "the other one only, under its key");
    assert_eq!(again.entry(&first), round.entry(&first), "the same entry");
    assert_eq!(stage.answers_to("7").len(), 0);
    let client = stage.run(&again.answer("3", ACCEPT));
    stage.elicited("7").await;
    call.finish("the end");
    ends_with(&done(client).await, "the end");
    assert_eq!(stage.answers().len(), 2, "{:?}", stage.answers());
    stage.is_over(1).await;
}

/// B1.5: unknown keys are ignored, a retry without any answer is asked again.
#[tokio::test(start_paused = true)]
async fn b1_5_unknown_and_missing_keys() {
    let stage = Stage::new().await;
    let (round, call) = stage.asked(&asking(1), &[&elicit("7", "m")]).await;
    let key = round.only();
    let retry = round.retry("2", &[]);
    let round = next_round(&retry, stage.run(&retry)).await;
    assert_eq!(round.only(), key);
    let retry = round.retry("3", &[("nobody's", ACCEPT), ("7", ACCEPT), ("", "5")]);
    let round = next_round(&retry, stage.run(&retry)).await;
    assert_eq!((round.keys(), stage.answers()), (vec![key.clone()], vec![]));
    let client = stage.run(&round.retry("4", &[("nobody's", DECLINE), (&key, ACCEPT)]));
    assert_eq!(stage.elicited("7").await["action"], "accept");
    call.finish("the end");
    ends_with(&done(client).await, "the end");
}

/// B1.5, C32: the same with no `inputResponses` member at all, or `null`.
#[tokio::test(start_paused = true)]
async fn b1_5_a_state_without_answers() {
    for null in [false, true] {
        state_without_answers(null).await;
    }
}

async fn state_without_answers(null: bool) {
    let stage = Stage::new().await;
    let (round, call) = stage.asked(&asking(1), &[&elicit("7", "m")]).await;
    let retry = asking(1).id("2").member("requestState", &serde_json::to_string(round.state()).unwrap());
    let retry = if null { retry.member("inputResponses", "null") } else { retry };
    let again = next_round(&retry, stage.run(&retry)).await;
    assert_eq!(again.keys(), round.keys());
    let client = stage.run(&crate::support::rounds::retry(
        &asking(1),
        "3",
        &crate::support::rounds::responses(&[(&again.only(), ACCEPT)]),
        again.state(),
    ));
    stage.elicited("7").await;
    call.finish("the end");
    ends_with(&done(client).await, "the end");
    stage.is_over(1).await;
}

/// B1.3: no key is used twice in one call, so a late answer to an old question never meets a new one.
#[tokio::test(start_paused = true)]
async fn b1_3_keys_are_unique_over_the_whole_call() {
    let stage = Stage::new().await;
    let (mut round, call) = stage.asked(&asking(1), &[&elicit("0", "q0")]).await;
    let mut used = BTreeSet::new();
    for n in 1..7 {
        let key = round.only();
        assert!(used.insert(key.clone()), "{key} again after {used:?}");
        // Every old key is answered once more, too.
        let late: Vec<(&str, &str)> = used.iter().map(|key| (key.as_str(), ACCEPT)).collect();
        let retry = round.retry(&format!("{}", n + 1), &late);
        let client = stage.run(&retry);
        stage.elicited(&format!("{}", n - 1)).await;
        call.event(&elicit(&n.to_string(), &format!("q{n}")));
        round = next_round(&retry, client).await;
        assert_eq!(round.entry(&round.only())["params"]["message"], format!("q{n}"));
    }
    // A late answer only: the new question is asked again, the old ones are not answered again.
    let old: Vec<(&str, &str)> = used.iter().map(|key| (key.as_str(), DECLINE)).collect();
    let retry = round.retry("20", &old);
    let again = next_round(&retry, stage.run(&retry)).await;
    assert_eq!(again.keys(), round.keys());
    assert_eq!(stage.answers().len(), 6, "{:?}", stage.answers());
    let client = stage.run(&again.answer("21", ACCEPT));
    stage.elicited("6").await;
    call.finish("the end");
    ends_with(&done(client).await, "the end");
    assert_eq!(stage.answers().len(), 7);
}

/// B1.4: questions of several kinds that come within the quiet time are one round.
#[tokio::test(start_paused = true)]
async fn b1_4_three_kinds_in_one_round() {
    let stage = Stage::new().await;
    let questions = [elicit("1", "name"), sample("2", "think"), roots("3")];
    let (round, call) = stage.asked(&asking(1), &questions.each_ref().map(String::as_str)).await;
    assert_eq!(round.keys().len(), 3, "{}", round.done.raw);
    let (name, think, all) = (round.key_of("name"), round.key_of("think"), round.key_of("roots/list"));
    let client = stage.run(&round.retry("2", &[(&all, ROOTS), (&name, ACCEPT), (&think, SAMPLED)]));
    stage.elicited("1").await;
    assert_eq!(stage.answer("2", "sampling/createMessage").await["result"]["model"], "m-1");
    assert_eq!(stage.answer("3", "roots/list").await["result"]["roots"][0]["name"], "home");
    call.finish("the end");
    ends_with(&done(client).await, "the end");
    stage.is_over(1).await;
}

/// B1.4: what comes after the round went out waits for the next one; nothing is lost in between.
#[tokio::test(start_paused = true)]
async fn b1_4_a_question_after_the_round_waits_for_the_next() {
    let stage = Stage::new().await;
    let (round, call) = stage.asked(&asking(1), &[&elicit("7", "first")]).await;
    call.event(&elicit("8", "second"));
    pass(60_000).await;
    assert_eq!(stage.answers(), [] as [crate::support::Value; 0]);
    let retry = round.answer("2", ACCEPT);
    let client = stage.run(&retry);
    stage.elicited("7").await;
    let next = next_round(&retry, client).await;
    assert_eq!(next.entry(&next.only())["params"]["message"], "second");
    let client = stage.run(&next.answer("3", DECLINE));
    assert_eq!(stage.elicited("8").await["action"], "decline");
    call.finish("the end");
    ends_with(&done(client).await, "the end");
    stage.is_over(1).await;
}

/// B1.4: the client is not kept waiting much longer than the quiet time, which is a setting.
#[tokio::test(start_paused = true)]
async fn b1_4_the_quiet_time_is_short_and_a_setting() {
    for (lines, most) in [("", 100), ("[upstream.up.timeouts]\ngather = \"800ms\"\n", 1000)] {
        let stage = Stage::with(lines).await;
        let begun = stage.begin(&asking(1)).await;
        let call = begun.call.clone();
        let asked = Instant::now();
        call.event(&elicit("7", "first"));
        if most == 1000 {
            pass(500).await;
            call.event(&elicit("8", "second"));
        }
        let round = begun.round().await;
        let took = asked.elapsed();
        assert_eq!(round.keys().len(), if most == 1000 { 2 } else { 1 }, "{}", round.done.raw);
        let most = if most == 1000 { 1_500 } else { most };
        assert!(took <= Duration::from_millis(most), "{took:?}");
    }
}

/// Invariant 5: a server that never stops asking does not hold the round back for ever.
#[tokio::test(start_paused = true)]
async fn inv5_a_row_of_questions_without_a_pause_ends() {
    let stage = Stage::new().await;
    let begun = stage.begin(&asking(1)).await;
    let call = begun.call.clone();
    let asking = tokio::spawn(async move {
        for n in 0..1000 {
            call.event(&elicit(&n.to_string(), &format!("q{n}")));
            pass(20).await;
        }
    });
    let began = Instant::now();
    let round = begun.round().await;
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?} for {} questions",
        began.elapsed(),
        round.keys().len()
    );
    assert!(round.keys().len() <= 64, "upstream.NAME.limits.questions");
    asking.abort();
}

/// B1.1: the server's last word beats a question that is still open or not told yet.
#[tokio::test(start_paused = true)]
async fn b1_1_the_result_wins_over_a_question_that_was_not_told_yet() {
    let stage = Stage::new().await;
    let begun = stage.begin(&asking(1)).await;
    begun.call.event(&elicit("7", "m"));
    begun.call.finish("no matter");
    let done = begun.done().await;
    ends_with(&done, "no matter");
    stage.is_over(1).await;
    assert!(stage.answers_to("7").len() <= 1, "{:?}", stage.answers());
    assert_ne!(
        stage.answers_to("7").first().map(|answer| &answer["result"]["action"]),
        Some(&json!("accept"))
    );
}
