//! A legacy message on its way to the front and back.
//!
//! Owns the order in which a session comes about, what is held until then, following an answer's stream to its end (taking it up
//! again where the server closed it on purpose), and the one further try in a new session. Rules: A2.2, A12.13, A12.20, A12.22,
//! A14.5, B14; cases C02, C06, C20, C21, C23.

use super::again::Effect;
use super::deliver::{Awaited, UNBOUNDED, items, words};
use super::flying::Kind;
use super::follow::bounded;
use super::messages::{Broken, Messages};
use super::session::{Standing, standing};
use super::sort::What;
use super::{Brought, Channel};
use crate::wire::headers::MCP_SESSION_ID;
use crate::wire::jsonrpc::{self, Id, Message, Reply, Request, code};
use crate::wire::version::Era;
use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt};
use hyper::{HeaderMap, StatusCode};
use smallvec::SmallVec;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// How long a stream is read on for what else comes after the answer.
const REST: Duration = Duration::from_secs(2);
/// Before a stream is taken up again that named no pause.
const PAUSE: Duration = Duration::from_secs(1);

/// Why a request has no answer.
struct Failure {
    code: i64,
    words: String,
}

impl From<String> for Failure {
    fn from(words: String) -> Self {
        Self { code: code::INTERNAL_ERROR, words }
    }
}

const NO_SESSION: &str = "there is no session; `initialize` begins one";

impl Channel {
    pub(super) fn initialize<'a>(
        &'a self,
        request: Request,
        Brought { headers, place }: Brought,
    ) -> BoxFuture<'a, ()> {
        let Some(flight) = self.flying.enter(&request.id, Kind::Initialize) else {
            return self.duplicate(&request.id);
        };
        let (turn, barrier) = self.order.barrier();
        let (opening, waiting) = (self.sessions.opening(), self.waiting(place));
        async move {
            turn.come().await;
            let _place = self.places.acquire().await;
            drop(waiting);
            let response = self.front.handle(self.heads.opening(request.text.clone(), headers)).await;
            let id = response.headers().get(MCP_SESSION_ID).cloned();
            let mut messages = Messages::new(response, self.settings().limits.message_bytes);
            let mut awaited = Awaited::one(Era::Legacy, flight);
            let mut unclaimed = self.sessions.unclaimed(Standing::begun(id.clone(), &request));
            let broken = loop {
                let text = match messages.next().await {
                    Ok(Some(text)) => text,
                    Ok(None) => break None,
                    Err(broken) => break Some(broken),
                };
                if let Ok(Message::Response(answer)) = jsonrpc::parse(text.clone(), UNBOUNDED) {
                    unclaimed.claim();
                    if let Some(session) = standing(&request, id.clone(), &answer) {
                        self.stand(session);
                    }
                }
                self.deliver(&mut awaited, text).await;
                if awaited.is_over() {
                    break None;
                }
            };
            drop((opening, barrier));
            let told = broken.map_or_else(|| words(messages.status), |broken| broken.to_string());
            self.fail(awaited, code::INTERNAL_ERROR, &told).await;
        }
        .boxed()
    }

    pub(super) fn legacy<'a>(&'a self, request: Request, brought: Brought) -> BoxFuture<'a, ()> {
        let Brought { headers, place } = brought;
        let Some(flight) = self.flying.enter(&request.id, Kind::Request(Era::Legacy)) else {
            return self.duplicate(&request.id);
        };
        let (turn, waiting) = (self.order.turn(), self.waiting(place));
        async move {
            let ready = async {
                turn.come().await;
                self.places.acquire().await
            };
            // What has not gone anywhere needs no other cancellation.
            let _place = tokio::select! {
                biased;
                () = flight.cancelled() => return,
                place = ready => place,
            };
            drop(waiting);
            let awaited = Awaited::one(Era::Legacy, flight).with(Effect::of(&request));
            self.exchange(awaited, request.text, headers).await;
        }
        .boxed()
    }

    /// An array, as 2025-03-26 has it; whether it may be one is the front's to say.
    pub(super) fn batch<'a>(&'a self, text: Bytes, Brought { headers, place }: Brought) -> BoxFuture<'a, ()> {
        let mut ids = Vec::new();
        for item in items(&text) {
            if let Ok(Message::Request(request)) = jsonrpc::parse(item, self.json_limits()) {
                ids.push(request.id);
            }
        }
        let enter = |id| self.flying.enter(id, Kind::Request(Era::Legacy));
        let Some(flights) = ids.iter().map(enter).collect::<Option<SmallVec<_>>>() else {
            return self.duplicates(ids);
        };
        let (turn, waiting) = (self.order.turn(), self.waiting(place));
        async move {
            turn.come().await;
            let _place = self.places.acquire().await;
            drop(waiting);
            self.exchange(Awaited::array(flights), text, headers).await;
        }
        .boxed()
    }

    /// One POST with requests in the session, to their answers.
    async fn exchange(&self, mut awaited: Awaited<'_>, text: Bytes, headers: Option<HeaderMap>) {
        let Some(session) = self.sessions.current() else {
            let failure = Failure { code: code::INVALID_REQUEST, words: NO_SESSION.to_owned() };
            return self.refuse(awaited, failure).await;
        };
        let over = session.over.clone();
        let answered = tokio::select! {
            biased;
            () = over.cancelled() => {
                Err("the session was ended before this request was answered".to_owned().into())
            }
            answered = self.asked(&mut awaited, session, text, headers) => answered,
        };
        if let Err(failure) = answered {
            self.refuse(awaited, failure).await;
        }
    }

    /// The same, once more where the session was lost: the request has not run then (A12.13).
    async fn asked(
        &self,
        awaited: &mut Awaited<'_>,
        mut session: Arc<Standing>,
        mut text: Bytes,
        headers: Option<HeaderMap>,
    ) -> Result<(), Failure> {
        let mut renewed = false;
        loop {
            // What was cancelled on its way, or while its session was opened anew, does not run.
            match awaited.goes(text) {
                Some(left) => text = left,
                None => return Ok(()),
            }
            let posted = self.heads.in_session(&session, text.clone(), headers.clone());
            let response = self.front.handle(posted).await;
            let mut messages = Messages::new(response, self.settings().limits.message_bytes);
            if messages.status != StatusCode::NOT_FOUND {
                return self.read(messages, awaited, &session).await;
            }
            let told = messages.next().await.ok().flatten();
            // The server's own word on the method wins (A12.22).
            if let Some(told) = told.filter(|told| is_unknown_method(told, awaited)) {
                self.deliver(awaited, told).await;
                return Ok(());
            }
            // A server without sessions has none to lose.
            if session.id.is_none() {
                return Err(words(StatusCode::NOT_FOUND).into());
            }
            if std::mem::replace(&mut renewed, true) {
                return Err("the session was lost again right after a new one".to_owned().into());
            }
            awaited.comes_back();
            session = self.renew(&session, headers.clone()).await?;
        }
    }

    /// An error for each that waits for an answer; an array without a request is not met with silence either (C31).
    async fn refuse(&self, awaited: Awaited<'_>, Failure { code, words }: Failure) {
        if awaited.is_array()
            && awaited.is_over()
            && let What::Say(told) = self.nameless(code, &words)
        {
            self.say(told).await;
        }
        self.fail(awaited, code, &words).await;
    }

    /// Reads a response until everything is answered; `Err`: what those are told that have no answer.
    async fn read(
        &self,
        mut messages: Messages,
        awaited: &mut Awaited<'_>,
        session: &Arc<Standing>,
    ) -> Result<(), Failure> {
        let limits = &self.settings().limits;
        let mut left = limits.resumptions;
        loop {
            let ended = match messages.next().await {
                Ok(Some(text)) if awaited.is_array() && !messages.is_stream() => {
                    return self.whole(awaited, text, messages.status).await;
                }
                Ok(Some(text)) => {
                    left = limits.resumptions;
                    self.deliver(awaited, text).await;
                    if awaited.is_over() && messages.is_stream() {
                        let _ = timeout(REST, self.rest(&mut messages, awaited)).await;
                        return Ok(());
                    }
                    continue;
                }
                Ok(None) if awaited.is_cancelled() => return Ok(()),
                Ok(None) if messages.is_stream() => Broken::Off,
                Ok(None) => return Err(words(messages.status).into()),
                Err(broken) => broken,
            };
            let again = match (ended, messages.last_event_id()) {
                (Broken::Off, Some(last)) => last,
                (Broken::Off, None) | (Broken::TooLarge(_), _) => return Err(ended.to_string().into()),
            };
            let pause = messages.retry.unwrap_or(PAUSE);
            messages = self
                .resume(awaited, session, again, pause, &mut left)
                .await
                .ok_or_else(|| ended.to_string())?;
        }
    }

    /// Takes a stream up again after an event; `None`: it is not to be had any more.
    async fn resume(
        &self,
        awaited: &Awaited<'_>,
        session: &Arc<Standing>,
        last: Bytes,
        mut pause: Duration,
        left: &mut usize,
    ) -> Option<Messages> {
        let settings = self.settings();
        loop {
            *left = left.checked_sub(1)?;
            sleep(bounded(pause, settings.timeouts.reconnect_max)).await;
            if awaited.is_cancelled() {
                return None;
            }
            pause = bounded(pause.max(PAUSE) * 2, settings.timeouts.reconnect_max);
            let response = self.front.handle(self.heads.stream(session, Some(&last))).await;
            let messages = Messages::after(response, settings.limits.message_bytes, Some(last.clone()));
            if messages.is_stream() {
                return Some(messages);
            }
            if !messages.status.is_server_error() {
                return None;
            }
        }
    }

    /// The JSON body that answers an array.
    async fn whole(&self, awaited: &mut Awaited<'_>, text: Bytes, status: StatusCode) -> Result<(), Failure> {
        if let Ok(Message::Response(answer)) = jsonrpc::parse(text.clone(), UNBOUNDED)
            && let (None, Reply::Error(error)) = (answer.id, &answer.reply)
        {
            // The array as a whole was refused.
            return Err(Failure { code: error.code, words: error.brief(&answer.text) });
        }
        if self.array(awaited, &text).await.is_none() {
            self.deliver(awaited, text).await;
        }
        if awaited.is_over() { Ok(()) } else { Err(words(status).into()) }
    }

    /// What else a stream says after the answer.
    async fn rest(&self, messages: &mut Messages, awaited: &mut Awaited<'_>) {
        while let Ok(Some(text)) = messages.next().await {
            self.deliver(awaited, text).await;
        }
    }

    /// A request under an id that is under way (C20): an error under it would be the answer to the other.
    pub(super) fn duplicate<'a>(&'a self, id: &Id) -> BoxFuture<'a, ()> {
        self.duplicates(vec![id.clone()])
    }

    /// The same of an array in which one or more are.
    fn duplicates<'a>(&'a self, mut ids: Vec<Id>) -> BoxFuture<'a, ()> {
        let told = "a request came under an id that is under way";
        let mut texts = Vec::new();
        while let Some(id) = ids.pop() {
            ids.retain(|other| *other != id);
            if let What::Say(text) = self.refused(Some(id), code::INVALID_REQUEST, told) {
                texts.push(text);
            }
        }
        let small = self.small();
        async move {
            let _small = small;
            for text in texts {
                self.say(text).await;
            }
        }
        .boxed()
    }

    /// Something of our own to say.
    pub(super) fn speak<'a>(&'a self, text: Bytes) -> BoxFuture<'a, ()> {
        let small = self.small();
        async move {
            let _small = small;
            self.say(text).await;
        }
        .boxed()
    }
}

/// Whether a text is a server's word that it does not know the method of just this request.
fn is_unknown_method(text: &Bytes, awaited: &Awaited<'_>) -> bool {
    match jsonrpc::parse(text.clone(), UNBOUNDED) {
        Ok(Message::Response(answer)) => {
            awaited.names(&answer)
                && matches!(&answer.reply, Reply::Error(error) if error.code == code::METHOD_NOT_FOUND)
        }
        Ok(Message::Request(_) | Message::Notification(_)) | Err(_) => false,
    }
}
