//! What a process writes to its standard error: lines for the log, and the first and last of them for when it ends
//! unexpectedly.
//!
//! Owns the bounds of it. A line is cut at a length; control characters are shown, not sent to the operator's terminal; so
//! many lines a second are logged and the rest counted. It is always read, so that a server which floods it goes on. What
//! a server writes there is the operator's: no client sees any of it. Cases C53, C56.

use crate::net::Reads;
use crate::shutdown::Dormant;
use crate::telemetry::metrics::UpstreamMetrics;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt::Write;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// Bytes of a line that are logged.
const LINE: usize = 4 * 1024;

/// Lines that are logged in one second.
const LINES: usize = 200;
const SECOND: Duration = Duration::from_secs(1);

/// Lines that are kept for the end, the first and the last of all, and characters of each. A stack trace is among the last, and
/// what it is of stands above it.
const FIRST: usize = 4;
const LAST: usize = 20;
const LAST_CHARS: usize = 300;

/// Reads to the end of the stream, or until it has been enough; the last lines.
pub(super) async fn read(mut stderr: Reads, mut log: Log, enough: CancellationToken) -> Vec<String> {
    let mut enough = pin!(Dormant::new(enough.cancelled()));
    let mut piece = vec![0; 8 * 1024];
    loop {
        let read = tokio::select! {
            biased;
            () = &mut enough => break,
            read = stderr.read(&mut piece) => read,
            () = sleep_until(log.until), if log.left_out > 0 => {
                log.window();
                continue;
            }
        };
        match read {
            Ok(count @ 1..) => log.bytes(piece.get(..count).unwrap_or_default()),
            Ok(_) | Err(_) => break,
        }
    }
    log.end()
}

/// The lines of one process.
pub(super) struct Log {
    upstream: Arc<str>,
    pid: Option<u32>,
    metrics: Arc<UpstreamMetrics>,
    /// The line that is being read, as far as it is logged, and how long it is.
    line: Vec<u8>,
    length: usize,
    /// The end of the second that is being counted, what was logged in it, and what was not.
    until: Instant,
    logged: usize,
    left_out: usize,
    last: VecDeque<String>,
    /// There were lines between the first and the last ones.
    between: bool,
}

impl Log {
    pub(super) fn new(upstream: Arc<str>, pid: Option<u32>, metrics: Arc<UpstreamMetrics>) -> Self {
        Self {
            upstream,
            pid,
            metrics,
            line: Vec::new(),
            length: 0,
            until: Instant::now() + SECOND,
            logged: 0,
            left_out: 0,
            last: VecDeque::new(),
            between: false,
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        let mut pieces = bytes.split(|byte| *byte == b'\n');
        if let Some(rest) = pieces.next() {
            self.add(rest);
        }
        for piece in pieces {
            self.line();
            self.add(piece);
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        let room = LINE.saturating_sub(self.line.len());
        self.line.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        self.length += bytes.len();
    }

    /// The line is complete.
    fn line(&mut self) {
        let cut = self.length - self.line.len();
        let line = shown(self.line.strip_suffix(b"\r").unwrap_or(&self.line), cut);
        self.line.clear();
        self.length = 0;
        if line.is_empty() {
            return;
        }
        self.metrics.stderr_line();
        if Instant::now() >= self.until {
            self.window();
        }
        if self.logged < LINES {
            self.logged += 1;
            tracing::info!(upstream = &*self.upstream, pid = self.pid, "stderr: {line}");
        } else {
            self.left_out += 1;
        }
        if self.last.len() == FIRST + LAST {
            self.last.remove(FIRST);
            self.between = true;
        }
        self.last.push_back(match line.char_indices().nth(LAST_CHARS) {
            Some((at, _)) => format!("{}...", line.get(..at).unwrap_or_default()),
            None => line,
        });
    }

    /// The next second begins.
    fn window(&mut self) {
        self.until = Instant::now() + SECOND;
        self.logged = 0;
        let left_out = std::mem::take(&mut self.left_out);
        if left_out > 0 {
            tracing::info!(upstream = &*self.upstream, pid = self.pid, "stderr: {left_out} lines more");
        }
    }

    fn end(mut self) -> Vec<String> {
        self.line();
        self.window();
        if self.between {
            self.last.insert(FIRST, "...".to_owned());
        }
        self.last.into()
    }
}

/// A line as the log has it: what is not text becomes text.
fn shown(line: &[u8], cut: usize) -> String {
    let text: Cow<'_, str> = String::from_utf8_lossy(line);
    let mut shown = String::with_capacity(text.len() + 24);
    for char in text.trim_end().chars() {
        if char.is_control() { shown.extend(char.escape_default()) } else { shown.push(char) }
    }
    if cut > 0 {
        let _ = write!(shown, "... ({cut} bytes more)");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::metrics::Metrics;

    /// What a program dies of stands above a stack trace of some length; what it began with is of use as well.
    #[test]
    fn the_first_and_the_last_lines_are_kept() {
        for (lines, kept) in [(0, 0), (24, 24), (25, 25), (400, 25)] {
            let metrics = Metrics::new().unwrap().upstream("u");
            let mut log = Log::new("u".into(), None, metrics);
            (1..=lines).for_each(|line| log.bytes(format!("line {line}\n").as_bytes()));
            let last = log.end();
            assert_eq!(last.len(), kept, "{lines}");
            if lines > 24 {
                assert_eq!(last[3..6], ["line 4", "...", &format!("line {}", lines - 19)], "{lines}");
            }
        }
    }
}
