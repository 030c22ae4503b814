//! Text that leaves this process and comes back, and that nobody else can read or alter in between.
//!
//! Owns the cipher (ChaCha20-Poly1305) and its key: random and as old as the process, or from the settings, so that what one
//! process sealed opens in another. A text is sealed for a purpose and opens for no other. Does not own what is in it, nor
//! what it is good for. Names that nobody can guess are made here too. Architecture section 4, "Parked calls" and "Sessions for
//! legacy clients".

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};

/// The system gives no random bytes, or the cipher refuses its key.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("no key for sealing what clients keep: the system gives no random bytes")]
pub struct SealError;

/// The cipher and its key.
pub struct Seal {
    key: LessSafeKey,
    random: SystemRandom,
    /// What a text must have been sealed as, so that no other sealed text of ours passes for one.
    purpose: Box<[u8]>,
}

impl Seal {
    /// A key that nobody else ever has.
    pub fn random(purpose: &[u8]) -> Result<Self, SealError> {
        Self::keyed(&random()?, purpose)
    }

    pub fn keyed(key: &[u8; 32], purpose: &[u8]) -> Result<Self, SealError> {
        let key = UnboundKey::new(&CHACHA20_POLY1305, key).map_err(|_| SealError)?;
        Ok(Self { key: LessSafeKey::new(key), random: SystemRandom::new(), purpose: purpose.into() })
    }

    /// As URL-safe base64, which any header and any JSON string can carry.
    pub fn close(&self, text: &[u8]) -> Result<String, SealError> {
        let mut nonce = [0; NONCE_LEN];
        // Chosen at random each time: far fewer texts are sealed under one key than it takes for two to be equal.
        self.random.fill(&mut nonce).map_err(|_| SealError)?;
        let mut sealed = Vec::with_capacity(NONCE_LEN + text.len() + CHACHA20_POLY1305.tag_len());
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(text);
        let inside = sealed.get_mut(NONCE_LEN..).ok_or(SealError)?;
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = self
            .key
            .seal_in_place_separate_tag(nonce, Aad::from(&*self.purpose), inside)
            .map_err(|_| SealError)?;
        sealed.extend_from_slice(tag.as_ref());
        Ok(URL_SAFE_NO_PAD.encode(sealed))
    }

    /// `None` for whatever was not sealed with this key for this purpose.
    pub fn open(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        let mut sealed = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, text) = sealed.split_at_mut_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let len = self.key.open_in_place(nonce, Aad::from(&*self.purpose), text).ok()?.len();
        sealed.drain(..NONCE_LEN);
        sealed.truncate(len);
        Some(sealed)
    }
}

/// Bytes that nobody can guess.
pub fn random<const N: usize>() -> Result<[u8; N], SealError> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| SealError)?;
    Ok(bytes)
}

/// A name that nobody can guess: 128 bits in hexadecimal digits.
pub fn unguessable() -> Result<String, SealError> {
    Ok(format!("{:032x}", u128::from_be_bytes(random()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_comes_back_as_it_was_and_no_two_look_alike() {
        let seal = Seal::random(b"a").unwrap();
        let sealed = seal.close(b"text").unwrap();
        assert_eq!(seal.open(sealed.as_bytes()).unwrap(), b"text");
        assert_ne!(seal.close(b"text").unwrap(), sealed);
        assert_eq!(seal.open(seal.close(b"").unwrap().as_bytes()).unwrap(), b"");
    }

    #[test]
    fn the_key_and_the_purpose_are_what_opens_it() {
        let sealed = Seal::keyed(&[7; 32], b"a").unwrap().close(b"text").unwrap();
        let opens = |key: u8, purpose: &[u8]| {
            Seal::keyed(&[key; 32], purpose).unwrap().open(sealed.as_bytes()).is_some()
        };
        assert!(opens(7, b"a"));
        assert!(!opens(8, b"a") && !opens(7, b"b") && !opens(7, b""));
        assert!(Seal::random(b"a").unwrap().open(sealed.as_bytes()).is_none());
    }

    #[test]
    fn an_unguessable_name_is_32_digits_and_no_other_is_like_it() {
        let (one, two) = (unguessable().unwrap(), unguessable().unwrap());
        for name in [&one, &two] {
            assert!(name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit()), "{name}");
        }
        assert_ne!(one, two);
    }

    /// B1.2, D36: every bit counts.
    #[test]
    fn what_was_altered_or_cut_does_not_open() {
        let seal = Seal::random(b"a").unwrap();
        let sealed = seal.close(b"a text of some length").unwrap();
        let raw = URL_SAFE_NO_PAD.decode(&sealed).unwrap();
        for bit in 0..raw.len() * 8 {
            let mut altered = raw.clone();
            altered[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(seal.open(URL_SAFE_NO_PAD.encode(altered).as_bytes()), None, "bit {bit}");
        }
        for len in 0..sealed.len() {
            assert_eq!(seal.open(&sealed.as_bytes()[..len]), None, "length {len}");
        }
        for odd in ["", "=", "\u{0}", "é", &format!("{sealed}A"), &format!("{sealed}=")] {
            assert_eq!(seal.open(odd.as_bytes()), None, "{odd:?}");
        }
    }
}
