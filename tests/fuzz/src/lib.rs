//! The code under test: the product's `wire` and `schema` folders, compiled by themselves.
//!
//! They are taken in as source, not as a dependency, so that a run does not build the whole product. That works because `wire`
//! uses nothing else of the crate, and `schema` nothing but `wire`; if this stops compiling, an import points the wrong way.

#![allow(dead_code)]

#[path = "../../../src/wire/mod.rs"]
pub mod wire;

#[path = "../../../src/schema/mod.rs"]
pub mod schema;
