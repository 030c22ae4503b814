//! D75, D76, D80, D104, A11, A12, B3, C49: what goes wrong at a modern server, in a legacy client's words.

use crate::stage::{LATEST, REVISIONS, Stage, opened};
use crate::support::{ModernServer, Reply, User, json, pass};

const CALL: &str = r#""name":"t","arguments":{}"#;

/// One method that the server answers with this status and error, and what the client gets.
async fn answered(
    method: &str,
    params: &str,
    status: u16,
    error: &str,
    lines: &str,
) -> (Stage, User, crate::support::Done) {
    let server = ModernServer::full().fails(method, status, error);
    let stage = Stage::before_with(server, lines).await;
    let user = stage.latest().await;
    let done = user.send(&user.old.ask(method).params(params).id("7")).await;
    (stage, user, done)
}

#[tokio::test(start_paused = true)]
async fn d75_404_not_leaked() {
    let error = r#"{"code":-32601,"message":"no such method","data":{"k":1.50}}"#;
    for (method, params) in [("prompts/list", ""), ("acme/x", ""), ("tools/call", CALL), ("tools/list", "")] {
        let (stage, user, done) = answered(method, params, 404, error, "").await;
        done.is_answered_error(-32601);
        assert!(done.raw.contains(&error[1..]), "{method}: the server's own words: {}", done.raw);
        assert!(user.lives().await, "{method}: 404 would be the end of the session");
        assert_eq!(stage.up.posts(method).len(), 1, "{method}: once");
    }
}

/// A11.3, A12.21: whatever status a server fails with, it is no status of the session's.
#[tokio::test(start_paused = true)]
async fn d75_no_status_of_the_server_leaks() {
    for status in [400, 404, 405, 406, 409, 410, 415, 500, 502, 503, 504] {
        for body in ["", "<html>x</html>", r#"{"error":"x"}"#] {
            let server = ModernServer::full().on("prompts/get", move |_, reply: Reply| async move {
                reply.body(status, "text/html", body).await;
            });
            let stage = Stage::before(server).await;
            let user = stage.latest().await;
            let ask = user.old.ask("prompts/get").params(r#""name":"p""#).id("7");
            user.send(&ask).await.is_answered_error(-32603);
            assert!(user.lives().await, "{status}");
            user.list("tools/list").await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn d76_400_not_leaked() {
    let error =
        r#"{"code":-32021,"message":"sampling is needed","data":{"requiredCapabilities":{"sampling":{}}}}"#;
    let (stage, user, done) = answered("tools/call", CALL, 400, error, "").await;
    let result = done.result();
    assert_eq!(result["isError"], true, "{}", done.raw);
    assert!(result["content"][0]["text"].as_str().is_some_and(|text| !text.is_empty()), "{}", done.raw);
    assert_eq!(stage.up.posts("tools/call").len(), 1);
    assert!(user.lives().await);
    for (method, params) in
        [("prompts/get", r#""name":"p""#), ("resources/read", r#""uri":"file:///x""#), ("acme/x", "")]
    {
        let (stage, user, done) = answered(method, params, 400, error, "").await;
        done.is_answered_error(-32603);
        assert_eq!(done.data()["requiredCapabilities"], json!({"sampling": {}}), "A11.9: {}", done.raw);
        assert_eq!(stage.up.posts(method).len(), 1, "{method}");
        assert!(user.lives().await, "{method}");
    }
}

/// A11.8, A11.10, C49: codes about the envelope are between the proxy and the server.
#[tokio::test(start_paused = true)]
async fn c49_codes_of_the_envelope_do_not_leak() {
    let errors = [
        r#"{"code":-32020,"message":"header"}"#,
        r#"{"code":-32022,"message":"version","data":{"supported":["2026-07-28"],"requested":"2026-07-28"}}"#,
    ];
    for error in errors {
        for (method, params) in
            [("tools/call", CALL), ("prompts/list", ""), ("resources/read", r#""uri":"file:///x""#)]
        {
            let (stage, user, done) = answered(method, params, 400, error, "").await;
            done.is_answered_error(-32603);
            assert!(stage.up.posts(method).len() <= 2, "{method} {error}: {:?}", stage.up.briefs());
            assert!(user.lives().await, "{method} {error}");
        }
    }
}

/// A11.4, A11.5, A11.11, A11.14: codes that mean the same, or that are the server's own, pass with their words.
#[tokio::test(start_paused = true)]
async fn c49_other_codes_pass() {
    for code in [-32602, -32603, -32600, -32000, -32001, -32003, 1234, -1] {
        let error = format!(r#"{{"code":{code},"message":"m\u0041","data":{{"k":[1.50]}}}}"#);
        for status in [200, 400] {
            let (stage, user, done) = answered("tools/call", CALL, status, &error, "").await;
            done.is_answered_error(code);
            assert!(done.raw.contains(&error[1..]), "{code}: {}", done.raw);
            assert_eq!(stage.up.posts("tools/call").len(), 1, "{code}");
            assert!(user.lives().await, "{code}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn d80_rnf_down() {
    const URI: &str = r#""uri":"file:///x""#;
    let error = |data: &str| format!(r#"{{"code":-32602,"message":"bad","data":{data}}}"#);
    let own = error(r#"{"uri":"file:///x"}"#);
    let table = [
        (own.clone(), "", -32002),
        (own.clone(), "legacy_not_found = true", -32002),
        (own.clone(), "legacy_not_found = false", -32602),
        (error(r#"{"uri":"file:///x","reason":"https only"}"#), "", -32602),
        (error(r#"{"uri":"file:///other"}"#), "", -32602),
        (error(r#"{"reason":"x"}"#), "", -32602),
        (error("5"), "", -32602),
        (error("null"), "", -32602),
        (r#"{"code":-32602,"message":"bad"}"#.to_owned(), "", -32602),
        (
            r#"{"code":-32602,"message":"Resource Not Found","data":{"uri":"file:///x","k":1}}"#.to_owned(),
            "",
            -32002,
        ),
    ];
    for (error, lines, expected) in &table {
        for status in [200, 400] {
            let (_stage, _user, done) = answered("resources/read", URI, status, error, lines).await;
            done.is_answered_error(*expected);
            let sent = crate::stage::parse(error);
            assert_eq!(done.message["error"].get("data"), sent.get("data"), "kept: {error}");
            assert_eq!(done.message["error"]["message"], sent["message"], "kept: {error}");
        }
    }
    // Of any other method it means bad parameters.
    for (method, params) in [("tools/call", CALL), ("prompts/get", r#""name":"p""#)] {
        let (_stage, _user, done) = answered(method, params, 200, &own, "").await;
        done.is_answered_error(-32602);
    }
}

/// All four revisions say -32002.
#[tokio::test(start_paused = true)]
async fn d80_in_every_revision() {
    let error = r#"{"code":-32602,"message":"m","data":{"uri":"file:///x"}}"#;
    for revision in REVISIONS {
        let stage = Stage::before(ModernServer::full().fails("resources/read", 200, error)).await;
        let user = stage.user(revision).await;
        let ask = user.old.ask("resources/read").params(r#""uri":"file:///x""#);
        user.send(&ask).await.is_answered_error(-32002);
    }
}

/// A12.17: a challenge is the client's business, with its status.
#[tokio::test(start_paused = true)]
async fn a12_17_challenges_pass() {
    for status in [401, 403, 429] {
        for method in ["tools/call", "tools/list"] {
            let server = ModernServer::full().on(method, move |_, reply: Reply| async move {
                let reply = reply.with("WWW-Authenticate", "Bearer x=\"y\"").with("Retry-After", "7");
                reply.empty(status).await;
            });
            let stage = Stage::before(server).await;
            let user = stage.latest().await;
            let ask = user.old.ask(method).params(if method == "tools/call" { CALL } else { "" });
            let done = stage.proxy.send(&ask).await;
            assert_eq!(done.status, status, "{method}: {}", done.raw);
            if status != 429 {
                assert_eq!(done.headers.get("www-authenticate").as_deref(), Some("Bearer x=\"y\""));
            } else {
                assert_eq!(done.headers.get("retry-after").as_deref(), Some("7"));
            }
            assert!(user.lives().await, "{method} {status}");
        }
    }
}

/// The same when the stream has begun: then it is an error in band.
#[tokio::test(start_paused = true)]
async fn a12_17_a_challenge_that_comes_late() {
    let server = ModernServer::full().on("tools/call", |_, reply: Reply| async move {
        pass(5000).await;
        reply.with("WWW-Authenticate", "Bearer x=\"y\"").empty(401).await;
    });
    let stage = Stage::before(server).await;
    let user = stage.latest().await;
    assert_eq!(user.call("t", "{}").await.code().await, -32603);
}

#[tokio::test(start_paused = true)]
async fn d104_upstream_break() {
    for revision in REVISIONS {
        let stage = Stage::new().await;
        let user = stage.user(revision).await;
        let ends: [fn(&crate::support::Call); 3] =
            [|call| call.reset(), |call| call.cut(), |call| call.end()];
        for (n, end) in ends.into_iter().enumerate() {
            let (stream, call) = stage.begin(&user).await;
            call.log("info", "on the way");
            stream.wait(1).await;
            end(&call);
            assert_eq!(stream.code().await, -32603, "{revision}");
            pass(60_000).await;
            assert_eq!(stage.calls.all().len(), n + 1, "{revision}: never sent again (C40)");
        }
        assert!(user.lives().await);
    }
}

/// Before anything of an answer the same holds for calls, and lists are asked for once more, under another id.
#[tokio::test(start_paused = true)]
async fn d104_what_is_asked_again() {
    let base = ModernServer::full();
    let breaks = |server: ModernServer, method: &'static str| {
        let good = base.clone();
        let times = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        server.on(method, move |seen, mut reply: Reply| {
            let (good, times) = (good.clone(), times.clone());
            async move {
                if times.fetch_add(1, std::sync::atomic::Ordering::SeqCst) > 0 {
                    return good.answer(seen, reply).await;
                }
                reply.stream().await;
                reply.reset();
            }
        })
    };
    let safe = ["tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read"];
    for method in safe {
        let stage = Stage::before(breaks(base.clone(), method)).await;
        let user = stage.latest().await;
        let params = if method == "resources/read" { r#""uri":"file:///x""# } else { "" };
        let done = user.send(&user.old.ask(method).params(params)).await;
        done.result();
        let ids: Vec<_> = stage.up.posts(method).iter().map(|seen| seen.id()).collect();
        assert!(ids.len() == 2 && ids[0] != ids[1], "{method}: {ids:?}");
    }
    for (method, params) in [("tools/call", CALL), ("prompts/get", r#""name":"p""#), ("acme/x", "")] {
        let stage = Stage::before(breaks(base.clone(), method)).await;
        let user = stage.latest().await;
        let stream = user.open(&user.old.ask(method).params(params)).await;
        let code = stream.answer().await;
        if method == "prompts/get" && code.get("result").is_some() {
            // Reading; it may be asked for again.
            continue;
        }
        assert_eq!(code["error"]["code"], -32603, "{method}: {code}");
        assert_eq!(stage.up.posts(method).len(), 1, "{method}: never again");
    }
}

/// A12.21: the server does not answer in time; each request to it has as long as the setting says.
#[tokio::test(start_paused = true)]
async fn a12_21_a_server_that_does_not_answer() {
    let stage = Stage::with("timeouts.request = \"20s\"").await;
    let user = stage.latest().await;
    let (stream, call) = stage.begin(&user).await;
    let began = tokio::time::Instant::now();
    assert_eq!(stream.code().await, -32603);
    assert!(began.elapsed().as_secs() <= 21, "{:?}", began.elapsed());
    pass(1000).await;
    assert!(!call.is_open(), "the server is waited for no more");
    assert!(user.lives().await);
}

/// A server that answers under another id, or with what is no answer.
#[tokio::test(start_paused = true)]
async fn inv1_answers_that_are_none() {
    let bodies = [
        r#"{"jsonrpc":"2.0","id":"other","result":{"resultType":"complete","content":[]}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"what?"}}"#,
        r#"{"jsonrpc":"2.0"}"#,
        "{",
        "[]",
        "",
    ];
    for body in bodies {
        let server = ModernServer::full().on("tools/call", move |_, reply: Reply| async move {
            reply.json(200, body).await;
        });
        let stage = Stage::before(server).await;
        let user = stage.latest().await;
        let answer = user.call("t", "{}").await.answer().await;
        // An error under no id is that of the only request.
        let code = if body.contains("what?") { -32600 } else { -32603 };
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(code)), "{body}: {answer}");
    }
}

/// A request of the server on a call's stream is none of this revision, and reaches nobody.
#[tokio::test(start_paused = true)]
async fn a2_requests_of_a_modern_server_reach_nobody() {
    let stage = Stage::new().await;
    let user = stage.user(LATEST).await;
    let (opening, call) = stage.start(&user, &user.old.call("ask", "{}")).await;
    call.event(r#"{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}}"#);
    call.event(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    call.event(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    call.completes("done");
    let stream = opened(opening).await;
    stream.answer().await;
    assert_eq!(stream.asked(), 0);
    assert_eq!(stream.briefs(), ["answer"]);
}
