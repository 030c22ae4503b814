//! D103 first half, D104: streams that break, are resumed, or are given up by the client.

use crate::support::{Ask, LegacyServer, ModernServer, Proxy, Reply, call, json, list, pass, within};

#[tokio::test(start_paused = true)]
async fn d103_cancel_http_modern() {
    let server = LegacyServer::new().on("tools/call", |seen, mut reply: Reply| async move {
        reply.stream().await;
        pass(30_000).await;
        reply.result_event(&seen, r#"{"content":[]}"#).await;
        reply.end().await;
    });
    let (proxy, up) = Proxy::before(&server).await;
    // Two calls on one session; one client goes away before it has seen anything.
    let stays = proxy.spawn(&call("echo", r#"{"who":"stays"}"#));
    let leaves = proxy.spawn(&call("echo", r#"{"who":"leaves"}"#));
    let calls = up.wait("tools/call", 2).await;
    pass(100).await;
    leaves.abort();
    let cancelled = up.wait("notifications/cancelled", 1).await;
    let gone = calls.iter().find(|c| c.text().contains("leaves")).unwrap();
    assert_eq!(cancelled[0].json()["params"]["requestId"], gone.json()["id"]);
    assert_eq!(cancelled[0].session(), gone.session());
    stays.await.unwrap().result();
    assert_eq!(up.posts("notifications/cancelled").len(), 1, "the other call is untouched");
    proxy.send(&list("tools/list")).await.result();
}

#[tokio::test(start_paused = true)]
async fn d103_cancel_after_the_stream_has_begun() {
    let server = LegacyServer::new().on("tools/call", |seen, mut reply: Reply| async move {
        let token = seen.json()["params"]["_meta"]["progressToken"].clone();
        reply.stream().await;
        let params = json!({"progressToken": token, "progress": 1});
        reply
            .event(
                &json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}).to_string(),
            )
            .await;
        reply.never().await;
    });
    let (proxy, up) = Proxy::before(&server).await;
    let mut answer = proxy.open(&call("echo", "{}").meta("progressToken", "1")).await;
    answer.message().await;
    answer.close();
    let began = tokio::time::Instant::now();
    let cancelled = up.wait("notifications/cancelled", 1).await;
    assert!(began.elapsed().as_secs() < 5, "promptly, not after {:?}", began.elapsed());
    assert_eq!(cancelled[0].json()["params"]["requestId"], up.only("tools/call").json()["id"]);
}

#[tokio::test(start_paused = true)]
async fn d103_a_modern_server_is_cancelled_by_closing_its_stream() {
    let gone = std::sync::Arc::new(tokio::sync::Notify::new());
    let told = std::sync::Arc::clone(&gone);
    let server = ModernServer::new().on("tools/call", move |_, mut reply: Reply| {
        let told = std::sync::Arc::clone(&told);
        async move {
            reply.stream().await;
            reply.closed().await;
            told.notify_one();
        }
    });
    let (proxy, up) = Proxy::before_modern(&server).await;
    let call = proxy.spawn(&call("echo", "{}"));
    up.wait("tools/call", 1).await;
    pass(100).await;
    call.abort();
    within("the upstream stream closes", gone.notified()).await;
    assert_eq!(up.posts("notifications/cancelled").len(), 0, "A2.2: over HTTP closing is the cancel");
}

#[tokio::test(start_paused = true)]
async fn d104_upstream_break_is_resumed_on_a_legacy_server() {
    let (proxy, up) = Proxy::before(&resumable()).await;
    let began = tokio::time::Instant::now();
    let done = proxy.send(&call("echo", "{}").id("3")).await;
    assert_eq!(done.result()["content"], json!([{"type": "text", "text": "resumed"}]));
    assert!(began.elapsed().as_millis() >= 1500, "retry is kept to: {:?}", began.elapsed());
    assert_eq!(up.posts("tools/call").len(), 1, "never sent again");
    let get = up.requests().into_iter().find(|s| s.verb == "GET").unwrap();
    assert_eq!(get.header("last-event-id").as_deref(), Some("s:0"));
    assert_eq!(get.session().as_deref(), Some("S1"));
}

/// Closes a call's stream after the priming event; a GET with `Last-Event-ID` delivers its result.
fn resumable() -> LegacyServer {
    let last = std::sync::Arc::new(std::sync::Mutex::new(None::<std::sync::Arc<crate::support::Seen>>));
    let noted = std::sync::Arc::clone(&last);
    LegacyServer::new()
        .on("tools/call", move |seen, mut reply: Reply| {
            *noted.lock().unwrap() = Some(seen);
            async move {
                reply.stream().await;
                reply.chunk(b"id: s:0\nretry: 1500\ndata: \n\n").await;
                reply.end().await;
            }
        })
        .on("GET", move |seen, mut reply: Reply| {
            let call = last.lock().unwrap().clone();
            async move {
                match (seen.header("last-event-id"), call) {
                    (Some(_), Some(call)) => {
                        reply.stream().await;
                        reply.result_event(&call, r#"{"content":[{"type":"text","text":"resumed"}]}"#).await;
                        reply.end().await;
                    }
                    _ => reply.empty(405).await,
                }
            }
        })
}

#[tokio::test(start_paused = true)]
async fn d104_upstream_break_without_an_event_id_is_an_error() {
    let server = LegacyServer::new().on("tools/call", |_, mut reply: Reply| async move {
        reply.stream().await;
        reply.chunk(b": nothing to resume from\n\n").await;
        reply.end().await;
    });
    let (proxy, up) = Proxy::before(&server).await;
    let done = proxy.send(&call("echo", "{}").id("3")).await;
    done.is_error(502, -32603);
    assert_eq!(up.posts("tools/call").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn d104_resuming_has_an_end() {
    let server = LegacyServer::new()
        .on("tools/call", |_, mut reply: Reply| async move {
            reply.stream().await;
            reply.chunk(b"id: s:0\nretry: 10\ndata: \n\n").await;
            reply.end().await;
        })
        .on("GET", |_, mut reply: Reply| async move {
            reply.stream().await;
            reply.end().await;
        });
    let (proxy, up) = Proxy::before(&server).await;
    let done = proxy.send(&call("echo", "{}").id("3")).await;
    assert_eq!(done.code(), -32603, "{}", done.raw);
    let gets = up.requests().iter().filter(|s| s.verb == "GET").count();
    assert!((1..=100).contains(&gets), "bounded: {gets}");
}

#[tokio::test(start_paused = true)]
async fn d104_upstream_break_of_a_modern_server() {
    let server = ModernServer::new().on("tools/call", |seen, mut reply: Reply| async move {
        let token = seen.json()["params"]["_meta"]["progressToken"].clone();
        reply.stream().await;
        let params = json!({"progressToken": token, "progress": 1});
        reply
            .event(
                &json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}).to_string(),
            )
            .await;
        drop(reply);
    });
    let (proxy, up) = Proxy::before_modern(&server).await;
    let answer = proxy.open(&call("echo", "{}").id("3").meta("progressToken", r#""t""#)).await;
    let (messages, broken) = answer.rest().await;
    // Invariant 1: an answer under its id, or a stream that ends with an error; never a clean end without an answer.
    let answered = messages.last().is_some_and(|m| m["id"] == 3 && m["error"]["code"] == -32603);
    assert!(answered || broken, "{messages:?}");
    assert_eq!(up.posts("tools/call").len(), 1);
    assert_eq!(up.requests().iter().filter(|s| s.verb == "GET").count(), 0, "modern streams are not resumed");
}

#[tokio::test(start_paused = true)]
async fn b11_a_quiet_call_opens_its_stream_in_time() {
    let server = LegacyServer::new().on("acme/slow", |seen, reply: Reply| async move {
        pass(40_000).await;
        reply.result(&seen, "{}").await;
    });
    let (proxy, _up) = Proxy::before(&server).await;
    let began = tokio::time::Instant::now();
    let answer = proxy.open(&Ask::new("acme/slow")).await;
    assert!(
        began.elapsed().as_millis() <= 1100,
        "headers are held back for at most a second: {:?}",
        began.elapsed()
    );
    assert!(answer.is_stream());
    let done = answer.done().await;
    done.result();
    assert!(done.comments >= 1, "C16: comments well under 60 s apart");
}
