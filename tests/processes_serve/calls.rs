//! Calls of both eras before processes of both, which misbehave in one way each (C20, C53, C55, B1, B2).

use std::thread;

use serde_json::json;

use crate::procs::{below, zombies};
use crate::stage::{Legacy, Served, text_of};

/// C55: the number of processes is independent of that of requests.
#[test]
fn c55_two_hundred_short_calls_need_no_more_processes() {
    for words in [&["modern"][..], &[]] {
        let served = Served::before(words);
        served.text("echo", json!({"text": "first"}));
        let before = below(served.pid());
        assert_eq!(before.len(), 1, "{before:?}");
        for n in 0..200 {
            let text = n.to_string();
            assert_eq!(served.text("echo", json!({"text": text})), text);
        }
        assert_eq!(below(served.pid()), before, "{words:?}");
        assert_eq!(zombies(served.pid()), [] as [u32; 0]);
    }
}

/// C53: whatever a process writes besides its messages, and in whatever pieces.
#[test]
fn c53_processes_that_misbehave_serve_all_the_same() {
    let ways: [&[&str]; 7] = [
        &["logs"],
        &["split"],
        &["crlf"],
        &["floods"],
        &["exits"],
        &["logs", "split", "crlf", "floods", "exits"],
        &["modern", "logs", "split", "crlf", "floods"],
    ];
    for words in ways {
        let served = Served::before(words);
        for n in 0..3 {
            let text = format!("ü {n} \u{2028}\n\"");
            assert_eq!(served.text("echo", json!({"text": text})), text, "{words:?}");
        }
        assert_eq!(below(served.pid()).len(), 1, "{words:?}");
        let client = Legacy::begin(&served);
        assert_eq!(client.text("echo", json!({"text": "old"})), "old", "{words:?}");
    }
}

/// C20: answers out of order, three at a time.
#[test]
fn c20_answers_out_of_order() {
    for words in [&["modern", "backwards"][..], &["backwards"]] {
        let served = Served::before(words);
        thread::scope(|scope| {
            let calls: Vec<_> = (0..30)
                .map(|n| {
                    let served = &served;
                    scope.spawn(move || served.call("1", "echo", json!({"text": n.to_string()})))
                })
                .collect();
            for (n, call) in calls.into_iter().enumerate() {
                let response = call.join().unwrap();
                assert_eq!(text_of(&response), Some(n.to_string()), "{words:?}: {response}");
            }
        });
        assert_eq!(below(served.pid()).len(), 1, "{words:?}");
    }
}

#[test]
fn c53_large_results() {
    for words in [&["modern"][..], &[], &["logs", "floods"]] {
        let served = Served::before(words);
        assert_eq!(served.text("large", json!({"bytes": 5_000_000})).len(), 5_000_000, "{words:?}");
        let text = "y".repeat(3_000_000);
        assert_eq!(served.text("echo", json!({"text": text})), text, "{words:?}");
        assert_eq!(Legacy::begin(&served).text("large", json!({"bytes": 5_000_000})).len(), 5_000_000);
    }
}

const ASKED: [(&str, &str, &str); 3] = [
    ("elicit", r#"{"action":"accept","content":{"name":"x"}}"#, "\"x\""),
    ("sample", r#"{"role":"assistant","model":"m","content":{"type":"text","text":"yes"}}"#, "\"yes\""),
    ("roots", r#"{"roots":[{"uri":"file:///home"}]}"#, "\"file:///home\""),
];

/// B1: a modern client is asked by processes of both eras, and tries again with the answers.
#[test]
fn b1_a_modern_client_is_asked() {
    for words in [&[][..], &["modern"]] {
        let served = Served::before(words);
        for (tool, answer, says) in ASKED {
            let asked = served.call("a", tool, json!({}));
            assert_eq!(asked["result"]["resultType"], "input_required", "{tool}: {asked}");
            let key = asked["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
            let answer: serde_json::Value = serde_json::from_str(answer).unwrap();
            let mut params =
                json!({"name": tool, "arguments": {}, "requestState": asked["result"]["requestState"]});
            params["inputResponses"][key] = answer;
            let response = served.open("b", "tools/call", tool, params).response();
            assert_eq!(text_of(&response).as_deref(), Some(says), "{words:?} {tool}: {response}");
        }
    }
}

/// A legacy client is asked on the stream of its call.
#[test]
fn b2_a_legacy_client_is_asked() {
    for words in [&[][..], &["modern"]] {
        let served = Served::before(words);
        let client = Legacy::begin(&served);
        for (tool, answer, says) in ASKED {
            let mut stream = client.open(5, tool, json!({}));
            let question = stream.message().expect("a question");
            let answer: serde_json::Value = serde_json::from_str(answer).unwrap();
            let message = json!({"jsonrpc": "2.0", "id": question["id"], "result": answer});
            assert_eq!(client.send("POST", &message).status, 202, "{words:?} {tool}: {question}");
            let response = stream.response();
            assert_eq!(text_of(&response).as_deref(), Some(says), "{words:?} {tool}: {response}");
        }
    }
}

/// C57: no shell reads the arguments, and what is not there is named in the log.
#[test]
fn c57_what_cannot_be_started_is_named() {
    let served = Served::command(&["/no/such/program & co", "$HOME"]);
    let response = served.call("1", "echo", json!({}));
    assert_eq!(response["error"]["code"], -32603, "{response}");
    assert!(served.log().contains("/no/such/program & co"), "{}", served.log());
    let served = Served::command(&["sh", "-c", "exit 7"]);
    let response = served.call("1", "echo", json!({}));
    assert_eq!(response["error"]["code"], -32603, "{response}");
    assert!(served.log().contains('7'), "{}", served.log());
}
