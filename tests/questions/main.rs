//! A legacy server's questions to a modern client: one test or more for each rule (B1, B4, B5), vector (D27-D54) and case
//! (C20, C45, C46) that governs them, written from their text.
//!
//! Owns the tests; the peers stand in `support` (`calls`, `gets`, `questions`, `rounds`, `shape_input`,
//! `shape_answers`), the setting that the tests share in `stage`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod answers;
mod away;
mod basic;
mod beside;
mod bounds;
mod broken;
mod capabilities;
mod drain;
mod field;
mod flow;
mod gone;
mod lists;
mod one_at_a_time;
mod refused;
mod replay;
mod rounds;
mod stage;
mod state;
mod stress;
mod stress_server;
#[path = "../support/mod.rs"]
mod support;
mod url;
mod url_wait;
mod withdrawn;
mod words;
