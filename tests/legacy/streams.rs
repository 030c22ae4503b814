//! A12.19, A13.5, C08, C10, C16: the streams of a POST and of a GET, taken up again, quiet, cut, drained.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::support::{LegacyServer, Net, Old, Proxy, Reply, json, pass, within};

const NOTE: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;

/// A server whose GET stream sends one event and then nothing.
fn quiet() -> LegacyServer {
    LegacyServer::new().on("GET", |_, mut reply: Reply| async move {
        reply.stream().await;
        reply.event(NOTE).await;
        reply.never().await;
    })
}

#[tokio::test(start_paused = true)]
async fn a13_5_a_stream_is_taken_up_where_it_ended() {
    let server = LegacyServer::new()
        .on("tools/call", |_, mut reply: Reply| async move {
            reply.stream().await;
            reply.chunk(b"id: p:0\nretry: 1500\ndata: \n\n").await;
            reply.end().await;
        })
        .on("GET", |seen, mut reply: Reply| async move {
            assert_eq!(seen.header("last-event-id").as_deref(), Some("p:0"));
            reply.stream().await;
            reply
                .chunk(b"id: p:1\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"content\":[]}}\n\n")
                .await;
            reply.end().await;
        });
    let (proxy, up) = Proxy::before(&server).await;
    let old = Old::latest(&proxy).await;
    let mut call = proxy.open(&old.call("slow", "{}").id("7")).await;
    // The priming event goes through with its id and its time; the end of the stream is the client's to act on.
    let primed = call.event().await.unwrap();
    assert_eq!((primed.id.as_str(), primed.data.as_str()), ("p:0", ""));
    assert!(call.events.fields.contains(&"retry".to_owned()));
    assert_eq!(call.event().await, None);
    let mut resumed = proxy.open(&old.get().header("Last-Event-ID", "p:0")).await;
    assert_eq!(resumed.message().await["result"], json!({"content": []}));
    assert_eq!(up.posts("tools/call").len(), 1, "run once");
}

#[tokio::test(start_paused = true)]
async fn c16_quiet_streams_get_comments() {
    let server = quiet().on("tools/call", |seen, mut reply: Reply| async move {
        reply.stream().await;
        pass(90_000).await;
        reply.result_event(&seen, r#"{"content":[]}"#).await;
        reply.end().await;
    });
    let (proxy, _up) = Proxy::before(&server).await;
    let old = Old::latest(&proxy).await;
    let done = proxy.send(&old.call("slow", "{}")).await;
    assert!(done.comments >= 4, "{} comments in 90 s", done.comments);
    let mut stream = proxy.open(&old.get()).await;
    assert_eq!(stream.headers.get("x-accel-buffering").as_deref(), Some("no"));
    let control = stream.headers.get("cache-control").unwrap();
    assert!(control.contains("no-cache") && control.contains("no-store"), "{control}");
    stream.message().await;
    let next = tokio::time::timeout(Duration::from_secs(300), stream.event()).await;
    assert!(next.is_err(), "nothing but comments: {next:?}");
    assert!(stream.events.comments() >= 19, "{} in 5 min", stream.events.comments());
}

#[tokio::test(start_paused = true)]
async fn c16_a_get_stream_is_not_due_and_a_calls_is() {
    let server = LegacyServer::new()
        .on("GET", |_, mut reply: Reply| async move {
            reply.stream().await;
            pass(3_000_000).await;
            reply.event(NOTE).await;
            reply.never().await;
        })
        .on("tools/call", |_, mut reply: Reply| async move {
            reply.stream().await;
            reply.event(NOTE).await;
            reply.never().await;
        });
    let net = Net::new();
    let up = server.start(&net);
    let proxy = Proxy::with(&net, "timeouts = { request = \"1s\" }").await;
    let old = Old::latest(&proxy).await;
    let start = Instant::now();
    let (messages, broken) = proxy.open(&old.call("slow", "{}")).await.rest().await;
    assert!(broken && messages.len() == 1, "the stream breaks off: {messages:?}");
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    let mut stream = proxy.open(&old.get()).await;
    assert_eq!(stream.message().await["method"], "notifications/tools/list_changed");
    assert_eq!(up.posts("notifications/cancelled").len(), 0, "a lost stream is no cancellation");
}

#[tokio::test(start_paused = true)]
async fn a12_19_a_client_that_goes_cancels_nothing() {
    let gone = Arc::new(Notify::new());
    let told = Arc::clone(&gone);
    let server = LegacyServer::new().on("tools/call", move |_, mut reply: Reply| {
        let told = Arc::clone(&told);
        async move {
            reply.stream().await;
            reply.event(NOTE).await;
            reply.closed().await;
            told.notify_one();
        }
    });
    let (proxy, up) = Proxy::before(&server).await;
    let old = Old::latest(&proxy).await;
    let mut call = proxy.open(&old.call("slow", "{}")).await;
    call.message().await;
    call.close();
    within("the server's stream is let go", gone.notified()).await;
    pass(60_000).await;
    assert_eq!(up.posts("notifications/cancelled").len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a14_7_at_the_drain_a_get_stream_just_ends_and_a_call_is_finished() {
    let server = quiet().on("tools/call", |seen, mut reply: Reply| async move {
        reply.stream().await;
        pass(3000).await;
        reply.result_event(&seen, r#"{"content":[]}"#).await;
        reply.end().await;
    });
    let (proxy, up) = Proxy::before(&server).await;
    let old = Old::latest(&proxy).await;
    let mut stream = proxy.open(&old.get()).await;
    stream.message().await;
    let running = proxy.spawn(&old.call("slow", "{}"));
    up.wait("tools/call", 1).await;
    let start = Instant::now();
    proxy.drain();
    let (messages, broken) = stream.rest().await;
    assert_eq!((messages.len(), broken), (0, false), "no message of a modern kind");
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    running.await.unwrap().result();
}

#[tokio::test(start_paused = true)]
async fn a14_7_at_the_drain_a_get_that_has_no_answer_yet_is_over() {
    let server = LegacyServer::new().on("GET", |_, reply: Reply| reply.never());
    let (proxy, up) = Proxy::before(&server).await;
    let old = Old::latest(&proxy).await;
    let waiting = proxy.spawn(&old.get());
    up.wait("GET", 1).await;
    let start = Instant::now();
    proxy.drain();
    assert_eq!(waiting.await.unwrap().status, 503);
    assert!(start.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn c08_what_a_get_is_refused_with_concerns_the_get_alone() {
    for status in [404, 405, 406, 400, 409] {
        let server =
            LegacyServer::new().on("GET", move |_, reply: Reply| reply.body(status, "text/html", "<p>no"));
        let (proxy, up) = Proxy::before(&server).await;
        let old = Old::latest(&proxy).await;
        assert_eq!(proxy.send(&old.get()).await.status, status);
        proxy.send(&old.call("echo", "{}")).await.result();
        assert_eq!(up.posts("initialize").len(), 1, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn c11_a_streams_bytes_pass_as_they_are() {
    let server = LegacyServer::new().on("tools/call", |_, mut reply: Reply| async move {
        reply.stream().await;
        for piece in [
            "event: ping\r\nid: \u{e9}\r",
            "\ndata: 2026\r\n\r\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\r\n",
            "data: \"result\":{}}\r\n\r\n",
        ] {
            reply.chunk(piece.as_bytes()).await;
        }
        reply.end().await;
    });
    let (proxy, _up) = Proxy::before(&server).await;
    let old = Old::latest(&proxy).await;
    let mut call = proxy.open(&old.call("x", "{}").id("7")).await;
    let ping = call.event().await.unwrap();
    assert_eq!((ping.kind.as_str(), ping.id.as_str(), ping.data.as_str()), ("ping", "\u{e9}", "2026"));
    assert_eq!(call.event().await.unwrap().data, "{\"jsonrpc\":\"2.0\",\"id\":7,\n\"result\":{}}");
    assert_eq!(call.event().await, None);
}

#[tokio::test(start_paused = true)]
async fn inv5_get_streams_are_bounded_apart_from_requests() {
    let net = Net::new();
    quiet().start(&net);
    let toml = "[limits]\nstreams = 1\nrequests = 1\n[upstream.up]\nurl = \"http://up.test/mcp\"\n";
    let proxy = Proxy::configured(&net, toml).await;
    let old = Old::latest(&proxy).await;
    let mut open = proxy.open(&old.get()).await;
    open.message().await;
    let refused = proxy.send(&old.get()).await;
    assert_eq!((refused.status, refused.headers.has("retry-after")), (503, true));
    proxy.send(&old.call("echo", "{}")).await.result();
    open.close();
    pass(1000).await;
    assert_eq!(proxy.open(&old.get()).await.status, 200, "its place is free again");
}
