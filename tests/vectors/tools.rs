//! D55, D56, D66: tools of a legacy server as a modern client may see them.

use crate::support::{LegacyServer, Net, Proxy, call, json, list};

#[tokio::test(start_paused = true)]
async fn d55_strip_execution() {
    let tools = r#"{"tools":[{"name":"t","execution":{"taskSupport":"optional"},"inputSchema":{"type":"object","properties":{"execution":{"type":"string"}}},"title":"T"},{"execution":{},"name":"u","inputSchema":{"type":"object"}}]}"#;
    let (proxy, _up) = Proxy::before(&LegacyServer::new().result("tools/list", tools)).await;
    let done = proxy.send(&list("tools/list")).await;
    let schema = json!({"type": "object", "properties": {"execution": {"type": "string"}}});
    let expected = json!([
        {"name": "t", "inputSchema": schema, "title": "T"},
        {"name": "u", "inputSchema": {"type": "object"}},
    ]);
    assert_eq!(done.result()["tools"], expected);
}

#[tokio::test(start_paused = true)]
async fn d56_strip_x_mcp_header() {
    let schema = r#"{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"},"o":{"type":"object","properties":{"b":{"x-mcp-header":"B","type":"integer"}}},"x-mcp-header":{"type":"string"}},"default":{"x-mcp-header":"data"}}"#;
    let tools = format!(r#"{{"tools":[{{"name":"t","inputSchema":{schema}}}]}}"#);
    let (proxy, _up) = Proxy::before(&LegacyServer::new().result("tools/list", &tools)).await;
    let done = proxy.send(&list("tools/list")).await;
    let tool = &done.result()["tools"][0];
    assert_eq!(tool["name"], "t", "still listed");
    let properties = &tool["inputSchema"]["properties"];
    assert_eq!(properties["a"], json!({"type": "string"}));
    assert_eq!(properties["o"], json!({"type": "object", "properties": {"b": {"type": "integer"}}}));
    assert_eq!(
        properties["x-mcp-header"],
        json!({"type": "string"}),
        "a property of that name is no annotation"
    );
}

#[tokio::test(start_paused = true)]
async fn d66_contentless() {
    let result = r#"{"structuredContent":{"a":1}}"#;
    let (proxy, _up) = Proxy::before(&LegacyServer::new().result("tools/call", result)).await;
    let done = proxy.send(&call("echo", "{}")).await;
    assert_eq!(done.result()["structuredContent"], json!({"a": 1}));
    let content = done.result()["content"].as_array().unwrap();
    assert_eq!(content.len(), 1, "{}", done.raw);
    assert_eq!(content[0]["type"], "text");
    let text: serde_json::Value = serde_json::from_str(content[0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, json!({"a": 1}));
}

#[tokio::test(start_paused = true)]
async fn d66_neither_content_nor_structure() {
    let (proxy, _up) = Proxy::before(&LegacyServer::new().result("tools/call", r#"{"isError":true}"#)).await;
    let done = proxy.send(&call("echo", "{}")).await;
    assert_eq!(done.result()["content"], json!([]));
    assert_eq!(done.result()["isError"], true, "C49: a tool's own error is untouched");
}

#[tokio::test(start_paused = true)]
async fn a5_11_tools_keep_their_order_and_their_unknown_members() {
    let tools = r#"{"tools":[{"name":"z","inputSchema":{"type":"object"},"annotations":{"title":"Z","readOnlyHint":true},"icons":[{"src":"https://i.test/i.png"}],"_meta":{"k":1}},{"name":"a","inputSchema":{"type":"object"},"outputSchema":{"type":"object"},"vendor":null}]}"#;
    let net = Net::new();
    let up = LegacyServer::new().result("tools/list", tools).start(&net);
    let proxy = Proxy::start(&net).await;
    let done = proxy.send(&list("tools/list")).await;
    let expected: serde_json::Value = serde_json::from_str(tools).unwrap();
    assert_eq!(done.result()["tools"], expected["tools"]);
    assert_eq!(net.dialled(), vec!["up.test:80"; up.connections()], "nothing is fetched");
}
