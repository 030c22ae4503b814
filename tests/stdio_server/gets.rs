//! What a program says beside any call: on the GET stream of its legacy client, and to the proxy where that stands in for one
//! (A2.5, A12.14, B9.8, C44).

use crate::stage::{Stage, asking, ends_with, legacy_server, opened, plain};
use crate::support::questions::elicit;
use crate::support::{Net, call, json, list, pass};

fn note(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/{method}","params":{params}}}"#)
}

fn ping(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#)
}

#[tokio::test(start_paused = true)]
async fn everything_comes_on_the_get_stream() {
    let stage = Stage::legacy("").await;
    let (one, two) = (stage.user().await, stage.user().await);
    let (first, second) = (one.get().await, two.get().await);
    let child = stage.child(1).await;
    child.say(&note("tools/list_changed", "{}"));
    child.say(&note("message", r#"{"level":"info","data":"m"}"#));
    child.say(&note("resources/updated", r#"{"uri":"file:///x"}"#));
    assert_eq!(first.wait(3).await.len(), 3);
    assert_eq!(first.changes(), ["tools", "file:///x"]);
    assert_eq!(first.notes("notifications/message")[0]["params"]["data"], "m");
    assert_eq!(second.messages().len(), 0, "the other one's is another process");
}

/// C44: a ping and a question, with ids of the program's own, are the client's to answer.
#[tokio::test(start_paused = true)]
async fn c44_answers_reach_the_program_that_asked() {
    let stage = Stage::legacy("").await;
    let user = stage.user().await;
    let answer = stage.proxy.open(&user.old.get()).await;
    let mut stream = answer;
    let child = stage.child(1).await;
    for (id, message) in [("5", ping("5")), ("\"5\"", ping("\"5\"")), ("6", elicit("6", "m"))] {
        child.say(&message);
        let question = stream.message().await;
        assert!(question["method"].is_string(), "{question}");
        let result = if id == "6" { r#"{"action":"decline"}"# } else { "{}" };
        user.answer(&question, result).await;
        let answer = child
            .wait(
                "response",
                if id == "5" {
                    1
                } else if id == "6" {
                    3
                } else {
                    2
                },
            )
            .await;
        assert_eq!(answer["id"].to_string(), id, "its own id, in its own type");
        assert_eq!(answer["result"], serde_json::from_str::<crate::support::Value>(result).unwrap());
    }
    user.refuse(&json!({"id": 6}), -1).await;
}

/// Its stream comes later: what is idempotent is told then (B9.8), and nothing is told twice.
#[tokio::test(start_paused = true)]
async fn what_changed_before_the_stream_is_told_once_it_is_open() {
    let stage = Stage::legacy("").await;
    let user = stage.user().await;
    let child = stage.child(1).await;
    child.say(&note("tools/list_changed", "{}"));
    pass(1_000).await;
    let stream = user.get().await;
    child.say(&note("prompts/list_changed", "{}"));
    stream.wait(1).await;
    pass(1_000).await;
    let told = stream.changes();
    assert_eq!(told.iter().filter(|change| *change == "prompts").count(), 1, "{told:?}");
    assert!(told.iter().filter(|change| *change == "tools").count() <= 1, "{told:?}");
}

/// While no stream of the client's is open, a request of its own carries what concerns it.
#[tokio::test(start_paused = true)]
async fn without_a_get_stream_a_call_carries_it() {
    let stage = Stage::legacy("").await;
    let user = stage.user().await;
    let (opening, call) = stage.start(&user, &user.old.call("ask", "{}")).await;
    let child = stage.child(1).await;
    child.say(&elicit("7", "m"));
    let stream = opened(opening).await;
    let question = stream.question().await;
    assert_eq!(question["params"]["message"], "m");
    user.answer(&question, r#"{"action":"cancel"}"#).await;
    assert_eq!(child.wait("response", 1).await, json!({"jsonrpc":"2.0","id":7,"result":{"action":"cancel"}}));
    child.say(&note("message", r#"{"level":"info","data":"m"}"#));
    stream.wait(2).await;
    call.finish("done");
    assert_eq!(stream.result().await["content"][0]["text"], "done");
}

/// A second GET takes the place of the first, or is refused; never do both tell the same (2025-11-25, Multiple Connections).
#[tokio::test(start_paused = true)]
async fn no_message_is_told_twice() {
    let stage = Stage::legacy("").await;
    let user = stage.user().await;
    let first = user.get().await;
    let second = stage.proxy.open(&user.old.get()).await;
    stage.child(1).await.say(&note("tools/list_changed", "{}"));
    pass(1_000).await;
    let on_first = first.changes().len();
    if !second.is_stream() {
        assert_eq!(on_first, 1, "the second was refused: {}", second.status);
        return;
    }
    let mut second = second;
    let on_second = tokio::select! {
        _ = second.event() => 1,
        () = pass(1_000) => 0,
    };
    assert_eq!(on_first + on_second, 1);
}

/// Where a modern client stands before it, the proxy answers pings itself, at any time (B5).
#[tokio::test(start_paused = true)]
async fn b5_pings_are_always_answered() {
    let stage = Stage::legacy("").await;
    stage.finished(&plain(1), "done").await;
    let child = stage.child(1).await;
    for (n, id) in ["1", "\"1\"", "0", "\"a b\""].into_iter().enumerate() {
        child.say(&ping(id));
        let answer = child.wait("response", n + 1).await;
        assert_eq!((answer["id"].to_string().as_str(), &answer["result"]), (id, &json!({})));
    }
    // Also in the middle of calls.
    let all = [stage.begin(&plain(2)).await, stage.begin(&plain(3)).await];
    child.say(&ping("9"));
    assert_eq!(child.wait("response", 5).await["id"], 9);
    for begun in all {
        begun.call.finish("done");
        ends_with(&begun.done().await, "done");
    }
}

/// B15: before the handshake is over only pings and logs are taken; a question then is refused.
#[tokio::test(start_paused = true)]
async fn b15_asked_before_the_handshake_is_over() {
    let net = Net::new();
    let up = legacy_server().start_program(&net, "server");
    let stage = Stage::before(net, up, crate::support::Calls::new(), "").await;
    stage.first(|running| async move {
        running.say(&ping("1"));
        running.say(&elicit("2", "m"));
        running.say(&note("message", r#"{"level":"info","data":"m"}"#));
        running.say(&note("tools/list_changed", "{}"));
        None
    });
    stage.send(&call("echo", "{}").caps(crate::support::questions::ALL)).await.result();
    pass(1_000).await;
    let answers: Vec<_> =
        stage.child(1).await.messages().into_iter().filter(|one| one.get("method").is_none()).collect();
    for answer in &answers {
        match answer["id"].as_i64() {
            Some(1) => assert_eq!(answer["result"], json!({})),
            Some(2) => assert!(
                answer.get("error").is_some() || answer["result"] == json!({"action":"cancel"}),
                "{answer}"
            ),
            _ => panic!("an answer to nothing: {answer}"),
        }
    }
}

/// A method that nobody knows is refused, not left without an answer.
#[tokio::test(start_paused = true)]
async fn an_unknown_request_of_the_program_is_refused() {
    let stage = Stage::legacy("").await;
    let begun = stage.begin(&asking(1)).await;
    let child = stage.child(1).await;
    child.say(r#"{"jsonrpc":"2.0","id":3,"method":"acme/ask","params":{}}"#);
    let answer = child.wait("response", 1).await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(3), &json!(-32601)));
    begun.call.finish("done");
    ends_with(&begun.done().await, "done");
    stage.send(&list("tools/list")).await.result();
}
