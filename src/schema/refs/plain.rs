//! Schemas that are plainly valid in their dialect.
//!
//! Owns a look over a schema that was walked: whether all of its keywords are common ones with such values as every one of
//! draft-07, 2019-09 and 2020-12 takes. Then it need be neither read into a document nor held against the meta-schema, which
//! costs most of a verdict. A schema that is not plain may be valid all the same: that is for the meta-schema to say.

use super::Walk;
use super::mark::Schemas;
use super::tree::{Node, Tree};
use crate::schema::Dialect;
use crate::schema::walk::Place;
use crate::wire::json::Kind;
use memchr::memmem;

/// Digits of a number that every reader can read.
const DIGITS: usize = 300;

/// Members of a list of names; in a longer one it is not looked for names that occur twice.
const NAMES: usize = 64;

impl Walk<'_> {
    /// Whether the schema at `root` is plainly valid. It was walked, and nothing was found.
    pub(super) fn is_plain(&self, root: Node) -> bool {
        let Some(dialect @ (Dialect::Draft7 | Dialect::Draft2019 | Dialect::Draft2020)) =
            self.schemas.dialect(0)
        else {
            return false;
        };
        if self.schemas.schema(root).is_none() {
            return false;
        }
        // Neither other dialects, nor halves of surrogate pairs, which not every reader can read.
        if !self.schemas.is_one_resource() || memmem::find(self.tree.raw(root), b"\\u").is_some() {
            return false;
        }
        (root..self.tree.end(root)).all(|node| is_plain(&self.tree, &self.schemas, node, dialect))
    }
}

fn is_plain(tree: &Tree<'_>, schemas: &Schemas, node: Node, dialect: Dialect) -> bool {
    match tree.kind(node) {
        Kind::Number => {
            let digits = tree.raw(node);
            digits.len() <= DIGITS && !digits.iter().any(|byte| matches!(byte, b'e' | b'E'))
        }
        Kind::Object if schemas.schema(node).is_some() => tree
            .children(node)
            .all(|child| tree.name(child).is_some_and(|name| takes(tree, child, &name, dialect))),
        Kind::Object | Kind::Array | Kind::String | Kind::Bool | Kind::Null => true,
    }
}

/// Whether the keyword's value is one that the dialect plainly takes.
fn takes(tree: &Tree<'_>, value: Node, keyword: &str, dialect: Dialect) -> bool {
    let kind = tree.kind(value);
    match keyword {
        "type" => match kind {
            Kind::String => is_type(tree.raw(value)),
            Kind::Array => is_list(tree, value) && tree.children(value).all(|item| is_type(tree.raw(item))),
            _ => false,
        },
        // Draft-07 passes over what stands beside it, its meta-schema does not.
        "$ref" => kind == Kind::String && dialect != Dialect::Draft7,
        "$schema" | "$comment" | "title" | "description" | "format" | "pattern" | "contentEncoding"
        | "contentMediaType" => kind == Kind::String,
        "enum" | "examples" => kind == Kind::Array,
        "required" => kind == Kind::Array && (tree.children(value).next().is_none() || is_list(tree, value)),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => kind == Kind::Number,
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
            kind == Kind::Number && tree.raw(value).iter().all(u8::is_ascii_digit)
        }
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => kind == Kind::Bool,
        "const" | "default" => true,
        // Rare, or not the same in every dialect.
        "multipleOf" | "dependencies" | "dependentRequired" | "minContains" | "maxContains" => false,
        _ if keyword.starts_with('$') && keyword != "$defs" => false,
        _ => match Place::of(keyword, kind) {
            Some(Place::Schema) => is_schema(kind),
            Some(Place::Map) => kind == Kind::Object && all_schemas(tree, value),
            Some(Place::Array) => {
                kind == Kind::Array
                    && keyword != "items"
                    && tree.children(value).next().is_some()
                    && all_schemas(tree, value)
            }
            // No keyword of any dialect.
            None => true,
        },
    }
}

fn is_schema(kind: Kind) -> bool {
    matches!(kind, Kind::Object | Kind::Bool)
}

fn all_schemas(tree: &Tree<'_>, outer: Node) -> bool {
    tree.children(outer).all(|inner| is_schema(tree.kind(inner)))
}

fn is_type(raw: &[u8]) -> bool {
    matches!(
        raw,
        br#""string""#
            | br#""number""#
            | br#""integer""#
            | br#""boolean""#
            | br#""object""#
            | br#""array""#
            | br#""null""#
    )
}

/// Strings of which there is at least one, and none twice.
fn is_list(tree: &Tree<'_>, array: Node) -> bool {
    let mut names: Vec<&[u8]> = Vec::new();
    for item in tree.children(array) {
        let name = tree.raw(item);
        // With an escape there are several ways to write a name.
        if tree.kind(item) != Kind::String
            || names.len() == NAMES
            || name.contains(&b'\\')
            || names.contains(&name)
        {
            return false;
        }
        names.push(name);
    }
    !names.is_empty()
}

#[cfg(test)]
#[path = "plain_tests.rs"]
mod tests;
