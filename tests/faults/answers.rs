//! Invariant 1, A11.11, C03, C21: what counts as the answer to a call, and what does not.

use crate::support::{Ask, LegacyServer, Proxy, Reply, Value, call, json, list, pass, rpc};

const LOST: &str = r#"{"code":-32000,"message":"Server not initialized"}"#;

#[tokio::test(start_paused = true)]
async fn c03_an_error_of_a_tool_without_an_id_is_no_lost_session() {
    for streamed in [false, true] {
        let server = LegacyServer::new().on("tools/call", move |_, mut reply: Reply| async move {
            let error =
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"tool crashed","data":[1]}}"#;
            if !streamed {
                return reply.json(200, error).await;
            }
            reply.stream().await;
            reply.event(error).await;
            reply.end().await;
        });
        let (proxy, up) = Proxy::before(&server).await;
        let done = proxy.send(&call("echo", "{}").id(r#""a""#)).await;
        assert_eq!(done.message["id"], "a");
        let expected = json!({"code": -32000, "message": "tool crashed", "data": [1]});
        assert_eq!(done.message["error"], expected, "streamed {streamed}: {}", done.raw);
        assert_eq!(up.posts("tools/call").len(), 1, "streamed {streamed}");
        assert_eq!(up.posts("initialize").len(), 1, "streamed {streamed}");
    }
}

#[tokio::test(start_paused = true)]
async fn c03_after_progress_the_words_of_the_gate_are_an_answer() {
    let server = LegacyServer::new().on("tools/call", |seen, mut reply: Reply| async move {
        reply.stream().await;
        reply.event(&progress(&seen.json())).await;
        reply.error_event(&seen, LOST).await;
        reply.end().await;
    });
    let (proxy, up) = Proxy::before(&server).await;
    for ask in [call("charge", "{}").meta("progressToken", "1"), call("charge", "{}")] {
        let before = up.posts("tools/call").len();
        let done = proxy.send(&ask.id("7")).await;
        assert_eq!(done.code(), -32000, "{}", done.raw);
        assert_eq!(up.posts("tools/call").len(), before + 1, "it has run: {:?}", up.briefs());
    }
    assert_eq!(up.posts("initialize").len(), 1);
}

fn progress(request: &Value) -> String {
    let token = request["params"]["_meta"].get("progressToken").cloned().unwrap_or_else(|| json!("none"));
    let params = json!({"progressToken": token, "progress": 1});
    json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}).to_string()
}

#[tokio::test(start_paused = true)]
async fn c03_as_the_first_thing_they_are_a_lost_session() {
    for what in ["200", "400", "stream"] {
        let base = LegacyServer::new();
        let counts = base.clone();
        let server = base.on("tools/call", move |seen, mut reply: Reply| {
            let first = counts.count("call") == 0;
            async move {
                match what {
                    _ if !first => reply.result(&seen, r#"{"content":[],"n":2}"#).await,
                    "200" => reply.error(200, &seen, LOST).await,
                    "400" => reply.error(400, &seen, LOST).await,
                    _ => {
                        reply.stream().await;
                        reply.error_event(&seen, LOST).await;
                        reply.end().await;
                    }
                }
            }
        });
        let (proxy, up) = Proxy::before(&server).await;
        let done = proxy.send(&call("echo", "{}").id("7")).await;
        assert_eq!(done.result()["n"], 2, "{what}");
        assert_eq!(up.posts("tools/call").len(), 2, "{what}: {:?}", up.briefs());
        assert_eq!(up.posts("initialize").len(), 2, "{what}");
        assert_eq!(up.posts("tools/call")[1].session().as_deref(), Some("S2"), "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn c03_lost_again_at_once_is_an_error() {
    for status in [200, 400] {
        let server = LegacyServer::new().on("tools/call", move |seen, reply: Reply| async move {
            reply.error(status, &seen, LOST).await;
        });
        let (proxy, up) = Proxy::before(&server).await;
        proxy.send(&call("echo", "{}").id("7")).await.is_error(502, -32603);
        assert_eq!(up.posts("tools/call").len(), 2, "{status}: {:?}", up.briefs());
    }
}

#[tokio::test(start_paused = true)]
async fn inv1_a_result_without_an_id_is_no_answer() {
    for id in ["", r#""id":null,"#] {
        for streamed in [false, true] {
            for method in ["tools/call", "tools/list"] {
                let server = LegacyServer::new().on(method, move |_, mut reply: Reply| async move {
                    let body = format!(r#"{{"jsonrpc":"2.0",{id}"result":{{"content":[],"tools":[]}}}}"#);
                    if !streamed {
                        return reply.json(200, &body).await;
                    }
                    reply.stream().await;
                    reply.event(&body).await;
                    reply.end().await;
                });
                let (proxy, up) = Proxy::before(&server).await;
                let ask = if method == "tools/call" { call("echo", "{}") } else { list(method) };
                let done = proxy.send(&ask.id(r#""q""#)).await;
                done.is_error(502, -32603);
                assert_eq!(done.message["id"], "q");
                assert_eq!(up.posts(method).len(), 1, "{method} {id} {streamed}");
            }
        }
    }
}

/// A server that answers a call with this message, its id in place of `ID`.
fn answering(text: &'static str, streamed: bool) -> LegacyServer {
    LegacyServer::new().on("tools/call", move |seen, mut reply: Reply| async move {
        let body = text.replace("ID", &seen.id());
        if !streamed {
            return reply.json(200, &body).await;
        }
        reply.stream().await;
        reply.event(&body).await;
        reply.never().await;
    })
}

#[tokio::test(start_paused = true)]
async fn inv6_null_members_beside_the_one_that_counts() {
    let table = [
        (r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[],"n":1},"error":null}"#, true),
        (r#"{"error":null,"jsonrpc":"2.0","result":{"content":[],"n":1},"id":ID}"#, true),
        (r#"{"jsonrpc":"2.0","id":ID,"result":{"_meta":null,"content":[],"n":1}}"#, true),
        (r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[],"n":1,"_meta":null},"error":null}"#, true),
        (r#"{"jsonrpc":"2.0","id":ID,"result":null,"error":{"code":-5,"message":"m"}}"#, false),
        (r#"{"jsonrpc":"2.0","error":{"code":-5,"message":"m"},"result":null,"id":ID}"#, false),
    ];
    for (text, good) in table {
        for streamed in [false, true] {
            let (proxy, _up) = Proxy::before(&answering(text, streamed)).await;
            let done = proxy.send(&call("echo", "{}").id("7")).await;
            let got = if good { &done.result()["n"] } else { &done.message["error"]["code"] };
            assert_eq!(*got, if good { 1 } else { -5 }, "{text} streamed {streamed}: {}", done.raw);
            assert!(done.raw.matches(r#""_meta""#).count() <= 1, "{}", done.raw);
            let members = |name: &str| done.message.as_object().unwrap().contains_key(name);
            assert!(members("result") != members("error"), "{}", done.raw);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn inv6_a_null_meta_of_other_results() {
    let table = [
        ("tools/list", r#"{"tools":[],"_meta":null}"#),
        ("resources/list", r#"{"_meta":null,"resources":[]}"#),
        ("acme/do", r#"{"_meta":null}"#),
    ];
    for (method, result) in table {
        let (proxy, _up) = Proxy::before(&LegacyServer::new().result(method, result)).await;
        let done = proxy.send(&Ask::new(method)).await;
        done.result();
        assert_eq!(done.raw.matches(r#""_meta""#).count(), 1, "{}", done.raw);
    }
}

#[tokio::test(start_paused = true)]
async fn inv1_what_is_no_answer_under_the_calls_id_ends_it_at_once() {
    let broken = [
        r#"{"jsonrpc":"2.0","id":ID,"error":{"code":"x","message":"m"}}"#,
        r#"{"jsonrpc":"2.0","id":"ID","error":{"code":"x","message":"m"}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"error":{"message":"m"}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"error":"m"}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":null}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":[1]}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":null,"error":null}"#,
        r#"{"jsonrpc":"2.0","id":ID}"#,
    ];
    for text in broken {
        let (proxy, up) = Proxy::before(&answering(text, true)).await;
        let began = tokio::time::Instant::now();
        let done = proxy.send(&call("echo", "{}").id("7")).await;
        assert!(began.elapsed().as_millis() < 1000, "{text}: only after {:?}", began.elapsed());
        done.is_error(502, -32603);
        assert_eq!(up.posts("tools/call").len(), 1, "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn c13_what_is_no_message_under_another_id_is_passed_over() {
    let server = LegacyServer::new().on("tools/call", |seen, mut reply: Reply| async move {
        reply.stream().await;
        reply.event(r#"{"jsonrpc":"2.0","id":"other","error":{"code":"x"}}"#).await;
        reply.event("2026").await;
        pass(100).await;
        reply.event(&rpc::result_message(&seen.id(), r#"{"content":[]}"#)).await;
        reply.end().await;
    });
    let (proxy, _up) = Proxy::before(&server).await;
    proxy.send(&call("echo", "{}")).await.result();
}
