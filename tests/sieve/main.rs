//! What passes between peers of one era and is looked into on the way: bytes, cuts, sizes.
//!
//! Owns the sieve as its peers see it: that what is not changed keeps every byte, that lists and forms are found wherever they
//! stand, and what happens to messages too large to be held. What is a bad schema is the tests' of `schema_guard`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod admission;
mod arrays;
mod bodies;
mod events;
mod large;
mod questions;
mod stage;
#[path = "../support/mod.rs"]
mod support;
