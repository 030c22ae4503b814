//! Checking a value against a schema that the guard has let pass.
//!
//! Owns what comes of a check, and how it is told. Compiling is in `compile`, which takes only what the guard's own walk has
//! judged as free of references that lead out, of circles and within bounds; the bounds on time and stack are in `watch`, and
//! what a schema may cost is in `measure`. There is no retriever: a reference that leads out cannot be compiled. What cannot be
//! checked within bounds is `Unchecked`, never taken for valid or invalid. Cases C62, C65; vector D68.

mod compile;
mod measure;
mod watch;

#[cfg(test)]
mod cost_tests;
#[cfg(test)]
mod tests;

use super::finding::short;
use crate::wire::json::{Mark, ScanFault, Scanner};
use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;
use std::time::Duration;
use watch::{Bound, Limits, Seen, Stop, Watched};

/// Violations that are told of one value.
const TOLD: usize = 10;

/// Branches of an `anyOf` or `oneOf` that are told.
const BRANCHES: usize = 3;

/// Characters of a JSON pointer that are told.
const POINTER: usize = 256;

/// Items and members of a value, as far as commas and brackets tell: parsed, each takes tens of bytes.
const PLACES: usize = 250_000;

/// A compiled schema.
pub struct Compiled {
    validator: jsonschema::Validator<Watched>,
    limits: Limits,
    /// An estimate of what it takes.
    bytes: usize,
}

/// What came of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checked {
    Valid,
    Invalid(Violations),
    /// It cannot be said: why.
    Unchecked(&'static str),
}

/// What does not fit, as much as is worth telling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violations {
    pub first: Vec<Violation>,
    /// There are more.
    pub more: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// RFC 6901; empty for the value itself.
    pub at: String,
    /// In words that do not repeat the value.
    pub what: String,
}

impl Compiled {
    /// Bytes that it takes, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Checks the JSON text `value`. It takes no longer than `time`, but for reading the text.
    pub fn check(&self, value: &[u8], time: Duration) -> Checked {
        if value.len() > PLACES && memchr::memchr3_iter(b',', b'[', b'{', value).count() > PLACES {
            return Checked::Unchecked("it has too many items and members to be checked");
        }
        let Ok(read) = serde_json::from_slice::<Value>(value) else {
            return Checked::Unchecked("it cannot be read as numbers and text that the validator knows");
        };
        if members(&read) != written(value) {
            return Checked::Invalid(Violations::one(
                "a member occurs twice, and readers differ in which they take",
            ));
        }
        let value = read;
        let bound = Bound::new(time, self.limits);
        match bound.run(|watch| self.validator.is_valid(Seen::new(&value, watch))) {
            Ok(true) => Checked::Valid,
            Ok(false) => self.told(&value, &bound),
            Err(stop) => Checked::Unchecked(stop.words()),
        }
    }

    /// What does not fit. All of it may be more than there is time for; then the first.
    fn told(&self, value: &Value, bound: &Bound) -> Checked {
        let all = bound.run(|watch| {
            watch.count_copies();
            Told::of(self.validator.iter_errors(Seen::new(value, watch)))
        });
        let told = match all {
            Err(Stop::Copies) => bound.run(|watch| {
                watch.count_copies();
                let first = self.validator.validate(Seen::new(value, watch));
                Told { more: true, ..Told::of(first.err().into_iter()) }
            }),
            all => all,
        };
        match told {
            Ok(told) if told.first.is_empty() && told.undecided => {
                Checked::Unchecked("a pattern takes too many steps on it")
            }
            Ok(told) if !told.first.is_empty() => {
                Checked::Invalid(Violations { first: told.first, more: told.more })
            }
            Ok(_) | Err(_) => {
                let what = "it does not fit, and where takes too long to tell".to_owned();
                Checked::Invalid(Violations {
                    first: vec![Violation { at: String::new(), what }],
                    more: false,
                })
            }
        }
    }
}

impl Violations {
    /// One of the value as a whole.
    pub fn one(what: &str) -> Self {
        Self { first: vec![Violation { at: String::new(), what: what.to_owned() }], more: false }
    }
}

/// Members of all the objects in it.
fn members(value: &Value) -> usize {
    let (mut open, mut count) = (vec![value], 0);
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(members) => {
                count += members.len();
                open.extend(members.values());
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    count
}

/// The same as they are written.
fn written(value: &[u8]) -> usize {
    let mut count = 0;
    let read = Scanner::new(usize::MAX, usize::MAX).feed(value, &mut |_, _, mark| {
        count += usize::from(mark == Mark::KeyEnd);
        Ok::<_, ScanFault>(())
    });
    debug_assert!(read.is_ok(), "it was read before");
    count
}

/// Violations as they are gathered.
#[derive(Default)]
struct Told {
    first: Vec<Violation>,
    more: bool,
    /// A pattern could not be decided.
    undecided: bool,
}

impl Told {
    fn of<'a>(errors: impl Iterator<Item = ValidationError<'a>>) -> Self {
        let mut told = Self::default();
        for error in errors {
            if is_undecided(&error) {
                told.undecided = true;
            } else if told.first.len() < TOLD {
                told.first.push(Violation { at: pointer(&error), what: what(&error) });
            } else {
                told.more = true;
                break;
            }
        }
        told
    }
}

fn is_undecided(error: &ValidationError<'_>) -> bool {
    use ValidationErrorKind::{BacktrackLimitExceeded, RegexEngineFailure};
    matches!(error.kind(), BacktrackLimitExceeded { .. } | RegexEngineFailure { .. })
}

fn pointer(error: &ValidationError<'_>) -> String {
    let at = error.instance_path().as_str().chars();
    at.take(POINTER).map(|char| if char.is_control() { ' ' } else { char }).collect()
}

/// One violation; of alternatives, what the first few of them miss.
fn what(error: &ValidationError<'_>) -> String {
    use ValidationErrorKind::{AnyOf, OneOfNotValid};
    let mut words = brief(error);
    let (AnyOf { context } | OneOfNotValid { context }) = error.kind() else { return words };
    let branches = context.iter().filter_map(|branch| branch.iter().find(|error| !is_undecided(error)));
    for (index, branch) in branches.take(BRANCHES).enumerate() {
        words.push_str(if index == 0 { ": " } else { "; or " });
        if branch.instance_path() != error.instance_path() {
            words.push_str(&pointer(branch));
            words.push_str(": ");
        }
        words.push_str(&brief(branch));
    }
    words
}

fn brief(error: &ValidationError<'_>) -> String {
    short(&error.masked_with("this value").to_string()).into()
}
