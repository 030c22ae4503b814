//! What a `requestState` is: a ticket for one round of one parked call, sealed.
//!
//! Owns the ticket's fields and the AEAD (ChaCha20-Poly1305) that no client can read or alter. The key is random and lives as
//! long as the process, so a ticket of another process, or of this one before a restart, does not open. Does not own what a
//! ticket is good for: that is the registry's to decide. Rule: B1.2; spec 2026-07-28 basic/patterns/mrtr.

use crate::exchange::Principal;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use sha2::{Digest, Sha256};

/// What a text must have been sealed as, so that no other sealed text of ours passes for one.
const PURPOSE: &[u8] = b"mcp-janus requestState 1";

const LEN: usize = 8 + 4 + 8 + 32 + 32;

/// The system gives no random bytes, or the cipher refuses its key.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("no key for sealing `requestState`: the system gives no random bytes")]
pub struct SealError;

/// The cipher and its key.
pub(super) struct Seal {
    key: LessSafeKey,
    random: SystemRandom,
}

/// One round of one parked call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ticket {
    pub(super) call: u64,
    pub(super) round: u32,
    /// Milliseconds of the registry's own clock.
    pub(super) expires: u64,
    pub(super) principal: [u8; 32],
    /// Of what was asked for: upstream, method and parameters.
    pub(super) request: [u8; 32],
}

impl Seal {
    pub(super) fn new() -> Result<Self, SealError> {
        let random = SystemRandom::new();
        let mut key = [0; 32];
        random.fill(&mut key).map_err(|_| SealError)?;
        let key = UnboundKey::new(&CHACHA20_POLY1305, &key).map_err(|_| SealError)?;
        Ok(Self { key: LessSafeKey::new(key), random })
    }

    pub(super) fn close(&self, ticket: &Ticket) -> Result<String, SealError> {
        let mut nonce = [0; NONCE_LEN];
        // Chosen at random each time: far fewer tickets are sealed under one key than it takes for two to be equal.
        self.random.fill(&mut nonce).map_err(|_| SealError)?;
        let mut text = ticket.write();
        let tag = self
            .key
            .seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(PURPOSE),
                text.as_mut_slice(),
            )
            .map_err(|_| SealError)?;
        let mut sealed = Vec::with_capacity(NONCE_LEN + text.len() + tag.as_ref().len());
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(&text);
        sealed.extend_from_slice(tag.as_ref());
        Ok(URL_SAFE_NO_PAD.encode(sealed))
    }

    /// `None` for whatever this process did not seal itself.
    pub(super) fn open(&self, state: &str) -> Option<Ticket> {
        let mut sealed = URL_SAFE_NO_PAD.decode(state).ok()?;
        let (nonce, text) = sealed.split_at_mut_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let text = self.key.open_in_place(nonce, Aad::from(PURPOSE), text).ok()?;
        Ticket::read(text)
    }
}

impl Ticket {
    fn write(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(LEN);
        out.extend_from_slice(&self.call.to_be_bytes());
        out.extend_from_slice(&self.round.to_be_bytes());
        out.extend_from_slice(&self.expires.to_be_bytes());
        out.extend_from_slice(&self.principal);
        out.extend_from_slice(&self.request);
        out
    }

    fn read(text: &[u8]) -> Option<Self> {
        let (call, text) = text.split_first_chunk()?;
        let (round, text) = text.split_first_chunk()?;
        let (expires, text) = text.split_first_chunk()?;
        let (principal, text) = text.split_first_chunk()?;
        Some(Self {
            call: u64::from_be_bytes(*call),
            round: u32::from_be_bytes(*round),
            expires: u64::from_be_bytes(*expires),
            principal: *principal,
            request: text.try_into().ok()?,
        })
    }
}

/// The principal as a ticket names it.
pub(super) fn name(principal: Principal) -> [u8; 32] {
    let mut hash = Sha256::new();
    match principal {
        Principal::Anonymous => hash.update([0]),
        Principal::Credential(credential) => {
            hash.update([1]);
            hash.update(credential);
        }
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn ticket() -> Ticket {
        Ticket { call: u64::MAX - 7, round: 3, expires: 86_400_000, principal: [7; 32], request: [9; 32] }
    }

    /// B1.2.
    #[test]
    fn a_ticket_comes_back_as_it_was_and_no_two_look_alike() {
        let seal = Seal::new().unwrap();
        let state = seal.close(&ticket()).unwrap();
        assert_eq!(seal.open(&state), Some(ticket()));
        assert_ne!(seal.close(&ticket()).unwrap(), state);
    }

    /// Invariant 2: no credential, however chosen, is taken for having none.
    #[test]
    fn principals_have_names_of_their_own() {
        let credential = |value: &'static str| Principal::of(Some(&HeaderValue::from_static(value)));
        let all = [Principal::Anonymous, credential("anonymous"), credential("")];
        for (at, one) in all.iter().enumerate() {
            for other in &all[at + 1..] {
                assert_ne!(name(*one), name(*other));
            }
        }
    }

    /// B1.2, D36: every bit counts, and so does whose key it was.
    #[test]
    fn what_was_altered_cut_or_sealed_elsewhere_does_not_open() {
        let seal = Seal::new().unwrap();
        let state = seal.close(&ticket()).unwrap();
        let raw = URL_SAFE_NO_PAD.decode(&state).unwrap();
        for bit in 0..raw.len() * 8 {
            let mut altered = raw.clone();
            altered[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(seal.open(&URL_SAFE_NO_PAD.encode(altered)), None, "bit {bit}");
        }
        for len in 0..state.len() {
            assert_eq!(seal.open(&state[..len]), None, "length {len}");
        }
        for odd in ["", "=", "\u{0}", "é", &format!("{state}A"), &format!("{state}=")] {
            assert_eq!(seal.open(odd), None, "{odd:?}");
        }
        assert_eq!(Seal::new().unwrap().open(&state), None);
    }
}
