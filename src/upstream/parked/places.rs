//! How many calls may be parked, in all and of one principal.
//!
//! Owns the two counts. A place is taken when a call's server asks for the first time and is held until the call is over.
//! Invariant 5.

use crate::exchange::Principal;
use dashmap::DashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Which bound is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// `limits.parked`.
    All,
    /// `limits.parked_per_principal`.
    Principal,
}

#[derive(Debug)]
pub(super) struct Places {
    taken: AtomicUsize,
    by_principal: DashMap<Principal, usize>,
    most: usize,
    most_per_principal: usize,
}

/// One call's place; dropping it frees it.
#[derive(Debug)]
pub struct Place {
    places: Arc<Places>,
    principal: Principal,
}

impl Places {
    pub(super) fn new(most: usize, most_per_principal: usize) -> Arc<Self> {
        Arc::new(Self { taken: AtomicUsize::new(0), by_principal: DashMap::new(), most, most_per_principal })
    }

    pub(super) fn taken(&self) -> usize {
        self.taken.load(Ordering::Acquire)
    }

    pub(super) fn take(self: &Arc<Self>, principal: Principal) -> Result<Place, Full> {
        let one_more = |taken: usize| (taken < self.most).then_some(taken + 1);
        self.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).map_err(|_| Full::All)?;
        // From here on a place that is not given is put back by its drop.
        let place = Place { places: self.clone(), principal };
        let mut own = self.by_principal.entry(principal).or_insert(0);
        *own += 1;
        let fits = *own <= self.most_per_principal;
        drop(own);
        if fits { Ok(place) } else { Err(Full::Principal) }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.taken.fetch_sub(1, Ordering::AcqRel);
        if let Some(mut own) = self.places.by_principal.get_mut(&self.principal) {
            *own = own.saturating_sub(1);
        }
        self.places.by_principal.remove_if(&self.principal, |_, own| *own == 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_bounds_hold_and_nothing_stays_behind() {
        let places = Places::new(3, 2);
        let other = Principal::Credential([1; 32]);
        let first = places.take(Principal::Anonymous).unwrap();
        let _second = places.take(Principal::Anonymous).unwrap();
        assert_eq!(places.take(Principal::Anonymous).unwrap_err(), Full::Principal);
        assert_eq!(places.taken(), 2);
        let _third = places.take(other).unwrap();
        assert_eq!(places.take(other).unwrap_err(), Full::All);
        drop(first);
        drop((places.take(Principal::Anonymous).unwrap(), _second, _third));
        assert_eq!((places.taken(), places.by_principal.len()), (0, 0));
    }
}
