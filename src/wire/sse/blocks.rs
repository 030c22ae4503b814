//! Events as the bytes that they came in.
//!
//! Owns finding where events end without taking them apart, so that those which nobody changes pass as they are; the data of one;
//! and writing one anew with other data, every other line of it (ids, reconnection times, comments) as it was. What counts as a
//! line, a field or an event is what the [`Decoder`](super::Decoder) has. Cases C11, C13, C14.

use super::DataLines;
use bytes::{Bytes, BytesMut};
use memchr::{memchr, memchr2};
use std::ops::Range;

/// Where the events of a stream end, which is cut anywhere.
#[derive(Debug, Clone, Default)]
pub struct Blocks {
    /// A line has begun and not ended.
    in_line: bool,
    /// The last byte was a CR, to which a LF may still belong.
    after_cr: bool,
}

impl Blocks {
    /// Where in `bytes`, the next of the stream, the first event ends: after its blank line. `None`: it does not, and all of them
    /// are read. A LF that belongs to the CR before it may be left to the next event, where it says nothing.
    pub fn next_end(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        if self.after_cr && !bytes.is_empty() {
            self.after_cr = false;
            at = usize::from(bytes[0] == b'\n');
        }
        while let Some(len) = memchr2(b'\r', b'\n', &bytes[at..]) {
            let blank = len == 0 && !std::mem::take(&mut self.in_line);
            self.in_line = false;
            let end = at + len;
            at = end + 1;
            if bytes[end] == b'\r' {
                match bytes.get(at) {
                    Some(b'\n') => at += 1,
                    Some(_) => {}
                    None => self.after_cr = true,
                }
            }
            if blank {
                return Some(at);
            }
        }
        self.in_line |= at < bytes.len();
        None
    }
}

/// The data of one event; `None` if it has no such field. Not copied if it is one line.
pub fn data(block: &Bytes) -> Option<Bytes> {
    let mut fields = lines(block).filter_map(|line| data_of(block, line.text));
    let first = block.slice(fields.next()?);
    let Some(second) = fields.next() else { return Some(first) };
    let mut joined = BytesMut::with_capacity(block.len());
    joined.extend_from_slice(&first);
    for field in std::iter::once(second).chain(fields) {
        joined.extend_from_slice(b"\n");
        joined.extend_from_slice(&block[field]);
    }
    Some(joined.freeze())
}

/// The event with `parts`, one after the other, as its data.
pub fn with_data(block: &[u8], parts: &[Bytes]) -> Bytes {
    let mut out = BytesMut::with_capacity(block.len().min(256) + parts.iter().map(Bytes::len).sum::<usize>());
    let mut written = false;
    for line in lines(block) {
        if data_of(block, line.text.clone()).is_none() {
            out.extend_from_slice(&block[line.text.start..line.end]);
        } else if !std::mem::replace(&mut written, true) {
            let mut data = DataLines::default();
            parts.iter().for_each(|part| data.part(&mut out, part));
            if !data.is_between() {
                out.extend_from_slice(b"\n");
            }
        }
    }
    out.freeze()
}

/// What is left of the event without its data: what a stream is taken up again with, if it has any of that.
pub fn without_data(block: &[u8]) -> Bytes {
    let mut out = BytesMut::new();
    let mut says = false;
    for line in lines(block) {
        let name = field(&block[line.text.clone()]).0;
        let stays = matches!(name, b"id" | b"retry");
        says |= stays;
        if stays || name.is_empty() {
            out.extend_from_slice(&block[line.text.start..line.end]);
        }
    }
    if says { out.freeze() } else { Bytes::new() }
}

/// One line, and where its end ends.
struct Line {
    text: Range<usize>,
    end: usize,
}

fn lines(block: &[u8]) -> impl Iterator<Item = Line> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at;
        let rest = block.get(start..).filter(|rest| !rest.is_empty())?;
        let len = memchr2(b'\r', b'\n', rest).unwrap_or(rest.len());
        let both = rest.get(len..len + 2) == Some(b"\r\n");
        at = (start + len + 1 + usize::from(both)).min(block.len());
        Some(Line { text: start..start + len, end: at })
    })
}

/// Where the value stands in a line of data.
fn data_of(block: &[u8], line: Range<usize>) -> Option<Range<usize>> {
    let (name, value) = field(&block[line.clone()]);
    (name == b"data").then(|| line.end - value.len()..line.end)
}

fn field(line: &[u8]) -> (&[u8], &[u8]) {
    // A byte order mark begins a stream, and so its first line.
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    let Some(colon) = memchr(b':', line) else { return (line, &[]) };
    let value = &line[colon + 1..];
    (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
}

#[cfg(test)]
mod tests {
    use super::super::Decoder;
    use super::*;

    /// All events of a stream that comes in these pieces, and what is left.
    fn cut(pieces: &[&[u8]]) -> (Vec<Vec<u8>>, Vec<u8>) {
        let (mut blocks, mut found, mut held) = (Blocks::default(), Vec::new(), Vec::new());
        for piece in pieces {
            let mut rest = *piece;
            while let Some(end) = blocks.next_end(rest) {
                held.extend_from_slice(&rest[..end]);
                found.push(std::mem::take(&mut held));
                rest = &rest[end..];
            }
            held.extend_from_slice(rest);
        }
        (found, held)
    }

    fn decoded(stream: &[u8]) -> Vec<super::super::Event> {
        let mut decoder = Decoder::new(1 << 20);
        decoder.feed(Bytes::copy_from_slice(stream));
        std::iter::from_fn(|| decoder.next_event()).map(Result::unwrap).collect()
    }

    const STREAMS: [&str; 8] = [
        "data: a\n\ndata: b\n\n",
        "id: 1\r\nretry: 5\r\ndata: {\r\ndata: }\r\n\r\n: c\r\n\r\ndata\r\n\r\n",
        "event: x\rdata:a\r\rid:2\r\rdata: b\r\r",
        "\u{feff}data: a\n\n\n\ndata: b\n\n",
        ":\n\ndata: a\r\n\ndata: b\n\r\n",
        "data: a\n\ndata: cut",
        "\n\r\n\rdata: a\n\n",
        "data: a\u{2028}b\n\nid\n\n",
    ];

    #[test]
    fn c11_c14_events_are_those_of_the_decoder_at_every_cut() {
        for stream in STREAMS {
            let bytes = stream.as_bytes();
            for cut_at in 0..=bytes.len() {
                let (found, held) = cut(&[&bytes[..cut_at], &bytes[cut_at..]]);
                assert_eq!([found.concat(), held].concat(), bytes, "{stream:?}: every byte");
                // Each by itself says what it says in its place.
                let datas: Vec<Bytes> =
                    found.iter().filter_map(|block| data(&Bytes::copy_from_slice(block))).collect();
                let wanted: Vec<Bytes> = decoded(bytes)
                    .into_iter()
                    .map(|event| event.data)
                    .filter(|data| !data.is_empty())
                    .collect();
                let said: Vec<Bytes> = datas.into_iter().filter(|data| !data.is_empty()).collect();
                assert_eq!(said, wanted, "{stream:?} cut at {cut_at}");
            }
        }
    }

    #[test]
    fn b_other_lines_survive_new_data() {
        for (block, new, wanted) in [
            ("id: 7\nretry: 5\n: c\ndata: old\n\n", "new", "id: 7\nretry: 5\n: c\ndata: new\n\n"),
            ("data: {\r\ndata: }\r\nid: 7\r\n\r\n", "{}", "data: {}\nid: 7\r\n\r\n"),
            ("event: message\rdata:x\r\r", "a\nb", "event: message\rdata: a\ndata: b\n\r"),
            ("\ndata\n\n", "x", "\ndata: x\n\n"),
        ] {
            let written = with_data(block.as_bytes(), &[Bytes::copy_from_slice(new.as_bytes())]);
            assert_eq!(written, wanted, "{block:?}");
            assert_eq!(data(&written).unwrap(), new);
        }
        let parts = [Bytes::from_static(b"{\"a\":"), Bytes::from_static(b"1}")];
        assert_eq!(with_data(b"data: x\n\n", &parts), "data: {\"a\":1}\n\n");
    }

    #[test]
    fn c13_without_data_the_id_and_the_pause_are_left() {
        for (block, wanted) in [
            ("id: 7\nevent: message\ndata: x\n\n", "id: 7\n\n"),
            ("data: x\r\nretry: 5\r\n\r\n", "retry: 5\r\n\r\n"),
            ("data: x\n\n", ""),
            (": c\ndata: x\n\n", ""),
        ] {
            assert_eq!(without_data(block.as_bytes()), wanted, "{block:?}");
        }
    }

    #[test]
    fn one_line_of_data_is_not_copied() {
        let block = Bytes::from_static(b"id: 1\ndata: abc\n\n");
        assert_eq!(data(&block).unwrap().as_ptr(), block[12..].as_ptr());
        assert_eq!(data(&Bytes::from_static(b": data: x\n\n")), None);
        assert_eq!(data(&Bytes::from_static(b"data\n\n")), Some(Bytes::new()));
    }
}
