//! Meta-schemas, by case id.
#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;

#[test]
fn every_dialect_has_its_meta_schema() {
    for dialect in Dialect::ALL {
        assert!(of(dialect).is_some(), "{}", dialect.name());
        for schema in [json!({}), json!({"type": "object", "properties": {"a": {"minimum": 5}}})] {
            assert!(fits(&schema, dialect) && fault(&schema, dialect).is_none(), "{}", dialect.name());
        }
        for schema in
            [json!({"type": 5}), json!({"properties": {"a": {"minimum": "5"}}}), json!([]), json!(5)]
        {
            assert!(
                !fits(&schema, dialect) && fault(&schema, dialect).is_some(),
                "{} {schema}",
                dialect.name()
            );
        }
    }
}

/// C64: each dialect by its own words.
#[test]
fn c64_what_is_valid_depends_on_the_dialect() {
    use Dialect::{Draft4, Draft6, Draft7, Draft2019, Draft2020};
    for (schema, valid) in [
        (json!(true), vec![Draft6, Draft7, Draft2019, Draft2020]),
        (json!({"items": [{}, {}]}), vec![Draft4, Draft6, Draft7, Draft2019]),
        (json!({"minimum": 1, "exclusiveMinimum": true}), vec![Draft4]),
        (json!({"exclusiveMinimum": 1}), vec![Draft6, Draft7, Draft2019, Draft2020]),
        (json!({"prefixItems": [5]}), vec![Draft4, Draft6, Draft7, Draft2019]),
        (json!({"if": 5}), vec![Draft4, Draft6]),
        (json!({"$defs": {"a": 5}}), vec![Draft4, Draft6, Draft7]),
        (json!({"definitions": {"a": 5}}), vec![]),
        (json!({"$id": "#a"}), vec![Draft4, Draft6, Draft7]),
        (json!({"required": []}), vec![Draft6, Draft7, Draft2019, Draft2020]),
        (json!({"required": true}), vec![]),
        (json!({"examples": 5}), vec![Draft4]),
    ] {
        for dialect in Dialect::ALL {
            assert_eq!(fits(&schema, dialect), valid.contains(&dialect), "{} {schema}", dialect.name());
        }
    }
}

/// What resolves and runs them says what is wrong with them.
#[test]
fn formats_are_annotations() {
    for dialect in Dialect::ALL {
        for schema in
            [json!({"pattern": "("}), json!({"$ref": "a b"}), json!({"patternProperties": {"(": {}}})]
        {
            assert!(fits(&schema, dialect), "{} {schema}", dialect.name());
        }
    }
}

#[test]
fn a_fault_is_told_where_it_is() {
    let schema = json!({"properties": {"a/b": {"items": {"type": "any"}}}});
    for dialect in Dialect::ALL {
        let (at, what) = fault(&schema, dialect).unwrap();
        assert_eq!(at, "/properties/a~1b/items/type", "{}", dialect.name());
        assert!(what.contains("any") && what.contains("array"), "{what}");
    }
}

/// As deep as the reader of JSON goes, on a thread of the usual size.
#[test]
fn d68_nesting_is_no_danger_to_the_stack() {
    for (open, close) in [
        (r#"{"not":"#, "}"),
        (r#"{"items":"#, "}"),
        (r#"{"additionalProperties":"#, "}"),
        (r#"{"dependencies":{"a":"#, "}}"),
        (r#"{"anyOf":["#, "]}"),
    ] {
        let depth = 126 / close.len();
        let text = |inner: &str| format!("{}{inner}{}", open.repeat(depth), close.repeat(depth));
        let (good, bad): (Value, Value) = (
            serde_json::from_str(&text("{}")).unwrap(),
            serde_json::from_str(&text(r#"{"type":5}"#)).unwrap(),
        );
        for dialect in Dialect::ALL {
            assert!(fits(&good, dialect), "{} {open}", dialect.name());
            assert!(!fits(&bad, dialect), "{} {open}", dialect.name());
            let (at, _) = fault(&bad, dialect).unwrap();
            assert!(at.ends_with("/type"), "{} {open} {at}", dialect.name());
        }
    }
}
