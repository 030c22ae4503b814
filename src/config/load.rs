//! From a file to settings: read, parse, substitute, check, and say what is allowed but unwise.
//!
//! Owns the order of these steps and the mapping of parser errors to paths. Does not own the checks of single
//! settings (`front`, `upstream`).

use std::path::Path;

use serde_path_to_error::Segment;
use toml::Value;

use super::error::{ConfigError, quoted};
use super::substitute::{Env, Spelling, below, substitute};
use super::{Config, Listen, defaults, flags, front, json, mcp_servers, raw, warnings};

/// Settings that hold, and what an operator should know about them.
#[derive(Debug, Clone)]
pub struct Loaded {
    pub config: Config,
    pub warnings: Vec<String>,
}

/// Reads a TOML file. Relative file names in it are relative to the file's own directory.
pub fn load_file(path: &Path, env: &dyn Fn(&str) -> Option<String>) -> Result<Loaded, ConfigError> {
    load_text(&read(path)?, dir_of(path), env)
}

/// Reads a TOML file, or one of a host if that is what it is, by its name or by how it begins.
pub fn load_any(path: &Path, env: &dyn Fn(&str) -> Option<String>) -> Result<Loaded, ConfigError> {
    let text = read(path)?;
    let named_json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    if named_json || json::looks_like(&text) {
        return mcp_servers::load_text(raw::File::default(), &text, dir_of(path), None, env);
    }
    load_text(&text, dir_of(path), env)
}

/// One server of a TOML file, for a process that serves a single client on its standard input and output. Without a name the
/// file must hold one only.
pub fn load_one(
    path: &Path,
    server: Option<&str>,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Loaded, ConfigError> {
    let mut config = load_file(path, env)?.config;
    single(&mut config, server)?;
    let admin = config.admin.take().map(|_| "admin: no effect, as nothing is listened on".to_owned());
    let warnings =
        admin.into_iter().chain(warnings::of(&config, env).iter().map(ToString::to_string)).collect();
    Ok(Loaded { config, warnings })
}

/// Leaves the one server that is meant.
pub(super) fn single(config: &mut Config, server: Option<&str>) -> Result<(), ConfigError> {
    let names: Vec<_> = config.upstreams.iter().map(|upstream| quoted(&upstream.name)).collect();
    let accepted = format!("one of {}", names.join(", "));
    match server {
        Some(server) => config.upstreams.retain(|upstream| upstream.name == server),
        None if names.len() > 1 => return Err(ConfigError::missing(flags::SERVER, accepted)),
        None => {}
    }
    if let (Some(server), true) = (server, config.upstreams.is_empty()) {
        return Err(ConfigError::value(flags::SERVER, &Value::String(server.to_owned()), accepted));
    }
    // Nothing listens, and nobody sees paths.
    config.listen = Listen::default();
    for upstream in &mut config.upstreams {
        defaults::PATH.clone_into(&mut upstream.path);
        upstream.sse_path = None;
    }
    Ok(())
}

pub(super) fn read(file: &Path) -> Result<String, ConfigError> {
    std::fs::read_to_string(file).map_err(|source| ConfigError::Read { file: file.to_owned(), source })
}

pub(super) fn dir_of(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new(""))
}

/// The text of a file; `dir` is what relative file names are relative to.
pub(super) fn load_text(text: &str, dir: &Path, env: Env<'_>) -> Result<Loaded, ConfigError> {
    let table = toml::from_str::<toml::Table>(text).map_err(|error| syntax(text, &error))?;
    let mut value = Value::Table(table);
    substitute("", &mut value, Spelling::Own, env)?;
    check_tables(&value)?;
    let raw = serde_path_to_error::deserialize(value).map_err(|error| unknown(&error))?;
    let config = front::config(&raw, dir)?;
    let warnings = warnings::of(&config, env).iter().map(ToString::to_string).collect();
    Ok(Loaded { config, warnings })
}

/// The parser's own display would quote the line, and a line may hold a secret.
fn syntax(text: &str, error: &toml::de::Error) -> ConfigError {
    let offset = error.span().map_or(0, |span| span.start.min(text.len()));
    let before = text.get(..offset).unwrap_or_default();
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    ConfigError::Syntax {
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
        language: "TOML",
        message: error.message().to_owned(),
    }
}

/// A value where a table belongs, told before the typed reading, whose message would show the value.
fn check_tables(file: &Value) -> Result<(), ConfigError> {
    raw::TABLES.iter().try_for_each(|pattern| check_table("", file, pattern))
}

fn check_table(path: &str, value: &Value, pattern: &[&str]) -> Result<(), ConfigError> {
    let Value::Table(table) = value else {
        // Only the type: what stands here by mistake may be a secret.
        return Err(ConfigError::Value {
            path: path.to_owned(),
            value: format!("a value of type {}", value.type_str()),
            accepted: format!("a table, written [{path}]"),
        });
    };
    let Some((step, rest)) = pattern.split_first() else { return Ok(()) };
    table
        .iter()
        .filter(|(key, _)| *step == "*" || key.as_str() == *step)
        .try_for_each(|(key, inner)| check_table(&below(path, key), inner, rest))
}

/// All settings are optional and of any type to the parser, so all it can still find is a name that does not exist.
fn unknown(error: &serde_path_to_error::Error<toml::de::Error>) -> ConfigError {
    let mut path = String::new();
    for segment in error.path() {
        match segment {
            Segment::Map { key } => path = below(&path, key),
            Segment::Seq { index } => path.push_str(&format!("[{index}]")),
            Segment::Enum { .. } | Segment::Unknown => {}
        }
    }
    ConfigError::Unknown { path, message: error.inner().message().to_owned() }
}
