//! Faults that a review found and that are mended: each test fails on what the program did before.
//!
//! Owns one test or more for each of them, named by the rule, case or invariant that says what is right. The rules as
//! such are in `vectors`, the inputs of others in `cases`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod answers;
mod bounds;
mod deadlines;
mod drain;
mod in_time;
mod lists;
mod once;
mod principals;
mod refusals;
mod relayed;
mod replan;
mod resuming;
mod sessions;
#[path = "../support/mod.rs"]
mod support;
mod under_one_id;
