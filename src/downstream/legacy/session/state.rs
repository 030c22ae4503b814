//! One session of a legacy client in front of a modern server.
//!
//! Owns what is known of the client, whose session it is, its log level, the calls in flight, the questions that it has not
//! answered, and its event streams. Between requests it is a few hundred bytes: what only requests need is there only with
//! them, and it has no task. Does not own where sessions are found (`mod`), nor anything of the server but the slot for what
//! it follows there. Rules: A1.11, A12.13, A12.15, A12.19, B8, B9.8, B14, A14.

use super::notices::Notices;
use super::row::{Ids, Kind};
use super::rows::{Bounds, Gone, Rows};
use super::subject::Subject;
use super::ticket::{Key, Ticket};
use crate::exchange::{Principal, Reply};
use crate::telemetry::metrics::{Ended, Held, ReplayDropped, SessionBegan, SessionEnd, UpstreamMetrics};
use crate::translate::legacy_client::discovered::Offers;
use crate::translate::legacy_client::initialize::Client;
use crate::upstream::modern::feed::Following;
use crate::wire::jsonrpc::{self, Id, code};
use crate::wire::log_level::LogLevel;
use crate::wire::version::LegacyRevision;
use bytes::Bytes;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What the sessions of one upstream share.
pub(super) struct Common {
    pub(super) bounds: Bounds,
    pub(super) metrics: Arc<UpstreamMetrics>,
    pub(super) upstream: String,
    /// Numbers of streams. They begin at a random place, so that an event id of an earlier process is none of this one's.
    pub(super) numbers: AtomicU64,
    pub(super) poll: Duration,
    pub(super) born: Instant,
    pub(super) taken: Arc<AtomicUsize>,
}

/// See the module.
pub(in crate::downstream) struct Session {
    pub(in crate::downstream) client: Client,
    pub(in crate::downstream) offers: Offers,
    pub(super) key: Key,
    /// The second in which it began.
    pub(super) minted: u64,
    pub(super) subject: Option<Subject>,
    pub(super) common: Arc<Common>,
    state: Mutex<State>,
    uses: AtomicUsize,
    /// Milliseconds of the table's clock at which the last use ended.
    last_used: AtomicU64,
    _place: Place,
    _counted: Held,
}

pub(super) struct State {
    pub(super) over: bool,
    level: Option<LogLevel>,
    /// The names of the credentials that it may be used with: the latest, and the one before.
    accepted: ([u8; 32], Option<[u8; 32]>),
    /// One of them, as the last request brought it, so that not each has to be named.
    seen: Option<Principal>,
    /// It has been begun, so it is told of changes.
    pub(super) listens: bool,
    /// What it is told of, once it is told of anything.
    pub(super) following: Option<Arc<Following>>,
    /// What it was told of before, with its caller's former credential, while that is still kept.
    pub(super) former: Weak<Following>,
    work: Option<Box<Work>>,
}

impl State {
    /// Whether this is the latest credential that it is used with.
    pub(super) fn is_newest(&self, principal: Principal) -> bool {
        self.accepted.0 == principal.name()
    }
}

/// What is there only while something goes on.
#[derive(Default)]
pub(super) struct Work {
    pub(super) rows: Rows,
    pub(super) notices: Notices,
    calls: SmallVec<[InFlight; 1]>,
    questions: HashMap<u64, oneshot::Sender<Reply>>,
}

struct InFlight {
    id: Id,
    number: u64,
    cancelled: CancellationToken,
}

/// A place among the sessions; dropping it frees it.
pub(super) struct Place(pub(super) Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Session {
    pub(super) fn new(common: Arc<Common>, ticket: Ticket, place: Place, how: SessionBegan) -> Self {
        let _counted = common.metrics.client_session(how);
        let last_used = AtomicU64::new(millis(common.born));
        Self {
            client: ticket.client,
            offers: ticket.offers,
            key: ticket.key,
            minted: ticket.minted,
            subject: ticket.subject,
            common,
            state: Mutex::new(State {
                over: false,
                level: ticket.level,
                accepted: (ticket.principal, None),
                seen: None,
                listens: how == SessionBegan::Rebuilt,
                following: None,
                former: Weak::new(),
                work: None,
            }),
            uses: AtomicUsize::new(0),
            last_used,
            _place: place,
            _counted,
        }
    }

    /// The level that it was set to; `None`: no logs.
    pub(in crate::downstream) fn level(&self) -> Option<LogLevel> {
        self.state().level
    }

    pub(in crate::downstream) fn set_level(&self, level: LogLevel) {
        self.state().level = Some(level);
    }

    /// Whether events without data mean something to the client (A13.5).
    pub(super) fn primes(&self) -> bool {
        self.client.revision >= LegacyRevision::V2025_11_25
    }

    /// How long a call's stream stays open without an answer.
    pub(super) fn poll(&self) -> Option<Duration> {
        (self.primes() && !self.common.poll.is_zero()).then_some(self.common.poll)
    }

    pub(super) fn accepts(&self, principal: Principal) -> bool {
        if self.state().seen == Some(principal) {
            return true;
        }
        let name = principal.name();
        let mut state = self.state();
        let accepts = state.accepted.0 == name || state.accepted.1 == Some(name);
        if accepts {
            state.seen = Some(principal);
        }
        accepts
    }

    /// From now on it is used with another credential; the present one is good until the next.
    pub(super) fn accept(&self, principal: Principal) {
        let name = principal.name();
        let mut state = self.state();
        if state.accepted.0 != name {
            state.accepted = (name, Some(state.accepted.0));
            state.seen = None;
        }
    }

    /// How long it has been without a use; `None` in use.
    pub(super) fn idle(&self) -> Option<Duration> {
        if self.uses.load(Ordering::Acquire) > 0 {
            return None;
        }
        let idle = millis(self.common.born).saturating_sub(self.last_used.load(Ordering::Acquire));
        Some(Duration::from_millis(idle))
    }

    pub(super) fn begin_use(&self) {
        self.uses.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn end_use(&self) {
        self.last_used.store(millis(self.common.born), Ordering::Release);
        self.uses.fetch_sub(1, Ordering::AcqRel);
    }

    /// A call is in flight under this id, and under a number of its own. What it is cancelled by.
    pub(super) fn begin_call(&self, id: &Id, number: u64) -> CancellationToken {
        let cancelled = CancellationToken::new();
        let call = InFlight { id: id.clone(), number, cancelled: cancelled.clone() };
        if self.live(|work| work.calls.push(call)).is_none() {
            cancelled.cancel();
        }
        cancelled
    }

    pub(super) fn end_call(&self, number: u64) {
        self.work(|work| work.calls.retain(|call| call.number != number));
    }

    /// A stream for the answers to these requests; once it is over, that is all that it tells.
    pub(super) fn open(&self, number: u64, ids: Ids) {
        let mut state = self.state();
        let over = state.over;
        let rows = &mut state.work.get_or_insert_default().rows;
        rows.open(number, Kind::Call, ids);
        if over {
            let (wakers, gone) = rows.finish(number, ended_before, Ended::Cancelled, &self.common.bounds);
            drop(state);
            self.made_room(gone);
            wake(wakers);
        }
    }

    /// A question is about to go to the client; its answer goes to `to`.
    pub(in crate::downstream) fn ask(&self, id: u64, to: oneshot::Sender<Reply>) {
        self.live(|work| work.questions.insert(id, to));
    }

    /// The client answers. `false`: nobody waits for that.
    pub(in crate::downstream) fn answer(&self, reply: Reply) -> bool {
        let response = &reply.response;
        let raw = response.id.map(|span| span.of(&response.text));
        let Some(id) = raw.and_then(number) else { return false };
        let waiting = self.work(|work| {
            work.rows.answered(id);
            work.questions.remove(&id)
        });
        waiting.is_some_and(|to| to.send(reply).is_ok())
    }

    /// Nobody waits for that answer any more. `false`: it has come.
    pub(in crate::downstream) fn withdraw(&self, id: u64) -> bool {
        self.work(|work| work.questions.remove(&id)).is_some()
    }

    /// The client takes the request of this raw id back: every call under it.
    pub(in crate::downstream) fn cancel(&self, id: &[u8]) -> bool {
        let calls: Vec<_> = self.work(|work| {
            let named = work.calls.iter().filter(|call| call.id.raw() == id);
            named.map(|call| call.cancelled.clone()).collect()
        });
        calls.iter().for_each(CancellationToken::cancel);
        !calls.is_empty()
    }

    /// Ends it: its calls are cancelled, and its streams end when their last words have been taken.
    pub(super) fn end(&self, how: SessionEnd) {
        let mut state = self.state();
        if !std::mem::replace(&mut state.over, true) {
            self.common.metrics.client_session_ended(how);
        }
        let following = state.following.take();
        let Some(work) = &mut state.work else {
            drop(state);
            drop(following);
            return;
        };
        let (wakers, gone) = work.rows.end(ended_before, Ended::Cancelled, &self.common.bounds);
        let (calls, questions) = (std::mem::take(&mut work.calls), std::mem::take(&mut work.questions));
        work.notices = Notices::default();
        drop(state);
        self.made_room(gone);
        wake(wakers);
        calls.iter().for_each(|call| call.cancelled.cancel());
        drop((questions, following));
    }

    /// Lets go of what is kept too long.
    pub(super) fn prune(&self) {
        let mut state = self.state();
        if let Some(work) = &mut state.work {
            work.rows.prune(&self.common.bounds);
        }
        tidy(&mut state);
    }

    pub(super) fn next_number(&self) -> u64 {
        self.common.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// For what begins: `None` once it is over.
    pub(super) fn live<T>(&self, act: impl FnOnce(&mut Work) -> T) -> Option<T> {
        let mut state = self.state();
        if state.over {
            return None;
        }
        let done = act(state.work.get_or_insert_default());
        tidy(&mut state);
        Some(done)
    }

    /// For what has begun: `None` where nothing has.
    pub(super) fn begun<T>(&self, act: impl FnOnce(&mut Work) -> T) -> Option<T> {
        let mut state = self.state();
        let done = act(state.work.as_deref_mut()?);
        tidy(&mut state);
        Some(done)
    }

    /// As [`begun`](Self::begun).
    pub(super) fn work<T: Default>(&self, act: impl FnOnce(&mut Work) -> T) -> T {
        self.begun(act).unwrap_or_default()
    }

    pub(super) fn made_room(&self, gone: Gone) {
        if gone.is_nothing() {
            return;
        }
        let Gone { notices, questions, answers } = gone;
        for (what, count) in [
            (ReplayDropped::Notice, notices),
            (ReplayDropped::Question, questions),
            (ReplayDropped::Answer, answers),
        ] {
            (0..count).for_each(|_| self.common.metrics.replay_dropped(what));
        }
        tracing::debug!(
            upstream = %self.common.upstream,
            notices,
            questions,
            answers,
            "what was kept for a client that is away made room (session.replay_events, session.replay_bytes)"
        );
    }

    /// Whether nothing is there that only requests need.
    #[cfg(test)]
    pub(super) fn is_at_rest(&self) -> bool {
        self.state().work.is_none()
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Every other way to end is told by [`Session::end`].
impl Drop for Session {
    fn drop(&mut self) {
        if !self.state().over {
            self.common.metrics.client_session_ended(SessionEnd::Drain);
        }
    }
}

fn ended_before(id: &Id) -> Bytes {
    let text = "the session was ended before this request was answered";
    jsonrpc::error(Some(id), code::INTERNAL_ERROR, text, None)
}

/// Outside the lock.
pub(super) fn wake(wakers: impl IntoIterator<Item = Waker>) {
    wakers.into_iter().for_each(Waker::wake);
}

fn tidy(state: &mut State) {
    let idle = |work: &Work| {
        work.rows.is_empty() && work.calls.is_empty() && work.questions.is_empty() && work.notices.is_empty()
    };
    if state.work.as_deref().is_some_and(idle) {
        state.work = None;
    }
}

/// A raw id as one of ours; `"5"` is taken for `5` (C17).
fn number(raw: &[u8]) -> Option<u64> {
    let digits = raw.strip_prefix(b"\"").and_then(|raw| raw.strip_suffix(b"\"")).unwrap_or(raw);
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn millis(born: Instant) -> u64 {
    u64::try_from(born.elapsed().as_millis()).unwrap_or(u64::MAX)
}
