//! A strict, single-pass reader of JSON text that yields spans.
//!
//! Owns the grammar of RFC 8259 and the bounds on nesting and on recorded members. It keeps one bit a level in
//! place of recursion, so no input can exhaust the stack. It does not decide what a duplicate name means.

use super::Span;
use super::marks::Marks;
use super::object::{Member, Object};
use smallvec::SmallVec;

/// Bounds of one scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Objects and arrays open at once.
    pub nesting: usize,
    /// Members in one recorded object. Objects that are only passed over are not counted.
    pub members: usize,
}

/// Why a text was not accepted, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{fault} at byte {at}")]
pub struct ScanError {
    pub fault: ScanFault,
    /// Offset in bytes from the start of the text.
    pub at: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ScanFault {
    #[error("not valid JSON")]
    Syntax,
    #[error("the JSON text ends early")]
    Truncated,
    #[error("not valid UTF-8")]
    Utf8,
    #[error("nested deeper than {0} levels")]
    Nesting(usize),
    #[error("an object has more than {0} members")]
    Members(usize),
    #[error("the text is longer than 4 GiB")]
    Length,
}

/// A position in a text.
#[derive(Debug)]
pub struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
    limits: Limits,
    /// Containers entered by `object` that are still open.
    entered: usize,
    marks: Marks,
}

impl<'a> Cursor<'a> {
    /// Checks the text's length and UTF-8 once; the scan itself then works on bytes.
    pub fn new(text: &'a [u8], limits: Limits) -> Result<Self, ScanError> {
        if text.len() >= u32::MAX as usize {
            return Err(ScanError { fault: ScanFault::Length, at: 0 });
        }
        if let Err(fault) = simdutf8::compat::from_utf8(text) {
            return Err(ScanError { fault: ScanFault::Utf8, at: fault.valid_up_to() });
        }
        Ok(Self { text, at: 0, limits, entered: 0, marks: Marks::default() })
    }

    /// A cursor that need not see the end of its text, for finding the id in a body that was cut off.
    pub fn on_prefix(text: &'a [u8], limits: Limits) -> Self {
        Self { text, at: 0, limits, entered: 0, marks: Marks::default() }
    }

    pub fn text(&self) -> &'a [u8] {
        self.text
    }

    /// The first byte of the next value, white space skipped.
    pub fn peek(&mut self) -> Option<u8> {
        self.space();
        self.text.get(self.at).copied()
    }

    /// Only white space may be left.
    pub fn end(&mut self) -> Result<(), ScanError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.fault(ScanFault::Syntax)),
        }
    }

    /// Reads an object and records its members. `on_value` reads each value (by `skip`, `object` or `array`) and
    /// returns its span.
    pub fn object<F>(&mut self, mut on_value: F) -> Result<Object, ScanError>
    where
        F: FnMut(&mut Self, &Member) -> Result<Span, ScanError>,
    {
        self.enter(b'{')?;
        let start = self.at - 1;
        let mut members = SmallVec::new();
        if self.peek() == Some(b'}') {
            self.at += 1;
        } else {
            loop {
                if members.len() == self.limits.members {
                    return Err(self.fault(ScanFault::Members(self.limits.members)));
                }
                let mut member = self.key()?;
                member.value = on_value(self, &member)?;
                members.push(member);
                match self.next_byte()? {
                    b',' => continue,
                    b'}' => break,
                    _ => return Err(self.fault_before()),
                }
            }
        }
        self.entered -= 1;
        Ok(Object { span: Span::new(start, self.at), members })
    }

    /// Reads an array; `on_item` reads each item.
    pub fn array<F>(&mut self, mut on_item: F) -> Result<Span, ScanError>
    where
        F: FnMut(&mut Self) -> Result<(), ScanError>,
    {
        self.enter(b'[')?;
        let start = self.at - 1;
        if self.peek() == Some(b']') {
            self.at += 1;
        } else {
            loop {
                on_item(self)?;
                match self.next_byte()? {
                    b',' => continue,
                    b']' => break,
                    _ => return Err(self.fault_before()),
                }
            }
        }
        self.entered -= 1;
        Ok(Span::new(start, self.at))
    }

    /// Passes over one value of any kind.
    pub fn skip(&mut self) -> Result<Span, ScanError> {
        self.space();
        let start = self.at;
        let mut open = Levels::default();
        'value: loop {
            match self.next_byte()? {
                b'"' => drop(self.string_rest()?),
                b'{' => {
                    self.push(&mut open, true)?;
                    if self.peek() == Some(b'}') {
                        self.at += 1;
                        open.pop();
                    } else {
                        self.key()?;
                        continue 'value;
                    }
                }
                b'[' => {
                    self.push(&mut open, false)?;
                    if self.peek() == Some(b']') {
                        self.at += 1;
                        open.pop();
                    } else {
                        continue 'value;
                    }
                }
                b't' => self.word(b"rue")?,
                b'f' => self.word(b"alse")?,
                b'n' => self.word(b"ull")?,
                b'-' | b'0'..=b'9' => self.number_rest()?,
                _ => return Err(self.fault_before()),
            }
            while let Some(in_object) = open.top() {
                match (self.next_byte()?, in_object) {
                    (b',', true) => {
                        self.key()?;
                        continue 'value;
                    }
                    (b',', false) => continue 'value,
                    (b'}', true) | (b']', false) => open.pop(),
                    _ => return Err(self.fault_before()),
                }
            }
            return Ok(Span::new(start, self.at));
        }
    }

    fn enter(&mut self, bracket: u8) -> Result<(), ScanError> {
        if self.next_byte()? != bracket {
            return Err(self.fault_before());
        }
        if self.entered == self.limits.nesting {
            return Err(self.fault(ScanFault::Nesting(self.limits.nesting)));
        }
        self.entered += 1;
        Ok(())
    }

    fn push(&self, open: &mut Levels, object: bool) -> Result<(), ScanError> {
        if self.entered + open.depth == self.limits.nesting {
            return Err(self.fault(ScanFault::Nesting(self.limits.nesting)));
        }
        open.push(object);
        Ok(())
    }

    /// A name and its colon; the value is still to be read.
    fn key(&mut self) -> Result<Member, ScanError> {
        if self.next_byte()? != b'"' {
            return Err(self.fault_before());
        }
        let start = self.at;
        let escaped = self.string_rest()?;
        let key = Span::new(start, self.at - 1);
        if self.next_byte()? != b':' {
            return Err(self.fault_before());
        }
        Ok(Member { key, escaped, value: Span::default() })
    }

    /// The rest of a string whose opening quote has been read, closing quote included. Says whether it has escapes.
    fn string_rest(&mut self) -> Result<bool, ScanError> {
        let mut escaped = false;
        loop {
            self.at = self.marks.next(self.text, self.at);
            match self.text.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(escaped);
                }
                Some(b'\\') => {
                    self.escape()?;
                    escaped = true;
                }
                Some(_) => return Err(self.fault(ScanFault::Syntax)),
                None => return Err(self.fault(ScanFault::Truncated)),
            }
        }
    }

    fn escape(&mut self) -> Result<(), ScanError> {
        match self.text.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') => {
                for offset in 2..6 {
                    match self.text.get(self.at + offset) {
                        Some(digit) if digit.is_ascii_hexdigit() => {}
                        Some(_) => return Err(self.fault(ScanFault::Syntax)),
                        None => return Err(self.fault(ScanFault::Truncated)),
                    }
                }
                self.at += 6;
            }
            Some(_) => return Err(self.fault(ScanFault::Syntax)),
            None => return Err(self.fault(ScanFault::Truncated)),
        }
        Ok(())
    }

    /// The rest of a number whose first byte has been read.
    fn number_rest(&mut self) -> Result<(), ScanError> {
        self.at -= 1;
        if self.text[self.at] == b'-' {
            self.at += 1;
        }
        match self.text.get(self.at) {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits()?,
            Some(_) => return Err(self.fault(ScanFault::Syntax)),
            None => return Err(self.fault(ScanFault::Truncated)),
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.text.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = self.text.get(self.at) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), ScanError> {
        let run = self.text[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += run;
        match (run, self.text.get(self.at)) {
            (0, Some(_)) => Err(self.fault(ScanFault::Syntax)),
            (0, None) => Err(self.fault(ScanFault::Truncated)),
            _ => Ok(()),
        }
    }

    fn word(&mut self, rest: &[u8]) -> Result<(), ScanError> {
        let left = &self.text[self.at..];
        if left.starts_with(rest) {
            self.at += rest.len();
            return Ok(());
        }
        let fault = if rest.starts_with(left) { ScanFault::Truncated } else { ScanFault::Syntax };
        Err(self.fault(fault))
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.text.get(self.at) {
            self.at += 1;
        }
    }

    /// Skips white space and takes one byte.
    fn next_byte(&mut self) -> Result<u8, ScanError> {
        self.space();
        let byte = self.text.get(self.at).copied().ok_or_else(|| self.fault(ScanFault::Truncated))?;
        self.at += 1;
        Ok(byte)
    }

    fn fault(&self, fault: ScanFault) -> ScanError {
        ScanError { fault, at: self.at }
    }

    /// A syntax fault at the byte that was taken last.
    fn fault_before(&self) -> ScanError {
        ScanError { fault: ScanFault::Syntax, at: self.at - 1 }
    }
}

/// Which of the open containers are objects: one bit a level.
#[derive(Debug, Clone, Default)]
pub(super) struct Levels {
    words: SmallVec<[u64; 2]>,
    pub(super) depth: usize,
}

impl Levels {
    pub(super) fn push(&mut self, object: bool) {
        let (word, bit) = (self.depth / 64, self.depth % 64);
        if word == self.words.len() {
            self.words.push(0);
        }
        if object {
            self.words[word] |= 1 << bit;
        } else {
            self.words[word] &= !(1 << bit);
        }
        self.depth += 1;
    }

    pub(super) fn pop(&mut self) {
        self.depth -= 1;
    }

    pub(super) fn top(&self) -> Option<bool> {
        let level = self.depth.checked_sub(1)?;
        Some(self.words[level / 64] >> (level % 64) & 1 == 1)
    }
}
