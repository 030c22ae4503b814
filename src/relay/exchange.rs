//! The caller's end of one exchange, and who drives the other end.
//!
//! Most calls are answered by one message. Until that or a first notification is there, the caller itself drives the
//! call, which saves a task and its wake-ups; only a call that goes on as a stream gets a task of its own, so that a
//! client who reads slowly holds up neither its deadline nor the answers to its server. Dropping either cancels the call.

use crate::exchange::{Receiver, Step};
use crate::shutdown::Shutdown;
use futures_util::FutureExt;
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use tracing::Instrument;

/// See the module.
pub struct Exchange {
    receiver: Receiver,
    /// `None` where a task drives the call, and once it is over.
    driver: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Exchange {
    /// One that a task drives.
    pub(super) fn driven(receiver: Receiver) -> Self {
        Self { receiver, driver: None }
    }

    /// One that goes on as far as it is asked for its next step.
    pub(super) fn with_driver(driver: impl Future<Output = ()> + Send + 'static, receiver: Receiver) -> Self {
        // What panics loses its call and nothing else, as in a task.
        let driver = AssertUnwindSafe(driver).catch_unwind().map(drop);
        Self { receiver, driver: Some(Box::pin(driver)) }
    }

    /// The next step; `None` after the outcome. Whoever stops waiting loses nothing.
    pub async fn next(&mut self) -> Option<Step> {
        poll_fn(|cx| {
            if let Some(driver) = &mut self.driver
                && driver.as_mut().poll(cx).is_ready()
            {
                self.driver = None;
            }
            self.receiver.poll_next(cx)
        })
        .await
    }

    /// Lets the call go on by itself.
    pub fn detach(self, shutdown: &Shutdown) -> Receiver {
        if let Some(driver) = self.driver {
            // Owned by the tracker; ends with the outcome, with its client or at the call's deadline.
            drop(shutdown.spawn(driver.in_current_span()));
        }
        self.receiver
    }
}
