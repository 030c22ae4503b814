//! mcp-janus: a proxy between MCP clients and MCP servers of different generations.

pub mod config;
pub mod demo;
pub mod wire;
