//! Where a string needs attention: its quote, a backslash, a control character.
//!
//! Owns finding them, 64 bytes at a time as one bit each, so that text between them costs next to nothing and a block is
//! looked at once, however many marks it holds. Does not own what a mark means (`cursor`, `flow`).

use wide::u8x16;

/// Bytes that one word of bits stands for.
const BLOCK: usize = 64;

/// The marks of the block looked at last.
#[derive(Debug, Clone)]
pub(super) struct Marks {
    /// Where the block begins; no block begins at the initial value.
    block: usize,
    bits: u64,
}

impl Default for Marks {
    fn default() -> Self {
        Self { block: usize::MAX, bits: 0 }
    }
}

impl Marks {
    /// The first mark at `at` or after it; the length of the text if there is none. `text` must be the same each time.
    #[inline]
    pub(super) fn next(&mut self, text: &[u8], mut at: usize) -> usize {
        while at < text.len() {
            let block = at - at % BLOCK;
            if self.block != block {
                self.bits = bits(&text[block..]);
                self.block = block;
            }
            let rest = self.bits >> (at - block);
            if rest != 0 {
                return at + rest.trailing_zeros() as usize;
            }
            at = block + BLOCK;
        }
        text.len()
    }
}

/// One bit for each of the first 64 bytes.
#[inline]
fn bits(text: &[u8]) -> u64 {
    match text.first_chunk() {
        Some(block) => of_block(block),
        None => {
            let mut block = [b' '; BLOCK];
            block[..text.len()].copy_from_slice(text);
            of_block(&block)
        }
    }
}

#[inline]
fn of_block(block: &[u8; BLOCK]) -> u64 {
    let (quote, backslash) = (u8x16::new([b'"'; 16]), u8x16::new([b'\\'; 16]));
    let control = u8x16::new([0x1f; 16]);
    let (quarters, _) = block.as_chunks::<16>();
    quarters.iter().rev().fold(0, |bits, quarter| {
        let bytes = u8x16::new(*quarter);
        let marks = bytes.cmp_eq(quote) | bytes.cmp_eq(backslash) | bytes.min(control).cmp_eq(bytes);
        bits << 16 | u64::from(marks.move_mask() as u32 & 0xffff)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_at_every_place_is_a_mark_or_none() {
        for length in [1, 15, 16, 17, 63, 64, 65, 130] {
            for place in 0..length {
                for byte in 0..=255u8 {
                    let mut text = vec![b'x'; length];
                    text[place] = byte;
                    let marked = byte < 0x20 || byte == b'"' || byte == b'\\';
                    let expected = if marked { place } else { length };
                    assert_eq!(Marks::default().next(&text, 0), expected, "{byte:#x} at {place} of {length}");
                }
            }
        }
    }

    #[test]
    fn all_marks_are_found_in_turn() {
        let text: Vec<u8> = (0..1000usize).map(|n| if n * n % 7 == 2 { b'"' } else { b'a' }).collect();
        let mut marks = Marks::default();
        let mut at = 0;
        let mut found = Vec::new();
        while at < text.len() {
            at = marks.next(&text, at);
            if at < text.len() {
                found.push(at);
            }
            at += 1;
        }
        let expected: Vec<usize> = (0..1000).filter(|n| text[*n] == b'"').collect();
        assert_eq!(found, expected);
    }
}
