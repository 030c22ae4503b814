//! The end of a process: waited for, or brought about.
//!
//! Owns the order of it. Asked for: its standard input is closed, after what is queued has been written; then SIGTERM to its
//! group, then SIGKILL, with `timeouts.stop` before each. By itself: at once what it has left behind in its group is ended
//! (`net` sees to that while it reaps). In either case what it has said is still given, then the inbox hears that it is
//! over. Basic/lifecycle "Shutdown"; cases C55, C56.
//!
//! One task for each process, owned by `Child`. It is bounded by twice `timeouts.stop`, and the times below.

use super::queue::Queue;
use crate::net::Process;
use crate::shutdown::Shutdown;
use crate::telemetry::metrics::{Exited, RunningProcess};
use crate::upstream::transport::pipe::Inbox;
use std::borrow::Cow;
use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// How long what a process has written is waited for once it has ended, and how long it may take to end once it has closed
/// its output: usually these come together.
const MOMENT: Duration = Duration::from_millis(100);

/// How long a process may take to vanish after SIGKILL; one that is stuck in the kernel is left behind.
const VANISH: Duration = Duration::from_secs(5);

/// The longest that each step takes once callers are not waited for any more.
const HURRIED: Duration = Duration::from_millis(500);

/// Everything of one process.
pub(super) struct Minder {
    pub(super) name: Arc<str>,
    pub(super) counted: RunningProcess,
    pub(super) process: Box<dyn Process>,
    pub(super) writer: JoinHandle<io::Result<()>>,
    pub(super) reader: JoinHandle<()>,
    pub(super) stderr: JoinHandle<Vec<String>>,
    pub(super) queue: Arc<Queue>,
    /// `None` once it knows that it is over.
    pub(super) inbox: Option<Arc<dyn Inbox>>,
    /// It is to end.
    pub(super) end: CancellationToken,
    /// The readers are to end.
    pub(super) enough: CancellationToken,
    pub(super) stop: Duration,
    pub(super) shutdown: Shutdown,
}

/// What comes first.
enum First {
    /// The process has ended.
    Exit(String),
    /// The channel is not used any more.
    Asked,
    /// The process runs, but nothing comes from it or goes to it any more.
    Broken(&'static str),
}

impl Minder {
    pub(super) async fn mind(mut self) {
        let first = self.first().await;
        self.queue.close();
        let pid = self.process.id();
        let (how, words, asked) = match first {
            First::Exit(words) => (Exited::ByItself, words, false),
            First::Asked => {
                let (how, words) = self.end_process().await;
                (how, words, true)
            }
            First::Broken(what) => match within(MOMENT, &mut *self.process).await {
                Some(words) => (Exited::ByItself, words, false),
                None => {
                    tracing::warn!(upstream = &*self.name, pid, "the server {what}, and is ended");
                    if self.reader.is_finished() {
                        // Nothing can come any more, however long it runs on.
                        self.over(what);
                    }
                    let (how, words) = self.end_process().await;
                    (how, format!("{words}, after it {what}"), false)
                }
            },
        };
        self.writer.abort();
        let stderr = self.last_words(&words).await;
        let last =
            if stderr.is_empty() { String::new() } else { format!("; stderr: {}", stderr.join(" | ")) };
        let upstream = &*self.name;
        match how {
            Exited::ByItself => {
                tracing::warn!(upstream, pid, "the server's process has ended by itself: {words}{last}");
            }
            Exited::Asked if !asked => {
                tracing::warn!(upstream, pid, "the server's process has ended: {words}{last}")
            }
            Exited::Asked => tracing::debug!(upstream, pid, "the server's process has ended: {words}"),
            Exited::Killed => {
                tracing::warn!(
                    upstream,
                    pid,
                    "the server's process did not end when asked to: {words}{last}"
                );
            }
        }
        self.counted.ended(how);
    }

    async fn first(&mut self) -> First {
        tokio::select! {
            biased;
            ended = self.process.wait() => First::Exit(in_words(ended)),
            () = self.end.cancelled() => First::Asked,
            () = self.shutdown.ended() => First::Asked,
            _ = &mut self.reader => First::Broken("has closed its standard output"),
            _ = &mut self.writer => First::Broken("has closed its standard input"),
        }
    }

    /// From the closed input to the signal that nothing withstands.
    async fn end_process(&mut self) -> (Exited, String) {
        let step = if self.shutdown.is_cut() { self.stop.min(HURRIED) } else { self.stop };
        if let Some(words) = within(step, &mut *self.process).await {
            return (Exited::Asked, words);
        }
        self.signalled("SIGTERM", self.process.terminate());
        if let Some(words) = within(step, &mut *self.process).await {
            return (Exited::Asked, words);
        }
        self.signalled("SIGKILL", self.process.kill());
        let words = within(VANISH, &mut *self.process).await;
        (Exited::Killed, words.unwrap_or_else(|| "it runs on after SIGKILL".to_owned()))
    }

    fn signalled(&self, signal: &str, sent: io::Result<()>) {
        if let Err(error) = sent {
            let pid = self.process.id();
            tracing::warn!(upstream = &*self.name, pid, %error, "{signal} could not be sent to the server's processes");
        }
    }

    /// Lets the readers come to an end, and says that it is over; the last lines of standard error.
    async fn last_words(&mut self, words: &str) -> Vec<String> {
        let enough = self.enough.clone();
        let hurry = async {
            // What has left the group may hold the streams open for good.
            sleep(MOMENT).await;
            enough.cancel();
            pending::<()>().await;
        };
        let ending = async {
            if !self.reader.is_finished() {
                let _ = (&mut self.reader).await;
            }
            self.over(words);
            (&mut self.stderr).await.unwrap_or_default()
        };
        tokio::select! {
            stderr = ending => stderr,
            () = hurry => Vec::new(),
        }
    }

    /// Tells the inbox, once.
    fn over(&mut self, words: &str) {
        if let Some(inbox) = self.inbox.take() {
            inbox.ended(Cow::Owned(format!("the server's process: {words}")));
        }
    }
}

async fn within(limit: Duration, process: &mut dyn Process) -> Option<String> {
    timeout(limit, process.wait()).await.ok().map(in_words)
}

/// A process that cannot be waited for is none.
fn in_words(ended: io::Result<String>) -> String {
    ended.unwrap_or_else(|error| format!("it cannot be waited for: {error}"))
}
