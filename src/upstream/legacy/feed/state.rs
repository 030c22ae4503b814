//! Who listens in one session, which URIs that takes, and how far its stream is.
//!
//! Owns the counts and what follows from them: what is to be asked of the server next, who may have missed something and
//! when that can be made good. Pure; the lock around it and the task that acts on it are `feed`'s.
//! Rules: B9.2, B9.3; vectors D31, D96; case C48.

use super::super::listeners::Listener;
use super::line::Stream;
use crate::translate::listen::Filter;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

#[derive(Default)]
pub(super) struct State {
    pub(super) seats: HashMap<u64, Seat>,
    next_seat: u64,
    pub(super) uris: HashMap<Arc<str>, Subscription>,
    /// URIs that something must be done about.
    todo: VecDeque<Arc<str>>,
    pub(super) stream: Stream,
    /// What the server tells just now may reach nobody.
    pub(super) gap: bool,
    /// The task has ended; whoever comes now needs another feed.
    pub(super) closed: bool,
}

pub(super) struct Seat {
    pub(super) listener: Arc<Listener>,
    /// What the server offered of what it wants.
    pub(super) filter: Filter,
    /// It may have missed something, and is told once the stream and its subscriptions stand again.
    missed: bool,
}

#[derive(Debug)]
pub(super) struct Subscription {
    wanted_by: usize,
    pub(super) status: Status,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Wanted,
    /// The server is being told, one way or the other.
    Asking,
    Subscribed,
    Refused,
}

/// What the task does next about a URI.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    Subscribe(Arc<str>),
    Unsubscribe(Arc<str>),
}

impl State {
    /// The number of the listener's seat.
    pub(super) fn enter(&mut self, listener: &Arc<Listener>, filter: &Filter) -> u64 {
        let number = self.next_seat;
        self.next_seat += 1;
        let seat = Seat { listener: listener.clone(), filter: filter.clone(), missed: self.gap };
        self.seats.insert(number, seat);
        filter.uris.iter().for_each(|uri| self.want(uri));
        number
    }

    fn want(&mut self, uri: &Arc<str>) {
        let subscription =
            self.uris.entry(uri.clone()).or_insert(Subscription { wanted_by: 0, status: Status::Wanted });
        subscription.wanted_by += 1;
        if subscription.status == Status::Refused {
            subscription.status = Status::Wanted;
        }
        if subscription.status == Status::Wanted {
            self.todo.push_back(uri.clone());
        }
    }

    pub(super) fn unwant(&mut self, uri: &Arc<str>) {
        let Some(subscription) = self.uris.get_mut(uri) else { return };
        subscription.wanted_by = subscription.wanted_by.saturating_sub(1);
        if subscription.wanted_by == 0 {
            self.todo.push_back(uri.clone());
        }
    }

    pub(super) fn next_step(&mut self) -> Option<Step> {
        while let Some(uri) = self.todo.pop_front() {
            let Some(subscription) = self.uris.get_mut(&uri) else { continue };
            match (subscription.status, subscription.wanted_by) {
                (Status::Wanted, 0) | (Status::Refused, 0) => drop(self.uris.remove(&uri)),
                (Status::Wanted, _) => {
                    subscription.status = Status::Asking;
                    return Some(Step::Subscribe(uri));
                }
                (Status::Subscribed, 0) => {
                    subscription.status = Status::Asking;
                    return Some(Step::Unsubscribe(uri));
                }
                // Asking: its answer comes back to here.
                (Status::Asking, _) | (Status::Subscribed, _) | (Status::Refused, _) => {}
            }
        }
        None
    }

    /// Who was promised what is refused now, after it had been taken before, is told so by the end (C48).
    pub(super) fn answered(&mut self, uri: &Arc<str>, status: Status) {
        let Some(subscription) = self.uris.get_mut(uri) else { return };
        subscription.status = status;
        // Whoever came or went meanwhile.
        if subscription.wanted_by == 0 || status == Status::Wanted {
            self.todo.push_back(uri.clone());
        }
        if status == Status::Refused {
            let relies = |seat: &&Seat| seat.filter.uris.contains(uri) && seat.listener.relies_on(uri);
            self.seats.values().filter(relies).for_each(|seat| seat.listener.end());
        }
    }

    pub(super) fn may_miss(&mut self) {
        self.gap = true;
        self.seats.values_mut().for_each(|seat| seat.missed = true);
    }

    pub(super) fn restart(&mut self) {
        self.stream = Stream::Opening;
        self.may_miss();
        self.todo.clear();
        for (uri, subscription) in &mut self.uris {
            subscription.status = Status::Wanted;
            self.todo.push_back(uri.clone());
        }
    }

    pub(super) fn subscribe_again(&mut self) {
        for (uri, subscription) in &mut self.uris {
            if subscription.status == Status::Subscribed {
                subscription.status = Status::Wanted;
                self.todo.push_back(uri.clone());
            }
        }
    }

    /// Those who may have missed something and for whom everything stands again: each once.
    pub(super) fn caught_up(&mut self) -> Vec<Arc<Listener>> {
        if !matches!(self.stream, Stream::Open | Stream::Silent) {
            return Vec::new();
        }
        self.gap = false;
        let State { seats, uris, .. } = self;
        let open = |uri: &Arc<str>| {
            let status = uris.get(uri).map(|subscription: &Subscription| subscription.status);
            matches!(status, Some(Status::Wanted | Status::Asking))
        };
        let ready = seats.values_mut().filter(|seat| seat.missed && !seat.filter.uris.iter().any(open));
        ready
            .map(|seat| {
                seat.missed = false;
                seat.listener.clone()
            })
            .collect()
    }
}
