//! What ends a body from our side: its call's deadline, the drain, or the end of the process.
//!
//! Owns when that is and what is said then. A body that never has to wait arms nothing, and one that waits often asks a flag
//! and no clock each time. Rules: B9.6.

use crate::exchange::{Fault, FaultKind};
use crate::shutdown::{Dormant, Shutdown};
use crate::wire::jsonrpc::{self, Id, code};
use crate::wire::meta;
use crate::wire::sse;
use bytes::{Bytes, BytesMut};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// See the module.
pub(super) struct Ends {
    until: Until,
    shutdown: Shutdown,
    /// `None` as long as the body has not waited.
    armed: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    last: Option<Last>,
    /// Without a last message: the body ends as if it were complete, and does not break off.
    pub(super) quiet: bool,
}

/// What is said last.
enum Last {
    /// The graceful end of a subscription.
    Graceful(Bytes),
    /// That there will be no answer to these requests, where the server's stream is not broken off for it.
    NoAnswer(Vec<Id>),
}

enum Until {
    Due(Instant),
    Cut,
    End,
    Drain,
}

impl Ends {
    /// Breaks it off at `deadline`, or when the process ends.
    pub(super) fn at(deadline: Instant, shutdown: Shutdown) -> Self {
        Self::new(Until::Due(deadline), shutdown)
    }

    /// Likewise, with an answer of our own to each of the requests: for a stream of whole events, which nothing of its server's is
    /// to be told from.
    pub(super) fn answered_at(deadline: Instant, shutdown: Shutdown, ids: Vec<Id>) -> Self {
        Self { last: Some(Last::NoAnswer(ids)), ..Self::new(Until::Due(deadline), shutdown) }
    }

    /// Ends an exchange when the process ends.
    pub(super) fn cut(shutdown: Shutdown) -> Self {
        Self::new(Until::Cut, shutdown)
    }

    /// For what ends by itself, with a last word, when the process does.
    pub(super) fn after_last_words(shutdown: Shutdown) -> Self {
        Self::new(Until::End, shutdown)
    }

    /// Ends a subscription when the proxy drains, by the result that says so (B9.6).
    pub(super) fn drain(shutdown: Shutdown, id: &Id) -> Self {
        let id = String::from_utf8_lossy(id.raw());
        let last = format!(
            "\ndata: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"resultType\":\"complete\",\"_meta\":{{\"{}\":{id}}}}}}}\n\n",
            meta::SUBSCRIPTION_ID
        );
        Self { last: Some(Last::Graceful(Bytes::from(last))), ..Self::new(Until::Drain, shutdown) }
    }

    /// Ends a legacy client's own stream when the proxy drains, without a word: that era has none, and the client comes
    /// again.
    pub(super) fn quietly(shutdown: Shutdown) -> Self {
        Self { quiet: true, ..Self::new(Until::Drain, shutdown) }
    }

    /// How long it takes, once the drain has begun, until another process may be there to come to.
    pub(super) fn absence(&self) -> Duration {
        self.shutdown.grace() + Duration::from_secs(2)
    }

    /// Whether there will be a last word.
    pub(super) fn has_last(&self) -> bool {
        self.last.is_some()
    }

    /// The last word, as events.
    pub(super) fn take_last(&mut self) -> Option<Bytes> {
        Some(match self.last.take()? {
            Last::Graceful(events) => events,
            Last::NoAnswer(ids) => {
                let told = if self.shutdown.is_cut() {
                    Fault::cut_short()
                } else {
                    Fault::new(FaultKind::Timeout, "the upstream server did not answer in time")
                };
                let mut events = BytesMut::from(&b"\n"[..]);
                for id in ids {
                    let error = jsonrpc::error(Some(&id), code::INTERNAL_ERROR, &told.text, None);
                    sse::encode_data(&mut events, &[error]);
                }
                events.freeze()
            }
        })
    }

    fn new(until: Until, shutdown: Shutdown) -> Self {
        Self { until, shutdown, armed: None, last: None, quiet: false }
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.armed.get_or_insert_with(|| self.until.arm(self.shutdown.clone())).as_mut().poll(cx)
    }
}

impl Until {
    fn arm(&self, shutdown: Shutdown) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        match *self {
            Until::Due(deadline) => Box::pin(Dormant::new(async move {
                tokio::select! {
                    () = sleep_until(deadline) => {}
                    () = shutdown.cut_short() => {}
                }
            })),
            Until::Cut => Box::pin(Dormant::new(async move { shutdown.cut_short().await })),
            Until::End => Box::pin(Dormant::new(async move { shutdown.ended().await })),
            Until::Drain => Box::pin(Dormant::new(async move { shutdown.draining().await })),
        }
    }
}
