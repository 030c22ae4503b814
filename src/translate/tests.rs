//! Vectors of the translation rules, by rule or vector id; expected values are written from the rules.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::schema::Speaker;
use crate::schema::sift::Sift;
use crate::wire::json::Limits;
use crate::wire::jsonrpc::{self, Id, Message, Reply, Request, Response};
use crate::wire::method::Method;
use crate::wire::version::LegacyRevision;
use bytes::Bytes;
use serde_json::{Value, json};

const LIMITS: Limits = Limits { nesting: 64, members: 64 };

fn request(text: &str) -> Request {
    match jsonrpc::parse(Bytes::copy_from_slice(text.as_bytes()), LIMITS).unwrap() {
        Message::Request(request) => request,
        other => panic!("{other:?}"),
    }
}

fn response(text: &str) -> Response {
    match jsonrpc::parse(Bytes::copy_from_slice(text.as_bytes()), LIMITS).unwrap() {
        Message::Response(response) => response,
        other => panic!("{other:?}"),
    }
}

fn down(text: &str, revision: LegacyRevision) -> String {
    let request = request(text);
    let method = Method::of(&request.method);
    let out = request::to_legacy(&request, method, revision, 77).to_bytes();
    String::from_utf8(out.to_vec()).unwrap()
}

fn up(text: &str, method: Method) -> String {
    let response = response(text);
    let Reply::Result(body) = &response.reply else { panic!("a result") };
    let id = request(r#"{"jsonrpc":"2.0","id":"c","method":"m"}"#).id;
    let info = Bytes::from_static(br#"{"name":"s","version":"1"}"#);
    let speaker = Speaker::Legacy(Some(LegacyRevision::V2025_06_18));
    let sift = Sift::of_result(&response.text, &body.object, speaker);
    let sift = (method == Method::ToolsList).then_some(&sift);
    let out = result::to_modern(&response, body, method, &id, &info, sift, LIMITS).message.to_bytes();
    String::from_utf8(out.to_vec()).unwrap()
}

fn up_error(text: &str, asked: &str) -> (i64, Value) {
    let response = response(text);
    let Reply::Error(error) = &response.reply else { panic!("an error") };
    let asked = request(asked);
    let (code, out) = error::to_modern(&response, error, &asked, Method::of(&asked.method), LIMITS);
    (code, serde_json::from_slice(&out.to_bytes()).unwrap())
}

const META: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}"#;

#[test]
fn d11_never_leak_meta_up() {
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","_meta":{{{META},"traceparent":"00-x","com.acme/x":1e400,"progressToken":"t"}},"arguments":{{"b":-0,"a":1,"a":2}}}}}}"#
    );
    assert_eq!(
        down(&text, LegacyRevision::LATEST),
        r#"{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"t","_meta":{"traceparent":"00-x","com.acme/x":1e400,"progressToken":77},"arguments":{"b":-0,"a":1,"a":2}}}"#
    );
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"_meta":{{{META}}},"name":"t"}}}}"#
    );
    assert_eq!(
        down(&text, LegacyRevision::LATEST),
        r#"{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"t"}}"#
    );
}

#[test]
fn a1_4_emptied_params_are_left_out() {
    let text =
        format!(r#"{{"params":{{"_meta":{{{META}}}}},"jsonrpc":"2.0","id":"x","method":"tools/list"}}"#);
    assert_eq!(down(&text, LegacyRevision::LATEST), r#"{"jsonrpc":"2.0","id":77,"method":"tools/list"}"#);
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"cursor":"","_meta":{{{META}}}}}}}"#
    );
    assert_eq!(
        down(&text, LegacyRevision::LATEST),
        r#"{"jsonrpc":"2.0","id":77,"method":"tools/list","params":{"cursor":""}}"#,
        "D19: an empty cursor is a cursor"
    );
}

#[test]
fn a1_5_modern_members_are_left_out_on_the_methods_that_have_them() {
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","requestState":"s","inputResponses":{},"task":{}}}"#;
    assert_eq!(
        down(text, LegacyRevision::LATEST),
        r#"{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"t"}}"#
    );
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"acme/x","params":{"task":1}}"#;
    assert_eq!(
        down(text, LegacyRevision::LATEST),
        r#"{"jsonrpc":"2.0","id":77,"method":"acme/x","params":{"task":1}}"#
    );
}

#[test]
fn d21_completion_context_is_unknown_before_2025_06_18() {
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{},"context":{}}}"#;
    let without = r#"{"jsonrpc":"2.0","id":77,"method":"completion/complete","params":{"ref":{}}}"#;
    assert_eq!(down(text, LegacyRevision::V2024_11_05), without);
    assert_eq!(down(text, LegacyRevision::V2025_03_26), without);
    assert!(down(text, LegacyRevision::V2025_06_18).contains("context"));
}

#[test]
fn d12_d13_d14_stamps() {
    assert_eq!(
        up(r#"{"jsonrpc":"2.0","id":77,"result":{"content":[{"n":1e400}]}}"#, Method::ToolsCall),
        r#"{"jsonrpc":"2.0","id":"c","result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}},"content":[{"n":1e400}]}}"#
    );
    for method in [
        Method::ToolsList,
        Method::PromptsList,
        Method::ResourcesList,
        Method::ResourcesTemplatesList,
        Method::ResourcesRead,
    ] {
        let out: Value = serde_json::from_str(&up(
            r#"{"jsonrpc":"2.0","id":77,"result":{"ttlMs":99999,"cacheScope":"public","resultType":"weird","x":1}}"#,
            method,
        ))
        .unwrap();
        let result = &out["result"];
        assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(0), &json!("private")));
        assert_eq!((&result["resultType"], &result["x"]), (&json!("complete"), &json!(1)));
    }
    for method in [Method::PromptsGet, Method::Complete, Method::Custom] {
        assert!(!up(r#"{"jsonrpc":"2.0","id":77,"result":{}}"#, method).contains("ttlMs"));
    }
}

#[test]
fn a4_13_meta_of_the_server_is_kept_and_its_own_server_info_wins() {
    let text = r#"{"jsonrpc":"2.0","id":77,"result":{"_meta":{"com.acme/x":1,"io.modelcontextprotocol/related-task":{}},"content":[]}}"#;
    assert_eq!(
        up(text, Method::ToolsCall),
        r#"{"jsonrpc":"2.0","id":"c","result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"},"com.acme/x":1},"content":[]}}"#
    );
    let text = r#"{"jsonrpc":"2.0","id":77,"result":{"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"o","version":"2"}},"content":[]}}"#;
    assert!(!up(text, Method::ToolsCall).contains(r#""name":"s""#));
}

#[test]
fn d20_completion_is_cut_at_100() {
    let values: Vec<_> = (0..150).map(|n| n.to_string()).collect();
    let text =
        json!({"jsonrpc":"2.0","id":77,"result":{"completion":{"values":values,"total":150}}}).to_string();
    let out: Value = serde_json::from_str(&up(&text, Method::Complete)).unwrap();
    let completion = &out["result"]["completion"];
    assert_eq!(completion["values"].as_array().unwrap().len(), 100);
    assert_eq!((&completion["hasMore"], &completion["total"]), (&json!(true), &json!(150)));
    let text =
        json!({"jsonrpc":"2.0","id":77,"result":{"completion":{"values":values[..100],"hasMore":false}}})
            .to_string();
    let out: Value = serde_json::from_str(&up(&text, Method::Complete)).unwrap();
    assert_eq!(out["result"]["completion"]["hasMore"], json!(false));
}

#[test]
fn d66_contentless() {
    let out: Value = serde_json::from_str(&up(
        r#"{"jsonrpc":"2.0","id":77,"result":{"structuredContent":{"a":"\""}}}"#,
        Method::ToolsCall,
    ))
    .unwrap();
    assert_eq!(out["result"]["content"], json!([{"type":"text","text":"{\"a\":\"\\\"\"}"}]));
    assert_eq!(out["result"]["structuredContent"], json!({"a":"\""}));
}

#[test]
fn d55_d56_tools_lose_execution_and_header_annotations() {
    let tools = json!([{
        "name": "t",
        "execution": {"taskSupport": "optional"},
        "inputSchema": {"type": "object", "x-mcp-header": "R", "properties": {
            "a": {"type": "string", "x-mcp-header": "A", "default": {"x-mcp-header": "data"}},
            "x-mcp-header": {"type": "string"},
            "b": {"items": {"anyOf": [{"x-mcp-header": "B"}]}},
        }},
    }]);
    let text = json!({"jsonrpc":"2.0","id":77,"result":{"tools":tools}}).to_string();
    let out: Value = serde_json::from_str(&up(&text, Method::ToolsList)).unwrap();
    assert_eq!(
        out["result"]["tools"],
        json!([{"name": "t", "inputSchema": {"type": "object", "properties": {
            "a": {"type": "string", "default": {"x-mcp-header": "data"}},
            "x-mcp-header": {"type": "string"},
            "b": {"items": {"anyOf": [{}]}},
        }}}])
    );
}

#[test]
fn d65_a_dialect_that_goes_without_saying_is_said() {
    let tool = |schema: &str| {
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":77,"result":{{"tools":[{{"name":"t","inputSchema":{{"type":"object","properties":{{"a":{schema}}}}}}}]}}}}"#
        );
        let out: Value = serde_json::from_str(&up(&text, Method::ToolsList)).unwrap();
        out["result"]["tools"][0]["inputSchema"]["$schema"].clone()
    };
    assert_eq!(tool(r#"{"items":[{},{}]}"#), "http://json-schema.org/draft-07/schema#");
    assert_eq!(tool(r#"{"minimum":1,"exclusiveMinimum":true}"#), "http://json-schema.org/draft-04/schema#");
    assert_eq!(tool(r#"{"items":{}}"#), Value::Null);
}

#[test]
fn c65_one_odd_tool_never_hides_the_others() {
    for (odd, stays) in [
        ("null", None),
        ("7", None),
        (r#"{"name":"o"}"#, None),
        (r#"{"name":null,"inputSchema":{"type":"object"}}"#, None),
        (r#"{"name":"o","inputSchema":null}"#, None),
        (r#"{"name":"o","inputSchema":true}"#, None),
        (r#"{"name":"o","inputSchema":[]}"#, None),
        (r#"{"name":"o","inputSchema":{"type":"string"}}"#, None),
        (r#"{"name":"o","inputSchema":{"type":["object"]}}"#, None),
        (r#"{"name":"o","inputSchema":{"anyOf":[]}}"#, None),
        (r#"{"name":"o","inputSchema":{}}"#, Some(r#"{"name":"o","inputSchema":{"type":"object"}}"#)),
        (
            r#"{"name":"o","inputSchema":{"$schema":"x"}}"#,
            Some(r#"{"name":"o","inputSchema":{"type":"object","$schema":"x"}}"#),
        ),
    ] {
        let good = r#"{"name":"g","inputSchema":{"type":"object","properties":{"x":true},"additionalProperties":{}}}"#;
        let orders: [Vec<&str>; 4] =
            [vec![good, odd], vec![odd, good], vec![odd, odd], vec![good, odd, odd, good]];
        for order in orders {
            let text =
                format!(r#"{{"jsonrpc":"2.0","id":77,"result":{{"tools":[ {} ]}}}}"#, order.join(" , "));
            let out: Value = serde_json::from_str(&up(&text, Method::ToolsList)).unwrap();
            let expected: Vec<Value> = order
                .iter()
                .filter_map(|&tool| if tool == good { Some(good) } else { stays })
                .map(|tool| serde_json::from_str(tool).unwrap())
                .collect();
            assert_eq!(out["result"]["tools"], Value::from(expected), "{text}");
        }
    }
}

#[test]
fn d24_d25_d26_error_codes() {
    let read = r#"{"jsonrpc":"2.0","id":"c","method":"resources/read","params":{"uri":"file:///x"}}"#;
    let call = r#"{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"t"}}"#;
    let error = |code: i64, data: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":77,"error":{{"code":{code},"message":"m"{data}}}}}"#)
    };
    let (code, out) = up_error(&error(-32002, r#","data":{"uri":"file:///y","k":1}"#), read);
    assert_eq!(
        (code, &out["error"]),
        (-32602, &json!({"code":-32602,"message":"m","data":{"uri":"file:///y","k":1}}))
    );
    let (_, out) = up_error(&error(-32002, ""), read);
    assert_eq!(
        out,
        json!({"jsonrpc":"2.0","id":"c","error":{"code":-32602,"message":"m","data":{"uri":"file:///x"}}})
    );
    let (_, out) = up_error(&error(-32002, r#","data":{"k":1}"#), read);
    assert_eq!(out["error"]["data"], json!({"uri":"file:///x","k":1}));
    let (code, out) = up_error(&error(-32002, ""), call);
    assert_eq!((code, &out["error"]["data"]), (-32603, &json!({"originalCode":-32002})));
    let (_, out) = up_error(&error(-32042, r#","data":{"elicitations":[]}"#), call);
    assert_eq!(out["error"]["data"], json!({"originalCode":-32042}), "D29: its data is legacy vocabulary");
    for foreign in [-32020, -32021, -32022, -32077, -32099] {
        let (code, out) = up_error(&error(foreign, r#","data":[1]"#), call);
        assert_eq!(code, -32603);
        assert_eq!(out["error"]["data"], json!({"originalCode":foreign,"originalData":[1]}));
    }
    for own in [-32000, -32001, -32003, -32019, 1234, -32601, -32602, -32603, -32100] {
        let (code, out) = up_error(&error(own, r#","data":[1]"#), call);
        assert_eq!(
            (code, out),
            (own, json!({"jsonrpc":"2.0","id":"c","error":{"code":own,"message":"m","data":[1]}}))
        );
    }
    let (_, out) = up_error(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"m"}}"#, call);
    assert_eq!(out["id"], json!("c"));
}

fn notification(text: &str) -> jsonrpc::Notification {
    match jsonrpc::parse(Bytes::copy_from_slice(text.as_bytes()), LIMITS).unwrap() {
        Message::Notification(notification) => notification,
        other => panic!("{other:?}"),
    }
}

#[test]
fn d18_progress_goes_to_its_token_and_forward_only() {
    let mut progress = notify::Progress::default();
    let mut see = |token: &str, value: &str| {
        let text = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{value},"message":"m"}}}}"#
        );
        progress
            .to_modern(&notification(&text), 77, b"\"t\"")
            .map(|p| String::from_utf8(p.to_bytes().to_vec()).unwrap())
    };
    assert_eq!(
        see("77", "3").unwrap(),
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":3,"message":"m"}}"#
    );
    assert_eq!(see("77", "2"), None);
    assert_eq!(see("78", "9"), None);
    assert!(see("\"77\"", "4").unwrap().contains("\"progress\":4"));
    assert_eq!(see("77", "4"), None);
}

#[test]
fn b8_2_logs_are_filtered_by_the_request() {
    let log = |level: &str| {
        notification(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"{level}","data":1}}}}"#
        ))
    };
    use declared::LogLevel::{Debug, Error, Warning};
    assert!(notify::log_to_modern(&log("error"), Some(Warning)).is_some());
    assert!(notify::log_to_modern(&log("warning"), Some(Warning)).is_some());
    assert!(notify::log_to_modern(&log("info"), Some(Warning)).is_none());
    assert!(notify::log_to_modern(&log("emergency"), Some(Error)).is_some());
    assert!(notify::log_to_modern(&log("error"), None).is_none());
    assert!(notify::log_to_modern(&log("shout"), Some(Debug)).is_none());
}

fn initialized(result: &Value) -> Result<discover::Initialized, discover::InitializeFault> {
    let response = response(&json!({"jsonrpc":"2.0","id":1,"result":result}).to_string());
    let Reply::Result(body) = &response.reply else { panic!("a result") };
    discover::Initialized::read(&response, body)
}

fn discover(result: Value) -> Value {
    let id = request(r#"{"jsonrpc":"2.0","id":"d","method":"m"}"#).id;
    serde_json::from_slice(&initialized(&result).unwrap().discover(&id, LIMITS).to_bytes()).unwrap()
}

#[test]
fn d1_discover_from_initialize() {
    let out = discover(json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {"listChanged": true}, "tasks": {"requests": {"tools": {"call": {}}}}},
        "serverInfo": {"name": "s", "version": "1"},
        "instructions": "x",
    }));
    assert_eq!(
        out,
        json!({"jsonrpc": "2.0", "id": "d", "result": {
            "resultType": "complete", "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {"listChanged": true}}, "instructions": "x", "ttlMs": 0, "cacheScope": "private",
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}},
        }})
    );
}

#[test]
fn d4_versions_and_d21_completions_of_2024() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        assert_eq!(initialized(&json!({"protocolVersion": version})).unwrap().revision.as_str(), version);
    }
    for version in ["1999-01-01", "2026-07-28"] {
        assert!(matches!(
            initialized(&json!({"protocolVersion": version})),
            Err(discover::InitializeFault::Version(v)) if v == version
        ));
    }
    assert!(initialized(&json!({})).is_err());
    let capabilities = |version: &str, capabilities: Value| {
        discover(json!({"protocolVersion": version, "capabilities": capabilities}))["result"]["capabilities"]
            .clone()
    };
    assert_eq!(capabilities("2024-11-05", json!({"prompts":{}})), json!({"prompts":{},"completions":{}}));
    assert_eq!(capabilities("2024-11-05", json!({"tools":{}})), json!({"tools":{}}));
    assert_eq!(capabilities("2025-03-26", json!({"prompts":{}})), json!({"prompts":{}}));
}

#[test]
fn a3_7_extensions_pass_by_allow_list() {
    let capabilities = |extensions: Value| {
        discover(json!({"protocolVersion": "2025-11-25", "capabilities": {"extensions": extensions}}))["result"]
            ["capabilities"]
            .clone()
    };
    assert_eq!(capabilities(json!({"io.modelcontextprotocol/tasks":{}})), json!({}));
    assert_eq!(
        capabilities(json!({"io.modelcontextprotocol/tasks":{},"io.modelcontextprotocol/ui":{"a":1}})),
        json!({"extensions":{"io.modelcontextprotocol/ui":{"a":1}}})
    );
}

#[test]
fn own_requests_are_json() {
    let id = Id::number(3);
    assert_eq!(id.raw(), "3");
    let init: Value =
        serde_json::from_slice(&discover::initialize_request(3, &"{}".into(), None).to_bytes()).unwrap();
    assert_eq!(init["params"]["protocolVersion"], json!("2025-11-25"));
    assert_eq!(init["params"]["clientInfo"]["name"], json!("mcp-janus"));
    let probe: Value = serde_json::from_slice(&discover::discover_request(4).to_bytes()).unwrap();
    assert_eq!(probe["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"], json!({}));
}
