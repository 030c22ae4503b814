//! A future that rests beside a busy one.
//!
//! Owns a waker of its own for what rests: a task that is woken hundreds of times by its connection looks at one flag each
//! time, and not at clocks and marks whose lists are shared by all tasks.

use futures_util::task::AtomicWaker;
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

pin_project! {
    /// Polls its future first, and then only when that has asked for it.
    pub struct Dormant<F> {
        #[pin]
        future: F,
        bell: Arc<Bell>,
        waker: Waker,
    }
}

/// What the future inside is given to wake.
struct Bell {
    rung: AtomicBool,
    task: AtomicWaker,
}

impl<F> Dormant<F> {
    pub fn new(future: F) -> Self {
        let bell = Arc::new(Bell { rung: AtomicBool::new(true), task: AtomicWaker::new() });
        Self { future, waker: Waker::from(bell.clone()), bell }
    }
}

impl<F: Future> Future for Dormant<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        // Before the look at the flag, so that a ring after it finds the task.
        this.bell.task.register(cx.waker());
        if !this.bell.rung.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        this.future.poll(&mut Context::from_waker(this.waker))
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.store(true, Ordering::Release);
        self.task.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;
    use tokio::time::sleep;

    #[tokio::test(start_paused = true)]
    async fn it_rests_until_it_is_woken_and_then_ends() {
        let polls = AtomicUsize::new(0);
        let mut inner = Box::pin(sleep(Duration::from_secs(5)));
        let resting = poll_fn(|cx| {
            polls.fetch_add(1, Ordering::Relaxed);
            inner.as_mut().poll(cx)
        });
        let mut dormant = std::pin::pin!(Dormant::new(resting));
        for _ in 0..10 {
            tokio::select! {
                biased;
                () = &mut dormant => panic!("it has not been woken"),
                () = sleep(Duration::from_millis(10)) => {}
            }
        }
        assert_eq!(polls.load(Ordering::Relaxed), 1);
        dormant.await;
        assert_eq!(polls.load(Ordering::Relaxed), 2);
    }
}
