//! `session.shield`: C02, C03, C04, C06, A11.3, A12.12-A12.15 and A12.21 where the session is the proxy's.

use std::sync::Arc;
use std::time::Duration;

use crate::support::{Ask, LegacyServer, ModernServer, Net, Old, Proxy, Reply, Upstream, json, pass, rpc};

pub(crate) const SHIELD: &str = "session = { shield = true }";

pub(crate) async fn shielded(server: &LegacyServer) -> (Proxy, Upstream) {
    with(server, SHIELD).await
}

async fn with(server: &LegacyServer, lines: &str) -> (Proxy, Upstream) {
    let net = Net::new();
    let up = server.start(&net);
    (Proxy::with(&net, lines).await, up)
}

#[tokio::test(start_paused = true)]
async fn a13_4_the_session_id_is_the_proxys_own() {
    let (proxy, up) = shielded(&LegacyServer::new()).await;
    let (one, two) = (Old::latest(&proxy).await, Old::latest(&proxy).await);
    let ids = [&one, &two].map(|old| old.session.clone().unwrap());
    assert_ne!(ids[0], ids[1]);
    for id in &ids {
        assert!(id.len() >= 32 && id.bytes().all(|b| (0x21..0x7f).contains(&b)), "128 bits, visible: {id}");
    }
    proxy.send(&one.call("echo", "{}")).await.result();
    proxy.send(&two.call("echo", "{}")).await.result();
    let sessions: Vec<_> = up.posts("tools/call").iter().map(|seen| seen.session().unwrap()).collect();
    assert_eq!(sessions, ["S1", "S2"]);
}

#[tokio::test(start_paused = true)]
async fn b14_bodies_keep_every_byte() {
    let odd = r#"{"content" : [ {"type":"text","text":"\u0041"} ],"n":1e400}"#;
    let (proxy, up) = shielded(&LegacyServer::new().result("tools/call", odd)).await;
    let old = Old::latest(&proxy).await;
    let body = "{ \"jsonrpc\":\"2.0\",\"id\":\"\\u0031\",\n\"method\":\"tools/call\",\"params\":{\"name\":\"echo\"} }";
    assert_eq!(proxy.send(&old.raw(body)).await.raw, rpc::result_message(r#""\u0031""#, odd));
    assert_eq!(up.only("tools/call").text(), body);
}

#[tokio::test(start_paused = true)]
async fn c02_a_restart_is_not_seen_by_the_client() {
    let server = LegacyServer::new();
    let (proxy, up) = shielded(&server).await;
    let old = Old::latest(&proxy).await;
    proxy.send(&old.call("echo", "{}")).await.result();
    for round in 2..4 {
        server.forget_sessions();
        let running: Vec<_> =
            (11..14).map(|id| (id, proxy.spawn(&old.call("echo", "{}").id(&id.to_string())))).collect();
        for (id, running) in running {
            let done = running.await.unwrap();
            done.result();
            assert_eq!(done.message["id"], id);
            assert!(!done.headers.has("mcp-session-id"));
        }
        let initializes = up.posts("initialize");
        assert_eq!(initializes.len(), round, "one for all three");
        assert!(initializes.iter().all(|seen| seen.session().is_none()));
        assert_eq!(initializes[round - 1].text(), initializes[0].text(), "the client's own, word for word");
        let order = up.after_probe();
        let again = order.iter().rposition(|m| m == "initialize").unwrap();
        assert_eq!(order[again + 1], "notifications/initialized");
    }
    assert_eq!(up.posts("notifications/initialized").len(), 3);
}

#[tokio::test(start_paused = true)]
async fn c03_every_dialect_of_a_lost_session_is_understood() {
    let lost = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}"#;
    for dialect in ["404", "404 html", "400", "200"] {
        let base = LegacyServer::new();
        let server = base.clone().on("tools/call", move |seen, reply: Reply| {
            let first = base.count("call") == 0;
            async move {
                match dialect {
                    _ if !first => reply.result(&seen, r#"{"content":[]}"#).await,
                    "404" => reply.empty(404).await,
                    "404 html" => reply.body(404, "text/html", "<p>").await,
                    "400" => reply.json(400, lost).await,
                    _ => {
                        reply.error(200, &seen, r#"{"code":-32000,"message":"Server not initialized"}"#).await
                    }
                }
            }
        });
        let (proxy, up) = shielded(&server).await;
        let old = Old::latest(&proxy).await;
        proxy.send(&old.call("echo", "{}").id("7")).await.result();
        assert_eq!((up.posts("initialize").len(), up.posts("tools/call").len()), (2, 2), "{dialect}");
    }
}

#[tokio::test(start_paused = true)]
async fn c03_other_refusals_open_nothing() {
    for (status, expected) in [(400, 400), (503, 200), (500, 200)] {
        let server = LegacyServer::new().on("tools/call", move |seen, reply: Reply| async move {
            reply.error(status, &seen, r#"{"code":-32602,"message":"arguments"}"#).await;
        });
        let (proxy, up) = shielded(&server).await;
        let old = Old::latest(&proxy).await;
        let done = proxy.send(&old.call("echo", "{}").id("7")).await;
        assert_eq!(done.status, expected, "{status}");
        assert_eq!((up.posts("initialize").len(), up.posts("tools/call").len()), (1, 1), "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn c02_lost_again_at_once_is_an_error_and_never_404() {
    let server = LegacyServer::new().on("tools/call", |_, reply: Reply| reply.empty(404));
    let (proxy, up) = shielded(&server).await;
    let old = Old::latest(&proxy).await;
    proxy.send(&old.call("echo", "{}").id("7")).await.is_answered_error(-32603);
    assert_eq!((up.posts("initialize").len(), up.posts("tools/call").len()), (2, 2), "no third try");
    proxy.send(&old.ask("tools/list")).await.result();
}

#[tokio::test(start_paused = true)]
async fn c02_a_server_that_is_gone_is_an_error_and_the_session_stays() {
    let server = LegacyServer::new();
    let (proxy, up) = with(&server, &format!("{SHIELD}\nlimits = {{ pool_connections = 0 }}")).await;
    let old = Old::latest(&proxy).await;
    up.refuse();
    server.forget_sessions();
    proxy.send(&old.call("echo", "{}").id("7")).await.is_answered_error(-32603);
    assert_eq!(proxy.send(&old.note("notifications/x")).await.status, 502);
    up.restore();
    proxy.send(&old.call("echo", "{}").id("8")).await.result();
    assert_eq!(up.posts("tools/call").len(), 2, "refused once by the gate, run once");
}

#[tokio::test(start_paused = true)]
async fn c30_what_may_have_run_is_not_sent_again() {
    let server = LegacyServer::new().on("tools/call", |_, reply: Reply| async move { reply.reset() });
    let (proxy, up) = shielded(&server).await;
    let old = Old::latest(&proxy).await;
    proxy.send(&old.call("charge", "{}").id("7")).await.is_answered_error(-32603);
    assert_eq!(up.posts("tools/call").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a12_13_level_and_subscriptions_are_told_again() {
    let server =
        LegacyServer::new().result("resources/subscribe", "{}").result("resources/unsubscribe", "{}");
    let (proxy, up) = shielded(&server).await;
    let old = Old::latest(&proxy).await;
    let tell = |method: &str, params: &str| old.ask(method).params(params);
    for (method, params) in [
        ("logging/setLevel", r#""level":"debug""#),
        ("logging/setLevel", r#""level":"warning""#),
        ("resources/subscribe", r#""uri":"file:///a""#),
        ("resources/subscribe", r#""uri":"file:///b""#),
        ("resources/subscribe", r#""uri":"file:///a""#),
        ("resources/unsubscribe", r#""uri":"file:///b""#),
    ] {
        proxy.send(&tell(method, params)).await.result();
    }
    let before = up.requests().len();
    server.forget_sessions();
    proxy.send(&old.call("echo", "{}").id("\"janus\"")).await.result();
    let told: Vec<_> = up.requests()[before..].to_vec();
    let order: Vec<_> = told.iter().map(|seen| seen.brief()).collect();
    let expected = [
        "tools/call",
        "initialize",
        "notifications/initialized",
        "logging/setLevel",
        "resources/subscribe",
        "tools/call",
    ];
    assert_eq!(order, expected);
    assert_eq!(told[3].json()["params"], json!({"level": "warning"}));
    assert_eq!(told[4].json()["params"], json!({"uri": "file:///a"}));
    assert!(told[2..].iter().all(|seen| seen.session().as_deref() == Some("S2")));
    for own in &told[3..5] {
        let id = own.json()["id"].as_str().map(str::len);
        assert!(id.is_some_and(|length| length > 16), "an id that no client uses: {}", own.text());
    }
}

#[tokio::test(start_paused = true)]
async fn a12_13_what_the_server_refused_is_not_told_again() {
    let server = LegacyServer::new()
        .error("logging/setLevel", r#"{"code":-32602,"message":"no"}"#)
        .error("resources/subscribe", r#"{"code":-32602,"message":"no"}"#);
    let (proxy, up) = shielded(&server).await;
    let old = Old::latest(&proxy).await;
    proxy.send(&old.ask("logging/setLevel").params(r#""level":"debug""#)).await.is_answered_error(-32602);
    proxy
        .send(&old.ask("resources/subscribe").params(r#""uri":"file:///a""#))
        .await
        .is_answered_error(-32602);
    server.forget_sessions();
    proxy.send(&old.call("echo", "{}")).await.result();
    assert_eq!((up.posts("logging/setLevel").len(), up.posts("resources/subscribe").len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn c02_another_version_is_used_once_it_is_agreed_on() {
    let net = Net::new();
    LegacyServer::new().start(&net);
    let proxy = Proxy::with(&net, SHIELD).await;
    let old = Old::latest(&proxy).await;
    let up = LegacyServer::new().version("2025-06-18").start(&net);
    proxy.send(&old.call("echo", "{}")).await.result();
    let calls = up.posts("tools/call");
    assert_eq!(calls.last().unwrap().header("mcp-protocol-version").as_deref(), Some("2025-06-18"));
}

#[tokio::test(start_paused = true)]
async fn c03_unknown_is_404_missing_is_400_and_anothers_is_unknown() {
    let (proxy, up) = shielded(&LegacyServer::new()).await;
    let alice = Old::open_as(&proxy, "2025-11-25", Some("alice")).await;
    let before = up.requests().len();
    let unknown = Old { session: Some("0".repeat(32)), ..alice.clone() };
    let servers = Old { session: Some("S1".into()), ..alice.clone() };
    let bob = Old { token: Some("bob".into()), ..alice.clone() };
    let nobody = Old { token: None, ..alice.clone() };
    for other in [&unknown, &servers, &bob, &nobody] {
        for ask in
            [other.ask("tools/list").id("7"), other.get(), other.delete(), other.note("notifications/x")]
        {
            let done = proxy.send(&ask).await;
            assert_eq!((done.status, done.code()), (404, -32600), "{}", done.raw);
        }
    }
    let none = Old { session: None, ..alice.clone() };
    let done = proxy.send(&none.ask("tools/list").id("7")).await;
    assert_eq!((done.status, done.code(), &done.message["id"]), (400, -32600, &json!(7)));
    assert_eq!(proxy.send(&none.get()).await.status, 400);
    assert_eq!(up.requests().len(), before, "nothing of these reaches the server");
    proxy.send(&alice.ask("tools/list")).await.result();
}

#[tokio::test(start_paused = true)]
async fn c04_a_server_without_session_ids_has_one_all_the_same() {
    let (proxy, up) = shielded(&LegacyServer::new().sessionless()).await;
    let old = Old::latest(&proxy).await;
    assert!(old.session.is_some());
    proxy.send(&old.call("echo", "{}")).await.result();
    assert_eq!(proxy.send(&old.delete()).await.status, 200);
    assert_eq!(proxy.send(&old.ask("tools/list")).await.status, 404);
    assert!(up.requests().iter().all(|seen| seen.session().is_none() && seen.verb == "POST"));
}

#[tokio::test(start_paused = true)]
async fn c06_only_initialize_names_the_session() {
    let server = LegacyServer::new().on("tools/call", |seen, reply: Reply| async move {
        reply.with("Mcp-Session-Id", "other").result(&seen, r#"{"content":[]}"#).await;
    });
    let (proxy, up) = shielded(&server).await;
    let old = Old::latest(&proxy).await;
    let done = proxy.send(&old.call("echo", "{}")).await;
    assert!(!done.headers.has("mcp-session-id"), "{:?}", done.headers);
    proxy.send(&old.ask("tools/list")).await.result();
    assert_eq!(up.only("tools/list").session().as_deref(), Some("S1"));
    // (a) and (c): a stale id is left behind, and a second one is another session.
    let again = proxy
        .send(&Old::initialize("2025-11-25").header("Mcp-Session-Id", old.session.as_deref().unwrap()))
        .await;
    assert_ne!(again.headers.get("mcp-session-id"), old.session);
    proxy.send(&old.ask("tools/list")).await.result();
    assert_eq!(up.posts("initialize").last().unwrap().session(), None);
}

#[tokio::test(start_paused = true)]
async fn a12_15_delete_ends_both() {
    let server = LegacyServer::new();
    let (proxy, _up) = shielded(&server).await;
    let old = Old::latest(&proxy).await;
    assert_eq!(proxy.send(&old.delete()).await.status, 200);
    assert_eq!((server.deleted(), server.live_sessions()), (vec!["S1".to_owned()], 0));
    assert_eq!(proxy.send(&old.delete()).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn inv5_sessions_are_bounded_in_number_and_in_idle_time() {
    let server = LegacyServer::new();
    let (proxy, _up) = with(&server, "session = { shield = true, max = 2, idle = \"60s\" }").await;
    let one = Old::latest(&proxy).await;
    pass(1000).await;
    let two = Old::latest(&proxy).await;
    pass(1000).await;
    let three = Old::latest(&proxy).await;
    assert_eq!(proxy.send(&one.ask("tools/list")).await.status, 404, "the one idle longest made room");
    assert_eq!(server.deleted(), ["S1"]);
    for _ in 0..4 {
        pass(40_000).await;
        proxy.send(&three.ask("tools/list")).await.result();
    }
    assert_eq!(proxy.send(&two.ask("tools/list")).await.status, 404);
    assert_eq!(server.live_sessions(), 1);
}

#[tokio::test(start_paused = true)]
async fn inv5_sessions_in_use_do_not_make_room() {
    let server = LegacyServer::new().on("tools/call", |_, reply: Reply| reply.never());
    let (proxy, up) = with(&server, "session = { shield = true, max = 1, idle = \"1s\" }").await;
    let old = Old::latest(&proxy).await;
    let _running = proxy.spawn(&old.call("slow", "{}"));
    up.wait("tools/call", 1).await;
    pass(60_000).await;
    // Two lines of support check requests: 503 is none of their answers.
    let ask: Ask = Old::initialize("2025-11-25");
    let busy = proxy.open(&ask).await;
    assert_eq!((busy.status, busy.headers.has("retry-after")), (503, true));
    proxy.send(&old.ask("tools/list")).await.result();
}

#[tokio::test(start_paused = true)]
async fn an_initialize_that_fails_leaves_no_session() {
    let server = LegacyServer::new().error("initialize", r#"{"code":-32602,"message":"no"}"#);
    let (proxy, _up) = with(&server, "era = \"legacy\"\nsession = { shield = true }").await;
    let done = proxy.send(&Old::initialize("2025-11-25")).await;
    done.is_answered_error(-32602);
    assert!(!done.headers.has("mcp-session-id"));
}

#[tokio::test(start_paused = true)]
async fn c58_a_challenge_passes_and_the_credential_is_each_requests_own() {
    let server = LegacyServer::new()
        .on("tools/call", |_, reply: Reply| reply.with("WWW-Authenticate", "Bearer scope=\"x\"").empty(403));
    let (proxy, up) = shielded(&server).await;
    let old = Old::open_as(&proxy, "2025-11-25", Some("alice")).await;
    let done = proxy.send(&old.call("echo", "{}")).await;
    assert_eq!(done.status, 403);
    assert_eq!(done.headers.get("www-authenticate").as_deref(), Some("Bearer scope=\"x\""));
    server.forget_sessions();
    proxy.send(&old.ask("tools/list")).await.result();
    for seen in up.requests() {
        assert_eq!(seen.header("authorization").as_deref(), Some("Bearer alice"), "{}", seen.brief());
    }
}

#[tokio::test(start_paused = true)]
async fn c58_a_challenge_in_the_hidden_handshake_reaches_the_client() {
    for status in [401, 403, 429] {
        let base = LegacyServer::new();
        let usual = base.clone();
        let server = base.clone().on("initialize", move |seen, reply: Reply| {
            let usual = usual.clone();
            async move {
                if usual.count("initialize") == 0 {
                    return usual.initialize_as_usual(&seen, reply).await;
                }
                let reply = reply.with("WWW-Authenticate", "Bearer x=\"y\"").with("Retry-After", "7");
                reply.empty(status).await;
            }
        });
        let (proxy, up) = shielded(&server).await;
        let old = Old::latest(&proxy).await;
        base.forget_sessions();
        let done = proxy.send(&old.call("echo", "{}").id("7")).await;
        assert_eq!(done.status, status);
        assert_eq!(done.headers.get("retry-after").as_deref(), Some("7"));
        if status != 429 {
            assert_eq!(done.headers.get("www-authenticate").as_deref(), Some("Bearer x=\"y\""));
        }
        assert_eq!(up.posts("initialize").len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn c39_a_server_that_has_become_modern_ends_the_session() {
    let net = Net::new();
    LegacyServer::new().start(&net);
    let proxy = Proxy::with(&net, SHIELD).await;
    let old = Old::latest(&proxy).await;
    pass(5000).await;
    let modern = ModernServer::new().on("tools/call", |_, reply: Reply| reply.empty(404));
    modern.start_unchecked(&net);
    let first = proxy.send(&old.call("echo", "{}").id("7")).await;
    assert_eq!(first.status, 404, "the client begins anew: {}", first.raw);
    let again = proxy.send(&Old::initialize("2025-11-25")).await;
    assert!(again.headers.has("mcp-session-id"), "in a session of the proxy's: {}", again.raw);
}

#[tokio::test(start_paused = true)]
async fn c39_a_loss_in_front_of_a_modern_server_ends_the_session() {
    let base = LegacyServer::new();
    let usual = base.clone();
    let server = base.clone().on("initialize", move |seen, reply: Reply| {
        let usual = usual.clone();
        async move {
            if usual.count("initialize") == 0 {
                return usual.initialize_as_usual(&seen, reply).await;
            }
            reply
                .error(
                    400,
                    &seen,
                    r#"{"code":-32022,"message":"m","data":{"supported":["2026-07-28"],"requested":"x"}}"#,
                )
                .await;
        }
    });
    let (proxy, _up) = shielded(&server).await;
    let old = Old::latest(&proxy).await;
    base.forget_sessions();
    proxy.send(&old.call("echo", "{}").id("7")).await.is_answered_error(-32603);
    assert_eq!(proxy.send(&old.call("echo", "{}").id("8")).await.status, 404, "the client begins anew");
}

#[tokio::test(start_paused = true)]
async fn c02_one_loss_is_one_handshake_however_slow() {
    let base = LegacyServer::new();
    let slow = base.clone();
    let server = base.clone().on("initialize", move |seen, reply: Reply| {
        let slow = slow.clone();
        async move {
            pass(2000).await;
            slow.initialize_as_usual(&seen, reply).await;
        }
    });
    let (proxy, up) = shielded(&server).await;
    let old = Old::latest(&proxy).await;
    base.forget_sessions();
    let mut running = Vec::new();
    for id in 0..10 {
        running.push(proxy.spawn(&old.call("echo", "{}").id(&id.to_string())));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    for one in running {
        one.await.unwrap().result();
    }
    assert_eq!(up.posts("initialize").len(), 2);
    // Twenty: each refused once and run once, in two sessions.
    let mut sessions: Vec<_> = up.posts("tools/call").iter().map(|seen| seen.session().unwrap()).collect();
    sessions.retain(|session| session == "S2");
    assert_eq!(sessions.len(), 10, "none lost, none doubled: {:?}", Arc::new(up.briefs()));
}

/// Invariant 5: nobody knows the session's name, so nobody would end it.
#[tokio::test(start_paused = true)]
async fn a_session_whose_client_left_before_the_answer_is_ended() {
    let base = LegacyServer::new();
    let usual = base.clone();
    let server = base.clone().on("initialize", move |seen, reply: Reply| {
        let usual = usual.clone();
        async move {
            tokio::time::sleep(Duration::from_millis(300)).await;
            usual.initialize_as_usual(&seen, reply).await;
        }
    });
    let (proxy, up) = shielded(&server).await;
    let asked = proxy.spawn(&Old::initialize("2025-11-25"));
    up.wait("initialize", 1).await;
    asked.abort();
    up.wait("DELETE", 1).await;
    assert_eq!((base.live_sessions(), base.deleted()), (0, vec!["S1".to_owned()]));
    assert_eq!(proxy.sessions(), 0);
}

/// The README's table: sessions of the shield are counted as others are.
#[tokio::test(start_paused = true)]
async fn shielded_sessions_are_counted() {
    let server = LegacyServer::new().on("tools/call", |seen, reply: Reply| async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        reply.result(&seen, r#"{"content":[]}"#).await;
    });
    let (proxy, up) = shielded(&server).await;
    let old = Old::latest(&proxy).await;
    server.forget_sessions();
    let asked = proxy.spawn(&old.call("echo", "{}"));
    up.wait("tools/call", 2).await;
    let metrics = proxy.metrics();
    for line in [
        r#"mcp_janus_initializations_total{result="ok",upstream="up"} 2"#,
        r#"mcp_janus_sessions_lost_total{upstream="up"} 1"#,
        r#"mcp_janus_upstream_sessions{state="busy",upstream="up"} 1"#,
        r#"mcp_janus_upstream_sessions{state="idle",upstream="up"} 0"#,
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
    asked.await.unwrap().result();
    let metrics = proxy.metrics();
    for line in [
        r#"mcp_janus_calls_resent_total{upstream="up"} 1"#,
        r#"mcp_janus_upstream_sessions{state="busy",upstream="up"} 0"#,
        r#"mcp_janus_upstream_sessions{state="idle",upstream="up"} 1"#,
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
}

/// Invariant 1: at the end of the process a shielded call's stream ends with its error.
#[tokio::test(start_paused = true)]
async fn a_call_that_the_end_of_the_process_cuts_off_gets_its_error() {
    let server = LegacyServer::new().on("tools/call", |_, mut reply: Reply| async move {
        reply.stream().await;
        reply.never().await;
    });
    let (proxy, _up) = shielded(&server).await;
    let old = Old::latest(&proxy).await;
    let mut call = proxy.open(&old.call("slow", "{}").id("7")).await;
    proxy.cut();
    let answer = call.message().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(7), &json!(-32603)), "{answer}");
    assert_eq!(call.event().await, None);
}
