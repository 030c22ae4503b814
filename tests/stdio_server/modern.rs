//! Modern clients before a modern program: requests of many share one process, and each gets what is its own (A14.2-A14.4, B8,
//! B17, stdio of 2026-07-28).

use crate::stage::{Stage, done, ends_with, plain};
use crate::support::{Value, call, json, list, pass, read, rpc};

const META: &str = "io.modelcontextprotocol/";

fn key(name: &str) -> String {
    format!("{META}{name}")
}

fn progress(token: &Value, n: u32) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{n}}}}}"#
    )
}

fn log(level: &str, data: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"{level}","data":"{data}"}}}}"#
    )
}

/// Everything but the id and the token is what the client sent, byte for byte.
#[tokio::test(start_paused = true)]
async fn what_a_client_says_is_passed_on() {
    let stage = Stage::modern("").await;
    let begun = stage
        .begin(&call("t", r#"{"x":1e400,"y":"\u00e9","z":1.0}"#).id("\"i\"").meta("com.x/y", "[1]"))
        .await;
    let line = stage.child(1).await.lines().pop().unwrap();
    assert!(line.contains(r#""arguments":{"x":1e400,"y":"\u00e9","z":1.0}"#), "{line}");
    assert!(line.contains(r#""com.x/y":[1]"#), "{line}");
    assert_eq!(begun.call.meta(&key("clientInfo"))["name"], "c");
    begun.call.completes("done");
    ends_with(&begun.done().await, "done");
}

#[tokio::test(start_paused = true)]
async fn a_process_for_each_principal() {
    let stage = Stage::modern("").await;
    for (n, token, caps) in [(1, "a", "{}"), (2, "b", "{}"), (2, "a", r#"{"roots":{}}"#), (2, "b", "{}")] {
        stage.send(&list("tools/list").bearer(token).caps(caps)).await.result();
        assert_eq!(stage.children().len(), n, "{token}");
    }
    let second = stage.child(2).await;
    assert!(second.briefs().iter().all(|brief| brief == "tools/list"), "{:?}", second.briefs());
}

#[tokio::test(start_paused = true)]
async fn every_method_is_served() {
    let stage = Stage::modern("").await;
    stage.send(&list("server/discover")).await.result();
    for method in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
        stage.send(&list(method)).await.result();
    }
    let client = stage.run(&read("file:///x"));
    stage.calls.wait(1).await.completes("text");
    ends_with(&done(client).await, "text");
    let complete = list("completion/complete")
        .params(r#""ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"v"}"#);
    stage.send(&complete).await.result();
    stage.send(&list("acme/unknown")).await.is_error(404, -32601);
    for removed in ["ping", "logging/setLevel", "resources/subscribe"] {
        stage.send(&list(removed)).await.is_error(404, -32601);
    }
}

#[tokio::test(start_paused = true)]
async fn progress_goes_to_its_call() {
    let stage = Stage::modern("").await;
    let tokens = ["\"t\"", "\"t\"", "1", "\"1\""];
    let mut all = Vec::new();
    for (n, token) in tokens.iter().enumerate() {
        all.push(stage.begin(&plain(n).meta("progressToken", token)).await);
    }
    let mut sent: Vec<_> = all.iter().map(|begun| begun.call.meta("progressToken").to_string()).collect();
    sent.sort();
    sent.dedup();
    assert_eq!(sent.len(), 4, "{sent:?}");
    let child = stage.child(1).await;
    all.iter().rev().for_each(|begun| child.say(&progress(&begun.call.meta("progressToken"), 1)));
    child.say(&progress(&json!("none"), 1));
    pass(100).await;
    for (begun, token) in all.into_iter().zip(tokens) {
        begun.call.completes("done");
        let done = begun.done().await;
        assert_eq!(done.before.len(), 1, "{:?}", done.before);
        assert_eq!(done.before[0]["params"]["progressToken"].to_string(), token);
    }
}

/// A log message names no request on a pipe: the only one that wants any gets it, and where there are two, none does (B8.3).
#[tokio::test(start_paused = true)]
async fn b8_logs_go_to_the_only_call_that_wants_them() {
    let stage = Stage::modern("").await;
    let level = |n: usize, level: &str| plain(n).meta(&key("logLevel"), &format!("\"{level}\""));
    let quiet = stage.begin(&plain(1)).await;
    let one = stage.begin(&level(2, "info")).await;
    let child = stage.child(1).await;
    child.say(&log("info", "the first's"));
    pass(100).await;
    let two = stage.begin(&level(3, "info")).await;
    child.say(&log("error", "whose?"));
    pass(100).await;
    one.call.completes("one");
    let one = one.done().await;
    assert_eq!(one.before.iter().map(|log| &log["params"]["data"]).collect::<Vec<_>>(), ["the first's"]);
    child.say(&log("info", "the second's"));
    pass(100).await;
    two.call.completes("two");
    let two = two.done().await;
    assert_eq!(two.before.iter().map(|log| &log["params"]["data"]).collect::<Vec<_>>(), ["the second's"]);
    quiet.call.completes("done");
    assert_eq!(quiet.done().await.before.len(), 0);
}

/// `input_required` and the retry, which is another request of another id; with other calls in between.
#[tokio::test(start_paused = true)]
async fn input_required_is_relayed() {
    let stage = Stage::modern("").await;
    let form = r#"{"method":"elicitation/create","params":{"message":"who?","requestedSchema":{"type":"object","properties":{"n":{"type":"string"}}}}}"#;
    let beside = stage.begin(&plain(9)).await;
    let begun = stage.begin(&plain(1).id("1").caps(r#"{"elicitation":{"form":{}}}"#)).await;
    let first = begun.call.id();
    begun.call.asks(&[("k", form)], Some("\"the state\""));
    let round = begun.round().await;
    assert_eq!((round.state(), round.keys()), ("the state", vec!["k".to_owned()]));
    let client = stage.run(&round.answer("1", r#"{"action":"accept","content":{"n":"x"}}"#));
    let call = stage.calls.wait(3).await;
    assert_ne!(call.id(), first);
    assert_eq!(call.params()["requestState"], "the state");
    assert_eq!(call.params()["inputResponses"]["k"]["content"]["n"], "x");
    call.completes("done");
    ends_with(&done(client).await, "done");
    beside.call.completes("done");
    ends_with(&beside.done().await, "done");
}

/// A modern program MUST NOT ask on its output, and is sent no responses.
#[tokio::test(start_paused = true)]
async fn requests_of_a_modern_program_are_not_answered() {
    let stage = Stage::modern("").await;
    let begun = stage.begin(&plain(1)).await;
    let child = stage.child(1).await;
    child.say(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    child.say(&crate::support::questions::elicit("2", "m"));
    child.say(r#"{"jsonrpc":"2.0","method":"notifications/acme","params":{}}"#);
    pass(15_000).await;
    assert!(!child.briefs().contains(&"response".to_owned()), "{:?}", child.briefs());
    begun.call.completes("done");
    let done = begun.done().await;
    ends_with(&done, "done");
}

/// Errors keep their code, and get the status of this revision.
#[tokio::test(start_paused = true)]
async fn errors_have_the_status_of_their_code() {
    let table = [
        (r#"{"code":-32602,"message":"m"}"#, 200, -32602),
        (r#"{"code":-32603,"message":"m","data":{"x":1}}"#, 200, -32603),
        (r#"{"code":-32021,"message":"m","data":{"requiredCapabilities":{"roots":{}}}}"#, 400, -32021),
        (r#"{"code":7,"message":"m"}"#, 200, 7),
    ];
    for (error, status, code) in table {
        let stage = Stage::modern("").await;
        let begun = stage.begin(&plain(1)).await;
        begun.call.whole_error(error);
        begun.done().await.is_error(status, code);
    }
}

/// C32, A14.2: a client's body over many lines is one line on the pipe, and no byte of a string is changed.
#[tokio::test(start_paused = true)]
async fn a_body_of_many_lines_is_one_line() {
    let stage = Stage::modern("").await;
    let ask = call("t", "{}");
    let body = String::from_utf8(ask.body()).unwrap();
    let pretty = body
        .replace(",\"", ",\r\n\t\"")
        .replace(r#""arguments":{}"#, "\"arguments\" : {\n\n \"s\":\"a\u{2028}b\u{85}\\n\"\r}");
    let client = stage.run(&ask.raw_body(pretty.as_bytes()));
    let call = stage.calls.wait(1).await;
    assert_eq!(call.argument("s"), json!("a\u{2028}b\u{85}\n"));
    let line = stage.child(1).await.lines().pop().unwrap();
    assert!(!line.contains('\r') && rpc::value(line.as_bytes()).is_ok(), "{line:?}");
    call.completes("done");
    ends_with(&done(client).await, "done");
}
