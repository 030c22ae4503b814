//! Results that go wrong after their beginning has reached the client: its stream breaks off, the server is told once.

use std::time::Duration;

use tokio::time::Instant;

use super::{STYLES, Style, Writing, halves};
use crate::support::{Ask, LegacyServer, Net, Proxy, Reply, Value, call, list, pass};

fn ask(accept: &str) -> Ask {
    call("echo", "{}").id("7").header("Accept", accept)
}

/// How the one call ended, as it is counted; a list that went well meanwhile is not looked at.
fn ended(proxy: &Proxy) -> String {
    let metrics = proxy.metrics();
    let counted = |line: &&str| {
        line.starts_with("mcp_janus_requests_total{") && line.contains("tools/call") && line.ends_with(" 1")
    };
    let mut lines: Vec<_> = metrics.lines().filter(counted).collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    lines.remove(0).split("outcome=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
}

/// Checks that `body` can be taken for no message, in a body of JSON and in one of events.
#[track_caller]
fn is_no_message(body: &[u8], what: &str) {
    assert!(body.len() > 100_000, "{what}: its beginning has gone out");
    assert!(serde_json::from_slice::<Value>(body).is_err(), "{what}");
    let text = String::from_utf8_lossy(body);
    if text.starts_with("data: ") {
        assert!(!text.contains("\n\n"), "{what}: an event ended");
    }
}

#[tokio::test(start_paused = true)]
async fn inv1_what_goes_wrong_in_the_middle_breaks_the_stream_off() {
    let endings = [
        ("cut off", ""),
        ("no JSON", "\"]}],]}}"),
        ("a control character", "\u{1}"),
        ("more after the end", "\"}]}} {}"),
        ("a second id", "\"}]},\"id\":8}"),
        ("a second result", "\"}]},\"result\":{}}"),
        ("an error as well", "\"}]},\"error\":{\"code\":1,\"message\":\"m\"}}"),
        ("two _meta", "\"}],\"_meta\":{},\"_meta\":{}}}"),
        ("a _meta that is none", "\"}],\"_meta\":1}}"),
    ];
    for style in STYLES {
        for accept in ["application/json", "text/event-stream"] {
            for (what, ending) in endings {
                let server = LegacyServer::new().on("tools/call", move |seen, reply: Reply| async move {
                    let mut writing = Writing::begin(reply, style).await;
                    writing.write(&halves(&seen, 400_000).0).await;
                    if what == "cut off" {
                        return;
                    }
                    writing.write(ending).await;
                    writing.end().await;
                });
                let (proxy, up) = Proxy::before(&server).await;
                let mut answer = proxy.open(&ask(accept)).await;
                assert_eq!(answer.status, 200);
                let (body, broken) = answer.pieces().await;
                let what = format!("{style:?}, {accept}: {what}");
                assert!(broken, "{what}");
                is_no_message(&body, &what);
                pass(5_000).await;
                assert_eq!(up.posts("tools/call").len(), 1, "{what}");
                assert_eq!(ended(&proxy), "broken-off", "{what}");
                assert_eq!(up.posts("notifications/cancelled").len(), 1, "{what}: {:?}", up.briefs());
                proxy.send(&list("tools/list")).await.result();
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn inv1_a_reset_in_the_middle() {
    for style in STYLES {
        let server = LegacyServer::new().on("tools/call", move |seen, reply: Reply| async move {
            let mut writing = Writing::begin(reply, style).await;
            writing.write(&halves(&seen, 400_000).0).await;
            pass(1_000).await;
            writing.reply.reset();
        });
        let (proxy, up) = Proxy::before(&server).await;
        let (body, broken) = proxy.open(&ask("application/json")).await.pieces().await;
        assert!(broken, "{style:?}");
        is_no_message(&body, "reset");
        pass(60_000).await;
        // An event id came before it, but half a result cannot be taken up again.
        assert_eq!(
            (up.posts("tools/call").len(), up.briefs().iter().filter(|b| *b == "GET").count()),
            (1, 0)
        );
    }
}

/// A server that stops in the middle of its result.
fn stalls(style: Style) -> LegacyServer {
    LegacyServer::new().on("tools/call", move |seen, reply: Reply| async move {
        let mut writing = Writing::begin(reply, style).await;
        writing.write(&halves(&seen, 400_000).0).await;
        writing.reply.never().await;
    })
}

#[tokio::test(start_paused = true)]
async fn b14_the_deadline_in_the_middle() {
    for style in STYLES {
        for accept in ["application/json", "text/event-stream"] {
            let net = Net::new();
            let up = stalls(style).start(&net);
            let proxy = Proxy::with(&net, "[upstream.up.timeouts]\nrequest = \"90s\"\n").await;
            let began = Instant::now();
            let (body, broken) = proxy.open(&ask(accept)).await.pieces().await;
            assert!(broken, "{style:?}, {accept}");
            assert!((90..92).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
            is_no_message(&body, accept);
            let cancelled = up.wait("notifications/cancelled", 1).await;
            pass(5_000).await;
            assert_eq!(ended(&proxy), "broken-off");
            assert_eq!(up.posts("notifications/cancelled").len(), 1);
            assert_eq!(cancelled[0].json()["params"]["requestId"].to_string(), up.only("tools/call").id());
            assert_eq!(cancelled[0].json()["params"]["reason"], "timed out");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn b14_the_client_closes_in_the_middle() {
    for style in STYLES {
        for accept in ["application/json", "text/event-stream"] {
            let (proxy, up) = Proxy::before(&stalls(style)).await;
            let began = Instant::now();
            let mut answer = proxy.open(&ask(accept)).await;
            let _ = answer.piece().await;
            answer.close();
            let cancelled = up.wait("notifications/cancelled", 1).await;
            assert!(began.elapsed() < Duration::from_secs(1), "{style:?}: {:?}", began.elapsed());
            pass(1_000_000).await;
            assert_eq!(ended(&proxy), "cancelled");
            assert_eq!(up.posts("notifications/cancelled").len(), 1);
            assert_eq!(cancelled[0].json()["params"]["requestId"].to_string(), up.only("tools/call").id());
            proxy.send(&list("tools/list")).await.result();
        }
    }
}

/// A client that has all of the result but its end, and goes: also then the call is not left behind.
#[tokio::test(start_paused = true)]
async fn b14_the_client_closes_while_the_server_writes() {
    let server = LegacyServer::new().on("tools/call", |seen, reply: Reply| async move {
        let mut writing = Writing::begin(reply, Style::Json).await;
        writing.write(&halves(&seen, 100).0).await;
        for _ in 0..1000 {
            writing.write(&"x".repeat(100_000)).await;
        }
    });
    let (proxy, up) = Proxy::before(&server).await;
    let mut answer = proxy.open(&ask("application/json")).await;
    for _ in 0..10 {
        answer.piece().await.unwrap().expect("more");
    }
    answer.close();
    let cancelled = up.wait("notifications/cancelled", 1).await;
    assert_eq!(cancelled[0].json()["params"]["reason"], "the client closed its request");
    pass(60_000).await;
    assert_eq!(up.posts("notifications/cancelled").len(), 1);
    proxy.send(&list("tools/list")).await.result();
}
