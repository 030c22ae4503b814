//! Questions and answers put together from odd pieces: whatever comes out is one JSON text without what must not pass.
//!
//! The pieces are drawn by a generator with a fixed seed, so that a failure comes back.
#![allow(clippy::unwrap_used)]

use super::answer::to_legacy;
use super::capabilities::Capabilities;
use super::input_required::digest;
use super::question::{Asked, Question};
use super::question_tests::{LIMITS, form, request, roots, sampling};
use crate::wire::json::{Cursor, Object, Span};
use crate::wire::payload::Payload;
use crate::wire::version::LegacyRevision::{V2024_11_05, V2025_11_25};
use bytes::Bytes;

const SPACES: [&str; 4] = ["", "", " ", "\r\n\t"];
const NAMES: [&str; 20] = [
    "message",
    "mode",
    "m\\u006fde",
    "url",
    "requestedSchema",
    "task",
    "_meta",
    "elicitationId",
    "messages",
    "maxTokens",
    "includeContext",
    "tools",
    "x",
    "\\ud800",
    "action",
    "content",
    "roots",
    "role",
    "model",
    "resultType",
];
const VALUES: [&str; 22] = [
    r#""m""#,
    r#""url""#,
    r#""form""#,
    r#""\ud800""#,
    r#""user""#,
    r#""accept""#,
    r#""allServers""#,
    "1",
    "-1e400",
    "null",
    "true",
    "{}",
    "[]",
    "[ [ ] ]",
    r#"{"type":"object","properties":{"task":{}}}"#,
    r#"{ "type" : "text", "text" : "a\"" }"#,
    r#"[{"type":"text","text":""},{"type":"audio","data":"a","mimeType":"\ud800"}]"#,
    r#"[{"role":"user","content":{"type":"text","text":"task"}}]"#,
    r#"[{"uri":"file:///a","_meta":{"a":1}},{"_meta":{},"_m\u0065ta":{},"uri":""}]"#,
    r#"{"io.modelcontextprotocol/clientInfo":{},"a":1}"#,
    r#"{"io.modelcontextprotocol/clientInfo":{}}"#,
    r#"{"a":1,"a":2}"#,
];
const TURNS: usize = 12_000;

/// Xorshift: enough to mix pieces.
struct Draw(u64);

impl Draw {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % most
    }

    fn of(&mut self, pieces: &[&'static str]) -> &'static str {
        pieces[self.below(pieces.len())]
    }

    /// `base`, members of an object, with others around them.
    fn object(&mut self, base: &str) -> String {
        let mut members: Vec<String> =
            base.split('&').filter(|member| !member.is_empty()).map(str::to_owned).collect();
        for _ in 0..self.below(4) {
            let member = format!(
                "{}\"{}\"{}:{}{}",
                self.of(&SPACES),
                self.of(&NAMES),
                self.of(&SPACES),
                self.of(&SPACES),
                self.of(&VALUES)
            );
            members.insert(self.below(members.len() + 1), member);
        }
        format!("{{{}{}}}", members.join(","), self.of(&SPACES))
    }
}

/// The one object that the text is.
fn object(payload: &Payload) -> (Bytes, Object) {
    let text = payload.to_bytes();
    let mut cursor = Cursor::new(&text, LIMITS).unwrap();
    let object = cursor.object(|cursor, _| cursor.skip()).unwrap();
    cursor.end().unwrap();
    (text, object)
}

/// The object that is the value of its member `name`.
fn inner((text, outer): (Bytes, Object), name: &str) -> (Bytes, Object) {
    object(&Payload::from(text.slice(outer.first(&text, name).unwrap().range())))
}

#[test]
fn a8_2_a8_8_entries_of_odd_questions() {
    let mut draw = Draw(0x9E37_79B9);
    let bases = [
        ("elicitation/create", r#""message":"m"&"requestedSchema":{"type":"object","properties":{}}"#),
        ("elicitation/create", r#""message":"m"&"mode":"url"&"url":"u"&"elicitationId":"e"&"task":{}"#),
        ("sampling/createMessage", r#""messages":[]&"maxTokens":1&"_meta":{}&"includeContext":"none""#),
    ];
    let mut asked = 0;
    for turn in 0..TURNS {
        let (method, base) = bases[turn % bases.len()];
        let params = draw.object(base);
        let text = format!(r#"{{"params":{params},"jsonrpc":"2.0","id":7,"method":"{method}"}}"#);
        let Ok(crate::wire::jsonrpc::Message::Request(request)) =
            crate::wire::jsonrpc::parse(Bytes::from(text), LIMITS)
        else {
            continue;
        };
        // Digests are taken of any request.
        assert_eq!(digest(&request), digest(&request));
        let Asked::Question(question) = Question::of(&request, &Capabilities::none(), LIMITS) else {
            continue;
        };
        let (text, entry) = inner(object(question.entry()), "params");
        asked += 1;
        for gone in ["task", "_meta"] {
            assert!(entry.first(&text, gone).is_none(), "{params}");
        }
        assert!(
            method == "sampling/createMessage" || entry.first(&text, "elicitationId").is_none(),
            "{params}"
        );
    }
    assert!(asked > TURNS / 4, "{asked}");
}

#[test]
fn a4_15_odd_answers() {
    let mut draw = Draw(0xB529_7A4D);
    let bases = [
        (form(), r#""action":"accept"&"content":{"a":1}&"_meta":{}"#),
        (sampling(), r#""role":"user"&"model":"m"&"content":[{"type":"text","text":"a"}]"#),
        (roots(), r#""roots":[{"uri":"file:///a","_meta":{"a":1}}]&"resultType":1"#),
    ];
    let mut answered = 0;
    for turn in 0..TURNS {
        let (question, base) = &bases[turn % bases.len()];
        let value = draw.object(base);
        let text = Bytes::from(format!("[{value}]"));
        let revision = if draw.below(2) == 0 { V2024_11_05 } else { V2025_11_25 };
        let Ok(answer) = to_legacy(question, Span::new(1, text.len() - 1), &text, revision, LIMITS) else {
            continue;
        };
        let (text, result) = inner(object(&answer.message), "result");
        answered += 1;
        assert!(result.first(&text, "resultType").is_none(), "{value}");
        let meta = result.first(&text, "_meta").map(|span| span.of(&text).to_vec());
        match meta {
            None => {}
            Some(meta) => {
                assert!(question.kind == sampling().kind, "{value}");
                assert!(memchr::memmem::find(&meta, b"clientInfo").is_none(), "{value}");
            }
        }
    }
    assert!(answered > TURNS / 4, "{answered}");
}

#[test]
fn odd_declarations_are_json_in_normal_form() {
    let mut draw = Draw(0x68E3_1DA4);
    for _ in 0..TURNS / 10 {
        let declared = draw.object(r#""elicitation":{"url":{}}&"sampling":{"tools":{ }}"#);
        let of = |declared: &str| {
            let text = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"_meta":{{"io.modelcontextprotocol/clientCapabilities":{declared}}}}}}}"#
            );
            Capabilities::of(&request(&text), LIMITS)
        };
        for revision in [V2024_11_05, V2025_11_25] {
            object(&Payload::from(of(&declared).declared_to(revision)));
        }
        // What is declared declares itself.
        let latest = of(&declared).declared_to(V2025_11_25);
        assert_eq!(of(std::str::from_utf8(&latest).unwrap()), of(&declared), "{declared}");
    }
}
