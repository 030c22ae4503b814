//! Raw JSON: what the proxy does not have to understand comes out byte for byte as it went in.
//!
//! Owns both directions of every method that carries user data. Rule: architecture, "Raw JSON"; cases name it too.

use crate::support::{Ask, LegacyServer, Proxy, call, get_prompt, list, read};

/// Everything a careless reader of JSON changes: order, numbers, escapes, duplicates, white space.
const ODD: &str = r#"{"z":1,"a":1e400,"n":-0,"f":-0.0,"big":12345678901234567890,"huge":123456789012345678901234567890,"e":[1.0,1E+2,0.10,1e-7],"dup":1,"dup":{"k":1,"k":2},"esc":"\u00e9\/\ud83d\ude00é\u0000\u2028\b\f","lone":"\ud800","":null,"ws" : [ 1 ,	2 ] ,
"deep":{"_meta":{"io.modelcontextprotocol/protocolVersion":"x"},"id":7,"method":"m","params":{},"result":{},"error":0,"resultType":"r","ttlMs":1}}"#;

#[tokio::test(start_paused = true)]
async fn raw_json_arguments_arrive_as_they_were_written() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    proxy.send(&call("echo", ODD)).await.result();
    let text = up.only("tools/call").text().to_owned();
    assert!(text.contains(&format!(r#""arguments":{ODD}"#)), "{text}");
    assert!(text.contains(r#""name":"echo""#), "{text}");
}

#[tokio::test(start_paused = true)]
async fn raw_json_unknown_params_and_meta_arrive_as_they_were_written() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    let ask = read("file:///x")
        .params(&format!(r#""uri":"file:///\u0078","extra":{ODD}"#))
        .meta("com.acme/odd", ODD);
    proxy.send(&ask).await.result();
    let text = up.only("resources/read").text().to_owned();
    assert!(text.contains(&format!(r#""extra":{ODD}"#)), "{text}");
    assert!(text.contains(&format!(r#""com.acme/odd":{ODD}"#)), "{text}");
    assert!(text.contains(r#""uri":"file:///\u0078""#), "the uri keeps its escape: {text}");
}

#[tokio::test(start_paused = true)]
async fn raw_json_results_arrive_as_they_were_written() {
    let with = |member: &str| format!(r#"{{{member},"x":{ODD},"structuredContent":{ODD}}}"#);
    let server = LegacyServer::new()
        .result("tools/call", &with(r#""content":[ {"type":"text","text":"\u0041"} ]"#))
        .result("prompts/get", &with(r#""messages":[]"#))
        .result("resources/read", &with(r#""contents":[]"#))
        .result("acme/do", &with(r#""k":0"#));
    let (proxy, _up) = Proxy::before(&server).await;
    for ask in [call("echo", "{}"), get_prompt("p"), read("file:///x"), Ask::new("acme/do")] {
        let done = proxy.send(&ask).await;
        done.result();
        assert!(done.raw.contains(&format!(r#""x":{ODD}"#)), "{}: {}", ask.method, done.raw);
        assert!(done.raw.contains(&format!(r#""structuredContent":{ODD}"#)), "{}: {}", ask.method, done.raw);
    }
}

#[tokio::test(start_paused = true)]
async fn raw_json_results_in_a_stream_arrive_as_they_were_written() {
    let odd = ODD.replace('\n', " ");
    let result = format!(r#"{{"content":[],"x":{odd}}}"#);
    let server = LegacyServer::new().on("tools/call", move |seen, reply| {
        let result = result.clone();
        async move { reply.streamed_result(&seen, &result).await }
    });
    let (proxy, _up) = Proxy::before(&server).await;
    let done = proxy.send(&call("echo", "{}")).await;
    done.result();
    assert!(done.raw.contains(&format!(r#""x":{odd}"#)), "{}", done.raw);
}

#[tokio::test(start_paused = true)]
async fn raw_json_errors_arrive_as_they_were_written() {
    let odd = ODD.replace('\n', " ");
    let error = format!(r#"{{"code":1234,"message":"\u0041b","data":{odd}}}"#);
    let (proxy, _up) = Proxy::before(&LegacyServer::new().error("tools/call", &error)).await;
    let done = proxy.send(&call("echo", "{}")).await;
    done.is_error(200, 1234);
    assert!(done.raw.contains(&format!(r#""data":{odd}"#)), "{}", done.raw);
    assert!(done.raw.contains(r#""message":"\u0041b""#), "{}", done.raw);
}

#[tokio::test(start_paused = true)]
async fn raw_json_tools_keep_what_no_rule_takes_from_them() {
    let schema = r#"{"type":"object","properties":{"a":{"default":1e400,"maximum":12345678901234567890,"minimum":-0}},"z":1,"b":2}"#;
    let tool = format!(r#"{{"name":"t","inputSchema":{schema},"vendor":{{"y":1.0,"x":[1E5]}}}}"#);
    let result = format!(r#"{{"tools":[{tool}],"more":-0}}"#);
    let (proxy, _up) = Proxy::before(&LegacyServer::new().result("tools/list", &result)).await;
    let done = proxy.send(&list("tools/list")).await;
    done.result();
    assert!(done.raw.contains(schema), "{}", done.raw);
    assert!(done.raw.contains(r#""vendor":{"y":1.0,"x":[1E5]}"#), "{}", done.raw);
    assert!(done.raw.contains(r#""more":-0"#), "{}", done.raw);
}

#[tokio::test(start_paused = true)]
async fn raw_json_a_large_result_comes_whole() {
    let blob = "QUJD".repeat(500_000);
    let result = format!(r#"{{"contents":[{{"uri":"file:///x","blob":"{blob}"}}]}}"#);
    let (proxy, _up) = Proxy::before(&LegacyServer::new().result("resources/read", &result)).await;
    let done = proxy.send(&read("file:///x")).await;
    done.result();
    assert!(done.raw.contains(&format!(r#""blob":"{blob}""#)), "{} bytes", done.raw.len());
}
