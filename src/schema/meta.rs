//! Whether a schema is valid in its dialect, by the meta-schemas that the validator brings along.
//!
//! Formats are annotations here, as the newer dialects have them: what a meta-schema says of the form of a reference or of a
//! regular expression is for those to judge who resolve the one and run the other.

use super::Dialect;
use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, ValidationError, Validator};
use serde_json::{Value, json};
use std::sync::OnceLock;

/// One for each dialect, in the order of [`Dialect::ALL`].
static VALIDATORS: [OnceLock<Option<Validator>>; 5] = [const { OnceLock::new() }; 5];

/// The library knows the meta-schemas by heart; that all of them can be built is tested.
fn validator(dialect: Dialect) -> Option<Validator> {
    let schema = json!({"$schema": dialect.uri(), "$ref": dialect.uri()});
    let options = jsonschema::options().with_draft(draft(dialect)).should_validate_formats(false);
    options.build(&schema).ok()
}

/// As the library has it.
pub(super) fn draft(dialect: Dialect) -> Draft {
    match dialect {
        Dialect::Draft4 => Draft::Draft4,
        Dialect::Draft6 => Draft::Draft6,
        Dialect::Draft7 => Draft::Draft7,
        Dialect::Draft2019 => Draft::Draft201909,
        Dialect::Draft2020 => Draft::Draft202012,
    }
}

/// Whether the schema keeps the rules of the dialect. It is nested no deeper than the JSON reader takes.
pub(super) fn fits(schema: &Value, dialect: Dialect) -> bool {
    of(dialect).is_none_or(|validator| validator.is_valid(schema))
}

/// Where and how the schema breaks the rules of its dialect; `None` if it does not.
pub(super) fn fault(schema: &Value, dialect: Dialect) -> Option<(String, String)> {
    let error = of(dialect)?.validate(schema).err()?;
    let error = innermost(&error);
    Some((error.instance_path().to_string(), error.to_string()))
}

fn of(dialect: Dialect) -> Option<&'static Validator> {
    let index = Dialect::ALL.iter().position(|known| *known == dialect)?;
    VALIDATORS.get(index)?.get_or_init(|| validator(dialect)).as_ref()
}

/// Of a choice that none of the alternatives fits: the error that comes nearest to saying what is wrong.
fn innermost<'a>(mut error: &'a ValidationError<'a>) -> &'a ValidationError<'a> {
    while let ValidationErrorKind::AnyOf { context } = error.kind() {
        // The one that looked deepest into the schema; between equals, one that minds the value, not its type.
        let rank = |error: &&ValidationError<'_>| {
            let minds_type = matches!(error.kind(), ValidationErrorKind::Type { .. });
            (error.instance_path().as_str().len(), !minds_type)
        };
        let Some(inner) = context.iter().flatten().max_by_key(rank) else { break };
        error = inner;
    }
    error
}

#[cfg(test)]
#[path = "meta_tests.rs"]
mod tests;
