//! Whose answer a text is that is too long to be held, found out while it passes.
//!
//! Owns what is kept of such a text: the names of its own members as far as they are short, and its id. The whole of it is
//! read, because nothing less proves anything: a text cut off after `"id":7` may be a request of the server, whose ids are
//! not ours, or may have another id further on; and what stands at the end of a text is only known to be the message's own
//! if all before it is.

use super::Id;
use crate::wire::json::{Mark, ScanFault, Scanner, Span, unescape};
use bytes::Bytes;

/// The deepest nesting that is followed: a bit a level is held.
const NESTING: usize = 4096;

/// Bytes of a name or an id that are kept: any of the names can be written with six bytes a letter.
const KEPT: usize = 256;

/// A text that passes, in pieces.
#[derive(Debug)]
pub struct Passing {
    /// `None`: it is no message.
    scanner: Option<Scanner>,
    found: Found,
}

#[derive(Debug, Default)]
struct Found {
    taking: Taking,
    kept: Vec<u8>,
    /// The member whose value passes is the id.
    id_next: bool,
    ids: usize,
    id: Option<Id>,
    answers: bool,
    asks: bool,
}

/// What the bytes that pass are kept as.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Taking {
    #[default]
    Nothing,
    Name,
    Id,
}

impl Default for Passing {
    fn default() -> Self {
        Self { scanner: Some(Scanner::new(NESTING, 1)), found: Found::default() }
    }
}

impl Passing {
    pub fn feed(&mut self, piece: &[u8]) {
        let Some(scanner) = &mut self.scanner else { return };
        let found = &mut self.found;
        let mut from = 0;
        let read = scanner.feed::<ScanFault>(piece, &mut |at, _depth, mark| {
            found.mark(piece, &mut from, at, mark);
            Ok(())
        });
        match read {
            Ok(()) => found.keep(piece.get(from..).unwrap_or_default()),
            Err(_) => self.scanner = None,
        }
    }

    /// The id of the request that the text answers; `None` if it answers none, or says so twice.
    pub fn answered(self) -> Option<Id> {
        let found = self.found;
        self.scanner?.finish().ok()?;
        found.id.filter(|_| found.ids == 1 && found.answers && !found.asks)
    }
}

impl Found {
    fn mark(&mut self, piece: &[u8], from: &mut usize, at: usize, mark: Mark) {
        match mark {
            Mark::KeyStart => self.take(Taking::Name, from, at),
            Mark::Value if self.id_next => self.take(Taking::Id, from, at),
            Mark::KeyEnd => {
                // Without the quote, which is in this piece.
                self.keep(piece.get(*from..at - 1).unwrap_or_default());
                self.name();
            }
            Mark::ValueEnd if self.taking == Taking::Id => {
                self.keep(piece.get(*from..at).unwrap_or_default());
                self.id();
            }
            Mark::Open | Mark::Value | Mark::ValueEnd | Mark::Close => {}
        }
    }

    fn take(&mut self, what: Taking, from: &mut usize, at: usize) {
        (self.taking, *from) = (what, at);
        self.kept.clear();
    }

    /// One byte more than may be kept, so that it is seen to be too long.
    fn keep(&mut self, bytes: &[u8]) {
        if self.taking != Taking::Nothing {
            let room = (KEPT + 1).saturating_sub(self.kept.len());
            self.kept.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        }
    }

    fn name(&mut self) {
        self.taking = Taking::Nothing;
        self.id_next = false;
        match unescape(&self.kept).as_deref() {
            Some("id") => {
                self.id_next = true;
                self.ids += 1;
            }
            Some("result" | "error") => self.answers = true,
            Some("method") => self.asks = true,
            Some(_) | None => {}
        }
    }

    fn id(&mut self) {
        self.taking = Taking::Nothing;
        self.id_next = false;
        if self.kept.len() <= KEPT {
            let raw = Bytes::copy_from_slice(&self.kept);
            self.id = Id::accept(&raw, Span::new(0, raw.len()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cut at every place.
    fn answered(text: &str) -> Option<String> {
        let whole = |cut: usize| {
            let (before, after) = text.as_bytes().split_at(cut);
            let mut passing = Passing::default();
            passing.feed(before);
            passing.feed(after);
            passing.answered().map(|id| String::from_utf8(id.raw().to_vec()).unwrap())
        };
        let found = whole(0);
        for cut in 1..=text.len() {
            assert_eq!(whole(cut), found, "cut at {cut}: {text}");
        }
        let mut bytewise = Passing::default();
        text.as_bytes().chunks(1).for_each(|byte| bytewise.feed(byte));
        assert_eq!(bytewise.answered().map(|id| String::from_utf8(id.raw().to_vec()).unwrap()), found);
        found
    }

    #[test]
    fn an_answer_has_its_id_wherever_it_stands() {
        for (text, id) in [
            (r#"{"jsonrpc":"2.0","id":7,"result":{"x":[1,{"id":8}]}}"#, "7"),
            (r#"{"result":{"text":"a \" } ,\"id\":9}"}, "id" : "b\"c" } "#, r#""b\"c""#),
            (r#"{"error":{"code":-1,"message":"method"},"id":-12}"#, "-12"),
            (r#"{"\u0069d":3,"res\u0075lt":{}}"#, "3"),
        ] {
            assert_eq!(answered(text).as_deref(), Some(id), "{text}");
        }
    }

    #[test]
    fn what_is_no_answer_has_none() {
        for text in [
            r#"{"id":7,"method":"ping","params":{}}"#,
            r#"{"id":7,"params":{"result":{}}}"#,
            r#"{"result":{"id":7}}"#,
            r#"{"result":{},"id":7,"id":7}"#,
            r#"{"result":{},"id":null}"#,
            r#"{"result":{},"id":1.5}"#,
            r#"{"result":{},"id":{"id":7}}"#,
            r#"[{"result":{},"id":7}]"#,
            r#"{"result":{},"id":7"#,
            r#"{"result":{},"id":7} x"#,
            r#"INFO {"result":{},"id":7}"#,
            r#"{"result":{"text":"},"id":7}"#,
            r#""result":{},"id":7}"#,
            "",
        ] {
            assert_eq!(answered(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_kept_of_it_is_bounded() {
        let mut passing = Passing::default();
        passing.feed(br#"{"result":{},"id":"#);
        passing.feed(b"\"");
        (0..1000).for_each(|_| passing.feed(&[b'x'; 1000]));
        assert_eq!(passing.found.kept.len(), KEPT + 1);
        passing.feed(b"\"}");
        assert_eq!(passing.answered(), None);
        let mut deep = Passing::default();
        deep.feed(br#"{"id":1,"result":"#);
        (0..100).for_each(|_| deep.feed(&[b'['; 1000]));
        assert!(deep.scanner.is_none());
    }
}
