//! Invariant 5: the bounds on what may be parked and asked, each with a clear error for whoever meets it.

use crate::stage::{QUESTIONS_REFUSED, Stage, asking, done, ends_with, next_round};
use crate::support::questions::{ACCEPT, URL, elicit, roots, sample, url_required};
use crate::support::{Call, Done, Round, call, json, pass};

/// 503 with words that say which setting it was.
#[track_caller]
fn is_busy(done: &Done) {
    assert_eq!(done.status, 503, "{}", done.raw);
    let text = done.message["error"]["message"].as_str().unwrap_or_default();
    assert!(text.len() > 10, "words: {}", done.raw);
    assert!(done.message["error"]["code"].is_i64(), "{}", done.raw);
}

/// A call whose question finds no place: its client is told, its server is answered, and it is cancelled.
async fn finds_no_place(stage: &Stage, ask: &crate::support::Ask, id: &str) {
    let begun = stage.begin(ask).await;
    let at = begun.call.clone();
    at.event(&elicit(id, "no place"));
    is_busy(&begun.done().await);
    assert_ne!(stage.elicited(id).await["action"], "accept");
    stage.is_cancelled_once(&at).await;
}

async fn answers(stage: &Stage, round: &Round, at: &Call, id: &str) {
    let client = stage.run(&round.answer("2", ACCEPT));
    stage.elicited(id).await;
    at.finish("the end");
    ends_with(&done(client).await, "the end");
}

#[tokio::test(start_paused = true)]
async fn inv5_parked() {
    let stage = Stage::bounded("[limits]\nparked = 2\n", "").await;
    let (one, first) = stage.asked(&asking(1).bearer("a"), &[&elicit("1", "m")]).await;
    let (two, second) = stage.asked(&asking(2).bearer("b"), &[&elicit("2", "m")]).await;
    finds_no_place(&stage, &asking(3).bearer("c"), "3").await;
    assert_eq!(stage.metric("mcp_janus_limit_hits_total", &["limits.parked\""]), 1.0);
    assert_eq!(stage.parked(), 2);
    answers(&stage, &one, &first, "1").await;
    // A place is free.
    let (four, fourth) = stage.asked(&asking(4).bearer("c"), &[&elicit("4", "m")]).await;
    answers(&stage, &two, &second, "2").await;
    answers(&stage, &four, &fourth, "4").await;
    stage.is_over(4).await;
    stage.nothing_is_left().await;
}

#[tokio::test(start_paused = true)]
async fn inv5_parked_per_principal() {
    let stage = Stage::bounded("[limits]\nparked_per_principal = 1\n", "").await;
    let (one, first) = stage.asked(&asking(1).bearer("alice"), &[&elicit("1", "m")]).await;
    finds_no_place(&stage, &asking(2).bearer("alice"), "2").await;
    assert_eq!(stage.metric("mcp_janus_limit_hits_total", &["limits.parked_per_principal"]), 1.0);
    let (three, third) = stage.asked(&asking(3).bearer("bob"), &[&elicit("3", "m")]).await;
    answers(&stage, &one, &first, "1").await;
    answers(&stage, &three, &third, "3").await;
    stage.is_over(3).await;
}

/// A call that is asked again needs no second place: it has one.
#[tokio::test(start_paused = true)]
async fn inv5_a_further_round_needs_no_further_place() {
    let stage = Stage::bounded("[limits]\nparked = 1\nparked_per_principal = 1\n", "").await;
    let (mut round, at) = stage.asked(&asking(1), &[&elicit("0", "m")]).await;
    for n in 1..5 {
        let retry = round.answer(&(n + 1).to_string(), ACCEPT);
        let client = stage.run(&retry);
        stage.elicited(&(n - 1).to_string()).await;
        at.event(&elicit(&n.to_string(), "m"));
        round = next_round(&retry, client).await;
        assert_eq!(stage.parked(), 1);
    }
    answers(&stage, &round, &at, "4").await;
}

/// In band, where the headers are out.
#[tokio::test(start_paused = true)]
async fn inv5_parked_in_band() {
    let stage = Stage::bounded("[limits]\nparked = 1\n", "").await;
    let (_one, _first) = stage.asked(&asking(1), &[&elicit("1", "m")]).await;
    let begun = stage.begin(&asking(2).meta("progressToken", "1")).await;
    let at = begun.call.clone();
    at.progress(1);
    pass(1_000).await;
    at.event(&elicit("2", "m"));
    let done = begun.done().await;
    assert_eq!((done.status, done.before.len()), (200, 1), "{}", done.raw);
    assert!(done.message["error"]["message"].is_string(), "{}", done.raw);
    stage.is_cancelled_once(&at).await;
}

/// What asks by -32042 needs a place, too.
#[tokio::test(start_paused = true)]
async fn inv5_parked_by_url() {
    let stage = Stage::bounded("[limits]\nparked = 1\n", "").await;
    let (_one, _first) = stage.asked(&asking(1), &[&elicit("1", "m")]).await;
    let begun = stage.begin(&call("pay", "{}").caps(URL)).await;
    begun.call.whole_error(&url_required(&["e1"]));
    is_busy(&begun.done().await);
    assert_eq!(stage.cancelled().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn inv5_questions_open_at_once() {
    let stage = Stage::with("[upstream.up.limits]\nquestions = 2\n").await;
    let all = [elicit("1", "a"), elicit("2", "b"), elicit("3", "c"), sample("4", "d"), roots("5")];
    let (round, at) = stage.asked(&asking(1), &all.each_ref().map(String::as_str)).await;
    assert_eq!(round.keys().len(), 2, "{}", round.done.raw);
    assert_eq!(stage.elicited("3").await, json!({"action": "cancel"}));
    assert_eq!(stage.refused("4", "sampling/createMessage").await, -1);
    stage.answer("5", "roots/list").await;
    assert_eq!(stage.metric(QUESTIONS_REFUSED, &["full"]), 3.0);
    let retry = round.answer_all("2", ACCEPT);
    let client = stage.run(&retry);
    stage.elicited("1").await;
    stage.elicited("2").await;
    // They are not open any more.
    at.event(&elicit("6", "e"));
    let next = next_round(&retry, client).await;
    answers(&stage, &next, &at, "6").await;
    stage.is_over(1).await;
}

/// The pages of -32042 are open questions as well, in number and in bytes.
#[tokio::test(start_paused = true)]
async fn inv5_pages_open_at_once() {
    let long = "e".repeat(9_000);
    let table = [
        ("questions = 2", ["e1", "e2"], ["e1", "e2", "e3"]),
        ("question_bytes = \"64KiB\"", ["e1", &long], [&long; 3]),
    ];
    for (setting, few, many) in table {
        let stage = Stage::with(&format!("[upstream.up.limits]\n{setting}\n")).await;
        let begun = stage.begin(&call("pay", "{}").caps(URL)).await;
        begun.call.whole_error(&url_required(&few));
        begun.round().await;
        let begun = stage.begin(&call("pay", "{}").caps(URL)).await;
        begun.call.whole_error(&url_required(&many));
        let done = begun.done().await;
        done.is_error(200, -32603);
        let name = setting.split(' ').next().unwrap();
        assert!(done.raw.contains(name), "{}", done.raw);
        assert_eq!(stage.metric(QUESTIONS_REFUSED, &["full"]), 1.0);
        assert_eq!(stage.metric("mcp_janus_upstream_limit_hits_total", &[&format!("limits.{name}\"")]), 1.0);
        assert_eq!((stage.parked(), stage.cancelled().len(), stage.answers().len()), (1, 0, 0));
    }
}

/// What a question is asked under counts as well.
#[tokio::test(start_paused = true)]
async fn inv5_a_question_with_a_long_id() {
    let stage = Stage::with("[upstream.up.limits]\nquestion_bytes = \"64KiB\"\n").await;
    let id = format!("\"{}\"", "i".repeat(70_000));
    let begun = stage.begin(&asking(1)).await;
    begun.call.event(&elicit(&id, "m"));
    assert_eq!(stage.elicited(&id).await, json!({"action": "cancel"}));
    begun.call.finish("the end");
    ends_with(&begun.done().await, "the end");
    assert_eq!(stage.metric(QUESTIONS_REFUSED, &["full"]), 1.0);
}

#[tokio::test(start_paused = true)]
async fn inv5_rounds() {
    let stage = Stage::with("[upstream.up.limits]\nrounds = 2\n").await;
    let (round, at) = stage.asked(&asking(1), &[&elicit("1", "m")]).await;
    let retry = round.answer("2", ACCEPT);
    let client = stage.run(&retry);
    stage.elicited("1").await;
    at.event(&elicit("2", "m"));
    let round = next_round(&retry, client).await;
    let client = stage.run(&round.answer("3", ACCEPT));
    stage.elicited("2").await;
    at.event(&elicit("3", "once too often"));
    assert_eq!(stage.elicited("3").await, json!({"action": "cancel"}));
    at.finish("without the third");
    ends_with(&done(client).await, "without the third");
    assert_eq!(stage.metric(QUESTIONS_REFUSED, &["rounds"]), 1.0);
    assert_eq!(stage.metric("mcp_janus_upstream_limit_hits_total", &["limits.rounds"]), 1.0);
    stage.is_over(1).await;
}

/// The default is eight.
#[tokio::test(start_paused = true)]
async fn b1_5_eight_rounds() {
    let stage = Stage::new().await;
    let (mut round, at) = stage.asked(&asking(1), &[&elicit("1", "m")]).await;
    for n in 2..9 {
        let retry = round.answer(&n.to_string(), ACCEPT);
        let client = stage.run(&retry);
        stage.elicited(&(n - 1).to_string()).await;
        at.event(&elicit(&n.to_string(), "m"));
        round = next_round(&retry, client).await;
    }
    let client = stage.run(&round.answer("9", ACCEPT));
    stage.elicited("8").await;
    at.event(&elicit("9", "once too often"));
    assert_eq!(stage.elicited("9").await, json!({"action": "cancel"}));
    at.finish("the end");
    ends_with(&done(client).await, "the end");
}

/// Questions that are held because nobody knows whose they are have the same bound, for each session.
#[tokio::test(start_paused = true)]
async fn inv5_held_questions() {
    let stage = Stage::with("[upstream.up.limits]\nquestions = 3\n").await;
    let (one, two) = (stage.begin(&asking(1)).await, stage.begin(&asking(2)).await);
    let get = stage.gets.wait(1).await;
    for n in 1..6 {
        get.event(&elicit(&n.to_string(), "whose?"));
    }
    pass(1_000).await;
    assert_eq!(stage.answers().len(), 2, "three are held: {:?}", stage.answers());
    pass(11_000).await;
    assert_eq!(stage.answers().len(), 5);
    for begun in [one, two] {
        begun.call.finish("the end");
        ends_with(&begun.done().await, "the end");
    }
}

/// `timeouts.request` bounds the work, not the time in which people answer.
#[tokio::test(start_paused = true)]
async fn inv5_the_time_of_a_call_is_that_of_its_rounds() {
    let stage = Stage::with("[upstream.up.timeouts]\nrequest = \"60s\"\n").await;
    let (round, at) = stage.asked(&asking(1), &[&elicit("1", "m")]).await;
    pass(200_000).await;
    answers(&stage, &round, &at, "1").await;
    let (round, at) = stage.asked(&asking(2), &[&elicit("2", "m")]).await;
    let client = stage.run(&round.answer("2", ACCEPT));
    stage.elicited("2").await;
    let done = done(client).await;
    // The headers are long out.
    done.is_error(200, -32603);
    stage.is_cancelled_once(&at).await;
    stage.is_over(2).await;
}

/// A parked call is no request in work and holds no connection of its client.
#[tokio::test(start_paused = true)]
async fn inv5_parked_calls_are_no_requests_in_work() {
    let stage = Stage::bounded("[limits]\nrequests = 1\nconnections = 2\n", "").await;
    let mut all = Vec::new();
    for n in 1..5 {
        all.push(stage.asked(&asking(n), &[&elicit(&n.to_string(), "m")]).await);
    }
    assert_eq!(stage.metric("mcp_janus_requests_in_progress", &[]), 0.0);
    for (n, (round, at)) in (1..5).zip(&all) {
        answers(&stage, round, at, &n.to_string()).await;
    }
    stage.is_over(4).await;
}
