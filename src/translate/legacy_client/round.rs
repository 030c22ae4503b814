//! What an `input_required` result asks.
//!
//! Owns taking such a result apart: the server's questions under their keys, its state, and for each question what kind it
//! is, which capability it needs and whether it can be read at all. A result that cannot be read is refused as a whole, before
//! anybody is asked anything. The requests that ask the client stand in `ask`, what its answers become in `reply`; how often
//! and how fast is for those who drive the rounds. Rules: A1.12-A1.14, A8.1, A8.2, B2.1, B2.3, B2.4; vectors D84-D87, D90.

use super::super::question::{is, present};
use super::ask::sampling;
use super::form;
use super::initialize::Client;
use crate::wire::json::{self, Duplicate, Limits, Member, Object, Span, compact, object, quote_into};
use crate::wire::jsonrpc::{Body, Response, string};
use bytes::{BufMut, Bytes, BytesMut};
use std::borrow::Cow;
use std::collections::HashSet;
use url::Url;

/// One round of a call.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// In the server's order.
    pub entries: Vec<Entry>,
    /// The raw JSON string, byte for byte, that goes back with the answers (B2.3).
    pub state: Option<Bytes>,
}

/// One question of a server.
#[derive(Debug, Clone)]
pub struct Entry {
    key: Bytes,
    pub(super) kind: Kind,
    tools: bool,
    /// Its params without white space, a text of its own; empty where there are none.
    pub(super) params: Bytes,
    url: Option<Box<str>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Form,
    Url,
    Sampling,
    Roots,
}

/// Why a result that asks for input cannot be worked with. It is always the server's fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    #[error("the server requires input, but its result has neither `inputRequests` nor `requestState`")]
    Nothing,
    #[error("the server requires input, but its `requestState` is no string")]
    State,
    #[error("the server requires input, but its `inputRequests` is no object")]
    Requests,
    #[error("the server asks more than {0} questions at once (limits.questions)")]
    TooMany(usize),
    #[error("the server requires input, but of its result {0}")]
    Duplicate(#[from] Duplicate),
    #[error("the server's question {key:?} cannot be put to the client: {what}")]
    Entry { key: String, what: Cow<'static, str> },
}

/// Takes the result of `response` apart. `most` bounds the questions.
pub fn read(response: &Response, body: &Body, most: usize, limits: Limits) -> Result<Asked, Unusable> {
    let text = &response.text;
    let state = match present(text, body.object.get(text, "requestState")?) {
        Some(span) if !is(text, Some(span), json::Kind::String) => return Err(Unusable::State),
        // A copy, so that what waits for minutes does not keep the buffer alive that it came in.
        Some(span) => Some(Bytes::copy_from_slice(span.of(text))),
        None => None,
    };
    let entries = match present(text, body.object.get(text, "inputRequests")?) {
        Some(span) => entries(text, span, most, limits)?,
        None => Vec::new(),
    };
    if entries.is_empty() && state.is_none() { Err(Unusable::Nothing) } else { Ok(Asked { entries, state }) }
}

impl Asked {
    /// What it takes to keep it, but for a few words.
    pub fn bytes(&self) -> usize {
        self.state.as_ref().map_or(0, Bytes::len) + self.entries.iter().map(Entry::bytes).sum::<usize>()
    }
}

impl Entry {
    /// The raw JSON string under which the server wants the answer.
    pub fn key(&self) -> &Bytes {
        &self.key
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// What the user is to open.
    pub fn url(&self) -> Option<&str> {
        self.url.as_deref()
    }

    /// The capability that the question needs and the client has not declared (B2.1).
    pub fn lacks(&self, client: &Client) -> Option<&'static str> {
        let can = client.can;
        match self.kind {
            Kind::Form if !can.form => Some(if can.url { "elicitation.form" } else { "elicitation" }),
            Kind::Url if !can.url => Some("elicitation.url"),
            Kind::Sampling if !can.sampling => Some("sampling"),
            Kind::Sampling if self.tools && !can.tools => Some("sampling.tools"),
            Kind::Roots if !can.roots => Some("roots"),
            Kind::Form | Kind::Url | Kind::Sampling | Kind::Roots => None,
        }
    }

    /// What it takes to keep it, but for a few words.
    pub fn bytes(&self) -> usize {
        self.key.len() + self.params.len() + self.url.as_ref().map_or(0, |url| url.len())
    }

    /// The key for a text.
    pub(super) fn name(&self) -> String {
        plain(&string(&self.key, Span::new(0, self.key.len())).unwrap_or_default())
    }
}

impl Kind {
    pub fn method(self) -> &'static str {
        match self {
            Kind::Form | Kind::Url => "elicitation/create",
            Kind::Sampling => "sampling/createMessage",
            Kind::Roots => "roots/list",
        }
    }
}

/// `{key: value,..}` for `inputResponses`; keys are raw strings, values raw JSON.
pub fn responses(answers: &[(Bytes, Bytes)]) -> Bytes {
    let length: usize = answers.iter().map(|(key, value)| key.len() + value.len() + 2).sum();
    let mut out = BytesMut::with_capacity(length + 2);
    out.put_u8(b'{');
    for (at, (key, value)) in answers.iter().enumerate() {
        if at > 0 {
            out.put_u8(b',');
        }
        out.put_slice(key);
        out.put_u8(b':');
        out.put_slice(value);
    }
    out.put_u8(b'}');
    out.freeze()
}

/// What is wrong with a question.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrong(pub(super) Cow<'static, str>);

impl From<&'static str> for Wrong {
    fn from(what: &'static str) -> Self {
        Wrong(what.into())
    }
}

impl From<String> for Wrong {
    fn from(what: String) -> Self {
        Wrong(what.into())
    }
}

impl From<Duplicate> for Wrong {
    fn from(Duplicate(name): Duplicate) -> Self {
        Wrong(format!("member {:?} occurs more than once", plain(&name)).into())
    }
}

/// A peer's word for a text of ours: short and on one line.
pub(super) fn plain(word: &str) -> String {
    word.chars().take(64).map(|char| if char.is_control() { ' ' } else { char }).collect()
}

fn entries(text: &Bytes, span: Span, most: usize, limits: Limits) -> Result<Vec<Entry>, Unusable> {
    if !is(text, Some(span), json::Kind::Object) {
        return Err(Unusable::Requests);
    }
    let bound = Limits { members: most, ..limits };
    // It was scanned before, so that only the bound can be broken.
    let all = object(text, span, bound).ok_or(Unusable::TooMany(most))?;
    let mut seen = HashSet::new();
    let mut entries = Vec::with_capacity(all.members.len());
    for member in &all.members {
        let name = member.name(text).unwrap_or_else(|| String::from_utf8_lossy(member.key.of(text)));
        let key = plain(&name);
        if !seen.insert(name) {
            return Err(Duplicate(key).into());
        }
        entries.push(entry(text, member, limits).map_err(|Wrong(what)| Unusable::Entry { key, what })?);
    }
    Ok(entries)
}

fn entry(text: &Bytes, member: &Member, limits: Limits) -> Result<Entry, Wrong> {
    let request = object(text, member.value, limits).ok_or("it must be a request object")?;
    let method = request.get(text, "method")?.and_then(|span| string(text, span));
    let params = present(text, request.get(text, "params")?);
    let params = params.map_or_else(Bytes::new, |span| Bytes::from(compact(span.of(text)).into_owned()));
    let object = object(&params, Span::new(0, params.len()), limits);
    let (kind, tools, url) = match (method.as_deref(), &object) {
        (Some("roots/list"), _) if object.is_some() || params.is_empty() => (Kind::Roots, false, None),
        (Some("elicitation/create"), Some(object)) => elicitation(&params, object, limits)?,
        (Some("sampling/createMessage"), Some(object)) => {
            (Kind::Sampling, sampling::read(&params, object, limits)?, None)
        }
        (Some("roots/list" | "elicitation/create" | "sampling/createMessage"), _) => {
            return Err("`params` must be an object".into());
        }
        (Some(method), _) => return Err(format!("{:?} is no request for input", plain(method)).into()),
        (None, _) => return Err("`method` must be a string".into()),
    };
    // From opening quote to closing quote.
    let key = Span { start: member.key.start - 1, end: member.key.end + 1 };
    Ok(Entry { key: Bytes::copy_from_slice(key.of(text)), kind, tools, params, url })
}

fn elicitation(
    text: &Bytes,
    params: &Object,
    limits: Limits,
) -> Result<(Kind, bool, Option<Box<str>>), Wrong> {
    if !is(text, params.get(text, "message")?, json::Kind::String) {
        return Err("`message` must be a string".into());
    }
    let mode = present(text, params.get(text, "mode")?);
    match mode.map(|span| string(text, span)) {
        // Left out is form mode (A8.1).
        None => {}
        Some(Some(mode)) if mode == "form" => {}
        Some(Some(mode)) if mode == "url" => {
            let url = params.get(text, "url")?.and_then(|span| string(text, span));
            let url = url.filter(|url| Url::parse(url).is_ok()).ok_or("`url` must be a URL")?;
            return Ok((Kind::Url, false, Some(url.into_owned().into_boxed_str())));
        }
        Some(_) => return Err("`mode` must be \"form\" or \"url\"".into()),
    }
    form::read(text, params, limits)?;
    Ok((Kind::Form, false, None))
}

/// `text` as a JSON string.
pub(super) fn quoted(text: &str) -> Bytes {
    let mut out = String::with_capacity(text.len() + 2);
    quote_into(&mut out, text);
    Bytes::from(out)
}

#[cfg(test)]
pub(super) mod tests;
