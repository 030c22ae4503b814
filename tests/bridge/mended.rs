//! Faults that a review found and that are mended: each test fails on what the program did before. Places and deadlines, answers
//! that were none, sessions that were not told of their end, and what of a client went where it should not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::time::{Duration, Instant};

use crate::stage::{ACCEPT, FORM, LATEST, ROOTED, ROOTS, SAMPLE, SAMPLED, Stage, opened};
use crate::support::net::{Receiver, handler};
use crate::support::{
    Ask, Calls, LegacyServer, ModernServer, Net, Old, Proxy, Reply, User, json, modern, pass, rpc, within,
};

const BATCHES: &str = "2025-03-26";

fn call(id: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"ask","arguments":{{"n":{id}}}}}}}"#
    )
}

fn array(user: &User, messages: &[String]) -> Ask {
    user.old.raw(&format!("[{}]", messages.join(",")))
}

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

/// Invariant 1: a result under no id is nobody's answer.
#[tokio::test(start_paused = true)]
async fn inv1_a_result_without_an_id() {
    let result = |method: &str| match method {
        "tools/list" => modern::complete(method, r#""tools":[]"#),
        _ => modern::complete(method, r#""content":[],"messages":[]"#),
    };
    for method in ["tools/call", "prompts/get", "tools/list"] {
        for id in ["", r#""id":null,"#] {
            for streamed in [false, true] {
                let body = format!(r#"{{"jsonrpc":"2.0",{id}"result":{}}}"#, result(method));
                let server = ModernServer::full().on(method, move |_, mut reply: Reply| {
                    let body = body.clone();
                    async move {
                        if !streamed {
                            return reply.json(200, &body).await;
                        }
                        reply.stream().await;
                        reply.event(&body).await;
                        reply.end().await;
                    }
                });
                let stage = Stage::before(server).await;
                let user = stage.latest().await;
                let params = if method == "tools/list" { "" } else { r#""name":"t""# };
                let stream = user.open(&user.old.ask(method).params(params)).await;
                let answer = stream.answer().await;
                assert_eq!(
                    (&answer["id"], &answer["error"]["code"]),
                    (&json!(1), &json!(-32603)),
                    "{method} {id} {streamed}"
                );
                assert!(method == "tools/list" || stage.up.posts(method).len() == 1);
            }
        }
    }
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

/// Only a request that its client has cancelled goes without an answer: not one whose session ends meanwhile.
#[tokio::test(start_paused = true)]
async fn inv1_a_session_that_ends_under_a_young_request() {
    for capabilities in ["{}", r#"{"roots":{}}"#] {
        for accept in ["application/json", "application/json, text/event-stream"] {
            let stage = Stage::new().await;
            let user = stage.user_with(LATEST, capabilities).await;
            let asked = stage.proxy.spawn(&user.old.call("ask", "{}").header("Accept", accept).id("7"));
            stage.calls.wait(1).await;
            user.delete().await;
            let done = within("an answer", asked).await.unwrap();
            let told = done.status == 404
                || done.message.get("error").is_some()
                || done.message["result"]["isError"] == true;
            assert!(told && done.status != 202, "{capabilities} {accept}: {} {}", done.status, done.raw);
        }
    }
}

/// The same in an array.
#[tokio::test(start_paused = true)]
async fn inv1_a_session_that_ends_under_an_array() {
    for accept in ["application/json", "application/json, text/event-stream"] {
        let stage = Stage::new().await;
        let user = stage.user(BATCHES).await;
        let ask = array(&user, &[call("1"), call("2")]).header("Accept", accept);
        let asked = tokio::spawn({
            let user = user.clone();
            async move { user.open(&ask).await }
        });
        stage.calls.marked(2).await;
        user.delete().await;
        let stream = opened(asked).await;
        stream.end().await;
        if stream.status == 200 {
            let errors = stream.answers(2).await;
            assert!(errors.iter().all(|answer| answer.get("error").is_some()), "{accept}: {errors:?}");
        } else {
            assert_eq!(stream.status, 404, "{accept}: {}", stream.text());
        }
    }
}

/// A look at the era because of one call is no answer to another.
#[tokio::test(start_paused = true)]
async fn inv1_another_call_finds_another_era() {
    let (net, calls) = (Net::new(), Calls::new());
    let (modern, legacy) = (calls.of_modern(ModernServer::full()), LegacyServer::new());
    let replaced = Arc::new(AtomicBool::new(false));
    let is_legacy = replaced.clone();
    net.serve(
        "up.test",
        Receiver::Unchecked,
        handler(move |seen, reply| {
            let (modern, legacy) = (modern.clone(), legacy.clone());
            let is_legacy = is_legacy.load(Ordering::SeqCst);
            async move {
                if is_legacy { legacy.answer(seen, reply).await } else { modern.answer(seen, reply).await }
            }
        }),
    );
    let proxy = Arc::new(Proxy::with(&net, "timeouts.request = \"30s\"").await);
    let user = User::begin_with(&proxy, LATEST, "{}", None).await;
    // Known already, so that a call is a call.
    let warm = tokio::spawn({
        let user = user.clone();
        async move { user.call("ask", "{}").await }
    });
    calls.wait(1).await.completes("done");
    warm.await.unwrap().result().await;
    let one = proxy.spawn(&user.old.call("ask", "{}").id("1").header("Accept", "application/json"));
    calls.wait(2).await;
    let two = proxy.spawn(&user.old.call("ask", "{}").id("2").header("Accept", "application/json"));
    let second = calls.wait(3).await;
    replaced.store(true, Ordering::SeqCst);
    second.whole(400, "");
    for asked in [one, two] {
        let done = within("an answer", asked).await.unwrap();
        let told = done.status == 404 || done.message.get("error").is_some();
        assert!(told, "{} {}", done.status, done.raw);
    }
}

/// Of both eras; the legacy half has no sessions.
fn stateless_too(modern: &ModernServer, net: &Net) {
    let (legacy, modern) = (LegacyServer::new().sessionless(), modern.clone());
    net.serve(
        "up.test",
        Receiver::Unchecked,
        handler(move |seen, mut reply: Reply| {
            let (legacy, modern) = (legacy.clone(), modern.clone());
            async move {
                if seen.header("mcp-protocol-version").as_deref() == Some("2026-07-28") {
                    return modern.answer(seen, reply).await;
                }
                // It does not mind ids that it never gave.
                if seen.session().is_some() && seen.verb == "POST" {
                    let result = r#"{"tools":[],"of":"the legacy half"}"#;
                    return match rpc::id(&seen.body) {
                        Some(_) => reply.result(&seen, result).await,
                        None => reply.empty(202).await,
                    };
                }
                reply = reply.with("X-Half", "legacy");
                legacy.answer(seen, reply).await;
            }
        }),
    );
}

/// A12.13, D82: a lost session is lost, whatever the server would say to its requests.
#[tokio::test(start_paused = true)]
async fn d82_a_lost_session_before_a_stateless_server() {
    let net = Net::new();
    stateless_too(&ModernServer::full(), &net);
    let proxy = Arc::new(Proxy::start(&net).await);
    let user = User::begin(&proxy, LATEST).await;
    user.list("tools/list").await;
    // Another process, which has no key of the first.
    let other = Arc::new(Proxy::start(&net).await);
    other.send(&Old::initialize_with(LATEST, "{}")).await.result();
    for user in [user.at(&other), user.at(&Arc::new(Proxy::start(&net).await))] {
        for ask in [user.old.ask("tools/list"), user.old.get(), user.old.delete()] {
            let done = user.send(&ask).await;
            assert_eq!(done.status, 404, "{} {}: {}", ask.verb, ask.method, done.raw);
        }
    }
    let again = User::begin(&other, LATEST).await;
    again.list("tools/list").await;
}

/// A12.17, A12.21: what a server says to a notification is said in its own status.
#[tokio::test(start_paused = true)]
async fn a12_17_a_notification_that_is_refused() {
    for status in [401, 403, 429] {
        let server = ModernServer::full().on("notifications/acme", move |_, reply: Reply| async move {
            let reply = reply.with("WWW-Authenticate", "Bearer x=\"y\"").with("Retry-After", "7");
            reply.empty(status).await;
        });
        let stage = Stage::before(server).await;
        let user = stage.latest().await;
        let done = stage.proxy.send(&user.old.note("notifications/acme")).await;
        assert_eq!(done.status, status, "{}", done.raw);
        if status == 429 {
            assert_eq!(done.headers.get("retry-after").as_deref(), Some("7"));
        } else {
            assert_eq!(done.headers.get("www-authenticate").as_deref(), Some("Bearer x=\"y\""));
        }
        assert!(user.lives().await);
    }
}

/// B16: an array is never answered by an empty one, and a cancelled request of it not at all.
#[tokio::test(start_paused = true)]
async fn b16_cancelled_within_the_array() {
    for accept in ["application/json", "application/json, text/event-stream"] {
        let stage = Stage::new().await;
        let user = stage.user(BATCHES).await;
        let cancelled = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
        let ask = array(&user, &[call("1"), cancelled.to_owned()]).header("Accept", accept);
        let stream = user.open(&ask).await;
        stream.end().await;
        assert_eq!((stream.status, stream.text().as_str()), (202, ""), "{accept}");
        // Cancelled from outside, before and after the head is out; the other is answered.
        for wait in [10, 5000] {
            let n = stage.calls.all().len();
            let ask = array(&user, &[call("1"), call("2")]).header("Accept", accept);
            let asked = tokio::spawn({
                let user = user.clone();
                async move { user.open(&ask).await }
            });
            stage.calls.wait(n + 2).await;
            pass(wait).await;
            user.cancel("1").await;
            pass(1000).await;
            let other =
                stage.calls.all().into_iter().rev().find(|call| call.argument("n") == json!(2)).unwrap();
            other.completes("done");
            let stream = opened(asked).await;
            stream.end().await;
            let answers = stream.messages();
            assert_eq!(answers.len(), 1, "{accept} {wait}: {answers:?}");
            assert_eq!((&answers[0]["id"], answers[0].get("result").is_some()), (&json!(2), true));
        }
    }
}

/// A try of the other era that was refused for its credential says nothing about the server.
#[tokio::test(start_paused = true)]
async fn a_trial_without_a_credential_decides_nothing() {
    let net = Net::new();
    let (legacy, modern) = (LegacyServer::new(), ModernServer::full());
    net.serve(
        "up.test",
        Receiver::Dual,
        handler(move |seen, reply: Reply| {
            let (legacy, modern) = (legacy.clone(), modern.clone());
            async move {
                if seen.header("authorization").is_none() {
                    return reply.with("WWW-Authenticate", "Bearer x=\"y\"").empty(401).await;
                }
                if seen.header("mcp-protocol-version").as_deref() == Some("2026-07-28") {
                    modern.answer(seen, reply).await;
                } else {
                    legacy.answer(seen, reply).await;
                }
            }
        }),
    );
    let proxy = Proxy::start(&net).await;
    // It is known to be modern.
    proxy.send(&crate::support::list("tools/list").id("\"m\"").bearer("t")).await.result();
    for _ in 0..3 {
        let done = proxy.send(&Old::initialize(LATEST)).await;
        assert_eq!((done.status, done.headers.has("www-authenticate")), (401, true), "{}", done.raw);
    }
    let old = Old::open_as(&proxy, LATEST, Some("t")).await;
    assert_eq!(old.session.as_deref(), Some("S1"), "the pair of like eras");
}

/// A server that never answers `initialize` costs the first client a while, and not its session.
#[tokio::test(start_paused = true)]
async fn a_trial_that_is_never_answered() {
    let net = Net::new();
    ModernServer::full().on("initialize", |_, reply: Reply| reply.never()).start_bridged(&net);
    let proxy = Arc::new(Proxy::with(&net, "timeouts.initialize = \"5s\"").await);
    let began = Instant::now();
    let user = User::begin(&proxy, LATEST).await;
    assert!(began.elapsed() <= Duration::from_secs(11), "{:?}", began.elapsed());
    user.list("tools/list").await;
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

/// A question that is answered in the same array as another is refused is not withdrawn.
#[tokio::test(start_paused = true)]
async fn d88_answered_and_refused_in_one_array() {
    for order in 0..2 {
        let stage = Stage::new().await;
        let user = stage.user(BATCHES).await;
        let stream = stage.asked(&user, &[("a", SAMPLE), ("b", ROOTS)], Some(r#""S""#)).await;
        let questions = stream.questions(2).await;
        let refused = rpc::error_message(&questions[0]["id"].to_string(), r#"{"code":-1,"message":"no"}"#);
        let answer = if questions[1]["method"] == "roots/list" { ROOTED } else { SAMPLED };
        let answered = rpc::result_message(&questions[1]["id"].to_string(), answer);
        let mut both = vec![refused, answered];
        if order == 1 {
            both.reverse();
        }
        assert_eq!(stage.proxy.send(&array(&user, &both)).await.status, 202);
        stream.tool_error().await;
        assert_eq!(stream.notes("notifications/cancelled").len(), 0, "{order}: {:?}", stream.messages());
        stage.is_over(1).await;
    }
}

/// General rule (b): the words of rounds and tasks are nobody's where they have no meaning.
#[tokio::test(start_paused = true)]
async fn a4_words_of_rounds_stay_here_for_every_method() {
    let stage = Stage::before(ModernServer::full().completes("acme/x", r#""k":1"#)).await;
    let user = stage.latest().await;
    for (method, params) in [
        ("tools/list", ""),
        ("prompts/list", ""),
        ("resources/list", ""),
        ("resources/templates/list", ""),
        (
            "completion/complete",
            r#""ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"v"}"#,
        ),
        ("acme/x", ""),
    ] {
        let ask = user
            .old
            .ask(method)
            .params(params)
            .member("inputResponses", r#"{"k":{"action":"accept"}}"#)
            .member("requestState", r#""mine""#);
        let ask = if method == "acme/x" { ask } else { ask.member("task", r#"{"ttl":1}"#) };
        user.send(&ask).await.result();
        let seen = stage.up.only(method).json();
        for word in ["inputResponses", "requestState", "task"] {
            assert_eq!(seen["params"].get(word), None, "{word} on {method}");
        }
    }
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
