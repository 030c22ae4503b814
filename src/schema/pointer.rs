//! JSON pointers (RFC 6901) to what is found.

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
