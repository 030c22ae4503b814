//! Logs: where they go and in which form. Metrics: see [`metrics`].
//!
//! Owns setting the subscriber up, once a process. Everything goes to standard error, since standard output belongs to
//! results and, in time, to protocol messages. Lines are written by a thread of their own, so that a reader who has
//! stopped reading stops no call; what does not fit into its bounded queue is dropped, and the number of dropped lines
//! is told at the end. What is logged is decided where it happens; arguments, results and credentials never are.

pub mod metrics;

use crate::config::{Log, LogFormat};
use std::io::IsTerminal;
use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;
use tracing_subscriber::util::SubscriberInitExt;

/// Lines that may wait to be written.
const WAITING: usize = 8192;

/// A filter that the settings' own check let through and the subscriber does not take.
#[derive(Debug, thiserror::Error)]
#[error("log.level: {0}")]
pub struct LogError(String);

/// Keeps the writing thread; dropping it writes what still waits.
#[must_use = "without it nothing is logged"]
pub struct Logging {
    dropped: ErrorCounter,
    _writer: WorkerGuard,
}

impl Logging {
    /// How many lines were dropped so far, whenever that is asked.
    pub fn dropped_lines(&self) -> impl Fn() -> u64 + Send + Sync + 'static {
        let dropped = self.dropped.clone();
        move || dropped.dropped_lines() as u64
    }
}

impl Drop for Logging {
    fn drop(&mut self) {
        let lines = self.dropped.dropped_lines();
        if lines > 0 {
            eprintln!("mcp-janus: {lines} log lines were dropped because they were not read fast enough");
        }
    }
}

/// Starts logging. A second call in one process changes nothing.
pub fn init(log: &Log) -> Result<Logging, LogError> {
    let filter = EnvFilter::try_new(&log.level).map_err(|error| LogError(error.to_string()))?;
    let (writer, guard) =
        NonBlockingBuilder::default().buffered_lines_limit(WAITING).finish(std::io::stderr());
    let logging = Logging { dropped: writer.error_counter(), _writer: guard };
    let lines = fmt().with_env_filter(filter).with_writer(writer);
    let started = match log.format {
        LogFormat::Human => {
            lines.with_ansi(std::io::stderr().is_terminal()).with_target(false).finish().try_init()
        }
        LogFormat::Json => {
            lines.json().flatten_event(true).with_current_span(true).with_span_list(false).finish().try_init()
        }
    };
    // Only tests start twice; the first one's settings stay.
    drop(started);
    Ok(logging)
}
