//! What fits, what does not, how it is told, and what cannot be said.

use super::*;
use crate::schema::{Dialect, Documents};
use bytes::Bytes;

const TIME: Duration = Duration::from_secs(10);

fn compiled(schema: &str) -> Compiled {
    compiled_as(schema, Dialect::DEFAULT)
}

fn compiled_as(schema: &str, dialect: Dialect) -> Compiled {
    match Compiled::new(schema.as_bytes(), dialect, &Documents::default(), TIME) {
        Ok(compiled) => compiled,
        Err(why) => panic!("{schema}: {why}"),
    }
}

fn refused(schema: &str) -> &'static str {
    Compiled::new(schema.as_bytes(), Dialect::DEFAULT, &Documents::default(), TIME).err().unwrap_or("")
}

fn fits(schema: &str, value: &str) -> bool {
    fits_as(schema, Dialect::DEFAULT, value)
}

fn fits_as(schema: &str, dialect: Dialect, value: &str) -> bool {
    match compiled_as(schema, dialect).check(value.as_bytes(), TIME) {
        Checked::Valid => true,
        Checked::Invalid(_) => false,
        Checked::Unchecked(why) => panic!("{schema} {value}: {why}"),
    }
}

fn violations(schema: &str, value: &str) -> Violations {
    match compiled(schema).check(value.as_bytes(), TIME) {
        Checked::Invalid(violations) => violations,
        other => panic!("{schema} {value}: {other:?}"),
    }
}

fn unchecked(schema: &str, value: &str) -> bool {
    matches!(compiled(schema).check(value.as_bytes(), TIME), Checked::Unchecked(_))
}

#[test]
fn violations_are_told_with_their_places() {
    let schema = r#"{"type":"object","properties":{"a/b":{"items":{"type":"integer"}},"c":{"type":"string"}},
        "required":["c"],"additionalProperties":false}"#;
    assert!(fits(schema, r#"{"c":"","a/b":[1,2]}"#));
    let told = violations(schema, r#"{"a/b":[1,"SECRET",2.5],"~d":1}"#);
    let mut at: Vec<_> = told.first.iter().map(|one| one.at.as_str()).collect();
    at.sort();
    // RFC 6901: `/` in a name is `~1`. `required` and `additionalProperties` are the object's.
    assert_eq!(at, ["", "", "/a~1b/1", "/a~1b/2"]);
    assert!(!told.more);
    assert!(told.first.iter().all(|one| !one.what.contains("SECRET")), "{told:?}");
    let named = |name: &str| told.first.iter().any(|one| one.what.contains(name));
    assert!(named("\"c\"") && named("~d") && named("integer"), "{told:?}");
}

#[test]
fn no_more_than_ten_violations_are_told() {
    let schema = r#"{"items":{"type":"string"}}"#;
    let told = violations(schema, "[0,1,2,3,4,5,6,7,8,9]");
    assert_eq!((told.first.len(), told.more), (10, false));
    let told = violations(schema, "[0,1,2,3,4,5,6,7,8,9,10]");
    assert_eq!((told.first.len(), told.more), (10, true));
    assert_eq!(told.first[3].at, "/3");
}

#[test]
fn alternatives_are_told() {
    let told = violations(
        r#"{"anyOf":[{"required":["left"]},{"properties":{"a":{"type":"null"}}},{"type":"array"},{"type":"string"}]}"#,
        r#"{"a":1}"#,
    );
    let [one] = &told.first[..] else { panic!("{told:?}") };
    assert!(one.what.contains("left") && one.what.contains("/a: ") && one.what.contains("array"), "{one:?}");
    assert!(!one.what.contains("string"), "three are enough: {one:?}");
}

/// C64: `$ref` beside other keywords, tuples and bounds mean what the dialect says.
#[test]
fn c64_a_schema_is_checked_in_its_dialect() {
    let beside = r##"{"$defs":{"a":{}},"definitions":{"a":{}},"properties":{"p":{"$ref":"#/definitions/a","type":"string"}}}"##;
    assert!(!fits(beside, r#"{"p":1}"#));
    assert!(fits_as(beside, Dialect::Draft7, r#"{"p":1}"#));
    let tuple = r#"{"items":[{"type":"string"}],"additionalItems":false}"#;
    for dialect in [Dialect::Draft4, Dialect::Draft6, Dialect::Draft7, Dialect::Draft2019] {
        assert!(fits_as(tuple, dialect, r#"["a"]"#));
        assert!(!fits_as(tuple, dialect, r#"["a",1]"#));
    }
    let prefix = r#"{"prefixItems":[{"type":"string"}],"items":false}"#;
    assert!(fits(prefix, r#"["a"]"#) && !fits(prefix, r#"["a",1]"#));
    let above = r#"{"minimum":1,"exclusiveMinimum":true}"#;
    assert!(!fits_as(above, Dialect::Draft4, "1") && fits_as(above, Dialect::Draft4, "2"));
    for declared in [
        "http://json-schema.org/draft-04/schema#",
        "http://json-schema.org/draft-04/schema",
        "https://json-schema.org/draft-04/schema#",
    ] {
        let schema = format!(r#"{{"$schema":"{declared}","minimum":1,"exclusiveMinimum":true}}"#);
        assert!(!fits(&schema, "1") && fits(&schema, "2"), "{declared}");
    }
    for form in ["http", "https"] {
        for end in ["", "#"] {
            let schema = format!(
                r#"{{"$schema":"{form}://json-schema.org/draft/2020-12/schema{end}","type":"string","minLength":2}}"#
            );
            assert!(fits(&schema, r#""ab""#) && !fits(&schema, r#""a""#) && !fits(&schema, "1"), "{schema}");
        }
    }
}

#[test]
fn c64_an_unknown_dialect_is_not_checked() {
    for declared in [r#""https://example.com/mine""#, "7", "null"] {
        assert_eq!(
            refused(&format!(r#"{{"$schema":{declared},"type":"object"}}"#)),
            "the dialect of the schema is not known"
        );
    }
}

/// Formats are assertions up to draft-07, and annotations from 2019-09 on.
#[test]
fn formats_are_as_the_dialect_has_them() {
    let schema = r#"{"format":"ipv4"}"#;
    for dialect in Dialect::ALL {
        let asserted = dialect < Dialect::Draft2019;
        assert_eq!(fits_as(schema, dialect, r#""1.2.3.400""#), !asserted, "{}", dialect.name());
        assert!(fits_as(schema, dialect, r#""1.2.3.4""#));
        assert!(fits_as(r#"{"format":"my-own"}"#, dialect, r#""x""#));
    }
}

/// B6.3: `null` is a value as any other.
#[test]
fn any_json_is_a_value() {
    assert!(fits(r#"{"type":"null"}"#, "null"));
    assert!(!fits(r#"{"type":"object"}"#, "null"));
    assert!(fits("true", "null") && !fits("false", "null") && fits("{}", "[1]"));
    assert!(fits(r#"{"const":{"a":[1.0]}}"#, r#"{"a":[1]}"#));
    assert!(!fits(r#"{"uniqueItems":true}"#, r#"[{"a":1},{"a":1.0}]"#));
    assert!(fits(r#"{"type":"string","minLength":2,"maxLength":2}"#, r#""ü🦀""#));
    assert!(fits(r#"{"propertyNames":{"maxLength":2}}"#, r#"{"ab":1}"#));
    assert!(!fits(r#"{"propertyNames":{"pattern":"^[ab]+$"}}"#, r#"{"ab":1,"abc":1}"#));
    assert!(!fits(r#"{"patternProperties":{"^x":false}}"#, r#"{"x1":1}"#));
    assert!(!fits(
        r#"{"allOf":[{"properties":{"a":{}}}],"unevaluatedProperties":false}"#,
        r#"{"a":1,"b":1}"#
    ));
}

#[test]
fn references_within_are_followed() {
    let tree = r##"{"$ref":"#/$defs/node","$defs":{"node":{"type":"object","required":["name"],
        "properties":{"children":{"items":{"$ref":"#/$defs/node"}}}}}}"##;
    assert!(fits(tree, r#"{"name":1,"children":[{"name":1}]}"#));
    let told = violations(tree, r#"{"name":1,"children":[{"name":1},{"children":[]}]}"#);
    assert_eq!(told.first[0].at, "/children/1");
    let embedded = r#"{"$ref":"other","$defs":{"o":{"$id":"other","$anchor":"a","type":"integer"}}}"#;
    assert!(fits(embedded, "1") && !fits(embedded, "\"1\""));
}

/// C62: what leads out of the schema is not compiled, and there is nothing that could fetch it.
#[test]
fn c62_a_reference_that_leads_out_is_not_compiled() {
    for target in ["http://127.0.0.1:1/x.json", "file:///etc/passwd", "//host/x", "other.json#/a", "data:,{}"]
    {
        let schema = format!(r#"{{"properties":{{"a":{{"$ref":"{target}"}}}}}}"#);
        assert_ne!(refused(&schema), "", "{target}");
    }
    assert_ne!(refused(r##"{"$ref":"#/$defs/none"}"##), "");
    assert_ne!(refused(r#"{"type":7}"#), "");
}

#[test]
fn c62_a_supplied_document_is_used() {
    let document = (
        "https://example.com/a.json".into(),
        Bytes::from_static(br#"{"$defs":{"n":{"type":"integer"},"o":{"$ref":"b.json"}}}"#),
    );
    let other = ("https://example.com/b.json".into(), Bytes::from_static(br#"{"type":"string"}"#));
    let documents = Documents::new([document, other]);
    let schema = |target: &str| format!(r#"{{"$ref":"https://example.com/{target}"}}"#);
    let compiled =
        |target: &str| Compiled::new(schema(target).as_bytes(), Dialect::DEFAULT, &documents, TIME);
    let number = compiled("a.json#/$defs/n").unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(number.check(b"1", TIME), Checked::Valid);
    assert_ne!(number.check(b"\"1\"", TIME), Checked::Valid);
    let text = compiled("a.json#/$defs/o").unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(text.check(b"\"1\"", TIME), Checked::Valid);
    assert!(compiled("c.json").is_err());
}

/// `zod` writes look-ahead for e-mail addresses, which no automaton knows.
#[test]
fn patterns_with_look_around_are_checked() {
    let email = r#"{"type":"string","pattern":"^(?!\\.)(?!.*\\.\\.)([A-Za-z0-9_'+\\-\\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$"}"#;
    assert!(fits(email, r#""some.one@example.com""#));
    for odd in ["some..one@example.com", ".one@example.com", "one@example", ""] {
        assert!(!fits(email, &format!("\"{odd}\"")), "{odd}");
    }
    assert!(fits(r#"{"pattern":"^[a-z]{2,40}-\\d+$"}"#, r#""ab-12""#));
    let told = violations(r#"{"pattern":"^\\d+$"}"#, r#""x""#);
    assert!(told.first[0].what.contains(r"\d+"), "{told:?}");
    // What is data is no pattern.
    assert!(fits(r#"{"const":{"pattern":"("}}"#, r#"{"pattern":"("}"#));
    assert!(fits(r#"{"properties":{"pattern":{"const":"("}}}"#, r#"{"pattern":"("}"#));
    assert_ne!(refused(r#"{"pattern":"("}"#), "");
}

/// What the validator cannot read is neither valid nor invalid.
#[test]
fn what_cannot_be_read_is_not_checked() {
    for value in ["1e400", r#"{"a":-1e999}"#, r#""\ud800""#, r#"{"\udc00":1}"#] {
        assert!(unchecked("{}", value), "{value}");
    }
    for schema in [r#"{"const":1e400}"#, r#"{"const":"\ud800"}"#] {
        assert_eq!(refused(schema), "the schema cannot be read by the validator");
    }
    let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
    assert!(unchecked("{}", &deep));
    assert!(fits(r#"{"type":"integer"}"#, "123456789012345678901234567890"));
}

/// Two readers could take either, so a value that fits by one of them does not fit.
#[test]
fn a_member_that_occurs_twice_does_not_fit() {
    let schema = r#"{"properties":{"a":{"type":"integer"}}}"#;
    for value in [r#"{"a":"x","a":1}"#, r#"{"a":1,"\u0061":"x"}"#, r#"{"b":[{"c":1,"c":1}]}"#] {
        let told = violations(schema, value);
        assert!(told.first[0].what.contains("twice"), "{told:?}");
    }
    assert!(fits(schema, r#"{"a":1,"b":{"a":"","":{"a":"\"a\":1"}},"c":[{"a":0},{"a":0}]}"#));
}
