//! What is counted of servers and clients on one channel of messages: child processes, what a server says that is no message,
//! and the messages of the host that has launched this program.
//!
//! Owns these families and their handles. They are the upstream's (`upstream`) and the front's (`front`) in all but the place
//! where they are written down. Does not own when a process starts or ends; the words are in `labels`.

use super::families::Registrar;
use super::front::FrontMetrics;
use super::held::Held;
use super::labels::Exited;
use super::upstream::{UpstreamMetrics, add};
use prometheus::{IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Result};

pub(super) struct Families {
    processes: IntGaugeVec,
    starts: IntCounterVec,
    exits: IntCounterVec,
    not_messages: IntCounterVec,
    stderr_lines: IntCounterVec,
    stdio_messages: IntCounterVec,
}

impl Families {
    pub(super) fn register(to: &mut Registrar<'_>) -> Result<Self> {
        const UP: &str = "upstream";
        Ok(Self {
            processes: to.gauges(
                "mcp_janus_upstream_processes",
                "Child processes of a stdio server that run now.",
                &[UP],
            )?,
            starts: to.counters(
                "mcp_janus_upstream_process_starts_total",
                "Child processes that were to be started, by how that ended.",
                &[UP, "result"],
            )?,
            exits: to.counters(
                "mcp_janus_upstream_process_exits_total",
                "Child processes that have ended: asked to, by themselves, or killed because they did not when asked.",
                &[UP, "how"],
            )?,
            not_messages: to.counters(
                "mcp_janus_upstream_not_messages_total",
                "Texts of a server, on its standard output or its old event stream, that are no messages and were skipped.",
                &[UP],
            )?,
            stderr_lines: to.counters(
                "mcp_janus_upstream_stderr_lines_total",
                "Lines that child processes wrote to their standard error.",
                &[UP],
            )?,
            stdio_messages: to.counters(
                "mcp_janus_stdio_messages_total",
                "Messages of the host that has launched this program as a stdio server: in from it, out to it.",
                &["direction"],
            )?,
        })
    }
}

/// The handles of one upstream.
pub(super) struct Channel {
    processes: IntGauge,
    started: IntCounter,
    not_started: IntCounter,
    exits: Vec<IntCounter>,
    not_messages: IntCounter,
    stderr_lines: IntCounter,
}

impl Channel {
    pub(super) fn new(families: &Families, name: &str) -> Self {
        let exits = |how: &&str| families.exits.with_label_values(&[name, how]);
        Self {
            processes: families.processes.with_label_values(&[name]),
            started: families.starts.with_label_values(&[name, "started"]),
            not_started: families.starts.with_label_values(&[name, "failed"]),
            exits: Exited::WORDS.iter().map(exits).collect(),
            not_messages: families.not_messages.with_label_values(&[name]),
            stderr_lines: families.stderr_lines.with_label_values(&[name]),
        }
    }
}

/// The handles of the one host.
pub(super) struct Stdio {
    into: IntCounter,
    out: IntCounter,
}

impl Stdio {
    pub(super) fn new(families: &Families) -> Self {
        let one = |direction: &str| families.stdio_messages.with_label_values(&[direction]);
        Self { into: one("in"), out: one("out") }
    }
}

/// A process that runs, until it is known how it ended. Dropped without that, it has ended by itself.
#[derive(Debug)]
pub struct RunningProcess {
    exits: Vec<IntCounter>,
    how: Exited,
    _runs: Held,
}

impl RunningProcess {
    pub fn ended(mut self, how: Exited) {
        self.how = how;
    }
}

impl Drop for RunningProcess {
    fn drop(&mut self) {
        add(&self.exits, self.how as usize);
    }
}

impl UpstreamMetrics {
    /// A child process has been started, and runs until the guard is told how it ended.
    pub fn process_started(&self) -> RunningProcess {
        let channel = self.channel();
        channel.started.inc();
        RunningProcess {
            exits: channel.exits.clone(),
            how: Exited::ByItself,
            _runs: Held::new(&channel.processes),
        }
    }

    /// A child process could not be started.
    pub fn process_not_started(&self) {
        self.channel().not_started.inc();
    }

    /// The server said something that is no message.
    pub fn not_a_message(&self) {
        self.channel().not_messages.inc();
    }

    /// A child process wrote a line to its standard error.
    pub fn stderr_line(&self) {
        self.channel().stderr_lines.inc();
    }
}

impl FrontMetrics {
    /// A message of the stdio host has come.
    pub fn stdio_in(&self) {
        self.stdio().into.inc();
    }

    /// A message has gone to the stdio host.
    pub fn stdio_out(&self) {
        self.stdio().out.inc();
    }
}

#[cfg(test)]
mod tests {
    use super::super::Metrics;
    use super::*;

    #[test]
    fn a_process_is_counted_once_in_and_once_out() {
        let metrics = Metrics::new().unwrap();
        let upstream = metrics.upstream("up");
        let shows = |name: &str, labels: &str, value: u64| {
            let line = format!("mcp_janus_upstream_{name}{{{labels}upstream=\"up\"}} {value}");
            let text = metrics.render().unwrap();
            assert!(text.lines().any(|found| found == line), "{line} is not in {text}");
        };
        let running: Vec<_> = (0..4).map(|_| upstream.process_started()).collect();
        upstream.process_not_started();
        shows("processes", "", 4);
        shows("process_starts_total", "result=\"started\",", 4);
        shows("process_starts_total", "result=\"failed\",", 1);
        for (process, how) in running.into_iter().zip([Exited::Asked, Exited::Killed, Exited::Killed]) {
            process.ended(how);
        }
        // The fourth went with the iterator.
        shows("processes", "", 0);
        shows("process_exits_total", "how=\"asked\",", 1);
        shows("process_exits_total", "how=\"killed\",", 2);
        shows("process_exits_total", "how=\"by_itself\",", 1);
        upstream.not_a_message();
        upstream.stderr_line();
        upstream.stderr_line();
        shows("not_messages_total", "", 1);
        shows("stderr_lines_total", "", 2);
    }

    #[test]
    fn a_hosts_messages_are_counted_by_direction() {
        let metrics = Metrics::new().unwrap();
        metrics.front().stdio_in();
        metrics.front().stdio_out();
        metrics.front().stdio_out();
        let text = metrics.render().unwrap();
        for (direction, count) in [("in", 1), ("out", 2)] {
            let line = format!("mcp_janus_stdio_messages_total{{direction=\"{direction}\"}} {count}");
            assert!(text.lines().any(|found| found == line), "{line}");
        }
    }
}
