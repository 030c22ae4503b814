//! `x-mcp-header`: the parameters of a tool that headers repeat.
//!
//! Owns reading the annotations of an `inputSchema` and the constraints that the specification puts on them: type, position,
//! token syntax, unique without case. Does not own the headers of a call (`translate::legacy_client::mirror`).
//! Rules: A5.10; vector D78; case C67; spec basic/transports/streamable-http, "Custom Headers from Tool Parameters".

use super::finding::{Finding, Kind};
use super::pointer;
use super::walk::{Place, Way, walk};
use crate::wire::headers::MCP_PARAM_PREFIX;
use crate::wire::json::{Object, once};
use crate::wire::jsonrpc::string;
use http::HeaderName;
use memchr::memmem;
use std::collections::HashSet;

pub(crate) const ANNOTATION: &str = "x-mcp-header";

/// Annotations of one tool: what is known of it is kept.
pub(crate) const MOST: usize = 128;

/// Findings of one tool's annotations that are worth telling.
const MOST_FINDINGS: usize = 16;

/// The parameters of one tool that headers repeat.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mirrors(Box<[Mirror]>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirror {
    pub header: HeaderName,
    /// Names of members, from `arguments` inwards.
    pub path: Box<[Box<str>]>,
}

impl Mirrors {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Mirror> {
        self.0.iter()
    }
}

/// The annotations of the `inputSchema` at `schema`; none if any of them is invalid, since then the tool is.
pub fn of(text: &[u8], schema: &Object) -> Mirrors {
    read(text, schema).unwrap_or_default()
}

/// The annotations, or what is wrong with them: findings without a tool, pointers within the schema.
pub(crate) fn read(text: &[u8], schema: &Object) -> Result<Mirrors, Vec<Finding>> {
    if !may_be_annotated(schema.span.of(text)) {
        return Ok(Mirrors::default());
    }
    let mut found = Found::default();
    walk(text, schema.span, Place::of, |here, way| {
        if found.findings.len() < MOST_FINDINGS
            && here.first(text, ANNOTATION).is_some()
            && let Err((kind, detail)) = found.annotation(text, here, way)
        {
            let mut at = pointer::to(text, schema.span, here.span.start);
            pointer::step(&mut at, ANNOTATION);
            found.findings.push(Finding::new("", at, kind, &detail));
        }
    });
    if found.findings.is_empty() { Ok(Mirrors(found.mirrors.into())) } else { Err(found.findings) }
}

/// A quick look, so that ordinary lists are not walked: the name itself, or escapes that could spell it.
pub(crate) fn may_be_annotated(schema: &[u8]) -> bool {
    memmem::find(schema, b"mcp-header").is_some() || memmem::find(schema, b"\\u").is_some()
}

/// What a walk over the schemas of one tool has found.
#[derive(Default)]
struct Found {
    seen: HashSet<HeaderName>,
    mirrors: Vec<Mirror>,
    findings: Vec<Finding>,
    full: bool,
}

impl Found {
    fn annotation(&mut self, text: &[u8], schema: &Object, way: Way<'_>) -> Result<(), (Kind, String)> {
        let value = schema.first(text, ANNOTATION).map(|span| span.of(text)).unwrap_or_default();
        let wrong = |kind| (kind, String::from_utf8_lossy(value).into_owned());
        let path = way.properties().filter(|path| !path.is_empty());
        let path = path.ok_or_else(|| wrong(Kind::HeaderPlace))?;
        let name = once(schema, text, ANNOTATION).and_then(|span| string(text, span));
        let name = name.filter(|name| !name.is_empty()).ok_or_else(|| wrong(Kind::HeaderName))?;
        // A header's name may have the very characters that the specification wants (RFC 9110, `tchar`).
        let header = HeaderName::from_bytes(format!("{MCP_PARAM_PREFIX}{name}").as_bytes());
        let header = header.map_err(|_| wrong(Kind::HeaderName))?;
        let kind = once(schema, text, "type").and_then(|span| string(text, span));
        if !kind.is_some_and(|kind| matches!(&*kind, "integer" | "string" | "boolean")) {
            let stated = schema.first(text, "type").map(|span| span.of(text)).unwrap_or_default();
            return Err((Kind::HeaderType, String::from_utf8_lossy(stated).into_owned()));
        }
        if !self.seen.insert(header.clone()) {
            return Err(wrong(Kind::HeaderTwice));
        }
        if self.mirrors.len() == MOST {
            // Said once.
            return if std::mem::replace(&mut self.full, true) {
                Ok(())
            } else {
                Err(wrong(Kind::TooManyHeaders))
            };
        }
        self.mirrors.push(Mirror { header, path: path.into() });
        Ok(())
    }
}

#[cfg(test)]
#[path = "header_tests.rs"]
mod tests;
