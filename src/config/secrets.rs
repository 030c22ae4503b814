//! Values that must not be shown: written in place, from the environment (`substitute`), or as `file:PATH`.
//!
//! Owns the types that hold them, the reading of secret files, and the check that the value can stand in a header, can go to a
//! program, or is a key. No error shows a value.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use toml::Value;

use super::error::ConfigError;
use super::net::is_header_value;

/// 32 bytes that never appear in logs, errors or `check`.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionKey([u8; 32]);

impl SessionKey {
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes themselves; the caller must not print them.
    pub fn expose(&self) -> &[u8; 32] {
        &self.0
    }
}

impl std::fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[redacted]")
    }
}

/// A value that never appears in logs, errors or `check`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value itself; the caller must not print it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[redacted]")
    }
}

pub(super) const PREFIX: &str = "file:";
/// A header value beyond this would not get through most servers; and a wrong file name is told early.
const MAX_BYTES: u64 = 16 * 1024;
const ACCEPTED: &str = "a header value (visible ASCII, not empty, no blank at either end), \"${NAME}\" from the \
                        environment, or \"file:PATH\"";

/// A header value, read from its file if it names one. `dir` is what a relative name is relative to.
pub(super) fn header_value(path: &str, value: &Value, dir: &Path) -> Result<Secret, ConfigError> {
    const FILE: &str =
        "a readable file of up to 16 KiB that holds one header value (visible ASCII, not empty)";
    let header = |text: &str| is_header_value(text).then(|| Secret::new(text));
    let refuse = || ConfigError::value(path, value, ACCEPTED);
    let given = value.as_str().ok_or_else(refuse)?;
    match given.strip_prefix(PREFIX) {
        Some(name) => from_file(path, &dir.join(name), FILE, "its content cannot stand in a header", header),
        None => header(given).ok_or_else(refuse),
    }
}

/// A text for a program: itself, or { file = "PATH" }. `file:` in front would not do here, as programs take such texts.
pub(super) fn env_value(path: &str, value: &Value, dir: &Path) -> Result<Secret, ConfigError> {
    const ACCEPTED: &str = "a text without NUL, \"${NAME}\" from the environment, or a table with the one member `file`, the name of a file \
                            that holds it";
    const FILE: &str = "a readable file of up to 16 KiB that holds one text without NUL";
    let plain = |text: &str| (!text.contains('\0')).then(|| Secret::new(text));
    let file =
        value.as_table().filter(|table| table.len() == 1).and_then(|table| table.get("file")?.as_str());
    match (value.as_str(), file) {
        (Some(text), _) => plain(text).ok_or_else(|| ConfigError::value(path, value, ACCEPTED)),
        (None, Some(name)) => from_file(path, &dir.join(name), FILE, "its content holds a NUL", plain),
        (None, None) => Err(ConfigError::value(path, value, ACCEPTED)),
    }
}

/// A key of 32 bytes as text, read from its file if it names one.
pub(super) fn session_key(path: &str, value: &Value, dir: &Path) -> Result<SessionKey, ConfigError> {
    const ACCEPTED: &str = "32 random bytes as base64 or as 64 hexadecimal digits, such as `openssl rand -base64 32` \
                            prints, \"${NAME}\" from the environment, or \"file:PATH\"";
    const FILE: &str =
        "a readable file that holds 32 random bytes as base64 or as 64 hexadecimal digits, and nothing else";
    let refuse = || ConfigError::value(path, value, ACCEPTED);
    let given = value.as_str().ok_or_else(refuse)?;
    match given.strip_prefix(PREFIX) {
        Some(name) => from_file(path, &dir.join(name), FILE, "its content is no such key", key),
        None => key(given).ok_or_else(refuse),
    }
}

/// Base64 in either alphabet, padded or not, or hexadecimal digits.
fn key(text: &str) -> Option<SessionKey> {
    const CONFIG: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    const BASE64: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, CONFIG);
    if text.len() == 64 {
        let mut bytes = [0; 32];
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let digit =
                |at: usize| char::from(digits[at]).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
            *byte = digit(0)? << 4 | digit(1)?;
        }
        return Some(SessionKey::new(bytes));
    }
    let bytes = BASE64.decode(text.replace('-', "+").replace('_', "/")).ok()?;
    bytes.try_into().ok().map(SessionKey::new)
}

/// What `read` makes of the text in `file`.
fn from_file<T>(
    path: &str,
    file: &Path,
    accepted: &str,
    unfit: &str,
    read: impl FnOnce(&str) -> Option<T>,
) -> Result<T, ConfigError> {
    let refuse = |reason: String| ConfigError::File {
        path: path.to_owned(),
        file: file.to_owned(),
        reason,
        accepted: accepted.to_owned(),
    };
    let mut text = String::new();
    File::open(file)
        .and_then(|opened| opened.take(MAX_BYTES + 1).read_to_string(&mut text))
        .map_err(|error| refuse(error.to_string()))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(refuse("it is larger than 16 KiB".to_owned()));
    }
    // Editors and `echo` end a file with a line break that is not part of the secret.
    read(text.trim()).ok_or_else(|| refuse(unfit.to_owned()))
}
