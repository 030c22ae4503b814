//! The client side of the settings: `[listen]`, `[admin]`, `[limits]`, `[timeouts]`, `[log]` and the top level.
//!
//! Owns the ranges of these settings. Does not own upstreams (`upstream`).

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use toml::Value;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use super::error::ConfigError;
use super::raw::{self, Leaf};
use super::values::{Table, holds_certificate, holds_private_key, text};
use super::{Admin, Config, FrontTimeouts, Limits, Listen, Log, LogFormat, Tls, defaults, net, upstream};

pub(super) const MS: Duration = Duration::from_millis(1);
pub(super) const SECOND: Duration = Duration::from_secs(1);
pub(super) const HOUR: Duration = Duration::from_secs(60 * 60);
pub(super) const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The whole file. `dir` is what relative file names are relative to.
pub(super) fn config(raw: &raw::File, dir: &Path) -> Result<Config, ConfigError> {
    let table = Table { path: "", dir };
    let era_cache_file = match &raw.era_cache_file {
        Some(value) => Some(table.file("era_cache_file", value)?),
        None => None,
    };
    let listen = listen(&raw.listen, dir)?;
    let admin = raw.admin.as_ref().map(|raw| admin(raw, &listen)).transpose()?;
    Ok(Config {
        listen,
        admin,
        limits: limits(&raw.limits, dir)?,
        timeouts: timeouts(&raw.timeouts, dir)?,
        log: log(&raw.log, dir)?,
        upstreams: upstream::all(&raw.upstream, dir)?,
        era_cache_file,
        shutdown_grace: table.duration(
            "shutdown_grace",
            &raw.shutdown_grace,
            defaults::SHUTDOWN_GRACE,
            Duration::ZERO..=HOUR,
        )?,
    })
}

fn listen(raw: &raw::Listen, dir: &Path) -> Result<Listen, ConfigError> {
    let table = Table { path: "listen", dir };
    let tls = match &raw.tls {
        Some(tls) => Some(self::tls(tls, dir)?),
        None => None,
    };
    Ok(Listen {
        address: match &raw.address {
            Some(value) => address(&table.at("address"), value, ADDRESS)?,
            None => Listen::default().address,
        },
        tls,
        allowed_hosts: table.list("allowed_hosts", &raw.allowed_hosts, "a host name", net::host)?,
        allowed_origins: table.list("allowed_origins", &raw.allowed_origins, "an origin", net::origin)?,
    })
}

fn admin(raw: &raw::Admin, listen: &Listen) -> Result<Admin, ConfigError> {
    const PATH: &str = "admin.address";
    let Some(value) = &raw.address else { return Err(ConfigError::missing(PATH, ADMIN_ADDRESS)) };
    let address = address(PATH, value, ADMIN_ADDRESS)?;
    if address == listen.address && address.port() != 0 {
        let accepted = "an address other than the one where clients come in";
        return Err(ConfigError::value(PATH, value, accepted));
    }
    Ok(Admin { address })
}

const ADDRESS: &str = "an IP address and a port, such as \"127.0.0.1:8808\" or \"[::1]:8808\"";
const ADMIN_ADDRESS: &str = "an IP address and a port, such as \"127.0.0.1:9464\" or \"[::1]:9464\"";

fn address(path: &str, value: &Value, accepted: &str) -> Result<SocketAddr, ConfigError> {
    let parsed = value.as_str().and_then(|text| text.parse().ok());
    parsed.ok_or_else(|| ConfigError::value(path, value, accepted))
}

fn tls(raw: &raw::Tls, dir: &Path) -> Result<Tls, ConfigError> {
    let table = Table { path: "listen.tls", dir };
    let required = |key: &str, leaf: &Leaf| match leaf {
        Some(value) => table.file(&table.at(key), value),
        None => Err(ConfigError::missing(&table.at(key), "the name of a PEM file")),
    };
    let tls =
        Tls { certificate: required("certificate", &raw.certificate)?, key: required("key", &raw.key)? };
    holds_certificate(&table.at("certificate"), &tls.certificate)?;
    holds_private_key(&table.at("key"), &tls.key)?;
    Ok(tls)
}

fn limits(raw: &raw::Limits, dir: &Path) -> Result<Limits, ConfigError> {
    let table = Table { path: "limits", dir };
    let default = Limits::default();
    Ok(Limits {
        body_bytes: table.size("body_bytes", &raw.body_bytes, default.body_bytes, 1 << 10..=1 << 30)?,
        // The HTTP/1 codec does not go below 8 KiB.
        header_bytes: table.size(
            "header_bytes",
            &raw.header_bytes,
            default.header_bytes,
            8 << 10..=1 << 20,
        )?,
        connections: table.count("connections", &raw.connections, default.connections, 1..=1_000_000)?,
        requests: table.count("requests", &raw.requests, default.requests, 1..=1_000_000)?,
        streams: table.count("streams", &raw.streams, default.streams, 1..=1_000_000)?,
        subscriptions: table.count("subscriptions", &raw.subscriptions, default.subscriptions, 1..=65_536)?,
        // A modern request that declares its capabilities is 6 deep before it says anything.
        nesting: table.count("nesting", &raw.nesting, default.nesting, 8..=10_000)?,
        members: table.count("members", &raw.members, default.members, 8..=1_000_000)?,
        events: table.count("events", &raw.events, default.events, 1..=65_536)?,
        event_bytes: table.size("event_bytes", &raw.event_bytes, default.event_bytes, 1 << 10..=1 << 30)?,
        parked: table.count("parked", &raw.parked, default.parked, 1..=1_000_000)?,
        parked_per_principal: table.count(
            "parked_per_principal",
            &raw.parked_per_principal,
            default.parked_per_principal,
            1..=1_000_000,
        )?,
        replay_bytes: table.size("replay_bytes", &raw.replay_bytes, default.replay_bytes, 0..=1 << 30)?,
    })
}

fn timeouts(raw: &raw::FrontTimeouts, dir: &Path) -> Result<FrontTimeouts, ConfigError> {
    let table = Table { path: "timeouts", dir };
    let default = FrontTimeouts::default();
    Ok(FrontTimeouts {
        header: table.duration("header", &raw.header, default.header, MS..=HOUR)?,
        body: table.duration("body", &raw.body, default.body, MS..=HOUR)?,
        idle: table.duration("idle", &raw.idle, default.idle, MS..=DAY)?,
        handshake: table.duration("handshake", &raw.handshake, default.handshake, MS..=HOUR)?,
        hold: table.duration("hold", &raw.hold, default.hold, Duration::ZERO..=SECOND)?,
        keep_alive: table.duration(
            "keep_alive",
            &raw.keep_alive,
            default.keep_alive,
            10 * MS..=60 * SECOND,
        )?,
    })
}

pub(super) fn log(raw: &raw::Log, dir: &Path) -> Result<Log, ConfigError> {
    const FORMATS: &[(&str, LogFormat)] = &[("human", LogFormat::Human), ("json", LogFormat::Json)];
    let table = Table { path: "log", dir };
    let default = Log::default();
    Ok(Log {
        format: table.word("format", &raw.format, default.format, FORMATS)?,
        level: match &raw.level {
            Some(value) => level(&table.at("level"), value)?,
            None => default.level,
        },
    })
}

/// Stricter than the filter's own parser, which takes a mistyped level for the name of a module and falls silent.
fn level(path: &str, value: &Value) -> Result<String, ConfigError> {
    const ACCEPTED: &str = "\"off\", \"error\", \"warn\", \"info\", \"debug\" or \"trace\", also per module and in a \
                            list: \"info,mcp_janus=debug\"";
    let given = text(path, value, ACCEPTED)?;
    let directives_fit = given.split(',').all(|directive| {
        let (target, level) = directive.rsplit_once('=').map_or((None, directive), |(t, l)| (Some(t), l));
        let level_fits = level.parse::<LevelFilter>().is_ok() && !level.bytes().all(|b| b.is_ascii_digit());
        level_fits && target.is_none_or(|target| !target.trim().is_empty())
    });
    if directives_fit && EnvFilter::builder().parse(given).is_ok() {
        Ok(given.to_owned())
    } else {
        Err(ConfigError::value(path, value, ACCEPTED))
    }
}
