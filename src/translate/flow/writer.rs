//! The writer of a message that passes.
//!
//! Owns following the marks of the scanner through the message and its result, holding back what is not yet decided, and what
//! may stand there once. What becomes of each member is the side's to say (`up`, `down`).

use super::out::Out;
use super::{Fate, Held, Plan, RESULT, Stop, Structured, TOP};
use crate::wire::json::{Mark, ScanFault, Span, unescape};
use crate::wire::jsonrpc::{is_number, string};
use bytes::{Bytes, BytesMut};
use std::ops::Range;

/// What happens to the bytes that pass now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Pass,
    Drop,
    /// Between members: a comma, white space and a name, until it is known what becomes of the member.
    Lead,
    /// The value of a member that is looked at as a whole.
    Hold,
}

/// An object whose members are told apart.
#[derive(Debug, Default)]
struct Level {
    members: usize,
    kept: usize,
    dropped: bool,
}

/// Names that may stand once, as far as they have been seen.
#[derive(Debug, Default)]
struct Seen {
    jsonrpc: bool,
    id: bool,
    params: bool,
    error: bool,
    result: bool,
    meta: bool,
    result_type: bool,
    structured: bool,
    main: bool,
}

#[derive(Debug)]
pub(super) struct Writer {
    plan: Plan,
    /// `None` in a probe.
    pub(super) out: Option<Out>,
    mode: Mode,
    lead: BytesMut,
    /// Where in `lead` the name begins, without its quote.
    name: usize,
    hold: BytesMut,
    held: Option<Held>,
    levels: [Level; 2],
    seen: Seen,
    /// The value under way is that of `result`, or of the main member.
    in_result: bool,
    in_main: bool,
    /// Whether there is anything in the main list is still to be seen; and whether its bracket has been.
    peeks: bool,
    bracket: bool,
    /// The value under way is that of `isError`; and whether it was `true`.
    in_error: bool,
    pub(super) error: bool,
    /// The value under way is a structured result, of which what it begins with decides; and whether it is being wrapped.
    in_structured: bool,
    wraps: bool,
    /// The server's `_meta` is written.
    has_meta: bool,
    /// Everything that decides what the message is has passed.
    pub(super) underway: bool,
}

impl Writer {
    pub(super) fn new(plan: Plan, out: Option<Out>) -> Self {
        Self {
            plan,
            out,
            mode: Mode::Pass,
            lead: BytesMut::new(),
            name: 0,
            hold: BytesMut::new(),
            held: None,
            levels: Default::default(),
            seen: Seen::default(),
            in_result: false,
            in_main: false,
            peeks: false,
            bracket: false,
            in_error: false,
            error: false,
            in_structured: false,
            wraps: false,
            has_meta: false,
            underway: false,
        }
    }

    pub(super) fn pass(&mut self, piece: &Bytes, range: Range<usize>) -> Result<(), Stop> {
        let bytes = piece.get(range.clone()).unwrap_or_default();
        let kept = match self.mode {
            Mode::Pass => {
                if self.peeks {
                    self.peek(bytes)?;
                }
                if let Some(out) = &mut self.out {
                    out.slice(piece, range);
                }
                return Ok(());
            }
            Mode::Drop => return Ok(()),
            Mode::Lead => &mut self.lead,
            Mode::Hold => &mut self.hold,
        };
        if kept.len() + bytes.len() > self.plan.most {
            return Err(Stop::TooLarge);
        }
        kept.extend_from_slice(bytes);
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) {
        if let Some(out) = &mut self.out {
            out.copy(bytes);
        }
    }

    /// `next` is the byte after the mark, if it has come.
    pub(super) fn mark(&mut self, depth: usize, mark: Mark, next: Option<u8>) -> Result<(), Stop> {
        if depth == RESULT && !self.in_result {
            return Ok(());
        }
        match mark {
            Mark::Open => {
                if depth == RESULT {
                    self.write(self.plan.side.stamp(self.plan.method).as_bytes());
                }
                self.mode = Mode::Lead;
            }
            Mark::KeyStart => self.name = self.lead.len(),
            Mark::KeyEnd => self.key(depth)?,
            Mark::Value => self.value(depth, next)?,
            Mark::ValueEnd => {
                if let Some(held) = self.held.take() {
                    self.settle(held, depth)?;
                }
                if std::mem::take(&mut self.wraps) {
                    self.write(b"}");
                }
                if depth == TOP {
                    self.in_result = false;
                }
                (self.in_main, self.in_structured) = (false, false);
                self.mode = Mode::Lead;
                self.lead.clear();
            }
            Mark::Close if depth == RESULT => {
                let tail = self.plan.side.tail(self.has_meta);
                if !tail.is_empty() {
                    self.comma(depth);
                    self.write(tail.as_bytes());
                }
                self.lead_out();
            }
            // Held back until the message has ended well: whose result it is may have come last.
            Mark::Close if self.seen.jsonrpc && self.seen.id => {}
            Mark::Close => return Err(Stop::NotTheResult),
        }
        Ok(())
    }

    /// A member's name has passed.
    fn key(&mut self, depth: usize) -> Result<(), Stop> {
        let level = &mut self.levels[depth - 1];
        if level.members == self.plan.limits.members {
            return Err(Stop::Members);
        }
        level.members += 1;
        // Both quotes have passed, so the name lies between.
        let name = unescape(&self.lead[self.name..self.lead.len() - 1]);
        let name = name.as_deref();
        let opens_result = depth == TOP && name == Some("result");
        let is_main = depth == RESULT && self.plan.main().is_none_or(|(main, _)| name == Some(main));
        self.in_error = depth == RESULT && name == Some("isError");
        let fate = if depth == TOP { top(&mut self.seen, name)? } else { self.plan.side.fate(name) };
        once(&mut self.seen, fate)?;
        match fate {
            Fate::Keep => {
                self.in_result |= opens_result;
                self.in_main = is_main;
                self.member_out(depth);
                self.mode = Mode::Pass;
            }
            Fate::Drop => {
                self.levels[depth - 1].dropped = true;
                self.mode = Mode::Drop;
            }
            // What stands before the value waits with it.
            Fate::Hold(held) => self.held = Some(held),
            Fate::Structured => self.in_structured = true,
        }
        Ok(())
    }

    /// A member's value is about to pass.
    fn value(&mut self, depth: usize, first: Option<u8>) -> Result<(), Stop> {
        if self.in_error {
            self.error = first == Some(b't');
        }
        if self.held.is_some() {
            self.mode = Mode::Hold;
            self.hold.clear();
        } else if self.in_structured {
            self.structured(depth, first);
        } else if depth == TOP && self.in_result && first != Some(b'{') {
            return Err(Stop::NotTheResult);
        } else if self.in_main {
            if let Some((_, list)) = self.plan.main()
                && list
                && (first != Some(b'[') || self.seen.main)
            {
                // A second one would let two readers see two lists.
                return Err(Stop::NotTheResult);
            }
            self.seen.main = true;
            self.peeks = self.plan.side.needs_content(self.plan.method);
            self.underway = !self.peeks;
        }
        Ok(())
    }

    /// A list with nothing in it may yet get something (B6.4), so such a result is held.
    fn peek(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        for &byte in bytes {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' => {}
                b'[' if !self.bracket => self.bracket = true,
                b']' => return Err(Stop::NotTheResult),
                _ => {
                    (self.peeks, self.underway) = (false, true);
                    break;
                }
            }
        }
        Ok(())
    }

    fn structured(&mut self, depth: usize, first: Option<u8>) {
        match self.plan.side.structured(first) {
            Structured::Drop => {
                self.levels[depth - 1].dropped = true;
                self.mode = Mode::Drop;
                return;
            }
            Structured::Wrap => self.wraps = true,
            Structured::Keep => {}
        }
        self.member_out(depth);
        if self.wraps {
            self.write(b"{\"result\":");
        }
        self.mode = Mode::Pass;
    }

    /// A member that was held has ended.
    fn settle(&mut self, held: Held, depth: usize) -> Result<(), Stop> {
        let value = self.hold.split().freeze();
        match held {
            Held::Jsonrpc if value == br#""2.0""#[..] => {
                self.member_out(depth);
                self.write(&value);
            }
            Held::Id if is_number(&value, self.plan.number) => {
                self.member_out(depth);
                let id = self.plan.id.raw().clone();
                self.write(&id);
            }
            // What some serialisers write for "none".
            Held::Error | Held::Meta if value == b"null"[..] => self.levels[depth - 1].dropped = true,
            Held::Jsonrpc | Held::Id | Held::Error => return Err(Stop::NotTheResult),
            Held::ResultType => {
                let whole = Span::new(0, value.len());
                if string(&value, whole).is_none_or(|kind| kind != "complete") {
                    return Err(Stop::NotTheResult);
                }
                self.levels[depth - 1].dropped = true;
            }
            Held::Meta => {
                let meta = self.plan.side.meta(&value, self.plan.limits).map_err(|fault| match fault {
                    ScanFault::Members(_) => Stop::Members,
                    ScanFault::Syntax
                    | ScanFault::Truncated
                    | ScanFault::Utf8
                    | ScanFault::Nesting(_)
                    | ScanFault::Length => Stop::NotTheResult,
                })?;
                let Some(meta) = meta else {
                    self.levels[depth - 1].dropped = true;
                    return Ok(());
                };
                self.member_out(depth);
                meta.parts().iter().for_each(|part| self.write(part));
                self.has_meta = true;
            }
        }
        Ok(())
    }

    /// What stands before a member that stays. The first one loses the comma after those that were taken out.
    fn member_out(&mut self, depth: usize) {
        let level = &mut self.levels[depth - 1];
        let first = level.kept == 0;
        level.kept += 1;
        if first && level.dropped {
            let _ = self.lead.split_to(self.name - 1);
        }
        if first {
            self.comma(depth);
        }
        self.lead_out();
    }

    /// What the result begins with are members too.
    fn comma(&mut self, depth: usize) {
        if depth == RESULT && !self.plan.side.stamp(self.plan.method).is_empty() {
            self.write(b",");
        }
    }

    pub(super) fn lead_out(&mut self) {
        if let Some(out) = &mut self.out {
            out.copy(&self.lead);
        }
        self.lead.clear();
    }
}

/// A member of the message itself. Each that is known may stand once.
fn top(seen: &mut Seen, name: Option<&str>) -> Result<Fate, Stop> {
    let (slot, fate) = match name {
        Some("jsonrpc") => (&mut seen.jsonrpc, Fate::Hold(Held::Jsonrpc)),
        Some("id") => (&mut seen.id, Fate::Hold(Held::Id)),
        Some("error") => (&mut seen.error, Fate::Hold(Held::Error)),
        Some("params") => (&mut seen.params, Fate::Keep),
        Some("result") => (&mut seen.result, Fate::Keep),
        Some("method") => return Err(Stop::NotTheResult),
        Some(_) | None => return Ok(Fate::Keep),
    };
    if std::mem::replace(slot, true) { Err(Stop::NotTheResult) } else { Ok(fate) }
}

/// Of the members of `result`, those that decide something may stand once.
fn once(seen: &mut Seen, fate: Fate) -> Result<(), Stop> {
    let slot = match fate {
        Fate::Hold(Held::Meta) => &mut seen.meta,
        Fate::Hold(Held::ResultType) => &mut seen.result_type,
        Fate::Structured => &mut seen.structured,
        Fate::Hold(Held::Jsonrpc | Held::Id | Held::Error) | Fate::Keep | Fate::Drop => return Ok(()),
    };
    if std::mem::replace(slot, true) { Err(Stop::NotTheResult) } else { Ok(()) }
}
