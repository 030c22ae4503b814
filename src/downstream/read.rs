//! The body of a request, read within its bounds.
//!
//! Owns what becomes of a body that is too large, too late or broken off, and of one that is still arriving when the
//! drain begins; the caller's id is looked for in whatever has come. Does not know what a body says beyond that.
//! Rules: C18; architecture section 4, "Security defaults".

use super::modern::check::Refusal;
use crate::shutdown::Shutdown;
use crate::telemetry::metrics::Limit;
use crate::wire::jsonrpc::{self, Id, code};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body;
use hyper::header::EXPECT;
use hyper::{HeaderMap, StatusCode};
use std::time::Duration;
use tokio::time::timeout;

/// As much of a body as is looked at, and for how long, only to answer a refusal under its id.
const GLANCE: usize = 64 * 1024;
const GLANCE_TIME: Duration = Duration::from_secs(1);

/// The body of a client's request: from a connection, or put together in memory.
pub trait ClientBody: Body<Data = Bytes> + Unpin + Send {}

impl<B: Body<Data = Bytes> + Unpin + Send> ClientBody for B {}

/// The bounds of one body.
pub(super) struct Reader<'a> {
    /// `limits.body_bytes`
    pub(super) limit: usize,
    /// `timeouts.body`
    pub(super) time: Duration,
    pub(super) shutdown: &'a Shutdown,
}

impl Reader<'_> {
    /// The id in the beginning of a body that is not taken.
    pub(super) async fn glance<B: ClientBody>(&self, mut body: B) -> Option<Id> {
        let mut text = Text::new(GLANCE);
        let _ = timeout(GLANCE_TIME.min(self.time), async {
            let _ = text.fill(&mut body).await;
            discard(&mut body).await;
        })
        .await;
        jsonrpc::find_id(&text.into_bytes())
    }

    /// The whole body. What is too long or too late is not read any further, but its id may stand in what was read.
    pub(super) async fn read<B: ClientBody>(&self, head: &HeaderMap, mut body: B) -> Result<Bytes, Refusal> {
        let limit = self.limit;
        let too_large = || {
            let text = format!("the request body is larger than {limit} bytes (limits.body_bytes)");
            Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, code::INVALID_REQUEST, "body", text)
                .at(Limit::BodyBytes)
        };
        if body.size_hint().lower() > limit as u64 {
            // A client that asks first is told before it sends anything.
            let id = if head.contains_key(EXPECT) { None } else { self.glance(body).await };
            return Err(too_large().with_id(id));
        }
        let mut text = Text::new(limit);
        let filled = tokio::select! {
            // What has arrived is taken, drain or not.
            biased;
            filled = timeout(self.time, text.fill(&mut body)) => filled,
            // What has not arrived yet is no call that the drain would have to wait for.
            () = self.shutdown.draining() => {
                let told = "the proxy is shutting down";
                let refusal =
                    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, code::INTERNAL_ERROR, "draining", told);
                return Err(refusal.with_id(jsonrpc::find_id(&text.into_bytes())));
            }
        };
        let refusal = match filled {
            Ok(Ok(())) => return Ok(text.into_bytes()),
            Ok(Err(Unread::TooLarge)) => {
                let _ = timeout(GLANCE_TIME, discard(&mut body)).await;
                too_large()
            }
            Ok(Err(Unread::Broken)) => {
                let told = "the request body broke off";
                Refusal::new(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, "body", told)
            }
            Err(_) => {
                let told = format!("the request body did not arrive within {:?} (timeouts.body)", self.time);
                Refusal::new(StatusCode::REQUEST_TIMEOUT, code::INVALID_REQUEST, "body", told).at(Limit::Body)
            }
        };
        Err(refusal.with_id(jsonrpc::find_id(&text.into_bytes())))
    }
}

enum Unread {
    TooLarge,
    Broken,
}

/// Takes in what is left, so that a client in the middle of writing gets to read its answer: a connection that is
/// closed with unread bytes is reset. The caller bounds the time.
async fn discard<B: ClientBody>(body: &mut B) {
    while let Some(Ok(_)) = body.frame().await {}
}

/// A body as far as it has arrived.
struct Text {
    limit: usize,
    /// One piece stays as it is; several are put together.
    single: Option<Bytes>,
    joined: BytesMut,
}

impl Text {
    fn new(limit: usize) -> Self {
        Self { limit, single: None, joined: BytesMut::new() }
    }

    async fn fill<B: ClientBody>(&mut self, body: &mut B) -> Result<(), Unread> {
        let announced = body.size_hint().lower().min(self.limit as u64) as usize;
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|_| Unread::Broken)?.into_data() else { continue };
            if let Some(first) = self.single.take() {
                self.joined.reserve(announced.max(first.len() + data.len()));
                self.joined.extend_from_slice(&first);
            }
            if self.joined.is_empty() && data.len() <= self.limit {
                self.single = Some(data);
                continue;
            }
            let room = self.limit - self.joined.len();
            self.joined.extend_from_slice(&data[..data.len().min(room)]);
            if data.len() > room {
                return Err(Unread::TooLarge);
            }
        }
        Ok(())
    }

    fn into_bytes(self) -> Bytes {
        self.single.unwrap_or_else(|| self.joined.freeze())
    }
}
