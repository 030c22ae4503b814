//! A client on one channel: a stdio host, or a client of the HTTP+SSE of 2024.
//!
//! Streamable HTTP has a request for each message and a response for what belongs to it; such a client has one row of texts
//! in and one row out. Owns the way between the two: each text becomes a request to [`Front`], in memory, as a client of
//! Streamable HTTP would send it, and what its response holds becomes messages again. So every pair of eras is served by the
//! front as it is; nothing here translates. Does not own how texts come and go (`listen::stdio`; the old HTTP+SSE), nor how
//! long the whole lives.
//!
//! The parts: [`run`] takes the texts in their order and bounds what is under way, `sort` says what a text is, `order` keeps
//! what must not overtake, `flying` knows the requests that have no answer yet, `heads` makes the headers, `modern`,
//! `legacy` and `tell` send, `messages` takes a response apart, `deliver` decides what of it is written, `session` holds the one session
//! of a legacy host and opens it anew where it is lost, `again` is what that one must be told, `follow` reads the session's GET
//! stream.
//!
//! Decisions:
//!
//! - The era is that of each message: a claim in `_meta` (or `server/discover`) is modern, all else legacy. What fits neither,
//!   such as a notification of a host that has no session, goes the modern way.
//! - There are no headers, so those of a modern request are made of its body, and the front is told so
//!   ([`Binding::Channel`]): what it would find in them it has found in the body.
//! - One task for one client: what is read first is begun first. A legacy notification is waited for by what comes after it,
//!   `initialize` and `notifications/initialized` among them (A14.5), calls are not. Answers and cancellations wait for nobody for long.
//! - At most `limits.requests` requests run and [`WAITING`] wait, which a further one waits for before it is refused; the texts
//!   are not read meanwhile. What is small (answers, cancellations, notifications) has places of its own.
//! - An answer is written if a request waits for it, and once: not after its cancellation, and not under another's id.
//! - A session that is lost (404) is opened anew with the host's own `initialize`, and the request that found out is sent
//!   again, as it has not run. The host hears nothing of it.
//! - The end of the texts is the end: what runs is cancelled, the session is ended, within [`FAREWELL`].
//!
//! Rules: A2.2, A12.19, A14.5, A14.7, B14, B17; cases C20, C23, C31, C53; spec basic/transports/stdio.

mod again;
mod deliver;
mod flying;
mod follow;
mod heads;
mod legacy;
mod messages;
mod modern;
mod order;
mod run;
mod session;
mod sort;
mod tell;

use super::front::{Front, Inner};
use crate::config;
use crate::upstream::Upstream;
use crate::wire::jsonrpc::Id;
use bytes::Bytes;
use flying::Flying;
use heads::Heads;
use hyper::HeaderMap;
use order::Order;
use session::Sessions;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

/// Requests that wait for a place among those that run.
const WAITING: usize = 64;

/// How long all that is said at the end may take.
const FAREWELL: Duration = Duration::from_secs(2);

/// What comes of a client.
#[derive(Debug)]
pub enum Inbound {
    /// One text that may be a message.
    Text { text: Bytes, brought: Brought },
    /// One that was longer than `limits.body_bytes` and is gone; the id of the request that it was.
    TooLong(Option<Id>),
}

/// What has come with a text.
#[derive(Debug, Default)]
pub struct Brought {
    /// Of the request that brought it, of which credentials and forwarded ones count; `None`: the client's own.
    pub headers: Option<HeaderMap>,
    /// The text's place among the requests in work, until it goes on as a request of its own or comes to nothing.
    pub place: Option<OwnedSemaphorePermit>,
}

/// One client and its channel.
#[derive(Debug)]
pub struct Client {
    /// The path of the upstream that it is in front of.
    pub path: String,
    /// What its requests carry where a text brings nothing of its own.
    pub headers: HeaderMap,
    /// Not read while too much is under way; its end is the client's.
    pub texts: mpsc::Receiver<Inbound>,
    /// One message each, in which raw line ends may stand; nobody to receive them is the client's end too.
    pub out: mpsc::Sender<Bytes>,
    /// Cancelled by the owner when the client is gone, and from here when it has been served.
    pub gone: CancellationToken,
}

impl Front {
    /// Serves one client until it is gone, or a drain is over.
    pub async fn serve_channel(&self, client: Client) {
        let Client { path, headers, texts, out, gone } = client;
        let _gone = gone.clone().drop_guard();
        let Some(upstream) = self.inner().relay.route(&path).cloned() else {
            tracing::error!(%path, "no upstream is served at this path");
            return;
        };
        let Ok(heads) = Heads::new(&path, headers) else {
            tracing::error!(%path, "no path of a URL");
            return;
        };
        let limits = &self.inner().limits;
        let channel = Channel {
            front: self.clone(),
            heads,
            places: Semaphore::new(limits.requests.min(Semaphore::MAX_PERMITS)),
            flying: Flying::default(),
            order: Order::default(),
            sessions: Sessions::default(),
            waiting: AtomicUsize::new(0),
            small: AtomicUsize::new(0),
            upstream,
            out,
            gone,
        };
        let under_way = channel.run(texts).await;
        channel.farewell(under_way).await;
    }
}

/// What the parts share.
struct Channel {
    front: Front,
    upstream: Arc<Upstream>,
    heads: Heads,
    out: mpsc::Sender<Bytes>,
    gone: CancellationToken,
    /// Of requests that run.
    places: Semaphore,
    flying: Flying,
    order: Order,
    sessions: Sessions,
    /// Requests that wait for a place, and messages under way that need none.
    waiting: AtomicUsize,
    small: AtomicUsize,
}

/// One of those, until it is dropped; and until then it has its place among all that is in work.
struct Counted<'a> {
    count: &'a AtomicUsize,
    _place: Option<OwnedSemaphorePermit>,
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Channel {
    fn inner(&self) -> &Inner {
        self.front.inner()
    }

    fn json_limits(&self) -> crate::wire::json::Limits {
        let limits = &self.inner().limits;
        crate::wire::json::Limits { nesting: limits.nesting, members: limits.members }
    }

    fn settings(&self) -> &config::Upstream {
        &self.upstream.settings
    }

    /// Hands one message over; waits while the client does not read.
    async fn say(&self, message: Bytes) {
        if self.out.send(message).await.is_err() {
            self.gone.cancel();
        }
    }
}
