//! HTTP/1.1 as it passes by, cut into pieces that can be shown: whole messages, and the events of open streams.
//!
//! Owns a reader for one direction of one connection. It knows no more HTTP than the two ends of the demo use (lengths,
//! chunks, event streams) and shares no code with the proxy: what is shown must not depend on what is to be shown. It
//! only looks; the bytes go on as they are.

use std::mem;

/// Which of the two wires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    /// Between the client and the proxy.
    Front,
    /// Between the proxy and the server.
    Back,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    ToServer,
    ToClient,
}

/// One piece on one of the wires.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    pub(super) wire: Wire,
    pub(super) way: Way,
    pub(super) what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum What {
    /// A request or a response with its whole body.
    Message { head: Head, body: String },
    /// The head of a response whose body is an event stream.
    Opened(Head),
    /// One event: its lines as they were sent.
    Event(String),
    /// The end of an event stream, as its sender meant it. Not shown.
    Ended,
    /// The connection was closed before the answer was complete.
    Closed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head {
    /// Request line or status line.
    pub(super) line: String,
    /// Names as on the wire.
    pub(super) headers: Vec<(String, String)>,
}

impl Head {
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(given, _)| given.eq_ignore_ascii_case(name))?;
        Some(&found.1)
    }

    pub(super) fn method(&self) -> &str {
        self.line.split(' ').next().unwrap_or_default()
    }

    /// The status of a response.
    pub(super) fn status(&self) -> Option<u16> {
        self.line.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()
    }

    fn parse(text: &str) -> Self {
        let mut lines = text.split("\r\n");
        let line = lines.next().unwrap_or_default().to_owned();
        let pair = |line: &str| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_owned(), value.trim().to_owned()))
        };
        Self { line, headers: lines.filter_map(pair).collect() }
    }

    fn body(&self) -> State {
        let chunked = self.get("transfer-encoding").is_some_and(|value| value.contains("chunked"));
        let length = self.get("content-length").and_then(|value| value.parse().ok());
        match (chunked, length) {
            (true, _) => State::ChunkSize,
            (false, Some(length)) => State::Length(length),
            // Neither end of the demo sends a body that ends with its connection.
            (false, None) => State::Length(0),
        }
    }

    fn is_event_stream(&self) -> bool {
        self.get("content-type").is_some_and(|value| value.starts_with("text/event-stream"))
    }
}

impl What {
    pub(super) fn head(&self) -> Option<&Head> {
        match self {
            What::Message { head, .. } | What::Opened(head) => Some(head),
            What::Event(_) | What::Ended | What::Closed => None,
        }
    }

    /// The JSON that it carries, as text; empty if there is none.
    pub(super) fn json(&self) -> &str {
        match self {
            What::Message { body, .. } => body,
            What::Event(lines) => {
                lines.lines().find_map(|line| line.strip_prefix("data:")).unwrap_or_default().trim()
            }
            What::Opened(_) | What::Ended | What::Closed => "",
        }
    }
}

/// What the next bytes are.
#[derive(Debug)]
enum State {
    Head,
    Length(usize),
    ChunkSize,
    Chunk(usize),
    /// The line end behind a chunk.
    ChunkEnd,
    /// The line end behind the last chunk; nobody here sends trailers.
    LastEnd,
}

/// One direction of one connection.
#[derive(Debug)]
pub(super) struct Reader {
    buffer: Vec<u8>,
    state: State,
    head: Option<Head>,
    /// The head was handed out already; the body goes out by events.
    streams: bool,
    body: Vec<u8>,
    /// Messages that have come to their end.
    pub(super) complete: usize,
}

impl Reader {
    pub(super) fn new() -> Self {
        Self {
            buffer: Vec::new(),
            state: State::Head,
            head: None,
            streams: false,
            body: Vec::new(),
            complete: 0,
        }
    }

    /// What the bytes complete.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<What> {
        self.buffer.extend_from_slice(bytes);
        let mut out = Vec::new();
        while self.step(&mut out) {}
        out
    }

    /// Whether there may be more to do.
    fn step(&mut self, out: &mut Vec<What>) -> bool {
        match self.state {
            State::Head => {
                let Some(head) = self.take_until(b"\r\n\r\n") else { return false };
                let head = Head::parse(&head);
                self.state = head.body();
                self.streams = head.is_event_stream();
                match self.streams {
                    true => out.push(What::Opened(head)),
                    false => self.head = Some(head),
                }
            }
            State::Length(left) => {
                let taken = self.take_body(left, out);
                self.state = State::Length(left - taken);
                if taken < left {
                    return false;
                }
                self.end(out);
            }
            State::ChunkSize => {
                let Some(line) = self.take_until(b"\r\n") else { return false };
                let digits = line.split(';').next().unwrap_or_default().trim();
                self.state = match usize::from_str_radix(digits, 16) {
                    Ok(0) | Err(_) => State::LastEnd,
                    Ok(size) => State::Chunk(size),
                };
            }
            State::Chunk(left) => {
                let taken = self.take_body(left, out);
                self.state = if taken < left { State::Chunk(left - taken) } else { State::ChunkEnd };
                return taken == left;
            }
            State::ChunkEnd => {
                if self.take_until(b"\r\n").is_none() {
                    return false;
                }
                self.state = State::ChunkSize;
            }
            State::LastEnd => {
                if self.take_until(b"\r\n").is_none() {
                    return false;
                }
                self.end(out);
            }
        }
        true
    }

    fn end(&mut self, out: &mut Vec<What>) {
        self.state = State::Head;
        self.complete += 1;
        let body = mem::take(&mut self.body);
        out.push(match self.head.take() {
            Some(head) => What::Message { head, body: String::from_utf8_lossy(&body).into_owned() },
            None => What::Ended,
        });
    }

    /// Moves up to `most` bytes to the body; returns how many.
    fn take_body(&mut self, most: usize, out: &mut Vec<What>) -> usize {
        let taken = most.min(self.buffer.len());
        self.body.extend(self.buffer.drain(..taken));
        while let Some(at) = find(&self.body, b"\n\n").filter(|_| self.streams) {
            let event: Vec<u8> = self.body.drain(..at + 2).collect();
            out.push(What::Event(String::from_utf8_lossy(&event).trim_end().to_owned()));
        }
        taken
    }

    fn take_until(&mut self, end: &[u8]) -> Option<String> {
        let at = find(&self.buffer, end)?;
        let part: Vec<u8> = self.buffer.drain(..at + end.len()).collect();
        Some(String::from_utf8_lossy(&part[..at]).into_owned())
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_however_they_are_cut() {
        let text = b"POST /mcp HTTP/1.1\r\nMcp-Method: ping\r\ncontent-length: 2\r\n\r\n{}\
            HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n\
            11\r\ndata: {}\n\n: x\n\nda\r\n7\r\nta: 1\n\n\r\n0\r\n\r\nHTTP/1.1 202 Accepted\r\n\r\n";
        for size in 1..text.len() {
            let mut reader = Reader::new();
            let frames: Vec<_> = text.chunks(size).flat_map(|part| reader.feed(part)).collect();
            assert_eq!(frames.len(), 7, "{size}: {frames:?}");
            assert_eq!(frames[0].head().and_then(|head| head.get("mcp-method")), Some("ping"));
            assert_eq!(frames[0].json(), "{}");
            assert_eq!(frames[2], What::Event("data: {}".to_owned()));
            assert_eq!(frames[4].json(), "1");
            assert_eq!(frames[5], What::Ended);
            assert_eq!(frames[6].head().and_then(Head::status), Some(202));
            assert_eq!(reader.complete, 3);
        }
    }
}
