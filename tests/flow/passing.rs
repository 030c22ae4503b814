//! Results that come to their end: whole, in time, spelt as the client takes them.

use std::sync::Arc;

use tokio::sync::Notify;

use super::{STYLES, Style, Writing, halves};
use crate::support::{
    Ask, LegacyServer, Net, Proxy, Reply, Value, call, get_prompt, json, list, pass, read, rpc,
};

const TEN_MB: usize = 10_000_000;
const INFO: &str = "io.modelcontextprotocol/serverInfo";

#[tokio::test(start_paused = true)]
async fn ten_megabytes_the_first_byte_before_the_last_has_come() {
    for (style, size) in [(Style::Json, TEN_MB), (Style::Sized(0), 2_000_000), (Style::Events, 2_000_000)] {
        let seen_by_client = Arc::new(Notify::new());
        let go_on = Arc::clone(&seen_by_client);
        let server = LegacyServer::new().on("tools/call", move |seen, reply: Reply| {
            let go_on = Arc::clone(&go_on);
            async move {
                let (head, tail) = halves(&seen, size);
                let style =
                    if style == Style::Sized(0) { Style::Sized(head.len() + tail.len()) } else { style };
                let mut writing = Writing::begin(reply, style).await;
                writing.write(&head).await;
                go_on.notified().await;
                writing.write(&tail).await;
                writing.end().await;
            }
        });
        let (proxy, up) = Proxy::before(&server).await;
        let mut answer = proxy.open(&call("echo", "{}").id("\"c\"")).await;
        assert_eq!((answer.status, answer.headers.media_type().as_deref()), (200, Some("application/json")));
        let mut body = Vec::new();
        // Nearly all of the first half, while the server still waits.
        while body.len() < size / 2 - 100_000 {
            body.extend(answer.piece().await.unwrap().expect("more of the first half"));
        }
        seen_by_client.notify_one();
        let (rest, broken) = answer.pieces().await;
        assert!(!broken, "{style:?}");
        body.extend(rest);
        let message: Value = serde_json::from_slice(&body).unwrap();
        let text = message["result"]["content"][0]["text"].as_str().unwrap();
        assert_eq!(text, "é0\n".repeat(size / 10 * 2), "{style:?}");
        assert_eq!((&message["id"], &message["result"]["resultType"]), (&json!("c"), &json!("complete")));
        assert_eq!(message["result"]["_meta"], json!({INFO: {"name": "old", "version": "7"}}));
        up.only("tools/call");
        pass(1000).await;
        assert_eq!(up.posts("notifications/cancelled").len(), 0);
        // The session is as good as before.
        proxy.send(&list("tools/list")).await.result();
        assert_eq!(up.posts("initialize").len(), 1);
    }
}

/// The answers that a client gets to one question, by what it accepts.
async fn asked(proxy: &Proxy, ask: &Ask) -> Vec<Value> {
    let mut answers = Vec::new();
    for accept in ["application/json, text/event-stream", "application/json", "text/event-stream"] {
        let done = proxy.send(&ask.clone().id("\"i\\u0064\"").header("Accept", accept)).await;
        let stream = done.headers.media_type().as_deref() == Some("text/event-stream");
        assert_eq!(stream, accept == "text/event-stream");
        assert!(done.raw.contains(r#""id":"i\u0064""#));
        answers.push(done.result().clone());
    }
    answers
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_result_that_passes_is_what_it_is_when_held() {
    // Pretty-printed, with every raw line end there is.
    let item = |bytes: usize| {
        format!("{{\r\n \"type\":\r\"text\",\n\n\"text\":\"{}\"}} \r\n", "\\u00e9".repeat(bytes / 6))
    };
    let filler = format!("[\r\n {} ,{}]", item(90_000), item(200));
    let contents = filler.replace("\"type\"", "\"uri\"");
    let messages = format!("[{{\"role\":\"user\",\"content\":{}}}]", item(200_000));
    let results = [
        (
            call("echo", "{}"),
            format!(
                r#"{{"content":{filler},"structuredContent":{{"a":{filler}}},"resultType":"x","_meta":{{"k":1}}}}"#
            ),
        ),
        (
            call("echo", "{}"),
            format!(
                r#"{{"_meta":{{"{INFO}":{{"name":"n","version":"v"}}}},"isError":true,"content":{filler}}}"#
            ),
        ),
        (read("a:b"), format!(r#"{{"ttlMs":9,"contents":{contents},"cacheScope":"public"}}"#)),
        (get_prompt("p"), format!("{{\"description\":\"d\",\r\n\"messages\":{messages}}}")),
        (list("example.org/own"), format!(r#"{{"rows":{filler}}}"#)),
    ];
    for (ask, result) in results {
        let method = rpc::method(&ask.body()).unwrap();
        let mut all = Vec::new();
        for (style, flow_bytes) in [
            (Style::Json, "64KiB"),
            (Style::Events, "64KiB"),
            (Style::Json, "64MiB"),
            (Style::Events, "1KiB"),
        ] {
            let result = result.clone();
            let server = LegacyServer::new().on(&method, move |seen, reply: Reply| {
                let message = rpc::result_message(&seen.id(), &result);
                async move {
                    let mut writing = Writing::begin(reply, style).await;
                    // An event's line ends are what the event stream says they are.
                    let message = if style == Style::Events {
                        message.replace("\r\n", "\n").replace(['\r', '\n'], "\r\ndata: ")
                    } else {
                        message
                    };
                    let (head, tail) = message.split_at(message.len() / 3);
                    writing.write(head).await;
                    writing.write(tail).await;
                    writing.end().await;
                }
            });
            let net = Net::new();
            let _up = server.start(&net);
            let proxy =
                Proxy::with(&net, &format!("[upstream.up.limits]\nflow_bytes = \"{flow_bytes}\"\n")).await;
            all.extend(asked(&proxy, &ask).await);
        }
        for answer in &all {
            assert_eq!(answer, &all[0], "{method}");
        }
        let mut sent: Value = serde_json::from_str(&result).unwrap();
        let sent = sent.as_object_mut().unwrap();
        for (name, value) in sent
            .iter()
            .filter(|(name, _)| !["resultType", "ttlMs", "cacheScope", "_meta"].contains(&name.as_str()))
        {
            assert_eq!(&all[0][name], value, "{method}");
        }
        let keeps = |name: &str| all[0]["_meta"][INFO]["name"] == name;
        assert!(keeps(if result.contains(INFO) { "n" } else { "old" }), "{method}: {}", all[0]["_meta"]);
        assert_eq!(all[0].get("ttlMs"), (method == "resources/read").then_some(&json!(0)), "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_that_passes_is_the_last_event_of_a_stream_that_has_begun() {
    for style in STYLES {
        let go_on = Arc::new(Notify::new());
        let seen_by_client = Arc::clone(&go_on);
        let server = LegacyServer::new().on("tools/call", move |seen, mut reply: Reply| {
            let go_on = Arc::clone(&go_on);
            async move {
                let (head, tail) = halves(&seen, 1_000_000);
                if style == Style::Json {
                    // Long enough for the client to be sent a stream.
                    pass(30_000).await;
                    let mut writing = Writing::begin(reply, style).await;
                    writing.write(&head).await;
                    go_on.notified().await;
                    writing.write(&tail).await;
                    return writing.end().await;
                }
                reply.stream().await;
                let token = &seen.json()["params"]["_meta"]["progressToken"];
                let progress = json!({"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":token,"progress":1}});
                reply.event(&progress.to_string()).await;
                reply.chunk(format!("data: {head}").as_bytes()).await;
                go_on.notified().await;
                reply.chunk(format!("{tail}\n\n").as_bytes()).await;
                reply.end().await;
            }
        });
        let (proxy, _up) = Proxy::before(&server).await;
        let mut answer = proxy.open(&call("echo", "{}").id("7").meta("progressToken", "\"p\"")).await;
        assert!(answer.is_stream());
        let mut body = Vec::new();
        while body.len() < 400_000 {
            body.extend(answer.piece().await.unwrap().expect("more of the first half"));
        }
        // A minute of silence in the middle of a line: nothing may be put there.
        pass(60_000).await;
        seen_by_client.notify_one();
        let (rest, broken) = answer.pieces().await;
        assert!(!broken);
        body.extend(rest);
        answer.events.push(&body);
        let mut messages = Vec::new();
        while let Some(event) = answer.events.next() {
            messages.push(serde_json::from_str::<Value>(&event.data).unwrap());
        }
        let last = messages.pop().unwrap();
        assert_eq!(last["id"], 7, "{style:?}");
        assert_eq!(last["result"]["content"][0]["text"], "é0\n".repeat(200_000), "{style:?}");
        assert_eq!(messages.len(), usize::from(style == Style::Events));
    }
}

#[tokio::test(start_paused = true)]
async fn c16_comments_stand_between_the_lines_of_a_result_that_passes() {
    let server = LegacyServer::new().on("tools/call", |seen, reply: Reply| async move {
        let (head, tail) = halves(&seen, 300_000);
        let mut writing = Writing::begin(reply, Style::Json).await;
        writing.write(&format!("{head}\"}},\r\n")).await;
        pass(60_000).await;
        writing.write(&format!("\n\n{{\"type\":\"text\",\"text\":\"{tail}\n")).await;
        writing.end().await;
    });
    let (proxy, _up) = Proxy::before(&server).await;
    let done = proxy.send(&call("echo", "{}").header("Accept", "text/event-stream")).await;
    assert!(done.comments >= 2, "{}", done.comments);
    assert_eq!(done.result()["content"][1]["text"], "é0\n".repeat(30_000));
}

/// What decides comes last, so it is held as before, within `message_bytes`; what passes has no such bound.
#[tokio::test(start_paused = true)]
async fn inv5_only_what_is_held_is_bounded_by_message_bytes() {
    for style in STYLES {
        for (members, bytes, passes) in [
            ("id-first", 3_000_000, true),
            ("id-last", 3_000_000, true),
            // What is refused is larger than the bound and one read.
            ("content-last", 3_000_000, false),
            ("content-last", 200_000, true),
        ] {
            let server = LegacyServer::new().on("tools/call", move |seen, reply: Reply| async move {
                let text = "x".repeat(bytes);
                let id = seen.id();
                let message = match members {
                    "id-first" => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#),
                    "id-last" => format!(r#"{{"jsonrpc":"2.0","result":{{"content":[{{"type":"text","text":"{text}"}}]}},"id":{id}}}"#),
                    _ => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"structuredContent":{{"a":1}},"x":"{text}","content":[{{"type":"text","text":"{text}"}}]}}}}"#),
                };
                let mut writing = Writing::begin(reply, style).await;
                writing.write(&message).await;
                writing.end().await;
            });
            let net = Net::new();
            let _up = server.start(&net);
            let proxy = Proxy::with(&net, "[upstream.up.limits]\nmessage_bytes = \"300KiB\"\n").await;
            let done = proxy.send(&call("echo", "{}")).await;
            if passes {
                assert_eq!(done.result()["content"][0]["text"].as_str().unwrap().len(), bytes);
            } else {
                done.is_error(502, -32603);
            }
        }
    }
}

/// One read may bring more than either bound.
#[tokio::test(start_paused = true)]
async fn inv5_bounds_that_lie_close_together() {
    for style in STYLES {
        for (toml, passes) in [
            ("message_bytes = \"70KiB\"\n", true),
            ("message_bytes = \"2KiB\"\nflow_bytes = \"1KiB\"\n", true),
            ("message_bytes = \"64KiB\"\n", false),
        ] {
            let server = LegacyServer::new().on("tools/call", move |seen, reply: Reply| async move {
                let (head, tail) = halves(&seen, 3_000_000);
                let mut writing = Writing::begin(reply, style).await;
                writing.write(&format!("{head}{tail}")).await;
                writing.end().await;
            });
            let net = Net::new();
            let _up = server.start(&net);
            let proxy = Proxy::with(&net, &format!("[upstream.up.limits]\n{toml}")).await;
            let done = proxy.send(&call("echo", "{}")).await;
            if passes {
                assert_eq!(done.result()["content"][0]["text"], "é0\n".repeat(600_000), "{style:?}, {toml}");
            } else {
                done.is_error(502, -32603);
            }
        }
    }
}
