//! A legacy server's large result as a modern client is to see it, piece by piece while it passes.
//!
//! Owns the same translation as `result`, for the methods in whose results nothing inside the main member changes
//! (`tools/call`, `resources/read`, `prompts/get`, methods of one's own), and the test of whether a message may pass so:
//! it is a result, and its main member has begun. Many servers write `result` first, so `jsonrpc` and our `id` may also
//! come after it; without them the message is not good. Of the text it holds one name or one rewritten member (`_meta`)
//! at a time, bounded. What is against the rules after the beginning has gone out ends the flow with an error; the end of
//! the message is held back until all of it was good.
//! Rules: A4.10, A4.11, A4.13, A5.14, B12; architecture section 4, "Raw JSON".

use super::result::{self, OVERWRITTEN};
use crate::wire::json::{Cursor, Limits, Mark, ScanFault, Scanner, Splice, unescape};
use crate::wire::jsonrpc::{Id, is_number};
use crate::wire::method::Method;
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;
use std::ops::Range;

/// Below this a piece is copied, so that a few bytes do not keep the buffer alive that they came in.
const COPY_BELOW: usize = 4 * 1024;

/// Members of the message itself are marked, and those of `result`.
const TOP: usize = 1;
const RESULT: usize = 2;

/// What a result must be, and become, to pass while it comes.
#[derive(Debug, Clone)]
pub struct Plan {
    method: Method,
    /// The id that the request was sent under.
    number: u64,
    /// The caller's.
    id: Id,
    server_info: Bytes,
    limits: Limits,
    /// Bytes of one name, or of one member that is rewritten.
    most: usize,
}

impl Plan {
    /// `None` for methods whose results are looked into, which are held whole.
    pub fn new(
        method: Method,
        number: u64,
        id: Id,
        server_info: Bytes,
        limits: Limits,
        most: usize,
    ) -> Option<Self> {
        match method {
            Method::ToolsCall | Method::ResourcesRead | Method::PromptsGet | Method::Custom => {
                Some(Self { method, number, id, server_info, limits, most })
            }
            Method::ToolsList
            | Method::PromptsList
            | Method::ResourcesList
            | Method::ResourcesTemplatesList
            | Method::Complete
            | Method::Discover
            | Method::Listen
            | Method::Task
            | Method::LegacyOnly(_)
            | Method::ServerToClient => None,
        }
    }

    /// The member that the result is all about, and whether it must be a list.
    fn main(&self) -> Option<(&'static str, bool)> {
        match self.method {
            Method::ToolsCall => Some(("content", false)),
            Method::ResourcesRead => Some(("contents", true)),
            Method::PromptsGet => Some(("messages", true)),
            _ => None,
        }
    }
}

/// Why a message does not pass, or not to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Stop {
    #[error(transparent)]
    Scan(#[from] ScanFault),
    #[error("an object has too many members")]
    Members,
    #[error("a name, or a member that is rewritten, is too long")]
    TooLarge,
    #[error("it is not the result that is waited for, or holds what may stand there once a second time")]
    NotTheResult,
}

/// One message on its way.
#[derive(Debug)]
pub struct Flow {
    scanner: Scanner,
    writer: Writer,
}

impl Flow {
    /// Takes a message from its first byte on.
    pub fn new(plan: Plan) -> Self {
        Self::with(plan, Some(Out::default()))
    }

    /// Looks at a message from its first byte on and writes nothing.
    pub fn probe(plan: Plan) -> Self {
        Self::with(plan, None)
    }

    fn with(plan: Plan, out: Option<Out>) -> Self {
        Self { scanner: Scanner::new(plan.limits.nesting, RESULT), writer: Writer::new(plan, out) }
    }

    pub fn feed(&mut self, piece: &Bytes) -> Result<(), Stop> {
        let Self { scanner, writer } = self;
        let mut from = 0;
        scanner.feed(piece, &mut |at, depth, mark| {
            writer.pass(piece, from..at)?;
            from = at;
            writer.mark(depth, mark, piece.get(at).copied())
        })?;
        writer.pass(piece, from..piece.len())
    }

    /// Everything that decides what the message is has passed.
    pub fn is_underway(&self) -> bool {
        self.writer.underway
    }

    /// Whether the result has `isError: true`, as far as it has passed.
    pub fn says_error(&self) -> bool {
        self.writer.error
    }

    /// More is there to go out than a few bytes.
    pub fn is_worthwhile(&self) -> bool {
        self.writer.out.as_ref().is_some_and(|out| !out.pieces.is_empty() || out.tail.len() >= COPY_BELOW)
    }

    /// What can go out.
    pub fn take(&mut self) -> Option<Bytes> {
        self.writer.out.as_mut()?.next()
    }

    /// The message has ended; lets go of what was held back.
    pub fn finish(&mut self) -> Result<(), Stop> {
        self.scanner.finish()?;
        self.writer.lead_out();
        Ok(())
    }
}

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

/// A member that is looked at as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    Jsonrpc,
    Id,
    Error,
    Meta,
}

/// What becomes of a member.
enum Fate {
    Keep,
    Drop,
    Hold(Held),
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
    main: bool,
}

#[derive(Debug)]
struct Writer {
    plan: Plan,
    /// `None` in a probe.
    out: Option<Out>,
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
    /// The value under way is that of `isError`; and whether it was `true`.
    in_error: bool,
    error: bool,
    /// Our `_meta`, or the server's with ours in it, is written.
    has_meta: bool,
    underway: bool,
}

impl Writer {
    fn new(plan: Plan, out: Option<Out>) -> Self {
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
            in_error: false,
            error: false,
            has_meta: false,
            underway: false,
        }
    }

    fn pass(&mut self, piece: &Bytes, range: Range<usize>) -> Result<(), Stop> {
        let bytes = piece.get(range.clone()).unwrap_or_default();
        let kept = match self.mode {
            Mode::Pass => {
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
    fn mark(&mut self, depth: usize, mark: Mark, next: Option<u8>) -> Result<(), Stop> {
        if depth == RESULT && !self.in_result {
            return Ok(());
        }
        match mark {
            Mark::Open => {
                if depth == RESULT {
                    self.write(result::stamp(self.plan.method).as_bytes());
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
                if depth == TOP {
                    self.in_result = false;
                }
                self.in_main = false;
                self.mode = Mode::Lead;
                self.lead.clear();
            }
            Mark::Close if depth == RESULT => {
                if !self.has_meta {
                    let mut add = String::from(",\"_meta\":{");
                    result::push_server_info(&mut add, &self.plan.server_info);
                    add.push('}');
                    self.write(add.as_bytes());
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
        let fate = if depth == TOP { top(&mut self.seen, name)? } else { member(&mut self.seen, name)? };
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
            Fate::Hold(held) => self.held = Some(held),
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
            self.underway = true;
        }
        Ok(())
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
            Held::Meta => {
                let limits = self.plan.limits;
                let Ok(mut cursor) = Cursor::new(&value, limits) else { return Err(Stop::NotTheResult) };
                let object = cursor.object(|cursor, _| cursor.skip()).map_err(|error| match error.fault {
                    ScanFault::Members(_) => Stop::Members,
                    _ => Stop::NotTheResult,
                })?;
                let mut splice = Splice::new(&value);
                result::meta_of(&mut splice, &value, &object, &self.plan.server_info);
                self.member_out(depth);
                for part in splice.finish().parts() {
                    self.write(part);
                }
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
        if first && depth == RESULT {
            self.write(b",");
        }
        self.lead_out();
    }

    fn lead_out(&mut self) {
        if let Some(out) = &mut self.out {
            out.copy(&self.lead);
        }
        self.lead.clear();
    }
}

/// A member of the message itself.
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

/// A member of `result`.
fn member(seen: &mut Seen, name: Option<&str>) -> Result<Fate, Stop> {
    match name {
        Some("_meta") if std::mem::replace(&mut seen.meta, true) => Err(Stop::NotTheResult),
        Some("_meta") => Ok(Fate::Hold(Held::Meta)),
        Some(name) if OVERWRITTEN.contains(&name) => Ok(Fate::Drop),
        Some(_) | None => Ok(Fate::Keep),
    }
}

/// Pieces that may go out; short ones are put together.
#[derive(Debug, Default)]
struct Out {
    pieces: VecDeque<Bytes>,
    tail: BytesMut,
}

impl Out {
    fn slice(&mut self, piece: &Bytes, range: Range<usize>) {
        if range.len() < COPY_BELOW {
            return self.copy(piece.get(range).unwrap_or_default());
        }
        self.flush();
        self.pieces.push_back(piece.slice(range));
    }

    fn copy(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(bytes);
    }

    fn flush(&mut self) {
        if !self.tail.is_empty() {
            self.pieces.push_back(self.tail.split().freeze());
        }
    }

    fn next(&mut self) -> Option<Bytes> {
        if self.pieces.is_empty() {
            self.flush();
        }
        self.pieces.pop_front()
    }
}

#[cfg(test)]
#[path = "flow_tests.rs"]
mod tests;
