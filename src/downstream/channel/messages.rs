//! A response of the front, as the texts that it holds.
//!
//! Owns taking a JSON body together, in which a large result comes in pieces, and an event stream apart: comments, priming
//! events and fields other than data are consumed here (C13). Both within `limits.message_bytes`: what goes out on a channel
//! goes out whole. Does not know what a text says. Rules: A13.5, A13.7; cases C11, C13.

use crate::downstream::body::FrontBody;
use crate::upstream::modern::is_event_stream;
use crate::wire::headers::ContentType;
use crate::wire::sse::Decoder;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::header::CONTENT_TYPE;
use hyper::{Response, StatusCode};
use std::time::Duration;
use tokio::time::timeout;

/// As much of a body that holds no message as is read, and for how long.
const NOTHING: usize = 64 * 1024;
const PATIENCE: Duration = Duration::from_secs(1);

/// See the module.
pub(super) struct Messages {
    pub(super) status: StatusCode,
    body: FrontBody,
    form: Form,
    limit: usize,
    /// What the stream asked for.
    pub(super) retry: Option<Duration>,
}

enum Form {
    Json,
    Stream(Box<Decoder>),
    /// Neither; the status is all there is.
    Nothing,
}

/// Why there is no more of a response than has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Broken {
    #[error("the answer broke off; the request may have run")]
    Off,
    #[error("the answer is larger than {0} bytes (limits.message_bytes of the upstream)")]
    TooLarge(usize),
}

impl Messages {
    pub(super) fn new(response: Response<FrontBody>, limit: usize) -> Self {
        Self::after(response, limit, None)
    }

    /// As the continuation of a stream whose last event had this id.
    pub(super) fn after(response: Response<FrontBody>, limit: usize, last: Option<Bytes>) -> Self {
        let (head, body) = response.into_parts();
        let kind = head.headers.get(CONTENT_TYPE).map(|value| ContentType::parse(value.as_bytes()));
        let form = match kind {
            _ if is_event_stream(&head.headers) => Form::Stream(Box::new(Decoder::new(limit).after(last))),
            Some(ContentType::Json) => Form::Json,
            Some(ContentType::EventStream | ContentType::Other) | None => Form::Nothing,
        };
        Self { status: head.status, body, form, limit, retry: None }
    }

    pub(super) fn is_stream(&self) -> bool {
        matches!(self.form, Form::Stream(_))
    }

    /// The id to take the stream up with.
    pub(super) fn last_event_id(&self) -> Option<Bytes> {
        match &self.form {
            Form::Stream(decoder) => decoder.last_event_id().cloned(),
            Form::Json | Form::Nothing => None,
        }
    }

    /// The next text; `None` after the last one.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Broken> {
        match &mut self.form {
            Form::Nothing => {
                // Whatever it says, to its end: what is left in the middle looks given up.
                let _ = timeout(PATIENCE, gather(&mut self.body, NOTHING)).await;
                Ok(None)
            }
            Form::Json => {
                let whole = gather(&mut self.body, self.limit).await;
                self.form = Form::Nothing;
                whole.map(|text| (!text.is_empty()).then_some(text))
            }
            Form::Stream(decoder) => loop {
                match decoder.next_event() {
                    Some(Ok(event)) => {
                        self.retry = event.retry.or(self.retry);
                        if !event.data.is_empty() {
                            return Ok(Some(event.data));
                        }
                    }
                    Some(Err(_)) => return Err(Broken::TooLarge(self.limit)),
                    None => match self.body.frame().await {
                        Some(Ok(frame)) => frame.into_data().into_iter().for_each(|data| decoder.feed(data)),
                        Some(Err(_)) => return Err(Broken::Off),
                        None => return Ok(None),
                    },
                }
            },
        }
    }
}

/// A body in one piece. One that comes in one is not copied.
async fn gather(body: &mut FrontBody, limit: usize) -> Result<Bytes, Broken> {
    let mut first = Bytes::new();
    let mut joined = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| Broken::Off)?.into_data() else { continue };
        if first.len() + joined.len() + data.len() > limit {
            return Err(Broken::TooLarge(limit));
        }
        if first.is_empty() && joined.is_empty() {
            first = data;
        } else {
            joined.extend_from_slice(&std::mem::take(&mut first));
            joined.extend_from_slice(&data);
        }
    }
    Ok(if joined.is_empty() { first } else { joined.freeze() })
}
