//! Servers that are real processes, behind the real binary: what only a kernel shows.
//!
//! Owns process groups, signals, pipes and what is left afterwards, as `/proc` has it; the servers are `stdio_peer`, which
//! `cargo test` builds. What is said over the pipes is tested in memory (`stdio_server`). Real time passes here: every wait is
//! for an event, and bounded.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod calls;
mod ends;
mod http;
mod kills;
mod procs;
mod stage;
mod stdio;
