//! Lists of tools, by case or rule id.
#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::schema::tool::Shape;
use crate::schema::{Bounds, Documents, Speaker};
use crate::wire::version::LegacyRevision;

const GOOD: &str = r#"{"name":"good","inputSchema":{"type":"object"}}"#;
const LATEST: Speaker = Speaker::Legacy(Some(LegacyRevision::V2025_11_25));

fn judged(list: &str, speaker: Speaker) -> Verdict {
    let rules = Rules { speaker, bounds: &Bounds::default(), documents: &Documents::default() };
    // Spans are of the whole text, wherever the list stands in it.
    let text = format!(r#"{{"tools": {list} }}"#);
    judge(text.as_bytes(), Span::new(10, 10 + list.len()), &rules)
}

/// What is found of one tool beside a good one, which is as good as ever.
fn found(tool: &str, speaker: Speaker) -> (Shape, Vec<(String, Kind)>) {
    let list = format!("[{GOOD},{tool} , {GOOD}]");
    let verdict = judged(&list, speaker);
    let [first, tool, last] = &verdict.tools[..] else { panic!("{list}") };
    assert_eq!((first.shape, &first.findings[..]), (Shape::Sound, &[][..]), "{list}");
    let kinds: Vec<_> = last.findings.iter().map(|finding| finding.kind).collect();
    assert_eq!((last.shape, &kinds[..]), (Shape::Sound, &[Kind::NameTwice][..]), "{list}");
    (tool.shape, tool.findings.iter().map(|finding| (finding.at.to_string(), finding.kind)).collect())
}

/// The table of C65, and what else a tool can be.
#[test]
fn c65_one_odd_tool_hides_no_other() {
    use Kind::{InputRoot, NoInputSchema, NoName, NotASchema, Twice, TypeAdded, UnknownDialect};
    use Shape::{Sound, Unfit, Untyped};
    let bad = |at: &str, kind| vec![(at.to_owned(), kind)];
    let mut odd = vec![
        ("5".to_owned(), Unfit, bad("", NoName)),
        ("null".to_owned(), Unfit, bad("", NoName)),
        (r#"["name"]"#.to_owned(), Unfit, bad("", NoName)),
    ];
    let mut tool = |members: &str, shape, findings| odd.push((format!("{{{members}}}"), shape, findings));
    tool(r#""inputSchema":{"type":"object"}"#, Unfit, bad("", NoName));
    tool(r#""name":null,"inputSchema":{"type":"object"}"#, Unfit, bad("/name", NoName));
    tool(r#""name":"\ud800","inputSchema":{"type":"object"}"#, Unfit, bad("/name", NoName));
    tool(r#""name":"a","n\u0061me":"b","inputSchema":{"type":"object"}"#, Unfit, bad("/name", NoName));
    tool(r#""name":"a""#, Unfit, bad("", NoInputSchema));
    for schema in ["null", "true", "[]", "\"object\"", "5"] {
        tool(&format!(r#""name":"a","inputSchema":{schema}"#), Unfit, bad("/inputSchema", NoInputSchema));
    }
    tool(
        r#""name":"a","inputSchema":{"type":"object"},"inputSchema":{"type":"object"}"#,
        Unfit,
        bad("/inputSchema", NoInputSchema),
    );
    for schema in [
        "{}",
        r#"{"title":"t","description":"d"}"#,
        r#"{"$schema":"https://json-schema.org/draft/2020-12/schema"}"#,
    ] {
        tool(&format!(r#""name":"a","inputSchema":{schema}"#), Untyped, bad("/inputSchema", TypeAdded));
    }
    for schema in [r#"{"type":"string"}"#, r#"{"type":["object"]}"#] {
        tool(&format!(r#""name":"a","inputSchema":{schema}"#), Unfit, bad("/inputSchema/type", InputRoot));
    }
    for schema in [
        r#"{"anyOf":[{"type":"object"},{"type":"object"}]}"#,
        r##"{"$ref":"#/$defs/a","$defs":{"a":{"type":"object"}}}"##,
        r#"{"properties":{"a":{}}}"#,
    ] {
        tool(&format!(r#""name":"a","inputSchema":{schema}"#), Unfit, bad("/inputSchema", InputRoot));
    }
    // Legal inside a schema.
    for inside in [
        r#""properties":{"x":true,"y":false,"z":{}}"#,
        r#""additionalProperties":{}"#,
        r#""additionalProperties":false"#,
        r#""properties":{"x":{"items":true}}"#,
        r#""properties":{"type":{"type":"string"},"$ref":{"type":"string"},"name":true,"properties":{}}"#,
        r#""x-vendor":[{"type":5}],"nullable":true"#,
        r#""default":{"type":5},"examples":[{"$ref":5}],"properties":{"a":{"const":{"type":5},"enum":[{"type":5}]}}"#,
    ] {
        tool(&format!(r#""name":"a","inputSchema":{{"type":"object",{inside}}}"#), Sound, vec![]);
    }
    // An output schema may be anything that is a schema.
    let with =
        |output: &str| format!(r#""name":"a","inputSchema":{{"type":"object"}},"outputSchema":{output}"#);
    for output in ["true", "{}", r#"{"type":"array","items":{}}"#, r#"{"anyOf":[{},{}]}"#] {
        tool(&with(output), Sound, vec![]);
    }
    for output in ["[]", "5", "\"\""] {
        tool(&with(output), Sound, bad("/outputSchema", NotASchema));
    }
    tool(&with("null"), Sound, bad("/outputSchema", Kind::NullOutput));
    tool(&with(r#"{},"outputSchema":{}"#), Sound, bad("/outputSchema", Twice));
    tool(
        r#""name":"a","inputSchema":{"$schema":"x"}"#,
        Untyped,
        vec![("/inputSchema".to_owned(), TypeAdded), ("/inputSchema/$schema".to_owned(), UnknownDialect)],
    );
    for (tool, shape, findings) in odd {
        assert_eq!(found(&tool, Speaker::Modern), (shape, findings), "{tool}");
    }
}

#[test]
fn c65_tools_of_one_name_are_told_apart_from_the_first() {
    let twice = r#"{"name":"\u0067ood","inputSchema":{"type":"object"}}"#;
    let verdict =
        judged(&format!(r#"[{GOOD},{{"name":"b","inputSchema":{{"type":"object"}}}},{twice},5,5]"#), LATEST);
    let again: Vec<bool> = verdict
        .tools
        .iter()
        .map(|tool| tool.findings.iter().any(|found| found.kind == Kind::NameTwice))
        .collect();
    assert_eq!(again, [false, false, true, false, false]);
    let [finding] = &verdict.tools[2].findings[..] else { panic!() };
    assert_eq!((&*finding.tool, &*finding.at, finding.kind), ("good", "/name", Kind::NameTwice));
    assert!(!verdict.tools[2].is_bad());
}

#[test]
fn spans_are_of_the_text_that_was_judged() {
    let list = r#"[ {"name":"a" , "inputSchema" : {"type":"object"},"outputSchema":true} ,5]"#;
    let text = format!(r#"{{"tools": {list} }}"#);
    let verdict = judged(list, Speaker::Modern);
    let of = |span: Span| std::str::from_utf8(span.of(text.as_bytes())).unwrap();
    let [tool, other] = &verdict.tools[..] else { panic!() };
    assert_eq!(of(tool.span), r#"{"name":"a" , "inputSchema" : {"type":"object"},"outputSchema":true}"#);
    assert_eq!(tool.input.map(of), Some(r#"{"type":"object"}"#));
    assert_eq!(tool.output.map(of), Some("true"));
    assert_eq!((of(other.span), other.input, other.output), ("5", None, None));
}

#[test]
fn anything_but_an_array_has_no_tools() {
    for list in ["{}", "null", "5", "\"[]\"", "[]"] {
        assert_eq!(judged(list, Speaker::Modern), Verdict::default(), "{list}");
    }
}

/// A5.5: revisions with structured results want an object at the root; later and earlier ones do not.
#[test]
fn a5_5_the_root_of_an_output_schema_is_as_the_revision_has_it() {
    use LegacyRevision::{V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25};
    let tool =
        |output: &str| format!(r#"{{"name":"a","inputSchema":{{"type":"object"}},"outputSchema":{output}}}"#);
    let root = |at: &str| vec![(at.to_owned(), Kind::OutputRoot)];
    for (output, at) in [
        (r#"{"type":"array"}"#, "/outputSchema/type"),
        (r#"{"type":["object","null"]}"#, "/outputSchema/type"),
        (r#"{"anyOf":[{"type":"object"},{"type":"null"}]}"#, "/outputSchema"),
        ("{}", "/outputSchema"),
        ("true", "/outputSchema"),
    ] {
        for revision in [V2025_06_18, V2025_11_25] {
            let speaker = Speaker::Legacy(Some(revision));
            assert_eq!(found(&tool(output), speaker), (Shape::Sound, root(at)), "{output}");
        }
        let free = [Some(V2024_11_05), Some(V2025_03_26), None].map(Speaker::Legacy);
        for speaker in free.into_iter().chain([Speaker::Modern]) {
            assert_eq!(found(&tool(output), speaker), (Shape::Sound, vec![]), "{output}");
        }
    }
    for speaker in [LATEST, Speaker::Modern] {
        assert_eq!(found(&tool(r#"{"type":"object"}"#), speaker), (Shape::Sound, vec![]));
    }
}

/// C67, D56: annotations mean nothing before 2026-07-28.
#[test]
fn c67_annotations_are_judged_of_modern_servers_alone() {
    let tool = r#"{"name":"a","inputSchema":{"type":"object","properties":{"p":{"type":"number","x-mcp-header":"A"}}}}"#;
    let verdict = judged(&format!("[{tool}]"), Speaker::Modern);
    let [finding] = &verdict.tools[0].findings[..] else { panic!() };
    assert_eq!(
        (&*finding.tool, &*finding.at, finding.kind, &*finding.detail),
        ("a", "/inputSchema/properties/p/x-mcp-header", Kind::HeaderType, "\"number\"")
    );
    assert!(verdict.tools[0].headers_invalid && verdict.tools[0].is_bad());
    let verdict = judged(&format!("[{tool}]"), LATEST);
    assert_eq!((verdict.tools[0].headers_invalid, &verdict.tools[0].findings[..]), (false, &[][..]));
}

/// What is told of one tool is bounded, and what makes it bad is told first.
#[test]
fn findings_of_one_tool_are_bounded() {
    let annotated: Vec<String> =
        (0..1000).map(|n| format!(r#""p{n}":{{"type":"number","x-mcp-header":"A{n}"}}"#)).collect();
    let list = format!(
        r#"[{{"name":"{}","inputSchema":{{"type":"object","properties":{{{}}}}},"outputSchema":5}}]"#,
        "n".repeat(1000),
        annotated.join(",")
    );
    let verdict = judged(&list, Speaker::Modern);
    let tool = &verdict.tools[0];
    assert_eq!(tool.name.as_deref().map(str::len), Some(1000));
    assert!(tool.findings.len() <= 32 && tool.findings.iter().all(|finding| finding.tool.len() == 128));
    assert!(tool.findings.iter().any(|finding| finding.kind == Kind::NotASchema));
}

/// C62, D67: in every place of a tool that a reference can stand; the tools beside it are as good as ever.
#[test]
fn c62_references_that_lead_out_make_the_tool_bad() {
    let tool = |schemas: &str| format!(r#"{{"name":"a",{schemas}}}"#);
    for uri in [
        "http://127.0.0.1:9/x.json",
        "https://evil.example/x.json",
        "HTTP://127.0.0.1:9/x.json",
        "//host/x",
        "other.json#/a",
        "file:///etc/passwd",
        "data:application/json,{}",
    ] {
        for (schema, at) in [
            (format!(r#"{{"type":"object","properties":{{"p":{{"$ref":"{uri}"}}}}}}"#), "/properties/p/$ref"),
            (
                format!(r#"{{"type":"object","$defs":{{"never used":{{"$ref":"{uri}"}}}}}}"#),
                "/$defs/never used/$ref",
            ),
            (
                format!(r#"{{"type":"object","allOf":[{{}},{{"$dynamicRef":"{uri}"}}]}}"#),
                "/allOf/1/$dynamicRef",
            ),
        ] {
            for speaker in [Speaker::Modern, LATEST] {
                let external = |root: &str| vec![(format!("{root}{at}"), Kind::External)];
                let input = tool(&format!(r#""inputSchema":{schema}"#));
                assert_eq!(found(&input, speaker), (Shape::Sound, external("/inputSchema")), "{input}");
                let output = tool(&format!(r#""inputSchema":{{"type":"object"}},"outputSchema":{schema}"#));
                assert_eq!(found(&output, speaker), (Shape::Sound, external("/outputSchema")), "{output}");
            }
        }
        // Data, a name, and what a schema calls itself lead nowhere.
        for inside in [
            format!(r#""default":{{"$ref":"{uri}"}},"examples":[{{"$ref":"{uri}"}}]"#),
            format!(r#""properties":{{"p":{{"const":{{"$ref":"{uri}"}},"enum":[{{"$ref":"{uri}"}}]}}}}"#),
            r#""properties":{"$ref":{"type":"string"}},"required":["$ref"]"#.to_owned(),
        ] {
            let tool = tool(&format!(r#""inputSchema":{{"type":"object",{inside}}}"#));
            assert_eq!(found(&tool, Speaker::Modern), (Shape::Sound, vec![]), "{tool}");
        }
    }
    let unknown = tool(r#""inputSchema":{"type":"object","$schema":"http://127.0.0.1:9/dialect"}"#);
    let note = vec![("/inputSchema/$schema".to_owned(), Kind::UnknownDialect)];
    assert_eq!(found(&unknown, Speaker::Modern), (Shape::Sound, note));
    let named = tool(
        r##""inputSchema":{"type":"object","$id":"http://127.0.0.1:9/a","properties":{"p":{"$ref":"#"}}}"##,
    );
    assert_eq!(found(&named, Speaker::Modern), (Shape::Sound, vec![]));
}

/// D68: time and memory go with the length of the list, whatever is nested in it.
#[test]
fn d68_deep_schemas_cost_no_more_than_their_bytes() {
    for depth in [10_000, 50_000] {
        for (open, close) in [
            (r#"{"allOf":["#, "]}"),
            (r#"{"properties":{"x-mcp-header":"#, "}}"),
            (r#"{"type":"string","x-mcp-header":"A","properties":{"a":"#, "}}"),
            (r#"{"$id":"urn:a","$schema":"http://json-schema.org/draft-07/schema#","not":"#, "}"),
        ] {
            let (open, close) = (open.repeat(depth), close.repeat(depth));
            let tool = format!(r#"{{"name":"a","inputSchema":{{"type":"object","not":{open}{{}}{close}}}}}"#);
            let (shape, findings) = found(&tool, Speaker::Modern);
            assert_eq!(shape, Shape::Sound);
            let first = findings.first().map(|(_, kind)| *kind);
            assert!(matches!(first, Some(Kind::Depth | Kind::Bytes)), "{first:?}");
            assert!(findings.iter().all(|(at, _)| at.len() < 2000));
        }
    }
}

/// Invariant 5: what stands behind more entries than are looked at is left out as one.
#[test]
fn inv5_the_entries_of_one_list_are_bounded() {
    let list = format!("[{GOOD}{}, 7 ]", ",0".repeat(MOST + 10));
    let verdict = judged(&list, Speaker::Modern);
    let (last, text) = (verdict.tools.last().unwrap(), format!(r#"{{"tools": {list} }}"#));
    assert_eq!(
        (verdict.tools.len(), last.shape, last.findings[0].kind),
        (MOST + 1, Shape::Unfit, Kind::TooManyTools)
    );
    let rest = last.span.of(text.as_bytes());
    assert!(rest.starts_with(b"0,0") && rest.ends_with(b", 7"));
    assert_eq!(judged(&format!("[{GOOD}{}]", ",0".repeat(MOST - 1)), Speaker::Modern).tools.len(), MOST);
}
