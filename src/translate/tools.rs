//! The tools of a legacy `tools/list` result as a modern client is to see them.
//!
//! Owns: what has no meaning there is taken out (`execution`, `x-mcp-header`), a root without a type is repaired, and
//! a tool whose `inputSchema` no revision allows is left out with a finding. Judging schemas any further (references,
//! dialects, bounds) is the schema guard's work. Rules: A5.3, A5.8, A5.10, A5.11; vectors D55, D56; case C65.

use super::legacy_client::mirror;
use crate::schema::walk::{Place, walk};
use crate::wire::json::{Kind, Object, Span, Splice, UNBOUNDED, items, object, once};
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
    /// Of a modern server's.
    #[error("left out: {0}")]
    Header(mirror::Invalid),
    #[error("left out: another tool of the list has the same name")]
    NameTwice,
    #[error("kept without its outputSchema, which is no schema")]
    NoOutputSchema,
}

/// Edits `result.tools`; anything but an array of tools is left as it is.
pub fn rewrite(splice: &mut Splice<'_>, text: &Bytes, result: &Object) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some(tools) = result.first(text, "tools") else { return findings };
    if Kind::of(tools.of(text)) != Some(Kind::Array) {
        return findings;
    }
    let items = items(text, tools);
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
    let Some(tool) = object(text, span, UNBOUNDED) else {
        report("", FindingKind::NoName);
        return false;
    };
    let Some(name) = once(&tool, text, "name").and_then(|span| string(text, span)) else {
        report("", FindingKind::NoName);
        return false;
    };
    let Some(schema) = once(&tool, text, "inputSchema").and_then(|span| object(text, span, UNBOUNDED)) else {
        report(&name, FindingKind::NoSchema);
        return false;
    };
    let add = match root(text, &schema) {
        Root::Object => "",
        Root::Unsaid => {
            report(&name, FindingKind::Repaired);
            OBJECT_ROOT
        }
        Root::Other => {
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

/// What a root that says nothing of its instance gets (A5.3).
pub(super) const OBJECT_ROOT: &str = "\"type\":\"object\"";

/// What an `inputSchema` says of its instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Root {
    Object,
    /// Nothing at all.
    Unsaid,
    /// Something that no revision allows.
    Other,
}

pub(super) fn root(text: &[u8], schema: &Object) -> Root {
    match schema.get(text, "type") {
        Ok(Some(kind)) if string(text, kind).is_some_and(|kind| kind == "object") => Root::Object,
        Ok(None) if schema.members.iter().all(|member| says_nothing(member.name(text).as_deref())) => {
            Root::Unsaid
        }
        Ok(_) | Err(_) => Root::Other,
    }
}

fn needs_task(tool: &Object, text: &Bytes) -> bool {
    let execution = once(tool, text, "execution").and_then(|span| object(text, span, UNBOUNDED));
    let support = execution.and_then(|execution| string(text, once(&execution, text, "taskSupport")?));
    support.is_some_and(|support| support == "required")
}

pub(super) const ANNOTATION: &str = "x-mcp-header";

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
pub(super) fn may_be_annotated(schema: &[u8]) -> bool {
    memmem::find(schema, b"mcp-header").is_some() || memmem::find(schema, b"\\u").is_some()
}

/// Takes the annotation out wherever a schema may stand below `root`, and nowhere else: in `const`, `default`,
/// `enum`, `examples` it is data, under `properties` a property's name.
fn strip_annotations(splice: &mut Splice<'_>, text: &Bytes, root: &Object) {
    walk(text, root.span, Place::of, |schema, _| {
        // The root itself has its edits already.
        if schema.span != root.span && schema.first(text, ANNOTATION).is_some() {
            splice.rewrite(schema, |member| !member.is(text, ANNOTATION), "");
        }
    });
}
