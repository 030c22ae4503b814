//! A4, A11, A14.2, B12: modern client, modern server: checked at the front, then relayed as it is.

use crate::support::{Ask, ModernServer, Proxy, Reply, call, json, list, pass, rpc};

#[tokio::test(start_paused = true)]
async fn a14_2_like_pairs_are_relayed_as_they_are() {
    let (proxy, up) = Proxy::before_modern(&ModernServer::new()).await;
    let ask =
        call("echo", r#"{"a":1e400,"a":-0}"#).id(r#""\u0041""#).meta("progressToken", r#""t""#).bearer("b");
    proxy.send(&ask).await.result();
    let seen = up.only("tools/call");
    assert_eq!(seen.text().as_bytes(), ask.body(), "byte for byte");
    assert_eq!(seen.header("mcp-name").as_deref(), Some("echo"));
    assert_eq!(seen.header("authorization").as_deref(), Some("Bearer b"));
}

#[tokio::test(start_paused = true)]
async fn a11_errors_of_a_modern_server_keep_code_and_status() {
    let table = [
        (400, r#"{"code":-32021,"message":"m","data":{"requiredCapabilities":{"sampling":{}}}}"#),
        (404, r#"{"code":-32601,"message":"m"}"#),
        (200, r#"{"code":-32602,"message":"m","data":{"uri":"file:///x","n":1e400}}"#),
        (400, r#"{"code":-32602,"message":"m"}"#),
        (200, r#"{"code":-32001,"message":"m"}"#),
    ];
    for (status, error) in table {
        let server = ModernServer::new().on("tools/call", move |seen, reply: Reply| async move {
            reply.error(status, &seen, error).await;
        });
        let (proxy, up) = Proxy::before_modern(&server).await;
        let done = proxy.send(&call("echo", "{}").id("7")).await;
        assert_eq!(done.status, status, "{}", done.raw);
        assert_eq!(done.raw, rpc::error_message("7", error));
        assert_eq!(up.posts("tools/call").len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn b12_a_stream_of_a_modern_server_is_not_held_back() {
    let server = ModernServer::new().on("tools/call", |seen, mut reply: Reply| async move {
        let token = seen.json()["params"]["_meta"]["progressToken"].clone();
        reply.stream().await;
        for at in 1..=3 {
            let params = json!({"progressToken": token, "progress": at});
            reply
                .event(
                    &json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
                        .to_string(),
                )
                .await;
            pass(20_000).await;
        }
        let si = r#"{"io.modelcontextprotocol/serverInfo":{"name":"new","version":"8"}}"#;
        reply.result_event(&seen, &format!(r#"{{"resultType":"complete","content":[],"_meta":{si}}}"#)).await;
        reply.end().await;
    });
    let (proxy, _up) = Proxy::before_modern(&server).await;
    let mut answer = proxy.open(&call("echo", "{}").meta("progressToken", "5")).await;
    for at in 1..=3 {
        let began = tokio::time::Instant::now();
        let message = answer.message().await;
        assert_eq!(message["params"], json!({"progressToken": 5, "progress": at}));
        assert!(began.elapsed().as_secs() <= 21, "{:?}", began.elapsed());
    }
    answer.done().await.result();
}

#[tokio::test(start_paused = true)]
async fn b12_interactive_results_pass_between_modern_peers() {
    let asks = r#"{"resultType":"input_required","inputRequests":{"k":{"method":"roots/list"}},"requestState":"s\u0041\/"}"#;
    let (proxy, up) = Proxy::before_modern(&ModernServer::new().result("tools/call", asks)).await;
    let done = proxy.send(&call("echo", "{}").caps(r#"{"roots":{}}"#)).await;
    assert!(done.raw.contains(asks), "{}", done.raw);
    let retry =
        r#""name":"echo","arguments":{},"inputResponses":{"k":{"roots":[]}},"requestState":"s\u0041\/""#;
    proxy.send(&call("echo", "{}").params(retry).id("2")).await;
    assert!(up.posts("tools/call")[1].text().contains(retry));
}

#[tokio::test(start_paused = true)]
async fn d10_the_front_checks_for_modern_servers_too() {
    let (proxy, up) = Proxy::before_modern(&ModernServer::new()).await;
    proxy.send(&call("echo", "{}").header("Mcp-Name", "other")).await.is_error(400, -32020);
    proxy.send(&Ask::new("ping")).await.is_error(404, -32601);
    assert_eq!(up.briefs(), Vec::<String>::new());
    proxy.send(&list("tools/list").header("Mcp-Session-Id", "x")).await.result();
    assert_eq!(up.only("tools/list").session(), None);
}
