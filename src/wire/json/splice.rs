//! Writing a changed text out of the old one.
//!
//! Owns the edits (replace a span, rewrite an object's members) and their assembly into a [`Payload`]: small texts
//! are copied into one buffer, large ones become slices of the original with the new pieces in between, so that a
//! megabyte is never copied to change forty bytes. Edits must not overlap; the scanner's spans nest, and callers
//! edit at one level only inside what they do not replace.

use super::{Member, Object, Span};
use crate::wire::payload::Payload;
use bytes::{BufMut, Bytes, BytesMut};
use smallvec::SmallVec;

/// Up to this many bytes one copy is cheaper than handing several pieces to the socket.
const COPY_BELOW: usize = 16 * 1024;

/// A text and the changes to be made in it.
#[derive(Debug)]
pub struct Splice<'a> {
    text: &'a Bytes,
    edits: SmallVec<[(Span, Bytes); 8]>,
}

impl<'a> Splice<'a> {
    pub fn new(text: &'a Bytes) -> Self {
        Self { text, edits: SmallVec::new() }
    }

    /// Puts `with` in the place of `span`.
    pub fn replace(&mut self, span: Span, with: impl Into<Bytes>) {
        self.edits.push((span, with.into()));
    }

    /// Takes out the members of `object` that `keep` refuses and puts `add` (`"a":1,"b":2`, or nothing) first.
    /// Returns how many members the object then has, `add` counted as one.
    pub fn rewrite(
        &mut self,
        object: &Object,
        keep: impl Fn(&Member) -> bool,
        add: impl Into<Bytes>,
    ) -> usize {
        let add: Bytes = add.into();
        let inside = object.span.start + 1;
        let mut kept = 0;
        // End of what stays so far, and whether something after it has been taken out.
        let mut settled = inside;
        let mut dropped_to = None;
        for member in &object.members {
            if !keep(member) {
                dropped_to = Some(member.value.end);
                continue;
            }
            // The key span excludes its opening quote.
            let key = member.key.start - 1;
            if let Some(end) = dropped_to.take() {
                let end = if kept == 0 { key } else { end };
                self.edits.push((Span { start: settled, end }, Bytes::new()));
            }
            settled = member.value.end;
            kept += 1;
        }
        if let Some(end) = dropped_to {
            self.edits.push((Span { start: settled, end }, Bytes::new()));
        }
        if add.is_empty() {
            return kept;
        }
        let here = Span { start: inside, end: inside };
        self.edits.push((here, add));
        if kept > 0 {
            self.edits.push((here, Bytes::from_static(b",")));
        }
        kept + 1
    }

    /// Takes out the items of an array that `keep` refuses; `items` are all of them, in order.
    pub fn retain(&mut self, items: &[Span], keep: impl Fn(usize) -> bool) {
        let mut kept_end = None;
        // From where to where the removal goes that is under way.
        let mut gap: Option<Span> = None;
        for (index, item) in items.iter().enumerate() {
            if !keep(index) {
                let start = kept_end.unwrap_or(item.start);
                gap = Some(Span { start: gap.map_or(start, |gap| gap.start), end: item.end });
                continue;
            }
            if let Some(gap) = gap.take() {
                // With nothing before it, the comma in front of this item goes too.
                let end = if kept_end.is_none() { item.start } else { gap.end };
                self.edits.push((Span { start: gap.start, end }, Bytes::new()));
            }
            kept_end = Some(item.end);
        }
        if let Some(gap) = gap {
            self.edits.push((gap, Bytes::new()));
        }
    }

    /// Whether the text stays as it is.
    pub fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    /// The changed text.
    pub fn finish(mut self) -> Payload {
        if self.edits.is_empty() {
            return Payload::from(self.text.clone());
        }
        // An insertion goes before a removal that begins at the same place.
        self.edits.sort_by_key(|(span, _)| (span.start, span.end));
        debug_assert!(self.edits.windows(2).all(|pair| pair[0].0.end <= pair[1].0.start), "edits overlap");
        let removed: usize = self.edits.iter().map(|(span, _)| span.len()).sum();
        let added: usize = self.edits.iter().map(|(_, with)| with.len()).sum();
        let len = self.text.len() + added - removed;
        if len <= COPY_BELOW { self.copied(len) } else { self.sliced() }
    }

    fn copied(self, len: usize) -> Payload {
        let mut out = BytesMut::with_capacity(len);
        let mut at = 0;
        for (span, with) in &self.edits {
            out.put_slice(&self.text[at..span.start as usize]);
            out.put_slice(with);
            at = span.end as usize;
        }
        out.put_slice(&self.text[at..]);
        Payload::from(out.freeze())
    }

    fn sliced(self) -> Payload {
        let mut out = Payload::default();
        let mut at = 0;
        for (span, with) in self.edits {
            out.push(self.text.slice(at..span.start as usize));
            out.push(with);
            at = span.end as usize;
        }
        out.push(self.text.slice(at..));
        out
    }
}
