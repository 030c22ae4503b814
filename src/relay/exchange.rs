//! The caller's end of one exchange, and who drives the other end.
//!
//! Most calls are answered by one message. Until that or a first notification is there, the caller itself drives the
//! call, which saves a task and its wake-ups. A call that goes on as a stream gets a task of its own, so that a client who
//! reads slowly holds up neither its deadline nor the answers to its server; dropping either cancels the call. So does a call
//! whose client is asked something: its request is over then, and the call is not.

use crate::exchange::{Outcome, Receiver, Step};
use crate::shutdown::Shutdown;
use futures_util::FutureExt;
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::Poll;
use tracing::Instrument;

/// See the module.
pub struct Exchange {
    receiver: Receiver,
    /// `None` where a task drives the call, and once it is over.
    driver: Option<Driver>,
}

struct Driver {
    work: Pin<Box<dyn Future<Output = ()> + Send>>,
    shutdown: Shutdown,
}

impl Exchange {
    /// One that a task drives.
    pub(super) fn driven(receiver: Receiver) -> Self {
        Self { receiver, driver: None }
    }

    /// One that goes on as far as it is asked for its next step.
    pub(super) fn with_driver(
        work: impl Future<Output = ()> + Send + 'static,
        receiver: Receiver,
        shutdown: Shutdown,
    ) -> Self {
        // What panics loses its call and nothing else, as in a task.
        let work = Box::pin(AssertUnwindSafe(work).catch_unwind().map(drop));
        Self { receiver, driver: Some(Driver { work, shutdown }) }
    }

    /// The next step; `None` after the outcome. Whoever stops waiting loses nothing.
    pub async fn next(&mut self) -> Option<Step> {
        poll_fn(|cx| {
            if let Some(driver) = &mut self.driver
                && driver.work.as_mut().poll(cx).is_ready()
            {
                self.driver = None;
            }
            let step = self.receiver.poll_next(cx);
            if matches!(step, Poll::Ready(Some(Step::Outcome(Outcome::InputRequired(_))))) {
                // The request is over, and the call waits for the next one.
                self.let_go();
            }
            step
        })
        .await
    }

    /// Lets the call go on by itself.
    pub fn detach(mut self) -> Receiver {
        self.let_go();
        self.receiver
    }

    fn let_go(&mut self) {
        if let Some(Driver { work, shutdown }) = self.driver.take() {
            // Owned by the tracker; ends with the outcome, with its client, at the call's deadline or, while no request
            // waits for it, when none may come any more.
            drop(shutdown.spawn(work.in_current_span()));
        }
    }
}
