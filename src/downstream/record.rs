//! The one span, the one log line and the one count of a request.
//!
//! Owns what is told of a request: method, name, eras, upstream, outcome, status and time; never arguments, credentials
//! or contents. Written and counted when the response has been sent or given up, so that it covers streams.

use crate::exchange::{Fault, FaultKind};
use crate::telemetry::metrics::{Ended, Meter, Tally, UpstreamMetrics, What};
use crate::wire::version::Era;
use std::sync::Arc;
use std::time::Instant;
use tracing::Span;

/// Dropped with the response's last byte.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) span: Span,
    began: Instant,
    status: u16,
    outcome: &'static str,
    tally: Tally,
}

impl Record {
    pub(super) fn new(upstream: &str, metrics: &Arc<UpstreamMetrics>) -> Self {
        let span = tracing::info_span!(
            "request",
            upstream,
            client = tracing::field::Empty,
            server = tracing::field::Empty,
            method = tracing::field::Empty,
            named = tracing::field::Empty,
        );
        // Until an outcome is set, the client has gone before there was one.
        let outcome = Ended::Cancelled.label();
        Self { span, began: Instant::now(), status: 0, outcome, tally: Tally::new(metrics) }
    }

    /// For the call.
    pub(super) fn meter(&self) -> Meter {
        self.tally.meter()
    }

    /// `name` is asked for only if somebody reads it.
    pub(super) fn about(&mut self, what: What, client: Era, name: impl FnOnce() -> Option<String>) {
        self.tally.about(what, client);
        if self.span.is_disabled() {
            return;
        }
        self.span.record("client", client.name());
        self.span.record("method", what.label());
        if let Some(name) = name() {
            self.span.record("named", name.chars().take(128).collect::<String>());
        }
    }

    pub(super) fn status(&mut self, status: u16) {
        self.status = status;
    }

    /// The answer is an event stream.
    pub(super) fn streams(&mut self) {
        self.tally.streams();
    }

    pub(super) fn outcome(&mut self, ended: Ended) {
        self.outcome = ended.label();
        self.tally.ended(ended);
    }

    /// Why there is no answer of the server is told in full where the server is why.
    pub(super) fn fault(&mut self, fault: &Fault) {
        self.outcome(fault.kind.ended());
        match fault.kind {
            FaultKind::BadGateway | FaultKind::Timeout | FaultKind::Internal => {
                tracing::warn!(parent: &self.span, reason = %fault.text, "no answer of the server");
            }
            FaultKind::InvalidParams
            | FaultKind::MethodNotFound
            | FaultKind::MissingCapability
            | FaultKind::Unauthorized { .. }
            | FaultKind::RateLimited
            | FaultKind::Busy
            | FaultKind::Draining
            | FaultKind::Unanswered => {}
        }
    }

    /// The request was not taken.
    pub(super) fn refused(&mut self, reason: &'static str) {
        self.outcome = reason;
        self.tally.refused(reason);
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let milliseconds = self.began.elapsed().as_micros() as f64 / 1000.0;
        let (status, outcome) = (self.status, self.outcome);
        tracing::info!(parent: &self.span, status, outcome, milliseconds, "done");
    }
}
