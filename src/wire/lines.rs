//! The lines of a stream, whatever pieces it comes in.
//!
//! Owns the buffer, which the reader fills. Lines end with LF, a CR before it is no part of them, and those with nothing on them
//! are none. A line is given as the bytes that were read, uncopied; one that is too long is read to its end in constant memory
//! and is gone, all but an id. Does not know what a line says.
//! Cases C14, C53; spec basic/transports/stdio.

use super::jsonrpc::{Id, LateId};
use bytes::{Bytes, BytesMut};
use memchr::memchr;

/// Room for one read.
const READ: usize = 16 * 1024;

/// With less room than this left, a read is not worth its system call.
const LEAST: usize = 4 * 1024;

/// After a longer line the buffer is made anew, so that its room is not kept for good.
const LARGE: usize = 256 * 1024;

/// What a line was.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    Text(Bytes),
    /// Longer than may be; the id that counts for the reader.
    TooLong(Option<Id>),
}

/// See the module.
pub struct Lines {
    buffer: BytesMut,
    /// So much of it holds no line end.
    scanned: usize,
    limit: usize,
    /// Which id of a line that is too long counts.
    counts: fn(LateId) -> Option<Id>,
    /// The line that is being read is too long.
    passing: Option<LateId>,
}

impl Lines {
    /// Lines of up to `limit` bytes, their ends not counted. Of a longer one the id `counts` that is its sender's own
    /// ([`LateId::of_request`]), or that of what it answers ([`LateId::found`]).
    pub fn new(limit: usize, counts: fn(LateId) -> Option<Id>) -> Self {
        Self { buffer: BytesMut::new(), scanned: 0, limit, counts, passing: None }
    }

    /// Where the next bytes go.
    pub fn room(&mut self) -> &mut BytesMut {
        if self.buffer.capacity() - self.buffer.len() < LEAST {
            self.buffer.reserve(READ);
        }
        &mut self.buffer
    }

    /// More has come than one line may have, and was not taken yet.
    pub fn is_full(&self) -> bool {
        self.buffer.len() > self.limit
    }

    /// The next whole line with anything on it.
    #[allow(clippy::should_implement_trait, reason = "there may be another one after `None`")]
    pub fn next(&mut self) -> Option<Line> {
        while let Some(at) = self.buffer.get(self.scanned..).and_then(|fresh| memchr(b'\n', fresh)) {
            let mut line = self.buffer.split_to(self.scanned + at + 1);
            self.scanned = 0;
            if line.len() > LARGE {
                self.buffer = BytesMut::from(&self.buffer[..]);
            }
            line.truncate(line.len() - 1);
            let line = self.line(line);
            if line.is_some() {
                return line;
            }
        }
        // One byte more may be the first half of the line's end.
        if self.passing.is_some() || self.buffer.len() > self.limit.saturating_add(1) {
            let piece = std::mem::take(&mut self.buffer);
            self.passing.get_or_insert_default().feed(&piece);
        }
        self.scanned = self.buffer.len();
        None
    }

    /// At the end of the stream: what has come without a line end.
    pub fn last(&mut self) -> Option<Line> {
        self.scanned = 0;
        let line = std::mem::take(&mut self.buffer);
        self.line(line)
    }

    fn line(&mut self, mut line: BytesMut) -> Option<Line> {
        if line.ends_with(b"\r") {
            line.truncate(line.len() - 1);
        }
        if self.passing.is_none() && line.len() <= self.limit {
            return (!line.trim_ascii().is_empty()).then(|| Line::Text(line.freeze()));
        }
        let mut passing = self.passing.take().unwrap_or_default();
        passing.feed(&line);
        Some(Line::TooLong((self.counts)(passing)))
    }
}

#[cfg(test)]
mod tests;
