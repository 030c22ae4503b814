//! B9, B17: several subscriptions of several clients in one modern process, and how each of them ends.

use crate::stage::{Stage, ends_with, plain};
use crate::support::{End, Listener, Take, Value, json, list, listen, pass};

const ALL: &str = r#"{"toolsListChanged":true,"promptsListChanged":true}"#;
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

async fn open(stage: &Stage, id: &str, notifications: &str) -> Listener {
    Listener::open(&stage.proxy, &listen(id, notifications)).await
}

/// Each has an id of its own on the pipe, and its client's own on the way back (`listener` looks at every message).
#[tokio::test(start_paused = true)]
async fn several_subscriptions_in_one_process() {
    let stage = Stage::modern("").await;
    let ids = ["\"s1\"", "1", "\"1\"", "\"s1\""];
    let filters = [
        r#"{"toolsListChanged":true}"#,
        r#"{"promptsListChanged":true}"#,
        r#"{"toolsListChanged":true,"resourceSubscriptions":["file:///x"]}"#,
        r#"{"resourceSubscriptions":["file:///y"]}"#,
    ];
    let mut all = Vec::new();
    for (id, filter) in ids.iter().zip(filters) {
        let listener = open(&stage, id, filter).await;
        assert_eq!(listener.promised().await, serde_json::from_str::<Value>(filter).unwrap());
        all.push(listener);
    }
    assert_eq!(stage.children().len(), 1);
    let mut sent: Vec<_> = stage.listens.all().iter().map(|one| one.seen.id()).collect();
    sent.sort();
    sent.dedup();
    assert_eq!(sent.len(), 4, "{sent:?}");
    for change in ["tools", "prompts", "file:///x", "file:///y"] {
        stage.listens.tell(change);
        pass(10).await;
    }
    let heard: Vec<_> = all.iter().map(Listener::changes).collect();
    assert_eq!(heard, [vec!["tools"], vec!["prompts"], vec!["tools", "file:///x"], vec!["file:///y"]]);
    // Calls run beside them.
    let begun = stage.begin(&plain(1).id("\"s1\"")).await;
    begun.call.completes("done");
    ends_with(&begun.done().await, "done");
}

/// A2.2: a client that closes its stream is a `notifications/cancelled` on the pipe, for that one alone.
#[tokio::test(start_paused = true)]
async fn a_stream_that_is_closed_is_cancelled() {
    let stage = Stage::modern("").await;
    let (one, two) = (open(&stage, "1", ALL).await, open(&stage, "2", ALL).await);
    let (first, second) = (stage.listens.wait(1).await, stage.listens.wait(2).await);
    one.close();
    stage.up.wait("notifications/cancelled", 1).await;
    assert_eq!(stage.cancelled(), [first.seen.json()["id"].clone()]);
    assert!(!first.is_open() && second.is_open());
    // What it still tells of the other one is nobody's.
    first.tell("tools");
    second.tell("tools");
    pass(100).await;
    assert_eq!(two.changes(), ["tools"]);
    pass(60_000).await;
    assert_eq!(stage.cancelled().len(), 1, "once");
}

#[tokio::test(start_paused = true)]
async fn the_program_ends_a_subscription() {
    let stage = Stage::modern("").await;
    let (one, two) = (open(&stage, "\"a\"", ALL).await, open(&stage, "\"b\"", ALL).await);
    one.wait(1).await;
    two.wait(1).await;
    stage.listens.wait(1).await.graceful();
    one.ended_gracefully().await;
    assert!(!two.is_over());
    stage.listens.wait(2).await.tell("prompts");
    pass(100).await;
    assert_eq!(two.changes(), ["prompts"]);
    assert_eq!(stage.cancelled().len(), 0, "what has ended is not cancelled");
}

/// X3: on a pipe a server may say so by `notifications/cancelled`, alone or with the result.
#[tokio::test(start_paused = true)]
async fn x3_the_program_cancels_a_subscription() {
    for with_result in [false, true] {
        let stage = Stage::modern("").await;
        let listener = open(&stage, "\"a\"", ALL).await;
        listener.wait(1).await;
        let listen = stage.listens.wait(1).await;
        let id = listen.seen.id();
        stage.child(1).await.say(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
        ));
        if with_result {
            listen.graceful();
        }
        listener.end().await;
        let told = listener.messages();
        assert!(told.iter().all(|one| one["method"] != "notifications/cancelled"), "{told:?}");
        stage.send(&list("tools/list")).await.result();
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_subscription() {
    let stage = Stage::modern("").await;
    let listens =
        crate::support::Listens::script(|_, _| Take::Error(200, r#"{"code":-32602,"message":"m"}"#));
    let server = listens.of(crate::support::ModernServer::full());
    server.start_program(&stage.net, "server");
    stage.send(&listen("1", ALL)).await.is_error(200, -32602);
}

/// The process ends: so do its subscriptions, so that clients come again; the next one is another process's.
#[tokio::test(start_paused = true)]
async fn c56_the_process_dies_under_its_subscriptions() {
    let stage = Stage::modern("").await;
    let (one, two) = (open(&stage, "1", ALL).await, open(&stage, "2", ALL).await);
    one.wait(1).await;
    two.wait(1).await;
    stage.child(1).await.dies();
    one.end().await;
    two.end().await;
    let again = open(&stage, "3", ALL).await;
    again.wait(1).await;
    assert_eq!(stage.children().len(), 2);
    stage.listens.wait(3).await.tell("tools");
    pass(100).await;
    assert_eq!(again.changes(), ["tools"]);
}

/// Notifications with a subscription id that nobody has, or none: dropped.
#[tokio::test(start_paused = true)]
async fn changes_of_no_subscription_are_dropped() {
    let stage = Stage::modern("").await;
    let listener = open(&stage, "1", ALL).await;
    listener.wait(1).await;
    let child = stage.child(1).await;
    for params in
        [json!({}), json!({"_meta": {SUBSCRIPTION: "none"}}), json!({"_meta": {SUBSCRIPTION: null}})]
    {
        child.say(
            &json!({"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":params}).to_string(),
        );
    }
    child.say(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    pass(100).await;
    assert_eq!(listener.changes(), [] as [&str; 0]);
}

/// A subscription holds its process: it is in use.
#[tokio::test(start_paused = true)]
async fn a_subscription_holds_its_process() {
    let stage = Stage::modern("[upstream.up.session]\nidle = \"60s\"\n").await;
    let listener = open(&stage, "1", ALL).await;
    listener.wait(1).await;
    pass(600_000).await;
    assert_eq!(stage.alive(), 1);
    assert!(!listener.is_over() && listener.comments() > 10, "kept alive (C16)");
    listener.close();
    stage.nothing_is_left().await;
}

/// A14.7, B9.6: the proxy ends: subscriptions end with a result, and the program is told nothing twice.
#[tokio::test(start_paused = true)]
async fn a_drain_ends_subscriptions_gracefully() {
    let stage = Stage::modern("").await;
    let listener = open(&stage, "\"a\"", ALL).await;
    listener.wait(1).await;
    stage.proxy.drain();
    assert_eq!(listener.end().await, End::Clean);
    assert!(stage.cancelled().len() <= 1);
}
