//! The TOML file as it is written: which tables and settings exist, and no more than that.
//!
//! Owns the names of all settings. Every setting is kept as the TOML value it came as, so that one place (`values`)
//! words every refusal alike: path, value, what is accepted. Does not own what a value may be, nor any default.

use std::collections::BTreeMap;

use serde::Deserialize;

/// One setting, not yet looked at.
pub(super) type Leaf = Option<toml::Value>;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct File {
    pub(super) listen: Listen,
    pub(super) admin: Option<Admin>,
    pub(super) limits: Limits,
    pub(super) timeouts: FrontTimeouts,
    pub(super) log: Log,
    pub(super) era_cache_file: Leaf,
    pub(super) shutdown_grace: Leaf,
    pub(super) upstream: BTreeMap<String, Upstream>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Listen {
    pub(super) address: Leaf,
    pub(super) tls: Option<Tls>,
    pub(super) allowed_hosts: Leaf,
    pub(super) allowed_origins: Leaf,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Admin {
    pub(super) address: Leaf,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Tls {
    pub(super) certificate: Leaf,
    pub(super) key: Leaf,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Limits {
    pub(super) body_bytes: Leaf,
    pub(super) header_bytes: Leaf,
    pub(super) connections: Leaf,
    pub(super) requests: Leaf,
    pub(super) streams: Leaf,
    pub(super) subscriptions: Leaf,
    pub(super) nesting: Leaf,
    pub(super) members: Leaf,
    pub(super) events: Leaf,
    pub(super) event_bytes: Leaf,
    pub(super) parked: Leaf,
    pub(super) parked_per_principal: Leaf,
    pub(super) replay_bytes: Leaf,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FrontTimeouts {
    pub(super) header: Leaf,
    pub(super) body: Leaf,
    pub(super) idle: Leaf,
    pub(super) handshake: Leaf,
    pub(super) hold: Leaf,
    pub(super) keep_alive: Leaf,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Log {
    pub(super) format: Leaf,
    pub(super) level: Leaf,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Upstream {
    pub(super) path: Leaf,
    pub(super) url: Leaf,
    pub(super) transport: Leaf,
    pub(super) sse_endpoint: Leaf,
    pub(super) command: Leaf,
    /// Texts; any of them may be a secret.
    pub(super) args: Leaf,
    /// A table of names and values; a leaf, because it may hold secrets.
    pub(super) env: Leaf,
    pub(super) inherit_env: Leaf,
    pub(super) cwd: Leaf,
    pub(super) sse_path: Leaf,
    pub(super) era: Leaf,
    pub(super) era_ttl: Leaf,
    /// A word, or a table with the one member `value`; a leaf, because it may hold a secret.
    pub(super) authorization: Leaf,
    /// A table of names and values; a leaf, because it may hold secrets.
    pub(super) headers: Leaf,
    pub(super) forward_headers: Leaf,
    pub(super) ca_files: Leaf,
    pub(super) interactive: Leaf,
    pub(super) legacy_clients: Leaf,
    pub(super) convert_content: Leaf,
    pub(super) legacy_not_found: Leaf,
    pub(super) cache_lists: Leaf,
    pub(super) timeouts: UpstreamTimeouts,
    pub(super) limits: UpstreamLimits,
    pub(super) session: Session,
    pub(super) schema: Schema,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct UpstreamTimeouts {
    pub(super) connect: Leaf,
    pub(super) probe: Leaf,
    pub(super) initialize: Leaf,
    pub(super) request: Leaf,
    pub(super) stream: Leaf,
    pub(super) reconnect: Leaf,
    pub(super) reconnect_max: Leaf,
    pub(super) start: Leaf,
    pub(super) stop: Leaf,
    pub(super) pool_idle: Leaf,
    pub(super) gather: Leaf,
    pub(super) answer: Leaf,
    pub(super) attribute: Leaf,
    pub(super) url: Leaf,
    pub(super) replay: Leaf,
    pub(super) pace: Leaf,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct UpstreamLimits {
    pub(super) message_bytes: Leaf,
    pub(super) flow_bytes: Leaf,
    pub(super) max_processes: Leaf,
    pub(super) pool_connections: Leaf,
    pub(super) redirects: Leaf,
    pub(super) resumptions: Leaf,
    pub(super) rounds: Leaf,
    pub(super) questions: Leaf,
    pub(super) question_bytes: Leaf,
    pub(super) waiting_calls: Leaf,
    pub(super) polls: Leaf,
    pub(super) cache_bytes: Leaf,
    pub(super) catalog_tools: Leaf,
    pub(super) catalogs: Leaf,
    pub(super) resources: Leaf,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Session {
    pub(super) scope: Leaf,
    pub(super) affinity: Leaf,
    pub(super) max: Leaf,
    pub(super) max_per_key: Leaf,
    pub(super) idle: Leaf,
    pub(super) shield: Leaf,
    pub(super) key: Leaf,
    pub(super) max_age: Leaf,
    pub(super) replay_events: Leaf,
    pub(super) replay_bytes: Leaf,
    pub(super) replay: Leaf,
    pub(super) poll: Leaf,
    pub(super) log_level: Leaf,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Schema {
    pub(super) policy: Leaf,
    pub(super) arguments: Leaf,
    pub(super) results: Leaf,
    pub(super) depth: Leaf,
    pub(super) subschemas: Leaf,
    pub(super) bytes: Leaf,
    pub(super) references: Leaf,
    pub(super) time: Leaf,
    pub(super) cache_bytes: Leaf,
    /// A table of URIs and names of files; a leaf, because its names are not settings.
    pub(super) documents: Leaf,
}

/// The paths at which a table, and nothing else, is expected; `*` stands for any name.
pub(super) const TABLES: &[&[&str]] = &[
    &["listen"],
    &["listen", "tls"],
    &["admin"],
    &["limits"],
    &["timeouts"],
    &["log"],
    &["upstream"],
    &["upstream", "*"],
    &["upstream", "*", "timeouts"],
    &["upstream", "*", "limits"],
    &["upstream", "*", "session"],
    &["upstream", "*", "schema"],
];
