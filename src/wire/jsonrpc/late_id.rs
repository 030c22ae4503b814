//! The id of a message that is too long to be held, found while its text passes in pieces.
//!
//! Owns that alone, in constant memory; many peers write `id` last. What has a `method` is a request, whose id is one of its
//! sender's, and all else an answer, whose id is not. Does not own what counts as too long.

use super::Id;
use crate::wire::json::{Mark, ScanFault, Scanner, Span, unescape};
use bytes::Bytes;

/// Deeper than any message is taken; bounds the scanner's state.
const NESTING: usize = 1 << 16;

/// Bytes of a name, or of an id, that are held.
const HELD: usize = 1024;

/// Reads one text.
#[derive(Debug)]
pub struct LateId {
    /// `None` once the text is no JSON.
    scanner: Option<Scanner>,
    found: Found,
}

#[derive(Debug, Default)]
struct Found {
    taking: Taking,
    held: Vec<u8>,
    id: Option<Vec<u8>>,
    /// Several ids.
    void: bool,
    method: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Taking {
    #[default]
    Nothing,
    Name,
    /// The name that passed was `id`; its value is to come.
    BeforeId,
    Id,
}

impl Default for LateId {
    fn default() -> Self {
        Self { scanner: Some(Scanner::new(NESTING, 1)), found: Found::default() }
    }
}

impl LateId {
    /// Reads the next piece.
    pub fn feed(&mut self, piece: &[u8]) {
        let Some(scanner) = &mut self.scanner else { return };
        let found = &mut self.found;
        let mut from = 0;
        let scanned = scanner.feed::<ScanFault>(piece, &mut |at, _depth, mark| {
            found.take(piece.get(from..at).unwrap_or_default());
            from = at;
            found.mark(mark);
            Ok(())
        });
        match scanned {
            Ok(()) => found.take(piece.get(from..).unwrap_or_default()),
            // What was found before it counts.
            Err(_) => self.scanner = None,
        }
    }

    /// The id, if there was one and the text is an answer as far as it was read.
    pub fn found(self) -> Option<Id> {
        if self.found.method { None } else { self.found.id() }
    }

    /// The id, if there was one and the text is a request.
    pub fn of_request(self) -> Option<Id> {
        if self.found.method { self.found.id() } else { None }
    }

    /// Whether the text is a notification as far as it was read: it has a method and no id.
    pub fn tells(&self) -> bool {
        self.found.method && self.found.id.is_none()
    }
}

impl Found {
    fn id(self) -> Option<Id> {
        let id = Bytes::from(self.id.filter(|_| !self.void)?);
        let all = Span::new(0, id.len());
        Id::accept(&id, all)
    }

    fn take(&mut self, bytes: &[u8]) {
        match self.taking {
            Taking::Nothing | Taking::BeforeId => {}
            Taking::Name | Taking::Id => {
                let room = HELD.saturating_sub(self.held.len());
                self.held.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
            }
        }
    }

    fn mark(&mut self, mark: Mark) {
        self.taking = match (mark, self.taking) {
            (Mark::KeyStart, _) => {
                self.held.clear();
                Taking::Name
            }
            (Mark::KeyEnd, Taking::Name) => {
                // The closing quote has passed too.
                let name = self.held.strip_suffix(b"\"").and_then(unescape);
                match name.as_deref() {
                    Some("id") => Taking::BeforeId,
                    Some("method") => {
                        self.method = true;
                        Taking::Nothing
                    }
                    Some(_) | None => Taking::Nothing,
                }
            }
            (Mark::Value, Taking::BeforeId) => {
                self.held.clear();
                Taking::Id
            }
            (Mark::ValueEnd, Taking::Id) => {
                self.void |= self.id.is_some() || self.held.len() == HELD;
                self.id = Some(std::mem::take(&mut self.held));
                Taking::Nothing
            }
            (Mark::Open | Mark::Close | Mark::KeyEnd | Mark::Value | Mark::ValueEnd, taking) => taking,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, step: usize) -> Option<String> {
        let mut late = LateId::default();
        text.as_bytes().chunks(step).for_each(|piece| late.feed(piece));
        late.found().map(|id| String::from_utf8_lossy(id.raw()).into_owned())
    }

    #[test]
    fn an_id_is_found_wherever_it_stands_and_the_text_is_cut() {
        let table = [
            (r#"{"jsonrpc":"2.0","id":17,"result":{"id":1}}"#, Some("17")),
            (r#"{"result":{"id":"x","deep":[{"id":2}]},"jsonrpc":"2.0","id":"a\"b"}"#, Some(r#""a\"b""#)),
            (r#"{"result":{},"\u0069d" : -3 }"#, Some("-3")),
            (r#"{"result":{},"id":5"#, None),
            (r#"{"id":5,"result":{"half"#, Some("5")),
            (r#"{"id":5,"result":nonsense"#, Some("5")),
            (r#"{"id":5,"id":6,"result":{}}"#, None),
            (r#"{"id":5,"method":"roots/list"}"#, None),
            (r#"{"id":null,"error":{}}"#, None),
            (r#"{"id":1.5,"result":{}}"#, None),
            (r#"[{"id":5,"result":{}}]"#, None),
            ("not JSON", None),
        ];
        for (text, expected) in table {
            for step in [1, 2, 7, 1000] {
                assert_eq!(found(text, step).as_deref(), expected, "{text} by {step}");
            }
        }
    }

    #[test]
    fn a_request_has_an_id_of_its_own() {
        let of_request = |text: &str| {
            let mut late = LateId::default();
            text.as_bytes().chunks(3).for_each(|piece| late.feed(piece));
            late.of_request().map(|id| String::from_utf8_lossy(id.raw()).into_owned())
        };
        let table = [
            (r#"{"method":"m","params":{"id":2},"jsonrpc":"2.0","id":1}"#, Some("1")),
            (r#"{"id":"a","params":{},"method":"m"}"#, Some("\"a\"")),
            (r#"{"id":5,"result":{}}"#, None),
            (r#"{"id":5,"id":5,"method":"m"}"#, None),
            (r#"{"method":"m"}"#, None),
        ];
        for (text, expected) in table {
            assert_eq!(of_request(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_notification_is_told_from_the_rest() {
        let table = [
            (r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"id":1}}"#, true),
            (r#"{"params":{},"method":"ping","id":1}"#, false),
            (r#"{"id":1,"result":{"method":"x"}}"#, false),
            ("not JSON", false),
        ];
        for (text, expected) in table {
            let mut late = LateId::default();
            late.feed(text.as_bytes());
            assert_eq!(late.tells(), expected, "{text}");
        }
    }

    #[test]
    fn an_id_without_end_is_none() {
        assert_eq!(found(&format!(r#"{{"id":"{}","result":{{}}}}"#, "x".repeat(5000)), 100), None);
    }
}
