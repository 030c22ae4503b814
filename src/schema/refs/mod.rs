//! Every reference of a schema, and what it resolves to.
//!
//! Owns the guard's own walk over one schema, without recursion on the program's stack and in time linear in the text: base
//! URIs by `$id`, anchors, embedded resources and their dialects, JSON pointers with escapes, data positions and properties that
//! merely have a keyword's name; the outcome of each reference, circles that take nothing of the value, and the bounds of all of
//! it. In here: the text as a vector of values (`tree`), what keywords hold (`places`), URIs (`uri`), which values are schemas,
//! and of which resource (`mark`), what references lead to (`resolve`), circles (`circles`), and schemas that need no closer look
//! (`plain`).
//! Rules: C62, C64; vectors D67, D68.

mod circles;
mod mark;
mod places;
mod plain;
mod resolve;
mod tree;
mod uri;

#[cfg(test)]
mod bounds_tests;
#[cfg(test)]
mod dialect_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tree_tests;

use super::{Dialect, Finding, Kind, Rules};
use crate::wire::json::Span;
use mark::{Mark, Resource, Schemas};
use std::time::Instant;
use tree::{Node, TooDeep, Tree};

/// What a reference turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// A place of the same resource.
    Local,
    /// A resource with an `$id` of its own within the schema, a supplied document, or a known meta-schema.
    Embedded,
    /// It should be in here, and is not.
    Dangling,
    /// It leads out of the schema.
    External,
}

/// One reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The JSON pointer to the keyword.
    pub at: Box<str>,
    /// As it is written, unescaped.
    pub target: Box<str>,
    pub outcome: Outcome,
}

/// What the walk found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Walked {
    pub references: Vec<Reference>,
    /// Of the kinds External, Dangling, Loop, Twice, Depth, Subschemas, Bytes, References, Time, UnknownDialect. `at` is within the
    /// schema; `tool` is empty.
    pub findings: Vec<Finding>,
    /// The dialect of the root; `None` if it declares one that is not known.
    pub dialect: Option<Dialect>,
    /// It is valid in its dialect without further ado. If not, the meta-schema decides.
    pub plain: bool,
}

/// Findings of one schema; more say nothing new.
const FINDINGS: usize = 100;

/// Walks the schema at `root` of `text`, which was scanned before. `default` is the dialect where none is declared.
pub fn walk(text: &[u8], root: Span, default: Dialect, rules: &Rules<'_>) -> Walked {
    let mut walk = Walk {
        rules,
        started: Instant::now(),
        steps: 0,
        tree: Tree::default(),
        schemas: Schemas::default(),
        supplied: Vec::new(),
        found: Walked { dialect: Some(default), ..Walked::default() },
    };
    // What was found before it stopped is told as well.
    if let Err(Stop { kind, at, detail }) = walk.run(text, root, default) {
        walk.found.findings.push(Finding::new("", at, kind, &detail));
    }
    walk.found
}

pub(super) use places::ref_stands_alone;

/// The normal form of an absolute URI, by which supplied documents are found.
pub(super) fn normal_uri(uri: &str) -> Option<Box<str>> {
    uri::Base::join(None, uri::split(uri).0).ok().map(|uri| uri.normal())
}

/// A walk under way.
struct Walk<'a> {
    rules: &'a Rules<'a>,
    started: Instant,
    steps: u32,
    tree: Tree<'a>,
    schemas: Schemas,
    /// The documents that were reached, in the order of the tree's texts behind the first.
    supplied: Vec<Supplied>,
    found: Walked,
}

/// A supplied document that was reached.
struct Supplied {
    uri: Box<str>,
    /// The reference that led there first.
    by: Node,
}

/// A bound that ends the walk.
struct Stop {
    kind: Kind,
    at: Box<str>,
    detail: String,
}

impl<'a> Walk<'a> {
    fn run(&mut self, text: &'a [u8], span: Span, default: Dialect) -> Result<(), Stop> {
        let bounds = self.rules.bounds;
        if span.len() > bounds.bytes {
            return Err(Stop::at_root(Kind::Bytes, format!("{} bytes", span.len())));
        }
        let root = self.tree.read(text, span, bounds.depth).map_err(|TooDeep(node)| Stop {
            kind: Kind::Depth,
            at: self.tree.pointer(node).into(),
            detail: String::new(),
        })?;
        let resource = self.schemas.add(Resource { root, base: None, dialect: Some(default) });
        self.schemas.grow(self.tree.len());
        self.mark(root, Mark::root(resource))?;
        self.found.dialect = self.schemas.dialect(resource);
        self.resolve()?;
        self.circles();
        self.found.plain = self.found.findings.is_empty() && self.is_plain(root);
        Ok(())
    }

    /// To be called for every schema and reference: looks at the clock now and then.
    fn step(&mut self) -> Result<(), Stop> {
        self.steps = self.steps.wrapping_add(1);
        if self.steps.is_multiple_of(64) && self.started.elapsed() > self.rules.bounds.time {
            return Err(Stop::at_root(Kind::Time, String::new()));
        }
        Ok(())
    }

    fn find(&mut self, node: Node, kind: Kind, detail: &str) {
        if self.found.findings.len() >= FINDINGS {
            return;
        }
        let (node, detail) = self.within_schema(node, detail);
        self.found.findings.push(Finding::new("", self.tree.pointer(node), kind, &detail));
    }

    /// The place in the tool's own schema for what is at `node`: for something in a supplied document, the reference that led there,
    /// and the detail says the rest.
    fn within_schema(&self, node: Node, detail: &str) -> (Node, String) {
        let (mut at, mut detail) = (node, detail.to_owned());
        while let Some(document) =
            self.tree.text_number(at).checked_sub(1).and_then(|text| self.supplied.get(text))
        {
            if at == node {
                detail = format!("in {}#{}: {detail}", document.uri, self.tree.pointer(node));
            }
            at = document.by;
        }
        (at, detail)
    }
}

impl Stop {
    fn at_root(kind: Kind, detail: String) -> Self {
        Self { kind, at: "".into(), detail }
    }
}
