//! D71, D72, D111, A1.16, A2.11, A4, A10, A13.2: what a legacy client's request is to a modern server.

use crate::stage::{META, REVISIONS, Stage, declares, parse};
use crate::support::{ModernServer, User, json};

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
