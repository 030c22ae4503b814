//! A modern client of the proxy, in memory, so that `probe` sees what such a client would see.
//!
//! Owns asking one thing at a time. The other end is what serves a stdio host (`downstream`).

use crate::downstream::{Brought, Client as OtherEnd, Inbound};
use crate::translate::discover;
use crate::wire::json::UNBOUNDED;
use crate::wire::jsonrpc::{self, Body, Message, Reply, Response};
use bytes::Bytes;
use hyper::HeaderMap;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Messages that wait to be taken.
const MESSAGES: usize = 16;

/// See the module. Served to its end once it is dropped.
pub(super) struct Client {
    texts: mpsc::Sender<Inbound>,
    messages: mpsc::Receiver<Bytes>,
    number: u64,
}

/// A result and the text that its spans are of.
pub(super) struct Answer {
    pub(super) text: Bytes,
    pub(super) body: Body,
}

impl Client {
    /// A client of the upstream that is served at `path`, and its other end.
    pub(super) fn new(path: &str) -> (Self, OtherEnd) {
        let (texts, taken) = mpsc::channel(1);
        let (out, messages) = mpsc::channel(MESSAGES);
        let (headers, gone) = (HeaderMap::new(), CancellationToken::new());
        let other = OtherEnd { path: path.to_owned(), headers, texts: taken, out, gone };
        (Self { texts, messages, number: 0 }, other)
    }

    /// The answer to a request, or why there is none. `members` are those of `params` besides `_meta`.
    pub(super) async fn ask(
        &mut self,
        method: &str,
        members: &str,
        wait: Duration,
    ) -> Result<Answer, String> {
        self.number += 1;
        let text = discover::own_request(self.number, method, members).to_bytes();
        let asked = timeout(wait, async {
            self.texts.send(Inbound::Text { text, brought: Brought::default() }).await.ok()?;
            self.answer().await
        });
        let Ok(response) = asked.await else { return Err(format!("{method} was not answered in time")) };
        let Some(Response { text, reply, .. }) = response else {
            return Err(format!("{method} was not answered"));
        };
        match reply {
            Reply::Result(body) => Ok(Answer { text, body }),
            Reply::Error(error) => Err(format!("{} ({})", error.brief(&text), error.code)),
        }
    }

    async fn answer(&mut self) -> Option<Response> {
        loop {
            let text = self.messages.recv().await?;
            if let Ok(Message::Response(response)) = jsonrpc::parse(text, UNBOUNDED)
                && response.answers(self.number)
            {
                return Some(response);
            }
        }
    }
}
