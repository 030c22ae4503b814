//! Opening channels: for `initialize`, and for the requests of a modern client.
//!
//! Owns that a channel which has seen nothing but the probe is taken for `initialize` (A15.1, C38), the time from the start of
//! a process to its first word, the places of which each channel has one, and that a channel whose `initialize` fails or is
//! given up is ended. Does not own how it comes about (`pipe`), nor the pauses after failures (`starts`).

use super::super::body::Body;
use super::super::error::{Phase, SendError};
use super::super::http::RequestHead;
use super::super::pipe::Trouble;
use super::connection::{Answered, Connection, NoAnswer};
use super::{Host, Kind, principal, refused};
use crate::exchange::Principal;
use crate::seal::unguessable;
use crate::telemetry::metrics::UpstreamLimit;
use crate::upstream::places::Place;
use crate::wire::headers::MCP_SESSION_ID;
use crate::wire::jsonrpc::Request;
use http::header::HeaderName;
use http::{HeaderMap, HeaderValue, Response};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::{Instant, timeout};

impl Host {
    pub(super) async fn initialize(
        &self,
        head: &RequestHead,
        request: &Request,
    ) -> Result<Response<Body>, SendError> {
        let taken = self.modern.take(|channel| channel.becomes_legacy(head.speaker));
        let mut opened = match taken {
            Some((owner, channel)) => Unclaimed { host: self, owner, channel, claimed: false },
            None => match self.start_legacy(head).await {
                Ok(opened) => opened,
                Err(trouble) => return refused(trouble),
            },
        };
        let mut answered = self.first(&opened.channel, request, head).await;
        let ended = matches!(answered, Err(NoAnswer::Over | NoAnswer::Send(SendError::Ended { .. })));
        if ended && opened.channel.was_probed() {
            // The probe may have ended it, and nothing has been said in it but that (A15.1).
            opened = match self.start_legacy(head).await {
                Ok(opened) => opened,
                Err(trouble) => return refused(trouble),
            };
            answered = self.first(&opened.channel, request, head).await;
        }
        if let Err(NoAnswer::Over) = answered {
            // Not that there is no session: it was to begin one.
            return Err(SendError::Start { source: std::io::Error::other("it ended before it was asked") });
        }
        let Ok(Answered { response, error: false }) = answered else {
            return self.settle(answered, &head.headers, Some(&request.id));
        };
        let response = self.begun(&opened.channel, head, response)?;
        opened.claimed = true;
        Ok(response)
    }

    /// A session in the channel, and the answer that says so.
    fn begun(
        &self,
        channel: &Arc<Connection>,
        head: &RequestHead,
        mut response: Response<Body>,
    ) -> Result<Response<Body>, SendError> {
        let nameless = |source| SendError::Unsent { origin: "a session".to_owned(), source };
        let id = unguessable().map_err(|error| nameless(error.into()))?;
        let id = format!("{}{id}", self.mark);
        let value = HeaderValue::try_from(&id).map_err(|error| nameless(error.into()))?;
        response.headers_mut().insert(HeaderName::from_static(MCP_SESSION_ID), value);
        self.sessions.insert(id, (principal(&head.headers), channel.clone()));
        if channel.is_over() {
            self.forget(channel);
        }
        Ok(response)
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

    async fn start_legacy(&self, head: &RequestHead) -> Result<Unclaimed<'_>, Trouble> {
        let channel = self.start(&head.headers).await?;
        channel.becomes_legacy(head.speaker);
        Ok(Unclaimed { host: self, owner: principal(&head.headers), channel, claimed: false })
    }

    pub(super) async fn start(&self, headers: &HeaderMap) -> Result<Arc<Connection>, Trouble> {
        if self.setting.kind == Kind::Process {
            self.starts.allow()?;
        }
        let place = self.place().await?;
        let channel = Connection::new(self.setting.clone(), place, headers, self.me.clone());
        let begun = Instant::now();
        match self.open.open(headers, Arc::new(channel.clone())).await {
            Ok(pipe) => {
                channel.opened(pipe);
                Ok(channel)
            }
            Err(trouble) => {
                if let Trouble::Send(SendError::Start { .. }) = trouble {
                    self.starts.failed(begun);
                }
                Err(trouble)
            }
        }
    }

    /// A place for one more; if there is none, and none is being freed, the channel that has been idle longest makes room.
    async fn place(&self) -> Result<Place, SendError> {
        if let Some(place) = self.setting.places.take() {
            return Ok(place);
        }
        self.setting.metrics.limit(match self.setting.kind {
            Kind::Process => UpstreamLimit::Processes,
            Kind::EventStream => UpstreamLimit::Sessions,
        });
        // Of those that are being freed each is somebody's already; who comes beyond that has another one ended.
        let before = self.looking.fetch_add(1, Ordering::AcqRel);
        let _looking = Looking(&self.looking);
        if before >= self.setting.places.being_freed() {
            self.make_room();
        }
        if let Some(place) = self.setting.places.take_freed(self.farewell).await {
            return Ok(place);
        }
        if self.make_room()
            && let Some(place) = self.setting.places.take_freed(self.farewell).await
        {
            return Ok(place);
        }
        let limit = self.max;
        tracing::warn!(upstream = %self.setting.upstream, limit, "all processes or streams of the server are in use");
        Err(SendError::Full { limit })
    }

    /// Ends the channel that has been idle longest; whether there was one.
    fn make_room(&self) -> bool {
        let idle = self.all().into_iter().filter_map(|channel| Some((channel.idle()?, channel)));
        let mut idle: Vec<_> = idle.collect();
        idle.sort_by_key(|(since, _)| *since);
        // Of those who look for room at once each ends another.
        idle.iter().rev().any(|(_, channel)| channel.end_if_idle(Duration::ZERO))
    }
}

/// One who looks for a place.
struct Looking<'a>(&'a AtomicUsize);

impl Drop for Looking<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A channel that is nobody's unless `initialize` succeeds in it: ended with this, or given back where its server has shown
/// itself as a modern one.
struct Unclaimed<'a> {
    host: &'a Host,
    /// Whose it is otherwise.
    owner: Principal,
    channel: Arc<Connection>,
    claimed: bool,
}

impl Drop for Unclaimed<'_> {
    fn drop(&mut self) {
        if self.claimed {
            return;
        }
        let put = self.channel.is_given_back() && self.host.modern.put(self.owner, &self.channel);
        if !put {
            self.channel.end();
        }
    }
}
