//! Taking a message apart.
//!
//! Owns the one pass over a text that finds every member anything is decided by (`id`, `method`, `params` with its
//! `_meta`, `result` with its `_meta`, `error`) and the refusal of duplicates among them.

use super::{
    Body, Fault, Id, Malformed, Message, Notification, Params, Reply, Request, Response, RpcError, code,
    string,
};
use crate::wire::json::{Cursor, Limits, Object, ScanError, Span};
use bytes::Bytes;

/// Takes one message apart.
pub fn parse(text: Bytes, limits: Limits) -> Result<Message, Malformed> {
    let mut found = Found::default();
    let top = match scan(&text, limits, &mut found) {
        Ok(top) => top,
        Err(fault) => {
            let bound = matches!(&fault, Fault::Scan(scan) if Fault::Scan(*scan).code() != code::PARSE_ERROR);
            let id = if bound { find_id(&text) } else { None };
            return Err(Malformed { fault, id });
        }
    };
    let id = top.get(&text, "id");
    found
        .build(&text, top)
        .map_err(|fault| Malformed { fault, id: id.ok().flatten().and_then(|span| Id::accept(&text, span)) })
}

/// The id in a text that is not taken any further: too long, too deep, or cut off. Nested values before it are
/// passed over whatever their depth; a second `id` makes it unknown.
pub fn find_id(prefix: &Bytes) -> Option<Id> {
    let mut ids = Vec::new();
    let limits = Limits { nesting: usize::MAX, members: usize::MAX };
    let mut cursor = Cursor::on_prefix(prefix, limits);
    // The end of a cut text is an error like any other; what was found before it counts.
    let _ = cursor.object(|cursor, member| {
        let value = cursor.skip()?;
        if member.is(prefix, "id") && ids.len() < 2 {
            ids.push(value);
        }
        Ok(value)
    });
    match ids[..] {
        // A value that touches the cut may be half a number.
        [one] if one.end < prefix.len() as u32 => Id::accept(prefix, one),
        _ => None,
    }
}

#[derive(Default)]
struct Found {
    params: Option<Body>,
    result: Option<Body>,
    error: Option<Object>,
}

fn scan(text: &Bytes, limits: Limits, found: &mut Found) -> Result<Object, Fault> {
    let mut cursor = Cursor::new(text, limits)?;
    match cursor.peek() {
        Some(b'[') => {
            // A batch is refused as such only if it is JSON at all.
            cursor.skip()?;
            cursor.end()?;
            return Err(Fault::Batch);
        }
        Some(b'{') | None => {}
        Some(_) => {
            cursor.skip()?;
            cursor.end()?;
            return Err(Fault::Shape("the message is not a JSON object"));
        }
    }
    let top = cursor.object(|cursor, member| {
        if cursor.peek() != Some(b'{') {
            return cursor.skip();
        }
        if member.is(text, "params") {
            return keep(&mut found.params, body(cursor)?, |body| body.object.span);
        }
        if member.is(text, "result") {
            return keep(&mut found.result, body(cursor)?, |body| body.object.span);
        }
        if member.is(text, "error") {
            return keep(&mut found.error, cursor.object(|cursor, _| cursor.skip())?, |object| object.span);
        }
        cursor.skip()
    })?;
    cursor.end()?;
    Ok(top)
}

fn keep<T>(slot: &mut Option<T>, value: T, span: impl Fn(&T) -> Span) -> Result<Span, ScanError> {
    Ok(span(slot.insert(value)))
}

fn body(cursor: &mut Cursor<'_>) -> Result<Body, ScanError> {
    let text = cursor.text();
    let mut meta = None;
    let object = cursor.object(|cursor, member| {
        if member.is(text, "_meta") && cursor.peek() == Some(b'{') {
            let object = cursor.object(|cursor, _| cursor.skip())?;
            let span = object.span;
            meta = Some(object);
            return Ok(span);
        }
        cursor.skip()
    })?;
    Ok(Body { object, meta })
}

impl Found {
    fn build(self, text: &Bytes, top: Object) -> Result<Message, Fault> {
        match top.get(text, "jsonrpc")?.map(|span| span.of(text)) {
            Some(br#""2.0""#) => {}
            _ => return Err(Fault::Shape("member \"jsonrpc\" must be \"2.0\"")),
        }
        let id_span = top.get(text, "id")?;
        let method = top.get(text, "method")?;
        let params = top.get(text, "params")?;
        let result = top.get(text, "result")?;
        let error = top.get(text, "error")?;
        let Some(method) = method else {
            return self.response(text, top, id_span, result, error);
        };
        if result.is_some() || error.is_some() {
            return Err(Fault::Shape("a message with \"method\" cannot have \"result\" or \"error\""));
        }
        let method =
            string(text, method).ok_or(Fault::Shape("member \"method\" must be a string"))?.into_owned();
        let params = match (params, self.params) {
            (None, _) => Params::Absent,
            (Some(span), _) if span.of(text) == b"null" => Params::Null(span),
            (Some(_), Some(body)) => {
                check_meta(text, &body)?;
                Params::Object(body)
            }
            (Some(_), None) => return Err(Fault::Shape("member \"params\" must be an object")),
        };
        let text = text.clone();
        let Some(id_span) = id_span else {
            return Ok(Message::Notification(Notification { text, top, method, params }));
        };
        let id =
            Id::accept(&text, id_span).ok_or(Fault::Shape("member \"id\" must be a string or an integer"))?;
        Ok(Message::Request(Request { text, top, id, id_span, method, params }))
    }

    fn response(
        self,
        text: &Bytes,
        top: Object,
        id: Option<Span>,
        result: Option<Span>,
        error: Option<Span>,
    ) -> Result<Message, Fault> {
        // Serialisers that write every member put `null` beside the one that counts.
        let null = |span: &Span| span.of(text) == b"null";
        let (result, error) = match (result, error) {
            (Some(result), Some(error)) if null(&error) => (Some(result), None),
            (Some(result), Some(error)) if null(&result) => (None, Some(error)),
            both => both,
        };
        let reply = match (result, error) {
            (Some(_), None) => {
                let body = self.result.ok_or(Fault::Shape("member \"result\" must be an object"))?;
                if body.object.get(text, "_meta")?.is_some_and(|meta| !null(&meta)) {
                    check_meta(text, &body)?;
                }
                Reply::Result(body)
            }
            (None, Some(_)) => {
                let object = self.error.ok_or(Fault::Shape("member \"error\" must be an object"))?;
                Reply::Error(RpcError::read(text, &object)?)
            }
            (Some(_), Some(_)) => {
                return Err(Fault::Shape("an answer cannot have both \"result\" and \"error\""));
            }
            (None, None) => {
                return Err(Fault::Shape("the message has neither \"method\" nor \"result\" nor \"error\""));
            }
        };
        let id = match id {
            Some(span) if span.of(text) == b"null" => None,
            Some(span) => {
                Id::accept(text, span).ok_or(Fault::Shape("member \"id\" must be a string or an integer"))?;
                Some(span)
            }
            None => None,
        };
        Ok(Message::Response(Response { text: text.clone(), top, id, reply }))
    }
}

/// `_meta` may occur once and is an object (spec basic/index, `_meta`).
fn check_meta(text: &Bytes, body: &Body) -> Result<(), Fault> {
    match (body.object.get(text, "_meta")?, &body.meta) {
        (Some(_), None) => Err(Fault::Shape("member \"_meta\" must be an object")),
        (None, _) | (Some(_), Some(_)) => Ok(()),
    }
}
