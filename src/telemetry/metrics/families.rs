//! Which metrics there are: names, labels, help texts, buckets.
//!
//! Owns the list, which the README repeats as a table. Names follow Prometheus: `mcp_janus_` in front, base units, `_total`
//! for what only grows. Does not own what is counted when.

use super::{bridge, channel, questions, schema};
use prometheus::core::Collector;
use prometheus::{
    HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, Result,
};

/// Half a millisecond to a minute.
const SECONDS: [f64; 16] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];
/// A second to a day.
const STREAM_SECONDS: [f64; 8] = [1.0, 10.0, 60.0, 300.0, 1800.0, 3600.0, 21_600.0, 86_400.0];

/// Every family; each is registered once.
pub(super) struct Families {
    pub(super) names: Vec<&'static str>,
    pub(super) requests: IntCounterVec,
    pub(super) in_progress: IntGaugeVec,
    pub(super) duration: HistogramVec,
    pub(super) upstream_duration: HistogramVec,
    pub(super) tool_errors: IntCounterVec,
    pub(super) results_flowed: IntCounterVec,
    pub(super) refusals: IntCounterVec,
    pub(super) limit_hits: IntCounterVec,
    pub(super) upstream_limit_hits: IntCounterVec,
    pub(super) open_streams: IntGaugeVec,
    pub(super) stream_duration: HistogramVec,
    pub(super) sessions: IntGaugeVec,
    pub(super) initializations: IntCounterVec,
    pub(super) sessions_lost: IntCounterVec,
    pub(super) calls_resent: IntCounterVec,
    pub(super) streams_resumed: IntCounterVec,
    pub(super) era_detections: IntCounterVec,
    pub(super) era_contradictions: IntCounterVec,
    pub(super) upstream_requests: IntCounterVec,
    pub(super) questions: questions::Families,
    pub(super) bridge: bridge::Families,
    pub(super) channel: channel::Families,
    pub(super) schema: schema::Families,
    pub(super) client_connections: IntGauge,
    pub(super) client_accepted: IntCounter,
    pub(super) client_received: IntCounter,
    pub(super) client_sent: IntCounter,
    pub(super) upstream_connections: IntGaugeVec,
    pub(super) upstream_connected: IntCounterVec,
    pub(super) upstream_received: IntCounterVec,
    pub(super) upstream_sent: IntCounterVec,
    pub(super) log_lines_dropped: IntCounter,
    pub(super) build: IntGaugeVec,
    pub(super) started: IntGauge,
}

impl Families {
    pub(super) fn register(registry: &Registry) -> Result<Self> {
        let mut to = Registrar { registry, names: Vec::new() };
        const UP: &str = "upstream";
        Ok(Self {
            requests: to.counters(
                "mcp_janus_requests_total",
                "Requests to an endpoint that are over, each counted once, by the generations of both sides.",
                &[UP, "client", "server", "method", "outcome"],
            )?,
            in_progress: to.gauges(
                "mcp_janus_requests_in_progress",
                "Requests to an endpoint that are not over: the last byte of the answer has not gone out.",
                &[UP],
            )?,
            duration: to.histograms(
                "mcp_janus_request_duration_seconds",
                "Time from the head of a request to the last byte of its answer; without refusals and streams that stay open.",
                &[UP, "client", "server", "method"],
                &SECONDS,
            )?,
            upstream_duration: to.histograms(
                "mcp_janus_upstream_duration_seconds",
                "Time from sending a request to the server to the head of its answer (modern) or its first message (legacy).",
                &[UP, "server", "method"],
                &SECONDS,
            )?,
            tool_errors: to.counters(
                "mcp_janus_tool_errors_total",
                "Tool results with isError true, as far as results are read: between generations.",
                &[UP],
            )?,
            results_flowed: to.counters(
                "mcp_janus_results_flowed_total",
                "Large results that went to a client of the other generation while they still came, to their end.",
                &[UP],
            )?,
            refusals: to.counters(
                "mcp_janus_refusals_total",
                "Requests refused by the proxy itself; upstream is empty where no endpoint was reached.",
                &[UP, "reason"],
            )?,
            limit_hits: to.counters(
                "mcp_janus_limit_hits_total",
                "Times a limit towards clients was reached, by its setting.",
                &["limit"],
            )?,
            upstream_limit_hits: to.counters(
                "mcp_janus_upstream_limit_hits_total",
                "Times a limit towards a server was reached, by its setting below upstream.NAME.",
                &[UP, "limit"],
            )?,
            open_streams: to.gauges("mcp_janus_open_streams", "Event streams open now.", &[UP, "kind"])?,
            stream_duration: to.histograms(
                "mcp_janus_stream_duration_seconds",
                "How long event streams were open.",
                &[UP, "kind"],
                &STREAM_SECONDS,
            )?,
            sessions: to.gauges(
                "mcp_janus_upstream_sessions",
                "Sessions at a legacy server, by state.",
                &[UP, "state"],
            )?,
            initializations: to.counters(
                "mcp_janus_initializations_total",
                "Sessions that were to be opened at a legacy server, by how that ended.",
                &[UP, "result"],
            )?,
            sessions_lost: to.counters(
                "mcp_janus_sessions_lost_total",
                "Sessions that a legacy server no longer knew; the next call opens another.",
                &[UP],
            )?,
            calls_resent: to.counters(
                "mcp_janus_calls_resent_total",
                "Calls sent again: refused for a lost session, or a list or read whose answer broke off.",
                &[UP],
            )?,
            streams_resumed: to.counters(
                "mcp_janus_streams_resumed_total",
                "Answers of a legacy server taken up again by Last-Event-ID after their stream had ended.",
                &[UP],
            )?,
            era_detections: to.counters(
                "mcp_janus_era_detections_total",
                "Looks at a server's generation, by what came out; none means nothing did.",
                &[UP, "verdict"],
            )?,
            era_contradictions: to.counters(
                "mcp_janus_era_contradictions_total",
                "Times a server did not behave as its generation, so that it was looked at again.",
                &[UP],
            )?,
            upstream_requests: to.counters(
                "mcp_janus_upstream_requests_total",
                "Requests to a server, the proxy's own included, by class of status or by what went wrong; messages to a program count with the status that the answer would have.",
                &[UP, "result"],
            )?,
            questions: questions::Families::register(&mut to)?,
            bridge: bridge::Families::register(&mut to)?,
            channel: channel::Families::register(&mut to)?,
            schema: schema::Families::register(&mut to)?,
            client_connections: to
                .gauge("mcp_janus_client_connections", "Connections of clients open now.")?,
            client_accepted: to
                .counter("mcp_janus_client_connections_opened_total", "Connections of clients accepted.")?,
            client_received: to.counter(
                "mcp_janus_client_received_bytes_total",
                "Bytes of HTTP that came from clients, TLS taken off.",
            )?,
            client_sent: to.counter(
                "mcp_janus_client_sent_bytes_total",
                "Bytes of HTTP that went to clients, before TLS.",
            )?,
            upstream_connections: to.gauges(
                "mcp_janus_upstream_connections",
                "Connections to a server open now, idle ones included.",
                &[UP],
            )?,
            upstream_connected: to.counters(
                "mcp_janus_upstream_connections_opened_total",
                "Connections made to a server.",
                &[UP],
            )?,
            upstream_received: to.counters(
                "mcp_janus_upstream_received_bytes_total",
                "Bytes of HTTP that came from a server, TLS taken off.",
                &[UP],
            )?,
            upstream_sent: to.counters(
                "mcp_janus_upstream_sent_bytes_total",
                "Bytes of HTTP that went to a server, before TLS.",
                &[UP],
            )?,
            log_lines_dropped: to.counter(
                "mcp_janus_log_lines_dropped_total",
                "Log lines dropped because they were not read fast enough.",
            )?,
            build: to.gauges("mcp_janus_build_info", "Always 1; the version is in the label.", &["version"])?,
            started: to.gauge(
                "process_start_time_seconds",
                "When the process started, in seconds since 1970-01-01 UTC.",
            )?,
            names: to.names,
        })
    }
}

pub(super) struct Registrar<'a> {
    registry: &'a Registry,
    names: Vec<&'static str>,
}

impl Registrar<'_> {
    fn add<C: Collector + Clone + 'static>(&mut self, name: &'static str, family: C) -> Result<C> {
        self.registry.register(Box::new(family.clone()))?;
        self.names.push(name);
        Ok(family)
    }

    fn counter(&mut self, name: &'static str, help: &str) -> Result<IntCounter> {
        self.add(name, IntCounter::new(name, help)?)
    }

    fn gauge(&mut self, name: &'static str, help: &str) -> Result<IntGauge> {
        self.add(name, IntGauge::new(name, help)?)
    }

    pub(super) fn counters(
        &mut self,
        name: &'static str,
        help: &str,
        labels: &[&str],
    ) -> Result<IntCounterVec> {
        self.add(name, IntCounterVec::new(Opts::new(name, help), labels)?)
    }

    pub(super) fn gauges(&mut self, name: &'static str, help: &str, labels: &[&str]) -> Result<IntGaugeVec> {
        self.add(name, IntGaugeVec::new(Opts::new(name, help), labels)?)
    }

    pub(super) fn histograms(
        &mut self,
        name: &'static str,
        help: &str,
        labels: &[&str],
        buckets: &[f64],
    ) -> Result<HistogramVec> {
        let opts = HistogramOpts::new(name, help).buckets(buckets.to_vec());
        self.add(name, HistogramVec::new(opts, labels)?)
    }
}
