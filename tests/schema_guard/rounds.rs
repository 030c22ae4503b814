//! Forms in later rounds, of other methods, beside a call, and on streams that are taken up again.

use std::sync::Arc;

use crate::stage::{Cell, FORMS_REFUSED, LATEST, metric, toml};
use crate::support::questions::{ACCEPT, ALL, elicit, request, sample};
use crate::support::{
    Ask, Calls, Era, Gets, LegacyServer, ModernServer, Net, Old, Proxy, Reply, Round, Transport, User, Value,
    call, get_prompt, json, pass, read, rpc, within,
};

const BAD: &str = r#"{"message":"m","requestedSchema":{"type":"object","properties":{"n":{"type":"string","$ref":"https://canary.test/x"}}}}"#;
const GOOD: &str =
    r#"{"message":"m","requestedSchema":{"type":"object","properties":{"n":{"type":"string"}}}}"#;

fn entry(params: &str) -> String {
    format!(r#"{{"method":"elicitation/create","params":{params}}}"#)
}

/// Each method that may ask, of a modern server.
#[tokio::test(start_paused = true)]
async fn c62_every_method_that_may_ask() {
    for ask in [call("ask", "{}"), get_prompt("p"), read("file:///x")] {
        let (net, calls) = (Net::new(), Calls::new());
        calls.of_modern(ModernServer::full()).start(&net);
        let proxy = Proxy::start(&net).await;
        let client = proxy.spawn(&ask.clone().caps(ALL));
        calls.wait(1).await.asks(&[("k", &entry(BAD))], Some(r#""S""#));
        let done = within("an answer", client).await.unwrap();
        assert_eq!(done.code(), -32603, "{}: {}", ask.method, done.raw);

        let (net, calls) = (Net::new(), Calls::new());
        calls.of_modern(ModernServer::full()).start_bridged(&net);
        let proxy = Arc::new(Proxy::start(&net).await);
        let user = User::begin(&proxy, "2025-11-25").await;
        let old: Ask = match ask.method.as_str() {
            "tools/call" => user.old.call("ask", "{}"),
            "prompts/get" => user.old.ask("prompts/get").params(r#""name":"p""#),
            _ => user.old.ask("resources/read").params(r#""uri":"file:///x""#),
        };
        let asking = {
            let (user, old) = (user.clone(), old.clone());
            tokio::spawn(async move { user.open(&old).await })
        };
        calls.wait(1).await.asks(&[("k", &entry(BAD))], Some(r#""S""#));
        let stream = within("an answer", asking).await.unwrap();
        let answer = stream.answer().await;
        let failed = answer.get("error").is_some() || answer["result"]["isError"] == true;
        assert!(failed, "{}: {answer}", ask.method);
        assert_eq!(stream.asked(), 0, "{}", ask.method);
    }
}

/// D85: what is asked after a good form is looked at like the first.
#[tokio::test(start_paused = true)]
async fn d85_a_bad_form_in_the_second_round() {
    // Between modern peers.
    let (net, calls) = (Net::new(), Calls::new());
    calls.of_modern(ModernServer::full()).start(&net);
    let proxy = Proxy::start(&net).await;
    let ask = call("ask", "{}").caps(ALL);
    let client = proxy.spawn(&ask);
    calls.wait(1).await.asks(&[("k", &entry(GOOD))], Some(r#""S""#));
    let round = Round::of(&ask, within("a round", client).await.unwrap());
    let client = proxy.spawn(&round.answer("2", ACCEPT));
    calls.wait(2).await.asks(&[("k", &entry(BAD))], Some(r#""S""#));
    assert_eq!(within("an answer", client).await.unwrap().code(), -32603);

    // A legacy client.
    let (net, calls) = (Net::new(), Calls::new());
    calls.of_modern(ModernServer::full()).start_bridged(&net);
    let proxy = Arc::new(Proxy::start(&net).await);
    let user = User::begin(&proxy, "2025-11-25").await;
    let asking = {
        let user = user.clone();
        tokio::spawn(async move { user.call("ask", "{}").await })
    };
    calls.wait(1).await.asks(&[("k", &entry(GOOD))], Some(r#""S""#));
    let stream = within("a question", asking).await.unwrap();
    user.answer(&stream.question().await, ACCEPT).await;
    calls.wait(2).await.asks(&[("k", &entry(BAD))], Some(r#""S""#));
    let answer = stream.answer().await;
    assert!(answer.get("error").is_some() || answer["result"]["isError"] == true, "{answer}");
    assert_eq!(stream.asked(), 1);
    pass(1000).await;
    assert_eq!(calls.all().len(), 2);

    // A legacy server.
    let (net, calls) = (Net::new(), Calls::new());
    let up = calls.of(LegacyServer::telling()).start(&net);
    let proxy = Proxy::start(&net).await;
    let client = proxy.spawn(&ask);
    let at = calls.wait(1).await;
    at.event(&elicit("7", "m"));
    let round = Round::of(&ask, within("a round", client).await.unwrap());
    let client = proxy.spawn(&round.answer("2", ACCEPT));
    up.wait("response", 1).await;
    at.event(&request("8", "elicitation/create", BAD));
    let refused = up.wait("response", 2).await[1].json();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(8), &json!(-32602)));
    at.finish("the end");
    assert_eq!(within("an answer", client).await.unwrap().result()["resultType"], "complete");
}

/// A bad form among good questions is refused alone.
#[tokio::test(start_paused = true)]
async fn c62_a_bad_form_beside_another_question() {
    let (net, calls) = (Net::new(), Calls::new());
    let up = calls.of(LegacyServer::telling()).start(&net);
    let proxy = Arc::new(Proxy::start(&net).await);
    let user = User::begin(&proxy, "2025-11-25").await;
    let asking = {
        let user = user.clone();
        tokio::spawn(async move { user.call("ask", "{}").await })
    };
    let at = calls.wait(1).await;
    at.event(&sample("1", "before"));
    at.event(&request("2", "elicitation/create", BAD));
    at.event(&elicit("3", "behind"));
    let stream = within("questions", asking).await.unwrap();
    let asked = stream.questions(2).await;
    assert_eq!((&asked[0]["id"], &asked[1]["id"]), (&json!(1), &json!(3)));
    let told = up.wait("response", 1).await[0].json();
    assert_eq!((&told["id"], &told["error"]["code"]), (&json!(2), &json!(-32602)));
    user.answer(&asked[1], ACCEPT).await;
    assert_eq!(up.wait("response", 2).await[1].json()["id"], 3);
    at.finish("the end");
    assert_eq!(stream.result().await["content"][0]["text"], "the end");
    assert_eq!(metric(&proxy, FORMS_REFUSED, &[]), 1.0);
}

/// A modern client's call, whose server asks on another stream than the call's.
#[tokio::test(start_paused = true)]
async fn c62_beside_the_call_of_a_modern_client() {
    for to in [Transport::Http, Transport::HttpSse, Transport::Stdio] {
        let (net, calls, gets) = (Net::new(), Calls::new(), Gets::open());
        let server = calls.of(gets.of(LegacyServer::telling()));
        let up = match to {
            Transport::Http => server.start(&net),
            Transport::HttpSse => server.start_old_sse(&net),
            Transport::Stdio => server.start_program(&net, "server"),
        };
        let cell = Cell { client: Era::Modern, from: Transport::Http, server: LATEST, to };
        let proxy = Proxy::configured(&net, &toml(cell, "", "", "")).await;
        let client = proxy.spawn(&call("ask", "{}").caps(ALL));
        let at = calls.wait(1).await;
        gets.wait(1).await;
        gets.tell(&request("7", "elicitation/create", BAD));
        let told = up.wait("response", 1).await[0].json();
        assert_eq!((&told["id"], &told["error"]["code"]), (&json!(7), &json!(-32602)), "{to:?}: {told}");
        at.finish("the end");
        let done = within("an answer", client).await.unwrap();
        assert_eq!(done.result()["resultType"], "complete", "{to:?}: {}", done.raw);
    }
}

/// A13.5: an event that is taken out leaves its id and its time, so that the client can come back behind it.
#[tokio::test(start_paused = true)]
async fn a13_5_the_place_of_a_form_that_is_taken_out_stays() {
    let question = request("9", "elicitation/create", BAD);
    let server = LegacyServer::new()
        .on("tools/call", move |_, mut reply: Reply| {
            let question = question.clone();
            async move {
                reply.stream().await;
                reply.chunk(b"id: p-0\ndata:\n\n").await;
                reply.chunk(format!("retry: 700\nid: p-1\ndata: {question}\n\n").as_bytes()).await;
                reply.end().await;
            }
        })
        .on("GET", |seen, mut reply: Reply| async move {
            let answer = rpc::result_message("7", r#"{"content":[]}"#);
            match seen.header("last-event-id").as_deref() {
                Some("p-1") => {
                    reply.stream().await;
                    reply.chunk(format!("id: p-2\ndata: {answer}\n\n").as_bytes()).await;
                    reply.end().await;
                }
                _ => reply.empty(405).await,
            }
        });
    let (proxy, up) = Proxy::before(&server).await;
    let old = Old::latest(&proxy).await;
    let mut first = proxy.open(&old.call("ask", "{}").id("7")).await;
    let (bytes, _) = first.pieces().await;
    let text = String::from_utf8(bytes).unwrap();
    assert!(!text.contains("elicitation"), "{text}");
    assert!(text.contains("id: p-1") && text.contains("retry: 700"), "{text:?}");
    assert_eq!(up.wait("response", 1).await[0].json()["error"]["code"], -32602);
    let mut resumed = proxy.open(&old.get().header("Last-Event-ID", "p-1")).await;
    assert_eq!(resumed.message().await["result"], json!({"content": []}));
}

/// The same question replayed on a stream that is taken up again is refused again, and never seen.
#[tokio::test(start_paused = true)]
async fn a13_5_a_form_on_a_stream_that_is_taken_up() {
    let question = request("9", "elicitation/create", BAD);
    let server = LegacyServer::new()
        .on("tools/call", |_, mut reply: Reply| async move {
            reply.stream().await;
            reply.chunk(b"id: p-0\nretry: 100\ndata:\n\n").await;
            reply.end().await;
        })
        .on("GET", move |seen, mut reply: Reply| {
            let question = question.clone();
            async move {
                if seen.header("last-event-id").as_deref() != Some("p-0") {
                    return reply.empty(405).await;
                }
                let answer = rpc::result_message("7", r#"{"content":[]}"#);
                reply.stream().await;
                reply
                    .chunk(format!("id: p-1\ndata: {question}\n\nid: p-2\ndata: {answer}\n\n").as_bytes())
                    .await;
                reply.end().await;
            }
        });
    let (proxy, up) = Proxy::before(&server).await;
    let old = Old::latest(&proxy).await;
    proxy.open(&old.call("ask", "{}").id("7")).await.pieces().await;
    let (bytes, _) = proxy.open(&old.get().header("Last-Event-ID", "p-0")).await.pieces().await;
    let text = String::from_utf8(bytes).unwrap();
    assert!(!text.contains("elicitation") && text.contains("\"content\":[]"), "{text}");
    let told: Value = up.wait("response", 1).await[0].json();
    assert_eq!((&told["id"], &told["error"]["code"]), (&json!(9), &json!(-32602)));
}
