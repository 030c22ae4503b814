//! C53: what spoils one message spoils one call, and never the process.

use tokio::time::Instant;

use crate::stage::{Begun, Stage, ends_with, plain};
use crate::support::{json, list, pass, rpc};

const LINES: &str = "[upstream.up.timeouts]\nrequest = \"20s\"\n";

fn answer(begun: &Begun) -> String {
    rpc::result_message(&begun.call.seen.id(), r#"{"content":[{"type":"text","text":"spoilt"}]}"#)
}

/// What becomes of an answer.
type Spoil = fn(&str) -> String;

/// By name: how an answer is spoilt.
fn spoilt() -> Vec<(&'static str, Spoil)> {
    vec![
        ("glued to a log", |answer| format!("INFO: done{answer}\n")),
        ("a log glued to it", |answer| format!("{answer}INFO: done\n")),
        ("two in one line", |answer| format!("{answer}{answer}\n")),
        ("over many lines", |answer| format!("{}\n", answer.replace(",", ",\n  ").replace("{", "{\n  "))),
        ("cut off", |answer| format!("{}\n", &answer[..answer.len() / 2])),
        ("not a JSON", |answer| format!("{}\n", answer.replace("\"result\"", "result"))),
        ("no version", |answer| format!("{}\n", answer.replace("\"jsonrpc\":\"2.0\",", ""))),
        ("a BOM inside", |answer| format!("{}\n", answer.replace("\"id\"", "\u{feff}\"id\""))),
    ]
}

#[tokio::test(start_paused = true)]
async fn c53_a_spoilt_answer_fails_its_call_alone() {
    for (name, spoil) in spoilt() {
        let stage = Stage::legacy(LINES).await;
        let begun = stage.begin(&plain(1).id("\"a\"")).await;
        let other = stage.begin(&plain(2)).await;
        let child = stage.child(1).await;
        let began = Instant::now();
        child.write(spoil(&answer(&begun)).as_bytes());
        pass(100).await;
        other.call.finish("other");
        ends_with(&other.done().await, "other");
        let done = begun.done().await;
        // What can be made out may be taken; else it is a time-out, or a failure at once.
        if done.message.get("result").is_none() {
            assert_eq!(done.code(), -32603, "{name}: {}", done.raw);
        }
        assert_eq!(done.message["id"], "a", "{name}");
        assert!(began.elapsed().as_secs() <= 21, "{name}: {:?}", began.elapsed());
        stage.finished(&plain(3), "after").await;
        assert_eq!(stage.children().len(), 1, "{name}: the process is as good as before");
    }
}

/// The same for a legacy client, which gets an answer (A12.21).
#[tokio::test(start_paused = true)]
async fn c53_of_a_legacy_client() {
    for (name, spoil) in spoilt() {
        let stage = Stage::legacy(LINES).await;
        let user = stage.user().await;
        let (opening, call) = stage.start(&user, &user.old.call("t", "{}").id("\"a\"")).await;
        let (beside, other) = stage.start(&user, &user.old.call("t", "{}").id("\"b\"")).await;
        let child = stage.child(1).await;
        let text = rpc::result_message(&call.seen.id(), r#"{"content":[]}"#);
        child.write(spoil(&text).as_bytes());
        pass(100).await;
        other.finish("other");
        assert_eq!(crate::stage::opened(beside).await.result().await["content"][0]["text"], "other");
        let answer = crate::stage::opened(opening).await.answer().await;
        assert_eq!(answer["id"], "a", "{name}");
        assert!(answer.get("result").is_some() || answer["error"]["code"] == -32603, "{name}: {answer}");
        assert!(user.lives().await, "{name}");
    }
}

/// A junk answer to `initialize` is a failure that says so; the next call begins anew.
#[tokio::test(start_paused = true)]
async fn c53_a_spoilt_handshake() {
    let stage = Stage::legacy("").await;
    stage.finished(&plain(1), "done").await;
    stage.child(1).await.dies();
    let serve = stage.behind();
    stage.net.programs().put("server", move |mut child: crate::support::Child| {
        let (serve, running) = (serve.clone(), child.running());
        async move {
            if running.n > 2 {
                return serve(child).await;
            }
            let id = child.next("initialize").await.unwrap_or_default();
            child.say(&rpc::result_message(&id, r#"{"capabilities":"none"}"#));
            child.listen().await;
            0
        }
    });
    pass(1_000).await;
    let done = stage.send(&plain(2).id("2")).await;
    assert_eq!((done.code(), &done.message["id"]), (-32603, &json!(2)), "{}", done.raw);
    pass(60_000).await;
    stage.finished(&plain(3), "done").await;
    assert_eq!(stage.alive(), 1, "the one without a session is not kept");
}

/// Between its calls, nothing that it says can do harm.
#[tokio::test(start_paused = true)]
async fn c53_messages_without_sense_are_survived() {
    let stage = Stage::legacy("").await;
    stage.finished(&plain(0), "done").await;
    let child = stage.child(1).await;
    for odd in [
        r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":[1],"method":"elicitation/create","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","method":7}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":[]}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":{}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":null}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/message"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":5}}"#,
        r#"{"jsonrpc":"2.0","method":""}"#,
        r#"{"jsonrpc":"2.0","id":"x","method":""}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"method":"ping"}"#,
    ] {
        child.say(odd);
        pass(10).await;
        stage.send(&list("tools/list")).await.result();
    }
    stage.finished(&plain(1), "done").await;
    assert_eq!(stage.children().len(), 1);
}
