//! `schema.documents`: local files in the place of what references would have fetched.
//!
//! Owns the check of each name (an absolute URI without a fragment), and reading and checking each file (JSON, of a bounded
//! size). Does not own how a reference is resolved, nor whether a document is a schema.

use super::super::Document;
use super::super::error::ConfigError;
use super::super::raw::Leaf;
use super::super::substitute::below;
use super::super::values::Table;
use crate::wire::json::{Cursor, UNBOUNDED};
use fluent_uri::Uri;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use toml::Value;

/// Schemas in the field are far smaller; what is larger is a mistake.
const MAX_BYTES: u64 = 16 << 20;

pub(super) fn documents(table: &Table<'_>, leaf: &Leaf) -> Result<Vec<Document>, ConfigError> {
    let path = table.at("documents");
    let named = match leaf {
        None => return Ok(Vec::new()),
        Some(Value::Table(named)) => named,
        Some(other) => {
            return Err(ConfigError::value(&path, other, "a table of URIs and names of JSON files"));
        }
    };
    let one = |(uri, value): (&String, &Value)| {
        let path = below(&path, uri);
        if !is_document_uri(uri) {
            return Err(ConfigError::value(&path, value, "an absolute URI without a fragment as the name"));
        }
        let file = table.file(&path, value)?;
        let text = read(&path, &file)?.into();
        Ok(Document { uri: uri.clone(), file, text })
    };
    named.iter().map(one).collect()
}

/// RFC 3986, "absolute-URI".
fn is_document_uri(uri: &str) -> bool {
    Uri::parse(uri).is_ok_and(|uri| !uri.has_fragment())
}

fn read(path: &str, file: &Path) -> Result<Vec<u8>, ConfigError> {
    let refuse = |reason: String| ConfigError::File {
        path: path.to_owned(),
        file: file.to_owned(),
        reason,
        accepted: "a readable JSON file of up to 16 MiB".to_owned(),
    };
    let mut text = Vec::new();
    File::open(file)
        .and_then(|opened| opened.take(MAX_BYTES + 1).read_to_end(&mut text))
        .map_err(|error| refuse(error.to_string()))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(refuse("it is larger than 16 MiB".to_owned()));
    }
    let whole = |cursor: &mut Cursor<'_>| cursor.skip().and_then(|_| cursor.end());
    Cursor::new(&text, UNBOUNDED)
        .and_then(|mut cursor| whole(&mut cursor))
        .map_err(|error| refuse(error.to_string()))?;
    Ok(text)
}
