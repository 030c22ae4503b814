//! Messages put together from odd pieces: whatever comes out is one JSON text without what must not pass, and what passes in
//! pieces is what is held.
//!
//! The pieces are drawn by a generator with a fixed seed, so that a failure comes back.
#![allow(clippy::unwrap_used, reason = "tests")]

use super::output::Output;
use super::testing::{able, id};
use super::{discovered, envelope, error, initialize, mirror, notify, result, tools};
use crate::schema::Speaker;
use crate::schema::sift::Sift;
use crate::translate::flow::{Flow, Form, Plan};
use crate::wire::json::{Cursor, Limits, Object, Span, UNBOUNDED, once};
use crate::wire::jsonrpc::{self, Id, Message, Reply};
use crate::wire::meta;
use crate::wire::method::Method;
use crate::wire::payload::Payload;
use crate::wire::version::LegacyRevision;
use bytes::Bytes;

const LIMITS: Limits = Limits { nesting: 32, members: 64 };
const TURNS: usize = 12_000;
const SPACES: [&str; 4] = ["", "", " ", "\r\n\t"];
const REVISIONS: [LegacyRevision; 4] = [
    LegacyRevision::V2024_11_05,
    LegacyRevision::V2025_03_26,
    LegacyRevision::V2025_06_18,
    LegacyRevision::V2025_11_25,
];
const METHODS: [&str; 9] = [
    "tools/call",
    "tools/call",
    "prompts/get",
    "resources/read",
    "tools/list",
    "prompts/list",
    "completion/complete",
    "acme/run",
    "initialize",
];
const NAMES: [&str; 36] = [
    "content",
    "content",
    "contents",
    "messages",
    "tools",
    "prompts",
    "completion",
    "structuredContent",
    "structured\\u0043ontent",
    "resultType",
    "result\\u0054ype",
    "ttlMs",
    "cacheScope",
    "nextCursor",
    "isError",
    "inputRequests",
    "requestState",
    "_meta",
    "_m\\u0065ta",
    "\\ud800",
    "x",
    "name",
    "arguments",
    "uri",
    "task",
    "protocolVersion",
    "clientInfo",
    "capabilities",
    "supportedVersions",
    "instructions",
    "progressToken",
    "progress",
    "notifications",
    "data",
    "type",
    "requiredCapabilities",
];
const VALUES: [&str; 38] = [
    "null",
    "true",
    "0",
    "-1e400",
    r#""""#,
    r#""complete""#,
    r#""complete""#,
    r#""\u0063omplete""#,
    r#""input_required""#,
    r#""2025-06-18""#,
    r#""\ud800""#,
    "7",
    "{}",
    "[]",
    "[ [ ] ]",
    r#"["2026-07-28"]"#,
    r#"{"a":1,"a":2}"#,
    r#"{"io.modelcontextprotocol/serverInfo":{"name":"s"},"k":1}"#,
    r#"{ "io.modelcontextprotocol\/serverInfo" : [ ] , "io.modelcontextprotocol/related-task":1 }"#,
    r#"{"io.modelcontextprotocol/protocolVersion":"9","progressToken":"t","traceparent":"x"}"#,
    r#"[{"type":"text","text":"t"}]"#,
    r#"[ {"text":"t", "t\u0079pe":"text"} , {"type":"audio","mimeType":"a/b","data":"QQ=="},5 ]"#,
    r#"[{"type":"audio","data":"QQ==","data":"QQ=="},{"type":"resource_link","uri":"u","name":"\ud800"}]"#,
    r#"[{"mimeType":1,"data":"","resource":{},"mimeType":2,"type":"audio","resource":5}]"#,
    r#"[{"content":{"type":"audio","data":"QQ=="}},{"content":[{"type":"audio","data":""}]}]"#,
    r##"[{"name":"t","inputSchema":{"type":"object","properties":{"a":{"type":"integer","x-mcp-header":"A"}}},"outputSchema":{"items":{"$ref":"#"},"$schema":"s"}}]"##,
    r#"[{"execution":{},"name":"t","inputSchema":{},"outputSchema":true},{"name":"t","inputSchema":{}},null]"#,
    r##"[{"inputSchema":{"$schema":1},"outputSchema":{"$schema":"a","$schema":"b","$ref":"\u0023/a"},"execution":1,"name":"u"}]"##,
    r##"[{"name":"v","inputSchema":{"type":"object"},"outputSchema":{"anyOf":[{"$id":"x","$ref":"#"},{"$ref":"#/b","const":{"$ref":"#"}}]}}]"##,
    r##"[{"name":"w","inputSchema":{"type":"object","x-mcp-header":"A"}},{"name":"w","inputSchema":{"type":"object"},"outputSchema":null,"execution":null}]"##,
    r##"[{"name":"y","inputSchema":{"type":"object"},"outputSchema":{"$schema":"2019-09","$recursiveRef":"#","items":[{"$recursiveRef":"#","$ref":"#"}]}}]"##,
    r#"{"values":[]}"#,
    r#"{"name":"c","version":"1","title":5,"icons":[{"src":"i"}]}"#,
    r#"{"elicitation":{"form":{},"url":5},"roots":{"listChanged":true},"tasks":{},"x":1}"#,
    r#"{"tools":{"listChanged":"x"},"extensions":{"io.modelcontextprotocol/ui":{}},"experimental":[]}"#,
    r#"{"uri":"u"}"#,
    r#"{"toolsListChanged":true,"resourceSubscriptions":["a",5]}"#,
    r#"{"requiredCapabilities":{"sampling":{},"elicitation":{"url":{}}}}"#,
];

/// Xorshift: enough to mix pieces.
struct Draw(u64);

impl Draw {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % most
    }

    fn of<T: Copy>(&mut self, pieces: &[T]) -> T {
        pieces[self.below(pieces.len())]
    }

    fn object(&mut self) -> String {
        let mut members = Vec::new();
        for _ in 0..self.below(6) {
            let parts = [self.of(&SPACES), self.of(&SPACES), self.of(&SPACES), self.of(&SPACES)];
            let (name, value) = (self.of(&NAMES), self.of(&VALUES));
            members.push(format!("{}\"{name}\"{}:{}{value}{}", parts[0], parts[1], parts[2], parts[3]));
        }
        format!("{{{}}}", members.join(","))
    }

    fn message(&mut self, kind: &str, error: &str) -> Option<Message> {
        let object = self.object();
        let text = match kind {
            "result" => format!(r#"{{"jsonrpc":"2.0","id":7,"result":{object}{error}}}"#),
            "error" => {
                let code = self.of(&["-32602", "-32020", "-32021", "-32022", "-32042", "-32002", "5"]);
                let value = self.of(&VALUES);
                format!(
                    r#"{{"jsonrpc":"2.0","id":7,"error":{{"code":{code},"message":{value},"data":{object}}}}}"#
                )
            }
            "request" => {
                let method = self.of(&METHODS);
                format!(r#"{{"jsonrpc":"2.0","id":"c","method":"{method}","params":{object}}}"#)
            }
            method => format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{object}}}"#),
        };
        jsonrpc::parse(Bytes::from(text), LIMITS).ok()
    }
}

/// One JSON text; its outer object.
#[track_caller]
fn whole(payload: &Payload) -> (Bytes, Object) {
    let text = payload.to_bytes();
    let mut cursor = Cursor::new(&text, UNBOUNDED).unwrap();
    let read = cursor.object(|cursor, _| cursor.skip()).and_then(|object| cursor.end().map(|()| object));
    let object = read.unwrap_or_else(|fault| panic!("{fault}: {}", String::from_utf8_lossy(&text)));
    (text, object)
}

#[track_caller]
fn member(text: &Bytes, object: &Object, name: &str) -> Option<Object> {
    let span = object.first(text, name)?;
    crate::wire::json::object(text, span, UNBOUNDED)
}

/// Nothing of the modern era, and the caller's id.
#[track_caller]
fn is_legacy(payload: &Payload) {
    let (text, top) = whole(payload);
    let shown = String::from_utf8_lossy(&text);
    if let Some(id) = top.first(&text, "id") {
        assert!([&b"\"c\""[..]].contains(&id.of(&text)), "{shown}");
    }
    for body in ["result", "params"].iter().filter_map(|name| member(&text, &top, name)) {
        for word in result::VOCABULARY {
            assert!(
                top.first(&text, "params").is_some() || body.first(&text, word).is_none(),
                "{word}: {shown}"
            );
        }
        let Some(meta) = member(&text, &body, "_meta") else { continue };
        for word in meta::MODERN_ONLY.iter().chain([&meta::RELATED_TASK]) {
            assert!(meta.first(&text, word).is_none(), "{word}: {shown}");
        }
    }
}

fn caller() -> Id {
    id()
}

#[test]
fn results_come_down_without_modern_words_held_or_in_pieces() {
    let mut draw = Draw(0x9e37_79b9_7f4a_7c15);
    let (mut passed, mut complete) = (0, 0);
    for _ in 0..TURNS * 4 {
        let error = draw.of(&["", ",\"error\":null"]);
        let Some(Message::Response(response)) = draw.message("result", error) else { continue };
        let Reply::Result(body) = &response.reply else { continue };
        let _ = discovered::read(&response, body, LIMITS);
        let method = Method::of(draw.of(&METHODS));
        let form = Form {
            revision: draw.of(&REVISIONS),
            output: draw.of(&[Output::Unstated, Output::Object, Output::Wrapped]),
            convert: draw.below(2) == 0,
        };
        let held = match (result::kind(&response, body, method), method) {
            (result::Kind::Complete, Method::ToolsList) => {
                let sift = Sift::of_result(&response.text, &body.object, Speaker::Modern);
                tools::list(&response, body, &caller(), form.revision, &sift)
                    .map(|listed| listed.message)
                    .ok()
            }
            (result::Kind::Complete, _) => {
                let Form { revision, output, convert } = form;
                result::to_legacy(&response, body, method, &caller(), revision, output, convert).ok()
            }
            (result::Kind::InputRequired | result::Kind::Unsupported(_), _) => None,
        };
        if let Some(held) = &held {
            is_legacy(held);
            complete += 1;
        }
        let Some(plan) = Plan::to_legacy_client(method, form, 7, caller(), LIMITS, 4096) else { continue };
        let mut flow = Flow::new(plan);
        let (first, second) = {
            let at = draw.below(response.text.len());
            (response.text.slice(..at), response.text.slice(at..))
        };
        let fed = flow.feed(&first).and_then(|()| flow.feed(&second));
        let underway = flow.is_underway();
        if fed.and_then(|()| flow.finish()).is_err() {
            assert!(held.is_none() || !underway, "{:?}", response.text);
            continue;
        }
        let Some(held) = held.filter(|_| underway) else { continue };
        let out: Payload = std::iter::from_fn(|| flow.take()).collect();
        is_legacy(&out);
        passed += 1;
        let (text, _) = whole(&held);
        // Without the text that only a result which is held gets (B6.4).
        let value = once(&body.object, &response.text, "structuredContent");
        if value.is_none_or(|span| span.of(&response.text).starts_with(b"{")) {
            assert_eq!(out.to_bytes(), text, "{:?}", response.text);
        }
    }
    assert!(passed > 2000 && complete > 5000, "{passed} {complete}");
}

#[test]
fn errors_and_notifications_come_down_whole() {
    let mut draw = Draw(0x2545_f491_4f6c_dd1d);
    let mut seen = notify::Progress::default();
    for _ in 0..TURNS {
        let (Some(Message::Request(asked)), Some(Message::Response(response))) =
            (draw.message("request", ""), draw.message("error", ""))
        else {
            continue;
        };
        let Reply::Error(error) = &response.reply else { continue };
        let not_found = draw.below(2) == 0;
        let method = Method::of(&asked.method);
        match error::to_legacy(&response, error, &asked, method, not_found, LIMITS) {
            error::Answered::Error(message) | error::Answered::Result(message) => is_legacy(&message),
        }
        let method = draw.of(&[
            "notifications/progress",
            "notifications/message",
            "notifications/resources/updated",
            "notifications/subscriptions/acknowledged",
        ]);
        let Some(Message::Notification(told)) = draw.message(method, "") else { continue };
        is_legacy(&notify::stripped(&told));
        let _ = (notify::acknowledged(&told, LIMITS), notify::subscription_id(&told));
        if let Some((change, message)) = notify::change(&told) {
            is_legacy(&message);
            is_legacy(&notify::announce(&change));
        }
        if let Some(message) = seen.to_legacy(&told, 7, b"\"t\"") {
            is_legacy(&message);
        }
    }
}

#[test]
fn requests_go_up_in_one_envelope() {
    let mut draw = Draw(0xd1b5_4a32_d192_ed03);
    let client = able();
    let round = envelope::Round {
        responses: Some(Bytes::from_static(b"{\"a\":{}}")),
        state: Some(Bytes::from_static(b"\"s\"")),
    };
    for turn in 0..TURNS {
        let Some(Message::Request(asked)) = draw.message("request", "") else { continue };
        if let Ok(read) = initialize::read(&asked, LIMITS) {
            let info = crate::wire::json::object(&read.info, Span::new(0, read.info.len()), UNBOUNDED);
            assert!(once(&info.unwrap(), &read.info, "name").is_some());
        }
        let method = Method::of(&asked.method);
        let _ = mirror::name(&asked, method);
        let again = method.can_ask() && turn % 2 == 0;
        let brought = if again { round.clone() } else { envelope::Round::default() };
        let out = envelope::request(&asked, method, &client, None, 77, &brought);
        let (text, top) = whole(&out);
        let shown = String::from_utf8_lossy(&text);
        assert_eq!(once(&top, &text, "id").map(|span| span.of(&text)), Some(&b"77"[..]), "{shown}");
        let params = member(&text, &top, "params").unwrap();
        let meta =
            once(&params, &text, "_meta").and_then(|span| crate::wire::json::object(&text, span, UNBOUNDED));
        let meta = meta.unwrap_or_else(|| panic!("{shown}"));
        let version = once(&meta, &text, meta::PROTOCOL_VERSION).map(|span| span.of(&text));
        assert_eq!(version, Some(&b"\"2026-07-28\""[..]), "{shown}");
        for name in [meta::CLIENT_INFO, meta::CLIENT_CAPABILITIES] {
            assert!(once(&meta, &text, name).is_some(), "{shown}");
        }
        if method.can_ask() {
            assert!(params.first(&text, "task").is_none(), "{shown}");
            assert_eq!(params.get(&text, "requestState").unwrap().is_some(), again, "{shown}");
        }
    }
}
