//! The value as the validator sees it, watched: a check that takes too long, or too much of the stack, is cut off.
//!
//! The validator asks a value for what it is through the functions in here, again and again whatever the schema is. Each looks
//! at the clock (now and then) and at the depth of the stack, and leaves the check by unwinding, as a cancelled computation
//! does in rust-analyzer: nothing is left running, and no message of a panic is written. Owns that, and the stack that a check
//! runs on. Does not own what the bounds are (`measure`).

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object, cmp, unique};
use serde_json::{Map, Number, Value, map};
use std::borrow::Cow;
use std::cell::Cell;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::slice;
use std::time::{Duration, Instant};

#[cfg(panic = "abort")]
compile_error!("a check against a schema is cut off by unwinding");

/// Looks at the value for one look at the clock.
const LOOKS: u32 = 64;

/// Stack that one of the schemas takes that apply to one value in turn.
const FRAMES: usize = 2 * 1024;

/// Stack that the way down into the value may take.
const DESCENT: usize = 384 * 1024;

/// Schemas in turn for which the stack of any thread is large enough.
const HERE: usize = 128;

/// Violations that are gathered, alternatives and all.
const COPIES: u32 = 1000;

/// What a schema asks of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    /// Schemas that may apply to one value in turn, one within the other.
    pub(super) in_turn: usize,
    /// Bytes of a text that its patterns may be tried on.
    pub(super) text: usize,
}

/// Why a check was cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    Time,
    Stack,
    Text,
    Copies,
    /// The validator itself failed.
    Failed,
}

impl Stop {
    pub(super) fn words(self) -> &'static str {
        match self {
            Stop::Time => "the check takes longer than schema.time",
            Stop::Stack => "schema and value are nested too deep for a check",
            Stop::Text => "a text is too long for a pattern of the schema",
            Stop::Copies => "there is too much that does not fit",
            Stop::Failed => "the validator failed",
        }
    }
}

/// What one check may take.
pub(super) struct Bound {
    end: Instant,
    limits: Limits,
}

impl Bound {
    pub(super) fn new(time: Duration, limits: Limits) -> Self {
        Self { end: Instant::now() + time, limits }
    }

    /// Runs `work` within the bound, on a stack that suffices.
    pub(super) fn run<T: Send>(&self, work: impl FnOnce(&Watch) -> T + Send) -> Result<T, Stop> {
        let in_turn = self.limits.in_turn * FRAMES;
        let here = || caught(|| work(&Watch::new(self.end, self.limits.text, DESCENT + in_turn)));
        if self.limits.in_turn <= HERE {
            return here();
        }
        // From one look to the next, so many again.
        on_stack(DESCENT + 2 * in_turn + HERE * FRAMES, here).unwrap_or(Err(Stop::Stack))
    }
}

/// Runs `work` on a thread with so large a stack, and waits for it; `None` if there is no thread to be had.
pub(super) fn on_stack<T: Send>(bytes: usize, work: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("schema".to_owned()).stack_size(bytes);
        thread.spawn_scoped(scope, work).ok()?.join().ok()
    })
}

/// What `work` comes to, unless it is cut off.
pub(super) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Stop> {
    catch_unwind(AssertUnwindSafe(work))
        .map_err(|thrown| thrown.downcast_ref::<Stop>().copied().unwrap_or(Stop::Failed))
}

/// Looks on while a value is checked.
pub(super) struct Watch {
    end: Instant,
    text: usize,
    /// An address on the stack where the check began.
    base: usize,
    /// Bytes of it that may be taken from there.
    stack: usize,
    looks: Cell<u32>,
    copies: Cell<u32>,
}

impl Watch {
    fn new(end: Instant, text: usize, most: usize) -> Self {
        Self { end, text, base: stack(), stack: most, looks: Cell::new(0), copies: Cell::new(u32::MAX) }
    }

    /// From now on violations are gathered.
    pub(super) fn count_copies(&self) {
        self.copies.set(COPIES);
    }

    fn look(&self) {
        let looks = self.looks.get().wrapping_add(1);
        self.looks.set(looks);
        if looks.is_multiple_of(LOOKS) && Instant::now() > self.end {
            stop(Stop::Time);
        }
        if self.base.abs_diff(stack()) > self.stack {
            stop(Stop::Stack);
        }
    }

    fn text(&self, bytes: usize) {
        if bytes > self.text {
            stop(Stop::Text);
        }
    }

    fn copy(&self) {
        match self.copies.get() {
            u32::MAX => {}
            0 => stop(Stop::Copies),
            left => self.copies.set(left - 1),
        }
    }
}

/// About how far the stack reaches.
#[inline(never)]
fn stack() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&here)).addr()
}

#[cold]
fn stop(why: Stop) -> ! {
    resume_unwind(Box::new(why))
}

/// JSON as `serde_json` has it, watched.
pub(super) struct Watched;

/// A value of it.
#[derive(Clone, Copy)]
pub(super) struct Seen<'a> {
    value: &'a Value,
    /// A name as a value of its own has none.
    watch: Option<&'a Watch>,
}

impl<'a> Seen<'a> {
    pub(super) fn new(value: &'a Value, watch: &'a Watch) -> Self {
        Self { value, watch: Some(watch) }
    }

    fn look(&self) -> &'a Value {
        if let Some(watch) = self.watch {
            watch.look();
        }
        self.value
    }
}

impl Json for Watched {
    type Node<'a> = Seen<'a>;
    type PreparedKey = String;
    type StringBuffer = ();

    // As the library has it for `serde_json`.
    const KEYS_PER_LOOKUP: usize = 2;
    const ACYCLIC: bool = true;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>((): &mut (), string: &str, f: impl FnOnce(Seen<'_>) -> T) -> T {
        f(Seen { value: &Value::String(string.to_owned()), watch: None })
    }
}

impl<'a> Node<'a, Watched> for Seen<'a> {
    type Object = Members<'a>;
    type Array = Items<'a>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<Members<'a>> {
        self.look().as_object().map(|all| Members { all, watch: self.watch })
    }

    fn as_array(&self) -> Option<Items<'a>> {
        self.look().as_array().map(|all| Items { all, watch: self.watch })
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        let text = self.look().as_str()?;
        if let Some(watch) = self.watch {
            watch.text(text.len());
        }
        Some(Cow::Borrowed(text))
    }

    fn as_number(&self) -> Option<&'a Number> {
        match self.look() {
            Value::Number(number) => Some(number),
            _ => None,
        }
    }

    fn as_boolean(&self) -> Option<bool> {
        self.look().as_bool()
    }

    fn is_null(&self) -> bool {
        self.look().is_null()
    }

    fn is_number(&self) -> bool {
        self.look().is_number()
    }

    fn is_string(&self) -> bool {
        self.look().is_string()
    }

    fn json_type(&self) -> JsonType {
        match self.look() {
            Value::Null => JsonType::Null,
            Value::Bool(_) => JsonType::Boolean,
            Value::Number(_) => JsonType::Number,
            Value::String(_) => JsonType::String,
            Value::Array(_) => JsonType::Array,
            Value::Object(_) => JsonType::Object,
        }
    }

    fn string_length(&self) -> Option<u64> {
        self.look().as_str().map(|text| text.chars().count() as u64)
    }

    fn equals_value(&self, expected: &Value) -> bool {
        cmp::equal(self.look(), expected)
    }

    fn to_value(&self) -> Cow<'a, Value> {
        if let Some(watch) = self.watch {
            watch.copy();
        }
        Cow::Borrowed(self.look())
    }

    fn identity(&self) -> Option<NodeIdentity> {
        Some(NodeIdentity::new(std::ptr::from_ref(self.look()).addr()))
    }
}

/// An object's members.
pub(super) struct Members<'a> {
    all: &'a Map<String, Value>,
    watch: Option<&'a Watch>,
}

impl<'a> Object<'a, Watched> for Members<'a> {
    type Node = Seen<'a>;
    type MemberName = &'a str;
    type MembersIter = EachMember<'a>;

    fn len(&self) -> usize {
        self.all.len()
    }

    fn get(&self, key: &String) -> Option<Seen<'a>> {
        self.all.get(key).map(|value| Seen { value, watch: self.watch })
    }

    fn members(&self) -> EachMember<'a> {
        EachMember { all: self.all.iter(), watch: self.watch }
    }

    fn try_for_each_name_node<B>(
        &self,
        (): &mut (),
        mut f: impl FnMut(Seen<'_>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        for (name, value) in self.members() {
            let name = Value::String(name.to_owned());
            if let Some(watch) = value.watch {
                watch.look();
            }
            f(Seen { value: &name, watch: value.watch })?;
        }
        ControlFlow::Continue(())
    }
}

pub(super) struct EachMember<'a> {
    all: map::Iter<'a>,
    watch: Option<&'a Watch>,
}

impl<'a> Iterator for EachMember<'a> {
    type Item = (&'a str, Seen<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.all.next()?;
        if let Some(watch) = self.watch {
            // Names may be tried on patterns too.
            watch.text(name.len());
            watch.look();
        }
        Some((name, Seen { value, watch: self.watch }))
    }
}

/// An array's items.
pub(super) struct Items<'a> {
    all: &'a [Value],
    watch: Option<&'a Watch>,
}

impl<'a> Array<'a, Watched> for Items<'a> {
    type Node = Seen<'a>;
    type ElementsIter = EachItem<'a>;

    fn len(&self) -> usize {
        self.all.len()
    }

    fn elements(&self) -> EachItem<'a> {
        EachItem { all: self.all.iter(), watch: self.watch }
    }

    fn is_unique(&self) -> bool {
        unique::is_unique(self.all)
    }
}

pub(super) struct EachItem<'a> {
    all: slice::Iter<'a, Value>,
    watch: Option<&'a Watch>,
}

impl<'a> Iterator for EachItem<'a> {
    type Item = Seen<'a>;

    fn next(&mut self) -> Option<Seen<'a>> {
        let value = self.all.next()?;
        Some(Seen { value, watch: self.watch })
    }
}
