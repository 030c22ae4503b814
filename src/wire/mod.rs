//! What goes over the wire, as pure functions: no sockets, no clocks, no tasks.

pub mod headers;
pub mod sse;
