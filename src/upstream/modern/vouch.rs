//! Whether the server takes a credential for what it says of its holder.
//!
//! A legacy client's session goes on with a newer token only if that is its own caller's. The token says whose it is, and the
//! proxy can verify no token; the server can. It vouches for one by taking `server/discover` with it, refusing the same with
//! another signature by 401, as it must an invalid token (spec basic/authorization, "Token Handling"), and then taking it
//! again: so it was not for another reason, as a limit of a gateway's, that it refused. It looks at the signature, then, and
//! what the token says is what its issuer said. A server that takes anything vouches for nothing.
//! Owns these three looks: one run for all who ask for the same credential at the same time, few at once, and a short memory of
//! how they ended, so that nobody can make the proxy ask without end. Does not own who may be whom
//! (`downstream::legacy::session`). Rules: invariant 2; architecture section 4, "Sessions for legacy clients".

use super::{Modern, Trouble};
use crate::exchange::{FaultKind, Principal};
use crate::shutdown::Shutdown;
use crate::telemetry::metrics::TokenRefresh;
use crate::translate::discover::OWN_INFO;
use crate::translate::legacy_client::envelope;
use crate::translate::legacy_client::initialize::{Can, Client};
use crate::upstream::flight::Flights;
use crate::wire::jsonrpc::Reply;
use crate::wire::version::LegacyRevision;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HeaderValue};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;

const METHOD: &str = "server/discover";

/// Credentials of one upstream that are looked at at once. No setting: one more costs its client a new session, and each is
/// a request with a bad token to the server.
const AT_ONCE: usize = 32;
/// Verdicts that are remembered, and for how long. The oldest makes room, and is asked for anew if it must be.
const REMEMBERED: usize = 1024;
const GOOD: Duration = Duration::from_secs(30);
const BAD: Duration = Duration::from_secs(10);
const UNKNOWN: Duration = Duration::from_secs(1);

/// What is known of credentials.
pub(super) struct Vouching {
    looks: Flights<Principal, TokenRefresh>,
    places: Arc<Semaphore>,
    /// Oldest first.
    known: Mutex<VecDeque<(Principal, TokenRefresh, Instant)>>,
}

impl Vouching {
    pub(super) fn new(shutdown: Shutdown) -> Self {
        let places = Arc::new(Semaphore::new(AT_ONCE));
        Self { looks: Flights::new(shutdown), places, known: Mutex::default() }
    }

    fn known(&self, principal: Principal) -> Option<TokenRefresh> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, verdict, since) = known.iter().rev().find(|(other, ..)| *other == principal)?;
        (since.elapsed() < lasts(*verdict)).then_some(*verdict)
    }

    fn remember(&self, principal: Principal, verdict: TokenRefresh) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED {
            known.pop_front();
        }
        known.push_back((principal, verdict, Instant::now()));
    }
}

fn lasts(verdict: TokenRefresh) -> Duration {
    match verdict {
        TokenRefresh::Vouched => GOOD,
        TokenRefresh::Refused => BAD,
        TokenRefresh::Unsure => UNKNOWN,
    }
}

/// What came of one look.
enum Look {
    Taken,
    /// 401: the token is not valid.
    Invalid,
    /// 403.
    Forbidden,
    Neither,
}

impl Modern {
    /// Whether the server vouches for the credential of these headers.
    pub async fn vouches(self: &Arc<Self>, headers: &HeaderMap) -> bool {
        let verdict = self.verdict(headers).await;
        self.shared.metrics.token_refresh(verdict);
        verdict == TokenRefresh::Vouched
    }

    async fn verdict(self: &Arc<Self>, headers: &HeaderMap) -> TokenRefresh {
        let principal = Principal::of(headers.get(AUTHORIZATION));
        let Some(altered) = headers.get(AUTHORIZATION).and_then(altered) else { return TokenRefresh::Unsure };
        if let Some(verdict) = self.vouching.known(principal) {
            return verdict;
        }
        let run = || {
            let (modern, headers) = (self.clone(), headers.clone());
            async move {
                let verdict = modern.look_thrice(headers, altered).await;
                modern.vouching.remember(principal, verdict);
                verdict
            }
        };
        self.vouching.looks.join(principal, run).await.unwrap_or(TokenRefresh::Unsure)
    }

    async fn look_thrice(&self, headers: HeaderMap, altered: HeaderValue) -> TokenRefresh {
        let Ok(_place) = self.vouching.places.try_acquire() else {
            let upstream = &self.shared.settings.name;
            tracing::warn!(%upstream, "too many new tokens at once are to be vouched for; one is not");
            return TokenRefresh::Unsure;
        };
        match self.look(&headers).await {
            Look::Taken => {}
            Look::Invalid | Look::Forbidden => return TokenRefresh::Refused,
            Look::Neither => return TokenRefresh::Unsure,
        }
        let mut other = headers.clone();
        other.insert(AUTHORIZATION, altered);
        match self.look(&other).await {
            Look::Invalid => {}
            Look::Taken | Look::Forbidden | Look::Neither => return TokenRefresh::Unsure,
        }
        match self.look(&headers).await {
            Look::Taken => TokenRefresh::Vouched,
            Look::Invalid | Look::Forbidden | Look::Neither => TokenRefresh::Unsure,
        }
    }

    async fn look(&self, headers: &HeaderMap) -> Look {
        let number = self.shared.next_number();
        let message = envelope::own(METHOD, "", &ourselves(), number);
        match self.ask(headers, METHOD, number, message).await {
            Ok(answer) => match answer.reply {
                Reply::Result(_) => Look::Taken,
                Reply::Error(_) => Look::Neither,
            },
            Err(Trouble::Fault(fault)) => match fault.kind {
                FaultKind::Unauthorized { status: 401, .. } => Look::Invalid,
                FaultKind::Unauthorized { status: 403, .. } => Look::Forbidden,
                FaultKind::Unauthorized { .. }
                | FaultKind::InvalidParams
                | FaultKind::MethodNotFound
                | FaultKind::MissingCapability
                | FaultKind::RateLimited
                | FaultKind::BadGateway
                | FaultKind::Timeout
                | FaultKind::Busy
                | FaultKind::Draining
                | FaultKind::Unanswered
                | FaultKind::Internal => Look::Neither,
            },
            Err(Trouble::OtherEra(_)) => Look::Neither,
        }
    }
}

/// The proxy asks in its own name, and can be asked nothing.
fn ourselves() -> Client {
    Client {
        revision: LegacyRevision::LATEST,
        info: Bytes::from_static(OWN_INFO.as_bytes()),
        capabilities: Bytes::from_static(b"{}"),
        can: Can::default(),
    }
}

/// The same token with another signature; `None` for what has none.
fn altered(value: &HeaderValue) -> Option<HeaderValue> {
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    let (signed, signature) = token.trim().rsplit_once('.')?;
    if !scheme.eq_ignore_ascii_case("bearer") || !signed.contains('.') {
        return None;
    }
    let mut signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
    // In the middle, so that it stays a number of the same size.
    let middle = signature.len() / 2;
    *signature.get_mut(middle)? ^= 1;
    let mut altered =
        HeaderValue::try_from(format!("{scheme} {signed}.{}", URL_SAFE_NO_PAD.encode(signature))).ok()?;
    altered.set_sensitive(true);
    Some(altered)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: &str) -> Option<String> {
        altered(&HeaderValue::from_str(value).unwrap()).map(|value| value.to_str().unwrap().to_owned())
    }

    /// Invariant 2: what the server is to refuse differs in the signature alone.
    #[test]
    fn nothing_but_the_signature_is_altered() {
        for len in [1, 2, 3, 64, 256] {
            let signature = URL_SAFE_NO_PAD.encode(vec![7u8; len]);
            let altered = of(&format!("Bearer head.claims.{signature}")).unwrap();
            let other = altered.strip_prefix("Bearer head.claims.").unwrap();
            let other = URL_SAFE_NO_PAD.decode(other).unwrap();
            let differing = other.iter().filter(|byte| **byte != 7).count();
            assert_eq!((other.len(), differing), (len, 1));
        }
        assert!(of("bearer a.b.AAAA").is_some(), "the scheme's case does not matter");
    }

    /// A token without a signature cannot be vouched for, whatever its header says of the algorithm.
    #[test]
    fn what_has_no_signature_has_no_other_one() {
        for value in [
            "Bearer opaque",
            "Bearer a.b.",
            "Bearer a.b",
            "Bearer a.b.*",
            "Basic a.b.AAAA",
            "Bearer",
            "a.b.AAAA",
        ] {
            assert_eq!(of(value), None, "{value}");
        }
    }
}
