//! How long a modern server's result may be kept, and for whom.
//!
//! Owns reading `ttlMs` and `cacheScope`. What is kept is `upstream::modern`'s business; legacy clients see neither.
//! Rules: A4.11; spec 2026-07-28 server/utilities/caching.

use crate::wire::json::once;
use crate::wire::jsonrpc::{Body, Response};
use std::time::Duration;

/// Nothing is believed for longer, whatever a server says.
const MOST: Duration = Duration::from_secs(24 * 60 * 60);

/// What a result says of its keeping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fresh {
    /// Zero: not at all.
    pub ttl: Duration,
    /// It is the same for everyone (`cacheScope` is `public`).
    pub shared: bool,
}

/// What is absent, negative, said twice or no number is no time at all; what is not said to be for all is for one (A4.11).
pub fn read(response: &Response, body: &Body) -> Fresh {
    let member = |name| once(&body.object, &response.text, name).map(|span| span.of(&response.text));
    Fresh {
        ttl: member("ttlMs").map_or(Duration::ZERO, millis),
        shared: member("cacheScope") == Some(b"\"public\""),
    }
}

fn millis(raw: &[u8]) -> Duration {
    let number = std::str::from_utf8(raw).ok().and_then(|raw| raw.parse::<f64>().ok());
    // The conversion ends at the bounds of the integer, and makes zero of what is no number.
    Duration::from_millis(number.map_or(0, |number| number as u64)).min(MOST)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{answer, body};
    use super::*;

    fn fresh(result: &str) -> Fresh {
        let response = answer(result);
        read(&response, body(&response))
    }

    /// A4.11; spec server/utilities/caching.
    #[test]
    fn only_what_is_said_clearly_is_kept() {
        for (result, ttl, shared) in [
            (r#"{"ttlMs":300000,"cacheScope":"public"}"#, 300_000, true),
            (r#"{"ttlMs":300000,"cacheScope":"private"}"#, 300_000, false),
            (r#"{"ttlMs":1}"#, 1, false),
            (r#"{"ttlMs":1.5e3}"#, 1500, false),
            (r#"{"ttlMs":0,"cacheScope":"public"}"#, 0, true),
            (r#"{"cacheScope":"public"}"#, 0, true),
            (r#"{"ttlMs":-5,"cacheScope":"Public"}"#, 0, false),
            (r#"{"ttlMs":"5","cacheScope":["public"]}"#, 0, false),
            (r#"{"ttlMs":null,"cacheScope":null}"#, 0, false),
            (r#"{"ttlMs":5,"ttlMs":6,"cacheScope":"public","cacheScope":"private"}"#, 0, false),
            (r#"{"ttlMs":86400001}"#, 86_400_000, false),
            (r#"{"ttlMs":1e400}"#, 86_400_000, false),
            ("{}", 0, false),
        ] {
            assert_eq!(fresh(result), Fresh { ttl: Duration::from_millis(ttl), shared }, "{result}");
        }
    }
}
