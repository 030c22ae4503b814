//! GET and DELETE in a session of the proxy's own.
//!
//! Owns which stream a GET opens: the session's own, or one of a call that is taken up again; and what ends with a DELETE.
//! Rules: A12.14, A12.15, A13.5, B9.8; vector D82.

use super::super::session::{Opened, Resumed};
use super::{Asked, respond};
use crate::downstream::FrontBody;
use crate::downstream::ends::Ends;
use crate::downstream::front::Inner;
use crate::downstream::modern::check::Refusal;
use crate::downstream::modern::respond::{refusal, stream};
use crate::downstream::record::Record;
use crate::telemetry::metrics::Ended;
use crate::upstream::Upstream;
use crate::upstream::legacy::Carries;
use crate::wire::headers::{LAST_EVENT_ID, MCP_SESSION_ID};
use crate::wire::jsonrpc::code;
use hyper::header::{ALLOW, HeaderValue};
use hyper::{HeaderMap, Response, StatusCode};
use std::sync::Arc;

impl Inner {
    /// `None`: this upstream serves no legacy clients.
    pub(in crate::downstream::legacy) async fn bridged_verb(
        &self,
        upstream: &Arc<Upstream>,
        headers: &HeaderMap,
        ours: Option<&Opened>,
        carries: &Carries,
        record: &mut Record,
    ) -> Result<Option<Response<FrontBody>>, Refusal> {
        let Some(sessions) = self.sessions(upstream) else { return Ok(None) };
        let asked = Asked { course: super::course(upstream, sessions, headers), headers, ours };
        if !headers.contains_key(MCP_SESSION_ID) {
            let text = "GET and DELETE are served in a session; the Mcp-Session-Id header is missing";
            let (status, code) = (StatusCode::METHOD_NOT_ALLOWED, code::INVALID_REQUEST);
            return Err(Refusal::new(status, code, "no-session", text));
        }
        let session = self.session(&asked, None).await?;
        if *carries == Carries::End {
            asked.sessions.end(&session);
            record.outcome(Ended::Accepted);
            return Ok(Some(respond::ended()));
        }
        let resumed = headers.get(LAST_EVENT_ID).map(|id| session.resume(id.as_bytes()));
        let (reader, ends) = match resumed {
            Some(Resumed::Call(reader)) => (reader, Ends::after_last_words(self.shutdown.clone())),
            Some(Resumed::Own(reader)) => {
                self.follow(&asked, &session);
                (reader, Ends::quietly(self.shutdown.clone()))
            }
            Some(Resumed::Over) => {
                let text = "nothing is left to be told on this stream";
                let (status, reason) = (StatusCode::METHOD_NOT_ALLOWED, "nothing-left");
                record.refused(reason);
                let mut response = refusal(&Refusal::new(status, code::INVALID_REQUEST, reason, text));
                // In this session there are all three.
                response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, POST, DELETE"));
                return Ok(Some(response));
            }
            None => {
                self.follow(&asked, &session);
                (session.own_stream(), Ends::quietly(self.shutdown.clone()))
            }
        };
        Ok(Some(stream(FrontBody::reading(reader, self.timeouts.keep_alive, ends))))
    }
}
