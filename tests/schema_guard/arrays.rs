//! A14.1, C31: arrays of messages, which only 2025-03-26 has.

use crate::stage::{Cell, List, Stage, bad, good};
use crate::support::net::{Receiver, handler};
use crate::support::questions::request;
use crate::support::{Era, Net, Old, Proxy, Reply, Transport, Upstream, Value, json, rpc};

const OLD: Era = Era::Legacy("2025-03-26");

/// A sessionless server of that revision that answers arrays with arrays, as a body or as an event.
async fn before_arrays(tools: String, streamed: bool, beside: &'static str) -> (Proxy, Upstream) {
    let net = Net::new();
    let up = net.serve(
        "up.test",
        Receiver::Unchecked,
        handler(move |seen, reply: Reply| {
            let tools = tools.clone();
            async move {
                let Ok(Value::Array(all)) = rpc::value(&seen.body) else {
                    return match seen.brief().as_str() {
                        "server/discover" => reply.json(400, "{}").await,
                        _ if rpc::id(&seen.body).is_none() => reply.empty(202).await,
                        "tools/list" => reply.result(&seen, &format!(r#"{{"tools":[{tools}]}}"#)).await,
                        _ => reply.result(&seen, "{}").await,
                    };
                };
                let answer = |one: &Value| {
                    let result = match one["method"].as_str()? {
                        "tools/list" => format!(r#"{{"tools":[{tools}]}}"#),
                        "tools/call" => r#"{"content":[]}"#.to_owned(),
                        _ => "{}".to_owned(),
                    };
                    Some(rpc::result_message(&one.get("id")?.to_string(), &result))
                };
                let mut answers: Vec<_> = all.iter().filter_map(answer).collect();
                if !beside.is_empty() {
                    answers.insert(0, beside.to_owned());
                }
                let text = format!("[ {} ]", answers.join(" , "));
                if !streamed {
                    return reply.json(200, &text).await;
                }
                let mut reply = reply;
                reply.stream().await;
                reply.chunk(format!("id: 5\ndata: {text}\n\n").as_bytes()).await;
                reply.end().await;
            }
        }),
    );
    (Proxy::start(&net).await, up)
}

fn client() -> Old {
    Old { session: None, version: None, token: None }
}

fn list(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#)
}

fn call(id: &str, tool: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{}}}}}}"#
    )
}

const PING: &str = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;

/// The messages of an answer.
async fn answers(proxy: &Proxy, body: &str) -> (String, Vec<Value>) {
    let done = proxy.send(&client().raw(body)).await;
    assert_eq!(done.status, 200, "{}", done.raw);
    let all = match done.message {
        Value::Array(all) => all,
        one => vec![one],
    };
    (done.raw, all)
}

#[tokio::test(start_paused = true)]
async fn a14_1_lists_in_an_array_pass_to_the_byte() {
    for streamed in [false, true] {
        let (proxy, _up) = before_arrays(good("g0"), streamed, "").await;
        let (raw, all) = answers(&proxy, &format!("[{},{PING},{}]", list("1"), list("2"))).await;
        assert_eq!(all.len(), 3);
        let result = format!(r#"{{"tools":[{}]}}"#, good("g0"));
        let wanted = [
            rpc::result_message("1", &result),
            rpc::result_message("\"p\"", "{}"),
            rpc::result_message("2", &result),
        ];
        assert_eq!(raw, format!("[ {} ]", wanted.join(" , ")), "{streamed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a14_1_each_list_of_an_array_is_judged() {
    for streamed in [false, true] {
        let tools = format!("{},{},{}", good("g0"), bad("out"), good("g1"));
        let (proxy, up) = before_arrays(tools, streamed, "").await;
        let (raw, all) = answers(&proxy, &format!("[{},{PING},{}]", list("1"), list("2"))).await;
        assert_eq!(all.len(), 3, "{raw}");
        for (at, id) in [(0, json!(1)), (2, json!(2))] {
            assert_eq!(all[at]["id"], id);
            assert_eq!(all[at]["result"]["tools"].as_array().unwrap().len(), 2, "{raw}");
        }
        assert_eq!(all[1], json!({"jsonrpc": "2.0", "id": "p", "result": {}}));
        assert!(!raw.contains("canary"), "{raw}");
        // Of what was told in an array, calls know.
        let refused = proxy.send(&client().raw(&call("3", "out"))).await;
        assert_eq!((refused.code(), up.posts("tools/call").len()), (-32602, 0), "{}", refused.raw);
    }
}

/// An array goes to such a server as one, so one with a call of a bad tool does not go at all; every request has its answer.
#[tokio::test(start_paused = true)]
async fn a14_1_a_bad_call_in_an_array() {
    let (proxy, up) = before_arrays(format!("{},{}", good("g0"), bad("out")), false, "").await;
    proxy.send(&client().raw(&list("1"))).await.result();
    let done = proxy.send(&client().raw(&format!("[{},{},{PING}]", call("4", "out"), call("5", "g0")))).await;
    let sent: Vec<_> = up.requests().iter().map(|seen| seen.text().to_owned()).collect();
    assert!(sent.iter().all(|text| !text.contains(r#""name":"out""#)), "it reached the server: {sent:?}");
    let all = done.message.as_array().cloned().unwrap_or_default();
    assert_eq!((done.status, all.len()), (200, 3), "{}", done.raw);
    let of = |id: Value| all.iter().find(|one| one["id"] == id).cloned().unwrap_or_default();
    assert_eq!(of(json!(4))["error"]["code"], -32602, "{}", done.raw);
    for id in [json!(5), json!("p")] {
        let other = of(id);
        assert!(other.get("result").is_some() != other.get("error").is_some(), "{}", done.raw);
    }
}

/// A question in an array is taken out, and what is beside it is not.
#[tokio::test(start_paused = true)]
async fn a14_1_a_bad_form_in_an_array() {
    let form: &'static str = request(
        "7",
        "elicitation/create",
        r#"{"message":"m","requestedSchema":{"type":"object","properties":{"n":{"type":"string","$ref":"https://canary.test/x"}}}}"#,
    )
    .leak();
    for streamed in [false, true] {
        let (proxy, up) = before_arrays(good("g0"), streamed, form).await;
        let (raw, all) = answers(&proxy, &format!("[{},{PING}]", list("1"))).await;
        assert!(!raw.contains("canary") && !raw.contains("elicitation"), "{raw}");
        assert_eq!(all.len(), 2, "{raw}");
        // The array itself is the first that is no single request.
        let told = up.wait("response", 2).await;
        assert_eq!(told[1].json()["error"]["code"], -32602, "{}", told[1].text());
    }
}

/// Where the proxy takes arrays apart itself.
#[tokio::test(start_paused = true)]
async fn a14_1_arrays_that_the_proxy_takes_apart() {
    for (server, from, to) in [
        (Era::Modern, Transport::Http, Transport::Http),
        (Era::Modern, Transport::Stdio, Transport::Stdio),
        (OLD, Transport::Http, Transport::Stdio),
        (OLD, Transport::Http, Transport::HttpSse),
        (OLD, Transport::Stdio, Transport::Stdio),
    ] {
        let cell = Cell { client: OLD, from, server, to };
        let stage = Stage::set(cell, &format!("{},{}", bad("out"), good("g0")), "").await;
        stage.party.send_array(&[list("1"), PING.to_owned(), list("2")]).await;
        for id in ["1", "2"] {
            let shown = stage.party.ear.answer(id).await;
            assert_eq!(List::of(&shown.raw).names(), ["g0"], "{cell:?}");
        }
        stage.party.send_array(&[call("3", "out"), call("4", "g0")]).await;
        let refused = stage.party.ear.answer("3").await;
        assert_eq!(refused.message["error"]["code"], -32602, "{cell:?}: {}", refused.raw);
        let other = stage.party.ear.answer("4").await;
        match server {
            Era::Modern => {
                assert!(other.message.get("result").is_some(), "{cell:?}: {}", other.raw);
                assert_eq!(stage.calls(), 1, "{cell:?}");
            }
            // Between like pairs an array is one message, and nothing of it is sent.
            Era::Legacy(_) => {
                assert_eq!(other.message["error"]["code"], -32602, "{cell:?}: {}", other.raw);
                let words = other.message["error"]["message"].as_str().unwrap();
                assert!(words.contains("not sent"), "{cell:?}: {words}");
                assert_eq!(stage.calls(), 0, "{cell:?}");
            }
        }
    }
}
