//! Servers behind pipes: one test or more for each rule (A14, A15, A2.2, B5, B8, B14, B17) and case (C20, C21, C23, C38, C45,
//! C53, C55, C56) that governs a server which is a child process, written from their text.
//!
//! Owns the tests; the processes are tasks over pipes in memory (`support`: `stdio_server`, `process`, `lines`), under a paused
//! clock. Real processes are in `processes_serve`. What holds on every transport alike is in `questions`, `bridge` and
//! `listen`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod batch;
mod both;
mod both_eras;
mod bridge;
mod cancel;
mod detect;
mod detect_slow;
mod ending;
mod framing;
mod framing_calls;
mod gets;
mod large;
mod logs;
mod modern;
mod modern_listens;
mod parallel;
mod pressure;
mod questions;
mod questions_legacy;
mod sessions;
mod sessions_legacy;
mod shutdown;
mod stage;
mod starts_counted;
mod supervision;
mod supervision_starts;
#[path = "../support/mod.rs"]
mod support;
mod told;
mod wedged;
