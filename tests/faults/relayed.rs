//! A12.21, C04: what a modern server sends that is no answer to a request is not relayed as if it were one.

use crate::support::{ModernServer, Proxy, Reply, Value, call, json, list};

#[tokio::test(start_paused = true)]
async fn c04_a_success_without_an_answer() {
    for what in ["html", "202", "204", "200 empty"] {
        let server = ModernServer::new().on("tools/call", move |_, reply: Reply| async move {
            match what {
                "html" => reply.body(200, "text/html", "<html>welcome</html>").await,
                "202" => reply.empty(202).await,
                "204" => reply.empty(204).await,
                _ => reply.empty(200).await,
            }
        });
        let (proxy, up) = Proxy::before_modern(&server).await;
        proxy.send(&list("tools/list")).await.result();
        for id in ["7", r#""x""#] {
            let before = up.posts("tools/call").len();
            let done = proxy.send(&call("echo", "{}").id(id)).await;
            done.is_error(502, -32603);
            assert!(!done.raw.contains("welcome"), "{what}: {}", done.raw);
            assert_eq!(up.posts("tools/call").len(), before + 1, "{what}");
        }
        proxy.send(&list("tools/list")).await.result();
        assert_eq!(up.posts("initialize").len(), 0, "{what}: {:?}", up.briefs());
    }
}

#[tokio::test(start_paused = true)]
async fn a12_18_a_modern_servers_page_with_a_5xx() {
    for status in [500, 503] {
        let server = ModernServer::new()
            .on("tools/call", move |_, reply: Reply| reply.body(status, "text/html", "<p>down</p>"));
        let (proxy, up) = Proxy::before_modern(&server).await;
        let done = proxy.send(&call("echo", "{}").id("7")).await;
        assert_eq!(done.code(), -32603, "{status}: {}", done.raw);
        assert!(done.status >= 500, "{}", done.status);
        assert_eq!(up.posts("tools/call").len(), 1, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn a12_17_a_challenge_with_a_page_passes() {
    let server = ModernServer::new().on("tools/call", |_, reply: Reply| {
        reply.with("WWW-Authenticate", "Bearer x=\"y\"").body(401, "text/html", "<p>sign in</p>")
    });
    let (proxy, up) = Proxy::before_modern(&server).await;
    proxy.send(&list("tools/list")).await.result();
    let done = proxy.send(&call("echo", "{}").id("7")).await;
    assert_eq!(done.status, 401);
    assert_eq!(done.headers.get("www-authenticate").as_deref(), Some("Bearer x=\"y\""));
    assert_eq!(up.posts("tools/call").len(), 1);
    assert_eq!(up.posts("initialize").len(), 0);
}

/// What a client of JSON only is told where the server's stream holds this.
async fn collapsed(body: &'static str) -> (u16, Value) {
    let server = ModernServer::new().on("tools/call", move |_, mut reply: Reply| async move {
        reply.stream().await;
        reply.event(body).await;
        reply.end().await;
    });
    let (proxy, up) = Proxy::before_modern(&server).await;
    proxy.send(&list("tools/list")).await.result();
    let done = proxy.send(&call("echo", "{}").id("7").header("Accept", "application/json")).await;
    assert_eq!(up.posts("tools/call").len(), 1);
    (done.status, done.message)
}

#[tokio::test(start_paused = true)]
async fn inv1_a_collapsed_result_without_an_id_is_no_answer() {
    for body in [
        r#"{"jsonrpc":"2.0","id":null,"result":{"resultType":"complete","content":[]}}"#,
        r#"{"jsonrpc":"2.0","result":{"resultType":"complete","content":[]}}"#,
        r#"{"jsonrpc":"2.0","id":8,"result":{"resultType":"complete","content":[]}}"#,
    ] {
        let (status, message) = collapsed(body).await;
        assert_eq!((status, &message["id"]), (502, &json!(7)), "{body} became {message}");
        assert_eq!(message["error"]["code"], -32603, "{body} became {message}");
    }
}

#[tokio::test(start_paused = true)]
async fn inv1_a_collapsed_error_without_an_id_is_told_under_the_clients() {
    for body in [
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-5,"message":"m"}}"#,
        r#"{"jsonrpc":"2.0","error":{"code":-5,"message":"m"}}"#,
    ] {
        let (_, message) = collapsed(body).await;
        assert_eq!(message["id"], 7, "{body} became {message}");
        let code = message["error"]["code"].as_i64();
        assert!([Some(-5), Some(-32603)].contains(&code), "{body} became {message}");
    }
}
