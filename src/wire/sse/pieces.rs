//! An event too large to be held: its data in pieces, as they come.
//!
//! Owns the second way of reading an event with the same [`Decoder`]; what counts as a line, a field or the end of an
//! event is the same. Only whole lines other than `data` are held, within the decoder's limit.

use super::{Data, Decoder, SseError};
use bytes::{Buf, Bytes};
use memchr::memchr2;
use std::collections::VecDeque;
use std::time::Duration;

/// A byte order mark, `data:`, and the space that may follow.
const LONGEST_NAME: usize = 9;

/// What came next of an event that is read in pieces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Bytes of its data, of which there may be more.
    Data(Bytes),
    /// Its end. What was said of the reconnection time in it.
    End { retry: Option<Duration> },
}

/// How far the event under way has come.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    ready: VecDeque<Bytes>,
    /// A data line is open, and its name has passed.
    in_line: bool,
    /// The next data line is not the event's first.
    any: bool,
}

impl Decoder {
    /// Bytes held of the event under way.
    pub fn held(&self) -> usize {
        self.block.held() + self.partial.len()
    }

    /// Sets the bound anew, for a reader who has one of their own for whole events.
    pub fn allow(&mut self, max_event_bytes: usize) {
        self.limit = max_event_bytes;
    }

    /// Gives the event under way in pieces from now on, what is held of it first. The one after it is whole again.
    pub fn in_pieces(&mut self) {
        let mut pieces = Pieces::default();
        let data = std::mem::take(&mut self.block.data);
        pieces.any = !matches!(data, Data::None);
        let data = data.into_bytes();
        if !data.is_empty() {
            pieces.ready.push_back(data);
        }
        self.pieces = Some(pieces);
    }

    /// Whether the event under way is given in pieces.
    pub fn is_in_pieces(&self) -> bool {
        self.pieces.is_some()
    }

    /// The next piece that is there. `None`: more bytes are needed. After an error there is nothing more.
    pub fn next_piece(&mut self) -> Option<Result<Piece, SseError>> {
        loop {
            let pieces = self.pieces.as_mut()?;
            if let Some(bytes) = pieces.ready.pop_front() {
                return Some(Ok(Piece::Data(bytes)));
            }
            if pieces.in_line {
                let bytes = self.rest_of_line()?;
                if !bytes.is_empty() {
                    return Some(Ok(Piece::Data(bytes)));
                }
                continue;
            }
            if self.is_data_line()? {
                self.begin_line();
                continue;
            }
            let line = match self.next_line() {
                Ok(line) => line?,
                Err(error) => return Some(Err(self.fail(error))),
            };
            if line.is_empty() {
                let retry = self.block.retry;
                let _ = self.block.finish(&mut self.last_event_id);
                self.pieces = None;
                return Some(Ok(Piece::End { retry }));
            }
            self.block.field(line);
            if self.block.held() > self.limit {
                return Some(Err(self.fail(SseError::TooLarge { limit: self.limit })));
            }
            // A line that is `data` without a colon.
            let bare = !matches!(std::mem::take(&mut self.block.data), Data::None);
            if let Some(pieces) = self.pieces.as_mut().filter(|_| bare) {
                pieces.line();
            }
        }
    }

    /// Whether the line that begins here is one of data; `None` until enough of it has come.
    fn is_data_line(&mut self) -> Option<bool> {
        while self.partial.len() < LONGEST_NAME {
            let chunk = self.chunks.front_mut()?;
            if std::mem::take(&mut self.after_cr) && chunk.first() == Some(&b'\n') {
                chunk.advance(1);
            }
            let end = memchr2(b'\r', b'\n', chunk).unwrap_or(chunk.len());
            let taken = chunk.split_to(end.min(LONGEST_NAME - self.partial.len()));
            self.partial.extend_from_slice(&taken);
            if !chunk.is_empty() {
                break;
            }
            self.chunks.pop_front();
        }
        let begin = match self.partial.strip_prefix(b"\xef\xbb\xbf") {
            Some(rest) if self.first_line => rest,
            Some(_) | None => &self.partial[..],
        };
        Some(begin.starts_with(b"data:"))
    }

    /// Takes the name off a data line.
    fn begin_line(&mut self) {
        let mut line = self.partial.split().freeze();
        if std::mem::take(&mut self.first_line) && line.starts_with(b"\xef\xbb\xbf") {
            line.advance(3);
        }
        line.advance(b"data:".len());
        let space = line.first() == Some(&b' ');
        if space {
            line.advance(1);
        }
        let Some(pieces) = &mut self.pieces else { return };
        pieces.line();
        pieces.in_line = true;
        if !line.is_empty() {
            pieces.ready.push_back(line);
        }
    }

    /// What is there of an open data line.
    fn rest_of_line(&mut self) -> Option<Bytes> {
        let chunk = self.chunks.front_mut()?;
        let Some(end) = memchr2(b'\r', b'\n', chunk) else { return self.chunks.pop_front() };
        self.after_cr = chunk[end] == b'\r';
        let bytes = chunk.split_to(end);
        chunk.advance(1);
        if chunk.is_empty() {
            self.chunks.pop_front();
        }
        if let Some(pieces) = &mut self.pieces {
            pieces.in_line = false;
        }
        Some(bytes)
    }
}

impl Pieces {
    /// A data line begins; between two of them stands a line feed.
    fn line(&mut self) {
        if std::mem::replace(&mut self.any, true) {
            self.ready.push_back(Bytes::from_static(b"\n"));
        }
    }
}
