//! One text of a response: what of it is judged, and what becomes of it.
//!
//! Owns the look that spares ordinary messages a reading, finding lists, forms and results in a message or in an array of them
//! (A14.1), and the message that takes the place of one which is not passed on. Whatever was asked, a result whose `tools` is an
//! array is a list of tools. What might hold something of that and cannot be read as one message by every reader is not passed on
//! either, where bad tools are left out.
//! Rules: A5.3, A5.10, A14.1; cases C62, C65.

use super::super::{Denied, Guard, Scope};
use super::asked::{Asked, What, goes_on};
use super::recent::{Places, Recent};
use crate::schema::{Speaker, edit};
use crate::translate::{legacy_client, result};
use crate::wire::json::{Cursor, Kind, Span, Splice, UNBOUNDED};
use crate::wire::jsonrpc::{self, Body, Id, Malformed, Message, Reply, Request, Response, code};
use crate::wire::meta;
use crate::wire::payload::Payload;
use bytes::Bytes;
use memchr::memmem::Finder;
use std::sync::LazyLock;

/// What one response is judged by.
pub(super) struct Looking {
    pub(super) speaker: Speaker,
    pub(super) scope: Scope,
    pub(super) asked: Asked,
    /// There are calls among what was asked whose results are checked.
    pub(super) results: bool,
}

/// What becomes of a text.
#[derive(Debug)]
pub(super) enum Look {
    AsItIs,
    Otherwise {
        /// What goes on in its place, if anything does.
        text: Option<Payload>,
        /// What its server is answered to questions that do not go on.
        answers: Vec<Bytes>,
    },
}

impl Look {
    fn changed(text: impl Into<Payload>) -> Self {
        Look::Otherwise { text: Some(text.into()), answers: Vec::new() }
    }

    fn gone(answers: Vec<Bytes>) -> Self {
        Look::Otherwise { text: None, answers }
    }
}

/// A message that readers may take for different things, as far as it says what it is.
struct Unreadable {
    id: Option<Id>,
    /// It has a method, and so wants an answer itself.
    asks: bool,
}

/// What the client is told where an answer does not go on.
pub(super) const WITHHELD: &str =
    "the upstream server's answer is not passed on: it may hold tools or a form, and it cannot be told which";

/// And the server, where its question does not.
const NOT_ASKED: &str = "the request is not passed on: it may hold a form, and it cannot be told which";

static TOOLS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"tools\""));
static FORM: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"requestedSchema\""));
static STRUCTURED: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"structuredContent\""));
static METHOD: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"method\""));
static ESCAPE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\\u00"));

impl Looking {
    /// Whether anything in these bytes may have to be judged. They may be a text or the lines of events: a name is never cut by
    /// the end of a line.
    pub(super) fn suspects(&self, bytes: &[u8]) -> bool {
        // A result may lack what it has to have. In JSON no byte is 0, but in UTF-16 and UTF-32, which some readers take too.
        self.results
            || TOOLS.find(bytes).is_some()
            || FORM.find(bytes).is_some()
            || spells(bytes)
            || memchr::memchr(0, bytes).is_some()
    }

    /// Looks into a text that is suspected.
    pub(super) fn text(&self, guard: &Guard, recent: &Recent, text: &Bytes) -> Look {
        if let Some(at) = recent.find(text).filter(|_| !self.results) {
            return self.list(guard, text, Some(at.id), at.tools, at.more);
        }
        let is_array = text.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[');
        match items(text).filter(|_| is_array) {
            Some(spans) => self.array(guard, recent, text, &spans),
            None => self.message(guard, recent, text.clone()),
        }
    }

    /// Each message of an array by itself.
    fn array(&self, guard: &Guard, recent: &Recent, text: &Bytes, spans: &[Span]) -> Look {
        let mut splice = Splice::new(text);
        let (mut stays, mut all) = (Vec::with_capacity(spans.len()), Vec::new());
        for span in spans {
            let item = text.slice(span.range());
            let look = if self.suspects(&item) { self.message(guard, recent, item) } else { Look::AsItIs };
            let Look::Otherwise { text, answers } = look else {
                stays.push(true);
                continue;
            };
            stays.push(text.is_some());
            text.into_iter().for_each(|with| splice.replace(*span, with.to_bytes()));
            all.extend(answers);
        }
        splice.retain(spans, |index| stays.get(index).is_none_or(|stays| *stays));
        match stays.contains(&true) {
            true if splice.is_empty() => Look::AsItIs,
            true => Look::Otherwise { text: Some(splice.finish()), answers: all },
            false if spans.is_empty() => Look::AsItIs,
            false => Look::gone(all),
        }
    }

    fn message(&self, guard: &Guard, recent: &Recent, text: Bytes) -> Look {
        let asks = METHOD.find(&text).is_some();
        let look = match jsonrpc::parse(text, UNBOUNDED) {
            Err(Malformed { id, .. }) => Err(Unreadable { id, asks }),
            Ok(Message::Request(request)) => self.question(guard, &request),
            Ok(Message::Notification(_)) => Ok(Look::AsItIs),
            Ok(Message::Response(answer)) => match &answer.reply {
                Reply::Error(_) => Ok(Look::AsItIs),
                Reply::Result(body) => self.result(guard, recent, &answer, body),
            },
        };
        look.unwrap_or_else(|unreadable| self.withheld(guard, unreadable))
    }

    /// Where bad tools are left out, whatever may hold them is not passed on either.
    fn withheld(&self, guard: &Guard, Unreadable { id, asks }: Unreadable) -> Look {
        if !guard.leaves_out() {
            return Look::AsItIs;
        }
        tracing::warn!(
            upstream = guard.name,
            "a message that may hold tools or a form, and that readers may take for different things, is not passed on"
        );
        if asks {
            let error = |id| jsonrpc::error(Some(id), code::INVALID_PARAMS, NOT_ASKED, None);
            return Look::gone(id.as_ref().map(error).into_iter().collect());
        }
        // Whose id cannot be told is the answer of the one request whose response it comes in; some servers write the id in the
        // other JSON type (C17).
        let named = self.asked.ids().find(|asked| id.as_ref() == Some(*asked));
        let only = || self.asked.ids().next().filter(|_| self.asked.ids().len() == 1);
        match named.or_else(only) {
            Some(asked) => Look::changed(jsonrpc::error(Some(asked), code::INTERNAL_ERROR, WITHHELD, None)),
            None => Look::gone(Vec::new()),
        }
    }

    /// A form that a server puts to its client.
    fn question(&self, guard: &Guard, request: &Request) -> Result<Look, Unreadable> {
        let text = &request.text;
        let Some(params) = request.params.body().filter(|_| request.method == "elicitation/create") else {
            return Ok(Look::AsItIs);
        };
        let twice = |_| Unreadable { id: Some(request.id.clone()), asks: true };
        params.object.get(text, "requestedSchema").map_err(twice)?;
        Ok(match guard.question(self.speaker, request) {
            Ok(()) => Look::AsItIs,
            Err(words) => {
                Look::gone(vec![jsonrpc::error(Some(&request.id), code::INVALID_PARAMS, &words, None)])
            }
        })
    }

    fn result(
        &self,
        guard: &Guard,
        recent: &Recent,
        answer: &Response,
        body: &Body,
    ) -> Result<Look, Unreadable> {
        let (text, result) = (&answer.text, &body.object);
        let id = || answer.id.and_then(|span| Id::accept(text, span));
        let once = |name: &str| result.get(text, name).map_err(|_| Unreadable { id: id(), asks: false });
        if once("inputRequests")?.is_some()
            && let Err(words) = guard.inputs(text, result)
        {
            let error = jsonrpc::error(id().as_ref(), code::INTERNAL_ERROR, &words, None);
            return Ok(Look::changed(error));
        }
        let asked = self.asked.by(answer.id.map(|span| span.of(text)));
        if let Some(What::Checked(request)) = asked
            && let Err(denied) = guard.result(self.scope, request, text, result)
        {
            let info = body.meta.as_ref().and_then(|meta| meta.first(text, meta::SERVER_INFO));
            let info = info.map(|span| text.slice(span.range()));
            return Ok(Look::changed(instead(self.speaker, &request.id, denied, info.as_ref())));
        }
        let tools = once("tools")?;
        let is_list = |span: &Span| Kind::of(span.of(text)) == Some(Kind::Array);
        if matches!(asked, Some(What::List { .. })) && !tools.as_ref().is_some_and(is_list) {
            // Readers that take something else for a list would take it unjudged.
            return Err(Unreadable { id: id(), asks: false });
        }
        let Some(tools) = tools.filter(is_list) else { return Ok(Look::AsItIs) };
        let more = goes_on(text, result);
        if let Some(id) = answer.id
            && FORM.find(text).is_none()
            && STRUCTURED.find(text).is_none()
        {
            recent.keep(text, Places { id, tools, more });
        }
        Ok(self.list(guard, text, answer.id, tools, more))
    }

    fn list(&self, guard: &Guard, text: &Bytes, id: Option<Span>, tools: Span, more: bool) -> Look {
        let page = self.asked.page(id.map(|span| span.of(text)), more);
        let sift = guard.list(self.scope, self.speaker, text, tools, page);
        let mut splice = Splice::new(text);
        edit::list(&mut splice, text, &sift);
        if splice.is_empty() { Look::AsItIs } else { Look::changed(splice.finish()) }
    }
}

/// What takes the place of a result, or of a call, that is denied; with what its server calls itself, where that is known.
pub(super) fn instead(speaker: Speaker, id: &Id, denied: Denied, server_info: Option<&Bytes>) -> Payload {
    match (denied, speaker) {
        (Denied::Tool(words), _) => jsonrpc::error(Some(id), code::INVALID_PARAMS, &words, None).into(),
        (Denied::Value(words), Speaker::Modern) => result::tool_error(id, &words, server_info),
        (Denied::Value(words), Speaker::Legacy(_)) => legacy_client::result::tool_error(id, &words),
    }
}

/// Whether a letter of a name may be spelt by an escape. No serialiser writes letters so.
fn spells(bytes: &[u8]) -> bool {
    ESCAPE.find_iter(bytes).any(|at| matches!(bytes.get(at + 4), Some(b'4'..=b'7')))
}

/// The items of an array; `None` if it is none, to the last byte.
pub(super) fn items(text: &[u8]) -> Option<Vec<Span>> {
    let mut items = Vec::new();
    let mut cursor = Cursor::new(text, UNBOUNDED).ok()?;
    let read = cursor.array(|cursor| {
        items.push(cursor.skip()?);
        Ok(())
    });
    read.and_then(|_| cursor.end()).ok().map(|()| items)
}
