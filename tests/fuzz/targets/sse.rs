//! The event stream decoder, cut anywhere, against a reference that sees the whole stream; the encoder read back.

#![no_main]

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use libfuzzer_sys::fuzz_target;
use mcp_janus_fuzz::wire::sse::{Decoder, Event, KEEP_ALIVE, Piece, SseError, encode_data};

fuzz_target!(|input: &[u8]| {
    let [limit, cuts, stream @ ..] = input else { return };
    let limit = if *limit < 128 { usize::from(*limit) } else { 1 << 20 };
    let expected = reference(stream, limit);
    for (cuts, eager) in [(0, true), (1, true), (1, false), (*cuts, true), (*cuts, false)] {
        assert_eq!(decode(stream, limit, cuts, eager), expected, "limit {limit}, cuts {cuts}, eager {eager}");
    }
    in_pieces(stream, *cuts, &expected);
    encoder(stream, *cuts);
});

/// Pieces of the stream; 0 is one piece, 1 single bytes, everything else a mixture.
fn pieces(stream: &[u8], cuts: u8) -> Vec<&[u8]> {
    let mut rest = stream;
    let mut state = u32::from(cuts);
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let size = match cuts {
            0 => rest.len(),
            1 => 1,
            _ => (state >> 16) as usize % (usize::from(cuts % 16) + 2),
        };
        let (piece, tail) = rest.split_at(size.min(rest.len()));
        pieces.push(piece);
        rest = tail;
    }
    pieces
}

fn decode(stream: &[u8], limit: usize, cuts: u8, eager: bool) -> Vec<Result<Event, SseError>> {
    let mut decoder = Decoder::new(limit);
    let mut events = Vec::new();
    for piece in pieces(stream, cuts) {
        decoder.feed(Bytes::copy_from_slice(piece));
        if eager {
            events.extend(std::iter::from_fn(|| decoder.next_event()));
        }
    }
    events.extend(std::iter::from_fn(|| decoder.next_event()));
    events
}

/// Events in pieces, every one or from a place on, hold the same data.
fn in_pieces(stream: &[u8], cuts: u8, expected: &[Result<Event, SseError>]) {
    // Data has no bound in pieces.
    if expected.iter().any(Result::is_err) {
        return;
    }
    let expected: Vec<_> =
        expected.iter().flatten().map(|event| event.data.clone()).filter(|data| !data.is_empty()).collect();
    for whole in [0, usize::from(cuts)] {
        let mut decoder = Decoder::new(1 << 20);
        let (mut events, mut open, mut fed) = (Vec::new(), Vec::new(), 0);
        for piece in pieces(stream, cuts) {
            fed += piece.len();
            decoder.feed(Bytes::copy_from_slice(piece));
            loop {
                if !decoder.is_in_pieces() {
                    match decoder.next_event() {
                        Some(event) => events.push(event.expect("within bounds").data),
                        None if fed > whole && decoder.held() > 0 => decoder.in_pieces(),
                        None => break,
                    }
                    continue;
                }
                match decoder.next_piece().map(|piece| piece.expect("within bounds")) {
                    Some(Piece::Data(bytes)) => open.extend_from_slice(&bytes),
                    Some(Piece::End { .. }) => events.push(Bytes::from(std::mem::take(&mut open))),
                    None => break,
                }
            }
        }
        events.retain(|data| !data.is_empty());
        assert_eq!(events, expected, "cuts {cuts}, whole {whole}");
    }
}

fn reference(stream: &[u8], limit: usize) -> Vec<Result<Event, SseError>> {
    let too_large = Err(SseError::TooLarge { limit });
    let mut events = Vec::new();
    let mut last_id: Option<Vec<u8>> = None;
    let (mut data, mut event, mut id, mut retry) = (None::<Vec<u8>>, Vec::new(), None::<Vec<u8>>, None);
    let (lines, tail) = lines(stream);
    for (number, mut line) in lines.into_iter().enumerate() {
        if line.len() > limit + 16 {
            events.push(too_large);
            return events;
        }
        if number == 0 {
            line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        }
        if line.is_empty() {
            let name = std::mem::take(&mut event);
            let told = data.is_some() || id.is_some() || retry.is_some();
            if let Some(id) = id.take() {
                last_id = (!id.is_empty()).then_some(id);
            }
            if told {
                events.push(Ok(Event {
                    id: last_id.clone().map(Bytes::from),
                    event: (!name.is_empty() && name != b"message").then(|| Bytes::from(name)),
                    data: Bytes::from(data.take().unwrap_or_default()),
                    retry: retry.take(),
                }));
            }
            continue;
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match &line[..colon] {
            b"data" => match &mut data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => data = Some(value.to_vec()),
            },
            b"event" => event = value.to_vec(),
            b"id" if !value.contains(&0) => id = Some(value.to_vec()),
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                let number = String::from_utf8_lossy(value).parse::<u64>().ok();
                retry = number.map(Duration::from_millis).or(retry);
            }
            _ => {}
        }
        let held = data.as_ref().map_or(0, Vec::len) + event.len() + id.as_ref().map_or(0, Vec::len);
        if held > limit {
            events.push(too_large);
            return events;
        }
    }
    if tail.len() > limit + 16 {
        events.push(too_large);
    }
    events
}

/// The lines that have an end, and the rest.
fn lines(stream: &[u8]) -> (Vec<&[u8]>, &[u8]) {
    let mut lines = Vec::new();
    let (mut start, mut at) = (0, 0);
    while at < stream.len() {
        let end = match (stream[at], stream.get(at + 1)) {
            (b'\r', Some(b'\n')) => 2,
            (b'\r' | b'\n', _) => 1,
            _ => 0,
        };
        if end > 0 {
            lines.push(&stream[start..at]);
            start = at + end;
        }
        at += end.max(1);
    }
    (lines, &stream[start..])
}

/// Whatever the payload and however it is divided: one event, whose data differs in the form of line ends only.
fn encoder(payload: &[u8], cuts: u8) {
    let parts: Vec<Bytes> = pieces(payload, cuts).into_iter().map(Bytes::copy_from_slice).collect();
    let mut out = BytesMut::from(KEEP_ALIVE);
    encode_data(&mut out, &parts);
    out.extend_from_slice(KEEP_ALIVE);
    let (mut expected, tail) = lines(payload);
    expected.push(tail);
    let data = Bytes::from(expected.join(&b'\n'));
    assert_eq!(decode(&out, out.len(), 0, true), [Ok(Event { data, ..Event::default() })]);
}
