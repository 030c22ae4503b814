//! Rounds of questions: what the server asks is put to the client, and what the client answers goes to the server.
//!
//! Owns parking the call with the client's request answered by `input_required`, and taking it up with what the client
//! brings. Every question is answered once, by the client or in its place. Does not own which are open (`asking`), the waits
//! in between (`waits`), who may come back (`parked`), nor how a question is spelt (`translate`).
//! Rules: B1, A8, A11.9; vectors D33-D35, D39-D46.

use super::super::super::parked::{Full, Owner, Retry, Slot};
use super::super::ask::Asker;
use super::super::attribution::Seat;
use super::super::level;
use super::super::question;
use super::super::session::affinity;
use super::Trouble;
use super::asking::Asking;
use super::reopen::Source;
use super::stream::Stream;
use super::waits::{Away, Bringing, Due, Undelivered};
use crate::config;
use crate::exchange::{Call, Fault, FaultKind, Outcome};
use crate::telemetry::metrics::{Limit, NotAsked, UpstreamLimit, Way};
use crate::translate::answer::{self, Answer, Why};
use crate::translate::input_required;
use crate::translate::notify::cancelled_request;
use crate::translate::question::{Need, Question};
use crate::wire::jsonrpc::{Id, Notification, Request};
use crate::wire::payload::Payload;
use crate::wire::version::LegacyRevision;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;

impl Stream<'_> {
    /// A request that the server makes on the call's own stream.
    pub(super) async fn asked(&mut self, asked: &Request) -> Result<(), Trouble> {
        let read = question::read(&self.legacy.shared, self.session.capabilities(), asked, question::ON_CALL);
        match read {
            Ok(question) => self.question(question, Way::Call).await,
            Err(answer) => {
                self.reply(answer).await;
                Ok(())
            }
        }
    }

    /// A question of this call.
    pub(super) async fn question(&mut self, question: Question, way: Way) -> Result<(), Trouble> {
        let shared = &self.legacy.shared;
        if !self.turn.call.method.can_ask() {
            // The call goes on without an answer (B1.12).
            self.not_asked(NotAsked::Method, self.turn.call.method.label());
            self.reply(self.session.instead(&question)).await;
            return Ok(());
        }
        if !self.session.capabilities().allows(question.need, self.session.initialized.revision) {
            return self.undeclared(question).await;
        }
        if let Some((limit, setting)) = self.sent.asking.reached(question.bytes(), &shared.settings.limits) {
            shared.metrics.limit(limit);
            self.not_asked(NotAsked::Full, setting);
            self.reply(answer::refused(&question, Why::Cancelled)).await;
            return Ok(());
        }
        match way {
            Way::Call => self.seat.iter().for_each(Seat::asked_here),
            // The floor gave it, and knows.
            Way::Beside => {}
        }
        self.sent.asking.add(question, None, way);
        self.ask_soon();
        Ok(())
    }

    /// The client is asked after some quiet time. What comes while it is away, or before its answers have gone to the
    /// server, waits for the next round.
    pub(super) fn ask_soon(&mut self) {
        if !self.turn.is_here() || self.bringing.is_some() || self.sent.asking.is_empty() {
            return;
        }
        let next = Due::after(self.legacy.shared.settings.timeouts.gather);
        match &mut self.due {
            Some(due) => due.put_off(next),
            None => self.due = Some(next),
        }
    }

    /// Puts all that is open to the client, which ends its request; the call is parked from then on.
    pub(super) async fn ask(&mut self, source: &mut Source) -> Result<(), Trouble> {
        self.park().await?;
        if !self.turn.is_here() {
            // The id is not known under which a result would pass.
            self.passing_again(source);
        }
        Ok(())
    }

    pub(super) async fn park(&mut self) -> Result<(), Trouble> {
        self.due = None;
        if self.sent.asking.is_empty() {
            return Ok(());
        }
        let shared = self.legacy.shared.clone();
        let revision = self.session.initialized.revision;
        // What this request of the client declares counts, not what an earlier one did (B1.11).
        let declared = self.turn.declared(shared.limits);
        let open = &mut self.sent.asking.open;
        if let Some(at) = open.iter().position(|open| !declared.allows(open.question.need, revision)) {
            let refused = open.remove(at);
            if refused.elicitation_id.is_some() {
                // No request of the server stands behind it.
                return Err(self.missing(refused.question.need).into());
            }
            return self.undeclared(refused.question).await;
        }
        if shared.shutdown.is_draining() {
            let text = "the server asks its client something, and the proxy is about to end and could not take the answer";
            return Err(Fault::new(FaultKind::Draining, text).into());
        }
        let rounds = self.sent.asking.slot.as_ref().map_or(0, Slot::round);
        if rounds as usize >= shared.settings.limits.rounds {
            return self.no_more_rounds().await;
        }
        if self.sent.asking.slot.is_none() {
            self.sent.asking.slot = Some(self.admit()?);
        }
        self.sent.asking.show(&shared.metrics);
        let Asking { slot: Some(slot), open, .. } = &mut self.sent.asking else { return Ok(()) };
        let asked = open.iter().map(|open| (open.key.clone(), open.question.clone())).collect();
        let lasts = shared.settings.timeouts.answer;
        let info = &self.session.initialized.server_info;
        let (shown, from) = slot
            .ask(asked, revision, info, lasts)
            .map_err(|error| Fault::new(FaultKind::Internal, error.to_string()))?;
        self.away = Some(Away::new(from, lasts, shared.metrics.parked()));
        self.aside = None;
        shared.metrics.round();
        let message = shown.message(self.turn.id());
        self.turn.finish(self.watch, Outcome::InputRequired(message));
        // Not before: what comes in the quiet time is as likely its as another call's, and no other is let in meanwhile.
        self.seat.iter().for_each(Seat::set_aside);
        self.sent.call = self.turn.without_request(shared.limits);
        Ok(())
    }

    fn admit(&self) -> Result<Slot, Trouble> {
        let shared = &self.legacy.shared;
        let owner = owner(&shared.settings, &self.turn.call);
        self.legacy.parked.admit(owner).map_err(|full| {
            let (limit, setting) = match full {
                Full::All => (Limit::Parked, "limits.parked"),
                Full::Principal => (Limit::ParkedPerPrincipal, "limits.parked_per_principal"),
            };
            self.turn.call.meter.limit(limit);
            self.none_asked(NotAsked::Full, setting);
            let text = format!(
                "the server asks its client something, and as many calls wait for answers as may ({setting}); the call was cancelled"
            );
            Fault::new(FaultKind::Busy, text).into()
        })
    }

    /// The server is told that nobody answers, and finishes as it likes.
    async fn no_more_rounds(&mut self) -> Result<(), Trouble> {
        self.legacy.shared.metrics.limit(UpstreamLimit::Rounds);
        self.none_asked(NotAsked::Rounds, "upstream.*.limits.rounds");
        let open = std::mem::take(&mut self.sent.asking.open);
        if open.iter().any(|open| open.elicitation_id.is_some()) {
            let text = "the server asks for the same again and again; the call was given up (upstream.*.limits.rounds)";
            return Err(Fault::new(FaultKind::Unanswered, text).into());
        }
        for open in open {
            self.reply(answer::refused(&open.question, Why::Cancelled)).await;
        }
        self.seat.iter().for_each(Seat::resumed);
        Ok(())
    }

    /// The client has come back. Questions it brings no answer to are put to it again (B1.5).
    pub(super) async fn take_up(&mut self, retry: Retry, source: Option<&mut Source>) -> Result<(), Trouble> {
        let Retry { call, sender, answers } = retry;
        if let Some(away) = self.away.take() {
            self.legacy.shared.metrics.resumed(away.elapsed());
        }
        self.sent.call = call.clone();
        self.turn.next(self.watch, call, sender);
        let Some(source) = source else { return Ok(()) };
        self.aside = self.turn.wants.aside(&self.session, self.number);
        if self.passing_again(source) {
            // The server has begun its answer, so it waits for none.
            self.sent.asking.clear();
            return Ok(());
        }
        // Without a question the call may ask another one at any time: only when it is its turn (B5).
        let open = &self.sent.asking.open;
        let all = open.iter().all(|open| answers.iter().any(|(key, _)| *key == open.key));
        match &self.seat {
            Some(seat) if all && !open.is_empty() => {
                self.bringing = Some(Bringing { answers, returning: seat.returning() })
            }
            Some(_) | None => self.bring(answers).await,
        }
        Ok(())
    }

    /// Gives the server the client's answers. Those that are missing are asked for again (B1.5).
    pub(super) async fn bring(&mut self, answers: Vec<(String, Answer)>) {
        self.bringing = None;
        if self.seat.is_some() {
            // With its answers the call may ask again.
            self.session.listening(self.legacy.shared.settings.timeouts.stream).await;
        }
        for (key, answer) in answers {
            // One that the server has taken back meanwhile needs no answer (B1.9).
            let Some(_) = self.sent.asking.answered(&key) else { continue };
            if let Some(roots) = answer.roots {
                self.session.learn_roots(roots);
            }
            self.deliver(answer.message).await;
        }
        self.sent.asking.open.iter_mut().for_each(|open| open.shown = false);
        self.ask_soon();
        if self.turn.wants.log.is_some() {
            self.settle_level();
        }
    }

    /// Beside the answers: a server that does one thing at a time can take nothing else before them.
    fn settle_level(&self) {
        let (legacy, session, call) = (self.legacy.clone(), self.session.clone(), self.turn.call.clone());
        // Owned by the tracker; bounded by the time that `initialize` may take.
        drop(self.legacy.shared.shutdown.spawn(async move {
            let (principal, headers) = (call.principal, &call.headers);
            level::settle(&Asker { legacy: &legacy, session: &session, principal, headers }).await;
        }));
    }

    /// Waits for the client with what the server has said already.
    pub(super) async fn client_returns(&mut self) -> Result<(), Trouble> {
        let retry = Away::over(&mut self.away, &self.legacy.shared, None).await?;
        self.take_up(retry, None).await
    }

    /// Whether a result goes on that waited for the client.
    fn passing_again(&self, source: &mut Source) -> bool {
        match source {
            Source::Open(messages) => self.let_pass(messages),
            // Said when it is open.
            Source::Sent(_) | Source::Reopening(_) | Source::Over => false,
        }
    }

    /// What the server tells of its own questions.
    pub(super) fn server_tells(&mut self, notification: &Notification) {
        match cancelled_request(notification) {
            Some(id) if self.is_open(&id) => self.withdrawn(&id),
            // Another call's, or what any call may wait for.
            Some(_) | None => self.session.server_tells(notification),
        }
    }

    fn is_open(&self, id: &Id) -> bool {
        self.sent.asking.open.iter().any(|open| open.elicitation_id.is_none() && open.question.id == *id)
    }

    /// The server has cancelled its question: the client's answer to it will go nowhere (B1.9, D45).
    pub(super) fn withdrawn(&mut self, id: &Id) {
        self.sent.asking.open.retain(|open| open.elicitation_id.is_some() || open.question.id != *id);
        if self.sent.asking.is_empty() {
            self.due = None;
            if self.bringing.take().is_some() && self.turn.wants.log.is_some() {
                self.settle_level();
            }
            self.seat.iter().for_each(Seat::resumed);
        }
    }

    /// The call needs what its client does not declare (B1.11, A11.9).
    pub(super) async fn undeclared(&mut self, question: Question) -> Result<(), Trouble> {
        let fault = self.missing(question.need);
        self.reply(answer::refused(&question, Why::Undeclared)).await;
        Err(fault.into())
    }

    pub(super) fn missing(&self, need: Need) -> Fault {
        let shared = &self.legacy.shared;
        let declared = self.turn.declared(shared.limits);
        if !shared.settings.interactive && declared.allows(need, self.session.initialized.revision) {
            self.not_asked(NotAsked::Off, "upstream.*.interactive");
            let text = "the server asks its client something, which the settings of the proxy do not let it do (upstream.*.interactive)";
            return Fault::new(FaultKind::Unanswered, text);
        }
        self.not_asked(NotAsked::Undeclared, need.required());
        let revision = self.session.initialized.revision;
        if declared.allows(need, LegacyRevision::LATEST) && !declared.allows(need, revision) {
            let text = format!(
                "the server asks for {}, which its revision {} does not have",
                need.name(),
                revision.as_str()
            );
            return Fault::new(FaultKind::Unanswered, text);
        }
        let text = format!(
            "the server needs a client capability that the request does not declare: {}",
            need.name()
        );
        Fault::new(FaultKind::MissingCapability, text)
            .with_data(format!("{{\"requiredCapabilities\":{}}}", need.required()))
    }

    /// Of all that is open, what the client has not seen yet.
    fn none_asked(&self, why: NotAsked, setting: &str) {
        (1..self.sent.asking.unseen()).for_each(|_| self.legacy.shared.metrics.question_refused(why));
        self.not_asked(why, setting);
    }

    pub(super) fn not_asked(&self, why: NotAsked, detail: &str) {
        question::not_asked(&self.legacy.shared, why, detail, question::ON_CALL);
    }

    /// Posts an answer in the client's place beside the stream, which must not wait for the server to take it.
    pub(super) async fn reply(&self, message: Payload) {
        self.post(message, None).await;
    }

    /// Posts the client's answer. A server that does not take it will not go on, so the call ends where it fails.
    async fn deliver(&mut self, message: Payload) {
        let undelivered = self.undelivered.get_or_insert_with(Undelivered::new).reporter();
        self.post(message, Some(undelivered)).await;
    }

    async fn post(&self, message: Payload, undelivered: Option<mpsc::Sender<Fault>>) {
        let Ok(place) = self.replies.clone().acquire_owned().await else { return };
        let (legacy, lease) = (self.legacy.clone(), self.sent.lease.beside());
        let call = self.turn.call.clone();
        // Owned by the tracker; bounded by the time that `initialize` may take.
        drop(self.legacy.shared.shutdown.spawn(async move {
            if let Err(fault) = legacy.post(lease.session(), &call.headers, message).await {
                tracing::debug!(%fault, "an answer did not reach the upstream server");
                if let Some(undelivered) = undelivered {
                    // Full: one failure is enough to end the call.
                    let _ = undelivered.try_send(fault);
                }
            }
            drop((lease, place));
        }));
    }
}

/// Whose call it is, and which: of one upstream, and in one conversation where they are told apart.
pub(in crate::upstream::legacy) fn owner(settings: &config::Upstream, call: &Call) -> Owner {
    let mut hash = Sha256::new();
    hash.update(input_required::digest(&call.request));
    if let Some(affinity) = affinity(call, settings) {
        hash.update(affinity);
    }
    // Last, since it is of no fixed length.
    hash.update(&settings.name);
    Owner { principal: call.principal, request: hash.finalize().into() }
}
