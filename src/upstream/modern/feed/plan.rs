//! When one of a hub's two listens is opened, opened again, given up and closed.
//!
//! Owns the order of things: a listen is never altered, so another set of wishes is another listen, opened before the old
//! one is closed, and the old one is read for a moment longer, because what was told on it may still be on its way. After
//! an end or a failure it is tried again with backoff and jitter; after a refusal that no repetition will change, when there
//! is a reason to. Pure: times are given. Does not own the streams (`line`) nor what is wanted (`state`).
//! Rules: B9.7; vector D99; architecture "Retries".

use super::NotSubscribed;
use super::state::Fit;
use crate::config::UpstreamTimeouts;
use crate::exchange::Fault;
use crate::translate::legacy_client::listen::METHOD;
use crate::upstream::backoff::Backoff;
use std::fmt;
use std::time::Duration;
use tokio::time::Instant;

/// What nobody wants any more is listened for so much longer: a client that comes back causes nothing.
const REST: Duration = Duration::from_secs(3);

/// How long a listen that has been replaced is read on.
const LAG: Duration = Duration::from_millis(250);

/// A listen that stood for this long was sound: the pauses begin anew.
const STOOD: Duration = Duration::from_secs(10);

/// Somebody who waits does not wait for a pause that has grown, but causes no more attempts than one in this time.
const SELDOM: Duration = Duration::from_secs(1);

/// No server's wish to be left alone is believed beyond this.
const MOST_AWAY: Duration = Duration::from_secs(3600);

pub(super) struct Plan {
    /// Asked for, and not acknowledged yet.
    opening: Option<Opening>,
    /// When the one that stands was acknowledged.
    standing: Option<Instant>,
    /// Until when the one before is read.
    outgoing: Option<Instant>,
    hold: Hold,
    /// When it was tried last.
    tried: Option<Instant>,
    /// When it was noticed that more stands than is wanted.
    surplus: Option<Instant>,
    /// What nobody wants any more is not kept for a moment longer.
    hurried: bool,
    /// Something may have been missed since the last one broke off.
    gap: bool,
    backoff: Backoff,
    patience: Duration,
    longest: Duration,
    reconnect_max: Duration,
}

struct Opening {
    since: Instant,
    late: bool,
}

/// Whether another may be opened.
enum Hold {
    Free,
    After(Instant),
    /// The server said when, so nobody causes it earlier.
    Limited(Instant, NotSubscribed),
    /// Not before something changes, and not before this moment.
    Stopped(Instant, NotSubscribed),
}

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing before this moment, unless something happens.
    Wait(Option<Instant>),
    /// Open another one, instead of one that is being opened.
    Open,
    /// Close all.
    Close,
    /// The one before is read no more.
    Release,
    /// Nobody is to wait for the one that is being opened any longer.
    Late,
    /// It is given up.
    GiveUp,
    /// Nobody can be granted anything now.
    Deny(NotSubscribed),
}

/// Why a listen came to nothing, or ended.
#[derive(Debug, Clone)]
pub(super) enum End {
    /// The server ended it, or it broke off.
    Over {
        retry: Option<Duration>,
    },
    /// The server has no such method.
    Absent,
    /// It does not take the credential.
    Denied(Fault),
    /// It does not take what was asked for.
    Refused(Fault),
    /// It asked for fewer requests.
    Limited(Fault, Option<Duration>),
    Failed(Fault),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Over { .. } => f.write_str("the subscription is over"),
            End::Absent => write!(f, "the upstream server has no {METHOD}"),
            End::Denied(fault) | End::Refused(fault) | End::Limited(fault, _) | End::Failed(fault) => {
                fault.fmt(f)
            }
        }
    }
}

impl Plan {
    pub(super) fn new(timeouts: &UpstreamTimeouts) -> Self {
        Self {
            opening: None,
            standing: None,
            outgoing: None,
            hold: Hold::Free,
            tried: None,
            surplus: None,
            hurried: false,
            gap: false,
            backoff: Backoff::new(timeouts.reconnect, timeouts.reconnect_max),
            // The server has to answer no more than a handshake.
            patience: timeouts.initialize,
            longest: timeouts.request.max(timeouts.initialize),
            reconnect_max: timeouts.reconnect_max,
        }
    }

    pub(super) fn step(&mut self, fit: Fit, now: Instant) -> Step {
        if self.outgoing.is_some_and(|until| until <= now) {
            self.outgoing = None;
            return Step::Release;
        }
        if let Some(opening) = &mut self.opening {
            if !opening.late && opening.since + self.patience <= now {
                opening.late = true;
                self.gap = true;
                return Step::Late;
            }
            if opening.since + self.longest <= now {
                return Step::GiveUp;
            }
        }
        if fit.waiting
            && self.opening.is_none()
            && let Hold::Limited(until, told) | Hold::Stopped(until, told) = &self.hold
            && *until > now
        {
            return Step::Deny(told.clone());
        }
        let next = self.next(fit, now);
        let timers = [self.outgoing, self.opening.as_ref().map(|opening| self.due(opening))];
        match next {
            Step::Wait(at) => Step::Wait(timers.into_iter().flatten().chain(at).min()),
            step => step,
        }
    }

    fn due(&self, opening: &Opening) -> Instant {
        opening.since + if opening.late { self.longest } else { self.patience }
    }

    fn next(&mut self, fit: Fit, now: Instant) -> Step {
        if !fit.wanted {
            if self.is_idle() {
                return Step::Wait(None);
            }
            return self.rested(now).map_or(Step::Close, |at| Step::Wait(Some(at)));
        }
        if let Some(opening) = &self.opening
            && !(opening.late && fit.waiting)
        {
            return Step::Wait(None);
        }
        if self.standing.is_some() && !fit.short {
            if !fit.surplus {
                self.surplus = None;
                return Step::Wait(None);
            }
            if let Some(at) = self.rested(now) {
                return Step::Wait(Some(at));
            }
        }
        if self.outgoing.is_some() {
            // One at a time, and whoever comes meanwhile is taken along.
            return Step::Wait(None);
        }
        let at = match self.hold {
            Hold::Free => now,
            Hold::After(at) if fit.waiting => at.min(self.tried.map_or(now, |tried| tried + SELDOM)),
            Hold::After(at) | Hold::Limited(at, _) => at,
            Hold::Stopped(at, _) if fit.waiting => at,
            Hold::Stopped(..) => return Step::Wait(None),
        };
        if at > now {
            return Step::Wait(Some(at));
        }
        self.opening = Some(Opening { since: now, late: false });
        self.tried = Some(now);
        self.hold = Hold::Free;
        self.surplus = None;
        Step::Open
    }

    /// Whether what nobody wants any more is to be closed at once.
    pub(super) fn hurry(&mut self, hurried: bool) {
        self.hurried = hurried;
    }

    /// `None` when what nobody wants has been kept for long enough.
    fn rested(&mut self, now: Instant) -> Option<Instant> {
        if self.hurried {
            return None;
        }
        let at = *self.surplus.get_or_insert(now) + REST;
        (at > now).then_some(at)
    }

    /// The one that was opened is acknowledged. Whether something may have been missed before.
    pub(super) fn acknowledged(&mut self, now: Instant) -> bool {
        self.opening = None;
        self.hold = Hold::Free;
        if let Some(since) = self.standing.replace(now) {
            self.outgoing = Some(now + LAG);
            self.settle(since, now);
        }
        std::mem::take(&mut self.gap)
    }

    /// The one that stood has ended.
    pub(super) fn ended(&mut self, retry: Option<Duration>, now: Instant) {
        let Some(since) = self.standing.take() else { return };
        self.gap = true;
        self.settle(since, now);
        self.tried = Some(now);
        self.hold = Hold::After(now + self.backoff.pause(retry));
    }

    fn settle(&mut self, since: Instant, now: Instant) {
        if now.saturating_duration_since(since) >= STOOD {
            self.backoff.reset();
        }
    }

    /// The one that was being opened came to nothing; `goes_on` if this leaves another wish to be tried at once.
    pub(super) fn failed(&mut self, end: &End, goes_on: bool, now: Instant) {
        self.opening = None;
        self.tried = Some(now);
        // Those who are here already have no way to know that nobody has listened for them.
        self.gap = true;
        self.hold = match end {
            End::Absent => Hold::Stopped(now + self.reconnect_max, NotSubscribed::Refused),
            End::Denied(fault) => {
                Hold::Stopped(now + self.backoff.pause(None), NotSubscribed::Fault(fault.clone()))
            }
            End::Refused(_) if goes_on => Hold::Free,
            End::Limited(fault, Some(after)) => {
                let pause = self.backoff.pause(None).max((*after).min(MOST_AWAY));
                Hold::Limited(now + pause, NotSubscribed::Fault(fault.clone()))
            }
            End::Limited(fault, None) => {
                Hold::Limited(now + self.backoff.pause(None), NotSubscribed::Fault(fault.clone()))
            }
            End::Over { retry } => Hold::After(now + self.backoff.pause(*retry)),
            End::Refused(_) | End::Failed(_) => Hold::After(now + self.backoff.pause(None)),
        };
    }

    /// Somebody has come, or a newer credential: what was stopped for want of a reason is tried again.
    pub(super) fn prod(&mut self, now: Instant) {
        if let Hold::Stopped(at, _) = self.hold {
            self.hold = Hold::After(at.max(now));
        }
    }

    /// All have been closed.
    pub(super) fn closed(&mut self) {
        self.opening = None;
        self.standing = None;
        self.outgoing = None;
        self.surplus = None;
        self.gap = false;
    }

    /// Nothing stands, is being opened or read.
    pub(super) fn is_idle(&self) -> bool {
        self.opening.is_none() && self.standing.is_none() && self.outgoing.is_none()
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
