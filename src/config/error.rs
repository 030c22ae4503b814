//! What can be wrong with the settings, each told with its path, its value and what would be accepted.
//!
//! Owns the wording and the redaction of values in it. Does not own the checks.

use std::path::PathBuf;

/// Why the settings cannot be used.
///
/// `path` is the place in the file, such as `upstream.api.timeouts.request`, or the flag, such as `--upstream`.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read the file {}: {source}; accepted: a readable file", file.display())]
    Read { file: PathBuf, source: std::io::Error },

    #[error("line {line}, column {column}: not {language}: {message}")]
    Syntax { line: usize, column: usize, language: &'static str, message: String },

    /// The value is left out on purpose: under a mistyped name it may be a secret.
    #[error("{path}: {message}")]
    Unknown { path: String, message: String },

    #[error("{path}: {value} is not accepted; accepted: {accepted}")]
    Value { path: String, value: String, accepted: String },

    #[error("{path}: missing; accepted: {accepted}")]
    Missing { path: String, accepted: String },

    #[error(
        "{path}: the environment variable {variable} is not set (or not UTF-8); accepted: a variable that is set, \
         or `$${{` where the text `${{` itself is meant"
    )]
    Environment { path: String, variable: String },

    #[error("{path}: cannot use the file {}: {reason}; accepted: {accepted}", file.display())]
    File { path: String, file: PathBuf, reason: String, accepted: String },
}

/// How a secret appears in errors and in `check`.
pub(super) const REDACTED: &str = "[redacted]";

/// Longer values are cut in errors.
const SHOWN_CHARS: usize = 120;

impl ConfigError {
    pub(super) fn value(path: &str, value: &toml::Value, accepted: impl Into<String>) -> Self {
        Self::Value { path: path.to_owned(), value: shown(path, value), accepted: accepted.into() }
    }

    pub(super) fn missing(path: &str, accepted: impl Into<String>) -> Self {
        Self::Missing { path: path.to_owned(), accepted: accepted.into() }
    }

    /// The place in the file or the flag that the error is about; `None` where it is about the file as a whole.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Read { .. } | Self::Syntax { .. } => None,
            Self::Unknown { path, .. }
            | Self::Value { path, .. }
            | Self::Missing { path, .. }
            | Self::Environment { path, .. }
            | Self::File { path, .. } => Some(path),
        }
    }

    /// The same error under another name: flags go through the checks of the file, and keep their own names.
    pub(super) fn renamed(mut self, rename: impl FnOnce(&str) -> String) -> Self {
        match &mut self {
            Self::Read { .. } | Self::Syntax { .. } => {}
            Self::Unknown { path, .. }
            | Self::Value { path, .. }
            | Self::Missing { path, .. }
            | Self::Environment { path, .. }
            | Self::File { path, .. } => *path = rename(path),
        }
        self
    }
}

/// The value as an error may show it.
pub(super) fn shown(path: &str, value: &toml::Value) -> String {
    if is_secret(path) {
        return REDACTED.to_owned();
    }
    let text = match value {
        toml::Value::Table(_) => return "a table".to_owned(),
        toml::Value::String(text) if is_url(path) => quoted(&without_credentials(text)),
        toml::Value::String(text) => quoted(text),
        // An array may hold what was meant for a place that is redacted.
        toml::Value::Array(items) => return format!("an array of {}", items.len()),
        other => other.to_string(),
    };
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// A TOML string, with everything escaped that could disturb a terminal.
pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.escape_debug())
}

/// Wide on purpose: an upstream's name may itself be malformed while the path is looked at.
fn is_secret(path: &str) -> bool {
    const SECRETS: [&str; 5] = [".headers", ".authorization", ".session.key", ".args", ".env"];
    path.starts_with("upstream.") && SECRETS.iter().any(|part| path.contains(part))
}

fn is_url(path: &str) -> bool {
    path.starts_with("upstream.") && path.ends_with(".url")
}

/// User, password and query of a URL are where credentials are found. Works on text that is no URL, too.
pub(super) fn without_credentials(url: &str) -> String {
    let (kept, query) = match url.split_once(['?', '#']) {
        Some((before, _)) => (before, &url[before.len()..=before.len()]),
        None => (url, ""),
    };
    let mut out = match kept.rsplit_once('@') {
        Some((before, host)) => {
            let scheme = before.find("://").map_or("", |at| &before[..at + 3]);
            format!("{scheme}{REDACTED}@{host}")
        }
        None => kept.to_owned(),
    };
    if !query.is_empty() {
        out.push_str(query);
        out.push_str(REDACTED);
    }
    out
}
