//! A12.21, invariant 5: a call is due in time in every phase of it, a notification too.

use std::time::Duration;

use tokio::time::Instant;

use crate::support::{Ask, Done, LegacyServer, ModernServer, Net, Proxy, Reply, call, json, list, pass};

const ONE_SECOND: &str = "[upstream.up.timeouts]\nrequest = \"1s\"\n";
const STALLED: &[u8] =
    b"HTTP/1.1 400 X\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"jsonrpc\"";

async fn stalls(mut reply: Reply, head: &'static [u8]) {
    reply.raw(head).await;
    reply.never().await;
}

fn overdue(what: &str, began: Instant, done: &Done) {
    assert!(began.elapsed() <= Duration::from_millis(1100), "{what}: only after {:?}", began.elapsed());
    assert!([502, 504].contains(&done.status), "{what}: {} {}", done.status, done.raw);
    assert_eq!((done.code(), &done.message["id"]), (-32603, &json!(7)), "{what}: {}", done.raw);
}

#[tokio::test(start_paused = true)]
async fn a12_21_a_stalled_refusal_of_a_modern_server() {
    let server = ModernServer::new().on("tools/call", |_, reply: Reply| stalls(reply, STALLED));
    let net = Net::new();
    let up = server.start(&net);
    let proxy = Proxy::with(&net, ONE_SECOND).await;
    for what in ["cold", "warm"] {
        let began = Instant::now();
        let done = proxy.send(&call("echo", "{}").id("7")).await;
        overdue(what, began, &done);
    }
    assert_eq!(up.posts("tools/call").len(), 2, "once each");
}

#[tokio::test(start_paused = true)]
async fn a12_21_a_stalled_body_of_a_modern_server() {
    let head = b"HTTP/1.1 200 X\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"jsonrpc\"";
    let server = ModernServer::new().on("tools/call", |_, reply: Reply| stalls(reply, head));
    let net = Net::new();
    let _up = server.start(&net);
    let proxy = Proxy::with(&net, ONE_SECOND).await;
    proxy.send(&list("tools/list")).await.result();
    let began = Instant::now();
    // Its head may have gone out; then the connection breaks, and the client is not left waiting.
    let _ = proxy.spawn(&call("echo", "{}").id("7")).await;
    assert!(began.elapsed() <= Duration::from_millis(1100), "only after {:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a12_21_a_stalled_refusal_of_a_legacy_server() {
    let server = LegacyServer::new().on("tools/call", |_, reply: Reply| stalls(reply, STALLED));
    let net = Net::new();
    let _up = server.start(&net);
    let proxy = Proxy::with(&net, ONE_SECOND).await;
    let began = Instant::now();
    let ask = call("echo", "{}").id("7").header("Accept", "application/json");
    let done = proxy.send(&ask).await;
    overdue("legacy", began, &done);
}

#[tokio::test(start_paused = true)]
async fn a12_21_a_stalled_handshake() {
    for method in ["initialize", "notifications/initialized", "server/discover"] {
        for half in [false, true] {
            let server = LegacyServer::new().on(method, move |_, reply: Reply| async move {
                match half {
                    true => stalls(reply, STALLED).await,
                    false => reply.never().await,
                }
            });
            let net = Net::new();
            let up = server.start(&net);
            let proxy = Proxy::with(&net, ONE_SECOND).await;
            let began = Instant::now();
            let done = proxy.send(&call("echo", "{}").id("7")).await;
            overdue(&format!("{method}, half {half}"), began, &done);
            assert_eq!(up.posts("tools/call").len(), 0);
        }
    }
}

/// A stream with one event now and then, and no end.
fn endless() -> ModernServer {
    ModernServer::new()
        .on("tools/call", |seen, mut reply: Reply| async move {
            let token = seen.json()["params"]["_meta"]["progressToken"].clone();
            reply.stream().await;
            for n in 1..30 {
                let params = json!({"progressToken": token, "progress": n});
                let message = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
                reply.event(&message.to_string()).await;
                pass(300).await;
            }
            reply.never().await;
        })
        .on("subscriptions/listen", |seen, mut reply: Reply| async move {
            let meta = json!({"io.modelcontextprotocol/subscriptionId": seen.json()["id"]});
            let params = json!({"_meta": meta, "notifications": {}});
            let method = "notifications/subscriptions/acknowledged";
            reply.stream().await;
            reply.event(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()).await;
            reply.never().await;
        })
}

#[tokio::test(start_paused = true)]
async fn a12_21_an_endless_stream_of_a_modern_server_for_a_client_of_json() {
    let net = Net::new();
    let _up = endless().start(&net);
    let proxy = Proxy::with(&net, ONE_SECOND).await;
    let began = Instant::now();
    let ask = call("echo", "{}").id("7").meta("progressToken", "1").header("Accept", "application/json");
    let done = proxy.send(&ask).await;
    overdue("collapsed", began, &done);
}

#[tokio::test(start_paused = true)]
async fn a12_21_an_endless_stream_of_a_modern_server_breaks_at_the_deadline() {
    let net = Net::new();
    let _up = endless().start(&net);
    let proxy = Proxy::with(&net, ONE_SECOND).await;
    let began = Instant::now();
    let answer = proxy.open(&call("echo", "{}").id("7").meta("progressToken", "1")).await;
    let ended = tokio::time::timeout(Duration::from_secs(60), answer.rest()).await;
    let (messages, broken) = ended.expect("an end");
    let answered = messages.last().is_some_and(|m| m["id"] == 7 && m["error"]["code"] == -32603);
    assert!(broken || answered, "never a clean end without an answer: {messages:?}");
    assert!(messages.len() >= 2, "what came in time was passed on: {messages:?}");
    let (early, late) = (Duration::from_millis(900), Duration::from_millis(1100));
    assert!((early..=late).contains(&began.elapsed()), "after {:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn b9_a_relayed_subscription_has_no_deadline() {
    let net = Net::new();
    let _up = endless().start(&net);
    let proxy = Proxy::with(&net, ONE_SECOND).await;
    let mut answer =
        proxy.open(&Ask::new("subscriptions/listen").id("7").params(r#""notifications":{}"#)).await;
    assert_eq!(answer.message().await["method"], "notifications/subscriptions/acknowledged");
    let minute = tokio::time::timeout(Duration::from_secs(60), answer.event()).await;
    assert!(minute.is_err(), "still open after a minute, without a further message: {minute:?}");
}

#[tokio::test(start_paused = true)]
async fn b9_nor_has_one_before_a_legacy_server() {
    let net = Net::new();
    let _up = LegacyServer::new().start(&net);
    let proxy = Proxy::with(&net, ONE_SECOND).await;
    let mut answer =
        proxy.open(&Ask::new("subscriptions/listen").id("7").params(r#""notifications":{}"#)).await;
    answer.message().await;
    let minute = tokio::time::timeout(Duration::from_secs(60), answer.event()).await;
    assert!(minute.is_err(), "still open after a minute, without a further message: {minute:?}");
}

/// How long a custom notification takes before a server that does this to it.
async fn notified<F, T>(legacy: bool, setting: &str, answer: F) -> Duration
where
    F: Fn(Reply) -> T + Send + Sync + 'static,
    T: Future<Output = ()> + Send + 'static,
{
    let net = Net::new();
    let custom = "notifications/custom";
    let up = match legacy {
        true => LegacyServer::new().on(custom, move |_, reply| answer(reply)).start(&net),
        false => ModernServer::new().on(custom, move |_, reply| answer(reply)).start(&net),
    };
    let proxy = Proxy::with(&net, &format!("[upstream.up.timeouts]\n{setting} = \"2s\"\n")).await;
    proxy.send(&list("tools/list")).await.result();
    let began = Instant::now();
    let done = proxy.send(&Ask::new(custom).notification()).await;
    assert!(done.status == 202 || done.status >= 400, "{} {}", done.status, done.raw);
    assert_eq!(up.posts(custom).len(), 1, "legacy {legacy}");
    began.elapsed()
}

const TWO_SECONDS: Duration = Duration::from_millis(2100);

#[tokio::test(start_paused = true)]
async fn inv5_a_notification_whose_refusal_stalls_at_a_legacy_server() {
    let took = notified(true, "initialize", |reply| stalls(reply, STALLED)).await;
    assert!(took <= TWO_SECONDS, "{took:?}");
    let took = notified(true, "initialize", Reply::never).await;
    assert!(took <= TWO_SECONDS, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn inv5_a_notification_that_a_modern_server_never_answers() {
    let took = notified(false, "request", Reply::never).await;
    assert!(took <= TWO_SECONDS, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn inv5_a_notification_whose_refusal_stalls_at_a_modern_server() {
    let took = notified(false, "request", |reply| stalls(reply, STALLED)).await;
    assert!(took <= TWO_SECONDS, "{took:?}");
}
