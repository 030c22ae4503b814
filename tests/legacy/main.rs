//! Legacy clients in front of legacy servers: what a direct connection would do, seen through the proxy.
//!
//! Owns the pair of like eras, with and without the shield. Cases and rules are named in the tests.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod bodies;
mod calls;
mod era;
mod faults;
mod shield;
mod shield_streams;
mod streams;
#[path = "../support/mod.rs"]
mod support;
