//! Large results of legacy servers: they pass in fixed memory, the first byte before the last has come.
//!
//! Owns what a client and a server see of a result that passes (`passing`), of one that breaks off on the way
//! (`breaking`), the same over HTTP/2 (`http2`), and how much a server can write to a client that does not read
//! (`pressure`). That a result which passes is the same as one that is held is tested at the translation itself.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod breaking;
mod http2;
mod passing;
mod pressure;
#[path = "../support/mod.rs"]
mod support;

use support::{Reply, Seen};

/// How a server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    Json,
    /// With `Content-Length`.
    Sized(usize),
    Events,
}

/// Both that need not know the length.
const STYLES: [Style; 2] = [Style::Json, Style::Events];

/// An answer that is written bit by bit.
struct Writing {
    reply: Reply,
    style: Style,
}

impl Writing {
    async fn begin(mut reply: Reply, style: Style) -> Self {
        match style {
            Style::Json => {
                let head =
                    "HTTP/1.1 200 X\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
                reply.raw(head.as_bytes()).await;
            }
            Style::Sized(length) => {
                let head = format!(
                    "HTTP/1.1 200 X\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
                );
                reply.raw(head.as_bytes()).await;
            }
            Style::Events => {
                reply.stream().await;
                reply.chunk(b"event: message\r\nid: 1\r\ndata:").await;
            }
        }
        Self { reply, style }
    }

    async fn write(&mut self, text: &str) {
        match self.style {
            Style::Sized(_) => self.reply.raw(text.as_bytes()).await,
            Style::Json | Style::Events => self.reply.chunk(text.as_bytes()).await,
        }
    }

    async fn end(mut self) {
        match self.style {
            // The connection closes, and is not used for another request.
            Style::Sized(_) => return,
            Style::Json => {}
            Style::Events => self.reply.chunk(b"\r\n\r\n").await,
        }
        self.reply.end().await;
    }
}

/// A result of this many bytes of text, its envelope before it; `head` ends and `tail` begins inside the text.
fn halves(seen: &Seen, bytes: usize) -> (String, String) {
    let half = "é0\\n".repeat(bytes / 10);
    let head = format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{{"content":[{{"type":"text","text":"{half}"#,
        seen.id()
    );
    (head, format!("{half}\"}}]}}}}"))
}
