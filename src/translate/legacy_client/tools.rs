//! A modern server's tools as a legacy client is to see them, and what is to be known of each when it is called.
//!
//! Owns the list: tools that no client can take, or that this one may not call (`mirror`), are left out with a finding;
//! output schemas are put in the form that the revision has (`output`). Does not own keeping what is known.
//! Rules: A5, A4.18, B6; vectors D57-D59, D62, D78; cases C65, C67.

use super::mirror::{self, Mirrors};
use super::output::{self, Output};
use super::result::{ends_in_null, under_id};
use crate::translate::result::{Unreadable, readable};
use crate::translate::tools::{Finding, FindingKind, OBJECT_ROOT, Root, root};
use crate::wire::json::{Kind, Object, Span, Splice, UNBOUNDED, items, object, once};
use crate::wire::jsonrpc::{Body, Id, Response, string};
use crate::wire::method::Method;
use crate::wire::payload::Payload;
use crate::wire::version::LegacyRevision;
use bytes::Bytes;
use std::collections::HashSet;

/// What a call of the tool needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    pub name: Box<str>,
    pub output: Output,
    pub mirrors: Mirrors,
}

/// One page of the list.
#[derive(Debug)]
pub struct Listed {
    pub message: Payload,
    pub findings: Vec<Finding>,
    /// Those that are in the message, in its order.
    pub tools: Vec<Tool>,
    /// `nextCursor` as the server wrote it, a JSON string.
    pub cursor: Option<Bytes>,
}

/// The whole message under the client's id.
pub fn list(
    response: &Response,
    body: &Body,
    id: &Id,
    revision: LegacyRevision,
) -> Result<Listed, Unreadable> {
    let text = &response.text;
    readable(text, body, Method::ToolsList)?;
    let last = ends_in_null(text, body);
    let mut splice = under_id(response, body, id, |name| last && name == "nextCursor", String::new());
    let spans = body.object.first(text, "tools").map(|span| items(text, span)).unwrap_or_default();
    let mut page = Page { text, revision, tools: Vec::new(), findings: Vec::new(), names: HashSet::new() };
    let mut keep = Vec::with_capacity(spans.len());
    for &span in &spans {
        let tool = page.one(&mut splice, span);
        keep.push(tool.is_some());
        page.tools.extend(tool);
    }
    splice.retain(&spans, |index| keep[index]);
    let cursor = once(&body.object, text, "nextCursor");
    let cursor = cursor.filter(|span| Kind::of(span.of(text)) == Some(Kind::String));
    let Page { tools, findings, .. } = page;
    Ok(Listed {
        message: splice.finish(),
        findings,
        tools,
        cursor: cursor.map(|span| Bytes::copy_from_slice(span.of(text))),
    })
}

/// A walk over one page.
struct Page<'a> {
    text: &'a Bytes,
    revision: LegacyRevision,
    tools: Vec<Tool>,
    findings: Vec<Finding>,
    names: HashSet<Box<str>>,
}

impl Page<'_> {
    /// `None`: the tool is left out. Edits are made only in one that stays.
    fn one(&mut self, splice: &mut Splice<'_>, span: Span) -> Option<Tool> {
        let text = self.text;
        let tool = object(text, span, UNBOUNDED);
        let name = tool.as_ref().and_then(|tool| string(text, once(tool, text, "name")?));
        let (Some(tool), Some(name)) = (tool, name) else {
            return self.left_out("", FindingKind::NoName);
        };
        let Some(schema) = once(&tool, text, "inputSchema").and_then(|span| object(text, span, UNBOUNDED))
        else {
            return self.left_out(&name, FindingKind::NoSchema);
        };
        let add = match root(text, &schema) {
            Root::Object => "",
            Root::Unsaid => OBJECT_ROOT,
            Root::Other => return self.left_out(&name, FindingKind::RootType),
        };
        let mirrors = match mirror::of(text, &schema) {
            Ok(mirrors) => mirrors,
            Err(invalid) => return self.left_out(&name, FindingKind::Header(invalid)),
        };
        // Which of the two a call means cannot be said.
        if !self.names.insert((*name).into()) {
            return self.left_out(&name, FindingKind::NameTwice);
        }
        if !add.is_empty() {
            self.report(&name, FindingKind::Repaired);
        }
        splice.rewrite(&schema, |_| true, add);
        let output = self.output(splice, &tool, &name);
        Some(Tool { name: (*name).into(), output, mirrors })
    }

    /// Puts the output schema in the client's form, and takes out what has no meaning there.
    fn output(&mut self, splice: &mut Splice<'_>, tool: &Object, name: &str) -> Output {
        let text = self.text;
        let stated = tool.first(text, "outputSchema").is_some();
        let span = once(tool, text, "outputSchema");
        let output = span.and_then(|span| output::of(text, span));
        if stated && output.is_none() {
            self.report(name, FindingKind::NoOutputSchema);
        }
        let output = output.unwrap_or_default();
        let drop = output == Output::Unstated || self.revision < LegacyRevision::V2025_06_18;
        splice.rewrite(
            tool,
            |member| !(member.is(text, "execution") || drop && member.is(text, "outputSchema")),
            "",
        );
        if let Some(span) = span.filter(|_| output == Output::Wrapped && !drop) {
            output::wrap(splice, text, span);
        }
        output
    }

    fn report(&mut self, tool: &str, kind: FindingKind) {
        self.findings.push(Finding { tool: tool.chars().take(128).collect(), kind });
    }

    fn left_out(&mut self, tool: &str, kind: FindingKind) -> Option<Tool> {
        self.report(tool, kind);
        None
    }
}

#[cfg(test)]
#[path = "tools_tests.rs"]
mod tests;
