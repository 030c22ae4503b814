//! URIs of resources, and references to them (RFC 3986).
//!
//! Owns resolving a reference against a base; percent escapes of fragments; and the URIs of the meta-schemas that every validator
//! brings along. Resources are told apart by the text of their URIs, since that is what validators compare: one that is spelt in
//! another way is a resource to fetch for them. The normal form is for documents that the operator supplies. Nothing in here can
//! look a URI up.

use crate::schema::Dialect;
use fluent_uri::{Uri, UriRef};
use std::borrow::Cow;
use std::fmt::Write;

/// The base where none is declared. What resolves to below it was relative.
const NOWHERE: &str = "json-schema:///";

/// Bytes of a URI; so a schema of many relative ids below a long one stays small in memory.
const LONG: usize = 2048;

/// An absolute URI without a fragment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Base {
    uri: Uri<String>,
    /// As it was written, where it was absolute then; else as it was resolved.
    text: Box<str>,
}

/// Why a reference names nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unresolved {
    /// It is relative, and its base (an URN, say) is none for relative references.
    Opaque,
    /// It is no reference, or too long to be one.
    NoUri,
}

impl Base {
    /// `reference`, which has no fragment, against `base`.
    pub(super) fn join(base: Option<&Base>, reference: &str) -> Result<Base, Unresolved> {
        if reference.len() > LONG {
            return Err(Unresolved::NoUri);
        }
        let written = reference;
        let encoded;
        let reference = match UriRef::parse(reference) {
            Ok(reference) => reference,
            Err(_) => {
                encoded = encode(reference);
                UriRef::parse(encoded.as_str()).map_err(|_| Unresolved::NoUri)?
            }
        };
        let resolved = match base {
            Some(base) => reference.resolve_against(&base.uri),
            None => match Uri::parse(NOWHERE) {
                Ok(nowhere) => reference.resolve_against(&nowhere),
                Err(_) => return Err(Unresolved::NoUri),
            },
        };
        let uri = resolved.map_err(|_| Unresolved::Opaque)?;
        if uri.as_str().len() > LONG {
            return Err(Unresolved::NoUri);
        }
        let text = if reference.has_scheme() { written } else { uri.as_str() };
        Ok(Base { text: text.into(), uri })
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// In the one form that all spellings of it have.
    pub(super) fn normal(&self) -> Box<str> {
        self.uri.normalize().as_str().into()
    }

    /// Whether it is the URI of a meta-schema, in the form in which validators know it.
    pub(super) fn is_meta_schema(&self) -> bool {
        let uri = self.as_str();
        if Dialect::ALL.iter().any(|dialect| dialect.uri().trim_end_matches('#') == uri) {
            return true;
        }
        let Some(rest) = uri.strip_prefix("https://json-schema.org/draft/") else { return false };
        match rest.split_once("/meta/") {
            Some(("2019-09", name)) => {
                matches!(name, "core" | "applicator" | "validation" | "meta-data" | "format" | "content")
            }
            Some(("2020-12", name)) => matches!(
                name,
                "core"
                    | "applicator"
                    | "unevaluated"
                    | "validation"
                    | "meta-data"
                    | "format-annotation"
                    | "format-assertion"
                    | "content"
            ),
            _ => false,
        }
    }
}

/// A reference's URI and its fragment.
pub(super) fn split(reference: &str) -> (&str, &str) {
    reference.split_once('#').unwrap_or((reference, ""))
}

/// A fragment without its percent escapes; `None` if they hold no text. What should have been escaped and was not is taken as it
/// is: people write pointers by hand.
pub(super) fn decode(fragment: &str) -> Option<Cow<'_, str>> {
    if !fragment.contains('%') {
        return Some(Cow::Borrowed(fragment));
    }
    let bytes = fragment.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if byte != b'%' {
            out.push(byte);
            at += 1;
            continue;
        }
        let digits = fragment.get(at + 1..at + 3)?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        out.push(u8::from_str_radix(digits, 16).ok()?);
        at += 3;
    }
    String::from_utf8(out).ok().map(Cow::Owned)
}

/// What no URI may hold, as percent escapes.
fn encode(reference: &str) -> String {
    let mut out = String::with_capacity(reference.len() + 16);
    for char in reference.chars() {
        let plain =
            char.is_ascii_graphic() && !matches!(char, '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}');
        if plain {
            out.push(char);
            continue;
        }
        for byte in char.encode_utf8(&mut [0; 4]).bytes() {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn join(base: &str, reference: &str) -> Result<String, Unresolved> {
        let base = (!base.is_empty()).then(|| Base::join(None, base).unwrap());
        Base::join(base.as_ref(), reference).map(|uri| uri.as_str().to_owned())
    }

    /// RFC 3986, sections 5.4 and 6.2.
    #[test]
    fn references_are_resolved_and_have_a_normal_form() {
        for (base, reference, uri) in [
            ("http://a/b/c/d;p?q", "g", "http://a/b/c/g"),
            ("http://a/b/c/d;p?q", "../../../g", "http://a/g"),
            ("http://a/b/c/d;p?q", "//g", "http://g"),
            ("http://a/b/c/d;p?q", "?y", "http://a/b/c/d;p?y"),
            ("http://a/b/c/d;p?q", "", "http://a/b/c/d;p?q"),
            ("", "HTTP://Example.COM:80/%7eA/./b", "HTTP://Example.COM:80/%7eA/./b"),
            ("", "other.json", "json-schema:///other.json"),
            ("", "//host/x", "json-schema://host/x"),
            ("", "URN:example:a", "URN:example:a"),
            ("", "a b\\é", "json-schema:///a%20b%5C%C3%A9"),
        ] {
            assert_eq!(join(base, reference).as_deref(), Ok(uri), "{base} {reference}");
        }
        let normal = Base::join(None, "HTTP://Example.COM:80/%7eA/./b").unwrap().normal();
        assert_eq!(&*normal, "http://example.com/~A/b");
        assert_eq!(join("urn:example:a", "b"), Err(Unresolved::Opaque));
        assert_eq!(join("", "a:b:c%zz"), Err(Unresolved::NoUri));
        assert_eq!(join("", &"a".repeat(LONG + 1)), Err(Unresolved::NoUri));
    }

    #[test]
    fn c62_meta_schemas_are_known_by_their_own_uris_alone() {
        let known = |uri: &str| Base::join(None, uri).unwrap().is_meta_schema();
        for uri in [
            "http://json-schema.org/draft-04/schema",
            "http://json-schema.org/draft-06/schema",
            "http://json-schema.org/draft-07/schema",
            "https://json-schema.org/draft/2019-09/schema",
            "https://json-schema.org/draft/2019-09/meta/applicator",
            "https://json-schema.org/draft/2020-12/schema",
            "https://json-schema.org/draft/2020-12/meta/unevaluated",
        ] {
            assert!(known(uri), "{uri}");
        }
        for uri in [
            "http://json-schema.org/draft-03/schema",
            "https://json-schema.org/draft/2019-09/meta/unevaluated",
            "https://json-schema.org/draft/2020-12/meta/core/x",
            "https://json-schema.org.evil.example/draft/2020-12/schema",
            "https://JSON-SCHEMA.org/draft/2020-12/schema",
            "https://json-schema.org:443/draft/2020-12/schema",
            "http://json-schema.org/",
        ] {
            assert!(!known(uri), "{uri}");
        }
    }

    #[test]
    fn fragments_lose_their_percent_escapes() {
        for (fragment, text) in [
            ("/a%25b", Some("/a%b")),
            ("/%C3%A9/é", Some("/é/é")),
            ("/a b<c>", Some("/a b<c>")),
            ("/%ff", None),
            ("/%4", None),
            ("/%+1", None),
            ("/%", None),
        ] {
            assert_eq!(decode(fragment).as_deref(), text, "{fragment}");
        }
        assert_eq!(split("a#b#c"), ("a", "b#c"));
        assert_eq!(split("a"), ("a", ""));
    }
}
