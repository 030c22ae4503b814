//! Raw JSON (architecture section 4), C65, A1.5: members that occur twice, and members of the other era.

use crate::support::{LegacyServer, Proxy, json, list};

const GOOD: &str = r#"{"name":"good","inputSchema":{"type":"object"}}"#;
const HIDDEN: &str = r#"{"name":"hidden","inputSchema":{"type":"object"},"x":"leak"}"#;

#[tokio::test(start_paused = true)]
async fn raw_json_a_list_with_two_lists_of_tools() {
    let table = [
        format!(r#"{{"tools":[{GOOD}],"tools":[{HIDDEN}]}}"#),
        format!(r#"{{"tools":[{HIDDEN}],"tools":[{GOOD}]}}"#),
        format!(r#"{{"tools":[{GOOD}],"to\u006fls":[{HIDDEN}]}}"#),
        format!(r#"{{"\u0074ools":[{HIDDEN}],"nextCursor":"c","tools":[{GOOD}]}}"#),
    ];
    for result in table {
        let (proxy, _up) = Proxy::before(&LegacyServer::new().result("tools/list", &result)).await;
        let done = proxy.send(&list("tools/list").id("7")).await;
        done.is_error(502, -32603);
        for word in ["hidden", "leak", "good"] {
            assert!(!done.raw.contains(word), "{result}: {}", done.raw);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn c65_a_tool_with_two_schemas_is_left_out() {
    let odd = [
        r#"{"name":"odd","inputSchema":{"type":"object"},"inputSchema":{"type":"object","x-mcp-header":"A"}}"#,
        r#"{"name":"odd","inputSchema":{"type":"object"},"input\u0053chema":{"type":"array"}}"#,
        r#"{"inputSchema":{"type":"object"},"name":"odd","inputSchema":{"type":"object"}}"#,
    ];
    for tool in odd {
        for tools in [format!("[{GOOD},{tool}]"), format!("[{tool},{GOOD}]")] {
            let server = LegacyServer::new().result("tools/list", &format!(r#"{{"tools":{tools}}}"#));
            let (proxy, _up) = Proxy::before(&server).await;
            let done = proxy.send(&list("tools/list")).await;
            let expected = json!([{"name": "good", "inputSchema": {"type": "object"}}]);
            assert_eq!(done.result()["tools"], expected, "{tool}");
            assert!(!done.raw.contains("odd"), "{}", done.raw);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn c65_a_tool_with_two_names_is_left_out() {
    let tool = r#"{"name":"odd","inputSchema":{"type":"object"},"name":"other"}"#;
    let server = LegacyServer::new().result("tools/list", &format!(r#"{{"tools":[{tool},{GOOD}]}}"#));
    let (proxy, _up) = Proxy::before(&server).await;
    let done = proxy.send(&list("tools/list")).await;
    assert_eq!(done.result()["tools"].as_array().map(Vec::len), Some(1), "{}", done.raw);
    assert_eq!(done.result()["tools"][0]["name"], "good");
}

#[tokio::test(start_paused = true)]
async fn a1_5_words_of_a_retry_do_not_reach_a_legacy_server() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    let members = r#""cursor":"c","requestState":"s","inputResponses":{"k":{"roots":[]}}"#;
    let methods = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"];
    for method in methods {
        proxy.send(&list(method).params(members)).await.result();
        let sent = up.only(method);
        assert_eq!(sent.json()["params"], json!({"cursor": "c"}), "{method}: {}", sent.text());
    }
    // The name counts, not its spelling.
    let escaped = r#""request\u0053tate":"s","inputR\u0065sponses":{}"#;
    proxy.send(&list("tools/list").params(escaped)).await.result();
    let sent = up.posts("tools/list")[1].json();
    assert!(sent["params"].as_object().is_none_or(|p| p.is_empty()), "{sent}");
}
