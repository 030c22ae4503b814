//! Sessions that have ended although their ids could still be read.
//!
//! Owns the memory of them, the oldest of which makes room. It is needed only where ids outlive the process. A sibling with
//! the same key, or this process after a restart, does not know of them. Rules: A12.13, A12.15; invariant 5.

use super::ticket::Key;
use std::collections::{HashSet, VecDeque};

/// See the module.
#[derive(Debug)]
pub(super) struct Graves {
    known: HashSet<Key>,
    oldest: VecDeque<Key>,
    most: usize,
}

impl Graves {
    pub(super) fn new(most: usize) -> Self {
        Self { known: HashSet::new(), oldest: VecDeque::new(), most: most.max(1) }
    }

    pub(super) fn add(&mut self, key: Key) {
        if !self.known.insert(key) {
            return;
        }
        self.oldest.push_back(key);
        if self.oldest.len() > self.most
            && let Some(oldest) = self.oldest.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    pub(super) fn has(&self, key: &Key) -> bool {
        self.known.contains(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_makes_room() {
        let mut graves = Graves::new(2);
        for key in [1, 1, 2, 3] {
            graves.add([key; 16]);
        }
        assert_eq!([1, 2, 3].map(|key| graves.has(&[key; 16])), [false, true, true]);
    }
}
