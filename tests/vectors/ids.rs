//! D17, D18: request ids and progress tokens belong to one side each and are never mixed up.
//!
//! Owns renumbering and the progress stream. Cases C17, C18 and C20 go on where these stop.

use crate::support::{LegacyServer, Proxy, Reply, Seen, call, json, pass, within};

/// The argument `n` of a call.
fn n(seen: &Seen) -> i64 {
    seen.json()["params"]["arguments"]["n"].as_i64().unwrap()
}

fn numbered(n: i64) -> crate::support::Ask {
    call("echo", &format!(r#"{{"n":{n}}}"#))
}

#[tokio::test(start_paused = true)]
async fn d17_id_renumber() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    for _ in 0..2 {
        let done = proxy.send(&call("echo", "{}").id("1")).await;
        assert_eq!(done.message["id"], 1);
    }
    let ids: Vec<String> = up.posts("tools/call").iter().map(|s| s.id()).collect();
    assert_ne!(ids[0], ids[1]);
}

#[tokio::test(start_paused = true)]
async fn d17_equal_ids_at_once_are_not_crossed() {
    // The call that came first is answered last.
    let server = LegacyServer::new().on("tools/call", |seen, reply: Reply| async move {
        pass(1000 - 100 * u64::try_from(n(&seen)).unwrap()).await;
        reply.result(&seen, &format!(r#"{{"content":[],"n":{}}}"#, n(&seen))).await;
    });
    let (proxy, up) = Proxy::before(&server).await;
    let ids = ["1", "1", r#""1""#, "1", r#""1""#];
    let calls: Vec<_> = ids.iter().zip(0..).map(|(id, n)| proxy.spawn(&numbered(n).id(id))).collect();
    for ((id, call), n) in ids.iter().zip(calls).zip(0..) {
        let done = call.await.unwrap();
        assert_eq!(done.result()["n"], n);
        assert_eq!(done.message["id"].to_string(), *id);
    }
    let mut upstream: Vec<String> = up.posts("tools/call").iter().map(|s| s.id()).collect();
    upstream.sort();
    upstream.dedup();
    assert_eq!(upstream.len(), ids.len());
}

fn progress(token: &serde_json::Value, at: i64, message: &str) -> String {
    let params = json!({"progressToken": token, "progress": at, "total": 10, "message": message});
    json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}).to_string()
}

#[tokio::test(start_paused = true)]
async fn d18_progress_token_remap() {
    let server = LegacyServer::new().on("tools/call", |seen, mut reply: Reply| async move {
        let token = seen.json()["params"]["_meta"]["progressToken"].clone();
        let mark = n(&seen).to_string();
        reply.stream().await;
        for at in [3, 2, 4] {
            reply.event(&progress(&token, at, &mark)).await;
            pass(10).await;
        }
        reply.result_event(&seen, r#"{"content":[]}"#).await;
        reply.event(&progress(&token, 5, &mark)).await;
        reply.end().await;
    });
    let (proxy, up) = Proxy::before(&server).await;
    let tokens = [r#""t""#, r#""t""#, "7", r#""7""#];
    let calls: Vec<_> =
        tokens.iter().zip(0..).map(|(t, n)| proxy.spawn(&numbered(n).meta("progressToken", t))).collect();
    for ((token, call), n) in tokens.iter().zip(calls).zip(0..) {
        let done = call.await.unwrap();
        done.result();
        let seen: Vec<_> = done.before.iter().map(|m| m["params"].clone()).collect();
        assert_eq!(seen.iter().map(|p| p["progress"].as_i64().unwrap()).collect::<Vec<_>>(), [3, 4]);
        for params in seen {
            assert_eq!(params["progressToken"].to_string(), *token);
            assert_eq!((&params["message"], &params["total"]), (&json!(n.to_string()), &json!(10)));
        }
    }
    let mut upstream: Vec<String> = up
        .posts("tools/call")
        .iter()
        .map(|s| s.json()["params"]["_meta"]["progressToken"].to_string())
        .collect();
    upstream.sort();
    upstream.dedup();
    assert_eq!(upstream.len(), tokens.len(), "A14.4: tokens upstream are distinct");
}

#[tokio::test(start_paused = true)]
async fn d18_progress_that_nobody_asked_for_is_dropped() {
    let server = LegacyServer::new().on("tools/call", |seen, mut reply: Reply| async move {
        assert_eq!(seen.json()["params"].get("_meta"), None);
        reply.stream().await;
        for token in [json!(1), json!("t"), seen.json()["id"].clone()] {
            reply.event(&progress(&token, 1, "x")).await;
        }
        reply.result_event(&seen, r#"{"content":[]}"#).await;
        reply.end().await;
    });
    let (proxy, _up) = Proxy::before(&server).await;
    let done = proxy.send(&call("echo", "{}")).await;
    done.result();
    assert_eq!(done.before, Vec::<serde_json::Value>::new());
}

#[tokio::test(start_paused = true)]
async fn d18_progress_comes_while_the_call_runs() {
    let server = LegacyServer::new().on("tools/call", |seen, mut reply: Reply| async move {
        let token = seen.json()["params"]["_meta"]["progressToken"].clone();
        reply.stream().await;
        reply.event(&progress(&token, 1, "x")).await;
        pass(60_000).await;
        reply.result_event(&seen, r#"{"content":[]}"#).await;
        reply.end().await;
    });
    let (proxy, _up) = Proxy::before(&server).await;
    let began = tokio::time::Instant::now();
    let mut answer = proxy.open(&numbered(0).meta("progressToken", r#""t""#)).await;
    assert_eq!(answer.message().await["params"]["progress"], 1);
    assert!(began.elapsed().as_secs() < 5, "the first event was held back for {:?}", began.elapsed());
    let done = within("result", answer.done()).await;
    done.result();
    assert!(done.comments > 0, "keep-alive comments while nothing comes (C16)");
}
