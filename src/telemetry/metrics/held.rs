//! What is counted for as long as it lasts: guards that give back in `drop` what they took.
//!
//! Owns the guards, so that no gauge can drift whatever way a future ends. Does not own where they are kept.

use prometheus::{Histogram, IntCounter, IntGauge};
use tokio::time::Instant;

/// One more of something, until it is dropped.
#[derive(Debug)]
pub struct Held(IntGauge);

impl Held {
    pub(super) fn new(gauge: &IntGauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// So many bytes of something, until it is dropped.
#[derive(Debug)]
pub struct HeldBytes {
    gauge: IntGauge,
    bytes: i64,
}

impl HeldBytes {
    pub(super) fn new(gauge: &IntGauge, bytes: usize) -> Self {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        gauge.add(bytes);
        Self { gauge: gauge.clone(), bytes }
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.gauge.sub(self.bytes);
    }
}

/// One open event stream.
#[derive(Debug)]
pub struct OpenStream {
    since: Instant,
    duration: Histogram,
    _open: Held,
}

impl OpenStream {
    pub(super) fn new(open: &IntGauge, duration: &Histogram) -> Self {
        Self { since: Instant::now(), duration: duration.clone(), _open: Held::new(open) }
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.duration.observe(self.since.elapsed().as_secs_f64());
    }
}

/// One session that is ready. It is idle at first and at the end; in between calls begin and end. Each change moves one
/// from gauge to gauge, so their order does not matter.
#[derive(Debug)]
pub struct ReadySession {
    idle: IntGauge,
    busy: IntGauge,
}

impl ReadySession {
    pub(super) fn new(idle: &IntGauge, busy: &IntGauge) -> Self {
        idle.inc();
        Self { idle: idle.clone(), busy: busy.clone() }
    }

    /// The first call of several has begun.
    pub fn begins(&self) {
        self.busy.inc();
        self.idle.dec();
    }

    /// The last call of several has ended.
    pub fn ends(&self) {
        self.idle.inc();
        self.busy.dec();
    }
}

impl Drop for ReadySession {
    fn drop(&mut self) {
        self.idle.dec();
    }
}

/// One connection: counted while open, and every byte on it.
#[derive(Debug)]
pub struct Connection {
    received: IntCounter,
    sent: IntCounter,
    _open: Held,
}

impl Connection {
    pub(super) fn new(
        open: &IntGauge,
        opened: &IntCounter,
        received: &IntCounter,
        sent: &IntCounter,
    ) -> Self {
        opened.inc();
        Self { received: received.clone(), sent: sent.clone(), _open: Held::new(open) }
    }

    pub fn received(&self, bytes: usize) {
        self.received.inc_by(bytes as u64);
    }

    pub fn sent(&self, bytes: usize) {
        self.sent.inc_by(bytes as u64);
    }
}
