//! Messages that are too large to be held: architecture section 5, invariant 5.

use crate::stage::{BAD, GOOD, LEGACY, Like, WARN, message, streamed};
use crate::support::{Era, Reply};

/// Held in any case, and for a list.
const BOUNDS: &str = "[limits]\nevent_bytes = \"4KiB\"\n---[upstream.up.limits]\nmessage_bytes = \"64KiB\"\n";
const TOO_LARGE: &str = "mcp_janus_schema_too_large_total{upstream=\"up\"}";

fn count(like: &Like) -> String {
    let metrics = like.proxy.metrics();
    metrics.lines().find_map(|line| line.strip_prefix(TOO_LARGE)).unwrap_or_default().trim().to_owned()
}

/// A tool with a description of so many bytes.
fn wide(bytes: usize) -> String {
    format!(r#"{{"name":"wide","description":"{}","inputSchema":{{"type":"object"}}}}"#, "w".repeat(bytes))
}

/// A result whose text has so many bytes, and what comes after.
fn result(era: Era, bytes: usize, after: &str) -> String {
    let kind = if era == Era::Modern { r#""resultType":"complete","# } else { "" };
    let text = "\\u00e9 \\\"tools\\\":[".repeat(bytes / 18);
    format!(
        r#"{{"jsonrpc":"2.0","id":7,"result":{{{kind}"content":[{{"type":"text","text":"{text}"}}]{after}}}}}"#
    )
}

/// As a JSON body without a length, or as an event of a stream.
async fn answer(mut reply: Reply, stream: bool, text: &str) {
    if stream {
        return streamed(reply, &format!("id: 1\ndata: {text}\n\n"), 1000).await;
    }
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    reply.raw(head.as_bytes()).await;
    for piece in text.as_bytes().chunks(1000) {
        reply.chunk(piece).await;
    }
    reply.end().await;
}

async fn like(era: Era, stream: bool, toml: &str, text: String) -> Like {
    let answer = move |reply| {
        let text = text.clone();
        async move { answer(reply, stream, &text).await }
    };
    Like::of(era, "tools/call", toml, answer).await
}

fn framed(stream: bool, text: &str) -> String {
    if stream { format!("id: 1\ndata: {text}\n\n") } else { text.to_owned() }
}

#[tokio::test(start_paused = true)]
async fn inv5_a_list_is_held_up_to_message_bytes_whatever_was_asked() {
    for era in [Era::Modern, LEGACY] {
        for stream in [false, true] {
            let wide = wide(30_000);
            let like = like(era, stream, BOUNDS, message(era, "7", &[GOOD, &wide, BAD])).await;
            let wanted = framed(stream, &message(era, "7", &[GOOD, &wide]));
            assert_eq!(like.body(&like.call("good")).await, wanted, "{era:?}");
            assert_eq!(count(&like), "0");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn inv5_a_list_beyond_that_is_broken_off() {
    for era in [Era::Modern, LEGACY] {
        for stream in [false, true] {
            let text = message(era, "7", &[GOOD, &wide(100_000), BAD]);
            let bad = like(era, stream, BOUNDS, text.clone()).await;
            let (_, body, broken) = bad.bytes(&bad.call("good")).await;
            // An error in words where nothing has gone out yet.
            assert!(broken || body.contains("-32603"), "{body}");
            assert!(!body.contains("canary") && !body.contains("wwww"), "{era:?} {stream}");
            assert_eq!(count(&bad), "1");
            let toml = format!("{BOUNDS}{WARN}");
            let like = like(era, stream, &toml, text.clone()).await;
            assert_eq!(like.body(&like.call("good")).await, framed(stream, &text), "warn: {era:?} {stream}");
            assert_eq!(count(&like), "0");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn inv5_a_large_result_passes_in_pieces() {
    for era in [Era::Modern, LEGACY] {
        for stream in [false, true] {
            let text = result(era, 200_000, "");
            let like = like(era, stream, BOUNDS, text.clone()).await;
            assert_eq!(like.body(&like.call("good")).await, framed(stream, &text), "{era:?} {stream}");
            assert_eq!(count(&like), "0");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn inv5_a_list_at_the_end_of_a_large_message_is_not_passed() {
    for era in [Era::Modern, LEGACY] {
        for stream in [false, true] {
            for name in ["tools", r"t\u006fols"] {
                let text = result(era, 200_000, &format!(r#","{name}":[{BAD}]"#));
                let like = like(era, stream, BOUNDS, text).await;
                let (_, body, broken) = like.bytes(&like.call("good")).await;
                assert!(broken, "{era:?} {stream}");
                assert!(body.len() > 150_000 && !body.contains("canary"), "{era:?} {stream}");
                assert_eq!(count(&like), "1");
            }
        }
    }
}

/// What went before has gone out before the rest has come.
#[tokio::test(start_paused = true)]
async fn inv5_a_large_message_does_not_wait_for_its_end() {
    for era in [Era::Modern, LEGACY] {
        for stream in [false, true] {
            let text = framed(stream, &result(era, 50_000, ""));
            let half = text[..40_000].to_owned();
            let answer = move |mut reply: Reply| {
                let half = half.clone();
                async move {
                    let kind = if stream { "text/event-stream" } else { "application/json" };
                    let head = format!(
                        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n"
                    );
                    reply.raw(head.as_bytes()).await;
                    reply.chunk(half.as_bytes()).await;
                    reply.never().await;
                }
            };
            let like = Like::of(era, "tools/call", BOUNDS, answer).await;
            let mut got = Vec::new();
            let mut answer = like.open(&like.call("good")).await;
            while got.len() < 40_000 {
                got.extend_from_slice(&answer.piece().await.unwrap().expect("more"));
            }
            assert_eq!(got, text.as_bytes()[..40_000], "{era:?} {stream}");
        }
    }
}

/// A CR that ends an event, and the LF that belongs to it and comes later.
#[tokio::test(start_paused = true)]
async fn c11_a_large_event_after_a_cut_line_end() {
    for era in [Era::Modern, LEGACY] {
        let text = result(era, 50_000, &format!(r#","tools":[{BAD}]"#));
        let answer = move |mut reply: Reply| {
            let text = text.clone();
            async move {
                reply.stream().await;
                reply.chunk(b"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\r\n\r").await;
                crate::support::pass(5).await;
                reply.chunk(b"\ndata: ").await;
                reply.chunk(text.as_bytes()).await;
                reply.chunk(b"\r\n\r\n").await;
                reply.end().await;
            }
        };
        let like = Like::of(era, "tools/call", BOUNDS, answer).await;
        let (_, body, broken) = like.bytes(&like.call("good")).await;
        assert!(broken && !body.contains("canary"), "{era:?}");
    }
}
