//! mcp-janus: a proxy between MCP clients and MCP servers of different generations.

pub mod cli;
pub mod config;
pub mod demo;
pub mod exchange;
pub mod net;
pub mod shutdown;
pub mod translate;
pub mod upstream;
pub mod wire;
