//! A1.1, A2, A12.12-A12.15, A13, B14: sessions, calls, answers and notifications pass as they are.

use std::sync::Arc;

use tokio::sync::Notify;

use crate::support::{Ask, LegacyServer, Net, Old, Proxy, Reply, Upstream, json, pass, rpc};

const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

#[tokio::test(start_paused = true)]
async fn b14_a_session_is_the_clients_and_every_byte_is_its_own() {
    for version in VERSIONS {
        let odd = r#"{"content" : [ {"type":"text","text":"\u0041"} ],"n":1e400,"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}"#;
        let server = LegacyServer::new().version(version).result("tools/call", odd);
        let (proxy, up) = Proxy::before(&server).await;
        let first = proxy.send(&Old::initialize(version)).await;
        assert_eq!(first.headers.get("mcp-session-id").as_deref(), Some("S1"), "{version}");
        assert!(first.raw.contains(&server.initialize_result()), "{version}: {}", first.raw);
        let old = Old {
            session: Some("S1".into()),
            version: (version >= "2025-06-18").then(|| version.into()),
            token: None,
        };
        assert_eq!(proxy.send(&old.note("notifications/initialized")).await.status, 202);
        let body = "{ \"jsonrpc\":\"2.0\",\"id\":\"\\u0031\",\n\"method\":\"tools/call\",\"params\":{\"name\":\"echo\",\"arguments\":{\"n\":1e400}} }";
        let done = proxy.send(&old.raw(body)).await;
        assert_eq!(done.raw, rpc::result_message(r#""\u0031""#, odd), "{version}");
        let seen = up.only("tools/call");
        assert_eq!(seen.text(), body, "{version}");
        assert_eq!(seen.session().as_deref(), Some("S1"));
        assert_eq!(seen.header("mcp-protocol-version"), old.version, "C27c: {version}");
        // The probe is the proxy's; everything else is the client's, and there is no session beside it.
        let all = ["server/discover", "initialize", "notifications/initialized", "tools/call"];
        assert_eq!(up.briefs(), all, "{version}");
        assert_eq!(up.only("initialize").header("mcp-protocol-version"), None);
    }
}

#[tokio::test(start_paused = true)]
async fn c03_an_unknown_session_and_none_are_told_apart() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    let known = Old::latest(&proxy).await;
    let unknown = Old { session: Some("gone".into()), ..known.clone() };
    let none = Old { session: None, ..known.clone() };
    assert_eq!(proxy.send(&unknown.ask("tools/list").id("7")).await.status, 404);
    assert_eq!(proxy.send(&unknown.get()).await.status, 404);
    assert_eq!(proxy.send(&unknown.delete()).await.status, 404);
    assert_eq!(proxy.send(&none.ask("tools/list").id("7")).await.status, 400);
    proxy.send(&known.ask("tools/list")).await.result();
    assert_eq!(up.posts("initialize").len(), 1, "nothing is opened for the client");
}

#[tokio::test(start_paused = true)]
async fn c03_after_a_restart_the_client_opens_another() {
    let server = LegacyServer::new();
    let (proxy, up) = Proxy::before(&server).await;
    let old = Old::latest(&proxy).await;
    server.forget_sessions();
    assert_eq!(proxy.send(&old.call("echo", "{}")).await.status, 404);
    let again = Old::latest(&proxy).await;
    assert_eq!(again.session.as_deref(), Some("S2"));
    proxy.send(&again.call("echo", "{}")).await.result();
    assert_eq!(up.posts("tools/call").len(), 2, "{:?}", up.briefs());
}

#[tokio::test(start_paused = true)]
async fn c04_a_server_without_session_ids() {
    let (proxy, up) = Proxy::before(&LegacyServer::new().sessionless()).await;
    let old = Old::latest(&proxy).await;
    assert_eq!(old.session, None);
    proxy.send(&old.call("echo", "{}").id("7")).await.result();
    assert!(up.requests().iter().all(|seen| seen.session().is_none()));
}

#[tokio::test(start_paused = true)]
async fn c06_initialize_leaves_a_stale_session_behind() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    let stale = Old::initialize("2025-11-25").header("Mcp-Session-Id", "stale");
    let stale = proxy.send(&stale.header("MCP-Protocol-Version", "2025-11-25")).await;
    assert_eq!(stale.headers.get("mcp-session-id").as_deref(), Some("S1"));
    assert_eq!(up.only("initialize").session(), None);
    // (c) A second one on a live session is another session; the first one goes on.
    let first = Old::latest(&proxy).await;
    let again = Old::initialize("2025-11-25").header("Mcp-Session-Id", first.session.as_deref().unwrap());
    let second = proxy.send(&again).await;
    assert_ne!(second.headers.get("mcp-session-id"), first.session);
    proxy.send(&first.ask("tools/list")).await.result();
}

#[tokio::test(start_paused = true)]
async fn a2_notifications_and_cancellation_pass() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    let old = Old::latest(&proxy).await;
    let texts = [
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":101,"reason":"x"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":5,"progress":1}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/acme"}"#,
    ];
    for text in texts {
        let done = proxy.send(&old.raw(text)).await;
        assert_eq!((done.status, done.raw.as_str()), (202, ""), "{text}");
        let seen = up.requests().pop().unwrap();
        assert_eq!((seen.text(), seen.session()), (text, old.session.clone()));
    }
}

#[tokio::test(start_paused = true)]
async fn c20_two_requests_under_one_id_each_get_their_own() {
    let server = LegacyServer::new().on("tools/call", |seen, reply: Reply| async move {
        let n = seen.json()["params"]["arguments"]["n"].as_u64().unwrap();
        pass(100 - n * 10).await;
        reply.result(&seen, &format!(r#"{{"content":[],"n":{n}}}"#)).await;
    });
    let (proxy, _up) = Proxy::before(&server).await;
    let old = Old::latest(&proxy).await;
    let running = [1, 2, 3].map(|n| (n, proxy.spawn(&old.call("echo", &format!(r#"{{"n":{n}}}"#)).id("1"))));
    for (n, running) in running {
        assert_eq!(running.await.unwrap().result()["n"], n);
    }
}

/// A server that asks in the middle of a call and on the GET stream, each time under id 5.
fn asking(answered: &Arc<Notify>) -> LegacyServer {
    let (told, heard) = (Arc::clone(answered), Arc::clone(answered));
    LegacyServer::new()
        .on("response", move |_, reply: Reply| {
            told.notify_one();
            reply.empty(202)
        })
        .on("tools/call", move |seen, mut reply: Reply| {
            let heard = Arc::clone(&heard);
            async move {
                reply.stream().await;
                reply.event(r#"{"jsonrpc":"2.0","id":5,"method":"roots/list"}"#).await;
                heard.notified().await;
                reply.result_event(&seen, r#"{"content":[]}"#).await;
                reply.end().await;
            }
        })
        .on("GET", |_, mut reply: Reply| async move {
            reply.stream().await;
            reply.event(r#"{"jsonrpc":"2.0","id":5,"method":"ping"}"#).await;
            reply.never().await;
        })
}

#[tokio::test(start_paused = true)]
async fn c44_the_clients_answer_reaches_the_server_that_asked() {
    let (proxy, up) = Proxy::before(&asking(&Arc::default())).await;
    let old = Old::latest(&proxy).await;
    let mut call = proxy.open(&old.call("ask", "{}").id("5")).await;
    let question = call.message().await;
    assert_eq!((&question["id"], &question["method"]), (&json!(5), &json!("roots/list")));
    let mut stream = proxy.open(&old.get()).await;
    assert_eq!(stream.message().await["method"], "ping");
    let answers = [
        r#"{"jsonrpc":"2.0","id":5,"result":{ "roots":[]}}"#,
        r#"{"jsonrpc":"2.0","id":5,"error":{"code":-1,"message":"no"}}"#,
        r#"{"jsonrpc":"2.0","id":"5","result":{}}"#,
    ];
    for answer in answers {
        let done = proxy.send(&old.raw(answer)).await;
        assert_eq!((done.status, done.raw.as_str()), (202, ""), "{answer}");
        let seen = up.requests().pop().unwrap();
        assert_eq!((seen.text(), seen.session()), (answer, old.session.clone()));
    }
    let (messages, broken) = call.rest().await;
    assert!(!broken);
    assert_eq!(messages.last().unwrap()["result"], json!({"content": []}), "{messages:?}");
}

#[tokio::test(start_paused = true)]
async fn a12_15_delete_ends_the_session_at_the_server() {
    let server = LegacyServer::new();
    let (proxy, _up) = Proxy::before(&server).await;
    let old = Old::latest(&proxy).await;
    let done = proxy.send(&old.delete()).await;
    assert_eq!((done.status, server.deleted()), (200, vec!["S1".to_owned()]));
    assert_eq!(proxy.send(&old.ask("tools/list")).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn a12_15_a_server_that_lets_no_client_end_a_session() {
    let server = LegacyServer::new().on("DELETE", |_, reply: Reply| reply.empty(405));
    let (proxy, up) = Proxy::before(&server).await;
    let old = Old::latest(&proxy).await;
    assert_eq!(proxy.send(&old.delete()).await.status, 405);
    assert_eq!(up.briefs().pop().as_deref(), Some("DELETE"));
    proxy.send(&old.ask("tools/list")).await.result();
}

#[tokio::test(start_paused = true)]
async fn a12_14_get_and_delete_without_a_session() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    let old = Old::latest(&proxy).await;
    let before = up.requests().len();
    let stranger = Old { session: None, version: None, token: None };
    for ask in [stranger.get(), stranger.delete()] {
        let done = proxy.send(&ask).await;
        assert_eq!((done.status, done.headers.get("allow").as_deref()), (405, Some("POST")));
    }
    // A modern client has no session, whatever it says.
    for verb in ["GET", "DELETE"] {
        let ask = Ask::verb(verb).header("Mcp-Session-Id", old.session.as_deref().unwrap());
        assert_eq!(proxy.send(&ask).await.status, 405);
    }
    let unheard = old.get().header("MCP-Protocol-Version", "1999-01-01");
    assert_eq!(proxy.send(&unheard).await.status, 400);
    assert_eq!(up.requests().len(), before, "nothing of these reaches the server");
}

#[tokio::test(start_paused = true)]
async fn a12_22_an_unknown_method_is_no_lost_session() {
    let server = LegacyServer::new().on("acme/x", |seen, reply: Reply| async move {
        reply.error(404, &seen, r#"{"code":-32601,"message":"no such method"}"#).await;
    });
    let (proxy, _up) = Proxy::before(&server).await;
    let old = Old::latest(&proxy).await;
    proxy.send(&old.ask("acme/x").id("7")).await.is_answered_error(-32601);
    proxy.send(&old.ask("acme/other").id("8")).await.is_answered_error(-32601);
}

/// The server behind one name, and what it saw of `Authorization`.
async fn with_settings(lines: &str) -> (Proxy, Upstream) {
    let net = Net::new();
    let up = LegacyServer::new().start(&net);
    (Proxy::with(&net, lines).await, up)
}

#[tokio::test(start_paused = true)]
async fn a13_10_credentials_go_by_the_settings_and_nothing_else_does() {
    let fixed = "authorization = { value = \"Bearer own\" }";
    for (lines, wanted) in
        [("", Some("Bearer alice")), ("authorization = \"strip\"", None), (fixed, Some("Bearer own"))]
    {
        let (proxy, up) = with_settings(lines).await;
        let old = Old::open_as(&proxy, "2025-11-25", Some("alice")).await;
        let ask = old
            .ask("tools/list")
            .header("Origin", "http://localhost:3000")
            .header("Cookie", "a=b")
            .header("Last-Event-ID", "9")
            .header("X-Other", "1");
        proxy.send(&ask).await.result();
        proxy.send(&old.get().header("Cookie", "a=b")).await;
        proxy.send(&old.delete()).await;
        for seen in up.requests() {
            assert_eq!(seen.header("authorization").as_deref(), wanted, "{lines}: {}", seen.brief());
            for never in ["origin", "cookie", "last-event-id", "x-other"] {
                assert_eq!(seen.header(never), None, "{lines}: {never}");
            }
        }
    }
}
