//! Names for what the proxy asks legacy clients.
//!
//! Owns two rows of names: ids of requests to clients, which begin at a random place, so that an answer to a question of an
//! earlier process meets nothing; and ids of url elicitations, which nobody can guess. Rules: B2.2, A8.2, B4.3.

use crate::seal::{SealError, random};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

/// See the module.
pub struct Asking {
    next: AtomicU64,
    secret: [u8; 32],
}

impl Asking {
    pub fn new() -> Result<Self, SealError> {
        // Whole numbers up to 2^53 are the same to every client.
        let begin = (u64::from_be_bytes(random()?) >> 13) + (1 << 20);
        Ok(Self { next: AtomicU64::new(begin), secret: random()? })
    }

    /// The id of a request to a client.
    pub(super) fn question(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// The id of an elicitation in url mode: 128 bits that follow from nothing that a client has seen.
    pub(super) fn elicitation(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(self.secret);
        hash.update(self.question().to_be_bytes());
        let mut name = String::with_capacity(32);
        for byte in hash.finalize().iter().take(16) {
            let _ = write!(name, "{byte:02x}");
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A8.2, B4.3.
    #[test]
    fn names_are_told_apart_and_begin_elsewhere_each_time() {
        let (one, other) = (Asking::new().unwrap(), Asking::new().unwrap());
        let first = one.question();
        assert_eq!(one.question(), first + 1);
        assert!(first > 1 << 20 && first < 1 << 52);
        assert_ne!(other.question(), first);
        let (a, b) = (one.elicitation(), one.elicitation());
        assert!(a != b && a.len() == 32);
    }
}
