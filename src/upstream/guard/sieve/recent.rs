//! Messages with lists that passed lately, so that one which has not changed need not be scanned to find its list.
//!
//! Owns finding one again by all of its bytes but those of its id, and what was found in it. Does not own verdicts (`verdicts`).

use crate::wire::json::Span;
use bytes::Bytes;
use smallvec::SmallVec;
use std::sync::{Arc, Mutex, PoisonError};

/// Messages that are kept.
const KEPT: usize = 4;

/// Below this scanning costs nothing.
const LEAST: usize = 4 * 1024;

/// See the module.
pub(super) struct Recent {
    all: Mutex<SmallVec<[Arc<Message>; KEPT]>>,
    /// Bytes of one that is kept.
    most: usize,
}

/// One with `result.tools`, and with nothing else that is judged.
struct Message {
    text: Bytes,
    at: Places,
}

/// Where things stand in such a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) id: Span,
    pub(super) tools: Span,
    /// It has a `nextCursor`.
    pub(super) more: bool,
}

impl Recent {
    pub(super) fn new(bytes: usize) -> Self {
        Self { all: Mutex::default(), most: bytes / KEPT }
    }

    pub(super) fn find(&self, text: &[u8]) -> Option<Places> {
        if text.len() < LEAST {
            return None;
        }
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner).clone();
        all.iter().find_map(|message| message.places_in(text))
    }

    pub(super) fn keep(&self, text: &Bytes, at: Places) {
        if text.len() < LEAST || text.len() > self.most {
            return;
        }
        // A copy, so that no larger buffer is kept alive.
        let message = Arc::new(Message { text: Bytes::copy_from_slice(text), at });
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.truncate(KEPT - 1);
        all.insert(0, message);
    }
}

impl Message {
    /// The places in `text` if it is the same but for its id.
    fn places_in(&self, text: &[u8]) -> Option<Places> {
        let (before, after) =
            (&self.text[..self.at.id.start as usize], &self.text[self.at.id.end as usize..]);
        let rest = text.strip_prefix(before)?;
        let id = rest.get(..rest.len().checked_sub(after.len())?)?;
        if !is_id(id) || rest.get(id.len()..) != Some(after) {
            return None;
        }
        let (start, end) = (before.len(), before.len() + id.len());
        let tools = match self.at.tools.start < self.at.id.start {
            true => self.at.tools,
            false => {
                let start = (self.at.tools.start + end as u32).checked_sub(self.at.id.end)?;
                Span { start, end: start + self.at.tools.len() as u32 }
            }
        };
        Some(Places { id: Span::new(start, end), tools, more: self.at.more })
    }
}

/// Whether these are the bytes of an id as most are written; any other message is scanned.
fn is_id(raw: &[u8]) -> bool {
    let plain = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
    match raw {
        [b'"', text @ .., b'"'] => text.iter().all(plain),
        [b'0'] => true,
        [b'1'..=b'9', digits @ ..] => digits.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::json::UNBOUNDED;
    use crate::wire::jsonrpc::{self, Message, Reply};

    fn places(text: &Bytes) -> Places {
        let Ok(Message::Response(answer)) = jsonrpc::parse(text.clone(), UNBOUNDED) else { panic!() };
        let Reply::Result(body) = &answer.reply else { panic!() };
        let tools = body.object.first(text, "tools").unwrap();
        Places { id: answer.id.unwrap(), tools, more: false }
    }

    #[test]
    fn a_message_is_known_whatever_its_id() {
        let wide = " ".repeat(LEAST);
        let first =
            |id: &str| Bytes::from(format!(r#"{{"id":{id},"result":{{"tools":[{wide}]}},"jsonrpc":"2.0"}}"#));
        let last =
            |id: &str| Bytes::from(format!(r#"{{"jsonrpc":"2.0","result":{{"tools":[{wide}]}},"id":{id}}}"#));
        let recent = Recent::new(1 << 20);
        recent.keep(&first("1"), places(&first("1")));
        recent.keep(&last("\"a\""), places(&last("\"a\"")));
        for id in ["1", "0", "123", "\"\"", "\"a b\""] {
            for text in [first(id), last(id)] {
                assert_eq!(recent.find(&text), Some(places(&text)), "{id}");
            }
        }
        for id in ["01", "1 ", "-", "\"a\\n\"", "\"a\",\"x\":\"b\"", "1,\"id\":2", "", "null"] {
            assert_eq!(recent.find(&first(id)), None, "{id}");
            assert_eq!(recent.find(&last(id)), None, "{id}");
        }
        let other = Bytes::from(first("1").to_vec().into_iter().rev().collect::<Vec<_>>());
        assert_eq!(recent.find(&other), None);
    }

    #[test]
    fn few_are_kept_and_none_that_is_large() {
        let text = |n: usize| {
            let wide = " ".repeat(LEAST + n);
            Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{wide}]}}}}"#))
        };
        let recent = Recent::new(8 * LEAST);
        for n in 0..=KEPT {
            recent.keep(&text(n), places(&text(n)));
        }
        assert_eq!((recent.find(&text(0)), recent.find(&text(1)).is_some()), (None, true));
        recent.keep(&text(2 * LEAST), places(&text(2 * LEAST)));
        assert_eq!(recent.find(&text(2 * LEAST)), None);
    }
}
