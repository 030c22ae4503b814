//! From one era to the other, as pure functions over spans and bytes: no I/O, no clock, no state.
//!
//! Owns every rule of a message's content between a modern client and a legacy server: requests down (`request`),
//! results, errors and notifications up (`result`, `flow`, `tools`, `error`, `notify`), capabilities and `server/discover`
//! (`discover`), and what a request declares (`declared`). HTTP status codes and headers belong to the edges.

pub mod declared;
pub mod discover;
pub mod error;
pub mod flow;
pub mod listen;
pub mod notify;
pub mod request;
pub mod result;
pub mod tools;

#[cfg(test)]
mod tests;
