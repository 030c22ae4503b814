//! The session of a legacy host.
//!
//! Owns what is known of it, that there is one at most, and opening it anew where it is lost: with the host's own
//! `initialize`, whose second answer the host does not see; and that one that was begun and is not wanted is ended. Its id is
//! known here alone. Does not own what the session is at the server, which is the front's. Rules: A12.13, A13.4, A14.5; cases C02, C04, C06.

use super::again::Memory;
use super::deliver::UNBOUNDED;
use super::messages::Messages;
use super::{Channel, FAREWELL};
use crate::wire::headers::MCP_SESSION_ID;
use crate::wire::jsonrpc::{self, Body, Message, Reply, Request, Response};
use crate::wire::version::LegacyRevision;
use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt, join, join_all};
use hyper::HeaderMap;
use hyper::header::HeaderValue;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio::sync::{Notify, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Requests whose cancellation is told one by one at the end.
const CANCELLED: usize = 64;

/// A session that stands.
#[derive(Clone)]
pub(super) struct Standing {
    /// `None`: the server issues none (C04).
    pub(super) id: Option<HeaderValue>,
    /// `None`: one that nobody knows.
    pub(super) revision: Option<LegacyRevision>,
    /// Counts the sessions of this channel, those that were opened anew too.
    pub(super) number: u64,
    initialize: Bytes,
    /// The host's `notifications/initialized`, once it was accepted.
    pub(super) initialized: Option<Bytes>,
    /// The host has begun another, or has gone.
    pub(super) over: CancellationToken,
}

/// See the module.
#[derive(Default)]
pub(super) struct Sessions {
    standing: watch::Sender<Option<Arc<Standing>>>,
    /// How many `initialize` are under way.
    opening: AtomicUsize,
    renewal: Mutex<Option<Arc<Renewal>>>,
    pub(super) memory: Memory,
    /// Sessions that nobody wants and that are to be ended.
    left: Mutex<Vec<Arc<Standing>>>,
    some_left: Notify,
}

/// A session that its server has begun; ended unless somebody claims it.
pub(super) struct Unclaimed<'a> {
    sessions: &'a Sessions,
    session: Standing,
    claimed: bool,
}

impl Unclaimed<'_> {
    pub(super) fn claim(&mut self) {
        self.claimed = true;
    }
}

impl Drop for Unclaimed<'_> {
    fn drop(&mut self) {
        if !self.claimed {
            self.sessions.leave(Arc::new(self.session.clone()));
        }
    }
}

/// One opening anew, for all who have found out that the session is lost.
#[derive(Default)]
struct Renewal {
    over: CancellationToken,
    outcome: OnceLock<Result<Arc<Standing>, String>>,
}

/// An `initialize` under way.
pub(super) struct Opening<'a>(&'a Sessions);

impl Sessions {
    pub(super) fn current(&self) -> Option<Arc<Standing>> {
        self.standing.borrow().clone()
    }

    /// Whether the host is a legacy one just now.
    pub(super) fn are_wanted(&self) -> bool {
        self.opening.load(Ordering::Acquire) > 0 || self.standing.borrow().is_some()
    }

    pub(super) fn opening(&self) -> Opening<'_> {
        self.opening.fetch_add(1, Ordering::AcqRel);
        Opening(self)
    }

    pub(super) fn watch(&self) -> watch::Receiver<Option<Arc<Standing>>> {
        self.standing.subscribe()
    }

    /// The one that was there before.
    fn replace(&self, session: Option<Standing>) -> Option<Arc<Standing>> {
        let number = self.current().map_or(0, |session| session.number + 1);
        let session = session.map(|session| Arc::new(Standing { number, ..session }));
        self.standing.send_replace(session)
    }

    /// The host is ready.
    pub(super) fn initialized(&self, number: u64, text: Bytes) {
        self.standing.send_if_modified(|standing| match standing {
            Some(session) if session.number == number => {
                *session = Arc::new(Standing { initialized: Some(text), ..(**session).clone() });
                true
            }
            Some(_) | None => false,
        });
    }

    pub(super) fn unclaimed(&self, session: Standing) -> Unclaimed<'_> {
        Unclaimed { sessions: self, session, claimed: false }
    }

    /// Its server is told that nobody wants it any more.
    fn leave(&self, session: Arc<Standing>) {
        if session.id.is_some() {
            self.left.lock().unwrap_or_else(PoisonError::into_inner).push(session);
            self.some_left.notify_one();
        }
    }

    /// Those that are to be ended.
    pub(super) fn left(&self) -> Vec<Arc<Standing>> {
        std::mem::take(&mut *self.left.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Until there are some.
    pub(super) async fn some_left(&self) {
        self.some_left.notified().await;
    }

    fn renewal(&self) -> std::sync::MutexGuard<'_, Option<Arc<Renewal>>> {
        self.renewal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.0.opening.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Ends a renewal also where the request that ran it is given up.
struct Renewing<'a> {
    sessions: &'a Sessions,
    renewal: Arc<Renewal>,
}

impl Drop for Renewing<'_> {
    fn drop(&mut self) {
        *self.sessions.renewal() = None;
        self.renewal.over.cancel();
    }
}

/// What the answer to `initialize` begins.
pub(super) fn standing(request: &Request, id: Option<HeaderValue>, answer: &Response) -> Option<Standing> {
    let Reply::Result(body) = &answer.reply else { return None };
    Some(Standing { revision: revision(body, answer), ..Standing::begun(id, request) })
}

/// The one that the server has chosen.
fn revision(body: &Body, answer: &Response) -> Option<LegacyRevision> {
    let version = body.object.first(&answer.text, "protocolVersion")?;
    LegacyRevision::parse(&jsonrpc::string(&answer.text, version)?)
}

impl Standing {
    /// One of which no more is known.
    pub(super) fn begun(id: Option<HeaderValue>, request: &Request) -> Self {
        let (initialize, over) = (request.text.clone(), CancellationToken::new());
        Self { id, revision: None, number: 0, initialize, initialized: None, over }
    }
}

impl Channel {
    /// The host's session from now on; the one before it is over.
    pub(super) fn stand(&self, session: Standing) {
        self.sessions.memory.forget();
        if let Some(before) = self.sessions.replace(Some(session)) {
            before.over.cancel();
            self.sessions.leave(before);
        }
    }

    /// Another session in the place of `lost`, by whoever comes first; an error in words.
    pub(super) async fn renew(
        &self,
        lost: &Standing,
        headers: Option<HeaderMap>,
    ) -> Result<Arc<Standing>, String> {
        let joined = {
            match self.sessions.current() {
                Some(session) if session.number != lost.number => return Ok(session),
                Some(_) => {}
                None => return Err("the session has ended".to_owned()),
            }
            let mut renewal = self.sessions.renewal();
            match &*renewal {
                Some(renewal) => Err(renewal.clone()),
                None => Ok(renewal.insert(Arc::default()).clone()),
            }
        };
        let renewal = match joined {
            Ok(renewal) => renewal,
            Err(renewal) => {
                renewal.over.cancelled().await;
                let given_up = || Err("the session was lost, and opening another was given up".to_owned());
                return renewal.outcome.get().cloned().unwrap_or_else(given_up);
            }
        };
        let renewing = Renewing { sessions: &self.sessions, renewal };
        let outcome = self.reopen(lost, headers).await;
        match &outcome {
            Ok(_) => tracing::info!("the session was lost; another was opened in its place"),
            Err(why) => tracing::warn!(%why, "the session was lost, and no other could be opened"),
        }
        let _ = renewing.renewal.outcome.set(outcome.clone());
        outcome
    }

    async fn reopen(&self, lost: &Standing, headers: Option<HeaderMap>) -> Result<Arc<Standing>, String> {
        let opening = self.heads.opening(lost.initialize.clone(), headers.clone());
        let response = self.front.handle(opening).await;
        let id = response.headers().get(MCP_SESSION_ID).cloned();
        let begun = Standing { id, revision: None, initialized: None, ..lost.clone() };
        // Whatever keeps it from taking the place of the lost one: its server has begun it.
        let mut fresh = self.sessions.unclaimed(begun);
        let mut messages = Messages::new(response, self.settings().limits.message_bytes);
        let answer = loop {
            match messages.next().await {
                Ok(Some(text)) => {
                    if let Ok(Message::Response(answer)) = jsonrpc::parse(text, UNBOUNDED) {
                        break answer;
                    }
                }
                Ok(None) => {
                    let status = messages.status.as_u16();
                    return Err(format!(
                        "the session was lost; `initialize` was answered with HTTP status {status}"
                    ));
                }
                Err(broken) => return Err(format!("the session was lost; of another: {broken}")),
            }
        };
        fresh.session.revision = match &answer.reply {
            Reply::Result(body) => revision(body, &answer),
            Reply::Error(error) => {
                fresh.claim();
                let told = error.brief(&answer.text);
                return Err(format!(
                    "the session was lost; of another the server says: {told} ({})",
                    error.code
                ));
            }
        };
        if let Some(text) = &lost.initialized {
            let ready = self.heads.in_session(&fresh.session, text.clone(), headers.clone());
            let status = self.post(ready).await;
            if !status.is_success() {
                let status = status.as_u16();
                return Err(format!("the session was lost; another was refused with HTTP status {status}"));
            }
            fresh.session.initialized = Some(text.clone());
            self.tell_again(&fresh.session, &headers).await;
        }
        if lost.over.is_cancelled() {
            return Err("the session has ended".to_owned());
        }
        fresh.claim();
        self.sessions.replace(Some(fresh.session.clone()));
        self.sessions.current().ok_or_else(|| "the session has ended".to_owned())
    }

    /// Ends a session at its server, as far as that allows it.
    pub(super) async fn end(&self, session: &Standing) {
        if session.id.is_some() {
            let _ = timeout(FAREWELL, self.post(self.heads.end(session))).await;
        }
    }

    /// Ends one that nobody wants; what keeps it from that leaves it to be ended still.
    pub(super) fn end_left(&self, session: &Standing) -> BoxFuture<'_, ()> {
        let mut unclaimed = self.sessions.unclaimed(session.clone());
        async move {
            self.end(&unclaimed.session).await;
            unclaimed.claim();
        }
        .boxed()
    }

    /// The client has gone: what it had under way (raw ids) is cancelled, and its sessions are ended.
    pub(super) async fn farewell(&self, under_way: Vec<Bytes>) {
        let left = self.sessions.left();
        let ending_left = join_all(left.iter().map(|session| self.end(session)));
        let ending = async {
            let Some(session) = self.sessions.replace(None) else { return };
            session.over.cancel();
            let cancels = under_way.into_iter().take(CANCELLED).map(|id| {
                let text = format!(
                    "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{{\"requestId\":{},\"reason\":\"the client has gone\"}}}}",
                    String::from_utf8_lossy(&id)
                );
                self.post(self.heads.in_session(&session, text.into(), None))
            });
            let _ = timeout(FAREWELL / 2, join_all(cancels)).await;
            self.end(&session).await;
        };
        join(ending_left, ending).await;
    }
}
