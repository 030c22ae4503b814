//! What a legacy server asks its client, as an entry of a modern `inputRequests`.
//!
//! Owns: telling questions from other requests, which capability each needs, and its modern form: legacy vocabulary
//! is taken out, what a modern client could not read is malformed, everything else passes as it was written. The
//! answers stand in `answer`. Rules: A1.12-A1.14, A8.1-A8.3, A8.5, A8.8-A8.10, A11.9, B4.1; vectors D27, D29, D33,
//! D43.

use super::capabilities::Capabilities;
use super::form;
use crate::wire::json::{self, Cursor, Duplicate, Limits, Object, Span, Splice, object};
use crate::wire::jsonrpc::{Id, Params, Reply, Request, Response, string};
use crate::wire::payload::Payload;
use bytes::Bytes;

/// What a legacy server may ask of its client in the middle of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Elicitation,
    UrlElicitation,
    Sampling,
    Roots,
}

impl Kind {
    /// By the method alone, which does not tell the modes of elicitation apart. `None` for what is no question.
    pub fn of(method: &str) -> Option<Self> {
        Some(match method {
            "elicitation/create" => Kind::Elicitation,
            "sampling/createMessage" => Kind::Sampling,
            "roots/list" => Kind::Roots,
            _ => return None,
        })
    }

    pub fn name(self) -> &'static str {
        match self {
            Kind::Elicitation | Kind::UrlElicitation => "elicitation",
            Kind::Sampling => "sampling",
            Kind::Roots => "roots",
        }
    }
}

/// The capability that a question needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Need {
    Form,
    Url,
    Sampling,
    SamplingTools,
    Roots,
}

impl Need {
    /// For texts.
    pub fn name(self) -> &'static str {
        match self {
            Need::Form => "elicitation",
            Need::Url => "elicitation.url",
            Need::Sampling => "sampling",
            Need::SamplingTools => "sampling.tools",
            Need::Roots => "roots",
        }
    }

    /// The object for `requiredCapabilities` (A11.9).
    pub fn required(self) -> &'static str {
        match self {
            Need::Form => r#"{"elicitation":{}}"#,
            Need::Url => r#"{"elicitation":{"url":{}}}"#,
            Need::Sampling => r#"{"sampling":{}}"#,
            Need::SamplingTools => r#"{"sampling":{"tools":{}}}"#,
            Need::Roots => r#"{"roots":{}}"#,
        }
    }
}

/// One question of a server.
#[derive(Debug, Clone)]
pub struct Question {
    pub kind: Kind,
    pub need: Need,
    /// The server's own, under which it waits for the answer.
    pub id: Id,
    entry: Payload,
}

/// What a server's request is.
#[derive(Debug, Clone)]
pub enum Asked {
    Ping,
    /// No question of any revision, such as `tasks/get` (A10.16).
    Unknown,
    /// A question that no modern client could read, and what is wrong with it.
    Malformed(&'static str),
    Question(Question),
}

/// One entry of a -32042 error.
#[derive(Debug, Clone)]
pub struct UrlQuestion {
    pub entry: Payload,
    /// What `notifications/elicitation/complete` will name.
    pub elicitation_id: String,
}

impl UrlQuestion {
    /// As a question that the client can be asked. No request of the server stands behind it, so nothing is sent under its id.
    pub fn question(&self) -> Question {
        Question { kind: Kind::UrlElicitation, need: Need::Url, id: Id::number(0), entry: self.entry.clone() }
    }
}

impl Question {
    /// `capabilities` are the session's. Whether they allow the question is for the caller to see to: `need` says what
    /// it takes.
    pub fn of(asked: &Request, capabilities: &Capabilities, limits: Limits) -> Asked {
        let Some(kind) = Kind::of(&asked.method) else {
            return if asked.method == "ping" { Asked::Ping } else { Asked::Unknown };
        };
        let question =
            |kind, need, entry| Asked::Question(Question { kind, need, id: asked.id.clone(), entry });
        if kind == Kind::Roots {
            return question(kind, Need::Roots, Payload::from(ROOTS));
        }
        let Params::Object(body) = &asked.params else {
            return Asked::Malformed("`params` must be an object");
        };
        let (text, params) = (&asked.text, &body.object);
        let read = match kind {
            Kind::Elicitation | Kind::UrlElicitation => elicitation(text, params, limits),
            Kind::Sampling => sampling(text, params, capabilities, limits),
            Kind::Roots => return Asked::Unknown,
        };
        match read {
            Ok((kind, need, entry)) => question(kind, need, entry),
            Err(Fault(what)) => Asked::Malformed(what),
        }
    }

    /// `{"method":..,"params":{..}}`, which keeps no larger text alive.
    pub fn entry(&self) -> &Payload {
        &self.entry
    }

    /// What it takes to keep it, but for a few words.
    pub fn bytes(&self) -> usize {
        self.entry.len() + self.id.raw().len()
    }
}

/// The entries of a -32042 error (B4.1); `None` for one that cannot be read.
pub fn url_required(response: &Response, limits: Limits) -> Option<Vec<UrlQuestion>> {
    let Reply::Error(error) = &response.reply else { return None };
    let text = &response.text;
    let data = object(text, error.data?, limits)?;
    let list = data.get(text, "elicitations").ok()??;
    let mut all = Vec::new();
    for item in items(text, list, limits.members)? {
        let params = object(text, item, limits)?;
        let id = params.get(text, "elicitationId").ok()??;
        let (Kind::UrlElicitation, _, entry) = elicitation(text, &params, limits).ok()? else { return None };
        all.push(UrlQuestion { entry, elicitation_id: string(text, id)?.into_owned() });
    }
    (!all.is_empty()).then_some(all)
}

const ROOTS: &str = r#"{"method":"roots/list"}"#;
const ELICITATION: &str = r#"{"method":"elicitation/create","params":"#;
const SAMPLING: &str = r#"{"method":"sampling/createMessage","params":"#;

/// What is wrong with a question.
struct Fault(&'static str);

impl From<Duplicate> for Fault {
    fn from(_: Duplicate) -> Self {
        Fault("a member that decides what is asked occurs more than once")
    }
}

fn elicitation(text: &Bytes, params: &Object, limits: Limits) -> Result<(Kind, Need, Payload), Fault> {
    if !is(text, params.get(text, "message")?, json::Kind::String) {
        return Err(Fault("`message` must be a string"));
    }
    let mode = present(text, params.get(text, "mode")?);
    let url = match mode.map(|span| string(text, span)) {
        // Left out is form mode (A8.1).
        None => false,
        Some(Some(mode)) if mode == "form" => false,
        Some(Some(mode)) if mode == "url" => true,
        Some(_) => return Err(Fault("`mode` must be \"form\" or \"url\"")),
    };
    let mut edits = Vec::new();
    if url {
        if !is(text, params.get(text, "url")?, json::Kind::String) {
            return Err(Fault("`url` must be a string"));
        }
    } else {
        edits = schema(text, params.get(text, "requestedSchema")?, limits)?;
    }
    let gone =
        |name: &str| matches!(name, "_meta" | "task" | "elicitationId") || name == "mode" && mode.is_none();
    let entry = entry(text, params, ELICITATION, gone, edits);
    Ok(if url { (Kind::UrlElicitation, Need::Url, entry) } else { (Kind::Elicitation, Need::Form, entry) })
}

/// The form that is asked for: an object of properties, and what of them must be written otherwise (`form`). What else a
/// property may be is the client's to judge.
fn schema(text: &Bytes, span: Option<Span>, limits: Limits) -> Result<Vec<(Span, String)>, Fault> {
    const FORM: Fault = Fault("`requestedSchema` must be an object schema with `properties`");
    let schema = span.and_then(|span| object(text, span, limits)).ok_or(FORM)?;
    let kind = schema.get(text, "type")?.and_then(|span| string(text, span));
    let properties =
        schema.get(text, "properties")?.and_then(|span| object(text, span, limits)).ok_or(FORM)?;
    let fits = |name: &str, kind| {
        Ok::<_, Duplicate>(match schema.get(text, name)? {
            None => true,
            some => is(text, some, kind),
        })
    };
    let flat = properties.members.iter().all(|member| is(text, Some(member.value), json::Kind::Object));
    let whole = flat && fits("required", json::Kind::Array)? && fits("$schema", json::Kind::String)?;
    if kind.as_deref() == Some("object") && whole {
        Ok(form::edits(text, &properties, limits))
    } else {
        Err(FORM)
    }
}

/// Optional members of a sampling request, and what each must be where it is there.
const SAMPLING_OPTIONS: [(&str, json::Kind, Fault); 7] = [
    ("systemPrompt", json::Kind::String, Fault("`systemPrompt` must be a string")),
    ("temperature", json::Kind::Number, Fault("`temperature` must be a number")),
    ("stopSequences", json::Kind::Array, Fault("`stopSequences` must be a list")),
    ("metadata", json::Kind::Object, Fault("`metadata` must be an object")),
    ("modelPreferences", json::Kind::Object, Fault("`modelPreferences` must be an object")),
    ("tools", json::Kind::Array, Fault("`tools` must be a list")),
    ("toolChoice", json::Kind::Object, Fault("`toolChoice` must be an object")),
];

fn sampling(
    text: &Bytes,
    params: &Object,
    capabilities: &Capabilities,
    limits: Limits,
) -> Result<(Kind, Need, Payload), Fault> {
    messages(text, params.get(text, "messages")?, limits)?;
    if !params.get(text, "maxTokens")?.is_some_and(|span| is_integer(span.of(text))) {
        return Err(Fault("`maxTokens` must be an integer"));
    }
    let mut tools = false;
    let mut none = Vec::new();
    for (name, kind, fault) in SAMPLING_OPTIONS {
        let Some(span) = params.get(text, name)? else { continue };
        if present(text, Some(span)).is_none() {
            none.push(name);
        } else if !is(text, Some(span), kind) {
            return Err(fault);
        } else {
            tools |= matches!(name, "tools" | "toolChoice");
        }
    }
    let context = present(text, params.get(text, "includeContext")?).map(|span| string(text, span));
    match context.as_ref().map(|context| context.as_deref()) {
        None | Some(Some("none")) => {}
        // Older servers may ask for it of any client; one that did not declare it would not know what to do (A8.10).
        Some(Some("thisServer" | "allServers")) if !capabilities.allows_context() => {
            none.push("includeContext")
        }
        Some(Some("thisServer" | "allServers")) => {}
        Some(_) => return Err(Fault("`includeContext` must be none, thisServer or allServers")),
    }
    if context.is_none() {
        none.push("includeContext");
    }
    let gone = |name: &str| matches!(name, "_meta" | "task") || none.contains(&name);
    let need = if tools { Need::SamplingTools } else { Need::Sampling };
    Ok((Kind::Sampling, need, entry(text, params, SAMPLING, gone, Vec::new())))
}

fn messages(text: &Bytes, span: Option<Span>, limits: Limits) -> Result<(), Fault> {
    const MESSAGES: Fault = Fault("`messages` must be a list of messages");
    let all = span.and_then(|span| items(text, span, usize::MAX)).ok_or(MESSAGES)?;
    for item in all {
        let message = object(text, item, limits).ok_or(MESSAGES)?;
        let role = message.get(text, "role")?.and_then(|span| string(text, span));
        let content = message.get(text, "content")?;
        let holds = is(text, content, json::Kind::Object) || is(text, content, json::Kind::Array);
        if !matches!(role.as_deref(), Some("user" | "assistant")) || !holds {
            return Err(MESSAGES);
        }
    }
    Ok(())
}

/// `params` without what `gone` names and with `edits`, behind `head`.
fn entry(
    text: &Bytes,
    params: &Object,
    head: &'static str,
    gone: impl Fn(&str) -> bool,
    edits: Vec<(Span, String)>,
) -> Payload {
    let mut splice = Splice::new(text);
    edits.into_iter().for_each(|(span, with)| splice.replace(span, with));
    splice.replace(Span { start: 0, end: params.span.start }, head);
    splice.rewrite(params, |member| member.name(text).is_none_or(|name| !gone(&name)), "");
    splice.replace(Span::new(params.span.end as usize, text.len()), "}");
    // Joined, so that a question which waits for minutes does not keep the buffer alive that it came in.
    Payload::from(splice.finish().to_bytes())
}

/// The items of the array at `span`; `None` if it is none or holds more than `most`.
pub(super) fn items(text: &[u8], span: Span, most: usize) -> Option<Vec<Span>> {
    let mut all = Vec::new();
    let mut over = false;
    let mut cursor = Cursor::on_prefix(span.of(text), WHOLE);
    let read = cursor.array(|cursor| {
        let item = cursor.skip()?;
        over |= all.len() == most;
        if !over {
            all.push(Span { start: item.start + span.start, end: item.end + span.start });
        }
        Ok(())
    });
    (read.is_ok() && !over).then_some(all)
}

/// The text was scanned within bounds before.
const WHOLE: Limits = Limits { nesting: usize::MAX, members: usize::MAX };

/// Some serialisers write `null` for what is not there (C32).
pub(super) fn present(text: &[u8], span: Option<Span>) -> Option<Span> {
    span.filter(|span| span.of(text) != b"null")
}

pub(super) fn is(text: &[u8], span: Option<Span>, kind: json::Kind) -> bool {
    span.is_some_and(|span| json::Kind::of(span.of(text)) == Some(kind))
}

/// An integer as JSON Schema has it: `100`, `100.0` and `1e2` are one.
pub(super) fn is_integer(raw: &[u8]) -> bool {
    if json::Kind::of(raw) != Some(json::Kind::Number) {
        return false;
    }
    if !raw.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E')) {
        return true;
    }
    let value = std::str::from_utf8(raw).ok().and_then(|raw| raw.parse::<f64>().ok());
    value.is_some_and(|value| value.is_finite() && value.fract() == 0.0)
}
