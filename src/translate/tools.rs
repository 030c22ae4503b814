//! The tools of a legacy `tools/list` result as a modern client is to see them.
//!
//! Owns the edits: tools that are left out by the guard's verdict, what has no meaning there (`execution`, `x-mcp-header`), a
//! root without a type and an undeclared dialect, which are mended. Does not own the verdict (`schema`).
//! Rules: A5.3, A5.4, A5.8, A5.10, A5.11; vectors D55, D56, D65; case C65.

use crate::schema::edit::OBJECT_ROOT;
use crate::schema::header::{ANNOTATION, may_be_annotated};
use crate::schema::sift::Sift;
use crate::schema::tool::{Judged, Shape};
use crate::schema::walk::{Place, walk};
use crate::schema::{Dialect, Finding, Kind};
use crate::wire::json::{Object, Span, Splice, UNBOUNDED, object, once};
use crate::wire::jsonrpc::string;
use bytes::Bytes;

/// Edits `result.tools`. What is found on the way that only this direction minds.
pub fn rewrite(splice: &mut Splice<'_>, text: &Bytes, sift: &Sift) -> Vec<Finding> {
    let mut findings = Vec::new();
    let spans: Vec<Span> = sift.tools().iter().map(|judged| sift.at(judged.span)).collect();
    for judged in sift.tools().iter().filter(|judged| sift.stays(judged)) {
        findings.extend(one(splice, text, sift, judged));
    }
    splice.retain(&spans, |index| sift.tools().get(index).is_some_and(|judged| sift.stays(judged)));
    findings
}

/// Edits one that stays.
fn one(splice: &mut Splice<'_>, text: &Bytes, sift: &Sift, judged: &Judged) -> Option<Finding> {
    let tool = object(text, sift.at(judged.span), UNBOUNDED)?;
    let null = judged.output.is_some_and(|span| sift.at(span).of(text) == b"null");
    let keep = |name: &str| !(name == "execution" || null && name == "outputSchema");
    splice.rewrite(&tool, |member| member.name(text).is_none_or(|name| keep(&name)), "");
    if let Some(schema) = judged.input.and_then(|span| object(text, sift.at(span), UNBOUNDED)) {
        let annotated = may_be_annotated(schema.span.of(text));
        let add = added(judged.shape, judged.undeclared[0]);
        splice.rewrite(&schema, |member| !(annotated && member.is(text, ANNOTATION)), add);
        if annotated {
            strip_annotations(splice, text, &schema);
        }
    }
    if let (Some(dialect), Some(span)) = (judged.undeclared[1], judged.output)
        && let Some(schema) = object(text, sift.at(span), UNBOUNDED)
    {
        splice.rewrite(&schema, |_| true, added(Shape::Sound, Some(dialect)));
    }
    let name = judged.name.as_deref().unwrap_or_default();
    needs_task(&tool, text).then(|| Finding::new(name, "/execution/taskSupport", Kind::NeedsTask, ""))
}

/// What is written at the root of a schema.
fn added(shape: Shape, undeclared: Option<Dialect>) -> String {
    let kind = (shape == Shape::Untyped).then(|| OBJECT_ROOT.to_owned());
    let dialect = undeclared.map(|dialect| format!("\"$schema\":\"{}\"", dialect.uri()));
    [dialect, kind].into_iter().flatten().collect::<Vec<_>>().join(",")
}

fn needs_task(tool: &Object, text: &Bytes) -> bool {
    let execution = once(tool, text, "execution").and_then(|span| object(text, span, UNBOUNDED));
    let support = execution.and_then(|execution| string(text, once(&execution, text, "taskSupport")?));
    support.is_some_and(|support| support == "required")
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
