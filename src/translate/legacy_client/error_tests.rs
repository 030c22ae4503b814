//! Errors on their way down, by rule, vector or case id.
#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::translate::legacy_client::testing::{LIMITS, asked, response, rpc_error, text, value};
use serde_json::{Value, json};

fn answered(error: &str, method: &str, params: &str, not_found: bool) -> Answered {
    let response = response(&format!(r#"{{"jsonrpc":"2.0","id":7,"error":{error}}}"#));
    let asked = asked(method, params);
    to_legacy(&response, rpc_error(&response), &asked, Method::of(method), not_found, LIMITS)
}

/// The error that the client sees.
fn seen(error: &str, method: &str, params: &str, not_found: bool) -> Value {
    let Answered::Error(message) = answered(error, method, params, not_found) else { panic!("an error") };
    let message = value(&message);
    assert_eq!((&message["jsonrpc"], &message["id"]), (&json!("2.0"), &json!(1)));
    message["error"].clone()
}

#[test]
fn d80_a_resource_that_is_not_there_has_a_code_of_its_own() {
    let read = |error: &str, not_found| {
        seen(error, "resources/read", r#"{"uri":"file:///\u0078"}"#, not_found)["code"].clone()
    };
    let missing = r#"{"code":-32602,"message":"no","data":{"uri":"file:///x"}}"#;
    assert_eq!(read(missing, true), -32002);
    assert_eq!(read(missing, false), -32602, "switched off");
    let more = |message: &str| {
        format!(
            r#"{{"code":-32602,"message":"{message}","data":{{"uri":"file:///x","reason":"https only"}}}}"#
        )
    };
    assert_eq!(read(&more("no"), true), -32602);
    assert_eq!(read(&more("Resource NOT found"), true), -32002);
    for other in [
        r#"{"code":-32602,"message":"not found"}"#,
        r#"{"code":-32602,"message":"not found","data":"file:///x"}"#,
        r#"{"code":-32602,"message":"not found","data":{"uri":"file:///y"}}"#,
        r#"{"code":-32602,"message":"not found","data":{"uri":"file:///x","uri":"file:///x"}}"#,
    ] {
        assert_eq!(read(other, true), -32602, "{other}");
    }
    assert_eq!(seen(missing, "tools/call", r#"{"uri":"file:///x"}"#, true)["code"], -32602);
    // Everything else of the message stays.
    let Answered::Error(message) = answered(missing, "resources/read", r#"{"uri":"file:///x"}"#, true) else {
        panic!()
    };
    assert_eq!(
        text(&message),
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"no","data":{"uri":"file:///x"}}}"#
    );
    let silent = r#"{"code":-32602,"data":{"uri":"file:///x"}}"#;
    assert_eq!(read(silent, true), -32002);
}

#[test]
fn d76_a11_9_a_capability_that_the_client_lacks() {
    let error = r#"{"code":-32021,"message":"need","data":{"requiredCapabilities":{"elicitation":{"url":{},"form":{}},"sampling":{}}}}"#;
    let Answered::Result(message) = answered(error, "tools/call", r#"{"name":"t"}"#, true) else { panic!() };
    let result = value(&message);
    assert_eq!((&result["id"], &result["result"]["isError"]), (&json!(1), &json!(true)));
    let words = result["result"]["content"][0]["text"].as_str().unwrap();
    assert!(
        words.contains("elicitation.url, elicitation.form, sampling") && words.contains("need"),
        "{words}"
    );
    let got = seen(error, "prompts/get", r#"{"name":"p"}"#, true);
    assert_eq!(got["code"], -32603);
    assert_eq!(got["data"]["requiredCapabilities"]["sampling"], json!({}));
    let bare = seen(r#"{"code":-32021,"message":"need"}"#, "prompts/get", "{}", true);
    assert_eq!((&bare["code"], bare.get("data")), (&json!(-32603), None));
}

#[test]
fn c49_codes_about_what_the_proxy_sent_do_not_reach_the_client() {
    for code in [-32020, -32022, -32042] {
        let error = format!(r#"{{"code":{code},"message":"m","data":{{"supported":["2027-01-01"]}}}}"#);
        let got = seen(&error, "tools/call", "{}", true);
        assert_eq!((&got["code"], got.get("data")), (&json!(-32603), None), "{code}");
        assert!(got["message"].as_str().unwrap().ends_with(": m"));
    }
}

#[test]
fn d75_a11_11_a11_14_every_other_code_passes_as_it_is() {
    for code in [-32601, -32600, -32603, -32602, -32000, -32001, -32002, -32050, -1, 1234] {
        let error = format!(r#"{{"message":"m","code":{code},"data":[1e400],"x":1}}"#);
        let Answered::Error(message) = answered(&error, "tools/call", "{}", true) else { panic!() };
        assert_eq!(text(&message), format!(r#"{{"jsonrpc":"2.0","id":1,"error":{error}}}"#));
    }
    let silent = seen(r#"{"code":-32000,"message":null,"data":5}"#, "tools/call", "{}", true);
    assert_eq!((&silent["code"], &silent["data"]), (&json!(-32000), &json!(5)));
    assert!(silent["message"].is_string());
}

#[test]
fn an_error_that_does_not_say_whose_it_is_gets_the_id() {
    let response =
        response(r#"{"jsonrpc":"2.0","id":null,"result":null,"error":{"code":-32600,"message":"m"}}"#);
    let asked = asked("tools/list", "{}");
    let answered = to_legacy(&response, rpc_error(&response), &asked, Method::ToolsList, true, LIMITS);
    let Answered::Error(message) = answered else { panic!() };
    assert_eq!(text(&message), r#"{"id":1,"jsonrpc":"2.0","error":{"code":-32600,"message":"m"}}"#);
}
