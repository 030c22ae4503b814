//! A legacy client before a modern server: one test or more for each rule (columns L>M, B2 to B16), vector (D57-D64,
//! D69-D94, D99, D100, D102-D104, D111) and case that governs it, written from their text.
//!
//! Owns the tests; the peers stand in `support` (`user`, `stream`, `modern`, `calls`, `listens`, `shape_down`,
//! `shape_envelope`), the setting that the tests share in `stage`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod answering;
mod batch;
mod cache;
mod cancels;
mod catalog;
mod content;
mod drain;
mod dual;
mod envelope;
mod errors;
mod fields;
mod forms;
mod gates;
mod hostile;
mod initialize;
mod large;
mod levels;
mod listening;
mod mended;
mod mended_bounds;
mod mirror;
mod odd;
mod output;
mod pages;
mod parked;
mod pressure;
mod progress;
mod replay;
mod requests;
mod results;
mod resuming;
mod rounds;
mod sampling;
mod sessions;
mod stage;
mod stress;
mod subscribing;
#[path = "../support/mod.rs"]
mod support;
mod tokens;
mod told;
mod weather;
