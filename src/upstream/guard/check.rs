//! Checks of what is called against what is listed: a call's `arguments` against the tool's `inputSchema`, and a result's
//! `structuredContent` against its `outputSchema`.
//!
//! Owns the two policies, the words for whoever sent what does not fit, their log lines and metrics, and the compiled schemas,
//! kept by their text. Does not own compiling and checking (`schema::validate`), nor whether the tool is known. A value that
//! cannot be checked passes, and is counted. Rules: A5.13, B6.3, B6.5; spec 2026-07-28 server/tools, "Output Schema" and
//! "Error Handling".

use crate::config::{self, Validation};
use crate::schema::finding::short;
use crate::schema::validate::{Checked, Compiled, Violations};
use crate::schema::{Dialect, Documents};
use crate::telemetry::metrics::{CallValue, HeldBytes, UpstreamMetrics, ValueCheck};
use crate::wire::json::{Object, once};
use bytes::Bytes;
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// A schema that could not be compiled is tried again after so long: it may have been for want of time.
const AGAIN: Duration = Duration::from_secs(60);

/// See the module.
pub(super) struct Checks {
    upstream: String,
    arguments: Validation,
    results: Validation,
    time: Duration,
    documents: Documents,
    compiled: Mutex<State>,
    /// Bytes of all that is kept compiled, roughly.
    most: usize,
    metrics: Arc<UpstreamMetrics>,
}

#[derive(Default)]
struct State {
    all: HashMap<Key, Kept>,
    bytes: usize,
    clock: u64,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    text: Bytes,
    dialect: Dialect,
}

struct Kept {
    slot: Arc<Slot>,
    bytes: usize,
    used: u64,
    _counted: HeldBytes,
}

/// Compiled by the first who needs it; the others wait.
struct Slot {
    since: Instant,
    compiled: OnceLock<Result<Compiled, &'static str>>,
}

impl Slot {
    fn is_stale(&self) -> bool {
        self.since.elapsed() > AGAIN && self.compiled.get().is_some_and(Result::is_err)
    }
}

/// A schema of a tool.
#[derive(Clone, Copy)]
pub(super) struct Schema<'a> {
    pub(super) tool: &'a str,
    pub(super) text: &'a Bytes,
    /// `None`: it is not known.
    pub(super) dialect: Option<Dialect>,
}

impl Checks {
    pub(super) fn new(
        upstream: &str,
        settings: &config::Schema,
        documents: Documents,
        metrics: Arc<UpstreamMetrics>,
    ) -> Self {
        Self {
            upstream: upstream.to_owned(),
            arguments: settings.arguments,
            results: settings.results,
            time: settings.time,
            documents,
            compiled: Mutex::default(),
            most: settings.cache_bytes,
            metrics,
        }
    }

    pub(super) fn checks(&self, what: CallValue) -> bool {
        self.policy(what) != Validation::Off
    }

    pub(super) fn enforces(&self) -> bool {
        self.arguments == Validation::Enforce || self.results == Validation::Enforce
    }

    fn policy(&self, what: CallValue) -> Validation {
        match what {
            CallValue::Arguments => self.arguments,
            CallValue::Result => self.results,
        }
    }

    /// Checks the `arguments` of `params`, which are of `text`, against the tool's `inputSchema`. `Err`: what does not fit, in
    /// words for the client.
    pub(super) fn arguments(&self, schema: Schema<'_>, text: &[u8], params: &Object) -> Result<(), String> {
        if !self.checks(CallValue::Arguments) {
            return Ok(());
        }
        match params.get(text, "arguments") {
            Ok(Some(value)) => self.check(CallValue::Arguments, schema, value.of(text)),
            Ok(None) => self.check(CallValue::Arguments, schema, b"{}"),
            Err(_) => self.misfit(CallValue::Arguments, schema.tool, &Violations::one("they occur twice")),
        }
    }

    /// Checks the `structuredContent` of `result`, which is of `text`, against the tool's `outputSchema`; a result that has none
    /// has nothing to check. `Err`: what does not fit, in words for the client.
    pub(super) fn result(&self, schema: Schema<'_>, text: &[u8], result: &Object) -> Result<(), String> {
        if !self.checks(CallValue::Result) || !is_complete(text, result) {
            return Ok(());
        }
        match result.get(text, "structuredContent") {
            // The key tells, whatever the value is: `null` is one.
            Ok(Some(value)) => self.check(CallValue::Result, schema, value.of(text)),
            Ok(None) => Ok(()),
            Err(_) => self.misfit(CallValue::Result, schema.tool, &Violations::one("it occurs twice")),
        }
    }

    /// A value whose tool is not known.
    pub(super) fn unknown_tool(&self, what: CallValue) {
        if self.checks(what) {
            self.metrics.schema_check(what, ValueCheck::UnknownTool);
        }
    }

    /// A value whose tool's schema is bad: nothing is compiled of it.
    pub(super) fn unchecked(&self, what: CallValue) {
        if self.checks(what) {
            self.metrics.schema_check(what, ValueCheck::Unchecked);
        }
    }

    fn check(&self, what: CallValue, schema: Schema<'_>, value: &[u8]) -> Result<(), String> {
        let checked = match schema.dialect {
            Some(dialect) => self.checked(schema, dialect, value),
            None => Checked::Unchecked("the dialect of the schema is not known"),
        };
        match checked {
            Checked::Valid => {
                self.metrics.schema_check(what, ValueCheck::Fits);
                Ok(())
            }
            Checked::Invalid(violations) => self.misfit(what, schema.tool, &violations),
            Checked::Unchecked(why) => {
                self.metrics.schema_check(what, ValueCheck::Unchecked);
                let (upstream, tool) = (&self.upstream, short(schema.tool));
                tracing::debug!(%upstream, %tool, value = name(what), why, "passed on unchecked");
                Ok(())
            }
        }
    }

    fn misfit(&self, what: CallValue, tool: &str, violations: &Violations) -> Result<(), String> {
        let (upstream, tool, value) = (&self.upstream, short(tool), name(what));
        let refused = match self.policy(what) {
            Validation::Off => return Ok(()),
            Validation::Warn => false,
            Validation::Enforce => true,
        };
        self.metrics.schema_check(what, if refused { ValueCheck::Refused } else { ValueCheck::Warned });
        let list = listed(violations);
        let found = list.replace('\n', " ");
        tracing::warn!(%upstream, %tool, value, refused, found, "a value does not fit its tool's schema");
        if !refused {
            return Ok(());
        }
        Err(match what {
            CallValue::Arguments => {
                format!("the arguments do not fit the inputSchema of the tool {tool:?}: {list}")
            }
            CallValue::Result => format!(
                "the tool {tool:?} has run, but the structuredContent of its result does not fit its outputSchema: {list}"
            ),
        })
    }

    fn checked(&self, schema: Schema<'_>, dialect: Dialect, value: &[u8]) -> Checked {
        let key = Key { text: schema.text.clone(), dialect };
        let slot = self.slot(&key);
        let mut anew = false;
        let compiled = slot.compiled.get_or_init(|| {
            anew = true;
            Compiled::new(schema.text, dialect, &self.documents, self.time)
        });
        if anew {
            self.settle(&key, &slot);
            if let Err(why) = compiled {
                let (upstream, tool) = (&self.upstream, short(schema.tool));
                tracing::warn!(%upstream, %tool, why, "values are not checked against a schema of the tool");
            }
        }
        match compiled {
            Ok(compiled) => compiled.check(value, self.time),
            Err(why) => Checked::Unchecked(why),
        }
    }

    fn slot(&self, key: &Key) -> Arc<Slot> {
        let mut guard = self.lock();
        let state = &mut *guard;
        state.clock += 1;
        if let Some(kept) = state.all.get_mut(key)
            && !kept.slot.is_stale()
        {
            kept.used = state.clock;
            return kept.slot.clone();
        }
        let slot = Arc::new(Slot { since: Instant::now(), compiled: OnceLock::new() });
        // A text of its own: the list that it is a part of is not held by it.
        let key = Key { text: Bytes::copy_from_slice(&key.text), dialect: key.dialect };
        let bytes = key.text.len();
        let counted = self.metrics.schema_cached(bytes);
        let kept = Kept { slot: slot.clone(), bytes, used: state.clock, _counted: counted };
        state.bytes += bytes;
        if let Some(before) = state.all.insert(key, kept) {
            state.bytes -= before.bytes;
        }
        slot
    }

    /// What was compiled has a size now; the ones that were used longest ago make room.
    fn settle(&self, key: &Key, slot: &Arc<Slot>) {
        let mut guard = self.lock();
        let state = &mut *guard;
        if let Some(kept) = state.all.get_mut(key).filter(|kept| Arc::ptr_eq(&kept.slot, slot)) {
            let compiled = slot.compiled.get().and_then(|compiled| compiled.as_ref().ok());
            let bytes = key.text.len() + compiled.map_or(0, Compiled::bytes);
            state.bytes = state.bytes - kept.bytes + bytes;
            (kept.bytes, kept._counted) = (bytes, self.metrics.schema_cached(bytes));
        }
        while state.bytes > self.most {
            let oldest = state.all.iter().min_by_key(|(_, kept)| kept.used).map(|(key, _)| key.clone());
            let Some(gone) = oldest.and_then(|oldest| state.all.remove(&oldest)) else { break };
            state.bytes -= gone.bytes;
        }
    }

    /// Held for a look or an entry.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether it is a result that the tool's `outputSchema` is about: no error, no question, and no task that has only begun.
fn is_complete(text: &[u8], result: &Object) -> bool {
    let is = |name: &str, raw: &[u8]| once(result, text, name).is_some_and(|span| span.of(text) == raw);
    let complete = result.first(text, "resultType").is_none() || is("resultType", b"\"complete\"");
    complete && !is("isError", b"true") && result.first(text, "task").is_none()
}

fn name(what: CallValue) -> &'static str {
    match what {
        CallValue::Arguments => "arguments",
        CallValue::Result => "structuredContent",
    }
}

/// One line for each.
fn listed(violations: &Violations) -> String {
    let mut list = String::new();
    for one in &violations.first {
        let at = if one.at.is_empty() { "(the whole)" } else { &one.at };
        let _ = write!(list, "\n- {at}: {}", one.what);
    }
    if violations.more {
        list.push_str("\n- and more");
    }
    list
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
