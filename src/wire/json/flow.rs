//! The grammar of `cursor` for a text that passes in pieces, cut anywhere.
//!
//! Owns saying, piece by piece, whether the text can still become valid JSON, and where members of the outer objects
//! begin and end while they pass. It holds no byte of the text: its state is one bit a level, bounded by the nesting
//! limit, and a character that was cut in two. It accepts what [`Cursor`](super::Cursor) accepts and nothing else.

use super::ScanFault;
use super::cursor::Levels;
use super::marks::Marks;

/// What begins or ends at a place in the text, in an object that is not deeper than the scanner watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// An object's bracket has passed.
    Open,
    /// The opening quote of a member's name has passed.
    KeyStart,
    /// Its closing quote has passed.
    KeyEnd,
    /// The next byte is the first of the member's value.
    Value,
    /// The value has passed.
    ValueEnd,
    /// The object's closing bracket has passed.
    Close,
}

/// A reader of one text.
#[derive(Debug, Clone)]
pub struct Scanner {
    nesting: usize,
    /// Objects that are one of so many open containers are marked.
    watch: usize,
    at: At,
    open: Levels,
    cut: Cut,
}

/// What may come next.
#[derive(Debug, Clone, Copy)]
enum At {
    Value,
    /// After `[`.
    ItemOrEnd,
    /// After `{`.
    KeyOrEnd,
    Key,
    Colon,
    String {
        key: bool,
    },
    Escape {
        key: bool,
    },
    Hex {
        key: bool,
        left: u8,
    },
    Word(&'static [u8]),
    Number(Number),
    AfterValue,
    /// White space only.
    End,
}

/// What of a number has passed.
#[derive(Debug, Clone, Copy)]
enum Number {
    Minus,
    Zero,
    Whole,
    Point,
    Fraction,
    Exponent,
    Sign,
    Power,
}

impl Scanner {
    /// Marks members of objects at depths 1 (the text's own value) to `watch`.
    pub fn new(nesting: usize, watch: usize) -> Self {
        Self { nesting, watch, at: At::Value, open: Levels::default(), cut: Cut::default() }
    }

    /// Reads the next piece. `on` hears of every mark: how many bytes of the piece have passed, the depth of the
    /// object, and the mark. After an error the scanner is of no further use.
    pub fn feed<E: From<ScanFault>>(
        &mut self,
        piece: &[u8],
        on: &mut impl FnMut(usize, usize, Mark) -> Result<(), E>,
    ) -> Result<(), E> {
        self.cut.check(piece)?;
        let mut at = 0;
        while let Some(&byte) = piece.get(at) {
            match self.at {
                At::String { key } => {
                    at += escaped_run(&piece[at..]);
                    match piece.get(at) {
                        None => break,
                        Some(b'"') => {
                            at += 1;
                            self.string_end(key, at, on)?;
                        }
                        Some(b'\\') => {
                            at += 1;
                            self.at = At::Escape { key };
                        }
                        Some(_) => return Err(ScanFault::Syntax.into()),
                    }
                }
                At::Escape { .. } | At::Hex { .. } | At::Word(_) => {
                    at += 1;
                    self.letter(byte, at, on)?;
                }
                At::Number(number) => match number.then(byte)? {
                    Some(next) => {
                        at += 1;
                        self.at = At::Number(next);
                    }
                    // The byte is not the number's and is looked at again.
                    None => self.value_end(at, on)?,
                },
                _ if matches!(byte, b' ' | b'\n' | b'\r' | b'\t') => at += 1,
                At::Value | At::ItemOrEnd => {
                    if byte != b']' || !matches!(self.at, At::ItemOrEnd) {
                        self.mark(at, Mark::Value, on)?;
                    }
                    at += 1;
                    self.value(byte, at, on)?;
                }
                At::KeyOrEnd | At::Key | At::Colon | At::AfterValue | At::End => {
                    at += 1;
                    self.between(byte, at, on)?;
                }
            }
        }
        Ok(())
    }

    /// Says whether the text was complete.
    pub fn finish(&self) -> Result<(), ScanFault> {
        self.cut.finish()?;
        match self.at {
            At::End => Ok(()),
            At::Number(number) if number.is_whole() && self.open.depth == 0 => Ok(()),
            _ => Err(ScanFault::Truncated),
        }
    }

    fn mark<E>(
        &self,
        at: usize,
        mark: Mark,
        on: &mut impl FnMut(usize, usize, Mark) -> Result<(), E>,
    ) -> Result<(), E> {
        let depth = self.open.depth;
        if depth <= self.watch && self.open.top() == Some(true) { on(at, depth, mark) } else { Ok(()) }
    }

    /// The first byte of a value, or the end of an empty array.
    fn value<E: From<ScanFault>>(
        &mut self,
        byte: u8,
        at: usize,
        on: &mut impl FnMut(usize, usize, Mark) -> Result<(), E>,
    ) -> Result<(), E> {
        self.at = match byte {
            b'"' => At::String { key: false },
            b'{' | b'[' => {
                if self.open.depth == self.nesting {
                    return Err(ScanFault::Nesting(self.nesting).into());
                }
                let object = byte == b'{';
                self.open.push(object);
                self.at = if object { At::KeyOrEnd } else { At::ItemOrEnd };
                return self.mark(at, Mark::Open, on);
            }
            b']' if matches!(self.at, At::ItemOrEnd) => {
                self.open.pop();
                return self.value_end(at, on);
            }
            b't' => At::Word(b"rue"),
            b'f' => At::Word(b"alse"),
            b'n' => At::Word(b"ull"),
            b'-' => At::Number(Number::Minus),
            b'0' => At::Number(Number::Zero),
            b'1'..=b'9' => At::Number(Number::Whole),
            _ => return Err(ScanFault::Syntax.into()),
        };
        Ok(())
    }

    /// A byte between names and values that is no white space.
    fn between<E: From<ScanFault>>(
        &mut self,
        byte: u8,
        at: usize,
        on: &mut impl FnMut(usize, usize, Mark) -> Result<(), E>,
    ) -> Result<(), E> {
        match (self.at, byte, self.open.top()) {
            (At::KeyOrEnd | At::Key, b'"', _) => {
                self.at = At::String { key: true };
                self.mark(at, Mark::KeyStart, on)
            }
            (At::Colon, b':', _) => {
                self.at = At::Value;
                Ok(())
            }
            (At::AfterValue, b',', Some(object)) => {
                self.at = if object { At::Key } else { At::Value };
                Ok(())
            }
            (At::AfterValue, b'}', Some(true)) | (At::KeyOrEnd, b'}', _) => {
                self.mark(at, Mark::Close, on)?;
                self.open.pop();
                self.value_end(at, on)
            }
            (At::AfterValue, b']', Some(false)) => {
                self.open.pop();
                self.value_end(at, on)
            }
            _ => Err(ScanFault::Syntax.into()),
        }
    }

    /// A byte of an escape or of a word.
    fn letter<E: From<ScanFault>>(
        &mut self,
        byte: u8,
        at: usize,
        on: &mut impl FnMut(usize, usize, Mark) -> Result<(), E>,
    ) -> Result<(), E> {
        self.at = match (self.at, byte) {
            (At::Escape { key }, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                At::String { key }
            }
            (At::Escape { key }, b'u') => At::Hex { key, left: 4 },
            (At::Hex { key, left }, digit) if digit.is_ascii_hexdigit() => match left {
                1 => At::String { key },
                _ => At::Hex { key, left: left - 1 },
            },
            (At::Word([letter, rest @ ..]), byte) if *letter == byte => {
                if rest.is_empty() {
                    return self.value_end(at, on);
                }
                At::Word(rest)
            }
            _ => return Err(ScanFault::Syntax.into()),
        };
        Ok(())
    }

    fn string_end<E>(
        &mut self,
        key: bool,
        at: usize,
        on: &mut impl FnMut(usize, usize, Mark) -> Result<(), E>,
    ) -> Result<(), E> {
        if !key {
            return self.value_end(at, on);
        }
        self.at = At::Colon;
        self.mark(at, Mark::KeyEnd, on)
    }

    fn value_end<E>(
        &mut self,
        at: usize,
        on: &mut impl FnMut(usize, usize, Mark) -> Result<(), E>,
    ) -> Result<(), E> {
        self.at = if self.open.depth == 0 { At::End } else { At::AfterValue };
        self.mark(at, Mark::ValueEnd, on)
    }
}

/// Length of the run inside a string up to what needs a closer look: whole escapes are part of it.
fn escaped_run(bytes: &[u8]) -> usize {
    let mut marks = Marks::default();
    let mut at = 0;
    loop {
        at = marks.next(bytes, at);
        match bytes.get(at..) {
            Some([b'\\', b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..]) => at += 2,
            Some([b'\\', b'u', digits @ ..])
                if digits
                    .first_chunk::<4>()
                    .is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) =>
            {
                at += 6;
            }
            _ => return at,
        }
    }
}

impl Number {
    /// The number with `byte`; `None` if it ended before.
    fn then(self, byte: u8) -> Result<Option<Self>, ScanFault> {
        Ok(Some(match (self, byte) {
            (Number::Minus, b'0') => Number::Zero,
            (Number::Minus, b'1'..=b'9') | (Number::Whole, b'0'..=b'9') => Number::Whole,
            (Number::Zero | Number::Whole, b'.') => Number::Point,
            (Number::Point | Number::Fraction, b'0'..=b'9') => Number::Fraction,
            (Number::Zero | Number::Whole | Number::Fraction, b'e' | b'E') => Number::Exponent,
            (Number::Exponent, b'+' | b'-') => Number::Sign,
            (Number::Exponent | Number::Sign | Number::Power, b'0'..=b'9') => Number::Power,
            _ if self.is_whole() => return Ok(None),
            _ => return Err(ScanFault::Syntax),
        }))
    }

    /// It may end here.
    fn is_whole(self) -> bool {
        match self {
            Number::Zero | Number::Whole | Number::Fraction | Number::Power => true,
            Number::Minus | Number::Point | Number::Exponent | Number::Sign => false,
        }
    }
}

/// The check for UTF-8: the first bytes of a character whose rest is in the next piece.
#[derive(Debug, Clone, Default)]
struct Cut {
    bytes: [u8; 4],
    len: usize,
}

impl Cut {
    fn check(&mut self, piece: &[u8]) -> Result<(), ScanFault> {
        let mut rest = piece;
        while self.len > 0 {
            let [byte, after @ ..] = rest else { return Ok(()) };
            rest = after;
            self.bytes[self.len] = *byte;
            self.len += 1;
            match std::str::from_utf8(&self.bytes[..self.len]) {
                Ok(_) => self.len = 0,
                // At most three bytes of a character are not yet one.
                Err(fault) if fault.error_len().is_none() => {}
                Err(_) => return Err(ScanFault::Utf8),
            }
        }
        let Err(fault) = simdutf8::compat::from_utf8(rest) else { return Ok(()) };
        if fault.error_len().is_some() {
            return Err(ScanFault::Utf8);
        }
        let begun = &rest[fault.valid_up_to()..];
        self.bytes[..begun.len()].copy_from_slice(begun);
        self.len = begun.len();
        Ok(())
    }

    fn finish(&self) -> Result<(), ScanFault> {
        if self.len == 0 { Ok(()) } else { Err(ScanFault::Utf8) }
    }
}
