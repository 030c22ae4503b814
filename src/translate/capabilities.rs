//! What a client declares of itself, as a legacy session is to declare it at `initialize`.
//!
//! Owns: reading the `clientCapabilities` of a modern request, their normal form (sessions of equal capabilities are
//! shared, so order and white space must not tell them apart), what each revision is told of them, and what a server
//! may therefore ask. Does not refuse anything: what cannot be read is not declared. Rules: A3.1-A3.7; vectors D51,
//! D53, D54.

use super::declared;
use super::discover::NEUTRAL_EXTENSIONS;
use super::question::Need;
use crate::wire::json::{Kind, Limits, Object, Span, compact, object, quote_into};
use crate::wire::jsonrpc::Request;
use crate::wire::version::LegacyRevision;
use bytes::Bytes;
use std::sync::{Arc, Mutex, PoisonError};

/// What is declared may be this long in all; a session keeps it as long as it lives. What comes after is left out.
const MOST_BYTES: usize = 64 * 1024;

/// A session's declaration. Equal ones are written alike, whoever declared them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Capabilities(Option<Arc<Declared>>);

#[derive(Debug, Default, PartialEq, Eq, Hash)]
struct Declared {
    /// By name, the names as they are written; each value is an object without white space.
    members: Vec<(String, String)>,
    form: bool,
    url: bool,
    sampling: bool,
    tools: bool,
    context: bool,
    roots: bool,
}

impl Capabilities {
    /// Nothing: the server has nobody to ask.
    pub fn none() -> Self {
        Self(None)
    }

    /// What the request declares, which must not be more than the session does.
    pub fn of(request: &Request, limits: Limits) -> Self {
        let text = &request.text;
        let Some(span) = declared::capabilities(request) else { return Self::none() };
        if span.len() == 2 {
            return Self::none();
        }
        let Some(all) = object(text, span, limits) else { return Self::none() };
        let mut declared = Declared::default();
        let mut left = MOST_BYTES;
        for (name, value) in sorted(text, &all) {
            let Some(inner) = object(text, value, limits) else { continue };
            let Some(value) = declared.read(text, &name, &inner) else { continue };
            let Some(rest) = left.checked_sub(name.len() + value.len()) else { continue };
            left = rest;
            declared.has(text, &name, &inner);
            declared.members.push((name, value));
        }
        if declared.members.is_empty() { Self::none() } else { Self(Some(Arc::new(declared))) }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Whether a server of this revision may ask anything.
    pub fn can_be_asked(&self, revision: LegacyRevision) -> bool {
        let needs = [Need::Form, Need::Url, Need::Sampling, Need::Roots];
        needs.into_iter().any(|need| self.allows(need, revision))
    }

    /// The object for `initialize`.
    pub fn declared_to(&self, revision: LegacyRevision) -> Bytes {
        let Some(declared) = &self.0 else { return Bytes::from_static(b"{}") };
        let mut out = String::from("{");
        for (name, value) in &declared.members {
            let value = match name.as_str() {
                "elicitation" if revision < LegacyRevision::V2025_06_18 => continue,
                "elicitation" if revision < LegacyRevision::V2025_11_25 && !declared.form => continue,
                "elicitation" | "sampling" if revision < LegacyRevision::V2025_11_25 => "{}",
                _ => value,
            };
            if out.len() > 1 {
                out.push(',');
            }
            quote_into(&mut out, name);
            out.push(':');
            out.push_str(value);
        }
        out.push('}');
        Bytes::from(out)
    }

    /// Whether a server that turned out to be of `revision` must be told again, after it was told what is declared to
    /// `told`. 2025-06-18 knows form mode alone, so a client of url mode alone looks to it like one that shows forms
    /// (A3.5); everything else that is newer it passes over. One that is newer than was thought was told too little.
    pub fn misread_by(&self, told: LegacyRevision, revision: LegacyRevision) -> bool {
        let Some(declared) = &self.0 else { return false };
        if revision > told {
            return self.declared_to(told) != self.declared_to(revision);
        }
        let form_alone = revision == LegacyRevision::V2025_06_18 && revision < told;
        form_alone && declared.url && !declared.form
    }

    /// Whether a server of this revision may ask what needs this.
    pub fn allows(&self, need: Need, revision: LegacyRevision) -> bool {
        let Some(declared) = &self.0 else { return false };
        match need {
            Need::Form => declared.form && revision >= LegacyRevision::V2025_06_18,
            Need::Url => declared.url && revision >= LegacyRevision::V2025_11_25,
            Need::Sampling => declared.sampling,
            Need::SamplingTools => declared.tools && revision >= LegacyRevision::V2025_11_25,
            Need::Roots => declared.roots,
        }
    }

    /// Whether the client takes `includeContext` (A8.10).
    pub fn allows_context(&self) -> bool {
        self.0.as_ref().is_some_and(|declared| declared.context)
    }
}

/// As long as one client calls, all its requests declare the same: what was read last is not read again.
#[derive(Debug, Default)]
pub struct Recent {
    last: Mutex<Option<(Bytes, Capabilities)>>,
}

/// A longer text is not kept for that.
const MOST_RECENT: usize = 4 * 1024;

impl Recent {
    /// As [`Capabilities::of`].
    pub fn of(&self, request: &Request, limits: Limits) -> Capabilities {
        let Some(span) = declared::capabilities(request) else { return Capabilities::none() };
        let raw = span.of(&request.text);
        if raw.len() == 2 || raw.len() > MOST_RECENT {
            return Capabilities::of(request, limits);
        }
        // Held for a look and a copy.
        let last = || self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, capabilities)) = &*last()
            && known == raw
        {
            return capabilities.clone();
        }
        let capabilities = Capabilities::of(request, limits);
        *last() = Some((Bytes::copy_from_slice(raw), capabilities.clone()));
        capabilities
    }
}

impl Declared {
    /// The capability as it is declared; `None` for one that is not.
    fn read(&self, text: &[u8], name: &str, inner: &Object) -> Option<String> {
        let named = |name: &str| inner.first(text, name).is_some();
        match name {
            // Client-hosted tasks cannot be expressed (A3.6).
            "tasks" => None,
            // No source of `listChanged` exists (A3.3).
            "roots" => Some("{}".to_owned()),
            "extensions" => {
                let neutral = |name: &str| NEUTRAL_EXTENSIONS.contains(&name);
                Some(objects(text, inner, neutral)).filter(|value| value != "{}")
            }
            "experimental" => Some(objects(text, inner, |_| true)).filter(|value| value != "{}"),
            "elicitation" => {
                let value = objects(text, inner, |_| true);
                let (form, url) = modes(text, inner);
                // `{}` means form mode, but not where a mode was named that cannot be read.
                (form || url || !named("form") && !named("url")).then_some(value)
            }
            "sampling" => Some(objects(text, inner, |_| true)),
            // Of a capability that no revision defines, no member is known to be wrong.
            _ => Some(compacted(text, inner.span)),
        }
    }

    /// Notes what the capability allows.
    fn has(&mut self, text: &[u8], name: &str, inner: &Object) {
        match name {
            "elicitation" => {
                let (form, url) = modes(text, inner);
                (self.form, self.url) = (form || !url, url);
            }
            "sampling" => {
                self.sampling = true;
                self.tools = is_object(text, inner, "tools");
                self.context = is_object(text, inner, "context");
            }
            "roots" => self.roots = true,
            _ => {}
        }
    }
}

/// Form and url mode as they are named.
pub(super) fn modes(text: &[u8], elicitation: &Object) -> (bool, bool) {
    (is_object(text, elicitation, "form"), is_object(text, elicitation, "url"))
}

/// Whether there is one member of that name and it is an object.
pub(super) fn is_object(text: &[u8], object: &Object, name: &str) -> bool {
    let value = object.get(text, name).ok().flatten();
    value.is_some_and(|span| Kind::of(span.of(text)) == Some(Kind::Object))
}

/// The members that are objects, by name. One that stands twice is left out: two readers could take either.
pub(super) fn sorted(text: &[u8], object: &Object) -> Vec<(String, Span)> {
    let mut members: Vec<_> = object
        .members
        .iter()
        .filter_map(|member| Some((member.name(text)?.into_owned(), member.value)))
        .collect();
    members.sort_by(|one, other| one.0.cmp(&other.0));
    let twice = |at: usize| {
        let same = |other: Option<&(String, Span)>| other.is_some_and(|other| other.0 == members[at].0);
        same(members.get(at + 1)) || at > 0 && same(members.get(at - 1))
    };
    let keep: Vec<bool> = (0..members.len())
        .map(|at| !twice(at) && Kind::of(members[at].1.of(text)) == Some(Kind::Object))
        .collect();
    let mut keep = keep.into_iter();
    members.retain(|_| keep.next().unwrap_or(false));
    members
}

/// The object with those members that are objects and that `keep` takes, in normal form.
pub(super) fn objects(text: &[u8], object: &Object, keep: impl Fn(&str) -> bool) -> String {
    let mut out = String::from("{");
    for (name, value) in sorted(text, object).into_iter().filter(|(name, _)| keep(name)) {
        if out.len() > 1 {
            out.push(',');
        }
        quote_into(&mut out, &name);
        out.push(':');
        out.push_str(&compacted(text, value));
    }
    out.push('}');
    out
}

pub(super) fn compacted(text: &[u8], value: Span) -> String {
    // Part of a text that was checked for UTF-8.
    String::from_utf8_lossy(&compact(value.of(text))).into_owned()
}
