//! The schema guard, through the whole proxy: what of a server's tools and forms reaches its clients, in all pairs of eras and
//! over every transport.
//!
//! Owns the cases C62, C64, C65 and C67, the vectors D56, D65, D67, D68 and D78, and the rules A5.3, A5.4 and A5.10 as clients
//! and servers see them: what is listed and to the byte how (`references`, `dialects`, `roots`, `headers`, `bounds`), policy,
//! calls, log and metrics (`policy`, `changes`, `principals`, `paging`, `crowd`), forms (`forms`, `rounds`), checks of values (`arguments`,
//! `results`), and the ways that messages take (`transports`, `streams`, `arrays`, `hostile`). Does not own the verdicts as
//! such, which have tests of their own beside them.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod arguments;
mod arrays;
mod bounds;
mod canary;
mod case;
mod changes;
mod crowd;
mod dialects;
mod disguises;
mod documents;
mod forms;
mod headers;
mod hostile;
mod paging;
mod policy;
mod principals;
mod references;
mod results;
mod roots;
mod rounds;
mod stage;
mod streams;
#[path = "../support/mod.rs"]
mod support;
mod transports;
