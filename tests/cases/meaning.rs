//! C49-C51: codes, capabilities and members that mean different things in the two eras.

use crate::support::{Ask, LegacyServer, Proxy, Reply, call, json, list, read};

#[tokio::test(start_paused = true)]
async fn c49_codes_in_a_modern_clients_words() {
    let table = [
        (-32002, 200, -32602),
        (-32001, 200, -32001),
        (-32003, 200, -32003),
        (-32602, 200, -32602),
        (-32603, 200, -32603),
        (1, 200, 1),
    ];
    for (code, status, expected) in table {
        let error = format!(r#"{{"code":{code},"message":"m","data":{{"uri":"file:///x"}}}}"#);
        let (proxy, up) = Proxy::before(&LegacyServer::new().error("resources/read", &error)).await;
        let done = proxy.send(&read("file:///x")).await;
        done.is_error(status, expected);
        assert_eq!(done.message["error"]["message"], "m");
        assert_eq!(*done.data(), json!({"uri": "file:///x"}), "{code}");
        assert_eq!(up.posts("initialize").len(), 1, "{code}: the session lives");
    }
}

#[tokio::test(start_paused = true)]
async fn c49_session_words_in_a_tools_own_error_are_only_words() {
    let error = r#"{"code":-32001,"message":"Session not found"}"#;
    let (proxy, up) = Proxy::before(&LegacyServer::new().error("tools/call", error)).await;
    let done = proxy.send(&call("echo", "{}")).await;
    done.is_error(200, -32001);
    assert_eq!(up.posts("tools/call").len(), 1, "it may have run");
}

#[tokio::test(start_paused = true)]
async fn c49_url_elicitation_never_shows_as_such() {
    let error = r#"{"code":-32042,"message":"m","data":{"elicitations":[]}}"#;
    for ask in [call("echo", "{}"), list("prompts/list"), read("file:///x")] {
        let (proxy, _up) = Proxy::before(&LegacyServer::new().error(&ask.method, error)).await;
        let done = proxy.send(&ask.caps(r#"{"elicitation":{"url":{}}}"#)).await;
        assert_eq!(done.code(), -32603, "{}", done.raw);
    }
}

#[tokio::test(start_paused = true)]
async fn c49_a_tools_own_error_is_a_result() {
    let result = r#"{"content":[{"type":"text","text":"no"}],"isError":true}"#;
    let (proxy, _up) = Proxy::before(&LegacyServer::new().result("tools/call", result)).await;
    let done = proxy.send(&call("echo", "{}")).await;
    assert_eq!(done.result()["isError"], true);
    assert_eq!(done.result()["content"], json!([{"type": "text", "text": "no"}]));
}

#[tokio::test(start_paused = true)]
async fn c49_an_http_404_with_a_method_error_is_a_method_error() {
    let server = LegacyServer::new().on("prompts/list", |seen, reply: Reply| async move {
        reply.error(404, &seen, r#"{"code":-32601,"message":"m"}"#).await;
    });
    let (proxy, up) = Proxy::before(&server).await;
    proxy.send(&list("prompts/list")).await.is_error(404, -32601);
    assert_eq!((up.posts("initialize").len(), up.posts("prompts/list").len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn c50_capabilities_are_the_servers_own() {
    let table = [
        (r#"{"tools":{}}"#, json!({"tools": {}})),
        (r#"{}"#, json!({})),
        (
            r#"{"resources":{"subscribe":true,"listChanged":true}}"#,
            json!({"resources": {"subscribe": true, "listChanged": true}}),
        ),
        (
            r#"{"experimental":{"x":{"a":1}},"logging":{},"completions":{}}"#,
            json!({"experimental": {"x": {"a": 1}}, "logging": {}, "completions": {}}),
        ),
        (r#"{"tools":{},"tasks":{"list":{}}}"#, json!({"tools": {}})),
    ];
    for (capabilities, expected) in table {
        let (proxy, _up) = Proxy::before(&LegacyServer::new().capabilities(capabilities)).await;
        let done = proxy.send(&Ask::new("server/discover")).await;
        assert_eq!(done.result()["capabilities"], expected);
    }
}

#[tokio::test(start_paused = true)]
async fn c50_a_missing_method_is_never_an_empty_success() {
    let missing = r#"{"code":-32601,"message":"Method not found"}"#;
    let server =
        LegacyServer::new().capabilities(r#"{"tools":{},"resources":{}}"#).error("resources/list", missing);
    let (proxy, _up) = Proxy::before(&server).await;
    proxy.send(&list("resources/list")).await.is_error(404, -32601);
}

#[tokio::test(start_paused = true)]
async fn c50_a_log_level_for_a_server_that_does_not_log() {
    let (proxy, up) = Proxy::before(&LegacyServer::new().capabilities(r#"{"tools":{}}"#)).await;
    let level = r#""debug""#;
    proxy.send(&call("echo", "{}").meta("io.modelcontextprotocol/logLevel", level)).await.result();
    assert_eq!(up.posts("logging/setLevel").len(), 0);
}

#[tokio::test(start_paused = true)]
async fn c51_modern_members_are_added_and_custom_ones_kept() {
    let own = r#""resultType":"table","x":{"ttlMs":5},"_meta":{"com.acme/k":{"v":1},"progressToken":3}"#;
    let server = LegacyServer::new()
        .result("tools/list", &format!(r#"{{"tools":[],{own}}}"#))
        .result("tools/call", &format!(r#"{{"content":[],{own}}}"#))
        .result("resources/read", &format!(r#"{{"contents":[],{own}}}"#));
    let (proxy, _up) = Proxy::before(&server).await;
    for (ask, cached) in [(list("tools/list"), true), (call("echo", "{}"), false), (read("file:///x"), true)]
    {
        let done = proxy.send(&ask).await;
        let result = done.result();
        assert_eq!(result["resultType"], "complete");
        let stamps = (result["ttlMs"].clone(), result["cacheScope"].clone());
        let expected = if cached { (json!(0), json!("private")) } else { (json!(null), json!(null)) };
        assert_eq!(stamps, expected);
        assert_eq!(result["x"], json!({"ttlMs": 5}));
        assert_eq!(result["_meta"]["com.acme/k"], json!({"v": 1}));
    }
}
