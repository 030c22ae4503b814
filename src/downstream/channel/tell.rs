//! Legacy messages that have no answer: notifications, answers to the server's questions, cancellations.
//!
//! Owns how long each of them waits for what was read before it, and holds up what is read after it. Rules: A2.1, A2.2, A14.5;
//! cases C23, C44.

use super::flying::Cancelled;
use super::heads::Posted;
use super::messages::Messages;
use super::session::Standing;
use super::{Brought, Channel};
use crate::wire::jsonrpc::Notification;
use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt};
use hyper::{HeaderMap, StatusCode};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How long a notification may hold up what comes after it; and how long what must come is held up at all.
const NOTICE: Duration = Duration::from_secs(10);
const ANSWER: Duration = Duration::from_secs(1);

impl Channel {
    /// A notification in the session, for which all that comes after it waits.
    pub(super) fn legacy_notice<'a>(
        &'a self,
        told: Notification,
        Brought { headers, place }: Brought,
    ) -> BoxFuture<'a, ()> {
        let (turn, barrier) = self.order.barrier();
        let small = self.small();
        async move {
            let _small = small;
            turn.come().await;
            drop(place);
            let mut telling = pin!(self.tell(told.text.clone(), headers));
            let session = match timeout(NOTICE, &mut telling).await {
                Ok(session) => session,
                Err(_) => {
                    drop(barrier);
                    telling.await
                }
            };
            if let Some(session) = session
                && told.method == "notifications/initialized"
            {
                self.sessions.initialized(session.number, told.text);
            }
        }
        .boxed()
    }

    /// Posts what has no answer, and once more where the session was lost. The session that took it.
    async fn tell(&self, text: Bytes, headers: Option<HeaderMap>) -> Option<Arc<Standing>> {
        let mut session = self.sessions.current()?;
        let mut renewed = false;
        loop {
            let posted = self.heads.in_session(&session, text.clone(), headers.clone());
            match self.post(posted).await {
                status if status.is_success() => return Some(session),
                StatusCode::NOT_FOUND if session.id.is_some() && !std::mem::replace(&mut renewed, true) => {
                    session = self.renew(&session, headers.clone()).await.ok()?;
                }
                _ => return None,
            }
        }
    }

    /// What the host answers to a question of the server. One of a session that is lost has nobody to go to.
    pub(super) fn answer<'a>(
        &'a self,
        text: Bytes,
        Brought { headers, place }: Brought,
    ) -> BoxFuture<'a, ()> {
        let (turn, small) = (self.order.turn(), self.small());
        async move {
            let _small = small;
            turn.come_within(ANSWER).await;
            drop(place);
            let Some(session) = self.sessions.current() else { return };
            self.post(self.heads.in_session(&session, text, headers)).await;
        }
        .boxed()
    }

    /// `None`: that is all.
    pub(super) fn cancel<'a>(
        &'a self,
        raw: &Bytes,
        text: Bytes,
        brought: Brought,
    ) -> Option<BoxFuture<'a, ()>> {
        match self.flying.cancel(raw) {
            Cancelled::Nothing | Cancelled::Here => None,
            Cancelled::AtServer => Some(self.answer(text, brought)),
        }
    }

    /// Sends what nobody waits for an answer to; the status that it got.
    pub(super) async fn post(&self, posted: Posted) -> StatusCode {
        let response = self.front.handle(posted).await;
        let mut messages = Messages::new(response, self.settings().limits.message_bytes);
        // To its end, so that it counts as taken.
        while let Ok(Some(_)) = messages.next().await {}
        let status = messages.status;
        if !status.is_success() {
            tracing::debug!(status = status.as_u16(), "a message of the client was not taken");
        }
        status
    }
}
