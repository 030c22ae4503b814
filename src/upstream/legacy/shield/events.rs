//! A server's event stream, event by event, and how each is written for the client.
//!
//! Events go on whole: ids and reconnection times are the server's, so that the client can take a stream up again. An event
//! that was cut off is never completed by what follows it.

use super::super::super::reply::Break;
use crate::wire::sse::{self, Event};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;

pub(super) struct Events {
    body: Incoming,
    decoder: sse::Decoder,
}

impl Events {
    pub(super) fn new(body: Incoming, message_bytes: usize) -> Self {
        Self { body, decoder: sse::Decoder::new(message_bytes) }
    }

    /// The next event; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Event>, Break> {
        loop {
            match self.decoder.next_event() {
                Some(Ok(event)) => return Ok(Some(event)),
                Some(Err(sse::SseError::TooLarge { .. })) => return Err(Break::TooLarge),
                None => match self.body.frame().await {
                    Some(Ok(frame)) => {
                        if let Ok(data) = frame.into_data() {
                            self.decoder.feed(data);
                        }
                    }
                    Some(Err(_)) => return Err(Break::Body),
                    None => return Ok(None),
                },
            }
        }
    }
}

/// `primes`: the client knows events that hold an id and empty data.
pub(super) fn encode(event: &Event, primes: bool) -> Bytes {
    let mut out = BytesMut::with_capacity(event.data.len() + 64);
    let mut field = |name: &str, value: &[u8]| {
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value);
        out.extend_from_slice(b"\n");
    };
    if let Some(id) = &event.id {
        field("id", id);
    }
    if let Some(name) = &event.event {
        field("event", name);
    }
    if let Some(retry) = event.retry {
        field("retry", retry.as_millis().to_string().as_bytes());
    }
    if event.data.is_empty() && !primes {
        out.extend_from_slice(b"\n");
    } else {
        sse::encode_data(&mut out, std::slice::from_ref(&event.data));
    }
    out.freeze()
}

/// A message of the proxy's own.
pub(super) fn message(text: &Bytes) -> Bytes {
    let mut out = BytesMut::with_capacity(text.len() + 16);
    sse::encode_data(&mut out, std::slice::from_ref(text));
    out.freeze()
}
