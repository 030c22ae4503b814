//! C53, C21c, C14, A14.9: what a program writes between its messages, and in which pieces.

use crate::stage::{Begun, HANDSHAKE, Stage, ends_with, plain};
use crate::support::log::Log;
use crate::support::{call, json, list, pass, rpc};

/// Texts on standard output that are no messages, each as the bytes of whole lines.
const JUNK: [(&str, &[u8]); 22] = [
    ("a word", b"Starting...\n"),
    ("a log line", b"[INFO] listening\n"),
    ("an object", b"{\"level\":\"info\"}\n"),
    ("a request of nothing", b"{\"jsonrpc\":\"2.0\"}\n"),
    ("numbers", b"[1,2]\n"),
    ("an empty array", b"[]\n"),
    ("null", b"null\n"),
    ("a text", b"\"text\"\n"),
    ("a number", b"42\n"),
    ("an empty line", b"\n"),
    ("empty lines", b"\r\n\n \n\t\n"),
    ("colours", b"\x1b[32minfo\x1b[0m ready\n"),
    ("invalid UTF-8", b"\xff\xfe caf\xe9\n"),
    ("NUL", b"a\0b\0\n"),
    ("half an object", b"{\"jsonrpc\":\"2.0\",\"id\":1,\n"),
    ("a closing brace", b"}\n"),
    ("CRLF", b"ready\r\n"),
    ("deep", b"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\n"),
    (
        "an error of nobody",
        b"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600,\"message\":\"m\"}}\n",
    ),
    ("an error without an id", b"{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32600,\"message\":\"m\"}}\n"),
    ("another version", b"{\"jsonrpc\":\"1.0\",\"id\":7,\"method\":\"x\"}\n"),
    ("both", b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"error\":{}}\n"),
];

fn end(begun: &Begun, modern: bool) {
    if modern { begun.call.completes("done") } else { begun.call.finish("done") }
}

/// Before the first message, in the middle of a call, and between calls.
#[tokio::test(start_paused = true)]
async fn c53_what_is_no_message_is_skipped() {
    for (name, junk) in JUNK {
        for modern in [false, true] {
            let stage = if modern { Stage::modern("").await } else { Stage::legacy("").await };
            stage.first(move |running| async move {
                running.write(junk);
                None
            });
            for n in 0..3 {
                let begun = stage.begin(&plain(n)).await;
                stage.child(1).await.write(junk);
                pass(10).await;
                end(&begun, modern);
                ends_with(&begun.done().await, "done");
                stage.child(1).await.write(junk);
            }
            assert_eq!(stage.children().len(), 1, "{name}");
            let mut briefs = stage.child(1).await.briefs();
            // What names no id may be the answer to the probe (C38); the result of the probe then tells better.
            if modern && junk.starts_with(b"{\"jsonrpc\":\"2.0\"") {
                briefs.retain(|brief| brief != "initialize");
            }
            let first = if modern { vec!["server/discover"] } else { HANDSHAKE.to_vec() };
            let sent = [first, vec!["tools/call"; 3]].concat();
            assert_eq!(briefs, sent, "{name}: nothing is said to it");
        }
    }
}

/// They are counted, and logged at a limited rate under the upstream's name.
#[tokio::test(start_paused = true)]
async fn c53_what_is_no_message_is_counted_and_logged() {
    let log = Log::open();
    let stage = Stage::legacy("").await;
    stage.finished(&plain(1), "done").await;
    let child = stage.child(1).await;
    for n in 0..1_000 {
        child.say(&format!("[INFO] line {n}"));
    }
    pass(1_000).await;
    stage.finished(&plain(2), "done").await;
    assert_eq!(stage.metric("mcp_janus_upstream_not_messages_total", &["upstream=\"up\""]), 1000.0);
    let lines = log.with(&["[INFO] line"]);
    assert!(!lines.is_empty() && lines.len() < 100, "{} lines", lines.len());
    assert!(lines.iter().all(|line| line.contains("up")), "{}", lines[0]);
}

/// What it writes to standard error is in the log under its name, and never in an answer.
#[tokio::test(start_paused = true)]
async fn c56_standard_error_is_logged() {
    let log = Log::open();
    let stage = Stage::legacy("").await;
    let begun = stage.begin(&plain(1)).await;
    let child = stage.child(1).await;
    child.complain(b"the last words\r\nhalf a");
    child.complain(b" line\n\xff\n");
    pass(100).await;
    child.exit(1);
    let done = begun.done().await;
    done.is_error(502, -32603);
    assert!(!done.raw.contains("last words"), "{}", done.raw);
    pass(100).await;
    for words in ["the last words", "half a line"] {
        let lines = log.with(&[words, "up"]);
        assert!(!lines.is_empty(), "{words}: {:?}", log.lines());
    }
    assert_eq!(stage.metric("mcp_janus_upstream_stderr_lines_total", &["upstream=\"up\""]), 3.0);
}

/// CRLF, pieces of every size, several messages in one write, and no pause in between.
#[tokio::test(start_paused = true)]
async fn c53_messages_in_any_pieces() {
    for (name, cut) in [("byte by byte", 1), ("in pieces", 7), ("as a whole", usize::MAX)] {
        for line_end in ["\n", "\r\n"] {
            let stage = Stage::legacy("").await;
            let all = [stage.begin(&plain(1)).await, stage.begin(&plain(2)).await];
            let mut bytes = String::new();
            for begun in all.iter().rev() {
                let text = begun.call.argument("n");
                let text = format!("{text} ü\\u2028\u{2028}");
                let result = format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#);
                bytes += &format!(" {}{line_end}", rpc::result_message(&begun.call.seen.id(), &result));
            }
            let child = stage.child(1).await;
            for piece in bytes.as_bytes().chunks(cut.min(bytes.len())) {
                child.write(piece);
                tokio::task::yield_now().await;
            }
            for (n, begun) in all.into_iter().enumerate() {
                let done = begun.done().await;
                let text = &done.result()["content"][0]["text"];
                assert_eq!(*text, json!(format!("{} ü\u{2028}\u{2028}", n + 1)), "{name}");
            }
        }
    }
}

/// C14: characters that some take for line ends are none.
#[tokio::test(start_paused = true)]
async fn c14_line_separators_are_text() {
    let stage = Stage::legacy("").await;
    let begun = stage
        .begin(&call(
            "t",
            "{\"s\":\"a\u{2028}\u{2029}\u{85}\u{c}\u{b}b\"}".replace(['\u{c}', '\u{b}'], "").as_str(),
        ))
        .await;
    assert_eq!(begun.call.argument("s"), json!("a\u{2028}\u{2029}\u{85}b"));
    begun.call.finish("x\u{2028}\u{2029}\u{85}y");
    let done = begun.done().await;
    assert_eq!(done.result()["content"][0]["text"], "x\u{2028}\u{2029}\u{85}y");
}

/// C21c: a refusal of a notification, as some give it.
#[tokio::test(start_paused = true)]
async fn c21c_an_error_without_an_id_is_dropped() {
    let server =
        crate::stage::legacy_server().on("notifications/initialized", |_, reply: crate::support::Reply| {
            reply.json(200, r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"m"}}"#)
        });
    let stage = Stage::legacy_of(server, "").await;
    for n in 0..2 {
        stage.finished(&plain(n), "done").await;
    }
    stage.send(&list("tools/list")).await.result();
    assert_eq!(stage.children().len(), 1);
}

/// C31, A14.1: a program of 2025-03-26 may answer in an array.
#[tokio::test(start_paused = true)]
async fn c31_arrays_are_taken_apart() {
    let stage = Stage::legacy("").await;
    let all = [stage.begin(&plain(1)).await, stage.begin(&plain(2)).await, stage.begin(&plain(3)).await];
    let answer = |begun: &Begun| {
        let text = begun.call.argument("n");
        rpc::result_message(
            &begun.call.seen.id(),
            &format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#),
        )
    };
    let child = stage.child(1).await;
    child.say(&format!("[{}]", answer(&all[2])));
    let change = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    child.say(&format!("[{}, {change} ,{}]", answer(&all[1]), answer(&all[0])));
    for (n, begun) in all.into_iter().enumerate() {
        ends_with(&begun.done().await, &(n + 1).to_string());
    }
}

/// C32: what a legacy client leaves out reaches its program as an object or not at all.
#[tokio::test(start_paused = true)]
async fn c32_null_params() {
    let stage = Stage::canned(crate::stage::legacy_server(), "").await;
    let user = stage.user().await;
    for params in [r#","params":null"#, "", r#","params":{}"#] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list"{params}}}"#);
        stage.send(&user.old.raw(&body)).await.result();
        let sent = stage.child(1).await.messages().pop().unwrap();
        assert!(sent.get("params").is_none_or(crate::support::Value::is_object), "{sent}");
    }
}
