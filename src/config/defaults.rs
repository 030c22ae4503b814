//! What holds where nothing is said.
//!
//! Owns every default value, as code that builds the validated types. `configs/janus.toml` shows the same values,
//! and a test compares the two.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use super::error::ConfigError;
use super::{
    Authorization, Config, EraSetting, FrontTimeouts, HttpTransport, Limits, Listen, Log, LogFormat, Schema,
    SchemaPolicy, Session, SessionScope, Target, Upstream, UpstreamLimits, UpstreamTimeouts, Validation,
    target,
};
use crate::wire::version::LegacyRevision;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// The name of an upstream that nobody named.
pub(super) const NAME: &str = "default";
/// The path of an upstream that is the only one.
pub(super) const PATH: &str = "/mcp";
pub(super) const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);

impl Config {
    /// Defaults all over, in front of one upstream.
    pub fn single(upstream: Upstream) -> Self {
        Self {
            listen: Listen::default(),
            admin: None,
            limits: Limits::default(),
            timeouts: FrontTimeouts::default(),
            log: Log::default(),
            upstreams: vec![upstream],
            era_cache_file: None,
            shutdown_grace: SHUTDOWN_GRACE,
        }
    }
}

impl Upstream {
    /// The upstream at `url` (`http`, `https` or `builtin:demo`), everything else by default.
    pub fn for_url(url: &str) -> Result<Self, ConfigError> {
        let target = target::of_url(&raw_path("url"), &toml::Value::String(url.to_owned()));
        Ok(Self::for_target(target.map_err(|error| error.renamed(|_| "URL".to_owned()))?))
    }

    pub fn for_target(target: Target) -> Self {
        Self {
            name: NAME.to_owned(),
            path: PATH.to_owned(),
            target,
            transport: HttpTransport::Auto,
            sse_endpoint: None,
            sse_path: None,
            era: EraSetting::Auto,
            era_ttl: Duration::from_secs(24 * 60 * 60),
            authorization: Authorization::Forward,
            headers: Vec::new(),
            forward_headers: Vec::new(),
            ca_files: Vec::new(),
            interactive: true,
            legacy_clients: true,
            convert_content: vec![LegacyRevision::V2024_11_05, LegacyRevision::V2025_03_26],
            legacy_not_found: true,
            cache_lists: false,
            timeouts: UpstreamTimeouts::default(),
            limits: UpstreamLimits::default(),
            session: Session::default(),
            schema: Schema::default(),
        }
    }
}

impl Default for Schema {
    fn default() -> Self {
        Self {
            policy: SchemaPolicy::Drop,
            arguments: Validation::Off,
            results: Validation::Off,
            depth: 100,
            subschemas: 10_000,
            bytes: 256 * KIB,
            references: 1000,
            time: Duration::from_millis(50),
            cache_bytes: 8 * MIB,
            documents: Vec::new(),
        }
    }
}

impl Default for Listen {
    fn default() -> Self {
        Self {
            address: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8808),
            tls: None,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 4 * MIB,
            header_bytes: 32 * KIB,
            connections: 1024,
            requests: 1024,
            streams: 1024,
            subscriptions: 256,
            nesting: 128,
            members: 1024,
            events: 64,
            event_bytes: MIB,
            parked: 1024,
            parked_per_principal: 256,
            replay_bytes: 8 * MIB,
        }
    }
}

impl Default for FrontTimeouts {
    fn default() -> Self {
        Self {
            header: Duration::from_secs(10),
            body: Duration::from_secs(30),
            idle: Duration::from_secs(120),
            handshake: Duration::from_secs(10),
            hold: Duration::from_millis(500),
            keep_alive: Duration::from_secs(15),
        }
    }
}

impl Default for Log {
    fn default() -> Self {
        Self { format: LogFormat::Human, level: "info".to_owned() }
    }
}

impl Default for UpstreamTimeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            probe: Duration::from_secs(10),
            initialize: Duration::from_secs(30),
            request: Duration::from_secs(10 * 60),
            stream: Duration::from_millis(500),
            reconnect: Duration::from_secs(1),
            reconnect_max: Duration::from_secs(30),
            start: Duration::from_secs(60),
            stop: Duration::from_secs(2),
            pool_idle: Duration::from_secs(4),
            gather: Duration::from_millis(25),
            answer: Duration::from_secs(5 * 60),
            attribute: Duration::from_secs(10),
            url: Duration::from_secs(10),
            replay: Duration::from_secs(30),
            pace: Duration::from_secs(1),
        }
    }
}

impl Default for UpstreamLimits {
    fn default() -> Self {
        Self {
            message_bytes: 64 * MIB,
            flow_bytes: 64 * KIB,
            max_processes: 64,
            pool_connections: 64,
            redirects: 3,
            resumptions: 5,
            rounds: 8,
            questions: 64,
            question_bytes: 4 * MIB,
            waiting_calls: 256,
            polls: 64,
            cache_bytes: 4 * MIB,
            catalog_tools: 4096,
            catalogs: 1024,
            resources: 4096,
        }
    }
}

impl Default for Session {
    fn default() -> Self {
        Self {
            scope: SessionScope::Principal,
            affinity: None,
            max: 1024,
            max_per_key: 1,
            idle: Duration::from_secs(10 * 60),
            shield: false,
            key: None,
            max_age: Duration::from_secs(24 * 60 * 60),
            replay_events: 256,
            replay_bytes: MIB,
            replay: Duration::from_secs(5 * 60),
            poll: Duration::ZERO,
            log_level: None,
        }
    }
}

fn raw_path(setting: &str) -> String {
    format!("upstream.{NAME}.{setting}")
}
