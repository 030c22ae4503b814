//! Results on their way down, by rule or vector id.
#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::translate::legacy_client::testing::{answer, body, id, response, text, value};
use serde_json::{Value, json};

const LATEST: LegacyRevision = LegacyRevision::LATEST;
const OLD: LegacyRevision = LegacyRevision::V2025_03_26;

fn down(result: &str, method: Method) -> String {
    called_by(result, method, LATEST, Output::Unstated)
}

fn called_by(result: &str, method: Method, revision: LegacyRevision, output: Output) -> String {
    let response = answer(result);
    text(&to_legacy(&response, body(&response), method, &id(), revision, output, true).unwrap())
}

/// The result of a call as a value.
fn call(result: &str, revision: LegacyRevision, output: Output) -> Value {
    let message: Value =
        serde_json::from_str(&called_by(result, Method::ToolsCall, revision, output)).unwrap();
    assert_eq!((&message["jsonrpc"], &message["id"]), (&json!("2.0"), &json!("c")));
    message["result"].clone()
}

fn is_kind(result: &str, method: Method) -> Kind {
    let response = answer(result);
    kind(&response, body(&response), method)
}

#[test]
fn d73_modern_words_go_and_everything_else_stays_byte_for_byte() {
    assert_eq!(
        down(
            r#"{ "resultType":"complete", "contents" : [{"uri":"u","text":"a\/b","n":-0}],"ttlMs":5 ,"cacheScope":"public","x":1e400,"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"},"a/b":[1 ]} }"#,
            Method::ResourcesRead
        ),
        r#"{"jsonrpc":"2.0","id":"c","result":{"contents" : [{"uri":"u","text":"a\/b","n":-0}],"x":1e400,"_meta":{"a/b":[1 ]} }}"#
    );
    let only = r#"{"resultType":"complete","content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}"#;
    assert_eq!(down(only, Method::ToolsCall), r#"{"jsonrpc":"2.0","id":"c","result":{"content":[]}}"#);
    // None at all is the same as complete (B12); what the server wrote empty is its own.
    let none = r#"{"content":[],"_meta":{}}"#;
    assert_eq!(down(none, Method::ToolsCall), format!(r#"{{"jsonrpc":"2.0","id":"c","result":{none}}}"#));
    let null = r#"{"_meta":null,"content":[]}"#;
    assert_eq!(down(null, Method::ToolsCall), r#"{"jsonrpc":"2.0","id":"c","result":{"content":[]}}"#);
}

#[test]
fn d73_names_are_compared_unescaped_and_however_often_they_stand() {
    let odd = r#"{"\u0072esultType":"complete","ttlMs":1,"ttlMs":2,"requestState":"s","inputRequests":{},"n":1,"_meta":{"io.modelcontextprotocol\/serverInfo":1,"io.modelcontextprotocol/related-task":{},"k":1}}"#;
    assert_eq!(down(odd, Method::Custom), r#"{"jsonrpc":"2.0","id":"c","result":{"n":1,"_meta":{"k":1}}}"#);
}

#[test]
fn an_answer_with_an_error_of_null_or_without_an_id_is_read_all_the_same() {
    let response = response(r#"{"error":null,"result":{"resultType":"complete"},"jsonrpc":"2.0","id":"7"}"#);
    let out = to_legacy(&response, body(&response), Method::Custom, &id(), LATEST, Output::Unstated, false);
    assert_eq!(text(&out.unwrap()), r#"{"result":{},"jsonrpc":"2.0","id":"c"}"#);
}

#[test]
fn a4_18_a_cursor_is_one_even_if_it_is_empty_and_null_is_none() {
    let page = r#"{"resultType":"complete","prompts":[],"nextCursor":"","ttlMs":0,"cacheScope":"private"}"#;
    assert_eq!(
        down(page, Method::PromptsList),
        r#"{"jsonrpc":"2.0","id":"c","result":{"prompts":[],"nextCursor":""}}"#
    );
    let last = r#"{"prompts":[],"nextCursor":null}"#;
    assert_eq!(down(last, Method::PromptsList), r#"{"jsonrpc":"2.0","id":"c","result":{"prompts":[]}}"#);
    assert!(down(last, Method::Custom).contains("nextCursor"), "of a method of one's own nothing is known");
}

#[test]
fn d74_what_kind_of_result_it_is() {
    let complete = [r#"{"resultType":"complete"}"#, "{}", r#"{"result\u0054ype":"\u0063omplete"}"#];
    for result in complete {
        assert_eq!(is_kind(result, Method::ToolsList), Kind::Complete, "{result}");
    }
    let asks = r#"{"resultType":"input_required","inputRequests":{}}"#;
    for method in [Method::ToolsCall, Method::PromptsGet, Method::ResourcesRead] {
        assert_eq!(is_kind(asks, method), Kind::InputRequired);
    }
    let unsupported = [
        (asks, Method::ToolsList),
        (asks, Method::Complete),
        (asks, Method::Custom),
        (r#"{"resultType":"banana"}"#, Method::ToolsCall),
        (r#"{"resultType":"task","taskId":"x"}"#, Method::ToolsCall),
        (r#"{"resultType":""}"#, Method::ToolsCall),
        (r#"{"resultType":5}"#, Method::ToolsCall),
        (r#"{"resultType":null}"#, Method::ToolsCall),
        (r#"{"resultType":["complete"]}"#, Method::ToolsCall),
        (r#"{"resultType":"\ud800"}"#, Method::ToolsCall),
        // Two readers could take either one.
        (r#"{"resultType":"complete","resultType":"input_required"}"#, Method::ToolsCall),
        (r#"{"resultType":"complete","result\u0054ype":"complete"}"#, Method::ToolsCall),
    ];
    for (result, method) in unsupported {
        assert!(matches!(is_kind(result, method), Kind::Unsupported(_)), "{result} {method:?}");
    }
    let long = format!(r#"{{"resultType":"a\n{}"}}"#, "b".repeat(500));
    let Kind::Unsupported(words) = is_kind(&long, Method::ToolsCall) else { panic!() };
    assert_eq!(words, format!("resultType \"a{}\"", "b".repeat(63)));
}

#[test]
fn d57_d58_what_is_advertised_as_wrapped_is_wrapped_whatever_it_is() {
    let wrapped = |value: &str| {
        let result = format!(r#"{{"resultType":"complete","content":[],"structuredContent":{value}}}"#);
        called_by(&result, Method::ToolsCall, LATEST, Output::Wrapped)
    };
    assert_eq!(
        wrapped("[1, 2.50]"),
        r#"{"jsonrpc":"2.0","id":"c","result":{"content":[{"type":"text","text":"[1,2.50]"}],"structuredContent":{"result":[1, 2.50]}}}"#
    );
    assert_eq!(
        wrapped(r#"{"a":1}"#),
        r#"{"jsonrpc":"2.0","id":"c","result":{"content":[],"structuredContent":{"result":{"a":1}}}}"#
    );
    assert_eq!(
        wrapped("null"),
        r#"{"jsonrpc":"2.0","id":"c","result":{"content":[{"type":"text","text":"null"}],"structuredContent":{"result":null}}}"#
    );
    // Where the server gave a text there is no second one (B6.4), and an error has its value too (B6.5).
    let failed = r#"{"isError":true,"structuredContent":"x","content":[{"data":"","mimeType":"a/b","type":"image"},{"text":"t","type":"te\u0078t"}]}"#;
    assert_eq!(
        called_by(failed, Method::ToolsCall, LATEST, Output::Wrapped),
        r#"{"jsonrpc":"2.0","id":"c","result":{"isError":true,"structuredContent":{"result":"x"},"content":[{"data":"","mimeType":"a/b","type":"image"},{"text":"t","type":"te\u0078t"}]}}"#
    );
}

#[test]
fn d60_without_a_schema_only_what_is_no_object_is_wrapped() {
    for falsy in ["0", "false", "\"\"", "null", "[]"] {
        let result = format!(r#"{{"content":[],"structuredContent":{falsy}}}"#);
        let seen = call(&result, LegacyRevision::V2025_06_18, Output::Unstated);
        let value: Value = serde_json::from_str(falsy).unwrap();
        assert_eq!(seen["structuredContent"], json!({ "result": value }), "{falsy}");
        assert_eq!(seen["content"], json!([{"type":"text","text":falsy}]));
    }
    let object = r#"{"content":[],"structuredContent":{"result":[]}}"#;
    assert_eq!(
        called_by(object, Method::ToolsCall, LATEST, Output::Unstated),
        format!(r#"{{"jsonrpc":"2.0","id":"c","result":{object}}}"#)
    );
}

#[test]
fn d61_what_does_not_fit_the_objects_schema_is_kept_as_text_alone() {
    let seen =
        call(r#"{"content":[],"structuredContent":[1],"resultType":"complete"}"#, LATEST, Output::Object);
    assert_eq!(seen, json!({"content":[{"type":"text","text":"[1]"}]}));
    let fits = call(r#"{"content":[],"structuredContent":{"a":1}}"#, LATEST, Output::Object);
    assert_eq!(fits, json!({"content":[],"structuredContent":{"a":1}}));
}

#[test]
fn d62_revisions_without_structured_results_get_them_as_text() {
    for revision in [LegacyRevision::V2024_11_05, OLD] {
        for output in [Output::Unstated, Output::Object, Output::Wrapped] {
            let seen = call(r#"{"structuredContent":{"a": "\"é"},"content":[]}"#, revision, output);
            assert_eq!(seen, json!({"content":[{"type":"text","text":"{\"a\":\"\\\"é\"}"}]}));
            let said = r#"{"content":[{"type":"text","text":"t"}],"structuredContent":{"a":1}}"#;
            assert_eq!(call(said, revision, output), json!({"content":[{"type":"text","text":"t"}]}));
            assert_eq!(call(r#"{"content":[]}"#, revision, output), json!({"content":[]}));
        }
    }
}

#[test]
fn d66_a5_14_content_is_always_there() {
    let seen = call(r#"{"structuredContent":{"a":1}}"#, LATEST, Output::Object);
    assert_eq!(seen, json!({"content":[{"type":"text","text":"{\"a\":1}"}],"structuredContent":{"a":1}}));
    assert_eq!(call("{}", LATEST, Output::Unstated), json!({"content":[]}));
    assert_eq!(call(r#"{"content":null,"x":1}"#, LATEST, Output::Unstated), json!({"content":[],"x":1}));
    assert_eq!(call(r#"{"structuredContent":0}"#, OLD, Output::Unstated)["content"][0]["text"], "0");
}

#[test]
fn what_decides_the_form_of_a_call_may_stand_there_once() {
    for result in [
        r#"{"content":[],"structuredContent":1,"structuredContent":{}}"#,
        r#"{"content":[],"conten\u0074":[]}"#,
    ] {
        let response = answer(result);
        let read =
            to_legacy(&response, body(&response), Method::ToolsCall, &id(), LATEST, Output::Unstated, true);
        assert!(read.is_err(), "{result}");
    }
}

#[test]
fn a_result_without_what_it_is_about_is_unreadable() {
    for (result, method) in [
        ("{}", Method::PromptsGet),
        (r#"{"contents":{}}"#, Method::ResourcesRead),
        (r#"{"resources":null}"#, Method::ResourcesList),
        (r#"{"completion":[]}"#, Method::Complete),
        (r#"{"prompts":[],"prompts":[]}"#, Method::PromptsList),
    ] {
        let response = answer(result);
        let read = to_legacy(&response, body(&response), method, &id(), LATEST, Output::Unstated, true);
        assert!(read.is_err(), "{result}");
    }
}

#[test]
fn d76_d88_a_failed_tool_in_words_of_the_proxy() {
    let said = value(&tool_error(&id(), "a \"b\"\n"));
    assert_eq!(
        said,
        json!({"jsonrpc":"2.0","id":"c","result":{"content":[{"type":"text","text":"a \"b\"\n"}],"isError":true}})
    );
}
