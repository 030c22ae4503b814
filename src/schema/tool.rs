//! The verdict on one tool.
//!
//! Owns what is asked of a tool as its server's revision has it: a name, an `inputSchema` whose root is an object, an
//! `outputSchema` that is a schema, both sound in their dialect and within bounds, annotations that headers can repeat. Does not
//! own the list (`list`). Rules: A5.3-A5.5, A5.10, B6.8; cases C62, C64, C65, C67.

use super::{Dialect, Finding, Weight};
use crate::wire::json::Span;

/// What an `inputSchema` is as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Sound,
    /// Sound once `"type":"object"` is added at its root (A5.3).
    Untyped,
    /// Nothing that any revision takes for a tool: no name, no schema, or a root that is no object.
    Unfit,
}

/// One tool of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// `None`: it has none.
    pub name: Option<Box<str>>,
    pub shape: Shape,
    pub findings: Vec<Finding>,
    /// Of the schemas at `input` and `output`: the dialect that they are of and do not declare (A5.4).
    pub undeclared: [Option<Dialect>; 2],
    /// The dialects that they are read in; `None`: not known, or no schema.
    pub dialects: [Option<Dialect>; 2],
    /// An earlier tool of the list has its name.
    pub again: bool,
    /// Its annotations are such that no header may be built from them (A5.10).
    pub headers_invalid: bool,
    /// Spans in the text that was judged.
    pub span: Span,
    pub input: Option<Span>,
    pub output: Option<Span>,
}

impl Judged {
    /// Whether `schema.policy` is about it.
    pub fn is_bad(&self) -> bool {
        self.findings.iter().any(|finding| finding.kind.weight() == Weight::Bad)
    }

    /// The finding that a refusal names.
    pub fn worst(&self) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.kind.weight() == Weight::Bad)
    }
}
