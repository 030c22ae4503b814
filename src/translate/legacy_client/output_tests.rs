//! Output schemas, by vector id.
#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use serde_json::Value;

fn wrapped(schema: &str) -> String {
    // Something before it, so that no span begins at zero.
    let text = Bytes::from(format!("[{schema}]"));
    let span = Span::new(1, text.len() - 1);
    assert_eq!(of(&text, span), Some(Output::Wrapped), "{schema}");
    let mut splice = Splice::new(&text);
    wrap(&mut splice, &text, span);
    let out = String::from_utf8(splice.finish().to_bytes().to_vec()).unwrap();
    let _: Value = serde_json::from_str(&out).unwrap();
    out.strip_prefix('[').unwrap().strip_suffix(']').unwrap().to_owned()
}

fn around(inside: &str) -> String {
    format!(r#"{{"type":"object","properties":{{"result":{inside}}},"required":["result"]}}"#)
}

#[test]
fn b6_1_only_the_type_object_itself_is_one() {
    let said = |schema: &str| of(schema.as_bytes(), Span::new(0, schema.len()));
    for schema in [r#"{"type":"object"}"#, r#"{"x":1,"typ\u0065":"obj\u0065ct"}"#] {
        assert_eq!(said(schema), Some(Output::Object), "{schema}");
    }
    for schema in [
        "{}",
        "true",
        "false",
        r#"{"type":"array"}"#,
        r#"{"type":["object","null"]}"#,
        r#"{"type":["object"]}"#,
        r##"{"$ref":"#/$defs/a"}"##,
        r#"{"anyOf":[{"type":"object"}]}"#,
        r#"{"type":"object","type":"array"}"#,
    ] {
        assert_eq!(said(schema), Some(Output::Wrapped), "{schema}");
    }
    assert_eq!(said("null"), Some(Output::Unstated));
    for schema in ["5", "\"x\"", "[]"] {
        assert_eq!(said(schema), None, "{schema}");
    }
}

#[test]
fn d57_references_follow_the_schema_to_its_place() {
    assert_eq!(
        wrapped(r##"{"type":"array","items":{"$ref":"#/$defs/u"},"$defs":{"u":{"$ref":"#"}}}"##),
        around(
            r##"{"type":"array","items":{"$ref":"#/properties/result/$defs/u"},"$defs":{"u":{"$ref":"#/properties/result"}}}"##
        )
    );
    for (schema, inside) in [
        // However it is written, and through keywords that no revision defines.
        (r##"{"\u0024ref":"\u0023/a"}"##, r##"{"\u0024ref":"#/properties/result/a"}"##),
        (r##"{"$dynamicRef":"#/a"}"##, r##"{"$dynamicRef":"#/properties/result/a"}"##),
        (
            r##"{"components":{"a":{"$ref":"#/b"}}}"##,
            r##"{"components":{"a":{"$ref":"#/properties/result/b"}}}"##,
        ),
        (r##"{"anyOf":[{"$ref":"#/b"},true]}"##, r##"{"anyOf":[{"$ref":"#/properties/result/b"},true]}"##),
        // Names of anchors and other documents are found where they were.
        (r##"{"$ref":"#name"}"##, r##"{"$ref":"#name"}"##),
        (r#"{"$ref":"https://x/y"}"#, r#"{"$ref":"https://x/y"}"#),
        (r#"{"$ref":5}"#, r#"{"$ref":5}"#),
        // A property of that name, and data.
        (
            r##"{"properties":{"$ref":{"const":{"$ref":"#/a"}}}}"##,
            r##"{"properties":{"$ref":{"const":{"$ref":"#/a"}}}}"##,
        ),
        (
            r##"{"properties":{"default":{"$ref":"#/a","default":{"$ref":"#/b"},"enum":[{"$ref":"#"}],"examples":[{"$ref":"#"}]}}}"##,
            r##"{"properties":{"default":{"$ref":"#/properties/result/a","default":{"$ref":"#/b"},"enum":[{"$ref":"#"}],"examples":[{"$ref":"#"}]}}}"##,
        ),
        // What has an address of its own is told from there; a fragment is none.
        (
            r##"{"anyOf":[{"$ref":"#/a"},{"items":{"$ref":"#/b"},"$id":"https://x/"},{"$id":"#f","$ref":"#/c"}]}"##,
            r##"{"anyOf":[{"$ref":"#/properties/result/a"},{"items":{"$ref":"#/b"},"$id":"https://x/"},{"$id":"#f","$ref":"#/properties/result/c"}]}"##,
        ),
        (
            r##"{"$id":"https://x/","items":{"$ref":"#/a"}}"##,
            r##"{"$id":"https://x/","items":{"$ref":"#/a"}}"##,
        ),
        (
            r##"{"properties":{"$id":{"$ref":"#/a"}}}"##,
            r##"{"properties":{"$id":{"$ref":"#/properties/result/a"}}}"##,
        ),
    ] {
        assert_eq!(wrapped(schema), around(inside), "{schema}");
    }
}

#[test]
fn d57_the_dialect_is_the_whole_documents() {
    assert_eq!(
        wrapped(r#"{"type":"array","$schema":"http://json-schema.org/draft-07/schema#","items":[{}]}"#),
        r#"{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"result":{"type":"array","items":[{}]}},"required":["result"]}"#
    );
    assert_eq!(wrapped(r#"{"$schema":5}"#), around(r#"{"$schema":5}"#));
    let draft_04 =
        r##"{"$schema":"http://json-schema.org/draft-04/schema#","items":{"id":"http://x/","$ref":"#/a"}}"##;
    assert!(wrapped(draft_04).contains(r##""$ref":"#/a""##));
    // A plain reference to the root, unless the root says that it is more.
    let recursive = |more: &str| {
        wrapped(&format!(
            r##"{{"$schema":"https://json-schema.org/draft/2019-09/schema"{more},"items":{{"$recursiveRef":"#"}}}}"##
        ))
    };
    assert!(recursive("").contains(r##"{"$ref":"#/properties/result"}"##));
    assert!(recursive(r#","$recursiveAnchor":true"#).contains(r##"{"$recursiveRef":"#"}"##));
    assert_eq!(
        wrapped(r##"{"$recursiveRef":"#"}"##),
        around(r##"{"$recursiveRef":"#"}"##),
        "no such dialect"
    );
}

#[test]
fn d58_schemas_that_are_no_objects_themselves() {
    assert_eq!(wrapped("true"), around("{}"));
    assert_eq!(wrapped("false"), around(r#"{"not":{}}"#));
    assert_eq!(wrapped("{}"), around("{}"));
    let nullable = r#"{"anyOf":[{"type":"object"},{"type":"null"}]}"#;
    assert_eq!(wrapped(nullable), around(nullable));
}
