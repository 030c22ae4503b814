//! The server of the benchmark: legacy under one path, modern under another, in a process of its own.
//!
//! Owns answering as cheaply as a server can: texts are built once, a request is looked at no further than to tell which
//! of them it asks for. Notifications go out one write each, as a server's that works between them.

use super::http1::{Conn, Head};
use super::work::{ALL, Era, LEGACY, MODERN, Work};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::net::TcpListener;

/// Of a request's body; what says what it is stands before the arguments.
const LOOKED_AT: usize = 4096;
/// A large answer is written in pieces of this size.
const PIECE: usize = 64 * 1024;

const STREAM: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nX-Accel-Buffering: no\r\nTransfer-Encoding: chunked\r\n\r\n";

struct Server {
    tools: Vec<Tool>,
    /// The tools as a list has them, without its brackets.
    listed: String,
    sessions: AtomicU64,
}

pub struct Tool {
    pub work: Work,
    /// What a call of it holds.
    needle: String,
    /// Before and after the id, by era.
    legacy: (String, String),
    modern: (String, String),
}

/// Serves until the process ends; prints its port first.
pub async fn run() -> io::Result<()> {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
    println!("{}", listener.local_addr()?.port());
    let tools: Vec<_> = ALL.iter().map(Tool::new).collect();
    let listed = tools.iter().map(Tool::listed).collect::<Vec<_>>().join(",");
    let server = Arc::new(Server { tools, listed, sessions: AtomicU64::new(0) });
    loop {
        let (stream, _) = listener.accept().await?;
        let (server, conn) = (server.clone(), Conn::new(stream, PIECE)?);
        drop(tokio::spawn(async move {
            if let Err(error) = server.connection(conn).await
                && !matches!(
                    error.kind(),
                    io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
                )
            {
                eprintln!("the benchmark's server: {error}");
            }
        }));
    }
}

impl Server {
    async fn connection(&self, mut conn: Conn) -> io::Result<()> {
        let mut seen = Vec::with_capacity(LOOKED_AT);
        while let Some(head) = conn.head().await? {
            seen.clear();
            let length = conn
                .body(&head, |piece| {
                    seen.extend_from_slice(&piece[..piece.len().min(LOOKED_AT - seen.len())])
                })
                .await?;
            let era = if head.line.contains(Era::Legacy.path()) { Era::Legacy } else { Era::Modern };
            self.request(&mut conn, &head, era, &seen, length).await?;
        }
        Ok(())
    }

    async fn request(
        &self,
        conn: &mut Conn,
        head: &Head,
        era: Era,
        seen: &[u8],
        length: usize,
    ) -> io::Result<()> {
        if !head.line.starts_with("POST") {
            let status = if head.line.starts_with("DELETE") { "200 OK" } else { "405 Method Not Allowed" };
            return conn.write(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").as_bytes()).await;
        }
        let id = value(seen, b"\"id\":");
        match (value(seen, b"\"method\":"), era) {
            (b"\"tools/call\"", _) => {
                let Some(tool) = self.tools.iter().find(|tool| tool.is_called(seen)) else {
                    return refuse(conn, "404 Not Found").await;
                };
                let work = &tool.work;
                if length < work.arguments || head.session.is_none() && era == Era::Legacy {
                    return refuse(conn, "400 Bad Request").await;
                }
                let answer = tool.answer(era);
                if work.progress > 0 {
                    return events(conn, tool, answer, id, value(seen, b"\"progressToken\":")).await;
                }
                json(conn, work, answer, id).await
            }
            (b"\"initialize\"", Era::Legacy) => {
                let number = self.sessions.fetch_add(1, Ordering::Relaxed);
                let session = format!("Mcp-Session-Id: {number:08x}-5f0e-4c6b-9d3a-a1b2c3d4e5f6\r\n");
                let result = format!(
                    r#"{{"protocolVersion":"{LEGACY}","capabilities":{{"tools":{{"listChanged":true}}}},"serverInfo":{{"name":"bench-server","version":"1.0.0"}}}}"#
                );
                whole(conn, "200 OK", &session, id, &format!(r#""result":{result}"#)).await
            }
            (b"\"server/discover\"", Era::Modern) => {
                let result = format!(
                    r#"{{"resultType":"complete","supportedVersions":["{MODERN}"],"capabilities":{{"tools":{{"listChanged":true}}}},"ttlMs":0,"cacheScope":"private","_meta":{{"io.modelcontextprotocol/serverInfo":{{"name":"bench-server","version":"1.0.0"}}}}}}"#
                );
                whole(conn, "200 OK", "", id, &format!(r#""result":{result}"#)).await
            }
            (b"\"tools/list\"", Era::Modern) => {
                let result = format!(
                    r#"{{"resultType":"complete","tools":[{}],"ttlMs":0,"cacheScope":"private"}}"#,
                    self.listed
                );
                whole(conn, "200 OK", "", id, &format!(r#""result":{result}"#)).await
            }
            (b"\"subscriptions/listen\"", Era::Modern) => {
                let acknowledged = format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{}}},"notifications":{{"toolsListChanged":true}}}}}}"#,
                    String::from_utf8_lossy(id)
                );
                conn.write(STREAM.as_bytes()).await?;
                chunk(conn, &acknowledged, "").await?;
                // Nothing changes here. The stream is open until its reader closes the connection.
                conn.head().await.map(drop)
            }
            (_, _) if id.is_empty() => refuse(conn, "202 Accepted").await,
            (_, _) => {
                let error = r#""error":{"code":-32601,"message":"Method not found"}"#;
                whole(conn, "400 Bad Request", "", id, error).await
            }
        }
    }
}

impl Tool {
    pub fn new(work: &Work) -> Self {
        // The client's own name stands before the tool's, so its name alone would not do.
        let needle = format!(r#""name":"{}","arguments""#, work.name);
        Self { work: *work, needle, legacy: work.answer(Era::Legacy), modern: work.answer(Era::Modern) }
    }

    /// Whether a request calls it.
    pub fn is_called(&self, request: &[u8]) -> bool {
        memchr::memmem::find(request, self.needle.as_bytes()).is_some()
    }

    /// The answer, before and after the id.
    pub fn answer(&self, era: Era) -> &(String, String) {
        match era {
            Era::Legacy => &self.legacy,
            Era::Modern => &self.modern,
        }
    }

    pub fn progress(&self, token: &str, step: usize) -> String {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{step},"total":{},"message":"step {step} is done"}}}}"#,
            self.work.progress
        )
    }

    pub fn listed(&self) -> String {
        format!(
            r#"{{"name":"{}","inputSchema":{{"type":"object","properties":{{"text":{{"type":"string"}}}}}}}}"#,
            self.work.name
        )
    }
}

/// The raw value after `key`, up to what ends it; for texts that hold no escapes.
pub fn value<'a>(text: &'a [u8], key: &[u8]) -> &'a [u8] {
    let Some(at) = memchr::memmem::find(text, key) else { return b"" };
    let rest = &text[at + key.len()..];
    let end =
        if key.ends_with(b"\"") { memchr::memchr(b'"', rest) } else { memchr::memchr2(b',', b'}', rest) };
    &rest[..end.unwrap_or(rest.len())]
}

async fn refuse(conn: &mut Conn, status: &str) -> io::Result<()> {
    conn.write(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").as_bytes()).await
}

async fn whole(conn: &mut Conn, status: &str, headers: &str, id: &[u8], member: &str) -> io::Result<()> {
    let body = format!(r#"{{"jsonrpc":"2.0","id":{},{member}}}"#, String::from_utf8_lossy(id));
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    conn.write_pieces([head.as_bytes(), body.as_bytes()]).await
}

async fn json(conn: &mut Conn, work: &Work, (before, after): &(String, String), id: &[u8]) -> io::Result<()> {
    let length = before.len() + id.len() + after.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{before}"
    );
    let after = after.as_bytes();
    if work.pause.is_zero() {
        return conn.write_pieces([head.as_bytes(), id, after]).await;
    }
    let last = after.len() - PIECE;
    conn.write_pieces([head.as_bytes(), id, &after[..last]]).await?;
    tokio::time::sleep(work.pause).await;
    conn.write(&after[last..]).await
}

async fn events(
    conn: &mut Conn,
    tool: &Tool,
    (before, after): &(String, String),
    id: &[u8],
    token: &[u8],
) -> io::Result<()> {
    let (id, token) = (String::from_utf8_lossy(id), String::from_utf8_lossy(token));
    conn.write(STREAM.as_bytes()).await?;
    for step in 1..=tool.work.progress {
        chunk(conn, &tool.progress(&token, step), "").await?;
        // Others have their turn, as they would while a tool works.
        tokio::task::yield_now().await;
    }
    chunk(conn, &format!("{before}{id}{after}"), "0\r\n\r\n").await
}

async fn chunk(conn: &mut Conn, data: &str, end: &str) -> io::Result<()> {
    let event = format!("event: message\ndata: {data}\n\n");
    conn.write(format!("{:x}\r\n{event}\r\n{end}", event.len()).as_bytes()).await
}
