//! What is plainly valid is valid.
#![allow(clippy::unwrap_used, reason = "tests")]

use super::super::walk;
use crate::schema::{Bounds, Dialect, Documents, Rules, Speaker, meta};
use crate::wire::json::Span;

const DIALECTS: [Dialect; 3] = [Dialect::Draft7, Dialect::Draft2019, Dialect::Draft2020];

fn plain(schema: &str, dialect: Dialect) -> bool {
    let rules =
        Rules { speaker: Speaker::Modern, bounds: &Bounds::default(), documents: &Documents::default() };
    walk(schema.as_bytes(), Span::new(0, schema.len()), dialect, &rules).plain
}

/// What the schemas of tools are mostly made of.
#[test]
fn ordinary_schemas_are_plain() {
    for schema in [
        "true",
        "{}",
        r#"{"type":"object","properties":{"a":{"type":"string","description":"A \"b\"","enum":["x","y"],"default":"x"},"type":{"type":["string","null"]},"n":{"type":"integer","minimum":-1,"maximum":1.5,"exclusiveMinimum":0},"l":{"type":"array","items":{"anyOf":[{"type":"string","minLength":1,"pattern":"^a"},{"const":{"$ref":5}}]},"uniqueItems":true},"$ref":false},"required":["a","n"],"additionalProperties":false}"#,
        r#"{"type":"object","properties":{},"required":[],"title":"T","x-vendor":[{"type":5}],"if":{"not":{}},"then":true}"#,
    ] {
        for dialect in DIALECTS {
            assert!(plain(schema, dialect), "{} {schema}", dialect.name());
        }
        assert!(!plain(schema, Dialect::Draft4) && !plain(schema, Dialect::Draft6), "{schema}");
    }
    for declared in
        ["https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#"]
    {
        assert!(plain(
            &format!(r#"{{"$schema":"{declared}","items":{{"type":"null"}}}}"#),
            Dialect::Draft2020
        ));
    }
    let inner = r##"{"$defs":{"a":{"type":"string"}},"properties":{"a":{"$ref":"#/$defs/a"}}}"##;
    assert_eq!(DIALECTS.map(|dialect| plain(inner, dialect)), [false, true, true]);
}

/// Whatever keyword has whatever value, and stands wherever: what is plain, the meta-schema takes.
#[test]
fn what_is_plain_is_valid() {
    const KEYWORDS: &str = "type $schema $id id $ref $anchor $comment $defs $dynamicRef $dynamicAnchor $recursiveRef \
        $recursiveAnchor $vocabulary definitions title description default deprecated readOnly writeOnly examples multipleOf \
        maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength pattern additionalItems items prefixItems \
        maxItems minItems uniqueItems contains maxContains minContains maxProperties minProperties required properties \
        additionalProperties patternProperties dependencies dependentSchemas dependentRequired propertyNames const enum \
        format contentMediaType contentEncoding contentSchema if then else allOf anyOf oneOf not unevaluatedItems \
        unevaluatedProperties x-any $any";
    const VALUES: [&str; 44] = [
        "true",
        "false",
        "null",
        "0",
        "1",
        "-1",
        "-0",
        "1.0",
        "1.5",
        "1e2",
        "1e400",
        r#""""#,
        r#""string""#,
        r#""strin\u0067""#,
        r#""any""#,
        r##""#""##,
        r##""#/$defs/a""##,
        r#""a b""#,
        r#""\ud800""#,
        "{}",
        r#"{"a":true}"#,
        r#"{"a":{}}"#,
        r#"{"a":null}"#,
        r#"{"a":5}"#,
        r#"{"a":[]}"#,
        r#"{"a":["b"]}"#,
        r#"{"a":"b"}"#,
        r#"{"type":"string"}"#,
        r#"{"type":"any"}"#,
        r#"{"type":5}"#,
        r#"{"a":{"type":5}}"#,
        r#"{"(":{}}"#,
        "[]",
        "[true]",
        "[{}]",
        "[5]",
        "[null]",
        r#"["a"]"#,
        r#"["a","b"]"#,
        r#"["a","a"]"#,
        r#"["string","null"]"#,
        r#"["string","string"]"#,
        r#"["string","any"]"#,
        r#"[{"type":5}]"#,
    ];
    // `@` is in the place of what is looked at.
    const PLACES: [&str; 12] = [
        "@",
        r#"{"properties":{"a":@}}"#,
        r#"{"items":@}"#,
        r#"{"anyOf":[true,@]}"#,
        r#"{"$defs":{"a":@}}"#,
        r#"{"definitions":{"a":@}}"#,
        r##"{"$ref":"#","not":@}"##,
        r#"{"dependencies":{"a":@}}"#,
        r#"{"dependentSchemas":{"a":@}}"#,
        r#"{"prefixItems":[@]}"#,
        r#"{"additionalItems":@}"#,
        r#"{"contentSchema":@}"#,
    ];
    let (mut all, mut plainly) = (0, 0);
    for place in PLACES {
        for keyword in KEYWORDS.split_whitespace() {
            for value in VALUES {
                let schema = place.replace('@', &format!(r#"{{"{keyword}":{value}}}"#));
                // Each dialect at the root, and in turn elsewhere.
                let turn = DIALECTS[all % DIALECTS.len()];
                for dialect in DIALECTS.into_iter().filter(|dialect| place == "@" || *dialect == turn) {
                    all += 1;
                    // What a `$schema` in it makes of the dialect is its own.
                    if keyword == "$schema" || !plain(&schema, dialect) {
                        continue;
                    }
                    plainly += 1;
                    let read = serde_json::from_str(&schema);
                    assert!(read.is_ok(), "{schema}");
                    assert!(meta::fits(&read.unwrap(), dialect), "{} {schema}", dialect.name());
                }
            }
        }
    }
    assert!(plainly > all / 10, "{plainly} of {all}");
}
