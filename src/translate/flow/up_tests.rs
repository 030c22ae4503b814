//! A legacy server's result that passes against one that is held: the same outcome, wherever it is cut.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::translate::result::{self, to_modern};
use crate::wire::jsonrpc::{self, Message, Reply};
use serde_json::Value;

const LIMITS: Limits = Limits { nesting: 16, members: 8 };
const INFO: &str = r#"{"name":"old","version":"7"}"#;
const OURS: &str = r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"old","version":"7"}}"#;

fn plan(method: Method) -> Plan {
    let id = match jsonrpc::parse(Bytes::from(r#"{"jsonrpc":"2.0","id":"é","method":"x"}"#), LIMITS).unwrap()
    {
        Message::Request(request) => request.id,
        other => panic!("{other:?}"),
    };
    Plan::new(method, 5, id, Bytes::from(INFO), LIMITS, 512).unwrap()
}

/// As it is when it is held; `None` where it is refused.
fn held(text: &str, method: Method) -> Option<String> {
    let Ok(Message::Response(response)) = jsonrpc::parse(Bytes::copy_from_slice(text.as_bytes()), LIMITS)
    else {
        return None;
    };
    let Reply::Result(body) = &response.reply else { return None };
    if !response.answers(5) || result::readable(&response.text, body, method).is_err() {
        return None;
    }
    let plan = plan(method);
    let message =
        to_modern(&response, body, method, &plan.id, &Bytes::from_static(INFO.as_bytes()), None, LIMITS)
            .message
            .to_bytes();
    Some(String::from_utf8(message.to_vec()).unwrap())
}

fn passed(text: &str, method: Method, cuts: &[usize]) -> (String, Result<(), Stop>) {
    passed_by(plan(method), text, cuts)
}

/// As it is when it passes in pieces: what went out, and whether its end was let go.
pub(super) fn passed_by(plan: Plan, text: &str, cuts: &[usize]) -> (String, Result<(), Stop>) {
    let whole = Bytes::copy_from_slice(text.as_bytes());
    let (mut flow, mut probe) = (Flow::new(plan.clone()), Flow::probe(plan));
    let mut out = Vec::new();
    let mut from = 0;
    let mut end = Ok(());
    for to in cuts.iter().copied().chain([text.len()]) {
        let piece = whole.slice(from..to);
        end = end.and_then(|()| flow.feed(&piece));
        // A probe sees what the flow sees.
        if end.is_ok() {
            assert_eq!((probe.feed(&piece), probe.is_underway()), (Ok(()), flow.is_underway()));
        }
        assert_eq!(probe.take(), None);
        while let Some(piece) = flow.take() {
            out.extend_from_slice(&piece);
        }
        from = to;
    }
    let end = end.and_then(|()| flow.finish());
    while let Some(piece) = flow.take() {
        out.extend_from_slice(&piece);
    }
    (String::from_utf8_lossy(&out).into_owned(), end)
}

/// The server's `_meta` stays in its place, ours goes to the end instead of the beginning; all else is the same.
#[track_caller]
fn same(text: &str, method: Method) {
    let held = held(text, method).unwrap_or_else(|| panic!("refused: {text}"));
    let expected: Value = serde_json::from_str(&held).unwrap();
    let without = |text: &str| text.replacen(&format!(",{OURS}"), "", 1);
    let (uncut, _) = passed(text, method, &[]);
    assert_eq!(serde_json::from_str::<Value>(&uncut).unwrap(), expected, "{text}");
    assert_eq!(without(&uncut), without(&held), "{text}");
    for first in 0..text.len() {
        for cuts in [&[first][..], &[first / 2, first]] {
            let (out, end) = passed(text, method, cuts);
            assert_eq!((end, &out), (Ok(()), &uncut), "{text} cut at {cuts:?}");
        }
    }
    let every: Vec<_> = (0..text.len()).collect();
    assert_eq!(passed(text, method, &every), (uncut, Ok(())), "{text} in single bytes");
}

/// All orders of a few members.
pub(super) fn orders(members: &[&str]) -> Vec<String> {
    let [one] = members else {
        let mut all = Vec::new();
        for (at, first) in members.iter().enumerate() {
            let rest: Vec<_> =
                members.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, m)| *m).collect();
            all.extend(orders(&rest).into_iter().map(|rest| format!("{first}{rest}")));
        }
        return all;
    };
    vec![(*one).to_owned()]
}

/// `{member,member}` of members that are separated by what stands before each of them.
pub(super) fn object(members: &str) -> String {
    format!("{{{}}}", members.strip_prefix(',').unwrap_or(members))
}

#[test]
fn a4_10_a4_13_every_order_of_a_results_members() {
    let content = r#","content":[{"type":"text","text":"a\"\\\u00e9é"}]"#;
    for meta in ["", ",\"_meta\":{\"a\":1}", ",\"_meta\" : null", ",\n \"_m\\u0065ta\"\t:\r\n{ } "] {
        for odd in ["", ", \"resultType\":\"x\" ", ",\"result\\u0054ype\":{\"content\":[]}"] {
            let members = [content, meta, odd, ",\"isError\" : false ,\"s\":{\"a\":-0.10e+1}"];
            let members: Vec<_> = members.into_iter().filter(|member| !member.is_empty()).collect();
            for order in orders(&members) {
                same(
                    &format!(r#"{{"jsonrpc":"2.0","id":5,"result":{}}}"#, object(&order)),
                    Method::ToolsCall,
                );
            }
        }
    }
}

#[test]
fn every_order_of_a_messages_members_before_its_result() {
    for error in ["", ",\"error\":null", " , \"err\\u006fr\" : null "] {
        for id in [",\"id\":5", ",\"id\" : \"5\"", ",\n\"\\u0069d\":5 "] {
            let members = [error, id, ",\"jsonrpc\":\"2.0\"", ",\"extra\":{\"id\":9}, \"\\ud83d\\ude00\":[]"];
            let members: Vec<_> = members.into_iter().filter(|member| !member.is_empty()).collect();
            for order in orders(&members) {
                let order = order.trim_start_matches([' ', ',']);
                let text = format!(" {{ {order},\"result\" : {{ \"contents\" : [ ] }} }}\r\n");
                same(&text, Method::ResourcesRead);
            }
        }
    }
    for after in [",\"error\":null", ", \"extra\" : {\"result\":{}} ", ",\"params\":{},\"x\":1"] {
        same(
            &format!(r#"{{"jsonrpc":"2.0","id":5,"result":{{"messages":[{{}}]}}{after}}}"#),
            Method::PromptsGet,
        );
    }
}

/// The official TypeScript SDK's servers write the result first.
#[test]
fn what_says_whose_result_it_is_may_come_last() {
    for members in [
        &[",\"jsonrpc\":\"2.0\"", ",\"id\":5", ", \"result\" : {\"contents\":[1]}"][..],
        &[
            ",\"jsonrpc\":\"2.0\"",
            ",\"id\" : \"5\"",
            ",\"extra\":[]",
            ",\"result\":{\"contents\":[],\"_meta\":{}}",
        ],
    ] {
        for order in orders(members) {
            same(&format!("{{{}}}", order.trim_start_matches([' ', ','])), Method::ResourcesRead);
        }
    }
    for tail in [
        "}",
        ",\"id\":5}",
        ",\"jsonrpc\":\"2.0\"}",
        ",\"jsonrpc\":\"2.0\",\"id\":6}",
        ",\"jsonrpc\":\"2.0\",\"id\":null}",
    ] {
        let (out, end) = passed(&format!(r#"{{"result":{{"content":[1]}}{tail}"#), Method::ToolsCall, &[]);
        assert_eq!(end, Err(Stop::NotTheResult), "{tail}");
        assert!(serde_json::from_str::<Value>(&out).is_err(), "no answer comes of it: {out}");
    }
}

#[test]
fn a4_11_what_only_modern_servers_may_say_is_dropped_wherever_it_stands() {
    for members in [
        r#""ttlMs":5,"cacheScope":"public","contents":[1],"a":2"#,
        r#""contents":[1],"ttlMs":5,"a":2,"cacheScope":"public""#,
        r#" "ttlMs" : 5 , "contents" : [1] , "ttlMs":{"x":[]} "#,
    ] {
        same(&format!(r#"{{"jsonrpc":"2.0","id":5,"result":{{{members}}}}}"#), Method::ResourcesRead);
    }
}

#[test]
fn reserved_keys_of_meta_are_treated_alike_in_front_and_behind() {
    let metas = [
        r#"{"io.modelcontextprotocol/serverInfo":{"name":"mine"},"z":[]}"#,
        r#"{ "io.modelcontextprotocol/related-task" : {"taskId":"t"} , "a":1 }"#,
        r#"{"a":1,"io.modelcontextprotocol/subscription\u0049d":4}"#,
    ];
    for meta in metas {
        for members in [
            format!(r#""_meta":{meta},"x":1,"y":"\u2028""#),
            format!(r#""x":1,"_meta":{meta},"y":2"#),
            format!(r#""x":1,"y":2, "_meta" : {meta} "#),
        ] {
            same(&format!(r#"{{"jsonrpc":"2.0","id":5,"result":{{{members}}}}}"#), Method::Custom);
        }
    }
}

/// Refused when held; when it passes, it stops, and what has gone out is no whole message.
#[test]
fn what_is_refused_when_held_does_not_pass() {
    let good = r#"{"jsonrpc":"2.0","id":5,"result":{"contents":[{"uri":"a"}]"#;
    for tail in [
        r#","contents":[]}}"#,
        r#","_meta":{},"_meta":{}}}"#,
        r#","_meta":{},"\u005fmeta":null}}"#,
        r#","_meta":3}}"#,
        r#"},"id":5}"#,
        r#"},"i\u0064":6}"#,
        r#"},"jsonrpc":"2.0"}"#,
        r#"},"result":{}}"#,
        r#"},"error":{"code":1,"message":"m"}}"#,
        r#"},"error":null,"error":null}"#,
        r#"},"method":"m"}"#,
        r#"}}}"#,
        r#"}} {}"#,
        r#"}"#,
        r#",}}"#,
        r#","a":[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]}}"#,
        r#","a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1}}"#,
        r#","_meta":{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1}}}"#,
    ] {
        let text = format!("{good}{tail}");
        assert_eq!(held(&text, Method::ResourcesRead), None, "{text}");
        let every: Vec<_> = (0..text.len()).collect();
        for cuts in [&[][..], &[good.len()], &every] {
            let (out, end) = passed(&text, Method::ResourcesRead, cuts);
            assert!(end.is_err(), "{text}");
            assert!(serde_json::from_str::<Value>(&out).is_err(), "{out}");
        }
    }
}

#[test]
fn a_message_that_cannot_be_told_yet_does_not_begin_to_pass() {
    for text in [
        r#"{"jsonrpc":"2.0","id":6,"result":{"content":[1,"#,
        r#"{"jsonrpc":"2.0","id":null,"result":{"content":[1,"#,
        r#"{"jsonrpc":"1.0","id":5,"result":{"content":[1,"#,
        r#"{"jsonrpc":"2.0","id":5,"error":{"content":[1,"#,
        r#"{"jsonrpc":"2.0","id":5,"method":"x","params":{"content":[1,"#,
        r#"{"jsonrpc":"2.0","id":5,"result":[{"content":[1,"#,
        r#"[{"jsonrpc":"2.0","id":5,"result":{"content":[1,"#,
        // A5.14: whether there is content is not known.
        r#"{"jsonrpc":"2.0","id":5,"result":{"structuredContent":{"content":[1,"#,
        r#"{"jsonrpc":"2.0","id":5,"result":{"isError":false,"_meta":{"content":[1,"#,
        r#"{"jsonrpc":"2.0","id":5,"result":{"content""#,
    ] {
        let mut probe = Flow::probe(plan(Method::ToolsCall));
        let fed = probe.feed(&Bytes::from(text));
        assert!(fed.is_err() || !probe.is_underway(), "{text}");
    }
    let mut probe = Flow::probe(plan(Method::PromptsGet));
    assert!(probe.feed(&Bytes::from(r#"{"jsonrpc":"2.0","id":5,"result":{"messages":{"#)).is_err());
    let mut probe = Flow::probe(plan(Method::ToolsCall));
    probe.feed(&Bytes::from(r#"{"jsonrpc":"2.0","id":5,"result":{"content":["#)).unwrap();
    assert!(probe.is_underway());
}

#[test]
fn names_and_members_that_are_held_are_bounded() {
    let long = "x".repeat(513);
    let begin = r#"{"jsonrpc":"2.0","id":5,"result":{"content":["#;
    for tail in [
        format!("],\"{long}"),
        format!("],\"_meta\":{{\"a\":\"{long}"),
        format!("]{}", " ".repeat(513)),
        format!("]}},\"error\":\"{long}"),
    ] {
        let (_, end) = passed(&format!("{begin}{tail}"), Method::ToolsCall, &[]);
        assert_eq!(end, Err(Stop::TooLarge));
    }
    for member in ["content", "structuredContent", "resultType"] {
        let text = format!(r#"{begin}],"{member}":"{}"}}}}"#, "x".repeat(20_000));
        let (out, end) = passed(&text, Method::ToolsCall, &[7000, 7001]);
        assert_eq!((end, out.len() > 20_000), (Ok(()), member != "resultType"), "{member}");
    }
}
