//! C11, C13, C14: event streams of legacy servers in every legal form, and in writes cut anywhere.

use std::sync::Arc;

use crate::support::{LegacyServer, Proxy, Reply, Seen, call, json, pass, rpc};

/// Streams `text` (with `RESULT` for the result message) in the given cuts, a moment apart.
fn streams(text: String, cut: usize) -> LegacyServer {
    LegacyServer::new().on("tools/call", move |seen: Arc<Seen>, mut reply: Reply| {
        let message = rpc::result_message(&seen.id(), r#"{"content":[{"type":"text","text":"é€😀"}]}"#);
        let bytes = text.replace("RESULT", &message).into_bytes();
        async move {
            reply.stream().await;
            for piece in bytes.chunks(cut) {
                reply.chunk(piece).await;
                pass(1).await;
            }
            reply.end().await;
        }
    })
}

async fn arrives(what: &str, text: String, cut: usize) {
    let (proxy, up) = Proxy::before(&streams(text, cut)).await;
    let done = proxy.send(&call("echo", "{}")).await;
    assert_eq!(done.status, 200, "{what}: {}", done.raw);
    assert_eq!(done.result()["content"], json!([{"type": "text", "text": "é€😀"}]), "{what}");
    assert_eq!(done.before, Vec::<serde_json::Value>::new(), "{what}");
    assert_eq!(up.posts("tools/call").len(), 1, "{what}");
}

#[tokio::test(start_paused = true)]
async fn c11_every_line_end_cut_anywhere() {
    for end in ["\n", "\r\n", "\r"] {
        for cut in [1, 2, 3, 7, 100_000] {
            let text = ": hello\nevent: message\ndata: RESULT\n\n".replace('\n', end);
            arrives(&format!("{end:?} cut at {cut}"), text, cut).await;
        }
    }
    arrives("mixed", "event: message\r\ndata: RESULT\r\r\n".to_owned(), 1).await;
    arrives("no event field", "data: RESULT\n\n".to_owned(), 5).await;
    arrives("no space", "data:RESULT\n\n".to_owned(), 5).await;
    arrives("a byte order mark", "\u{feff}data: RESULT\n\n".to_owned(), 1).await;
    arrives("an id", "id: 1\ndata: RESULT\n\n".to_owned(), 3).await;
}

#[tokio::test(start_paused = true)]
async fn c11_an_event_is_dispatched_at_its_blank_line() {
    for end in ["\n", "\r\n", "\r"] {
        let server =
            LegacyServer::new().on("tools/call", move |seen: Arc<Seen>, mut reply: Reply| async move {
                reply.stream().await;
                let message = rpc::result_message(&seen.id(), r#"{"content":[]}"#);
                reply.chunk(format!("data: {message}{end}{end}").as_bytes()).await;
                // The stream stays open; a reader that waits for its end, or for an LF after CR, is late.
                pass(100_000).await;
                reply.end().await;
            });
        let (proxy, _up) = Proxy::before(&server).await;
        let began = tokio::time::Instant::now();
        proxy.send(&call("echo", "{}")).await.result();
        assert!(began.elapsed().as_secs() < 5, "{end:?}: after {:?}", began.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn c11_data_over_several_lines() {
    let server = LegacyServer::new().on("tools/call", |seen: Arc<Seen>, mut reply: Reply| async move {
        reply.stream().await;
        let (a, b) = (r#"{"jsonrpc":"2.0","#, format!(r#""id":{},"result":{{"content":[]}}}}"#, seen.id()));
        reply.chunk(format!("data: {a}\ndata: {b}\n\n").as_bytes()).await;
        reply.end().await;
    });
    let (proxy, _up) = Proxy::before(&server).await;
    proxy.send(&call("echo", "{}")).await.result();
}

#[tokio::test(start_paused = true)]
async fn c13_events_without_a_message() {
    let noise =
        "id: s:0\nretry: 1000\ndata: \n\n: keepalive\n\nevent: ping\ndata: 2026\n\ndata\n\nevent: x\n\n";
    for cut in [1, 100_000] {
        arrives("noise before", format!("{noise}data: RESULT\n\n"), cut).await;
        arrives("noise around", format!("{noise}data: RESULT\n\n{noise}"), cut).await;
    }
}

#[tokio::test(start_paused = true)]
async fn c13_an_error_in_an_error_event() {
    let server = LegacyServer::new().on("tools/call", |seen: Arc<Seen>, mut reply: Reply| async move {
        reply.stream().await;
        let message =
            rpc::error_message(&seen.id(), r#"{"code":-32050,"message":"m"}"#).replace("-32050", "77");
        reply.chunk(format!("event: error\ndata: {message}\n\n").as_bytes()).await;
        reply.end().await;
    });
    let (proxy, _up) = Proxy::before(&server).await;
    let done = proxy.send(&call("echo", "{}").id("1")).await;
    done.is_error(200, 77);
    assert_eq!(done.message["id"], 1);
}

#[tokio::test(start_paused = true)]
async fn c14_separators_inside_a_string_end_no_line() {
    let odd = "a\u{2028}b\u{2029}c\u{85}d";
    for streamed in [false, true] {
        let server = LegacyServer::new().on("tools/call", move |seen: Arc<Seen>, reply: Reply| async move {
            let result = format!(r#"{{"content":[{{"type":"text","text":"{odd}"}}]}}"#);
            match streamed {
                true => reply.streamed_result(&seen, &result).await,
                false => reply.result(&seen, &result).await,
            }
        });
        let (proxy, up) = Proxy::before(&server).await;
        let done = proxy.send(&call("echo", &format!(r#"{{"t":"{odd}"}}"#))).await;
        assert_eq!(done.result()["content"][0]["text"], odd, "streamed: {streamed}");
        assert_eq!(up.only("tools/call").json()["params"]["arguments"]["t"], odd);
    }
}

#[tokio::test(start_paused = true)]
async fn c14_a_message_for_another_request_is_not_taken_for_the_answer() {
    let server = LegacyServer::new().on("tools/call", |seen: Arc<Seen>, mut reply: Reply| async move {
        reply.stream().await;
        reply.event(&rpc::result_message(r#""someone-else""#, r#"{"content":[],"wrong":true}"#)).await;
        reply.event("not json").await;
        reply.event(r#"[1,2]"#).await;
        reply.result_event(&seen, r#"{"content":[]}"#).await;
        reply.end().await;
    });
    let (proxy, _up) = Proxy::before(&server).await;
    let done = proxy.send(&call("echo", "{}")).await;
    assert_eq!(done.result().get("wrong"), None, "{}", done.raw);
}
