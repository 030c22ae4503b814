//! A small legacy MCP server inside the binary, for `--upstream builtin:demo` and the `demo` command; and for the latter a
//! modern one that is smaller still (`modern`).
//!
//! Owns a complete peer of revision 2025-11-25: `server` (Streamable HTTP), `session` (what it remembers),
//! `features` (what it offers), `calls` (tools that take time), `booking` (the one that asks its client something),
//! `respond` (the forms of its answers). It stands for the servers that are out there,
//! so it behaves as one built on a legacy SDK does, errors included, and shares no code with the proxy's own wire
//! format: a mistake there must not be made here too. Deliberately absent: the standalone GET stream, resumption, sampling,
//! roots, logging.

mod booking;
mod calls;
mod features;
pub mod modern;
mod respond;
mod server;
mod session;

pub use server::serve;

#[cfg(test)]
mod asking_tests;
#[cfg(test)]
mod tests;
