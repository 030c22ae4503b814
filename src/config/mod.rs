//! Settings, validated: the types here cannot hold a value that the rest of the program would have to doubt.
//!
//! Owns the validated shape (this file) and how it comes about: `raw` (serde structs of the TOML file, unknown
//! fields refused), `load` (file, environment, with the path of every error), `front`, `upstream`, `target` and
//! `schema` (the range of each setting), `flags` and `mcp_servers` (flags, and files of hosts, in terms of the
//! same settings), `defaults`, and `show` (the way back to TOML).
//! Does not own the command line (`cli`), nor what the settings do.

mod defaults;
mod error;
mod flags;
mod front;
mod json;
mod load;
mod mcp_servers;
mod net;
mod raw;
mod schema;
mod secrets;
mod show;
mod substitute;
mod target;
mod units;
mod upstream;
mod values;
mod warnings;

#[cfg(test)]
mod explained_tests;
#[cfg(test)]
mod load_tests;
#[cfg(test)]
mod mcp_servers_tests;
#[cfg(test)]
mod target_tests;
#[cfg(test)]
mod wrong_tests;

pub use error::ConfigError;
pub use flags::{
    LogFlags, ProbeFlags, ServeFlags, Surroundings, UpstreamFlags, from_flags, from_mcp_servers,
    from_probe_flags, from_stdio_flags,
};
pub use load::{Loaded, load_any, load_file, load_one};
pub use mcp_servers::{load_mcp_server, load_mcp_servers};
pub use schema::{DocumentFlags, SchemaFlags};
pub use secrets::{Secret, SessionKey};
pub use target::Command;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;

use crate::wire::log_level::LogLevel;
use crate::wire::version::LegacyRevision;

/// Everything that one process needs to know before it starts.
#[derive(Debug, Clone)]
pub struct Config {
    pub listen: Listen,
    /// Off when `None`.
    pub admin: Option<Admin>,
    pub limits: Limits,
    pub timeouts: FrontTimeouts,
    pub log: Log,
    /// At least one; paths are distinct.
    pub upstreams: Vec<Upstream>,
    /// `era_cache_file`: verdicts survive a restart when set.
    pub era_cache_file: Option<PathBuf>,
    /// `shutdown_grace`: how long calls in flight may still run after SIGTERM or SIGINT.
    pub shutdown_grace: Duration,
}

/// `[listen]`: where clients come in.
#[derive(Debug, Clone)]
pub struct Listen {
    pub address: SocketAddr,
    pub tls: Option<Tls>,
    /// Host names (with or without port) accepted in `Host`; checked always on a loopback bind, elsewhere when not empty.
    pub allowed_hosts: Vec<String>,
    /// Origins accepted in `Origin` beside loopback ones (A12.11, C61): exact `scheme://host[:port]`, or `*` for any.
    pub allowed_origins: Vec<String>,
}

/// `[admin]`: where metrics and health are served, apart from clients.
#[derive(Debug, Clone)]
pub struct Admin {
    /// Never the one of `listen`.
    pub address: SocketAddr,
}

#[derive(Debug, Clone)]
pub struct Tls {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// `[limits]`: bounds of the front. Each one has an error of its own.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of one request body; above: 413.
    pub body_bytes: usize,
    /// Bytes of a request head; above: 431.
    pub header_bytes: usize,
    /// Open client connections; above: 503 with `Retry-After`.
    pub connections: usize,
    /// Requests in work at once; above: 503 with `Retry-After`.
    pub requests: usize,
    /// Subscriptions and other streams that live on without a request in work; above: 503 with `Retry-After`.
    pub streams: usize,
    /// URIs in one `subscriptions/listen`; above: -32602.
    pub subscriptions: usize,
    /// Nesting depth of a JSON body; above: 400.
    pub nesting: usize,
    /// Members in one object that the proxy takes apart (envelope, `params`, `_meta`, `result`); above: 400.
    pub members: usize,
    /// Notifications that may wait for a slow client of one call before its upstream is slowed down.
    pub events: usize,
    /// Bytes of such notifications; one that is larger waits until it is alone.
    pub event_bytes: usize,
    /// Calls of all callers whose question waits for its answer; above: the question is refused and the call gets 503.
    pub parked: usize,
    /// The same of one caller.
    pub parked_per_principal: usize,
    /// Bytes of last answers that are kept for clients that did not get theirs (B1.6); 0: none is kept.
    pub replay_bytes: usize,
}

/// `[timeouts]`: times of the front.
#[derive(Debug, Clone)]
pub struct FrontTimeouts {
    /// Until a whole request head has arrived.
    pub header: Duration,
    /// Until a whole request body has arrived; above: 408.
    pub body: Duration,
    /// A connection without a request in work is closed after this.
    pub idle: Duration,
    /// TLS handshake.
    pub handshake: Duration,
    /// How long response headers are held back for the first upstream message (B11); at most 1 s.
    pub hold: Duration,
    /// Interval of keep-alive comments on an open event stream (C16).
    pub keep_alive: Duration,
}

#[derive(Debug, Clone)]
pub struct Log {
    pub format: LogFormat,
    /// A `tracing` filter directive, such as `info` or `mcp_janus=debug`.
    pub level: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Human,
    Json,
}

/// `[upstream.NAME]`: one MCP server behind the proxy.
#[derive(Debug, Clone)]
pub struct Upstream {
    /// The table's name: letters, digits, `-`, `_`. Shown in logs.
    pub name: String,
    /// Where clients reach it, such as `/mcp`; no trailing slash (`/mcp/` is served alike).
    pub path: String,
    pub target: Target,
    /// Of an `http` or `https` target.
    pub transport: HttpTransport,
    /// Where messages are posted to at a server of the old HTTP+SSE, in the place of what its `endpoint` event says, whose
    /// query is kept: a path, or a URL of the same origin (C42).
    pub sse_endpoint: Option<String>,
    /// Where clients of the old HTTP+SSE find their event stream, such as `/sse`; messages are posted to `messages` beside it.
    /// `None`: they are not served.
    pub sse_path: Option<String>,
    pub era: EraSetting,
    /// After this a legacy verdict is looked at again in the background (B13).
    pub era_ttl: Duration,
    pub authorization: Authorization,
    /// Headers added to every upstream request; values are secrets as far as logs go.
    pub headers: Vec<(String, Secret)>,
    /// Names of client request headers that are passed on besides the protocol's own.
    pub forward_headers: Vec<String>,
    /// PEM files with further certificate authorities.
    pub ca_files: Vec<PathBuf>,
    /// Whether a server learns what its client could be asked; if not, it is told that nothing can (B2.1, B5).
    pub interactive: bool,
    /// Whether legacy clients are served where the server is modern; if not, they get -32022 (D83).
    pub legacy_clients: bool,
    /// Revisions whose clients get content blocks that they do not know as text (A6), where the server is modern.
    pub convert_content: Vec<LegacyRevision>,
    /// Whether a modern server's -32602 for a resource that is not there becomes the -32002 of older revisions (B3).
    pub legacy_not_found: bool,
    /// Whether list results of a modern server are kept for as long as it says (`ttlMs`).
    pub cache_lists: bool,
    pub timeouts: UpstreamTimeouts,
    pub limits: UpstreamLimits,
    pub session: Session,
    pub schema: Schema,
}

/// `[upstream.NAME.schema]`: what becomes of tools whose schemas are not sound, and what is checked against schemas.
#[derive(Debug, Clone)]
pub struct Schema {
    pub policy: SchemaPolicy,
    /// A call's `arguments` against the tool's `inputSchema`.
    pub arguments: Validation,
    /// A result's `structuredContent` against the tool's `outputSchema`.
    pub results: Validation,
    /// Nesting of JSON in one schema; above: a finding.
    pub depth: usize,
    /// Subschemas of one schema, and how many of them may apply to one value; above: a finding.
    pub subschemas: usize,
    /// Bytes of one schema; above: a finding.
    pub bytes: usize,
    /// References in one schema; above: a finding.
    pub references: usize,
    /// Time that judging one tool, or checking one value, may take; above: a finding, or a value that is not checked.
    pub time: Duration,
    /// Bytes of lists that are kept with their verdicts, and of schemas that are kept compiled; the oldest make room.
    pub cache_bytes: usize,
    /// Documents that references may lead to, under their absolute URIs; files are read when the settings are.
    pub documents: Vec<Document>,
}

/// One entry of `schema.documents`.
#[derive(Debug, Clone)]
pub struct Document {
    /// Absolute, without a fragment.
    pub uri: String,
    pub file: PathBuf,
    /// The file's JSON.
    pub text: Bytes,
}

/// What becomes of a bad tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaPolicy {
    /// It is left out of the list, and calls of it are refused.
    Drop,
    /// It is passed on, logged and counted.
    Warn,
}

/// What is done about a value that does not fit its schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Validation {
    /// It is not looked at.
    Off,
    /// It is passed on, logged and counted.
    Warn,
    /// It is refused.
    Enforce,
}

impl Upstream {
    /// Where clients of the old HTTP+SSE post their messages: `messages` beside `sse_path`.
    pub fn sse_messages_path(&self) -> Option<String> {
        let (beside, _) = self.sse_path.as_ref()?.rsplit_once('/')?;
        Some(format!("{beside}/messages"))
    }
}

/// What the upstream is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A Streamable HTTP endpoint, `http` or `https`.
    Http(url::Url),
    /// `builtin:demo`: the legacy server inside this binary.
    Demo,
    /// A stdio server, started as a child process.
    Command(Command),
}

impl Upstream {
    /// How long the opening of a session may take: a process has to start first.
    pub fn opening(&self) -> Duration {
        match self.target {
            Target::Command(_) => self.timeouts.start.max(self.timeouts.initialize),
            Target::Http(_) | Target::Demo => self.timeouts.initialize,
        }
    }
}

/// Which transport an `http` or `https` server has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpTransport {
    /// Streamable HTTP; the old HTTP+SSE where `initialize` is refused as a server refuses it that has only that (C42).
    Auto,
    StreamableHttp,
    /// HTTP+SSE of 2024-11-05: the URL is that of the event stream.
    Sse,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EraSetting {
    Auto,
    Modern,
    Legacy,
}

/// What becomes of the client's `Authorization` header (A13.10).
#[derive(Debug, Clone)]
pub enum Authorization {
    Forward,
    Strip,
    /// A fixed credential: the whole header value.
    Fixed(Secret),
}

#[derive(Debug, Clone)]
pub struct UpstreamTimeouts {
    /// TCP and TLS.
    pub connect: Duration,
    /// One answer to the `server/discover` probe.
    pub probe: Duration,
    /// One answer to `initialize`; at a modern server the acknowledgement of a subscription.
    pub initialize: Duration,
    /// A whole call; above: 504.
    pub request: Duration,
    /// How long an acknowledgement waits for the server's stream (GET) to open.
    pub stream: Duration,
    /// Pause before a stream that broke off is opened again, where the server names none; doubled at each failure.
    pub reconnect: Duration,
    /// The longest such pause, also where the server names one.
    pub reconnect_max: Duration,
    /// From the start of a child process to its first message; above: 504.
    pub start: Duration,
    /// How long a child process has to end once its standard input is closed, and again after SIGTERM; then SIGKILL.
    pub stop: Duration,
    /// An idle pooled connection is closed after this. Node and uvicorn close theirs after 5 s, and a request that is sent in
    /// that very moment is lost.
    pub pool_idle: Duration,
    /// How long further questions of a call are waited for before its client is asked (B1.4).
    pub gather: Duration,
    /// How long a question waits for the client's answer; then its call is given up (B1.7).
    pub answer: Duration,
    /// How long a question is held of which it is not known which call it belongs to (B5).
    pub attribute: Duration,
    /// How long a call that is sent again waits until the server says that the page has been done with (B4.1).
    pub url: Duration,
    /// How long the last answer is kept for a client that did not get it (B1.6).
    pub replay: Duration,
    /// First wait before a modern server is sent a call again without answers; doubles up to 10 s (B2).
    pub pace: Duration,
}

#[derive(Debug, Clone)]
pub struct UpstreamLimits {
    /// Bytes of one upstream message that is held (a JSON body or the data of one event); above: 502.
    pub message_bytes: usize,
    /// Bytes of a legacy server's result from which on it goes to the client while it still comes.
    pub flow_bytes: usize,
    /// Child processes at once; above: 503.
    pub max_processes: usize,
    /// Idle connections kept open to the upstream.
    pub pool_connections: usize,
    /// Redirects followed for one request, same origin only.
    pub redirects: usize,
    /// Times one stream is resumed with `Last-Event-ID` without a new event in between.
    pub resumptions: usize,
    /// Times that the client of one call is asked (B1.5).
    pub rounds: usize,
    /// Questions of one call that are open at once; also questions of one session whose call is not known yet.
    pub questions: usize,
    /// Bytes of the open questions of one call.
    pub question_bytes: usize,
    /// Calls of one session that wait until another one is over, so that a question can be attributed (B5).
    pub waiting_calls: usize,
    /// Times that one call is sent to a modern server again without answers (B2).
    pub polls: usize,
    /// Bytes of list results that are kept (`cache_lists`).
    pub cache_bytes: usize,
    /// Tools of a modern server that are known for one principal: headers to mirror, form of the result.
    pub catalog_tools: usize,
    /// Principals for which tools are known, and of which that the server lets them in (`cache_lists`).
    pub catalogs: usize,
    /// Resources of a modern server that all sessions of one principal are subscribed to.
    pub resources: usize,
}

/// `[upstream.NAME.session]`: sessions that the proxy owns at a legacy upstream (architecture: session pool), and those that
/// it gives to legacy clients before a modern upstream.
#[derive(Debug, Clone)]
pub struct Session {
    pub scope: SessionScope,
    /// Splits sessions further than the principal does (B7.3).
    pub affinity: Option<Affinity>,
    /// Sessions open at once; above: the one idle longest is closed, else 503. Of either kind.
    pub max: usize,
    /// Sessions of one key at a server that asks outside its calls' streams, where calls go one at a time (B5).
    pub max_per_key: usize,
    /// A session without a call (and without an open stream of its client) ends after this; at a server with DELETE.
    pub idle: Duration,
    /// Legacy clients' sessions are the proxy's own and outlive the server's.
    pub shield: bool,
    /// What sessions of legacy clients before a modern server are sealed with; `None`: a random one for each process.
    pub key: Option<SessionKey>,
    /// With `key`: how old a session may be that this process does not know and yet serves.
    pub max_age: Duration,
    /// Events of one such session that are kept for a client that comes back.
    pub replay_events: usize,
    /// Bytes of them.
    pub replay_bytes: usize,
    /// How long they are kept after the end of their stream.
    pub replay: Duration,
    /// A call's stream to a 2025-11-25 client is closed after this, and the client comes back for the rest; zero: never.
    pub poll: Duration,
    /// The level of log messages before the client's first `logging/setLevel`; `None`: no messages.
    pub log_level: Option<LogLevel>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionScope {
    /// One session per principal (and capabilities, and affinity value).
    Principal,
    /// A fresh session for every call.
    Request,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Affinity {
    /// `header:NAME`
    Header(String),
    /// `meta:KEY`, a key of `params._meta`
    Meta(String),
}
