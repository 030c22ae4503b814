//! Every legal form of an event stream, whole and cut at each place, and the encoder read back.

use super::*;

/// What an expected event is made of: id, event, data, retry in milliseconds.
type Row = (Option<&'static str>, Option<&'static str>, &'static str, Option<u64>);

const fn data(text: &'static str) -> Row {
    (None, None, text, None)
}

fn expected(rows: &[Row]) -> Vec<Event> {
    let bytes = |text: &'static str| Bytes::from_static(text.as_bytes());
    rows.iter()
        .map(|(id, event, data, retry)| Event {
            id: id.map(bytes),
            event: event.map(bytes),
            data: bytes(data),
            retry: retry.map(Duration::from_millis),
        })
        .collect()
}

fn drain(decoder: &mut Decoder) -> Vec<Event> {
    std::iter::from_fn(|| decoder.next_event()).map(|event| event.expect("within bounds")).collect()
}

fn decode<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Event> {
    let mut decoder = Decoder::new(1 << 20);
    let mut events = Vec::new();
    for chunk in chunks {
        decoder.feed(Bytes::copy_from_slice(chunk));
        events.extend(drain(&mut decoder));
    }
    events
}

/// Decodes the stream whole, byte by byte, and cut in two and three at every place; all must agree.
fn assert_events(stream: &[u8], rows: &[Row]) {
    let expected = expected(rows);
    let shown = stream.escape_ascii();
    assert_eq!(decode([stream]), expected, "whole: {shown}");
    assert_eq!(decode(stream.chunks(1)), expected, "byte by byte: {shown}");
    for first in 0..=stream.len() {
        for second in first..=stream.len() {
            let cut = [&stream[..first], &stream[first..second], &stream[second..]];
            assert_eq!(decode(cut), expected, "cut at {first} and {second}: {shown}");
        }
    }
}

#[test]
fn c11_any_line_end() {
    let two = [data("{\"a\":1}"), data("2")];
    assert_events(b"data: {\"a\":1}\n\ndata: 2\n\n", &two);
    assert_events(b"data: {\"a\":1}\r\n\r\ndata: 2\r\n\r\n", &two);
    assert_events(b"data: {\"a\":1}\r\rdata: 2\r\r", &two);
    assert_events(b"data: {\"a\":1}\r\n\ndata: 2\n\r\n", &two);
    assert_events(b"data: {\"a\":1}\n\rdata: 2\r\n\r", &two);
    assert_events(b"event: endpoint\r\ndata: /x\r\n\r\n", &[(None, Some("endpoint"), "/x", None)]);
}

#[test]
fn c11_an_event_comes_out_at_the_first_cr_and_once() {
    let mut decoder = Decoder::new(100);
    decoder.feed(Bytes::from_static(b"data: 1\r\n\r"));
    assert_eq!(drain(&mut decoder), expected(&[data("1")]));
    decoder.feed(Bytes::from_static(b"\n"));
    assert_eq!(drain(&mut decoder), []);
    decoder.feed(Bytes::from_static(b"\r\n\r\n\n\r"));
    assert_eq!(drain(&mut decoder), []);
}

#[test]
fn c13_events_without_a_message() {
    let stream = b"id: s:0\nretry: 1000\ndata: \n\n: keepalive\n\nevent: ping\ndata: 2026\n\ndata: {}\n\n";
    let id = Some("s:0");
    let rows = [(id, None, "", Some(1000)), (id, Some("ping"), "2026", None), (id, None, "{}", None)];
    assert_events(stream, &rows);
    assert_events(b"event: error\ndata: {\"id\":1}\n\n", &[(None, Some("error"), "{\"id\":1}", None)]);
    assert_events(b"event: message\ndata: 1\n\n", &[data("1")]);
    assert_events(b"event: a\nevent:\ndata: 1\n\n", &[data("1")]);
    assert_events(b":\n\n:\n:\n\n\n\nevent: nothing\n\ndata: 1\n\n", &[data("1")]);
    assert_events(b"data\n\n", &[data("")]);
}

#[test]
fn a13_5_ids_stay_until_changed() {
    let rows = [(Some("7"), None, "a", None), (Some("7"), None, "b", None), (None, None, "c", None)];
    assert_events(b"id: 7\ndata: a\n\ndata: b\n\nid\ndata: c\n\n", &rows);
    assert_events(b"id: 7\n\n", &[(Some("7"), None, "", None)]);
    assert_events(b"id: 7\nid: 8\0\ndata: a\n\n", &[(Some("7"), None, "a", None)]);
    assert_events(b"id: 8\0\n\n", &[]);
    assert_events("id: é\ndata: a\n\n".as_bytes(), &[(Some("é"), None, "a", None)]);
}

#[test]
fn a13_5_the_id_to_resume_with_is_that_of_the_last_whole_event() {
    let mut decoder = Decoder::new(100);
    decoder.feed(Bytes::from_static(b"id: 1\ndata: a\n\nid: 2\ndata: b\n"));
    assert_eq!(drain(&mut decoder).len(), 1);
    assert_eq!(decoder.last_event_id().map(|id| &id[..]), Some(&b"1"[..]));
}

#[test]
fn a13_5_retry() {
    assert_events(b"retry: 250\n\n", &[(None, None, "", Some(250))]);
    assert_events(b"retry:0\n\n", &[(None, None, "", Some(0))]);
    let not_times =
        "retry: -1\n\nretry: 1.5\n\nretry\n\nretry: 1e3\n\nretry:  1\n\nretry: 99999999999999999999\n\n";
    assert_eq!(decode([not_times.as_bytes()]), []);
    assert_events(b"retry: 5\nretry: x\n\n", &[(None, None, "", Some(5))]);
}

#[test]
fn c14_only_cr_and_lf_end_a_line() {
    let text = "{\"t\":\"a\u{2028}b\u{2029}c\u{85}d\u{b}e\"}";
    assert_events(format!("data: {text}\n\n").as_bytes(), &[data(text)]);
}

#[test]
fn fields_in_odd_forms() {
    assert_events(b"data:a\n\n", &[data("a")]);
    assert_events(b"data:  a \n\n", &[data(" a ")]);
    assert_events(b"data: a:b: c\n\n", &[data("a:b: c")]);
    assert_events(b"data: {\ndata:  \"a\":1\ndata\ndata: }\n\n", &[data("{\n \"a\":1\n\n}")]);
    assert_events(b"DATA: a\nData: b\n data: c\ndata : d\nfoo: e\nfoo\n\n", &[]);
    assert_events(b"data: a\n: data: b\nid2: 3\n\n", &[data("a")]);
    assert_events("data: 世界 \u{1F600}\n\n".as_bytes(), &[data("世界 \u{1F600}")]);
}

#[test]
fn a_byte_order_mark_counts_at_the_start_only() {
    assert_events("\u{feff}data: a\n\n".as_bytes(), &[data("a")]);
    assert_events("\u{feff}\u{feff}data: a\n\n".as_bytes(), &[]);
    assert_events("\n\u{feff}data: a\n\n".as_bytes(), &[]);
    assert_events("\u{feff}\ndata: \u{feff}a\n\n".as_bytes(), &[data("\u{feff}a")]);
}

#[test]
fn an_event_without_its_blank_line_is_discarded() {
    assert_events(b"data: a\n\ndata: b\n", &[data("a")]);
    assert_events(b"data: a\n\ndata: b", &[data("a")]);
    assert_events(b"", &[]);
}

#[test]
fn an_event_is_bounded_however_it_is_cut() {
    let exactly = format!("data: {}\n\n", "x".repeat(64));
    let streams = [
        format!("{exactly}data: {}\n\n", "x".repeat(65)),
        format!("{exactly}{}", "data: xxxxxxx\n".repeat(9)),
        format!("{exactly}: {}", "x".repeat(200)),
        format!("{exactly}id: {}\ndata: {}\n\n", "x".repeat(32), "x".repeat(33)),
    ];
    for stream in &streams {
        for size in [1, 7, stream.len()] {
            let mut decoder = Decoder::new(64);
            let mut results = Vec::new();
            for chunk in stream.as_bytes().chunks(size) {
                decoder.feed(Bytes::copy_from_slice(chunk));
                results.extend(std::iter::from_fn(|| decoder.next_event()));
            }
            assert_eq!(results.len(), 2, "{stream} by {size}");
            assert!(results[0].is_ok());
            assert_eq!(results[1], Err(SseError::TooLarge { limit: 64 }), "{stream} by {size}");
        }
    }
}

#[test]
fn comments_without_end_are_not_one_event() {
    let mut decoder = Decoder::new(16);
    for _ in 0..1000 {
        decoder.feed(Bytes::from_static(b": keep-alive\n"));
        assert_eq!(decoder.next_event(), None);
    }
}

#[test]
fn data_inside_one_chunk_is_not_copied() {
    let chunk = Bytes::from_static(b"data: abc\n\ndata: d");
    let mut decoder = Decoder::new(100);
    decoder.feed(chunk.clone());
    let event = decoder.next_event().expect("an event").expect("within bounds");
    assert_eq!(event.data.as_ptr(), chunk[6..].as_ptr());
}

#[test]
fn many_chunks_may_wait() {
    let mut decoder = Decoder::new(100);
    for chunk in ["data", ": a\n", "", "\ndata: b\r", "\n\r", "\n"] {
        decoder.feed(Bytes::from_static(chunk.as_bytes()));
    }
    assert_eq!(drain(&mut decoder), expected(&[data("a"), data("b")]));
}

#[test]
fn encoded_data_reads_back() {
    let table: [(&[&str], &str, &str); 8] = [
        (&["{}"], "data: {}\n\n", "{}"),
        (&[], "data: \n\n", ""),
        (&["{\"a\":", "", "1}"], "data: {\"a\":1}\n\n", "{\"a\":1}"),
        (&["{\r\n\"a\":1\r}\n"], "data: {\ndata: \"a\":1\ndata: }\ndata: \n\n", "{\n\"a\":1\n}\n"),
        (&["{\r", "\n}"], "data: {\ndata: }\n\n", "{\n}"),
        (&["{\r", "", "\n}"], "data: {\ndata: }\n\n", "{\n}"),
        (&["{\r", "\r\n}"], "data: {\ndata: \ndata: }\n\n", "{\n\n}"),
        (&[" a\u{2028}b"], "data:  a\u{2028}b\n\n", " a\u{2028}b"),
    ];
    for (parts, stream, payload) in table {
        let parts: Vec<Bytes> = parts.iter().map(|part| Bytes::copy_from_slice(part.as_bytes())).collect();
        let mut out = BytesMut::new();
        encode_data(&mut out, &parts);
        assert_eq!(std::str::from_utf8(&out), Ok(stream));
        let events = decode([&out[..]]);
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].data, payload.as_bytes());
    }
}

#[test]
fn c16_a_keep_alive_is_no_event() {
    assert_events(&[KEEP_ALIVE, b"data: a\n\n", KEEP_ALIVE].concat(), &[data("a")]);
}

/// The data of each event, those in pieces where `at` says so: asked for after so many bytes.
fn in_pieces(stream: &[u8], cut: usize, at: usize) -> (Vec<Vec<u8>>, Option<Bytes>) {
    let mut decoder = Decoder::new(1 << 20);
    let (mut events, mut open) = (Vec::new(), Vec::new());
    let mut fed = 0;
    for chunk in [&stream[..cut], &stream[cut..]].into_iter().flat_map(|half| half.chunks(1 + cut % 5)) {
        decoder.feed(Bytes::copy_from_slice(chunk));
        fed += chunk.len();
        loop {
            if decoder.is_in_pieces() {
                match decoder.next_piece().map(|piece| piece.expect("within bounds")) {
                    Some(Piece::Data(bytes)) => open.extend_from_slice(&bytes),
                    Some(Piece::End { .. }) => events.push(std::mem::take(&mut open)),
                    None => break,
                }
            } else {
                match decoder.next_event().map(|event| event.expect("within bounds")) {
                    Some(event) => events.push(event.data.to_vec()),
                    None if fed >= at && at > 0 && open.is_empty() && fed < at + chunk.len() => {
                        decoder.in_pieces()
                    }
                    None => break,
                }
            }
        }
    }
    events.retain(|data| !data.is_empty());
    (events, decoder.last_event_id().cloned())
}

#[test]
fn an_event_in_pieces_holds_the_same_data() {
    for stream in [
        "data: {\"a\":\ndata:1}\nid: 3\n\nid: 4\ndata: b\n\n",
        "\u{feff}data: x\r\n: comment\r\ndata:  y \r\ndata\r\n\r\ndata:z\r\n\r\n",
        "id:1\rdata:\rdata:\rdata: a\r\rdata: b\r\r",
        ": nothing\n\n:\ndataa: 1\ndat\ndata: c\nevent: e\nretry: 5\n\n\n\ndata:\u{feff}data:\n\n",
        "data: never ended\n",
    ] {
        let stream = stream.as_bytes();
        let expected = in_pieces(stream, 0, 0);
        for cut in 0..stream.len() {
            for at in 1..=stream.len() {
                assert_eq!(
                    in_pieces(stream, cut, at),
                    expected,
                    "{} cut at {cut}, in pieces from {at}",
                    stream.escape_ascii()
                );
            }
        }
    }
}

#[test]
fn in_pieces_data_has_no_bound_and_other_lines_have() {
    let mut decoder = Decoder::new(8);
    decoder.feed(Bytes::from_static(b"data: 1234"));
    assert_eq!(decoder.next_event(), None);
    decoder.in_pieces();
    let mut seen = 0;
    for _ in 0..100 {
        decoder.feed(Bytes::from_static(b"0123456789"));
        while let Some(piece) = decoder.next_piece() {
            match piece {
                Ok(Piece::Data(bytes)) => seen += bytes.len(),
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(seen, 1004);
    decoder.feed(Bytes::from_static(b"\nid: 123456789\n"));
    assert_eq!(decoder.next_piece(), Some(Err(SseError::TooLarge { limit: 8 })));
    assert_eq!((decoder.next_piece(), decoder.next_event()), (None, None));
}
