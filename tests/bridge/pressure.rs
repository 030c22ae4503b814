//! Architecture, invariant 5, and `limits`: clients that read slowly or not at all, places that are taken, and what is known of
//! tools.

use crate::stage::{LATEST, ROOTED, ROOTS, Stage};
use crate::support::{Calls, Listens, ModernServer, Reply, modern, pass, rpc};

/// A client that does not read slows the server down, and loses nothing of what it was sent.
#[tokio::test(start_paused = true)]
async fn inv5_a_client_that_does_not_read() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    user.level("debug").await.result();
    let ask = user.old.call("ask", "{}");
    let mut answer = stage.proxy.open(&ask).await;
    let call = stage.calls.wait(1).await;
    let text = "x".repeat(4000);
    let total = 5000;
    for n in 0..total {
        call.log("info", &format!("{n} {text}"));
    }
    call.completes("done");
    pass(60_000).await;
    let written = call.written();
    assert!(written < total * 1000, "{written} bytes were taken for a client that reads nothing");
    let mut next = 0;
    loop {
        let event = answer.event().await.expect("the answer before the end");
        if event.data.is_empty() {
            continue;
        }
        let message = rpc::value(event.data.as_bytes()).unwrap();
        if message.get("result").is_some() {
            break;
        }
        let data = message["params"]["data"].as_str().unwrap();
        assert!(data.starts_with(&format!("{next} ")), "in order, none lost: {next}");
        next += 1;
    }
    assert_eq!(next, total);
}

/// Without a client nobody is waited for: the call comes to its end.
#[tokio::test(start_paused = true)]
async fn b14_a_client_that_is_away_slows_nothing() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    user.level("debug").await.result();
    let (stream, call) = stage.begin(&user).await;
    let last = stream.last_id();
    stream.drop_connection().await;
    for n in 0..5000 {
        call.log("info", &format!("{n} {}", "x".repeat(1000)));
    }
    call.completes("done");
    pass(10_000).await;
    stage.is_over(1).await;
    let resumed = user.resume(&last).await;
    assert_eq!(resumed.result().await["content"][0]["text"], "done");
    assert!(resumed.messages().len() <= 256, "session.replay_events: {}", resumed.messages().len());
}

/// A stream of changes that is not read keeps one of each kind.
#[tokio::test(start_paused = true)]
async fn b9_8_changes_that_are_not_read() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    let mut answer = stage.proxy.open(&user.old.get()).await;
    stage.listens.wait(1).await;
    pass(1000).await;
    for _ in 0..20_000 {
        stage.listens.tell("tools");
        stage.listens.tell("prompts");
    }
    pass(10_000).await;
    let mut heard = 0;
    while let Ok(Some(event)) = tokio::time::timeout(std::time::Duration::from_secs(10), answer.event()).await
    {
        heard += usize::from(!event.data.is_empty());
    }
    assert!((2..20_000).contains(&heard), "{heard} of 40000");
    stage.listens.tell("resources");
    let event = answer.event().await.unwrap();
    assert!(event.data.contains("resources"), "{}", event.data);
}

/// `limits.requests`: a call that goes on without its client still has its place.
#[tokio::test(start_paused = true)]
async fn inv5_a_call_without_its_client_has_its_place() {
    let stage = Stage::bounded("limits = { requests = 1 }", "").await;
    let user = stage.latest().await;
    let (stream, call) = stage.begin(&user).await;
    stream.drop_connection().await;
    let refused = stage.proxy.open(&user.old.ask("tools/list").id("2")).await;
    assert_eq!((refused.status, refused.headers.has("retry-after")), (503, true));
    call.completes("done");
    pass(1000).await;
    user.list("tools/list").await;
}

/// `limits.catalog_tools`, `limits.catalogs`: what is not known is asked for; it is never guessed (B6.1, C67).
#[tokio::test(start_paused = true)]
async fn b6_1_tools_that_are_not_known_any_more() {
    let tools: Vec<_> = (0..6)
        .map(|n| {
            format!(
                r#"{{"name":"t{n}","inputSchema":{{"type":"object","properties":{{"a":{{"type":"string","x-mcp-header":"A{n}"}}}}}},"outputSchema":{{"type":"array"}}}}"#
            )
        })
        .collect();
    let server =
        ModernServer::full().tools(&tools.join(",")).on("tools/call", |seen, reply: Reply| async move {
            let name = seen.json()["params"]["name"].as_str().unwrap().to_owned();
            if !seen.headers.has(&format!("mcp-param-{}", name.replace('t', "a"))) {
                return reply.error(400, &seen, r#"{"code":-32020,"message":"Header mismatch"}"#).await;
            }
            let members = r#""content":[],"structuredContent":[1]"#;
            reply.result(&seen, &modern::complete("tools/call", members)).await;
        });
    for lines in ["limits.catalog_tools = 2", "limits.catalogs = 1", ""] {
        let stage = Stage::build(server.clone(), Calls::new(), Listens::open(), "", lines).await;
        let (alice, bob) = (stage.user_as("alice").await, stage.user_as("bob").await);
        for n in [0, 5, 3, 0, 5] {
            for user in [&alice, &bob] {
                let done = user.send(&user.old.call(&format!("t{n}"), r#"{"a":"v"}"#)).await;
                let shown = &done.result()["structuredContent"];
                assert_eq!(*shown, serde_json::json!({"result": [1]}), "{lines}: t{n}: {}", done.raw);
            }
        }
    }
}

/// Answers must get through when all places are taken by the calls that wait for them.
#[tokio::test(start_paused = true)]
async fn b2_answers_find_a_place() {
    let stage = Stage::bounded("limits = { requests = 3 }", "").await;
    let user = stage.user(LATEST).await;
    let mut streams = Vec::new();
    for n in 0..3 {
        let ask = user.old.call("ask", "{}").id(&n.to_string());
        streams.push(stage.asked_at(&user, &ask, &[("k", ROOTS)], Some(r#""S""#)).await);
    }
    for stream in &streams {
        let question = stream.question().await;
        let done = stage.proxy.open(&user.old.answer(&question["id"].to_string(), ROOTED)).await;
        assert_eq!(done.status, 202, "an answer that frees a place");
    }
    for n in 4..=6 {
        stage.calls.wait(n).await.completes("done");
    }
    for stream in &streams {
        stream.result().await;
    }
}

/// The headers that a setting adds or lets through are on every request of a call.
#[tokio::test(start_paused = true)]
async fn a13_10_headers_of_the_settings() {
    let lines = "headers = { X-Key = \"k\" }\nforward_headers = [\"X-Id\"]";
    let stage = Stage::with(lines).await;
    let user = stage.latest().await;
    let ask = user.old.call("ask", "{}").header("X-Id", "of the call").header("X-Other", "1");
    let stream = stage.asked_at(&user, &ask, &[("k", ROOTS)], Some(r#""S""#)).await;
    let question = stream.question().await;
    let answer = user.old.answer(&question["id"].to_string(), ROOTED).header("X-Id", "of the answer");
    assert_eq!(stage.proxy.send(&answer).await.status, 202);
    stage.retried(1).await.completes("done");
    stream.result().await;
    for call in stage.calls.all() {
        assert_eq!(call.seen.header("x-id").as_deref(), Some("of the call"));
    }
    for seen in stage.up.requests() {
        assert_eq!(seen.header("x-key").as_deref(), Some("k"), "{}", seen.brief());
        assert_eq!(seen.header("x-other"), None, "{}", seen.brief());
    }
}
