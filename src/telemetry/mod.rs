//! Logs: where they go and in which form.
//!
//! Owns setting the subscriber up, once a process. Everything goes to standard error, since standard output belongs to
//! results and, in time, to protocol messages. What is logged is decided where it happens; arguments, results and
//! credentials never are.

use crate::config::{Log, LogFormat};
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;
use tracing_subscriber::util::SubscriberInitExt;

/// A filter that the settings' own check let through and the subscriber does not take.
#[derive(Debug, thiserror::Error)]
#[error("log.level: {0}")]
pub struct LogError(String);

/// Starts logging. A second call in one process changes nothing.
pub fn init(log: &Log) -> Result<(), LogError> {
    let filter = EnvFilter::try_new(&log.level).map_err(|error| LogError(error.to_string()))?;
    let lines = fmt().with_env_filter(filter).with_writer(std::io::stderr);
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
    Ok(())
}
