//! `initialize` before a modern server: answered from what the server says of itself.
//!
//! Owns the order: what the client says is read, the server is asked with the client's own credential (whose refusal is the
//! client's to see), a session begins. A server that turns out not to be modern any more gets the client's `initialize`
//! itself. Rules: A1.1, A12.17; vectors D69, D72; cases C06, C27e, C34, C39b.

use super::super::serve::passage;
use super::{Asked, respond};
use crate::downstream::FrontBody;
use crate::downstream::front::Inner;
use crate::downstream::legacy::check::Checked;
use crate::downstream::modern::check::Refusal;
use crate::downstream::record::Record;
use crate::telemetry::metrics::Ended;
use crate::translate::legacy_client::initialize;
use crate::upstream::legacy::Carries;
use crate::upstream::modern::Trouble;
use crate::wire::headers::MCP_SESSION_ID;
use crate::wire::json::Limits;
use crate::wire::jsonrpc::Request;
use crate::wire::version::Era;
use hyper::Response;
use hyper::header::HeaderName;
use std::pin::pin;

impl Inner {
    pub(super) async fn greet(
        &self,
        asked: &Asked<'_>,
        request: &Request,
        checked: &Checked,
        record: &mut Record,
    ) -> Result<Response<FrontBody>, Refusal> {
        let (upstream, id) = (asked.upstream, &request.id);
        let limits = Limits { nesting: self.limits.nesting, members: self.limits.members };
        let client = match initialize::read(request, limits) {
            Ok(client) if upstream.settings.interactive => client,
            Ok(client) => client.silent(),
            Err(fault) => return Ok(respond::fault(&fault, id, record)),
        };
        let discovered = {
            let discover = pin!(async { Ok(upstream.modern.discover(asked.headers, &client).await) });
            self.in_time(asked.deadline, discover).await
        };
        let server = match discovered {
            Ok(Ok(server)) => server,
            Ok(Err(Trouble::Fault(fault))) | Err(fault) => return Ok(respond::fault(&fault, id, record)),
            Ok(Err(Trouble::OtherEra(fault))) => {
                if upstream.era.contradicted(Era::Modern) {
                    let carries = Carries::Initialize(id.clone());
                    let passage = passage(upstream, carries, asked.headers, checked.body.clone());
                    if let Some(response) = Box::pin(self.pass(upstream, passage, record)).await {
                        return Ok(response);
                    }
                }
                return Ok(respond::fault(&fault, id, record));
            }
        };
        let revision = client.revision;
        match asked.sessions.begin(client, server.offers, asked.principal, asked.headers) {
            Ok((session, name)) => {
                record.outcome(Ended::Result);
                tracing::debug!(revision = revision.as_str(), "a legacy client begins a session");
                drop(session);
                let mut response = respond::message(initialize::result(id, revision, &server), asked.accepts);
                response.headers_mut().insert(HeaderName::from_static(MCP_SESSION_ID), name);
                Ok(response)
            }
            Err(fault) => Ok(respond::fault(&fault, id, record)),
        }
    }
}
