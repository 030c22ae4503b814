//! C67, D78, D56, A5.10: `x-mcp-header` in the tools of modern servers, and in those of legacy ones, where it means nothing.

use crate::canary::Canary;
use crate::case::Verdict::{self, Bad, Good};
use crate::case::{Case, judged};
use crate::stage::{Cell, LATEST, List, PAIRS, Stage, good, tool};
use crate::support::Era;

/// A property with this annotation (raw JSON) and type.
fn annotated(kind: &str, name: &str) -> String {
    format!(r#"{{"type":"{kind}","x-mcp-header":{name}}}"#)
}

/// Bad where headers are made of it, and harmless where not.
fn wrong(kind: &'static str, at: &'static str) -> Verdict {
    Bad(kind, at)
}

#[tokio::test(start_paused = true)]
async fn c67_d78_names() {
    let canary = Canary::new();
    let name = wrong("header_name", "/inputSchema/properties/a/x-mcp-header");
    let names = [
        ("empty", r#""""#),
        ("a space", r#""A B""#),
        ("a space behind", r#""A ""#),
        ("a line break", r#""X\r\nEvil: 1""#),
        ("a line feed", r#""X\n""#),
        ("a colon", r#""A:""#),
        ("a control character", r#""A\u0000""#),
        ("no ASCII", r#""Ü""#),
        ("no ASCII, with an escape", r#""\u00dc""#),
        ("a solidus", r#""A/B""#),
        ("quoted", r#""\"A\"""#),
        ("a number", "5"),
        ("true", "true"),
        ("null", "null"),
        ("an object", "{}"),
        ("a list", "[]"),
    ];
    let mut cases: Vec<_> = names
        .iter()
        .map(|(what, raw)| Case::property(what, annotated("string", raw), name).of_a_legacy_server(Good))
        .collect();
    for (what, raw) in [
        ("a word", r#""Region""#),
        ("a digit", r#""7""#),
        ("every other character of a token", r#""!#$%&'*+-.^_`|~x""#),
        ("with an escape", r#""\u0052egion""#),
    ] {
        cases.push(Case::property(what, annotated("string", raw), Good));
    }
    judged(&canary, &cases).await;
}

#[tokio::test(start_paused = true)]
async fn c67_d78_types() {
    let canary = Canary::new();
    let at = "/inputSchema/properties/a";
    let mut cases = Vec::new();
    for kind in ["string", "integer", "boolean"] {
        cases.push(Case::property(kind, annotated(kind, r#""A""#), Good));
    }
    for kind in ["number", "array", "object", "null"] {
        let case = Case::property(kind, annotated(kind, r#""A""#), wrong("header_type", at));
        cases.push(case.of_a_legacy_server(Good));
    }
    let none = Case::property("no type", r#"{"x-mcp-header":"A"}"#, wrong("header_type", at));
    cases.push(none.of_a_legacy_server(Good));
    judged(&canary, &cases).await;
}

#[tokio::test(start_paused = true)]
async fn c67_d78_places() {
    let canary = Canary::new();
    let own = annotated("string", r#""A""#);
    let place = |at: &'static str| wrong("header_", at);
    let table = [
        (
            "items",
            format!(r#"{{"type":"object","properties":{{"a":{{"type":"array","items":{own}}}}}}}"#),
            "/properties/a/items",
        ),
        (
            "prefixItems",
            format!(r#"{{"type":"object","properties":{{"a":{{"prefixItems":[{own}]}}}}}}"#),
            "/properties/a/prefixItems/0",
        ),
        (
            "oneOf",
            format!(r#"{{"type":"object","properties":{{"a":{{"oneOf":[{own}]}}}}}}"#),
            "/properties/a/oneOf/0",
        ),
        (
            "anyOf at the root",
            format!(r#"{{"type":"object","anyOf":[{{"properties":{{"a":{own}}}}}]}}"#),
            "/anyOf/0",
        ),
        ("allOf", format!(r#"{{"type":"object","allOf":[{{"properties":{{"a":{own}}}}}]}}"#), "/allOf/0"),
        ("not", format!(r#"{{"type":"object","not":{{"properties":{{"a":{own}}}}}}}"#), "/not"),
        ("if", format!(r#"{{"type":"object","if":{{"properties":{{"a":{own}}}}}}}"#), "/if"),
        ("then", format!(r#"{{"type":"object","if":true,"then":{{"properties":{{"a":{own}}}}}}}"#), "/then"),
        ("else", format!(r#"{{"type":"object","if":true,"else":{{"properties":{{"a":{own}}}}}}}"#), "/else"),
        ("$defs", format!(r#"{{"type":"object","$defs":{{"d":{own}}}}}"#), "/$defs/d"),
        (
            "$ref",
            format!(
                r##"{{"type":"object","properties":{{"a":{{"$ref":"#/$defs/d"}}}},"$defs":{{"d":{own}}}}}"##
            ),
            "/$defs/d",
        ),
        (
            "additionalProperties",
            format!(r#"{{"type":"object","additionalProperties":{own}}}"#),
            "/additionalProperties",
        ),
        (
            "patternProperties",
            format!(r#"{{"type":"object","patternProperties":{{"a":{own}}}}}"#),
            "/patternProperties/a",
        ),
        ("the root", r#"{"type":"object","x-mcp-header":"A"}"#.to_owned(), ""),
    ];
    let mut cases: Vec<_> = table
        .iter()
        .map(|(what, schema, at)| {
            let at: &'static str = format!("/inputSchema{at}").leak();
            Case::input(what, schema, place(at)).of_a_legacy_server(Good)
        })
        .collect();
    let nested = format!(
        r#"{{"type":"object","properties":{{"a":{{"type":"object","properties":{{"b":{{"type":"object","properties":{{"c":{own}}}}}}}}}}}}}"#
    );
    cases.push(Case::input("nested", nested, Good));
    // Data, and a property of that name, are no annotations.
    cases.push(Case::property(
        "a default",
        r#"{"default":{"x-mcp-header":5},"enum":[{"x-mcp-header":""}]}"#,
        Good,
    ));
    cases.push(Case::input(
        "a property",
        r#"{"type":"object","properties":{"x-mcp-header":{"type":"string"}}}"#,
        Good,
    ));
    cases.push(Case::output(
        "in the output it means nothing",
        r#"{"type":"object","properties":{"a":{"x-mcp-header":""}}}"#,
        Good,
    ));
    judged(&canary, &cases).await;
}

#[tokio::test(start_paused = true)]
async fn c67_d78_one_name_for_two() {
    let canary = Canary::new();
    let two = |a: &str, b: &str| {
        let (a, b) = (annotated("string", a), annotated("integer", b));
        format!(
            r#"{{"type":"object","properties":{{"a":{a},"b":{{"type":"object","properties":{{"c":{b}}}}}}}}}"#
        )
    };
    let twice = wrong("header_twice", "/inputSchema/properties");
    let cases = [
        Case::input("the same", two(r#""Region""#, r#""Region""#), twice).of_a_legacy_server(Good),
        Case::input("in another case", two(r#""Region""#, r#""region""#), twice).of_a_legacy_server(Good),
        Case::input("written with escapes", two(r#""Region""#, r#""\u0052EGION""#), twice)
            .of_a_legacy_server(Good),
        Case::input("two names", two(r#""Region""#, r#""Region2""#), Good),
        Case::property(
            "the annotation twice",
            r#"{"type":"string","x-mcp-header":"A","x-mcp-header":""}"#,
            Bad("", "/inputSchema"),
        )
        .of_a_legacy_server(Bad("", "/inputSchema")),
    ];
    judged(&canary, &cases).await;
}

/// More than anyone needs, of which each would be a header line.
#[tokio::test(start_paused = true)]
async fn c67_too_many() {
    for (n, fits) in [(128, true), (129, false)] {
        let properties: Vec<_> =
            (0..n).map(|n| format!(r#""p{n}":{}"#, annotated("string", &format!("\"H{n}\"")))).collect();
        let list = format!(
            "{},{}",
            tool("many", &format!(r#"{{"type":"object","properties":{{{}}}}}"#, properties.join(","))),
            good("g0")
        );
        for client in [Era::Modern, LATEST] {
            let stage = Stage::set(Cell::http((client, Era::Modern)), &list, "").await;
            assert_eq!(stage.listed().await.names().contains(&"many".to_owned()), fits, "{n} {client:?}");
            assert_eq!(stage.found("too_many_headers"), if fits { 0.0 } else { 1.0 }, "{n} {client:?}");
        }
    }
}

/// The proxy is a legacy client's HTTP client: what it must not call, that client is not shown, whatever the policy.
#[tokio::test(start_paused = true)]
async fn c67_a5_10_under_warn() {
    let own = tool("wrong", r#"{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A B"}}}"#);
    for (client, server) in PAIRS {
        let stage =
            Stage::set(Cell::http((client, server)), &format!("{own},{}", good("g0")), "policy = \"warn\"")
                .await;
        let shown = stage.listed().await;
        match (client, server) {
            (Era::Legacy(_), Era::Modern) => assert_eq!(shown.names(), ["g0"]),
            (Era::Modern, Era::Modern) | (Era::Legacy(_), Era::Legacy(_)) => {
                assert_eq!(shown.raw_tool("wrong"), own)
            }
            (Era::Modern, Era::Legacy(_)) => assert_eq!(shown.names(), ["wrong", "g0"]),
        }
        let of_modern = if server == Era::Modern { 1.0 } else { 0.0 };
        assert_eq!(stage.found("header_name"), of_modern, "{client:?} {server:?}");
        if (client, server) == (LATEST, Era::Modern) {
            let said = stage.call("wrong", r#"{"a":"v"}"#).await;
            for call in stage.up.posts("tools/call") {
                let mut names = call.headers.0.iter().map(|(name, _)| name.to_ascii_lowercase());
                assert!(
                    names.all(|name| !name.starts_with("mcp-param")),
                    "no header is made of it: {}",
                    said.raw
                );
            }
        }
    }
}

/// D56: taken out of legacy servers' tools for modern clients; a tool is no worse for it.
#[tokio::test(start_paused = true)]
async fn d56_legacy_annotations_mean_nothing() {
    let own = tool(
        "t",
        r#"{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A B"},"b":{"type":"number","x-mcp-header":"b"}}}"#,
    );
    let stage = Stage::set(Cell::http((Era::Modern, LATEST)), &own, "").await;
    let shown: List = stage.listed().await;
    assert!(!shown.raw.contains("x-mcp-header"), "{}", shown.raw);
    assert_eq!(shown.names(), ["t"]);
    assert_eq!(stage.found("header_"), 0.0);
    stage.passes("t", r#"{"a":"v"}"#).await;
}
