//! The calls that are measured: what a client sends and what a server answers, in both eras, built once.
//!
//! Owns the texts. Ids have seven digits, so that every answer to one work has the same length and the id can be put
//! into a request in place. Long texts are log lines with an escape every few words, as tools return them.

use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    Legacy,
    Modern,
}

impl Era {
    pub fn path(self) -> &'static str {
        match self {
            Era::Legacy => "/legacy/mcp",
            Era::Modern => "/modern/mcp",
        }
    }
}

/// One kind of call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// The tool's name.
    pub name: &'static str,
    pub title: &'static str,
    pub connections: usize,
    /// Length of the text in the arguments.
    pub arguments: usize,
    /// Length of the text in the result.
    pub result: usize,
    /// Notifications before the result.
    pub progress: usize,
    /// How long the server waits before the last part of its answer.
    pub pause: Duration,
}

const PLAIN: Work = Work {
    name: "small",
    title: "small call",
    connections: 16,
    arguments: 20,
    result: 40,
    progress: 0,
    pause: Duration::ZERO,
};

pub const WORKS: [Work; 5] = [
    PLAIN,
    Work { name: "result-100k", title: "100 KB result", connections: 8, result: 100_000, ..PLAIN },
    Work { name: "result-1m", title: "1 MB result", connections: 4, result: 1_000_000, ..PLAIN },
    Work { name: "arguments-1m", title: "1 MB arguments", connections: 4, arguments: 1_000_000, ..PLAIN },
    Work { name: "progress", title: "10 notifications, result", progress: 10, ..PLAIN },
];

/// A large result, whole.
pub const LARGE: Work =
    Work { name: "result-10m", title: "10 MB result", connections: 1, result: 10_000_000, ..PLAIN };

/// The same with a pause of the server before its end.
pub const PAUSED: Work = Work { name: "paused-10m", pause: Duration::from_millis(400), ..LARGE };

pub const ALL: [Work; 7] = [WORKS[0], WORKS[1], WORKS[2], WORKS[3], WORKS[4], LARGE, PAUSED];

/// Ids have this many digits.
pub const ID_DIGITS: usize = 7;
pub const FIRST_ID: u64 = 1_000_000;
pub const LAST_ID: u64 = 9_999_999;
pub const MODERN: &str = "2026-07-28";
pub const LEGACY: &str = "2025-11-25";
/// Of a client that can be asked nothing, and of one that can be asked everything.
pub const NO_CAPABILITIES: &str = "{}";
pub const CAPABILITIES: &str = r#"{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}"#;
const INFO: &str = r#"{"name":"bench","version":"1"}"#;

/// A request with room for its id.
#[derive(Clone)]
pub struct Template {
    pub bytes: Vec<u8>,
    at: Vec<usize>,
}

impl Template {
    pub fn set_id(&mut self, id: u64) {
        let digits = id.to_string();
        for at in &self.at {
            self.bytes[*at..*at + ID_DIGITS].copy_from_slice(digits.as_bytes());
        }
    }

    /// What stands below the head.
    pub fn body(&self) -> &[u8] {
        let head = memchr::memmem::find(&self.bytes, b"\r\n\r\n").map_or(0, |at| at + 4);
        &self.bytes[head..]
    }

    fn new(head: String, body: String) -> Self {
        let text = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
        let id = FIRST_ID.to_string();
        let at = memchr::memmem::find_iter(text.as_bytes(), &id).collect();
        Self { bytes: text.into_bytes(), at }
    }
}

impl Work {
    /// The call of a client of `era` that can be asked what `capabilities` say (JSON); `credential` and `session` as it has
    /// them.
    pub fn call(
        &self,
        era: Era,
        capabilities: &str,
        credential: Option<&str>,
        session: Option<&str>,
    ) -> Template {
        let id = FIRST_ID;
        let token = if self.progress > 0 { format!(r#""progressToken":{id}"#) } else { String::new() };
        let meta = match era {
            Era::Modern => format!(r#""_meta":{},"#, modern_meta(capabilities, &token)),
            Era::Legacy if self.progress > 0 => format!(r#""_meta":{{{token}}},"#),
            Era::Legacy => String::new(),
        };
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{{meta}"name":"{}","arguments":{{"text":"{}"}}}}}}"#,
            self.name,
            text(self.arguments),
        );
        Template::new(head(era, "tools/call", Some(self.name), credential, session), body)
    }

    /// The server's answer, before and after the id.
    pub fn answer(&self, era: Era) -> (String, String) {
        let complete = match era {
            Era::Modern => r#""resultType":"complete","#,
            Era::Legacy => "",
        };
        let rest = format!(
            r#","result":{{{complete}"content":[{{"type":"text","text":"{}"}}],"isError":false}}}}"#,
            text(self.result)
        );
        (r#"{"jsonrpc":"2.0","id":"#.to_owned(), rest)
    }
}

/// `initialize`, and the notification after it.
pub fn initialize(capabilities: &str) -> Template {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":{FIRST_ID},"method":"initialize","params":{{"protocolVersion":"{LEGACY}","capabilities":{capabilities},"clientInfo":{INFO}}}}}"#
    );
    let head = "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
    Template::new(head.to_owned(), body)
}

pub fn initialized(session: &str) -> Template {
    let body = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned();
    Template::new(head(Era::Legacy, "", None, None, Some(session)), body)
}

/// The stream of a legacy client's session.
pub fn get(session: &str) -> Template {
    let head = format!(
        "GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\nUser-Agent: bench\r\nMCP-Protocol-Version: {LEGACY}\r\nMcp-Session-Id: {session}\r\n\r\n"
    );
    Template { bytes: head.into_bytes(), at: Vec::new() }
}

/// `subscriptions/listen` of a modern client.
pub fn listen() -> Template {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":{FIRST_ID},"method":"subscriptions/listen","params":{{"_meta":{},"notifications":{{"toolsListChanged":true}}}}}}"#,
        modern_meta(NO_CAPABILITIES, "")
    );
    Template::new(head(Era::Modern, "subscriptions/listen", None, None, None), body)
}

fn modern_meta(capabilities: &str, more: &str) -> String {
    let comma = if more.is_empty() { "" } else { "," };
    format!(
        r#"{{"io.modelcontextprotocol/protocolVersion":"{MODERN}","io.modelcontextprotocol/clientInfo":{INFO},"io.modelcontextprotocol/clientCapabilities":{capabilities}{comma}{more}}}"#
    )
}

fn head(
    era: Era,
    method: &str,
    name: Option<&str>,
    credential: Option<&str>,
    session: Option<&str>,
) -> String {
    let version = match era {
        Era::Modern => MODERN,
        Era::Legacy => LEGACY,
    };
    let mut head = format!(
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nUser-Agent: bench\r\nMCP-Protocol-Version: {version}\r\n"
    );
    let mut line = |name: &str, value: Option<&str>| {
        if let Some(value) = value {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
    };
    line("Authorization", credential);
    match era {
        Era::Modern => {
            line("Mcp-Method", Some(method));
            line("Mcp-Name", name);
        }
        Era::Legacy => line("Mcp-Session-Id", session),
    }
    head
}

/// JSON string contents that stand for exactly `length` bytes of JSON text.
pub fn text(length: usize) -> String {
    const LINE: &str = r#"09:12:44.183 INFO request done path=/api/items/7301 status=200 note=\"caf\u00e9 – cached\" took=12ms\n"#;
    let mut text = LINE.repeat(length / LINE.len());
    // What is left is plain, so that no escape is cut.
    text.extend(std::iter::repeat_n('x', length - text.len()));
    text
}
