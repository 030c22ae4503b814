//! mcp-janus: a proxy between MCP clients and MCP servers of different generations.

pub mod config;
pub mod listen;
pub mod net;
pub mod shutdown;
pub mod upstream;
pub mod wire;
