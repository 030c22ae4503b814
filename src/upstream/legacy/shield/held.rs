//! A body that stays open for the client while the server's come and go.
//!
//! Owns the channel between the task that follows the server and the connection to the client: whole events, one waiting,
//! so that a slow client slows its server down.

use bytes::Bytes;
use http_body::{Body, Frame};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::mpsc;

pub(super) type Feeder = mpsc::Sender<Bytes>;

/// The client's half; dropping it tells the task.
#[derive(Debug)]
pub struct Held(mpsc::Receiver<Bytes>);

pub(super) fn held() -> (Feeder, Held) {
    let (feeder, events) = mpsc::channel(1);
    (feeder, Held(events))
}

impl Body for Held {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|event| event.map(|bytes| Ok(Frame::data(bytes))))
    }
}
