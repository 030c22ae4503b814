//! The end of the process in three steps, and every task that has to be over by then.
//!
//! Owns the marks ([`Shutdown::draining`], then [`Shutdown::cut_short`] for what is still at work after the grace period
//! or at a second signal, then [`Shutdown::ended`]), the times between them, the tracker through
//! which tasks are spawned, and the signals. Does not own what draining means to a part of the program: each part waits
//! for the mark and finishes its own way. Architecture, house rule 7.

mod dormant;

pub use dormant::Dormant;

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// A handle on the end of the process. Clones share it.
#[derive(Debug, Clone)]
pub struct Shutdown {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    drain: CancellationToken,
    cut: CancellationToken,
    end: CancellationToken,
    tracker: TaskTracker,
    grace: Duration,
}

/// How a drain went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Every task finished by itself.
    Drained,
    /// The grace period ran out with tasks still at work; they were dropped.
    OutOfTime,
    /// A second signal came with tasks still at work; they were dropped.
    CutShort,
}

/// How long tasks may take for their last words, and then to let go.
const LAST_WORDS: Duration = Duration::from_millis(500);

impl Shutdown {
    pub fn new(grace: Duration) -> Self {
        let drain = CancellationToken::new();
        let cut = CancellationToken::new();
        let end = CancellationToken::new();
        Self { inner: Arc::new(Inner { drain, cut, end, tracker: TaskTracker::new(), grace }) }
    }

    /// How long what runs may take once the drain has begun.
    pub fn grace(&self) -> Duration {
        self.inner.grace
    }

    /// First step: take nothing new, finish what runs.
    pub fn drain(&self) {
        self.inner.drain.cancel();
    }

    /// Second step: whatever still runs gives its caller a last answer and stops.
    pub fn cut(&self) {
        self.inner.drain.cancel();
        self.inner.cut.cancel();
    }

    /// Third step: stop at once.
    pub fn end(&self) {
        self.cut();
        self.inner.end.cancel();
    }

    pub fn is_draining(&self) -> bool {
        self.inner.drain.is_cancelled()
    }

    /// Whether what is still at work is being stopped.
    pub fn is_cut(&self) -> bool {
        self.inner.cut.is_cancelled()
    }

    /// Completes when the drain begins.
    pub async fn draining(&self) {
        self.inner.drain.cancelled().await;
    }

    /// Completes when the grace period is over or a second signal came: what has a caller tells it now.
    pub async fn cut_short(&self) {
        self.inner.cut.cancelled().await;
    }

    /// Completes when the time for last answers is over too.
    pub async fn ended(&self) {
        self.inner.end.cancelled().await;
    }

    /// Spawns a task that may run on while draining; it is dropped at the end.
    pub fn spawn<F>(&self, task: F) -> JoinHandle<Option<F::Output>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let end = self.inner.end.clone();
        self.inner.tracker.spawn(async move { end.run_until_cancelled(task).await })
    }

    /// Spawns a task that minds [`Shutdown::ended`] itself.
    pub fn spawn_minding<F>(&self, task: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.inner.tracker.spawn(task)
    }

    /// Spawns upkeep without a last word: it is dropped as soon as the drain begins.
    pub fn spawn_until_drain<F>(&self, task: F) -> JoinHandle<Option<F::Output>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let drain = self.inner.drain.clone();
        self.inner.tracker.spawn(async move { drain.run_until_cancelled(task).await })
    }

    /// Counts as a task that is at work until it is dropped, for what is served by no task of its own.
    pub fn at_work(&self) -> TaskTrackerToken {
        self.inner.tracker.token()
    }

    /// Waits for the drain to begin and then, through the grace period at most, for all tasks. any other
    /// ending than [`Ending::Drained`] implies [`Shutdown::end`].
    pub async fn finished(&self) -> Ending {
        self.draining().await;
        self.inner.tracker.close();
        let over = async {
            tokio::select! {
                biased;
                // First: the end empties the tracker, which must not pass for a drain.
                () = self.cut_short() => Ending::CutShort,
                () = self.inner.tracker.wait() => Ending::Drained,
            }
        };
        let ending = timeout(self.inner.grace, over).await.unwrap_or(Ending::OutOfTime);
        if ending != Ending::Drained {
            self.cut();
            let _ = timeout(LAST_WORDS, self.inner.tracker.wait()).await;
            self.end();
            // Every task is being dropped; one that blocks its thread does not hold up the exit.
            let _ = timeout(LAST_WORDS, self.inner.tracker.wait()).await;
        }
        ending
    }

    /// Installs the handlers of SIGTERM and SIGINT (Ctrl-C elsewhere) and spawns the task that minds them: the first
    /// signal drains, the second ends. The task is owned by the tracker only in so far as it ends with the process.
    pub fn watch_signals(&self) -> io::Result<()> {
        let mut signals = Signals::install()?;
        let shutdown = self.clone();
        // Outside the tracker on purpose: it must outlive the drain that it starts, and holds nothing to let go of.
        tokio::spawn(async move {
            signals.next().await;
            tracing::info!("draining: no new connections; a second signal ends at once");
            shutdown.drain();
            signals.next().await;
            shutdown.cut();
        });
        Ok(())
    }
}

/// hyper spawns HTTP/2 streams through this, so that they are tracked like everything else.
impl<F> hyper::rt::Executor<F> for Shutdown
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, task: F) {
        drop(self.spawn(task));
    }
}

#[cfg(unix)]
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn install() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn install() -> io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::{Instant, sleep};

    #[tokio::test(start_paused = true)]
    async fn a_drain_waits_for_its_tasks() {
        let shutdown = Shutdown::new(Duration::from_secs(10));
        drop(shutdown.spawn(sleep(Duration::from_secs(4))));
        drop(shutdown.spawn_until_drain(std::future::pending::<()>()));
        let start = Instant::now();
        shutdown.drain();
        assert_eq!(shutdown.finished().await, Ending::Drained);
        assert_eq!(start.elapsed(), Duration::from_secs(4));
    }

    #[tokio::test(start_paused = true)]
    async fn the_grace_period_is_the_longest_it_takes() {
        let shutdown = Shutdown::new(Duration::from_secs(10));
        drop(shutdown.spawn(std::future::pending::<()>()));
        let start = Instant::now();
        shutdown.drain();
        assert_eq!(shutdown.finished().await, Ending::OutOfTime);
        assert_eq!(start.elapsed(), Duration::from_secs(10) + LAST_WORDS);
    }

    #[tokio::test(start_paused = true)]
    async fn tasks_dropped_by_the_end_have_not_finished() {
        let shutdown = Shutdown::new(Duration::from_secs(10));
        let task = shutdown.spawn(std::future::pending::<()>());
        shutdown.end();
        assert_eq!(task.await.unwrap(), None);
        assert_eq!(shutdown.finished().await, Ending::CutShort);
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_does_not_wait() {
        let shutdown = Shutdown::new(Duration::from_secs(10));
        drop(shutdown.spawn(std::future::pending::<()>()));
        shutdown.end();
        let start = Instant::now();
        assert_eq!(shutdown.finished().await, Ending::CutShort);
        assert_eq!(start.elapsed(), Duration::ZERO);
    }
}
