//! One HTTP request of a legacy client, from its checks to the head of the response.
//!
//! Owns the order of the steps and how long each kind of answer may take. The body has been read and its place among the
//! requests in work taken by then (`front`). Rules: A12.14, A12.19, A12.21; cases C16, C25, C27, C44.

use super::bridge::{Place, Post, said};
use super::check::{self, Checked};
use super::respond;
use crate::downstream::FrontBody;
use crate::downstream::ends::Ends;
use crate::downstream::front::Inner;
use crate::downstream::modern::check::Refusal;
use crate::downstream::record::Record;
use crate::exchange::{Fault, FaultKind, Principal};
use crate::relay::Like;
use crate::telemetry::metrics::{Ended, What};
use crate::translate::legacy_client::initialize;
use crate::upstream::Upstream;
use crate::upstream::legacy::{Carries, Passage};
use crate::upstream::modern::is_event_stream;
use crate::wire::json::Limits;
use crate::wire::jsonrpc::Message;
use crate::wire::payload::Payload;
use crate::wire::version::Era;
use hyper::header::AUTHORIZATION;
use hyper::{HeaderMap, Method as HttpMethod, Response};
use std::pin::pin;
use std::sync::Arc;
use tokio::time::Instant;

impl Inner {
    /// A POST. It comes back if the server is modern, and this upstream serves legacy clients before it no further.
    pub(in crate::downstream) async fn legacy_post<'a>(
        &self,
        post: Post<'a>,
        record: &mut Record,
        place: &mut Place,
    ) -> Result<Result<Response<FrontBody>, Post<'a>>, Refusal> {
        let Post { upstream, headers, message, text, .. } = &post;
        let limits = Limits { nesting: self.limits.nesting, members: self.limits.members };
        let checked = check::body(message, text, limits)?;
        let name = || match message {
            Ok(Message::Request(request)) => crate::downstream::front::name(request),
            Ok(Message::Notification(_) | Message::Response(_)) | Err(_) => None,
        };
        record.about(checked.what, Era::Legacy, name);
        if let Carries::Initialize(id) | Carries::Request(id) = &checked.carries
            && check::accepts(headers).nothing()
        {
            return Err(check::no_form(Some(id)));
        }
        if post.ours.is_none() {
            let Checked { carries, body, .. } = &checked;
            let mut passage = passage(upstream, carries.clone(), headers, body.clone());
            match (carries, message) {
                (Carries::Initialize(_), Ok(Message::Request(request))) => {
                    passage.askable =
                        initialize::read(request, limits).is_ok_and(|client| client.can.anything());
                }
                (Carries::Request(_), Ok(Message::Request(request))) => {
                    passage.request = Some(request.clone());
                }
                _ => {}
            }
            if let Some(response) = Box::pin(self.pass(upstream, passage, record)).await {
                return Ok(Ok(response));
            }
        } else {
            said(record);
        }
        match self.sessions(upstream) {
            Some(sessions) => Box::pin(self.bridged(sessions, post, &checked, record, place)).await.map(Ok),
            None => Ok(Err(post)),
        }
    }

    /// Any other verb; `None` likewise, and where it is not served here at all.
    pub(in crate::downstream) async fn legacy_verb(
        &self,
        upstream: &Arc<Upstream>,
        verb: &HttpMethod,
        headers: &HeaderMap,
        record: &mut Record,
    ) -> Result<Option<Response<FrontBody>>, Refusal> {
        let Some(carries) = check::verb(verb, headers)? else { return Ok(None) };
        let what = if carries == Carries::Stream { What::Get } else { What::Delete };
        record.about(what, Era::Legacy, || None);
        let ours = self.our_session(upstream, headers);
        if ours.is_none() {
            let passage = passage(upstream, carries.clone(), headers, Payload::default());
            if let Some(response) = self.pass(upstream, passage, record).await {
                return Ok(Some(response));
            }
        } else {
            said(record);
        }
        self.bridged_verb(upstream, headers, ours.as_ref(), &carries, record).await
    }

    /// Passes the request on as it is. `None`: the server is modern.
    pub(super) async fn pass(
        &self,
        upstream: &Arc<Upstream>,
        passage: Passage,
        record: &mut Record,
    ) -> Option<Response<FrontBody>> {
        let (deadline, meter) = (passage.deadline, record.meter());
        let passed = pin!(self.relay.pass(upstream, &passage, &meter));
        let passed = self.in_time(deadline, passed);
        let passed = if passage.carries == Carries::Stream {
            // A stream that has not begun when the drain does is not waited for.
            tokio::select! {
                passed = passed => passed,
                () = self.shutdown.draining() => Err(Fault::new(FaultKind::Draining, "the proxy is shutting down")),
            }
        } else {
            passed.await
        };
        let response = match passed {
            Ok(Like::Unlike) => return None,
            Ok(Like::Relayed(response)) => response,
            Err(fault) => return Some(respond::fault(&fault, &passage.carries, record)),
        };
        record.outcome(if response.status().is_success() { Ended::Relayed } else { Ended::RelayedError });
        // The server's own stream lives until either side ends it or the proxy drains; every other answer is due in time.
        let ends = match &passage.carries {
            Carries::Stream if is_event_stream(response.headers()) => Ends::quietly(self.shutdown.clone()),
            // What holds it open minds the time, and says so in band.
            _ if response.body().is_held() => Ends::after_last_words(self.shutdown.clone()),
            Carries::Request(id) if response.body().is_of_channel() => {
                Ends::answered_at(deadline, self.shutdown.clone(), vec![id.clone()])
            }
            Carries::Batch(ids) if response.body().is_of_channel() => {
                Ends::answered_at(deadline, self.shutdown.clone(), ids.clone())
            }
            Carries::Stream
            | Carries::Initialize(_)
            | Carries::Request(_)
            | Carries::Batch(_)
            | Carries::Unanswered
            | Carries::End => Ends::at(deadline, self.shutdown.clone()),
        };
        Some(respond::relayed(response, self.timeouts.keep_alive, ends))
    }
}

pub(super) fn passage(upstream: &Upstream, carries: Carries, headers: &HeaderMap, body: Payload) -> Passage {
    Passage {
        carries,
        body,
        principal: Principal::of(headers.get(AUTHORIZATION)),
        deadline: Instant::now() + upstream.settings.timeouts.request,
        streams: check::accepts(headers).event_stream,
        askable: false,
        request: None,
        headers: headers.clone(),
    }
}
