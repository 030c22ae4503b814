//! Where schemas stand in a schema.
//!
//! Owns the table of keywords that hold schemas, and the step from a schema to those right below it, so that a walk can tell
//! a keyword from a property of the same name and a schema from data. What a walk does with them is its own business; it
//! goes over a list of places in place of recursion. Rules: A5.3, A5.10, B6.1; case C62.

use crate::wire::json::{Cursor, Kind, Member, Object, Span};

use super::declared::UNBOUNDED;

/// What stands at a place of a schema that holds further schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Schema,
    /// An object whose values are schemas, under names that mean nothing.
    Map,
    Array,
}

impl Place {
    /// What the value of a keyword is; `None` where no revision of the language puts a schema.
    pub(super) fn of(keyword: &str, value: &[u8]) -> Option<Self> {
        let array = Kind::of(value) == Some(Kind::Array);
        Some(match keyword {
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
            | "dependencies" => Place::Map,
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => Place::Array,
            "items" if array => Place::Array,
            "items"
            | "additionalItems"
            | "additionalProperties"
            | "contains"
            | "propertyNames"
            | "not"
            | "if"
            | "then"
            | "else"
            | "unevaluatedItems"
            | "unevaluatedProperties"
            | "contentSchema" => Place::Schema,
            _ => return None,
        })
    }
}

/// The members of `schema` that hold schemas.
pub(super) fn below<'a>(
    text: &'a [u8],
    schema: &'a Object,
) -> impl Iterator<Item = (Member, Place)> + use<'a> {
    schema
        .members
        .iter()
        .filter_map(|member| Some((*member, Place::of(&member.name(text)?, member.value.of(text))?)))
}

/// The items of the array at `span`, of a text that was scanned before; none if it is no array.
pub(super) fn items(text: &[u8], span: Span) -> Vec<Span> {
    let mut found = Vec::new();
    let mut cursor = Cursor::on_prefix(span.of(text), UNBOUNDED);
    let read = cursor.array(|cursor| {
        let item = cursor.skip()?;
        found.push(Span { start: item.start + span.start, end: item.end + span.start });
        Ok(())
    });
    if read.is_ok() { found } else { Vec::new() }
}
