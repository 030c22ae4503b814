//! A12.13, A12.22, C02, C03, C08: a session that its server has lost is opened anew, and the host hears nothing of it.

use std::sync::Arc;

use super::stage::{Host, INITIALIZED, echo, initialize, is_error, legacy, text};
use super::support::{Begin, Calls, Gets, LegacyServer, Proxy, Reply, Seen, json, pass, rpc};

/// C02: three calls at once find it out; the session is opened once, and each call is sent again once.
#[tokio::test(start_paused = true)]
async fn c02_a_lost_session_is_opened_anew_once() {
    let server = LegacyServer::new();
    let (proxy, up) = Proxy::before(&server).await;
    let mut host = Host::initialized(&proxy, "2025-11-25", r#"{"roots":{}}"#).await;
    host.say(&legacy("10", "ping", "")).await;
    host.answer("10").await;
    server.forget_sessions();
    for id in ["11", "12", "\"13\""] {
        host.say(&echo(id, "{}")).await;
    }
    for id in ["11", "12", "\"13\""] {
        text(&host.answer(id).await);
    }
    host.quiet(1000).await;
    let opened = up.posts("initialize");
    assert_eq!(opened.len(), 2);
    assert_eq!(opened[0].body, opened[1].body, "the host's own words");
    assert!(opened[1].session().is_none());
    assert_eq!(up.posts("notifications/initialized").len(), 2);
    let calls = up.posts("tools/call");
    let session = |name: &str| calls.iter().filter(|seen| seen.session().as_deref() == Some(name)).count();
    assert_eq!((session("S1"), session("S2")), (3, 3));
    assert_eq!(host.end().await, "Drained");
    assert_eq!(server.live_sessions(), 0);
}

/// The new session is told of the level and the subscriptions, and has a stream of its own.
#[tokio::test(start_paused = true)]
async fn d31_what_the_lost_session_knew_is_told_again() {
    let gets = Gets::open();
    let server = gets.of(LegacyServer::telling());
    let (proxy, up) = Proxy::before(&server).await;
    let mut host = Host::initialized(&proxy, "2025-11-25", "{}").await;
    gets.wait(1).await;
    let uri = |uri: &str| format!(r#""uri":"file:///{uri}""#);
    for (id, method, params) in [
        ("1", "logging/setLevel", r#""level":"debug""#.to_owned()),
        ("2", "resources/subscribe", uri("a")),
        ("3", "resources/subscribe", uri("b")),
        ("4", "resources/unsubscribe", uri("a")),
        ("5", "logging/setLevel", r#""level":"error""#.to_owned()),
    ] {
        host.say(&legacy(id, method, &params)).await;
        host.answer(id).await;
    }
    let before = up.requests().len();
    server.forget_sessions();
    host.say(&echo("6", "{}")).await;
    text(&host.answer("6").await);
    let again: Vec<_> = up.requests().into_iter().skip(before).collect();
    let told = |method: &str| {
        let of_it = again.iter().filter(|seen| seen.rpc_method() == method);
        of_it.map(|seen| seen.json()["params"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(told("logging/setLevel"), [json!({"level": "error"})]);
    assert_eq!(told("resources/subscribe"), [json!({"uri": "file:///b"})]);
    gets.wait(2).await.event(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    host.told("notifications/tools/list_changed").await;
    host.quiet(1000).await;
    assert_eq!(gets.all()[1].session(), "S2");
}

/// C02: a second loss right away is an error, and no third try; where no session is to be had likewise.
#[tokio::test(start_paused = true)]
async fn c02_a_session_that_is_lost_again_at_once() {
    let lost = |_seen: Arc<Seen>, reply: Reply| async move {
        reply
            .json(404, r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}"#)
            .await;
    };
    let (proxy, up) = Proxy::before(&LegacyServer::new().on("tools/call", lost)).await;
    let mut host = Host::initialized(&proxy, "2025-11-25", "{}").await;
    host.say(&echo("1", "{}")).await;
    is_error(&host.answer("1").await, -32603);
    assert_eq!((up.posts("tools/call").len(), up.posts("initialize").len()), (2, 2));
    host.say(&legacy("2", "ping", "")).await;
    assert_eq!(host.answer("2").await["result"], json!({}));
}

#[tokio::test(start_paused = true)]
async fn where_no_other_session_is_to_be_had() {
    let server = LegacyServer::new();
    let full = server.clone().on("initialize", {
        let server = server.clone();
        move |seen: Arc<Seen>, reply: Reply| {
            let server = server.clone();
            async move {
                match server.count("initialize") {
                    0 => server.initialize_as_usual(&seen, reply).await,
                    1 => reply.error(200, &seen, r#"{"code":-32603,"message":"full"}"#).await,
                    2 => reply.empty(503).await,
                    _ => server.initialize_as_usual(&seen, reply).await,
                }
            }
        }
    });
    let (proxy, up) = Proxy::before(&full).await;
    let mut host = Host::initialized(&proxy, "2025-11-25", "{}").await;
    host.say(&legacy("0", "ping", "")).await;
    host.answer("0").await;
    server.forget_sessions();
    for id in ["1", "2"] {
        host.say(&echo(id, "{}")).await;
        is_error(&host.answer(id).await, -32603);
    }
    host.say(&echo("3", "{}")).await;
    text(&host.answer("3").await);
    assert_eq!(up.posts("initialize").len(), 4);
}

/// A12.22: a server's own word on the method is no lost session.
#[tokio::test(start_paused = true)]
async fn a12_22_an_unknown_method_with_status_404() {
    let unknown = |seen: Arc<Seen>, reply: Reply| async move {
        reply.error(404, &seen, r#"{"code":-32601,"message":"Method not found"}"#).await;
    };
    let (proxy, up) = Proxy::before(&LegacyServer::new().on("acme/do", unknown)).await;
    let mut host = Host::initialized(&proxy, "2025-11-25", "{}").await;
    host.say(&legacy("1", "acme/do", "")).await;
    is_error(&host.answer("1").await, -32601);
    assert_eq!(up.posts("initialize").len(), 1);
}

/// C02: what already runs in a session that dies ends in an error; a notification finds the new session.
#[tokio::test(start_paused = true)]
async fn c02_what_runs_in_a_lost_session_is_told_so() {
    let calls = Calls::new();
    let server = calls.of(LegacyServer::new());
    let (proxy, up) = Proxy::before(&server).await;
    let mut host = Host::initialized(&proxy, "2025-11-25", "{}").await;
    host.say(&echo("1", "{}")).await;
    let call = calls.wait(1).await;
    call.head();
    server.forget_sessions();
    call.cut();
    is_error(&host.answer("1").await, -32603);
    assert_eq!(up.posts("tools/call").len(), 1, "never again: it may have run");
    host.say(r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#).await;
    let told = up.wait("notifications/roots/list_changed", 2).await;
    assert_eq!(told[1].session().as_deref(), Some("S2"));
    host.quiet(1000).await;
}

/// C08: an idle host's session is found lost when its stream cannot be opened again, and a POST has proved it.
#[tokio::test(start_paused = true)]
async fn c08_the_stream_of_a_lost_session() {
    let gets = Gets::open();
    let server = gets.of(LegacyServer::telling());
    let (proxy, up) = Proxy::before(&server).await;
    let mut host = Host::initialized(&proxy, "2025-11-25", "{}").await;
    let first = gets.wait(1).await;
    server.forget_sessions();
    first.cut();
    let second = gets.wait(2).await;
    assert_eq!(second.session(), "S2");
    second.event(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    host.told("notifications/tools/list_changed").await;
    assert_eq!(up.posts("initialize").len(), 2);
    host.quiet(5000).await;
}

/// C08: a server without the stream is left alone, whatever it says of that; a 404 of it alone ends nothing.
#[tokio::test(start_paused = true)]
async fn c08_a_server_without_the_stream() {
    for status in [404, 405, 406, 400] {
        let gets = Gets::script(move |_| Begin::Empty(status));
        let (proxy, up) = Proxy::before(&gets.of(LegacyServer::telling())).await;
        let mut host = Host::initialized(&proxy, "2025-11-25", "{}").await;
        gets.wait(1).await;
        host.quiet(600_000).await;
        host.say(&echo("1", "{}")).await;
        text(&host.answer("1").await);
        assert_eq!((gets.all().len(), up.posts("initialize").len()), (1, 1), "{status}");
    }
    let gets = Gets::script(|n| if n == 0 { Begin::Only(": hi\n\n".into()) } else { Begin::Empty(404) });
    let (proxy, up) = Proxy::before(&gets.of(LegacyServer::telling())).await;
    let mut host = Host::initialized(&proxy, "2025-11-25", "{}").await;
    gets.wait(2).await;
    host.quiet(60_000).await;
    assert_eq!((gets.all().len(), up.posts("initialize").len()), (2, 1));
}

/// A13.5: a stream that breaks off is taken up again after its last event, each time a little later.
#[tokio::test(start_paused = true)]
async fn a13_5_the_stream_is_taken_up_again() {
    let told = |n: usize| {
        let message = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":{n}}}}}"#
        );
        format!("id: e{n}\ndata: {message}\n\n")
    };
    let gets = Gets::script(move |n| match n {
        0 | 1 => Begin::Only(told(n)),
        2 => Begin::Cut,
        3 => Begin::Empty(503),
        _ => Begin::Open,
    });
    let (proxy, _up) = Proxy::before(&gets.of(LegacyServer::telling())).await;
    let mut host = Host::initialized(&proxy, "2025-11-25", "{}").await;
    gets.wait(5).await;
    let after: Vec<_> = gets.all().iter().map(|get| get.last_event()).collect();
    let event = |n: &str| Some(n.to_owned());
    assert_eq!(after, [None, event("e0"), event("e1"), event("e1"), event("e1")]);
    for n in 0..2 {
        assert_eq!(host.told("notifications/message").await["params"]["data"], n);
    }
    pass(100_000).await;
    assert_eq!(gets.all().len(), 5);
}

/// Version and session id of the answer to `initialize` are used, whatever a later answer says (C06b, C27b).
#[tokio::test(start_paused = true)]
async fn c06b_c27b_the_answer_to_initialize_counts() {
    let answer = |seen: Arc<Seen>, reply: Reply| async move {
        reply.with("Mcp-Session-Id", "other").result(&seen, r#"{"content":[]}"#).await;
    };
    let server = LegacyServer::new().version("2025-03-26").on("tools/call", answer);
    let (proxy, up) = Proxy::before(&server).await;
    let mut host = Host::launch(&proxy);
    host.say(&initialize("0", "2025-11-25", "{}")).await;
    assert_eq!(host.answer("0").await["result"]["protocolVersion"], "2025-03-26");
    host.say(INITIALIZED).await;
    for id in ["1", "2"] {
        host.say(&echo(id, "{}")).await;
        host.answer(id).await;
    }
    for seen in up.posts("tools/call") {
        assert_eq!(seen.session().as_deref(), Some("S1"));
        assert_eq!(seen.header("mcp-protocol-version").as_deref(), Some("2025-03-26"));
    }
    assert!(up.posts("initialize")[0].header("mcp-protocol-version").is_none());
}

/// C04: a server that issues no session.
#[tokio::test(start_paused = true)]
async fn c04_a_server_without_sessions() {
    let (proxy, up) = Proxy::before(&LegacyServer::new().sessionless()).await;
    let mut host = Host::initialized(&proxy, "2025-11-25", "{}").await;
    host.say(&echo("1", "{}")).await;
    text(&host.answer("1").await);
    assert!(up.requests().iter().all(|seen| seen.session().is_none()));
    assert_eq!(host.end().await, "Drained");
    assert!(!up.briefs().contains(&"DELETE".to_owned()));
}

/// C03: "not initialized" in a dialect is told as it is where the session is between host and server.
#[tokio::test(start_paused = true)]
async fn c03_other_refusals_are_told() {
    let refuse = |seen: Arc<Seen>, reply: Reply| async move {
        match seen.json()["params"]["arguments"]["n"].as_i64() {
            Some(0) => {
                reply.json(400, &rpc::error_message("null", r#"{"code":-32000,"message":"no"}"#)).await
            }
            Some(1) => reply.empty(400).await,
            Some(2) => reply.body(400, "text/html", "<html>").await,
            Some(3) => reply.empty(503).await,
            Some(4) => reply.error(400, &seen, r#"{"code":-32602,"message":"arguments"}"#).await,
            _ => reply.body(200, "text/plain", "ok").await,
        }
    };
    let (proxy, up) = Proxy::before(&LegacyServer::new().on("tools/call", refuse)).await;
    let mut host = Host::initialized(&proxy, "2025-11-25", "{}").await;
    for n in 0..6 {
        host.say(&echo(&n.to_string(), &format!(r#"{{"n":{n}}}"#))).await;
        let told = host.answer(&n.to_string()).await;
        assert!(told["error"]["code"].is_i64(), "{told}");
        if n == 4 {
            is_error(&told, -32602);
        }
    }
    assert_eq!(up.posts("tools/call").len(), 6);
}

/// A12.22: only under the request's own id is it the server's word on the method.
#[tokio::test(start_paused = true)]
async fn a12_22_an_unknown_method_of_nothing_that_was_asked() {
    let server = LegacyServer::new();
    let odd = server.clone().on("acme/do", {
        let server = server.clone();
        move |seen: Arc<Seen>, reply: Reply| {
            let server = server.clone();
            async move {
                match server.count("acme/do") {
                    0 => {
                        reply
                            .json(404, &rpc::error_message("null", r#"{"code":-32601,"message":"gone"}"#))
                            .await
                    }
                    _ => reply.result(&seen, "{}").await,
                }
            }
        }
    });
    let (proxy, up) = Proxy::before(&odd).await;
    let mut host = Host::initialized(&proxy, "2025-11-25", "{}").await;
    host.say(&legacy("1", "acme/do", "")).await;
    assert_eq!(host.answer("1").await["result"], json!({}));
    assert_eq!(up.posts("initialize").len(), 2);
}
