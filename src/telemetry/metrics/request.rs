//! One request, measured from its head to the last byte of its answer.
//!
//! Owns the two halves: the [`Tally`] of the edge that answers it, which counts the request exactly once when dropped,
//! and the [`Meter`] that goes along with the call, by which the server's side says of which era it is and how long it
//! took. Does not own the log line, which is written at the same place (`downstream::record`).

use super::held::{Held, OpenStream};
use super::labels::{Ended, Limit, StreamKind, What};
use super::upstream::UpstreamMetrics;
use crate::wire::method::Method;
use crate::wire::version::Era;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::time::Instant;

/// Goes along with a call. Clones speak of the same request.
#[derive(Debug, Clone)]
pub struct Meter(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    upstream: Arc<UpstreamMetrics>,
    what: OnceLock<What>,
    /// 0 for unknown.
    server: AtomicU8,
}

impl Meter {
    pub fn new(upstream: Arc<UpstreamMetrics>) -> Self {
        Self(Arc::new(Inner { upstream, what: OnceLock::new(), server: AtomicU8::new(0) }))
    }

    /// In which era the call goes on.
    pub fn server(&self, era: Era) {
        let mark = match era {
            Era::Modern => 1,
            Era::Legacy => 2,
        };
        self.0.server.store(mark, Ordering::Relaxed);
    }

    /// The request goes out to the server now.
    pub fn sent(&self, server: Era) -> Waiting {
        let upstream = self.0.upstream.clone();
        let what = self.0.what.get().copied().unwrap_or(What::Unknown);
        Waiting { since: Instant::now(), upstream, server, what }
    }

    /// A limit towards the client was reached in the middle of the request.
    pub fn limit(&self, limit: Limit) {
        self.0.upstream.front().limit(limit);
    }

    fn server_era(&self) -> Option<Era> {
        match self.0.server.load(Ordering::Relaxed) {
            1 => Some(Era::Modern),
            2 => Some(Era::Legacy),
            _ => None,
        }
    }
}

/// A request on its way to a server. Dropped without an answer, it leaves no trace in the times.
#[derive(Debug)]
pub struct Waiting {
    since: Instant,
    upstream: Arc<UpstreamMetrics>,
    server: Era,
    what: What,
}

impl Waiting {
    /// The head of the answer, or its first message, is there.
    pub fn answered(self) {
        self.upstream.answered(self.server, self.what, self.since.elapsed());
    }
}

/// Counts one request when it is dropped, which is with the last byte of its answer or when it is given up.
#[derive(Debug)]
pub struct Tally {
    meter: Meter,
    began: Instant,
    client: Option<Era>,
    what: What,
    ended: Ended,
    stream: Option<OpenStream>,
    _in_progress: Held,
}

impl Tally {
    pub fn new(upstream: &Arc<UpstreamMetrics>) -> Self {
        Self {
            meter: Meter::new(upstream.clone()),
            began: Instant::now(),
            client: None,
            what: What::Unknown,
            // Until an outcome is set, the client has gone before there was one.
            ended: Ended::Cancelled,
            stream: None,
            _in_progress: upstream.in_progress(),
        }
    }

    /// For the call.
    pub fn meter(&self) -> Meter {
        self.meter.clone()
    }

    pub fn about(&mut self, what: What, client: Era) {
        self.what = what;
        // A legacy client's request that is looked at as a modern one after all is about the same.
        let _ = self.meter.0.what.set(what);
        self.client = Some(client);
    }

    pub fn ended(&mut self, ended: Ended) {
        self.ended = ended;
    }

    pub fn refused(&mut self, reason: &'static str) {
        self.ended = Ended::Refused;
        self.meter.0.upstream.refused(reason);
    }

    /// The answer is an event stream from now on.
    pub fn streams(&mut self) {
        let kind = match self.what {
            What::Method(Method::Listen) => StreamKind::Listen,
            What::Get => StreamKind::ClientGet,
            What::Method(_)
            | What::Notification
            | What::Response
            | What::Batch
            | What::Delete
            | What::Unknown => StreamKind::Answer,
        };
        self.stream = self.meter.0.upstream.stream(kind);
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        let (upstream, server) = (&self.meter.0.upstream, self.meter.server_era());
        upstream.request(self.client, server, self.what, self.ended, self.began.elapsed());
    }
}
