//! `x-mcp-header`: the parameters of a tool that headers repeat.
//!
//! Owns reading the annotations of an `inputSchema` and the constraints that the specification puts on them: type, position,
//! token syntax, unique without case. Does not own the headers of a call (`translate::legacy_client::mirror`).
//! Rules: A5.10; vector D78; case C67; spec basic/transports/streamable-http, "Custom Headers from Tool Parameters".
