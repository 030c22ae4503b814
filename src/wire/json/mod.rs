//! JSON as bytes: finding where things stand in a text, and writing a changed text from pieces of the old one.
//!
//! Owns: a strict scanner of RFC 8259 texts that records spans and builds no tree (`cursor`), one that reads a text in
//! pieces as they come (`flow`), the recorded members of an object (`object`), a look into a text that was scanned before (`look`), string contents (`text`), and the splice
//! that removes, replaces and inserts while every other byte survives (`splice`), and a text without its white space (`compact`). It does not know JSON-RPC, MCP or any member's meaning, and never converts a
//! number: `1e400` and `-0` are bytes here.

mod compact;
mod cursor;
mod flow;
mod look;
mod marks;
mod object;
mod splice;
mod text;

#[cfg(test)]
mod flow_tests;
#[cfg(test)]
mod tests;

pub use compact::compact;
pub use cursor::{Cursor, Limits, ScanError, ScanFault};
pub use flow::{Mark, Scanner};
pub use look::{UNBOUNDED, items, object, once};
pub use object::{Duplicate, Member, Object};
pub use splice::Splice;
pub use text::{quote, quote_into, unescape};

/// A range of bytes in one text; 32 bits each way, so a text may hold up to 4 GiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    pub start: u32,
    pub end: u32,
}

impl Span {
    pub fn new(start: usize, end: usize) -> Self {
        debug_assert!(start <= end && end <= u32::MAX as usize);
        Self { start: start as u32, end: end as u32 }
    }

    /// The bytes it covers in the text that it was found in.
    pub fn of<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        text.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    pub fn range(&self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }

    pub fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }
}

/// What kind of value stands at the start of `raw`; `raw` is a span that a scan has accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Object,
    Array,
    String,
    Number,
    Bool,
    Null,
}

impl Kind {
    /// `None` for bytes that begin no JSON value.
    pub fn of(raw: &[u8]) -> Option<Self> {
        Some(match raw.first()? {
            b'{' => Kind::Object,
            b'[' => Kind::Array,
            b'"' => Kind::String,
            b't' | b'f' => Kind::Bool,
            b'n' => Kind::Null,
            b'-' | b'0'..=b'9' => Kind::Number,
            _ => return None,
        })
    }
}
