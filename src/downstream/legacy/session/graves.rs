//! Sessions that have ended although their ids could still be read.
//!
//! Owns the memory of them. The one that began first makes room, and then nothing that began as early is taken for a session
//! any more: whoever forgets an ended one must not let it live again. It is needed only where ids outlive the process. A sibling
//! with the same key, or this process after a restart, does not know of them. Rules: A12.13, A12.15; invariant 5.

use super::ticket::Key;
use std::collections::BTreeSet;

/// See the module.
#[derive(Debug)]
pub(super) struct Graves {
    /// By the second in which they began.
    known: BTreeSet<(u64, Key)>,
    most: usize,
    /// Of those that began in this second or before, not all are known.
    forgotten: Option<u64>,
}

impl Graves {
    pub(super) fn new(most: usize) -> Self {
        Self { known: BTreeSet::new(), most: most.max(1), forgotten: None }
    }

    pub(super) fn add(&mut self, minted: u64, key: Key) {
        self.known.insert((minted, key));
        if self.known.len() > self.most
            && let Some((minted, _)) = self.known.pop_first()
        {
            self.forgotten = self.forgotten.max(Some(minted));
        }
    }

    /// Whether it has ended, or may have.
    pub(super) fn has(&self, minted: u64, key: &Key) -> bool {
        Some(minted) <= self.forgotten || self.known.contains(&(minted, *key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A12.15: an ended session stays so, however many end after it.
    #[test]
    fn what_made_room_stays_ended() {
        let mut graves = Graves::new(2);
        for n in [1, 1, 3, 5] {
            graves.add(n, [n as u8; 16]);
        }
        assert_eq!([1, 2, 3, 4, 5].map(|n| graves.has(n, &[n as u8; 16])), [true, false, true, false, true]);
        assert!(graves.has(1, &[9; 16]), "one of the same second may be forgotten as well");
        // One that began before those that are known.
        graves.add(2, [2; 16]);
        assert!(graves.has(2, &[2; 16]) && graves.known.len() == 2);
    }
}
