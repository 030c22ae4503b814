//! Annotations that headers repeat, by case or vector id.
#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::wire::json::{Span, UNBOUNDED, object};

fn read_text(schema: &str) -> Result<Mirrors, Vec<Finding>> {
    let object = object(schema.as_bytes(), Span::new(0, schema.len()), UNBOUNDED).unwrap();
    let read = read(schema.as_bytes(), &object);
    assert_eq!(of(schema.as_bytes(), &object), read.clone().unwrap_or_default());
    read
}

fn wrong(schema: &str) -> Vec<(String, Kind)> {
    let found = read_text(schema).unwrap_err();
    found.iter().map(|finding| (finding.at.to_string(), finding.kind)).collect()
}

/// C67, D78: what the specification wants of the value.
#[test]
fn c67_the_value_is_the_name_of_a_header() {
    let schema =
        |value: &str| format!(r#"{{"properties":{{"p":{{"type":"string","x-mcp-header":{value}}}}}}}"#);
    for value in [
        r#""""#,
        r#""A B""#,
        r#""X\r\nEvil: 1""#,
        r#""Ü""#,
        "5",
        "null",
        "{}",
        r#""a:b""#,
        r#""a\u0000""#,
        r#""\ud800""#,
    ] {
        assert_eq!(
            wrong(&schema(value)),
            [("/properties/p/x-mcp-header".to_owned(), Kind::HeaderName)],
            "{value}"
        );
    }
    // `tchar` of RFC 9110, all of them; escapes hide none.
    for value in [r#""Region""#, r##""!#$%&'*+-.^_`|~09azAZ""##, r#""\u0041""#] {
        let mirrors = read_text(&schema(value)).unwrap();
        assert_eq!(mirrors.len(), 1, "{value}");
    }
    assert_eq!(
        wrong(r#"{"properties":{"p":{"type":"string","x-mcp-header":"A","x-mcp-head\u0065r":"B"}}}"#),
        [("/properties/p/x-mcp-header".to_owned(), Kind::HeaderName)]
    );
}

#[test]
fn c67_the_parameter_is_an_integer_a_string_or_a_boolean() {
    let schema = |kind: &str| format!(r#"{{"properties":{{"p":{{{kind}"x-mcp-header":"A"}}}}}}"#);
    for kind in ["integer", "string", "boolean"] {
        assert!(read_text(&schema(&format!(r#""type":"{kind}","#))).is_ok(), "{kind}");
    }
    for kind in [
        "",
        r#""type":"number","#,
        r#""type":"array","#,
        r#""type":"object","#,
        r#""type":"null","#,
        r#""type":["string"],"#,
        r#""type":["string","null"],"#,
        r#""type":"string","type":"string","#,
        r##""$ref":"#/$defs/a","##,
    ] {
        assert_eq!(
            wrong(&schema(kind)),
            [("/properties/p/x-mcp-header".to_owned(), Kind::HeaderType)],
            "{kind}"
        );
    }
}

#[test]
fn c67_the_parameter_is_reached_by_properties_alone() {
    let annotated = r#"{"type":"string","x-mcp-header":"A"}"#;
    for (schema, at) in [
        (r#"{"type":"object","x-mcp-header":"A"}"#.to_owned(), ""),
        (format!(r#"{{"properties":{{"p":{{"items":{annotated}}}}}}}"#), "/properties/p/items"),
        (format!(r#"{{"properties":{{"p":{{"items":[true,{annotated}]}}}}}}"#), "/properties/p/items/1"),
        (format!(r#"{{"prefixItems":[{{}},{{}},{annotated}]}}"#), "/prefixItems/2"),
        (format!(r#"{{"oneOf":[{{"properties":{{"p":{annotated}}}}}]}}"#), "/oneOf/0/properties/p"),
        (format!(r#"{{"anyOf":[{{}},{annotated}]}}"#), "/anyOf/1"),
        (format!(r#"{{"allOf":[{annotated}]}}"#), "/allOf/0"),
        (format!(r#"{{"not":{annotated}}}"#), "/not"),
        (format!(r#"{{"if":{annotated}}}"#), "/if"),
        (format!(r#"{{"then":{annotated}}}"#), "/then"),
        (format!(r#"{{"else":{annotated}}}"#), "/else"),
        (format!(r#"{{"additionalProperties":{annotated}}}"#), "/additionalProperties"),
        (format!(r#"{{"patternProperties":{{"a/b":{annotated}}}}}"#), "/patternProperties/a~1b"),
        (format!(r#"{{"dependentSchemas":{{"~":{annotated}}}}}"#), "/dependentSchemas/~0"),
        (format!(r#"{{"contains":{annotated}}}"#), "/contains"),
        (format!(r#"{{"propertyNames":{annotated}}}"#), "/propertyNames"),
        (
            format!(r##"{{"$defs":{{"a":{annotated}}},"properties":{{"p":{{"$ref":"#/$defs/a"}}}}}}"##),
            "/$defs/a",
        ),
        (
            format!(r#"{{"definitions":{{"a":{{"properties":{{"p":{annotated}}}}}}}}}"#),
            "/definitions/a/properties/p",
        ),
    ] {
        assert_eq!(wrong(&schema), [(format!("{at}/x-mcp-header"), Kind::HeaderPlace)], "{schema}");
    }
    // Nested, as a name, and as data.
    let nested = format!(r#"{{"properties":{{"a":{{"properties":{{"properties":{annotated}}}}}}}}}"#);
    let mirrors = read_text(&nested).unwrap();
    let [mirror] = &mirrors.iter().collect::<Vec<_>>()[..] else { panic!() };
    assert_eq!(
        (mirror.header.as_str(), &mirror.path[..]),
        ("mcp-param-a", &["a".into(), "properties".into()][..])
    );
    for schema in [
        r#"{"properties":{"x-mcp-header":{"type":"number"}}}"#,
        r#"{"default":{"x-mcp-header":5},"const":{"x-mcp-header":5},"enum":[{"x-mcp-header":5}],"examples":[{"x-mcp-header":5}]}"#,
    ] {
        assert_eq!(read_text(schema), Ok(Mirrors::default()), "{schema}");
    }
}

#[test]
fn c67_names_are_unique_without_regard_to_case() {
    assert_eq!(
        wrong(
            r#"{"properties":{"a":{"type":"string","x-mcp-header":"Region"},"b":{"type":"string","x-mcp-header":"region"}}}"#
        ),
        [("/properties/b/x-mcp-header".to_owned(), Kind::HeaderTwice)]
    );
}

#[test]
fn what_is_known_and_told_of_one_tool_is_bounded() {
    let schema = |count: usize, kind: &str| {
        let all: Vec<_> =
            (0..count).map(|n| format!(r#""p{n}":{{"type":"{kind}","x-mcp-header":"H{n}"}}"#)).collect();
        format!(r#"{{"properties":{{{}}}}}"#, all.join(","))
    };
    assert_eq!(read_text(&schema(MOST, "string")).unwrap().len(), MOST);
    let found = wrong(&schema(MOST + 3, "string"));
    assert_eq!(found, [(format!("/properties/p{MOST}/x-mcp-header"), Kind::TooManyHeaders)]);
    assert_eq!(wrong(&schema(1000, "number")).len(), MOST_FINDINGS);
}
