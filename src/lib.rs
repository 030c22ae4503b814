//! mcp-janus: a proxy between MCP clients and MCP servers of different generations.
//!
//! A request of a modern client to a legacy server passes these places in this order:
//!
//! 1. [`listen`]: accept, limits, `Host` and `Origin`
//! 2. [`downstream`]: read the body, classify, check headers against it, build a [`exchange::Call`]
//! 3. [`relay`]: pick the upstream, plan the pair of eras, run the call
//! 4. [`upstream::legacy`]: take a session from the pool (initialize once), renumber, send, own the cancellation
//! 5. [`translate`]: pure functions: request down; result (whole, or in pieces while it comes), notification, error back
//! 6. [`upstream::transport`]: HTTP POST to the one configured endpoint; the answer is JSON or an event stream
//! 7. [`downstream`] again: JSON, or an event stream if anything came before the result
//!
//! Where the server asks its client something before it answers, 7 ends the request with the questions and the call waits
//! in [`upstream::parked`]. The client's next request passes 1 to 3, which finds the call there, and goes on in 4 where the
//! call is: the answers go to the server, and 5 to 7 follow for whichever request waits for the call then.
//!
//! Imports point one way: `app -> listen`, `app -> downstream -> relay -> upstream -> translate -> exchange, schema -> wire`;
//! [`config`], [`net`], [`seal`], [`shutdown`] and [`telemetry`] are leaves. `tests/layers.rs` reads the imports and fails on an
//! arrow that points back.

pub mod app;
pub mod cli;
pub mod commands;
pub mod config;
pub mod demo;
pub mod downstream;
pub mod exchange;
pub mod listen;
pub mod net;
pub mod relay;
pub mod schema;
pub mod seal;
pub mod shutdown;
pub mod telemetry;
pub mod translate;
pub mod upstream;
pub mod wire;
