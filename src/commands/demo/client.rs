//! A modern client, as small as one can be: every request is a POST of its own that says all there is to know.
//!
//! Owns writing a request of revision 2026-07-28, and reading an answer, which the legacy client (`old`) does alike. Keeps
//! nothing between requests: what a request takes from the answer before, it is given.

use std::io;
use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::frames::Reader;

/// A request, its JSON written as text so that the wire shows just this.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub(super) id: &'static str,
    pub(super) method: &'static str,
    /// What `Mcp-Name` repeats.
    pub(super) name: Option<&'static str>,
    /// Members of `params`, each followed by a comma.
    pub(super) params: &'static str,
    /// The JSON of a progress token.
    pub(super) token: Option<&'static str>,
    /// The `Mcp-Method` header, where it is to be wrong.
    pub(super) claim: Option<&'static str>,
    /// The JSON of what the client can be asked.
    pub(super) capabilities: &'static str,
    /// The JSON of what it says to the one question in the answer before.
    pub(super) says: Option<&'static str>,
}

/// What came back.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// The session that it begins.
    pub(super) session: Option<String>,
    /// The JSON-RPC messages, in order.
    pub(super) messages: Vec<Value>,
}

/// An answer while it comes.
pub(super) struct Reading {
    stream: TcpStream,
    reader: Reader,
    answer: Answer,
    /// Of the messages in the answer, those that were handed out.
    seen: usize,
}

impl Reading {
    /// Sends a request over a connection of its own.
    pub(super) async fn of(address: SocketAddr, request: &str) -> io::Result<Self> {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(request.as_bytes()).await?;
        Ok(Self { stream, reader: Reader::new(), answer: Answer::default(), seen: 0 })
    }

    /// The next message; `None` once the answer is complete.
    pub(super) async fn next(&mut self) -> io::Result<Option<Value>> {
        let mut buffer = vec![0; 16 * 1024];
        loop {
            if let Some(message) = self.answer.messages.get(self.seen) {
                self.seen += 1;
                return Ok(Some(message.clone()));
            }
            if self.reader.complete > 0 {
                return Ok(None);
            }
            let size = self.stream.read(&mut buffer).await?;
            if size == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            for what in self.reader.feed(&buffer[..size]) {
                if let Some(head) = what.head() {
                    self.answer.status = head.status().unwrap_or_default();
                    self.answer.session = head.get("mcp-session-id").map(str::to_owned);
                }
                if let Ok(message) = serde_json::from_str(what.json()) {
                    self.answer.messages.push(message);
                }
            }
        }
    }

    /// What has come so far; closes the connection.
    pub(super) fn end(self) -> Answer {
        self.answer
    }
}

impl Request {
    fn body(&self, before: &Value) -> String {
        let says = self.says.map(|says| retry(before, says)).unwrap_or_default();
        let token = self.token.map(|token| format!(r#","progressToken":{token}"#)).unwrap_or_default();
        format!(
            concat!(
                r#"{{"jsonrpc":"2.0","id":{},"method":"{}","params":{{{}{}"_meta":{{"#,
                r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
                r#""io.modelcontextprotocol/clientInfo":{{"name":"demo-client","version":"1.0.0"}},"#,
                r#""io.modelcontextprotocol/clientCapabilities":{}{}}}}}}}"#
            ),
            self.id, self.method, self.params, says, self.capabilities, token
        )
    }

    fn text(&self, address: SocketAddr, before: &Value) -> String {
        let body = self.body(before);
        let name = self.name.map(|name| format!("Mcp-Name: {name}\r\n")).unwrap_or_default();
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
             Mcp-Method: {}\r\n{name}Content-Length: {}\r\n\r\n{body}",
            self.claim.unwrap_or(self.method),
            body.len()
        )
    }
}

/// The members of `params` that answer the one question in `before`: under its key, and with the state as it came.
fn retry(before: &Value, says: &str) -> String {
    let key = before["result"]["inputRequests"].as_object().and_then(|asked| asked.keys().next());
    let key = Value::from(key.map(String::as_str));
    format!(r#""inputResponses":{{{key}:{says}}},"requestState":{},"#, before["result"]["requestState"])
}

/// Sends the request and reads until the answer is complete, or until `most` messages have come; then closes.
pub(super) async fn call(
    address: SocketAddr,
    request: &Request,
    most: Option<usize>,
    before: &Value,
) -> io::Result<Answer> {
    let mut reading = Reading::of(address, &request.text(address, before)).await?;
    let mut seen = 0;
    while most.is_none_or(|most| seen < most) && reading.next().await?.is_some() {
        seen += 1;
    }
    Ok(reading.end())
}
