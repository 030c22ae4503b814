//! Event streams as bytes: an incremental decoder for what a peer sends, an encoder for what the proxy sends.
//!
//! Owns the framing of the WHATWG event stream format, in every legal form (C11, C13, C14): CR, LF and CRLF line
//! ends, a byte order mark, fields without a colon, data over several lines, anything cut anywhere. Each event
//! comes out as soon as the line end of its blank line is there.
//! Does not own what is in an event (`data` is bytes, never looked at), nor time: reconnecting, resuming with
//! `Last-Event-ID` and the keep-alive interval (C16) belong to the callers.
//!
//! Two things differ from what a browser does. An `id` or `retry` without any `data` is reported too, as an event
//! with empty data, because resumption needs the id of a priming event and the delay that goes with it. And bytes
//! are not decoded: only CR and LF end a line, so U+2028, U+2029 and U+0085 are ordinary text.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use memchr::{memchr, memchr2};

pub mod blocks;
mod pieces;

pub use pieces::Piece;
use pieces::Pieces;

/// A comment that keeps intermediaries from cutting an idle stream (C16).
pub const KEEP_ALIVE: &[u8] = b":\n\n";

/// What a line may hold beside its value: a byte order mark, the longest name of a field that counts, colon, space.
const LINE_OVERHEAD: usize = 16;

/// Appends one event that carries `parts`, one after the other, as its data.
///
/// A raw line end cannot stand in a data field, so the payload is split there into several `data` lines. In JSON a
/// raw line end is whitespace only, so the value a reader gets is the same.
pub fn encode_data(out: &mut BytesMut, parts: &[Bytes]) {
    out.reserve(parts.iter().map(Bytes::len).sum::<usize>() + 8);
    let mut lines = DataLines::default();
    for part in parts {
        lines.part(out, part);
    }
    lines.end(out);
}

/// The data of one event that is written in parts. Whatever its parts hold, it is over only with [`end`](Self::end).
#[derive(Debug, Default)]
pub struct DataLines {
    /// A line has begun and not ended.
    open: bool,
    after_cr: bool,
}

impl DataLines {
    pub fn part(&mut self, out: &mut BytesMut, part: &[u8]) {
        let mut rest = part;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while !rest.is_empty() {
            if !std::mem::replace(&mut self.open, true) {
                out.extend_from_slice(b"data: ");
            }
            let Some(end) = memchr2(b'\r', b'\n', rest) else {
                out.extend_from_slice(rest);
                return;
            };
            out.extend_from_slice(&rest[..end]);
            out.extend_from_slice(b"\n");
            self.open = false;
            let cr = rest[end] == b'\r';
            rest = &rest[end + 1..];
            if cr {
                self.after_cr = rest.is_empty();
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
        }
    }

    /// A line may stand here that is not one of data.
    pub fn is_between(&self) -> bool {
        !self.open
    }

    pub fn end(self, out: &mut BytesMut) {
        out.extend_from_slice(if self.open { b"\n\n" } else { b"data: \n\n" });
    }
}

/// One event, or the id or reconnection time that came without data.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Event {
    /// The stream's last event id as of this event: it stays until the stream sends another. An empty `id` field
    /// takes it away.
    pub id: Option<Bytes>,
    /// The event's type, unless it is the default (`message`).
    pub event: Option<Bytes>,
    /// Empty for a priming event and for an event that only carries a `retry`.
    pub data: Bytes,
    /// The reconnection time, where this event set it.
    pub retry: Option<Duration>,
}

impl Event {
    /// The event's type, `message` if the stream named none.
    pub fn name(&self) -> Cow<'_, str> {
        self.event.as_deref().map_or(Cow::Borrowed("message"), String::from_utf8_lossy)
    }
}

/// Why a stream cannot be read any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    #[error("an event of the stream is larger than {limit} bytes")]
    TooLarge { limit: usize },
}

/// Turns chunks of a stream into events. It does no I/O: `feed` it, then take events until there is none.
///
/// At the end of a stream there is nothing to do: an event whose blank line never came is discarded.
#[derive(Debug)]
pub struct Decoder {
    limit: usize,
    chunks: VecDeque<Bytes>,
    /// The start of a line whose end has not come yet.
    partial: BytesMut,
    /// The last line ended with CR; a LF that follows belongs to it.
    after_cr: bool,
    /// A byte order mark may stand at the start of the first line only.
    first_line: bool,
    failed: bool,
    block: Block,
    last_event_id: Option<Bytes>,
    /// The event under way, if it is given in pieces.
    pieces: Option<Pieces>,
}

impl Decoder {
    /// `max_event_bytes` bounds the data of one event together with its id and type, and any line by itself.
    pub fn new(max_event_bytes: usize) -> Self {
        Self {
            limit: max_event_bytes,
            chunks: VecDeque::new(),
            partial: BytesMut::new(),
            after_cr: false,
            first_line: true,
            failed: false,
            block: Block::default(),
            last_event_id: None,
            pieces: None,
        }
    }

    /// As the continuation of a stream whose last event had this id: it holds until the stream says otherwise.
    pub fn after(mut self, id: Option<Bytes>) -> Self {
        self.last_event_id = id;
        self
    }

    /// Hands over what came next on the stream, cut anywhere.
    pub fn feed(&mut self, chunk: Bytes) {
        if !self.failed && !chunk.is_empty() {
            self.chunks.push_back(chunk);
        }
    }

    /// The next event that is complete. `None`: more bytes are needed. After an error there is nothing more.
    pub fn next_event(&mut self) -> Option<Result<Event, SseError>> {
        loop {
            let line = match self.next_line() {
                Ok(line) => line?,
                Err(error) => return Some(Err(self.fail(error))),
            };
            if line.is_empty() {
                if let Some(event) = self.block.finish(&mut self.last_event_id) {
                    return Some(Ok(event));
                }
                continue;
            }
            self.block.field(line);
            if self.block.held() > self.limit {
                return Some(Err(self.fail(SseError::TooLarge { limit: self.limit })));
            }
        }
    }

    /// The id to resume with: that of the last event which came out.
    pub fn last_event_id(&self) -> Option<&Bytes> {
        self.last_event_id.as_ref()
    }

    /// The next whole line without its end. It is a slice of its chunk if it lies in one; a line over several chunks
    /// is gathered in one buffer, each byte looked at once.
    fn next_line(&mut self) -> Result<Option<Bytes>, SseError> {
        let longest = self.limit.saturating_add(LINE_OVERHEAD);
        while let Some(chunk) = self.chunks.front_mut() {
            if self.after_cr {
                self.after_cr = false;
                if chunk.first() == Some(&b'\n') {
                    chunk.advance(1);
                }
            }
            let end = memchr2(b'\r', b'\n', chunk);
            if self.partial.len().saturating_add(end.unwrap_or(chunk.len())) > longest {
                return Err(SseError::TooLarge { limit: self.limit });
            }
            let Some(end) = end else {
                self.partial.extend_from_slice(chunk);
                self.chunks.pop_front();
                continue;
            };
            self.after_cr = chunk[end] == b'\r';
            let head = chunk.split_to(end);
            chunk.advance(1);
            if chunk.is_empty() {
                self.chunks.pop_front();
            }
            let mut line = if self.partial.is_empty() {
                head
            } else {
                self.partial.extend_from_slice(&head);
                self.partial.split().freeze()
            };
            if std::mem::take(&mut self.first_line) && line.starts_with(b"\xef\xbb\xbf") {
                line.advance(3);
            }
            return Ok(Some(line));
        }
        Ok(None)
    }

    fn fail(&mut self, error: SseError) -> SseError {
        self.failed = true;
        self.chunks.clear();
        self.partial = BytesMut::new();
        self.block = Block::default();
        self.pieces = None;
        error
    }
}

/// The fields since the last blank line.
#[derive(Debug, Default)]
struct Block {
    data: Data,
    event: Option<Bytes>,
    id: Option<Bytes>,
    retry: Option<Duration>,
}

#[derive(Debug, Default)]
enum Data {
    #[default]
    None,
    /// The common case: one line, not copied.
    One(Bytes),
    Lines(BytesMut),
}

impl Block {
    fn field(&mut self, line: Bytes) {
        let (name, value) = match memchr(b':', &line) {
            Some(colon) => {
                let space = usize::from(line.get(colon + 1) == Some(&b' '));
                (&line[..colon], line.slice(colon + 1 + space..))
            }
            None => (&line[..], Bytes::new()),
        };
        match name {
            b"data" => self.data.push(value),
            b"event" => self.event = Some(value),
            // With a NUL in it an id could not be sent back in a header; the format says to ignore it.
            b"id" if memchr(0, &value).is_none() => self.id = Some(value),
            b"retry" => self.retry = milliseconds(&value).or(self.retry),
            _ => {}
        }
    }

    fn held(&self) -> usize {
        let small = |field: &Option<Bytes>| field.as_ref().map_or(0, Bytes::len);
        self.data.len() + small(&self.event) + small(&self.id)
    }

    /// Ends the block at its blank line. Blocks with nothing to tell, such as lone comments, give no event.
    fn finish(&mut self, last_event_id: &mut Option<Bytes>) -> Option<Event> {
        let block = std::mem::take(self);
        let nothing = matches!(block.data, Data::None) && block.id.is_none() && block.retry.is_none();
        if nothing {
            return None;
        }
        if let Some(id) = block.id {
            // Copied: an id outlives its event, and a slice would keep the whole chunk alive.
            *last_event_id = (!id.is_empty()).then(|| Bytes::copy_from_slice(&id));
        }
        Some(Event {
            id: last_event_id.clone(),
            event: block.event.filter(|name| !name.is_empty() && name != "message"),
            data: block.data.into_bytes(),
            retry: block.retry,
        })
    }
}

impl Data {
    fn push(&mut self, line: Bytes) {
        match self {
            Data::None => *self = Data::One(line),
            Data::One(first) => {
                let mut lines = BytesMut::with_capacity(first.len() + 1 + line.len());
                lines.extend_from_slice(first);
                lines.extend_from_slice(b"\n");
                lines.extend_from_slice(&line);
                *self = Data::Lines(lines);
            }
            Data::Lines(lines) => {
                lines.extend_from_slice(b"\n");
                lines.extend_from_slice(&line);
            }
        }
    }

    fn len(&self) -> usize {
        match self {
            Data::None => 0,
            Data::One(line) => line.len(),
            Data::Lines(lines) => lines.len(),
        }
    }

    fn into_bytes(self) -> Bytes {
        match self {
            Data::None => Bytes::new(),
            Data::One(line) => line,
            Data::Lines(lines) => lines.freeze(),
        }
    }
}

/// `retry` counts only if it is all digits; what does not fit a clock is no reconnection time either.
fn milliseconds(value: &[u8]) -> Option<Duration> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok().map(Duration::from_millis)
}

#[cfg(test)]
mod tests;
