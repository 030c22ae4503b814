//! One session at a legacy server, ready for calls.
//!
//! A `Session` exists only once `initialize` was answered and `notifications/initialized` accepted, so whatever holds
//! one may send. Owns what the pool and the calls must know of it: its key, whether it is in use, what it was told.

use super::super::Shared;
use super::attribution::{Floor, Full, Seat, Unsent};
use super::beside::Beside;
use super::feed::Line;
use super::listeners::Presence;
use crate::config::{self, Affinity};
use crate::exchange::{Call, Principal};
use crate::telemetry::metrics::ReadySession;
use crate::translate::capabilities::Capabilities;
use crate::translate::declared::LogLevel;
use crate::translate::discover::Initialized;
use crate::translate::question::Question;
use crate::wire::version::LegacyRevision;
use bytes::Bytes;
use hyper::header::HeaderValue;
use sha2::{Digest, Sha256};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

/// Calls with equal keys share a session (B5, B7): same principal, same declared capabilities, same affinity value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct SessionKey {
    principal: Principal,
    capabilities: Capabilities,
    /// SHA-256 of the affinity value, which may be long.
    affinity: Option<[u8; 32]>,
    /// Which of several, where a server's sessions run one call at a time (B5, learn); else 0.
    number: usize,
}

impl SessionKey {
    pub(super) fn of(call: &Call, shared: &Shared) -> Self {
        let capabilities = if shared.settings.interactive {
            shared.declared.of(&call.request, shared.limits)
        } else {
            Capabilities::none()
        };
        Self {
            principal: call.principal,
            capabilities,
            affinity: affinity(call, &shared.settings),
            number: 0,
        }
    }

    /// The key of another session for the same calls.
    pub(super) fn numbered(&self, number: usize) -> Self {
        Self { number, ..self.clone() }
    }

    /// Whether they differ in nothing but what the client can be asked.
    pub(super) fn is_same_client(&self, other: &Self) -> bool {
        self.principal == other.principal && self.affinity == other.affinity
    }

    pub(super) fn is_further(&self) -> bool {
        self.number > 0
    }

    #[cfg(test)]
    pub(super) fn bare(principal: Principal) -> Self {
        Self { principal, capabilities: Capabilities::none(), affinity: None, number: 0 }
    }

    pub(super) fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }
}

/// What tells apart conversations of one principal, by the settings (B7).
pub(super) fn affinity(call: &Call, settings: &config::Upstream) -> Option<[u8; 32]> {
    match settings.session.affinity.as_ref()? {
        Affinity::Header(name) => {
            call.headers.get(name.as_str()).map(|value| Sha256::digest(value.as_bytes()).into())
        }
        Affinity::Meta(key) => {
            let value = call.request.params.meta()?.first(&call.request.text, key)?;
            Some(Sha256::digest(value.of(&call.request.text)).into())
        }
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
    /// Calls that may be asked, and the questions that come on no call's stream.
    pub(super) floor: Arc<Floor<Question>>,
    /// Its GET stream.
    pub(super) line: Line,
    /// Set when the server no longer knows it.
    lost: CancellationToken,
    /// Set when the server is about to be told that it is over.
    closed: CancellationToken,
    /// Among its principal's sessions.
    _presence: Presence,
    /// The level that the server was told last; held while it is being told another.
    pub(super) log_level: tokio::sync::Mutex<Option<LogLevel>>,
    calls: AtomicUsize,
    /// The last of several calls has ended.
    quiet: Notify,
    born: Instant,
    /// Milliseconds after `born` at which the last call ended.
    last_used: AtomicU64,
    counted: ReadySession,
}

/// Why a call cannot begin in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoSeat {
    /// As many calls wait for their turn as may.
    Full,
    /// The session was lost meanwhile.
    Lost,
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

    #[allow(clippy::too_many_arguments, reason = "one caller")]
    pub(super) fn new(
        id: Option<HeaderValue>,
        initialized: Initialized,
        authorization: Option<HeaderValue>,
        capabilities: Capabilities,
        key: Option<SessionKey>,
        floor: Arc<Floor<Question>>,
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
            floor,
            line: Line::default(),
            lost: CancellationToken::new(),
            closed: CancellationToken::new(),
            _presence: presence,
            log_level: tokio::sync::Mutex::new(None),
            calls: AtomicUsize::new(0),
            quiet: Notify::new(),
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

    /// Whether what was declared lets the server ask anything.
    pub(super) fn can_be_asked(&self) -> bool {
        self.capabilities.can_be_asked(self.initialized.revision)
    }

    /// The roots that the client has named last (B1.12).
    pub(super) fn roots(&self) -> Option<Bytes> {
        self.roots.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Resolves when the server has told of each of these that its user is done.
    pub(super) async fn completed(&self, ids: &[String]) {
        for id in ids {
            self.floor.completion(id).await;
        }
    }

    /// For a call that may be asked, before it is sent: waits until its questions would be heard and it is its turn. `None`
    /// where the client can be asked nothing.
    pub(super) async fn seat(&self, stream: Duration) -> Result<Option<Seat<Question>>, NoSeat> {
        if !self.can_be_asked() {
            return Ok(None);
        }
        let turn = async {
            self.listening(stream).await;
            let seat = Unsent::new(self.floor.enter().await.map_err(|Full| NoSeat::Full)?);
            // It may have waited long for its turn.
            self.listening(stream).await;
            Ok(seat.begins())
        };
        tokio::select! {
            biased;
            () = self.lost() => Err(NoSeat::Lost),
            seat = turn => seat,
        }
    }

    /// Waits until questions on the session's GET stream would be heard, or are known not to come there, at most for as
    /// long as `limit`: SDK servers drop a question without a word while that stream is not open.
    pub(super) async fn listening(&self, limit: Duration) {
        // Late is as good as silent: no call waits longer for a server that keeps it waiting.
        let _ = timeout(limit, self.line.settled()).await;
    }

    pub(super) fn learn_roots(&self, roots: Bytes) {
        *self.roots.lock().unwrap_or_else(PoisonError::into_inner) = Some(roots);
    }

    pub(super) async fn lost(&self) {
        self.lost.cancelled().await;
    }

    /// It is being closed: nobody uses it, and nobody will.
    pub(super) fn is_closed(&self) {
        self.closed.cancel();
    }

    /// Resolves when it has come to an end, whichever side ended it.
    pub(super) async fn over(&self) {
        tokio::select! {
            () = self.lost.cancelled() => {}
            () = self.closed.cancelled() => {}
        }
    }

    /// Resolves when no call uses it.
    pub(super) async fn unused(&self) {
        loop {
            // Registered before the look, so that the last call's end in between is not missed.
            let mut quiet = pin!(self.quiet.notified());
            quiet.as_mut().enable();
            if self.calls.load(Ordering::Acquire) == 0 {
                return;
            }
            quiet.await;
        }
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
            self.quiet.notify_waiters();
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
