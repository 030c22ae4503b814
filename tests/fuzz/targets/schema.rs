//! The schema guard's judgement of any schema: no panic, nothing without bound, and what it finds is there.
//!
//! The input is a JSON text as it stands, or makes one out of keywords that bear on references, so that few inputs are wasted on
//! schemas that refer to nothing. serde_json is the second opinion on what JSON pointers lead to, and the meta-schemas on what is
//! plainly valid.

#![no_main]

use bytes::Bytes;
use jsonschema::{Draft, Validator};
use libfuzzer_sys::fuzz_target;
use mcp_janus_fuzz::schema::refs::{Outcome, Walked, walk};
use mcp_janus_fuzz::schema::{Bounds, Dialect, Documents, Finding, Kind, Rules, Speaker, Weight, list};
use mcp_janus_fuzz::wire::json::{Cursor, Limits, Mark, ScanFault, Scanner, Span, compact};
use serde_json::{Value, json};
use std::sync::OnceLock;
use std::time::Duration;

static META: [OnceLock<Validator>; 3] = [const { OnceLock::new() }; 3];

const LIMITS: Limits = Limits { nesting: 64, members: usize::MAX };

const KEYS: [&str; 48] = [
    "$ref",
    "$ref",
    "$ref",
    "$id",
    "id",
    "$schema",
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$recursiveRef",
    "$recursiveAnchor",
    "$defs",
    "$defs",
    "definitions",
    "properties",
    "properties",
    "items",
    "allOf",
    "anyOf",
    "not",
    "if",
    "dependencies",
    "dependentSchemas",
    "enum",
    "default",
    "const",
    "x",
    "a",
    "b",
    "a/b",
    r"m~n",
    r"\u0024ref",
    "type",
    "type",
    "required",
    "required",
    "description",
    "pattern",
    "minimum",
    "minLength",
    "uniqueItems",
    "additionalProperties",
    "patternProperties",
    "prefixItems",
    "then",
    "contains",
    "title",
    "$comment",
];

const STRINGS: [&str; 36] = [
    "#",
    "",
    "#/$defs/a",
    "#/$defs/b",
    "#/definitions/a",
    "#/definitions/b",
    "#/properties/a",
    "#/items",
    "#/allOf/0",
    "#/anyOf/1",
    "#/x",
    "#/x/a",
    "#/$defs/a~1b",
    "#/$defs/m~0n",
    "#a",
    "#b",
    "a",
    "b",
    "a#/$defs/a",
    "b#a",
    "http://e.example/",
    "http://e.example/a",
    "http://d.example/doc",
    "http://d.example/doc#/definitions/a",
    "urn:a",
    "urn:a#a",
    "//host/x",
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "%zz#%41",
    r"\ud800",
    "object",
    "string",
    "null",
    "(",
];

fuzz_target!(|input: &[u8]| {
    let [choice, rest @ ..] = input else { return };
    let dialect = Dialect::ALL[usize::from(choice % 5)];
    let made;
    let text = if choice & 0x80 == 0 {
        rest
    } else {
        made = make(rest);
        made.as_bytes()
    };
    let Some(span) = scan(text) else { return };
    let documents = Documents::new([(
        "http://d.example/doc".into(),
        Bytes::from_static(
            br##"{"definitions":{"a":{"$ref":"#/definitions/b"},"b":{"items":{"$ref":"other"}}},"$id":"a"}"##,
        ),
    )]);
    // Small ones, so that they are met; and the clock says nothing that could be compared.
    let bounds =
        Bounds { depth: 24, subschemas: 64, bytes: 4096, references: 32, time: Duration::from_secs(3600) };
    let rules = Rules { speaker: Speaker::Modern, bounds: &bounds, documents: &documents };
    let walked = walk(text, span, dialect, &rules);
    check(span.of(text), &walked, &bounds);
    // White space and what stands around the schema make no difference.
    let padded = [b"[ ", &*compact(span.of(text)), b" ]"].concat();
    let again = walk(&padded, Span::new(2, padded.len() - 2), dialect, &rules);
    if !walked.findings.iter().any(|finding| finding.kind == Kind::Bytes) {
        assert_eq!(walked, again);
    }
    plain(span.of(text), &walked);
    tools(span.of(text), &rules);
});

fn scan(text: &[u8]) -> Option<Span> {
    let mut cursor = Cursor::new(text, LIMITS).ok()?;
    let span = cursor.skip().ok()?;
    cursor.end().ok()?;
    Some(span)
}

/// A schema by the input's bytes.
fn make(input: &[u8]) -> String {
    let mut bytes = input.iter().copied();
    let mut text = String::new();
    // `true`: an object that wants a name next.
    let mut open: Vec<bool> = Vec::new();
    loop {
        if let Some(object) = open.last() {
            let byte = bytes.next().unwrap_or(0);
            if byte < 40 || text.len() > 3000 {
                text.push(if *object { '}' } else { ']' });
                open.pop();
                if open.is_empty() {
                    return text;
                }
                continue;
            }
            if !text.ends_with(['{', '[']) {
                text.push(',');
            }
            if *object {
                text += &format!("\"{}\":", KEYS[usize::from(byte) % KEYS.len()]);
            }
        }
        match bytes.next().unwrap_or(0) {
            byte if byte >= 160 && open.len() < 30 || open.is_empty() => {
                text.push('{');
                open.push(true);
                if byte == 0 && open.len() == 1 {
                    return "{}".to_owned();
                }
            }
            byte if byte >= 130 && open.len() < 30 => {
                text.push('[');
                open.push(false);
            }
            byte if byte >= 10 => text += &format!("\"{}\"", STRINGS[usize::from(byte) % STRINGS.len()]),
            byte => text += ["true", "false", "1", "null", "-1e400", "-1.5"][usize::from(byte) % 6],
        }
    }
}

fn check(schema: &[u8], walked: &Walked, bounds: &Bounds) {
    assert!(walked.references.len() <= bounds.references + 8, "the document has two of its own");
    // serde_json keeps one of several members with one name.
    let value: Option<Value> =
        serde_json::from_slice(schema).ok().filter(|value| members(value) == names(schema));
    for at in
        walked.findings.iter().map(|finding| &finding.at).chain(walked.references.iter().map(|one| &one.at))
    {
        let Some(value) = value.as_ref().filter(|_| !at.contains(['…', '\u{fffd}'])) else { continue };
        assert!(value.pointer(at).is_some(), "{at} is nowhere in {}", schema.escape_ascii());
    }
    if walked.findings.iter().any(is_bound) || walked.findings.len() >= 100 {
        return;
    }
    for reference in &walked.references {
        let kind = match reference.outcome {
            Outcome::Local | Outcome::Embedded => continue,
            Outcome::Dangling => Kind::Dangling,
            Outcome::External => Kind::External,
        };
        let told = walked.findings.iter().any(|finding| finding.kind == kind && finding.at == reference.at);
        let unknown = walked.findings.iter().any(|finding| finding.kind == Kind::UnknownDialect);
        assert!(told || unknown, "{reference:?} in {}", schema.escape_ascii());
    }
}

/// Members of all objects of a value.
fn members(value: &Value) -> usize {
    match value {
        Value::Object(object) => object.len() + object.values().map(members).sum::<usize>(),
        Value::Array(items) => items.iter().map(members).sum(),
        _ => 0,
    }
}

/// Names of members in a text.
fn names(text: &[u8]) -> usize {
    let mut names = 0;
    let mut scanner = Scanner::new(usize::MAX, usize::MAX);
    let read = scanner.feed(text, &mut |_, _, mark| {
        names += usize::from(mark == Mark::KeyEnd);
        Ok::<_, ScanFault>(())
    });
    assert_eq!(read, Ok(()));
    names
}

/// What is plainly valid is valid by the meta-schema.
fn plain(schema: &[u8], walked: &Walked) {
    let Some(dialect) = walked.dialect.filter(|_| walked.plain) else {
        assert!(!walked.plain, "of an unknown dialect");
        return;
    };
    let (validator, draft) = match dialect {
        Dialect::Draft4 | Dialect::Draft6 => panic!("{dialect:?} is never plain"),
        Dialect::Draft7 => (&META[0], Draft::Draft7),
        Dialect::Draft2019 => (&META[1], Draft::Draft201909),
        Dialect::Draft2020 => (&META[2], Draft::Draft202012),
    };
    let validator = validator.get_or_init(|| {
        let schema = json!({"$schema": dialect.uri(), "$ref": dialect.uri()});
        let options = jsonschema::options().with_draft(draft).should_validate_formats(false);
        options.build(&schema).expect("the library knows its meta-schemas")
    });
    let value: Value = serde_json::from_slice(schema).expect("every reader can read it");
    if let Err(error) = validator.validate(&value) {
        panic!("{error} at {} in {}", error.instance_path(), schema.escape_ascii());
    }
}

/// Findings that end a walk.
fn is_bound(finding: &Finding) -> bool {
    matches!(finding.kind, Kind::Depth | Kind::Subschemas | Kind::Bytes | Kind::References | Kind::Time)
}

/// The schema as a tool's, beside one that is good.
fn tools(schema: &[u8], rules: &Rules<'_>) {
    let good = br#"{"name":"good","inputSchema":{"type":"object"}}"#;
    let bad = [br#"{"name":"any","inputSchema":"#, schema, br#","outputSchema":"#, schema, b"}"].concat();
    let list = [b"[", &*bad, b",", good, b"]"].concat();
    for speaker in [Speaker::Modern, Speaker::Legacy(None)] {
        let verdict = list::judge(&list, Span::new(0, list.len()), &Rules { speaker, ..*rules });
        assert_eq!(verdict.tools.len(), 2);
        assert_eq!(verdict.tools[1].span.of(&list), good);
        assert!(verdict.tools[1].findings.iter().all(|finding| finding.kind.weight() == Weight::Note));
    }
}
