//! D40, D41, D42, B1.11, B11, A11.9: questions that the client's capabilities do not allow.

use crate::stage::{Begun, QUESTIONS_REFUSED, Stage, asking, done, next_round};
use crate::support::questions::{ACCEPT, FORM, URL, elicit, elicit_url, roots, sample, sample_with_tools};
use crate::support::{Done, Value, call, get_prompt, json, pass, read, rpc};

/// Capabilities, a question that they do not allow, what would be needed, and the code that the server gets.
fn table() -> Vec<(&'static str, String, Value, i64)> {
    vec![
        ("{}", elicit("7", "m"), json!({"elicitation": {}}), -32602),
        (r#"{"sampling":{},"roots":{}}"#, elicit("7", "m"), json!({"elicitation": {}}), -32602),
        (URL, elicit("7", "m"), json!({"elicitation": {}}), -32602),
        ("{}", elicit_url("7", "m", "e"), json!({"elicitation": {"url": {}}}), -32602),
        (FORM, elicit_url("7", "m", "e"), json!({"elicitation": {"url": {}}}), -32602),
        (
            r#"{"elicitation":{"form":{}}}"#,
            elicit_url("7", "m", "e"),
            json!({"elicitation": {"url": {}}}),
            -32602,
        ),
        ("{}", sample("7", "p"), json!({"sampling": {}}), -32601),
        (FORM, sample("7", "p"), json!({"sampling": {}}), -32601),
        (r#"{"sampling":{}}"#, sample_with_tools("7"), json!({"sampling": {"tools": {}}}), -32602),
        ("{}", roots("7"), json!({"roots": {}}), -32601),
        (r#"{"sampling":{},"elicitation":{}}"#, roots("7"), json!({"roots": {}}), -32601),
    ]
}

/// The refusal names at least what is needed; a form may be spelt out.
fn names(done: &Done, needed: &Value) {
    let mut required = done.data()["requiredCapabilities"].clone();
    if required == json!({"elicitation": {"form": {}}}) {
        required = json!({"elicitation": {}});
    }
    assert_eq!(&required, needed, "{}", done.raw);
}

/// D40, D41, D42: 400 while the headers are unsent.
#[tokio::test(start_paused = true)]
async fn d40_d41_d42_a_question_that_was_not_declared() {
    for (caps, question, needed, code) in table() {
        for ask in [call("ask", "{}"), get_prompt("p"), read("file:///x")] {
            let stage = Stage::new().await;
            let begun = stage.begin(&ask.caps(caps).id(r#""4""#)).await;
            let at = begun.call.clone();
            at.event(&question);
            let done = begun.done().await;
            done.is_error(400, -32021);
            names(&done, &needed);
            let method = rpc::method(question.as_bytes()).unwrap();
            assert_eq!(stage.refused("7", &method).await, code, "{caps}: {question}");
            stage.is_cancelled_once(&at).await;
            stage.is_over(1).await;
            assert_eq!(stage.metric(QUESTIONS_REFUSED, &["undeclared"]), 1.0);
        }
    }
}

/// B11: the same after progress has gone out, in band.
#[tokio::test(start_paused = true)]
async fn b1_11_in_band_when_the_headers_are_out() {
    for (caps, question, needed, code) in table() {
        let stage = Stage::new().await;
        let begun = stage.begin(&call("ask", "{}").caps(caps).meta("progressToken", "1")).await;
        let at = begun.call.clone();
        at.progress(1);
        pass(1000).await;
        at.event(&question);
        let done = begun.done().await;
        done.is_error(200, -32021);
        assert_eq!(done.headers.media_type().as_deref(), Some("text/event-stream"));
        assert_eq!(done.before.len(), 1);
        names(&done, &needed);
        assert_eq!(stage.refused("7", &rpc::method(question.as_bytes()).unwrap()).await, code);
        stage.is_cancelled_once(&at).await;
        stage.is_over(1).await;
    }
}

/// B11: a client that reads JSON only still gets the status.
#[tokio::test(start_paused = true)]
async fn b1_11_a_client_that_takes_json_only() {
    let stage = Stage::new().await;
    let ask = call("ask", "{}").meta("progressToken", "1").header("Accept", "application/json");
    let begun = stage.begin(&ask).await;
    begun.call.progress(1);
    begun.call.event(&sample("7", "p"));
    let done = begun.done().await;
    done.is_error(400, -32021);
    names(&done, &json!({"sampling": {}}));
    stage.is_over(1).await;
}

/// A8.10: what servers before 2025-11-25 may ask of every client is left out unless the client declared it.
#[tokio::test(start_paused = true)]
async fn a8_10_include_context() {
    for include in ["thisServer", "allServers", "none"] {
        for (caps, kept) in
            [(r#"{"sampling":{}}"#, include == "none"), (r#"{"sampling":{"context":{}}}"#, true)]
        {
            let stage = Stage::new().await;
            let question = sample("7", "p")
                .replace(r#""maxTokens""#, &format!(r#""includeContext":"{include}","maxTokens""#));
            let (round, at) = stage.asked(&call("ask", "{}").caps(caps), &[&question]).await;
            let params = &round.entry(&round.only())["params"];
            let wanted = kept.then(|| json!(include));
            match params.get("includeContext") {
                // Leaving out what is the default changes nothing.
                None => assert!(!kept || include == "none", "{caps}: {params}"),
                some => assert_eq!(some, wanted.as_ref(), "{caps}: {params}"),
            }
            at.finish("no matter");
        }
    }
}

/// C46: one declared question and two that are not. Only declared kinds are asked, if any; the others are refused.
#[tokio::test(start_paused = true)]
async fn c46_only_declared_kinds() {
    let stage = Stage::new().await;
    let begun = stage.begin(&call("ask", "{}").caps(FORM)).await;
    let at = begun.call.clone();
    [elicit("1", "m"), sample("2", "p"), roots("3")].iter().for_each(|question| at.event(question));
    let done = begun.done().await;
    if done.message.get("error").is_some() {
        done.is_error(400, -32021);
        stage.is_cancelled_once(&at).await;
    } else {
        assert!(done.raw.contains("elicitation/create"), "{}", done.raw);
        assert!(!done.raw.contains("sampling/") && !done.raw.contains("roots/list"), "{}", done.raw);
    }
    pass(1000).await;
    let codes: Vec<_> = ["2", "3"].iter().flat_map(|id| stage.answers_to(id)).collect();
    assert!(codes.iter().all(|answer| answer["error"]["code"] == -32601), "{codes:?}");
    assert!(!codes.is_empty());
}

/// Capabilities are per request: a retry that declares less than the call did.
#[tokio::test(start_paused = true)]
async fn b1_11_a_retry_that_declares_less() {
    let stage = Stage::new().await;
    let (round, at) = stage.asked(&asking(1), &[&elicit("7", "m")]).await;
    let client = stage.run(&round.answer("2", ACCEPT).caps(FORM));
    stage.elicited("7").await;
    at.event(&sample("8", "p"));
    let done = done(client).await;
    done.is_error(400, -32021);
    names(&done, &json!({"sampling": {}}));
    assert_eq!(stage.refused("8", "sampling/createMessage").await, -32601);
    stage.is_cancelled_once(&at).await;
    stage.is_over(1).await;
}

/// And one that declares more: the session has told the server what it has told it.
#[tokio::test(start_paused = true)]
async fn b1_11_a_retry_that_declares_more() {
    let stage = Stage::new().await;
    let (round, at) = stage.asked(&call("ask", r#"{"n":1}"#).caps(FORM), &[&elicit("7", "m")]).await;
    let retry = round.answer("2", ACCEPT).caps(crate::support::questions::ALL);
    let client = stage.run(&retry);
    stage.elicited("7").await;
    at.event(&elicit("8", "next"));
    let next = next_round(&retry, client).await;
    let client = stage.run(&next.answer("3", ACCEPT));
    stage.elicited("8").await;
    at.finish("the end");
    crate::stage::ends_with(&done(client).await, "the end");
    assert_eq!(stage.up.posts("initialize").len(), 1);
}

/// Invariant 7: a request that is no question of any revision, and questions without their shape.
#[tokio::test(start_paused = true)]
async fn inv7_what_is_no_question_is_refused_and_counted() {
    let bad = |method: &str, params: &str| crate::support::questions::request("7", method, params);
    let table = [
        (bad("acme/ask", "{}"), "method", -32601),
        (bad("tasks/get", r#"{"taskId":"t"}"#), "method", -32601),
        (bad("tools/list", "{}"), "method", -32601),
        (
            bad("elicitation/create", r#"{"message":5,"requestedSchema":{"type":"object","properties":{}}}"#),
            "malformed",
            -32602,
        ),
        (r#"{"jsonrpc":"2.0","id":7,"method":"elicitation/create"}"#.to_owned(), "malformed", -32602),
        (bad("elicitation/create", "null"), "malformed", -32602),
        (bad("elicitation/create", r#"{"message":"m"}"#), "malformed", -32602),
        (
            bad("elicitation/create", r#"{"message":"m","requestedSchema":{"type":"array"}}"#),
            "malformed",
            -32602,
        ),
        (bad("elicitation/create", r#"{"mode":"url","message":"m"}"#), "malformed", -32602),
        (bad("elicitation/create", r#"{"mode":"smoke","message":"m"}"#), "malformed", -32602),
        (bad("sampling/createMessage", r#"{"messages":[]}"#), "malformed", -32602),
        (bad("sampling/createMessage", r#"{"messages":{},"maxTokens":1}"#), "malformed", -32602),
    ];
    for (question, reason, code) in table {
        let stage = Stage::new().await;
        let begun: Begun = stage.begin(&asking(1)).await;
        let at = begun.call.clone();
        at.event(&question);
        let answer =
            crate::support::within("an answer", async { stage.up.wait("response", 1).await[0].json() }).await;
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&json!(7), &json!(code)),
            "{question}: {answer}"
        );
        assert_eq!(stage.metric(QUESTIONS_REFUSED, &[reason]), 1.0, "{question}");
        // The server knows now, and goes on; the client is asked nothing.
        at.finish("the end");
        let done = begun.done().await;
        assert_ne!(done.message["result"]["resultType"], "input_required", "{}", done.raw);
    }
}
