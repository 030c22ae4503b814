//! The translation vectors, each test named by the number of the rule or vector that it holds the proxy to.
//!
//! Owns the vectors of modern clients over Streamable HTTP. Cases from the field are in `cases`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod bytes;
mod capabilities;
mod envelope;
mod era;
mod errors;
mod hostile;
mod ids;
mod lifecycle;
mod limits;
mod methods;
mod questions;
mod races;
mod refusals;
mod relay;
mod streams;
#[path = "../support/mod.rs"]
mod support;
mod tools;
