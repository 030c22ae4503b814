//! D44, B1.12, D29: requests that may not be answered `input_required`: the server is answered at once, the client never
//! asked.

use std::sync::Arc;

use tokio::sync::Notify;

use crate::stage::{QUESTIONS_REFUSED, Stage, asking, done, ends_with};
use crate::support::questions::{ALL, ROOTS, elicit, elicit_url, request, roots, sample, url_required};
use crate::support::{Ask, Calls, Gets, LegacyServer, Net, Proxy, Reply, Value, call, json, list, pass};

const METHODS: [&str; 5] =
    ["tools/list", "prompts/list", "resources/list", "resources/templates/list", "completion/complete"];

fn ask(method: &str) -> Ask {
    let ask = list(method).caps(ALL);
    if method == "completion/complete" {
        return ask.params(r#""ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"v"}"#);
    }
    ask
}

fn result(method: &str) -> &'static str {
    match method {
        "tools/list" => r#"{"tools":[]}"#,
        "prompts/list" => r#"{"prompts":[]}"#,
        "resources/list" => r#"{"resources":[]}"#,
        "resources/templates/list" => r#"{"resourceTemplates":[]}"#,
        _ => r#"{"completion":{"values":["a"]}}"#,
    }
}

/// A server of which every one of these methods is in the test's hands, too.
async fn stage(calls: &Calls) -> Stage {
    let server = METHODS.into_iter().fold(LegacyServer::telling(), |server, method| calls.on(server, method));
    Stage::of(server, Gets::open(), "", "").await
}

/// Asks in the middle of the request, on its own stream or beside it, and gives back the answer.
async fn asked_during(stage: &Stage, calls: &Calls, method: &str, question: &str, beside: bool) -> Value {
    let n = calls.all().len();
    let client = stage.run(&ask(method));
    let call = calls.wait(n + 1).await;
    call.head();
    if beside {
        stage.gets.wait(1).await.event(question);
    } else {
        call.event(question);
    }
    let answer = stage.up.wait("response", stage.answers().len() + 1).await;
    call.result(result(method));
    let done = done(client).await;
    assert_eq!(done.result()["resultType"], "complete", "{}", done.raw);
    assert_eq!(stage.cancelled(), [] as [Value; 0], "it goes on normally");
    answer.last().unwrap().json()
}

#[tokio::test(start_paused = true)]
async fn d44_park_list() {
    for method in METHODS {
        for question in [elicit("7", "m"), elicit_url("7", "m", "e")] {
            let calls = Calls::new();
            let stage = stage(&calls).await;
            let answer = asked_during(&stage, &calls, method, &question, false).await;
            assert_eq!(
                answer,
                json!({"jsonrpc": "2.0", "id": 7, "result": {"action": "cancel"}}),
                "{method}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn b1_12_sampling_during_a_list() {
    for method in METHODS {
        let calls = Calls::new();
        let stage = stage(&calls).await;
        let answer = asked_during(&stage, &calls, method, &sample("7", "p"), false).await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(7), &json!(-1)), "{method}: {answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn b1_12_roots_during_a_list() {
    let calls = Calls::new();
    let stage = stage(&calls).await;
    // None are known yet.
    let answer = asked_during(&stage, &calls, "tools/list", &roots("7"), false).await;
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
    // A call learns them; from then on the session knows the last ones.
    let (round, call) = stage.asked(&asking(1), &[&roots("8")]).await;
    let client = stage.run(&round.answer("2", ROOTS));
    stage.answer("8", "roots/list").await;
    call.finish("the end");
    ends_with(&done(client).await, "the end");
    for method in METHODS {
        let answer = asked_during(&stage, &calls, method, &roots("9"), false).await;
        assert_eq!(answer["result"], serde_json::from_str::<Value>(ROOTS).unwrap(), "{method}");
    }
    // Newer ones are the last ones.
    let (round, call) = stage.asked(&asking(2), &[&roots("10")]).await;
    let client = stage.run(&round.answer("2", r#"{"roots":[]}"#));
    stage.answer("10", "roots/list").await;
    call.finish("the end");
    ends_with(&done(client).await, "the end");
    let answer = asked_during(&stage, &calls, "tools/list", &roots("11"), false).await;
    assert_eq!(answer["result"], json!({"roots": []}));
}

/// Invariant 2: the roots of one caller are not those of another.
#[tokio::test(start_paused = true)]
async fn b1_12_roots_of_the_same_principal_only() {
    let calls = Calls::new();
    let stage = stage(&calls).await;
    let (round, call) = stage.asked(&asking(1).bearer("alice"), &[&roots("8")]).await;
    let client = stage.run(&round.answer("2", ROOTS));
    stage.answer("8", "roots/list").await;
    call.finish("the end");
    ends_with(&done(client).await, "the end");
    let client = stage.run(&ask("tools/list").bearer("bob"));
    let call = calls.wait(1).await;
    call.event(&roots("9"));
    assert_eq!(stage.refused("9", "roots/list").await, -32601);
    call.result(result("tools/list"));
    done(client).await.result();
}

/// On the stream of `initialize`, of which there is no session yet: each is answered at once, and the session opens.
#[tokio::test(start_paused = true)]
async fn b1_12_during_initialize() {
    let cancelled = json!({"result": {"action": "cancel"}});
    let asked = [
        (elicit("7", "m"), cancelled.clone(), "method"),
        (elicit_url("7", "m", "e"), cancelled, "method"),
        (sample("7", "p"), json!({"error": -1}), "method"),
        (roots("7"), json!({"error": -32601}), "method"),
        (request("7", "tasks/get", r#"{"taskId":"t"}"#), json!({"error": -32601}), "method"),
        (request("7", "elicitation/create", "{}"), json!({"error": -32602}), "malformed"),
        (request("7", "ping", "{}"), json!({"result": {}}), ""),
    ];
    for caps in [ALL, "{}"] {
        for (question, wanted, reason) in &asked {
            let (net, own) = (Net::new(), LegacyServer::telling());
            let (answered, question) = (Arc::new(Notify::new()), question.clone());
            let (of_it, waits) = (own.clone(), Arc::clone(&answered));
            let server = own.on("response", move |_, reply: Reply| {
                answered.notify_one();
                reply.empty(202)
            });
            let server = server.on("initialize", move |seen, reply: Reply| {
                let (own, waits, question) = (of_it.clone(), Arc::clone(&waits), question.clone());
                async move {
                    let mut reply = reply.with("Mcp-Session-Id", &own.mint());
                    reply.stream().await;
                    reply.event(&question).await;
                    waits.notified().await;
                    reply.result_event(&seen, &own.initialize_result()).await;
                    reply.end().await;
                }
            });
            let up = server.start(&net);
            let proxy = Proxy::start(&net).await;
            proxy.send(&call("echo", "{}").caps(caps)).await.result();
            let answer = up.wait("response", 1).await[0].clone();
            assert_eq!(answer.session().as_deref(), Some("S1"));
            let answer = answer.json();
            assert_eq!(answer["id"], 7);
            let found = match answer.get("result") {
                Some(result) => json!({"result": result}),
                None => json!({"error": answer["error"]["code"]}),
            };
            assert_eq!(&found, wanted, "{answer}");
            let metrics = proxy.metrics();
            let counted = |line: &&str| line.starts_with(QUESTIONS_REFUSED) && !line.ends_with(" 0");
            let refused: Vec<_> = metrics.lines().filter(counted).collect();
            assert_eq!(refused.len(), usize::from(!reason.is_empty()), "{refused:?}");
            assert!(refused.iter().all(|line| line.contains(reason) && line.ends_with(" 1")), "{refused:?}");
            assert_eq!(up.posts("initialize").len(), 1);
        }
    }
}

/// With nothing but a list in flight, a question on the GET stream has no candidate (B5).
#[tokio::test(start_paused = true)]
async fn b1_12_beside_a_list() {
    for (question, wanted) in [
        (elicit("7", "m"), json!({"action": "cancel"})),
        (sample("7", "p"), json!(-1)),
        (roots("7"), json!(-32601)),
    ] {
        let calls = Calls::new();
        let stage = stage(&calls).await;
        let answer = asked_during(&stage, &calls, "tools/list", &question, true).await;
        let found = answer.get("result").unwrap_or(&answer["error"]["code"]);
        assert_eq!(found, &wanted, "{question}: {answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn d29_url_required_list() {
    for method in METHODS {
        for whole in [true, false] {
            let calls = Calls::new();
            let stage = stage(&calls).await;
            let client = stage.run(&ask(method));
            let call = calls.wait(1).await;
            if whole {
                call.whole_error(&url_required(&["e1"]));
            } else {
                call.error(&url_required(&["e1"]));
            }
            let done = done(client).await;
            done.is_error(200, -32603);
            pass(1000).await;
            assert_eq!(stage.up.posts(method).len(), 1);
        }
    }
}
