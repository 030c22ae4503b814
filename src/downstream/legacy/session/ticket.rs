//! What a session id holds, sealed: everything of a session that another process needs to serve it.
//!
//! Owns the fields and their places. The key under which the table knows the session is one of them, and the upstream's name
//! is part of the purpose, so an id of another upstream does not open. What cannot be in it (open streams, subscriptions, a
//! level that was set later) is rebuilt or begins anew. Rules: A13.4; architecture section 4, "Sessions for legacy clients".

use crate::translate::legacy_client::discovered::Offers;
use crate::translate::legacy_client::initialize::{Can, Client};
use crate::wire::log_level::LogLevel;
use crate::wire::version::LegacyRevision;
use bytes::Bytes;

/// Of the layout below; an id of another one is unknown.
const VERSION: u8 = 1;

/// What the table knows a session by.
pub(super) type Key = [u8; 16];

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ticket {
    pub(super) key: Key,
    /// Seconds since 1970.
    pub(super) minted: u64,
    pub(super) principal: [u8; 32],
    pub(super) subject: Option<[u8; 32]>,
    pub(super) level: Option<LogLevel>,
    pub(super) offers: Offers,
    pub(super) client: Client,
}

/// What a sealed text is sealed as.
pub(super) fn purpose(upstream: &str) -> Vec<u8> {
    [b"mcp-janus session 1 ", upstream.as_bytes()].concat()
}

/// The key alone, which stands first.
pub(super) fn key(text: &[u8]) -> Option<Key> {
    let (version, text) = text.split_first()?;
    let (key, _) = text.split_first_chunk()?;
    (*version == VERSION).then_some(*key)
}

impl Ticket {
    pub(super) fn write(&self) -> Vec<u8> {
        let client = &self.client;
        let mut out = Vec::with_capacity(96 + 32 + client.info.len() + client.capabilities.len());
        out.push(VERSION);
        out.extend_from_slice(&self.key);
        out.extend_from_slice(&self.minted.to_be_bytes());
        out.extend_from_slice(&self.principal);
        out.push(u8::from(self.subject.is_some()));
        out.extend_from_slice(self.subject.as_ref().map_or(&[], <[u8; 32]>::as_slice));
        out.push(self.level.map_or(0, number_of_level));
        out.extend_from_slice(&self.offers.bits().to_be_bytes());
        out.push(number_of(client.revision));
        // Bounded where they are read, far below this.
        let info = &client.info[..client.info.len().min(usize::from(u16::MAX))];
        out.extend_from_slice(&(info.len() as u16).to_be_bytes());
        out.extend_from_slice(info);
        out.extend_from_slice(&client.capabilities);
        out
    }

    pub(super) fn read(text: &[u8]) -> Option<Self> {
        let key = key(text)?;
        let (_, text) = text.split_first_chunk::<17>()?;
        let (minted, text) = text.split_first_chunk()?;
        let (principal, text) = text.split_first_chunk()?;
        let (has_subject, text) = text.split_first()?;
        let (subject, text) = match has_subject {
            0 => (None, text),
            _ => text.split_first_chunk().map(|(subject, text)| (Some(*subject), text))?,
        };
        let (level, text) = text.split_first()?;
        let (offers, text) = text.split_first_chunk()?;
        let (revision, text) = text.split_first()?;
        let (info, text) = text.split_first_chunk()?;
        let (info, capabilities) = text.split_at_checked(usize::from(u16::from_be_bytes(*info)))?;
        let capabilities = Bytes::copy_from_slice(capabilities);
        Some(Self {
            key,
            minted: u64::from_be_bytes(*minted),
            principal: *principal,
            subject,
            level: match level {
                0 => None,
                number => Some(level_of(*number)?),
            },
            offers: Offers::from_bits(u16::from_be_bytes(*offers)),
            client: Client {
                revision: revision_of(*revision)?,
                info: Bytes::copy_from_slice(info),
                can: Can::of(&capabilities),
                capabilities,
            },
        })
    }
}

fn number_of(revision: LegacyRevision) -> u8 {
    match revision {
        LegacyRevision::V2024_11_05 => 0,
        LegacyRevision::V2025_03_26 => 1,
        LegacyRevision::V2025_06_18 => 2,
        LegacyRevision::V2025_11_25 => 3,
    }
}

fn revision_of(number: u8) -> Option<LegacyRevision> {
    Some(match number {
        0 => LegacyRevision::V2024_11_05,
        1 => LegacyRevision::V2025_03_26,
        2 => LegacyRevision::V2025_06_18,
        3 => LegacyRevision::V2025_11_25,
        _ => return None,
    })
}

fn number_of_level(level: LogLevel) -> u8 {
    match level {
        LogLevel::Debug => 1,
        LogLevel::Info => 2,
        LogLevel::Notice => 3,
        LogLevel::Warning => 4,
        LogLevel::Error => 5,
        LogLevel::Critical => 6,
        LogLevel::Alert => 7,
        LogLevel::Emergency => 8,
    }
}

fn level_of(number: u8) -> Option<LogLevel> {
    Some(match number {
        1 => LogLevel::Debug,
        2 => LogLevel::Info,
        3 => LogLevel::Notice,
        4 => LogLevel::Warning,
        5 => LogLevel::Error,
        6 => LogLevel::Critical,
        7 => LogLevel::Alert,
        8 => LogLevel::Emergency,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket(subject: Option<[u8; 32]>, level: Option<LogLevel>, revision: LegacyRevision) -> Ticket {
        let capabilities = Bytes::from_static(br#"{"elicitation":{"form":{}}}"#);
        let client = Client {
            revision,
            info: Bytes::from_static(br#"{"name":"c","version":"1"}"#),
            can: Can::of(&capabilities),
            capabilities,
        };
        let offers = Offers::from_bits(5);
        Ticket { key: [7; 16], minted: 1 << 40, principal: [9; 32], subject, level, offers, client }
    }

    #[test]
    fn a_ticket_comes_back_as_it_was() {
        for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
            let revision = LegacyRevision::parse(revision).unwrap();
            for subject in [None, Some([1; 32])] {
                for number in 0..=8 {
                    let ticket = ticket(subject, level_of(number), revision);
                    let text = ticket.write();
                    assert_eq!(Ticket::read(&text), Some(ticket));
                    assert_eq!(key(&text), Some([7; 16]));
                }
            }
        }
    }

    /// The seal keeps strangers out; a later layout must not be misread by an older process.
    #[test]
    fn what_is_cut_or_of_another_layout_is_no_ticket() {
        let text = ticket(Some([1; 32]), None, LegacyRevision::LATEST).write();
        let head = text.len() - ticket(None, None, LegacyRevision::LATEST).client.capabilities.len();
        for len in 0..head {
            assert_eq!(Ticket::read(&text[..len]), None, "{len}");
        }
        let mut later = text.clone();
        later[0] = 2;
        assert_eq!((Ticket::read(&later), key(&later)), (None, None));
    }
}
