//! D103, A12.19, B14: a client that goes away, in every phase of its call.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use crate::stage::{Stage, TOOLS_ONLY};
use crate::support::{Ask, Gets, LegacyServer, Reply, Value, call, json, pass};

const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// The ids that the server was told to cancel.
fn cancelled(stage: &Stage) -> Vec<Value> {
    let posts = stage.up.posts("notifications/cancelled");
    posts.iter().map(|seen| seen.json()["params"]["requestId"].clone()).collect()
}

/// The ids of the calls that reached the server.
fn called(stage: &Stage) -> Vec<Value> {
    stage.up.posts("tools/call").iter().map(|seen| seen.json()["id"].clone()).collect()
}

/// The session is still good, idle, and ended in time.
async fn nothing_is_left(stage: &Stage) {
    pass(1000).await;
    let (calls, cancels) = (called(stage).len(), cancelled(stage).len());
    let done = stage.proxy.send(&Ask::new("tools/list").id("99")).await;
    done.result();
    assert_eq!(stage.up.posts("initialize").len(), 1, "the session lives");
    // The setting `session.idle`, and the pace of the reaper.
    pass(13 * 60 * 1000).await;
    assert_eq!(stage.server.deleted(), ["S1"], "idle, so it is ended");
    assert_eq!((stage.proxy.sessions(), stage.proxy.feeds()), (0, 0));
    assert_eq!((called(stage).len(), cancelled(stage).len()), (calls, cancels));
}

#[tokio::test(start_paused = true)]
async fn d103_while_it_waits_for_a_session() {
    let go = Arc::new(Notify::new());
    let (base, held) = (LegacyServer::telling(), Arc::clone(&go));
    let usual = base.clone();
    let server = base.on("initialize", move |seen, reply| {
        let (usual, held) = (usual.clone(), Arc::clone(&held));
        async move {
            held.notified().await;
            usual.initialize_as_usual(&seen, reply).await;
        }
    });
    let stage = Stage::of(server, Gets::open()).await;
    let gone = stage.proxy.spawn(&call("echo", "{}").id("1"));
    stage.up.wait("initialize", 1).await;
    gone.abort();
    pass(1000).await;
    go.notify_waiters();
    nothing_is_left(&stage).await;
    assert_eq!((called(&stage).len(), cancelled(&stage).len()), (0, 0), "nothing was sent");
}

#[tokio::test(start_paused = true)]
async fn d103_while_the_level_is_set() {
    let server = LegacyServer::telling().on("logging/setLevel", |seen, reply: Reply| async move {
        pass(5000).await;
        reply.result(&seen, "{}").await;
    });
    let stage = Stage::of(server, Gets::open()).await;
    let gone = stage.proxy.spawn(&call("echo", "{}").id("1").meta(LOG_LEVEL, r#""debug""#));
    stage.up.wait("logging/setLevel", 1).await;
    gone.abort();
    nothing_is_left(&stage).await;
    assert_eq!((called(&stage).len(), cancelled(&stage).len()), (0, 0), "nothing was sent");
}

#[tokio::test(start_paused = true)]
async fn d103_while_the_answer_is_awaited() {
    for with_log in [false, true] {
        let server = LegacyServer::telling().on("tools/call", |seen, reply: Reply| async move {
            pass(5000).await;
            // Late, and for nobody.
            reply.result(&seen, r#"{"content":[]}"#).await;
        });
        let stage = Stage::of(server, Gets::open()).await;
        let mut ask = call("echo", "{}").id(r#""c""#);
        if with_log {
            ask = ask.meta(LOG_LEVEL, r#""debug""#).meta("progressToken", "1");
        }
        let gone = stage.proxy.spawn(&ask);
        stage.up.wait("tools/call", 1).await;
        gone.abort();
        let cancels = stage.up.wait("notifications/cancelled", 1).await;
        assert_eq!(cancels[0].session().as_deref(), Some("S1"));
        nothing_is_left(&stage).await;
        assert_eq!(cancelled(&stage), called(&stage), "once, under the upstream's id");
    }
}

#[tokio::test(start_paused = true)]
async fn d103_in_the_middle_of_the_stream() {
    let server = LegacyServer::telling().on("tools/call", |seen, mut reply: Reply| async move {
        let token = seen.json()["params"]["_meta"]["progressToken"].clone();
        reply.stream().await;
        let params = json!({"progressToken": token, "progress": 1});
        let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
        reply.event(&progress.to_string()).await;
        pass(5000).await;
        reply.result_event(&seen, r#"{"content":[]}"#).await;
        reply.end().await;
    });
    let stage = Stage::of(server, Gets::open()).await;
    let mut answer = stage.proxy.open(&call("echo", "{}").id("1").meta("progressToken", "7")).await;
    assert_eq!(answer.message().await["params"]["progress"], 1);
    answer.close();
    nothing_is_left(&stage).await;
    assert_eq!(cancelled(&stage), called(&stage), "once, under the upstream's id");
}

/// A client that does not read stops its own call only, and is cancelled like any other when it goes.
#[tokio::test(start_paused = true)]
async fn d103_a_client_that_does_not_read() {
    let server = LegacyServer::telling().on("tools/call", |seen, mut reply: Reply| async move {
        let token = seen.json()["params"]["_meta"]["progressToken"].clone();
        reply.stream().await;
        for n in 1..=2000 {
            let params = json!({"progressToken": token, "progress": n, "message": "x".repeat(4000)});
            let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
            reply.event(&progress.to_string()).await;
        }
        reply.never().await;
    });
    let stage = Stage::of(server, Gets::open()).await;
    let answer = stage.proxy.open(&call("echo", "{}").id("1").meta("progressToken", "7")).await;
    pass(5000).await;
    stage.proxy.send(&Ask::new("tools/list").id("2")).await.result();
    assert_eq!(cancelled(&stage).len(), 0, "slow is not gone");
    answer.close();
    nothing_is_left(&stage).await;
    assert_eq!(cancelled(&stage), called(&stage), "once, under the upstream's id");
}

#[tokio::test(start_paused = true)]
async fn d103_while_a_lost_session_is_replaced() {
    let base = LegacyServer::telling();
    let (usual, counts) = (base.clone(), base.clone());
    let server = base.on("initialize", move |seen, reply| {
        let (usual, first) = (usual.clone(), counts.count("initialize") == 0);
        async move {
            if !first {
                pass(5000).await;
            }
            usual.initialize_as_usual(&seen, reply).await;
        }
    });
    let stage = Stage::of(server, Gets::open()).await;
    stage.proxy.send(&call("echo", "{}")).await.result();
    stage.server.forget_sessions();
    let gone = stage.proxy.spawn(&call("echo", "{}").id("1"));
    stage.up.wait("initialize", 2).await;
    gone.abort();
    pass(60_000).await;
    assert_eq!(called(&stage).len(), 2, "not sent again for nobody");
    assert_eq!(cancelled(&stage).len(), 0, "the session that knew it is gone");
}

#[tokio::test(start_paused = true)]
async fn d103_after_the_result() {
    let stage = Stage::new().await;
    stage.proxy.send(&call("echo", "{}").id("1")).await.result();
    nothing_is_left(&stage).await;
    assert_eq!(cancelled(&stage).len(), 0);
}

/// A listener that goes is no request in flight at the server.
#[tokio::test(start_paused = true)]
async fn d103_a_listener_is_not_cancelled() {
    let stage = Stage::new().await;
    let listener = stage.listens("1", TOOLS_ONLY).await;
    let call_time = Duration::from_secs(601);
    pass(u64::try_from(call_time.as_millis()).unwrap()).await;
    assert!(!listener.is_over(), "no deadline of calls holds for it");
    listener.close();
    nothing_is_left(&stage).await;
    assert_eq!(cancelled(&stage).len(), 0);
}
