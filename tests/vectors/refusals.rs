//! D5, D7-D10, D15, D22 and the order of the front's checks: what is refused before anything reaches a server.
//!
//! Statuses and codes are those of `basic/index` ("Error Codes", "_meta") and `basic/transports/streamable-http`
//! of 2026-07-28.

use crate::support::{
    Ask, CAPS, INFO, LegacyServer, ModernServer, Net, Proxy, VERSION, call, get_prompt, json, list, read,
};

/// Sends each, expects status and code, and that the server was left alone.
async fn refused(table: &[(&str, Ask, u16, i64)]) {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    for (what, ask, status, code) in table {
        let done = proxy.send(ask).await;
        assert_eq!(
            (done.status, done.message["error"]["code"].as_i64()),
            (*status, Some(*code)),
            "{what}: {}",
            done.raw
        );
    }
    assert_eq!(up.briefs(), Vec::<String>::new(), "nothing goes upstream");
}

#[tokio::test(start_paused = true)]
async fn d05_meta_missing_caps() {
    let list = || list("tools/list").id("1");
    refused(&[
        ("no capabilities", list().without_meta(CAPS), 400, -32602),
        ("no version in the body", list().without_meta(VERSION), 400, -32602),
        (
            "empty _meta",
            list().without_meta(VERSION).without_meta(CAPS).without_meta(INFO).params(r#""_meta":{}"#),
            400,
            -32602,
        ),
        ("no _meta", list().without_meta(VERSION).without_meta(CAPS).without_meta(INFO), 400, -32602),
        ("no params", list().raw_body(br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#), 400, -32602),
        ("capabilities are text", list().caps(r#""x""#), 400, -32602),
        ("capabilities are null", list().caps("null"), 400, -32602),
        ("capabilities are an array", list().caps("[]"), 400, -32602),
        ("on server/discover too", Ask::new("server/discover").without_meta(CAPS), 400, -32602),
        ("on tools/call too", call("echo", "{}").without_meta(CAPS), 400, -32602),
        ("on custom methods too", Ask::new("acme/do").without_meta(CAPS), 400, -32602),
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn d07_meta_clientinfo_malformed() {
    let list = || list("tools/list");
    refused(&[
        ("no version", list().meta(INFO, r#"{"name":"c"}"#), 400, -32602),
        ("no name", list().meta(INFO, r#"{"version":"1"}"#), 400, -32602),
        ("a number", list().meta(INFO, r#"{"name":"c","version":1}"#), 400, -32602),
        ("text", list().meta(INFO, r#""c""#), 400, -32602),
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn d08_version_unsupported() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    let ask =
        list("tools/list").header("MCP-Protocol-Version", "2027-01-01").meta(VERSION, r#""2027-01-01""#);
    let done = proxy.send(&ask).await;
    done.is_error(400, -32022);
    assert_eq!(*done.data(), json!({"supported": ["2026-07-28"], "requested": "2027-01-01"}));
    assert_eq!(up.briefs(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn d09_version_mismatch_header_body() {
    let list = || list("tools/list");
    let header = |v: &str| list().header("MCP-Protocol-Version", v);
    refused(&[
        ("older body", list().meta(VERSION, r#""2025-11-25""#), 400, -32020),
        ("newer body", list().meta(VERSION, r#""2027-01-01""#), 400, -32020),
        ("older header", header("2025-11-25"), 400, -32020),
        ("unknown header", header("foobar"), 400, -32020),
        ("empty header", header(""), 400, -32020),
        ("no header", list().without("MCP-Protocol-Version"), 400, -32020),
        ("two lines that differ", list().add_header("MCP-Protocol-Version", b"2025-11-25"), 400, -32020),
        (
            "bytes outside ASCII",
            list().without("MCP-Protocol-Version").add_header("MCP-Protocol-Version", b"2026-07-28\xff"),
            400,
            -32020,
        ),
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn d10_hdr_method_and_name() {
    let echo = || call("echo", "{}");
    refused(&[
        ("no Mcp-Method", echo().without("Mcp-Method"), 400, -32020),
        ("another method", echo().header("Mcp-Method", "tools/list"), 400, -32020),
        ("method in capitals", echo().header("Mcp-Method", "Tools/Call"), 400, -32020),
        ("no Mcp-Name", echo().without("Mcp-Name"), 400, -32020),
        ("no Mcp-Name of a prompt", get_prompt("p").without("Mcp-Name"), 400, -32020),
        ("no Mcp-Name of a resource", read("file:///x").without("Mcp-Name"), 400, -32020),
        ("another name", echo().header("Mcp-Name", "other"), 400, -32020),
        ("name in capitals", echo().header("Mcp-Name", "ECHO"), 400, -32020),
        ("another name in the sentinel", echo().header("Mcp-Name", "=?base64?b3RoZXI=?="), 400, -32020),
        ("a broken sentinel", echo().header("Mcp-Name", "=?base64?ZWNo*w==?="), 400, -32020),
        ("two names that differ", echo().add_header("Mcp-Name", b"other"), 400, -32020),
        ("raw bytes outside ASCII", call("\u{e9}", "{}"), 400, -32020),
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn d10_hdr_accepted_forms() {
    let (proxy, _up) = Proxy::before(&LegacyServer::new()).await;
    let accepted = [
        call("echo", "{}").header("Mcp-Name", "=?base64?ZWNobw==?="),
        call("echo", "{}").without("Mcp-Name").header("mcp-name", "echo"),
        call("echo", "{}").without("Mcp-Method").header("MCP-METHOD", "tools/call"),
        call("\u{e9}", "{}").header("Mcp-Name", "=?base64?w6k=?="),
        call("echo", "{}").header("Mcp-Name", " echo "),
        // The name in the body may be written with escapes.
        call("echo", "{}").params(r#""name":"\u0065cho","arguments":{}"#),
        call("echo", "{}").header("Mcp-Param-Region", "anything"),
    ];
    for ask in accepted {
        proxy.send(&ask).await.result();
    }
}

#[tokio::test(start_paused = true)]
async fn d15_method_removed() {
    let uri = r#""uri":"file:///x""#;
    let removed = |method: &str| Ask::new(method).id(r#""gone""#);
    refused(&[
        ("ping", removed("ping"), 404, -32601),
        ("setLevel", removed("logging/setLevel").params(r#""level":"info""#), 404, -32601),
        ("subscribe", removed("resources/subscribe").params(uri), 404, -32601),
        ("unsubscribe", removed("resources/unsubscribe").params(uri), 404, -32601),
        ("initialize with a claim", removed("initialize"), 404, -32601),
        ("tasks/result", removed("tasks/result").params(r#""taskId":"t""#), 404, -32601),
        ("tasks/list", removed("tasks/list"), 404, -32601),
        ("sampling", removed("sampling/createMessage"), 404, -32601),
        ("elicitation", removed("elicitation/create"), 404, -32601),
        ("roots", removed("roots/list"), 404, -32601),
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn d22_response_and_batch_from_modern() {
    let body = |raw: &str| list("tools/list").raw_body(raw.as_bytes());
    let one = String::from_utf8(list("tools/list").body()).unwrap();
    refused(&[
        ("a result", body(r#"{"jsonrpc":"2.0","id":9,"result":{}}"#), 400, -32600),
        ("an error", body(r#"{"jsonrpc":"2.0","id":9,"error":{"code":-1,"message":"no"}}"#), 400, -32600),
        ("an empty batch", body("[]"), 400, -32600),
        ("a batch of one", body(&format!("[{one}]")), 400, -32600),
        ("a batch after white space", body(&format!("  \n[{one},{one}]")), 400, -32600),
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn a11_1_what_is_not_json_is_a_parse_error() {
    let body = |raw: &[u8]| list("tools/list").raw_body(raw);
    refused(&[
        ("empty", body(b""), 400, -32700),
        ("cut off", body(br#"{"jsonrpc":"2.0","id":1,"method":"tools/list","#), 400, -32700),
        ("two messages", body(br#"{"jsonrpc":"2.0","id":1,"method":"ping"} {}"#), 400, -32700),
        ("a comment", body(br#"{"jsonrpc":"2.0","id":1,/* */"method":"ping"}"#), 400, -32700),
        (
            "bytes that are not UTF-8",
            body(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}"),
            400,
            -32700,
        ),
        ("a leading zero", body(br#"{"jsonrpc":"2.0","id":01,"method":"ping"}"#), 400, -32700),
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn a11_2_what_is_not_a_message_is_an_invalid_request() {
    let body = |raw: &str| list("tools/list").raw_body(raw.as_bytes());
    refused(&[
        ("text", body(r#""x""#), 400, -32600),
        ("null", body("null"), 400, -32600),
        ("no jsonrpc", body(r#"{"id":1,"method":"tools/list"}"#), 400, -32600),
        ("another jsonrpc", body(r#"{"jsonrpc":"1.0","id":1,"method":"tools/list"}"#), 400, -32600),
        ("id is null", body(r#"{"jsonrpc":"2.0","id":null,"method":"tools/list"}"#), 400, -32600),
        ("id is an object", body(r#"{"jsonrpc":"2.0","id":{},"method":"tools/list"}"#), 400, -32600),
        ("id is a fraction", body(r#"{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}"#), 400, -32600),
        ("method is a number", body(r#"{"jsonrpc":"2.0","id":1,"method":5}"#), 400, -32600),
        ("id twice", body(r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/list"}"#), 400, -32600),
        (
            "id twice, once escaped",
            body(r#"{"jsonrpc":"2.0","id":1,"\u0069d":2,"method":"tools/list"}"#),
            400,
            -32600,
        ),
        (
            "method twice",
            body(r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}"#),
            400,
            -32600,
        ),
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn a11_2_a_deciding_member_may_occur_once() {
    let echo = || call("echo", "{}");
    let meta = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
    let doubled = String::from_utf8(echo().body()).unwrap().replacen(meta, &format!("{meta},{meta}"), 1);
    refused(&[
        ("name", echo().params(r#""name":"echo","name":"other""#), 400, -32600),
        ("name, once escaped", echo().params(r#""name":"echo","n\u0061me":"other""#), 400, -32600),
        ("_meta", echo().params(r#""name":"echo","_meta":{}"#), 400, -32600),
        ("a reserved key", echo().raw_body(doubled.as_bytes()), 400, -32600),
        ("uri", read("file:///x").params(r#""uri":"file:///x","uri":"file:///y""#), 400, -32600),
        (
            "requestState",
            echo().params(r#""name":"echo","requestState":"a","requestState":"b""#),
            400,
            -32600,
        ),
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn d83_a1_1_a_legacy_client_is_told_the_versions() {
    let net = Net::new();
    let up = ModernServer::new().start(&net);
    let proxy = Proxy::with(&net, "legacy_clients = false").await;
    let initialize = br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}"#;
    let old =
        Ask::new("initialize").raw_body(initialize).without("MCP-Protocol-Version").without("Mcp-Method");
    let done = proxy.send(&old).await;
    done.is_error(400, -32022);
    assert_eq!(*done.data(), json!({"supported": ["2026-07-28"], "requested": "2025-11-25"}));
    let plain = br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let old = list("tools/list").raw_body(plain).without("Mcp-Method");
    for version in ["2025-11-25", "1999-01-01", "foobar"] {
        let done = proxy.send(&old.clone().header("MCP-Protocol-Version", version)).await;
        done.is_error(400, -32022);
        assert_eq!(done.data()["supported"], json!(["2026-07-28"]), "{version}");
        assert_eq!(done.data()["requested"], version);
    }
    proxy.send(&old.without("MCP-Protocol-Version")).await.is_error(400, -32020);
    // Nothing but the proxy's own question, and the client's own: whether the server serves its like too.
    assert_eq!(up.briefs(), ["server/discover", "initialize"]);
}

#[tokio::test(start_paused = true)]
async fn a12_the_first_broken_rule_is_the_one_reported() {
    let broken = || Ask::new("ping");
    let order = |ask: Ask| ask.header("Mcp-Method", "other").without_meta(CAPS);
    refused(&[
        (
            "shape before version",
            list("tools/list").raw_body(b"[").without("MCP-Protocol-Version"),
            400,
            -32700,
        ),
        (
            "version before Mcp-Method",
            order(broken()).header("MCP-Protocol-Version", "2025-11-25"),
            400,
            -32020,
        ),
        ("Mcp-Method before the rest of _meta", order(broken()), 400, -32020),
        ("_meta before the method", broken().without_meta(CAPS), 400, -32602),
        (
            "unknown version before Mcp-Method",
            order(broken()).header("MCP-Protocol-Version", "2027-01-01").meta(VERSION, r#""2027-01-01""#),
            400,
            -32022,
        ),
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn b8_5_an_invalid_log_level_is_refused() {
    let level = |raw: &str| list("tools/list").meta("io.modelcontextprotocol/logLevel", raw);
    refused(&[("unknown", level(r#""loud""#), 400, -32602), ("number", level("7"), 400, -32602)]).await;
}
