//! What comes in a channel, and whose it is.
//!
//! Owns the way of each message to whoever waits for it, and what a server is answered whose request is nobody's to answer.
//! None of it waits: it runs where the server's output is read. Rules: A2.2, A14.2-A14.4, A14.9, B8.3, B9.6, B15, B17; cases
//! C21, C38, C53.

use super::super::super::http::Speaker;
use super::super::super::pipe::Inbox;
use super::super::rename::{self, Addressee, Renamed};
use super::super::stream::{Lost, Standing, Tail};
use super::state::{SELDOM, Sort, State, Waiting, key};
use super::{Connection, Mode, PROBE};
use crate::telemetry::metrics::UpstreamLimit;
use crate::translate::discover;
use crate::translate::notify::Kind as Told;
use crate::wire::jsonrpc::{self, Id, Message, Notification, Reply, Request, Response as Answer, code};
use crate::wire::meta;
use crate::wire::payload::Payload;
use bytes::Bytes;
use std::borrow::Cow;
use std::sync::Arc;
use tokio::time::Instant;

/// What comes.
impl Inbox for Arc<Connection> {
    fn text(&self, text: Bytes) {
        let mut first = text.iter().filter(|byte| !byte.is_ascii_whitespace());
        if first.next() == Some(&b'[') {
            return self.array(&text);
        }
        match jsonrpc::parse(text.clone(), self.setting.limits) {
            Ok(message) => self.message(message),
            Err(malformed) => self.stray(&text, malformed.id.as_ref()),
        }
    }

    fn too_long(&self, id: Option<Id>) {
        let waiting = id.and_then(|id| self.lock().remove(&key(id.raw())));
        match waiting {
            Some(waiting) => waiting.lose(Lost::TooLarge),
            None => {
                self.setting.metrics.not_a_message();
                tracing::warn!(upstream = %self.setting.upstream, "a message longer than `message_bytes` is left out; it answers no request that is known");
            }
        }
    }

    fn ended(&self, why: Cow<'static, str>) {
        let (waiting, told, failed) = {
            let mut state = self.lock();
            let ours = state.ending.is_some();
            let only_probed = state.probed && state.mode == Mode::Untold;
            let failed = (!state.answered && !ours && !only_probed).then_some(state.born);
            // In this order: whoever waits for a place finds it free.
            state.place = None;
            state.ending = None;
            state.tokens.clear();
            state.opening = None;
            let waiting: Vec<_> = state.pending.drain().map(|(_, waiting)| waiting).collect();
            (waiting, state.told.take(), failed)
        };
        tracing::debug!(upstream = %self.setting.upstream, %why, pending = waiting.len(), "a channel to the server is over");
        waiting.into_iter().for_each(|waiting| waiting.lose(Lost::Ended(self.setting.kind.name())));
        if let Some(told) = told {
            told.end();
        }
        if let Some(host) = self.host.upgrade() {
            host.ended(self, failed);
        }
    }
}

impl Connection {
    fn array(self: &Arc<Self>, text: &Bytes) {
        let messages = crate::upstream::reply::messages(text.clone(), self.setting.limits);
        if messages.is_empty() {
            self.stray(text, None);
        }
        messages.into_iter().for_each(|message| self.message(message));
    }

    fn message(self: &Arc<Self>, message: Message) {
        match message {
            Message::Response(answer) => self.answer(answer),
            Message::Notification(notification) => self.notification(&notification),
            Message::Request(request) => self.asked(&request),
        }
    }

    fn answer(self: &Arc<Self>, answer: Answer) {
        let error = match &answer.reply {
            Reply::Error(error) => Some(error.code),
            Reply::Result(_) => None,
        };
        let (waiting, first) = {
            let mut state = self.hear();
            let id = match answer.id {
                Some(span) => Some(key(span.of(&answer.text))),
                // One that could not read what it was sent; at the beginning that is known (C38).
                None if error.is_some() => state.opening.clone().or_else(|| state.probe()),
                None => None,
            };
            let waiting = id.as_ref().and_then(|id| state.answered_under(id));
            let probe = waiting.as_ref().is_some_and(|waiting| waiting.asked.sort == Sort::Probe);
            let modern = probe && offers_modern(&answer);
            if modern && state.mode == Mode::Untold {
                // It answers modern requests: it is nobody's to initialize.
                state.mode = Mode::Modern;
            }
            let first = !state.answered && waiting.is_some() && (!probe || modern);
            state.answered |= first;
            if waiting.is_none() && id.as_deref() == Some(PROBE.as_bytes()) {
                drop(state);
                return self.late(answer);
            }
            (waiting, first)
        };
        if first && let Some(host) = self.host.upgrade() {
            host.works();
        }
        let Some(waiting) = waiting else {
            tracing::debug!(upstream = %self.setting.upstream, "an answer that nobody waits for is left out");
            return;
        };
        let text = match &waiting.asked.caller {
            Some(caller) => rename::response(&answer, caller, waiting.asked.sort == Sort::Listen).to_bytes(),
            // The server has spelled it in another way.
            None if answer.id.is_some_and(|id| id.of(&answer.text) != waiting.asked.id.raw()) => {
                rename::response(&answer, &waiting.asked.id, false).to_bytes()
            }
            None => answer.text,
        };
        waiting.tail.answer(text, Standing { error });
    }

    /// The answer to a probe has come when nobody waited for it any more.
    fn late(self: &Arc<Self>, answer: Answer) {
        if offers_modern(&answer)
            && self.is_late()
            && let Some(host) = self.host.upgrade()
        {
            host.late(answer);
        }
    }

    fn notification(self: &Arc<Self>, notification: &Notification) {
        let room = self.setting.room;
        let addressee = rename::addressee(notification);
        let mut state = self.hear();
        // A listen has no other answer for as long as it lasts.
        state.answered |= matches!(addressee, Addressee::Subscription(_));
        // `None` where it is nobody's.
        let taken: Option<bool> = match (addressee, state.mode) {
            (Addressee::Progress(token), mode) => match (state.of_token(token), mode) {
                (Some(waiting), _) => {
                    let text = match &waiting.asked.token {
                        Some(own) => rename::notification(notification, Renamed::Progress(own)).to_bytes(),
                        None => notification.text.clone(),
                    };
                    Some(waiting.tail.offer(text, room))
                }
                (None, Mode::Legacy(_)) if state.tasks.contains(&key(token)) => {
                    Some(self.to_session(&mut state, &notification.text))
                }
                (None, _) => None,
            },
            // A log message is its call's where there is no other (B8.3), and comes before the answer then.
            (Addressee::None, Mode::Legacy(Speaker::Driver))
                if notification.method == "notifications/message" && state.only().is_some() =>
            {
                state.only().map(|one| one.tail.offer(notification.text.clone(), room))
            }
            (_, Mode::Legacy(_)) => Some(self.to_session(&mut state, &notification.text)),
            (Addressee::Subscription(id), Mode::Modern | Mode::Untold) => {
                let key = key(id);
                let Some(waiting) = state.pending.get(&key) else { return };
                let Some(caller) = &waiting.asked.caller else { return };
                let text = rename::notification(notification, Renamed::Subscription(caller)).to_bytes();
                let taken = waiting.tail.offer(text, room);
                if !taken {
                    // What is missed is missed for good: whoever listens finds out by the end, and begins anew.
                    let waiting = state.remove(&key);
                    drop(state);
                    return self.too_slow(waiting);
                }
                Some(taken)
            }
            (Addressee::Cancelled(id), Mode::Modern | Mode::Untold) => {
                let waiting = state.remove(&key(id));
                drop(state);
                return end_of_listen(waiting);
            }
            (Addressee::None, Mode::Modern | Mode::Untold) => {
                let waiting = match Told::of(&notification.method) {
                    Told::Log => state.logged(),
                    // Of a token, a subscription or a request that it does not name.
                    Told::Progress | Told::Changed | Told::LegacyOnly => None,
                    Told::Custom => state.only().filter(|one| one.asked.sort != Sort::Listen),
                };
                waiting.map(|waiting| waiting.tail.offer(notification.text.clone(), room))
            }
        };
        match taken {
            Some(true) => {}
            Some(false) => self.no_room(&notification.method),
            None => {
                tracing::debug!(upstream = %self.setting.upstream, method = %notification.method, "a notification that is nobody's is left out");
            }
        }
    }

    /// Something is left out for a reader who does not keep up.
    fn no_room(&self, method: &str) {
        self.setting.metrics.limit(UpstreamLimit::Events);
        tracing::debug!(upstream = %self.setting.upstream, method, "a notification is left out: more waits for its reader than may");
    }

    /// A subscription's reader does not keep up.
    fn too_slow(self: &Arc<Self>, waiting: Option<Waiting>) {
        let Some(waiting) = waiting else { return };
        self.setting.metrics.limit(UpstreamLimit::Events);
        tracing::warn!(upstream = %self.setting.upstream, "a subscription whose reader is too slow is ended");
        self.tell(rename::cancelled(&waiting.asked.id, None));
        waiting.lose(Lost::TooSlow);
    }

    /// Something for a legacy session as a whole; `false` if there is no room for it.
    fn to_session(&self, state: &mut State, text: &Bytes) -> bool {
        let room = self.setting.room;
        if let Some(told) = state.told.as_ref().filter(|told| told.is_read()) {
            return told.offer(text.clone(), room);
        }
        if state.mode == Mode::Legacy(Speaker::Client)
            && let Some(waiting) = state.newest()
            && state.opening.is_none()
        {
            return waiting.tail.offer(text.clone(), room);
        }
        let fits = state.early.len() < room.events && state.early_bytes + text.len() <= room.bytes;
        if fits {
            state.early_bytes += text.len();
            state.early.push_back(text.clone());
        }
        fits
    }

    /// The server asks something.
    fn asked(self: &Arc<Self>, request: &Request) {
        let mut state = self.hear();
        let told = match state.mode {
            // A modern server has no requests of its own to send.
            Mode::Modern | Mode::Untold => {
                drop(state);
                return self.stray(&request.text, None);
            }
            Mode::Legacy(_) if state.opening.is_some() => {
                drop(state);
                return self.tell(early(request));
            }
            Mode::Legacy(_) => {
                // The pool's sessions have no other answer to it, and this one waits for nobody.
                let heard = state.mode == Mode::Legacy(Speaker::Client)
                    && (state.told.as_ref().is_some_and(Tail::is_read) || !state.pending.is_empty());
                if request.method == "ping" && !heard {
                    drop(state);
                    return self.tell(pong(&request.id));
                }
                self.to_session(&mut state, &request.text)
            }
        };
        drop(state);
        if !told {
            tracing::warn!(upstream = %self.setting.upstream, method = %request.method, "a request of the server is refused: too many wait for the client");
            let text = "too many messages wait for the client";
            let refusal = jsonrpc::error(Some(&request.id), code::INTERNAL_ERROR, text, None);
            self.tell(Payload::from(refusal));
        }
    }

    /// A text that is no message, or none that may come. If it has the id of a request, that one is answered by nothing else.
    fn stray(&self, text: &[u8], id: Option<&Id>) {
        self.setting.metrics.not_a_message();
        let mut state = self.lock();
        let lost = id.and_then(|id| state.remove(&key(id.raw())));
        let strays = &mut state.strays;
        if strays.since.is_some_and(|since| since.elapsed() < SELDOM) {
            strays.more += 1;
        } else {
            let shown: String =
                String::from_utf8_lossy(&text[..text.len().min(200)]).escape_debug().take(200).collect();
            let before = std::mem::take(&mut strays.more);
            tracing::warn!(upstream = %self.setting.upstream, text = %shown, left_out_before = before, "a text that is no MCP message is passed over");
            strays.since = Some(Instant::now());
        }
        drop(state);
        if let Some(lost) = lost {
            lost.lose(Lost::NoMessage);
        }
    }
}

/// Whether it is a discover result of a modern server.
fn offers_modern(answer: &Answer) -> bool {
    match &answer.reply {
        Reply::Result(body) => discover::offers_modern(answer, body) == Some(true),
        Reply::Error(_) => false,
    }
}

/// The server has ended a subscription: to its reader that is what its result says (B9.6).
fn end_of_listen(waiting: Option<Waiting>) {
    let Some(waiting) = waiting else { return };
    let Some(caller) = waiting.asked.caller.filter(|_| waiting.asked.sort == Sort::Listen) else {
        return waiting.tail.without_answer();
    };
    let id = String::from_utf8_lossy(caller.raw());
    let text = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"resultType\":\"complete\",\"_meta\":{{\"{}\":{id}}}}}}}",
        meta::SUBSCRIPTION_ID
    );
    waiting.tail.answer(Bytes::from(text), Standing::default());
}

fn pong(id: &Id) -> Payload {
    let id = String::from_utf8_lossy(id.raw());
    Payload::from(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}"))
}

/// What a server is answered that asks before it has answered `initialize` (B15).
fn early(request: &Request) -> Payload {
    if request.method == "ping" {
        return pong(&request.id);
    }
    let text = "nothing can be asked before the session is initialized";
    Payload::from(jsonrpc::error(Some(&request.id), code::INTERNAL_ERROR, text, None))
}
