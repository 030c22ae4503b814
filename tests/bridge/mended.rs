//! Faults that a review found and that are mended: each test fails on what the program did before. Answers
//! that were none, sessions that were not told of their end, and what of a client went where it should not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::time::{Duration, Instant};

use crate::stage::{LATEST, ROOTED, ROOTS, SAMPLE, SAMPLED, Stage, opened};
use crate::support::net::{Receiver, handler};
use crate::support::{
    Ask, Calls, LegacyServer, ModernServer, Net, Old, Proxy, Reply, User, json, modern, pass, rpc, within,
};

pub(crate) const BATCHES: &str = "2025-03-26";

pub(crate) fn call(id: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"ask","arguments":{{"n":{id}}}}}}}"#
    )
}

pub(crate) fn array(user: &User, messages: &[String]) -> Ask {
    user.old.raw(&format!("[{}]", messages.join(",")))
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
        user.send(&ask.member("task", r#"{"ttl":1}"#)).await.result();
        let seen = stage.up.only(method).json();
        for word in ["inputResponses", "requestState", "task"] {
            // What a method of neither era takes is between its client and its server.
            assert_eq!(seen["params"].get(word).is_some(), method == "acme/x", "{word} on {method}");
        }
    }
}
