//! D84, D85, D87, D94, D104, B2.2, B2.3: what a modern server requires, asked of the client on the stream of its call, and the
//! same request again with the answers.

use std::collections::HashSet;

use crate::stage::{
    ACCEPT, FORM, LATEST, REVISIONS, ROOTED, ROOTS, SAMPLE, SAMPLED, Stage, brings, opened, parse,
};
use crate::support::{Stream, User, Value, json, pass, rpc};

/// A state as a server may write it; it goes back to the byte.
const STATE: &str = r#""S\u0041\/é \u2028""#;

/// Two questions that a client of this revision can be asked, and the answers.
fn two(revision: &str) -> [(&'static str, &'static str, &'static str); 2] {
    let first = if revision >= "2025-06-18" { ("a", FORM, ACCEPT) } else { ("a", SAMPLE, SAMPLED) };
    [first, ("b", ROOTS, ROOTED)]
}

fn method(entry: &str) -> String {
    parse(entry)["method"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn d84_loop_basic() {
    for revision in REVISIONS {
        for reversed in [false, true] {
            let stage = Stage::new().await;
            let user = stage.user(revision).await;
            let ask = user.old.call("ask", r#"{"z":1.50,"a":"\u0041"}"#).id("\"c\"").member("x-own", "[1.0]");
            let (opening, first) = stage.start(&user, &ask).await;
            let asked = two(revision);
            first.asks(&asked.map(|(key, entry, _)| (key, entry)), Some(STATE));
            let stream = opened(opening).await;
            assert!(stream.is_stream());
            // Both at once: none waits for the other's answer.
            let mut questions = stream.questions(2).await;
            questions.sort_by_key(|question| question["method"] == "roots/list");
            assert_ne!(questions[0]["id"], questions[1]["id"]);
            for (question, (_, entry, _)) in questions.iter().zip(asked) {
                assert!(question["id"].is_i64() || question["id"].is_u64(), "{question}");
                assert_eq!(question["method"], method(entry), "{revision}");
            }
            let mut answers: Vec<_> = questions.iter().zip(asked.map(|(_, _, answer)| answer)).collect();
            if reversed {
                answers.reverse();
            }
            for (n, (question, answer)) in answers.into_iter().enumerate() {
                assert_eq!(stage.calls.all().len(), 1, "not before all {n} are there");
                user.answer(question, answer).await;
            }
            let second = stage.retried(1).await;
            assert!(!first.is_open());
            assert_ne!(first.id(), second.id(), "B2.3: a new id");
            let text = second.seen.text();
            assert!(text.contains(&format!(r#""requestState":{STATE}"#)), "to the byte: {text}");
            let expected: serde_json::Map<_, _> =
                asked.iter().map(|(key, _, answer)| ((*key).to_owned(), parse(answer))).collect();
            assert_eq!(brings(&second), Value::Object(expected), "{revision}");
            // The same request otherwise.
            assert!(text.contains(r#""arguments":{"z":1.50,"a":"\u0041"}"#), "to the byte: {text}");
            assert!(text.contains(r#""x-own":[1.0]"#), "to the byte: {text}");
            for name in ["mcp-method", "mcp-name", "mcp-protocol-version"] {
                assert_eq!(first.seen.header(name), second.seen.header(name), "{name}");
            }
            second.completes("done");
            let result = stream.result().await;
            assert_eq!(result, json!({"content": [{"type": "text", "text": "done"}]}), "{revision}");
            assert_eq!(stream.messages().last().unwrap()["id"], "c");
            assert_eq!(stream.asked(), 2);
            stage.is_over(2).await;
            stage.nothing_is_left().await;
        }
    }
}

/// The other two methods that may be answered so.
#[tokio::test(start_paused = true)]
async fn d84_prompts_and_resources_too() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    for (n, (method, params)) in
        [("prompts/get", r#""name":"p","arguments":{"a":"b"}"#), ("resources/read", r#""uri":"file:///x""#)]
            .into_iter()
            .enumerate()
    {
        let ask = user.old.ask(method).params(params);
        let stream = stage.asked_at(&user, &ask, &[("k \u{e9}\\\"", ROOTS)], None).await;
        user.answer(&stream.question().await, ROOTED).await;
        let second = stage.calls.wait(2 * n + 2).await;
        assert_eq!(brings(&second), json!({"k \u{e9}\"": parse(ROOTED)}), "the server's own key");
        assert_eq!(second.params().get("requestState"), None, "there was none");
        second.completes("done");
        let result = stream.result().await;
        assert!(result.to_string().contains("done"), "{result}");
    }
}

/// A server that answers on an event stream, with something said before it asks.
#[tokio::test(start_paused = true)]
async fn d84_a_round_at_the_end_of_a_stream() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    user.level("info").await.result();
    let (stream, first) = stage.begin(&user).await;
    first.log("info", "one");
    first.asks(&[("k", FORM)], Some(r#""S""#));
    user.answer(&stream.question().await, ACCEPT).await;
    let second = stage.retried(1).await;
    second.log("info", "two");
    second.completes("done");
    stream.result().await;
    let briefs = stream.briefs();
    assert_eq!(briefs, ["notifications/message", "elicitation/create", "notifications/message", "answer"]);
    // The level goes with every round.
    assert_eq!(second.meta("io.modelcontextprotocol/logLevel"), "info");
}

#[tokio::test(start_paused = true)]
async fn d85_loop_replace() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    let stream = stage.asked(&user, &[("a", FORM), ("b", ROOTS)], Some(r#""S1""#)).await;
    for question in stream.questions(2).await {
        let answer = if question["method"] == "roots/list" { ROOTED } else { ACCEPT };
        user.answer(&question, answer).await;
    }
    let second = stage.retried(1).await;
    second.asks(&[("c", SAMPLE)], None);
    user.answer(&stream.question().await, SAMPLED).await;
    let third = stage.retried(2).await;
    assert_eq!(brings(&third), json!({"c": parse(SAMPLED)}), "this round's only");
    assert_eq!(third.params().get("requestState"), None, "none came, none goes");
    third.asks(&[("a", ROOTS)], Some(r#""S3""#));
    user.answer(&stream.question().await, ROOTED).await;
    let fourth = stage.retried(3).await;
    assert_eq!(
        (brings(&fourth), &fourth.params()["requestState"]),
        (json!({"a": parse(ROOTED)}), &json!("S3"))
    );
    let ids: HashSet<_> = stage.calls.all().iter().map(|call| call.id().to_string()).collect();
    assert_eq!(ids.len(), 4);
    let questions: Vec<_> = stream.messages().into_iter().filter(|m| m.get("method").is_some()).collect();
    let ids: HashSet<_> = questions.iter().map(|question| question["id"].to_string()).collect();
    assert_eq!(ids.len(), 4, "questions have ids of their own, too");
    fourth.completes("done");
    stream.result().await;
}

#[tokio::test(start_paused = true)]
async fn d87_loop_empty() {
    let none = [
        r#"{"resultType":"input_required"}"#,
        r#"{"resultType":"input_required","inputRequests":{}}"#,
        r#"{"resultType":"input_required","inputRequests":null,"requestState":null}"#,
        r#"{"resultType":"input_required","inputRequests":[]}"#,
        r#"{"resultType":"input_required","inputRequests":5,"requestState":"s"}"#,
        r#"{"resultType":"input_required","inputRequests":{"k":5},"requestState":"s"}"#,
        r#"{"resultType":"input_required","inputRequests":{"k":{}},"requestState":"s"}"#,
        r#"{"resultType":"input_required","inputRequests":{"k":{"method":"acme/ask"}},"requestState":"s"}"#,
        r#"{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create"}},"requestState":"s"}"#,
        r#"{"resultType":"input_required","inputRequests":{"k":{"method":"roots/list"}},"requestState":5}"#,
        r#"{"resultType":"input_required","requestState":{"a":1}}"#,
        r#"{"resultType":"input_required","inputRequests":{"k":{"method":"ping"}}}"#,
    ];
    for raw in none {
        let stage = Stage::new().await;
        let user = stage.latest().await;
        for (n, (method, params)) in
            [("prompts/get", r#""name":"p""#), ("tools/call", r#""name":"ask","arguments":{}"#)]
                .into_iter()
                .enumerate()
        {
            let (opening, call) = stage.start(&user, &user.old.ask(method).params(params)).await;
            call.whole_result(raw);
            let stream = opened(opening).await;
            let answer = stream.answer().await;
            // B2.1: what a server does wrong in asking may be a tool's failure.
            let failed = answer["error"]["code"] == -32603
                || method == "tools/call" && answer["result"]["isError"] == true;
            assert!(failed, "{method} {raw}: {answer}");
            assert_eq!(stream.asked(), 0, "{raw}");
            stage.is_over(n + 1).await;
        }
    }
}

/// One bad question is a bad round: nobody is asked the others.
#[tokio::test(start_paused = true)]
async fn d87_a_round_is_asked_whole_or_not() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    let stream = stage.asked(&user, &[("a", FORM), ("b", r#"{"method":"acme/ask"}"#)], Some(r#""S""#)).await;
    stream.answer().await;
    assert_eq!(stream.asked(), 0);
    stage.is_over(1).await;
}

#[tokio::test(start_paused = true)]
async fn d94_loop_json_mode() {
    for revision in REVISIONS {
        let stage = Stage::new().await;
        let user = stage.user(revision).await;
        for n in 0..3 {
            let (opening, call) = stage.start(&user, &user.old.call("ask", "{}")).await;
            if n == 0 {
                pass(5000).await;
            }
            call.completes("done");
            let stream = opened(opening).await;
            stream.result().await;
            assert!(stream.is_stream(), "{revision}: it could have been asked");
        }
    }
}

/// Two calls of one client at once, each asked at the same time under the same key.
#[tokio::test(start_paused = true)]
async fn d84_two_calls_at_once() {
    for revision in REVISIONS {
        let stage = Stage::new().await;
        let user = stage.user(revision).await;
        let (one, two) = (user.old.call("ask", r#"{"n":1}"#), user.old.call("ask", r#"{"n":2}"#));
        // Under ids that only their type tells apart.
        let (one, two) = (one.id("1"), two.id("\"1\""));
        let (first, second) = tokio::join!(run(&stage, &user, &one), run(&stage, &user, &two));
        first.1.asks(&[("k", SAMPLE)], Some(r#""one""#));
        second.1.asks(&[("k", SAMPLE)], Some(r#""two""#));
        for (stream, text) in [(&second.0, "b"), (&first.0, "a")] {
            let answer = SAMPLED.replace("yes", text);
            user.answer(&stream.question().await, &answer).await;
        }
        for n in [3, 4] {
            let again = stage.calls.wait(n).await;
            let expected = if again.argument("n") == 1 { ("one", "a") } else { ("two", "b") };
            assert_eq!(again.params()["requestState"], expected.0, "{revision}");
            assert_eq!(brings(&again)["k"]["content"]["text"], expected.1, "{revision}");
            again.completes(expected.0);
        }
        assert_eq!(first.0.result().await["content"][0]["text"], "one");
        assert_eq!(second.0.result().await["content"][0]["text"], "two");
    }
}

async fn run(
    stage: &Stage,
    user: &User,
    ask: &crate::support::Ask,
) -> (Stream, std::sync::Arc<crate::support::Call>) {
    let n = rpc::value(&ask.body()).unwrap()["params"]["arguments"]["n"].as_i64().unwrap();
    let (user, ask) = (user.clone(), ask.clone());
    let opening = tokio::spawn(async move { user.open(&ask).await });
    let call = stage.calls.marked(n).await;
    (opened(opening).await, call)
}

/// A question of a kind that the session did not declare is the server's fault (B2.1); see `gates` for all kinds.
#[tokio::test(start_paused = true)]
async fn d84_a_later_round_may_ask_wrongly_too() {
    let stage = Stage::new().await;
    let user = stage.user_with(LATEST, r#"{"roots":{}}"#).await;
    let stream = stage.asked(&user, &[("k", ROOTS)], Some(r#""S""#)).await;
    user.answer(&stream.question().await, ROOTED).await;
    stage.retried(1).await.asks(&[("k", SAMPLE)], Some(r#""S""#));
    stream.tool_error().await;
    assert_eq!(stream.asked(), 1);
    stage.is_over(2).await;
}

/// The server ends the call with an error instead of going on.
#[tokio::test(start_paused = true)]
async fn d84_a_later_round_may_fail() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    let errors: [(u16, &str, i64); 3] = [
        (200, r#"{"code":-32602,"message":"state"}"#, -32602),
        (400, r#"{"code":-32000,"message":"no"}"#, -32000),
        (404, r#"{"code":-32601,"message":"gone"}"#, -32601),
    ];
    for (n, (status, error, code)) in errors.into_iter().enumerate() {
        let stream = stage.asked(&user, &[("k", ROOTS)], Some(r#""S""#)).await;
        user.answer(&stream.question().await, ROOTED).await;
        let second = stage.calls.wait(2 * n + 2).await;
        second.whole(status, &rpc::error_message(&second.seen.id(), error));
        assert_eq!(stream.code().await, code);
    }
    stage.is_over(6).await;
}

/// D104 in a later round: what was answered is lost with the request, and nothing runs again.
#[tokio::test(start_paused = true)]
async fn d104_a_later_round_breaks() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    let stream = stage.asked(&user, &[("k", ROOTS)], Some(r#""S""#)).await;
    user.answer(&stream.question().await, ROOTED).await;
    let second = stage.retried(1).await;
    second.head();
    second.reset();
    assert_eq!(stream.code().await, -32603);
    pass(60_000).await;
    stage.is_over(2).await;
}
