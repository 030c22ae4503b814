//! Choices for tests that do things in any order, from a seed.

use super::pass;

/// xorshift64*, enough for choices.
pub struct Choice(u64);

impl Choice {
    pub fn of(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// One row of choices of several under one seed.
    pub fn nth(seed: u64, n: u64) -> Self {
        Self(((seed << 32) ^ n.wrapping_mul(0x9E37_79B9_7F4A_7C15)) | 1)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % n
    }

    /// So many milliseconds at most, and one at least.
    pub async fn pause(&mut self, most: u64) {
        pass(self.below(most) + 1).await;
    }
}
