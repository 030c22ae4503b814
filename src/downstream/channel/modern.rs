//! A modern request on its way to the front and back.
//!
//! Owns that letting go of the response is the cancellation, for a listen as for a call, after which nothing more is written.
//! Each listen has its own stream, so several stand beside each other (B17). Rules: A2.2, A14.7, B17.

use super::deliver::{Awaited, words};
use super::flying::{Flight, Kind};
use super::messages::{Broken, Messages};
use super::{Brought, Channel, Counted};
use crate::downstream::legacy::Place;
use crate::wire::jsonrpc::{Notification, Request, code};
use crate::wire::method::Method;
use crate::wire::version::Era;
use futures_util::future::{BoxFuture, FutureExt};
use hyper::HeaderMap;
use std::sync::atomic::Ordering;

impl Channel {
    pub(super) fn modern<'a>(&'a self, request: Request, brought: Brought) -> BoxFuture<'a, ()> {
        let Some(flight) = self.flying.enter(&request.id, Kind::Request(Era::Modern)) else {
            return self.duplicate(&request.id);
        };
        let cancelled = flight.token();
        let Brought { headers, place } = brought;
        let waiting = self.waiting(place);
        async move {
            let run = async {
                // A subscription is none of the requests that run; the front bounds those (limits.streams).
                let _place = match Method::of(&request.method) {
                    Method::Listen => None,
                    _ => self.places.acquire().await.ok(),
                };
                drop(waiting);
                self.ask(flight, request, headers).await;
            };
            // Letting go of a response is how a modern request is cancelled.
            tokio::select! {
                biased;
                () = cancelled.cancelled() => {}
                () = run => {}
            }
        }
        .boxed()
    }

    async fn ask(&self, flight: Flight<'_>, request: Request, headers: Option<HeaderMap>) {
        let posted = self.heads.modern(&request, headers);
        drop(request);
        let response = self.front.handle(posted).await;
        let mut messages = Messages::new(response, self.settings().limits.message_bytes);
        let mut awaited = Awaited::one(Era::Modern, flight);
        let broken = loop {
            match messages.next().await {
                Ok(Some(text)) => self.deliver(&mut awaited, text).await,
                Ok(None) => break None,
                Err(broken) => break Some(broken),
            }
            if awaited.is_over() {
                // Nothing may follow it.
                return;
            }
        };
        let told = match broken {
            Some(broken) => broken.to_string(),
            None if messages.is_stream() => Broken::Off.to_string(),
            None => words(messages.status),
        };
        self.fail(awaited, code::INTERNAL_ERROR, &told).await;
    }

    /// A notification that no legacy session is there for.
    pub(super) fn modern_notice<'a>(
        &'a self,
        told: Notification,
        Brought { headers, place }: Brought,
    ) -> BoxFuture<'a, ()> {
        let small = self.small();
        async move {
            let _small = small;
            drop(place);
            self.post(self.heads.modern_notice(told, headers)).await;
        }
        .boxed()
    }

    /// Counts what waits for a place among this client's requests that run. The one that it has among all is let go with it: as
    /// a request of its own it takes one again.
    pub(super) fn waiting(&self, place: Place) -> Counted<'_> {
        self.waiting.fetch_add(1, Ordering::AcqRel);
        Counted { count: &self.waiting, _place: place }
    }

    /// Counts what needs none.
    pub(super) fn small(&self) -> Counted<'_> {
        self.small.fetch_add(1, Ordering::AcqRel);
        Counted { count: &self.small, _place: None }
    }
}
