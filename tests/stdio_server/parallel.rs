//! C17, C18, C20, A14.2, A14.3, B17: many requests in one process at once, whatever ids their clients have.

use std::collections::HashSet;

use crate::stage::{Stage, done, ends_with, opened, plain};
use crate::support::{Call, Value, json, pass, rpc};

fn ids(stage: &Stage) -> Vec<Value> {
    stage.calls.all().iter().map(|call| call.id()).collect()
}

/// The id that the request had on the pipe is not used twice, not even in another JSON type (C17).
#[track_caller]
fn are_distinct(ids: &[Value]) {
    let texts: HashSet<_> = ids.iter().map(|id| id.to_string().replace('"', "")).collect();
    assert_eq!(texts.len(), ids.len(), "{ids:?}");
}

#[tokio::test(start_paused = true)]
async fn c20_fifty_calls_under_one_id_answered_in_reverse() {
    for modern in [false, true] {
        let stage = if modern { Stage::modern("").await } else { Stage::legacy("").await };
        let clients: Vec<_> = (0..50).map(|n| stage.run(&plain(n).id("1"))).collect();
        stage.calls.wait(50).await;
        assert_eq!(stage.children().len(), 1, "all in one process");
        are_distinct(&ids(&stage));
        for call in stage.calls.all().iter().rev() {
            let own = call.argument("n").to_string();
            if modern { call.completes(&own) } else { call.finish(&own) }
        }
        for (n, client) in clients.into_iter().enumerate() {
            let done = done(client).await;
            assert_eq!(done.message["id"], json!(1));
            ends_with(&done, &n.to_string());
        }
    }
}

/// As C20, each with a token of its own: as many processes, and nothing crosses.
#[tokio::test(start_paused = true)]
async fn c20_fifty_callers_under_one_id() {
    let stage = Stage::legacy("").await;
    let ask = |n: usize| plain(n).id("1").bearer(&n.to_string());
    let clients: Vec<_> = (0..50).map(|n| stage.run(&ask(n))).collect();
    stage.calls.wait(50).await;
    assert_eq!(stage.alive(), 50);
    for call in stage.calls.all().iter().rev() {
        call.finish(&call.argument("n").to_string());
    }
    for (n, client) in clients.into_iter().enumerate() {
        ends_with(&done(client).await, &n.to_string());
    }
}

/// C18, A14.3: the caller's id comes back as it was written, whatever it is.
#[tokio::test(start_paused = true)]
async fn c18_ids_come_back_as_they_were_written() {
    let long = format!("\"{}\"", "x".repeat(200));
    let all =
        ["1", "\"1\"", "\"init-1\"", "\"\"", "\"0\"", "0", "-1", "9007199254740993", "\"\\u00e9\\n\"", &long];
    for modern in [false, true] {
        let stage = if modern { Stage::modern("").await } else { Stage::legacy("").await };
        let clients: Vec<_> = all.iter().enumerate().map(|(n, id)| stage.run(&plain(n).id(id))).collect();
        stage.calls.wait(all.len()).await;
        are_distinct(&ids(&stage));
        for call in stage.calls.all().iter().rev() {
            if modern { call.completes("done") } else { call.finish("done") }
        }
        for (client, id) in clients.into_iter().zip(all) {
            let done = done(client).await;
            assert_eq!(rpc::id(done.raw.as_bytes()).as_deref(), Some(id), "{}", done.raw);
        }
    }
}

/// C17: a program that gives ids back in another JSON type.
#[tokio::test(start_paused = true)]
async fn c17_an_id_that_comes_back_in_another_type() {
    for modern in [false, true] {
        let stage = if modern { Stage::modern("").await } else { Stage::legacy("").await };
        let clients: Vec<_> =
            ["1", "\"1\""].iter().enumerate().map(|(n, id)| stage.run(&plain(n).id(id))).collect();
        stage.calls.wait(2).await;
        let child = stage.child(1).await;
        for call in stage.calls.all() {
            let other = match call.id() {
                Value::String(text) => text,
                number => format!("\"{number}\""),
            };
            let text = call.argument("n").to_string();
            let content = format!(r#""content":[{{"type":"text","text":"{text}"}}]"#);
            let result = match modern {
                true => crate::support::modern::complete("tools/call", &content),
                false => format!("{{{content}}}"),
            };
            child.say(&rpc::result_message(&other, &result));
        }
        for (n, client) in clients.into_iter().enumerate() {
            ends_with(&done(client).await, &n.to_string());
        }
    }
}

/// The ids of a legacy client in its own process: `1` and `"1"` at once are two requests.
#[tokio::test(start_paused = true)]
async fn c17_a_legacy_clients_ids_stay_apart() {
    let stage = Stage::legacy("").await;
    let user = stage.user().await;
    let all = ["1", "\"1\"", "0", "\"0\"", "\"\"", "-7"];
    let mut begun = Vec::new();
    for id in all {
        begun.push(stage.start(&user, &user.old.call("t", "{}").id(id)).await);
    }
    for (n, (_, call)) in begun.iter().enumerate().rev() {
        call.finish(&n.to_string());
    }
    for (n, (opening, _)) in begun.into_iter().enumerate() {
        let answer = opened(opening).await.answer().await;
        assert_eq!(answer["id"].to_string(), all[n]);
        assert_eq!(answer["result"]["content"][0]["text"], n.to_string());
    }
}

/// C20: one id twice in one session: both right, or the second refused; never swapped, never lost.
#[tokio::test(start_paused = true)]
async fn c20_a_legacy_client_uses_an_id_twice_at_once() {
    let stage = Stage::legacy("").await;
    let user = stage.user().await;
    let ask = |n: usize| user.old.call("t", &format!(r#"{{"n":{n}}}"#)).id("1");
    let (first, call) = stage.start(&user, &ask(1)).await;
    let second = stage.run(&ask(2));
    pass(1_000).await;
    for call in stage.calls.all().into_iter().rev() {
        call.finish(&call.argument("n").to_string());
    }
    let second = done(second).await;
    match second.message.get("result") {
        Some(result) => assert_eq!(result["content"][0]["text"], "2"),
        None => assert_eq!(second.code(), -32600, "{} {}", second.status, second.raw),
    }
    assert_eq!(opened(first).await.result().await["content"][0]["text"], "1");
    assert_ne!(call.id(), Value::Null);
}

/// Answers that nobody waits for, and second answers, are dropped.
#[tokio::test(start_paused = true)]
async fn answers_to_nothing_are_dropped() {
    for modern in [false, true] {
        let stage = if modern { Stage::modern("").await } else { Stage::legacy("").await };
        let end = |call: &Call| if modern { call.completes("done") } else { call.finish("done") };
        let one = stage.begin(&plain(1)).await;
        let two = stage.begin(&plain(2)).await;
        let child = stage.child(1).await;
        let id = one.call.id().to_string();
        for nothing in ["\"nothing\"", "99999999", "null", "1.5", "{}", "true"] {
            child.say(&rpc::result_message(nothing, r#"{"content":[],"resultType":"complete"}"#));
            child.say(&rpc::error_message(nothing, r#"{"code":-32603,"message":"m"}"#));
        }
        pass(100).await;
        assert!(!one.client.is_finished() && !two.client.is_finished());
        end(&one.call);
        ends_with(&one.done().await, "done");
        child.say(&rpc::result_message(&id, r#"{"content":[{"type":"text","text":"again"}]}"#));
        pass(100).await;
        end(&two.call);
        ends_with(&two.done().await, "done");
        assert_eq!(stage.alive(), 1);
    }
}

/// A stress of everything at once: random order, random times, several principals and ids.
#[tokio::test(start_paused = true)]
async fn c20_at_random() {
    for seed in 0..10 {
        let modern = seed % 2 == 1;
        let stage = if modern { Stage::modern("").await } else { Stage::legacy("").await };
        let calls = stage.calls.clone();
        let server = tokio::spawn(async move {
            for n in 0..100 {
                let call = calls.wait(n + 1).await;
                tokio::spawn(async move {
                    let own = call.argument("n").to_string();
                    crate::support::Choice::nth(seed, n as u64).pause(5_000).await;
                    if modern { call.completes(&own) } else { call.finish(&own) }
                });
            }
        });
        let clients: Vec<_> = (0..100)
            .map(|n| {
                let id = if n % 3 == 0 { format!("\"{}\"", n % 5) } else { (n % 5).to_string() };
                stage.run(&plain(n).id(&id).bearer(&(n % 4).to_string()))
            })
            .collect();
        for (n, client) in clients.into_iter().enumerate() {
            ends_with(&done(client).await, &n.to_string());
        }
        server.await.unwrap();
        assert_eq!(stage.alive(), 4);
        for child in stage.children() {
            let sent: Vec<_> = child
                .messages()
                .into_iter()
                .filter(|one| one["method"] == "tools/call")
                .map(|one| one["id"].clone())
                .collect();
            are_distinct(&sent);
        }
    }
}

/// C17 for a legacy client's own session: a program that gives every id back as the other JSON type, `initialize` among them.
#[tokio::test(start_paused = true)]
async fn c17_a_legacy_client_gets_its_own_ids_back() {
    let turned = |raw: &str| match raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"')) {
        Some(text) => text.to_owned(),
        None => format!("\"{raw}\""),
    };
    let stage = crate::stage::scripted("", move |mut child: crate::support::Child| async move {
        while let Some(line) = child.line().await {
            let (id, method) = (rpc::id(line.as_bytes()), rpc::method(line.as_bytes()).unwrap_or_default());
            let Some(id) = id else { continue };
            let answer = match method.as_str() {
                "server/discover" => rpc::error_message(&turned(&id), crate::stage::UNKNOWN),
                "initialize" => {
                    rpc::result_message(&turned(&id), &crate::stage::legacy_server().initialize_result())
                }
                _ => rpc::result_message(&turned(&id), &format!(r#"{{"content":[],"of":{id}}}"#)),
            };
            child.say(&answer);
        }
        0
    })
    .await;
    let user = stage.user().await;
    for id in ["1", "0", "-3", "\"7\"", "\"0\""] {
        let done = stage.send(&user.old.call("t", "{}").id(id)).await;
        assert_eq!(rpc::id(done.raw.as_bytes()).as_deref(), Some(id), "{}", done.raw);
        assert_eq!(done.result()["of"].to_string(), id);
    }
}

/// With both in flight nothing is turned: each answer is that of the id it has.
#[tokio::test(start_paused = true)]
async fn c17_what_is_in_flight_in_both_types_is_told_apart() {
    let stage = Stage::legacy("").await;
    let user = stage.user().await;
    let (number, one) = stage.start(&user, &user.old.call("t", "{}").id("1")).await;
    let (text, two) = stage.start(&user, &user.old.call("t", "{}").id("\"1\"")).await;
    let child = stage.child(1).await;
    for (call, name) in [(&two, "text"), (&one, "number")] {
        let result = format!(r#"{{"content":[{{"type":"text","text":"{name}"}}]}}"#);
        child.say(&rpc::result_message(&call.seen.id(), &result));
        pass(10).await;
    }
    assert_eq!(opened(number).await.result().await["content"][0]["text"], "number");
    assert_eq!(opened(text).await.result().await["content"][0]["text"], "text");
}
