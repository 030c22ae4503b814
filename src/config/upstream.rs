//! The server side of the settings: every `[upstream.NAME]`.
//!
//! Owns the ranges of these settings and what must hold among upstreams (distinct paths). Does not own secrets'
//! files (`secrets`), the schema guard (`schema`), nor the grammar of URLs and headers (`net`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use toml::Value;

use crate::wire::log_level::LogLevel;
use crate::wire::version::LegacyRevision;

use super::error::ConfigError;
use super::front::{DAY, HOUR, MS, SECOND};
use super::raw::{self, Leaf};
use super::substitute::below;
use super::values::{Table, holds_certificate, text};
use super::{
    Affinity, Authorization, EraSetting, Secret, Session, SessionScope, Upstream, UpstreamLimits,
    UpstreamTimeouts, defaults, net, schema, secrets, target,
};

pub(super) fn all(raw: &BTreeMap<String, raw::Upstream>, dir: &Path) -> Result<Vec<Upstream>, ConfigError> {
    if raw.is_empty() {
        return Err(ConfigError::missing(
            "upstream",
            "one table [upstream.NAME] at least, with a `url` or a `command`",
        ));
    }
    let mut upstreams: Vec<Upstream> = Vec::with_capacity(raw.len());
    for (name, table) in raw {
        let default_path = if raw.len() == 1 { defaults::PATH.to_owned() } else { format!("/{name}/mcp") };
        upstreams.push(one(name, table, default_path, dir)?);
    }
    apart(&upstreams)?;
    Ok(upstreams)
}

/// Refuses a path that stands for two things.
fn apart(upstreams: &[Upstream]) -> Result<(), ConfigError> {
    let mut taken: BTreeMap<String, String> = BTreeMap::new();
    // Paths of endpoints first, so that a refusal is about the setting that came on top.
    let endpoints = upstreams.iter().map(|upstream| (upstream, "path", "", Some(upstream.path.clone())));
    let streams = upstreams.iter().flat_map(|upstream| {
        [
            (upstream, "sse_path", "", upstream.sse_path.clone()),
            (upstream, "sse_path", "`messages` beside ", upstream.sse_messages_path()),
        ]
    });
    for (upstream, setting, beside, path) in endpoints.chain(streams) {
        let Some(path) = path else { continue };
        let at = below(&below("upstream", &upstream.name), setting);
        if let Some(other) = taken.get(&path) {
            let given =
                if setting == "path" { &upstream.path } else { upstream.sse_path.as_ref().unwrap_or(&path) };
            return Err(ConfigError::value(
                &at,
                &Value::String(given.clone()),
                format!("a path that nothing else has; {path} is {other} already"),
            ));
        }
        taken.insert(path, format!("{beside}{at}"));
    }
    Ok(())
}

fn one(name: &str, raw: &raw::Upstream, default_path: String, dir: &Path) -> Result<Upstream, ConfigError> {
    const ERAS: &[(&str, EraSetting)] =
        &[("auto", EraSetting::Auto), ("modern", EraSetting::Modern), ("legacy", EraSetting::Legacy)];
    let at = below("upstream", name);
    check_name(&at, name)?;
    let table = Table { path: &at, dir };
    let default = Upstream::for_target(target::of(&table, raw)?);
    let era = table.word("era", &raw.era, default.era, ERAS)?;
    let headers = headers(&table.at("headers"), &raw.headers, dir)?;
    Ok(Upstream {
        path: match &raw.path {
            Some(value) => net::endpoint_path(&table.at("path"), value)?,
            None => default_path,
        },
        transport: target::transport(&table, raw, era)?,
        sse_endpoint: target::sse_endpoint(&table, raw, &default.target)?,
        sse_path: raw
            .sse_path
            .as_ref()
            .map(|value| net::endpoint_path(&table.at("sse_path"), value))
            .transpose()?,
        era,
        era_ttl: table.duration("era_ttl", &raw.era_ttl, default.era_ttl, MS..=365 * DAY)?,
        authorization: authorization(&table.at("authorization"), &raw.authorization, dir)?,
        forward_headers: forward_headers(&table, &raw.forward_headers, &headers)?,
        headers,
        ca_files: table.list("ca_files", &raw.ca_files, "the name of a PEM file", |path, value| {
            let file = table.file(path, value)?;
            holds_certificate(path, &file)?;
            Ok(file)
        })?,
        interactive: table.flag("interactive", &raw.interactive, default.interactive)?,
        legacy_clients: table.flag("legacy_clients", &raw.legacy_clients, default.legacy_clients)?,
        convert_content: revisions(&table, "convert_content", &raw.convert_content, default.convert_content)?,
        legacy_not_found: table.flag("legacy_not_found", &raw.legacy_not_found, default.legacy_not_found)?,
        cache_lists: table.flag("cache_lists", &raw.cache_lists, default.cache_lists)?,
        timeouts: timeouts(&table.at("timeouts"), &raw.timeouts, dir)?,
        limits: limits(&table.at("limits"), &raw.limits, dir)?,
        session: session(&table.at("session"), &raw.session, dir)?,
        schema: schema::schema(&table.at("schema"), &raw.schema, dir)?,
        name: name.to_owned(),
        target: default.target,
    })
}

fn check_name(path: &str, name: &str) -> Result<(), ConfigError> {
    let fits = (1..=64).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    if fits {
        return Ok(());
    }
    let accepted = "a name of 1 to 64 letters, digits, `-` and `_`";
    Err(ConfigError::value(path, &Value::String(name.to_owned()), accepted))
}

fn authorization(path: &str, leaf: &Leaf, dir: &Path) -> Result<Authorization, ConfigError> {
    match leaf {
        None => Ok(Authorization::Forward),
        Some(Value::String(word)) if word == "forward" => Ok(Authorization::Forward),
        Some(Value::String(word)) if word == "strip" => Ok(Authorization::Strip),
        Some(Value::Table(table)) if table.len() == 1 && table.contains_key("value") => {
            secrets::header_value(&below(path, "value"), &table["value"], dir).map(Authorization::Fixed)
        }
        Some(other) => {
            let accepted = "\"forward\", \"strip\" or { value = \"...\" }, the value being the whole header value, \
                            such as \"file:PATH\" or \"Bearer ${NAME}\"";
            Err(ConfigError::value(path, other, accepted))
        }
    }
}

fn headers(path: &str, leaf: &Leaf, dir: &Path) -> Result<Vec<(String, Secret)>, ConfigError> {
    let table = match leaf {
        None => return Ok(Vec::new()),
        Some(Value::Table(table)) => table,
        Some(other) => {
            return Err(ConfigError::value(path, other, "a table of header names and values"));
        }
    };
    let mut headers: Vec<(String, Secret)> = Vec::with_capacity(table.len());
    for (name, value) in table {
        let at = below(path, name);
        let name = net::free_header_name(&at, value, name)?;
        if headers.iter().any(|(other, _)| *other == name) {
            return Err(ConfigError::value(
                &at,
                value,
                "each header once; upper and lower case are the same",
            ));
        }
        headers.push((name, secrets::header_value(&at, value, dir)?));
    }
    Ok(headers)
}

fn forward_headers(
    table: &Table<'_>,
    leaf: &Leaf,
    set: &[(String, Secret)],
) -> Result<Vec<String>, ConfigError> {
    // Browsers' credentials and origin are about the proxy's own address, not about the upstream (A13.10).
    const NEVER: &[&str] = &["cookie", "origin"];
    let names = table.list("forward_headers", leaf, "a header name", |path, value| {
        let name = text(path, value, "a header name")?;
        let name = net::free_header_name(path, value, name)?;
        if NEVER.contains(&name.as_str()) {
            return Err(ConfigError::value(path, value, "a header other than `cookie` and `origin`"));
        }
        if set.iter().any(|(other, _)| *other == name) {
            return Err(ConfigError::value(path, value, "a header that `headers` does not set already"));
        }
        Ok(name)
    })?;
    Ok(names.into_iter().collect::<BTreeSet<_>>().into_iter().collect())
}

/// Legacy revisions, each once and in their order.
fn revisions(
    table: &Table<'_>,
    key: &str,
    leaf: &Leaf,
    default: Vec<LegacyRevision>,
) -> Result<Vec<LegacyRevision>, ConfigError> {
    const ACCEPTED: &str = "one of \"2024-11-05\", \"2025-03-26\", \"2025-06-18\" and \"2025-11-25\"";
    if leaf.is_none() {
        return Ok(default);
    }
    let all = table.list(key, leaf, ACCEPTED, |path, value| {
        let given = text(path, value, ACCEPTED)?;
        LegacyRevision::parse(given).ok_or_else(|| ConfigError::value(path, value, ACCEPTED))
    })?;
    Ok(all.into_iter().collect::<BTreeSet<_>>().into_iter().collect())
}

fn timeouts(path: &str, raw: &raw::UpstreamTimeouts, dir: &Path) -> Result<UpstreamTimeouts, ConfigError> {
    let table = Table { path, dir };
    let default = UpstreamTimeouts::default();
    Ok(UpstreamTimeouts {
        connect: table.duration("connect", &raw.connect, default.connect, MS..=HOUR)?,
        probe: table.duration("probe", &raw.probe, default.probe, MS..=HOUR)?,
        initialize: table.duration("initialize", &raw.initialize, default.initialize, MS..=HOUR)?,
        request: table.duration("request", &raw.request, default.request, MS..=DAY)?,
        stream: table.duration("stream", &raw.stream, default.stream, MS..=HOUR)?,
        reconnect: table.duration("reconnect", &raw.reconnect, default.reconnect, 100 * MS..=HOUR)?,
        reconnect_max: table.duration(
            "reconnect_max",
            &raw.reconnect_max,
            default.reconnect_max,
            100 * MS..=DAY,
        )?,
        start: table.duration("start", &raw.start, default.start, MS..=HOUR)?,
        stop: table.duration("stop", &raw.stop, default.stop, Duration::ZERO..=HOUR)?,
        pool_idle: table.duration("pool_idle", &raw.pool_idle, default.pool_idle, Duration::ZERO..=DAY)?,
        gather: table.duration("gather", &raw.gather, default.gather, MS..=SECOND)?,
        answer: table.duration("answer", &raw.answer, default.answer, SECOND..=DAY)?,
        attribute: table.duration("attribute", &raw.attribute, default.attribute, MS..=HOUR)?,
        url: table.duration("url", &raw.url, default.url, Duration::ZERO..=HOUR)?,
        replay: table.duration("replay", &raw.replay, default.replay, Duration::ZERO..=HOUR)?,
        pace: table.duration("pace", &raw.pace, default.pace, MS..=10 * SECOND)?,
    })
}

fn limits(path: &str, raw: &raw::UpstreamLimits, dir: &Path) -> Result<UpstreamLimits, ConfigError> {
    let table = Table { path, dir };
    let default = UpstreamLimits::default();
    Ok(UpstreamLimits {
        message_bytes: table.size(
            "message_bytes",
            &raw.message_bytes,
            default.message_bytes,
            1 << 10..=1 << 31,
        )?,
        flow_bytes: table.size("flow_bytes", &raw.flow_bytes, default.flow_bytes, 1 << 10..=1 << 31)?,
        max_processes: table.count("max_processes", &raw.max_processes, default.max_processes, 1..=65_536)?,
        pool_connections: table.count(
            "pool_connections",
            &raw.pool_connections,
            default.pool_connections,
            0..=65_536,
        )?,
        redirects: table.count("redirects", &raw.redirects, default.redirects, 0..=10)?,
        resumptions: table.count("resumptions", &raw.resumptions, default.resumptions, 0..=100)?,
        rounds: table.count("rounds", &raw.rounds, default.rounds, 1..=1000)?,
        questions: table.count("questions", &raw.questions, default.questions, 1..=65_536)?,
        question_bytes: table.size(
            "question_bytes",
            &raw.question_bytes,
            default.question_bytes,
            1 << 10..=1 << 31,
        )?,
        waiting_calls: table.count("waiting_calls", &raw.waiting_calls, default.waiting_calls, 1..=65_536)?,
        polls: table.count("polls", &raw.polls, default.polls, 0..=10_000)?,
        cache_bytes: table.size("cache_bytes", &raw.cache_bytes, default.cache_bytes, 1 << 10..=1 << 30)?,
        catalog_tools: table.count(
            "catalog_tools",
            &raw.catalog_tools,
            default.catalog_tools,
            1..=1_000_000,
        )?,
        catalogs: table.count("catalogs", &raw.catalogs, default.catalogs, 1..=1_000_000)?,
        resources: table.count("resources", &raw.resources, default.resources, 1..=65_536)?,
    })
}

fn session(path: &str, raw: &raw::Session, dir: &Path) -> Result<Session, ConfigError> {
    const SCOPES: &[(&str, SessionScope)] =
        &[("principal", SessionScope::Principal), ("request", SessionScope::Request)];
    const LEVELS: &[(&str, Option<LogLevel>)] = &[
        ("off", None),
        ("debug", Some(LogLevel::Debug)),
        ("info", Some(LogLevel::Info)),
        ("notice", Some(LogLevel::Notice)),
        ("warning", Some(LogLevel::Warning)),
        ("error", Some(LogLevel::Error)),
        ("critical", Some(LogLevel::Critical)),
        ("alert", Some(LogLevel::Alert)),
        ("emergency", Some(LogLevel::Emergency)),
    ];
    let table = Table { path, dir };
    let default = Session::default();
    Ok(Session {
        scope: table.word("scope", &raw.scope, default.scope, SCOPES)?,
        affinity: match &raw.affinity {
            Some(value) => Some(affinity(&table.at("affinity"), value)?),
            None => default.affinity,
        },
        max: table.count("max", &raw.max, default.max, 1..=1_000_000)?,
        max_per_key: table.count("max_per_key", &raw.max_per_key, default.max_per_key, 1..=1000)?,
        idle: table.duration("idle", &raw.idle, default.idle, MS..=DAY)?,
        shield: table.flag("shield", &raw.shield, default.shield)?,
        key: match &raw.key {
            Some(value) => Some(secrets::session_key(&table.at("key"), value, dir)?),
            None => default.key,
        },
        max_age: table.duration("max_age", &raw.max_age, default.max_age, MS..=365 * DAY)?,
        replay_events: table.count("replay_events", &raw.replay_events, default.replay_events, 1..=65_536)?,
        replay_bytes: table.size(
            "replay_bytes",
            &raw.replay_bytes,
            default.replay_bytes,
            1 << 10..=1 << 30,
        )?,
        replay: table.duration("replay", &raw.replay, default.replay, Duration::ZERO..=DAY)?,
        poll: table.duration("poll", &raw.poll, default.poll, Duration::ZERO..=HOUR)?,
        log_level: table.word("log_level", &raw.log_level, default.log_level, LEVELS)?,
    })
}

fn affinity(path: &str, value: &Value) -> Result<Affinity, ConfigError> {
    const ACCEPTED: &str = "\"header:NAME\" with a header name, or \"meta:KEY\" with a key of `params._meta`";
    let given = text(path, value, ACCEPTED)?;
    let affinity = match given.split_once(':') {
        Some(("header", name)) => net::header_name(name).map(Affinity::Header),
        Some(("meta", key)) => {
            let plain = !key.is_empty() && !key.contains(|c: char| c.is_whitespace() || c.is_control());
            plain.then(|| Affinity::Meta(key.to_owned()))
        }
        _ => None,
    };
    affinity.ok_or_else(|| ConfigError::value(path, value, ACCEPTED))
}
