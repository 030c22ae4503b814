//! What a `requestState` is: a ticket for one round of one parked call, sealed.
//!
//! Owns the ticket's fields. The key is random and lives as long as the process, so a ticket of another process, or of this one
//! before a restart, does not open. Does not own the cipher (`crate::seal`), nor what a ticket is good for: that is the
//! registry's to decide. Rule: B1.2; spec 2026-07-28 basic/patterns/mrtr.

use crate::seal::{Seal, SealError};

const PURPOSE: &[u8] = b"mcp-janus requestState 1";

const LEN: usize = 8 + 4 + 8 + 32 + 32;

/// Seals and opens tickets.
pub(super) struct Tickets(Seal);

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

impl Tickets {
    pub(super) fn new() -> Result<Self, SealError> {
        Seal::random(PURPOSE).map(Self)
    }

    pub(super) fn close(&self, ticket: &Ticket) -> Result<String, SealError> {
        self.0.close(&ticket.write())
    }

    /// `None` for whatever this process did not seal itself.
    pub(super) fn open(&self, state: &str) -> Option<Ticket> {
        Ticket::read(&self.0.open(state.as_bytes())?)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// B1.2, D36.
    #[test]
    fn a_ticket_comes_back_as_it_was_and_only_where_it_was_issued() {
        let ticket = Ticket {
            call: u64::MAX - 7,
            round: 3,
            expires: 86_400_000,
            principal: [7; 32],
            request: [9; 32],
        };
        let tickets = Tickets::new().unwrap();
        let state = tickets.close(&ticket).unwrap();
        assert_eq!(tickets.open(&state), Some(ticket));
        assert_eq!(Tickets::new().unwrap().open(&state), None);
    }
}
