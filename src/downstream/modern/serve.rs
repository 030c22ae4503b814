//! One message of a modern client, from its checks to the head of the response.
//!
//! Owns the order of the steps after the body was read: checks, form of the answer, start, how long the response's head is
//! held back (B11), and passing a modern server's answer on. Rules: A12.5-A12.10, A2.11; cases C21, C25.

use super::check::{self, Refusal};
use super::respond;
use crate::downstream::body::FrontBody;
use crate::downstream::ends::Ends;
use crate::downstream::front::{Inner, name};
use crate::downstream::legacy::Place;
use crate::downstream::record::Record;
use crate::exchange::{Binding, Call, Fault, FaultKind, Outcome, Principal, Step};
use crate::relay::{Exchange, Reply};
use crate::telemetry::metrics::{Ended, What};
use crate::translate::notify;
use crate::upstream::{Upstream, UpstreamBody};
use crate::wire::headers::Accepts;
use crate::wire::jsonrpc::{Id, Notification, Request, code};
use crate::wire::method::Method;
use crate::wire::version::Era;
use bytes::Bytes;
use hyper::header::{ACCEPT, AUTHORIZATION, HeaderValue};
use hyper::{HeaderMap, Response, StatusCode};
use std::pin::pin;
use std::sync::Arc;
use tokio::time::{Instant, sleep, timeout_at};

impl Inner {
    pub(in crate::downstream) async fn request(
        &self,
        upstream: &Arc<Upstream>,
        Sent { headers, binding }: Sent,
        request: Request,
        record: &mut Record,
        place: &mut Place,
    ) -> Result<Response<FrontBody>, Refusal> {
        let id = request.id.clone();
        let checked = check::request(&headers, &request, binding);
        let method = checked.as_ref().map_or_else(|_| Method::of(&request.method), |c| c.method);
        let era = checked.as_ref().map_or_else(check::Refusal::era, |_| Era::Modern);
        record.about(What::Method(method), era, || name(&request));
        checked?;
        let accepts = Accepts::parse(headers.get_all(ACCEPT).iter().map(HeaderValue::as_bytes));
        if accepts.nothing() {
            let text = "the Accept header admits neither application/json nor text/event-stream";
            return Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, code::INVALID_REQUEST, "accept", text)
                .with_id(Some(id)));
        }
        if method == Method::Listen && !accepts.event_stream {
            let text = "subscriptions/listen is answered by an event stream; the Accept header must admit text/event-stream";
            return Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, code::INVALID_REQUEST, "accept", text)
                .with_id(Some(id)));
        }
        if method == Method::Listen {
            // From here on it counts among those and not among the requests in work.
            *place = Some(self.stream_place().map_err(|refusal| refusal.with_id(Some(id)))?);
        }
        let call = Arc::new(Call {
            request,
            method,
            principal: Principal::of(headers.get(AUTHORIZATION)),
            headers,
            binding,
            deadline: Instant::now() + upstream.settings.timeouts.request,
            meter: record.meter(),
        });
        Ok(self.run(upstream, call, accepts, record).await)
    }

    /// Runs a call up to the head of its response.
    async fn run(
        &self,
        upstream: &Arc<Upstream>,
        call: Arc<Call>,
        accepts: Accepts,
        record: &mut Record,
    ) -> Response<FrontBody> {
        let (id, deadline, method) = (call.id().clone(), call.deadline, call.method);
        let streams = accepts.event_stream;
        let mut reply = self.in_time(deadline, pin!(self.relay.start(upstream, call, streams))).await;
        let mut replanned = false;
        loop {
            let mut exchange = match reply {
                Err(fault) => return respond::fault(&fault, &id, record),
                Ok(Reply::Done(outcome)) => return respond::outcome(outcome, &id, accepts, record),
                Ok(Reply::Relayed(response)) => return self.relayed(response, method, id, deadline, record),
                Ok(Reply::Exchange(exchange)) => exchange,
            };
            match self.first(&mut exchange, accepts).await {
                First::Passing(first) => {
                    let receiver = exchange.detach();
                    return respond::passing(receiver, first, Ends::cut(self.shutdown.clone()));
                }
                First::Stream(first) => {
                    let ends = Ends::cut(self.shutdown.clone());
                    return respond::stream(FrontBody::stream(
                        exchange.detach(),
                        id,
                        first,
                        self.timeouts.keep_alive,
                        ends,
                    ));
                }
                // A second time only where nothing of the call has run, and once at most.
                First::Outcome(Outcome::Replan(replan)) if !replanned => {
                    replanned = true;
                    let restart = Box::pin(self.relay.restart(upstream, *replan, streams));
                    reply = self.in_time(deadline, restart).await;
                }
                First::Outcome(outcome) => return respond::outcome(outcome, &id, accepts, record),
            }
        }
    }

    /// What the response begins with (B11).
    async fn first(&self, exchange: &mut Exchange, accepts: Accepts) -> First {
        let mut hold = pin!(sleep(self.timeouts.hold));
        loop {
            let step = tokio::select! {
                biased;
                step = exchange.next() => step,
                () = self.shutdown.cut_short() => return First::Outcome(Outcome::Fault(Fault::cut_short())),
                () = &mut hold, if accepts.event_stream => return First::Stream(None),
            };
            match step {
                Some(Step::Outcome(outcome)) => return First::Outcome(outcome),
                // Its beginning: from here on nothing else can come.
                Some(Step::Piece(piece)) if accepts.json => return First::Passing(piece),
                Some(step @ (Step::Event(_) | Step::Piece(_))) if accepts.event_stream => {
                    return First::Stream(Some(step));
                }
                // A client that takes only JSON gets only the outcome (C25).
                Some(Step::Event(_) | Step::Piece(_)) => {}
                None => {
                    return First::Outcome(Outcome::Fault(Fault::lost()));
                }
            }
        }
    }

    fn relayed(
        &self,
        response: Response<UpstreamBody>,
        method: Method,
        id: Id,
        deadline: Instant,
        record: &mut Record,
    ) -> Response<FrontBody> {
        record.outcome(if response.status().is_success() { Ended::Relayed } else { Ended::RelayedError });
        // A subscription lives until either side ends it, or the proxy drains; every other answer is due in time.
        let ends = match method {
            Method::Listen => Ends::drain(self.shutdown.clone(), &id),
            _ if response.body().is_of_channel() => {
                Ends::answered_at(deadline, self.shutdown.clone(), vec![id])
            }
            _ => Ends::at(deadline, self.shutdown.clone()),
        };
        respond::relayed(response, self.timeouts.keep_alive, ends)
    }

    pub(in crate::downstream) async fn notification(
        &self,
        upstream: &Arc<Upstream>,
        headers: HeaderMap,
        notification: Notification,
        record: &mut Record,
    ) -> Result<Response<FrontBody>, Refusal> {
        let checked = check::notification(&headers, &notification.params);
        let era = checked.as_ref().map_or_else(check::Refusal::era, |()| Era::Modern);
        record.about(What::Notification, era, || None);
        checked?;
        if Method::of(&notification.method) != Method::Custom {
            // Without an id there is nobody to answer, and a server may run it all the same (C21).
            let text =
                format!("{} is a request and needs an \"id\"", Method::of(&notification.method).label());
            return Err(Refusal::new(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, "no-id", text));
        }
        if notify::Kind::of(&notification.method) == notify::Kind::Custom {
            let principal = Principal::of(headers.get(AUTHORIZATION));
            let deadline = Instant::now() + upstream.settings.timeouts.request;
            let passed =
                self.relay.notify(upstream, notification, headers, principal, deadline, record.meter());
            let passed = timeout_at(deadline, passed).await.unwrap_or_else(|_| {
                Err(Fault::new(FaultKind::Timeout, "the upstream server did not answer in time"))
            });
            if let Err(fault) = passed {
                record.fault(&fault);
                // There is no id to answer under.
                let reason = fault.kind.ended().label();
                let told = Refusal::new(StatusCode::BAD_GATEWAY, code::INTERNAL_ERROR, reason, fault.text);
                return Ok(respond::refusal(&told));
            }
        }
        record.outcome(Ended::Accepted);
        let mut response = Response::new(FrontBody::whole(Default::default()));
        *response.status_mut() = StatusCode::ACCEPTED;
        Ok(response)
    }
}

/// How a request was sent.
pub(in crate::downstream) struct Sent {
    pub(in crate::downstream) headers: HeaderMap,
    pub(in crate::downstream) binding: Binding,
}

enum First {
    Outcome(Outcome),
    /// A result that passes; what has come of it.
    Passing(Bytes),
    /// What has come.
    Stream(Option<Step>),
}
