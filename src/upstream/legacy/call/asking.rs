//! What a call's server has asked and its client has not answered yet.
//!
//! Owns the open questions under their keys and the bounds on them, and what becomes of them where the call ends first.
//! Rules: B1.3, B1.7, D39; invariant 5.

use super::super::super::parked::Slot;
use crate::config::UpstreamLimits;
use crate::exchange::Outcome;
use crate::telemetry::metrics::{QuestionKind, UpstreamLimit, UpstreamMetrics, Way};
use crate::translate::answer::{self, Why};
use crate::translate::question::{Kind, Question};
use crate::wire::payload::Payload;
use std::time::Duration;

/// What a call's server has asked and has no answer to yet.
#[derive(Default)]
pub(in crate::upstream::legacy) struct Asking {
    /// From the first question on.
    pub(super) slot: Option<Slot>,
    pub(super) open: Vec<Open>,
    /// Keys given out in this call; none is ever used twice (B1.3).
    keys: u32,
}

pub(super) struct Open {
    pub(super) key: String,
    pub(super) question: Question,
    /// Set for one that came as an error and not as a request: the server waits for no answer (B4.1).
    pub(super) elicitation_id: Option<String>,
    /// The client has been asked in this round.
    pub(super) shown: bool,
    /// Where it came, until it is counted as one that was put to the client.
    way: Option<Way>,
}

impl Open {
    fn bytes(&self) -> usize {
        self.question.bytes() + self.elicitation_id.as_ref().map_or(0, String::len)
    }
}

impl Asking {
    pub(super) fn add(&mut self, question: Question, elicitation_id: Option<String>, way: Way) {
        self.keys += 1;
        let key = format!("q{}", self.keys);
        self.open.push(Open { key, question, elicitation_id, shown: false, way: Some(way) });
    }

    /// All that is open is put to the client.
    pub(super) fn show(&mut self, metrics: &UpstreamMetrics) {
        for open in &mut self.open {
            open.shown = true;
            if let Some(way) = open.way.take() {
                metrics.question(counted(open.question.kind), way);
            }
        }
    }

    /// Questions that the client has never seen.
    pub(super) fn unseen(&self) -> usize {
        self.open.iter().filter(|open| open.way.is_some()).count()
    }

    /// The limit that one more question of so many bytes would break, and its setting.
    pub(super) fn reached(
        &self,
        bytes: usize,
        limits: &UpstreamLimits,
    ) -> Option<(UpstreamLimit, &'static str)> {
        if self.open.len() >= limits.questions {
            return Some((UpstreamLimit::Questions, "upstream.*.limits.questions"));
        }
        let open: usize = self.open.iter().map(Open::bytes).sum();
        let large = open + bytes > limits.question_bytes;
        large.then_some((UpstreamLimit::QuestionBytes, "upstream.*.limits.question_bytes"))
    }

    /// Takes the question out that the client has answered under `key`.
    pub(super) fn answered(&mut self, key: &str) -> Option<Open> {
        let at = self.open.iter().position(|open| open.shown && open.key == key)?;
        Some(self.open.remove(at))
    }

    /// Whether the client was asked before.
    pub(super) fn has_asked(&self) -> bool {
        self.slot.is_some()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// The server is done: whatever it asked, it waits for no answer.
    pub(super) fn clear(&mut self) {
        self.open.clear();
    }

    /// The call is over, and its client is being told how.
    pub(in crate::upstream::legacy) fn finish(&mut self, outcome: &Outcome, replay: Duration) {
        if let Some(slot) = self.slot.take() {
            slot.finish(outcome, replay);
        }
    }

    /// What the server is answered where the client never will (B1.7).
    pub(in crate::upstream::legacy) fn last_words(self) -> Vec<Payload> {
        let waited_for = self.open.iter().filter(|open| open.elicitation_id.is_none());
        waited_for.map(|open| answer::refused(&open.question, Why::Cancelled)).collect()
    }
}

fn counted(kind: Kind) -> QuestionKind {
    match kind {
        Kind::Elicitation => QuestionKind::Elicitation,
        Kind::UrlElicitation => QuestionKind::Url,
        Kind::Sampling => QuestionKind::Sampling,
        Kind::Roots => QuestionKind::Roots,
    }
}
