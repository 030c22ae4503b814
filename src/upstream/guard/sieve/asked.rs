//! What was asked in the request whose response is looked into.
//!
//! Owns the part of it that the answers are read by: which request wants a list, from its beginning or not, and which calls a
//! tool. A stream that is no request's own knows of none.

use super::super::Page;
use crate::wire::json::{Object, Span};
use crate::wire::jsonrpc::{Id, Request};
use crate::wire::method::Method;
use smallvec::SmallVec;

/// See the module.
#[derive(Debug, Default)]
pub struct Asked {
    all: SmallVec<[(Id, What); 1]>,
}

#[derive(Debug)]
pub(super) enum What {
    /// `tools/list`, with a cursor or without.
    List {
        goes_on: bool,
    },
    /// `tools/call`, whose result is checked.
    Checked(Box<Request>),
    Other,
}

impl Asked {
    pub(super) fn add(&mut self, id: &Id, what: What) {
        self.all.push((id.clone(), what));
    }

    pub(super) fn ids(&self) -> impl ExactSizeIterator<Item = &Id> {
        self.all.iter().map(|(id, _)| id)
    }

    /// Whether a list of tools is asked for.
    pub(super) fn wants_list(&self) -> bool {
        self.all.iter().any(|(_, what)| matches!(what, What::List { .. }))
    }

    /// Whether results of calls are checked.
    pub(super) fn checks(&self) -> bool {
        self.all.iter().any(|(_, what)| matches!(what, What::Checked(_)))
    }

    /// What the answer under this raw id is to.
    pub(super) fn by(&self, id: Option<&[u8]>) -> Option<&What> {
        let named = self.all.iter().find(|(asked, _)| Some(&asked.raw()[..]) == id);
        // Some servers write the id in the other JSON type (C17).
        let only = || self.all.first().filter(|_| self.all.len() == 1);
        named.or_else(only).map(|(_, what)| what)
    }

    /// Which part of its list an answer is.
    pub(super) fn page(&self, id: Option<&[u8]>, more: bool) -> Page {
        match self.by(id) {
            Some(What::List { goes_on: false }) if !more => Page::Whole,
            Some(What::List { .. } | What::Checked(_) | What::Other) | None => Page::Part,
        }
    }
}

impl What {
    /// `checks` says whether the result of a call is checked.
    pub(super) fn of(request: &Request, checks: impl FnOnce() -> bool) -> Self {
        match Method::of(&request.method) {
            Method::ToolsList => {
                let cursor =
                    request.params.body().and_then(|body| body.object.first(&request.text, "cursor"));
                What::List { goes_on: cursor.is_some_and(|span| span.of(&request.text) != b"null") }
            }
            Method::ToolsCall if checks() => What::Checked(Box::new(request.clone())),
            _ => What::Other,
        }
    }
}

/// Whether a list goes on after this result.
pub(super) fn goes_on(text: &[u8], result: &Object) -> bool {
    let says = |span: Span| span.of(text) != b"null";
    result.first(text, "nextCursor").is_some_and(says)
}
