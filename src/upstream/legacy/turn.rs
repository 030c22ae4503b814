//! The request of the client that waits for a call at the moment.
//!
//! A call whose server asks something is waited for by one request after another, and by none in between. Owns whom the call
//! tells what it has to tell, what that request wants to see on the way, and noticing that its client has gone or its time is
//! over. Does not own the waiting for the next request (`rounds`). Rules: B1.1, A12.19; invariant 1.

use super::wants::Wants;
use crate::exchange::{Call, Event, Outcome, Sender, Watcher};
use crate::translate::capabilities::Capabilities;
use crate::translate::notify::Progress;
use crate::wire::json::Limits;
use crate::wire::jsonrpc::Id;
use bytes::Bytes;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use tokio::time::{Instant, sleep_until};

/// See the module.
pub(super) struct Turn {
    pub(super) call: Arc<Call>,
    pub(super) wants: Wants,
    pub(super) progress: Progress,
    /// What the request declared, once it is let go.
    declared: Option<Capabilities>,
    /// `None` while the client is away.
    sender: Option<Sender>,
}

impl Turn {
    pub(super) fn first(call: Arc<Call>, sender: Sender) -> (Self, Watch) {
        let watch = Watch { state: Mutex::new(Watched { who: None, changed: false }) };
        watch.set(Some((sender.watcher(), call.deadline)));
        let wants = Wants::of(&call.request);
        (Self::new(call, wants, sender), watch)
    }

    fn new(call: Arc<Call>, wants: Wants, sender: Sender) -> Self {
        Self { call, wants, progress: Progress::default(), declared: None, sender: Some(sender) }
    }

    /// What the client can be asked by this request.
    pub(super) fn declared(&self, limits: Limits) -> Capabilities {
        match &self.declared {
            Some(declared) => declared.clone(),
            None => Capabilities::of(&self.call.request, limits),
        }
    }

    /// Lets go what was asked for, which may be large, and comes again with the next request.
    pub(super) fn without_request(&mut self, limits: Limits) -> Arc<Call> {
        self.declared = Some(self.declared(limits));
        self.call = Arc::new(self.call.without_request());
        self.call.clone()
    }

    pub(super) fn id(&self) -> &Id {
        self.call.id()
    }

    /// Whether somebody waits for the call.
    pub(super) fn is_here(&self) -> bool {
        self.sender.is_some()
    }

    /// Waits for room. With nobody there it is told to nobody.
    pub(super) async fn event(&self, event: Event) {
        if let Some(sender) = &self.sender {
            sender.event(event).await;
        }
    }

    pub(super) async fn piece(&self, piece: Bytes) {
        if let Some(sender) = &self.sender {
            sender.piece(piece).await;
        }
    }

    /// The client's answer, with which its request is over.
    pub(super) fn finish(&mut self, watch: &Watch, outcome: Outcome) {
        watch.set(None);
        if let Some(sender) = self.sender.take() {
            sender.finish(outcome);
        }
    }

    /// The client has come back.
    pub(super) fn next(&mut self, watch: &Watch, call: Arc<Call>, sender: Sender) {
        watch.set(Some((sender.watcher(), call.deadline)));
        let wants = Wants::of(&call.request);
        *self = Self::new(call, wants, sender);
    }
}

/// How a request ends before its call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    /// Its client has gone.
    Gone,
    /// Its time is over.
    Late,
}

/// Sees whether the request of the moment is over, beside whoever works for it.
pub(super) struct Watch {
    state: Mutex<Watched>,
}

struct Watched {
    who: Option<(Watcher, Instant)>,
    changed: bool,
}

impl Watch {
    fn set(&self, who: Option<(Watcher, Instant)>) {
        let mut state = self.lock();
        state.who = who;
        state.changed = true;
    }

    /// Runs `work` to its end, unless the request that waits for it is over before.
    pub(super) async fn run<T>(&self, mut work: Pin<&mut impl Future<Output = T>>) -> Result<T, Over> {
        let mut late = pin!(sleep_until(Instant::now()));
        poll_fn(|cx| {
            loop {
                let mut state = self.lock();
                if std::mem::take(&mut state.changed)
                    && let Some((_, deadline)) = &state.who
                {
                    late.as_mut().reset(*deadline);
                }
                if let Some((watcher, _)) = &state.who {
                    if watcher.poll_cancelled(cx).is_ready() {
                        return Poll::Ready(Err(Over::Gone));
                    }
                    if late.as_mut().poll(cx).is_ready() {
                        return Poll::Ready(Err(Over::Late));
                    }
                }
                drop(state);
                if let Poll::Ready(end) = work.as_mut().poll(cx) {
                    return Poll::Ready(Ok(end));
                }
                // Another request waits now, which nobody watches yet.
                if !self.lock().changed {
                    return Poll::Pending;
                }
            }
        })
        .await
    }

    fn lock(&self) -> MutexGuard<'_, Watched> {
        // Held for a few reads and writes, none of which panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
