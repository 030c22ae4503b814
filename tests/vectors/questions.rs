//! D40, D46, B1.11, B5, B8: what a legacy server sends besides the answer while a call runs.
//!
//! Owns questions that are refused, pings and log messages; questions that reach the client are `tests/questions`'. Does not own progress (`ids`).

use crate::support::{Ask, LegacyServer, Proxy, Reply, Value, call, get_prompt, json, list, pass, rpc};

const ELICIT: &str = r#"{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}}"#;
const SAMPLE: &str = r#"{"jsonrpc":"2.0","id":"s-1","method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}"#;
const ROOTS: &str = r#"{"jsonrpc":"2.0","id":0,"method":"roots/list"}"#;

/// A server that asks in the middle of `method` and never goes on by itself.
fn asks(method: &str, question: &'static str) -> LegacyServer {
    LegacyServer::new().on(method, move |_, mut reply: Reply| async move {
        reply.stream().await;
        reply.event(question).await;
        reply.never().await;
    })
}

/// What was answered to the server's question, with the id it was answered under.
async fn answered(up: &crate::support::Upstream) -> Value {
    up.wait("response", 1).await[0].json()
}

#[tokio::test(start_paused = true)]
async fn d40_question_that_the_client_did_not_declare() {
    let table =
        [(ELICIT, "elicitation", json!(7)), (SAMPLE, "sampling", json!("s-1")), (ROOTS, "roots", json!(0))];
    for (question, capability, id) in table {
        for ask in [call("echo", "{}"), get_prompt("p")] {
            let (proxy, up) = Proxy::before(&asks(&ask.method, question)).await;
            let done = proxy.send(&ask.id("4")).await;
            done.is_error(400, -32021);
            let required = done.data()["requiredCapabilities"].as_object().unwrap().clone();
            assert_eq!(required.keys().collect::<Vec<_>>(), [capability], "{}", done.raw);
            let answer = answered(&up).await;
            assert_eq!(answer["id"], id, "under the server's id, in its type");
            assert!(answer["error"]["code"].is_i64(), "{answer}");
            let cancelled = up.wait("notifications/cancelled", 1).await;
            let call = up.only(&done_method(&up));
            assert_eq!(cancelled[0].json()["params"]["requestId"], call.json()["id"]);
            assert_eq!(up.posts("initialize")[0].json()["params"]["capabilities"], json!({}));
        }
    }
}

fn done_method(up: &crate::support::Upstream) -> String {
    let methods = up.after_probe();
    methods.into_iter().find(|m| m == "tools/call" || m == "prompts/get").unwrap()
}

#[tokio::test(start_paused = true)]
async fn b1_12_a_question_during_a_list_is_refused_and_the_list_comes() {
    let server = LegacyServer::new().on("tools/list", |seen, mut reply: Reply| async move {
        reply.stream().await;
        reply.event(ELICIT).await;
        pass(1000).await;
        reply.result_event(&seen, r#"{"tools":[]}"#).await;
        reply.end().await;
    });
    let (proxy, up) = Proxy::before(&server).await;
    let done = proxy.send(&list("tools/list")).await;
    answered(&up).await;
    assert!(done.message.get("result").is_some() || done.code() == -32021, "{}", done.raw);
    assert_ne!(done.message["result"]["resultType"], "input_required");
}

#[tokio::test(start_paused = true)]
async fn d46_legacy_ping_mid() {
    let server = LegacyServer::new().on("tools/call", |seen, mut reply: Reply| async move {
        reply.stream().await;
        reply.event(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#).await;
        pass(1000).await;
        reply.result_event(&seen, r#"{"content":[]}"#).await;
        reply.end().await;
    });
    let (proxy, up) = Proxy::before(&server).await;
    let done = proxy.send(&call("echo", "{}")).await;
    done.result();
    assert_eq!(done.before, Vec::<Value>::new(), "the client sees nothing of it");
    assert_eq!(answered(&up).await, json!({"jsonrpc": "2.0", "id": "p", "result": {}}));
    assert_eq!(up.posts("")[0].session().as_deref(), Some("S1"), "on the session that asked");
}

fn log(level: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"{level}","logger":"l","data":{{"n":1e400}}}}}}"#
    )
}

/// A server that logs at three levels during a call.
fn logs() -> LegacyServer {
    LegacyServer::new().on("tools/call", |seen, mut reply: Reply| async move {
        reply.stream().await;
        for level in ["debug", "warning", "emergency"] {
            reply.event(&log(level)).await;
        }
        reply.result_event(&seen, r#"{"content":[]}"#).await;
        reply.end().await;
    })
}

#[tokio::test(start_paused = true)]
async fn b8_2_log_messages_are_filtered_by_the_requests_own_level() {
    let table: [(Option<&str>, &[&str]); 4] = [
        (None, &[]),
        (Some("debug"), &["debug", "warning", "emergency"]),
        (Some("warning"), &["warning", "emergency"]),
        (Some("alert"), &["emergency"]),
    ];
    for (level, expected) in table {
        let (proxy, _up) = Proxy::before(&logs()).await;
        let ask = match level {
            Some(level) => {
                call("echo", "{}").meta("io.modelcontextprotocol/logLevel", &format!(r#""{level}""#))
            }
            None => call("echo", "{}"),
        };
        let done = proxy.send(&ask).await;
        done.result();
        let levels: Vec<_> =
            done.before.iter().map(|m| m["params"]["level"].as_str().unwrap().to_owned()).collect();
        assert_eq!(levels, expected, "{level:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn b8_1_the_level_is_set_before_the_call() {
    let (proxy, up) = Proxy::before(&logs()).await;
    let ask = call("echo", "{}").meta("io.modelcontextprotocol/logLevel", r#""debug""#);
    proxy.send(&ask).await.result();
    assert_eq!(up.only("logging/setLevel").json()["params"], json!({"level": "debug"}));
    let order = up.after_probe();
    let at = |m: &str| order.iter().position(|o| o == m);
    assert!(
        at("logging/setLevel") < at("tools/call"),
        "awaited, else the first messages are lost: {order:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn b8_1_no_set_level_where_the_server_does_not_log() {
    let (proxy, up) = Proxy::before(&logs().capabilities(r#"{"tools":{}}"#)).await;
    let ask = call("echo", "{}").meta("io.modelcontextprotocol/logLevel", r#""debug""#);
    proxy.send(&ask).await.result();
    assert_eq!(up.posts("logging/setLevel").len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a2_5_change_notices_never_come_on_a_calls_stream() {
    let server = LegacyServer::new().on("tools/call", |seen, mut reply: Reply| async move {
        reply.stream().await;
        for method in ["tools/list_changed", "prompts/list_changed", "resources/list_changed"] {
            reply.event(&format!(r#"{{"jsonrpc":"2.0","method":"notifications/{method}"}}"#)).await;
        }
        reply.event(r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///x"}}"#).await;
        reply.event(r#"{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t"}}"#).await;
        reply.event(r#"{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"e"}}"#).await;
        reply.result_event(&seen, r#"{"content":[]}"#).await;
        reply.end().await;
    });
    let (proxy, _up) = Proxy::before(&server).await;
    let done = proxy.send(&call("echo", "{}")).await;
    done.result();
    assert_eq!(done.before, Vec::<Value>::new());
}

#[tokio::test(start_paused = true)]
async fn b11_an_error_after_the_first_event_comes_in_band() {
    let server = LegacyServer::new().on("acme/do", |seen, mut reply: Reply| async move {
        let token = seen.json()["params"]["_meta"]["progressToken"].clone();
        reply.stream().await;
        let params = json!({"progressToken": token, "progress": 1});
        reply
            .event(
                &json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}).to_string(),
            )
            .await;
        reply.event(&rpc::error_message(&seen.id(), r#"{"code":-32601,"message":"no"}"#)).await;
        reply.end().await;
    });
    let (proxy, _up) = Proxy::before(&server).await;
    let done = proxy.send(&Ask::new("acme/do").meta("progressToken", "5")).await;
    done.is_error(200, -32601);
    assert_eq!(done.before.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn b11_an_error_that_comes_first_has_its_own_status() {
    let server = LegacyServer::new().on("acme/do", |seen, mut reply: Reply| async move {
        reply.stream().await;
        reply.error_event(&seen, r#"{"code":-32601,"message":"no"}"#).await;
        reply.end().await;
    });
    let (proxy, _up) = Proxy::before(&server).await;
    let done = proxy.send(&Ask::new("acme/do")).await;
    done.is_error(404, -32601);
    assert_eq!(done.headers.media_type().as_deref(), Some("application/json"));
}
