//! The recorded members of one object.
//!
//! Owns looking a member up by its unescaped name and refusing a name that stands twice where it decides something.
//! Does not hold the text: every call takes the text that the object was found in.

use super::Span;
use super::text::unescape;
use smallvec::SmallVec;
use std::borrow::Cow;

/// An object and its members in the order of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// From `{` to `}`, both included.
    pub span: Span,
    pub members: SmallVec<[Member; 8]>,
}

/// One `"name": value`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// Between the quotes.
    pub key: Span,
    /// The name holds a backslash, so its text must be unescaped before it is compared.
    pub escaped: bool,
    pub value: Span,
}

/// A name that may occur once occurs again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("member {0:?} occurs more than once")]
pub struct Duplicate(pub String);

impl Object {
    /// The value of `name`, or `None`; a second occurrence is an error, since two readers could take either one.
    pub fn get(&self, text: &[u8], name: &str) -> Result<Option<Span>, Duplicate> {
        let mut found = None;
        for member in &self.members {
            if member.is(text, name) {
                if found.is_some() {
                    return Err(Duplicate(name.to_owned()));
                }
                found = Some(member.value);
            }
        }
        Ok(found)
    }

    /// The first value of `name`, where a duplicate decides nothing.
    pub fn first(&self, text: &[u8], name: &str) -> Option<Span> {
        self.members.iter().find(|member| member.is(text, name)).map(|member| member.value)
    }

    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Moves every span by `by` bytes, for an object found in a part of a text that begins there.
    pub fn shift(&mut self, by: u32) {
        let shift = |span: Span| Span { start: span.start + by, end: span.end + by };
        self.span = shift(self.span);
        for member in &mut self.members {
            member.key = shift(member.key);
            member.value = shift(member.value);
        }
    }
}

impl Member {
    /// The member's name, unescaped; `None` if it holds half a surrogate pair.
    pub fn name<'a>(&self, text: &'a [u8]) -> Option<Cow<'a, str>> {
        if !self.escaped {
            return std::str::from_utf8(self.key.of(text)).ok().map(Cow::Borrowed);
        }
        unescape(self.key.of(text))
    }

    /// Whether the member's name, unescaped, is `name`.
    pub fn is(&self, text: &[u8], name: &str) -> bool {
        let raw = self.key.of(text);
        if !self.escaped {
            return raw == name.as_bytes();
        }
        unescape(raw).is_some_and(|key| key == name)
    }
}
