//! The scanner of pieces against the cursor: for many texts, right and wrong, and all cuts, both say the same.
#![allow(clippy::unwrap_used)]

use super::*;

const LIMITS: Limits = Limits { nesting: 6, members: usize::MAX };

const TEXTS: [&str; 31] = [
    "",
    " ",
    "{}",
    " [ ] ",
    "0",
    "-0.50e+10 ",
    "1E-7",
    "true",
    "nul",
    "\"\"",
    r#"{"a":1,"b":{"c":[1,{"d":"\u00e9\\\"/"}],"":null},"a":"x"}"#,
    "{ \"a\" : [ true , false , null ] , \"\\u0061\" : { } }\r\n",
    "[[[[[[]]]]]]",
    "[[[[[[[]]]]]]]",
    "{\"é世\u{10348}\":\"\u{2028}é\"}",
    r#"{"a":01}"#,
    r#"{"a":1.}"#,
    r#"{"a":-}"#,
    r#"{"a":1e+}"#,
    r#"{"a":tru}"#,
    r#"{"a":nulL}"#,
    r#"{"a"}"#,
    r#"{"a":}"#,
    r#"{"a":1,}"#,
    r#"{"a":1 "b":2}"#,
    "[1,]",
    "[,1]",
    "{]",
    "[}",
    "\"\\x\" \"\\u12g4\"",
    "\"a\tb\"",
];

/// What the cursor says, and where it sees members of the objects at depths 1 and 2, in the order of the text.
fn by_cursor(text: &[u8]) -> Result<Vec<(usize, Span, Span)>, ScanFault> {
    let mut cursor = Cursor::new(text, LIMITS).map_err(|error| error.fault)?;
    let mut members = Vec::new();
    let scanned = match cursor.peek() {
        Some(b'{') => cursor
            .object(|cursor, outer| {
                let place = members.len();
                let value = match cursor.peek() {
                    Some(b'{') => {
                        let inner = cursor.object(|cursor, _| cursor.skip())?;
                        members.extend(inner.members.iter().map(|member| (2, member.key, member.value)));
                        inner.span
                    }
                    _ => cursor.skip()?,
                };
                members.insert(place, (1, outer.key, value));
                Ok(value)
            })
            .map(|_| ()),
        _ => cursor.skip().map(|_| ()),
    };
    scanned.and_then(|()| cursor.end()).map_err(|error| error.fault)?;
    Ok(members)
}

/// The same by the scanner, fed the pieces between the cuts.
fn by_scanner(text: &[u8], cuts: &[usize]) -> Result<Vec<(usize, Span, Span)>, ScanFault> {
    let mut scanner = Scanner::new(LIMITS.nesting, 2);
    let mut members: Vec<(usize, Span, Span)> = Vec::new();
    // Per depth: the member that has not ended.
    let mut open = [usize::MAX; 3];
    let mut from = 0;
    for to in cuts.iter().copied().chain([text.len()]) {
        scanner.feed(&text[from..to], &mut |at, depth, mark| {
            let at = (from + at) as u32;
            match mark {
                Mark::Open | Mark::Close => {}
                Mark::KeyStart => {
                    open[depth] = members.len();
                    members.push((depth, Span { start: at, end: at }, Span::default()));
                }
                Mark::KeyEnd => members[open[depth]].1.end = at - 1,
                Mark::Value => members[open[depth]].2.start = at,
                Mark::ValueEnd => members[open[depth]].2.end = at,
            }
            Ok::<(), ScanFault>(())
        })?;
        from = to;
    }
    scanner.finish()?;
    Ok(members)
}

#[track_caller]
fn same(text: &[u8], cuts: &[usize]) {
    let (cursor, scanner) = (by_cursor(text), by_scanner(text, cuts));
    match (&cursor, &scanner) {
        // The cursor looks at the whole text's UTF-8 first.
        (Err(ScanFault::Utf8), Err(_)) => {}
        // The cursor was not asked for objects in arrays.
        (Ok(_), Ok(_)) if text.first() == Some(&b'[') => {}
        _ => assert_eq!(cursor, scanner, "{} cut at {cuts:?}", text.escape_ascii()),
    }
}

fn all_cuts(text: &[u8]) {
    for first in 0..=text.len() {
        same(text, &[first]);
        same(text, &[first, text.len().min(first + 1)]);
        same(text, &[first / 2, first]);
    }
    same(text, &(0..text.len()).collect::<Vec<_>>());
}

#[test]
fn agrees_with_the_cursor_wherever_a_text_is_cut() {
    for text in TEXTS {
        all_cuts(text.trim_start().as_bytes());
        for end in 0..text.len() {
            same(&text.as_bytes()[..end], &[end / 2]);
        }
    }
}

/// Texts that are not quite JSON: a byte changed, taken out or put in.
#[test]
fn agrees_with_the_cursor_on_damaged_texts() {
    const BYTES: &[u8] = b"{}[]\":,\\ \n0123eE+-.tfnu\x00\x1f\x7f\xc3\xa9\xe4\xed\xa0\xf4\xff";
    let (mut accepted, mut refused) = (0, 0);
    for text in TEXTS {
        let text = text.as_bytes();
        for at in 0..text.len() {
            for byte in BYTES {
                let changed = [&text[..at], &[*byte], &text[at + 1..]].concat();
                let more = [&text[..at], &[*byte], &text[at..]].concat();
                let less = [&text[..at], &text[at + 1..]].concat();
                for damaged in [changed, more, less] {
                    let damaged = damaged.trim_ascii_start();
                    same(damaged, &[at.min(damaged.len())]);
                    same(damaged, &(0..damaged.len()).collect::<Vec<_>>());
                    if by_cursor(damaged).is_ok() { accepted += 1 } else { refused += 1 }
                }
            }
        }
    }
    assert!(accepted > 1000 && refused > 1000, "{accepted} accepted, {refused} refused");
}
