//! D84, D88, A4.15, B2.6, B2.7, C44: what clients answer, and what the server hears of it.

use crate::stage::{ACCEPT, FORM, ROOTED, ROOTS, SAMPLE, SAMPLED, Stage, brings, parse};
use crate::support::{json, pass};

#[tokio::test(start_paused = true)]
async fn d88_loop_client_error() {
    for (entry, codes) in [(SAMPLE, [-1, -32603]), (ROOTS, [-32601, -32603]), (FORM, [-32602, -32000])] {
        for code in codes {
            let stage = Stage::new().await;
            let user = stage.latest().await;
            let stream = stage.asked(&user, &[("k", entry)], Some(r#""S""#)).await;
            user.refuse(&stream.question().await, code).await;
            stream.tool_error().await;
            stage.is_over(1).await;
            for (n, (method, params)) in
                [("prompts/get", r#""name":"p""#), ("resources/read", r#""uri":"file:///x""#)]
                    .into_iter()
                    .enumerate()
            {
                let ask = user.old.ask(method).params(params);
                let stream = stage.asked_at(&user, &ask, &[("k", entry)], Some(r#""S""#)).await;
                user.refuse(&stream.question().await, code).await;
                assert_eq!(stream.code().await, -32603, "{method} {code}");
                stage.is_over(n + 2).await;
            }
        }
    }
}

/// B2.6, B2.8: the others of the round are waited for no more, and the client is told so.
#[tokio::test(start_paused = true)]
async fn d88_the_others_of_the_round_are_withdrawn() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    let stream = stage.asked(&user, &[("a", SAMPLE), ("b", FORM)], Some(r#""S""#)).await;
    let questions = stream.questions(2).await;
    let (refused, other): (Vec<_>, Vec<_>) =
        questions.iter().partition(|question| question["method"] == "sampling/createMessage");
    user.refuse(refused[0], -1).await;
    stream.tool_error().await;
    let cancelled = stream.notes("notifications/cancelled");
    assert_eq!(cancelled.len(), 1, "{:?}", stream.messages());
    assert_eq!(cancelled[0]["params"]["requestId"], other[0]["id"]);
    // Too late: accepted, and of no effect.
    user.answer(other[0], ACCEPT).await;
    stage.is_over(1).await;
}

/// Elicitation has words for no: they are the server's to hear.
#[tokio::test(start_paused = true)]
async fn d88_decline_and_cancel_are_answers() {
    for (answer, expected) in [
        (r#"{"action":"decline"}"#, json!({"action": "decline"})),
        (r#"{"action":"cancel","content":null}"#, json!({"action": "cancel"})),
        (r#"{"action":"cancel"}"#, json!({"action": "cancel"})),
    ] {
        let stage = Stage::new().await;
        let user = stage.latest().await;
        let stream = stage.asked(&user, &[("k", FORM)], Some(r#""S""#)).await;
        user.answer(&stream.question().await, answer).await;
        let second = stage.retried(1).await;
        let mut brought = brings(&second)["k"].clone();
        if brought["content"].is_null() {
            brought.as_object_mut().unwrap().remove("content");
        }
        assert_eq!(brought, expected);
        second.completes("so be it");
        stream.result().await;
    }
}

/// An answer that is none to the question ends the call as an error of the client does.
#[tokio::test(start_paused = true)]
async fn d88_answers_that_fit_no_question() {
    let table = [
        (FORM, "{}"),
        (FORM, r#"{"action":"perhaps"}"#),
        (FORM, r#"{"action":"accept","content":[1]}"#),
        (SAMPLE, r#"{"role":"assistant"}"#),
        (SAMPLE, r#"{"action":"accept"}"#),
        (ROOTS, r#"{"roots":5}"#),
        (ROOTS, "{}"),
    ];
    for (entry, answer) in table {
        let stage = Stage::new().await;
        let user = stage.latest().await;
        let stream = stage.asked(&user, &[("k", entry)], Some(r#""S""#)).await;
        user.answer(&stream.question().await, answer).await;
        stream.tool_error().await;
        stage.is_over(1).await;
    }
}

/// B2.7, A4.15: what belongs to the message around an answer stays here; the rest goes as it is.
#[tokio::test(start_paused = true)]
async fn d84_answers_are_plain_results() {
    let table = [
        (
            FORM,
            r#"{"_meta":{"x":1},"action":"accept","content":{"n":"\u0041","m":2.50},"resultType":"complete","task":{"taskId":"t"}}"#,
            r#"{"action":"accept","content":{"n":"A","m":2.50}}"#,
        ),
        (
            ROOTS,
            r#"{"roots":[{"uri":"file:///a","_meta":{"y":1}}],"_meta":{"x":1}}"#,
            r#"{"roots":[{"uri":"file:///a","_meta":{"y":1}}]}"#,
        ),
        (
            SAMPLE,
            r#"{"role":"assistant","content":{"type":"text","text":"y"},"model":"m","stopReason":"other","resultType":"complete"}"#,
            r#"{"role":"assistant","content":{"type":"text","text":"y"},"model":"m","stopReason":"other"}"#,
        ),
    ];
    for (entry, answer, expected) in table {
        let stage = Stage::new().await;
        let user = stage.latest().await;
        let stream = stage.asked(&user, &[("k", entry)], None).await;
        user.answer(&stream.question().await, answer).await;
        let second = stage.retried(1).await;
        assert_eq!(brings(&second)["k"], parse(expected), "{answer}");
        if entry == FORM {
            assert!(second.seen.text().contains(r#"{"n":"\u0041","m":2.50}"#), "{}", second.seen.text());
        }
        second.completes("done");
        stream.result().await;
    }
}

/// C44: answers that nobody waits for are accepted, and reach nobody.
#[tokio::test(start_paused = true)]
async fn c44_answers_to_nothing() {
    let stage = Stage::new().await;
    let (user, other) = (stage.latest().await, stage.latest().await);
    let stream = stage.asked(&user, &[("k", FORM)], Some(r#""S""#)).await;
    let question = stream.question().await;
    let id = question["id"].to_string();
    // Another session's, another id.
    other.answer(&question, ACCEPT).await;
    other.refuse(&question, -1).await;
    pass(1000).await;
    assert_eq!(stage.calls.all().len(), 1, "another session's answer is none");
    for wrong in ["0", r#""x""#] {
        let done = stage.proxy.send(&user.old.answer(wrong, ACCEPT)).await;
        assert_eq!((done.status, done.raw.as_str()), (202, ""), "{wrong}");
        pass(1000).await;
        assert_eq!(stage.calls.all().len(), 1, "{wrong} is another id");
    }
    for bad in [r#"{"jsonrpc":"2.0","result":{}}"#, r#"{"jsonrpc":"2.0","id":null,"result":{}}"#] {
        let done = stage.proxy.send(&user.old.raw(bad)).await;
        assert!(done.status == 202 || done.status == 400, "{bad}: {}", done.status);
    }
    pass(1000).await;
    assert_eq!(stage.calls.all().len(), 1, "nothing of these was an answer");
    let done = stage.proxy.send(&user.old.answer(&id, ACCEPT)).await;
    assert_eq!(done.status, 202);
    // Once more: it has its answer.
    user.answer(&question, r#"{"action":"decline"}"#).await;
    user.refuse(&question, -1).await;
    let second = stage.retried(1).await;
    assert_eq!(brings(&second)["k"]["action"], "accept");
    second.completes("done");
    stream.result().await;
    stage.is_over(2).await;
}

/// The ids of both sides do not mix: a question under the id of the client's own request is the proxy's all the same.
#[tokio::test(start_paused = true)]
async fn c44_ids_of_both_sides_do_not_mix() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    let stream = stage.asked(&user, &[("k", ROOTS)], None).await;
    let question = stream.question().await;
    // A request of its own under the id of the question.
    let ask = user.old.ask("tools/list").id(&question["id"].to_string());
    user.send(&ask).await.result();
    user.answer(&question, ROOTED).await;
    stage.retried(1).await.completes("done");
    stream.result().await;
}

/// Principals: two callers, each with a question; answers of one are nothing to the other's.
#[tokio::test(start_paused = true)]
async fn inv2_two_callers_are_asked_apart() {
    let stage = Stage::new().await;
    let (alice, bob) = (stage.user_as("alice").await, stage.user_as("bob").await);
    let of_alice = stage.asked(&alice, &[("k", SAMPLE)], Some(r#""alice""#)).await;
    let of_bob = stage.asked(&bob, &[("k", SAMPLE)], Some(r#""bob""#)).await;
    let (question, other) = (of_alice.question().await, of_bob.question().await);
    bob.answer(&question, &SAMPLED.replace("yes", "stolen")).await;
    bob.answer(&other, &SAMPLED.replace("yes", "b")).await;
    let third = stage.calls.wait(3).await;
    assert_eq!(third.params()["requestState"], "bob");
    assert_eq!(third.seen.header("authorization").as_deref(), Some("Bearer bob"));
    third.completes("for bob");
    assert_eq!(of_bob.result().await["content"][0]["text"], "for bob");
    assert_eq!(stage.calls.all().len(), 3, "alice has not answered");
    alice.answer(&question, &SAMPLED.replace("yes", "a")).await;
    let fourth = stage.calls.wait(4).await;
    assert_eq!(brings(&fourth)["k"]["content"]["text"], "a");
    assert_eq!(fourth.seen.header("authorization").as_deref(), Some("Bearer alice"));
    fourth.completes("for alice");
    of_alice.result().await;
}
