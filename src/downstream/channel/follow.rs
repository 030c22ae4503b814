//! The GET stream of a legacy session: what the server says on its own.
//!
//! Owns when it is opened (once the host is initialized, and in each session that takes the place of a lost one), and that it
//! is taken up again with `Last-Event-ID` where it breaks off. A server without one (405, and whatever else it says of that) is
//! left alone. Rules: A13.5, A15 (B5, "GET stream"), B9.8; cases C08, C16.

use super::Channel;
use super::deliver::UNBOUNDED;
use super::messages::Messages;
use super::session::Standing;
use crate::wire::jsonrpc::{self, Message};
use bytes::Bytes;
use hyper::StatusCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// No pause is shorter, whatever a server asks for.
const LEAST: Duration = Duration::from_millis(100);

/// A pause before a stream is opened again.
pub(super) fn bounded(pause: Duration, most: Duration) -> Duration {
    pause.min(most).max(LEAST)
}

/// Asks whether the session is there.
const PING: &str = r#"{"jsonrpc":"2.0","id":"mcp-janus-ping","method":"ping"}"#;

impl Channel {
    /// Follows whichever session stands; never ends by itself.
    pub(super) async fn follow(&self) {
        let mut sessions = self.sessions.watch();
        let ready = |session: &Option<Arc<Standing>>| {
            session.as_ref().is_some_and(|session| session.initialized.is_some())
        };
        let mut last = None;
        loop {
            let fresh = |session: &Option<Arc<Standing>>| {
                ready(session) && session.as_ref().map(|session| session.number) != last
            };
            let Ok(session) = sessions.wait_for(fresh).await.map(|session| session.clone()) else { return };
            let Some(session) = session else { continue };
            last = Some(session.number);
            let another = sessions.wait_for(|session| session.as_ref().map(|session| session.number) != last);
            tokio::select! {
                biased;
                _ = another => {}
                () = self.listen(&session) => {}
            }
        }
    }

    /// One session's stream; returns where there is none.
    async fn listen(&self, session: &Standing) {
        let settings = self.settings();
        let (first, most) = (settings.timeouts.reconnect, settings.timeouts.reconnect_max);
        let shutdown = &self.inner().shutdown;
        let mut pause = first;
        let (mut event, mut stood) = (None, false);
        while !shutdown.is_draining() {
            let response = self.front.handle(self.heads.stream(session, event.as_ref())).await;
            let status = response.status();
            let mut messages = Messages::after(response, settings.limits.message_bytes, event.clone());
            if messages.is_stream() {
                stood = true;
                let told = self.hear(&mut messages).await;
                event = messages.last_event_id().or(event);
                if told {
                    pause = first;
                }
            } else if status == StatusCode::NOT_FOUND && stood {
                // Of the stream, or of the session: a POST tells (C08).
                let ping = Bytes::from_static(PING.as_bytes());
                if self.post(self.heads.in_session(session, ping, None)).await != StatusCode::NOT_FOUND {
                    return;
                }
                // Another session has a stream of its own.
                let _ = self.renew(session, None).await;
            } else if !(status.is_server_error() || status.as_u16() == 429) {
                tracing::debug!(status = status.as_u16(), "the session has no stream of its own");
                return;
            }
            sleep(bounded(messages.retry.unwrap_or(pause), most)).await;
            pause = (pause * 2).min(most);
        }
    }

    /// Hands on what comes; whether anything did.
    async fn hear(&self, messages: &mut Messages) -> bool {
        let mut stood = false;
        while let Ok(Some(text)) = messages.next().await {
            stood = true;
            self.heard(text).await;
        }
        stood
    }

    /// Answers belong to the streams of their requests.
    async fn heard(&self, text: Bytes) {
        for text in
            if text.trim_ascii_start().starts_with(b"[") { super::deliver::items(&text) } else { vec![text] }
        {
            match jsonrpc::parse(text, UNBOUNDED) {
                Ok(Message::Request(asked)) => self.say(asked.text).await,
                Ok(Message::Notification(told)) => self.say(told.text).await,
                Ok(Message::Response(_)) => {
                    tracing::debug!("an answer on a session's own stream is passed over")
                }
                Err(fault) => tracing::debug!(%fault, "what is no message does not go to the client"),
            }
        }
    }
}
