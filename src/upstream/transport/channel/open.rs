//! Opening channels: for `initialize`, and for the requests of a modern client.
//!
//! Owns that a channel which has seen nothing but the probe is taken for `initialize` (A15.1, C38), the time from the start of
//! a process to its first word, the places of which each channel has one, and that a channel whose `initialize` fails or is
//! given up is ended. Does not own how it comes about (`pipe`), nor the pauses after failures (`starts`).

use super::super::body::Body;
use super::super::error::{Phase, SendError};
use super::super::http::{RequestHead, Speaker};
use super::super::pipe::Trouble;
use super::connection::{Answered, Connection, Mode, NoAnswer};
use super::{Host, Kind, principal, random, refused};
use crate::telemetry::metrics::UpstreamLimit;
use crate::wire::headers::MCP_SESSION_ID;
use crate::wire::jsonrpc::Request;
use http::header::HeaderName;
use http::{HeaderMap, HeaderValue, Response};
use std::pin::pin;
use std::sync::{Arc, PoisonError};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

impl Host {
    /// One of the channels without a session.
    fn find(&self, fits: impl Fn(&Connection) -> bool) -> Option<Arc<Connection>> {
        let modern = self.modern.lock().unwrap_or_else(PoisonError::into_inner);
        let mut open = modern.values().filter_map(|slot| slot.try_lock().ok()?.clone());
        open.find(|channel| fits(channel) && !channel.is_over())
    }

    pub(super) async fn initialize(
        &self,
        head: &RequestHead,
        request: &Request,
    ) -> Result<Response<Body>, SendError> {
        if head.speaker == Speaker::Client
            && let Some(channel) = self.find(Connection::is_only_probed)
        {
            // Known to be modern, it may be both (`relay::like`), and need not be started twice to say so.
            let answered = channel.legacy(request, &head.headers).await;
            return match answered {
                Ok(Answered { response, error: false }) => {
                    channel.is_both(head.speaker);
                    Ok(self.begun(channel, head, response))
                }
                answered => self.settle(answered, &head.headers, Some(&request.id)),
            };
        }
        let untold = self.find(|channel| channel.mode() == Mode::Untold);
        let opened = match untold.filter(|channel| channel.becomes_legacy(head.speaker)) {
            Some(channel) => Ok(channel),
            None => self.start_legacy(head).await,
        };
        let mut opened = match opened {
            Ok(channel) => Unclaimed { channel, claimed: false },
            Err(trouble) => return refused(trouble),
        };
        let mut answered = self.first(&opened.channel, request, head).await;
        let ended = matches!(answered, Err(NoAnswer::Over | NoAnswer::Send(SendError::Ended { .. })));
        if ended && opened.channel.was_probed() {
            // The probe may have ended it, and nothing has been said in it but that (A15.1).
            opened.channel = match self.start_legacy(head).await {
                Ok(channel) => channel,
                Err(trouble) => return refused(trouble),
            };
            answered = self.first(&opened.channel, request, head).await;
        }
        let Ok(Answered { response, error: false }) = answered else {
            return self.settle(answered, &head.headers, Some(&request.id));
        };
        opened.claimed = true;
        Ok(self.begun(opened.channel.clone(), head, response))
    }

    /// A session in the channel, and the answer that says so.
    fn begun(
        &self,
        channel: Arc<Connection>,
        head: &RequestHead,
        mut response: Response<Body>,
    ) -> Response<Body> {
        let id = format!("{}{}", self.mark, random());
        if let Ok(value) = HeaderValue::try_from(&id) {
            response.headers_mut().insert(HeaderName::from_static(MCP_SESSION_ID), value);
        }
        self.sessions.insert(id, (principal(&head.headers), channel.clone()));
        if channel.is_over() {
            self.forget(&channel);
        }
        response
    }

    /// Sends `initialize`. A process that has to start has its time from its start to its first word.
    async fn first(
        &self,
        channel: &Arc<Connection>,
        request: &Request,
        head: &RequestHead,
    ) -> Result<Answered, NoAnswer> {
        let mut answered = pin!(channel.legacy(request, &head.headers));
        if let (Kind::Process, Some(silent)) = (self.setting.kind, channel.silent())
            && let Ok(answered) = timeout(self.start.saturating_sub(silent), &mut answered).await
        {
            return answered;
        }
        if self.setting.kind == Kind::Process && channel.silent().is_some() {
            return Err(NoAnswer::Send(SendError::Timeout { phase: Phase::Start, after: self.start }));
        }
        answered.await
    }

    async fn start_legacy(&self, head: &RequestHead) -> Result<Arc<Connection>, Trouble> {
        let channel = self.start(&head.headers).await?;
        channel.becomes_legacy(head.speaker);
        Ok(channel)
    }

    pub(super) async fn start(&self, headers: &HeaderMap) -> Result<Arc<Connection>, Trouble> {
        self.starts.allow()?;
        let place = self.place().await?;
        let channel = Connection::new(self.setting.clone(), place, self.me.clone());
        match self.open.open(headers, Arc::new(channel.clone())).await {
            Ok(pipe) => {
                channel.opened(pipe);
                Ok(channel)
            }
            Err(trouble) => {
                if let Trouble::Send(SendError::Start { .. }) = trouble {
                    self.starts.failed();
                }
                Err(trouble)
            }
        }
    }

    /// A place for one more; if there is none, the channel that has been idle longest makes room.
    async fn place(&self) -> Result<OwnedSemaphorePermit, SendError> {
        if let Ok(place) = self.places.clone().try_acquire_owned() {
            return Ok(place);
        }
        self.setting.metrics.limit(match self.setting.kind {
            Kind::Process => UpstreamLimit::Processes,
            Kind::EventStream => UpstreamLimit::Sessions,
        });
        let longest = self.all().into_iter().filter_map(|channel| Some((channel.idle()?, channel)));
        if let Some((_, channel)) = longest.max_by_key(|(idle, _)| *idle) {
            channel.end();
            if let Ok(Ok(place)) = timeout(self.farewell, self.places.clone().acquire_owned()).await {
                return Ok(place);
            }
        }
        let limit = self.max;
        tracing::warn!(upstream = %self.setting.upstream, limit, "all processes or streams of the server are in use");
        Err(SendError::Full { limit })
    }
}

/// A channel that is nobody's unless `initialize` succeeds in it; ended with this, unless its server has turned out to be a
/// modern one.
struct Unclaimed {
    channel: Arc<Connection>,
    claimed: bool,
}

impl Drop for Unclaimed {
    fn drop(&mut self) {
        if !self.claimed && self.channel.mode() != Mode::Modern {
            self.channel.end();
        }
    }
}
