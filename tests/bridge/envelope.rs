//! D71, D72, D102, D111, A1, A2, A4, A10, A13, C18, C21, C25, C32: what a legacy client's request is to a modern server.

use crate::stage::{LATEST, META, REVISIONS, Stage, declares, parse};
use crate::support::{Ask, ModernServer, Old, Reply, User, json, modern, pass, rpc};

#[tokio::test(start_paused = true)]
async fn d71_legacy_add_envelope() {
    for revision in REVISIONS {
        let stage = Stage::new().await;
        let user = stage.user(revision).await;
        let ask = user
            .old
            .call("echo", r#"{"a":1}"#)
            .meta(&format!("{META}clientCapabilities"), r#"{"everything":{}}"#)
            .meta(&format!("{META}clientInfo"), r#"{"name":"root","version":"0"}"#)
            .meta(&format!("{META}logLevel"), r#""debug""#)
            .meta(&format!("{META}related-task"), r#"{"taskId":"t"}"#)
            .meta("traceparent", r#""00-1""#)
            .meta("com.acme/x", r#"{"b":1.50}"#)
            .header("X-Other", "1")
            .header("Cookie", "a=b")
            .header("Last-Event-ID", "9")
            .header("Mcp-Name", "forged")
            .header("Mcp-Param-Region", "forged");
        let (opening, call) = stage.start(&user, &ask).await;
        call.completes("done");
        crate::stage::opened(opening).await.result().await;
        let seen = &call.seen;
        for (name, value) in [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "echo"),
            ("accept", "application/json, text/event-stream"),
        ] {
            assert_eq!(seen.header(name).as_deref(), Some(value), "{revision}: {name}");
        }
        for name in ["mcp-session-id", "x-other", "cookie", "last-event-id", "mcp-param-region"] {
            assert_eq!(seen.header(name), None, "{revision}: {name}");
        }
        let params = call.params();
        assert_eq!(params["name"], "echo");
        assert_eq!(params["arguments"], json!({"a": 1}));
        assert_eq!(call.meta(&format!("{META}protocolVersion")), "2026-07-28", "{revision}");
        let info = json!({"name": "an old client", "version": "1"});
        assert_eq!(call.meta(&format!("{META}clientInfo")), info, "{revision}");
        assert_eq!(declares(seen).get("everything"), None, "{revision}");
        assert_eq!(call.meta(&format!("{META}logLevel")), json!(null), "{revision}: no level was set");
        assert_eq!(call.meta(&format!("{META}related-task")), json!(null), "{revision}");
        assert_eq!(call.meta("traceparent"), "00-1", "A4.6");
        assert!(seen.text().contains(r#""com.acme/x":{"b":1.50}"#), "to the byte: {}", seen.text());
    }
}

/// A client that has a session is a legacy one, whatever its `_meta` says.
#[tokio::test(start_paused = true)]
async fn d71_a_claim_within_a_session_is_overwritten() {
    let stage = Stage::before(ModernServer::full()).await;
    for revision in REVISIONS {
        let user = stage.user(revision).await;
        for claim in [r#""9""#, r#""2025-06-18""#, r#""2026-07-28""#, "5"] {
            let ask = user.old.call("echo", "{}").meta(&format!("{META}protocolVersion"), claim);
            let done = user.send(&ask).await;
            assert!(done.message.get("result").is_some(), "{revision} {claim}: {} {}", done.status, done.raw);
            // The server got the right one: `shape_requests`.
        }
    }
}

/// Every method that a client of both eras has, each with its envelope (looked at by `shape_envelope`).
#[tokio::test(start_paused = true)]
async fn d71_every_method_gets_its_envelope() {
    let stage = Stage::before(ModernServer::full()).await;
    for revision in REVISIONS {
        let user = stage.user(revision).await;
        let asks = [
            user.old.ask("tools/list"),
            user.old.ask("prompts/list").params(r#""cursor":"c\u0031""#),
            user.old.ask("resources/list"),
            user.old.ask("resources/templates/list"),
            user.old.call("echo", "{}"),
            user.old.ask("prompts/get").params(r#""name":"p""#),
            user.old.ask("resources/read").params(r#""uri":"file:///x""#),
            user.old.ask("completion/complete").params(
                r#""ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"v"},"context":{"arguments":{"b":"c"}}"#,
            ),
        ];
        for ask in asks {
            let done = user.send(&ask.clone().id("\"i\"")).await;
            assert_eq!(done.status, 200, "{revision} {}: {}", ask.method, done.raw);
            assert!(done.message.get("result").is_some(), "{revision} {}: {}", ask.method, done.raw);
        }
    }
    let cursor = stage.up.posts("prompts/list")[0].text().contains(r#""cursor":"c\u0031""#);
    assert!(cursor, "A4.18: to the byte");
}

/// Numbers, order, escapes and members that nobody knows survive, up and down.
#[tokio::test(start_paused = true)]
async fn d71_nothing_else_is_touched() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    let arguments = r#"{"z":1e400,"a":1.0,"big":123456789012345678901234567890,"e":"\u0041\/","u":"世"}"#;
    let ask = user.old.call("echo", arguments).member("x-own", r#"{"k":[1,2.50]}"#);
    let (opening, call) = stage.start(&user, &ask).await;
    let text = call.seen.text();
    assert!(text.contains(&format!(r#""arguments":{arguments}"#)), "{text}");
    assert!(text.contains(r#""x-own":{"k":[1,2.50]}"#), "{text}");
    let content =
        r#""content":[{"type":"text","text":"\u0041 1.0","x":1e400}],"x-own":[0.10],"z":{"a":1.50}"#;
    call.completes_with(content);
    let stream = crate::stage::opened(opening).await;
    stream.result().await;
    let raw = stream.events().last().unwrap().raw.clone();
    assert!(raw.contains(content), "{raw}");
}

#[tokio::test(start_paused = true)]
async fn d72_legacy_caps_map() {
    let table = [
        (
            "2025-06-18",
            r#"{"elicitation":{},"roots":{"listChanged":true},"tasks":{}}"#,
            json!({"elicitation": {"form": {}}, "roots": {}}),
        ),
        // Form is all that this revision has.
        ("2025-06-18", r#"{"elicitation":{"url":{}}}"#, json!({"elicitation": {"form": {}}})),
        ("2025-06-18", r#"{"sampling":{"tools":{},"context":{}}}"#, json!({"sampling": {}})),
        ("2025-03-26", r#"{"sampling":{"tools":{}},"elicitation":{}}"#, json!({"sampling": {}})),
        (
            "2024-11-05",
            r#"{"elicitation":{},"sampling":{},"roots":{}}"#,
            json!({"sampling": {}, "roots": {}}),
        ),
        ("2024-11-05", r#"{"elicitation":{"form":{}}}"#, json!({})),
        ("2025-11-25", r#"{"elicitation":{}}"#, json!({"elicitation": {"form": {}}})),
        ("2025-11-25", r#"{"elicitation":{"url":{}}}"#, json!({"elicitation": {"url": {}}})),
        (
            "2025-11-25",
            r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{},"context":{}}}"#,
            json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}, "context": {}}}),
        ),
        (
            "2025-11-25",
            r#"{"tasks":{"list":{},"requests":{"sampling":{"createMessage":{}}}},"roots":{}}"#,
            json!({"roots": {}}),
        ),
        (
            "2025-06-18",
            r#"{"experimental":{"x":{"a":1},"y":5,"z":[1]}}"#,
            json!({"experimental": {"x": {"a": 1}}}),
        ),
        (
            "2025-11-25",
            r#"{"extensions":{"io.modelcontextprotocol/ui":{"m":[1]},"io.modelcontextprotocol/tasks":{}}}"#,
            json!({"extensions": {"io.modelcontextprotocol/ui": {"m": [1]}}}),
        ),
        ("2025-11-25", "{}", json!({})),
    ];
    for (revision, declared, expected) in table {
        let stage = Stage::before(ModernServer::full()).await;
        let user = stage.user_with(revision, declared).await;
        user.list("tools/list").await;
        assert_eq!(declares(&stage.up.only("tools/list")), expected, "{revision} {declared}");
    }
}

#[tokio::test(start_paused = true)]
async fn d102_log_legacy_setlevel() {
    let stage = Stage::before(ModernServer::full()).await;
    let user = stage.latest().await;
    let other = stage.latest().await;
    user.list("tools/list").await;
    user.level("warning").await.result();
    user.list("tools/list").await;
    other.list("tools/list").await;
    for bad in ["loud", "WARNING", ""] {
        user.level(bad).await.is_answered_error(-32602);
    }
    let shapeless = user.old.ask("logging/setLevel").params(r#""level":7"#);
    user.send(&shapeless).await.is_answered_error(-32602);
    user.send(&user.old.ask("logging/setLevel")).await.is_answered_error(-32602);
    user.list("tools/list").await;
    user.level("debug").await.result();
    user.list("tools/list").await;
    let key = format!("{META}logLevel");
    let levels: Vec<_> = stage
        .up
        .posts("tools/list")
        .iter()
        .map(|seen| seen.json()["params"]["_meta"].get(&key).cloned())
        .collect();
    let level = |level: &str| Some(json!(level));
    assert_eq!(levels, [None, level("warning"), None, level("warning"), level("debug")]);
    assert_eq!(stage.briefs(), vec!["tools/list"; 5], "setLevel is the proxy's");
}

/// A1.11: a server without logging has no level to set.
#[tokio::test(start_paused = true)]
async fn d102_a_server_without_logging() {
    let stage = Stage::before_with(ModernServer::new(), "session.log_level = \"info\"").await;
    let user = stage.latest().await;
    user.level("warning").await.is_answered_error(-32601);
    user.list("tools/list").await;
    let meta = &stage.up.only("tools/list").json()["params"]["_meta"];
    assert_eq!(meta.get(format!("{META}logLevel")), None);
}

/// B8: the level before a client sets one is a setting.
#[tokio::test(start_paused = true)]
async fn d102_the_level_before_any_is_set() {
    let stage = Stage::before_with(ModernServer::full(), "session.log_level = \"notice\"").await;
    let user = stage.latest().await;
    user.list("tools/list").await;
    user.level("error").await.result();
    user.list("tools/list").await;
    let levels: Vec<_> = stage
        .up
        .posts("tools/list")
        .iter()
        .map(|seen| seen.json()["params"]["_meta"][format!("{META}logLevel")].clone())
        .collect();
    assert_eq!(levels, ["notice", "error"]);
}

/// A2.4: log messages come on the stream of their call.
#[tokio::test(start_paused = true)]
async fn d102_log_messages_come_on_their_calls_stream() {
    for revision in REVISIONS {
        let stage = Stage::new().await;
        let user = stage.user(revision).await;
        user.level("debug").await.result();
        let (stream, call) = stage.begin(&user).await;
        let meta = format!(r#""_meta":{{"{META}serverInfo":{{"name":"a","version":"b"}},"own":1}}"#);
        call.event(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","logger":"l","data":{{"n":1.50}},{meta}}}}}"#
        ));
        stream.wait(1).await;
        call.event(r#"{"jsonrpc":"2.0","method":"notifications/acme/x","params":{"k":"v"}}"#);
        call.completes("done");
        stream.result().await;
        assert_eq!(
            stream.briefs(),
            ["notifications/message", "notifications/acme/x", "answer"],
            "{revision}"
        );
        let told = &stream.messages()[0]["params"];
        assert_eq!(told["data"], json!({"n": 1.5}));
        assert_eq!(told["_meta"], json!({"own": 1}), "{revision}: other keys stay");
    }
}

#[tokio::test(start_paused = true)]
async fn d111_legacy_task_param_ignored() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    let ask = user
        .old
        .call("echo", "{}")
        .member("task", r#"{"ttl":60000}"#)
        .member("inputResponses", r#"{"k":{"action":"accept"}}"#)
        .member("requestState", r#""mine""#);
    let (opening, call) = stage.start(&user, &ask).await;
    for word in ["task", "inputResponses", "requestState"] {
        assert_eq!(call.params().get(word), None, "{word}");
    }
    call.completes("plain");
    let result = crate::stage::opened(opening).await.result().await;
    assert_eq!(result, json!({"content": [{"type": "text", "text": "plain"}]}));
}

/// A1.3, A1.9, A1.15: methods of the other era, and of tasks, are not served.
#[tokio::test(start_paused = true)]
async fn a1_methods_of_the_other_era_stay_here() {
    let stage = Stage::before(ModernServer::full()).await;
    for revision in REVISIONS {
        let user = stage.user(revision).await;
        for (method, params) in [
            ("server/discover", ""),
            ("subscriptions/listen", r#""notifications":{"toolsListChanged":true}"#),
            ("tasks/get", r#""taskId":"t""#),
            ("tasks/result", r#""taskId":"t""#),
            ("tasks/list", ""),
            ("tasks/cancel", r#""taskId":"t""#),
            ("tasks/update", r#""taskId":"t","inputResponses":{}"#),
        ] {
            let done = stage.unmoved(user.send(&user.old.ask(method).params(params).id("7"))).await;
            assert_eq!((done.status, done.code()), (200, -32601), "{revision} {method}: {}", done.raw);
        }
        assert!(user.lives().await, "{revision}");
    }
}

/// A1.16, A2.11: methods and notifications that neither era knows go on.
#[tokio::test(start_paused = true)]
async fn a1_16_custom_methods_go_on() {
    let own = r#"{"resultType":"complete","v":1.50,"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"n","version":"v"},"k":1}}"#;
    let stage = Stage::before(ModernServer::full().result("acme/x", own)).await;
    let user = stage.latest().await;
    let done = user.send(&user.old.ask("acme/x").params(r#""a":{"b":2.50}"#).id("\"7\"")).await;
    assert_eq!(done.raw, r#"{"jsonrpc":"2.0","id":"7","result":{"v":1.50,"_meta":{"k":1}}}"#);
    assert!(stage.up.only("acme/x").text().contains(r#""a":{"b":2.50}"#));
    user.send(&user.old.ask("acme/y")).await.is_answered_error(-32601);
    let told = user.old.note("notifications/acme").params(r#""z":1"#);
    assert_eq!(stage.proxy.send(&told).await.status, 202);
    let seen = stage.up.wait("notifications/acme", 1).await.remove(0);
    assert_eq!(seen.header("mcp-method").as_deref(), Some("notifications/acme"));
    assert_eq!(seen.header("mcp-protocol-version").as_deref(), Some("2026-07-28"));
    assert_eq!(seen.json()["params"]["z"], 1);
}

/// A2.1, A2.3, A2.7: notifications of a session are the proxy's.
#[tokio::test(start_paused = true)]
async fn a2_a_sessions_own_notifications_stay_here() {
    let stage = Stage::before(ModernServer::full()).await;
    let user = stage.latest().await;
    let notes = [
        user.old.note("notifications/initialized"),
        user.old.note("notifications/roots/list_changed"),
        user.old.note("notifications/progress").params(r#""progressToken":5,"progress":1"#),
        user.old.note("notifications/cancelled").params(r#""requestId":101"#),
        user.old.note("notifications/cancelled"),
    ];
    for note in notes {
        let done = stage.unmoved(stage.proxy.send(&note)).await;
        assert_eq!((done.status, done.raw.as_str()), (202, ""), "{}", note.method);
    }
}

/// C18, C20: ids of every kind come back as they were, and two requests under one id each get their own.
#[tokio::test(start_paused = true)]
async fn c18_ids_come_back_as_they_were() {
    let server = ModernServer::full().on("tools/call", |seen, reply: Reply| async move {
        let n = seen.json()["params"]["arguments"]["n"].as_u64().unwrap();
        pass(100 - n * 10).await;
        let members = format!(r#""content":[],"n":{n}"#);
        reply.result(&seen, &modern::complete("tools/call", &members)).await;
    });
    let stage = Stage::before(server).await;
    let user = stage.latest().await;
    let long = format!("\"{}\"", "l".repeat(200));
    let ids = [r#""1""#, "1", r#""init-1""#, r#""""#, r#""0""#, "0", "-1", &long, "9007199254740993"];
    for id in ids {
        for ask in [user.old.ask("tools/list").id(id), user.old.ask("acme/none").id(id)] {
            // The id as it was written is looked at on every exchange.
            let done = user.send(&ask).await;
            assert_eq!(rpc::id(done.raw.as_bytes()).as_deref(), Some(id), "{}", done.raw);
        }
    }
    let mut running = Vec::new();
    for n in 0..8u64 {
        let ask = user.old.call("echo", &format!(r#"{{"n":{n}}}"#)).id("1");
        let user = user.clone();
        running.push((n, tokio::spawn(async move { user.open(&ask).await.result().await })));
    }
    for (n, running) in running {
        assert_eq!(running.await.unwrap()["n"], n);
    }
}

#[tokio::test(start_paused = true)]
async fn c21_no_id_and_no_id_at_all() {
    let stage = Stage::before(ModernServer::full()).await;
    let user = stage.latest().await;
    let none = user.old.raw(r#"{"jsonrpc":"2.0","method":"tools/list"}"#);
    let done = stage.unmoved(stage.proxy.send(&none)).await;
    assert!(done.status == 202 && done.raw.is_empty() || (400..500).contains(&done.status), "{}", done.raw);
    assert!(!done.raw.contains("result"), "{}", done.raw);
    let null = user.old.raw(r#"{"jsonrpc":"2.0","id":null,"method":"tools/list"}"#);
    stage.unmoved(stage.proxy.send(&null)).await.is_error(400, -32600);
    assert!(user.lives().await);
}

#[tokio::test(start_paused = true)]
async fn c32_params_that_are_null_or_no_object() {
    let stage = Stage::before(ModernServer::full()).await;
    let user = stage.latest().await;
    for good in [
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":null}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"_meta":{}}}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":null}}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo"}}"#,
    ] {
        let done = stage.proxy.send(&user.old.raw(good)).await;
        assert!(done.message.get("result").is_some(), "{good}: {} {}", done.status, done.raw);
        assert_eq!(done.message["id"], 7);
    }
    for bad in [
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":[]}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":"x"}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":[1]}"#,
    ] {
        let done = stage.unmoved(stage.proxy.send(&user.old.raw(bad))).await;
        assert!([-32600, -32602].contains(&done.code()), "{bad}: {}", done.raw);
        assert_eq!(done.message["id"], 7, "{bad}");
    }
    assert!(user.lives().await);
}

/// C25: a client takes what it says that it takes; the server is always told both.
#[tokio::test(start_paused = true)]
async fn c25_what_a_client_takes() {
    let stage = Stage::before(ModernServer::full()).await;
    let user = stage.latest().await;
    let json_only = ["application/json", "application/*;q=0.5, text/event-stream;q=0"];
    for accept in json_only {
        for ask in [user.old.ask("tools/list"), user.old.call("echo", "{}")] {
            let done = user.send(&ask.header("Accept", accept)).await;
            done.result();
            assert_eq!(done.headers.media_type().as_deref(), Some("application/json"), "{accept}");
        }
    }
    for accept in ["*/*", "application/json, text/event-stream", "text/event-stream, application/json;q=0.1"]
    {
        user.send(&user.old.call("echo", "{}").header("Accept", accept)).await.result();
    }
    user.send(&user.old.call("echo", "{}").without("Accept")).await.result();
    let sse = user.send(&user.old.call("echo", "{}").header("Accept", "text/event-stream")).await;
    sse.result();
    assert_eq!(sse.headers.media_type().as_deref(), Some("text/event-stream"));
    let none = user.old.ask("tools/list").header("Accept", "image/png").id("7");
    assert_eq!(stage.unmoved(stage.proxy.send(&none)).await.status, 406);
    let get = user.old.get().header("Accept", "application/json");
    assert_eq!(stage.proxy.send(&get).await.status, 406);
}

/// A13.10: credentials go by the setting, with every request that is made for the client.
#[tokio::test(start_paused = true)]
async fn a13_10_credentials_go_by_the_settings() {
    let fixed = "authorization = { value = \"Bearer own\" }";
    for (lines, wanted) in
        [("", Some("Bearer alice")), ("authorization = \"strip\"", None), (fixed, Some("Bearer own"))]
    {
        let stage = Stage::before_with(ModernServer::full(), lines).await;
        let user = stage.user_as("alice").await;
        user.list("tools/list").await;
        user.subscribe("file:///x").await.result();
        user.send(&user.old.note("notifications/acme")).await;
        pass(1000).await;
        assert!(stage.listens.now() > 0, "{lines}");
        for seen in stage.up.requests() {
            assert_eq!(seen.header("authorization").as_deref(), wanted, "{lines}: {}", seen.brief());
        }
    }
}

/// A4.5, A14.4: the server gets a token of the proxy's own, and the client hears its own again.
#[tokio::test(start_paused = true)]
async fn a4_5_progress_tokens_are_each_sides_own() {
    let stage = Stage::new().await;
    let (one, two) = (stage.latest().await, stage.latest().await);
    let ask = |user: &User, token: &str| user.old.call("ask", "{}").meta("progressToken", token);
    let mut streams = Vec::new();
    for (user, token) in [(&one, r#""t""#), (&two, r#""t""#), (&one, "7")] {
        streams.push((stage.begin_at(user, &ask(user, token)).await, parse(token)));
    }
    let tokens: Vec<_> = streams.iter().map(|((_, call), _)| call.meta("progressToken")).collect();
    assert!(tokens[0] != tokens[1] && tokens[1] != tokens[2], "{tokens:?}");
    for (n, ((stream, call), token)) in streams.iter().enumerate() {
        // 3, 2, 4: what does not increase is dropped.
        for progress in [3, 2, 4] {
            call.progress(progress + n as u32);
        }
        call.completes("done");
        stream.result().await;
        let heard = stream.notes("notifications/progress");
        let seen: Vec<_> = heard.iter().map(|note| note["params"]["progress"].as_u64().unwrap()).collect();
        assert_eq!(seen, [3 + n as u64, 4 + n as u64]);
        assert!(heard.iter().all(|note| note["params"]["progressToken"] == *token));
    }
    // Nobody asked for it: nothing is sent.
    let (stream, call) = stage.begin(&one).await;
    assert_eq!(call.meta("progressToken"), json!(null));
    call.completes("done");
    stream.result().await;
}

/// C27: which version a session's requests may name.
#[tokio::test(start_paused = true)]
async fn c27_versions_that_a_session_may_name() {
    let stage = Stage::before(ModernServer::full()).await;
    let user = stage.user("2025-06-18").await;
    for bad in ["1999-01-01", "foobar", "2026-13-01"] {
        let done = stage.proxy.send(&user.old.ask("tools/list").header("MCP-Protocol-Version", bad)).await;
        assert_eq!(done.status, 400, "{bad}: {}", done.raw);
    }
    let two = user.old.ask("tools/list").add_header("MCP-Protocol-Version", b"2025-11-25");
    assert_eq!(stage.proxy.send(&two).await.status, 400);
    // None at all: the session knows.
    user.send(&user.old.ask("tools/list").without("MCP-Protocol-Version")).await.result();
    user.list("tools/list").await;
    // D69: whatever else, the outcome of a handshake is never a modern version.
    let done = stage.proxy.send(&Old::initialize("2026-07-28")).await;
    assert_eq!(done.result()["protocolVersion"], LATEST);
}

/// A modern request is one whatever session it names.
#[tokio::test(start_paused = true)]
async fn a13_4_a_modern_request_has_no_session() {
    let stage = Stage::before(ModernServer::full()).await;
    let user = stage.latest().await;
    let ask: Ask =
        crate::support::list("tools/list").header("Mcp-Session-Id", user.session()).id("\"modern\"");
    let done = stage.proxy.send(&ask).await;
    assert_eq!(done.result()["resultType"], "complete");
}
