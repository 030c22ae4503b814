//! What a legacy server asks, wherever it does, and what it says of its questions.
//!
//! Owns what is answered at once (`ping`, unknown methods, what cannot be read), how each question that reaches no client is
//! counted and logged, and what comes on a stream that is no call's: there, kinds that were not declared are refused, and
//! whose a question is, is the floor's to find out (`attribution`). Its call puts it to the client (`call`).
//! Rules: A1.2, B1.9, B1.11, B1.12, B4.1, B5; vectors D49, D52; case C44.

use super::super::Shared;
use super::Session;
use super::ask::Asker;
use super::attribution::{Refused, Unattributed};
use crate::schema::Speaker;
use crate::telemetry::metrics::{NotAsked, UpstreamLimit};
use crate::translate::answer::{self, Why};
use crate::translate::capabilities::Capabilities;
use crate::translate::notify::{cancelled_request, completed_elicitation};
use crate::translate::question::{Asked, Kind, Question};
use crate::wire::jsonrpc::{Notification, Request};
use crate::wire::payload::Payload;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// The question that a server's request is; `Err`: what it is answered at once.
pub(super) fn read(
    shared: &Shared,
    capabilities: &Capabilities,
    asked: &Request,
    place: &'static str,
) -> Result<Question, Payload> {
    match Question::of(asked, capabilities, shared.limits) {
        Asked::Question(question) => match shared.guard.question(Speaker::Legacy(None), asked) {
            Ok(()) => Ok(question),
            Err(words) => {
                not_asked(shared, NotAsked::Malformed, &words, place);
                Err(answer::malformed(asked, &words))
            }
        },
        Asked::Ping => Err(answer::pong(asked)),
        Asked::Unknown => {
            not_asked(shared, NotAsked::Method, &asked.method, place);
            Err(answer::unknown(asked))
        }
        Asked::Malformed(what) => {
            not_asked(shared, NotAsked::Malformed, what, place);
            Err(answer::malformed(asked, what))
        }
    }
}

/// Counts and logs a question that reaches no client; `place` is where the server asked it.
pub(super) fn not_asked(shared: &Shared, why: NotAsked, detail: &str, place: &'static str) {
    shared.metrics.question_refused(why);
    tracing::info!(
        upstream = %shared.settings.name,
        why = why.label(),
        detail = ?detail.chars().take(64).collect::<String>(),
        place,
        "a server's question was not put to its client"
    );
}

/// Where a server asks.
pub(super) const ON_CALL: &str = "the stream of a call";
pub(super) const BESIDE: &str = "outside its calls' streams";
pub(super) const EARLY: &str = "the middle of `initialize`";

impl Asker<'_> {
    /// What the server is answered now. `None`: a call of the session has the question, or will, or its refusal is posted
    /// from here when that is known.
    pub(super) fn asked_beside(&self, asked: &Request) -> Option<Payload> {
        let shared = &self.legacy.shared;
        let capabilities = self.session.capabilities();
        let question = match read(shared, capabilities, asked, BESIDE) {
            Ok(question) => question,
            Err(answer) => return Some(answer),
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
        self.session.instead(question)
    }

    fn not_asked(&self, why: NotAsked, detail: &str) {
        not_asked(&self.legacy.shared, why, detail, BESIDE);
    }
}

impl Session {
    /// The answer in the place of a client that cannot be asked now (B1.12).
    pub(super) fn instead(&self, question: &Question) -> Payload {
        match self.roots().filter(|_| question.kind == Kind::Roots) {
            Some(roots) => answer::roots(question, &roots),
            None => answer::refused(question, Why::NotPossible),
        }
    }

    /// What the server says of its own questions, on whichever stream: whoever it concerns is told.
    pub(super) fn server_tells(&self, notification: &Notification) {
        if let Some(id) = cancelled_request(notification) {
            self.floor.withdrawn(&id);
        } else if let Some(elicitation) = completed_elicitation(notification) {
            self.floor.completed(&elicitation);
        }
    }
}
