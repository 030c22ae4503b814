//! What is counted of one upstream: its handles, found by index.
//!
//! Owns the arrays of series. Those of requests come into being with their first use, so that only what happened is
//! listed; after that, counting is an atomic addition and nothing is looked up by name or locked.

use super::bridge::Bridge;
use super::channel::Channel;
use super::families::Families;
use super::front::FrontMetrics;
use super::held::{Connection, Held, OpenStream, ReadySession};
use super::labels::{
    Delivered, Ended, Opened, SIDES, StreamKind, UpstreamLimit, Verdict, What, side, side_label,
};
use super::questions::Questions;
use super::schema::Schemas;
use crate::wire::version::Era;
use prometheus::{Histogram, IntCounter, IntCounterVec, IntGauge};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Where a session at a legacy server is in its life. `idle` and `busy` are ready, without and with a call.
const STATES: [&str; 4] = ["opening", "idle", "busy", "ending"];

/// Series by index, made when first used.
struct Lazy<T>(Box<[OnceLock<T>]>);

impl<T> Lazy<T> {
    fn new(count: usize) -> Self {
        Self((0..count).map(|_| OnceLock::new()).collect())
    }

    fn with(&self, index: usize, make: impl FnOnce() -> T, then: impl FnOnce(&T)) {
        if let Some(slot) = self.0.get(index) {
            then(slot.get_or_init(make));
        }
    }
}

/// The handles of one upstream.
pub struct UpstreamMetrics {
    name: String,
    families: Arc<Families>,
    front: Arc<FrontMetrics>,
    requests: Lazy<IntCounter>,
    durations: Lazy<Histogram>,
    upstream_durations: Lazy<Histogram>,
    in_progress: IntGauge,
    tool_errors: IntCounter,
    results_flowed: IntCounter,
    limits: Vec<IntCounter>,
    streams: Vec<(IntGauge, Histogram)>,
    sessions: [IntGauge; 4],
    initializations: Vec<IntCounter>,
    sessions_lost: IntCounter,
    calls_resent: IntCounter,
    streams_resumed: IntCounter,
    detections: Vec<IntCounter>,
    contradictions: IntCounter,
    deliveries: Vec<IntCounter>,
    questions: Questions,
    bridge: Bridge,
    channel: Channel,
    schemas: Schemas,
    connections: IntGauge,
    connected: IntCounter,
    received: IntCounter,
    sent: IntCounter,
}

impl std::fmt::Debug for UpstreamMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("UpstreamMetrics").field(&self.name).finish()
    }
}

impl UpstreamMetrics {
    pub(super) fn new(families: Arc<Families>, front: Arc<FrontMetrics>, name: &str) -> Self {
        let one = |family: &IntCounterVec| family.with_label_values(&[name]);
        let each = |family: &IntCounterVec, words: &[&str]| {
            words.iter().map(|word| family.with_label_values(&[name, word])).collect::<Vec<_>>()
        };
        let stream = |kind: &&str| {
            let labels = [name, kind];
            (
                families.open_streams.with_label_values(&labels),
                families.stream_duration.with_label_values(&labels),
            )
        };
        Self {
            name: name.to_owned(),
            requests: Lazy::new(SIDES * SIDES * What::COUNT * Ended::WORDS.len()),
            durations: Lazy::new(SIDES * SIDES * What::COUNT),
            upstream_durations: Lazy::new(SIDES * What::COUNT),
            in_progress: families.in_progress.with_label_values(&[name]),
            tool_errors: one(&families.tool_errors),
            results_flowed: one(&families.results_flowed),
            limits: each(&families.upstream_limit_hits, UpstreamLimit::WORDS),
            streams: StreamKind::WORDS.iter().map(stream).collect(),
            sessions: STATES.map(|state| families.sessions.with_label_values(&[name, state])),
            initializations: each(&families.initializations, Opened::WORDS),
            sessions_lost: one(&families.sessions_lost),
            calls_resent: one(&families.calls_resent),
            streams_resumed: one(&families.streams_resumed),
            detections: each(&families.era_detections, Verdict::WORDS),
            contradictions: one(&families.era_contradictions),
            deliveries: each(&families.upstream_requests, Delivered::WORDS),
            questions: Questions::new(&families.questions, name),
            bridge: Bridge::new(&families.bridge, name),
            channel: Channel::new(&families.channel, name),
            schemas: Schemas::new(&families.schema, name),
            connections: families.upstream_connections.with_label_values(&[name]),
            connected: one(&families.upstream_connected),
            received: one(&families.upstream_received),
            sent: one(&families.upstream_sent),
            families,
            front,
        }
    }

    /// What is counted of clients as a whole.
    pub fn front(&self) -> &FrontMetrics {
        &self.front
    }

    pub(super) fn in_progress(&self) -> Held {
        Held::new(&self.in_progress)
    }

    /// A request is over. `took` is the time to its answer's last byte.
    pub(super) fn request(
        &self,
        client: Option<Era>,
        server: Option<Era>,
        what: What,
        ended: Ended,
        took: Duration,
    ) {
        let cell = side(client) * SIDES + side(server);
        let by_method = cell * What::COUNT + what.index();
        let (name, client, server) = (self.name.as_str(), side_label(client), side_label(server));
        let labels = [name, client, server, what.label(), ended.label()];
        let index = by_method * Ended::WORDS.len() + ended as usize;
        self.requests.with(index, || self.families.requests.with_label_values(&labels), IntCounter::inc);
        if ended != Ended::Refused && !what.is_open_ended() {
            let labels = [name, client, server, what.label()];
            let make = || self.families.duration.with_label_values(&labels);
            self.durations.with(by_method, make, |seconds| seconds.observe(took.as_secs_f64()));
        }
    }

    pub(super) fn answered(&self, server: Era, what: What, took: Duration) {
        if what.is_open_ended() {
            return;
        }
        let index = side(Some(server)) * What::COUNT + what.index();
        let labels = [self.name.as_str(), server.name(), what.label()];
        let make = || self.families.upstream_duration.with_label_values(&labels);
        self.upstream_durations.with(index, make, |seconds| seconds.observe(took.as_secs_f64()));
    }

    /// The proxy refused a request. Reasons are words of the program, never of a client.
    pub fn refused(&self, reason: &'static str) {
        self.families.refusals.with_label_values(&[&self.name, reason]).inc();
    }

    /// A tool's result says `isError`.
    pub fn tool_error(&self) {
        self.tool_errors.inc();
    }

    /// A large result has gone to its client while it came.
    pub fn result_flowed(&self) {
        self.results_flowed.inc();
    }

    pub fn limit(&self, limit: UpstreamLimit) {
        add(&self.limits, limit as usize);
    }

    /// A stream that is open until the guard is dropped.
    pub fn stream(&self, kind: StreamKind) -> Option<OpenStream> {
        self.streams.get(kind as usize).map(|(open, duration)| OpenStream::new(open, duration))
    }

    /// A session that is being opened until the guard is dropped.
    pub fn session_opening(&self) -> Held {
        let [opening, ..] = &self.sessions;
        Held::new(opening)
    }

    /// A session that is ready until the guard is dropped.
    pub fn session_ready(&self) -> ReadySession {
        let [_, idle, busy, _] = &self.sessions;
        ReadySession::new(idle, busy)
    }

    /// A session whose end is being told until the guard is dropped.
    pub fn session_ending(&self) -> Held {
        let [.., ending] = &self.sessions;
        Held::new(ending)
    }

    pub fn initialized(&self, opened: Opened) {
        add(&self.initializations, opened as usize);
    }

    pub fn session_lost(&self) {
        self.sessions_lost.inc();
    }

    pub fn call_resent(&self) {
        self.calls_resent.inc();
    }

    pub fn stream_resumed(&self) {
        self.streams_resumed.inc();
    }

    pub fn detected(&self, verdict: Verdict) {
        add(&self.detections, verdict as usize);
    }

    pub fn contradicted(&self) {
        self.contradictions.inc();
    }

    pub fn delivered(&self, delivered: Delivered) {
        add(&self.deliveries, delivered as usize);
    }

    pub(super) fn questions(&self) -> &Questions {
        &self.questions
    }

    pub(super) fn bridge(&self) -> &Bridge {
        &self.bridge
    }

    pub(super) fn channel(&self) -> &Channel {
        &self.channel
    }

    pub(super) fn schemas(&self) -> &Schemas {
        &self.schemas
    }

    /// A connection to the server has been made.
    pub fn connection(&self) -> Connection {
        Connection::new(&self.connections, &self.connected, &self.received, &self.sent)
    }
}

pub(super) fn add(series: &[IntCounter], index: usize) {
    if let Some(counter) = series.get(index) {
        counter.inc();
    }
}
