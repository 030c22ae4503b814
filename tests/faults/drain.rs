//! B9.6, A14.7: how subscriptions end when the proxy stops.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use crate::support::{Ask, LegacyServer, ModernServer, Proxy, Reply, Seen, call, json, pass, within};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

fn listen(id: &str) -> Ask {
    Ask::new("subscriptions/listen").id(id).params(r#""notifications":{"toolsListChanged":true}"#)
}

async fn acknowledge(seen: &Seen, reply: &mut Reply) {
    let params =
        json!({"_meta": {SUBSCRIPTION: seen.json()["id"]}, "notifications": {"toolsListChanged": true}});
    let method = "notifications/subscriptions/acknowledged";
    reply.stream().await;
    reply.event(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()).await;
}

#[tokio::test(start_paused = true)]
async fn b9_6_a_relayed_subscription_ends_with_the_drain() {
    for id in ["7", r#""s1""#] {
        let gone = Arc::new(Notify::new());
        let told = Arc::clone(&gone);
        let server = ModernServer::new().on("subscriptions/listen", move |seen, mut reply: Reply| {
            let told = Arc::clone(&told);
            async move {
                acknowledge(&seen, &mut reply).await;
                reply.closed().await;
                told.notify_one();
            }
        });
        let (proxy, _up) = Proxy::before_modern(&server).await;
        let mut answer = proxy.open(&listen(id)).await;
        answer.message().await;
        pass(1000).await;
        proxy.drain();
        let ended = tokio::time::timeout(Duration::from_secs(5), answer.rest()).await;
        let (messages, broken) = ended.expect("an end in time");
        assert!(!broken, "a graceful end: {messages:?}");
        let [last] = messages.as_slice() else { panic!("one last message, not {messages:?}") };
        let wanted: crate::support::Value = serde_json::from_str(id).unwrap();
        assert_eq!(last["id"], wanted, "in its own type");
        assert_eq!(last["result"]["resultType"], "complete", "{last}");
        assert_eq!(last["result"]["_meta"][SUBSCRIPTION], wanted, "{last}");
        within("the server's stream is let go", gone.notified()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn b9_6_so_does_one_before_a_legacy_server() {
    let (proxy, _up) = Proxy::before(&LegacyServer::new()).await;
    let mut answer = proxy.open(&listen(r#""s1""#)).await;
    answer.message().await;
    proxy.drain();
    let (messages, broken) = answer.rest().await;
    assert!(!broken);
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert_eq!(messages[0]["result"]["_meta"][SUBSCRIPTION], "s1", "{messages:?}");
}

/// What the client reads of a stream whose server had written `begun` of its next event when the drain began.
async fn drained_within(begun: &'static str) -> Vec<String> {
    let server = ModernServer::new().on("subscriptions/listen", move |seen, mut reply: Reply| async move {
        acknowledge(&seen, &mut reply).await;
        reply.chunk(begun.as_bytes()).await;
        reply.never().await;
    });
    let (proxy, _up) = Proxy::before_modern(&server).await;
    let mut answer = proxy.open(&listen("7")).await;
    answer.message().await;
    pass(1000).await;
    proxy.drain();
    // The stream may break: then what had begun is never dispatched.
    let reader = tokio::spawn(async move {
        let mut events = Vec::new();
        while let Some(event) = answer.event().await {
            events.push(event.data);
        }
        events
    });
    within("an end", reader).await.unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn inv6_no_half_message_is_sent_at_the_drain() {
    let begun = [
        "event: message\n",
        "data: {\"jsonrpc\":\"2.0\",",
        "data: {\"jsonrpc\":\"2.0\",\n",
        "data: {\"jsonrpc\":\"2.0\",\r\n",
        ": comment\n",
    ];
    let mut broken = Vec::new();
    for begun in begun {
        let events = drained_within(begun).await;
        let half = |e: &String| serde_json::from_str::<crate::support::Value>(e).is_err();
        broken.extend(events.into_iter().filter(half).map(|event| (begun, event)));
    }
    assert_eq!(broken, [], "events that are no messages");
}

#[tokio::test(start_paused = true)]
async fn a14_7_a_relayed_call_is_not_cut_by_the_drain() {
    let server = ModernServer::new().on("tools/call", |seen, mut reply: Reply| async move {
        reply.stream().await;
        pass(3000).await;
        let info = r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"new","version":"8"}}"#;
        reply.result_event(&seen, &format!(r#"{{"resultType":"complete","content":[],{info}}}"#)).await;
        reply.end().await;
    });
    let (proxy, up) = Proxy::before_modern(&server).await;
    let running = proxy.spawn(&call("echo", "{}"));
    up.wait("tools/call", 1).await;
    proxy.drain();
    running.await.unwrap().result();
}
