//! Invariants 1 and 5 in time: clients that leave at any moment or read slowly cost nobody else anything.

use std::time::Duration;

use crate::support::{LegacyServer, Net, Proxy, Reply, call, json, list, pass, within};

/// A call whose head comes after 200 ms, a progress event at 400 ms, its result at 600 ms.
fn gradual() -> LegacyServer {
    LegacyServer::new().on("tools/call", |seen, mut reply: Reply| async move {
        let token = seen.json()["params"]["_meta"]["progressToken"].clone();
        pass(200).await;
        reply.stream().await;
        pass(200).await;
        let params = json!({"progressToken": token, "progress": 1});
        reply
            .event(
                &json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}).to_string(),
            )
            .await;
        pass(200).await;
        reply.result_event(&seen, r#"{"content":[]}"#).await;
        reply.end().await;
    })
}

#[tokio::test(start_paused = true)]
async fn inv5_a_client_that_leaves_at_any_moment_frees_everything() {
    let net = Net::new();
    let up = gradual().start(&net);
    let toml = "[limits]\nrequests = 1\n[upstream.up]\nurl = \"http://up.test/mcp\"\n[upstream.up.session]\nmax = 1\n";
    let proxy = Proxy::configured(&net, toml).await;
    for moment in (0..700).step_by(29) {
        let before = (up.posts("tools/call").len(), up.posts("notifications/cancelled").len());
        let running = proxy.spawn(&call("echo", "{}").meta("progressToken", "1").bearer("a"));
        pass(moment).await;
        running.abort();
        pass(100).await;
        let after = (up.posts("tools/call").len(), up.posts("notifications/cancelled").len());
        let (sent, cancelled) = (after.0 - before.0, after.1 - before.1);
        assert!(sent <= 1 && cancelled <= sent, "at {moment} ms: {sent} sent, {cancelled} cancelled");
        if moment < 550 {
            assert_eq!(cancelled, sent, "at {moment} ms: what was sent is cancelled");
        } else if moment > 620 {
            assert_eq!(cancelled, 0, "at {moment} ms: what is answered is not cancelled");
        }
        // The slot of the request and the one session are free again, for another user as well.
        proxy.send(&list("tools/list").bearer("b")).await.result();
    }
}

#[tokio::test(start_paused = true)]
async fn inv5_a_slow_reader_slows_nobody_else() {
    let server = LegacyServer::new().on("tools/call", |seen, mut reply: Reply| async move {
        let token = seen.json()["params"]["_meta"].get("progressToken").cloned();
        let Some(token) = token else {
            return reply.result(&seen, r#"{"content":[]}"#).await;
        };
        reply.stream().await;
        for at in 1..=5000 {
            let params = json!({"progressToken": token, "progress": at, "message": "x".repeat(500)});
            reply
                .event(
                    &json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
                        .to_string(),
                )
                .await;
        }
        reply.result_event(&seen, r#"{"content":[]}"#).await;
        reply.end().await;
    });
    let (proxy, _up) = Proxy::before(&server).await;
    // Its head is read, and then nothing.
    let slow = proxy.open(&call("echo", "{}").meta("progressToken", "1")).await;
    pass(5000).await;
    for _ in 0..3 {
        within("another call on the session", proxy.send(&call("echo", "{}"))).await.result();
    }
    let done = within("the slow reader's answer", slow.done()).await;
    done.result();
    assert_eq!(done.before.len(), 5000, "nothing is dropped silently");
}

#[tokio::test(start_paused = true)]
async fn inv5_a_slow_reader_that_leaves_is_noticed() {
    let server = LegacyServer::new().on("tools/call", |seen, mut reply: Reply| async move {
        let token = seen.json()["params"]["_meta"]["progressToken"].clone();
        reply.stream().await;
        for at in 1.. {
            let params = json!({"progressToken": token, "progress": at, "message": "x".repeat(500)});
            reply
                .event(
                    &json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
                        .to_string(),
                )
                .await;
            if at > 20_000 {
                return reply.never().await;
            }
        }
    });
    let (proxy, up) = Proxy::before(&server).await;
    let slow = proxy.open(&call("echo", "{}").meta("progressToken", "1")).await;
    pass(5000).await;
    slow.close();
    let cancelled =
        tokio::time::timeout(Duration::from_secs(30), up.wait("notifications/cancelled", 1)).await;
    let cancelled = cancelled.expect("noticed in time");
    assert_eq!(cancelled[0].json()["params"]["requestId"], up.only("tools/call").json()["id"]);
}

#[tokio::test(start_paused = true)]
async fn c02_a_restart_under_load_answers_every_call_once() {
    let server = LegacyServer::new().on("tools/call", |seen, reply: Reply| async move {
        pass(50).await;
        let n = seen.json()["params"]["arguments"]["n"].clone();
        reply.result(&seen, &format!(r#"{{"content":[],"n":{n}}}"#)).await;
    });
    let (proxy, up) = Proxy::before(&server).await;
    let mut calls = Vec::new();
    for n in 0..200_u64 {
        let ask = call("echo", &format!(r#"{{"n":{n}}}"#)).id("1").bearer(&format!("u{}", n % 3));
        calls.push((n, proxy.spawn(&ask)));
        pass(7).await;
        if n % 40 == 39 {
            server.forget_sessions();
        }
    }
    for (n, call) in calls {
        let done = call.await.unwrap();
        assert_eq!(done.result()["n"], n);
    }
    // A call is sent again only where the gate turned it away, so each number ran exactly once in a live session.
    let initializes = up.posts("initialize").len();
    assert!((15..=18).contains(&initializes), "one a user and restart: {initializes}");
}
