//! `[upstream.NAME.schema]`: what becomes of tools whose schemas are not sound, and what is checked against schemas.
//!
//! Owns the ranges of these settings, the documents that references may lead to (`documents`), and the flags that stand for
//! them (`flags`). Does not own what makes a schema unsound, nor what is done about it.

mod documents;
mod flags;

#[cfg(test)]
mod tests;

pub(super) use flags::document_flag;
pub use flags::{DocumentFlags, SchemaFlags};

use super::error::ConfigError;
use super::front::{MS, SECOND};
use super::raw;
use super::values::Table;
use super::{Schema, SchemaPolicy, Validation};
use std::path::Path;

const POLICIES: &[(&str, SchemaPolicy)] = &[("drop", SchemaPolicy::Drop), ("warn", SchemaPolicy::Warn)];
const VALIDATIONS: &[(&str, Validation)] =
    &[("off", Validation::Off), ("warn", Validation::Warn), ("enforce", Validation::Enforce)];

impl SchemaPolicy {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Drop => "drop",
            Self::Warn => "warn",
        }
    }
}

impl Validation {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Warn => "warn",
            Self::Enforce => "enforce",
        }
    }
}

pub(super) fn schema(path: &str, raw: &raw::Schema, dir: &Path) -> Result<Schema, ConfigError> {
    let table = Table { path, dir };
    let default = Schema::default();
    Ok(Schema {
        policy: table.word("policy", &raw.policy, default.policy, POLICIES)?,
        arguments: table.word("arguments", &raw.arguments, default.arguments, VALIDATIONS)?,
        results: table.word("results", &raw.results, default.results, VALIDATIONS)?,
        depth: table.count("depth", &raw.depth, default.depth, 8..=120)?,
        subschemas: table.count("subschemas", &raw.subschemas, default.subschemas, 1..=1_000_000)?,
        bytes: table.size("bytes", &raw.bytes, default.bytes, 1 << 10..=1 << 26)?,
        references: table.count("references", &raw.references, default.references, 0..=1_000_000)?,
        time: table.duration("time", &raw.time, default.time, MS..=SECOND)?,
        cache_bytes: table.size("cache_bytes", &raw.cache_bytes, default.cache_bytes, 1 << 10..=1 << 30)?,
        documents: documents::documents(&table, &raw.documents)?,
    })
}
