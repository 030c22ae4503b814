//! A14.1, B16, C31: arrays of a client of 2025-03-26, which go over a pipe one by one.

use crate::stage::{Stage, done, legacy_server};
use crate::support::{LegacyServer, Old, User, Value, json, pass};

fn server() -> LegacyServer {
    legacy_server().version("2025-03-26")
}

fn by_id(body: &Value) -> Vec<(String, bool)> {
    let all = body.as_array().unwrap_or_else(|| panic!("an array: {body}"));
    let mut found: Vec<_> =
        all.iter().map(|one| (one["id"].to_string(), one.get("result").is_some())).collect();
    found.sort();
    found
}

#[tokio::test(start_paused = true)]
async fn an_array_is_sent_one_by_one_and_answered_as_one() {
    let stage = Stage::canned(server(), "").await;
    let user = User::begin(&stage.proxy, "2025-03-26").await;
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"tools/list"},
        {"jsonrpc":"2.0","id":"1","method":"tools/call","params":{"name":"t"}},
        {"jsonrpc":"2.0","method":"notifications/roots/list_changed"},
        {"jsonrpc":"2.0","id":2,"method":"acme/unknown"}]"#;
    let before = stage.child(1).await.briefs().len();
    let answer = stage.proxy.open(&user.old.raw(batch)).await;
    assert_eq!(answer.status, 200);
    let found = if answer.is_stream() {
        let (messages, broken) = answer.rest().await;
        assert!(!broken);
        let flat = messages.into_iter().flat_map(|one| match one {
            Value::Array(all) => all,
            one => vec![one],
        });
        by_id(&Value::Array(flat.collect()))
    } else {
        by_id(&answer.done().await.message)
    };
    assert_eq!(found, [("\"1\"".to_owned(), true), ("1".to_owned(), true), ("2".to_owned(), false)]);
    let mut sent = stage.child(1).await.briefs()[before..].to_vec();
    sent.sort();
    assert_eq!(sent, ["acme/unknown", "notifications/roots/list_changed", "tools/call", "tools/list"]);
}

#[tokio::test(start_paused = true)]
async fn an_array_of_notifications_is_accepted() {
    let stage = Stage::canned(server(), "").await;
    let user = User::begin(&stage.proxy, "2025-03-26").await;
    let batch = r#"[{"jsonrpc":"2.0","method":"notifications/roots/list_changed"},{"jsonrpc":"2.0","method":"notifications/acme"}]"#;
    let done = stage.send(&user.old.raw(batch)).await;
    assert_eq!((done.status, done.raw.as_str()), (202, ""));
    stage.child(1).await.wait("notifications/acme", 1).await;
}

#[tokio::test(start_paused = true)]
async fn arrays_that_are_refused() {
    let stage = Stage::canned(server(), "").await;
    let user = User::begin(&stage.proxy, "2025-03-26").await;
    let before = stage.child(1).await.briefs();
    let initialize = String::from_utf8(Old::initialize("2025-03-26").body()).unwrap();
    for batch in ["[]".to_owned(), format!("[{initialize}]"), "[1]".to_owned()] {
        let done = stage.send(&user.old.raw(&batch)).await;
        assert!(done.status == 400 || done.status == 200, "{batch}: {}", done.status);
        assert!(done.raw.contains("-32600"), "{batch}: {}", done.raw);
    }
    assert_eq!(stage.child(1).await.briefs(), before);
}

/// A client of a later revision may not.
#[tokio::test(start_paused = true)]
async fn an_array_of_another_revision_is_refused() {
    let stage = Stage::canned(legacy_server(), "").await;
    let user = stage.user().await;
    let before = stage.child(1).await.briefs();
    let done = stage.send(&user.old.raw(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#)).await;
    assert_eq!((done.status, done.code()), (400, -32600), "{}", done.raw);
    assert_eq!(stage.child(1).await.briefs(), before);
}

/// The process ends in the middle of an array: what was answered is, the rest is an error; each once.
#[tokio::test(start_paused = true)]
async fn c56_the_process_ends_in_the_middle_of_an_array() {
    let stage = Stage::legacy_of(server(), "").await;
    let user = User::begin(&stage.proxy, "2025-03-26").await;
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"tools/list"},{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t"}},{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"t"}}]"#;
    let client = stage.run(&user.old.raw(batch));
    let one = stage.calls.wait(1).await;
    stage.calls.wait(2).await;
    one.finish("done");
    pass(100).await;
    stage.child(1).await.dies();
    let done = done(client).await;
    let whole = match &done.message {
        Value::Array(all) => all.clone(),
        one => done.before.iter().cloned().chain([one.clone()]).collect(),
    };
    let found = by_id(&json!(whole));
    let ids: Vec<_> = found.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["1", "2", "3"], "{}", done.raw);
    assert_eq!(found.iter().filter(|(_, result)| *result).count(), 2, "{}", done.raw);
}

/// One answer that cannot be passed on is an error under its own id; the others are answered all the same.
#[tokio::test(start_paused = true)]
async fn one_bad_answer_costs_no_other() {
    let lines =
        "[upstream.up.limits]\nmessage_bytes = \"100KiB\"\n[upstream.up.timeouts]\nrequest = \"30s\"\n";
    for spoilt in [0, 1, 2] {
        for too_long in [true, false] {
            let stage = Stage::legacy_of(server(), lines).await;
            let user = User::begin(&stage.proxy, "2025-03-26").await;
            let one = |id: &str| {
                format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t"}}}}"#)
            };
            let client = stage.run(&user.old.raw(&format!("[{},{},{}]", one("1"), one("\"2\""), one("3"))));
            stage.calls.wait(3).await;
            let (calls, child) = (stage.calls.all(), stage.child(1).await);
            let id = calls[spoilt].seen.id();
            if too_long {
                let text = "x".repeat(200_000);
                child.say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#));
            } else {
                child.say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}},"error":{{}}}}"#));
            }
            pass(100).await;
            for (n, call) in calls.iter().enumerate() {
                if n != spoilt {
                    call.finish("done");
                }
            }
            let done = done(client).await;
            let whole = match &done.message {
                Value::Array(all) => all.clone(),
                one => done.before.iter().cloned().chain([one.clone()]).collect(),
            };
            let found = by_id(&json!(whole));
            let ids: Vec<_> = found.iter().map(|(id, _)| id.as_str()).collect();
            assert_eq!(ids, ["\"2\"", "1", "3"], "{spoilt} {too_long}: {}", done.raw);
            assert_eq!(
                found.iter().filter(|(_, result)| *result).count(),
                2,
                "{spoilt} {too_long}: {}",
                done.raw
            );
        }
    }
}

/// An array of thousands: answered or refused without holding up the process's other answers, and a doubled id in it is found.
#[tokio::test(start_paused = true)]
async fn an_array_of_thousands() {
    let stage = Stage::legacy_of(server(), "").await;
    let user = User::begin(&stage.proxy, "2025-03-26").await;
    let one = |n: usize| format!(r#"{{"jsonrpc":"2.0","id":{n},"method":"ping"}}"#);
    let began = std::time::Instant::now();
    for doubled in [false, true] {
        let mut all: Vec<_> = (0..10_000).map(one).collect();
        if doubled {
            all.push(one(0));
        }
        let answer = stage.proxy.open(&user.old.raw(&format!("[{}]", all.join(",")))).await;
        assert!([200, 400, 413].contains(&answer.status), "{}", answer.status);
        if answer.status == 200 && answer.is_stream() {
            let (messages, broken) = answer.rest().await;
            assert!(!broken && (messages.len() == 10_000 || doubled), "{} answers", messages.len());
        }
        user.list("ping").await;
    }
    assert!(began.elapsed() < std::time::Duration::from_secs(20), "{:?}", began.elapsed());
}
