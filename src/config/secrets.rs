//! Values that must not be shown: written in place, from the environment (`substitute`), or as `file:PATH`.
//!
//! Owns the reading of secret files and the check that the value can stand in a header. No error shows a value.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use toml::Value;

use super::Secret;
use super::error::ConfigError;
use super::net::is_header_value;

const PREFIX: &str = "file:";
/// A header value beyond this would not get through most servers; and a wrong file name is told early.
const MAX_BYTES: u64 = 16 * 1024;
const ACCEPTED: &str = "a header value (visible ASCII, not empty, no blank at either end), \"${NAME}\" from the \
                        environment, or \"file:PATH\"";

/// A header value, read from its file if it names one. `dir` is what a relative name is relative to.
pub(super) fn header_value(path: &str, value: &Value, dir: &Path) -> Result<Secret, ConfigError> {
    let refuse = || ConfigError::value(path, value, ACCEPTED);
    let given = value.as_str().ok_or_else(refuse)?;
    match given.strip_prefix(PREFIX) {
        Some(name) => from_file(path, &dir.join(name)),
        None if is_header_value(given) => Ok(Secret::new(given)),
        None => Err(refuse()),
    }
}

fn from_file(path: &str, file: &Path) -> Result<Secret, ConfigError> {
    let refuse = |reason: String| ConfigError::File {
        path: path.to_owned(),
        file: file.to_owned(),
        reason,
        accepted: "a readable file of up to 16 KiB that holds one header value (visible ASCII, not empty)"
            .to_owned(),
    };
    let mut text = String::new();
    File::open(file)
        .and_then(|opened| opened.take(MAX_BYTES + 1).read_to_string(&mut text))
        .map_err(|error| refuse(error.to_string()))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(refuse("it is larger than 16 KiB".to_owned()));
    }
    // Editors and `echo` end a file with a line break that is not part of the secret.
    let value = text.trim();
    if is_header_value(value) {
        Ok(Secret::new(value))
    } else {
        Err(refuse("its content cannot stand in a header".to_owned()))
    }
}
