//! The schema guard's judgement: what of a tool's schemas, and of an elicitation form's, is safe to hand on.
//!
//! PURE: bytes in, findings out; no clock but the one that bounds it, no I/O of any kind. Nothing that a schema names is ever
//! fetched: there is nothing in here that could. Owns the dialects (`dialect`), where schemas stand in a schema (`walk`, and
//! `places` by dialect), every reference and what it resolves to by the rules of its dialect (`refs`), documents that the
//! operator supplies (`documents`), the meta-schemas (`meta`), the verdict on one schema (`judge`), the annotations of a tool
//! that headers repeat (`header`), the verdict on one tool (`tool`) and on a list of them (`list`), on a form (`form`), and
//! checking a value against a schema (`validate`). Does not own what is done about a finding: policy, log, metrics and what is
//! remembered are `upstream::guard`'s; edits are `translate`'s.
//! Rules: A5.3, A5.4, A5.10, B6.8; cases C62, C64, C65, C67; vectors D56, D65, D67, D68, D78; spec 2026-07-28 basic/index,
//! "JSON Schema Usage" and "Composition-Keyword Resource Use".

pub mod dialect;
pub mod documents;
pub mod edit;
pub mod finding;
pub mod form;
pub mod header;
pub mod list;
pub mod refs;
pub mod sift;
pub mod tool;
pub mod validate;
pub mod walk;

mod judge;
mod meta;
mod pointer;
mod readable;

pub use dialect::Dialect;
pub use documents::Documents;
pub use finding::{Finding, Kind, Weight};

use crate::wire::version::LegacyRevision;
use std::time::Duration;

/// How much a schema may take. What is beyond is a finding, never an error of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Nesting of JSON in one schema, objects and arrays alike.
    pub depth: usize,
    /// Subschemas of one schema; also how many may apply to one and the same value, references followed.
    pub subschemas: usize,
    /// Bytes of one schema.
    pub bytes: usize,
    /// References in one schema.
    pub references: usize,
    /// Time that judging one tool, or checking one value, may take.
    pub time: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            depth: 100,
            subschemas: 10_000,
            bytes: 256 * 1024,
            references: 1000,
            time: Duration::from_millis(50),
        }
    }
}

/// Whose schemas they are: what a schema must be depends on the revision that its author speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Speaker {
    Modern,
    /// `None`: the revision is not known, so nothing is asked of it that not all have.
    Legacy(Option<LegacyRevision>),
}

impl Speaker {
    /// Whether a schema without `$schema` is of 2020-12 (A5.4, B6.8). Before 2025-11-25 none was said to be the default.
    pub fn has_default_dialect(self) -> bool {
        match self {
            Speaker::Modern | Speaker::Legacy(Some(LegacyRevision::V2025_11_25)) => true,
            Speaker::Legacy(_) => false,
        }
    }

    /// Whether an `outputSchema` must have the root type `object` (A5.5).
    pub fn wants_object_output(self) -> bool {
        match self {
            Speaker::Legacy(Some(LegacyRevision::V2025_06_18 | LegacyRevision::V2025_11_25)) => true,
            Speaker::Modern | Speaker::Legacy(_) => false,
        }
    }
}

/// What is judged by.
#[derive(Debug, Clone, Copy)]
pub struct Rules<'a> {
    pub speaker: Speaker,
    pub bounds: &'a Bounds,
    pub documents: &'a Documents,
}
