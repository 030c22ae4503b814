//! The last answer of a call that was parked, kept for a client that lost it.
//!
//! Owns what is kept of an outcome, putting it under another id, and the bound on all that is kept: the oldest makes room.
//! A result that passed in pieces was never held and cannot be given again. Rule: B1.6; vector D37.

use crate::exchange::{Fault, Outcome};
use crate::wire::json::{Limits, Splice};
use crate::wire::jsonrpc::{self, Id, Message};
use crate::wire::payload::Payload;
use bytes::Bytes;
use std::collections::VecDeque;
use tokio::task::AbortHandle;

/// What an entry counts for besides its bytes.
const OWN_BYTES: usize = 1024;

pub(super) enum Last {
    Result(Payload),
    Error(Payload),
    Unimplemented(Payload),
    Fault(Fault),
}

impl Last {
    /// `None` for what cannot be given again, or is larger than `most`.
    pub(super) fn of(outcome: &Outcome, most: usize) -> Option<Self> {
        // Copied, so that it keeps no larger buffer alive than it is counted for.
        let kept = |message: &Payload| {
            let fits = OWN_BYTES + message.len() <= most;
            fits.then(|| Payload::from(Bytes::copy_from_slice(&message.to_bytes())))
        };
        match outcome {
            Outcome::Result(message) => kept(message).map(Last::Result),
            Outcome::Error(message) => kept(message).map(Last::Error),
            Outcome::Unimplemented(message) => kept(message).map(Last::Unimplemented),
            Outcome::Fault(fault) => Some(Last::Fault(fault.clone())),
            Outcome::InputRequired(_) | Outcome::Flowed | Outcome::Replan(_) => None,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let message = match self {
            Last::Result(message) | Last::Error(message) | Last::Unimplemented(message) => message.len(),
            Last::Fault(_) => 0,
        };
        OWN_BYTES + message
    }

    /// The same under another id.
    pub(super) fn outcome(&self, id: &Id) -> Option<Outcome> {
        Some(match self {
            Last::Result(message) => Outcome::Result(under(message, id)?),
            Last::Error(message) => Outcome::Error(under(message, id)?),
            Last::Unimplemented(message) => Outcome::Unimplemented(under(message, id)?),
            Last::Fault(fault) => Outcome::Fault(fault.clone()),
        })
    }
}

/// `message` was within bounds when it came.
fn under(message: &Payload, id: &Id) -> Option<Payload> {
    let limits = Limits { nesting: usize::MAX, members: usize::MAX };
    let Ok(Message::Response(response)) = jsonrpc::parse(message.to_bytes(), limits) else { return None };
    let mut splice = Splice::new(&response.text);
    splice.replace(response.id?, id.raw().clone());
    Some(splice.finish())
}

/// Which calls have a last answer, oldest first.
pub(super) struct Kept {
    calls: VecDeque<(u64, usize, AbortHandle)>,
    bytes: usize,
    most: usize,
}

impl Kept {
    pub(super) fn new(most: usize) -> Self {
        Self { calls: VecDeque::new(), bytes: 0, most }
    }

    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    /// Counts one in. Returns those that have to go for it: it alone if it is too large by itself.
    pub(super) fn keep(&mut self, call: u64, bytes: usize, expiry: AbortHandle) -> Vec<u64> {
        if bytes > self.most {
            expiry.abort();
            return vec![call];
        }
        self.calls.push_back((call, bytes, expiry));
        self.bytes += bytes;
        let mut evicted = Vec::new();
        while self.bytes > self.most
            && let Some((call, bytes, expiry)) = self.calls.pop_front()
        {
            expiry.abort();
            self.bytes -= bytes;
            evicted.push(call);
        }
        evicted
    }

    pub(super) fn forget(&mut self, call: u64) {
        if let Some(at) = self.calls.iter().position(|(kept, ..)| *kept == call)
            && let Some((_, bytes, _)) = self.calls.remove(at)
        {
            self.bytes -= bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B1.6, invariant 1: the id is the second caller's, and nothing else differs.
    #[test]
    fn what_is_given_again_is_the_same_under_another_id() {
        let message = r#"{ "result":{"id":1,"x":[1.50]},"jsonrpc":"2.0", "id":"a" }"#;
        let last = Last::of(&Outcome::Result(Payload::from(message)), 2000).unwrap();
        let Some(Outcome::Result(again)) = last.outcome(&Id::number(7)) else { panic!() };
        assert_eq!(again.to_bytes(), r#"{ "result":{"id":1,"x":[1.50]},"jsonrpc":"2.0", "id":7 }"#);
        assert!(Last::of(&Outcome::Flowed, 2000).is_none());
        assert!(Last::of(&Outcome::Result(Payload::from(message)), 1000).is_none());
    }

    /// Invariant 5.
    #[tokio::test]
    async fn the_oldest_makes_room() {
        let handle = || tokio::spawn(async {}).abort_handle();
        let mut kept = Kept::new(10);
        assert_eq!(kept.keep(1, 4, handle()), [0; 0]);
        assert_eq!(kept.keep(2, 4, handle()), [0; 0]);
        assert_eq!(kept.keep(3, 4, handle()), [1]);
        kept.forget(2);
        assert_eq!(kept.keep(4, 11, handle()), [4]);
        assert_eq!(kept.keep(5, 10, handle()), [3]);
        assert_eq!((kept.len(), kept.bytes), (1, 10));
    }
}
