//! What a legacy server asks, or says of its questions, on a stream that is no call's.
//!
//! Owns what is answered at once (`ping`, unknown methods, kinds that were not declared) and the refusal of a question that
//! reaches no call. Whose a question is, is the floor's to find out (`attribution`); its call puts it to the client.
//! Rules: A1.2, B1.9, B1.11, B1.12, B4.1, B5; vectors D49, D52; case C44.

use super::Session;
use super::ask::Asker;
use super::attribution::{Refused, Unattributed};
use crate::telemetry::metrics::{NotAsked, UpstreamLimit};
use crate::translate::answer::{self, Why};
use crate::translate::notify::{cancelled_request, completed_elicitation};
use crate::translate::question::{Asked, Kind, Question};
use crate::wire::jsonrpc::{Notification, Request};
use crate::wire::payload::Payload;
use std::sync::Arc;
use tokio::sync::Semaphore;

impl Asker<'_> {
    /// What the server is answered now. `None`: a call of the session has the question, or will, or its refusal is posted
    /// from here when that is known.
    pub(super) fn asked_beside(&self, asked: &Request) -> Option<Payload> {
        let shared = &self.legacy.shared;
        let capabilities = self.session.capabilities();
        let question = match Question::of(asked, capabilities, shared.limits) {
            Asked::Ping => return Some(answer::pong(asked)),
            Asked::Unknown => {
                self.not_asked(NotAsked::Method, &asked.method);
                return Some(answer::unknown(asked));
            }
            Asked::Malformed(what) => {
                self.not_asked(NotAsked::Malformed, what);
                return Some(answer::malformed(asked, what));
            }
            Asked::Question(question) => question,
        };
        if !capabilities.allows(question.need, self.session.initialized.revision) {
            let (why, detail) = match shared.settings.interactive {
                true => (NotAsked::Undeclared, question.need.name()),
                false => (NotAsked::Off, "upstream.*.interactive"),
            };
            self.not_asked(why, detail);
            return Some(answer::refused(&question, Why::Undeclared));
        }
        let bytes = question.bytes();
        let pending = match self.session.floor.asked(question.id.clone(), question, bytes) {
            Ok(pending) => pending,
            Err(refused) => return Some(self.refusal(&refused)),
        };
        let (legacy, session) = (self.legacy.clone(), self.session.clone());
        let (principal, headers) = (self.principal, self.headers.clone());
        // Owned by the tracker; ends when a call has taken the question, at the latest with the last call that may have
        // asked it or after `timeouts.attribute`. Their number is bounded by the floor.
        drop(shared.shutdown.spawn(async move {
            let Some(refused) = pending.refused().await else { return };
            let asker = Asker { legacy: &legacy, session: &session, principal, headers: &headers };
            asker.answer(asker.refusal(&refused)).await;
        }));
        None
    }

    /// Posts an answer beside the stream that the question came on, which may end before. Waits where all `places` for such
    /// answers are taken.
    pub(super) async fn answer_aside(&self, message: Payload, places: &Arc<Semaphore>) {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let (legacy, session) = (self.legacy.clone(), self.session.clone());
        let (principal, headers) = (self.principal, self.headers.clone());
        // Owned by the tracker; bounded as every answer.
        drop(self.legacy.shared.shutdown.spawn(async move {
            let asker = Asker { legacy: &legacy, session: &session, principal, headers: &headers };
            asker.answer(message).await;
            drop(place);
        }));
    }

    /// Posts an answer; bounded by the time that `initialize` may take.
    pub(super) async fn answer(&self, message: Payload) {
        if let Err(fault) = self.legacy.post(self.session, self.headers, message).await {
            tracing::debug!(%fault, "an answer did not reach the upstream server");
        }
    }

    /// What the server is told of a question that reaches no client (B1.12, B5).
    fn refusal(&self, refused: &Refused<Question>) -> Payload {
        let Refused { question, why } = refused;
        match why {
            Unattributed::NoCall => self.not_asked(NotAsked::NoCall, question.kind.name()),
            Unattributed::Ambiguous => {
                self.legacy.shared.metrics.question_refused(NotAsked::Ambiguous);
                tracing::warn!(
                    upstream = %self.legacy.shared.settings.name,
                    kind = question.kind.name(),
                    "a server's question may be any of several calls' and was put to no client; session.scope = \
                     \"request\" gives each call a session of its own, timeouts.attribute is how long it was held"
                );
            }
            Unattributed::Full => {
                self.legacy.shared.metrics.limit(UpstreamLimit::Questions);
                self.not_asked(NotAsked::Full, "upstream.*.limits.questions");
            }
            Unattributed::Large => {
                self.legacy.shared.metrics.limit(UpstreamLimit::QuestionBytes);
                self.not_asked(NotAsked::Full, "upstream.*.limits.question_bytes");
            }
        }
        match self.session.roots().filter(|_| question.kind == Kind::Roots) {
            Some(roots) => answer::roots(question, &roots),
            None => answer::refused(question, Why::NotPossible),
        }
    }

    fn not_asked(&self, why: NotAsked, detail: &str) {
        self.legacy.shared.metrics.question_refused(why);
        tracing::info!(
            upstream = %self.legacy.shared.settings.name,
            why = why.label(),
            detail = ?detail.chars().take(64).collect::<String>(),
            "a server's question outside its calls' streams was put to no client"
        );
    }
}

impl Session {
    /// What the server says of its own questions, on whichever stream: whoever it concerns is told.
    pub(super) fn server_tells(&self, notification: &Notification) {
        if let Some(id) = cancelled_request(notification) {
            self.floor.withdrawn(&id);
        } else if let Some(elicitation) = completed_elicitation(notification) {
            self.floor.completed(&elicitation);
        }
    }
}
