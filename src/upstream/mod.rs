//! The edge to servers.

pub mod transport;
