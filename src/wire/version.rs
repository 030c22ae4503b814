//! Revisions of the protocol and the two eras they belong to.
//!
//! Owns the known revisions, their names on the wire and their order. What differs between them is written in
//! `translate`. Spec: basic/versioning.

/// The two ways of speaking MCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Era {
    /// 2026-07-28: stateless, version and capabilities on every request.
    Modern,
    /// 2025-11-25 and older: `initialize`, sessions, requests from the server.
    Legacy,
}

impl Era {
    pub fn name(self) -> &'static str {
        match self {
            Era::Modern => "modern",
            Era::Legacy => "legacy",
        }
    }
}

/// A legacy revision; later ones compare greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LegacyRevision {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
}

/// The one modern revision, as written on the wire.
pub const MODERN: &str = "2026-07-28";

impl LegacyRevision {
    pub const LATEST: Self = Self::V2025_11_25;

    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "2024-11-05" => Self::V2024_11_05,
            "2025-03-26" => Self::V2025_03_26,
            "2025-06-18" => Self::V2025_06_18,
            "2025-11-25" => Self::V2025_11_25,
            _ => return None,
        })
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
        }
    }
}
