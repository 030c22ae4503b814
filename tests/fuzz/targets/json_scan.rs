//! The JSON scanner against serde_json: both accept the same texts and find the same members.
//!
//! `IgnoredAny` is used for the second opinion because it neither converts numbers (`1e400`) nor bounds nesting; it
//! does not look at UTF-8, so that is asked of the standard library.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mcp_janus_fuzz::wire::json::{Cursor, Kind, Limits, Object, ScanError, ScanFault, Span, quote, unescape};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

fuzz_target!(|input: &[u8]| {
    let [nesting, text @ ..] = input else { return };
    let limits = Limits { nesting: usize::from(*nesting), members: usize::MAX };
    let accepted = std::str::from_utf8(text).is_ok() && serde_json::from_slice::<IgnoredAny>(text).is_ok();
    let scanned = skip(text, limits);
    if !accepted {
        assert!(scanned.is_err(), "accepted by the scanner only");
        let _ = Cursor::on_prefix(text, limits).skip();
        return;
    }
    if depth(text) > limits.nesting {
        assert_eq!(scanned.map_err(|error| error.fault), Err(ScanFault::Nesting(limits.nesting)));
        return;
    }
    assert_eq!(scanned.map(|span| span.of(text)), Ok(text.trim_ascii()));
    prefixes(text, limits);
    members(text, limits);
});

fn skip(text: &[u8], limits: Limits) -> Result<Span, ScanError> {
    let mut cursor = Cursor::new(text, limits)?;
    let span = cursor.skip()?;
    cursor.end()?;
    Ok(span)
}

/// Nesting of a text that is known to be valid.
fn depth(text: &[u8]) -> usize {
    let (mut open, mut deepest, mut quoted, mut escaped) = (0_usize, 0, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => quoted = !quoted,
            b'{' | b'[' if !quoted => open += 1,
            b'}' | b']' if !quoted => open -= 1,
            _ => {}
        }
        deepest = deepest.max(open);
    }
    deepest
}

/// The beginning of a valid text is never called wrong, only short.
fn prefixes(text: &[u8], limits: Limits) {
    let step = text.len() / 64 + 1;
    for end in (0..text.len()).step_by(step) {
        if let Err(error) = Cursor::on_prefix(&text[..end], limits).skip() {
            assert_eq!(error.fault, ScanFault::Truncated, "cut at {end}");
        }
    }
}

fn members(text: &[u8], limits: Limits) {
    let Ok(Members(expected)) = serde_json::from_slice(text) else { return };
    let object = object(text, limits).expect("an object");
    assert_eq!(object.span.of(text), text.trim_ascii());
    assert_eq!(object.members.len(), expected.len());
    for (member, (key, value)) in object.members.iter().zip(&expected) {
        assert!(member.is(text, key));
        assert_eq!(unescape(member.key.of(text)).as_deref(), Some(key.as_str()));
        assert_eq!(serde_json::from_str::<String>(&quote(key)).ok().as_ref(), Some(key));
        assert_eq!(member.value.of(text), value.get().as_bytes());
        assert!(Kind::of(member.value.of(text)).is_some());
        let first = expected.iter().find(|(name, _)| name == key).map(|(_, value)| value.get().as_bytes());
        assert_eq!(object.first(text, key).map(|span| span.of(text)), first);
        let alone = expected.iter().filter(|(name, _)| name == key).count() == 1;
        assert_eq!(object.get(text, key).is_ok(), alone);
    }
}

fn object(text: &[u8], limits: Limits) -> Result<Object, ScanError> {
    let mut cursor = Cursor::new(text, limits)?;
    let object = cursor.object(|cursor, _| cursor.skip())?;
    cursor.end()?;
    Ok(object)
}

/// An object's members in order, duplicates included, as serde_json sees them. Fails for other values, and for names
/// with half a surrogate pair.
struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}
