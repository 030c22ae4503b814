//! What `/metrics` says after traffic that is known to the last request.
//!
//! Owns one expectation for each family: exact counts, and gauges that come back to zero. The names are those of the
//! README's table. Architecture, invariant 7: what is refused is counted.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod admin;
mod bridge;
mod flowed;
mod gauges;
mod legacy;
mod limits;
mod lists;
mod refusals;
mod requests;
mod schema;
mod scrape;
mod sessions;
#[path = "../bridge/stage.rs"]
#[allow(dead_code)]
mod stage;
#[path = "../support/mod.rs"]
mod support;
