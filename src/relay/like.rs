//! Legacy client, legacy server: a pair of like eras.
//!
//! Owns the plan: the server must be known not to be modern before anything of the client reaches it, and is looked at
//! once more where it refuses as only a modern server does. Rules: A15.5, B14; cases C25, C39a.

use super::Relay;
use crate::exchange::Fault;
use crate::telemetry::metrics::Meter;
use crate::upstream::legacy::{Carries, Passage, Passed};
use crate::upstream::modern::is_event_stream;
use crate::upstream::{Upstream, UpstreamBody};
use crate::wire::version::Era;
use hyper::Response;
use std::sync::Arc;

/// How a legacy client's request goes on.
pub enum Like {
    Relayed(Response<UpstreamBody>),
    /// The server is modern: not a like pair.
    Unlike,
}

impl Relay {
    /// Passes the request on if the server is legacy too.
    pub async fn pass(
        &self,
        upstream: &Arc<Upstream>,
        passage: &Passage,
        meter: &Meter,
    ) -> Result<Like, Fault> {
        let initializes = matches!(passage.carries, Carries::Initialize(_));
        let look = || upstream.era.of_legacy_client(passage.principal, &passage.headers, initializes);
        if unlike(look().await?, meter) {
            return Ok(Like::Unlike);
        }
        let waiting = meter.sent(Era::Legacy);
        let passed = upstream.legacy.pass(passage).await?;
        waiting.answered();
        let response = match passed {
            Passed::Response(response) => response,
            Passed::OtherEra(response) => {
                if upstream.era.doubted() && unlike(look().await?, meter) {
                    return Ok(Like::Unlike);
                }
                response
            }
        };
        match &passage.carries {
            Carries::Initialize(id) | Carries::Request(id)
                if !passage.streams && is_event_stream(response.headers()) =>
            {
                upstream.modern.collapse(response, id).await.map(Like::Relayed)
            }
            Carries::Initialize(_)
            | Carries::Request(_)
            | Carries::Batch(_)
            | Carries::Unanswered
            | Carries::Stream
            | Carries::End => Ok(Like::Relayed(response)),
        }
    }
}

fn unlike(server: Era, meter: &Meter) -> bool {
    meter.server(server);
    tracing::Span::current().record("server", server.name());
    match server {
        Era::Modern => true,
        Era::Legacy => false,
    }
}
