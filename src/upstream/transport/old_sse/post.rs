//! One message on its way to a server of HTTP+SSE.
//!
//! Owns the POST, what its status says, and the reply where a server puts it in the response instead of on the stream (C42).

use super::channel::Turn;
use super::events::{Events, Next};
use super::{Source, plain_headers};
use crate::upstream::transport::body::Body;
use crate::upstream::transport::http::{RequestHead, Speaker};
use crate::upstream::transport::pipe::Trouble;
use crate::upstream::transport::place::Place;
use crate::wire::headers::{ACCEPT_BOTH, ContentType, JSON};
use crate::wire::jsonrpc::{Id, LateId};
use crate::wire::payload::Payload;
use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Method, Response, StatusCode};
use http_body_util::BodyExt;
use std::pin::pin;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Who comes after a message does not wait longer than this for the server to take it.
const PATIENCE: Duration = Duration::from_secs(1);

/// Bytes of a response without a message that are read, so that its connection can be used again.
const DREGS: usize = 64 * 1024;

/// What the server said in the response to a POST.
pub(super) enum Said {
    Text(Bytes),
    TooLong(Option<Id>),
}

#[allow(clippy::too_many_arguments, reason = "all that one message has on its way")]
pub(super) async fn post(
    source: &Source,
    endpoint: &Place,
    headers: &HeaderMap,
    text: Payload,
    turn: Turn,
    told: oneshot::Sender<Result<(), Trouble>>,
    said: &mpsc::Sender<Said>,
    over: &CancellationToken,
) {
    let mut headers = plain_headers(headers);
    headers.insert(ACCEPT, HeaderValue::from_static(ACCEPT_BOTH));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    let head = RequestHead { method: Method::POST, headers, speaker: Speaker::Driver };
    let mut sending = pin!(source.http.send_to(source.posting, endpoint, head, text));
    let sent = tokio::select! {
        biased;
        sent = &mut sending => sent,
        () = sleep(PATIENCE) => {
            drop(turn);
            sending.await
        }
    };
    let response = match sent {
        Ok((response, _)) => response,
        Err(error) => {
            let _ = told.send(Err(error.into()));
            return;
        }
    };
    if !response.status().is_success() {
        let unknown = is_unknown(&response);
        if told.send(Err(Trouble::Refused(Box::new(response)))).is_err() && unknown {
            over.cancel();
        }
        return;
    }
    let _ = told.send(Ok(()));
    if timeout(source.posting, reply(source, response, said)).await.is_err() {
        tracing::debug!(upstream = %source.upstream, "the response to a message did not come to its end in time");
    }
}

/// Whether the server does not know the session, whatever its stream looks like.
pub(super) fn is_unknown(response: &Response<Body>) -> bool {
    response.status() == StatusCode::NOT_FOUND
}

/// Reads what is in the response.
async fn reply(source: &Source, response: Response<Body>, said: &mpsc::Sender<Said>) {
    let kind = response.headers().get(CONTENT_TYPE).map(|value| ContentType::parse(value.as_bytes()));
    let bare = matches!(response.status(), StatusCode::ACCEPTED | StatusCode::NO_CONTENT);
    let body = response.into_body();
    match kind {
        Some(ContentType::EventStream) => events(source, body, said).await,
        Some(ContentType::Json) if !bare => {
            if let Some(whole) = whole(body, source.message_bytes).await {
                let _ = said.send(whole).await;
            }
        }
        Some(ContentType::Json | ContentType::Other) | None => dregs(body).await,
    }
}

async fn events(source: &Source, body: Body, said: &mpsc::Sender<Said>) {
    let mut events = Events::new(body, source.message_bytes);
    loop {
        let next = match events.next().await {
            Ok(Some(Next::Event(event))) if event.name() == "message" && !event.data.is_empty() => {
                Said::Text(event.data)
            }
            Ok(Some(Next::Event(_))) => continue,
            Ok(Some(Next::TooLong(id))) => Said::TooLong(id),
            Ok(None) => return,
            Err(broken) => {
                tracing::debug!(upstream = %source.upstream, %broken, "a reply in the response to a message");
                return;
            }
        };
        if said.send(next).await.is_err() {
            return;
        }
    }
}

/// A JSON body; `None` if it is empty or has no end.
async fn whole(mut body: Body, most: usize) -> Option<Said> {
    let mut held = BytesMut::new();
    let mut late = LateId::default();
    let mut len = 0usize;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.ok()?.into_data() else { continue };
        len = len.saturating_add(data.len());
        late.feed(&data);
        if len <= most {
            held.extend_from_slice(&data);
        } else {
            held = BytesMut::new();
        }
    }
    match len {
        0 => None,
        _ if len > most => Some(Said::TooLong(late.found())),
        _ => Some(Said::Text(held.freeze())),
    }
}

async fn dregs(mut body: Body) {
    let mut left = DREGS;
    while let Some(Ok(frame)) = body.frame().await {
        let len = frame.data_ref().map_or(0, Bytes::len);
        match left.checked_sub(len) {
            Some(less) => left = less,
            None => return,
        }
    }
}
