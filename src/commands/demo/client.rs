//! A modern client, as small as one can be: every request is a POST of its own that says all there is to know.
//!
//! Owns writing a request of revision 2026-07-28 and reading its answer. Keeps nothing between requests: what a request
//! takes from the answer before, it is given.

use std::io;
use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::frames::{Head, Reader};

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
    /// The JSON-RPC messages, in order.
    pub(super) messages: Vec<Value>,
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
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request.text(address, before).as_bytes()).await?;
    let (mut reader, mut buffer) = (Reader::new(), vec![0; 16 * 1024]);
    let mut answer = Answer::default();
    while reader.complete == 0 {
        let size = stream.read(&mut buffer).await?;
        if size == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        for what in reader.feed(&buffer[..size]) {
            if let Some(status) = what.head().and_then(Head::status) {
                answer.status = status;
            }
            if let Ok(message) = serde_json::from_str(what.json()) {
                answer.messages.push(message);
            }
        }
        if most.is_some_and(|most| answer.messages.len() >= most) {
            break;
        }
    }
    Ok(answer)
}
