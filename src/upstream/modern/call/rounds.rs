//! A round: what the server asks, put to the client, and what goes back.
//!
//! Owns asking all of a round at once on the call's own stream, waiting for the answers, `timeouts.answer` at most, and
//! the words of a call that cannot go on: the client declared less than the server asks, it cannot be reached, it refused
//! or did not answer. Such a call ends here, since `inputResponses` has no form for a refusal; nothing more goes to the
//! server. Does not own when to ask and when to wait (`pace`), nor the words of a question (`translate::legacy_client`).
//! Rules: B2, B4.3, B4.4; vectors D84-D92.

use super::super::pace::{Pace, Step};
use super::Course;
use crate::config;
use crate::exchange::{Ask, Event, Fault, FaultKind, Outcome, Reply};
use crate::telemetry::metrics::{ClientAnswer, Limit, NotAsked, QuestionKind, UpstreamLimit};
use crate::translate::legacy_client::envelope::Round;
use crate::translate::legacy_client::notify;
use crate::translate::legacy_client::reply::{self, Refusal, Restore};
use crate::translate::legacy_client::result;
use crate::translate::legacy_client::round::{self, Asked, Entry, Kind};
use crate::upstream::parked::{Full, Place};
use crate::wire::method::Method;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::borrow::Cow;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until};

/// Why the call cannot go on: in words for its client, and for the log, which holds nothing that a peer wrote.
struct Stuck(Cow<'static, str>, &'static str);

/// One question that is with the client.
struct Open {
    id: u64,
    restore: Restore,
    key: Bytes,
    elicits: bool,
    /// Of url mode: the url, and the id that the client knows it by.
    page: Option<(String, String)>,
}

/// The rounds of one call.
pub(super) struct Rounds {
    settings: Bounds,
    /// `None` until the server asks something.
    pace: Option<Pace>,
    /// Among the calls whose server has asked something; from the first time on.
    place: Option<Place>,
}

#[derive(Clone, Copy)]
struct Bounds {
    rounds: usize,
    polls: usize,
    pace: std::time::Duration,
    answer: std::time::Duration,
    bytes: usize,
}

impl Rounds {
    pub(super) fn new(settings: &config::Upstream) -> Self {
        let settings = Bounds {
            rounds: settings.limits.rounds,
            polls: settings.limits.polls,
            pace: settings.timeouts.pace,
            answer: settings.timeouts.answer,
            bytes: settings.limits.question_bytes,
        };
        Self { settings, pace: None, place: None }
    }

    /// What the next request brings to the server; or how the call ends, where there is none.
    pub(super) async fn next(&mut self, course: &mut Course<'_>, asked: Asked) -> Result<Round, Outcome> {
        // Large, and of few calls.
        let next = Box::pin(self.round(course, asked)).await;
        next.map_err(|stuck| course.stuck(stuck))
    }

    /// The call is answered: pages that it sent its user to are done with (B4.4).
    pub(super) async fn over(&mut self, course: &Course<'_>) {
        if let Some(pace) = &mut self.pace {
            for page in pace.completed(None) {
                course.sender.event(Event::Custom(notify::elicitation_complete(&page))).await;
            }
        }
    }

    async fn round(&mut self, course: &mut Course<'_>, asked: Asked) -> Result<Round, Stuck> {
        let metrics = course.modern.shared.metrics.clone();
        // Of a round all questions are put, or none.
        let refused = |why: NotAsked| asked.entries.iter().for_each(|_| metrics.question_refused(why));
        let client = &course.caller.client;
        if let Some(lacking) = asked.entries.iter().find_map(|entry| entry.lacks(client)) {
            let off = !course.modern.shared.settings.interactive;
            refused(if off { NotAsked::Off } else { NotAsked::Undeclared });
            let (words, why) = if off {
                ("and here no client is asked anything (interactive = false)", "off")
            } else {
                ("which this client has not declared", "undeclared")
            };
            return Err(Stuck(format!("the server asks for {lacking}, {words}").into(), why));
        }
        let bounds = self.settings;
        if asked.bytes() > bounds.bytes {
            metrics.limit(UpstreamLimit::QuestionBytes);
            refused(NotAsked::Full);
            return Err(Stuck(
                "what the server asks is larger than limits.question_bytes".into(),
                "too large",
            ));
        }
        let pace = self.pace.get_or_insert_with(|| Pace::new(bounds.rounds, bounds.polls, bounds.pace));
        for page in pace.completed(Some(&asked)) {
            course.sender.event(Event::Custom(notify::elicitation_complete(&page))).await;
        }
        let step = pace.next(&asked);
        let mut answers = pace.answered_urls(&asked);
        match step {
            Step::TooManyRounds => {
                metrics.limit(UpstreamLimit::Rounds);
                refused(NotAsked::Rounds);
                let words = "the server asks again and again; the proxy has stopped it (limits.rounds)";
                return Err(Stuck(words.into(), "rounds"));
            }
            Step::TooManyPolls => {
                metrics.limit(UpstreamLimit::Polls);
                let words = "the server is not done, however often it is asked; the proxy has stopped it (limits.polls)";
                return Err(Stuck(words.into(), "polls"));
            }
            Step::Wait(pause) => {
                metrics.input_retry();
                sleep(pause).await;
            }
            Step::Ask(which) => {
                if !course.caller.reachable {
                    refused(NotAsked::Method);
                    let words = "the server asks something, and this request's answer cannot carry it to the client: \
                                 its Accept header admits no event stream";
                    return Err(Stuck(words.into(), "out of reach"));
                }
                if self.place.is_none() {
                    self.place = Some(take_place(course).inspect_err(|_| refused(NotAsked::Full))?);
                }
                let _waits = metrics.parked();
                let entries = which.into_iter().filter_map(|at| asked.entries.get(at)).collect::<Vec<_>>();
                answers.extend(put(course, &entries, bounds, pace, &refused).await?);
            }
        }
        let responses = (!answers.is_empty()).then(|| round::responses(&answers));
        Ok(Round { responses, state: asked.state })
    }
}

fn take_place(course: &Course<'_>) -> Result<Place, Stuck> {
    course.modern.parked.place(course.call.principal).map_err(|full| {
        let (limit, named) = match full {
            Full::All => (Limit::Parked, "limits.parked"),
            Full::Principal => (Limit::ParkedPerPrincipal, "limits.parked_per_principal"),
        };
        course.call.meter.limit(limit);
        Stuck(format!("as many calls as may be wait for their clients ({named})").into(), named)
    })
}

/// Puts the entries to the client, all at once, and waits for all answers.
async fn put(
    course: &mut Course<'_>,
    entries: &[&Entry],
    bounds: Bounds,
    pace: &mut Pace,
    refused: &(dyn Fn(NotAsked) + Sync),
) -> Result<Vec<(Bytes, Bytes)>, Stuck> {
    let shared = &course.modern.shared;
    let mut asked = Vec::with_capacity(entries.len());
    for entry in entries {
        let id = shared.asking.question();
        let page = match (entry.kind(), entry.url()) {
            (Kind::Url, Some(url)) => Some((url.to_owned(), shared.asking.elicitation())),
            (Kind::Form | Kind::Url | Kind::Sampling | Kind::Roots, _) => None,
        };
        let named = page.as_ref().map(|(_, name)| name.as_str());
        // Before the first of them is out, so that no one answers in vain.
        let question = entry.ask(id, &course.caller.client, named).map_err(|fault| {
            refused(NotAsked::Malformed);
            Stuck(fault.to_string().into(), "cannot be put")
        })?;
        let elicits = matches!(entry.kind(), Kind::Form | Kind::Url);
        let open = Open { id, restore: question.restore, key: entry.key().clone(), elicits, page };
        asked.push((question.message, open));
    }
    shared.metrics.input_round();
    let mut waits = FuturesUnordered::new();
    let mut open = Vec::with_capacity(asked.len());
    for ((message, question), entry) in asked.into_iter().zip(entries) {
        let (answer, answered) = oneshot::channel();
        let id = question.id;
        shared.metrics.client_question(label(entry.kind()));
        course.sender.event(Event::Ask(Ask { id, message, answer })).await;
        waits.push(async move { (id, answered.await) });
        open.push(question);
    }
    let due = Instant::now() + bounds.answer;
    let mut answers = Vec::with_capacity(open.len());
    let mut bytes = 0;
    // What becomes of those that are open when the call ends.
    let mut left = ClientAnswer::Cancelled;
    let stuck = loop {
        let (id, answered): (u64, Result<Reply, _>) = tokio::select! {
            biased;
            next = waits.next() => match next {
                Some(next) => next,
                None => return Ok(in_order(answers, entries)),
            },
            () = sleep_until(due) => {
                left = ClientAnswer::Timeout;
                break Stuck("the server asks something, and the client did not answer in time".into(), "timeout");
            }
            // Nobody can come with an answer any more.
            () = shared.shutdown.draining() => {
                break Stuck("the server asks something, and the proxy is shutting down".into(), "draining");
            }
        };
        let Some(at) = open.iter().position(|question| question.id == id) else { continue };
        let question = open.swap_remove(at);
        let Ok(Reply { response, authorization }) = answered else {
            shared.metrics.client_answer(ClientAnswer::Cancelled);
            break Stuck("the server asks something, and the client cannot be asked any more".into(), "gone");
        };
        match question.restore.answer(&response, shared.limits) {
            Ok(value) => {
                course.credential = Some(authorization);
                let agreed = !question.elicits || reply::accepts(&value);
                shared.metrics.client_answer(if agreed {
                    ClientAnswer::Answered
                } else {
                    ClientAnswer::Declined
                });
                if let Some((url, page)) = question.page
                    && agreed
                {
                    pace.accepted(&url, &page);
                }
                bytes += value.len();
                answers.push((question.key, value));
                if bytes > bounds.bytes {
                    shared.metrics.limit(UpstreamLimit::QuestionBytes);
                    let words =
                        "the answers to what the server asks are larger together than limits.question_bytes";
                    break Stuck(words.into(), "answers too large");
                }
            }
            Err(refusal) => {
                let (how, why) = match refusal {
                    Refusal::Error { .. } => (ClientAnswer::Error, "answered with an error"),
                    Refusal::Unfit { .. } => (ClientAnswer::Unfit, "answered otherwise than asked"),
                };
                shared.metrics.client_answer(how);
                break Stuck(refusal.to_string().into(), why);
            }
        }
    };
    for question in open {
        shared.metrics.client_answer(left);
        let told = notify::cancelled(question.id, "the call that asked it is over");
        course.sender.event(Event::Withdrawn(question.id, told)).await;
    }
    Err(stuck)
}

fn label(kind: Kind) -> QuestionKind {
    match kind {
        Kind::Form => QuestionKind::Elicitation,
        Kind::Url => QuestionKind::Url,
        Kind::Sampling => QuestionKind::Sampling,
        Kind::Roots => QuestionKind::Roots,
    }
}

/// In the order in which they were asked, so that what the server gets does not depend on who was faster.
fn in_order(mut answers: Vec<(Bytes, Bytes)>, entries: &[&Entry]) -> Vec<(Bytes, Bytes)> {
    answers.sort_by_key(|(key, _)| entries.iter().position(|entry| entry.key() == key));
    answers
}

impl Course<'_> {
    /// The end of a call that cannot go on (B2.1, B2.6).
    fn stuck(&self, Stuck(words, why): Stuck) -> Outcome {
        let name = &self.modern.shared.settings.name;
        tracing::info!(upstream = %name, why, "a call ended because its server asks something");
        match self.call.method {
            Method::ToolsCall => Outcome::Result(result::tool_error(self.call.id(), &words)),
            _ => Outcome::Fault(Fault::new(FaultKind::Unanswered, words)),
        }
    }
}
