//! Rewriting an object: the outcome is valid JSON, has what was added, lacks what was taken out, and every other
//! member is there byte for byte, between name and value too.
//!
//! The object is made from the input, not parsed out of it, so that no input is wasted on text that is not JSON.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use mcp_janus_fuzz::wire::json::{Cursor, Limits, Object, Splice};
use serde::de::IgnoredAny;

const LIMITS: Limits = Limits { nesting: 64, members: 64 };
const SPACES: [&str; 6] = ["", "", " ", "\n", "\t \r\n", "  "];
const KEYS: [&str; 6] = ["a", "", "_meta", r"\u0061", r#"q\"\\"#, "é\u{2028}"];
const VALUES: [&str; 10] = [
    "1e400",
    "-0",
    "null",
    "true",
    r#""""#,
    r#""}\",{\"""#,
    "{}",
    r#"{"a":[1,{"b":2}]}"#,
    "[ ]",
    "12345678901234567890",
];

/// What becomes of a member.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Keep,
    Drop,
    /// Keep the name, put another value.
    Replace(&'static str),
}

fuzz_target!(|input: &[u8]| {
    let mut bytes = input.iter().copied();
    let mut next = |below: usize| usize::from(bytes.next().unwrap_or(0)) % below;
    let mut text = String::from(SPACES[next(6)]);
    text.push('{');
    let count = next(9);
    let mut fates = Vec::new();
    for place in 0..count {
        if place > 0 {
            text += &format!("{},", SPACES[next(6)]);
        }
        text += &format!("{}\"{}\"{}:{}", SPACES[next(6)], KEYS[next(6)], SPACES[next(6)], SPACES[next(6)]);
        // Above 16 KiB the outcome is put together from slices.
        text +=
            &if next(32) == 31 { format!("\"{}\"", "x".repeat(20_000)) } else { VALUES[next(10)].to_owned() };
        fates.push(match next(3) {
            0 => Fate::Keep,
            1 => Fate::Drop,
            _ => Fate::Replace(VALUES[next(10)]),
        });
    }
    text += &format!("{}}}{}", SPACES[next(6)], SPACES[next(6)]);
    let add = ["", r#""new":1"#, r#""new":1,"more":{}"#][next(3)];
    check(&Bytes::from(text), &fates, add);
});

fn check(text: &Bytes, fates: &[Fate], add: &str) {
    let before = scan(text);
    let fate = |at: usize| fates[at];
    let mut splice = Splice::new(text);
    for (at, member) in before.members.iter().enumerate() {
        if let Fate::Replace(value) = fate(at) {
            splice.replace(member.value, value.as_bytes());
        }
    }
    let place = |key: u32| before.members.iter().position(|member| member.key.start == key);
    let keep = |key: u32| place(key).is_none_or(|at| fate(at) != Fate::Drop);
    let left =
        splice.rewrite(&before, |member| keep(member.key.start), Bytes::copy_from_slice(add.as_bytes()));
    let payload = splice.finish();
    let out = payload.to_bytes();
    assert_eq!(payload.len(), out.len());
    assert!(serde_json::from_slice::<IgnoredAny>(&out).is_ok(), "{}", out.escape_ascii());

    let after = scan(&out);
    let added = if add.is_empty() { 0 } else { add.matches("\":").count() };
    let kept: Vec<usize> = (0..fates.len()).filter(|at| fate(*at) != Fate::Drop).collect();
    assert_eq!(left, kept.len() + usize::from(added > 0));
    assert_eq!(after.members.len(), kept.len() + added);
    assert!(out[after.span.range()].starts_with(format!("{{{add}").as_bytes()));
    // What stands around the object stays.
    assert!(
        text.starts_with(&out[..after.span.start as usize])
            && text.ends_with(&out[after.span.end as usize..])
    );
    for (at, now) in kept.into_iter().zip(&after.members[added..]) {
        let then = &before.members[at];
        let lead = |text: &[u8], from: u32, to: u32| text[from as usize..to as usize].to_vec();
        assert_eq!(
            lead(&out, now.key.start - 1, now.value.start),
            lead(text, then.key.start - 1, then.value.start)
        );
        match fate(at) {
            Fate::Replace(value) => assert_eq!(now.value.of(&out), value.as_bytes()),
            _ => assert_eq!(now.value.of(&out), then.value.of(text)),
        }
    }
    if add.is_empty() && fates.iter().all(|fate| *fate == Fate::Keep) {
        assert_eq!(&out, text);
    }
}

fn scan(text: &[u8]) -> Object {
    let mut cursor = Cursor::new(text, LIMITS).expect("UTF-8");
    let object = cursor.object(|cursor, _| cursor.skip()).expect("an object");
    cursor.end().expect("nothing after it");
    object
}
