//! The answer that asks a modern client for input, and the fingerprint that ties its retry to the first request.
//!
//! Rules: B1.1, B1.2; vectors D33, D36. What `requestState` holds and who may present it is for those who keep the
//! parked calls.

use crate::wire::json::{Cursor, Kind, Limits, Member, Span, compact, quote_into};
use crate::wire::jsonrpc::{Id, Request};
use crate::wire::payload::Payload;
use bytes::Bytes;
use sha2::{Digest, Sha256};

/// An `InputRequiredResult` under the client's id. `server_info` is the raw JSON that the server gave at `initialize`.
pub fn message<'a>(
    id: &Id,
    entries: impl Iterator<Item = (&'a str, &'a Payload)>,
    state: &str,
    server_info: &Bytes,
) -> Payload {
    let mut out = Payload::new();
    let mut glue = String::from("{\"jsonrpc\":\"2.0\",\"id\":");
    glue.push_str(&String::from_utf8_lossy(id.raw()));
    glue.push_str(",\"result\":{\"resultType\":\"input_required\",\"inputRequests\":{");
    for (at, (key, entry)) in entries.enumerate() {
        if at > 0 {
            glue.push(',');
        }
        quote_into(&mut glue, key);
        glue.push(':');
        out.push(std::mem::take(&mut glue));
        entry.parts().iter().for_each(|part| out.push(part.clone()));
    }
    glue.push_str("},\"requestState\":");
    quote_into(&mut glue, state);
    glue.push_str(",\"_meta\":{");
    super::result::push_server_info(&mut glue, server_info);
    glue.push_str("}}}");
    out.push(glue);
    out
}

/// SHA-256 of what the request asks for: its method and params, without what differs between the rounds of one call.
/// White space and the order of members do not count, since a client may write its retry anew; every other byte does.
pub fn digest(request: &Request) -> [u8; 32] {
    let mut hash = Sha256::new();
    piece(&mut hash, request.method.as_bytes());
    let text = &request.text;
    if let Some(body) = request.params.body() {
        let counts = |member: &&Member| {
            let name = member.name(text);
            !matches!(name.as_deref(), Some("_meta" | "inputResponses" | "requestState"))
        };
        members(&mut hash, text, body.object.members.iter().filter(counts).copied().collect(), DEPTH);
    }
    hash.finalize().into()
}

/// Objects nested deeper, or larger, count as they are written: nobody's tool takes such arguments, and the work stays
/// in proportion to the message.
const DEPTH: usize = 16;
const MEMBERS: Limits = Limits { nesting: usize::MAX, members: 1024 };

/// With its length first, so that no two lists of pieces read alike.
fn piece(hash: &mut Sha256, bytes: &[u8]) {
    hash.update((bytes.len() as u64).to_be_bytes());
    hash.update(bytes);
}

fn members(hash: &mut Sha256, text: &[u8], mut members: Vec<Member>, depth: usize) {
    // Of equal names the order counts: which of them a server takes may depend on it.
    members.sort_by_cached_key(|member| name(text, member));
    hash.update(b"{");
    hash.update((members.len() as u64).to_be_bytes());
    for member in &members {
        piece(hash, &name(text, member));
        value(hash, text, member.value, depth);
    }
}

/// A name with half a surrogate pair has no text; it counts as it is written, and as no other name.
fn name(text: &[u8], member: &Member) -> Vec<u8> {
    let (tag, name) = match member.name(text) {
        Some(name) => (b't', name.into_owned().into_bytes()),
        None => (b'r', member.key.of(text).to_vec()),
    };
    [&[tag], name.as_slice()].concat()
}

fn value(hash: &mut Sha256, text: &[u8], span: Span, depth: usize) {
    let raw = span.of(text);
    let inner = depth.checked_sub(1);
    match (Kind::of(raw), inner) {
        (Some(Kind::Object), Some(depth)) => {
            if let Ok(object) = Cursor::on_prefix(raw, MEMBERS).object(|cursor, _| cursor.skip()) {
                members(hash, raw, object.members.to_vec(), depth);
                return;
            }
        }
        (Some(Kind::Array), Some(depth)) => {
            hash.update(b"[");
            let mut count: u64 = 0;
            // The text was scanned before, so it reads to its end.
            let _ = Cursor::on_prefix(raw, MEMBERS).array(|cursor| {
                value(hash, raw, cursor.skip()?, depth);
                count += 1;
                Ok(())
            });
            hash.update(count.to_be_bytes());
            return;
        }
        _ => {}
    }
    hash.update(b"v");
    piece(hash, &compact(raw));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::super::question_tests::{form, request, roots, text};
    use super::*;

    #[test]
    fn d33_the_answer_that_asks() {
        let (form, roots) = (form(), roots());
        let id = request(r#"{"jsonrpc":"2.0","id":"\u0063","method":"m"}"#).id;
        let info = Bytes::from_static(br#"{"name":"s","version":"1"}"#);
        let entries = [("s1", form.entry()), ("s2", roots.entry())];
        assert_eq!(
            text(&message(&id, entries.into_iter(), "st", &info)),
            format!(
                r#"{{"jsonrpc":"2.0","id":"\u0063","result":{{"resultType":"input_required","inputRequests":{{"s1":{},"s2":{{"method":"roots/list"}}}},"requestState":"st","_meta":{{"io.modelcontextprotocol/serverInfo":{{"name":"s","version":"1"}}}}}}}}"#,
                text(form.entry()),
            )
        );
    }

    fn of(method: &str, params: &str) -> [u8; 32] {
        digest(&request(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)))
    }

    #[test]
    fn b1_2_a_retry_has_the_digest_of_its_request() {
        let first = of(
            "tools/call",
            r#"{"_meta":{"a":1},"name":"t","arguments":{"a":[1,{"b":"c d","e":null}],"f":1e400}}"#,
        );
        for same in [
            r#"{"name":"t","arguments":{"a":[1,{"b":"c d","e":null}],"f":1e400}}"#,
            r#"{"arguments" : { "f":1e400,"a": [ 1 , {"e":null,"b":"c d"} ] },"requestState":"s","n\u0061me":"t","inputResponses":{"s1":{}},"_meta":{"b":2}}"#,
        ] {
            assert_eq!(of("tools/call", same), first, "{same}");
        }
    }

    #[test]
    fn d36_another_request_has_another_digest() {
        let all = [
            ("tools/call", r#"{"name":"t","arguments":{"a":[1,{"b":"c d"}]}}"#),
            ("prompts/get", r#"{"name":"t","arguments":{"a":[1,{"b":"c d"}]}}"#),
            ("tools/call", r#"{"name":"u","arguments":{"a":[1,{"b":"c d"}]}}"#),
            ("tools/call", r#"{"name":"t","arguments":{"a":[1,{"b":"cd"}]}}"#),
            ("tools/call", r#"{"name":"t","arguments":{"a":[1,[{"b":"c d"}]]}}"#),
            ("tools/call", r#"{"name":"t","arguments":{"a":[{"b":"c d"},1]}}"#),
            ("tools/call", r#"{"name":"t","arguments":{"a":[1.0,{"b":"c d"}]}}"#),
            ("tools/call", r#"{"name":"t","arguments":{"a":["1",{"b":"c d"}]}}"#),
            ("tools/call", r#"{"name":"t","arguments":{"a":[1,{"b":"c d"}],"_meta":{}}}"#),
            ("tools/call", r#"{"name":"t","arguments":{"a":[1,{"b":"c d"}],"requestState":"s"}}"#),
            ("tools/call", r#"{"name":"t"}"#),
            ("tools/call", r#"{"name":"t","arguments":{}}"#),
            ("tools/call", r#"{"name":"t","arguments":[]}"#),
            ("tools/call", r#"{"name":"t","arguments":{"a":1,"a":2}}"#),
            ("tools/call", r#"{"name":"t","arguments":{"a":2,"a":1}}"#),
            ("tools/call", r#"{"name":"t","arguments":{"\ud800":1}}"#),
            ("tools/call", r#"{"name":"t","arguments":{"\\ud800":1}}"#),
            ("tools/call", "{}"),
        ];
        let digests: std::collections::HashSet<_> =
            all.iter().map(|(method, params)| of(method, params)).collect();
        assert_eq!(digests.len(), all.len());
    }

    #[test]
    fn b1_2_what_is_deep_or_large_counts_as_it_is_written() {
        let deep = |inner: &str| {
            let open = r#"{"a":"#.repeat(30);
            of("m", &format!(r#"{{"x":{open}{inner}{}}}"#, "}".repeat(30)))
        };
        assert_eq!(deep(r#"{"b":1,"c":2}"#), deep(r#"{"b": 1, "c": 2}"#));
        assert_ne!(deep(r#"{"b":1,"c":2}"#), deep(r#"{"c":2,"b":1}"#));
        let large = |text: &str| of("m", &format!(r#"{{"x":{{{}}}}}"#, vec![text; 2000].join(",")));
        assert_eq!(large(r#""b":1"#), large(r#" "b" : 1"#));
        assert_ne!(large(r#""b":1"#), large(r#""b":2"#));
    }
}
