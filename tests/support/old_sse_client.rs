//! A raw client of the HTTP+SSE of 2024-11-05: one event stream for everything that comes, one POST for each message.
//!
//! Owns the stream, the address that its first event names, and the POSTs. Does not own requests.

use std::sync::Arc;

use tokio::task::JoinHandle;

use super::ear::Ear;
use super::{Ask, Proxy};

pub struct OldSse {
    pub ear: Ear,
    /// Where messages go, as the stream said it.
    pub endpoint: String,
    proxy: Arc<Proxy>,
    token: Option<String>,
    reading: JoinHandle<()>,
}

impl OldSse {
    /// Opens the stream at this path, up to its first event.
    pub async fn open(proxy: &Arc<Proxy>, path: &str) -> Self {
        Self::open_as(proxy, path, None).await
    }

    pub async fn open_as(proxy: &Arc<Proxy>, path: &str, token: Option<&str>) -> Self {
        Self::try_open(proxy, path, token).await.unwrap_or_else(|(status, body)| panic!("{status} {body}"))
    }

    /// The same; status and body where no stream is opened.
    pub async fn try_open(
        proxy: &Arc<Proxy>,
        path: &str,
        token: Option<&str>,
    ) -> Result<Self, (u16, String)> {
        let ask = dressed(Ask::verb("GET").path(path).header("Accept", "text/event-stream"), token);
        let mut answer = proxy.open(&ask).await;
        if answer.status != 200 {
            let (body, _) = answer.pieces().await;
            return Err((answer.status, String::from_utf8(body).expect("a body is UTF-8")));
        }
        assert!(answer.is_stream(), "{:?}", answer.headers);
        let first = answer.event().await.expect("where to send messages to");
        assert_eq!(first.kind, "endpoint", "first of all: {first:?}");
        let ear = Ear::default();
        let heard = ear.clone();
        let reading = tokio::spawn(async move {
            loop {
                while let Some(event) = answer.events.next() {
                    assert!(["", "message"].contains(&event.kind.as_str()), "no such event: {event:?}");
                    heard.hear(&event.data, None);
                }
                if !matches!(answer.read_on().await, Ok(true)) {
                    break;
                }
            }
            heard.over();
        });
        let token = token.map(str::to_owned);
        Ok(Self { ear, endpoint: first.data, proxy: Arc::clone(proxy), token, reading })
    }

    /// One message, which is accepted.
    pub async fn say(&self, text: &str) {
        let (status, body) = self.post(text).await;
        assert_eq!(status, 202, "{text}: {body}");
    }

    /// One message: status and body of what it is answered.
    pub async fn post(&self, text: &str) -> (u16, String) {
        let ask = Ask::old("").path(&self.endpoint).raw_body(text.as_bytes());
        let ask = dressed(ask.header("Accept", "application/json, text/event-stream"), self.token.as_deref());
        let mut answer = self.proxy.open(&ask).await;
        let (body, broken) = answer.pieces().await;
        assert!(!broken, "a whole answer to {text}");
        (answer.status, String::from_utf8(body).expect("a body is UTF-8"))
    }

    /// The client goes away.
    pub fn close(self) {}

    /// The same; what was heard can still be looked at.
    pub fn hang_up(&self) {
        self.reading.abort();
        self.ear.over();
    }
}

fn dressed(ask: Ask, token: Option<&str>) -> Ask {
    let mut ask = ask.without("MCP-Protocol-Version");
    ask.legacy = true;
    token.iter().fold(ask, |ask, token| ask.bearer(token))
}

impl Drop for OldSse {
    fn drop(&mut self) {
        self.reading.abort();
    }
}
