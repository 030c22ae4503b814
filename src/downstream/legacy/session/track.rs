//! Both ends of an event stream of a session: whoever speaks on it, and whoever reads it.
//!
//! Owns the waiting: a speaker waits for a reader that is behind, never for one that is not there, so a call goes on and
//! keeps what it comes to when its client has lost its connection. A reader that is dropped loses nothing that it has not
//! taken. Does not own what is kept (`rows`), nor the response body around a reader (`downstream::reading`).
//! Rules: A12.19, A13.5, B14.

use super::follow::kind;
use super::row::{Gap, Kind, Taken, Weight};
use super::rows::{Gone, Said};
use super::state::{Work, wake};
use super::uses::Use;
use crate::downstream::body::WRITE;
use crate::exchange::LOST;
use crate::telemetry::metrics::{ClientStream, Ended, Held, Noticed};
use crate::wire::jsonrpc::{self, Id, code};
use crate::wire::payload::Payload;
use bytes::Bytes;
use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

/// The stream of one POST, for whoever speaks on it. When every request on it has its answer, it is over. Dropped before
/// that, it gives those without one an error.
pub(in crate::downstream) struct Track {
    session: Use,
    number: u64,
}

/// One reader of a stream, until it is dropped or a newer one comes.
pub(in crate::downstream) struct Reader {
    session: Use,
    number: u64,
    generation: u64,
    kind: Kind,
    /// The event that tells its client where to come back to is still to be given.
    primes: bool,
    fresh: bool,
    _counted: Option<Held>,
}

/// What a reader comes to next.
pub(in crate::downstream) enum Next {
    /// Whole events, or a piece of one, and whether nothing follows.
    Bytes {
        bytes: Bytes,
        last: bool,
    },
    End,
    /// The result that it has the beginning of has no end.
    Broken,
}

impl Track {
    pub(super) fn new(session: Use, number: u64) -> Self {
        Self { session, number }
    }

    /// A notification. It goes first when room is needed while nobody reads.
    pub(in crate::downstream) async fn push(&self, message: &Payload) {
        self.say(message, Weight::Light, None).await;
    }

    /// The question of this id, to the client.
    pub(in crate::downstream) async fn ask(&self, id: u64, message: &Payload) {
        self.say(message, Weight::Question(id), None).await;
    }

    /// Takes a question back; `message` says so to a client that has read it. Waits for nobody: there are no more of these
    /// than questions.
    pub(in crate::downstream) fn take_back(&self, id: u64, message: &Payload) {
        let bounds = &self.session.common.bounds;
        let parts = message.parts();
        let said = self.session.work(|work| work.rows.take_back(self.number, id, parts, bounds));
        let _ = self.said(said);
    }

    /// The answer to the request of this id; a second one is not taken. `ended` is for the log.
    pub(in crate::downstream) async fn answer(&self, id: &Id, message: &Payload, ended: Ended) {
        self.say(message, Weight::Answer(id.clone()), Some(ended)).await;
    }

    /// A piece of the result of this id, which is too large to be held.
    pub(in crate::downstream) async fn piece(&self, id: &Id, piece: &Bytes) {
        let bounds = &self.session.common.bounds;
        poll_fn(|cx| {
            let said =
                self.session.work(|work| work.rows.say_piece(self.number, id, piece, bounds, cx.waker()));
            self.said(said)
        })
        .await;
    }

    /// The result that came in pieces is over, and was whole and good or has broken off.
    pub(in crate::downstream) fn end_pieces(&self, whole: bool) {
        let bounds = &self.session.common.bounds;
        let said = self.session.work(|work| work.rows.end_large(self.number, whole, bounds));
        let _ = self.said(said);
    }

    /// The request will have no answer, as its client wishes (A2.2).
    pub(in crate::downstream) fn forgive(&self, id: &Id) {
        wake(self.session.work(|work| work.rows.forgive(self.number, id)));
    }

    /// Ends the stream. Requests that have no answer yet get an error with this text.
    pub(in crate::downstream) fn finish(&self, text: &str, ended: Ended) {
        let bounds = &self.session.common.bounds;
        let answer = |id: &Id| jsonrpc::error(Some(id), code::INTERNAL_ERROR, text, None);
        let (wakers, gone) = self.session.work(|work| work.rows.finish(self.number, answer, ended, bounds));
        self.session.made_room(gone);
        wake(wakers);
    }

    /// A reader for all that was not read yet.
    pub(in crate::downstream) fn reader(&self) -> Reader {
        let bounds = &self.session.common.bounds;
        let attached = self.session.work(|work| work.rows.attach(self.number, None, bounds));
        let (generation, wakers) = attached.unwrap_or_default();
        wake(wakers);
        Reader::new(self.session.clone(), self.number, generation, Kind::Call, true)
    }

    async fn say(&self, message: &Payload, weight: Weight, ended: Option<Ended>) {
        let bounds = &self.session.common.bounds;
        poll_fn(|cx| {
            let said = self.session.work(|work| {
                let (parts, weight) = (message.parts(), weight.clone());
                work.rows.say(self.number, parts, weight, bounds, ended, Some(cx.waker()))
            });
            self.said(said)
        })
        .await;
    }

    fn said(&self, said: Said) -> Poll<()> {
        match said {
            Said::Kept(wakers, gone) => {
                self.session.made_room(gone);
                wake(wakers);
                Poll::Ready(())
            }
            Said::Full => Poll::Pending,
            Said::Over => Poll::Ready(()),
        }
    }
}

impl Drop for Track {
    fn drop(&mut self) {
        self.finish(LOST, Ended::Internal);
    }
}

impl Reader {
    pub(super) fn new(session: Use, number: u64, generation: u64, kind: Kind, fresh: bool) -> Self {
        let primes = fresh && session.primes();
        let stream = match kind {
            Kind::Own => ClientStream::Own,
            Kind::Call => ClientStream::Call,
        };
        let _counted = session.common.metrics.client_stream(stream);
        Self { session, number, generation, kind, primes, fresh, _counted }
    }

    /// It begins where no client has been told of.
    pub(super) fn is_fresh(&self) -> bool {
        self.fresh
    }

    pub(in crate::downstream) fn poll_next(&mut self, cx: &Context<'_>) -> Poll<Next> {
        let bounds = &self.session.common.bounds;
        let (number, generation) = (self.number, self.generation);
        let primes = std::mem::take(&mut self.primes);
        let (prime, taken, wakers, gone) = self.session.work(|work| {
            let prime = if primes { work.rows.prime(number, generation) } else { None };
            let gone = if self.kind == Kind::Own { self.tell(work) } else { Gone::default() };
            let (taken, wakers, went) = work.rows.take(number, generation, cx.waker(), WRITE, bounds);
            (prime, taken, wakers, gone.and(went))
        });
        self.session.made_room(gone);
        wake(wakers);
        match (taken, prime) {
            // In one write with what follows it.
            (Taken::Bytes { bytes, last }, Some(prime)) => {
                Poll::Ready(Next::Bytes { bytes: [prime, bytes].concat().into(), last })
            }
            (Taken::Wait, Some(bytes)) => Poll::Ready(Next::Bytes { bytes, last: false }),
            (Taken::Bytes { bytes, last }, None) => Poll::Ready(Next::Bytes { bytes, last }),
            (Taken::Wait, None) => Poll::Pending,
            (Taken::End, _) => Poll::Ready(Next::End),
            (Taken::Broken, _) => Poll::Ready(Next::Broken),
        }
    }

    /// Turns notices into events only when they are read, so that of what changes more often than that one stands for all.
    fn tell(&self, work: &mut Work) -> Gone {
        let bounds = &self.session.common.bounds;
        let mut gone = Gone::default();
        if !work.rows.is_caught_up(self.number, self.generation) {
            return gone;
        }
        for _ in 0..bounds.ahead_events.max(1) {
            let Some((change, message)) = work.notices.next() else { break };
            self.session.common.metrics.notice(kind(&change), Noticed::Told);
            let said = work.rows.say(self.number, &[message], Weight::Light, bounds, None, None);
            if let Said::Kept(_, more) = said {
                gone = gone.and(more);
            }
        }
        gone
    }

    /// The process ends: those who wait on this stream are told so.
    pub(in crate::downstream) fn cut_short(&self) {
        let text = crate::exchange::Fault::cut_short().text;
        let bounds = &self.session.common.bounds;
        let answer = |id: &Id| jsonrpc::error(Some(id), code::INTERNAL_ERROR, &text, None);
        let (wakers, gone) =
            self.session.work(|work| work.rows.finish(self.number, answer, Ended::Draining, bounds));
        self.session.made_room(gone);
        wake(wakers);
    }

    /// How the requests of its stream ended, once all of them have.
    pub(in crate::downstream) fn ended(&self) -> Option<Ended> {
        self.session.work(|work| work.rows.get(self.number).and_then(|row| row.ended()))
    }

    /// What may be written while nothing is ready.
    pub(in crate::downstream) fn gap(&self) -> Gap {
        self.session.work(|work| work.rows.get(self.number).map(|row| row.gap()).unwrap_or_default())
    }

    /// How long it may stay open without its answer; the client comes back for it.
    pub(in crate::downstream) fn poll_after(&self) -> Option<Duration> {
        self.session.poll().filter(|_| self.kind == Kind::Call)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let bounds = &self.session.common.bounds;
        let (wakers, gone) = self.session.work(|work| work.rows.detach(self.number, self.generation, bounds));
        self.session.made_room(gone);
        wake(wakers);
    }
}
