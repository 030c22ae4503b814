//! An open channel of HTTP+SSE.
//!
//! Owns the task that reads its stream and alone speaks to the inbox, and the order of what is sent. Requests go side by side; a
//! notification waits until what was handed over before it has been taken, and what is handed over after it waits for it, so
//! that a cancellation finds its request there and a request the notifications before it. Nobody waits long for anybody: a
//! server may answer a POST only when the call is over.

use super::Source;
use super::events::{Broken, Events, Next};
use super::post::{self, Said};
use crate::upstream::transport::error::SendError;
use crate::upstream::transport::pipe::{Inbox, Pipe, Trouble};
use crate::upstream::transport::place::Place;
use crate::wire::jsonrpc::LateId;
use crate::wire::payload::Payload;
use futures_util::future::BoxFuture;
use http::HeaderMap;
use std::borrow::Cow;
use std::sync::Arc;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, Semaphore, mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Answers to POSTs that wait for the task; whoever reads them waits beyond that.
const WAITING: usize = 16;

struct Channel {
    source: Arc<Source>,
    endpoint: Arc<Place>,
    /// Fair: in the order of those who ask.
    turn: Arc<RwLock<()>>,
    said: mpsc::Sender<Said>,
    over: CancellationToken,
    /// Messages that nobody waits for, on their way at once.
    ours: Arc<Semaphore>,
    /// The last handle's drop is the end.
    _end: DropGuard,
}

/// A message's place in the order, until the server has taken it.
pub(super) enum Turn {
    /// Beside others of its kind.
    Beside {
        _turn: OwnedRwLockReadGuard<()>,
    },
    Alone {
        _turn: OwnedRwLockWriteGuard<()>,
    },
}

pub(super) fn open(
    source: &Arc<Source>,
    events: Events,
    endpoint: Place,
    inbox: Arc<dyn Inbox>,
) -> Arc<dyn Pipe> {
    let over = source.closing.child_token();
    let (said, from_posts) = mpsc::channel(WAITING);
    let reading = read(source.clone(), events, from_posts, inbox, over.clone());
    // Owned by the server's tracker; ended by the pipe, the server's side, `close`, or the end of the process; says last that it
    // is over.
    source.tasks.spawn(reading);
    Arc::new(Channel {
        source: source.clone(),
        endpoint: Arc::new(endpoint),
        turn: Arc::default(),
        said,
        ours: Arc::new(Semaphore::new(WAITING)),
        _end: over.clone().drop_guard(),
        over,
    })
}

async fn read(
    source: Arc<Source>,
    mut events: Events,
    mut from_posts: mpsc::Receiver<Said>,
    inbox: Arc<dyn Inbox>,
    over: CancellationToken,
) {
    let why = tokio::select! {
        biased;
        () = over.cancelled() => Cow::Borrowed("it was ended"),
        () = source.shutdown.ended() => Cow::Borrowed("the proxy ends"),
        why = pass_on(&source, &mut events, &mut from_posts, &*inbox) => why,
    };
    // POSTs under way have nobody left to tell their answers.
    over.cancel();
    inbox.ended(why);
}

/// Until the stream is over.
async fn pass_on(
    source: &Source,
    events: &mut Events,
    from_posts: &mut mpsc::Receiver<Said>,
    inbox: &dyn Inbox,
) -> Cow<'static, str> {
    loop {
        let next = tokio::select! {
            next = events.next() => next,
            // The channel itself holds a sender, so there is no end of them.
            Some(said) = from_posts.recv() => {
                match said {
                    Said::Text(text) => inbox.text(text),
                    Said::TooLong(id) => inbox.too_long(id),
                }
                continue;
            }
        };
        match next {
            Ok(Some(Next::Event(event))) => match &*event.name() {
                "message" if !event.data.is_empty() => inbox.text(event.data),
                "message" => {}
                other => {
                    tracing::debug!(upstream = %source.upstream, event = other, "an event that is no message is passed over");
                }
            },
            Ok(Some(Next::TooLong(id))) => inbox.too_long(id),
            Ok(None) => return Cow::Borrowed("the event stream ended"),
            Err(broken @ (Broken::Body | Broken::Line)) => return Cow::Owned(broken.to_string()),
        }
    }
}

impl Pipe for Channel {
    fn send<'a>(&'a self, text: Payload, headers: &'a HeaderMap) -> BoxFuture<'a, Result<(), Trouble>> {
        Box::pin(async move {
            let ended = || SendError::Ended { what: "the upstream server's event stream" };
            // Nothing of it has been sent then.
            let unsent = || SendError::Unsent {
                origin: self.source.http.origin().to_string(),
                source: "the event stream ended before the message's turn came".into(),
            };
            let turn = self.over.run_until_cancelled(self.turn(&text)).await.ok_or_else(unsent)?;
            let (told, tell) = oneshot::channel();
            let (source, endpoint) = (self.source.clone(), self.endpoint.clone());
            let (said, over, headers) = (self.said.clone(), self.over.clone(), headers.clone());
            // A task of its own, so that a message is handed over in full though its sender goes. Owned by the server's tracker;
            // ends with the response, within its times, or with the channel.
            self.source.tasks.spawn(async move {
                let posting = post::post(&source, &endpoint, &headers, text, turn, told, &said, &over);
                over.run_until_cancelled(posting).await;
            });
            let told = tell.await.unwrap_or_else(|_| Err(ended().into()));
            // Here, so that whoever sent the message hears of the refusal before the end.
            if let Err(Trouble::Refused(response)) = &told
                && post::is_unknown(response)
            {
                self.over.cancel();
            }
            told
        })
    }

    fn offer(&self, text: Payload, headers: &HeaderMap) -> bool {
        let Ok(place) = self.ours.clone().try_acquire_owned() else { return false };
        if self.over.is_cancelled() {
            return false;
        }
        let (source, endpoint, turn) = (self.source.clone(), self.endpoint.clone(), self.turn.clone());
        let (said, over, headers) = (self.said.clone(), self.over.clone(), headers.clone());
        // Owned by the server's tracker; ends with the response, within its times, or with the channel.
        self.source.tasks.spawn(async move {
            let posting = async {
                let turn = Turn::Beside { _turn: turn.read_owned().await };
                let (told, _nobody) = oneshot::channel();
                post::post(&source, &endpoint, &headers, text, turn, told, &said, &over).await;
            };
            over.run_until_cancelled(posting).await;
            drop(place);
        });
        true
    }

    fn end(&self) {
        self.over.cancel();
    }
}

impl Channel {
    async fn turn(&self, text: &Payload) -> Turn {
        let mut envelope = LateId::default();
        text.parts().iter().for_each(|part| envelope.feed(part));
        if envelope.tells() {
            Turn::Alone { _turn: self.turn.clone().write_owned().await }
        } else {
            Turn::Beside { _turn: self.turn.clone().read_owned().await }
        }
    }
}
