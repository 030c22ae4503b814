//! The scanner of pieces against the cursor: the same verdict wherever the text is cut, and the same members.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mcp_janus_fuzz::wire::json::{Cursor, Limits, Mark, ScanFault, Scanner, Span};

type Members = Vec<(usize, Span, Span)>;

fuzz_target!(|input: &[u8]| {
    let [nesting, cuts, text @ ..] = input else { return };
    let limits = Limits { nesting: usize::from(*nesting), members: usize::MAX };
    let expected = by_cursor(text, limits);
    for cuts in [0, 1, *cuts] {
        let scanned = by_scanner(text, limits.nesting, cuts);
        match (&expected, &scanned) {
            // The cursor looks at the whole text's UTF-8 first.
            (Err(ScanFault::Utf8), Err(_)) => {}
            // The cursor was not asked for objects in other values.
            (Ok(None), Ok(_)) => {}
            (Ok(Some(expected)), Ok(scanned)) => assert_eq!(expected, scanned, "cuts {cuts}"),
            (expected, scanned) => {
                assert_eq!(expected.as_ref().err(), scanned.as_ref().err(), "cuts {cuts}");
            }
        }
    }
});

/// The members of an object at depths 1 and 2, in the order of the text; `None` for other values.
fn by_cursor(text: &[u8], limits: Limits) -> Result<Option<Members>, ScanFault> {
    let mut cursor = Cursor::new(text, limits).map_err(|error| error.fault)?;
    let mut members = Vec::new();
    let object = cursor.peek() == Some(b'{');
    let scanned = if object {
        let outer = cursor.object(|cursor, outer| {
            let place = members.len();
            let value = if cursor.peek() == Some(b'{') {
                let inner = cursor.object(|cursor, _| cursor.skip())?;
                members.extend(inner.members.iter().map(|member| (2, member.key, member.value)));
                inner.span
            } else {
                cursor.skip()?
            };
            members.insert(place, (1, outer.key, value));
            Ok(value)
        });
        outer.map(|_| ())
    } else {
        cursor.skip().map(|_| ())
    };
    scanned.and_then(|()| cursor.end()).map_err(|error| error.fault)?;
    Ok(object.then_some(members))
}

/// `cuts`: 0 is one piece, 1 single bytes, everything else a mixture.
fn by_scanner(text: &[u8], nesting: usize, cuts: u8) -> Result<Members, ScanFault> {
    let mut scanner = Scanner::new(nesting, 2);
    let mut members: Members = Vec::new();
    let mut open = [usize::MAX; 3];
    let mut from = 0;
    let mut state = u32::from(cuts);
    while from < text.len() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let size = match cuts {
            0 => text.len(),
            1 => 1,
            _ => (state >> 16) as usize % (usize::from(cuts % 16) + 2),
        };
        let to = text.len().min(from + size);
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
