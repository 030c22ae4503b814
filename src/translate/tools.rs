//! The tools of a legacy `tools/list` result as a modern client is to see them.
//!
//! Owns: what has no meaning there is taken out (`execution`, `x-mcp-header`), a root without a type is repaired, and
//! a tool whose `inputSchema` no revision allows is left out with a finding. Judging schemas any further (references,
//! dialects, bounds) is the schema guard's work. Rules: A5.3, A5.8, A5.10, A5.11; vectors D55, D56; case C65.

use super::declared::object;
use crate::wire::json::{Cursor, Kind, Limits, Object, Span, Splice};
use crate::wire::jsonrpc::string;
use bytes::Bytes;
use memchr::memmem;

/// Something about one tool that the operator should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The tool's name as far as it has one.
    pub tool: String,
    pub kind: FindingKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FindingKind {
    #[error("left out: the tool is not an object with a name")]
    NoName,
    #[error("left out: inputSchema is missing or not an object")]
    NoSchema,
    #[error("left out: the root type of inputSchema is not \"object\"")]
    RootType,
    #[error("repaired: inputSchema has no root type, \"type\":\"object\" was added")]
    Repaired,
    #[error("kept, but calls of it fail: it asks for tasks (execution.taskSupport), which are not bridged")]
    NeedsTask,
}

/// What the walk must see whole, whatever the bounds of the messages are: sizes are bounded by the message's own.
const ALL: Limits = Limits { nesting: usize::MAX, members: usize::MAX };

/// Edits `result.tools`; anything but an array of tools is left as it is.
pub fn rewrite(splice: &mut Splice<'_>, text: &Bytes, result: &Object) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some(tools) = result.first(text, "tools") else { return findings };
    let mut items = Vec::new();
    let mut cursor = Cursor::on_prefix(tools.of(text), ALL);
    let read = cursor.array(|cursor| {
        let item = cursor.skip()?;
        items.push(Span { start: item.start + tools.start, end: item.end + tools.start });
        Ok(())
    });
    if read.is_err() {
        return findings;
    }
    let mut keep = Vec::with_capacity(items.len());
    for &item in &items {
        keep.push(one(splice, text, item, &mut findings));
    }
    splice.retain(&items, |index| keep[index]);
    findings
}

/// Whether the tool stays. Edits are made only in one that does.
fn one(splice: &mut Splice<'_>, text: &Bytes, span: Span, findings: &mut Vec<Finding>) -> bool {
    let mut report =
        |tool: &str, kind| findings.push(Finding { tool: tool.chars().take(128).collect(), kind });
    let Some(tool) = object(text, span, ALL) else {
        report("", FindingKind::NoName);
        return false;
    };
    let Some(name) = once(&tool, text, "name").and_then(|span| string(text, span)) else {
        report("", FindingKind::NoName);
        return false;
    };
    let Some(schema) = once(&tool, text, "inputSchema").and_then(|span| object(text, span, ALL)) else {
        report(&name, FindingKind::NoSchema);
        return false;
    };
    let add = match schema.get(text, "type").unwrap_or(Some(Span::default())).map(|span| string(text, span)) {
        Some(Some(kind)) if kind == "object" => "",
        Some(_) => {
            report(&name, FindingKind::RootType);
            return false;
        }
        None if schema.members.iter().all(|member| says_nothing(member.name(text).as_deref())) => {
            report(&name, FindingKind::Repaired);
            "\"type\":\"object\""
        }
        None => {
            report(&name, FindingKind::RootType);
            return false;
        }
    };
    if needs_task(&tool, text) {
        report(&name, FindingKind::NeedsTask);
    }
    splice.rewrite(&tool, |member| !member.is(text, "execution"), "");
    let annotated = may_be_annotated(schema.span.of(text));
    splice.rewrite(&schema, |member| !(annotated && member.is(text, ANNOTATION)), add);
    if annotated {
        strip_annotations(splice, text, &schema);
    }
    true
}

/// The member's value; a member that occurs twice has none, since two readers could take either.
fn once(object: &Object, text: &Bytes, name: &str) -> Option<Span> {
    object.get(text, name).ok().flatten()
}

fn needs_task(tool: &Object, text: &Bytes) -> bool {
    let execution = once(tool, text, "execution").and_then(|span| object(text, span, ALL));
    let support = execution.and_then(|execution| string(text, once(&execution, text, "taskSupport")?));
    support.is_some_and(|support| support == "required")
}

const ANNOTATION: &str = "x-mcp-header";

/// Keywords beside which a root without `type` still says nothing of its instance (A5.3).
fn says_nothing(name: Option<&str>) -> bool {
    matches!(
        name,
        Some(
            "$schema"
                | "$id"
                | "$comment"
                | "title"
                | "description"
                | "examples"
                | "default"
                | "deprecated"
                | ANNOTATION
        )
    )
}

/// A quick look, so that ordinary lists are not walked: the name itself, or escapes that could spell it.
fn may_be_annotated(schema: &[u8]) -> bool {
    memmem::find(schema, b"mcp-header").is_some() || memmem::find(schema, b"\\u").is_some()
}

/// What stands at a place of a schema that holds further schemas.
#[derive(Clone, Copy)]
enum Place {
    Schema,
    /// An object whose values are schemas, under names that mean nothing.
    Map,
    Array,
}

/// Takes the annotation out wherever a schema may stand below `root`, and nowhere else: in `const`, `default`,
/// `enum`, `examples` it is data, under `properties` a property's name. Uses a list of places in place of recursion.
fn strip_annotations(splice: &mut Splice<'_>, text: &Bytes, root: &Object) {
    let mut open = below(text, root);
    while let Some((span, place)) = open.pop() {
        match place {
            Place::Array => {
                let mut cursor = Cursor::on_prefix(span.of(text), ALL);
                // The text was scanned before, so it reads to its end.
                let _ = cursor.array(|cursor| {
                    let item = cursor.skip()?;
                    open.push((
                        Span { start: item.start + span.start, end: item.end + span.start },
                        Place::Schema,
                    ));
                    Ok(())
                });
            }
            Place::Map => {
                let Some(map) = object(text, span, ALL) else { continue };
                open.extend(map.members.iter().map(|member| (member.value, Place::Schema)));
            }
            Place::Schema => {
                let Some(schema) = object(text, span, ALL) else { continue };
                splice.rewrite(&schema, |member| !member.is(text, ANNOTATION), "");
                open.extend(below(text, &schema));
            }
        }
    }
}

fn below(text: &Bytes, schema: &Object) -> Vec<(Span, Place)> {
    let place = |name: &str, value: Span| {
        let array = Kind::of(value.of(text)) == Some(Kind::Array);
        Some(match name {
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
            | "dependencies" => Place::Map,
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => Place::Array,
            "items" if array => Place::Array,
            "items"
            | "additionalItems"
            | "additionalProperties"
            | "contains"
            | "propertyNames"
            | "not"
            | "if"
            | "then"
            | "else"
            | "unevaluatedItems"
            | "unevaluatedProperties"
            | "contentSchema" => Place::Schema,
            _ => return None,
        })
    };
    let of = |member: &crate::wire::json::Member| {
        let name = member.name(text)?;
        Some((member.value, place(&name, member.value)?))
    };
    schema.members.iter().filter_map(of).collect()
}
