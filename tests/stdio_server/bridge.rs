//! Legacy clients before a modern program: the whole of a session, over pipes (A1, A2, B2, B8, B9, D83).

use crate::stage::{Stage, opened};
use crate::support::{User, Value, json, pass};

const FORM: &str = r#"{"method":"elicitation/create","params":{"mode":"form","message":"who?","requestedSchema":{"type":"object","properties":{"n":{"type":"string"}},"required":["n"]}}}"#;
const SAMPLE: &str = r#"{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":10}}"#;
const ROOTS: &str = r#"{"method":"roots/list"}"#;

#[tokio::test(start_paused = true)]
async fn a_session_of_every_revision() {
    for revision in ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] {
        let stage = Stage::bridged("").await;
        let user = User::begin(&stage.proxy, revision).await;
        assert_eq!(user.list("tools/list").await["tools"][0]["name"], "echo", "{revision}");
        user.list("prompts/list").await;
        user.list("ping").await;
        let (opening, call) = stage.start(&user, &user.old.call("t", r#"{"n":1}"#).id("\"c\"")).await;
        call.completes("done");
        let answer = opened(opening).await.answer().await;
        assert_eq!(answer["id"], "c", "{revision}");
        assert_eq!(answer["result"]["content"][0]["text"], "done", "{revision}");
        let briefs = stage.child(1).await.briefs();
        assert_eq!(briefs[0], "server/discover", "{revision}");
        for legacy in ["notifications/initialized", "ping"] {
            assert!(!briefs.iter().any(|brief| brief == legacy), "{revision}: {briefs:?}");
        }
        assert!((200..300).contains(&user.delete().await.status), "{revision}");
        assert!(!user.lives().await, "{revision}");
        stage.nothing_is_left().await;
    }
}

/// Sessions of one principal share its process.
#[tokio::test(start_paused = true)]
async fn a_process_for_each_principal() {
    let stage = Stage::bridged("").await;
    let (one, two) = (stage.user_as("a").await, stage.user_as("a").await);
    let other = stage.user_as("b").await;
    for user in [&one, &two, &other] {
        user.list("tools/list").await;
    }
    assert_eq!(stage.alive(), 2);
    // The end of one session is not that of the process which others use.
    one.delete().await;
    two.list("tools/list").await;
    assert_eq!(stage.alive(), 2);
}

/// B2: questions of all kinds, several rounds, with calls beside.
#[tokio::test(start_paused = true)]
async fn b2_questions_are_asked_and_brought_back() {
    let stage = Stage::bridged("").await;
    let user = stage.user().await;
    let (beside, other) = stage.start(&user, &user.old.call("t", "{}").id("2")).await;
    let (opening, call) = stage.start(&user, &user.old.call("ask", "{}").id("1")).await;
    call.asks(&[("f", FORM), ("s", SAMPLE), ("r", ROOTS)], Some("\"state 1\""));
    let stream = opened(opening).await;
    for question in stream.questions(3).await {
        let answer = match question["method"].as_str().unwrap() {
            "elicitation/create" => r#"{"action":"accept","content":{"n":"x"}}"#,
            "sampling/createMessage" => {
                r#"{"role":"assistant","content":{"type":"text","text":"yes"},"model":"m"}"#
            }
            _ => r#"{"roots":[{"uri":"file:///home"}]}"#,
        };
        user.answer(&question, answer).await;
    }
    let retry = stage.calls.wait(3).await;
    assert_ne!(retry.id(), call.id());
    assert_eq!(retry.params()["requestState"], "state 1");
    let brought = retry.params()["inputResponses"].clone();
    assert_eq!(brought["f"]["content"]["n"], "x");
    assert_eq!(
        (&brought["s"]["model"], &brought["r"]["roots"][0]["uri"]),
        (&json!("m"), &json!("file:///home"))
    );
    retry.completes("done");
    assert_eq!(stream.result().await["content"][0]["text"], "done");
    other.completes("other");
    assert_eq!(opened(beside).await.result().await["content"][0]["text"], "other");
}

/// B8: the level is put on each request; messages that name no request go to the only call.
#[tokio::test(start_paused = true)]
async fn b8_logs_after_a_level_was_set() {
    let stage = Stage::bridged("").await;
    let user = stage.user().await;
    user.level("info").await.result();
    let (opening, call) = stage.start(&user, &user.old.call("t", "{}")).await;
    assert_eq!(call.meta("io.modelcontextprotocol/logLevel"), "info");
    stage
        .child(1)
        .await
        .say(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"m"}}"#);
    pass(100).await;
    call.completes("done");
    let stream = opened(opening).await;
    stream.result().await;
    assert_eq!(stream.notes("notifications/message").len(), 1);
}

/// B9.7, B9.8: changes and resources by subscription, on the GET stream.
#[tokio::test(start_paused = true)]
async fn b9_changes_come_on_the_get_stream() {
    let stage = Stage::bridged("").await;
    let user = stage.user().await;
    let get = user.get().await;
    user.subscribe("file:///x").await.result();
    stage.listens.of_flag("toolsListChanged").await;
    stage.listens.of_uri("file:///x").await;
    pass(1_000).await;
    stage.listens.tell("tools");
    stage.listens.tell("file:///x");
    get.wait(2).await;
    let mut changes = get.changes();
    changes.sort();
    assert_eq!(changes, ["file:///x", "tools"]);
    user.unsubscribe("file:///x").await.result();
    pass(10_000).await;
    assert!(stage.listens.standing().iter().all(|one| !one.has("file:///x")));
    user.delete().await;
    stage.nothing_is_left().await;
}

/// A2.2: cancelling is said on the pipe, under the id that the request has there.
#[tokio::test(start_paused = true)]
async fn a2_2_a_cancelled_call_is_cancelled_on_the_pipe() {
    let stage = Stage::bridged("").await;
    let user = stage.user().await;
    let (other, beside) = stage.start(&user, &user.old.call("t", "{}").id("101")).await;
    let (_opening, call) = stage.start(&user, &user.old.call("t", "{}").id("102")).await;
    user.cancel("102").await;
    stage.is_cancelled_once(&call).await;
    user.cancel("\"102\"").await;
    user.cancel("7").await;
    pass(1_000).await;
    assert_eq!(stage.cancelled().len(), 1, "nothing is said of what is unknown");
    beside.completes("done");
    assert_eq!(opened(other).await.result().await["content"][0]["text"], "done");
}

/// The process dies in a call: the legacy client has an answer, and its session goes on with the next process.
#[tokio::test(start_paused = true)]
async fn c56_the_session_outlives_the_process() {
    let stage = Stage::bridged("").await;
    let user = stage.user().await;
    let (opening, call) = stage.start(&user, &user.old.call("t", "{}")).await;
    stage.child(1).await.dies();
    assert_eq!(opened(opening).await.code().await, -32603);
    assert_eq!(stage.calls.all().len(), 1, "not run again");
    assert!(user.lives().await);
    user.list("tools/list").await;
    assert_eq!(stage.alive(), 1);
    assert!(!call.is_open());
}

/// B14: a client that drops its connection has not cancelled, whether anything of the answer has come or not.
#[tokio::test(start_paused = true)]
async fn b14_a_lost_connection_is_no_cancellation() {
    for early in [true, false] {
        let stage = Stage::bridged("").await;
        let user = stage.user().await;
        user.level("info").await.result();
        let (opening, call) = stage.start(&user, &user.old.call("t", "{}")).await;
        let mut stream = None;
        if early {
            opening.abort();
        } else {
            stage.child(1).await.say(
                r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"m"}}"#,
            );
            let opened = opened(opening).await;
            opened.wait(1).await;
            opened.drop_connection().await;
            stream = Some(opened);
        }
        pass(120_000).await;
        assert_eq!(stage.cancelled(), [] as [Value; 0], "early: {early}");
        assert!(call.is_open(), "early: {early}");
        call.completes("done");
        pass(1_000).await;
        drop(stream);
        assert!(user.lives().await);
    }
}

/// `max_processes = 1`: whether the program serves legacy clients too is found out, or not, and they are served all the same.
#[tokio::test(start_paused = true)]
async fn one_process_is_enough() {
    let stage = Stage::bridged("[upstream.up.limits]\nmax_processes = 1\n").await;
    for _ in 0..3 {
        let user = stage.user().await;
        user.list("tools/list").await;
        let (opening, call) = stage.start(&user, &user.old.call("t", "{}")).await;
        call.completes("done");
        opened(opening).await.result().await;
        assert!(stage.alive() <= 1);
    }
}
