//! One entry of a round as the request that asks a legacy client.
//!
//! Owns the request: its envelope, and its params as the client's revision has them. Forms stand in `form`, sampling in
//! `sampling`. Whether the client declared what a question needs is for `Entry::lacks`. Rules: A1.12-A1.14, A6.2, A6.6, A6.7,
//! A8, B2.2, B4.3; vectors D84, D90-D92.

use super::form;
use super::initialize::Client;
use super::reply::Restore;
use super::round::{Entry, Kind, Wrong, quoted};
use crate::wire::json::{Member, Object, Span, Splice, UNBOUNDED, object};
use crate::wire::meta;
use crate::wire::payload::Payload;
use crate::wire::version::LegacyRevision;
use bytes::Bytes;
use std::borrow::Cow;

pub(super) mod block;
pub(super) mod sampling;

/// What goes to the client, and how its answer is read.
#[derive(Debug, Clone)]
pub struct Question {
    pub message: Payload,
    pub restore: Restore,
}

/// A question that the client's revision has no words for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the server's question {key:?} cannot be put to a client of {}: {what}", revision.as_str())]
pub struct Unaskable {
    key: String,
    revision: LegacyRevision,
    what: Cow<'static, str>,
}

impl Entry {
    /// The request under `id`. A URL needs an `elicitation_id` that nobody can guess (A8.2).
    pub fn ask(&self, id: u64, client: &Client, elicitation_id: Option<&str>) -> Result<Question, Unaskable> {
        let asked = self.params_for(client, elicitation_id).map_err(|Wrong(what)| Unaskable {
            key: self.name(),
            revision: client.revision,
            what,
        })?;
        let method = self.kind.method();
        let mut message = Payload::from(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\""));
        match asked.params {
            Some(params) => {
                message.push(",\"params\":");
                params.parts().iter().for_each(|part| message.push(part.clone()));
                message.push("}");
            }
            None => message.push("}"),
        }
        Ok(Question { message, restore: asked.restore })
    }

    fn params_for(&self, client: &Client, elicitation_id: Option<&str>) -> Result<Asking, Wrong> {
        if self.params.is_empty() {
            return Ok(Asking { params: None, restore: Restore::roots() });
        }
        // It was read within bounds before.
        let params = object(&self.params, Span::new(0, self.params.len()), UNBOUNDED).ok_or("no object")?;
        let mut edit = Edit::new(&self.params);
        edit.meta(&params)?;
        let mut add = Bytes::new();
        let restore = match self.kind {
            Kind::Form => edit.form(&params, client.revision)?,
            Kind::Url if client.revision < LegacyRevision::V2025_11_25 => {
                return Err("it has no URLs to open".into());
            }
            Kind::Url => {
                let id = elicitation_id.ok_or("it needs an id of its own")?;
                add = [b"\"elicitationId\":".as_slice(), &quoted(id)].concat().into();
                edit.gone.push("elicitationId");
                Restore::url()
            }
            Kind::Sampling => {
                let changes = sampling::ask(&self.params, &params, client, UNBOUNDED)?;
                edit.gone.extend(changes.gone);
                changes.edits.into_iter().for_each(|(span, with)| edit.splice.replace(span, with));
                Restore::sampling()
            }
            Kind::Roots => Restore::roots(),
        };
        Ok(Asking { params: Some(edit.finish(&params, add)), restore })
    }
}

struct Asking {
    params: Option<Payload>,
    restore: Restore,
}

/// The changes to the params of one question.
struct Edit<'a> {
    text: &'a Bytes,
    splice: Splice<'a>,
    /// Members that are taken out.
    gone: Vec<&'static str>,
}

impl<'a> Edit<'a> {
    fn new(text: &'a Bytes) -> Self {
        Self { text, splice: Splice::new(text), gone: vec!["task"] }
    }

    /// What other revisions keep in `_meta` goes, and so does a progress token, since nobody waits for progress (A2.3).
    fn meta(&mut self, params: &Object) -> Result<(), Wrong> {
        const OURS: [&str; 2] = [meta::RELATED_TASK, meta::PROGRESS_TOKEN];
        let Some(span) = params.get(self.text, "_meta")? else { return Ok(()) };
        let text = self.text;
        let goes = |member: &Member| meta::MODERN_ONLY.iter().chain(&OURS).any(|name| member.is(text, name));
        match object(text, span, UNBOUNDED) {
            Some(meta) if !meta.members.iter().all(goes) => {
                self.splice.rewrite(&meta, |member| !goes(member), "");
            }
            Some(_) | None => self.gone.push("_meta"),
        }
        Ok(())
    }

    fn form(&mut self, params: &Object, revision: LegacyRevision) -> Result<Restore, Wrong> {
        let fields = form::ask(&mut self.splice, self.text, params, revision, UNBOUNDED)?;
        self.gone.push("elicitationId");
        let unnamed = params.get(self.text, "mode")?.is_some_and(|span| span.of(self.text) == b"null");
        if unnamed || revision < LegacyRevision::V2025_11_25 {
            self.gone.push("mode");
        }
        Ok(Restore::form(fields))
    }

    fn finish(mut self, params: &Object, add: Bytes) -> Payload {
        let (text, gone) = (self.text, self.gone);
        self.splice.rewrite(params, |member| !gone.iter().any(|name| member.is(text, name)), add);
        self.splice.finish()
    }
}

#[cfg(test)]
mod tests;
