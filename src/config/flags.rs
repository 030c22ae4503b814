//! Flags that stand for a file: the one-upstream case, and the upstream of a probe.
//!
//! Owns what each flag is in terms of the file's settings, so that both go through the same checks and an error
//! names the flag. Does not own subcommands, help of the program or exit codes (`cli`).

use std::path::Path;

use clap::Args;
use toml::Value;

use super::error::{ConfigError, REDACTED};
use super::load::Loaded;
use super::raw::{self, Leaf};
use super::values::duration;
use super::{Config, Log, Secret, Upstream, defaults, front, substitute, warnings};

/// `serve` without a file.
#[derive(Debug, Clone, Default, Args)]
pub struct ServeFlags {
    /// The MCP server to stand in front of: an http:// or https:// URL, or builtin:demo
    #[arg(long, value_name = "URL")]
    pub upstream: Option<String>,
    /// Where to listen for clients [default: 127.0.0.1:8808]
    #[arg(long, value_name = "ADDR", conflicts_with = "config")]
    pub listen: Option<String>,
    /// Where to serve metrics, apart from clients [default: nowhere]
    #[arg(long, value_name = "ADDR", conflicts_with = "config")]
    pub admin: Option<String>,
    /// The path that clients use [default: /mcp]
    #[arg(long, value_name = "PATH", conflicts_with = "config")]
    pub path: Option<String>,
    /// The generation of the server, if it is not to be found out [default: auto]
    #[arg(long, value_name = "ERA", conflicts_with = "config", value_parser = ["auto", "modern", "legacy"])]
    pub era: Option<String>,
    /// Header for every request to the server; VALUE may be file:FILE. Authorization sets a fixed credential
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "config")]
    pub header: Vec<Secret>,
    /// What becomes of the client's Authorization header [default: forward]
    #[arg(long, value_name = "WHAT", conflicts_with = "config", value_parser = ["forward", "strip"])]
    pub authorization: Option<String>,
    /// PEM file with further certificate authorities for the server
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    pub ca_file: Vec<String>,
    /// PEM file with the certificate chain to serve TLS with
    #[arg(long, value_name = "FILE", conflicts_with = "config", requires = "tls_key")]
    pub tls_cert: Option<String>,
    /// PEM file with the private key of --tls-cert
    #[arg(long, value_name = "FILE", conflicts_with = "config", requires = "tls_cert")]
    pub tls_key: Option<String>,
    /// Host name that clients may use, besides those of loopback
    #[arg(long, value_name = "HOST", conflicts_with = "config")]
    pub allow_host: Vec<String>,
    /// Origin that browser clients may have, besides those of loopback; * for any
    #[arg(long, value_name = "ORIGIN", conflicts_with = "config")]
    pub allow_origin: Vec<String>,
    /// Whether a legacy server sees one session per caller or a fresh one per call [default: principal]
    #[arg(long, value_name = "SCOPE", conflicts_with = "config", value_parser = ["principal", "request"])]
    pub session_scope: Option<String>,
    /// Whether the server may ask its client something in the middle of a call [default: true]
    #[arg(long, value_name = "WHETHER", conflicts_with = "config", value_parser = ["true", "false"])]
    pub interactive: Option<String>,
}

/// `probe`.
#[derive(Debug, Clone, Default, Args)]
pub struct ProbeFlags {
    /// The endpoint to look at: an http:// or https:// URL, or builtin:demo
    #[arg(value_name = "URL")]
    pub url: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Header for every request to the server; VALUE may be file:FILE
    #[arg(long, value_name = "NAME=VALUE")]
    pub header: Vec<Secret>,
    /// PEM file with further certificate authorities
    #[arg(long, value_name = "FILE")]
    pub ca_file: Vec<String>,
    /// How long to wait for each answer, such as 10s [default: 10s]
    #[arg(long, value_name = "TIME")]
    pub timeout: Option<String>,
}

/// Flags about the log, which every subcommand has; over a file, they win.
#[derive(Debug, Clone, Default, Args)]
pub struct LogFlags {
    /// off, error, warn, info, debug or trace, also per module: info,mcp_janus=debug
    #[arg(long, global = true, help_heading = "Log", value_name = "LEVEL")]
    pub log_level: Option<String>,
    /// Form of the log lines, which go to standard error
    #[arg(long, global = true, help_heading = "Log", value_name = "FORMAT", value_parser = ["human", "json"])]
    pub log_format: Option<String>,
}

/// For clap: what a header flag holds is a secret from the start.
impl From<String> for Secret {
    fn from(value: String) -> Self {
        Self::new(value)
    }
}

/// The settings that the flags of `serve` stand for. `--upstream` must be among them.
pub fn from_flags(flags: &ServeFlags) -> Result<Loaded, ConfigError> {
    let mut upstream = upstream(flags.upstream.as_deref(), &flags.header, &flags.ca_file)?;
    if let Some(given) = leaf(flags.authorization.as_ref()) {
        if upstream.authorization.is_some() {
            let accepted = "either --authorization or --header Authorization=VALUE, not both";
            return Err(ConfigError::value("--authorization", &given, accepted));
        }
        upstream.authorization = Some(given);
    }
    upstream.path = leaf(flags.path.as_ref());
    upstream.era = leaf(flags.era.as_ref());
    upstream.session.scope = leaf(flags.session_scope.as_ref());
    upstream.interactive = leaf(flags.interactive.as_ref());
    let tls = (flags.tls_cert.is_some() || flags.tls_key.is_some())
        .then(|| raw::Tls { certificate: leaf(flags.tls_cert.as_ref()), key: leaf(flags.tls_key.as_ref()) });
    let file = raw::File {
        listen: raw::Listen {
            address: leaf(flags.listen.as_ref()),
            tls,
            allowed_hosts: list(&flags.allow_host),
            allowed_origins: list(&flags.allow_origin),
        },
        admin: flags.admin.as_ref().map(|address| raw::Admin { address: leaf(Some(address)) }),
        ..raw::File::default()
    };
    checked(file, upstream, "--upstream")
}

/// The upstream that the flags of `probe` stand for, and warnings about it.
pub fn from_probe_flags(flags: &ProbeFlags) -> Result<(Upstream, Vec<String>), ConfigError> {
    let raw = upstream(Some(&flags.url), &flags.header, &flags.ca_file)?;
    let mut loaded = checked(raw::File::default(), raw, "URL")?;
    let mut upstream = loaded.config.upstreams.remove(0);
    if let Some(text) = &flags.timeout {
        let timeout = duration("--timeout", &Value::String(text.clone()), front::MS..=front::HOUR)?;
        let timeouts = &mut upstream.timeouts;
        timeouts.connect = timeouts.connect.min(timeout);
        timeouts.probe = timeout;
        timeouts.initialize = timeout;
        timeouts.request = timeout;
    }
    Ok((upstream, loaded.warnings))
}

impl LogFlags {
    /// These flags over `log`.
    pub fn over(&self, log: &Log) -> Result<Log, ConfigError> {
        let raw = raw::Log { format: leaf(self.log_format.as_ref()), level: leaf(self.log_level.as_ref()) };
        let given = front::log(&raw, Path::new("")).map_err(|error| error.renamed(|path| flag(path, "")))?;
        Ok(Log {
            format: if self.log_format.is_some() { given.format } else { log.format },
            level: if self.log_level.is_some() { given.level } else { log.level.clone() },
        })
    }
}

fn upstream(
    url: Option<&str>,
    headers: &[Secret],
    ca_files: &[String],
) -> Result<raw::Upstream, ConfigError> {
    let (headers, authorization) = split_headers(headers)?;
    Ok(raw::Upstream {
        url: url.map(|url| Value::String(url.to_owned())),
        headers: (!headers.is_empty()).then_some(Value::Table(headers)),
        authorization,
        ca_files: list(ca_files),
        ..raw::Upstream::default()
    })
}

/// The headers, and what `authorization` is by them: without a file there is no other place for a fixed credential.
fn split_headers(flags: &[Secret]) -> Result<(toml::Table, Leaf), ConfigError> {
    let mut headers = toml::Table::new();
    let mut authorization = None;
    let refuse = |accepted: &str| ConfigError::Value {
        path: "--header".to_owned(),
        value: REDACTED.to_owned(),
        accepted: accepted.to_owned(),
    };
    for flag in flags {
        let (name, value) = flag.expose().split_once('=').ok_or_else(|| refuse("NAME=VALUE"))?;
        let value = Value::String(value.to_owned());
        let before = if name.eq_ignore_ascii_case("authorization") {
            let table = toml::Table::from_iter([("value".to_owned(), value)]);
            authorization.replace(Value::Table(table))
        } else {
            headers.insert(name.to_owned(), value)
        };
        if before.is_some() {
            return Err(refuse("each header once"));
        }
    }
    Ok((headers, authorization))
}

fn checked(mut file: raw::File, upstream: raw::Upstream, url: &str) -> Result<Loaded, ConfigError> {
    file.upstream.insert(defaults::NAME.to_owned(), upstream);
    // Relative file names on a command line are relative to where it is typed.
    let config =
        front::config(&file, Path::new("")).map_err(|error| error.renamed(|path| flag(path, url)))?;
    let warnings = warned(&config, url);
    Ok(Loaded { config, warnings })
}

fn warned(config: &Config, url: &str) -> Vec<String> {
    let rename = |mut warning: warnings::Warning| {
        warning.path = flag(&warning.path, url);
        warning.to_string()
    };
    warnings::of(config).into_iter().map(rename).collect()
}

/// The flag that stands for the setting at `path`; `url` is how the URL is given.
fn flag(path: &str, url: &str) -> String {
    let upstream = substitute::below("upstream", defaults::NAME);
    let setting = path.strip_prefix(&upstream).and_then(|rest| rest.strip_prefix('.')).unwrap_or(path);
    let setting = setting.split('[').next().unwrap_or(setting);
    if let Some(name) = setting.strip_prefix("headers.") {
        return format!("--header {name}");
    }
    match setting {
        "url" => url,
        "path" => "--path",
        "era" => "--era",
        "headers" => "--header",
        "authorization" => "--authorization",
        "authorization.value" => "--header authorization",
        "ca_files" => "--ca-file",
        "session.scope" => "--session-scope",
        "interactive" => "--interactive",
        "listen.address" => "--listen",
        "admin.address" => "--admin",
        "listen.tls.certificate" => "--tls-cert",
        "listen.tls.key" => "--tls-key",
        "listen.allowed_hosts" => "--allow-host",
        "listen.allowed_origins" => "--allow-origin",
        "log.level" => "--log-level",
        "log.format" => "--log-format",
        other => other,
    }
    .to_owned()
}

fn leaf(text: Option<&String>) -> Leaf {
    text.map(|text| Value::String(text.clone()))
}

fn list(texts: &[String]) -> Leaf {
    let items = || texts.iter().cloned().map(Value::String).collect();
    (!texts.is_empty()).then(|| Value::Array(items()))
}
