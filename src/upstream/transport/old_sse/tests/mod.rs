//! Channels of HTTP+SSE against a peer that writes bytes by hand (C42), in memory and with a paused clock.

mod ends;
mod messages;
mod opening;
mod order;

use std::borrow::Cow;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::super::error::{NoEndpoint, SendError};
use super::super::peer::{Peer, REQUEST, read_request, stage, upstream};
use super::super::pipe::{Inbox, Open, Pipe, Trouble};
use super::OldSse;
use crate::shutdown::Shutdown;
use crate::wire::jsonrpc::Id;
use crate::wire::payload::Payload;

const URL: &str = "http://h.test/api/v1/sse";
const STREAM: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
const ENDPOINT: &str = "event: endpoint\ndata: /messages?sid=1\n\n";
const ACCEPTED: &str = "HTTP/1.1 202 Accepted\r\nContent-Length: 8\r\n\r\nAccepted";
const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#;
const NOTE: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// What came, in words.
#[derive(Default)]
struct Heard {
    what: Mutex<Vec<String>>,
    more: Notify,
}

impl Heard {
    fn note(&self, what: String) {
        self.what.lock().unwrap().push(what);
        self.more.notify_waiters();
    }

    fn all(&self) -> Vec<String> {
        self.what.lock().unwrap().clone()
    }

    async fn wait(&self, n: usize) -> Vec<String> {
        loop {
            let more = self.more.notified();
            let all = self.all();
            if all.len() >= n {
                return all;
            }
            more.await;
        }
    }
}

impl Inbox for Heard {
    fn text(&self, text: Bytes) {
        self.note(String::from_utf8(text.to_vec()).unwrap());
    }

    fn too_long(&self, id: Option<Id>) {
        let id = id.map(|id| String::from_utf8(id.raw().to_vec()).unwrap());
        self.note(format!("too long: {id:?}"));
    }

    fn ended(&self, why: Cow<'static, str>) {
        self.note(format!("ended: {why}"));
    }
}

struct Stage {
    sse: Arc<OldSse>,
    peer: Peer,
    heard: Arc<Heard>,
}

fn headers() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, HeaderValue::from_static("Bearer t"));
    headers.insert(HeaderName::from_static("mcp-session-id"), HeaderValue::from_static("ours"));
    headers
}

impl Stage {
    fn new() -> Self {
        Self::with(None, 1 << 20)
    }

    fn with(instead: Option<&str>, message_bytes: usize) -> Self {
        let (http, peer) = stage(URL, 1 << 20);
        let mut settings = upstream(URL);
        settings.sse_endpoint = instead.map(str::to_owned);
        settings.limits.message_bytes = message_bytes;
        let sse = OldSse::new(&settings, http, Shutdown::new(Duration::from_secs(1))).unwrap();
        Self { sse: Arc::new(sse), peer, heard: Arc::default() }
    }

    fn opening(&self) -> JoinHandle<Result<Arc<dyn Pipe>, Trouble>> {
        let (sse, heard) = (self.sse.clone(), self.heard.clone());
        tokio::spawn(async move { sse.open(&headers(), heard).await })
    }

    /// Opens a channel; the stream's connection stays with the test.
    async fn open(&mut self) -> (Arc<dyn Pipe>, DuplexStream) {
        let opening = self.opening();
        let mut io = self.peer.accept().await;
        let request = read_request(&mut io).await;
        assert!(request.starts_with("GET /api/v1/sse HTTP/1.1\r\n"), "{request}");
        write(&mut io, &format!("{STREAM}{ENDPOINT}")).await;
        (taken(opening.await.unwrap()), io)
    }

    /// The error of an opening that the peer answers with these bytes, and the stream's connection.
    async fn refused(&mut self, answer: &str) -> (Trouble, DuplexStream) {
        let opening = self.opening();
        let mut io = self.peer.accept().await;
        read_request(&mut io).await;
        write(&mut io, answer).await;
        let Err(trouble) = opening.await.unwrap() else { panic!("{answer}: a channel was opened") };
        (trouble, io)
    }
}

async fn write(io: &mut DuplexStream, text: &str) {
    io.write_all(text.as_bytes()).await.unwrap();
}

fn taken<T>(result: Result<T, Trouble>) -> T {
    match result {
        Ok(value) => value,
        Err(Trouble::Send(error)) => panic!("{error}"),
        Err(Trouble::Refused(response)) => panic!("refused: {}", response.status()),
    }
}

fn none(trouble: Trouble) -> NoEndpoint {
    match trouble {
        Trouble::Send(SendError::Endpoint(none)) => none,
        Trouble::Send(other) => panic!("{other}"),
        Trouble::Refused(response) => panic!("refused: {}", response.status()),
    }
}

fn sending(pipe: &Arc<dyn Pipe>, text: &'static str) -> JoinHandle<Result<(), Trouble>> {
    let pipe = pipe.clone();
    tokio::spawn(async move { pipe.send(Payload::from(text), &headers()).await })
}

/// The stream's connection has been closed by the client.
async fn closed(io: &mut DuplexStream) {
    assert_eq!(io.read(&mut [0; 64]).await.unwrap(), 0, "closed by the proxy");
}
