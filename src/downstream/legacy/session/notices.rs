//! What a session's own stream has to tell: at most one notice of each list and of each resource.
//!
//! Owns the set of what has changed and was not told yet, whether there is no stream or one that is slow. The notices are
//! idempotent, so two of a kind are one. Rules: B9.8, A2.5, A2.6.

use crate::translate::legacy_client::notify::{Change, announce};
use crate::wire::payload::Payload;
use bytes::Bytes;
use std::collections::VecDeque;

/// What is kept of a notice in the server's own words; of a longer one only what it is about.
const OWN_WORDS: usize = 2 * 1024;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Notices {
    /// In the order in which they came first.
    waiting: VecDeque<(Change, Option<Bytes>)>,
}

/// What became of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Added {
    New,
    /// An equal one waits already.
    Merged,
    Full,
}

impl Notices {
    /// `most` bounds the resources.
    pub(super) fn add(&mut self, change: &Change, message: &Payload, most: usize) -> Added {
        let words = (message.len() <= OWN_WORDS).then(|| Bytes::copy_from_slice(&message.to_bytes()));
        if let Some((_, told)) = self.waiting.iter_mut().find(|(waiting, _)| waiting == change) {
            *told = words;
            return Added::Merged;
        }
        let is_resource = |change: &Change| matches!(change, Change::Updated(_));
        if is_resource(change) && self.waiting.iter().filter(|(other, _)| is_resource(other)).count() >= most
        {
            return Added::Full;
        }
        self.waiting.push_back((change.clone(), words));
        Added::New
    }

    /// The next one.
    pub(super) fn next(&mut self) -> Option<(Change, Bytes)> {
        let (change, words) = self.waiting.pop_front()?;
        let words = words.unwrap_or_else(|| announce(&change).to_bytes());
        Some((change, words))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}
