//! Architecture, invariants 1, 4 and 5; D67, D68 in this direction, C62: what a modern server may send to hurt a proxy or its
//! legacy clients.

use std::time::{Duration, Instant};

use crate::stage::{REVISIONS, Stage, form, opened};
use crate::support::{ModernServer, Reply, modern, pass, rpc};

fn nested(open: &str, inner: &str, close: &str, depth: usize) -> String {
    format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
}

/// What the server does with a call.
type Answer<'a> = Box<dyn Fn(&crate::support::Call) + 'a>;

/// Runs it in real time, too: the clock of the test stands still.
async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    let began = Instant::now();
    let value = future.await;
    assert!(began.elapsed() < Duration::from_secs(20), "{what} took {:?}", began.elapsed());
    value
}

/// A list with a schema without bottom: the other tools are there, or the list fails in words; nothing hangs.
#[tokio::test(start_paused = true)]
async fn d68_schemas_without_bottom() {
    let good = r##"{"name":"good","inputSchema":{"type":"object"},"outputSchema":{"type":"array","items":{"$ref":"#"}}}"##;
    for depth in [100, 1_000, 10_000] {
        let deep = nested(r#"{"allOf":["#, "{}", "]}", depth);
        let chain = nested(
            r#"{"type":"object","properties":{"a":"#,
            r#"{"type":"string","x-mcp-header":"A"}"#,
            "}}",
            depth,
        );
        let refs = nested(r##"{"items":{"$ref":"#/a"},"not":"##, "{}", "}", depth);
        let tools = [
            format!(r#"{{"name":"in","inputSchema":{{"type":"object","properties":{{"x":{deep}}}}}}}"#),
            format!(r#"{{"name":"out","inputSchema":{{"type":"object"}},"outputSchema":{deep}}}"#),
            format!(r#"{{"name":"refs","inputSchema":{{"type":"object"}},"outputSchema":{refs}}}"#),
            format!(r#"{{"name":"chain","inputSchema":{chain}}}"#),
        ];
        for tool in tools {
            let stage = Stage::before(ModernServer::full().tools(&format!("{tool},{good}"))).await;
            for revision in ["2025-11-25", "2024-11-05"] {
                let user = stage.user(revision).await;
                let stream = in_time("a list", user.open(&user.old.ask("tools/list"))).await;
                let answer = stream.answer().await;
                if let Some(tools) = answer["result"]["tools"].as_array() {
                    assert!(tools.iter().any(|tool| tool["name"] == "good"), "{depth}: the others are there");
                } else {
                    assert_eq!(answer["error"]["code"], -32603, "{depth}: {answer}");
                }
                let called = in_time("a call", async { user.call("good", "{}").await.answer().await }).await;
                assert!(called.get("result").is_some() || called["error"]["code"] == -32603, "{called}");
                assert!(user.lives().await);
            }
        }
    }
}

/// The same of results, questions and errors.
#[tokio::test(start_paused = true)]
async fn inv5_values_without_bottom() {
    let deep = nested("[", "1", "]", 20_000);
    let stage = Stage::new().await;
    let user = stage.latest().await;
    let answers: [Answer<'_>; 4] = [
        Box::new(|call| call.completes_with(&format!(r#""content":[],"structuredContent":{deep}"#))),
        Box::new(|call| call.whole_error(&format!(r#"{{"code":-32000,"message":"m","data":{deep}}}"#))),
        Box::new(|call| {
            call.event(&format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":{deep}}}}}"#))
        }),
        Box::new(|call| {
            call.asks(&[("k", &form(&format!(r#"{{"a":{{"type":"string","x":{deep}}}}}"#)))], None)
        }),
    ];
    for (n, answer) in answers.iter().enumerate() {
        let (opening, call) = stage.start(&user, &user.old.call("ask", "{}")).await;
        answer(&call);
        if n == 2 {
            call.completes("done");
        }
        let stream = opened(opening).await;
        // Whatever it becomes: an answer, in time; or a question, and then an answer.
        in_time("an answer", async {
            while !stream.is_over() {
                pass(100).await;
                if stream.asked() == 1 {
                    user.answer(&stream.question().await, r#"{"action":"decline"}"#).await;
                    stage.calls.wait(n + 2).await.completes("done");
                    break;
                }
            }
            stream.answer().await;
        })
        .await;
        assert!(user.lives().await, "{n}");
    }
}

/// D67, C62: no schema makes the proxy connect anywhere.
#[tokio::test(start_paused = true)]
async fn d67_inv4_no_reference_is_followed() {
    let refs = [
        "https://evil.test/x.json",
        "http://127.0.0.1:1/x",
        "file:///etc/passwd",
        "//evil.test/x",
        "other.json#/a",
    ];
    for target in refs {
        let schema = format!(
            r#"{{"type":"array","items":{{"$ref":"{target}"}},"$id":"{target}","$schema":"{target}"}}"#
        );
        let input = format!(r#"{{"type":"object","properties":{{"a":{{"$ref":"{target}"}}}}}}"#);
        let tools = format!(
            r#"{{"name":"t","inputSchema":{input},"outputSchema":{schema}}},{{"name":"good","inputSchema":{{"type":"object"}}}}"#
        );
        let server = ModernServer::full()
            .tools(&tools)
            .completes("tools/call", r#""content":[],"structuredContent":[1]"#);
        let stage = Stage::before(server).await;
        for revision in REVISIONS {
            let user = stage.user(revision).await;
            let list = user.list("tools/list").await;
            assert!(list["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "good"));
            let stays = list["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "t");
            assert!(!stays, "{target}");
            assert_eq!(user.call("t", r#"{"a":1}"#).await.code().await, -32602, "{target}");
        }
        assert!(
            stage.net.dialled().iter().all(|dialled| dialled == "up.test:80"),
            "{:?}",
            stage.net.dialled()
        );
    }
}

/// Bytes that are no text, and text that is half a character.
#[tokio::test(start_paused = true)]
async fn inv1_bytes_that_are_no_text() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    let (opening, call) = stage.start(&user, &user.old.call("ask", "{}")).await;
    let mut bytes = format!(
        r#"data: {{"jsonrpc":"2.0","id":{},"result":{{"resultType":"complete","content":[],"x":""#,
        call.seen.id()
    )
    .into_bytes();
    bytes.extend([0xff, 0xfe, 0xc3]);
    bytes.extend(b"\"}}\n\n");
    call.bytes(&bytes);
    call.end();
    let answer = opened(opening).await.answer().await;
    assert!(answer["error"]["code"] == -32603 || answer.get("result").is_some(), "{answer}");
    // Half of a pair, written as an escape, is somebody's text.
    let (opening, call) = stage.start(&user, &user.old.call("ask", r#"{"e":"\ud800"}"#)).await;
    assert!(call.seen.text().contains(r#""\ud800""#), "to the byte");
    call.completes_with(r#""content":[{"type":"text","text":"\ud800"}]"#);
    let stream = opened(opening).await;
    stream.answer().await;
    assert!(stream.events().pop().unwrap().raw.contains(r#""\ud800""#), "to the byte");
    assert!(user.lives().await);
}

/// Members that decide, twice: nobody may choose.
#[tokio::test(start_paused = true)]
async fn inv1_members_that_stand_twice() {
    let bodies = [
        r#"{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","content":[]},"result":{"resultType":"complete","content":[1]}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","content":[]},"error":{"code":1,"message":"m"}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","resultType":"input_required","requestState":"s","content":[]}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"resultType":"input_required","requestState":"a","requestState":"b"}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"resultType":"input_required","inputRequests":{},"inputRequests":{"k":{"method":"roots/list"}}}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","content":[],"_meta":{},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"n","version":"v"}}}}"#,
    ];
    for body in bodies {
        let server = ModernServer::full().on("tools/call", move |seen, reply: Reply| async move {
            reply.json(200, &body.replace("ID", &seen.id())).await;
        });
        let stage = Stage::before(server).await;
        let user = stage.latest().await;
        let stream = user.call("t", "{}").await;
        let answer = stream.answer().await;
        let failed = answer["error"]["code"] == -32603 || answer["result"]["isError"] == true;
        assert!(failed, "{body}: {answer}");
        assert_eq!((stream.asked(), stage.up.posts("tools/call").len()), (0, 1), "{body}");
    }
}

/// A server that talks on after its answer, or to somebody else.
#[tokio::test(start_paused = true)]
async fn inv1_what_comes_after_the_answer() {
    let server = ModernServer::full().on("tools/call", |seen, mut reply: Reply| async move {
        reply.stream().await;
        reply.event(&rpc::result_message("\"other\"", &modern::complete("tools/call", r#""content":[],"of":"another""#))).await;
        reply.result_event(&seen, &modern::complete("tools/call", r#""content":[],"of":"it""#)).await;
        reply.event(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"late"}}"#).await;
        reply.result_event(&seen, &modern::complete("tools/call", r#""content":[],"of":"it again""#)).await;
        reply.never().await;
    });
    let stage = Stage::before(server).await;
    for revision in REVISIONS {
        let user = stage.user(revision).await;
        user.level("debug").await.result();
        let stream = user.call("t", "{}").await;
        assert_eq!(stream.result().await["of"], "it", "{revision}");
        stream.end().await;
        assert_eq!(stream.briefs(), ["answer"], "{revision}");
    }
}

/// A subscription that says what nobody asked for.
#[tokio::test(start_paused = true)]
async fn b9_7_a_subscription_of_nonsense() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    let get = user.get().await;
    let listen = stage.listens.wait(1).await;
    pass(1000).await;
    for text in [
        "nonsense",
        "[]",
        "{}",
        r#"{"jsonrpc":"2.0","id":7,"method":"roots/list"}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}}"#,
        r#"{"jsonrpc":"2.0","id":"other","result":{"resultType":"complete"}}"#,
    ] {
        listen.event(text);
    }
    pass(60_000).await;
    let odd: Vec<_> = get.briefs().into_iter().filter(|brief| !brief.ends_with("list_changed")).collect();
    assert_eq!(odd, [] as [&str; 0], "only changes reach the client");
    stage.listens.tell("tools");
    pass(2000).await;
    assert_eq!(get.changes().last().map(String::as_str), Some("tools"));
}
