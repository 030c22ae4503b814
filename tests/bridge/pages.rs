//! D90, A8.2, B4.3, B4.4, B4.5: pages that a modern server asks a client of 2025-11-25 to visit.

use std::collections::HashSet;

use tokio::time::Duration;

use crate::stage::{FORM, Stage, brings, visit};
use crate::support::{Stream, User, Value, json, pass};

const PAGE: &str = "https://s.test/one";
const CONSENT: &str = r#"{"action":"accept"}"#;

async fn start() -> (Stage, User) {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    (stage, user)
}

async fn page(stage: &Stage, user: &User) -> (Stream, Value) {
    let stream = stage.asked(user, &[("k", &visit(PAGE))], Some(r#""S""#)).await;
    let question = stream.question().await;
    (stream, question)
}

fn id(question: &Value) -> String {
    question["params"]["elicitationId"].as_str().expect("an elicitation id").to_owned()
}

#[tokio::test(start_paused = true)]
async fn d90_loop_url_11() {
    let (stage, user) = start().await;
    let mut ids = HashSet::new();
    for n in 0..10 {
        let (stream, question) = page(&stage, &user).await;
        let params = &question["params"];
        assert_eq!(params["mode"], "url");
        assert_eq!((&params["url"], &params["message"]), (&json!(PAGE), &json!("go there")));
        let minted = id(&question);
        assert!(minted.len() >= 16, "not guessable: {minted}");
        assert!(!minted.contains("s.test"), "{minted}");
        assert!(ids.insert(minted), "of this call only");
        user.answer(&question, CONSENT).await;
        let second = stage.calls.wait(2 * n + 2).await;
        assert_eq!(brings(&second), json!({"k": {"action": "accept"}}), "no id of the proxy's goes up");
        second.completes("done");
        stream.result().await;
    }
}

/// B4.4: once it is clear that the page is done with, and before the answer.
#[tokio::test(start_paused = true)]
async fn d90_the_client_hears_that_it_is_done() {
    let (stage, user) = start().await;
    let (stream, question) = page(&stage, &user).await;
    user.answer(&question, CONSENT).await;
    let second = stage.retried(1).await;
    pass(5000).await;
    assert_eq!(stream.notes("notifications/elicitation/complete").len(), 0, "not before the result is known");
    second.completes("done");
    stream.result().await;
    let told = stream.notes("notifications/elicitation/complete");
    assert_eq!(told.len(), 1, "{:?}", stream.messages());
    assert_eq!(told[0]["params"], json!({"elicitationId": id(&question)}));
}

/// The same where the server goes on to ask something else.
#[tokio::test(start_paused = true)]
async fn d90_done_when_another_round_asks_no_more_for_it() {
    let (stage, user) = start().await;
    let (stream, question) = page(&stage, &user).await;
    user.answer(&question, CONSENT).await;
    stage.retried(1).await.asks(&[("f", FORM)], Some(r#""S2""#));
    let form = stream.question().await;
    assert_eq!(form["params"].get("elicitationId"), None);
    let told = stream.notes("notifications/elicitation/complete");
    assert_eq!(told.len(), 1, "{:?}", stream.messages());
    user.answer(&form, crate::stage::ACCEPT).await;
    stage.retried(2).await.completes("done");
    stream.result().await;
    assert_eq!(stream.notes("notifications/elicitation/complete").len(), 1, "once");
}

/// B4.3: the user is not done with the page: the server is asked again after a while, the user is not.
#[tokio::test(start_paused = true)]
async fn d90_a_page_that_takes_a_while() {
    let (stage, user) = start().await;
    let (stream, question) = page(&stage, &user).await;
    user.answer(&question, CONSENT).await;
    for n in 1..=3 {
        let call = stage.retried(n).await;
        assert_eq!(brings(&call)["k"]["action"], "accept", "each time: it was consented to");
        call.asks(&[("k", &visit(PAGE))], Some(&format!("\"S{n}\"")));
    }
    let fifth = stage.retried(4).await;
    assert_eq!(fifth.params()["requestState"], "S3");
    fifth.completes("done");
    stream.result().await;
    assert_eq!(stream.asked(), 1, "not asked again for the same page");
    let times: Vec<_> = stage.calls.all().iter().map(|call| call.at).collect();
    let pauses: Vec<_> = times.windows(2).skip(1).map(|pair| pair[1] - pair[0]).collect();
    assert!(pauses[0] >= Duration::from_secs(2), "{pauses:?}");
    assert!(pauses[1] >= Duration::from_secs(4) && pauses[1] > pauses[0], "{pauses:?}");
    assert_eq!(stream.notes("notifications/elicitation/complete").len(), 1);
}

/// Another page is another question.
#[tokio::test(start_paused = true)]
async fn d90_another_page_is_another_question() {
    let (stage, user) = start().await;
    let (stream, first) = page(&stage, &user).await;
    user.answer(&first, CONSENT).await;
    stage.retried(1).await.asks(&[("k", &visit("https://s.test/two"))], Some(r#""S2""#));
    let second = stream.question().await;
    assert_eq!(second["params"]["url"], "https://s.test/two");
    assert_ne!(id(&first), id(&second));
    user.answer(&second, CONSENT).await;
    stage.retried(2).await.completes("done");
    stream.result().await;
    let told: HashSet<_> = stream
        .notes("notifications/elicitation/complete")
        .iter()
        .map(|note| note["params"]["elicitationId"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(told, HashSet::from([id(&first), id(&second)]));
}

/// A page beside a form: both are waited for, and only the form is asked again.
#[tokio::test(start_paused = true)]
async fn d90_a_page_and_a_form() {
    let (stage, user) = start().await;
    let stream = stage.asked(&user, &[("p", &visit(PAGE)), ("f", FORM)], Some(r#""S""#)).await;
    for question in stream.questions(2).await {
        let answer = if question["params"]["mode"] == "url" { CONSENT } else { crate::stage::ACCEPT };
        user.answer(&question, answer).await;
    }
    stage.retried(1).await.asks(&[("p", &visit(PAGE)), ("f", FORM)], Some(r#""S2""#));
    let again = stream.question().await;
    assert_eq!(again["params"].get("url"), None, "the form: {again}");
    user.answer(&again, crate::stage::ACCEPT).await;
    let third = stage.retried(2).await;
    assert_eq!(brings(&third)["p"]["action"], "accept");
    assert_eq!(brings(&third)["f"]["content"]["n"], "x");
    third.completes("done");
    stream.result().await;
}

#[tokio::test(start_paused = true)]
async fn d90_no_is_an_answer() {
    for action in ["decline", "cancel"] {
        let (stage, user) = start().await;
        let (stream, question) = page(&stage, &user).await;
        user.answer(&question, &format!(r#"{{"action":"{action}"}}"#)).await;
        let second = stage.retried(1).await;
        assert_eq!(brings(&second), json!({"k": {"action": action}}));
        second.completes("so be it");
        stream.result().await;
    }
}

/// The waiting has an end: `limits.polls`.
#[tokio::test(start_paused = true)]
async fn d90_a_page_that_is_never_done_with() {
    let stage = Stage::with("limits.polls = 3").await;
    let user = stage.latest().await;
    let (stream, question) = page(&stage, &user).await;
    user.answer(&question, CONSENT).await;
    let serving = tokio::spawn({
        let calls = stage.calls.clone();
        async move {
            for n in 2.. {
                calls.wait(n).await.asks(&[("k", &visit(PAGE))], Some(r#""S""#));
            }
        }
    });
    let answer = stream.answer().await;
    serving.abort();
    assert!(answer["result"]["isError"] == true || answer["error"]["code"] == -32603, "{answer}");
    assert_eq!(stream.asked(), 1);
    assert!(stage.calls.all().len() <= 6, "{}", stage.calls.all().len());
    stage.is_over(stage.calls.all().len()).await;
}

/// In the middle of the wait the client has had enough.
#[tokio::test(start_paused = true)]
async fn d89_cancelled_while_a_page_is_waited_for() {
    let (stage, user) = start().await;
    let (stream, question) = page(&stage, &user).await;
    user.answer(&question, CONSENT).await;
    stage.retried(1).await.asks(&[("k", &visit(PAGE))], Some(r#""S""#));
    pass(500).await;
    user.cancel("1").await;
    stream.end().await;
    assert!(!stream.briefs().contains(&"answer".to_owned()), "{:?}", stream.briefs());
    pass(60_000).await;
    stage.is_over(2).await;
}
