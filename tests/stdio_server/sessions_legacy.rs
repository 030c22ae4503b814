//! Legacy clients before a legacy program: a process for each session, from `initialize` to DELETE (A12.13-A12.15, C10).

use crate::stage::{HANDSHAKE, Stage, legacy_server, words};
use crate::support::{End, Old, User, Value, json, pass};

#[tokio::test(start_paused = true)]
async fn a_process_for_each_session() {
    let stage = Stage::canned(legacy_server(), "").await;
    let one = stage.user().await;
    let two = stage.user().await;
    assert_ne!(one.session(), two.session());
    assert_eq!(stage.alive(), 2);
    one.list("tools/list").await;
    two.list("prompts/list").await;
    two.list("resources/list").await;
    let child = stage.child(1).await;
    assert_eq!(child.briefs(), [&HANDSHAKE[..], &["tools/list"]].concat());
    // What the client said of itself is what the program is told.
    let initialize = child.wait("initialize", 1).await;
    assert_eq!(initialize["params"]["clientInfo"]["name"], crate::support::old::NAME);
    assert_eq!(initialize["params"]["protocolVersion"], "2025-11-25");
    let second = ["initialize", "notifications/initialized", "prompts/list", "resources/list"];
    assert_eq!(stage.child(2).await.briefs(), second);
}

#[tokio::test(start_paused = true)]
async fn every_revision_is_served() {
    for revision in ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] {
        let stage = Stage::canned(legacy_server().version(revision), "").await;
        let user = User::begin(&stage.proxy, revision).await;
        assert_eq!(user.list("tools/list").await["tools"][0]["name"], "echo", "{revision}");
        assert_eq!(user.call("echo", "{}").await.result().await["content"][0]["text"], "done", "{revision}");
        user.list("ping").await;
        assert!((200..300).contains(&user.delete().await.status), "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn delete_ends_the_process() {
    let stage = Stage::canned(legacy_server(), "").await;
    let (one, two) = (stage.user().await, stage.user().await);
    let (first, second) = (stage.child(1).await, stage.child(2).await);
    let stream = one.get().await;
    assert!((200..300).contains(&one.delete().await.status));
    first.reaped().await;
    assert!(first.terminations().is_empty(), "closing its input was enough");
    stream.end().await;
    assert!(!one.lives().await, "404");
    assert_eq!(stage.proxy.send(&one.old.get()).await.status, 404);
    assert_eq!(stage.proxy.send(&one.old.delete()).await.status, 404);
    assert!(second.is_alive() && two.lives().await);
    assert_eq!(stage.children().len(), 2, "nothing was started for what is over");
}

#[tokio::test(start_paused = true)]
async fn an_unknown_session_is_404() {
    let stage = Stage::canned(legacy_server(), "").await;
    stage.user().await;
    let stranger = Old {
        session: Some("0123456789abcdef".to_owned()),
        version: Some("2025-11-25".to_owned()),
        token: None,
    };
    for ask in [stranger.ask("tools/list"), stranger.note("notifications/initialized"), stranger.get()] {
        assert_eq!(stage.send(&ask).await.status, 404, "{}", ask.method);
    }
    let nameless = Old { session: None, ..stranger };
    assert_eq!(stage.send(&nameless.ask("tools/list")).await.status, 400, "A12.12");
    assert_eq!(stage.children().len(), 1);
}

/// Invariant 2: a session is its principal's.
#[tokio::test(start_paused = true)]
async fn another_ones_session_is_404() {
    let stage = Stage::canned(legacy_server(), "").await;
    let user = stage.user_as("a").await;
    let before = stage.child(1).await.briefs();
    let thief = user.with_token("b");
    for ask in [thief.old.ask("tools/list"), thief.old.get(), thief.old.delete()] {
        assert_eq!(stage.send(&ask).await.status, 404, "{} {}", ask.verb, ask.method);
    }
    assert_eq!(stage.child(1).await.briefs(), before);
    assert!(user.lives().await);
}

#[tokio::test(start_paused = true)]
async fn an_idle_session_ends_with_its_process() {
    let stage = Stage::canned(legacy_server(), "[upstream.up.session]\nidle = \"60s\"\n").await;
    let user = stage.user().await;
    for _ in 0..4 {
        pass(40_000).await;
        user.list("tools/list").await;
    }
    assert_eq!(stage.alive(), 1, "it is used");
    let child = stage.child(1).await;
    child.ended().await;
    assert!(!user.lives().await);
    stage.nothing_is_left().await;
}

/// C10: an open stream is use; when it goes, the session's time begins.
#[tokio::test(start_paused = true)]
async fn c10_an_open_stream_holds_the_session() {
    let stage = Stage::canned(legacy_server(), "[upstream.up.session]\nidle = \"60s\"\n").await;
    let user = stage.user().await;
    let stream = user.get().await;
    pass(600_000).await;
    assert!(user.lives().await && !stream.is_over());
    stream.drop_connection().await;
    pass(125_000).await;
    assert_eq!(stage.alive(), 0);
    assert!(!user.lives().await);
}

#[tokio::test(start_paused = true)]
async fn a_process_that_ends_ends_its_session() {
    let stage = Stage::canned(legacy_server(), "").await;
    let (one, two) = (stage.user().await, stage.user().await);
    let stream = one.get().await;
    stage.child(1).await.exit(0);
    pass(1_000).await;
    assert!(stream.is_over(), "its stream ends");
    assert!(!one.lives().await, "404, so that the client begins anew");
    assert!(two.lives().await);
    let again = stage.user().await;
    again.list("tools/list").await;
    let third = ["initialize", "notifications/initialized", "tools/list"];
    assert_eq!(stage.child(3).await.briefs(), third);
}

/// Nothing was begun, so this is the one refusal that has a status of its own: the client may come again.
#[tokio::test(start_paused = true)]
async fn no_more_processes_than_are_allowed() {
    let stage = Stage::canned(legacy_server(), "[upstream.up.limits]\nmax_processes = 2\n").await;
    let one = stage.user().await;
    let two = stage.user().await;
    let (stream, _other) = (one.get().await, two.get().await);
    let mut refused = stage.proxy.open(&Old::initialize("2025-11-25").id("\"i\"")).await;
    assert_eq!((refused.status, refused.headers.get("mcp-session-id")), (503, None));
    let (body, _) = refused.pieces().await;
    let message: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((&message["error"]["code"], &message["id"]), (&json!(-32603), &json!("i")), "{message}");
    assert!(message["error"]["message"].as_str().unwrap().contains("processes"), "{message}");
    assert_eq!(stage.children().len(), 2);
    one.delete().await;
    assert_eq!(stream.end().await, End::Clean);
    stage.child(1).await.ended().await;
    pass(100).await;
    stage.user().await.list("tools/list").await;
}

/// The program refuses: its own words are the client's answer, and no process is left.
#[tokio::test(start_paused = true)]
async fn a_refused_initialize_leaves_nothing() {
    let server = legacy_server().error("initialize", r#"{"code":-32602,"message":"no such version"}"#);
    let stage = Stage::canned(server, "").await;
    let refused = stage.send(&Old::initialize("2025-11-25")).await;
    assert_eq!(refused.code(), -32602, "{}", refused.raw);
    assert!(words(&refused).contains("no such version"), "{}", refused.raw);
    assert_eq!(refused.headers.get("mcp-session-id"), None);
    pass(10_000).await;
    assert_eq!(stage.alive(), 0);
}

/// `session.shield`: the client's session outlives the process.
#[tokio::test(start_paused = true)]
async fn a_shielded_session_outlives_its_process() {
    let stage = Stage::canned(legacy_server(), "[upstream.up.session]\nshield = true\n").await;
    let user = stage.user().await;
    user.list("tools/list").await;
    stage.child(1).await.dies();
    pass(1_000).await;
    user.list("tools/list").await;
    assert_eq!(stage.children().len(), 2);
    assert!(user.lives().await);
    assert!((200..300).contains(&user.delete().await.status));
    stage.child(2).await.reaped().await;
}
