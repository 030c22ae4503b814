//! Vectors of the requests that ask a client, by rule or vector id; expected values are written from the rules and hold against
//! the official schemas.
#![allow(clippy::unwrap_used)]

use super::super::round::tests::{asked, client, one, text};

/// The params that a client of `revision` gets.
fn params(revision: &str, method: &str, params: &str) -> String {
    let question = one(method, params).unwrap().ask(7, &client(revision), Some("e1")).unwrap();
    let text = text(&question.message);
    let head = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":"#);
    text.strip_prefix(&head).unwrap().strip_suffix('}').unwrap().to_owned()
}

fn elicited(revision: &str, given: &str) -> String {
    params(revision, "elicitation/create", given)
}

fn sampled(revision: &str, given: &str) -> String {
    params(revision, "sampling/createMessage", given)
}

/// D84.
#[test]
fn d84_a_form_for_2025_11_25_is_the_servers() {
    let given = r#"{"mode":"form","message":"m\u00e9","requestedSchema":{"$schema":"s","type":"object","properties":{"n":{"type":"number","default":1.50,"x":1e400},"s":{"type":"string","oneOf":[{"const":"a","title":"A"}]},"m":{"type":"array","items":{"type":"string","enum":["a"]},"default":["a"]}},"required":["n"]},"more":1}"#;
    assert_eq!(elicited("2025-11-25", given), given);
}

/// A1.12-A1.14, A8.8: what a question inside a result does not have.
#[test]
fn a1_13_foreign_vocabulary_goes() {
    let schema = r#"{"type":"object","properties":{}}"#;
    assert_eq!(
        elicited(
            "2025-11-25",
            &format!(
                r#"{{ "mode" : null, "task":{{}}, "_meta":{{"progressToken":1,"io.modelcontextprotocol/related-task":{{}},"io.modelcontextprotocol/serverInfo":{{}},"a":1}}, "elicitationId":"x", "message":"m","requestedSchema":{schema}}}"#
            )
        ),
        format!(r#"{{"_meta":{{"a":1}},"message":"m","requestedSchema":{schema}}}"#)
    );
    assert_eq!(
        sampled(
            "2025-11-25",
            r#"{"messages":[],"maxTokens":1,"_meta":{"progressToken":1},"task":{"ttl":1}}"#
        ),
        r#"{"messages":[],"maxTokens":1}"#
    );
    assert_eq!(params("2024-11-05", "roots/list", r#"{"_meta":{"a":1}}"#), r#"{"_meta":{"a":1}}"#);
    assert_eq!(params("2024-11-05", "roots/list", r#"{"_meta":null,"a":2}"#), r#"{"a":2}"#);
}

/// A1.14.
#[test]
fn a1_14_roots_need_no_params() {
    for entry in [r#"{"method":"roots/list"}"#, r#"{"method":"roots/list","params":null}"#] {
        let read = asked(&format!(r#"{{"inputRequests":{{"k":{entry}}}}}"#)).unwrap();
        let question = read.entries[0].ask(u64::MAX, &client("2024-11-05"), None).unwrap();
        assert_eq!(
            text(&question.message),
            format!(r#"{{"jsonrpc":"2.0","id":{},"method":"roots/list"}}"#, u64::MAX)
        );
    }
}

/// D90, A8.2.
#[test]
fn d90_a_url_has_the_minted_id() {
    let given = r#"{"mode":"url","message":"m","url":"https://s/x","elicitationId":"theirs"}"#;
    assert_eq!(
        elicited("2025-11-25", given),
        r#"{"elicitationId":"e1","mode":"url","message":"m","url":"https://s/x"}"#
    );
    let entry = one("elicitation/create", given).unwrap();
    entry.ask(1, &client("2025-11-25"), None).unwrap_err();
    let refused = entry.ask(1, &client("2025-06-18"), Some("e")).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the server's question \"k\" cannot be put to a client of 2025-06-18: it has no URLs to open"
    );
}

/// D92, A6.7.
#[test]
fn d92_one_block_a_message_for_older_revisions() {
    let given = r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","data":"","mimeType":"i"}],"_meta":{"m":1}},{"role":"assistant","content":{"type":"text","text":"b"}},{"role":"user","content":[]}],"maxTokens":1e2,"temperature":0.50}"#;
    let split = r#"{"messages":[{"role":"user","content":{"type":"text","text":"a"},"_meta":{"m":1}},{"role":"user","content":{"type":"image","data":"","mimeType":"i"},"_meta":{"m":1}},{"role":"assistant","content":{"type":"text","text":"b"}}],"maxTokens":1e2,"temperature":0.50}"#;
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18"] {
        assert_eq!(sampled(revision, given), split, "{revision}");
    }
    assert_eq!(sampled("2025-11-25", given), given);
}

/// D92, A6.2.
#[test]
fn d92_sound_is_named_to_2024_11_05() {
    let given =
        |content: &str| format!(r#"{{"messages":[{{"role":"user","content":{content}}}],"maxTokens":1}}"#);
    let audio = r#"{"type":"audio","data":"AA==","mimeType":"audio/w\"v"}"#;
    let note = r#"{"type":"text","text":"[audio audio/w\"v omitted]"}"#;
    assert_eq!(sampled("2024-11-05", &given(audio)), given(note));
    assert_eq!(sampled("2024-11-05", &given(&format!("[{audio}]"))), given(note));
    for revision in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        assert_eq!(sampled(revision, &given(audio)), given(audio), "{revision}");
    }
}

/// A6.6.
#[test]
fn a6_6_values_of_tools_are_objects_for_2025_11_25() {
    let given = |value: &str| {
        format!(
            r#"{{"messages":[{{"role":"user","content":[{{"type":"tool_result","toolUseId":"t","content":[],"structuredContent":{value}}}]}}],"maxTokens":1}}"#
        )
    };
    for value in ["[1]", "null", "false", "0", "\"a\""] {
        assert_eq!(sampled("2025-11-25", &given(value)), given(&format!(r#"{{"result":{value}}}"#)));
    }
    assert_eq!(sampled("2025-11-25", &given(r#"{"a":1.0}"#)), given(r#"{"a":1.0}"#));
    let nested = |content: &str| {
        let block = format!(r#"{{"type":"tool_result","toolUseId":"t","content":[{content}]}}"#);
        format!(r#"{{"messages":[{{"role":"user","content":{block}}}],"maxTokens":1}}"#)
    };
    let link = r#"{"type":"resource_link","name":"n","uri":"a:b"}"#;
    let resource = r#"{"type":"resource","resource":{"uri":"a:b","text":""}}"#;
    let text = r#"{"type":"text","text":"","_meta":null}"#;
    assert_eq!(
        sampled("2025-11-25", &nested(&[link, resource, text].join(","))),
        nested(&[link, resource, r#"{"type":"text","text":""}"#].join(","))
    );
    let entry = one("sampling/createMessage", &given("{}")).unwrap();
    assert!(entry.ask(1, &client("2025-06-18"), None).is_err());
}

/// A8.9.
#[test]
fn a8_9_tools_for_the_model() {
    let given = |tool: &str| {
        format!(r#"{{"messages":[],"maxTokens":1,"tools":[{tool}],"toolChoice":{{"mode":"auto"}}}}"#)
    };
    let plain = r#"{"name":"t","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}}"#;
    assert_eq!(sampled("2025-11-25", &given(plain)), given(plain));
    for (tool, expected) in [
        (r#""outputSchema":null"#, ""),
        (r#""outputSchema":1,"title":null,"execution":{}"#, ""),
        (
            r#""outputSchema":{"type":"array"}"#,
            r#","outputSchema":{"type":"object","properties":{"result":{"type":"array"}},"required":["result"]}"#,
        ),
        (
            r#""outputSchema":true"#,
            r#","outputSchema":{"type":"object","properties":{"result":{}},"required":["result"]}"#,
        ),
    ] {
        let tool = format!(r#"{{"name":"t","inputSchema":{{"type":"object"}},{tool}}}"#);
        let expected = format!(r#"{{"name":"t","inputSchema":{{"type":"object"}}{expected}}}"#);
        assert_eq!(sampled("2025-11-25", &given(&tool)), given(&expected));
    }
}

/// A8.10.
#[test]
fn a8_10_context_only_for_clients_that_declared_it() {
    let given = |value: &str| format!(r#"{{"messages":[],"maxTokens":1,"includeContext":{value}}}"#);
    let without = r#"{"messages":[],"maxTokens":1}"#;
    for revision in ["2024-11-05", "2025-11-25"] {
        assert_eq!(sampled(revision, &given(r#""none""#)), given(r#""none""#));
        assert_eq!(sampled(revision, &given(r#""allServers""#)), without);
        assert_eq!(sampled(revision, &given("null")), without);
    }
    let mut able = client("2025-11-25");
    able.can.context = true;
    let entry = one("sampling/createMessage", &given(r#""thisServer""#)).unwrap();
    let message = text(&entry.ask(7, &able, None).unwrap().message);
    assert!(message.contains(r#""includeContext":"thisServer""#), "{message}");
}

/// C32, A4.17.
#[test]
fn c32_what_is_null_is_not_there() {
    assert_eq!(
        sampled(
            "2025-11-25",
            r#"{"messages":[{"role":"user","content":{"type":"text","text":"a","annotations":null,"_meta":null},"_meta":null}],"maxTokens":1,"systemPrompt":null,"temperature":null,"stopSequences":null,"metadata":[],"modelPreferences":{"hints":[{"name":null},{"name":"h"}],"costPriority":null,"speedPriority":0.5},"tools":null,"toolChoice":null}"#
        ),
        r#"{"messages":[{"role":"user","content":{"type":"text","text":"a"}}],"maxTokens":1,"modelPreferences":{"hints":[{},{"name":"h"}],"speedPriority":0.5}}"#
    );
}

/// Invariant 6.
#[test]
fn a8_9_sampling_that_no_client_could_read_is_refused() {
    let message =
        |content: &str| format!(r#"{{"messages":[{{"role":"user","content":{content}}}],"maxTokens":1}}"#);
    let with = |more: &str| format!(r#"{{"messages":[],"maxTokens":1,{more}}}"#);
    for params in [
        message("1"),
        message("[1]"),
        message("[[]]"),
        message(r#"{"type":"text"}"#),
        message(r#"{"type":"text","text":null}"#),
        message(r#"{"type":"image","data":""}"#),
        message(r#"{"type":"audio","mimeType":""}"#),
        message(r#"{"type":"resource","resource":{"uri":"a:b","text":""}}"#),
        message(r#"{"type":"tool_use","id":"i","name":"n"}"#),
        message(r#"{"type":"tool_result","content":[]}"#),
        message(r#"{"type":"tool_result","toolUseId":"i","content":[],"isError":1}"#),
        message(r#"{"type":"text","text":"","annotations":1}"#),
        message(r#"{"type":"tool_result","toolUseId":"i","content":[1]}"#),
        message(
            r#"{"type":"tool_result","toolUseId":"i","content":[{"type":"tool_use","id":"i","name":"n","input":{}}]}"#,
        ),
        message(r#"{"type":"tool_result","toolUseId":"i","content":[{"type":"resource_link","name":"n"}]}"#),
        message(r#"{"type":"resource_link","name":"n","uri":"a:b"}"#),
        r#"{"messages":[{"role":"system","content":{"type":"text","text":""}}],"maxTokens":1}"#.to_owned(),
        r#"{"messages":[{"role":"user"}],"maxTokens":1}"#.to_owned(),
        r#"{"messages":[1],"maxTokens":1}"#.to_owned(),
        with(r#""systemPrompt":1"#),
        with(r#""temperature":"1""#),
        with(r#""stopSequences":[1]"#),
        with(r#""includeContext":"all""#),
        with(r#""modelPreferences":[]"#),
        with(r#""modelPreferences":{"costPriority":2}"#),
        with(r#""modelPreferences":{"hints":[1]}"#),
        with(r#""tools":{}"#),
        with(r#""tools":[{"name":"t"}]"#),
        with(r#""tools":[{"name":"t","inputSchema":{"type":"array"}}]"#),
        with(r#""toolChoice":{"mode":"any"}"#),
    ] {
        assert!(one("sampling/createMessage", &params).is_err(), "{params}");
    }
}
