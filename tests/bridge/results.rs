//! D73, D74, A4.10 to A4.18, A7, B12, C51: a modern server's results in a legacy client's words.

use crate::stage::{LATEST, META, REVISIONS, Stage};
use crate::support::{ModernServer, Reply, json, modern};

/// Each method that has a result of its own, with its parameters, and the result's members.
const METHODS: [(&str, &str, &str); 8] = [
    ("tools/list", "", r#""tools":[{"name":"echo","inputSchema":{"type":"object"}}]"#),
    ("tools/call", r#""name":"echo","arguments":{}"#, r#""content":[{"type":"text","text":"t"}]"#),
    ("prompts/list", "", r#""prompts":[{"name":"p"}]"#),
    ("prompts/get", r#""name":"p""#, r#""messages":[{"role":"user","content":{"type":"text","text":"t"}}]"#),
    ("resources/list", "", r#""resources":[{"uri":"file:///x","name":"x"}],"nextCursor":"c""#),
    ("resources/templates/list", "", r#""resourceTemplates":[{"uriTemplate":"file:///{p}","name":"t"}]"#),
    ("resources/read", r#""uri":"file:///x""#, r#""contents":[{"uri":"file:///x","text":"t"}]"#),
    (
        "completion/complete",
        r#""ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"v"}"#,
        r#""completion":{"values":["a"],"total":1}"#,
    ),
];

#[tokio::test(start_paused = true)]
async fn d73_legacy_strip_result() {
    for (method, params, members) in METHODS {
        // With everything that is stripped, in any order; as a server of an earlier draft, without the kind (B12).
        let full = format!(
            r#"{{"ttlMs":5,"_meta":{{"own":{{"a":1.50}},"{META}serverInfo":{{"name":"s","version":"1"}},"com.acme/x":2}},"resultType":"complete",{members},"cacheScope":"public","x-own":[1.50]}}"#
        );
        let bare = format!(r#"{{{members}}}"#);
        let empty_meta = format!(
            r#"{{"resultType":"complete",{members},"_meta":{{"{META}serverInfo":{{"name":"s","version":"1"}}}}}}"#
        );
        for revision in REVISIONS {
            let ask = |user: &crate::support::User| user.old.ask(method).params(params).id("\"i\"");
            let stage = Stage::before(ModernServer::full().result(method, &full)).await;
            let user = stage.user(revision).await;
            let result = user.open(&ask(&user)).await.result().await;
            let mut expected = crate::stage::parse(&bare);
            expected["_meta"] = json!({"own": {"a": 1.5}, "com.acme/x": 2});
            expected["x-own"] = json!([1.5]);
            assert_eq!(result, expected, "{revision} {method}");
            for raw in [&bare, &empty_meta] {
                let stage = Stage::before(ModernServer::full().result(method, raw)).await;
                let user = stage.user(revision).await;
                let result = user.open(&ask(&user)).await.result().await;
                assert_eq!(result, crate::stage::parse(&bare), "{revision} {method} {raw}");
            }
        }
    }
}

/// C51: only the protocol's own words, where the protocol has them.
#[tokio::test(start_paused = true)]
async fn c51_words_in_content_are_content() {
    let members = r#""content":[{"type":"text","text":"resultType","_meta":{"ttlMs":1}}],"structuredContent":{"resultType":"table","ttlMs":5,"_meta":{"io.modelcontextprotocol/serverInfo":1}}"#;
    let stage = Stage::before(ModernServer::full().completes("tools/call", members)).await;
    let user = stage.latest().await;
    let result = user.call("t", "{}").await.result().await;
    assert_eq!(result, crate::stage::parse(&format!("{{{members}}}")));
}

#[tokio::test(start_paused = true)]
async fn d74_unknown_resulttype() {
    let odd = [
        r#"{"resultType":"banana","content":[],"tools":[]}"#,
        r#"{"resultType":"task","taskId":"t","status":"working","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttlMs":1}"#,
        r#"{"resultType":5,"content":[],"tools":[]}"#,
        r#"{"resultType":null,"content":[],"tools":[]}"#,
        r#"{"resultType":"Complete","content":[],"tools":[]}"#,
        r#"{"resultType":"","content":[],"tools":[]}"#,
    ];
    for (method, params, _) in METHODS {
        let required = modern::asks(&[("k", crate::stage::FORM)], Some(r#""s""#));
        let asks = ["tools/call", "prompts/get", "resources/read"].contains(&method);
        let odd = odd.into_iter().map(str::to_owned).chain((!asks).then_some(required));
        for raw in odd {
            // The proxy may list tools for itself.
            let listed = modern::complete("tools/list", r#""tools":[]"#);
            let server = ModernServer::full().result("tools/list", &listed).result(method, &raw);
            let stage = Stage::before(server).await;
            let user = stage.latest().await;
            let stream = user.open(&user.old.ask(method).params(params).id("7")).await;
            assert_eq!(stream.code().await, -32603, "{method} {raw}");
            assert_eq!(stream.asked(), 0, "{method} {raw}");
            assert_eq!(stage.up.posts(method).len(), 1, "{method} {raw}: no retry");
            assert!(user.lives().await);
        }
    }
}

/// A result that is none.
#[tokio::test(start_paused = true)]
async fn d74_a_result_that_is_no_object() {
    for raw in ["[]", "null", "5", r#""complete""#] {
        let stage = Stage::before(ModernServer::full().result("tools/call", raw)).await;
        let user = stage.latest().await;
        assert_eq!(user.call("t", "{}").await.code().await, -32603, "{raw}");
        assert_eq!(stage.up.posts("tools/call").len(), 1, "{raw}");
    }
}

/// The same, whether the server answers with a body or with an event stream, and with what comes before it.
#[tokio::test(start_paused = true)]
async fn d73_event_streams_are_read_too() {
    let server = ModernServer::full()
        .on("tools/list", |seen, reply: Reply| async move {
            let tools = r#""tools":[{"name":"echo","inputSchema":{"type":"object"}}]"#;
            reply.streamed_result(&seen, &modern::complete("tools/list", tools)).await;
        })
        .on("tools/call", |seen, mut reply: Reply| async move {
            reply.stream().await;
            reply.chunk(b": hello\n\nid: 1\nretry: 5\ndata: \n\nevent: ping\ndata: 2026\n\n").await;
            reply.result_event(&seen, &modern::complete("tools/call", r#""content":[]"#)).await;
            reply.end().await;
        });
    for revision in REVISIONS {
        let stage = Stage::before(server.clone()).await;
        let user = stage.user(revision).await;
        assert_eq!(user.list("tools/list").await["tools"][0]["name"], "echo");
        let stream = user.call("echo", "{}").await;
        assert_eq!(stream.result().await, json!({"content": []}), "{revision}");
        assert_eq!(stream.briefs(), ["answer"], "{revision}");
    }
}

/// A large result comes whole, whatever form it comes in.
#[tokio::test(start_paused = true)]
async fn a_large_result_comes_whole() {
    let text: String = (0..40_000).map(|n| format!("{n:06}\\n")).collect();
    let members = format!(r#""content":[{{"type":"text","text":"{text}"}}],"x-own":1.50"#);
    for accept in ["application/json, text/event-stream", "application/json"] {
        for revision in [LATEST, "2024-11-05"] {
            let stage = Stage::before(ModernServer::full().completes("tools/call", &members)).await;
            let user = stage.user(revision).await;
            let ask = user.old.call("t", "{}").header("Accept", accept);
            let stream = user.open(&ask).await;
            let answer = stream.answer().await;
            let got = answer["result"]["content"][0]["text"].as_str().unwrap();
            assert_eq!(got, text.replace("\\n", "\n"), "{revision} {accept}");
            assert_eq!(answer["result"]["x-own"], 1.5, "{revision} {accept}");
            assert!(answer["result"].get("resultType").is_none(), "{revision} {accept}");
            // The text of a structured result must be there for the older ones, so theirs are held (D62).
            let flowed = stage.metric("mcp_janus_results_flowed_total", &[]);
            assert_eq!(flowed > 0.0, revision == LATEST, "{revision} {accept}");
        }
    }
}

/// D74: what says only at its end that it is something else has begun to go out, and ends without becoming an answer.
#[tokio::test(start_paused = true)]
async fn d74_a_large_result_that_ends_as_something_else() {
    let text = "x".repeat(300_000);
    let raw = format!(r#"{{"content":[{{"type":"text","text":"{text}"}}],"resultType":"banana"}}"#);
    let stage = Stage::before(ModernServer::full().result("tools/call", &raw)).await;
    let user = stage.latest().await;
    let mut answer = stage.proxy.open(&user.old.call("t", "{}")).await;
    let (body, broken) = answer.pieces().await;
    assert!(broken && !body.is_empty(), "{}", body.len());
    assert!(serde_json::from_slice::<serde_json::Value>(&body).is_err());
    assert!(user.lives().await);
    assert_eq!(stage.up.posts("tools/call").len(), 1, "no retry");
}

/// A message beyond `limits.message_bytes` is an error under the request's id.
#[tokio::test(start_paused = true)]
async fn inv5_a_result_beyond_the_limit() {
    let members = format!(r#""content":[{{"type":"text","text":"{}"}}]"#, "x".repeat(5000));
    let server = ModernServer::full().completes("tools/call", &members);
    let lines = "limits.message_bytes = \"2KiB\"\nlimits.flow_bytes = \"2KiB\"";
    let stage = Stage::before_with(server, lines).await;
    let user = stage.latest().await;
    let stream = user.call("t", "{}").await;
    assert_eq!(stream.code().await, -32603);
    assert_eq!(stage.up.posts("tools/call").len(), 1);
}
