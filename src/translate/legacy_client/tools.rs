//! A modern server's tools as a legacy client is to see them, and what is to be known of each when it is called.
//!
//! Owns the list: tools that are left out by the guard's verdict, or that this client may not call (`mirror`), and output
//! schemas in the form that the revision has (`output`). Does not own the verdict (`schema`), nor keeping what is known.
//! Rules: A5, A4.18, B6; vectors D57-D59, D62, D78; cases C65, C67.

use super::output::{self, Output};
use super::result::{ends_in_null, under_id};
use crate::schema::edit::OBJECT_ROOT;
use crate::schema::header::{self, Mirrors};
use crate::schema::sift::Sift;
use crate::schema::tool::{Judged, Shape};
use crate::translate::result::{Unreadable, readable};
use crate::wire::json::{Kind, Object, Span, Splice, UNBOUNDED, object, once};
use crate::wire::jsonrpc::{Body, Id, Response};
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
    sift: &Sift,
) -> Result<Listed, Unreadable> {
    let text = &response.text;
    readable(text, body, Method::ToolsList)?;
    let last = ends_in_null(text, body);
    let mut splice = under_id(response, body, id, |name| last && name == "nextCursor", String::new());
    let page = Page { text, revision, sift };
    let mut names = HashSet::new();
    // Of two tools of one name it cannot be said which a call means.
    let stays: Vec<bool> = sift
        .tools()
        .iter()
        .map(|judged| page.stays(judged) && names.insert(judged.name.as_deref()))
        .collect();
    let mut tools = Vec::with_capacity(stays.len());
    for (judged, _) in sift.tools().iter().zip(&stays).filter(|(_, stays)| **stays) {
        tools.extend(page.one(&mut splice, judged));
    }
    let spans: Vec<Span> = sift.tools().iter().map(|judged| sift.at(judged.span)).collect();
    splice.retain(&spans, |index| stays.get(index).is_some_and(|stays| *stays));
    let cursor = once(&body.object, text, "nextCursor");
    let cursor = cursor.filter(|span| Kind::of(span.of(text)) == Some(Kind::String));
    Ok(Listed {
        message: splice.finish(),
        tools,
        cursor: cursor.map(|span| Bytes::copy_from_slice(span.of(text))),
    })
}

/// A walk over one page.
struct Page<'a> {
    text: &'a Bytes,
    revision: LegacyRevision,
    sift: &'a Sift,
}

impl Page<'_> {
    /// The proxy would be the one to build headers from its annotations.
    fn stays(&self, judged: &Judged) -> bool {
        self.sift.stays(judged) && !judged.headers_invalid
    }

    /// Edits one that stays.
    fn one(&self, splice: &mut Splice<'_>, judged: &Judged) -> Option<Tool> {
        let text = self.text;
        let tool = object(text, self.sift.at(judged.span), UNBOUNDED)?;
        let schema = object(text, self.sift.at(judged.input?), UNBOUNDED)?;
        let mirrors = header::of(text, &schema);
        let add = if judged.shape == Shape::Untyped { OBJECT_ROOT } else { "" };
        splice.rewrite(&schema, |_| true, add);
        booleans(splice, text, &schema);
        let output = self.output(splice, &tool);
        Some(Tool { name: judged.name.clone()?, output, mirrors })
    }

    /// Puts the output schema in the client's form, and takes out what has no meaning there.
    fn output(&self, splice: &mut Splice<'_>, tool: &Object) -> Output {
        let text = self.text;
        let span = once(tool, text, "outputSchema");
        let output = span.and_then(|span| output::of(text, span)).unwrap_or_default();
        let drop = output == Output::Unstated || self.revision < LegacyRevision::V2025_06_18;
        splice.rewrite(
            tool,
            |member| !(member.is(text, "execution") || drop && member.is(text, "outputSchema")),
            "",
        );
        match span.filter(|_| !drop) {
            Some(span) if output == Output::Wrapped => output::wrap(splice, text, span),
            Some(span) if output == Output::Object => {
                let root = object(text, span, UNBOUNDED);
                root.into_iter().for_each(|root| booleans(splice, text, &root));
            }
            Some(_) | None => {}
        }
        output
    }
}

/// Schemas of a root's properties are objects in every legacy revision, and a client that minds it refuses the whole list: a
/// boolean is written as the object that means the same (invariant 6).
fn booleans(splice: &mut Splice<'_>, text: &Bytes, root: &Object) {
    let properties = once(root, text, "properties").and_then(|span| object(text, span, UNBOUNDED));
    for member in properties.iter().flat_map(|properties| &properties.members) {
        if let Some(same) = output::of_boolean(member.value.of(text)) {
            splice.replace(member.value, same);
        }
    }
}

#[cfg(test)]
#[path = "tools_tests.rs"]
mod tests;
