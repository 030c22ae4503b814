//! Single settings: from a TOML value to a duration, a size, a count, a word, a file.
//!
//! Owns the reading of one value and the words of its refusal; numbers may also come as text, because `${NAME}`
//! only gives text. Does not own which settings exist (`raw`) nor what they mean together (`front`, `upstream`).

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use toml::Value;

use super::error::ConfigError;
use super::raw::Leaf;
use super::substitute::below;
use super::units::{parse_duration, parse_size, show_duration, show_size};

/// A table of the file, while it is read.
#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    /// Where the table is; empty for the whole file.
    pub(super) path: &'a str,
    /// What relative file names are relative to.
    pub(super) dir: &'a Path,
}

impl Table<'_> {
    pub(super) fn at(&self, key: &str) -> String {
        below(self.path, key)
    }

    /// A file name, not yet opened.
    pub(super) fn file(&self, path: &str, value: &Value) -> Result<PathBuf, ConfigError> {
        let name = text(path, value, "the name of a file")?;
        if name.is_empty() || name.contains('\0') {
            return Err(ConfigError::value(path, value, "the name of a file"));
        }
        Ok(self.dir.join(name))
    }

    pub(super) fn duration(
        &self,
        key: &str,
        leaf: &Leaf,
        default: Duration,
        range: RangeInclusive<Duration>,
    ) -> Result<Duration, ConfigError> {
        let Some(value) = leaf else { return Ok(default) };
        duration(&self.at(key), value, range)
    }

    pub(super) fn size(
        &self,
        key: &str,
        leaf: &Leaf,
        default: usize,
        range: RangeInclusive<u64>,
    ) -> Result<usize, ConfigError> {
        let Some(value) = leaf else { return Ok(default) };
        let bytes = match value {
            Value::Integer(number) => u64::try_from(*number).ok(),
            Value::String(text) => parse_size(text),
            _ => None,
        };
        bytes.filter(|bytes| range.contains(bytes)).and_then(|bytes| usize::try_from(bytes).ok()).ok_or_else(
            || {
                let (low, high) = (show_size(*range.start()), show_size(*range.end()));
                ConfigError::value(
                    &self.at(key),
                    value,
                    format!("a size from {low} to {high}, as text such as \"4MiB\" or a number of bytes"),
                )
            },
        )
    }

    pub(super) fn count(
        &self,
        key: &str,
        leaf: &Leaf,
        default: usize,
        range: RangeInclusive<usize>,
    ) -> Result<usize, ConfigError> {
        let Some(value) = leaf else { return Ok(default) };
        let count = match value {
            Value::Integer(number) => usize::try_from(*number).ok(),
            Value::String(text) if text.bytes().all(|b| b.is_ascii_digit()) => text.parse().ok(),
            _ => None,
        };
        count.filter(|count| range.contains(count)).ok_or_else(|| {
            let accepted = format!("a whole number from {} to {}", range.start(), range.end());
            ConfigError::value(&self.at(key), value, accepted)
        })
    }

    /// One of a few words.
    pub(super) fn word<T: Copy>(
        &self,
        key: &str,
        leaf: &Leaf,
        default: T,
        words: &[(&str, T)],
    ) -> Result<T, ConfigError> {
        let Some(value) = leaf else { return Ok(default) };
        let given = value.as_str();
        words.iter().find(|(word, _)| Some(*word) == given).map(|(_, meaning)| *meaning).ok_or_else(|| {
            let list: Vec<String> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
            ConfigError::value(&self.at(key), value, list.join(" or "))
        })
    }

    /// Yes or no; also as text, which is what `${NAME}` gives.
    pub(super) fn flag(&self, key: &str, leaf: &Leaf, default: bool) -> Result<bool, ConfigError> {
        let Some(value) = leaf else { return Ok(default) };
        match value {
            Value::Boolean(flag) => Ok(*flag),
            Value::String(text) if text == "true" => Ok(true),
            Value::String(text) if text == "false" => Ok(false),
            other => Err(ConfigError::value(&self.at(key), other, "true or false")),
        }
    }

    /// A list of texts, each read by `read` under its own path; empty when not set.
    pub(super) fn list<T>(
        &self,
        key: &str,
        leaf: &Leaf,
        accepted: &str,
        read: impl Fn(&str, &Value) -> Result<T, ConfigError>,
    ) -> Result<Vec<T>, ConfigError> {
        let Some(value) = leaf else { return Ok(Vec::new()) };
        let path = self.at(key);
        let Value::Array(items) = value else {
            return Err(ConfigError::value(&path, value, format!("an array of texts, each {accepted}")));
        };
        items.iter().enumerate().map(|(index, item)| read(&format!("{path}[{index}]"), item)).collect()
    }
}

pub(super) fn duration(
    path: &str,
    value: &Value,
    range: RangeInclusive<Duration>,
) -> Result<Duration, ConfigError> {
    value.as_str().and_then(parse_duration).filter(|duration| range.contains(duration)).ok_or_else(|| {
        let (low, high) = (show_duration(*range.start()), show_duration(*range.end()));
        let accepted =
            format!("a duration from {low} to {high}, as text such as \"500ms\", \"30s\", \"2m\", \"1h\"");
        ConfigError::value(path, value, accepted)
    })
}

pub(super) fn text<'v>(path: &str, value: &'v Value, accepted: &str) -> Result<&'v str, ConfigError> {
    value.as_str().ok_or_else(|| ConfigError::value(path, value, accepted))
}

/// The file can be read and holds a certificate at least; its contents are read again where they are used.
pub(super) fn holds_certificate(path: &str, file: &Path) -> Result<(), ConfigError> {
    const ACCEPTED: &str = "a readable PEM file with one certificate or more";
    let refuse = |reason: String| ConfigError::File {
        path: path.to_owned(),
        file: file.to_owned(),
        reason,
        accepted: ACCEPTED.to_owned(),
    };
    let mut found = false;
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| refuse(error.to_string()))? {
        certificate.map_err(|error| refuse(error.to_string()))?;
        found = true;
    }
    if found { Ok(()) } else { Err(refuse("no certificate in it".to_owned())) }
}

pub(super) fn holds_private_key(path: &str, file: &Path) -> Result<(), ConfigError> {
    PrivateKeyDer::from_pem_file(file).map(|_| ()).map_err(|error| ConfigError::File {
        path: path.to_owned(),
        file: file.to_owned(),
        reason: error.to_string(),
        accepted: "a readable PEM file with a private key (PKCS#8, PKCS#1 or SEC1)".to_owned(),
    })
}
