//! `subscriptions/listen` and everything around it, from a modern client to a legacy server: one test or more for each
//! rule, vector and case that governs it, written from their text.
//!
//! Owns the tests; the peers stand in `support` (`gets`, `listener`, `shape_listen`), the setting they share in `stage`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod asked;
mod asks;
mod cancels;
mod churn;
mod ends;
mod fanout;
mod further;
mod levels;
mod lost;
mod principals;
mod promise;
mod reconnect;
mod slow;
mod stage;
mod stands;
mod streams;
#[path = "../support/mod.rs"]
mod support;
