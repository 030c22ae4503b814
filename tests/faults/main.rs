//! Faults that a review or a hard look has found, so that they do not come back. Each test says which invariant or rule
//! it guards.
//!
//! Owns inputs and interleavings that no rule names as such. Rules are in `vectors`, inputs from the field in `cases`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod answers;
mod bounds;
mod once;
#[path = "../support/mod.rs"]
mod support;
