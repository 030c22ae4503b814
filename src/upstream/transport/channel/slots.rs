//! The channels without a session, by whom they serve.
//!
//! Owns that there is one for each principal, that one request opens it for all who come meanwhile, and that nothing is kept of
//! those for whom none could be opened (invariant 5). Does not own how one is opened.

use super::connection::Connection;
use crate::exchange::Principal;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Mutex as AsyncMutex;

/// Locked, while one is being opened.
type Slot = Arc<AsyncMutex<Option<Arc<Connection>>>>;

#[derive(Default)]
pub(super) struct Slots(Mutex<HashMap<Principal, Slot>>);

/// One principal's, for whoever waits for it or opens it.
pub(super) struct Turn<'a> {
    slots: &'a Slots,
    principal: Principal,
    pub(super) slot: Slot,
}

impl Slots {
    pub(super) fn turn(&self, principal: Principal) -> Turn<'_> {
        let slot = self.lock().entry(principal).or_default().clone();
        Turn { slots: self, principal, slot }
    }

    /// The first that fits, and whose it is; taken out.
    pub(super) fn take(&self, fits: impl Fn(&Connection) -> bool) -> Option<(Principal, Arc<Connection>)> {
        let mut slots = self.lock();
        let mut open =
            slots.iter().filter_map(|(principal, slot)| Some((*principal, slot.try_lock().ok()?.clone()?)));
        let taken = open.find(|(_, channel)| fits(channel))?;
        drop(open);
        slots.remove(&taken.0);
        Some(taken)
    }

    /// Puts a channel back, unless the principal has another by now; whether it was.
    pub(super) fn put(&self, principal: Principal, channel: &Arc<Connection>) -> bool {
        let slot = self.lock().entry(principal).or_default().clone();
        let Ok(mut slot) = slot.try_lock() else { return false };
        let free = slot.as_ref().is_none_or(|other| other.is_over());
        if free {
            *slot = Some(channel.clone());
        }
        free
    }

    pub(super) fn all(&self) -> Vec<Arc<Connection>> {
        self.lock().values().filter_map(|slot| slot.try_lock().ok()?.clone()).collect()
    }

    /// Lets go of those that are over.
    pub(super) fn tidy(&self) {
        self.lock().retain(|_, slot| {
            // One that is being opened is locked.
            let of_use = slot.try_lock().map_or(true, |slot| slot.as_ref().is_some_and(|one| !one.is_over()));
            of_use || Arc::strong_count(slot) > 1
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Principal, Slot>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut slots = self.slots.lock();
        // Nobody else holds it, and nothing is in it.
        if let Some(slot) = slots.get(&self.principal)
            && Arc::ptr_eq(slot, &self.slot)
            && Arc::strong_count(slot) == 2
            && slot.try_lock().is_ok_and(|slot| slot.is_none())
        {
            slots.remove(&self.principal);
        }
    }
}
