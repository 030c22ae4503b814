//! A host that has launched the proxy as its stdio server: one test or more for each rule and case that governs it, written
//! from their text, before raw servers of both eras.
//!
//! Owns the tests; the host stands in `stage`, the servers in `support`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod asks;
mod bounds;
mod cancels;
mod cells;
mod ends;
mod ids;
mod lines;
mod listens;
mod lost;
mod mirror;
mod order;
mod renewals;
mod stage;
mod streams;
#[path = "../support/mod.rs"]
mod support;
