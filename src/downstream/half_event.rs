//! Whether a relayed event stream stands in the middle of an event that carries data.
//!
//! Owns just that: what has come since the last blank line, byte by byte, whatever the line ends and the cuts. Used where
//! something of our own must follow, which would complete a half event for its reader.

/// See the module.
#[derive(Debug, Default)]
pub(super) struct HalfEvent {
    /// Bytes of the line so far, as many as matter.
    line: usize,
    /// The line so far is the beginning of the field `data`, or the field itself.
    data_line: bool,
    after_cr: bool,
    /// A `data` line has come since the last blank line.
    holds_data: bool,
}

const FIELD: &[u8] = b"data:";

impl HalfEvent {
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            let after_cr = std::mem::replace(&mut self.after_cr, byte == b'\r');
            match byte {
                b'\n' if after_cr => {}
                b'\n' | b'\r' => {
                    // `data` alone is a field with an empty value; a blank line ends the event.
                    self.holds_data = self.line > 0 && (self.holds_data || self.is_data());
                    self.line = 0;
                }
                _ => {
                    let expected = FIELD.get(self.line).is_none_or(|expected| *expected == byte);
                    self.data_line = expected && (self.line == 0 || self.data_line);
                    self.line = (self.line + 1).min(FIELD.len());
                }
            }
        }
    }

    /// Whether a line end now would not complete an event that is only half there.
    pub(super) fn is_clean(&self) -> bool {
        !self.holds_data && self.line == 0
    }

    fn is_data(&self) -> bool {
        self.data_line && self.line >= FIELD.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_half_event_is_seen_at_every_cut() {
        for (text, clean) in [
            ("", true),
            ("data: a\n\n", true),
            ("data: a\r\n\r\n", true),
            ("data: a\r\r", true),
            ("data: a\n", false),
            ("data: a\r\n", false),
            ("data: a", false),
            ("data\n", false),
            ("data", false),
            (": c\n", true),
            ("event: x\n", true),
            ("id: data:\n", true),
            ("datax: a\n", true),
            ("data: a\n\n: c\n", true),
            ("data: a\n: c\n", false),
            (": c", false),
            ("dat\n", true),
            ("xdata:\n", true),
            ("data:\n\n", true),
        ] {
            for cut in 0..=text.len() {
                let mut state = HalfEvent::default();
                state.feed(&text.as_bytes()[..cut]);
                state.feed(&text.as_bytes()[cut..]);
                assert_eq!(state.is_clean(), clean, "{text:?} cut at {cut}");
            }
        }
    }
}
