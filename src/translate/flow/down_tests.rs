//! A modern server's result that passes against one that is held: the same bytes, wherever it is cut.
#![allow(clippy::unwrap_used)]

use super::up_tests::{object, orders, passed_by};
use super::*;
use crate::translate::legacy_client::output::Output;
use crate::translate::legacy_client::result::{self, Kind};
use crate::wire::jsonrpc::{self, Message, Reply};
use crate::wire::version::LegacyRevision;
use serde_json::Value;

const LIMITS: Limits = Limits { nesting: 16, members: 8 };
const NEWER: LegacyRevision = LegacyRevision::V2025_06_18;
const ANY: Form = Form { revision: LegacyRevision::LATEST, output: Output::Unstated, convert: true };

fn id() -> Id {
    match jsonrpc::parse(Bytes::from(r#"{"jsonrpc":"2.0","id":"é","method":"x"}"#), LIMITS).unwrap() {
        Message::Request(request) => request.id,
        other => panic!("{other:?}"),
    }
}

fn plan(method: Method, form: Form) -> Plan {
    Plan::to_legacy_client(method, form, 5, id(), LIMITS, 512).unwrap()
}

/// As it is when it is held; `None` where it is refused.
fn held(text: &str, method: Method, form: Form) -> Option<String> {
    let Ok(Message::Response(response)) = jsonrpc::parse(Bytes::copy_from_slice(text.as_bytes()), LIMITS)
    else {
        return None;
    };
    let Reply::Result(body) = &response.reply else { return None };
    if !response.answers(5) || result::kind(&response, body, method) != Kind::Complete {
        return None;
    }
    let Form { revision, output, convert } = form;
    let message = result::to_legacy(&response, body, method, &id(), revision, output, convert).ok()?;
    Some(String::from_utf8(message.to_bytes().to_vec()).unwrap())
}

#[track_caller]
fn same(text: &str, method: Method, form: Form) {
    let held = held(text, method, form).unwrap_or_else(|| panic!("refused: {text}"));
    let _: Value = serde_json::from_str(&held).unwrap();
    for first in 0..text.len() {
        for cuts in [&[first][..], &[first / 2, first]] {
            assert_eq!(
                passed_by(plan(method, form), text, cuts),
                (held.clone(), Ok(())),
                "{text} at {cuts:?}"
            );
        }
    }
    let every: Vec<_> = (0..text.len()).collect();
    assert_eq!(passed_by(plan(method, form), text, &every), (held, Ok(())), "{text} in single bytes");
}

fn message(result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":5,"result":{result}}}"#)
}

#[test]
fn d73_every_order_of_a_results_members() {
    let content = r#","content":[{"type":"text","text":"a\"\\\u00e9é"}]"#;
    let metas = [
        "",
        ",\"_meta\":{\"a\":1,\"io.modelcontextprotocol/serverInfo\":{\"name\":\"s\"}}",
        ",\n \"_m\\u0065ta\"\t:\r\n{ \"io.modelcontextprotocol\\/serverInfo\" : 1 } ",
        ",\"_meta\" : null",
        ",\"_meta\":{}",
    ];
    for meta in metas {
        for kind in ["", ", \"resultType\" : \"complete\" ", ",\"result\\u0054ype\":\"\\u0063omplete\""] {
            let members = [content, meta, kind, ",\"ttlMs\":[1] ,\"isError\" : false "];
            let members: Vec<_> = members.into_iter().filter(|member| !member.is_empty()).collect();
            for order in orders(&members) {
                same(&message(&object(&order)), Method::ToolsCall, ANY);
            }
        }
    }
}

#[test]
fn what_says_whose_result_it_is_may_stand_anywhere() {
    let members = [
        ",\"jsonrpc\":\"2.0\"",
        ",\"id\" : \"5\"",
        ", \"result\" : { \"ttlMs\":0 , \"contents\":[1] }",
        ",\"error\":null",
    ];
    for order in orders(&members) {
        same(&format!("{{{}}}", order.trim_start_matches([' ', ','])), Method::ResourcesRead, ANY);
    }
}

#[test]
fn d60_d61_structured_results_take_their_form_wherever_they_stand() {
    let text = r#","content":[{"type":"text","text":"t"}]"#;
    for value in ["{\"a\":{}}", "[1,[]]", "null", "0", "\"x\"", "false", "{ }"] {
        for output in [Output::Unstated, Output::Object, Output::Wrapped] {
            let form = Form { revision: NEWER, output, convert: true };
            let structured = format!(", \"structured\\u0043ontent\" : {value} ");
            let members = [text, &structured, ",\"resultType\":\"complete\""];
            for order in orders(&members) {
                same(&message(&object(&order)), Method::ToolsCall, form);
            }
        }
    }
}

/// The list of blocks may have passed by then.
#[test]
fn b6_4_a_value_that_passes_gets_no_text_of_its_own() {
    for (output, structured) in
        [(Output::Unstated, r#","structuredContent":{"result":[1]}"#), (Output::Object, "")]
    {
        let form = Form { output, ..ANY };
        let text = message(r#"{"content":[1],"structuredContent":[1]}"#);
        let (out, end) = passed_by(plan(Method::ToolsCall, form), &text, &[]);
        assert_eq!(end, Ok(()));
        assert_eq!(out, format!(r#"{{"jsonrpc":"2.0","id":"é","result":{{"content":[1]{structured}}}}}"#));
    }
}

/// B6.4: such a list may have to get a text, so the result is held.
#[test]
fn b6_4_a_result_without_blocks_does_not_pass() {
    for content in ["[]", "[ ]", " [\n\t]"] {
        let text = message(&format!(r#"{{"content":{content},"structuredContent":[1]}}"#));
        for cut in 1..text.len() {
            let mut probe = Flow::probe(plan(Method::ToolsCall, ANY));
            let (first, second) = text.as_bytes().split_at(cut);
            let fed = probe
                .feed(&Bytes::copy_from_slice(first))
                .and_then(|()| probe.feed(&Bytes::copy_from_slice(second)));
            assert!(fed.is_err() && !probe.is_underway(), "{content} {cut}");
        }
    }
}

#[test]
fn a1_16_results_of_methods_of_ones_own_and_of_prompts() {
    for result in [
        r#"{"resultType":"complete","x":1,"structuredContent":[1],"nextCursor":null,"content":5}"#,
        r#"{"x":1,"structuredContent":2,"structuredContent":3,"resultType":"complete"}"#,
    ] {
        same(&message(result), Method::Custom, ANY);
    }
    let prompt = r#"{"description":"d","messages":[{"content":{"type":"resource_link","uri":"u","name":"n"}}],"resultType":"complete"}"#;
    same(&message(prompt), Method::PromptsGet, ANY);
    let oldest = LegacyRevision::V2024_11_05;
    same(&message(prompt), Method::PromptsGet, Form { revision: oldest, convert: false, ..ANY });
    same(
        &message(r#"{"contents":[],"cacheScope":"public"}"#),
        Method::ResourcesRead,
        Form { revision: oldest, ..ANY },
    );
}

#[test]
fn what_is_looked_into_is_held() {
    let planned = |method, revision, convert| {
        Plan::to_legacy_client(method, Form { revision, convert, ..ANY }, 5, id(), LIMITS, 512)
    };
    for older in [LegacyRevision::V2024_11_05, LegacyRevision::V2025_03_26] {
        assert!(planned(Method::PromptsGet, older, true).is_none());
        assert!(planned(Method::PromptsGet, older, false).is_some());
        assert!(planned(Method::ToolsCall, older, false).is_none(), "D62");
        assert!(planned(Method::ResourcesRead, older, true).is_some());
    }
    for method in [Method::ToolsList, Method::ResourcesList, Method::Complete, Method::Discover] {
        assert!(planned(method, NEWER, true).is_none());
    }
}

/// D74. Before the beginning has gone out it is taken whole and said in words; afterwards the flow ends.
#[test]
fn d74_what_is_not_complete_does_not_pass() {
    for kind in [
        r#""input_required""#,
        r#""task""#,
        "5",
        "null",
        r#"["complete"]"#,
        r#""complete","resultType":"complete""#,
    ] {
        let before = message(&format!(r#"{{"resultType":{kind},"requestState":"s","content":["#));
        let mut probe = Flow::probe(plan(Method::ToolsCall, ANY));
        assert!(probe.feed(&Bytes::from(before)).is_err(), "{kind}");
        assert!(!probe.is_underway());
        let after = message(&format!(r#"{{"content":[1],"result\u0054ype":{kind}}}"#));
        assert_eq!(held(&after, Method::ToolsCall, ANY), None);
        let every: Vec<_> = (0..after.len()).collect();
        for cuts in [&[][..], &every] {
            let (out, end) = passed_by(plan(Method::ToolsCall, ANY), &after, cuts);
            assert_eq!(end, Err(Stop::NotTheResult), "{kind}");
            assert!(serde_json::from_str::<Value>(&out).is_err(), "no answer comes of it: {out}");
        }
    }
    // Without its main member nothing is known of it.
    let asks = message(r#"{"inputRequests":{"a":{"content":[1,2]}},"resultType":"input_required"}"#);
    let mut probe = Flow::probe(plan(Method::ToolsCall, ANY));
    assert!(probe.feed(&Bytes::from(asks)).is_err() && !probe.is_underway());
}

#[test]
fn what_is_refused_when_held_does_not_pass() {
    let good = r#"{"jsonrpc":"2.0","id":5,"result":{"content":[{"type":"text"}]"#;
    for tail in [
        r#","content":[]}}"#,
        r#","structuredContent":1,"structuredContent":{}}}"#,
        r#","_meta":{},"_m\u0065ta":null}}"#,
        r#","_meta":3}}"#,
        r#"},"id":5}"#,
        r#"},"error":{"code":1,"message":"m"}}"#,
        r#"}"#,
        r#","a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1}}"#,
    ] {
        let text = format!("{good}{tail}");
        assert_eq!(held(&text, Method::ToolsCall, ANY), None, "{text}");
        let (out, end) = passed_by(plan(Method::ToolsCall, ANY), &text, &[good.len()]);
        assert!(end.is_err() && serde_json::from_str::<Value>(&out).is_err(), "{text}");
    }
    // What is no list of blocks is put right when it is held, so it does not pass.
    let mut probe = Flow::probe(plan(Method::ToolsCall, ANY));
    assert!(probe.feed(&Bytes::from(message(r#"{"content":null}"#))).is_err());
}

#[test]
fn only_a_name_or_a_member_is_held_at_a_time() {
    let long = "x".repeat(20_000);
    let form = Form { output: Output::Wrapped, ..ANY };
    let text =
        message(&format!(r#"{{"content":["{long}"],"structuredContent":["{long}"],"ttlMs":"{long}"}}"#));
    let (out, end) = passed_by(plan(Method::ToolsCall, form), &text, &[9000, 30_000]);
    assert_eq!(end, Ok(()));
    let expected = format!(
        r#"{{"jsonrpc":"2.0","id":"é","result":{{"content":["{long}"],"structuredContent":{{"result":["{long}"]}}}}}}"#
    );
    assert_eq!(out, expected);
    for member in ["_meta", "resultType"] {
        let text = message(&format!(r#"{{"content":[1],"{member}":"{long}"}}"#));
        assert_eq!(passed_by(plan(Method::ToolsCall, ANY), &text, &[]).1, Err(Stop::TooLarge), "{member}");
    }
}

#[test]
fn that_a_tool_failed_is_noticed_on_the_way() {
    for (said, expected) in [("true", true), ("false", false)] {
        let text = message(&format!(r#"{{"content":[1],"isError":{said}}}"#));
        let mut flow = Flow::new(plan(Method::ToolsCall, ANY));
        flow.feed(&Bytes::from(text)).unwrap();
        flow.finish().unwrap();
        assert_eq!(flow.says_error(), expected);
    }
}
