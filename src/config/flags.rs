//! Flags that stand for a file: the one-upstream case, the upstream of a probe, and the front before the servers of a host.
//!
//! Owns what each flag is in terms of the file's settings, so that both go through the same checks and an error
//! names the flag. Does not own subcommands, help of the program or exit codes (`cli`).

use std::ffi::OsString;
use std::path::Path;

use clap::{ArgGroup, Args};
use toml::Value;

use super::error::{ConfigError, REDACTED};
use super::load::Loaded;
use super::raw::{self, Leaf};
use super::schema::{self, DocumentFlags, SchemaFlags};
use super::substitute::Env;
use super::target::located;
use super::values::duration;
use super::{
    Config, Log, Secret, Target, Upstream, defaults, front, mcp_servers, secrets, substitute, warnings,
};

/// One server, without a file.
#[derive(Debug, Clone, Default, Args)]
pub struct UpstreamFlags {
    /// The MCP server to stand in front of: an http:// or https:// URL, or builtin:demo
    #[arg(long, value_name = "URL")]
    pub upstream: Option<String>,
    /// The generation of the server, if it is not to be found out [default: auto]
    #[arg(long, value_name = "ERA", conflicts_with_all = FILES, value_parser = ["auto", "modern", "legacy"])]
    pub era: Option<String>,
    /// Header for every request to the server; VALUE may be file:FILE. Authorization sets a fixed credential
    #[arg(long, value_name = "NAME=VALUE", conflicts_with_all = NOT_URL)]
    pub header: Vec<Secret>,
    /// What becomes of the client's Authorization header [default: forward]
    #[arg(long, value_name = "WHAT", conflicts_with_all = NOT_URL, value_parser = ["forward", "strip"])]
    pub authorization: Option<String>,
    /// PEM file with further certificate authorities for the server
    #[arg(long, value_name = "FILE", conflicts_with_all = NOT_URL)]
    pub ca_file: Vec<String>,
    /// Whether a legacy server sees one session per caller or a fresh one per call [default: principal]
    #[arg(long, value_name = "SCOPE", conflicts_with_all = FILES, value_parser = ["principal", "request"])]
    pub session_scope: Option<String>,
    /// Whether the server may ask its client something in the middle of a call [default: true]
    #[arg(long, value_name = "WHETHER", conflicts_with_all = FILES, value_parser = ["true", "false"])]
    pub interactive: Option<String>,
    #[command(flatten)]
    pub schema: SchemaFlags,
    #[command(flatten)]
    pub surroundings: Surroundings,
}

/// What a server that is a program runs in.
#[derive(Debug, Clone, Default, Args)]
pub struct Surroundings {
    /// The directory in which COMMAND runs
    #[arg(long, value_name = "DIR", conflicts_with_all = NOT_COMMAND, requires = "command")]
    pub cwd: Option<String>,
    /// Environment variable for COMMAND; VALUE may be file:FILE
    #[arg(long, value_name = "NAME=VALUE", conflicts_with_all = NOT_COMMAND, requires = "command")]
    pub env: Vec<Secret>,
    /// Environment variable of this process that COMMAND gets as well
    #[arg(long, value_name = "NAME", conflicts_with_all = NOT_COMMAND, requires = "command")]
    pub inherit_env: Vec<String>,
}

/// The other sources of settings, by the names of their arguments.
pub(super) const FILES: [&str; 2] = ["config", "mcp_servers"];
const NOT_URL: [&str; 3] = ["config", "mcp_servers", "command"];
const NOT_COMMAND: [&str; 3] = ["config", "mcp_servers", "upstream"];

/// `serve` without a file of its own settings.
#[derive(Debug, Clone, Default, Args)]
pub struct ServeFlags {
    #[command(flatten)]
    pub upstream: UpstreamFlags,
    /// The path that clients use [default: /mcp]
    #[arg(long, value_name = "PATH", conflicts_with_all = FILES)]
    pub path: Option<String>,
    /// Where to listen for clients [default: 127.0.0.1:8808]
    #[arg(long, value_name = "ADDR", conflicts_with = "config")]
    pub listen: Option<String>,
    /// Where to serve metrics, apart from clients [default: nowhere]
    #[arg(long, value_name = "ADDR", conflicts_with = "config")]
    pub admin: Option<String>,
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
}

/// `probe`.
#[derive(Debug, Clone, Default, Args)]
#[command(group(ArgGroup::new("probed").args(["url", "command"]).required(true)))]
pub struct ProbeFlags {
    /// The endpoint to look at: an http:// or https:// URL, or builtin:demo
    #[arg(value_name = "URL")]
    pub url: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Header for every request to the server; VALUE may be file:FILE
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "command")]
    pub header: Vec<Secret>,
    /// PEM file with further certificate authorities
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    pub ca_file: Vec<String>,
    /// How long to wait for each answer, such as 10s [default: 10s]
    #[arg(long, value_name = "TIME")]
    pub timeout: Option<String>,
    #[command(flatten)]
    pub schema: DocumentFlags,
    /// The directory in which COMMAND runs
    #[arg(long, value_name = "DIR", conflicts_with = "url", requires = "command")]
    pub cwd: Option<String>,
    /// Environment variable for COMMAND; VALUE may be file:FILE
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "url", requires = "command")]
    pub env: Vec<Secret>,
    /// Environment variable of this process that COMMAND gets as well
    #[arg(long, value_name = "NAME", conflicts_with = "url", requires = "command")]
    pub inherit_env: Vec<String>,
    /// After `--`: a stdio server to start and look at
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
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

/// The settings that the flags of `serve` stand for, with `command` after them. It or `--upstream` must be among them.
pub fn from_flags(
    flags: &ServeFlags,
    command: &[OsString],
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Loaded, ConfigError> {
    let mut upstream = flags.upstream.raw(command)?;
    upstream.path = leaf(flags.path.as_ref());
    checked(flags.front(), upstream, "--upstream", command, env)
}

/// The settings of the front that these flags stand for, before the servers in a file of a host.
pub fn from_mcp_servers(flags: &ServeFlags, file: &Path, env: Env<'_>) -> Result<Loaded, ConfigError> {
    mcp_servers::load_over(flags.front(), file, None, env)
}

/// The one upstream that the flags of `stdio` stand for, with `command` after them.
pub fn from_stdio_flags(
    flags: &UpstreamFlags,
    command: &[OsString],
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Loaded, ConfigError> {
    checked(raw::File::default(), flags.raw(command)?, "--upstream", command, env)
}

/// The upstream that the flags of `probe` stand for, and warnings about it.
pub fn from_probe_flags(flags: &ProbeFlags) -> Result<(Upstream, Vec<String>), ConfigError> {
    let given = UpstreamFlags {
        upstream: flags.url.clone(),
        header: flags.header.clone(),
        ca_file: flags.ca_file.clone(),
        schema: flags.schema.clone().into(),
        surroundings: Surroundings {
            cwd: flags.cwd.clone(),
            env: flags.env.clone(),
            inherit_env: flags.inherit_env.clone(),
        },
        ..UpstreamFlags::default()
    };
    let raw = given.raw(&flags.command)?;
    let mut loaded = checked(raw::File::default(), raw, "URL", &flags.command, &|_| None)?;
    let mut upstream = loaded.config.upstreams.remove(0);
    if let Some(text) = &flags.timeout {
        let timeout = duration("--timeout", &Value::String(text.clone()), front::MS..=front::HOUR)?;
        let timeouts = &mut upstream.timeouts;
        timeouts.connect = timeouts.connect.min(timeout);
        timeouts.start = timeout;
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

impl ServeFlags {
    fn front(&self) -> raw::File {
        let tls = (self.tls_cert.is_some() || self.tls_key.is_some()).then(|| raw::Tls {
            certificate: leaf(self.tls_cert.as_ref()),
            key: leaf(self.tls_key.as_ref()),
        });
        raw::File {
            listen: raw::Listen {
                address: leaf(self.listen.as_ref()),
                tls,
                allowed_hosts: list(&self.allow_host),
                allowed_origins: list(&self.allow_origin),
            },
            admin: self.admin.as_ref().map(|address| raw::Admin { address: leaf(Some(address)) }),
            ..raw::File::default()
        }
    }
}

impl UpstreamFlags {
    fn raw(&self, command: &[OsString]) -> Result<raw::Upstream, ConfigError> {
        let (headers, mut authorization) = split_headers(&self.header)?;
        if let Some(given) = leaf(self.authorization.as_ref()) {
            if authorization.is_some() {
                let accepted = "either --authorization or --header Authorization=VALUE, not both";
                return Err(ConfigError::value("--authorization", &given, accepted));
            }
            authorization = Some(given);
        }
        let Surroundings { cwd, env, inherit_env } = &self.surroundings;
        Ok(raw::Upstream {
            url: leaf(self.upstream.as_ref()),
            // Checked as text; what it really is goes past the checks, as not every argument is text.
            command: command.first().map(|program| Value::String(program.to_string_lossy().into_owned())),
            env: variables(env)?,
            inherit_env: list(inherit_env),
            cwd: leaf(cwd.as_ref()),
            era: leaf(self.era.as_ref()),
            headers: (!headers.is_empty()).then_some(Value::Table(headers)),
            authorization,
            ca_files: list(&self.ca_file),
            interactive: leaf(self.interactive.as_ref()),
            schema: self.schema.raw()?,
            session: raw::Session { scope: leaf(self.session_scope.as_ref()), ..raw::Session::default() },
            ..raw::Upstream::default()
        })
    }
}

/// Values as those of headers: a text, or `file:FILE`.
fn variables(flags: &[Secret]) -> Result<Leaf, ConfigError> {
    let mut table = toml::Table::new();
    let refuse = |accepted: &str| ConfigError::Value {
        path: "--env".to_owned(),
        value: REDACTED.to_owned(),
        accepted: accepted.to_owned(),
    };
    for flag in flags {
        let (name, value) = flag.expose().split_once('=').ok_or_else(|| refuse("NAME=VALUE"))?;
        let value = match value.strip_prefix(secrets::PREFIX) {
            Some(file) => {
                Value::Table(toml::Table::from_iter([("file".to_owned(), Value::String(file.to_owned()))]))
            }
            None => Value::String(value.to_owned()),
        };
        if table.insert(name.to_owned(), value).is_some() {
            return Err(refuse("each variable once"));
        }
    }
    Ok((!table.is_empty()).then_some(Value::Table(table)))
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

fn checked(
    mut file: raw::File,
    upstream: raw::Upstream,
    url: &str,
    command: &[OsString],
    env: Env<'_>,
) -> Result<Loaded, ConfigError> {
    file.upstream.insert(defaults::NAME.to_owned(), upstream);
    // Relative file names on a command line are relative to where it is typed.
    let here = Path::new("");
    let mut config = front::config(&file, here).map_err(|error| error.renamed(|path| flag(path, url)))?;
    for upstream in &mut config.upstreams {
        if let (Target::Command(to_start), Some((program, args))) =
            (&mut upstream.target, command.split_first())
        {
            to_start.program = located(program.clone(), here);
            to_start.args = args.to_vec();
        }
    }
    let warnings = warned(&config, env, |path| flag(path, url));
    Ok(Loaded { config, warnings })
}

/// Warnings under other names, as errors have them.
pub(super) fn warned(config: &Config, env: Env<'_>, rename: impl Fn(&str) -> String) -> Vec<String> {
    let renamed = |mut warning: warnings::Warning| {
        warning.path = rename(&warning.path);
        warning.to_string()
    };
    warnings::of(config, env).into_iter().map(renamed).collect()
}

/// The flag that names one server of a file.
pub(super) const SERVER: &str = "--server";

/// The flag that stands for the setting at `path`; `url` is how the URL is given.
pub(super) fn flag(path: &str, url: &str) -> String {
    let upstream = substitute::below("upstream", defaults::NAME);
    let setting = path.strip_prefix(&upstream).and_then(|rest| rest.strip_prefix('.')).unwrap_or(path);
    if let Some(flag) = schema::document_flag(setting) {
        return flag;
    }
    let setting = setting.split('[').next().unwrap_or(setting);
    if let Some(name) = setting.strip_prefix("headers.") {
        return format!("--header {name}");
    }
    if let Some(name) = setting.strip_prefix("env.") {
        return format!("--env {name}");
    }
    match setting {
        "url" => url,
        "command" => "COMMAND",
        "inherit_env" => "--inherit-env",
        "cwd" => "--cwd",
        "path" => "--path",
        "era" => "--era",
        "headers" => "--header",
        "authorization" => "--authorization",
        "authorization.value" => "--header authorization",
        "ca_files" => "--ca-file",
        "session.scope" => "--session-scope",
        "schema.policy" => "--schema-policy",
        "schema.arguments" => "--validate-arguments",
        "schema.results" => "--validate-results",
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

pub(super) fn leaf(text: Option<&String>) -> Leaf {
    text.map(|text| Value::String(text.clone()))
}

fn list(texts: &[String]) -> Leaf {
    let items = || texts.iter().cloned().map(Value::String).collect();
    (!texts.is_empty()).then(|| Value::Array(items()))
}
