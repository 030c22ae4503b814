//! Forms: what a legacy server asks on any stream, and what a modern server's result asks. B1.12, A13.5.

use crate::stage::{LEGACY, Like, WARN, streamed};
use crate::support::{Era, Gets, LegacyServer, Net, Reply, Seen, json};
use std::sync::Arc;

const GOOD_FORM: &str = r#"{"type":"object","properties":{"a":{"type":"string"}}}"#;
const BAD_FORM: &str = r#"{"type":"object","properties":{"a":{"type":"text","title":"canary"}}}"#;

fn question(id: &str, schema: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"elicitation/create","params":{{"message":"m","requestedSchema":{schema}}}}}"#
    )
}

/// What the server is answered to a question, as it came.
async fn answered(like: &Like, n: usize) -> Vec<Arc<Seen>> {
    like.up.wait("response", n).await
}

#[tokio::test(start_paused = true)]
async fn b1_12_a_bad_form_is_answered_in_the_clients_session() {
    for lines in ["", "session = { shield = true }\n"] {
        let done = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[]}}"#;
        let given = format!(
            "id: a\nretry: 50\ndata: {}\n\nid: b\ndata: {}\n\ndata: {done}\n\n",
            question("\"q\"", BAD_FORM),
            question("5", GOOD_FORM)
        );
        let answer = move |reply| {
            let given = given.clone();
            async move { streamed(reply, &given, 30).await }
        };
        let like = Like::of(LEGACY, "tools/call", lines, answer).await;
        let body = like.body(&like.call("good")).await;
        assert!(!body.contains("canary") && body.contains(&question("5", GOOD_FORM)), "{body}");
        assert!(body.starts_with("id:") && body.contains("retry: 50\n"), "{body}");
        let answers = answered(&like, 1).await;
        let said = answers[0].json();
        assert_eq!((&said["id"], &said["error"]["code"]), (&json!("q"), &json!(-32602)), "{said}");
        assert!(said["error"]["message"].as_str().unwrap().contains("/properties/a"), "{said}");
        assert_eq!(answers[0].session().as_deref(), Some("S1"));
        assert_eq!(answers[0].header("mcp-protocol-version").as_deref(), Some("2025-11-25"));
    }
}

#[tokio::test(start_paused = true)]
async fn b1_12_the_same_on_the_stream_of_a_get() {
    for lines in ["", "session = { shield = true }\n"] {
        let gets = Gets::open();
        let net = Net::new();
        let up = gets.of(LegacyServer::new()).start(&net);
        let like = Like::before(LEGACY, &net, up, lines).await;
        let mut stream = like.open(&like.old().get()).await;
        gets.wait(1).await.event(&question("1", BAD_FORM));
        gets.wait(1).await.event(&question("2", GOOD_FORM));
        assert_eq!(stream.message().await["id"], 2);
        assert_eq!(answered(&like, 1).await[0].json()["id"], 1);
    }
}

#[tokio::test(start_paused = true)]
async fn b1_12_warn_passes_it() {
    let given = format!("data: {}\n\n", question("1", BAD_FORM));
    let sent = given.clone();
    let answer = move |reply| {
        let sent = sent.clone();
        async move { streamed(reply, &sent, usize::MAX).await }
    };
    let like = Like::of(LEGACY, "tools/call", WARN, answer).await;
    assert_eq!(like.body(&like.call("good")).await, given);
}

#[tokio::test(start_paused = true)]
async fn c62_a_modern_servers_bad_form_is_an_error_under_the_clients_id() {
    let asks = |schema: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":7,"result":{{"resultType":"input_required","inputRequests":{{"k":{{"method":"elicitation/create","params":{{"mode":"form","message":"m","requestedSchema":{schema}}}}}}},"requestState":"s"}}}}"#
        )
    };
    for stream in [false, true] {
        for (schema, toml, passes) in [(BAD_FORM, "", false), (BAD_FORM, WARN, true), (GOOD_FORM, "", true)] {
            let given = asks(schema);
            let sent = given.clone();
            let answer = move |reply: Reply| {
                let sent = sent.clone();
                async move {
                    if stream {
                        streamed(reply, &format!("data: {sent}\n\n"), 20).await;
                    } else {
                        reply.json(200, &sent).await;
                    }
                }
            };
            let like = Like::of(Era::Modern, "tools/call", toml, answer).await;
            let ask = like.call("good").caps(r#"{"elicitation":{"form":{}}}"#);
            let body = like.body(&ask).await;
            assert_eq!(body.contains(&given), passes, "{body}");
            if !passes {
                assert!(body.contains(r#""id":7"#) && body.contains("-32603"), "{body}");
                assert!(body.contains("/properties/a"), "{body}");
            }
        }
    }
}

/// Readers differ in which of two schemas they take; what is not passed on is answered all the same.
#[tokio::test(start_paused = true)]
async fn b1_12_a_question_that_is_spelled_oddly() {
    let twice =
        |first: &str, second: &str| question("\"q\"", &format!(r#"{first},"requested\u0053chema":{second}"#));
    let escaped = question("\"q\"", BAD_FORM).replace("params", r"p\u0061rams");
    for question in [twice(GOOD_FORM, BAD_FORM), twice(BAD_FORM, GOOD_FORM), escaped] {
        let done = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[]}}"#;
        let given = format!("data: {question}\n\ndata: {done}\n\n");
        let answer = move |reply| {
            let given = given.clone();
            async move { streamed(reply, &given, usize::MAX).await }
        };
        let like = Like::of(LEGACY, "tools/call", "", answer).await;
        assert_eq!(like.body(&like.call("good")).await, format!("data: {done}\n\n"), "{question}");
        let said = answered(&like, 1).await[0].json();
        assert_eq!((&said["id"], &said["error"]["code"]), (&json!("q"), &json!(-32602)), "{said}");
    }
}
