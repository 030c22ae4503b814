//! Stand-ins for the types of `translate::legacy_client` until those are there.
#![allow(dead_code)]

use crate::wire::payload::Payload;
use crate::wire::version::LegacyRevision;
use bytes::Bytes;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::downstream) struct Client {
    pub(in crate::downstream) revision: LegacyRevision,
    pub(in crate::downstream) info: Bytes,
    pub(in crate::downstream) capabilities: Bytes,
    pub(in crate::downstream) can: Can,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::downstream) struct Can {
    pub(in crate::downstream) form: bool,
}

impl Can {
    pub(in crate::downstream) fn of(_capabilities: &Bytes) -> Self {
        Self::default()
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::downstream) struct Offers(u16);

impl Offers {
    pub(in crate::downstream) fn bits(self) -> u16 {
        self.0
    }

    pub(in crate::downstream) fn from_bits(bits: u16) -> Self {
        Self(bits)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::downstream) enum Change {
    Tools,
    Prompts,
    Resources,
    Updated(Box<str>),
}

pub(in crate::downstream) fn announce(change: &Change) -> Payload {
    let method = match change {
        Change::Tools => "notifications/tools/list_changed",
        Change::Prompts => "notifications/prompts/list_changed",
        Change::Resources => "notifications/resources/list_changed",
        Change::Updated(uri) => {
            let mut out = String::from(
                r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"#,
            );
            crate::wire::json::quote_into(&mut out, uri);
            out.push_str("}}");
            return Payload::from(out);
        }
    };
    Payload::from(format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#))
}
