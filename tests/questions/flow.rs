//! A2.3, A2.4, A4.5, B8.2, A4.13 and large results, before a question and after the resume.

use crate::stage::{Stage, asking, done, ends_with, next_round};
use crate::support::questions::{ACCEPT, elicit};
use crate::support::{Ask, Done, Value, json, pass, rpc};

const LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// Method, and token or level, of everything that came before the answer.
fn before(done: &Done) -> Vec<(String, Value)> {
    let brief = |message: &Value| {
        let params = &message["params"];
        let what = params.get("progressToken").or(params.get("level")).cloned().unwrap_or_default();
        (message["method"].as_str().unwrap().to_owned(), json!([what, params["progress"]]))
    };
    done.before.iter().map(brief).collect()
}

fn progress(token: &str, n: i64) -> (String, Value) {
    ("notifications/progress".to_owned(), json!([token, n]))
}

fn log(level: &str) -> (String, Value) {
    ("notifications/message".to_owned(), json!([level, null]))
}

fn dressed(ask: Ask, token: &str, level: &str) -> Ask {
    ask.meta("progressToken", &format!("\"{token}\"")).meta(LEVEL, &format!("\"{level}\""))
}

/// Each round under its own request's token and level.
#[tokio::test(start_paused = true)]
async fn a4_5_progress_and_logs_of_each_round() {
    let stage = Stage::new().await;
    let begun = stage.begin(&dressed(asking(1), "one", "debug")).await;
    let at = begun.call.clone();
    at.progress(1);
    at.log("debug", "a");
    at.progress(2);
    at.event(&elicit("7", "m"));
    let round = begun.round().await;
    assert_eq!(before(&round.done), [progress("one", 1), log("debug"), progress("one", 2)]);
    let retry = dressed(round.answer("2", ACCEPT), "two", "warning");
    let client = stage.run(&retry);
    stage.elicited("7").await;
    at.progress(3);
    at.log("info", "b");
    at.log("error", "c");
    at.progress(4);
    at.event(&elicit("8", "n"));
    let next = next_round(&retry, client).await;
    assert_eq!(before(&next.done), [progress("two", 3), log("error"), progress("two", 4)]);
    let client = stage.run(&dressed(next.answer("3", ACCEPT), "three", "emergency"));
    stage.elicited("8").await;
    at.log("error", "d");
    at.progress(5);
    at.finish("the end");
    let done = done(client).await;
    ends_with(&done, "the end");
    assert_eq!(before(&done), [progress("three", 5)]);
    stage.is_over(1).await;
}

/// A retry that asks for neither gets neither.
#[tokio::test(start_paused = true)]
async fn a2_3_a_retry_that_wants_none() {
    let stage = Stage::new().await;
    let ask = dressed(asking(1), "one", "debug");
    let (round, at) = stage.asked(&ask, &[&elicit("7", "m")]).await;
    let retry = round.answer("2", ACCEPT).without_meta("progressToken").without_meta(LEVEL);
    let client = stage.run(&retry);
    stage.elicited("7").await;
    at.progress(1);
    at.log("emergency", "a");
    pass(1_000).await;
    at.finish("the end");
    let done = done(client).await;
    ends_with(&done, "the end");
    assert_eq!(before(&done), []);
}

/// `progress` must increase on each token; a lower one of the server is dropped (A2.3, D18).
#[tokio::test(start_paused = true)]
async fn a2_3_progress_increases_in_the_next_round_too() {
    let stage = Stage::new().await;
    let (round, at) = stage.asked(&dressed(asking(1), "one", "debug"), &[&elicit("7", "m")]).await;
    let client = stage.run(&dressed(round.answer("2", ACCEPT), "two", "debug"));
    stage.elicited("7").await;
    for n in [3, 2, 4] {
        at.progress(n);
    }
    at.finish("the end");
    let done = done(client).await;
    assert_eq!(before(&done), [progress("two", 3), progress("two", 4)]);
}

/// What comes while nobody listens: it goes to no one else, it stops nobody, and it fills nothing (invariant 5).
#[tokio::test(start_paused = true)]
async fn inv5_progress_while_the_client_is_asked() {
    let stage = Stage::new().await;
    let (round, at) = stage.asked(&dressed(asking(1), "one", "debug"), &[&elicit("7", "m")]).await;
    let text = "x".repeat(1000);
    for n in 1..3000 {
        at.progress(n);
        at.log("error", &text);
        if n % 100 == 0 {
            pass(1).await;
        }
    }
    pass(1_000).await;
    let client = stage.run(&dressed(round.answer("2", ACCEPT), "two", "debug"));
    assert_eq!(stage.elicited("7").await["action"], "accept");
    at.finish("the end");
    let done = done(client).await;
    ends_with(&done, "the end");
    assert!(
        done.before.iter().all(|message| message["params"].get("progressToken").is_none_or(|t| t == "two"))
    );
    assert!(done.before.len() <= 200, "{} notifications were kept", done.before.len());
}

/// A large result goes through after a resume as it does in a first answer, byte for byte.
#[tokio::test(start_paused = true)]
async fn a_large_result_after_a_resume() {
    for (size, token) in [(70 * 1024, None), (5 * 1024 * 1024, None), (5 * 1024 * 1024, Some("two"))] {
        let stage = Stage::new().await;
        let ask = dressed(asking(1), "one", "debug");
        let (round, at) = stage.asked(&ask, &[&elicit("7", "m")]).await;
        let retry = round.answer("2", ACCEPT);
        let client = stage.run(&match token {
            Some(token) => dressed(retry, token, "debug"),
            None => retry.without_meta("progressToken").without_meta(LEVEL),
        });
        stage.elicited("7").await;
        if token.is_some() {
            at.progress(9);
        }
        let text: String = (0..size).map(|n| char::from(b'a' + (n % 26) as u8)).collect();
        at.finish(&text);
        let done = done(client).await;
        assert_eq!(done.result()["content"][0]["text"].as_str().map(str::len), Some(size));
        assert!(done.raw.contains(&text), "byte for byte");
        assert_eq!(done.result()["resultType"], "complete");
        assert_eq!(before(&done).len(), usize::from(token.is_some()));
        stage.is_over(1).await;
        // Kept or not, it is never run again.
        stage.refuses_or_repeats(&round).await;
        stage.nothing_is_left().await;
    }
}

/// One that breaks off on the way is broken off for the client as well, and is never run again.
#[tokio::test(start_paused = true)]
async fn a_large_result_that_breaks_off_after_a_resume() {
    let stage = Stage::new().await;
    let (round, at) = stage.asked(&asking(1), &[&elicit("7", "m")]).await;
    let retry = round.answer("2", ACCEPT);
    let opening = stage.proxy.open(&retry);
    let breaking = async {
        stage.elicited("7").await;
        let whole = rpc::result_message(
            &at.seen.id(),
            &crate::support::calls::result_of("tools/call", &"x".repeat(1024 * 1024)),
        );
        at.bytes(format!("data: {}", &whole[..800 * 1024]).as_bytes());
        pass(2_000).await;
        at.cut();
    };
    let (mut answer, ()) = tokio::join!(opening, breaking);
    if answer.is_stream() {
        let (messages, broken) = answer.rest().await;
        let whole = messages.iter().any(|message| message.get("result").is_some());
        assert!(broken && !whole || messages.iter().any(|message| message.get("error").is_some()));
    } else {
        let (body, broken) = answer.pieces().await;
        assert!(broken || rpc::value(&body).is_ok_and(|message| message.get("error").is_some()));
    }
    pass(1_000).await;
    stage.is_over(1).await;
    stage.refuses_or_repeats(&round).await;
}

/// The server is done with much to say while its client is asked: kept until the client comes, or not read until then.
#[tokio::test(start_paused = true)]
async fn a_large_result_while_the_call_is_parked() {
    let stage = Stage::new().await;
    let (round, at) = stage.asked(&asking(1), &[&elicit("7", "m")]).await;
    let text = "y".repeat(5 * 1024 * 1024);
    at.finish(&text);
    pass(60_000).await;
    let done = stage.proxy.send(&round.retry("2", &[])).await;
    assert_eq!(done.result()["content"][0]["text"].as_str().map(str::len), Some(text.len()));
    stage.is_over(1).await;
    assert_eq!(stage.cancelled().len(), 0);
    stage.nothing_is_left().await;
}
