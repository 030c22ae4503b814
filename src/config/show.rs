//! The settings as a TOML file again, for `check`: every setting with the value it has, secrets left out.
//!
//! Owns the order and the form; what it prints can be loaded again, but for a session key: in its place stands what is no
//! key, because sessions sealed with a made up one would be lost. Header values, fixed credentials, the query of URLs, and
//! arguments and environment of commands are secrets here as well. Does not own comments: `configs/janus.toml` explains the settings.

use std::fmt::{self, Display, Write};
use std::path::Path;
use std::time::Duration;

use super::error::{REDACTED, without_credentials};
use super::substitute::escape;
use super::units::{show_duration, show_size};
use super::{
    Admin, Affinity, Authorization, Config, EraSetting, FrontTimeouts, HttpTransport, Limits, Listen, Log,
    LogFormat, Secret, SessionScope, Target, Upstream,
};
use crate::wire::log_level::LogLevel;

impl Config {
    /// All settings as TOML, with secrets replaced.
    pub fn to_redacted_toml(&self) -> String {
        let mut out = Lines::default();
        out.set("shutdown_grace", time(self.shutdown_grace));
        if let Some(file) = &self.era_cache_file {
            out.set("era_cache_file", path(file));
        }
        listen(&mut out, &self.listen);
        if let Some(one) = &self.admin {
            admin(&mut out, one);
        }
        limits(&mut out, &self.limits);
        timeouts(&mut out, &self.timeouts);
        log(&mut out, &self.log);
        for one in &self.upstreams {
            upstream(&mut out, one);
        }
        out.0
    }
}

/// The upstream's address as logs may show it: without the query, which may be a credential.
impl Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(url) => f.write_str(&without_credentials(url.as_str())),
            Self::Demo => f.write_str("builtin:demo"),
            // Arguments may hold secrets.
            Self::Command(command) => f.write_str(&command.program.to_string_lossy()),
        }
    }
}

#[derive(Default)]
struct Lines(String);

impl Lines {
    fn table(&mut self, name: impl Display) {
        self.line(format_args!("\n[{name}]"));
    }

    fn set(&mut self, key: &str, value: impl Display) {
        self.line(format_args!("{key} = {value}"));
    }

    fn line(&mut self, line: impl Display) {
        // Writing to a String does not fail.
        let _ = writeln!(self.0, "{line}");
    }
}

fn listen(out: &mut Lines, listen: &Listen) {
    out.table("listen");
    out.set("address", text(&listen.address.to_string()));
    out.set("allowed_hosts", list(listen.allowed_hosts.iter().map(|host| text(host))));
    out.set("allowed_origins", list(listen.allowed_origins.iter().map(|origin| text(origin))));
    if let Some(tls) = &listen.tls {
        out.table("listen.tls");
        out.set("certificate", path(&tls.certificate));
        out.set("key", path(&tls.key));
    }
}

fn admin(out: &mut Lines, admin: &Admin) {
    out.table("admin");
    out.set("address", text(&admin.address.to_string()));
}

fn limits(out: &mut Lines, limits: &Limits) {
    out.table("limits");
    out.set("body_bytes", size(limits.body_bytes));
    out.set("header_bytes", size(limits.header_bytes));
    out.set("connections", limits.connections);
    out.set("requests", limits.requests);
    out.set("streams", limits.streams);
    out.set("subscriptions", limits.subscriptions);
    out.set("nesting", limits.nesting);
    out.set("members", limits.members);
    out.set("events", limits.events);
    out.set("event_bytes", size(limits.event_bytes));
    out.set("parked", limits.parked);
    out.set("parked_per_principal", limits.parked_per_principal);
    out.set("replay_bytes", size(limits.replay_bytes));
}

fn timeouts(out: &mut Lines, timeouts: &FrontTimeouts) {
    out.table("timeouts");
    out.set("header", time(timeouts.header));
    out.set("body", time(timeouts.body));
    out.set("idle", time(timeouts.idle));
    out.set("handshake", time(timeouts.handshake));
    out.set("hold", time(timeouts.hold));
    out.set("keep_alive", time(timeouts.keep_alive));
}

fn log(out: &mut Lines, log: &Log) {
    out.table("log");
    let format = match log.format {
        LogFormat::Human => "human",
        LogFormat::Json => "json",
    };
    out.set("format", text(format));
    out.set("level", text(&log.level));
}

fn upstream(out: &mut Lines, upstream: &Upstream) {
    let name = &upstream.name;
    out.table(format_args!("upstream.{name}"));
    out.set("path", text(&upstream.path));
    target(out, upstream);
    if let Some(path) = &upstream.sse_path {
        out.set("sse_path", text(path));
    }
    let era = match upstream.era {
        EraSetting::Auto => "auto",
        EraSetting::Modern => "modern",
        EraSetting::Legacy => "legacy",
    };
    out.set("era", text(era));
    out.set("era_ttl", time(upstream.era_ttl));
    out.set("interactive", upstream.interactive);
    out.set("legacy_clients", upstream.legacy_clients);
    let revisions = upstream.convert_content.iter().map(|revision| text(revision.as_str()));
    out.set("convert_content", list(revisions));
    out.set("legacy_not_found", upstream.legacy_not_found);
    out.set("cache_lists", upstream.cache_lists);
    upstream_timeouts(out, upstream);
    upstream_limits(out, upstream);
    session(out, upstream);
    schema(out, upstream);
}

/// What the upstream is, and the settings that go with that alone.
fn target(out: &mut Lines, upstream: &Upstream) {
    if let Target::Command(command) = &upstream.target {
        out.set("command", text(&command.program.to_string_lossy()));
        out.set("args", list(command.args.iter().map(|_| text(REDACTED))));
        out.set("env", redacted(&command.env));
        out.set("inherit_env", list(command.inherit_env.iter().map(|name| text(name))));
        if let Some(cwd) = &command.cwd {
            out.set("cwd", path(cwd));
        }
        return;
    }
    out.set("url", text(&upstream.target.to_string()));
    let transport = match upstream.transport {
        HttpTransport::Auto => "auto",
        HttpTransport::StreamableHttp => "streamable-http",
        HttpTransport::Sse => "sse",
    };
    out.set("transport", text(transport));
    if let Some(endpoint) = &upstream.sse_endpoint {
        out.set("sse_endpoint", text(&without_credentials(endpoint)));
    }
    let authorization = match &upstream.authorization {
        Authorization::Forward => text("forward"),
        Authorization::Strip => text("strip"),
        Authorization::Fixed(_) => format!("{{ value = {} }}", text(REDACTED)),
    };
    out.set("authorization", authorization);
    out.set("headers", redacted(&upstream.headers));
    out.set("forward_headers", list(upstream.forward_headers.iter().map(|name| text(name))));
    out.set("ca_files", list(upstream.ca_files.iter().map(|file| path(file))));
}

fn redacted(secrets: &[(String, Secret)]) -> String {
    members(secrets.iter().map(|(name, _)| (key(name), text(REDACTED))))
}

fn members(members: impl Iterator<Item = (String, String)>) -> String {
    let members = members.map(|(key, value)| format!("{key} = {value}"));
    let members = members.collect::<Vec<_>>().join(", ");
    if members.is_empty() { "{}".to_owned() } else { format!("{{ {members} }}") }
}

fn upstream_timeouts(out: &mut Lines, upstream: &Upstream) {
    let timeouts = &upstream.timeouts;
    out.table(format_args!("upstream.{}.timeouts", upstream.name));
    out.set("connect", time(timeouts.connect));
    out.set("probe", time(timeouts.probe));
    out.set("initialize", time(timeouts.initialize));
    out.set("request", time(timeouts.request));
    out.set("stream", time(timeouts.stream));
    out.set("reconnect", time(timeouts.reconnect));
    out.set("reconnect_max", time(timeouts.reconnect_max));
    out.set("start", time(timeouts.start));
    out.set("stop", time(timeouts.stop));
    out.set("pool_idle", time(timeouts.pool_idle));
    out.set("gather", time(timeouts.gather));
    out.set("answer", time(timeouts.answer));
    out.set("attribute", time(timeouts.attribute));
    out.set("url", time(timeouts.url));
    out.set("replay", time(timeouts.replay));
    out.set("pace", time(timeouts.pace));
}

fn upstream_limits(out: &mut Lines, upstream: &Upstream) {
    let limits = &upstream.limits;
    out.table(format_args!("upstream.{}.limits", upstream.name));
    out.set("message_bytes", size(limits.message_bytes));
    out.set("flow_bytes", size(limits.flow_bytes));
    out.set("max_processes", limits.max_processes);
    out.set("pool_connections", limits.pool_connections);
    out.set("redirects", limits.redirects);
    out.set("resumptions", limits.resumptions);
    out.set("rounds", limits.rounds);
    out.set("questions", limits.questions);
    out.set("question_bytes", size(limits.question_bytes));
    out.set("waiting_calls", limits.waiting_calls);
    out.set("polls", limits.polls);
    out.set("cache_bytes", size(limits.cache_bytes));
    out.set("catalog_tools", limits.catalog_tools);
    out.set("catalogs", limits.catalogs);
    out.set("resources", limits.resources);
}

fn session(out: &mut Lines, upstream: &Upstream) {
    let session = &upstream.session;
    out.table(format_args!("upstream.{}.session", upstream.name));
    let scope = match session.scope {
        SessionScope::Principal => "principal",
        SessionScope::Request => "request",
    };
    out.set("scope", text(scope));
    match &session.affinity {
        Some(Affinity::Header(name)) => out.set("affinity", text(&format!("header:{name}"))),
        Some(Affinity::Meta(key)) => out.set("affinity", text(&format!("meta:{key}"))),
        None => {}
    }
    out.set("max", session.max);
    out.set("max_per_key", session.max_per_key);
    out.set("idle", time(session.idle));
    out.set("shield", session.shield);
    if session.key.is_some() {
        out.set("key", text(REDACTED));
    }
    out.set("max_age", time(session.max_age));
    out.set("replay_events", session.replay_events);
    out.set("replay_bytes", size(session.replay_bytes));
    out.set("replay", time(session.replay));
    out.set("poll", time(session.poll));
    out.set("log_level", text(session.log_level.map_or("off", LogLevel::as_str)));
}

fn schema(out: &mut Lines, upstream: &Upstream) {
    let schema = &upstream.schema;
    out.table(format_args!("upstream.{}.schema", upstream.name));
    out.set("policy", text(schema.policy.word()));
    out.set("arguments", text(schema.arguments.word()));
    out.set("results", text(schema.results.word()));
    out.set("depth", schema.depth);
    out.set("subschemas", schema.subschemas);
    out.set("bytes", size(schema.bytes));
    out.set("references", schema.references);
    out.set("time", time(schema.time));
    out.set("cache_bytes", size(schema.cache_bytes));
    let documents = schema.documents.iter();
    out.set("documents", members(documents.map(|document| (key(&document.uri), path(&document.file)))));
}

/// Names are no texts to `${NAME}`.
fn key(name: &str) -> String {
    toml::Value::String(name.to_owned()).to_string()
}

fn text(text: &str) -> String {
    toml::Value::String(escape(text)).to_string()
}

fn path(path: &Path) -> String {
    text(&path.display().to_string())
}

fn time(duration: Duration) -> String {
    text(&show_duration(duration))
}

fn size(bytes: usize) -> String {
    text(&show_size(u64::try_from(bytes).unwrap_or(u64::MAX)))
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}
