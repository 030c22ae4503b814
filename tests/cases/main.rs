//! Cases from the field, each test named by the id of its case: the parts that a modern client can meet over HTTP.
//!
//! Owns inputs that broke other gateways, SDKs or clients. The translation rules as such are in `vectors`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod access;
mod era;
mod framing;
mod http;
mod ids;
mod meaning;
mod sessions;
#[path = "../support/mod.rs"]
mod support;
