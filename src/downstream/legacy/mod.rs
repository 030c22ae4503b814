//! The legacy era's front: what a request of 2025-11-25 and older must be (`check`), how it is served (`serve`) and how what
//! comes back is spelt for its sender (`respond`).

pub(super) mod check;
pub(super) mod respond;
mod serve;
#[allow(dead_code, unused_imports, reason = "the bridge uses it")]
pub(in crate::downstream) mod session;
