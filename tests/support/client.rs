//! A raw modern client: exact bytes out, answers read by hand, as a whole or event by event.
//!
//! Owns one exchange on one connection and the check of whatever came back (`shape`). Does not own building requests.

use serde_json::Value;
use tokio::io::{AsyncWriteExt, DuplexStream};

use super::http1::{Buffered, Framing, Headers};
use super::sse::{Event, Reader};
use super::{Ask, rpc, shape, shape_legacy, within};

/// An answer whose head has come; its body may still be open.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Headers,
    pub events: Reader,
    io: Buffered<DuplexStream>,
    framing: Framing,
    ask: Ask,
}

/// A complete answer.
#[derive(Debug)]
pub struct Done {
    pub status: u16,
    pub headers: Headers,
    pub body: Vec<u8>,
    /// Messages before the last one, where the answer was a stream.
    pub before: Vec<Value>,
    /// The response itself; `Null` where the body is empty or not JSON.
    pub message: Value,
    /// The response as it was written.
    pub raw: String,
    pub comments: usize,
}

/// Sends the request on a fresh connection and reads the head of the answer.
pub async fn open(mut io: DuplexStream, ask: &Ask) -> Answer {
    // The proxy may answer and close before it has read everything.
    let _ = io.write_all(&ask.bytes()).await;
    head(Buffered::new(io), ask).await
}

/// Sends the request and reads the complete answer.
pub async fn exchange(io: DuplexStream, ask: &Ask) -> Done {
    open(io, ask).await.done().await
}

async fn head(mut io: Buffered<DuplexStream>, ask: &Ask) -> Answer {
    let what = format!("head of the answer to {} {}", ask.verb, ask.method);
    let head = within(&what, io.head()).await.expect("a whole head").expect("an answer before the end");
    let status = head.line.split(' ').nth(1).and_then(|s| s.parse().ok()).expect("a status code");
    let framing = Framing::of_response(status, &head.headers);
    Answer { status, headers: head.headers, events: Reader::default(), io, framing, ask: ask.clone() }
}

fn looked_at(ask: &Ask, done: &Done, fields: &[String]) {
    if ask.legacy {
        shape_legacy::check(ask, done);
    } else {
        shape::check(ask, done, fields);
    }
}

impl Answer {
    pub fn is_stream(&self) -> bool {
        self.headers.media_type().as_deref() == Some("text/event-stream")
    }

    /// The next message of a stream; `None` when it ended.
    pub async fn event(&mut self) -> Option<Event> {
        assert!(self.is_stream(), "an event stream, not {} {:?}", self.status, self.headers);
        // Comments do not count as news.
        within("next event", async {
            loop {
                if let Some(event) = self.events.next() {
                    return Some(event);
                }
                let piece = self.io.piece(&mut self.framing).await;
                self.events.push(&piece.expect("a stream that does not break")?);
            }
        })
        .await
    }

    /// The next message of a stream as JSON.
    pub async fn message(&mut self) -> Value {
        let event = self.event().await.expect("another event");
        rpc::value(event.data.as_bytes()).expect("an event holds JSON")
    }

    /// The next bytes of the body as they come; `None` at its end, an error where it breaks off.
    pub async fn piece(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        within("next piece", self.io.piece(&mut self.framing)).await
    }

    /// All bytes from here on, and whether the body was broken off instead of ended.
    pub async fn pieces(&mut self) -> (Vec<u8>, bool) {
        let mut all = Vec::new();
        loop {
            match self.piece().await {
                Ok(Some(bytes)) => all.extend_from_slice(&bytes),
                Ok(None) => return (all, false),
                Err(_) => return (all, true),
            }
        }
    }

    /// Reads on by one piece, however long that takes; `false` at the end, an error where the stream broke off.
    pub async fn read_on(&mut self) -> std::io::Result<bool> {
        let piece = self.io.piece(&mut self.framing).await?;
        self.events.push(piece.as_deref().unwrap_or_default());
        Ok(piece.is_some())
    }

    /// The next bytes of a body that is no event stream, however long they take; `None` at its end.
    pub async fn body_on(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        self.io.piece(&mut self.framing).await
    }

    /// The messages up to the end, and whether the stream was broken off instead of ended.
    pub async fn rest(mut self) -> (Vec<Value>, bool) {
        let mut messages = Vec::new();
        loop {
            let piece = within("next event", self.io.piece(&mut self.framing)).await;
            let (bytes, broken) = match piece {
                Ok(Some(bytes)) => (bytes, false),
                Ok(None) => return (messages, false),
                Err(_) => (Vec::new(), true),
            };
            self.events.push(&bytes);
            while let Some(event) = self.events.next() {
                messages.push(rpc::value(event.data.as_bytes()).expect("an event holds JSON"));
            }
            if broken {
                return (messages, true);
            }
        }
    }

    /// Reads what is left of a body, and says whether it broke off before its end.
    pub async fn broke(&mut self) -> bool {
        within("body", self.io.whole(self.framing)).await.is_err()
    }

    /// The client goes away in the middle.
    pub fn close(self) {}

    pub async fn done(mut self) -> Done {
        let done = self.finish().await;
        looked_at(&self.ask, &done, &self.events.fields);
        done
    }

    /// As `done`, and gives back the connection for the next request.
    pub async fn done_keeping(mut self) -> (Done, Connection) {
        let done = self.finish().await;
        looked_at(&self.ask, &done, &self.events.fields);
        (done, Connection(self.io))
    }

    async fn finish(&mut self) -> Done {
        let mut messages = Vec::new();
        let mut body = Vec::new();
        if self.is_stream() {
            while let Some(event) = self.event().await {
                // A priming event holds no message (A13.5).
                if !event.data.is_empty() || !self.ask.legacy {
                    messages.push(event.data);
                }
            }
        } else {
            body = within("body", self.io.whole(self.framing)).await.expect("a whole body");
            messages.extend(String::from_utf8(body.clone()).ok());
        }
        let raw = messages.pop().unwrap_or_default();
        let parse = |text: &String| rpc::value(text.as_bytes()).expect("an event holds JSON");
        Done {
            status: self.status,
            headers: self.headers.clone(),
            body,
            before: messages.iter().map(parse).collect(),
            message: rpc::value(raw.as_bytes()).unwrap_or(Value::Null),
            raw,
            comments: self.events.comments(),
        }
    }
}

/// A connection that is used for several requests in turn.
#[derive(Debug)]
pub struct Connection(Buffered<DuplexStream>);

impl Connection {
    pub fn new(io: DuplexStream) -> Self {
        Self(Buffered::new(io))
    }

    pub async fn open(mut self, ask: &Ask) -> Answer {
        let _ = self.0.io.write_all(&ask.bytes()).await;
        head(self.0, ask).await
    }
}

impl Done {
    /// The result of a success; anything else fails the test.
    pub fn result(&self) -> &Value {
        assert_eq!(self.status, 200, "{}", self.raw);
        self.message.get("result").unwrap_or_else(|| panic!("a result, not {}", self.raw))
    }

    /// The JSON-RPC code of an error; anything else fails the test.
    pub fn code(&self) -> i64 {
        self.message["error"]["code"]
            .as_i64()
            .unwrap_or_else(|| panic!("an error, not {} {}", self.status, self.raw))
    }

    pub fn data(&self) -> &Value {
        &self.message["error"]["data"]
    }

    /// Status and code at once.
    #[track_caller]
    pub fn is_error(&self, status: u16, code: i64) {
        assert_eq!((self.status, self.code()), (status, code), "{}", self.raw);
    }
}
