//! What is known of one channel, and the requests that wait in it.
//!
//! Owns the tables alone: by what a request is found, and what goes with it when it goes. Whoever changes them holds the lock
//! (`Connection`), and lets it go before anything is sent. Rules: A14.2-A14.4; cases C17, C20.

use super::super::rename::Token;
use super::super::stream::{Lost, Room, Tail};
use super::Mode;
use crate::upstream::places::{Ending, Place};
use crate::wire::jsonrpc::{Id, Request};
use crate::wire::meta;
use bytes::Bytes;
use std::collections::{HashMap, VecDeque};
use tokio::time::{Duration, Instant};

pub(super) struct State {
    pub(super) mode: Mode,
    /// `None`: it is over, or ends.
    pub(super) place: Option<Place>,
    /// In the place of that, until it is over.
    pub(super) ending: Option<Ending>,
    pub(super) pending: HashMap<Bytes, Waiting>,
    /// Ids of requests by their progress tokens, both as they stand in the channel.
    pub(super) tokens: HashMap<Bytes, Bytes>,
    /// Tokens of tasks, which go on after their calls.
    pub(super) tasks: VecDeque<Bytes>,
    /// Keys of requests that were given up before they were handed over.
    pub(super) unsent: VecDeque<Bytes>,
    pub(super) serial: u64,
    /// The stream of the session.
    pub(super) told: Option<Tail>,
    /// What is for that stream and came before it.
    pub(super) early: VecDeque<Bytes>,
    pub(super) early_bytes: usize,
    /// The key of an `initialize` that waits.
    pub(super) opening: Option<Bytes>,
    pub(super) probed: bool,
    /// It has shown itself as a modern server's, and may be given back as that.
    pub(super) shown_modern: bool,
    /// It has answered anything but the probe, or told of a subscription.
    pub(super) answered: bool,
    pub(super) born: Instant,
    /// Any message has come.
    pub(super) heard: bool,
    pub(super) used: Instant,
    pub(super) strays: Strays,
}

/// A request that waits for its answer.
pub(super) struct Waiting {
    pub(super) tail: Tail,
    pub(super) asked: Asked,
}

impl Waiting {
    /// Its answer will not come.
    pub(super) fn lose(self, lost: Lost) {
        let id = self.asked.caller.as_ref().map_or(self.asked.id.raw(), Id::raw).clone();
        self.tail.lose(id, lost);
    }
}

/// What is known of a request.
pub(super) struct Asked {
    pub(super) serial: u64,
    /// As it stands in the channel.
    pub(super) id: Id,
    /// The caller's, where ours stand in the channel.
    pub(super) caller: Option<Id>,
    pub(super) token: Option<Token>,
    /// What stands in `tokens`.
    pub(super) token_key: Option<Bytes>,
    pub(super) sort: Sort,
}

/// What a request is to the channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    /// The first `server/discover`.
    Probe,
    Call,
    /// A modern call that has a log level.
    Logged,
    Listen,
}

/// Texts that are no messages, logged seldom.
#[derive(Default)]
pub(super) struct Strays {
    pub(super) since: Option<Instant>,
    pub(super) more: u64,
}

pub(super) const SELDOM: Duration = Duration::from_secs(10);

impl State {
    pub(super) fn new(place: Place) -> Self {
        Self {
            mode: Mode::Untold,
            place: Some(place),
            ending: None,
            pending: HashMap::new(),
            tokens: HashMap::new(),
            tasks: VecDeque::new(),
            unsent: VecDeque::new(),
            serial: 0,
            told: None,
            early: VecDeque::new(),
            early_bytes: 0,
            opening: None,
            probed: false,
            shown_modern: false,
            answered: false,
            born: Instant::now(),
            heard: false,
            used: Instant::now(),
            strays: Strays::default(),
        }
    }

    pub(super) fn remove(&mut self, key: &Bytes) -> Option<Waiting> {
        let waiting = self.pending.remove(key)?;
        self.used = Instant::now();
        if let Some(token) = &waiting.asked.token_key
            && self.tokens.get(token) == Some(key)
        {
            self.tokens.remove(token);
        }
        if self.opening.as_ref() == Some(key) {
            self.opening = None;
        }
        Some(waiting)
    }

    pub(super) fn was_not_sent(&mut self, key: &Bytes, room: Room) {
        if self.unsent.len() >= room.events {
            self.unsent.pop_front();
        }
        self.unsent.push_back(key.clone());
    }

    /// Whether the request was given up before it was handed over; said once.
    pub(super) fn never_sent(&mut self, key: &Bytes) -> bool {
        let at = self.unsent.iter().position(|other| other == key);
        at.is_some_and(|at| self.unsent.remove(at).is_some())
    }

    /// The request that an answer of this id is for. Where no request has just that id, one that has it in the other type is
    /// meant (C17).
    pub(super) fn answered_under(&mut self, id: &Bytes) -> Option<Waiting> {
        self.remove(id).or_else(|| self.remove(&other_type(id)?))
    }

    /// The request of this progress token, likewise.
    pub(super) fn of_token(&self, token: &[u8]) -> Option<&Waiting> {
        let find = |token: &Bytes| self.tokens.get(token).and_then(|id| self.pending.get(id));
        let token = key(token);
        find(&token).or_else(|| find(&other_type(&token)?))
    }

    /// The only request that waits.
    pub(super) fn only(&self) -> Option<&Waiting> {
        let mut all = self.pending.values();
        all.next().filter(|_| all.next().is_none())
    }

    /// The newest request that waits.
    pub(super) fn newest(&self) -> Option<&Waiting> {
        self.pending.values().max_by_key(|waiting| waiting.asked.serial)
    }

    /// The one request that may be sent log messages.
    pub(super) fn logged(&self) -> Option<&Waiting> {
        let mut all = self.pending.values().filter(|waiting| waiting.asked.sort == Sort::Logged);
        all.next().filter(|_| all.next().is_none())
    }

    /// The key of a probe that waits.
    pub(super) fn probe(&self) -> Option<Bytes> {
        self.pending.iter().find(|(_, waiting)| waiting.asked.sort == Sort::Probe).map(|(key, _)| key.clone())
    }
}

/// A request under its own id.
pub(super) fn own(state: &mut State, request: &Request, room: Room) -> (Bytes, Asked) {
    state.serial += 1;
    let token = request.params.meta().and_then(|meta| meta.first(&request.text, meta::PROGRESS_TOKEN));
    let token = token.map(|span| key(span.of(&request.text)));
    if let Some(token) = &token
        && request.params.body().is_some_and(|body| body.object.first(&request.text, "task").is_some())
    {
        if state.tasks.len() >= room.events {
            state.tasks.pop_front();
        }
        state.tasks.push_back(token.clone());
    }
    let asked = Asked {
        serial: state.serial,
        id: request.id.clone(),
        caller: None,
        token: None,
        token_key: token,
        sort: Sort::Call,
    };
    (key(request.id.raw()), asked)
}

/// A number that was written as a string, and the reverse.
fn other_type(text: &[u8]) -> Option<Bytes> {
    let quoted = text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\""));
    let digits = quoted.unwrap_or(text);
    let unsigned = digits.strip_prefix(b"-").unwrap_or(digits);
    let is_number = !unsigned.is_empty() && unsigned.iter().all(u8::is_ascii_digit);
    is_number.then(|| match quoted {
        Some(digits) => Bytes::copy_from_slice(digits),
        None => [b"\"", digits, b"\""].concat().into(),
    })
}

/// What an id or a token is found by: strings by what they say, however it is spelled.
pub(super) fn key(raw: &[u8]) -> Bytes {
    if raw.contains(&b'\\')
        && let Some(inner) = raw.strip_prefix(b"\"").and_then(|raw| raw.strip_suffix(b"\""))
        && let Some(text) = crate::wire::json::unescape(inner)
    {
        return Bytes::from(format!("\"{text}\""));
    }
    Bytes::copy_from_slice(raw)
}
