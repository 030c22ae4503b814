//! What a session that takes the place of a lost one must be told, so that its host need not notice.
//!
//! Owns what is remembered of the host's requests that its server agreed to (the log level, subscriptions to resources), within
//! a bound, and telling it again. What lies in the server itself is lost with the session. Rules: A12.13; vector D31.

use super::Channel;
use super::session::Standing;
use crate::wire::jsonrpc::{Request, string};
use crate::wire::method::{LegacyOnly, Method};
use bytes::Bytes;
use hyper::HeaderMap;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::time::timeout;

/// Subscriptions that are told again. Of more the oldest is forgotten.
const SUBSCRIPTIONS: usize = 1024;

/// What a request changes, once the server has agreed.
pub(super) enum Effect {
    /// Raw `params`.
    Level(Bytes),
    Subscribed {
        uri: String,
        params: Bytes,
    },
    Unsubscribed {
        uri: String,
    },
}

/// See the module.
#[derive(Default)]
pub(super) struct Memory {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    level: Option<Bytes>,
    subscriptions: VecDeque<(String, Bytes)>,
}

impl Effect {
    pub(super) fn of(request: &Request) -> Option<Self> {
        let Method::LegacyOnly(method) = Method::of(&request.method) else { return None };
        let body = request.params.body()?;
        // A copy, so that it does not keep what else was read with it.
        let params = || Bytes::copy_from_slice(body.object.span.of(&request.text));
        let uri = || Some(string(&request.text, body.object.first(&request.text, "uri")?)?.into_owned());
        match method {
            LegacyOnly::SetLevel => Some(Effect::Level(params())),
            LegacyOnly::Subscribe => Some(Effect::Subscribed { uri: uri()?, params: params() }),
            LegacyOnly::Unsubscribe => Some(Effect::Unsubscribed { uri: uri()? }),
            LegacyOnly::Initialize | LegacyOnly::Ping | LegacyOnly::Task => None,
        }
    }
}

impl Memory {
    pub(super) fn take(&self, effect: Effect) {
        let mut inner = self.lock();
        match effect {
            Effect::Level(params) => inner.level = Some(params),
            Effect::Subscribed { uri, params } => {
                inner.subscriptions.retain(|(other, _)| *other != uri);
                if inner.subscriptions.len() >= SUBSCRIPTIONS {
                    inner.subscriptions.pop_front();
                }
                inner.subscriptions.push_back((uri, params));
            }
            Effect::Unsubscribed { uri } => inner.subscriptions.retain(|(other, _)| *other != uri),
        }
    }

    /// The host has begun a session of its own.
    pub(super) fn forget(&self) {
        *self.lock() = Inner::default();
    }

    /// Methods and raw parameters.
    fn all(&self) -> Vec<(&'static str, Bytes)> {
        let inner = self.lock();
        let level = inner.level.iter().map(|params| ("logging/setLevel", params.clone()));
        let subscriptions = inner.subscriptions.iter();
        level.chain(subscriptions.map(|(_, params)| ("resources/subscribe", params.clone()))).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Channel {
    /// Tells a new session what the lost one knew. What it refuses is between it and the host, who hears nothing.
    pub(super) async fn tell_again(&self, session: &Standing, headers: &Option<HeaderMap>) {
        for (number, (method, params)) in self.sessions.memory.all().into_iter().enumerate() {
            let text = format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":\"mcp-janus-{number}\",\"method\":\"{method}\",\"params\":{}}}",
                String::from_utf8_lossy(&params)
            );
            let told = self.post(self.heads.in_session(session, text.into(), headers.clone()));
            if timeout(self.settings().timeouts.initialize, told).await.is_err() {
                tracing::warn!(method, "a new session was not told in time what the lost one knew");
                return;
            }
        }
    }
}
