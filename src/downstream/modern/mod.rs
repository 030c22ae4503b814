//! The modern era's front: what a 2026-07-28 request must be (`check`), how it is served (`serve`) and how an outcome is
//! spelt for its sender (`respond`).

pub(super) mod check;
pub(super) mod respond;
mod serve;

pub(super) use serve::Sent;
