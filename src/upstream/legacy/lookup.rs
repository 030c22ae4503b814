//! Reading a legacy server's list of tools before a call whose values are to fit its tool's schemas, where the tool is not known.
//!
//! Owns `tools/list` in the call's session, all pages, once for all calls of a principal that wait for it, and not again at once
//! where the tool is not on it. Does not own what is kept of the list, nor what follows from it (`guard`). A list that cannot be
//! had is no reason to refuse the call.

use super::super::Shared;
use super::super::flight::Flights;
use super::super::guard::{Denied, Page, Scope};
use super::Legacy;
use super::ask::Asker;
use super::pool::Lease;
use crate::exchange::{Call, Fault, FaultKind, Outcome, Principal};
use crate::schema::Speaker;
use crate::translate::result::tool_error;
use crate::wire::json::once;
use crate::wire::jsonrpc::Reply;
use crate::wire::method::Method;
use crate::wire::payload::Payload;
use dashmap::DashMap;
use hyper::HeaderMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// Pages of one list at most.
const PAGES: usize = 256;

/// A tool that was not on a list which is no older than this does not make it read again.
const FRESH: Duration = Duration::from_secs(30);

/// A list that could not be had is not asked for again for so long.
const FAILED: Duration = Duration::from_secs(1);

/// See the module.
pub(super) struct Lookups {
    flights: Flights<Principal, ()>,
    /// Until when a principal's list is not read again.
    until: DashMap<Principal, Instant>,
    /// Principals.
    most: usize,
}

impl Lookups {
    pub(super) fn new(shared: &Shared) -> Self {
        let flights = Flights::new(shared.shutdown.clone());
        Self { flights, until: DashMap::new(), most: shared.settings.limits.catalogs }
    }

    fn is_settled(&self, principal: Principal) -> bool {
        self.until.get(&principal).is_some_and(|until| *until > Instant::now())
    }

    fn settle(&self, principal: Principal, time: Duration) {
        let now = Instant::now();
        if self.until.len() >= self.most {
            self.until.retain(|_, until| *until > now);
        }
        if self.until.len() < self.most {
            self.until.insert(principal, now + time);
        }
    }
}

/// Sees to it that the tool of the call is known, if that is wanted. An outcome if the call is not to be sent.
pub(super) async fn settle(legacy: &Arc<Legacy>, lease: &Lease, call: &Call) -> Option<Outcome> {
    let shared = &legacy.shared;
    let scope = Scope::of(call.principal, None);
    if call.method != Method::ToolsCall || !shared.guard.wants_list(scope, &call.request) {
        return None;
    }
    if !legacy.lookups.is_settled(call.principal) && lease.session().initialized.has("tools", shared.limits) {
        Box::pin(read(legacy, lease, call)).await;
    }
    match shared.guard.admit(scope, &call.request) {
        Ok(()) => None,
        Err(Denied::Tool(words)) => Some(Outcome::Fault(Fault::new(FaultKind::InvalidParams, words))),
        Err(Denied::Value(words)) => {
            let info = &lease.session().initialized.server_info;
            Some(Outcome::Result(tool_error(call.id(), &words, Some(info))))
        }
    }
}

/// One reading for all who wait for it.
async fn read(legacy: &Arc<Legacy>, lease: &Lease, call: &Call) {
    let run = || {
        let (legacy, lease) = (legacy.clone(), lease.beside());
        let (principal, headers) = (call.principal, call.headers.clone());
        async move {
            let limit = legacy.shared.settings.timeouts.request;
            let all = timeout(limit, pages(&legacy, &lease, principal, &headers)).await == Ok(true);
            if !all {
                let upstream = &legacy.shared.settings.name;
                tracing::warn!(%upstream, "tools/list could not be read; calls go on unchecked");
            }
            legacy.lookups.settle(principal, if all { FRESH } else { FAILED });
        }
    };
    // It goes on for those who come later.
    let limit = legacy.shared.settings.timeouts.initialize;
    let _ = timeout(limit, legacy.lookups.flights.join(call.principal, run)).await;
}

/// Whether all of the list was read.
async fn pages(legacy: &Arc<Legacy>, lease: &Lease, principal: Principal, headers: &HeaderMap) -> bool {
    let (shared, session) = (&legacy.shared, lease.session());
    let asker = Asker { legacy, session, principal, headers };
    let (scope, speaker) = (Scope::of(principal, None), Speaker::Legacy(Some(session.initialized.revision)));
    let mut cursor = None;
    for _ in 0..PAGES {
        let number = shared.next_number();
        let params = cursor.as_deref().map(|cursor| format!(r#"{{"cursor":{cursor}}}"#));
        let params = params.unwrap_or_else(|| "{}".to_owned());
        let message = format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"tools/list","params":{params}}}"#);
        let limits = shared.limits_of(Method::ToolsList);
        let Ok(response) = asker.ask_for(number, Payload::from(message), limits).await else { return false };
        let (text, Reply::Result(body)) = (&response.text, &response.reply) else { return false };
        let Some(tools) = once(&body.object, text, "tools") else { return false };
        let next = body.object.first(text, "nextCursor").map(|span| span.of(text));
        let next =
            next.filter(|next| *next != b"null").map(|next| String::from_utf8_lossy(next).into_owned());
        let page = if cursor.is_none() && next.is_none() { Page::Whole } else { Page::Part };
        shared.guard.list(scope, speaker, text, tools, page);
        match next {
            Some(next) => cursor = Some(next),
            None => return true,
        }
    }
    false
}
