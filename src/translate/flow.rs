//! A large result as the other side is to see it, piece by piece while it passes.
//!
//! Owns the same translation as `result` and `legacy_client::result`, for the methods in whose results nothing inside the
//! main member changes (`tools/call`, `resources/read`, `prompts/get`, methods of one's own), and the test of whether a
//! message may pass so: it is a result, and its main member has begun. Many servers write `result` first, so `jsonrpc` and our
//! `id` may also come after it; without them the message is not good. Of the text it holds one name or one rewritten member
//! (`_meta`) at a time, bounded. What is against the rules after the beginning has gone out ends the flow with an error; the
//! end of the message is held back until all of it was good. `up` has what is particular to results of legacy servers, `down`
//! to those of modern ones. Rules: A4.10, A4.11, A4.13, A5.14, B12; architecture section 4, "Raw JSON".

mod down;
mod out;
mod up;
mod writer;

pub use down::Form;

use crate::wire::json::{Limits, ScanFault, Scanner};
use crate::wire::jsonrpc::Id;
use crate::wire::method::Method;
use crate::wire::payload::Payload;
use bytes::Bytes;
use down::Down;
use out::Out;
use up::Up;
use writer::Writer;

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
    side: Side,
    limits: Limits,
    /// Bytes of one name, or of one member that is rewritten.
    most: usize,
}

/// Which way the result goes.
#[derive(Debug, Clone)]
enum Side {
    /// From a legacy server to a modern client.
    Up(Up),
    /// From a modern server to a legacy client.
    Down(Down),
}

impl Plan {
    /// For a legacy server's result. `None` for methods whose results are looked into, which are held whole.
    pub fn new(
        method: Method,
        number: u64,
        id: Id,
        server_info: Bytes,
        limits: Limits,
        most: usize,
    ) -> Option<Self> {
        let side = Side::Up(Up { server_info });
        passes(method).then_some(Self { method, number, id, side, limits, most })
    }

    /// For a modern server's result to a legacy client. `None` where the result is looked into.
    pub fn to_legacy_client(
        method: Method,
        form: Form,
        number: u64,
        id: Id,
        limits: Limits,
        most: usize,
    ) -> Option<Self> {
        let side = Side::Down(Down::new(method, form)?);
        passes(method).then_some(Self { method, number, id, side, limits, most })
    }

    /// The member that the result is all about, and whether it must be a list.
    fn main(&self) -> Option<(&'static str, bool)> {
        match self.method {
            // What a legacy server has in its place, a modern client gets (A5.14); to a legacy client it is put right.
            Method::ToolsCall => Some(("content", matches!(self.side, Side::Down(_)))),
            Method::ResourcesRead => Some(("contents", true)),
            Method::PromptsGet => Some(("messages", true)),
            _ => None,
        }
    }
}

fn passes(method: Method) -> bool {
    match method {
        Method::ToolsCall | Method::ResourcesRead | Method::PromptsGet | Method::Custom => true,
        Method::ToolsList
        | Method::PromptsList
        | Method::ResourcesList
        | Method::ResourcesTemplatesList
        | Method::Complete
        | Method::Discover
        | Method::Listen
        | Method::Task
        | Method::LegacyOnly(_)
        | Method::ServerToClient => false,
    }
}

impl Side {
    /// What the result begins with.
    fn stamp(&self, method: Method) -> &'static str {
        match self {
            Side::Up(_) => Up::stamp(method),
            Side::Down(_) => "",
        }
    }

    /// What the result ends with, after other members.
    fn tail(&self, has_meta: bool) -> String {
        match self {
            Side::Up(up) if !has_meta => up.meta_member(),
            Side::Up(_) | Side::Down(_) => String::new(),
        }
    }

    /// What becomes of a member of the result.
    fn fate(&self, name: Option<&str>) -> Fate {
        match self {
            Side::Up(_) => Up::fate(name),
            Side::Down(down) => down.fate(name),
        }
    }

    /// `_meta` as it goes out; `None` if nothing is left of it.
    fn meta(&self, value: &Bytes, limits: Limits) -> Result<Option<Payload>, ScanFault> {
        match self {
            Side::Up(up) => up.meta(value, limits).map(Some),
            Side::Down(_) => Down::meta(value, limits),
        }
    }

    /// Whether the list of content decides by having anything in it.
    fn needs_content(&self, method: Method) -> bool {
        match self {
            Side::Up(_) => false,
            Side::Down(_) => method == Method::ToolsCall,
        }
    }

    /// What becomes of a structured result that begins with this byte.
    fn structured(&self, first: Option<u8>) -> Structured {
        match self {
            Side::Up(_) => Structured::Keep,
            Side::Down(down) => down.structured(first),
        }
    }
}

/// A member that is looked at as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    Jsonrpc,
    Id,
    Error,
    Meta,
    ResultType,
}

/// What becomes of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Keep,
    Drop,
    Hold(Held),
    /// What it begins with decides.
    Structured,
}

/// What becomes of a structured result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Structured {
    Keep,
    Wrap,
    Drop,
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
        self.writer.out.as_ref().is_some_and(Out::is_worthwhile)
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

#[cfg(test)]
#[path = "flow/down_tests.rs"]
mod down_tests;
#[cfg(test)]
#[path = "flow/up_tests.rs"]
mod up_tests;
