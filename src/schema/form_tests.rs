//! Forms, by case id.
#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::schema::{Bounds, Documents, Speaker};

fn found(schema: &str, speaker: Speaker) -> Vec<(String, Kind)> {
    let rules = Rules { speaker, bounds: &Bounds::default(), documents: &Documents::default() };
    let text = format!(r#"{{"requestedSchema":{schema}}}"#);
    let findings = judge(text.as_bytes(), Span::new(19, 19 + schema.len()), &rules);
    findings.into_iter().map(|finding| (finding.at.to_string(), finding.kind)).collect()
}

/// C64: `$schema` in a form is legal, and so is all that the revisions have for fields.
#[test]
fn c64_ordinary_forms_are_good() {
    for schema in [
        r#"{"type":"object","properties":{}}"#,
        r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"a":{"type":"string","format":"email","minLength":1,"default":"x"}},"required":["a"]}"#,
        r#"{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"n":{"type":"integer","minimum":0,"maximum":9}}}"#,
        r#"{"type":"object","properties":{"e":{"type":"string","enum":["a","b"],"enumNames":["A","B"]},"t":{"type":"string","oneOf":[{"const":"a","title":"A"}]},"m":{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}]}}}}"#,
        r#"{"type":"object","properties":{"o":{"anyOf":[{"type":"integer"},{"type":"null"}],"default":null}}}"#,
    ] {
        for speaker in [Speaker::Modern, Speaker::Legacy(None)] {
            assert_eq!(found(schema, speaker), [], "{schema}");
        }
    }
}

#[test]
fn a_form_that_is_no_schema_is_bad() {
    let schema = r#"{"type":"object","properties":{"a":{"type":"any"}}}"#;
    for speaker in [Speaker::Modern, Speaker::Legacy(None)] {
        assert_eq!(
            found(schema, speaker),
            [("/requestedSchema/properties/a/type".to_owned(), Kind::MetaSchema)]
        );
    }
    // In an older dialect it is one, and nothing is written into it.
    let old = r#"{"type":"object","properties":{"a":{"type":"number","minimum":1,"exclusiveMinimum":true}}}"#;
    assert_eq!(found(old, Speaker::Legacy(None)), []);
    // What is no schema at all is for others to mind.
    assert_eq!(found("5", Speaker::Modern), []);
}
