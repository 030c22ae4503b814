//! `subscriptions/listen` in front of a legacy server: the client's side of it.
//!
//! Owns the order on the client's stream: the acknowledgement, then changes, then the result that ends it gracefully
//! when the proxy drains or the server has nothing to tell any more. An empty acknowledgement stays open too. Does not
//! own what is told (`upstream::legacy`). Rules: B9.1, B9.6; spec 2026-07-28 basic/patterns/subscriptions.

use crate::exchange::{Event, Outcome, Sender};
use crate::shutdown::Shutdown;
use crate::upstream::legacy::Listening;

pub(super) async fn run(mut listening: Listening, sender: Sender, shutdown: Shutdown) {
    let acknowledged = tokio::select! {
        () = sender.cancelled() => return,
        acknowledged = listening.acknowledged() => acknowledged,
        () = shutdown.draining() => listening.acknowledged_without(),
    };
    let told = async {
        sender.event(Event::Changed(acknowledged)).await;
        while let Some(change) = listening.next().await {
            sender.event(Event::Changed(change)).await;
        }
    };
    tokio::select! {
        // In this order: a drain does not get in before the acknowledgement, for which there is room.
        biased;
        () = sender.cancelled() => return,
        () = told => {}
        () = shutdown.draining() => {}
    }
    sender.finish(Outcome::Result(listening.ended()));
}
