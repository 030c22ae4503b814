//! The one span and the one log line of a request.
//!
//! Owns what is told of a request: method, name, eras, upstream, outcome, status and time; never arguments, credentials
//! or contents. The line is written when the response has been sent or given up, so that it covers streams.

use crate::wire::version::Era;
use std::time::Instant;
use tracing::Span;

/// Dropped with the response's last byte.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) span: Span,
    began: Instant,
    status: u16,
    outcome: &'static str,
}

impl Record {
    pub(super) fn new(upstream: &str) -> Self {
        let span = tracing::info_span!(
            "request",
            upstream,
            client = tracing::field::Empty,
            server = tracing::field::Empty,
            method = tracing::field::Empty,
            name = tracing::field::Empty,
        );
        // Until an outcome is set, the client has gone before there was one.
        Self { span, began: Instant::now(), status: 0, outcome: "cancelled" }
    }

    pub(super) fn method(&self, label: &'static str, client: Era, name: Option<&str>) {
        self.span.record("client", client.name());
        self.span.record("method", label);
        if let Some(name) = name {
            self.span.record("name", name.chars().take(128).collect::<String>());
        }
    }

    pub(super) fn status(&mut self, status: u16) {
        self.status = status;
    }

    pub(super) fn outcome(&mut self, outcome: &'static str) {
        self.outcome = outcome;
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let milliseconds = self.began.elapsed().as_micros() as f64 / 1000.0;
        let (status, outcome) = (self.status, self.outcome);
        tracing::info!(parent: &self.span, status, outcome, milliseconds, "done");
    }
}
