//! The reserved keys of `_meta` (spec 2026-07-28 basic/index, `_meta`; translation A4).

/// All keys of this prefix that the revision defines are listed below; others under it pass as any key does.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// 2025-11-25 task vocabulary, unknown to 2026-07-28.
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
pub const PROGRESS_TOKEN: &str = "progressToken";

/// Modern vocabulary that no legacy peer may see (invariant 6).
pub const MODERN_ONLY: [&str; 6] =
    [PROTOCOL_VERSION, CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, SUBSCRIPTION_ID, SERVER_INFO];
