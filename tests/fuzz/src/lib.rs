//! The code under test: the product's `wire` folder, compiled by itself.
//!
//! It is taken in as source, not as a dependency, so that a run builds in seconds and only this code carries the
//! fuzzer's counters. That works because `wire` uses nothing else of the crate; if this stops compiling, an import
//! points the wrong way.

#![allow(dead_code)]

#[path = "../../../src/wire/mod.rs"]
pub mod wire;
