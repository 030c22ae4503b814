//! Lists as readers of the same era are to see them, by rule, vector or case id.

use super::*;
use crate::schema::Finding;
use crate::schema::list::Verdict;
use crate::wire::json::items;
use std::sync::Arc;

/// A verdict on the tools of a list: of each its shape and what was found.
fn sift(text: &[u8], tools: Span, found: &[(Shape, Option<Kind>)], drop: bool) -> Sift {
    let relative = |span: Span| Span { start: span.start - tools.start, end: span.end - tools.start };
    let spans = items(text, tools);
    assert_eq!(spans.len(), found.len());
    let judged = |(span, (shape, kind)): (&Span, &(Shape, Option<Kind>))| {
        let tool = object(text, *span, UNBOUNDED).unwrap();
        let schema = |name: &str| tool.first(text, name).map(relative);
        Judged {
            name: Some("t".into()),
            shape: *shape,
            findings: kind.iter().map(|kind| Finding::new("t", "", *kind, "")).collect(),
            undeclared: [None, None],
            dialects: [None, None],
            headers_invalid: false,
            span: relative(*span),
            input: schema("inputSchema"),
            output: schema("outputSchema"),
        }
    };
    let verdict = Verdict { tools: spans.iter().zip(found).map(judged).collect() };
    Sift { verdict: Arc::new(verdict), base: tools.start, drop }
}

/// The list with that found of its tools.
fn edited(tools: &str, found: &[(Shape, Option<Kind>)], drop: bool) -> String {
    let before = r#"{"result":{"tools":"#;
    let text = Bytes::from(format!("{before}{tools}}}}}"));
    let span = Span::new(before.len(), before.len() + tools.len());
    let mut splice = Splice::new(&text);
    list(&mut splice, &text, &sift(&text, span, found, drop));
    let written = String::from_utf8(splice.finish().to_bytes().to_vec()).unwrap();
    written.strip_prefix(before).unwrap().strip_suffix("}}").unwrap().to_owned()
}

const GOOD: (Shape, Option<Kind>) = (Shape::Sound, None);
const BAD: (Shape, Option<Kind>) = (Shape::Sound, Some(Kind::External));
const UNFIT: (Shape, Option<Kind>) = (Shape::Unfit, Some(Kind::NoInputSchema));

#[test]
fn c62_c65_bad_tools_are_left_out_and_the_others_stay_byte_for_byte() {
    let three = r#"[ {"name":"a" , "n":1e400},{"name":"b"} ,  {"name":"c","u":"\u0041"}]"#;
    for (found, wanted) in [
        ([GOOD, GOOD, GOOD], three),
        ([GOOD, BAD, GOOD], r#"[ {"name":"a" , "n":1e400} ,  {"name":"c","u":"\u0041"}]"#),
        ([BAD, GOOD, GOOD], r#"[ {"name":"b"} ,  {"name":"c","u":"\u0041"}]"#),
        ([GOOD, GOOD, UNFIT], r#"[ {"name":"a" , "n":1e400},{"name":"b"}]"#),
        ([BAD, UNFIT, BAD], "[ ]"),
    ] {
        assert_eq!(edited(three, &found, true), wanted, "{found:?}");
        assert_eq!(edited(three, &found, false), three, "warn: {found:?}");
    }
}

#[test]
fn a5_3_a_root_that_says_nothing_gets_its_type() {
    let untyped = (Shape::Untyped, Some(Kind::TypeAdded));
    for (schema, wanted) in [
        ("{}", r#"{"type":"object"}"#),
        ("{ }", r#"{"type":"object" }"#),
        (r#"{"$schema":"x"}"#, r#"{"type":"object","$schema":"x"}"#),
        ("{\n \"title\":1}", "{\"type\":\"object\",\n \"title\":1}"),
    ] {
        let tools = |schema: &str| format!(r#"[{{"name":"a","inputSchema":{schema}}},{{"name":"b"}}]"#);
        assert_eq!(edited(&tools(schema), &[untyped, GOOD], true), tools(wanted));
        assert_eq!(edited(&tools(schema), &[untyped, GOOD], false), tools(schema), "warn");
    }
    // One that is left out has no edits of its own.
    let both = r#"[{"name":"a","inputSchema":{}},{"name":"b"}]"#;
    assert_eq!(edited(both, &[(Shape::Untyped, Some(Kind::MetaSchema)), GOOD], true), r#"[{"name":"b"}]"#);
}

#[test]
fn d56_an_output_schema_of_null_is_taken_out() {
    let null = (Shape::Sound, Some(Kind::NullOutput));
    let tools = r#"[{"name":"a","outputSchema":null,"inputSchema":{"outputSchema":null}}]"#;
    let wanted = r#"[{"name":"a","inputSchema":{"outputSchema":null}}]"#;
    assert_eq!(edited(tools, &[null], true), wanted);
    assert_eq!(edited(tools, &[null], false), tools);
    let both = r#"[{"inputSchema":{},"outputSchema":null}]"#;
    assert_eq!(
        edited(both, &[(Shape::Untyped, Some(Kind::NullOutput))], true),
        r#"[{"inputSchema":{"type":"object"}}]"#
    );
}
