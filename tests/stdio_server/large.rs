//! C53, invariant 5: large messages over pipes, and those that are larger than allowed.

use tokio::time::Instant;

use crate::stage::{Stage, done, ends_with, opened, plain};
use crate::support::{json, list, modern, pass, rpc};

const MIB: usize = 1 << 20;

fn content(bytes: usize) -> String {
    format!(r#""content":[{{"type":"text","text":"{}"}}]"#, "x".repeat(bytes))
}

#[tokio::test(start_paused = true)]
async fn large_results() {
    for modern_server in [false, true] {
        for size in [70_000, MIB, 20 * MIB] {
            let stage = if modern_server { Stage::modern("").await } else { Stage::legacy("").await };
            let begun = stage.begin(&plain(1).id("\"large\"")).await;
            let id = begun.call.seen.id();
            let result = match modern_server {
                true => modern::complete("tools/call", &content(size)),
                false => format!("{{{}}}", content(size)),
            };
            stage.child(1).await.say(&rpc::result_message(&id, &result));
            let done = begun.done().await;
            assert_eq!(done.message["id"], "large");
            assert_eq!(done.result()["content"][0]["text"].as_str().map(str::len), Some(size));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_large_result_for_a_legacy_client() {
    let stage = Stage::legacy("").await;
    let user = stage.user().await;
    let (opening, call) = stage.start(&user, &user.old.call("t", "{}").id("\"large\"")).await;
    stage.child(1).await.say(&rpc::result_message(&call.seen.id(), &format!("{{{}}}", content(5 * MIB))));
    let result = opened(opening).await.result().await;
    assert_eq!(result["content"][0]["text"].as_str().map(str::len), Some(5 * MIB));
}

/// Another call's answer, behind the large one in the same pipe.
#[tokio::test(start_paused = true)]
async fn a_large_result_does_not_keep_others_for_long() {
    let stage = Stage::legacy("").await;
    let large = stage.begin(&plain(1)).await;
    let small = stage.begin(&plain(2)).await;
    let child = stage.child(1).await;
    child.say(&rpc::result_message(&large.call.seen.id(), &format!("{{{}}}", content(5 * MIB))));
    small.call.finish("small");
    ends_with(&small.done().await, "small");
    large.done().await.result();
}

/// `limits.message_bytes`: only the call that it answers fails, wherever its id stands.
#[tokio::test(start_paused = true)]
async fn beyond_the_limit_only_that_call_fails() {
    let lines = "[upstream.up.limits]\nmessage_bytes = \"1MiB\"\n[upstream.up.timeouts]\nrequest = \"30s\"\n";
    for id_first in [true, false] {
        for line_end in ["\n", "\r\n"] {
            let stage = Stage::legacy(lines).await;
            let begun = stage.begin(&plain(1).id("\"large\"")).await;
            let other = stage.begin(&plain(2)).await;
            let (id, result) = (begun.call.seen.id(), format!("{{{}}}", content(3 * MIB)));
            let began = Instant::now();
            let line = match id_first {
                true => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}{line_end}"#),
                false => format!(r#"{{"result":{result},"jsonrpc":"2.0","id":{id}}}{line_end}"#),
            };
            stage.child(1).await.write(line.as_bytes());
            let done = begun.done().await;
            done.is_error(502, -32603);
            assert_eq!(done.message["id"], "large");
            let took = began.elapsed().as_millis();
            assert!(took < 1_000, "id first: {id_first}: at once, not after {took} ms");
            other.call.finish("other");
            ends_with(&other.done().await, "other");
            stage.finished(&plain(3), "after").await;
            assert_eq!(stage.children().len(), 1);
        }
    }
}

/// What answers nothing and is too long is skipped whole, even where a message stands inside.
#[tokio::test(start_paused = true)]
async fn beyond_the_limit_and_no_answer() {
    let stage = Stage::legacy("[upstream.up.limits]\nmessage_bytes = \"1MiB\"\n").await;
    let begun = stage.begin(&plain(1)).await;
    let id = begun.call.seen.id();
    let inner = rpc::result_message(&id, r#"{\"content\":[]}"#).replace('"', "\\\"");
    let child = stage.child(1).await;
    child.write(format!("{}\n", "log ".repeat(MIB)).as_bytes());
    let note = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":""#;
    child.write(format!("{note}{}{inner}\"}}}}\n", "y".repeat(2 * MIB)).as_bytes());
    pass(1_000).await;
    assert!(!begun.client.is_finished(), "nothing of it is taken for the answer");
    begun.call.finish("done");
    ends_with(&begun.done().await, "done");
    assert_eq!(stage.children().len(), 1);
}

/// Exactly at the limit, and one more.
#[tokio::test(start_paused = true)]
async fn at_the_limit() {
    let stage = Stage::legacy("[upstream.up.limits]\nmessage_bytes = \"100KiB\"\n").await;
    for over in [-1_i64, 0, 1] {
        let begun = stage.begin(&plain(1)).await;
        let line =
            |bytes: usize| rpc::result_message(&begun.call.seen.id(), &format!("{{{}}}", content(bytes)));
        let rest = 100 * 1024 - line(0).len();
        let text = line((rest as i64 + over) as usize);
        assert_eq!(text.len() as i64, 100 * 1024 + over);
        stage.child(1).await.say(&text);
        let done = begun.done().await;
        assert_eq!(done.status, if over > 0 { 502 } else { 200 }, "{over}");
    }
}

/// Requests are as large as `limits.body_bytes` lets them be.
#[tokio::test(start_paused = true)]
async fn large_requests() {
    for modern_server in [false, true] {
        let stage = if modern_server { Stage::modern("").await } else { Stage::legacy("").await };
        let text = "z".repeat(3 * MIB);
        let client = stage.run(&crate::support::call("t", &format!(r#"{{"s":"{text}"}}"#)));
        let call = stage.calls.wait(1).await;
        assert_eq!(call.argument("s"), json!(text));
        if modern_server {
            call.completes("done")
        } else {
            call.finish("done")
        }
        ends_with(&done(client).await, "done");
        stage.send(&list("tools/list")).await.result();
    }
}
