//! Taking the client's texts in their order.
//!
//! Owns the one loop of a channel: what is read is begun, what is under way goes on, nothing is read that there is no room for. A
//! request that finds none waits a moment, in which answers and cancellations behind it wait too, and is then refused; unless
//! the client does not read what it is told, in which case it has to wait for itself. Owns the drain too: no new requests, and
//! the end with the last one that runs. Sessions that nobody wants are ended beside it all. Rules: A14.7; architecture, invariant 5.

use super::sort::{Item, What};
use super::{Channel, Inbound, WAITING};
use crate::wire::jsonrpc::code;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::FuturesUnordered;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// Messages under way that are no requests.
const SMALL: usize = 256;
/// How long a request waits, unread what comes after it, before it is refused.
const PATIENCE: Duration = Duration::from_secs(1);

type Work<'a> = FuturesUnordered<BoxFuture<'a, ()>>;

impl Channel {
    /// Until the client is gone or the drain is over. The raw ids of legacy requests that are then at the server.
    pub(super) async fn run(&self, mut texts: mpsc::Receiver<Inbound>) -> Vec<Bytes> {
        let shutdown = &self.inner().shutdown;
        let mut work = Work::new();
        let mut follow = pin!(self.follow().fuse());
        let mut ended = pin!(shutdown.ended());
        let mut draining = pin!(shutdown.draining());
        let mut drains = false;
        let mut held: Option<Item> = None;
        let mut patience = Instant::now();
        let mut patient = true;
        loop {
            work.extend(self.sessions.left().iter().map(|session| self.end_left(session)));
            if let Some(item) = held.take() {
                if self.has_room(&item) {
                    patient |= item.what.takes_a_place();
                    self.begin(item, &work);
                    continue;
                }
                held = Some(item);
            }
            if drains && work.is_empty() && held.is_none() {
                // What has been said by now is answered, if only by a refusal.
                let Ok(inbound) = texts.try_recv() else { return Vec::new() };
                held = Some(self.sort(inbound));
                continue;
            }
            // Who does not read what it is told has to wait for itself.
            let refuses =
                held.as_ref().is_some_and(|item| item.what.takes_a_place()) && self.out.capacity() > 0;
            tokio::select! {
                biased;
                () = self.gone.cancelled() => break,
                () = self.out.closed() => break,
                () = &mut ended => break,
                // Before the calls that wait for the same: what they ask must find the session's stream.
                () = &mut follow => {}
                () = self.sessions.some_left() => {}
                Some(()) = work.next(), if !work.is_empty() => {}
                () = &mut draining, if !drains => drains = true,
                inbound = texts.recv(), if held.is_none() => {
                    let Some(inbound) = inbound else { break };
                    patience = Instant::now() + PATIENCE;
                    held = Some(self.sort(inbound));
                }
                () = sleep_until(patience), if refuses && patient => patient = false,
                () = std::future::ready(()), if refuses && !patient => {
                    if let Some(item) = held.take() {
                        let told = "as many requests are under way as may be";
                        held = Some(Item::own(self.refused(item.what.id().cloned(), code::INTERNAL_ERROR, told)));
                    }
                }
            }
        }
        self.flying.at_server()
    }

    fn has_room(&self, item: &Item) -> bool {
        if item.what.takes_a_place() {
            self.waiting.load(Ordering::Acquire) < WAITING
        } else {
            self.small.load(Ordering::Acquire) < SMALL
        }
    }

    fn begin<'a>(&'a self, item: Item, work: &Work<'a>) {
        let Item { mut what, brought } = item;
        if what.takes_a_place() && self.inner().shutdown.is_draining() {
            what = self.refused(what.id().cloned(), code::INTERNAL_ERROR, "the proxy is shutting down");
        }
        work.push(match what {
            What::Modern(request) => self.modern(request, brought),
            What::ModernNotice(told) => self.modern_notice(told, brought),
            What::Initialize(request) => self.initialize(request, brought),
            What::Legacy(request) => self.legacy(request, brought),
            What::LegacyNotice(told) => self.legacy_notice(told, brought),
            What::Answer(text) => self.answer(text, brought),
            What::Array(text) => self.batch(text, brought),
            What::Say(text) => self.speak(text),
            What::Cancel { raw, text } => match self.cancel(&raw, text, brought) {
                Some(telling) => telling,
                None => return,
            },
            What::Nothing => return,
        });
    }
}
