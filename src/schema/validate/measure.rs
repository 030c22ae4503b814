//! What a schema may cost, to compile and to check by: bounds beside those that the guard's walk has kept.
//!
//! Everything is counted as if any member of a keyword's name were that keyword, so that the numbers are never too small. Owns
//! the counting and what follows from it. Goes over the schema once, without recursion.

use serde_json::Value;
use std::collections::BTreeSet;

/// Nodes that a schema may come to when it is compiled, its parts once for every way of resources that leads to them.
const NODES: f64 = 1_000_000.0;

/// Schemas in turn at most.
const IN_TURN: usize = 16 * 1024;

/// Bytes of one pattern.
const PATTERN: usize = 8 * 1024;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Measure {
    /// Objects, which are the schemas but for booleans.
    objects: usize,
    references: usize,
    /// References that may lead into another resource.
    crossings: usize,
    /// Resources within the schema or beside it, but for the root.
    resources: usize,
    depth: usize,
    pub(super) patterns: BTreeSet<Box<str>>,
    pub(super) formats: bool,
}

impl Measure {
    /// `Err`: why it is not compiled.
    pub(super) fn add(&mut self, schema: &Value) -> Result<(), &'static str> {
        let mut open = vec![(schema, 0)];
        while let Some((value, depth)) = open.pop() {
            self.depth = self.depth.max(depth);
            match value {
                Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
                Value::Object(members) => {
                    self.objects += 1;
                    for (name, value) in members {
                        self.member(name, value, depth > 0)?;
                        open.push((value, depth + 1));
                    }
                }
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        self.fits()
    }

    /// Another document that references lead to.
    pub(super) fn add_document(&mut self, schema: &Value) -> Result<(), &'static str> {
        self.resources += 1;
        self.add(schema)
    }

    fn member(&mut self, name: &str, value: &Value, inner: bool) -> Result<(), &'static str> {
        match (name, value) {
            ("$ref", Value::String(target)) => {
                self.references += 1;
                self.crossings += usize::from(!target.starts_with('#'));
            }
            ("$dynamicRef" | "$recursiveRef", Value::String(_)) => {
                self.references += 1;
                self.crossings += 1;
            }
            ("$id" | "id", Value::String(_)) if inner => self.resources += 1,
            ("pattern", Value::String(pattern)) => self.pattern(pattern)?,
            ("patternProperties", Value::Object(patterns)) => {
                patterns.keys().try_for_each(|pattern| self.pattern(pattern))?;
            }
            ("format", Value::String(_)) => self.formats = true,
            _ => {}
        }
        Ok(())
    }

    fn pattern(&mut self, pattern: &str) -> Result<(), &'static str> {
        if pattern.len() > PATTERN {
            return Err("a pattern of the schema is too long");
        }
        self.patterns.insert(pattern.into());
        Ok(())
    }

    /// What a dynamic reference means depends on the way that led to it, so each resource is compiled for every way that leads
    /// there. Of n references there may be about e^(n/5) ways, a few more where they lead round.
    fn fits(&self) -> Result<(), &'static str> {
        let ways = (self.crossings as f64 / 4.0).exp();
        if self.resources > 0 && ways * self.objects as f64 > NODES {
            return Err("too many references lead from one resource of the schema to another");
        }
        if self.in_turn() > IN_TURN {
            return Err("too many subschemas may apply to one value");
        }
        Ok(())
    }

    /// Schemas that may apply to one value, one within the other: none occurs twice, and between two references there are no
    /// more than fit into each other.
    pub(super) fn in_turn(&self) -> usize {
        self.objects.min((self.references + 1) * (self.depth / 2 + 1))
    }
}
