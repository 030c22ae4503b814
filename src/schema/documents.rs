//! Documents that the operator supplies for references that lead out of a schema (`schema.documents`).
//!
//! Owns them as texts, read once when the settings are loaded, under the absolute URIs that schemas may name. Nothing else that
//! lies outside a schema is ever known.

use bytes::Bytes;

/// See the module. Cheap to clone where it is empty, which it mostly is.
#[derive(Debug, Clone, Default)]
pub struct Documents {
    all: Vec<(Box<str>, Bytes)>,
}

impl Documents {
    /// Texts of JSON, each under an absolute URI without a fragment; the settings have seen to both.
    pub fn new(all: impl IntoIterator<Item = (Box<str>, Bytes)>) -> Self {
        Self { all: all.into_iter().collect() }
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Bytes)> {
        self.all.iter().map(|(uri, text)| (&**uri, text))
    }
}
