//! One session at a legacy server, ready for calls.
//!
//! A `Session` exists only once `initialize` was answered and `notifications/initialized` accepted, so whatever holds
//! one may send. Owns what the pool and the calls must know of it: its key, whether it is in use, what it was told.

use super::super::Shared;
use super::beside::Beside;
use super::listeners::Presence;
use crate::config::Affinity;
use crate::exchange::{Call, Principal};
use crate::telemetry::metrics::ReadySession;
use crate::translate::capabilities::Capabilities;
use crate::translate::declared::LogLevel;
use crate::translate::discover::Initialized;
use crate::wire::version::LegacyRevision;
use bytes::Bytes;
use hyper::header::HeaderValue;
use sha2::{Digest, Sha256};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Calls with equal keys share a session (B5, B7): same principal, same declared capabilities, same affinity value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct SessionKey {
    principal: Principal,
    capabilities: Capabilities,
    /// SHA-256 of the affinity value, which may be long.
    affinity: Option<[u8; 32]>,
}

impl SessionKey {
    pub(super) fn of(call: &Call, shared: &Shared) -> Self {
        let affinity = match &shared.settings.session.affinity {
            None => None,
            Some(Affinity::Header(name)) => {
                call.headers.get(name.as_str()).map(|value| Sha256::digest(value.as_bytes()).into())
            }
            Some(Affinity::Meta(key)) => {
                let meta = call.request.params.meta();
                meta.and_then(|meta| meta.first(&call.request.text, key))
                    .map(|span| Sha256::digest(span.of(&call.request.text)).into())
            }
        };
        let capabilities = if shared.settings.interactive {
            Capabilities::of(&call.request, shared.limits)
        } else {
            Capabilities::none()
        };
        Self { principal: call.principal, capabilities, affinity }
    }

    pub(super) fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }
}

/// See the module.
#[derive(Debug)]
pub struct Session {
    /// `None` for a server that issues no session ids (C04).
    pub(in crate::upstream) id: Option<HeaderValue>,
    pub initialized: Initialized,
    /// The credential of the request that opened it, kept to end the session with and for nothing else: the same
    /// principal's by construction.
    authorization: Option<HeaderValue>,
    /// What the server was told that the client can be asked.
    capabilities: Capabilities,
    /// The last roots that the client has named.
    roots: Mutex<Option<Bytes>>,
    /// `None` for a session that serves one call.
    pub(super) key: Option<SessionKey>,
    /// Calls that want notifications.
    pub(super) beside: Beside,
    /// Set when the server no longer knows it.
    lost: CancellationToken,
    /// Among its principal's sessions.
    _presence: Presence,
    /// The level that the server was told last; held while it is being told another.
    pub(super) log_level: tokio::sync::Mutex<Option<LogLevel>>,
    calls: AtomicUsize,
    born: Instant,
    /// Milliseconds after `born` at which the last call ended.
    last_used: AtomicU64,
    counted: ReadySession,
}

/// A copy that does not keep the whole head alive which the value came in.
fn alone(value: &HeaderValue) -> HeaderValue {
    let mut copy = HeaderValue::from_bytes(value.as_bytes()).unwrap_or_else(|_| value.clone());
    copy.set_sensitive(value.is_sensitive());
    copy
}

/// What it takes to end a session at the server.
#[derive(Debug, Clone)]
pub(in crate::upstream) struct Goodbye {
    pub(in crate::upstream) id: HeaderValue,
    /// `None` where none was agreed on.
    pub(in crate::upstream) revision: Option<LegacyRevision>,
    pub(in crate::upstream) authorization: Option<HeaderValue>,
}

impl Session {
    /// `None` for a session that the server does not know of.
    pub(super) fn goodbye(&self) -> Option<Goodbye> {
        Some(Goodbye {
            id: self.id.clone()?,
            revision: Some(self.initialized.revision),
            authorization: self.authorization.clone(),
        })
    }

    pub(super) fn new(
        id: Option<HeaderValue>,
        initialized: Initialized,
        authorization: Option<HeaderValue>,
        capabilities: Capabilities,
        key: Option<SessionKey>,
        presence: Presence,
        counted: ReadySession,
    ) -> Self {
        Self {
            id: id.as_ref().map(alone),
            initialized,
            authorization: authorization.as_ref().map(alone),
            capabilities,
            roots: Mutex::default(),
            key,
            beside: Beside::default(),
            lost: CancellationToken::new(),
            _presence: presence,
            log_level: tokio::sync::Mutex::new(None),
            calls: AtomicUsize::new(0),
            born: Instant::now(),
            last_used: AtomicU64::new(0),
            counted,
        }
    }

    /// The server no longer knows it: whatever still waits in it waits in vain.
    pub(super) fn is_lost(&self) {
        self.lost.cancel();
    }

    pub(super) fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// The roots that the client has named last (B1.12).
    pub(super) fn roots(&self) -> Option<Bytes> {
        self.roots.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Resolves when the server has told of each of these that its user is done.
    pub(super) async fn completed(&self, _ids: &[String]) {
        std::future::pending().await
    }

    pub(super) fn learn_roots(&self, roots: Bytes) {
        *self.roots.lock().unwrap_or_else(PoisonError::into_inner) = Some(roots);
    }

    pub(super) async fn lost(&self) {
        self.lost.cancelled().await;
    }

    pub(super) fn call_begins(&self) {
        if self.calls.fetch_add(1, Ordering::AcqRel) == 0 {
            self.counted.begins();
        }
    }

    pub(super) fn call_ends(&self) {
        let now = u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_used.store(now, Ordering::Release);
        if self.calls.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.counted.ends();
        }
    }

    /// How long it has been without a call; `None` while one runs.
    pub(super) fn idle(&self) -> Option<Duration> {
        if self.calls.load(Ordering::Acquire) > 0 {
            return None;
        }
        let last = Duration::from_millis(self.last_used.load(Ordering::Acquire));
        Some(self.born.elapsed().saturating_sub(last))
    }
}
