//! The second part of the demo: a legacy client and a modern server.
//!
//! Owns the client of revision 2025-11-25, which keeps a session and answers what it is asked while its call is open; the
//! turns that it takes; and what the two wires must show: on the legacy one a question is a request of the server, on the
//! modern one it is an answer, and the answer to it is the call once more.

use std::io;
use std::net::SocketAddr;

use serde_json::{Value, json};

use super::client::{Answer, Reading};
use super::frames::Way;
use super::seen::{MODERN_META, Seen, expect};

const INITIALIZE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","#,
    r#""capabilities":{"elicitation":{}},"clientInfo":{"name":"demo-client","version":"1.0.0"}}}"#
);
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const BOOK: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","#,
    r#""params":{"name":"book","arguments":{"place":"Luigi's"}}}"#
);
const SAYS: &str = r#"{"action":"accept","content":{"guests":2,"terrace":true}}"#;

/// One thing that the client does.
#[derive(Debug, Clone, Copy)]
pub(super) enum Act {
    Begin,
    Book,
    End,
}

pub(super) struct Turn {
    pub(super) title: &'static str,
    pub(super) look: &'static str,
    pub(super) act: Act,
    pub(super) check: fn(&Seen<'_>) -> Result<(), String>,
}

pub(super) struct Client {
    address: SocketAddr,
    session: Option<String>,
}

impl Client {
    pub(super) fn new(address: SocketAddr) -> Self {
        Self { address, session: None }
    }

    /// The answer to what it sends first.
    pub(super) async fn act(&mut self, act: Act) -> io::Result<Answer> {
        match act {
            Act::Begin => {
                let answer = self.send("POST", INITIALIZE).await?;
                self.session.clone_from(&answer.session);
                self.send("POST", INITIALIZED).await?;
                Ok(answer)
            }
            Act::Book => self.send("POST", BOOK).await,
            Act::End => self.send("DELETE", "").await,
        }
    }

    /// Reads to the end of the answer, and answers what is asked on the way.
    async fn send(&self, verb: &str, body: &str) -> io::Result<Answer> {
        let mut reading = Reading::of(self.address, &self.text(verb, body)).await?;
        while let Some(message) = reading.next().await? {
            if message["method"] == "elicitation/create" {
                let said = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{SAYS}}}"#, message["id"]);
                let mut taken = Reading::of(self.address, &self.text("POST", &said)).await?;
                while taken.next().await?.is_some() {}
            }
        }
        Ok(reading.end())
    }

    fn text(&self, verb: &str, body: &str) -> String {
        let session = self
            .session
            .as_ref()
            .map(|session| format!("MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: {session}\r\n"));
        format!(
            "{verb} /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n{}Content-Length: {}\r\n\r\n{body}",
            self.address,
            session.unwrap_or_default(),
            body.len()
        )
    }
}

pub(super) fn all() -> [Turn; 3] {
    [begin(), book(), end()]
}

fn begin() -> Turn {
    Turn {
        title: "initialize, before a modern server",
        look: "The modern server knows no handshake. The proxy asks it what it is (server/discover), answers from that, and \
               issues a session id, which holds all that the proxy has to know of the session, sealed.",
        act: Act::Begin,
        check: |seen| {
            seen.status(200)?;
            seen.result("/protocolVersion", &json!("2025-11-25"))?;
            seen.result("/serverInfo/name", &json!("mcp-janus-demo-modern"))?;
            expect(seen.answer.session.is_some(), "there should be a session id")?;
            legacy(seen.last())?;
            let methods = seen.methods();
            expect(
                methods == ["server/discover"],
                format!("the server should be asked what it is and no more, it got {methods:?}"),
            )
        },
    }
}

fn book() -> Turn {
    Turn {
        title: "tools/call book, which asks something",
        look: "The modern server asks by its answer, input_required, and forgets about it. The legacy client gets a real \
               request on the stream of its call, and answers it as ever; the proxy sends the call once more, under a new id, \
               with the answer and the server's own state. The tool's list told it to repeat the place in a header.",
        act: Act::Book,
        check: |seen| {
            seen.status(200)?;
            let [question, result] = &seen.answer.messages[..] else {
                return Err(format!("the client should get a question and a result: {:?}", seen.answer));
            };
            seen.answer.messages.iter().try_for_each(legacy)?;
            expect(question["id"].is_u64(), "the question should be a request")?;
            expect(result["id"] == 1, "the result should have the request's id")?;
            seen.result("/content/0/text", &json!("A table for 2 at Luigi's, on the terrace."))?;
            let sent = seen.back(Way::ToServer);
            let [_, first, second] = &sent[..] else {
                return Err(format!("the server should get a list and two calls, not {:?}", seen.methods()));
            };
            let theirs = seen.back(Way::ToClient);
            let asked = theirs.iter().find(|message| message["result"]["resultType"] == "input_required");
            let asked = &asked.ok_or("the server should have asked")?["result"];
            expect(
                question["params"] == asked["inputRequests"]["guests"]["params"],
                "the question should be the server's",
            )?;
            expect(first["id"] != second["id"], "each request should have an id of its own")?;
            let said: Value = serde_json::from_str(SAYS).unwrap_or_default();
            expect(
                second["params"]["inputResponses"]["guests"] == said,
                "the answer should reach the server",
            )?;
            expect(second["params"]["requestState"] == asked["requestState"], "so should its state")?;
            let named = seen.heads(Way::ToServer).filter(|head| head.get("mcp-name") == Some("book"));
            let named = named.filter(|head| head.get("mcp-param-place") == Some("Luigi's"));
            expect(named.count() == 2, "both calls should have the headers that the tool wants")
        },
    }
}

fn end() -> Turn {
    Turn {
        title: "the client ends its session",
        look: "DELETE ends the session at the proxy; the modern server never knew of one.",
        act: Act::End,
        check: |seen| {
            expect(
                (200..300).contains(&seen.answer.status),
                format!("the status is {}", seen.answer.status),
            )?;
            expect(seen.back(Way::ToServer).is_empty(), "nothing should go upstream")
        },
    }
}

/// Without the vocabulary of the modern revision.
fn legacy(message: &Value) -> Result<(), String> {
    let text = message.to_string();
    let modern = [MODERN_META, "resultType", "ttlMs", "cacheScope", "requestState"];
    match modern.into_iter().find(|word| text.contains(word)) {
        None => Ok(()),
        Some(word) => Err(format!("a legacy client should not see {word}: {text}")),
    }
}
