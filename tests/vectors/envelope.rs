//! D11-D14, D16, D19-D21: what is taken off a request on its way down and put on a result on its way up.
//!
//! Expected values are those of the vectors; `shape` holds every answer to the general rules besides.

use crate::support::{Ask, LegacyServer, ModernServer, Proxy, call, get_prompt, json, list, read};

#[tokio::test(start_paused = true)]
async fn d11_never_leak_meta_up() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    let ask = call("echo", r#"{"a":1}"#)
        .meta("traceparent", r#""00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01""#)
        .meta("com.acme/x", r#"{"k":[1]}"#)
        .meta("io.modelcontextprotocol/logLevel", r#""error""#);
    proxy.send(&ask).await.result();
    let params = up.only("tools/call").json()["params"].clone();
    let meta = json!({
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "com.acme/x": {"k": [1]},
    });
    assert_eq!(params, json!({"name": "echo", "arguments": {"a": 1}, "_meta": meta}));
}

#[tokio::test(start_paused = true)]
async fn d11_no_meta_is_left_where_nothing_is_left_in_it() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    proxy.send(&call("echo", "{}")).await.result();
    proxy.send(&list("tools/list")).await.result();
    proxy.send(&list("prompts/list").params(r#""cursor":"c""#)).await.result();
    assert_eq!(up.only("tools/call").json()["params"], json!({"name": "echo", "arguments": {}}));
    assert_eq!(
        up.only("tools/list").json().get("params"),
        None,
        "A1.4: params that became empty are left out"
    );
    assert_eq!(up.only("prompts/list").json()["params"], json!({"cursor": "c"}));
}

#[tokio::test(start_paused = true)]
async fn d11_modern_headers_stay_on_the_modern_side() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    let ask =
        call("echo", "{}").header("Mcp-Param-Region", "eu").header("Cookie", "a=b").header("X-Other", "1");
    proxy.send(&ask).await.result();
    let seen = up.only("tools/call");
    for name in ["mcp-method", "mcp-name", "mcp-param-region", "cookie", "x-other"] {
        assert_eq!(seen.header(name), None, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn d12_stamp_complete() {
    let server = LegacyServer::new()
        .result("tools/call", r#"{"content":[]}"#)
        .result("completion/complete", r#"{"completion":{"values":[]}}"#)
        .result("acme/do", "{}");
    let (proxy, _up) = Proxy::before(&server).await;
    let stamped = |mut rest: serde_json::Value| {
        rest["resultType"] = json!("complete");
        rest["_meta"] = json!({"io.modelcontextprotocol/serverInfo": {"name": "old", "version": "7"}});
        rest
    };
    let message = json!({"role": "user", "content": {"type": "text", "text": "hi"}});
    let complete = r#""ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"v"}"#;
    let table = [
        (call("echo", "{}"), json!({"content": []})),
        (get_prompt("p"), json!({"messages": [message]})),
        (Ask::new("completion/complete").params(complete), json!({"completion": {"values": []}})),
        (Ask::new("acme/do"), json!({})),
    ];
    for (ask, expected) in table {
        assert_eq!(*proxy.send(&ask).await.result(), stamped(expected), "{}", ask.method);
    }
}

#[tokio::test(start_paused = true)]
async fn d13_stamp_cache_six() {
    let (proxy, _up) = Proxy::before(&LegacyServer::new()).await;
    for ask in six() {
        let done = proxy.send(&ask).await;
        let result = done.result();
        assert!(result["ttlMs"].as_u64().is_some(), "{}", done.raw);
        assert_eq!(result["cacheScope"], "private", "{}", done.raw);
    }
}

#[tokio::test(start_paused = true)]
async fn d13_a_legacy_server_has_no_say_in_caching() {
    let claim = r#""ttlMs":99999,"cacheScope":"public""#;
    let server = LegacyServer::new()
        .result("tools/list", &format!(r#"{{"tools":[],{claim}}}"#))
        .result("prompts/list", &format!(r#"{{{claim},"prompts":[]}}"#))
        .result("resources/list", &format!(r#"{{{claim},"resources":[]}}"#))
        .result("resources/templates/list", &format!(r#"{{{claim},"resourceTemplates":[]}}"#))
        .result("resources/read", &format!(r#"{{"contents":[],{claim}}}"#))
        .result("tools/call", &format!(r#"{{"content":[],{claim}}}"#));
    let (proxy, _up) = Proxy::before(&server).await;
    for ask in six() {
        let done = proxy.send(&ask).await;
        assert_eq!(done.result()["ttlMs"], 0, "{}", done.raw);
        assert_eq!(done.result()["cacheScope"], "private", "{}", done.raw);
        assert_eq!(done.raw.matches("ttlMs").count(), 1, "{}", done.raw);
    }
    proxy.send(&call("echo", "{}")).await.result();
}

fn six() -> [Ask; 6] {
    [
        Ask::new("server/discover"),
        list("tools/list"),
        list("prompts/list"),
        list("resources/list"),
        list("resources/templates/list"),
        read("file:///x"),
    ]
}

#[tokio::test(start_paused = true)]
async fn d14_legacy_foreign_resulttype() {
    for foreign in [r#""weird""#, r#""input_required""#, "5", "null"] {
        let server = LegacyServer::new()
            .result("tools/call", &format!(r#"{{"resultType":{foreign},"content":[]}}"#))
            .result("tools/list", &format!(r#"{{"tools":[],"resultType":{foreign}}}"#));
        let (proxy, _up) = Proxy::before(&server).await;
        for ask in [call("echo", "{}"), list("tools/list")] {
            let done = proxy.send(&ask).await;
            assert_eq!(done.result()["resultType"], "complete");
            assert_eq!(done.raw.matches("resultType").count(), 1, "{}", done.raw);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a4_13_a_server_info_given_by_the_handler_is_kept() {
    let meta = r#"{"_meta":{"com.acme/y":[1e400],"io.modelcontextprotocol/serverInfo":{"name":"own","version":"2"}},"content":[]}"#;
    let (proxy, _up) = Proxy::before(&LegacyServer::new().result("tools/call", meta)).await;
    let done = proxy.send(&call("echo", "{}")).await;
    assert_eq!(done.result()["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "own");
    assert!(done.raw.contains(r#""com.acme/y":[1e400]"#), "{}", done.raw);
    assert_eq!(done.raw.matches("serverInfo").count(), 1, "{}", done.raw);
}

#[tokio::test(start_paused = true)]
async fn d16_legacy_32601_to_404() {
    let error = r#"{"code":-32601,"message":"no prompts here","data":{"why":[1]}}"#;
    let (proxy, up) = Proxy::before(&LegacyServer::new().error("prompts/list", error)).await;
    let done = proxy.send(&list("prompts/list").id(r#""p-1""#)).await;
    done.is_error(404, -32601);
    let expected = json!({"code": -32601, "message": "no prompts here", "data": {"why": [1]}});
    assert_eq!(done.message, json!({"jsonrpc": "2.0", "id": "p-1", "error": expected}));
    assert_eq!(up.posts("initialize").len(), 1, "the session lives");
}

#[tokio::test(start_paused = true)]
async fn d19_cursor_empty() {
    let page = r#"{"nextCursor":"","tools":[]}"#;
    let (proxy, up) = Proxy::before(&LegacyServer::new().result("tools/list", page)).await;
    let done = proxy.send(&list("tools/list").params(r#""cursor":"""#)).await;
    assert_eq!(done.result()["nextCursor"], "");
    assert_eq!(up.only("tools/list").json()["params"], json!({"cursor": ""}));
}

#[tokio::test(start_paused = true)]
async fn d19_cursors_are_opaque() {
    let page = r#"{"tools":[],"nextCursor":"a\u002fb\/=\u00e9 "}"#;
    let (proxy, up) = Proxy::before(&LegacyServer::new().result("tools/list", page)).await;
    let done = proxy.send(&list("tools/list").params(r#""cursor":"a\u002fb\/=\u00e9 ""#)).await;
    assert!(done.raw.contains(r#""nextCursor":"a\u002fb\/=\u00e9 ""#), "{}", done.raw);
    assert!(up.only("tools/list").text().contains(r#""cursor":"a\u002fb\/=\u00e9 ""#));
}

const COMPLETE: &str = r#""ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"v"},"context":{"arguments":{"b":"c"}}"#;

#[tokio::test(start_paused = true)]
async fn d20_completion_truncate() {
    let values: Vec<String> = (0..150).map(|n| format!(r#""v{n}""#)).collect();
    let result =
        format!(r#"{{"completion":{{"values":[{}],"total":150,"hasMore":false}}}}"#, values.join(","));
    let (proxy, up) = Proxy::before(&LegacyServer::new().result("completion/complete", &result)).await;
    let done = proxy.send(&Ask::new("completion/complete").params(COMPLETE)).await;
    let completion = &done.result()["completion"];
    let kept = completion["values"].as_array().unwrap();
    assert_eq!((kept.len(), &kept[0], &kept[99]), (100, &json!("v0"), &json!("v99")));
    assert_eq!(completion["hasMore"], true);
    assert_eq!(completion["total"], 150);
    assert_eq!(up.only("completion/complete").json()["params"]["context"], json!({"arguments": {"b": "c"}}));
}

#[tokio::test(start_paused = true)]
async fn d21_completion_cap_24() {
    let server = LegacyServer::new().version("2024-11-05").capabilities(r#"{"prompts":{}}"#);
    let (proxy, up) = Proxy::before(&server).await;
    let discovered = proxy.send(&Ask::new("server/discover")).await;
    assert_eq!(discovered.result()["capabilities"], json!({"prompts": {}, "completions": {}}));
    proxy.send(&Ask::new("completion/complete").params(COMPLETE)).await.result();
    let params = up.only("completion/complete").json()["params"].clone();
    let expected =
        json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": "v"}});
    assert_eq!(params, expected);
}

#[tokio::test(start_paused = true)]
async fn d21_no_completions_without_prompts_or_resources() {
    let server = LegacyServer::new().version("2024-11-05").capabilities(r#"{"tools":{}}"#);
    let (proxy, _up) = Proxy::before(&server).await;
    let discovered = proxy.send(&Ask::new("server/discover")).await;
    assert_eq!(discovered.result()["capabilities"], json!({"tools": {}}));
}

#[tokio::test(start_paused = true)]
async fn b12_a_modern_result_reaches_a_modern_client_as_it_is() {
    let result = r#"{ "content" : [ ] ,"resultType":"complete", "n": 1e400,"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"m","version":"1"}} }"#;
    let (proxy, up) = Proxy::before_modern(&ModernServer::new().result("tools/call", result)).await;
    let done = proxy.send(&call("echo", r#"{"b":-0, "a":1E+2}"#).header("Mcp-Param-Region", "eu")).await;
    assert!(done.raw.contains(result), "{}", done.raw);
    let seen = up.only("tools/call");
    assert!(seen.text().contains(r#""arguments":{"b":-0, "a":1E+2}"#), "{}", seen.text());
    assert_eq!(seen.header("mcp-param-region").as_deref(), Some("eu"));
    assert_eq!(up.posts("initialize").len(), 0);
}
