//! What the demo server remembers between requests: sessions, the calls that run in them, and the questions that are open.
//!
//! Owns the bounds on all three. Ids come from the standard library's random hash keys: good enough that nobody meets
//! another's session by accident, not made to keep an attacker out. Nothing here is worth that.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

const MOST_SESSIONS: usize = 256;
const MOST_CALLS: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Sessions {
    /// Cancelled when the server stops; every session and call hangs on it.
    pub(super) stopping: CancellationToken,
    keys: RandomState,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    minted: u64,
    sessions: HashMap<String, Session>,
}

#[derive(Debug)]
struct Session {
    version: &'static str,
    can_be_asked: bool,
    used: Instant,
    ended: CancellationToken,
    /// By the id's JSON text, so that `1` and `"1"` are two.
    calls: HashMap<String, CancellationToken>,
    /// By the number that the question went out under; a call has one at most.
    questions: HashMap<u64, oneshot::Sender<Value>>,
    asked: u64,
}

/// Why a call could not be started.
pub(super) enum Unstarted {
    SessionGone,
    IdInUse,
    TooMany,
}

impl Sessions {
    /// Starts a session. When there are too many, the one unused for longest makes room.
    pub(super) fn mint(&self, version: &'static str, can_be_asked: bool) -> String {
        let mut table = self.lock();
        if table.sessions.len() >= MOST_SESSIONS {
            let oldest =
                table.sessions.iter().min_by_key(|(_, session)| session.used).map(|(id, _)| id.clone());
            if let Some(session) = oldest.and_then(|id| table.sessions.remove(&id)) {
                session.ended.cancel();
            }
        }
        table.minted += 1;
        let halves = (self.keys.hash_one((table.minted, 0)), self.keys.hash_one((table.minted, 1)));
        let id = format!("{:016x}{:016x}", halves.0, halves.1);
        let ended = self.stopping.child_token();
        let session = Session {
            version,
            can_be_asked,
            used: Instant::now(),
            ended,
            calls: HashMap::new(),
            questions: HashMap::new(),
            asked: 0,
        };
        table.sessions.insert(id.clone(), session);
        id
    }

    /// What was agreed on in a session, if there is such a session: the version, and whether its client can be asked.
    pub(super) fn agreed(&self, id: &str) -> Option<(&'static str, bool)> {
        let mut table = self.lock();
        let session = table.sessions.get_mut(id)?;
        session.used = Instant::now();
        Some((session.version, session.can_be_asked))
    }

    /// Ends a session and all that runs in it; false if there is none.
    pub(super) fn end(&self, id: &str) -> bool {
        let session = self.lock().sessions.remove(id);
        session.inspect(|session| session.ended.cancel()).is_some()
    }

    /// Notes that a call runs; the token tells it to stop.
    pub(super) fn start(&self, session: &str, call: &str) -> Result<CancellationToken, Unstarted> {
        let mut table = self.lock();
        let session = table.sessions.get_mut(session).ok_or(Unstarted::SessionGone)?;
        if session.calls.contains_key(call) {
            return Err(Unstarted::IdInUse);
        }
        if session.calls.len() >= MOST_CALLS {
            return Err(Unstarted::TooMany);
        }
        let token = session.ended.child_token();
        session.calls.insert(call.to_owned(), token.clone());
        Ok(token)
    }

    /// The call's id is free again.
    pub(super) fn finish(&self, session: &str, call: &str) {
        if let Some(session) = self.lock().sessions.get_mut(session) {
            session.calls.remove(call);
        }
    }

    /// Tells a call to stop. Unknown calls may have ended already, so they are no error.
    pub(super) fn cancel(&self, session: &str, call: &str) {
        if let Some(token) = self.lock().sessions.get(session).and_then(|session| session.calls.get(call)) {
            token.cancel();
        }
    }

    /// Opens a question; `None` if the session is gone. Numbers are the server's own and begin with 1, as the client's may.
    pub(super) fn ask(&self, session: &str) -> Option<(u64, oneshot::Receiver<Value>)> {
        let mut table = self.lock();
        let session = table.sessions.get_mut(session)?;
        session.asked += 1;
        let (answer, response) = oneshot::channel();
        session.questions.insert(session.asked, answer);
        Some((session.asked, response))
    }

    /// Hands a response to the question that it is to, if that is still open.
    pub(super) fn answered(&self, session: &str, number: u64, response: &Value) {
        let mut table = self.lock();
        let question = table.sessions.get_mut(session).and_then(|session| session.questions.remove(&number));
        if let Some(question) = question {
            // Its call may be ending just now.
            let _ = question.send(response.clone());
        }
    }

    /// A question is not open any more.
    pub(super) fn withdraw(&self, session: &str, number: u64) {
        if let Some(session) = self.lock().sessions.get_mut(session) {
            session.questions.remove(&number);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
