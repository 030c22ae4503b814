//! What goes over the wire, as pure functions: no sockets, no clocks, no tasks.

pub mod headers;
pub mod json;
pub mod jsonrpc;
pub mod lines;
pub mod log_level;
pub mod meta;
pub mod method;
pub mod payload;
pub mod sse;
pub mod version;
