//! Faults that a review found and that are mended, as in `mended`: places, deadlines, and what is too long or too much.

use tokio::time::{Duration, Instant};

use crate::mended::{BATCHES, array, call};
use crate::stage::{ACCEPT, FORM, ROOTED, ROOTS, SAMPLE, SAMPLED, Stage, opened};
use crate::support::{Calls, ModernServer, json, pass, rpc};

/// Each call of an array has a place of its own, and keeps it when its client is gone (`limits.requests`).
#[tokio::test(start_paused = true)]
async fn inv5_calls_of_an_array_have_places() {
    for accept in ["application/json", "application/json, text/event-stream"] {
        let stage = Stage::bounded("limits = { requests = 2 }", "").await;
        let user = stage.user(BATCHES).await;
        let ask = array(&user, &[call("1"), call("2")]).header("Accept", accept);
        let asked = tokio::spawn({
            let user = user.clone();
            async move { user.open(&ask).await }
        });
        let (one, two) = (stage.calls.marked(1).await, stage.calls.marked(2).await);
        asked.abort();
        pass(2000).await;
        assert!(one.is_open() && two.is_open(), "{accept}: a disconnect is no cancel");
        let refused = stage.proxy.open(&user.old.ask("tools/list").id("9")).await;
        assert_eq!((refused.status, refused.headers.has("retry-after")), (503, true), "{accept}");
        one.completes("done");
        two.completes("done");
        pass(2000).await;
        user.list("tools/list").await;
    }
}

/// What of an array finds no place is told so; the others run.
#[tokio::test(start_paused = true)]
async fn inv5_an_array_with_more_calls_than_places() {
    let stage = Stage::bounded("limits = { requests = 3 }", "").await;
    let user = stage.user(BATCHES).await;
    let all: Vec<_> = (1..=8).map(|n| call(&n.to_string())).collect();
    let ask = array(&user, &all).header("Accept", "application/json");
    let asked = tokio::spawn({
        let user = user.clone();
        async move { user.open(&ask).await }
    });
    pass(5000).await;
    let running = stage.calls.all();
    assert!((1..=3).contains(&running.len()), "{} at once", running.len());
    running.iter().for_each(|call| call.completes("done"));
    let stream = opened(asked).await;
    let answers = stream.answers(8).await;
    let served = answers.iter().filter(|answer| answer.get("result").is_some()).count();
    assert_eq!(served, running.len());
    assert!(answers.iter().all(|answer| answer.get("result").is_some() || answer["error"]["code"] == -32603));
}

/// Invariant 5: a client that reads no more holds up neither the deadline of its call nor anybody's place.
#[tokio::test(start_paused = true)]
async fn inv5_a_client_that_reads_no_more() {
    let stage = Stage::bounded("limits = { requests = 1 }", "timeouts.request = \"20s\"").await;
    let user = stage.latest().await;
    user.level("debug").await.result();
    let answer = stage.proxy.open(&user.old.call("ask", "{}")).await;
    let call = stage.calls.wait(1).await;
    for n in 0..3000 {
        call.log("info", &format!("{n} {}", "x".repeat(4000)));
    }
    let began = Instant::now();
    while call.is_open() && began.elapsed() < Duration::from_secs(600) {
        pass(1000).await;
    }
    assert!(!call.is_open(), "the server is not held for ever");
    assert!(began.elapsed() <= Duration::from_secs(60), "{:?}", began.elapsed());
    let mut status = 503;
    for _ in 0..60 {
        let ask = user.old.ask("tools/list").id("2");
        status = stage.proxy.open(&ask).await.status;
        if status == 200 {
            break;
        }
        pass(1000).await;
    }
    assert_eq!(status, 200, "its place is free again");
    drop(answer);
}

/// The same in the middle of a round: an answer that is there is taken, whatever else waits for the client to read.
#[tokio::test(start_paused = true)]
async fn inv5_an_answer_gets_past_what_is_not_read() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    user.level("debug").await.result();
    let mut answer = stage.proxy.open(&user.old.call("ask", "{}")).await;
    let first = stage.calls.wait(1).await;
    for n in 0..120 {
        first.log("info", &format!("{n} {}", "x".repeat(1000)));
    }
    first.asks(&[("k", ROOTS)], Some(r#""S""#));
    let mut question = json!(null);
    while question.is_null() {
        let event = answer.event().await.expect("a question");
        let message = rpc::value(event.data.as_bytes()).unwrap_or(json!(null));
        if message["method"] == "roots/list" {
            question = message;
        }
    }
    user.answer(&question, ROOTED).await;
    let second = stage.retried(1).await;
    // From here on nothing is read.
    for n in 0..3000 {
        second.log("info", &format!("{n} {}", "x".repeat(4000)));
    }
    pass(5000).await;
    user.cancel("1").await;
    pass(5000).await;
    assert!(!second.is_open(), "a cancellation gets past it, too");
    drop(answer);
}

/// D94: a large result to a client that could have been asked comes on a stream as any other, and can be taken up.
#[tokio::test(start_paused = true)]
async fn d94_large_results_too() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    let (opening, call) = stage.start(&user, &user.old.call("ask", "{}")).await;
    call.completes_with(&format!(r#""content":[{{"type":"text","text":"{}"}}]"#, "x".repeat(300_000)));
    let stream = opened(opening).await;
    assert!(stream.is_stream(), "{:?}", stream.headers);
    stream.result().await;
    assert!(!stream.last_id().is_empty());
}

/// What a client writes in a body does not become a header of any size, and the refusal is no sign of an era.
#[tokio::test(start_paused = true)]
async fn inv5_values_that_are_too_long_for_a_header() {
    let tool = r#"{"name":"t","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}}"#;
    let calls = Calls::new();
    let server = calls.of_modern(ModernServer::full().tools(tool));
    let stage = Stage::build(server, calls, crate::support::Listens::open(), "", "").await;
    let user = stage.latest().await;
    let long = "é".repeat(20_000);
    let asks = [
        user.old.ask("resources/read").params(&format!(r#""uri":"file:///{long}""#)),
        user.old.ask("prompts/get").params(&format!(r#""name":"{long}""#)),
        user.old.call(&long, "{}"),
        user.old.call("t", &format!(r#"{{"a":"{long}"}}"#)),
        user.old.ask(&"m".repeat(30_000)),
    ];
    for ask in asks {
        let done = user.send(&ask.id("7")).await;
        assert_eq!(done.status, 200, "{}", &done.raw[..done.raw.len().min(300)]);
        assert!([-32602, -32601].contains(&done.code()), "{}", &done.raw[..done.raw.len().min(300)]);
    }
    assert_eq!(stage.calls.all().len(), 0, "none of them is sent");
    for seen in stage.up.requests() {
        assert!(seen.headers.0.iter().all(|(_, value)| value.len() <= 16 * 1024), "{}", seen.brief());
    }
    assert!(user.lives().await);
    assert_eq!(stage.metric("mcp_janus_era_contradictions_total", &[]), 0.0);
}

/// `limits.question_bytes`: the answers of one round are bounded together, as its questions are.
#[tokio::test(start_paused = true)]
async fn inv5_answers_of_a_round_are_bounded() {
    let stage = Stage::with("limits.question_bytes = \"64KiB\"").await;
    let user = stage.latest().await;
    let long = SAMPLED.replace("yes", &"y".repeat(30_000));
    let stream = stage
        .asked(&user, &[("a", SAMPLE), ("b", SAMPLE), ("c", SAMPLE), ("d", SAMPLE)], Some(r#""S""#))
        .await;
    for question in stream.questions(4).await {
        user.answer(&question, &long).await;
    }
    stream.tool_error().await;
    stage.is_over(1).await;
    // What fits goes.
    let stream = stage.asked(&user, &[("a", SAMPLE), ("b", FORM)], Some(r#""S""#)).await;
    for question in stream.questions(2).await {
        let answer = if question["method"] == "elicitation/create" { ACCEPT } else { &long };
        user.answer(&question, answer).await;
    }
    stage.retried(2).await.completes("done");
    stream.result().await;
}
