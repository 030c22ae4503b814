//! C11, C13, C14, C17, A11.3, A11.9, A12.17: servers that write as they may, or nearly, and what their legacy clients get.

use std::sync::Arc;

use crate::stage::{ACCEPT, FORM, REVISIONS, ROOTED, ROOTS, Stage, brings, opened};
use crate::support::{Call, ModernServer, Reply, json, modern, pass, rpc};

/// The text of a message over several lines, as some servers write it.
fn pretty(raw: &str) -> String {
    serde_json::to_string_pretty(&serde_json::from_str::<serde_json::Value>(raw).unwrap()).unwrap()
}

fn in_lines(message: &str) -> String {
    let lines: Vec<_> = message.lines().map(|line| format!("data: {line}\n")).collect();
    format!("{}\n", lines.concat())
}

/// Line breaks between members are nothing to JSON, and everything to an event stream.
#[tokio::test(start_paused = true)]
async fn c13_messages_over_several_lines() {
    for revision in REVISIONS {
        for streamed in [false, true] {
            let stage = Stage::new().await;
            let user = stage.user(revision).await;
            user.level("debug").await.result();
            let answer = |call: &Arc<Call>, result: &str| {
                let message = pretty(&rpc::result_message(&call.seen.id(), result));
                if streamed {
                    call.bytes(in_lines(&message).as_bytes());
                    call.end();
                } else {
                    call.whole(200, &message);
                }
            };
            let ask = user.old.call("ask", "{\n\"a\":\r\n1}").meta("progressToken", "\"t\"");
            let (opening, first) = stage.start(&user, &ask).await;
            assert!(!first.seen.text().is_empty());
            if streamed {
                let note = format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{},"progress":1}}}}"#,
                    first.meta("progressToken")
                );
                first.bytes(in_lines(&pretty(&note)).as_bytes());
            }
            answer(&first, &modern::asks(&[("k", crate::stage::SAMPLE)], Some(r#""S""#)));
            let stream = opened(opening).await;
            user.answer(&stream.question().await, &pretty(crate::stage::SAMPLED)).await;
            let second = stage.retried(1).await;
            answer(
                &second,
                &modern::complete(
                    "tools/call",
                    r#""content":[{"type":"text","text":"a"}],"structuredContent":[1,2]"#,
                ),
            );
            let result = stream.result().await;
            assert_eq!(result["content"][0]["text"], "a", "{revision} {streamed}");
            assert_eq!(stream.briefs().len(), if streamed { 3 } else { 2 });
        }
    }
}

/// The same of lists, errors, and of a result that is passed on while it comes.
#[tokio::test(start_paused = true)]
async fn c13_more_over_several_lines() {
    let long = "x".repeat(300_000);
    let results = [
        ("tools/call", format!(r#""content":[{{"type":"text","text":"{long}"}}]"#)),
        (
            "tools/list",
            r#""tools":[{"name":"t","inputSchema":{"type":"object","properties":{}}}]"#.to_owned(),
        ),
        ("resources/read", r#""contents":[{"uri":"file:///x","text":"t"}]"#.to_owned()),
    ];
    for (method, members) in results {
        let text = pretty(&modern::complete(method, &members));
        let stage = Stage::before(ModernServer::full().result(method, &text)).await;
        let user = stage.latest().await;
        let params = if method == "resources/read" { r#""uri":"file:///x""# } else { r#""name":"t""# };
        let stream = user.open(&user.old.ask(method).params(params)).await;
        let expected = crate::stage::parse(&format!("{{{members}}}"));
        assert_eq!(stream.result().await, expected, "{method}");
    }
    let error = pretty(r#"{"code":-32000,"message":"m","data":{"a":[1]}}"#);
    let stage = Stage::before(ModernServer::full().fails("tools/call", 200, &error)).await;
    let user = stage.latest().await;
    assert_eq!(user.call("t", "{}").await.code().await, -32000);
}

/// C11: streams with other line ends, in pieces of any size.
#[tokio::test(start_paused = true)]
async fn c11_line_ends_and_pieces() {
    for end in ["\n", "\r", "\r\n"] {
        let stage = Stage::new().await;
        let user = stage.latest().await;
        user.level("debug").await.result();
        let (opening, call) = stage.start(&user, &user.old.call("ask", "{}")).await;
        let log =
            r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"d"}}"#;
        let result = rpc::result_message(&call.seen.id(), &modern::complete("tools/call", r#""content":[]"#));
        let text = format!(
            ": hello{end}{end}event: message{end}data: {log}{end}{end}id: 7{end}data: {result}{end}{end}"
        );
        for byte in text.as_bytes() {
            call.bytes(&[*byte]);
        }
        call.end();
        let stream = opened(opening).await;
        stream.result().await;
        assert_eq!(stream.briefs(), ["notifications/message", "answer"], "{end:?}");
    }
}

/// C14: characters that are line ends elsewhere.
#[tokio::test(start_paused = true)]
async fn c14_characters_that_end_lines_elsewhere() {
    let text = "a\u{2028}b\u{2029}c\u{85}d\u{feff}";
    for revision in REVISIONS {
        let stage = Stage::new().await;
        let user = stage.user(revision).await;
        let entry = crate::stage::SAMPLE.replace("hi", text);
        let stream = stage.asked(&user, &[(text, &entry)], Some(&format!("\"{text}\""))).await;
        let question = stream.question().await;
        assert!(question.to_string().contains(text), "{revision}");
        user.answer(&question, &crate::stage::SAMPLED.replace("yes", text)).await;
        let second = stage.retried(1).await;
        assert_eq!(
            (brings(&second)[text]["content"]["text"].as_str(), second.params()["requestState"].as_str()),
            (Some(text), Some(text))
        );
        second.completes(text);
        assert_eq!(stream.result().await["content"][0]["text"], text, "{revision}");
    }
}

/// C17: a server that gives an integer id back as text.
#[tokio::test(start_paused = true)]
async fn c17_an_id_in_another_type() {
    let server = ModernServer::full().on("tools/call", |seen, reply: Reply| async move {
        let id = format!("\"{}\"", seen.id().trim_matches('"'));
        let result = modern::complete("tools/call", r#""content":[]"#);
        reply.json(200, &rpc::result_message(&id, &result)).await;
    });
    let stage = Stage::before(server).await;
    let user = stage.latest().await;
    assert_eq!(user.call("t", "{}").await.result().await, json!({"content": []}));
}

/// A13.7: media types with parameters, and in other letters.
#[tokio::test(start_paused = true)]
async fn a13_7_media_types() {
    for media_type in ["application/json; charset=utf-8", "Application/JSON", "application/json ;x=y"] {
        let server = ModernServer::full().on("tools/call", move |seen, reply: Reply| async move {
            let result = modern::complete("tools/call", r#""content":[]"#);
            reply.body(200, media_type, &rpc::result_message(&seen.id(), &result)).await;
        });
        let stage = Stage::before(server).await;
        let user = stage.latest().await;
        user.call("t", "{}").await.result().await;
    }
    for media_type in ["text/event-stream; charset=utf-8", "Text/Event-Stream"] {
        let server = ModernServer::full().on("tools/call", move |seen, reply: Reply| async move {
            let result = modern::complete("tools/call", r#""content":[]"#);
            let event = format!("data: {}\n\n", rpc::result_message(&seen.id(), &result));
            reply.body(200, media_type, &event).await;
        });
        let stage = Stage::before(server).await;
        let user = stage.latest().await;
        user.call("t", "{}").await.result().await;
    }
}

/// A11.3: whatever a server says to a notification, 404 is the end of a session and nothing else.
#[tokio::test(start_paused = true)]
async fn a11_3_no_404_for_a_notification() {
    for status in [400, 404, 405, 500] {
        let server =
            ModernServer::full().on("notifications/acme", move |_, reply: Reply| reply.empty(status));
        let stage = Stage::before(server).await;
        for revision in REVISIONS {
            let user = stage.user(revision).await;
            let mut asks = vec![user.old.note("notifications/acme")];
            if revision == "2025-03-26" {
                asks.push(user.old.raw(r#"[{"jsonrpc":"2.0","method":"notifications/acme"}]"#));
            }
            for ask in asks {
                let done = stage.proxy.send(&ask).await;
                assert_ne!(done.status, 404, "{revision} {status}: {}", done.raw);
                assert_ne!(done.status, 401, "{revision} {status}");
            }
            assert!(user.lives().await);
        }
    }
}

/// A11.9 in band, in a body and on a stream; and in a later round.
#[tokio::test(start_paused = true)]
async fn a11_9_a_missing_capability_in_band() {
    let error =
        r#"{"code":-32021,"message":"sampling is needed","data":{"requiredCapabilities":{"sampling":{}}}}"#;
    let stage = Stage::new().await;
    let user = stage.latest().await;
    let (opening, call) = stage.start(&user, &user.old.call("ask", "{}")).await;
    call.whole_error(error);
    opened(opening).await.tool_error().await;
    let (stream, call) = stage.begin(&user).await;
    call.error(error);
    stream.tool_error().await;
    let stream = stage.asked(&user, &[("k", ROOTS)], None).await;
    user.answer(&stream.question().await, ROOTED).await;
    let call = stage.calls.wait(4).await;
    call.whole(400, &rpc::error_message(&call.seen.id(), error));
    stream.tool_error().await;
    let prompt = user.old.ask("prompts/get").params(r#""name":"p""#);
    let (opening, call) = stage.start(&user, &prompt).await;
    call.whole_error(error);
    assert_eq!(opened(opening).await.code().await, -32603);
}

/// A12.17: a token that expires between two rounds is an error in band; the answer's head is long gone.
#[tokio::test(start_paused = true)]
async fn a12_17_a_challenge_in_a_later_round() {
    for status in [401, 403, 429] {
        let stage = Stage::new().await;
        let user = stage.latest().await;
        let stream = stage.asked(&user, &[("k", FORM)], Some(r#""S""#)).await;
        user.answer(&stream.question().await, ACCEPT).await;
        stage.retried(1).await.whole(status, "");
        assert_eq!(stream.code().await, -32603, "{status}");
        stage.is_over(2).await;
        assert!(user.lives().await);
    }
}

/// A server that accepts a request like a notification, or answers with nothing of use.
#[tokio::test(start_paused = true)]
async fn c04_a_request_that_is_answered_with_nothing() {
    for status in [200, 202, 204] {
        let server = ModernServer::full().on("tools/call", move |_, reply: Reply| reply.empty(status));
        let stage = Stage::before(server).await;
        let user = stage.latest().await;
        assert_eq!(user.call("t", "{}").await.code().await, -32603, "{status}");
        assert_eq!(stage.up.posts("tools/call").len(), 1);
    }
}

/// Two questions under one key: nobody can tell which answer is whose.
#[tokio::test(start_paused = true)]
async fn inv1_a_key_that_stands_twice() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    for entries in [&[("k", ROOTS), ("k", FORM)], &[("k", ROOTS), (r"\u006b", FORM)]] {
        let n = stage.calls.all().len();
        let stream = stage.asked(&user, entries, Some(r#""S""#)).await;
        let answer = stream.answer().await;
        assert!(answer["error"]["code"] == -32603 || answer["result"]["isError"] == true, "{answer}");
        assert_eq!(stream.asked(), 0);
        stage.is_over(n + 1).await;
    }
}

/// A progress token that is none.
#[tokio::test(start_paused = true)]
async fn a4_5_a_token_that_is_none() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    for token in ["{}", "null", "true", "1.5", "[1]"] {
        let ask = user.old.call("ask", "{}").meta("progressToken", token).id("7");
        let user = user.clone();
        let n = stage.calls.all().len();
        let opening = tokio::spawn(async move { user.open(&ask).await });
        pass(2000).await;
        // Refused, or served without one (`shape_requests` looks at it).
        if let Some(call) = stage.calls.all().get(n) {
            call.completes("done");
            opened(opening).await.result().await;
        } else {
            let stream = opened(opening).await;
            let answer = stream.answer().await;
            assert!(
                [-32600, -32602].contains(&answer["error"]["code"].as_i64().unwrap()),
                "{token}: {answer}"
            );
        }
    }
}

/// A2.6: an update that names nothing, and URIs written in several ways.
#[tokio::test(start_paused = true)]
async fn a2_6_uris_of_updates() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    let get = user.get().await;
    let ask = user.old.ask("resources/subscribe").params(r#""uri":"file:///\u0061 \u00e9""#);
    user.send(&ask).await.result();
    let uri = "file:///a é";
    let listen = stage.listens.of_uri(uri).await;
    listen.notify("notifications/resources/updated", json!({}));
    listen.notify("notifications/resources/updated", json!({"uri": 5}));
    listen.notify("notifications/acme", json!({"uri": uri}));
    listen.notify("notifications/resources/updated", json!({"uri": uri, "x-own": 1.5}));
    get.wait(1).await;
    pass(2000).await;
    assert_eq!(get.changes().last().map(String::as_str), Some(uri), "{:?}", get.messages());
    assert_eq!(get.notes("notifications/resources/updated").len(), 1);
    // Taken back in another spelling.
    let ask = user.old.ask("resources/unsubscribe").params(r#""uri":"file:///a \u00E9""#);
    user.send(&ask).await.result();
    pass(20_000).await;
    assert!(stage.listens.standing().iter().all(|listen| listen.uris().is_empty()));
}

/// Answers to questions of an earlier process are nothing to the questions of this one.
#[tokio::test(start_paused = true)]
async fn c44_questions_of_an_earlier_process() {
    let mut stage = Stage::with(&format!("session.key = \"{}\"", "ab".repeat(32))).await;
    let user = stage.latest().await;
    let mut old = Vec::new();
    for _ in 0..3 {
        let stream = stage.asked(&user, &[("k", ROOTS)], Some(r#""S""#)).await;
        old.push(stream.question().await);
    }
    stage.restart().await;
    let user = user.at(&stage.proxy);
    let n = stage.calls.all().len();
    let mut streams = Vec::new();
    for _ in 0..3 {
        streams.push(stage.asked(&user, &[("k", ROOTS)], Some(r#""T""#)).await);
    }
    for question in &old {
        user.answer(question, r#"{"roots":[{"uri":"file:///stale"}]}"#).await;
    }
    pass(2000).await;
    assert_eq!(stage.calls.all().len(), n + 3, "nothing goes on");
    for (at, stream) in streams.iter().enumerate() {
        user.answer(&stream.question().await, ROOTED).await;
        let again = stage.calls.wait(n + 4 + at).await;
        assert_eq!(brings(&again)["k"], crate::stage::parse(ROOTED));
        again.completes("done");
        stream.result().await;
    }
}

/// A session that was begun twice over: `initialized` again and again is nothing new.
#[tokio::test(start_paused = true)]
async fn a2_1_initialized_more_than_once() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    for _ in 0..5 {
        user.note("notifications/initialized").await;
        pass(500).await;
    }
    assert_eq!(stage.listens.all().len(), 1);
}

/// Cancellation and answer at the same moment: one or the other, never both, never neither.
#[tokio::test(start_paused = true)]
async fn inv1_cancelled_and_answered_at_once() {
    for order in 0..2 {
        for _ in 0..10 {
            let stage = Stage::new().await;
            let user = stage.latest().await;
            let (stream, call) = stage.begin(&user).await;
            if order == 0 {
                call.completes("done");
                user.cancel("1").await;
            } else {
                let (done, ()) = tokio::join!(user.cancel("1"), async { call.completes("done") });
                let () = done;
            }
            stream.end().await;
            let answers = stream.briefs().into_iter().filter(|brief| brief == "answer").count();
            assert!(answers <= 1);
            stage.is_over(1).await;
            assert!(user.lives().await);
        }
    }
}
