//! D24-D26, D28, D29, D31, D32, A11, A12.21: a legacy server's errors in a modern client's words.
//!
//! Codes of the 2026-07-28 text, `basic/index` ("Error Codes"); `shape` adds what holds for every error.

use crate::support::{Ask, LegacyServer, Net, Proxy, Reply, call, get_prompt, json, list, read};

#[tokio::test(start_paused = true)]
async fn d24_rnf_up() {
    let table = [
        (r#"{"code":-32002,"message":"gone","data":{"uri":"file:///y"}}"#, json!({"uri": "file:///y"})),
        (r#"{"code":-32002,"message":"gone"}"#, json!({"uri": "file:///x"})),
        (r#"{"code":-32002,"message":"gone","data":{"why":"w"}}"#, json!({"uri": "file:///x", "why": "w"})),
    ];
    for (error, data) in table {
        let (proxy, _up) = Proxy::before(&LegacyServer::new().error("resources/read", error)).await;
        let done = proxy.send(&read("file:///x")).await;
        done.is_error(200, -32602);
        assert_eq!(*done.data(), data, "{error}");
        assert_eq!(done.message["error"]["message"], "gone");
    }
}

#[tokio::test(start_paused = true)]
async fn d25_rnf_wrong_method() {
    for ask in [call("echo", "{}"), get_prompt("p"), list("resources/list")] {
        let error = r#"{"code":-32002,"message":"gone","data":[1]}"#;
        let (proxy, _up) = Proxy::before(&LegacyServer::new().error(&ask.method, error)).await;
        let done = proxy.send(&ask).await;
        done.is_error(200, -32603);
        assert_eq!(done.data()["originalCode"], -32002, "{}", done.raw);
    }
}

#[tokio::test(start_paused = true)]
async fn d26_reserved_code_foreign() {
    for code in [-32020, -32021, -32022, -32050, -32077, -32099] {
        let error =
            format!(r#"{{"code":{code},"message":"mine","data":{{"supported":["2026-07-28"],"k":1e400}}}}"#);
        let (proxy, up) = Proxy::before(&LegacyServer::new().error("tools/call", &error)).await;
        let done = proxy.send(&call("echo", "{}")).await;
        done.is_error(200, -32603);
        assert_eq!(done.data()["originalCode"], code, "{}", done.raw);
        assert!(
            done.raw.contains(r#""originalData":{"supported":["2026-07-28"],"k":1e400}"#),
            "{}",
            done.raw
        );
        assert_eq!(up.posts("tools/call").len(), 1, "{code}: never sent twice");
        assert_eq!(up.posts("server/discover").len(), 1, "{code}: no doubt about the era");
    }
}

#[tokio::test(start_paused = true)]
async fn d26_other_codes_pass_unchanged() {
    for code in [-32001, -32003, -32000, -32019, -32600, -32602, -32603, -32700, -32100, -1, 0, 1234] {
        let error = format!(r#"{{"code":{code},"message":"mine","data":"d"}}"#);
        let (proxy, up) = Proxy::before(&LegacyServer::new().error("tools/call", &error)).await;
        let done = proxy.send(&call("echo", "{}")).await;
        assert_eq!(
            done.message["error"],
            json!({"code": code, "message": "mine", "data": "d"}),
            "{}",
            done.raw
        );
        if code != -32700 {
            assert_eq!(done.status, 200, "A12.10: in band: {}", done.raw);
        }
        assert_eq!(up.posts("tools/call").len(), 1);
    }
}

const URL_REQUIRED: &str = r#"{"code":-32042,"message":"open","data":{"elicitations":[{"mode":"url","elicitationId":"e1","url":"https://s/x","message":"m"}]}}"#;

#[tokio::test(start_paused = true)]
async fn d28_url_required_nocap() {
    for caps in ["{}", r#"{"elicitation":{}}"#, r#"{"elicitation":{"form":{}}}"#] {
        let (proxy, _up) = Proxy::before(&LegacyServer::new().error("tools/call", URL_REQUIRED)).await;
        let done = proxy.send(&call("echo", "{}").caps(caps)).await;
        done.is_error(400, -32021);
        assert_eq!(done.data()["requiredCapabilities"], json!({"elicitation": {"url": {}}}), "{caps}");
        assert!(!done.raw.contains("elicitationId"), "{}", done.raw);
    }
}

#[tokio::test(start_paused = true)]
async fn d29_url_required_list() {
    let caps = r#"{"elicitation":{"url":{}}}"#;
    let (proxy, _up) = Proxy::before(&LegacyServer::new().error("tools/list", URL_REQUIRED)).await;
    let done = proxy.send(&list("tools/list").caps(caps)).await;
    done.is_error(200, -32603);
    assert!(!done.raw.contains("\"elicitationId\":"), "legacy vocabulary: {}", done.raw);
}

#[tokio::test(start_paused = true)]
async fn d31_session_404() {
    let server = LegacyServer::new();
    let (proxy, up) = Proxy::before(&server).await;
    proxy.send(&list("tools/list").id("1")).await.result();
    server.forget_sessions();
    let done = proxy.send(&call("echo", "{}").id("2")).await;
    done.result();
    assert_eq!(done.message["id"], 2);
    assert_eq!(up.posts("initialize").len(), 2);
    let sessions: Vec<_> = up.posts("tools/call").iter().map(|s| s.session().unwrap()).collect();
    assert_eq!(sessions, ["S1", "S2"], "refused once, sent again once");
}

#[tokio::test(start_paused = true)]
async fn d31_a_second_404_is_an_error() {
    let server = LegacyServer::new().on("tools/call", |_, reply: Reply| reply.empty(404));
    let (proxy, up) = Proxy::before(&server).await;
    let done = proxy.send(&call("echo", "{}").id(r#""c""#)).await;
    done.is_error(502, -32603);
    assert_eq!(up.posts("tools/call").len(), 2, "no third try");
    assert_eq!(up.posts("initialize").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn d32_auth_401() {
    let challenge =
        r#"Bearer realm="x", resource_metadata="https://u.test/.well-known/oauth-protected-resource/mcp""#;
    let server = LegacyServer::new();
    let open = server.clone();
    let net = Net::new();
    let up = net.serve(
        "up.test",
        crate::support::net::Receiver::Legacy,
        crate::support::net::handler(move |seen, reply| {
            let open = open.clone();
            async move {
                match seen.header("authorization") {
                    Some(_) => open.answer(seen, reply).await,
                    None => reply.with("WWW-Authenticate", challenge).json(401, r#"{"error":"who"}"#).await,
                }
            }
        }),
    );
    let proxy = Proxy::start(&net).await;
    for round in 1..=2 {
        let done = proxy.send(&list("tools/list").id("6")).await;
        assert_eq!(done.status, 401, "{}", done.raw);
        assert_eq!(done.headers.get("www-authenticate").as_deref(), Some(challenge));
        assert_eq!(done.message["id"], 6, "a JSON-RPC body with the caller's id: {}", done.raw);
        assert!(done.message["error"]["code"].is_i64(), "{}", done.raw);
        assert_eq!(up.posts("server/discover").len(), round, "still undecided, so probed again");
    }
    proxy.send(&list("tools/list").bearer("t")).await.result();
    assert_eq!(up.only("tools/list").header("authorization").as_deref(), Some("Bearer t"));
}

#[tokio::test(start_paused = true)]
async fn a12_17_401_and_403_of_a_call_keep_status_and_challenge() {
    for status in [401, 403] {
        let server = LegacyServer::new().on("tools/call", move |_, reply: Reply| {
            reply.with("WWW-Authenticate", r#"Bearer error="insufficient_scope", scope="w""#).empty(status)
        });
        let (proxy, up) = Proxy::before(&server).await;
        let done = proxy.send(&call("echo", "{}").id("5").bearer("t")).await;
        assert_eq!(done.status, status, "{}", done.raw);
        let challenge = done.headers.get("www-authenticate");
        assert_eq!(challenge.as_deref(), Some(r#"Bearer error="insufficient_scope", scope="w""#));
        assert_eq!(done.message["id"], 5, "{}", done.raw);
        assert_eq!(up.posts("tools/call").len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a12_21_a_failing_server_is_a_gateway_error() {
    let html = |status| {
        move |_: std::sync::Arc<crate::support::Seen>, reply: Reply| {
            reply.body(status, "text/html", "<p>sorry</p>")
        }
    };
    let ok = LegacyServer::new;
    let table = [
        ("500", 502, ok().on("tools/call", html(500))),
        ("503", 502, ok().on("tools/call", html(503))),
        ("html", 502, ok().on("tools/call", html(200))),
        ("no JSON", 502, ok().on("tools/call", |_, reply: Reply| reply.json(200, "{"))),
        ("no body", 502, ok().on("tools/call", |_, reply: Reply| reply.json(200, ""))),
        ("accepted only", 502, ok().on("tools/call", |_, reply: Reply| reply.empty(202))),
        ("no content", 502, ok().on("tools/call", |_, reply: Reply| reply.empty(204))),
        ("reset", 502, ok().on("tools/call", |_, reply: Reply| async move { reply.reset() })),
        ("closed", 502, ok().on("tools/call", |_, reply: Reply| async move { drop(reply) })),
    ];
    for (what, status, server) in table {
        let (proxy, up) = Proxy::before(&server).await;
        let done = proxy.send(&call("echo", "{}").id(r#""q""#)).await;
        assert_eq!((done.status, done.code()), (status, -32603), "{what}: {}", done.raw);
        assert_eq!(done.message["id"], "q", "{what}");
        assert!(!done.raw.contains("sorry"), "{what}: what the server said stays inside: {}", done.raw);
        assert_eq!(up.posts("tools/call").len(), 1, "{what}: sent once");
    }
}

#[tokio::test(start_paused = true)]
async fn a12_21_a_silent_server_times_out() {
    // A client of streams has its head by then, so the error comes in band; to one of JSON it is a 504.
    for (accept, status) in [("application/json, text/event-stream", 200), ("application/json", 504)] {
        let silent = LegacyServer::new().on("tools/call", |_, reply: Reply| reply.never());
        let (proxy, up) = Proxy::before(&silent).await;
        let done = proxy.send(&call("echo", "{}").id(r#""q""#).header("Accept", accept)).await;
        assert_eq!((done.status, done.code()), (status, -32603), "{}", done.raw);
        assert_eq!(done.message["id"], "q");
        assert_eq!(up.posts("tools/call").len(), 1, "sent once");
    }
}

#[tokio::test(start_paused = true)]
async fn a12_21_a_refused_connection_is_a_gateway_error() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    up.refuse();
    proxy.send(&call("echo", "{}").id("3")).await.is_error(502, -32603);
    up.silence();
    proxy.send(&call("echo", "{}").id("4")).await.is_error(504, -32603);
    up.restore();
    proxy.send(&call("echo", "{}").id("5")).await.result();
}

#[tokio::test(start_paused = true)]
async fn a12_22_the_body_of_a_404_says_what_it_is() {
    let server = LegacyServer::new().on("acme/do", |seen, reply: Reply| async move {
        reply.error(404, &seen, r#"{"code":-32601,"message":"no such method"}"#).await;
    });
    let (proxy, up) = Proxy::before(&server).await;
    proxy.send(&Ask::new("acme/do")).await.is_error(404, -32601);
    proxy.send(&list("tools/list")).await.result();
    assert_eq!(up.posts("initialize").len(), 1, "the session lives");
    assert_eq!(up.posts("acme/do").len(), 1);
}
