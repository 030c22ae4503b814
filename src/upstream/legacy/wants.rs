//! What a caller wants to see of its call on the way, and where it comes from beside the call's own stream.
//!
//! Owns the call's place among those of its session that want notifications, for as long as it lasts (`beside`).
//! Rules: A2.3, A2.4, B8.

use super::Session;
use crate::translate::declared::{self, LogLevel};
use crate::wire::jsonrpc::{Notification, Request};
use bytes::Bytes;
use std::sync::Arc;
use tokio::sync::mpsc;

/// What the caller wants to see on the way.
pub(super) struct Wants {
    pub(super) token: Option<Bytes>,
    pub(super) log: Option<LogLevel>,
}

impl Wants {
    pub(super) fn of(request: &Request) -> Self {
        Self {
            token: declared::progress_token(request).map(Bytes::copy_from_slice),
            log: declared::log_level(request),
        }
    }

    /// Puts the call among those of its session that want notifications, if it does.
    pub(super) fn aside(&self, session: &Arc<Session>, number: u64) -> Option<Aside> {
        if self.token.is_none() && self.log.is_none() {
            return None;
        }
        let from = session.beside.enter(number, self.log, self.token.is_some());
        Some(Aside { session: session.clone(), number, from })
    }
}

/// Where notifications arrive that come on another stream of the session.
pub(super) struct Aside {
    session: Arc<Session>,
    number: u64,
    from: mpsc::Receiver<Notification>,
}

impl Aside {
    /// What comes next for the call. Never where it wants nothing.
    pub(super) async fn next(aside: &mut Option<Self>) -> Notification {
        let notification = match aside {
            Some(aside) => aside.from.recv().await,
            None => None,
        };
        match notification {
            Some(notification) => notification,
            None => std::future::pending().await,
        }
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        self.session.beside.leave(self.number);
    }
}
