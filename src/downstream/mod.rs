//! The edge to clients: from an HTTP request to a call, and from an outcome to an HTTP response.
//!
//! Owns routing by path and the bound on requests in work (`front`), the choice of the client's era (`client`), reading a
//! body within its bounds (`read`); `old_sse` serves clients of the HTTP+SSE of 2024 and `channel` them and stdio hosts, by
//! requests in memory; `modern` and `legacy` hold the eras' checks and their spelling of outcomes, `body` the
//! response bodies.
//! Never talks to a server: that is `relay`'s.

mod body;
mod channel;
mod client;
mod ends;
mod front;
mod half_event;
mod keep_alive;
mod legacy;
pub mod modern;
mod old_sse;
mod passing;
mod read;
mod reading;
mod record;
mod relayed;

pub use body::FrontBody;
pub use channel::{Brought, Client, Inbound};
pub use front::Front;
