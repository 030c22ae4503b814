//! Lists of tools on their way down, by rule, vector or case id.
#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::schema::{Kind as FindingKind, Speaker, Weight};
use crate::translate::legacy_client::testing::{answer, body, id, text, value};
use crate::wire::json::Limits;
use crate::wire::jsonrpc::{self, Message};
use serde_json::{Value, json};

const LATEST: LegacyRevision = LegacyRevision::LATEST;

fn listed(result: &str, revision: LegacyRevision) -> (Sift, Listed) {
    let response = answer(result);
    let sift = Sift::of_result(&response.text, &body(&response).object, Speaker::Modern);
    let listed = list(&response, body(&response), &id(), revision, &sift).unwrap();
    (sift, listed)
}

fn tools_of(tools: &str, revision: LegacyRevision) -> (String, Listed) {
    let (_, listed) = listed(&format!(r#"{{"tools":[{tools}]}}"#), revision);
    let out = text(&listed.message);
    let out = out.strip_prefix(r#"{"jsonrpc":"2.0","id":"c","result":{"tools":["#).unwrap();
    (out.strip_suffix("]}}").unwrap().to_owned(), listed)
}

const GOOD: &str = r#"{"name":"good","inputSchema":{"type":"object"}}"#;

/// What is found of one tool beside a good one, which stays whatever the other is (C65).
fn finding(tool: &str) -> Option<FindingKind> {
    let (sift, listed) = listed(&format!(r#"{{"tools":[{tool},{GOOD}]}}"#), LATEST);
    assert!(listed.tools.iter().any(|tool| &*tool.name == "good"), "{tool}");
    let kind = sift.tools().iter().flat_map(|judged| &judged.findings).next().map(|finding| finding.kind);
    let bad = kind.is_some_and(|kind| kind.weight() == Weight::Bad);
    assert_eq!(listed.tools.len(), if bad { 1 } else { 2 }, "{tool}");
    kind
}

#[test]
fn d59_tools_that_everyone_can_take_pass_byte_for_byte() {
    let tools = r#"{ "name":"a","title":"A","icons":[],"_meta":{"k":1},"inputSchema":{"properties":{"x":{"items":true}},"type":"object"}, "outputSchema" :{"type":"object","properties":{"r":{"$ref":"\#"}}},"annotations":{"readOnlyHint":true}}"#
        .replace("\\#", "#");
    let (seen, listed) = tools_of(&tools, LATEST);
    assert_eq!(seen, tools);
    let [tool] = &listed.tools[..] else { panic!() };
    assert_eq!((&*tool.name, tool.output, tool.mirrors.is_empty()), ("a", Output::Object, true));
}

#[test]
fn d73_a_page_has_its_cursor_and_no_modern_words() {
    let (_, page) = listed(
        r#"{"resultType":"complete","tools":[],"nextCursor":"\u0061","ttlMs":9,"cacheScope":"public"}"#,
        LATEST,
    );
    assert_eq!(
        text(&page.message),
        r#"{"jsonrpc":"2.0","id":"c","result":{"tools":[],"nextCursor":"\u0061"}}"#
    );
    assert_eq!(page.cursor.as_deref(), Some(&br#""\u0061""#[..]), "A4.18");
    assert_eq!(listed(r#"{"tools":[],"nextCursor":""}"#, LATEST).1.cursor.as_deref(), Some(&b"\"\""[..]));
    assert_eq!(listed(r#"{"tools":[],"nextCursor":null}"#, LATEST).1.cursor, None);
}

#[test]
fn d57_d58_the_output_schema_decides_how_results_are_shown() {
    let of = |schema: &str, revision| {
        let tool =
            format!(r#"{{"name":"t","inputSchema":{{"type":"object"}},"outputSchema":{schema},"x":1}}"#);
        let (seen, listed) = tools_of(&tool, revision);
        let seen: Value = serde_json::from_str(&seen).unwrap();
        (seen["outputSchema"].clone(), listed.tools[0].output)
    };
    let wrapped = json!({"type":"object","properties":{"result":{"type":"array"}},"required":["result"]});
    for revision in [LegacyRevision::V2025_06_18, LATEST] {
        assert_eq!(of(r#"{"type":"array"}"#, revision), (wrapped.clone(), Output::Wrapped));
    }
    // Revisions without structured results have no such schema (D62).
    for revision in [LegacyRevision::V2024_11_05, LegacyRevision::V2025_03_26] {
        assert_eq!(of(r#"{"type":"array"}"#, revision), (Value::Null, Output::Wrapped));
        assert_eq!(of(r#"{"type":"object"}"#, revision), (Value::Null, Output::Object));
    }
    assert_eq!(of("null", LATEST), (Value::Null, Output::Unstated));
}

/// Invariant 6: no legacy revision has a boolean there, all of them have it deeper.
#[test]
fn c65_a_property_whose_schema_is_a_boolean_is_written_as_an_object() {
    let (seen, _) = tools_of(
        r#"{"name":"t","inputSchema":{"type":"object","properties":{"x":true,"y":{"not":false}, "z" : false }},"outputSchema":{"properties":{"x":true},"type":"object"}}"#,
        LATEST,
    );
    assert_eq!(
        seen,
        r#"{"name":"t","inputSchema":{"type":"object","properties":{"x":{},"y":{"not":false}, "z" : {"not":{}} }},"outputSchema":{"properties":{"x":{}},"type":"object"}}"#
    );
}

#[test]
fn a5_8_tasks_are_not_bridged() {
    let (seen, _) = tools_of(
        r#"{"execution":{"taskSupport":"required"},"name":"t","inputSchema":{"type":"object"}}"#,
        LATEST,
    );
    assert_eq!(seen, r#"{"name":"t","inputSchema":{"type":"object"}}"#);
}

#[test]
fn c65_one_odd_tool_hides_no_other() {
    use FindingKind::{InputRoot, NoInputSchema, NoName, NotASchema, Twice, TypeAdded};
    for (tool, kind) in [
        ("5", NoName),
        ("null", NoName),
        (r#"{"inputSchema":{"type":"object"}}"#, NoName),
        (r#"{"name":null,"inputSchema":{"type":"object"}}"#, NoName),
        (r#"{"name":"a","name":"b","inputSchema":{"type":"object"}}"#, NoName),
        (r#"{"name":"a"}"#, NoInputSchema),
        (r#"{"name":"a","inputSchema":null}"#, NoInputSchema),
        (r#"{"name":"a","inputSchema":true}"#, NoInputSchema),
        (r#"{"name":"a","inputSchema":{"type":"string"}}"#, InputRoot),
        (r#"{"name":"a","inputSchema":{"type":["object"]}}"#, InputRoot),
        (r#"{"name":"a","inputSchema":{"anyOf":[{"type":"object"}]}}"#, InputRoot),
        (r#"{"name":"a","inputSchema":{}}"#, TypeAdded),
        (r#"{"name":"a","inputSchema":{"$schema":"x"}}"#, TypeAdded),
        (r#"{"name":"a","inputSchema":{"type":"object"},"outputSchema":5}"#, NotASchema),
        (r#"{"name":"a","inputSchema":{"type":"object"},"outputSchema":{},"outputSchema":{}}"#, Twice),
    ] {
        assert_eq!(finding(tool), Some(kind), "{tool}");
    }
    let (seen, _) = tools_of(&format!(r#"{{"name":"a","inputSchema":{{}}}},5,{GOOD}"#), LATEST);
    assert_eq!(seen, format!(r#"{{"name":"a","inputSchema":{{"type":"object"}}}},{GOOD}"#));
    // Of two tools of one name the first is meant; escapes hide none.
    let (seen, listed) = tools_of(
        &format!(r#"{GOOD},{{"name":"g\u006fod","inputSchema":{{"type":"object"}},"outputSchema":{{}}}}"#),
        LATEST,
    );
    assert_eq!(seen, GOOD);
    assert_eq!(listed.tools.len(), 1);
}

#[test]
fn d78_c67_tools_with_invalid_annotations_are_left_out() {
    let with =
        |schema: &str| finding(&format!(r#"{{"name":"bad","inputSchema":{{"type":"object",{schema}}}}}"#));
    let property = |value: &str| with(&format!(r#""properties":{{"a":{value}}}"#));
    for (value, invalid) in [
        (r#"{"type":"number","x-mcp-header":"A"}"#, FindingKind::HeaderType),
        (r#"{"type":["string","null"],"x-mcp-header":"A"}"#, FindingKind::HeaderType),
        (r#"{"type":"object","x-mcp-header":"A"}"#, FindingKind::HeaderType),
        (r#"{"x-mcp-header":"A"}"#, FindingKind::HeaderType),
        (r##"{"$ref":"#","x-mcp-header":"A"}"##, FindingKind::HeaderType),
        (r#"{"type":"string","x-mcp-header":""}"#, FindingKind::HeaderName),
        (r#"{"type":"string","x-mcp-header":"A B"}"#, FindingKind::HeaderName),
        (r#"{"type":"string","x-mcp-header":"X\r\nEvil: 1"}"#, FindingKind::HeaderName),
        (r#"{"type":"string","x-mcp-header":"Ü"}"#, FindingKind::HeaderName),
        (r#"{"type":"string","x-mcp-header":5}"#, FindingKind::HeaderName),
        (r#"{"type":"string","x-mcp-header":null}"#, FindingKind::HeaderName),
        (r#"{"type":"string","x-mcp-header":"A","x-mcp-header":"B"}"#, FindingKind::Twice),
        (r#"{"type":"array","items":{"type":"string","x-mcp-header":"A"}}"#, FindingKind::HeaderPlace),
        (r#"{"oneOf":[{"type":"string","x-mcp-header":"A"}]}"#, FindingKind::HeaderPlace),
        (
            r#"{"oneOf":[{"properties":{"b":{"type":"string","x-mcp-header":"A"}}}]}"#,
            FindingKind::HeaderPlace,
        ),
        (r#"{"additionalProperties":{"type":"string","x\u002dmcp-header":"A"}}"#, FindingKind::HeaderPlace),
    ] {
        assert_eq!(property(value), Some(invalid), "{value}");
    }
    for (schema, invalid) in [
        (r#""x-mcp-header":"A""#, FindingKind::HeaderPlace),
        (r#""$defs":{"d":{"type":"string","x-mcp-header":"A"}}"#, FindingKind::HeaderPlace),
        (r#""if":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}"#, FindingKind::HeaderPlace),
        (
            r#""properties":{"a":{"type":"string","x-mcp-header":"Region"},"b":{"type":"string","x-mcp-header":"REGION"}}"#,
            FindingKind::HeaderTwice,
        ),
    ] {
        assert_eq!(with(schema), Some(invalid), "{schema}");
    }
    // Data, and a property of that name, are no annotations.
    assert_eq!(property(r#"{"default":{"x-mcp-header":"A"},"const":{"x-mcp-header":5}}"#), None);
    assert_eq!(with(r#""properties":{"x-mcp-header":{"type":"number"}}"#), None);
}

#[test]
fn d78_valid_annotations_stay_and_are_known() {
    let tool = r#"{"name":"t","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"Region"},"o":{"properties":{"n":{"type":"integer","x-mcp-header":"N"}}}}}}"#;
    let (seen, listed) = tools_of(tool, LATEST);
    assert_eq!((seen.as_str(), listed.tools[0].mirrors.len()), (tool, 2));
}

#[test]
fn what_is_no_list_of_tools_is_unreadable() {
    for result in ["{}", r#"{"tools":{}}"#, r#"{"tools":null}"#, r#"{"tools":[],"tools":[]}"#] {
        let response = answer(result);
        let sift = Sift::of_result(&response.text, &body(&response).object, Speaker::Modern);
        assert!(list(&response, body(&response), &id(), LATEST, &sift).is_err(), "{result}");
    }
}

/// D68 and lists of any length: time and memory go with the length of the text.
#[test]
fn d68_many_tools_and_deep_schemas() {
    let limits = Limits { nesting: 50_000, members: 64 };
    let mut tools: Vec<String> = (0..10_000)
        .map(|n| {
            format!(
                r#"{{"name":"t{n}","inputSchema":{{"type":"object"}},"outputSchema":{{"type":"array"}}}}"#
            )
        })
        .collect();
    let deep = |keyword: &str, inner: &str| {
        let depth = 10_000;
        format!("{}{inner}{}", format!(r#"{{"{keyword}":["#).repeat(depth), "]}".repeat(depth))
    };
    tools.push(format!(
        r#"{{"name":"deep","inputSchema":{{"type":"object"}},"outputSchema":{}}}"#,
        deep("anyOf", r##"{"$ref":"#"}"##),
    ));
    tools.push(format!(
        r#"{{"name":"bad","inputSchema":{{"type":"object","allOf":[{}]}}}}"#,
        deep("allOf", r#"{"type":"string","x-mcp-header":"A"}"#)
    ));
    let message = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"tools":[{}]}}}}"#, tools.join(","));
    let Ok(Message::Response(response)) = jsonrpc::parse(Bytes::from(message), limits) else { panic!() };
    let sift = Sift::of_result(&response.text, &body(&response).object, Speaker::Modern);
    let all = |drop| list(&response, body(&response), &id(), LATEST, &Sift { drop, ..sift.clone() }).unwrap();
    assert_eq!(all(true).tools.len(), 10_000);
    let kept = all(false);
    assert_eq!(kept.tools.len(), 10_001, "headers are not built from what is invalid");
    let out = kept.message.to_bytes();
    assert!(memchr::memmem::find(&out, br##"{"$ref":"#/properties/result"}"##).is_some());
    assert!(memchr::memmem::find(&out, br#""bad""#).is_none());
    let first = value(&tools_of(&tools[0], LATEST).1.message);
    assert_eq!(first["result"]["tools"][0]["outputSchema"]["properties"]["result"], json!({"type":"array"}));
}
