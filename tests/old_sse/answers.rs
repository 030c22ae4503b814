//! C42, C20, A2.3, A14.9: messages over the old transport, however they are answered.

use std::sync::Arc;

use crate::support::{Calls, LegacyServer, Net, OldSseServer, Proxy, Reply, call, json, list, pass, rpc};

fn styles(server: &LegacyServer) -> Vec<(&'static str, OldSseServer)> {
    let new = || OldSseServer::new(server);
    vec![
        ("202 and the stream", new()),
        ("the stream, then 202", new().late()),
        ("200 with JSON", new().in_json()),
        ("200 with events", new().in_events()),
    ]
}

#[tokio::test(start_paused = true)]
async fn c42_every_style_of_answer_is_taken() {
    for (style, server) in styles(&LegacyServer::new()) {
        let net = Net::new();
        let up = server.start(&net);
        let proxy = Proxy::of_old_sse(&net, "").await;
        let done = proxy.send(&call("echo", r#"{"x":1e400}"#).id("\"a\"")).await;
        assert_eq!(done.result()["content"][0]["text"], "done", "{style}");
        assert_eq!(done.message["id"], "a", "{style}");
        assert!(up.only("tools/call").text().contains("1e400"), "{style}: its bytes are the client's");
        proxy.send(&list("tools/list").id("2")).await.result();
        assert_eq!((up.posts("initialize").len(), server.streams().len()), (2, 1), "{style}: one session");
    }
}

#[tokio::test(start_paused = true)]
async fn c20_parallel_calls_of_one_id_get_their_own_answers() {
    let server = LegacyServer::new().on("tools/call", |seen, reply: Reply| async move {
        let n = seen.json()["params"]["arguments"]["n"].as_u64().unwrap();
        pass(n * 37 % 101).await;
        reply.result(&seen, &format!(r#"{{"content":[{{"type":"text","text":"{n}"}}]}}"#)).await;
    });
    for (style, server) in styles(&server) {
        let net = Net::new();
        let up = server.start(&net);
        let proxy = Proxy::of_old_sse(&net, "").await;
        let token = |n: u64| if n.is_multiple_of(2) { "even" } else { "odd" };
        let calls: Vec<_> = (0..30)
            .map(|n| proxy.spawn(&call("echo", &format!(r#"{{"n":{n}}}"#)).id("1").bearer(token(n))))
            .collect();
        for (n, called) in calls.into_iter().enumerate() {
            let done = called.await.unwrap();
            assert_eq!(done.result()["content"][0]["text"], n.to_string(), "{style}");
            assert_eq!(done.message["id"], 1, "{style}");
        }
        assert_eq!(server.streams().len(), 2, "{style}: one a principal");
        for seen in up.requests().iter().filter(|seen| seen.verb == "POST" && seen.target != "/sse") {
            let sid = seen.target.split("sid=").nth(1).unwrap();
            let stream = server.streams().into_iter().find(|stream| stream.sid == sid).unwrap();
            assert_eq!(stream.seen.header("authorization"), seen.header("authorization"), "{style}");
        }
        let mut ids: Vec<_> =
            up.posts("tools/call").iter().map(|seen| (seen.target.clone(), seen.id())).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 30, "{style}: distinct ids in each session");
    }
}

#[tokio::test(start_paused = true)]
async fn progress_comes_before_the_result() {
    for (style, _) in styles(&LegacyServer::new()).into_iter().take(2) {
        let (net, calls) = (Net::new(), Calls::new());
        let inner = calls.of(LegacyServer::new());
        let server = match style {
            "202 and the stream" => OldSseServer::new(&inner),
            _ => OldSseServer::new(&inner).late(),
        };
        server.start(&net);
        let proxy = Arc::new(Proxy::of_old_sse(&net, "").await);
        let ask = call("work", "{}").meta("progressToken", "\"t\"").id("5");
        let mut answer = {
            let (proxy, ask) = (Arc::clone(&proxy), ask.clone());
            let opening = tokio::spawn(async move { proxy.open(&ask).await });
            let call = calls.wait(1).await;
            call.progress(1);
            call.progress(2);
            opening.await.unwrap()
        };
        for n in 1..=2 {
            let told = answer.message().await;
            assert_eq!(
                (&told["params"]["progress"], &told["params"]["progressToken"]),
                (&json!(n), &json!("t")),
                "{style}"
            );
        }
        calls.wait(1).await.finish("worked");
        assert_eq!(answer.message().await["result"]["content"][0]["text"], "worked", "{style}");
    }
}

#[tokio::test(start_paused = true)]
async fn c13_c53_what_is_no_message_is_passed_over() {
    let net = Net::new();
    let server = OldSseServer::new(&LegacyServer::new());
    server.start(&net);
    let proxy = Proxy::of_old_sse(&net, "").await;
    proxy.send(&list("tools/list")).await.result();
    let stream = server.stream(1).await;
    for junk in [
        ": keep-alive\n\n",
        "event: ping\ndata: 1\n\n",
        "event: endpoint\ndata: //evil.example/m\n\n",
        "data: Starting...\n\n",
        "data: {\"level\":\"info\"}\n\n",
        "data: null\n\n",
        "data: [1,2]\n\n",
        "data:\n\n",
        "data: {\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}\n\n",
        "data: {\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600,\"message\":\"m\"}}\n\n",
    ] {
        stream.write(junk);
    }
    proxy.send(&call("echo", "{}")).await.result();
    assert_eq!(server.streams().len(), 1);
    assert!(proxy.metrics().contains("mcp_janus_upstream_not_messages_total{upstream=\"up\"}"));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_too_large_fails_its_own_call_alone() {
    let large = format!(r#"{{"content":[{{"type":"text","text":"{}"}}]}}"#, "x".repeat(200_000));
    let server = LegacyServer::new().on("tools/call", move |seen, reply: Reply| {
        let large = large.clone();
        async move {
            if seen.json()["params"]["name"] == "large" {
                // The id last, as many servers write it.
                let text = format!(r#"{{"result":{large},"jsonrpc":"2.0","id":{}}}"#, seen.id());
                return reply.json(200, &text).await;
            }
            reply.result(&seen, r#"{"content":[]}"#).await;
        }
    });
    for (style, server) in styles(&server) {
        let net = Net::new();
        server.start(&net);
        let proxy = Proxy::of_old_sse(&net, "limits = { message_bytes = 100000, flow_bytes = 50000 }").await;
        let other = proxy.spawn(&call("small", "{}").id("2"));
        let done = proxy.send(&call("large", "{}").id("1")).await;
        done.is_error(502, -32603);
        assert!(done.raw.contains("message_bytes"), "{style}: {}", done.raw);
        other.await.unwrap().result();
        proxy.send(&call("small", "{}").id("3")).await.result();
        assert_eq!(server.streams().len(), 1, "{style}: the session lives on");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_message_is_refused_with_reaches_its_caller() {
    for (status, expected) in
        [(400, 502), (401, 401), (403, 403), (413, 502), (429, 429), (500, 502), (503, 502)]
    {
        let net = Net::new();
        let server = OldSseServer::new(&LegacyServer::new()).on("tools/call", move |_, reply: Reply| {
            reply.with("WWW-Authenticate", "Bearer x").with("Retry-After", "3").body(
                status,
                "text/plain",
                "no",
            )
        });
        let up = server.start(&net);
        let proxy = Proxy::of_old_sse(&net, "").await;
        let done = proxy.send(&call("echo", "{}").id("1")).await;
        assert_eq!((done.status, &done.message["id"]), (expected, &json!(1)), "{status}: {}", done.raw);
        if expected == 401 || expected == 403 {
            assert_eq!(done.headers.get("www-authenticate").as_deref(), Some("Bearer x"));
        }
        if expected == 429 {
            assert_eq!(done.headers.get("retry-after").as_deref(), Some("3"));
        }
        assert_eq!(up.posts("tools/call").len(), 1, "{status}: sent once");
        proxy.send(&list("tools/list")).await.result();
        assert_eq!(server.streams().len(), 1, "{status}: the session lives on");
    }
}

#[tokio::test(start_paused = true)]
async fn headers_of_the_caller_go_along() {
    let net = Net::new();
    let up = OldSseServer::new(&LegacyServer::new()).start(&net);
    let lines = "forward_headers = [\"X-Tenant\"]\nheaders = { X-Api-Key = \"k\" }\ntransport = \"sse\"";
    let proxy = Proxy::of_old_sse(&net, lines).await;
    let ask = list("tools/list").bearer("t").header("X-Tenant", "acme").header("Cookie", "c=1");
    proxy.send(&ask).await.result();
    assert_eq!(up.requests().len(), 4, "{:?}", up.briefs());
    for seen in up.requests() {
        let header = |name: &str| seen.header(name).unwrap_or_default();
        assert_eq!(header("authorization"), "Bearer t", "{}", seen.brief());
        assert_eq!(
            (header("x-tenant"), header("x-api-key")),
            ("acme".into(), "k".into()),
            "{}",
            seen.brief()
        );
    }
    assert!(rpc::id(&up.only("tools/list").body).is_some());
}
