//! D102, A1.11, A2.4, A4.4, B8: the log level of a session, and log messages on the streams of their calls.

use crate::stage::{META, REVISIONS, Stage};
use crate::support::{ModernServer, json};

#[tokio::test(start_paused = true)]
async fn d102_log_legacy_setlevel() {
    let stage = Stage::before(ModernServer::full()).await;
    let user = stage.latest().await;
    let other = stage.latest().await;
    user.list("tools/list").await;
    user.level("warning").await.result();
    user.list("tools/list").await;
    other.list("tools/list").await;
    for bad in ["loud", "WARNING", ""] {
        user.level(bad).await.is_answered_error(-32602);
    }
    let shapeless = user.old.ask("logging/setLevel").params(r#""level":7"#);
    user.send(&shapeless).await.is_answered_error(-32602);
    user.send(&user.old.ask("logging/setLevel")).await.is_answered_error(-32602);
    user.list("tools/list").await;
    user.level("debug").await.result();
    user.list("tools/list").await;
    let key = format!("{META}logLevel");
    let levels: Vec<_> = stage
        .up
        .posts("tools/list")
        .iter()
        .map(|seen| seen.json()["params"]["_meta"].get(&key).cloned())
        .collect();
    let level = |level: &str| Some(json!(level));
    assert_eq!(levels, [None, level("warning"), None, level("warning"), level("debug")]);
    assert_eq!(stage.briefs(), vec!["tools/list"; 5], "setLevel is the proxy's");
}

/// A1.11: a server without logging has no level to set.
#[tokio::test(start_paused = true)]
async fn d102_a_server_without_logging() {
    let stage = Stage::before_with(ModernServer::new(), "session.log_level = \"info\"").await;
    let user = stage.latest().await;
    user.level("warning").await.is_answered_error(-32601);
    user.list("tools/list").await;
    let meta = &stage.up.only("tools/list").json()["params"]["_meta"];
    assert_eq!(meta.get(format!("{META}logLevel")), None);
}

/// B8: the level before a client sets one is a setting.
#[tokio::test(start_paused = true)]
async fn d102_the_level_before_any_is_set() {
    let stage = Stage::before_with(ModernServer::full(), "session.log_level = \"notice\"").await;
    let user = stage.latest().await;
    user.list("tools/list").await;
    user.level("error").await.result();
    user.list("tools/list").await;
    let levels: Vec<_> = stage
        .up
        .posts("tools/list")
        .iter()
        .map(|seen| seen.json()["params"]["_meta"][format!("{META}logLevel")].clone())
        .collect();
    assert_eq!(levels, ["notice", "error"]);
}

/// A2.4: log messages come on the stream of their call.
#[tokio::test(start_paused = true)]
async fn d102_log_messages_come_on_their_calls_stream() {
    for revision in REVISIONS {
        let stage = Stage::new().await;
        let user = stage.user(revision).await;
        user.level("debug").await.result();
        let (stream, call) = stage.begin(&user).await;
        let meta = format!(r#""_meta":{{"{META}serverInfo":{{"name":"a","version":"b"}},"own":1}}"#);
        call.event(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","logger":"l","data":{{"n":1.50}},{meta}}}}}"#
        ));
        stream.wait(1).await;
        call.event(r#"{"jsonrpc":"2.0","method":"notifications/acme/x","params":{"k":"v"}}"#);
        call.completes("done");
        stream.result().await;
        assert_eq!(
            stream.briefs(),
            ["notifications/message", "notifications/acme/x", "answer"],
            "{revision}"
        );
        let told = &stream.messages()[0]["params"];
        assert_eq!(told["data"], json!({"n": 1.5}));
        assert_eq!(told["_meta"], json!({"own": 1}), "{revision}: other keys stay");
    }
}
