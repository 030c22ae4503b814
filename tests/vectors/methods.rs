//! A1, A2: which methods and notifications of a modern client cross over to a legacy server, and which never do.

use crate::support::{Ask, LegacyServer, Proxy, call, json, list, pass, within};

#[tokio::test(start_paused = true)]
async fn a1_9_a_subscription_is_never_forwarded() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    let filter = r#""notifications":{"toolsListChanged":true}"#;
    let answer =
        within("an answer", proxy.open(&Ask::new("subscriptions/listen").id("1").params(filter))).await;
    answer.close();
    pass(1000).await;
    assert_eq!(up.posts("subscriptions/listen").len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a1_10_completion_context_by_revision() {
    let params = r#""ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"v"},"context":{"arguments":{"b":"c"}}"#;
    for (version, kept) in
        [("2025-11-25", true), ("2025-06-18", true), ("2025-03-26", false), ("2024-11-05", false)]
    {
        let (proxy, up) = Proxy::before(&LegacyServer::new().version(version)).await;
        proxy.send(&Ask::new("completion/complete").params(params)).await.result();
        let sent = up.only("completion/complete").json()["params"].clone();
        assert_eq!(sent.get("context").is_some(), kept, "{version}");
        assert_eq!(sent["argument"], json!({"name": "a", "value": "v"}));
    }
}

#[tokio::test(start_paused = true)]
async fn a1_16_a_custom_method_is_forwarded() {
    let (proxy, up) = Proxy::before(&LegacyServer::new().result("acme/do", r#"{"k":1e400}"#)).await;
    let done = proxy.send(&Ask::new("acme/do").params(r#""x":[1E5]"#)).await;
    assert!(done.raw.contains(r#""k":1e400"#), "{}", done.raw);
    assert!(up.only("acme/do").text().contains(r#""x":[1E5]"#));
    proxy.send(&Ask::new("acme/none").id("9")).await.is_error(404, -32601);
}

#[tokio::test(start_paused = true)]
async fn a2_11_an_unknown_notification_is_forwarded() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    let done = proxy.send(&Ask::new("notifications/acme").notification().params(r#""x":1E5"#)).await;
    assert_eq!((done.status, done.body.len()), (202, 0), "{}", done.raw);
    let sent = up.wait("notifications/acme", 1).await;
    assert!(sent[0].text().contains(r#""x":1E5"#));
    assert_eq!(sent[0].json()["params"], json!({"x": 100_000.0}));
}

/// What a notification is about happened in the client's own session, whatever that was told of the client.
#[tokio::test(start_paused = true)]
async fn a2_11_a_notification_goes_to_the_session_that_its_client_has() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    let caps = r#"{"sampling":{}}"#;
    proxy.send(&list("tools/list").caps(caps).bearer("a")).await.result();
    proxy.send(&list("tools/list").bearer("b")).await.result();
    let notify = Ask::new("notifications/acme").notification();
    let silent = notify.without_meta("io.modelcontextprotocol/clientCapabilities").bearer("a");
    assert_eq!(proxy.send(&silent).await.status, 202);
    let sent = up.wait("notifications/acme", 1).await;
    assert_eq!(sent[0].session(), up.posts("tools/list")[0].session());
    assert_eq!(up.posts("initialize").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a2_1_notifications_of_the_legacy_era_are_never_forwarded() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    proxy.send(&list("tools/list")).await.result();
    let before = up.requests().len();
    let names =
        ["initialized", "roots/list_changed", "progress", "tasks/status", "message", "elicitation/complete"];
    for name in names {
        let done = proxy.send(&Ask::new(&format!("notifications/{name}")).notification()).await;
        assert!(
            done.status == 202 || (400..500).contains(&done.status),
            "{name}: {} {}",
            done.status,
            done.raw
        );
    }
    pass(1000).await;
    assert_eq!(up.briefs()[before..], Vec::<String>::new()[..]);
}

#[tokio::test(start_paused = true)]
async fn a1_5_retry_members_stay_on_the_modern_side() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    // Nothing was ever asked, so there is nothing to resume; D38 refuses it, and it must not reach the server.
    let params = r#""name":"echo","arguments":{},"inputResponses":{"k":{}},"requestState":"garbage""#;
    let done = proxy.send(&call("echo", "{}").params(params)).await;
    done.is_error(200, -32602);
    assert_eq!(up.posts("tools/call").len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a12_1_one_connection_serves_many_requests() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    let mut connection = proxy.connection();
    let asks = [
        (list("tools/list").id("1"), 200),
        (call("echo", "{}").id("2").without("Mcp-Name"), 400),
        (list("tools/list").raw_body(b"[]"), 400),
        (Ask::new("ping").id("3"), 404),
        (call("echo", "{}").id("4"), 200),
    ];
    for (ask, status) in asks {
        let (done, again) = connection.open(&ask).await.done_keeping().await;
        assert_eq!(done.status, status, "{}", done.raw);
        connection = again;
    }
    assert_eq!(up.posts("initialize").len(), 1);
}
