//! From a file to settings: read, parse, substitute, check, and say what is allowed but unwise.
//!
//! Owns the order of these steps and the mapping of parser errors to paths. Does not own the checks of single
//! settings (`front`, `upstream`).

use std::path::Path;

use serde_path_to_error::Segment;
use toml::Value;

use super::error::ConfigError;
use super::substitute::{Env, below, substitute};
use super::{Config, front, raw, warnings};

/// Settings that hold, and what an operator should know about them.
#[derive(Debug, Clone)]
pub struct Loaded {
    pub config: Config,
    pub warnings: Vec<String>,
}

/// Reads a TOML file. Relative file names in it are relative to the file's own directory.
pub fn load_file(path: &Path, env: &dyn Fn(&str) -> Option<String>) -> Result<Loaded, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| ConfigError::Read { file: path.to_owned(), source })?;
    load_text(&text, path.parent().unwrap_or(Path::new("")), env)
}

/// The text of a file; `dir` is what relative file names are relative to.
pub(super) fn load_text(text: &str, dir: &Path, env: Env<'_>) -> Result<Loaded, ConfigError> {
    let table = toml::from_str::<toml::Table>(text).map_err(|error| syntax(text, &error))?;
    let mut value = Value::Table(table);
    substitute("", &mut value, env)?;
    check_tables(&value)?;
    let raw = serde_path_to_error::deserialize(value).map_err(|error| unknown(&error))?;
    let config = front::config(&raw, dir)?;
    let warnings = warnings::of(&config).iter().map(ToString::to_string).collect();
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
