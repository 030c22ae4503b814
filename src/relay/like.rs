//! Legacy client, legacy server: a pair of like eras.
//!
//! Owns the plan: the server must be known not to be modern before anything of the client reaches it, and is looked at
//! once more where it refuses as only a modern server does. A modern server that serves legacy clients as well is of a like
//! pair too, which is found out by the client's own `initialize`. Rules: A15.5, B14; cases C25, C39a.

use super::Relay;
use crate::exchange::{Fault, FaultKind};
use crate::telemetry::metrics::Meter;
use crate::upstream::era::{Comes, Serves, Side};
use crate::upstream::guard::sieve::Admitted;
use crate::upstream::legacy::{Carries, Passage, Passed};
use crate::upstream::modern::is_event_stream;
use crate::upstream::{Upstream, UpstreamBody};
use crate::wire::headers::MCP_SESSION_ID;
use crate::wire::version::Era;
use hyper::Response;
use std::sync::Arc;
use tokio::time::timeout;

/// How a legacy client's request goes on.
pub enum Like {
    Relayed(Response<UpstreamBody>),
    /// The server is modern: not a like pair.
    Unlike,
}

impl Relay {
    /// Passes the request on if the server is legacy too, and what comes back through the guard's sieve.
    pub async fn pass(
        &self,
        upstream: &Arc<Upstream>,
        passage: &Passage,
        meter: &Meter,
    ) -> Result<Like, Fault> {
        let comes = match &passage.carries {
            Carries::Initialize(_) => Comes::Initialize { askable: passage.askable },
            _ if passage.headers.contains_key(MCP_SESSION_ID) => Comes::InSession,
            _ => Comes::Bare,
        };
        let look = || upstream.era.of_legacy_client(passage.principal, &passage.headers, comes);
        match look().await? {
            Side::Modern => return Ok(unlike(meter)),
            Side::Try => return Box::pin(self.attempt(upstream, passage, meter)).await,
            Side::Legacy => said(Era::Legacy, meter),
        }
        let asked = match upstream.sieve.admit(passage)? {
            Admitted::Goes(asked) => asked,
            Admitted::Answered(response) => return Ok(Like::Relayed(response)),
        };
        let waiting = meter.sent(Era::Legacy);
        let passed = upstream.legacy.pass(passage).await?;
        waiting.answered();
        let response = match passed {
            Passed::Response(response) => response,
            Passed::Modern(_) if upstream.era.is_modern() => return Ok(unlike(meter)),
            Passed::OtherEra(response) | Passed::Modern(response) => {
                if upstream.era.doubted() && look().await? != Side::Legacy {
                    return Ok(unlike(meter));
                }
                response
            }
        };
        let response = collapsed(upstream, passage, response).await?;
        upstream.sieve.legacy(passage, asked, response).await.map(Like::Relayed)
    }

    /// Passes a legacy client's `initialize` to a server that is known as modern: if it answers as a legacy server does, it
    /// is that too. Whatever else it says is not the client's business, a challenge or a rate limit apart.
    async fn attempt(
        &self,
        upstream: &Arc<Upstream>,
        passage: &Passage,
        meter: &Meter,
    ) -> Result<Like, Fault> {
        let trial = Trial { upstream, over: false };
        let within = upstream.settings.opening();
        let Ok(passed) = timeout(within, upstream.legacy.pass(passage)).await else {
            trial.shows(Serves::Nothing);
            return Ok(unlike(meter));
        };
        let answered = match passed {
            Ok(Passed::Response(response)) if matches!(response.status().as_u16(), 401 | 403 | 429) => {
                said(Era::Legacy, meter);
                return Ok(Like::Relayed(response));
            }
            Err(fault @ Fault { kind: FaultKind::Unauthorized { .. } | FaultKind::RateLimited, .. }) => {
                return Err(fault);
            }
            Ok(Passed::Response(response)) if response.status().is_success() => {
                upstream.modern.read_whole(response, &passage.carries).await.ok()
            }
            Ok(Passed::Response(_) | Passed::OtherEra(_) | Passed::Modern(_)) | Err(_) => None,
        };
        let serves = match &answered {
            None => Serves::Nothing,
            Some(response) if response.headers().contains_key(MCP_SESSION_ID) => Serves::Sessions,
            Some(_) => Serves::Stateless,
        };
        trial.shows(serves);
        match answered.filter(|_| serves == Serves::Sessions || !passage.askable) {
            Some(response) => {
                said(Era::Legacy, meter);
                Ok(Like::Relayed(response))
            }
            None => Ok(unlike(meter)),
        }
    }
}

/// A try under way; one that ends without showing anything may be made again at once.
struct Trial<'a> {
    upstream: &'a Upstream,
    over: bool,
}

impl Trial<'_> {
    fn shows(mut self, serves: Serves) {
        self.over = true;
        self.upstream.era.tried(serves);
    }
}

impl Drop for Trial<'_> {
    fn drop(&mut self) {
        if !self.over {
            self.upstream.era.untried();
        }
    }
}

/// The response in the form that the client takes.
async fn collapsed(
    upstream: &Upstream,
    passage: &Passage,
    response: Response<UpstreamBody>,
) -> Result<Response<UpstreamBody>, Fault> {
    match &passage.carries {
        Carries::Initialize(id) | Carries::Request(id)
            if !passage.streams && is_event_stream(response.headers()) =>
        {
            upstream.modern.collapse(response, id).await
        }
        Carries::Initialize(_)
        | Carries::Request(_)
        | Carries::Batch(_)
        | Carries::Unanswered
        | Carries::Stream
        | Carries::End => Ok(response),
    }
}

fn unlike(meter: &Meter) -> Like {
    said(Era::Modern, meter);
    Like::Unlike
}

fn said(server: Era, meter: &Meter) {
    meter.server(server);
    tracing::Span::current().record("server", server.name());
}
