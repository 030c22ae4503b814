//! The verdict on one schema, whatever it is the schema of.
//!
//! Owns the order of things: the guard's own walk (`refs`), then the meta-schema (`meta`) of what the walk found to be within
//! bounds and not plainly valid, and, where no dialect is declared and none is said to be the default, the older dialects in turn (A5.4). Resources
//! inside that declare a dialect of their own are held against their own meta-schema. Does not own what the root must be
//! (`tool`). Rules: A5.4, B6.8; cases C62, C64; vectors D65, D67, D68.

use super::finding::{Finding, Kind};
use super::pointer;
use super::walk::{Place, walk};
use super::{Dialect, Rules, meta, readable, refs};
use crate::wire::json::{Span, UNBOUNDED, object, once};
use crate::wire::jsonrpc::string;
use memchr::memmem;
use serde_json::Value;

/// What is said of one schema. Pointers are within it, and no finding has a tool.
#[derive(Debug, Default)]
pub(super) struct Judgement {
    pub(super) findings: Vec<Finding>,
    /// The dialect that it is read in; `None`: it is not known.
    pub(super) dialect: Option<Dialect>,
    /// The same, where the schema does not declare it and should (A5.4).
    pub(super) undeclared: Option<Dialect>,
}

/// What a schema may be that does not say so, the newest first: whoever wrote it knew no newer one.
const OLDER: [Dialect; 2] = [Dialect::Draft7, Dialect::Draft4];

/// Judges the schema at `span` of `text`, an object or a boolean.
pub(super) fn judge(text: &[u8], span: Span, rules: &Rules<'_>) -> Judgement {
    let walked = refs::walk(text, span, Dialect::DEFAULT, rules);
    let mut judgement = Judgement { findings: walked.findings, dialect: walked.dialect, undeclared: None };
    if walked.plain {
        return judgement;
    }
    let Some(dialect) =
        walked.dialect.filter(|_| judgement.findings.iter().all(|finding| !is_bound(finding.kind)))
    else {
        return judgement;
    };
    let (parts, odd) = match parts(text, span, dialect) {
        Ok(parts) => parts,
        Err(why) => {
            judgement.findings.push(Finding::new("", "", Kind::Unreadable, &why));
            return judgement;
        }
    };
    judgement.findings.extend(odd.map(|why| Finding::new("", "", Kind::Unreadable, &why)));
    let Some(fault) = parts.iter().find_map(|part| part.fault(text, span)) else { return judgement };
    if !rules.speaker.has_default_dialect()
        && !declares(text, span)
        && let Some(older) = OLDER.into_iter().find(|older| parts.iter().all(|part| part.fits(*older)))
    {
        judgement.findings = refs::walk(text, span, older, rules).findings;
        judgement.findings.push(Finding::new("", "", Kind::DialectAdded, older.name()));
        (judgement.dialect, judgement.undeclared) = (Some(older), Some(older));
        return judgement;
    }
    judgement.findings.push(fault);
    judgement
}

/// Whether the finding says that there is more than is to be looked at.
pub(super) fn is_bound(kind: Kind) -> bool {
    matches!(kind, Kind::Depth | Kind::Subschemas | Kind::Bytes | Kind::References | Kind::Time)
}

/// Whether the schema says anything of its dialect.
fn declares(text: &[u8], span: Span) -> bool {
    object(text, span, UNBOUNDED).is_some_and(|root| root.first(text, "$schema").is_some())
}

/// A resource without those inside it that have a dialect of their own.
struct Part {
    /// Where it begins in the text.
    start: u32,
    schema: Value,
    /// `None`: that of the whole, which may turn out to be another.
    own: Option<Dialect>,
    of_root: Dialect,
}

impl Part {
    /// `root` is the whole.
    fn fault(&self, text: &[u8], root: Span) -> Option<Finding> {
        let dialect = self.own.unwrap_or(self.of_root);
        // Hardly ever is there a fault, and it costs much more to say which.
        if meta::fits(&self.schema, dialect) {
            return None;
        }
        let (at, what) = meta::fault(&self.schema, dialect)?;
        let outer = pointer::to(text, root, self.start);
        Some(Finding::new(
            "",
            pointer::within(&outer, &at),
            Kind::MetaSchema,
            &format!("{}: {what}", dialect.name()),
        ))
    }

    /// Whether it would be valid if the whole were of `dialect`.
    fn fits(&self, dialect: Dialect) -> bool {
        meta::fits(&self.schema, self.own.unwrap_or(dialect))
    }
}

/// The parts of the schema, the whole first, and what in them the reader cannot read as it is. `Err`: why it cannot read it at all.
fn parts(text: &[u8], span: Span, dialect: Dialect) -> Result<(Vec<Part>, Option<String>), String> {
    let own = own_dialects(text, span);
    let mut odd = None;
    if own.is_empty() {
        let schema = value(span.of(text), &mut odd)?;
        return Ok((vec![Part { start: span.start, schema, own: None, of_root: dialect }], odd));
    }
    let mut parts = Vec::new();
    for (index, piece) in cut(text, span, &own).into_iter().enumerate() {
        let (start, own) = match index.checked_sub(1).and_then(|index| own.get(index)) {
            None => (span.start, None),
            // Of a dialect that is not known.
            Some(Own { dialect: None, .. }) => continue,
            Some(own) => (own.span.start, own.dialect),
        };
        parts.push(Part { start, schema: value(&piece, &mut odd)?, own, of_root: dialect });
    }
    Ok((parts, odd))
}

/// Where there is something that the reader has no value for, another of its kind is read in its place: what no meta-schema minds
/// is no way round it. `odd` is why.
fn value(text: &[u8], odd: &mut Option<String>) -> Result<Value, String> {
    serde_json::from_slice(text).or_else(|error| {
        *odd = Some(error.to_string());
        serde_json::from_slice(&readable::as_readable(text)).map_err(|error| error.to_string())
    })
}

/// A resource with a dialect of its own.
struct Own {
    span: Span,
    /// `None`: not a known one.
    dialect: Option<Dialect>,
}

/// The resources below the root that declare their dialect, in the order of the text, outer ones before inner ones.
fn own_dialects(text: &[u8], root: Span) -> Vec<Own> {
    let mut found = Vec::new();
    let part = root.of(text);
    // Nearly always at the root alone.
    if memmem::find_iter(part, b"$schema\"").nth(1).is_none() && memmem::find(part, b"\\u").is_none() {
        return found;
    }
    walk(text, root, Place::of, |schema, _| {
        let stated = |name: &str| once(schema, text, name).and_then(|span| string(text, span));
        if schema.span == root {
            return;
        }
        let Some(uri) = stated("$schema") else { return };
        let dialect = Dialect::parse(&uri);
        // By the id that its own dialect knows, as the walk over references has it.
        let id = if dialect == Some(Dialect::Draft4) { "id" } else { "$id" };
        let alone = dialect.is_some_and(refs::ref_stands_alone) && stated("$ref").is_some();
        if stated(id).is_some() && !alone {
            found.push(Own { span: schema.span, dialect });
        }
    });
    found.sort_by_key(|own| own.span.start);
    found
}

/// The text at `root` and of each of `own`, with an empty schema in the place of each one inside.
fn cut(text: &[u8], root: Span, own: &[Own]) -> Vec<Vec<u8>> {
    let mut done = vec![Vec::new(); own.len() + 1];
    // What is still open: which one, and how far it is written.
    let mut open = vec![(0, root, root.start)];
    for (index, inner) in own.iter().enumerate() {
        while let Some((outer, span, from)) = open.pop() {
            if span.end > inner.span.start {
                done[outer].extend_from_slice(Span { start: from, end: inner.span.start }.of(text));
                done[outer].extend_from_slice(b"{}");
                open.push((outer, span, inner.span.end));
                break;
            }
            done[outer].extend_from_slice(Span { start: from, end: span.end }.of(text));
        }
        open.push((index + 1, inner.span, inner.span.start));
    }
    for (outer, span, from) in open {
        done[outer].extend_from_slice(Span { start: from, end: span.end }.of(text));
    }
    done
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
