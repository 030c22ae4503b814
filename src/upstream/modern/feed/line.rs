//! One of a hub's two listens as it stands, with the one that replaces it and the one that it replaced.
//!
//! Owns the streams and acts on the plan: opens, closes, and gives what is heard to the hub. While two are open, the same
//! change may come on both, and some servers tell one many times: equal ones within a short time are told once, and the last
//! is never the one left out. A server that tells more than that is read more slowly.
//! Rules: B9.3, B9.7; vector D99.

use super::hub::Hub;
use super::listen::{Heard, Listen};
use super::plan::{End, Plan, Step};
use super::state::Kind;
use super::{Feed, NotSubscribed, late};
use crate::translate::legacy_client::notify::{Acknowledged, Change, announce};
use crate::wire::payload::Payload;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// How long changes are collected while two listens are open, or others were told just before.
const COLLECT: Duration = Duration::from_millis(50);

/// Changes that are collected at most; nothing more is read then until they are told.
const COLLECTED: usize = 256;

pub(super) struct Line {
    feed: Arc<Feed>,
    hub: Arc<Hub>,
    kind: Kind,
    plan: Plan,
    /// Replaced, and read for a moment longer.
    outgoing: Option<Listen>,
    standing: Option<Listen>,
    opening: Option<Listen>,
    collected: Vec<(Change, Payload)>,
    due: Option<Instant>,
    /// When something was told last.
    told: Option<Instant>,
    /// It is wanted, and does not stand.
    unwell: bool,
    /// It is wanted, and cannot be had.
    away: Option<Away>,
}

/// Which of the three.
#[derive(Debug, Clone, Copy)]
enum Which {
    Outgoing,
    Standing,
    Opening,
}

/// Counts one more hub that cannot listen, and tells the operator of the first and the last.
struct Away(Arc<Feed>);

impl Line {
    pub(super) fn new(feed: &Arc<Feed>, hub: &Arc<Hub>, kind: Kind) -> Self {
        Self {
            feed: feed.clone(),
            hub: hub.clone(),
            kind,
            plan: Plan::new(&feed.shared.settings.timeouts),
            outgoing: None,
            standing: None,
            opening: None,
            collected: Vec::new(),
            due: None,
            told: None,
            unwell: false,
            away: None,
        }
    }

    /// Does what is due. Until when there is nothing more to do, if nothing happens.
    pub(super) fn act(&mut self) -> Option<Instant> {
        let now = Instant::now();
        loop {
            let fit = self.hub.lock().fit(self.kind);
            match self.plan.step(fit, now) {
                Step::Wait(at) => {
                    let unwell = fit.wanted && self.standing.is_none();
                    if std::mem::replace(&mut self.unwell, unwell) != unwell {
                        self.hub.unwell(unwell);
                    }
                    return at;
                }
                Step::Open => {
                    let wish = self.hub.lock().wish(self.kind);
                    self.opening = Some(Listen::begin(&self.feed.shared, self.hub.head(), wish));
                }
                Step::Close => {
                    self.plan.closed();
                    (self.outgoing, self.standing, self.opening) = (None, None, None);
                    self.away = None;
                    self.hub.lock().falls(self.kind);
                }
                Step::Release => self.outgoing = None,
                Step::Late => self.tell_failed(&NotSubscribed::Fault(late())),
                Step::GiveUp => self.failed(&End::Failed(late())),
                Step::Deny(told) => self.hub.lock().deny(&told),
            }
        }
    }

    pub(super) fn hurry(&mut self, hurried: bool) {
        self.plan.hurry(hurried);
    }

    pub(super) fn prod(&mut self) {
        self.plan.prod(Instant::now());
    }

    pub(super) fn is_idle(&self) -> bool {
        self.plan.is_idle()
    }

    /// Waits until something is heard, or has been collected for long enough, and sees to it. Never ends if nothing is
    /// open. Whoever stops waiting loses nothing.
    pub(super) async fn hear(&mut self) {
        let due = self.due;
        if self.collected.len() >= COLLECTED {
            until(due).await;
            return self.tell_collected();
        }
        let (which, heard) = tokio::select! {
            biased;
            heard = of(&mut self.outgoing) => (Which::Outgoing, heard),
            heard = of(&mut self.standing) => (Which::Standing, heard),
            heard = of(&mut self.opening) => (Which::Opening, heard),
            () = until(due) => return self.tell_collected(),
        };
        match heard {
            Heard::Acknowledged(honoured) => self.acknowledged(which, &honoured),
            Heard::Changed(change, message) => self.changed(change, message),
            Heard::Ended(end) => match which {
                Which::Outgoing => self.outgoing = None,
                Which::Standing => self.ended(&end),
                Which::Opening => self.failed(&end),
            },
        }
    }

    fn acknowledged(&mut self, which: Which, honoured: &Acknowledged) {
        // No other is waited for.
        let (Which::Opening, Some(listen)) = (which, self.opening.take()) else { return };
        let gap = self.plan.acknowledged(Instant::now());
        if gap {
            self.feed.shared.metrics.listen_reconnected();
        }
        let missed = self.hub.lock().stands(self.kind, &listen.wish, honoured, gap);
        self.lapsed(missed.lapsed);
        self.outgoing = self.standing.replace(listen);
        if let Some(away) = self.away.take() {
            away.over();
        }
        // Not collected: an equal one that comes is a later one.
        missed.all.iter().for_each(|change| self.hub.tell_missed(&self.feed, change));
        for (follower, change) in missed.moved {
            self.hub.tell_these(&self.feed, [follower], &change);
        }
    }

    /// The server has let go of what it had granted.
    fn lapsed(&self, resources: usize) {
        if resources > 0 {
            tracing::warn!(
                upstream = %self.feed.shared.settings.name,
                resources,
                "the upstream server keeps subscriptions to resources no more; legacy clients are told to look at them again"
            );
        }
    }

    fn changed(&mut self, change: Change, message: Payload) {
        match self.hub.in_short(&change) {
            None => self.pass_on(change, message),
            Some(changes) => changes.into_iter().for_each(|change| {
                let message = announce(&change);
                self.pass_on(change, message);
            }),
        }
    }

    fn pass_on(&mut self, change: Change, message: Payload) {
        let several = self.standing.is_some() && (self.opening.is_some() || self.outgoing.is_some());
        let now = Instant::now();
        let lately = self.told.is_some_and(|told| now < told + COLLECT);
        if !several && !lately && self.collected.is_empty() {
            self.told = Some(now);
            return self.hub.tell(&self.feed, &change, &message);
        }
        if let Some(known) = self.collected.iter_mut().find(|(known, _)| *known == change) {
            known.1 = message;
            return;
        }
        self.collected.push((change, message));
        self.due.get_or_insert(now + COLLECT);
    }

    fn tell_collected(&mut self) {
        self.due = None;
        self.told = Some(Instant::now());
        for (change, message) in std::mem::take(&mut self.collected) {
            self.hub.tell(&self.feed, &change, &message);
        }
    }

    fn ended(&mut self, end: &End) {
        let retry = match end {
            End::Over { retry } => *retry,
            End::Absent | End::Denied(_) | End::Refused(_) | End::Limited(..) | End::Failed(_) => None,
        };
        tracing::debug!(upstream = %self.feed.shared.settings.name, %end, "a listen is over");
        self.standing = None;
        self.plan.ended(retry, Instant::now());
        self.hub.lock().falls(self.kind);
    }

    fn failed(&mut self, end: &End) {
        let upstream = &self.feed.shared.settings.name;
        let goes_on = match end {
            End::Absent => {
                self.tell_failed(&NotSubscribed::Refused);
                self.feed.has_none();
                false
            }
            End::Refused(fault) => {
                tracing::debug!(upstream, %fault, "a listen was refused");
                self.refused()
            }
            End::Denied(fault) | End::Limited(fault, _) | End::Failed(fault) => {
                tracing::debug!(upstream, %fault, "a listen failed");
                self.tell_failed(&NotSubscribed::Fault(fault.clone()));
                false
            }
            // What is not acknowledged ends as failed.
            End::Over { .. } => false,
        };
        self.opening = None;
        self.plan.failed(end, goes_on, Instant::now());
        let is_away = !matches!(end, End::Absent) && !goes_on && self.standing.is_none();
        if is_away && self.away.is_none() && self.hub.lock().fit(self.kind).wanted {
            self.away = Some(Away::new(&self.feed, end));
        }
    }

    /// The server takes no such listen as a whole. Whether another is to be tried at once.
    fn refused(&self) -> bool {
        let Some(listen) = &self.opening else { return false };
        let refused = match self.kind {
            // Nothing could be left out.
            Kind::Lists => return false,
            Kind::Uris => self.hub.lock().refused(&listen.wish),
        };
        self.lapsed(refused.lost.len());
        refused.lost.iter().for_each(|change| self.hub.tell_missed(&self.feed, change));
        refused.again
    }

    fn tell_failed(&self, told: &NotSubscribed) {
        if let Some(listen) = &self.opening {
            self.hub.lock().failed(&listen.wish, told);
        }
    }
}

async fn of(listen: &mut Option<Listen>) -> Heard {
    match listen {
        Some(listen) => listen.next().await,
        None => std::future::pending().await,
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

impl Away {
    fn new(feed: &Arc<Feed>, end: &End) -> Self {
        if feed.one_more_away() {
            tracing::warn!(
                upstream = %feed.shared.settings.name,
                %end,
                "the upstream server cannot be listened to now; legacy clients are told to look again when it can"
            );
        }
        Self(feed.clone())
    }

    /// It stands again.
    fn over(self) {
        if self.0.is_one_away() {
            tracing::info!(upstream = %self.0.shared.settings.name, "the upstream server is listened to again");
        }
    }
}

impl Drop for Away {
    fn drop(&mut self) {
        self.0.one_less_away();
    }
}
