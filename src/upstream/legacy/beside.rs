//! Notifications for a call that come on another stream of its session.
//!
//! A server may send progress and log messages of a call on the session's GET stream instead of the call's own. Owns the
//! row of calls in flight that want either, and the rule that says whose a message is: progress by its token, a log
//! message only where a single call wants logs, else nobody's (B8.3). Also says which level the session needs (B8.1).
//! Nothing waits here: a call that does not keep up loses notifications, which promise nothing.
//! Rules: A2.3, A2.4, B8; vector D101.

use crate::translate::declared::LogLevel;
use crate::wire::jsonrpc::{Notification, is_number};
use crate::wire::meta;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;

/// Notifications that may wait for a call.
const WAITING: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Beside {
    calls: Mutex<Vec<Entry>>,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    log: Option<LogLevel>,
    progress: bool,
    to: mpsc::Sender<Notification>,
}

impl Beside {
    /// Counts a call in until its `leave`.
    pub(super) fn enter(
        &self,
        number: u64,
        log: Option<LogLevel>,
        progress: bool,
    ) -> mpsc::Receiver<Notification> {
        let (to, from) = mpsc::channel(WAITING);
        self.lock().push(Entry { number, log, progress, to });
        from
    }

    pub(super) fn leave(&self, number: u64) {
        self.lock().retain(|entry| entry.number != number);
    }

    /// The level of the call that wants most.
    pub(super) fn most_verbose(&self) -> Option<LogLevel> {
        self.lock().iter().filter_map(|entry| entry.log).min()
    }

    /// Hands progress to the call whose token it carries.
    pub(super) fn progress(&self, notification: Notification) {
        let Some(token) = notification
            .params
            .body()
            .and_then(|body| body.object.first(&notification.text, meta::PROGRESS_TOKEN))
        else {
            return;
        };
        let raw = token.of(&notification.text);
        let calls = self.lock();
        let mine = calls.iter().find(|entry| entry.progress && is_number(raw, entry.number));
        if let Some(entry) = mine {
            let _ = entry.to.try_send(notification);
        }
    }

    /// Hands a log message to the one call that wants logs; with several, nobody can tell whose it is.
    pub(super) fn log(&self, notification: Notification) {
        let calls = self.lock();
        let mut wanting = calls.iter().filter(|entry| entry.log.is_some());
        match (wanting.next(), wanting.next()) {
            (Some(entry), None) => {
                let _ = entry.to.try_send(notification);
            }
            (Some(_), Some(_)) => {
                tracing::debug!("a log message outside a call's stream may be any call's, and is dropped");
            }
            (None, _) => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::json::Limits;
    use crate::wire::jsonrpc::{self, Message};

    fn notification(method: &str, params: &str) -> Notification {
        let text = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#);
        match jsonrpc::parse(text.into(), Limits { nesting: 9, members: 9 }).unwrap() {
            Message::Notification(notification) => notification,
            other => panic!("{other:?}"),
        }
    }

    /// B8.3, D101.
    #[test]
    fn a_log_message_is_the_only_wanting_calls_or_nobodys() {
        let beside = Beside::default();
        let log = || notification("notifications/message", r#"{"level":"error","data":1}"#);
        let mut quiet = beside.enter(1, None, true);
        let mut first = beside.enter(2, Some(LogLevel::Error), false);
        beside.log(log());
        assert!(first.try_recv().is_ok());
        let mut second = beside.enter(3, Some(LogLevel::Debug), false);
        assert_eq!(beside.most_verbose(), Some(LogLevel::Debug));
        beside.log(log());
        assert!(first.try_recv().is_err() && second.try_recv().is_err() && quiet.try_recv().is_err());
        beside.leave(3);
        assert_eq!(beside.most_verbose(), Some(LogLevel::Error));
        beside.log(log());
        assert!(first.try_recv().is_ok());
    }

    /// A2.3: by token, whichever JSON type the server writes it in (C17).
    #[test]
    fn progress_is_its_tokens_call() {
        let beside = Beside::default();
        let mut first = beside.enter(1, None, true);
        let mut second = beside.enter(2, Some(LogLevel::Debug), false);
        beside.progress(notification("notifications/progress", r#"{"progressToken":"1","progress":1}"#));
        beside.progress(notification("notifications/progress", r#"{"progressToken":2,"progress":1}"#));
        beside.progress(notification("notifications/progress", r#"{"progressToken":3,"progress":1}"#));
        assert!(first.try_recv().is_ok() && first.try_recv().is_err());
        assert!(second.try_recv().is_err(), "a call without a token has no progress");
    }
}
