//! D101, A1.11, B8: the level of a session, and which call gets which log message.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::stage::{Stage, TOOLS_ONLY};
use crate::support::{Ask, Done, Gets, LegacyServer, Reply, call, pass};

const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

fn log(level: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"{level}","data":"d"}}}}"#
    )
}

fn wants(id: &str, level: &str) -> Ask {
    call("echo", "{}").id(id).meta(LOG_LEVEL, &format!("\"{level}\""))
}

/// The levels of the log messages that a call got.
fn got(done: &Done) -> Vec<String> {
    done.result();
    let level = |message: &crate::support::Value| message["params"]["level"].as_str().unwrap().to_owned();
    done.before.iter().map(level).collect()
}

/// The levels that the server was told, in order.
fn told(stage: &Stage) -> Vec<String> {
    let posts = stage.up.posts("logging/setLevel");
    posts.iter().map(|seen| seen.json()["params"]["level"].as_str().unwrap().to_owned()).collect()
}

/// Each call logs at three levels once it is let go on.
fn logging(server: LegacyServer, go: &Arc<Notify>) -> LegacyServer {
    let go = Arc::clone(go);
    server.on("tools/call", move |seen, mut reply: Reply| {
        let go = Arc::clone(&go);
        async move {
            go.notified().await;
            reply.stream().await;
            for level in ["debug", "warning", "error"] {
                reply.event(&log(level)).await;
            }
            reply.result_event(&seen, r#"{"content":[]}"#).await;
            reply.end().await;
        }
    })
}

#[tokio::test(start_paused = true)]
async fn d101_two_levels_on_one_session() {
    let go = Arc::new(Notify::new());
    let stage = Stage::of(logging(LegacyServer::telling(), &go), Gets::open()).await;
    let debug = stage.proxy.spawn(&wants("1", "debug"));
    stage.up.wait("tools/call", 1).await;
    let error = stage.proxy.spawn(&wants("2", "error"));
    let silent = stage.proxy.spawn(&call("echo", "{}").id("3"));
    stage.up.wait("tools/call", 3).await;
    assert_eq!(told(&stage), ["debug"], "what the most verbose of them wants");
    let briefs = stage.up.briefs();
    let at = |what: &str| briefs.iter().position(|brief| brief == what).unwrap();
    assert!(at("logging/setLevel") < at("tools/call"), "before the call that wants it: {briefs:?}");
    go.notify_waiters();
    assert_eq!(got(&debug.await.unwrap()), ["debug", "warning", "error"]);
    assert_eq!(got(&error.await.unwrap()), ["error"]);
    assert_eq!(got(&silent.await.unwrap()), Vec::<String>::new());
    // The debug call is gone: the next one that wants logs lowers it; those that want none, or the same, change nothing.
    for (ask, levels) in [
        (call("echo", "{}"), vec!["debug"]),
        (wants("5", "error"), vec!["debug", "error"]),
        (wants("6", "error"), vec!["debug", "error"]),
        (call("echo", "{}"), vec!["debug", "error"]),
        (wants("7", "warning"), vec!["debug", "error", "warning"]),
    ] {
        let running = stage.proxy.spawn(&ask);
        pass(1000).await;
        go.notify_waiters();
        running.await.unwrap().result();
        assert_eq!(told(&stage), levels);
    }
}

/// Whichever is first, the call that wants more is not sent before the server knows.
#[tokio::test(start_paused = true)]
async fn d101_two_levels_at_one_moment() {
    for first in ["debug", "error"] {
        let go = Arc::new(Notify::new());
        let server =
            logging(LegacyServer::telling(), &go).on("logging/setLevel", |seen, reply: Reply| async move {
                pass(200).await;
                reply.result(&seen, "{}").await;
            });
        let stage = Stage::of(server, Gets::open()).await;
        let second = if first == "debug" { "error" } else { "debug" };
        let calls = [stage.proxy.spawn(&wants("1", first)), stage.proxy.spawn(&wants("2", second))];
        stage.up.wait("tools/call", 2).await;
        assert_eq!(
            told(&stage).last().map(String::as_str),
            Some("debug"),
            "{first} first: {:?}",
            told(&stage)
        );
        go.notify_waiters();
        let [one, two] = calls;
        let (one, two) = (got(&one.await.unwrap()), got(&two.await.unwrap()));
        let (debug, error) = if first == "debug" { (one, two) } else { (two, one) };
        assert_eq!((debug.len(), error), (3, vec!["error".to_owned()]));
    }
}

#[tokio::test(start_paused = true)]
async fn d101_a_refused_level_breaks_no_call() {
    for what in ["error", "404", "500", "202", "cut", "hang", "html"] {
        let server = LegacyServer::telling().on("logging/setLevel", move |seen, reply: Reply| async move {
            match what {
                "error" => reply.error(200, &seen, r#"{"code":-32602,"message":"no"}"#).await,
                "404" => reply.empty(404).await,
                "500" => reply.empty(500).await,
                "202" => reply.empty(202).await,
                "html" => reply.body(200, "text/html", "<html>").await,
                "hang" => reply.never().await,
                _ => drop(reply),
            }
        });
        let stage = Stage::of(server, Gets::open()).await;
        let start = Instant::now();
        stage.proxy.send(&wants("1", "info")).await.result();
        // The setting `timeouts.initialize`.
        assert!(start.elapsed() <= Duration::from_secs(31), "{what}: {:?}", start.elapsed());
        let start = Instant::now();
        stage.proxy.send(&wants("2", "info")).await.result();
        assert_eq!((told(&stage).len(), start.elapsed()), (1, Duration::ZERO), "{what}: asked once");
        assert_eq!(stage.up.posts("initialize").len(), 1, "{what}");
        assert_eq!(stage.up.posts("tools/call").len(), 2, "{what}");
    }
}

/// A level that a client asked for and did not wait for counts as unknown.
#[tokio::test(start_paused = true)]
async fn d101_a_level_that_nobody_waited_for() {
    let base = LegacyServer::telling();
    let counts = base.clone();
    let server = base.on("logging/setLevel", move |seen, reply: Reply| {
        let counts = counts.clone();
        async move {
            if counts.count("setLevel") == 1 {
                pass(60_000).await;
            }
            reply.result(&seen, "{}").await;
        }
    });
    let stage = Stage::of(server, Gets::open()).await;
    stage.proxy.send(&wants("1", "error")).await.result();
    let gone = stage.proxy.spawn(&wants("2", "debug"));
    stage.up.wait("logging/setLevel", 2).await;
    gone.abort();
    pass(1000).await;
    stage.proxy.send(&wants("3", "error")).await.result();
    assert_eq!(told(&stage), ["error", "debug", "error"], "the server may have taken the one before");
}

#[tokio::test(start_paused = true)]
async fn b8_1_no_level_where_the_server_does_not_log() {
    let stage = Stage::of(LegacyServer::telling().capabilities(r#"{"tools":{}}"#), Gets::open()).await;
    stage.proxy.send(&wants("1", "debug")).await.result();
    assert_eq!(told(&stage), Vec::<String>::new());
}

/// B8.3: outside a call's stream a message is the only call's that wants logs, or nobody's; a listener's never.
#[tokio::test(start_paused = true)]
async fn b8_3_messages_on_the_get_stream() {
    for wanting in 0..=2 {
        let go = Arc::new(Notify::new());
        let held = Arc::clone(&go);
        let server = LegacyServer::telling().on("tools/call", move |seen, reply: Reply| {
            let held = Arc::clone(&held);
            async move {
                held.notified().await;
                reply.streamed_result(&seen, r#"{"content":[]}"#).await;
            }
        });
        let stage = Stage::of(server, Gets::open()).await;
        let listener = stage.listens("9", TOOLS_ONLY).await;
        let quiet = stage.proxy.spawn(&call("echo", "{}").id("1").meta("progressToken", "1"));
        let wants: Vec<_> =
            (0..wanting).map(|n| stage.proxy.spawn(&wants(&format!("{}", n + 2), "warning"))).collect();
        stage.up.wait("tools/call", 1 + wanting).await;
        for level in ["debug", "warning", "error"] {
            stage.gets.tell(&log(level));
        }
        pass(1000).await;
        go.notify_waiters();
        assert_eq!(got(&quiet.await.unwrap()), Vec::<String>::new(), "it never asked");
        let expected: &[&str] = if wanting == 1 { &["warning", "error"] } else { &[] };
        for one in wants {
            assert_eq!(got(&one.await.unwrap()), expected, "{wanting} want logs");
        }
        // Nobody any more.
        stage.gets.tell(&log("error"));
        pass(1000).await;
        assert_eq!(listener.messages().len(), 1, "no listener ever gets one");
    }
}
