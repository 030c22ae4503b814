//! Looking into a text that a bounded scan has passed over already: one object, one member, the items of one array.

use super::{Cursor, Limits, Object, Span};

/// For texts that a bounded scan has passed over, and for texts of our own.
pub const UNBOUNDED: Limits = Limits { nesting: usize::MAX, members: usize::MAX };

/// The member's value; a member that occurs twice has none, since two readers could take either.
pub fn once(object: &Object, text: &[u8], name: &str) -> Option<Span> {
    object.get(text, name).ok().flatten()
}

/// Takes the object at `span` apart; `None` if it is no object or breaks a bound.
pub fn object(text: &[u8], span: Span, limits: Limits) -> Option<Object> {
    // Spans of a part are turned into spans of the whole, so that callers keep one text.
    let part = span.of(text);
    let mut cursor = Cursor::on_prefix(part, limits);
    let mut object = cursor.object(|cursor, _| cursor.skip()).ok()?;
    object.shift(span.start);
    Some(object)
}

/// The items of the array at `span`; none if it is no array.
pub fn items(text: &[u8], span: Span) -> Vec<Span> {
    let mut found = Vec::new();
    let mut cursor = Cursor::on_prefix(span.of(text), UNBOUNDED);
    let read = cursor.array(|cursor| {
        let item = cursor.skip()?;
        found.push(Span { start: item.start + span.start, end: item.end + span.start });
        Ok(())
    });
    if read.is_ok() { found } else { Vec::new() }
}
