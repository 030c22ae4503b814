//! Documents that the operator supplies for references that lead out of a schema (`schema.documents`).
//!
//! Owns them as texts, read once when the settings are loaded, under the absolute URIs that schemas may name. Nothing else that
//! lies outside a schema is ever known.

use super::refs::normal_uri;
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::Arc;

/// See the module. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Documents {
    all: Arc<[(Box<str>, Bytes)]>,
    /// By the normal form of the URI.
    places: Arc<HashMap<Box<str>, usize>>,
}

impl Documents {
    /// Texts of JSON, each under an absolute URI without a fragment; the settings have seen to both.
    pub fn new(all: impl IntoIterator<Item = (Box<str>, Bytes)>) -> Self {
        let all: Arc<[_]> = all.into_iter().collect();
        let places = all.iter().enumerate().filter_map(|(place, (uri, _))| Some((normal_uri(uri)?, place)));
        Self { places: Arc::new(places.collect()), all }
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Bytes)> {
        self.all.iter().map(|(uri, text)| (&**uri, text))
    }

    /// The document under a URI in its normal form.
    pub(super) fn get(&self, uri: &str) -> Option<&Bytes> {
        self.places.get(uri).and_then(|place| self.all.get(*place)).map(|(_, text)| text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c62_a_document_is_found_in_each_spelling_of_its_uri() {
        let text = Bytes::from_static(b"{}");
        let documents = Documents::new([("HTTP://Example.com:80/a/../b.json".into(), text.clone())]);
        assert_eq!(documents.get("http://example.com/b.json"), Some(&text));
        assert_eq!(documents.get("http://example.com/a"), None);
        assert!(Documents::default().is_empty() && documents.clone().iter().count() == 1);
    }
}
