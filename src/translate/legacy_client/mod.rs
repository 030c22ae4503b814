//! Between a legacy client and a modern server, as pure functions over spans and bytes: no I/O, no clock, no state.
//!
//! Owns every rule of a message's content in this direction. What goes up: what a client says of itself (`initialize`), the
//! envelope of each request (`envelope`), the headers that repeat parts of it (`mirror`), what the proxy listens for
//! (`listen`). What comes down: what a server offers (`discovered`), tools and their schemas (`tools`, `output`), results
//! (`result`, `content`), errors (`error`), notifications (`notify`). And the rounds of `input_required`: what a server
//! asks (`round`), the request that asks the client (`ask`, `form`), and what its answer becomes (`reply`). The other
//! direction is the rest of `translate`; HTTP status codes belong to the edges. Rules: translation, columns L>M.

pub mod ask;
pub mod content;
pub mod discovered;
pub mod envelope;
pub mod error;
pub mod form;
pub mod fresh;
mod identity;
pub mod initialize;
pub mod listen;
pub mod mirror;
pub mod notify;
pub mod output;
pub mod reply;
pub mod result;
pub mod round;
pub mod tools;

#[cfg(test)]
mod odd_tests;
#[cfg(test)]
mod testing;
