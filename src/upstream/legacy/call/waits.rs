//! What a call with questions waits for besides its stream: the quiet time after a question, the client's return, and the
//! news that an answer did not reach the server.
//!
//! Owns these waits alone; what is done when one is over is `rounds`'. Rules: B1.4, B1.7; vectors D34, D39.

use super::super::super::Shared;
use super::super::super::parked::Retry;
use super::super::Session;
use super::super::attribution::Returning;
use super::Trouble;
use crate::exchange::Fault;
use crate::telemetry::metrics::{Held, ParkEnd};
use crate::translate::answer::Answer;
use crate::translate::question::Question;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

/// How many times the quiet time may begin anew before the client is asked all the same.
const QUIET_TIMES: u32 = 4;

/// The time while the client is away with questions.
pub(super) struct Away {
    from: oneshot::Receiver<Retry>,
    since: Instant,
    until: Instant,
    _parked: Held,
}

impl Away {
    /// Begins now and lasts for `lasts` at most.
    pub(super) fn new(from: oneshot::Receiver<Retry>, lasts: Duration, parked: Held) -> Self {
        let since = Instant::now();
        Self { from, since, until: since + lasts, _parked: parked }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }

    /// The client's return, or why there will be none. Never where the client is not away. `session` is the one that the
    /// server works in meanwhile.
    pub(super) async fn over(
        away: &mut Option<Self>,
        shared: &Shared,
        session: Option<&Session>,
    ) -> Result<Retry, Trouble> {
        let Some(away) = away else { return std::future::pending().await };
        let lost = async {
            match session {
                Some(session) => session.lost().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            // Dropped only with the slot, which this call holds.
            Ok(retry) = &mut away.from => Ok(retry),
            () = lost => Err(Fault::bad_gateway(
                "the upstream server lost the session in the middle of the call; the call may have run",
            ).into()),
            () = shared.shutdown.draining() => {
                shared.metrics.parked_ended(ParkEnd::Drained);
                tracing::info!(
                    upstream = %shared.settings.name,
                    waited = ?away.since.elapsed(),
                    "the proxy ends while a server's questions wait for their client; the call is cancelled"
                );
                Err(Trouble::Left("the proxy was stopped"))
            }
            () = sleep_until(away.until) => {
                shared.metrics.parked_ended(ParkEnd::Expired);
                tracing::info!(
                    upstream = %shared.settings.name,
                    waited = ?away.since.elapsed(),
                    "nobody came back with answers to a server's questions; the call is cancelled (upstream.*.timeouts.answer)"
                );
                Err(Trouble::Left("the client did not answer in time"))
            }
        }
    }
}

/// Answers that wait for the call's turn to go on (B5).
pub(super) struct Bringing {
    pub(super) answers: Vec<(String, Answer)>,
    pub(super) returning: Returning<Question>,
}

impl Bringing {
    /// The answers, when it is the turn. Never where there are none.
    pub(super) async fn turn(bringing: &mut Option<Self>) -> Vec<(String, Answer)> {
        let Some(Bringing { answers, returning }) = bringing else { return std::future::pending().await };
        returning.turn().await;
        std::mem::take(answers)
    }
}

/// When the client is to be asked.
pub(super) struct Due {
    at: Instant,
    latest: Instant,
}

impl Due {
    pub(super) fn after(quiet: Duration) -> Self {
        let now = Instant::now();
        Self { at: now + quiet, latest: now + quiet * QUIET_TIMES }
    }

    /// Another question has come.
    pub(super) fn put_off(&mut self, next: Self) {
        self.at = next.at.min(self.latest);
    }

    pub(super) fn is_overdue(&self) -> bool {
        self.latest <= Instant::now()
    }

    /// Never where nothing is due.
    pub(super) async fn over(due: &Option<Self>) {
        match due {
            Some(due) => sleep_until(due.at).await,
            None => std::future::pending().await,
        }
    }
}

/// Where an answer is reported that the server did not take.
pub(super) struct Undelivered {
    to: mpsc::Sender<Fault>,
    from: mpsc::Receiver<Fault>,
}

impl Undelivered {
    pub(super) fn new() -> Self {
        let (to, from) = mpsc::channel(1);
        Self { to, from }
    }

    pub(super) fn reporter(&self) -> mpsc::Sender<Fault> {
        self.to.clone()
    }

    /// Never where no answer has been sent.
    pub(super) async fn next(undelivered: &mut Option<Self>) -> Fault {
        let fault = match undelivered {
            Some(undelivered) => undelivered.from.recv().await,
            None => None,
        };
        match fault {
            Some(fault) => fault,
            None => std::future::pending().await,
        }
    }
}
