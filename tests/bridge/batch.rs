//! D81, C31, A14.1, B16: arrays of messages, which only 2025-03-26 has.

use crate::stage::{ROOTED, ROOTS, SAMPLE, SAMPLED, Stage};
use crate::support::{Stream, User, json, rpc};

const OLD: &str = "2025-03-26";
const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","id":"2","method":"tools/list"}"#;
const NOTE: &str = r#"{"jsonrpc":"2.0","method":"notifications/acme"}"#;

fn call(id: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"ask","arguments":{{"n":{id}}}}}}}"#
    )
}

fn array(user: &User, messages: &[&str]) -> crate::support::Ask {
    user.old.raw(&format!(" \n[{}]", messages.join(" , ")))
}

async fn answers(stream: &Stream, n: usize) -> Vec<crate::support::Value> {
    let mut all = stream.answers(n).await;
    all.sort_by_key(|answer| answer["id"].to_string());
    all
}

#[tokio::test(start_paused = true)]
async fn d81_c31_batch_03() {
    for capabilities in ["{}", r#"{"sampling":{},"roots":{}}"#] {
        let stage = Stage::new().await;
        let user = stage.user_with(OLD, capabilities).await;
        for accept in ["application/json, text/event-stream", "application/json"] {
            let stream = user.open(&array(&user, &[PING, LIST, NOTE]).header("Accept", accept)).await;
            assert_eq!(stream.status, 200);
            let all = answers(&stream, 2).await;
            stream.end().await;
            assert_eq!(stream.messages().len(), 2, "{:?}", stream.messages());
            assert_eq!((&all[0]["id"], &all[1]["id"]), (&json!("2"), &json!(1)), "each in its own type");
            assert_eq!(all[0]["result"]["tools"][0]["name"], "echo");
            assert_eq!(all[1]["result"], json!({}));
            if accept == "application/json" {
                assert!(stream.text().trim_start().starts_with('['), "an array: {}", stream.text());
            }
        }
        stage.up.wait("notifications/acme", 2).await;
        // One request alone is an array of one.
        let one = user.open(&array(&user, &[PING])).await;
        one.end().await;
        assert_eq!(one.messages().len(), 1);
        if !one.is_stream() {
            assert!(one.text().trim_start().starts_with('['), "{}", one.text());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn d81_what_is_no_batch() {
    let stage = Stage::new().await;
    let user = stage.user(OLD).await;
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}"#;
    let response = r#"{"jsonrpc":"2.0","id":5,"result":{}}"#;
    for messages in
        [&[][..], &[initialize], &[PING, initialize], &[PING, response], &[NOTE, response], &["5"], &["[]"]]
    {
        let done = stage.unmoved(stage.proxy.send(&array(&user, messages))).await;
        done.is_error(400, -32600);
    }
    let many = vec![PING; 1100];
    assert_eq!(stage.proxy.send(&array(&user, &many)).await.status, 400, "limits.members");
    // Without answers: 202.
    for messages in [&[NOTE][..], &[NOTE, NOTE], &[response], &[response, response]] {
        let done = stage.proxy.send(&array(&user, messages)).await;
        assert_eq!((done.status, done.raw.as_str()), (202, ""), "{messages:?}");
    }
    assert!(user.lives().await);
}

#[tokio::test(start_paused = true)]
async fn d81_c31_no_other_revision_has_them() {
    for revision in ["2025-11-25", "2025-06-18", "2024-11-05"] {
        let stage = Stage::new().await;
        let user = stage.user(revision).await;
        for messages in [&[PING, LIST, NOTE][..], &[PING], &[NOTE], &[]] {
            let done = stage.unmoved(stage.proxy.send(&array(&user, messages))).await;
            done.is_error(400, -32600);
        }
        assert!(user.lives().await);
    }
}

/// B16: questions of calls in an array come on its stream, and their answers may come as an array too.
#[tokio::test(start_paused = true)]
async fn b16_questions_in_a_batch() {
    let stage = Stage::new().await;
    let user = stage.user(OLD).await;
    let ask = array(&user, &[&call("1"), PING.replace("\"id\":1", "\"id\":\"p\"").as_str(), &call("2")]);
    let opening = tokio::spawn({
        let user = user.clone();
        async move { user.open(&ask).await }
    });
    let (one, two) = (stage.calls.marked(1).await, stage.calls.marked(2).await);
    one.asks(&[("a", ROOTS)], Some(r#""S1""#));
    two.asks(&[("b", SAMPLE)], Some(r#""S2""#));
    let stream = opening.await.unwrap();
    assert!(stream.is_stream());
    let mut questions = stream.questions(2).await;
    questions.sort_by_key(|question| question["method"].to_string());
    let of = |n: usize, result: &str| rpc::result_message(&questions[n]["id"].to_string(), result);
    let both = array(&user, &[&of(1, SAMPLED), &of(0, ROOTED)]);
    assert_eq!(stage.proxy.send(&both).await.status, 202);
    let (third, fourth) = (stage.calls.wait(3).await, stage.calls.wait(4).await);
    for again in [third, fourth] {
        let (state, key) = if again.argument("n") == 1 { ("S1", "a") } else { ("S2", "b") };
        assert_eq!(again.params()["requestState"], state);
        assert_eq!(again.params()["inputResponses"].as_object().unwrap().keys().collect::<Vec<_>>(), [key]);
        again.completes(state);
    }
    let all = answers(&stream, 3).await;
    let texts: Vec<_> = all.iter().map(|answer| answer["result"]["content"][0]["text"].clone()).collect();
    assert_eq!(texts, [json!(null), json!("S1"), json!("S2")]);
}

/// One call of an array fails or is cancelled: the others are answered.
#[tokio::test(start_paused = true)]
async fn b16_each_message_is_its_own() {
    let stage = Stage::new().await;
    let user = stage.user(OLD).await;
    let ask = array(&user, &[&call("1"), &call("2"), &call("3")]);
    let opening = tokio::spawn({
        let user = user.clone();
        async move { user.open(&ask).await }
    });
    let (one, two, three) =
        (stage.calls.marked(1).await, stage.calls.marked(2).await, stage.calls.marked(3).await);
    one.whole_error(r#"{"code":-32000,"message":"no"}"#);
    user.cancel("2").await;
    three.completes("done");
    let stream = opening.await.unwrap();
    assert_eq!(stream.end().await, crate::support::End::Clean);
    let all = answers(&stream, 2).await;
    assert_eq!((&all[0]["id"], &all[0]["error"]["code"]), (&json!(1), &json!(-32000)));
    assert_eq!((&all[1]["id"], &all[1]["result"]["content"][0]["text"]), (&json!(3), &json!("done")));
    assert_eq!(stream.messages().len(), 2);
    assert!(!two.is_open());
}

/// A session without capabilities, or a client that takes no stream, is answered whole.
#[tokio::test(start_paused = true)]
async fn b16_a_question_in_an_array_that_can_have_none() {
    let stage = Stage::new().await;
    let user = stage.user(OLD).await;
    let ask = array(&user, &[&call("1"), &call("2")]).header("Accept", "application/json");
    let opening = tokio::spawn({
        let user = user.clone();
        async move { user.open(&ask).await }
    });
    let (one, two) = (stage.calls.marked(1).await, stage.calls.marked(2).await);
    one.asks(&[("a", ROOTS)], None);
    two.completes("done");
    let stream = opening.await.unwrap();
    let all = answers(&stream, 2).await;
    assert_eq!(all[0]["result"]["isError"], true, "{all:?}");
    assert_eq!(all[1]["result"]["content"][0]["text"], "done");
    stage.is_over(2).await;
}
