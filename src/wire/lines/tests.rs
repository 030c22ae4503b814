//! Lines, whatever pieces they come in.

use super::*;

const LIMIT: usize = 40;

/// What is read of `pieces`, in words.
fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    read_by(LateId::found, pieces)
}

fn read_by<'a>(counts: fn(LateId) -> Option<Id>, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    let mut lines = Lines::new(LIMIT, counts);
    let mut read = Vec::new();
    for piece in pieces {
        lines.room().extend_from_slice(piece);
        while let Some(line) = lines.next() {
            read.push(line);
        }
    }
    read.extend(lines.last());
    let words = |line| match line {
        Line::Text(text) => String::from_utf8(text.to_vec()).unwrap(),
        Line::TooLong(id) => {
            format!("too long: {:?}", id.map(|id| String::from_utf8(id.raw().to_vec()).unwrap()))
        }
    };
    read.into_iter().map(words).collect()
}

/// In two pieces cut at each place, in pieces of one size each, and in one.
fn all_ways(text: &str, expected: &[&str]) {
    let bytes = text.as_bytes();
    for cut in 0..=bytes.len() {
        let (before, after) = bytes.split_at(cut);
        assert_eq!(read([before, after]), expected, "cut at {cut}: {text:?}");
    }
    for size in 1..=bytes.len().max(1) {
        assert_eq!(read(bytes.chunks(size)), expected, "by {size}: {text:?}");
    }
}

#[test]
fn lines_are_cut_where_they_end() {
    all_ways("{\"a\":1}\n{\"b\":2}\n", &["{\"a\":1}", "{\"b\":2}"]);
    all_ways("one\r\ntwo\r\n", &["one", "two"]);
    all_ways("\n\r\n\none\n\n", &["one"]);
    all_ways("  \n\t\r\n one \n ", &[" one "]);
    all_ways("ä\u{2028}ö\rx\n", &["ä\u{2028}ö\rx"]);
    all_ways("", &[]);
}

#[test]
fn the_last_line_needs_no_end() {
    all_ways("one\ntwo", &["one", "two"]);
    all_ways("one\r\ntwo\r", &["one", "two"]);
}

#[test]
fn a_line_may_be_as_long_as_the_limit() {
    let longest = "x".repeat(LIMIT);
    all_ways(&format!("{longest}\n{longest}\r\n{longest}"), &[&longest, &longest, &longest]);
    let longer = "x".repeat(LIMIT + 1);
    let gone = "too long: None";
    all_ways(&format!("{longer}\n{longest}\n{longer}\r\nx\n{longer}"), &[gone, &longest, gone, "x", gone]);
}

#[test]
fn a_longer_line_is_gone_and_its_id_is_not() {
    let long = "x".repeat(2 * LIMIT);
    for (line, id) in [
        (format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"text":"{long}"}}}}"#), r#"Some("7")"#),
        (format!(r#"{{"jsonrpc":"2.0","result":{{"text":"{long}"}},"id":"a"}}"#), r#"Some("\"a\"")"#),
        (format!(r#"{{"jsonrpc":"2.0","id":7,"method":"ping","params":{{"text":"{long}"}}}}"#), "None"),
        (format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"text":"{long}"}},"id":8}}"#), "None"),
        (format!(r#"{{"jsonrpc":"2.0","result":{{"text":"{long}","id":7}}}}"#), "None"),
    ] {
        let gone = format!("too long: {id}");
        all_ways(
            &format!("before\n{line}\nafter\n{line}\r\n{line}"),
            &["before", &gone, "after", &gone, &gone],
        );
    }
}

#[test]
fn the_id_that_counts_is_the_readers_choice() {
    let long = "x".repeat(2 * LIMIT);
    let request = format!(r#"{{"jsonrpc":"2.0","method":"ping","params":{{"text":"{long}"}},"id":7}}"#);
    let answer = format!(r#"{{"jsonrpc":"2.0","result":{{"text":"{long}"}},"id":7}}"#);
    for (text, of_request, found) in [(&request, r#"Some("7")"#, "None"), (&answer, "None", r#"Some("7")"#)] {
        for size in [1, 7, 1000] {
            let text = format!("{text}\n");
            let pieces = || text.as_bytes().chunks(size);
            assert_eq!(read_by(LateId::of_request, pieces()), [format!("too long: {of_request}")]);
            assert_eq!(read_by(LateId::found, pieces()), [format!("too long: {found}")]);
        }
    }
}

#[test]
fn a_line_is_not_copied_and_a_large_one_leaves_no_room_behind() {
    let mut lines = Lines::new(1 << 20, LateId::found);
    let large = "x".repeat(300 * 1024);
    lines.room().extend_from_slice(large.as_bytes());
    assert_eq!(lines.next(), None);
    let at = lines.room().as_ptr();
    lines.room().extend_from_slice(b"\nnext\npart");
    let moved = lines.room().as_ptr() != at;
    let Some(Line::Text(text)) = lines.next() else { panic!("no line") };
    assert!(moved || text.as_ptr() == at);
    assert_eq!(lines.next(), Some(Line::Text(Bytes::from_static(b"next"))));
    assert_eq!(lines.last(), Some(Line::Text(Bytes::from_static(b"part"))));
    assert!(lines.room().capacity() < 64 * 1024);
}
