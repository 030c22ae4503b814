//! Which of several sessions of equal key a call takes, at a server where a session runs one call at a time.
//!
//! Owns the count of calls that have chosen each session, from before it is opened to the end of the call, so that calls that
//! come together do not all wait for the same one. Does not own the sessions (`pool`) nor the turns in them (`attribution`).
//! Rule: B5, learn (`session.max_per_key`).

use super::session::SessionKey;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Debug)]
pub(super) struct Claims {
    /// Sessions of equal key at most.
    most: usize,
    taken: Mutex<HashMap<SessionKey, usize>>,
}

/// A call's choice, until it is dropped.
#[derive(Debug)]
pub(super) struct Claim {
    claims: Arc<Claims>,
    key: SessionKey,
}

impl Claims {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, taken: Mutex::default() })
    }

    /// `None` where there is nothing to choose.
    ///
    /// `parked` says of an open session how many of its calls wait for their clients, which hold up nobody. A free session
    /// is taken before another is opened, and another is opened before a call waits.
    pub(super) fn choose(
        self: &Arc<Self>,
        key: &SessionKey,
        further: bool,
        parked: impl Fn(&SessionKey) -> Option<usize>,
    ) -> Option<Claim> {
        if self.most < 2 {
            return None;
        }
        let mut taken = self.lock();
        let numbers = if further { 0..self.most } else { 0..1 };
        let keys = numbers.map(|number| {
            let key = key.numbered(number);
            let parked = parked(&key);
            let ahead = taken.get(&key).map_or(0, |taken| taken.saturating_sub(parked.unwrap_or(0)));
            ((ahead, parked.is_none()), key)
        });
        // The first one of several that are equal.
        let (_, key) = keys.min_by_key(|(rank, _)| *rank)?;
        *taken.entry(key.clone()).or_default() += 1;
        drop(taken);
        Some(Claim { claims: self.clone(), key })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionKey, usize>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Claim {
    pub(super) fn key(&self) -> &SessionKey {
        &self.key
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut taken = self.claims.lock();
        if let Some(count) = taken.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::Principal;

    fn number(claim: &Claim, base: &SessionKey) -> usize {
        (0..9).find(|number| base.numbered(*number) == *claim.key()).unwrap()
    }

    /// B5, learn: free before new, new before waiting; what is parked does not count.
    #[test]
    fn calls_spread_over_the_sessions_of_their_key() {
        let (claims, key) = (Claims::new(3), SessionKey::bare(Principal::Anonymous));
        let none_open = |_: &SessionKey| None;
        let first = claims.choose(&key, true, none_open).unwrap();
        let second = claims.choose(&key, true, none_open).unwrap();
        let third = claims.choose(&key, true, none_open).unwrap();
        assert_eq!([&first, &second, &third].map(|claim| number(claim, &key)), [0, 1, 2]);
        let fourth = claims.choose(&key, true, none_open).unwrap();
        assert_eq!(number(&fourth, &key), 0, "all are taken, so it waits");
        drop((first, fourth, third));
        let open = |of: &SessionKey| (*of != key.numbered(0)).then_some(0);
        assert_eq!(number(&claims.choose(&key, true, open).unwrap(), &key), 2, "an open one that is free");
        let parked = |of: &SessionKey| (*of == key.numbered(1)).then_some(1);
        assert_eq!(number(&claims.choose(&key, true, parked).unwrap(), &key), 1, "its call is parked");
        drop(second);
        assert!(claims.lock().is_empty(), "nothing is left behind");
    }

    #[test]
    fn there_is_one_session_where_the_server_has_not_shown_that_it_takes_more() {
        let key = SessionKey::bare(Principal::Anonymous);
        let claims = Claims::new(3);
        let all: Vec<_> = (0..4).map(|_| claims.choose(&key, false, |_| None).unwrap()).collect();
        assert!(all.iter().all(|claim| *claim.key() == key));
        assert!(Claims::new(1).choose(&key, true, |_| None).is_none());
    }
}
