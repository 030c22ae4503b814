//! References that lead out, and what only looks like one (C62).
#![allow(clippy::unwrap_used)]

use super::*;
use crate::schema::{Bounds, Documents, Speaker};
use bytes::Bytes;

pub(super) fn walked(schema: &str, default: Dialect, bounds: &Bounds, documents: &Documents) -> Walked {
    // Not at the start of the text: places are of the whole text.
    let text = format!("[{schema}]");
    let span = Span::new(1, text.len() - 1);
    walk(text.as_bytes(), span, default, &Rules { speaker: Speaker::Modern, bounds, documents })
}

/// Findings as `at kind detail`.
pub(super) fn findings(walked: &Walked) -> Vec<String> {
    let line = |finding: &Finding| format!("{} {} {}", finding.at, finding.kind.label(), finding.detail);
    walked.findings.iter().map(|finding| line(finding).trim().to_owned()).collect()
}

pub(super) fn walk_as(dialect: Dialect, schema: &str) -> Walked {
    walked(schema, dialect, &Bounds::default(), &Documents::default())
}

/// References as `at target outcome`.
pub(super) fn references(walked: &Walked) -> Vec<String> {
    let line =
        |reference: &Reference| format!("{} {} {:?}", reference.at, reference.target, reference.outcome);
    walked.references.iter().map(line).collect()
}

#[track_caller]
pub(super) fn found_in(dialects: &[Dialect], schema: &str, expected: &[&str]) {
    for dialect in dialects {
        assert_eq!(findings(&walk_as(*dialect, schema)), expected, "{dialect:?} {schema}");
    }
}

#[track_caller]
pub(super) fn found(schema: &str, expected: &[&str]) {
    found_in(&Dialect::ALL, schema, expected);
}

pub(super) const OLD: &[Dialect] = &[Dialect::Draft4, Dialect::Draft6, Dialect::Draft7];
pub(super) const NEW: &[Dialect] = &[Dialect::Draft2019, Dialect::Draft2020];
pub(super) const D2019: &[Dialect] = &[Dialect::Draft2019];
pub(super) const D2020: &[Dialect] = &[Dialect::Draft2020];

#[test]
fn c62_what_leads_out_is_external_wherever_it_stands() {
    for target in [
        "http://127.0.0.1:9/x.json",
        "https://example.com/x.json#/a",
        "file:///etc/passwd",
        "//host/x",
        "other.json#/a",
        "HTTP://EXAMPLE.COM/x",
        "data:application/json,{}",
        "..",
        "/x",
        "?x",
        "urn:example:a#b",
        "C:\\x.json",
        "\\\\host\\share",
        " #",
        "http://[bad",
        "http://json-schema.org/draft-03/schema#",
    ] {
        let written = target.replace('\\', "\\\\");
        for (schema, at) in [
            (format!(r#"{{"$ref":"{written}"}}"#), "/$ref"),
            (format!(r#"{{"properties":{{"a":{{"$ref":"{written}"}}}}}}"#), "/properties/a/$ref"),
            (
                format!(r#"{{"definitions":{{"never used":{{"$ref":"{written}"}}}}}}"#),
                "/definitions/never used/$ref",
            ),
            (
                format!(r#"{{"$defs":{{"b/c~":{{"items":[{{"$ref":"{written}"}}]}}}}}}"#),
                "/$defs/b~1c~0/items/0/$ref",
            ),
            (
                format!(r#"{{"allOf":[{{}},{{"not":{{"\u0024r\u0065f":"{written}"}}}}]}}"#),
                "/allOf/1/not/$ref",
            ),
            (
                format!(r#"{{"dependencies":{{"a":["x"],"b":{{"$ref":"{written}"}}}}}}"#),
                "/dependencies/b/$ref",
            ),
        ] {
            found(&schema, &[&format!("{at} external_ref {target}")]);
        }
    }
}

#[test]
fn c62_data_and_names_are_no_references() {
    for schema in [
        r#"{"default":{"$ref":"http://e.example/"}}"#,
        r#"{"const":{"$ref":"http://e.example/"}}"#,
        r#"{"enum":[{"$ref":"http://e.example/"}]}"#,
        r#"{"examples":[{"$ref":"http://e.example/"}],"example":{"$ref":"http://e.example/"}}"#,
        r#"{"properties":{"$ref":{"type":"string"},"$id":{"type":"string"},"enum":{"items":{}}}}"#,
        r#"{"properties":{"a":{"enum":["$ref"],"required":["$ref"]}},"required":["$ref"]}"#,
        r#"{"$defs":{"$ref":true},"definitions":{"$ref":{}}}"#,
        r#"{"x-more":{"$ref":"http://e.example/"},"if not":{"$ref":"http://e.example/"}}"#,
        r#"{"$ref":{"type":"string"}}"#,
        r#"{"properties":{"a":{"const":{"$id":"http://e.example/"}}}}"#,
        r#"{"$comment":"$ref http://e.example/","description":"{\"$ref\":\"http://e.example/\"}"}"#,
        r#"{"$id":"http://canary.example/x.json"}"#,
        r#"true"#,
        r#"{}"#,
    ] {
        let all: Vec<_> = Dialect::ALL.iter().map(|dialect| walk_as(*dialect, schema)).collect();
        for walked in all {
            assert_eq!((findings(&walked), references(&walked)), (vec![], vec![]), "{schema}");
        }
    }
    // A property named like a keyword holds a schema all the same.
    found(
        r#"{"properties":{"default":{"$ref":"http://e.example/"}}}"#,
        &["/properties/default/$ref external_ref http://e.example/"],
    );
    found(
        r#"{"properties":{"$ref":{"$ref":"http://e.example/"}}}"#,
        &["/properties/$ref/$ref external_ref http://e.example/"],
    );
}

#[test]
fn c62_dynamic_references_lead_out_too() {
    found_in(
        D2020,
        r#"{"$dynamicRef":"http://e.example/#a"}"#,
        &["/$dynamicRef external_ref http://e.example/#a"],
    );
    found_in(
        D2019,
        r#"{"$recursiveRef":"http://e.example/"}"#,
        &["/$recursiveRef external_ref http://e.example/"],
    );
    // Where the dialect does not know them they are nothing.
    found_in(OLD, r#"{"$dynamicRef":"http://e.example/","$recursiveRef":"http://e.example/"}"#, &[]);
    found_in(D2019, r#"{"$dynamicRef":"http://e.example/"}"#, &[]);
    found_in(D2020, r#"{"$recursiveRef":"http://e.example/"}"#, &[]);
}

#[test]
fn c62_keywords_hold_schemas_where_the_dialect_knows_them() {
    for (keyword, dialects) in [
        ("propertyNames", &Dialect::ALL[1..]),
        ("contains", &Dialect::ALL[1..]),
        ("if", &Dialect::ALL[2..]),
        ("unevaluatedItems", &Dialect::ALL[3..]),
        ("contentSchema", &Dialect::ALL[3..]),
        ("additionalItems", &Dialect::ALL[..4]),
        ("additionalProperties", &Dialect::ALL[..]),
    ] {
        for dialect in Dialect::ALL {
            let schema = format!(r#"{{"{keyword}":{{"$ref":"http://e.example/"}}}}"#);
            let expected = format!("/{keyword}/$ref external_ref http://e.example/");
            let expected = if dialects.contains(&dialect) { vec![expected] } else { vec![] };
            assert_eq!(findings(&walk_as(dialect, &schema)), expected, "{dialect:?} {keyword}");
        }
    }
}

#[test]
fn c62_meta_schemas_are_embedded() {
    for target in [
        "http://json-schema.org/draft-07/schema#",
        "http://json-schema.org/draft-04/schema#/definitions/positiveInteger",
        "https://json-schema.org/draft/2020-12/schema",
        "https://json-schema.org/draft/2020-12/meta/applicator",
        "https://json-schema.org/draft/2019-09/meta/content",
    ] {
        let walked = walk_as(Dialect::Draft2020, &format!(r#"{{"not":{{"$ref":"{target}"}}}}"#));
        assert_eq!(references(&walked), [format!("/not/$ref {target} Embedded")]);
        assert_eq!(walked.findings, []);
    }
}

#[test]
fn c62_supplied_documents_are_embedded_and_judged() {
    let documents = [
        (
            "http://docs.example/a.json",
            r##"{"definitions":{"x":{"$ref":"b.json#/definitions/y"}},"$defs":{"z":{"$ref":"#/nowhere"}}}"##,
        ),
        (
            "http://docs.example/b.json",
            r##"{"$id":"http://other.example/c.json","definitions":{"y":{"$ref":"d.json"},"e":{"$id":"http://docs.example/e"}}}"##,
        ),
        ("http://docs.example/deep.json", &format!("{}{}", "[".repeat(200), "]".repeat(200))),
        ("http://docs.example/never.json", r#"{"$ref":"http://e.example/"}"#),
    ];
    let documents =
        Documents::new(documents.map(|(uri, text)| (uri.into(), Bytes::copy_from_slice(text.as_bytes()))));
    let judge = |schema: &str| walked(schema, Dialect::Draft7, &Bounds::default(), &documents);
    // Its own references are judged where it is reached; and what it brings along is known.
    let walked = judge(
        r##"{"properties":{"e":{"$ref":"http://docs.example/e"},"a":{"$ref":"http://docs.example/a.json#/definitions/x"}}}"##,
    );
    assert_eq!(
        findings(&walked),
        [
            "/properties/a/$ref dangling_ref in http://docs.example/a.json#/$defs/z/$ref: #/nowhere",
            "/properties/a/$ref external_ref in http://docs.example/b.json#/definitions/y/$ref: d.json",
        ]
    );
    assert_eq!(
        references(&walked),
        [
            "/properties/e/$ref http://docs.example/e Embedded",
            "/properties/a/$ref http://docs.example/a.json#/definitions/x Embedded",
            "/properties/a/$ref b.json#/definitions/y Embedded",
            "/properties/a/$ref #/nowhere Dangling",
            "/properties/a/$ref d.json External",
        ]
    );
    let walked = judge(r##"{"items":{"$ref":"http://docs.example/a.json#/nowhere"}}"##);
    assert!(
        findings(&walked)
            .contains(&"/items/$ref dangling_ref http://docs.example/a.json#/nowhere".to_owned())
    );
    let walked = judge(r##"{"items":{"$ref":"http://docs.example/deep.json"}}"##);
    assert_eq!(findings(&walked), ["/items/$ref depth in http://docs.example/deep.json"]);
}

#[test]
fn c62_members_that_occur_twice_are_told() {
    for (schema, at) in [
        (r##"{"$ref":"#","$ref":"http://e.example/"}"##, "/$ref"),
        (r#"{"type":"object","t\u0079pe":"string"}"#, "/type"),
        (r#"{"properties":{"a":{},"b":{},"a":{}}}"#, "/properties/a"),
        (r#"{"not":{"minimum":1,"minimum":2}}"#, "/not/minimum"),
        (r#"{"definitions":{"a":true,"a":false}}"#, "/definitions/a"),
    ] {
        let walked = walk_as(Dialect::Draft2020, schema);
        let name = at.rsplit('/').next().unwrap();
        assert!(
            findings(&walked).contains(&format!("{at} duplicate_member {name}")),
            "{schema}: {:?}",
            walked.findings
        );
    }
    found(r#"{"default":{"a":1,"a":2},"enum":[{"a":1,"a":1}],"x":{"a":1,"a":1}}"#, &[]);
}

/// C62: validators compare URIs as they are written; what is the same only in another spelling is a thing to fetch for them.
#[test]
fn c62_another_spelling_is_another_resource() {
    let schema = |id: &str, reference: &str| {
        format!(r#"{{"$id":"{id}","properties":{{"a":{{"$ref":"{reference}"}}}}}}"#)
    };
    for (id, reference) in [
        ("http://LOCALHOST/s", "http://localhost/s"),
        ("http://localhost/s", "http://localhost/%73"),
        ("http://localhost/s", "http://localhost/q/../s"),
        ("http://localhost/s", "http://localhost:80/s"),
        ("http://localhost/s", "HTTP://localhost/s"),
    ] {
        let expected = [format!("/properties/a/$ref external_ref {reference}")];
        let walked = walk_as(Dialect::Draft2020, &schema(id, reference));
        assert_eq!(findings(&walked), expected, "{id}");
    }
    for (id, reference) in [("http://LOCALHOST/s", "http://LOCALHOST/s"), ("http://localhost/d/s", "../d/s")]
    {
        assert_eq!(findings(&walk_as(Dialect::Draft2020, &schema(id, reference))), [""; 0], "{id}");
    }
}

/// C62: in a dialect that is not known, a reference may stand anywhere but in data.
#[test]
fn c62_a_reference_in_an_unknown_dialect_is_found_wherever_it_stands() {
    const ODD: &str = r#""$schema":"http://json-schema.org/draft-03/schema#""#;
    for (at, members) in [
        ("/extends/$ref", r#""extends":{"$ref":"http://e.example/"}"#),
        ("/extends/0/$ref", r#""extends":[{"$ref":"http://e.example/"}]"#),
        ("/type/1/$ref", r#""type":["string",{"$ref":"http://e.example/"}]"#),
        ("/disallow/0/x/$ref", r#""disallow":[{"x":{"$ref":"http://e.example/"}}]"#),
        ("/additionalItems/$ref", r#""additionalItems":{"$ref":"http://e.example/"}"#),
        ("/$recursiveRef", r#""$recursiveRef":"http://e.example/""#),
        ("/properties/a/$ref", r#""properties":{"a":{"$ref":"http://e.example/"}},"type":"object""#),
    ] {
        let walked = walk_as(Dialect::Draft2020, &format!("{{{ODD},{members}}}"));
        let external: Vec<_> = walked
            .findings
            .iter()
            .filter(|found| found.kind == Kind::External)
            .map(|found| &*found.at)
            .collect();
        assert_eq!(external, [at], "{members}");
    }
    for members in [
        r#""const":{"$ref":"http://e.example/"}"#,
        r#""enum":[{"$ref":"http://e.example/"}]"#,
        r#""properties":{"$ref":{"type":"string"}}"#,
    ] {
        let walked = walk_as(Dialect::Draft2020, &format!("{{{ODD},{members}}}"));
        assert!(walked.findings.iter().all(|found| found.kind == Kind::UnknownDialect), "{members}");
    }
    // A base that is too odd to be joined changes nothing of it.
    let walked =
        walk_as(Dialect::Draft2020, r#"{"$schema":"urn:x","$id":"http://evil/","not":{"$ref":"x%zz"}}"#);
    assert!(walked.findings.iter().any(|found| found.kind == Kind::External));
}
