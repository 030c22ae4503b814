//! Single schemas, by case, rule or vector id.
#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::schema::{Bounds, Documents, Speaker};
use crate::wire::version::LegacyRevision;

const NEW: [Speaker; 2] = [Speaker::Modern, Speaker::Legacy(Some(LegacyRevision::V2025_11_25))];
const OLD: [Speaker; 4] = [
    Speaker::Legacy(None),
    Speaker::Legacy(Some(LegacyRevision::V2024_11_05)),
    Speaker::Legacy(Some(LegacyRevision::V2025_03_26)),
    Speaker::Legacy(Some(LegacyRevision::V2025_06_18)),
];

fn judged(schema: &str, speaker: Speaker) -> Judgement {
    let rules = Rules { speaker, bounds: &Bounds::default(), documents: &Documents::default() };
    let text = format!("  {schema} ");
    judge(text.as_bytes(), Span::new(2, 2 + schema.len()), &rules)
}

fn kinds(judgement: &Judgement) -> Vec<(&str, Kind)> {
    judgement.findings.iter().map(|finding| (&*finding.at, finding.kind)).collect()
}

/// D65, A5.4, B6.8: where no dialect was said to be the default, the schema says what it is.
#[test]
fn d65_an_older_dialect_that_is_not_declared() {
    for (schema, dialect) in [
        (r#"{"type":"object","properties":{"a":{"items":[{},{}]}}}"#, Dialect::Draft7),
        (r#"{"properties":{"a":{"type":"number","minimum":0,"exclusiveMinimum":true}}}"#, Dialect::Draft4),
    ] {
        for speaker in OLD {
            let judgement = judged(schema, speaker);
            assert_eq!(kinds(&judgement), [("", Kind::DialectAdded)], "{schema}");
            assert_eq!((judgement.dialect, judgement.undeclared), (Some(dialect), Some(dialect)), "{schema}");
            assert_eq!(&*judgement.findings[0].detail, dialect.name());
        }
        for speaker in NEW {
            let judgement = judged(schema, speaker);
            assert!(matches!(kinds(&judgement)[..], [(_, Kind::MetaSchema)]), "{schema}");
            assert_eq!((judgement.dialect, judgement.undeclared), (Some(Dialect::Draft2020), None));
        }
    }
    for speaker in OLD.into_iter().chain(NEW) {
        // A plain schema is of the newest dialect.
        for schema in
            [r#"{"type":"object","properties":{"a":{"items":{}}}}"#, "true", "{}", r#"{"items":false}"#]
        {
            let judgement = judged(schema, speaker);
            assert_eq!(kinds(&judgement), [], "{schema}");
            assert_eq!((judgement.dialect, judgement.undeclared), (Some(Dialect::Draft2020), None));
        }
        // Valid in none.
        let judgement = judged(r#"{"properties":{"a":{"type":"any"}}}"#, speaker);
        assert_eq!(kinds(&judgement), [("/properties/a/type", Kind::MetaSchema)]);
        assert!(judgement.findings[0].detail.starts_with("2020-12: "), "{}", judgement.findings[0].detail);
    }
}

/// C64: what is declared counts, whoever declares it.
#[test]
fn c64_a_declared_dialect_is_the_dialect() {
    for (uri, dialect) in [
        ("http://json-schema.org/draft-07/schema#", Dialect::Draft7),
        ("http://json-schema.org/draft-07/schema", Dialect::Draft7),
        ("https://json-schema.org/draft-07/schema#", Dialect::Draft7),
        ("http://json-schema.org/draft-06/schema#", Dialect::Draft6),
        ("http://json-schema.org/draft-04/schema#", Dialect::Draft4),
        ("https://json-schema.org/draft/2019-09/schema", Dialect::Draft2019),
    ] {
        for speaker in OLD.into_iter().chain(NEW) {
            let judgement = judged(&format!(r#"{{"$schema":"{uri}","items":[{{}},{{}}]}}"#), speaker);
            assert_eq!(kinds(&judgement), [], "{uri}");
            assert_eq!((judgement.dialect, judgement.undeclared), (Some(dialect), None), "{uri}");
            // Not valid in it: no other is tried.
            let judgement = judged(&format!(r#"{{"$schema":"{uri}","items":5}}"#), speaker);
            assert_eq!(kinds(&judgement), [("/items", Kind::MetaSchema)], "{uri}");
        }
    }
    let boolean =
        r#"{"$schema":"http://json-schema.org/draft-04/schema#","minimum":1,"exclusiveMinimum":true}"#;
    assert_eq!(kinds(&judged(boolean, Speaker::Modern)), []);
    let declared = r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","items":[{}]}"#;
    for speaker in OLD {
        assert_eq!(kinds(&judged(declared, speaker)), [("/items", Kind::MetaSchema)]);
    }
}

/// C64: an unknown dialect is not checked, and nothing asks for its meta-schema.
#[test]
fn c64_an_unknown_dialect_is_not_checked() {
    for uri in [r#""https://example.com/dialect""#, "7", "\"\"", "null", r#""draft-07""#] {
        for speaker in [OLD[0], NEW[0]] {
            let judgement = judged(&format!(r#"{{"$schema":{uri},"type":5,"items":[{{}},{{}}]}}"#), speaker);
            assert_eq!(kinds(&judgement), [("/$schema", Kind::UnknownDialect)], "{uri}");
            assert_eq!((judgement.dialect, judgement.undeclared), (None, None), "{uri}");
        }
    }
}

/// C64: a resource inside may be of another dialect than the whole.
#[test]
fn c64_resources_inside_have_their_own_dialects() {
    const SEVEN: &str = r#""$schema":"http://json-schema.org/draft-07/schema#""#;
    const TWENTY: &str = r#""$schema":"https://json-schema.org/draft/2020-12/schema""#;
    let whole = |inside: &str| format!(r#"{{{TWENTY},"$defs":{{"a":{inside},"b":{{"minimum":1}}}}}}"#);
    for (inside, found) in [
        (format!(r#"{{"$id":"urn:a",{SEVEN},"items":[{{}},{{}}]}}"#), vec![]),
        (format!(r#"{{"$id":"urn:a",{SEVEN},"items":5}}"#), vec![("/$defs/a/items", Kind::MetaSchema)]),
        // Without a name of its own it is no resource.
        (format!(r#"{{{SEVEN},"items":[{{}},{{}}]}}"#), vec![("/$defs/a/items", Kind::MetaSchema)]),
        // One in the other, and back.
        (
            format!(
                r#"{{"$id":"urn:a",{SEVEN},"items":[{{"$id":"urn:b",{TWENTY},"prefixItems":[{{}}]}},true]}}"#
            ),
            vec![],
        ),
        (
            format!(r#"{{"$id":"urn:a",{SEVEN},"items":[true,{{"$id":"urn:b",{TWENTY},"items":[{{}}]}}]}}"#),
            vec![("/$defs/a/items/1/items", Kind::MetaSchema)],
        ),
        (r#"{"$id":"urn:a","$schema":"urn:unknown","items":5}"#.to_owned(), vec![]),
        // An id that only draft-04 knows makes no resource.
        (
            r#"{"id":"urn:a","$schema":"urn:unknown","items":5}"#.to_owned(),
            vec![("/$defs/a/items", Kind::MetaSchema)],
        ),
    ] {
        let schema = whole(&inside);
        let judgement = judged(&schema, Speaker::Modern);
        let meta: Vec<_> =
            kinds(&judgement).into_iter().filter(|(_, kind)| *kind == Kind::MetaSchema).collect();
        assert_eq!(meta, found, "{schema}");
    }
}

/// C62: what the validator cannot read is said, and is no way round the meta-schema.
#[test]
fn what_cannot_be_read_is_a_note() {
    for odd in [r#""maximum":1e400"#, r#""const":"\ud800""#, r#""\udc00":1"#] {
        let found = |kind| {
            let judgement = judged(&format!(r#"{{"type":{kind},{odd}}}"#), Speaker::Modern);
            judgement
                .findings
                .iter()
                .map(|finding| (finding.at.to_string(), finding.kind))
                .collect::<Vec<_>>()
        };
        let note = (String::new(), Kind::Unreadable);
        assert_eq!(found("\"string\""), std::slice::from_ref(&note), "{odd}");
        assert_eq!(found("5"), [note, ("/type".to_owned(), Kind::MetaSchema)], "{odd}");
    }
}

#[test]
fn parts_are_cut_out_of_each_other() {
    let text = br#"{"a":{"b":{},"c":{}},"d":{}}"#;
    let span = |part: &[u8], from: usize| {
        let start = from + memmem::find(&text[from..], part).unwrap();
        Span::new(start, start + part.len())
    };
    let own = |span| Own { span, dialect: None };
    let inside = [
        own(span(br#"{"b":{},"c":{}}"#, 0)),
        own(span(b"{}", 0)),
        own(span(b"{}", 12)),
        own(span(b"{}", 21)),
    ];
    let pieces = cut(text, Span::new(0, text.len()), &inside);
    let pieces: Vec<&str> = pieces.iter().map(|piece| std::str::from_utf8(piece).unwrap()).collect();
    assert_eq!(pieces, [r#"{"a":{},"d":{}}"#, r#"{"b":{},"c":{}}"#, "{}", "{}", "{}"]);
}
