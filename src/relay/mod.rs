//! The middle: one call of a client to one outcome, whatever the two eras.
//!
//! Owns which upstream serves a path, which pair of eras a call runs in, and planning anew, once, when a server turns
//! out to be of the other era. Knows neither sockets nor either side's spelling. Architecture section 2.

mod exchange;
mod like;
mod listen;

pub use exchange::Exchange;
pub use like::Like;

use crate::config;
use crate::exchange::{
    Binding, Call, Fault, FaultKind, Outcome, Principal, Receiver, Replan, Sender, channel,
};
use crate::shutdown::Shutdown;
use crate::telemetry::metrics::{Limit, Meter};
use crate::translate::listen::{Filter, FilterFault};
use crate::translate::result::tool_error;
use crate::upstream::guard::{Denied, Scope};
use crate::upstream::legacy::{Lease, is_retry};
use crate::upstream::modern::{Caller, Trouble, is_event_stream};
use crate::upstream::{Upstream, UpstreamBody};
use crate::wire::json::Limits;
use crate::wire::jsonrpc::{Notification, Request};
use crate::wire::method::Method;
use crate::wire::version::Era;
use hyper::{HeaderMap, Response};
use std::sync::Arc;
use tokio::time::Instant;
use tracing::Instrument;

/// All upstreams by path.
pub struct Relay {
    upstreams: Vec<Arc<Upstream>>,
    /// What of one call may wait for its client.
    front: config::Limits,
    limits: Limits,
    shutdown: Shutdown,
}

/// How a call goes on.
pub enum Reply {
    /// Between eras: events and an outcome.
    Exchange(Exchange),
    /// Answered on the spot.
    Done(Outcome),
    /// Between like eras: the server's own response.
    Relayed(Response<UpstreamBody>),
}

impl Relay {
    pub fn new(upstreams: Vec<Arc<Upstream>>, front: config::Limits, shutdown: Shutdown) -> Self {
        let limits = Limits { nesting: front.nesting, members: front.members };
        Self { upstreams, front, limits, shutdown }
    }

    /// The upstream whose clients come to `path`; a trailing slash makes no difference.
    pub fn route(&self, path: &str) -> Option<&Arc<Upstream>> {
        let path = path.strip_suffix('/').filter(|path| !path.is_empty()).unwrap_or(path);
        self.upstreams.iter().find(|upstream| upstream.settings.path == path)
    }

    pub fn upstreams(&self) -> &[Arc<Upstream>] {
        &self.upstreams
    }

    /// Starts a call. Returns when its server is known and able to take it; `streams` says whether the client takes
    /// an event stream.
    pub async fn start(
        &self,
        upstream: &Arc<Upstream>,
        call: Arc<Call>,
        streams: bool,
    ) -> Result<Reply, Fault> {
        if call.method.can_ask() && upstream.legacy.has_issued(&call.request) {
            // Whatever the server is by now: a state of ours leads to the call that waits for it, or nowhere (B1.2).
            tracing::Span::current().record("server", Era::Legacy.name());
            call.meter.server(Era::Legacy);
            return self.resume(upstream, call);
        }
        let era = upstream.era.of(&call).await?;
        let refused = match self.start_in(era, upstream, &call, streams).await {
            Ok(reply) => return Ok(reply),
            Err(Trouble::Fault(fault)) => return Err(fault),
            Err(Trouble::OtherEra(fault)) => fault,
        };
        Box::pin(self.start_anew(era, upstream, &call, streams)).await.unwrap_or(Err(refused))
    }

    /// Starts a call again that its legacy driver gave back because nothing of it had run.
    pub async fn restart(
        &self,
        upstream: &Arc<Upstream>,
        replan: Replan,
        streams: bool,
    ) -> Result<Reply, Fault> {
        let again = self.start_anew(Era::Legacy, upstream, &replan.call, streams).await;
        again.unwrap_or(Ok(Reply::Done(replan.otherwise)))
    }

    /// Looks at the upstream again after it refused a call as one of the other era does. `None` if its era is what it
    /// was, so that the refusal was its answer and the call is not sent a second time.
    async fn start_anew(
        &self,
        was: Era,
        upstream: &Arc<Upstream>,
        call: &Arc<Call>,
        streams: bool,
    ) -> Option<Result<Reply, Fault>> {
        if !upstream.era.contradicted(was) {
            return None;
        }
        let era = match upstream.era.of(call).await {
            Ok(era) if era == was => return None,
            Ok(era) => era,
            Err(fault) => return Some(Err(fault)),
        };
        Some(self.start_in(era, upstream, call, streams).await.map_err(|trouble| match trouble {
            Trouble::Fault(fault) | Trouble::OtherEra(fault) => fault,
        }))
    }

    async fn start_in(
        &self,
        era: Era,
        upstream: &Arc<Upstream>,
        call: &Arc<Call>,
        streams: bool,
    ) -> Result<Reply, Trouble> {
        tracing::Span::current().record("server", era.name());
        call.meter.server(era);
        match era {
            Era::Modern => {
                // Where the proxy looks the tool up for headers, it asks the guard after that.
                if !upstream.modern.says_headers_of(call) {
                    if upstream.guard.wants_list(Scope::of(call.principal, None), &call.request) {
                        upstream.modern.look_at_tool(call).await;
                    }
                    if let Some(denied) = denied(upstream, call) {
                        return denied.map_err(Trouble::Fault);
                    }
                }
                let mut response = upstream.modern.send(call).await?;
                if !streams && is_event_stream(response.headers()) {
                    let collapsed = Box::pin(upstream.modern.collapse(response, call.id())).await;
                    response = collapsed.map_err(Trouble::Fault)?;
                }
                let sifted = upstream.sieve.modern(call, response).await;
                sifted.map(Reply::Relayed).map_err(Trouble::Fault)
            }
            Era::Legacy => {
                if call.method.can_ask() && is_retry(&call.request) {
                    // Never understood as "start again" (B1.2).
                    return self.resume(upstream, call.clone()).map_err(Trouble::Fault);
                }
                // Where a list is to be read first, in the call's session, the guard is asked after that.
                if !upstream.guard.wants_list(Scope::of(call.principal, None), &call.request)
                    && let Some(denied) = denied(upstream, call)
                {
                    return denied.map_err(Trouble::Fault);
                }
                // Before a session is opened for what cannot be run.
                let wanted = self.wanted(call).map_err(Trouble::Fault)?;
                match upstream.legacy.lease(call).await {
                    Ok(lease) => self.legacy(upstream, call.clone(), lease, wanted).map_err(Trouble::Fault),
                    Err(open) if open.refused => Err(Trouble::OtherEra(open.fault)),
                    Err(open) => Err(Trouble::Fault(open.fault)),
                }
            }
        }
    }

    /// Starts a legacy client's call at a server that is known to be modern.
    pub fn bridge(&self, upstream: &Upstream, call: Arc<Call>, caller: Caller) -> Exchange {
        let (sender, receiver) = self.channel(&call);
        let driver = upstream.modern.clone().run(call, caller, sender);
        Exchange::with_driver(driver, receiver, self.shutdown.clone())
    }

    /// Passes on a notification that neither era defines; the others end here (A2).
    pub async fn notify(
        &self,
        upstream: &Arc<Upstream>,
        notification: Notification,
        headers: HeaderMap,
        principal: Principal,
        deadline: Instant,
        meter: Meter,
    ) -> Result<(), Fault> {
        // A call in whose name the upstream is looked at and the session leased; it is never sent.
        let request = Request {
            text: notification.text.clone(),
            top: notification.top.clone(),
            id: crate::wire::jsonrpc::Id::number(0),
            id_span: Default::default(),
            method: notification.method.clone(),
            params: notification.params.clone(),
        };
        let (method, binding) = (Method::Custom, Binding::Http);
        let call = Call { request, method, principal, headers, binding, deadline, meter };
        let era = upstream.era.of(&call).await?;
        call.meter.server(era);
        match era {
            Era::Modern => match upstream.modern.notify(&call.headers, notification.text).await {
                Ok(response) if response.status().is_success() => Ok(()),
                Ok(response) => Err(Fault::bad_gateway(format!(
                    "the upstream server answered the notification with HTTP status {}",
                    response.status().as_u16()
                ))),
                Err(Trouble::Fault(fault) | Trouble::OtherEra(fault)) => Err(fault),
            },
            Era::Legacy => upstream.legacy.notify(&call, &notification).await,
        }
    }

    /// What a `subscriptions/listen` request asks to hear; `None` for every other.
    fn wanted(&self, call: &Call) -> Result<Option<Filter>, Fault> {
        if call.method != Method::Listen {
            return Ok(None);
        }
        let filter = Filter::read(&call.request, self.limits, self.front.subscriptions);
        filter.map(Some).map_err(|fault| {
            if matches!(fault, FilterFault::TooMany(_)) {
                call.meter.limit(Limit::Subscriptions);
            }
            Fault::new(FaultKind::InvalidParams, fault.to_string())
        })
    }

    fn legacy(
        &self,
        upstream: &Arc<Upstream>,
        call: Arc<Call>,
        lease: Lease,
        wanted: Option<Filter>,
    ) -> Result<Reply, Fault> {
        match call.method {
            Method::Discover => {
                let message = lease.session().initialized.discover(call.id(), self.limits);
                return Ok(Reply::Done(Outcome::Result(message)));
            }
            // Of the other era, or never a client's to send: no legacy server is asked.
            Method::Task | Method::ServerToClient | Method::LegacyOnly(_) => {
                return Err(Fault::new(FaultKind::MethodNotFound, "method not found"));
            }
            Method::Listen
            | Method::ToolsList
            | Method::ToolsCall
            | Method::PromptsList
            | Method::PromptsGet
            | Method::ResourcesList
            | Method::ResourcesTemplatesList
            | Method::ResourcesRead
            | Method::Complete
            | Method::Custom => {}
        }
        let (sender, receiver) = self.channel(&call);
        if let Some(wanted) = wanted {
            let span = tracing::Span::current();
            let listening = upstream.legacy.listen(&call, lease, wanted, self.front.events);
            // Owned by the tracker; ends with its client, with the drain or when the server has nothing to tell.
            drop(self.shutdown.spawn(listen::run(listening, sender, self.shutdown.clone()).instrument(span)));
            return Ok(Reply::Exchange(Exchange::driven(receiver)));
        }
        let driver = upstream.legacy.clone().run(call, lease, sender);
        Ok(Reply::Exchange(Exchange::with_driver(driver, receiver, self.shutdown.clone())))
    }

    /// Takes a call up whose server waits for what the client brings.
    fn resume(&self, upstream: &Arc<Upstream>, call: Arc<Call>) -> Result<Reply, Fault> {
        let (sender, receiver) = self.channel(&call);
        Ok(match upstream.legacy.resume(call, sender)? {
            Some(outcome) => Reply::Done(outcome),
            None => Reply::Exchange(Exchange::driven(receiver)),
        })
    }

    fn channel(&self, call: &Call) -> (Sender, Receiver) {
        let (sender, receiver) = channel(self.front.events, self.front.event_bytes);
        (sender.metered(call.meter.clone()), receiver)
    }
}

/// What the guard says to a call that it does not let through.
fn denied(upstream: &Upstream, call: &Call) -> Option<Result<Reply, Fault>> {
    if call.method != Method::ToolsCall {
        return None;
    }
    match upstream.guard.admit(Scope::of(call.principal, None), &call.request) {
        Ok(()) => None,
        Err(Denied::Tool(words)) => Some(Err(Fault::new(FaultKind::InvalidParams, words))),
        Err(Denied::Value(words)) => {
            Some(Ok(Reply::Done(Outcome::Result(tool_error(call.id(), &words, None)))))
        }
    }
}
