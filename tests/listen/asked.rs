//! A1.2, A2.3, B1.11, C44: what else a server sends on the GET stream.

use std::sync::Arc;

use tokio::sync::Notify;

use crate::stage::{A, SOME, Stage, TOOLS, updated};
use crate::support::{Gets, LegacyServer, Reply, call, json, pass};

#[tokio::test(start_paused = true)]
async fn a1_2_a_ping_is_answered_under_its_own_id() {
    let stage = Stage::new().await;
    let listener = stage.listens("1", SOME).await;
    let ids = ["7", "0", r#""7""#, r#""p\u0041\"""#, "-3", r#""""#];
    for id in ids {
        stage.gets.tell(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#));
    }
    let answers = stage.up.wait("response", ids.len()).await;
    let mut texts: Vec<_> = answers.iter().map(|seen| seen.text().to_owned()).collect();
    let mut expected: Vec<_> =
        ids.iter().map(|id| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)).collect();
    texts.sort();
    expected.sort();
    assert_eq!(texts, expected);
    assert!(answers.iter().all(|seen| seen.session().as_deref() == Some("S1")));
    assert_eq!(listener.messages().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn b1_11_questions_outside_a_call_are_refused() {
    let stage = Stage::new().await;
    let listener = stage.listens("1", SOME).await;
    let schema = r#"{"type":"object","properties":{}}"#;
    let asked = [
        ("elicitation/create", format!(r#"{{"message":"m","requestedSchema":{schema}}}"#), None),
        (
            "elicitation/create",
            r#"{"mode":"url","elicitationId":"e","url":"https://s/x","message":"m"}"#.to_owned(),
            None,
        ),
        ("sampling/createMessage", r#"{"messages":[],"maxTokens":1}"#.to_owned(), None),
        ("roots/list", "{}".to_owned(), None),
        ("acme/unknown", "{}".to_owned(), Some(-32601)),
        ("tools/call", r#"{"name":"x"}"#.to_owned(), Some(-32601)),
    ];
    for (n, (method, params, code)) in asked.iter().enumerate() {
        stage.gets.tell(&format!(r#"{{"jsonrpc":"2.0","id":"q{n}","method":"{method}","params":{params}}}"#));
        let answer = stage.up.wait("response", n + 1).await[n].json();
        assert_eq!(answer["id"], format!("q{n}"), "{method}");
        let refused = answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("{method}: {answer}"));
        assert!(answer.get("result").is_none() && answer["error"]["message"].is_string(), "{answer}");
        assert!(code.is_none_or(|code| code == refused), "{method}: {answer}");
    }
    stage.gets.tell(TOOLS);
    listener.wait(2).await;
    assert_eq!(listener.changes(), ["tools"]);
}

/// A server that does not take the answers is not kept from telling.
#[tokio::test(start_paused = true)]
async fn a1_2_answers_that_are_not_taken() {
    let server = LegacyServer::telling().on("response", |_, reply: Reply| async move { reply.never().await });
    let stage = Stage::of(server, Gets::open()).await;
    let listener = stage.listens("1", SOME).await;
    for n in 0..4 {
        stage.gets.tell(&format!(r#"{{"jsonrpc":"2.0","id":{n},"method":"ping"}}"#));
    }
    stage.gets.tell(TOOLS);
    stage.gets.tell(&updated(A));
    let start = tokio::time::Instant::now();
    listener.wait(3).await;
    assert!(start.elapsed() < std::time::Duration::from_secs(1), "{:?}", start.elapsed());
    // A flood of them is bounded, and comes to an end.
    for n in 4..100 {
        stage.gets.tell(&format!(r#"{{"jsonrpc":"2.0","id":{n},"method":"ping"}}"#));
    }
    pass(1000).await;
    assert!(stage.up.posts("").len() < 30, "{} answers on their way", stage.up.posts("").len());
    listener.close();
    stage.nothing_is_left().await;
}

/// A2.3: by the token that the proxy gave, under the client's own, and only forwards; on whichever stream.
#[tokio::test(start_paused = true)]
async fn a2_3_progress_on_the_get_stream() {
    let go = Arc::new(Notify::new());
    let held = Arc::clone(&go);
    let progress = |token: &crate::support::Value, n: f64| {
        let params = json!({"progressToken": token, "progress": n});
        json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}).to_string()
    };
    let server = LegacyServer::telling().on("tools/call", move |seen, mut reply: Reply| {
        let held = Arc::clone(&held);
        async move {
            held.notified().await;
            let token = seen.json()["params"]["_meta"]["progressToken"].clone();
            reply.stream().await;
            for n in [3.0, 3.5] {
                reply.event(&progress(&token, n)).await;
            }
            reply.result_event(&seen, r#"{"content":[]}"#).await;
            reply.end().await;
        }
    });
    let stage = Stage::of(server, Gets::open()).await;
    let listener = stage.listens("1", SOME).await;
    let one = stage.proxy.spawn(&call("echo", "{}").id("2").meta("progressToken", r#""t""#));
    let seen = stage.up.wait("tools/call", 1).await;
    let two = stage.proxy.spawn(&call("echo", "{}").id("3").meta("progressToken", "5"));
    let without = stage.proxy.spawn(&call("echo", "{}").id("4"));
    stage.up.wait("tools/call", 3).await;
    let token = seen[0].json()["params"]["_meta"]["progressToken"].clone();
    for n in [1.0, 2.0, 2.0, 1.0, 3.0] {
        stage.gets.tell(&progress(&token, n));
        pass(10).await;
    }
    // Of nobody.
    for token in [json!("t"), json!(5), json!(987_654), json!(null)] {
        stage.gets.tell(&progress(&token, 1.0));
    }
    pass(1000).await;
    go.notify_waiters();
    let done = one.await.unwrap();
    done.result();
    let values: Vec<_> = done.before.iter().map(|m| m["params"]["progress"].as_f64().unwrap()).collect();
    assert_eq!(values, [1.0, 2.0, 3.0, 3.5]);
    assert!(done.before.iter().all(|m| m["params"]["progressToken"] == "t"));
    assert_eq!(two.await.unwrap().before.len(), 2, "its own stream's");
    assert_eq!(without.await.unwrap().before.len(), 0);
    assert_eq!(listener.messages().len(), 1);
}

/// Answers and notifications that are nobody's are passed over, though they name a call in flight.
#[tokio::test(start_paused = true)]
async fn a14_2_what_is_nobodys() {
    let go = Arc::new(Notify::new());
    let held = Arc::clone(&go);
    let server = LegacyServer::telling().on("tools/call", move |seen, reply: Reply| {
        let held = Arc::clone(&held);
        async move {
            held.notified().await;
            reply.result(&seen, r#"{"content":[],"mine":true}"#).await;
        }
    });
    let stage = Stage::of(server, Gets::open()).await;
    let listener = stage.listens("1", SOME).await;
    let running = stage.proxy.spawn(&call("echo", "{}").id("2"));
    let id = stage.up.wait("tools/call", 1).await[0].id();
    for message in [
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[],"mine":false}}}}"#),
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"m"}}"#.to_owned(),
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#),
        r#"{"jsonrpc":"2.0","method":"notifications/acme","params":{}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"e"}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t","status":"working"}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{}}}"#.to_owned(),
    ] {
        stage.gets.tell(&message);
    }
    pass(1000).await;
    go.notify_waiters();
    let done = running.await.unwrap();
    assert_eq!(done.result()["mine"], true);
    assert_eq!(done.before.len(), 0);
    pass(1000).await;
    assert_eq!(listener.messages().len(), 1);
    assert_eq!(stage.gets.now(), 1);
}
