//! A session in the hands of a request.
//!
//! Owns what keeps a session from being idle (`Use`), and what a request begins in it: a call in flight (`Entered`), a stream
//! for its answers, the reader of one that its client comes back to. Does not own what is known of the session (`state`) nor
//! of its streams (`rows`). Rules: A2.2, A12.14, A12.19, A13.5, B9.8, B14; vectors D82, D89, D103; case C10.

use super::event;
use super::row::Kind;
use super::state::{Session, wake};
use super::track::{Reader, Track};
use crate::telemetry::metrics::Resumption;
use crate::wire::jsonrpc::Id;
use std::ops::Deref;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A session in use; it is not idle before this is dropped.
pub(in crate::downstream) struct Use(Arc<Session>);

/// A call in flight, until this is dropped.
pub(in crate::downstream) struct Entered {
    session: Use,
    number: u64,
    cancelled: CancellationToken,
}

/// Where a client that comes back with `Last-Event-ID` goes on.
pub(in crate::downstream) enum Resumed {
    /// The session's own stream: after that event, or from now on where it is not known any more.
    Own(Reader),
    Call(Reader),
    /// Of that call it has had everything, or nothing is kept any more.
    Over,
}

impl Use {
    pub(super) fn new(session: Arc<Session>) -> Self {
        session.begin_use();
        Self(session)
    }

    /// A stream for the answers to these requests. Once the session is over, all that it tells is that.
    pub(in crate::downstream) fn track(&self, ids: impl IntoIterator<Item = Id>) -> Track {
        let number = self.next_number();
        self.open(number, ids.into_iter().collect());
        Track::new(self.clone(), number)
    }

    /// The client's own stream, from now on and with what waits for it, or was told so lately that it may not have arrived.
    /// One that is open already ends.
    pub(in crate::downstream) fn own_stream(&self) -> Reader {
        self.own(None)
    }

    /// The stream of which the client had the event of this id, from there on.
    pub(in crate::downstream) fn resume(&self, last_event_id: &[u8]) -> Resumed {
        let (how, resumed) = match event::read_id(last_event_id) {
            Some((Kind::Call, number, n)) => self.resume_call(number, n),
            Some((Kind::Own, number, n)) => {
                let reader = self.own(Some((number, n)));
                let how = if reader.is_fresh() { Resumption::Unknown } else { Resumption::Replayed };
                (how, Resumed::Own(reader))
            }
            // Of no process that writes ids like ours.
            None => (Resumption::Unknown, Resumed::Own(self.own(None))),
        };
        self.common.metrics.client_resumed(how);
        resumed
    }

    fn resume_call(&self, number: u64, n: u64) -> (Resumption, Resumed) {
        let attached = self.begun(|work| {
            work.rows.prune(&self.common.bounds);
            let row = work.rows.get(number).filter(|row| row.kind == Kind::Call);
            let row = row.ok_or(Resumption::Unknown)?;
            if row.is_answered_by(n) {
                return Err(Resumption::Over);
            }
            work.rows.attach(number, Some(n), &self.common.bounds).ok_or(Resumption::Unknown)
        });
        match attached.unwrap_or(Err(Resumption::Unknown)) {
            Ok((generation, wakers)) => {
                wake(wakers);
                let reader = Reader::new(self.clone(), number, generation, Kind::Call, false);
                (Resumption::Replayed, Resumed::Call(reader))
            }
            Err(how) => (how, Resumed::Over),
        }
    }

    fn own(&self, after: Option<(u64, u64)>) -> Reader {
        let fresh = self.next_number();
        let attached = self.live(|work| {
            work.rows.prune(&self.common.bounds);
            let number = match work.rows.own() {
                Some(row) => row.number,
                None => {
                    work.rows.open(fresh, Kind::Own, Default::default());
                    fresh
                }
            };
            let resumed = after.filter(|(named, _)| *named == number).map(|(_, n)| n);
            let (generation, wakers) = work.rows.attach(number, resumed, &self.common.bounds)?;
            Some((number, generation, resumed.is_none(), wakers))
        });
        let (number, generation, fresh, wakers) = attached.flatten().unwrap_or_default();
        wake(wakers);
        Reader::new(self.clone(), number, generation, Kind::Own, fresh)
    }

    /// A call is in flight under this id.
    pub(in crate::downstream) fn enter(&self, id: &Id) -> Entered {
        let number = self.next_number();
        let cancelled = self.begin_call(id, number);
        Entered { session: self.clone(), number, cancelled }
    }

    pub(in crate::downstream) fn session(&self) -> &Arc<Session> {
        &self.0
    }
}

impl Clone for Use {
    fn clone(&self) -> Self {
        Self::new(self.0.clone())
    }
}

impl Deref for Use {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.0
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        self.end_use();
    }
}

impl Entered {
    /// Resolves when the client takes the request back, or the session ends.
    pub(in crate::downstream) async fn cancelled(&self) {
        self.cancelled.cancelled().await;
    }

    /// The same for whoever cannot borrow this.
    /// Whether the session has ended, and with it the call; else it was the client that took its request back.
    pub(in crate::downstream) fn session_has_ended(&self) -> bool {
        self.session.state().over
    }

    pub(in crate::downstream) fn signal(&self) -> CancellationToken {
        self.cancelled.clone()
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.session.end_call(self.number);
    }
}
