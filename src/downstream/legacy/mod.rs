//! The legacy era's front: what a request of 2025-11-25 and older must be (`check`), how it is served (`serve`), how what
//! comes back is spelt for its sender (`respond`), and where the server is modern: sessions (`session`) and the way of each
//! message (`bridge`).

mod bridge;
pub(super) mod check;
pub(super) mod respond;
mod serve;
pub(super) mod session;

pub(super) use bridge::{Place, Post};
pub(super) use session::Sessions;
