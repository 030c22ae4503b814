//! Channels that are the pipes of a child process: a stdio server, started for each channel.
//!
//! Owns what the process is given (`environment`), that each message is one line in both directions (`wire::lines`, `queue`), the
//! four tasks of each process, and its end. Three of them are on one stream each (`write`, `read`, `stderr`), so that none of
//! the streams can hold up another; the fourth (`minder`) waits for the process, ends it, and sees that it is reaped. Does not
//! own how a process comes about (`net`), how many there may be, what is done after one has failed, nor what a message says:
//! that is `channel`, above `pipe`.
//! Spec: basic/transports/stdio. Rules A14.6, A14.7, A14.9; cases C53, C55-C57.
//!
//! Tasks: they belong to [`Child`], not to the shutdown's tracker, whose grace period would wait for processes that nobody
//! has asked to end. They end with their process, which ends by itself, when its channel is ended or dropped, when
//! [`Open::close`] is called, or at the very end of the shutdown; none of these takes longer than the bounds in `minder`.

mod environment;
mod minder;
mod queue;
mod read;
mod stderr;
mod write;

use super::error::SendError;
use super::pipe::{Inbox, Open, Pipe, Trouble};
use crate::config;
use crate::net::{Launch, Launched, Program};
use crate::shutdown::Shutdown;
use crate::telemetry::metrics::UpstreamMetrics;
use crate::wire::payload::Payload;
use futures_util::future::BoxFuture;
use http::HeaderMap;
use minder::Minder;
use queue::Queue;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The way to one stdio server.
pub(in crate::upstream::transport) struct Child {
    name: Arc<str>,
    program: Program,
    /// Bytes of one line of its output.
    message_bytes: usize,
    /// Until it runs.
    start: Duration,
    stop: Duration,
    launch: Arc<dyn Launch>,
    shutdown: Shutdown,
    metrics: Arc<UpstreamMetrics>,
    tasks: TaskTracker,
    /// Ends all channels.
    end: CancellationToken,
}

impl Child {
    /// Starts nothing yet. The environment is what this process has now.
    pub(in crate::upstream::transport) fn new(
        settings: &config::Upstream,
        command: &config::Command,
        launch: Arc<dyn Launch>,
        shutdown: Shutdown,
        metrics: Arc<UpstreamMetrics>,
    ) -> Self {
        Self {
            name: Arc::from(settings.name.as_str()),
            program: Program {
                program: command.program.clone(),
                args: command.args.clone(),
                env: environment::of(command, std::env::vars_os()),
                cwd: command.cwd.clone(),
            },
            message_bytes: settings.limits.message_bytes,
            start: settings.timeouts.start,
            stop: settings.timeouts.stop,
            launch,
            shutdown,
            metrics,
            tasks: TaskTracker::new(),
            end: CancellationToken::new(),
        }
    }

    async fn start(&self, inbox: Arc<dyn Inbox>) -> Result<Arc<dyn Pipe>, SendError> {
        // From before the look at the mark, so that `close` waits for what is just being started.
        let _open = self.tasks.token();
        let failed = |source| SendError::Start { source };
        if self.end.is_cancelled() || self.shutdown.is_cut() {
            return Err(failed(io::Error::other("mcp-janus itself is ending")));
        }
        let launched = match timeout(self.start, self.launch.launch(&self.program)).await {
            Ok(launched) => launched,
            Err(_) => Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("its program does not run after {:?}", self.start),
            )),
        };
        match launched {
            Ok(launched) => Ok(self.mind(launched, inbox)),
            Err(error) => {
                self.metrics.process_not_started();
                Err(failed(error))
            }
        }
    }

    /// Spawns the tasks of a process that runs.
    fn mind(&self, launched: Launched, inbox: Arc<dyn Inbox>) -> Arc<dyn Pipe> {
        let Launched { stdin, stdout, stderr, process } = launched;
        let (pid, end, enough) = (process.id(), self.end.child_token(), CancellationToken::new());
        tracing::debug!(upstream = &*self.name, pid, "the server's process has been started");
        let (queue, queued) = Queue::new(self.message_bytes);
        let log = stderr::Log::new(self.name.clone(), pid, self.metrics.clone());
        let minder = Minder {
            name: self.name.clone(),
            counted: self.metrics.process_started(),
            writer: self.tasks.spawn(write::write(stdin, queued)),
            reader: self.tasks.spawn(read::read(stdout, self.message_bytes, inbox.clone(), enough.clone())),
            stderr: self.tasks.spawn(stderr::read(stderr, log, enough.clone())),
            process,
            queue: queue.clone(),
            inbox: Some(inbox),
            end: end.clone(),
            enough,
            stop: self.stop,
            shutdown: self.shutdown.clone(),
        };
        self.tasks.spawn(minder.mind());
        Arc::new(Running { queue, end })
    }
}

impl Open for Child {
    /// A process of its own, whoever asks: `headers` are for servers that read any.
    fn open<'a>(
        &'a self,
        _headers: &'a HeaderMap,
        inbox: Arc<dyn Inbox>,
    ) -> BoxFuture<'a, Result<Arc<dyn Pipe>, Trouble>> {
        Box::pin(async move { Ok(self.start(inbox).await?) })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.end.cancel();
            self.tasks.close();
            self.tasks.wait().await;
        })
    }
}

/// Nobody is left who could end the processes.
impl Drop for Child {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

/// A process, towards whoever speaks to it.
struct Running {
    queue: Arc<Queue>,
    end: CancellationToken,
}

impl Pipe for Running {
    fn send<'a>(&'a self, text: Payload, _headers: &'a HeaderMap) -> BoxFuture<'a, Result<(), Trouble>> {
        Box::pin(async move {
            self.queue.push(text).await.map_err(|closed| {
                let origin = "the server's process".to_owned();
                Trouble::Send(SendError::Unsent { origin, source: Box::new(closed) })
            })
        })
    }

    fn offer(&self, text: Payload, _headers: &HeaderMap) -> bool {
        self.queue.offer(text)
    }

    fn end(&self) {
        self.end.cancel();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

#[cfg(test)]
mod tests;
