//! A server's event stream, event by event, and how each is written for the client.
//!
//! Events go on whole: reconnection times are the server's, and so are ids, with the session's present leg in front, so that
//! the client can take a stream up again and none that is gone is taken for another's. An event that was cut off is never
//! completed by what follows it.

use super::super::super::reply::Break;
use super::session::Leg;
use crate::upstream::transport::Body;
use crate::wire::sse::{self, Event};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::header::HeaderValue;

pub(super) struct Events {
    body: Body,
    decoder: sse::Decoder,
}

impl Events {
    pub(super) fn new(body: Body, message_bytes: usize) -> Self {
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

/// Where a client that names this event id goes on at the leg. `None`: the id is another leg's, or none of ours.
pub(super) fn at_leg(id: &HeaderValue, leg: &Leg) -> Option<HeaderValue> {
    let prefix = prefix(leg);
    let rest = id.as_bytes().strip_prefix(prefix.as_bytes()).filter(|rest| !rest.is_empty())?;
    HeaderValue::from_bytes(rest).ok()
}

fn prefix(leg: &Leg) -> String {
    format!("{}.", leg.generation)
}

/// As the client is to see it, from this leg.
pub(super) fn encode(event: &Event, leg: &Leg) -> Bytes {
    let primes = leg.primes();
    let mut out = BytesMut::with_capacity(event.data.len() + 64);
    let mut field = |name: &str, value: &[u8]| {
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value);
        out.extend_from_slice(b"\n");
    };
    if let Some(id) = event.id.as_ref().filter(|id| !id.is_empty()) {
        field("id", &[prefix(leg).as_bytes(), id].concat());
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
