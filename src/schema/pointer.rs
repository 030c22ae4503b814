//! JSON pointers (RFC 6901) to what is found.

use crate::wire::json::{Span, unescape};
use memchr::memchr2;

/// Bytes of a pointer that are worth telling.
const LONG: usize = 1024;

/// Appends one step to `pointer`, escaped. What is long already is cut short.
pub(crate) fn step(pointer: &mut String, name: &str) {
    if pointer.len() > LONG {
        return;
    }
    pointer.push('/');
    for char in name.chars() {
        match char {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            char => pointer.push(char),
        }
        if pointer.len() > LONG {
            return pointer.push('…');
        }
    }
}

/// The pointer from the value at `root` to what begins at `target` in it. The text was scanned before.
pub(crate) fn to(text: &[u8], root: Span, target: u32) -> String {
    let mut pointer = String::new();
    for open in opened(text, root, target) {
        match open {
            Open::Array(index) => step(&mut pointer, &index.to_string()),
            Open::Object(name) => step(&mut pointer, &unescape(name.of(text)).unwrap_or_default()),
        }
        if pointer.len() > LONG {
            break;
        }
    }
    pointer
}

/// An array or an object that is open at some place.
enum Open {
    /// How many items of it have passed.
    Array(usize),
    /// The name of its member there, between the quotes.
    Object(Span),
}

fn opened(text: &[u8], root: Span, target: u32) -> Vec<Open> {
    let mut open = Vec::new();
    let mut string = Span::default();
    let (mut at, target) = (root.start as usize, target as usize);
    while at < target {
        match text.get(at) {
            Some(b'"') => {
                let end = string_end(text, at + 1);
                string = Span::new(at + 1, end);
                at = end;
            }
            Some(b'{') => open.push(Open::Object(Span::default())),
            Some(b'[') => open.push(Open::Array(0)),
            Some(b'}' | b']') => drop(open.pop()),
            Some(b':') => {
                if let Some(Open::Object(name)) = open.last_mut() {
                    *name = string;
                }
            }
            Some(b',') => {
                if let Some(Open::Array(index)) = open.last_mut() {
                    *index += 1;
                }
            }
            Some(_) => {}
            None => break,
        }
        at += 1;
    }
    open
}

/// The closing quote of a string, looked for from `at` within it; the end of the text if there is none.
pub(crate) fn string_end(text: &[u8], mut at: usize) -> usize {
    while let Some(next) = text.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += next;
        if text[at] == b'"' {
            return at;
        }
        at += 2;
    }
    text.len()
}

/// The pointer `inner` seen from outside, where `outer` leads to what it counts from.
pub(crate) fn within(outer: &str, inner: &str) -> Box<str> {
    let mut whole = format!("{outer}{inner}");
    if whole.len() > LONG {
        let end = (0..=LONG).rev().find(|end| whole.is_char_boundary(*end)).unwrap_or_default();
        whole.truncate(end);
        whole.push('…');
    }
    whole.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_to_a_place() {
        let text = r#" {"a\"]":[1,[{}],{"b/":true,"\u0063":{"d":[ @]}},"#;
        let target = text.find('@').unwrap() as u32;
        assert_eq!(to(text.as_bytes(), Span::new(1, text.len()), target), "/a\"]/2/c/d/0");
        assert_eq!(to(b"{}", Span::new(0, 2), 0), "");
        // In one pass, however deep.
        let deep = format!("{}5", r#"{"a":["#.repeat(500_000));
        let pointer = to(deep.as_bytes(), Span::new(0, deep.len()), deep.len() as u32 - 1);
        assert!(pointer.starts_with("/a/0/a/0") && pointer.len() < LONG + 8, "{}", pointer.len());
    }

    #[test]
    fn steps_are_escaped_and_bounded() {
        let mut pointer = String::new();
        for name in ["$defs", "a/b", "m~n", "", "é"] {
            step(&mut pointer, name);
        }
        assert_eq!(pointer, "/$defs/a~1b/m~0n//é");
        for _ in 0..1000 {
            step(&mut pointer, "ééé");
        }
        assert!((LONG..LONG + 8).contains(&pointer.len()), "{}", pointer.len());
        assert_eq!(&*within("/inputSchema", "/a"), "/inputSchema/a");
        assert!(within("/inputSchema", &"é".repeat(LONG)).len() < LONG + 8);
    }
}
