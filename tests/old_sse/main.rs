//! The old HTTP+SSE of 2024-11-05, as a server speaks it and as a client does.
//!
//! Owns what is particular to that transport. As a server speaks it: when it is tried (`fallback`), where messages go
//! (`endpoint`), how they are answered (`answers`), what is asked over it (`asks`), its end (`ends`), and clients of its own kind
//! (`passed_on`). As a client speaks it: its two places (`client_places`), calls (`client_calls`) and the end (`client_ends`).
//! What every transport has in common is the matrix's. Case C42; also C20, C23, C36, C45.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod answers;
mod asks;
mod client;
mod client_calls;
mod client_ends;
mod client_places;
mod endpoint;
mod ends;
mod fallback;
mod passed_on;
#[path = "../support/mod.rs"]
mod support;
