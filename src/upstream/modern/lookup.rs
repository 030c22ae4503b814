//! Looking up the tool that a legacy client calls, in a list that is read first where it must be.
//!
//! Owns reading `tools/list`, once for all calls of a principal that wait for it, and what such a call may take from a reading
//! that another has begun. Does not own what is kept of a list (`catalog`). Rules: A11.8, B6.1, B9.5; vector D77; case C67.

use super::super::flight::Flights;
use super::super::guard::{Page, Scope, tool_called};
use super::catalog::Found;
use super::{Modern, Trouble};
use crate::exchange::{Call, Fault, FaultKind, Principal};
use crate::schema::Speaker;
use crate::schema::sift::Sift;
use crate::shutdown::Shutdown;
use crate::telemetry::metrics::CatalogFetch;
use crate::translate::legacy_client::envelope;
use crate::translate::legacy_client::initialize::Client;
use crate::translate::legacy_client::notify::Change;
use crate::translate::legacy_client::tools::{self, Tool};
use crate::wire::json::Object;
use crate::wire::jsonrpc::{Id, Reply};
use bytes::Bytes;
use dashmap::DashMap;
use hyper::HeaderMap;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::time::{Instant, timeout};

/// Pages of one list at most.
const PAGES: usize = 256;

type Tools = HashMap<Box<str>, Arc<Tool>>;

/// The readings that are under way.
pub(super) struct Lookups {
    flights: Flights<Principal, Arc<Read>>,
    /// What calls look for, and how many each.
    wanted: DashMap<Principal, HashMap<Box<str>, usize>>,
}

/// A list that was read, for those who waited for it.
struct Read {
    began: Instant,
    /// What they wanted, as far as it was on the list.
    found: Tools,
    /// The list did not change meanwhile.
    same: bool,
    /// It was read to its end.
    whole: bool,
}

/// What the call that was refused went by.
#[derive(Clone, Copy)]
pub(super) struct Mismatch<'a> {
    pub(super) tool: Option<&'a Arc<Tool>>,
    pub(super) sent: Instant,
}

impl Lookups {
    pub(super) fn new(shutdown: Shutdown) -> Self {
        Self { flights: Flights::new(shutdown), wanted: DashMap::new() }
    }

    fn is_wanted(&self, principal: Principal, name: &str) -> bool {
        self.wanted.get(&principal).is_some_and(|names| names.contains_key(name))
    }
}

/// A tool that a call waits for.
struct Wanting<'a> {
    lookups: &'a Lookups,
    principal: Principal,
    name: &'a str,
}

impl<'a> Wanting<'a> {
    fn new(lookups: &'a Lookups, principal: Principal, name: &'a str) -> Self {
        *lookups.wanted.entry(principal).or_default().entry(name.into()).or_default() += 1;
        Self { lookups, principal, name }
    }
}

impl Drop for Wanting<'_> {
    fn drop(&mut self) {
        if let Some(mut names) = self.lookups.wanted.get_mut(&self.principal)
            && let Some(count) = names.get_mut(self.name)
        {
            *count -= 1;
            if *count == 0 {
                names.remove(self.name);
            }
        }
        self.lookups.wanted.remove_if(&self.principal, |_, names| names.is_empty());
    }
}

impl Modern {
    /// Sees to it that the tool of a modern client's call is known, as far as the server's list says.
    pub async fn look_at_tool(self: &Arc<Self>, call: &Call) {
        let Some(name) = tool_called(&call.request) else { return };
        let client = Client::of_modern(&call.request, self.shared.limits);
        let _ = self.tool(call, &client, &name).await;
    }

    /// The tool of this name. `None`: the server has no such tool, or its list cannot be had; the call itself will tell.
    pub(super) async fn tool(
        self: &Arc<Self>,
        call: &Call,
        client: &Client,
        name: &str,
    ) -> Option<Arc<Tool>> {
        match self.catalog.get(call.principal, name) {
            Found::Tool(tool) => Some(tool),
            Found::None => None,
            Found::Unknown => Box::pin(self.look_up(call, client, name, None)).await,
        }
    }

    /// As [`tool`](Self::tool), from a list as it is now: what was known of it is wrong (A11.8).
    pub(super) async fn tool_again(
        self: &Arc<Self>,
        call: &Call,
        client: &Client,
        name: &str,
        mismatch: Mismatch<'_>,
    ) -> Option<Arc<Tool>> {
        // Another call may have found out.
        if let Some(tool) = self.catalog.seen_after(call.principal, name, mismatch.sent)
            && mismatch.tool != Some(&tool)
        {
            return Some(tool);
        }
        self.catalog.doubt(call.principal, name);
        if let Some(cache) = &self.cache {
            cache.changed(call.principal, &Change::Tools);
        }
        Box::pin(self.look_up(call, client, name, Some(mismatch))).await
    }

    /// Joins the reading that is under way, or begins one. One that had begun before this call may have passed the tool by
    /// already, or be of the list as it was; then the next is awaited.
    async fn look_up(
        self: &Arc<Self>,
        call: &Call,
        client: &Client,
        name: &str,
        mismatch: Option<Mismatch<'_>>,
    ) -> Option<Arc<Tool>> {
        let now = Instant::now();
        let _wanting = Wanting::new(&self.lookups, call.principal, name);
        let why = if mismatch.is_some() { CatalogFetch::Mismatch } else { CatalogFetch::Unknown };
        let mut last = None;
        for _ in 0..2 {
            let Some(read) = self.read_tools(call, client, why).await else { break };
            last = read.found.get(name).cloned();
            if !read.same {
                continue;
            }
            // What another has begun because of a refusal may have come before this one.
            let own = read.began >= now;
            let settled = match (&last, mismatch) {
                (Some(tool), Some(before)) => own || read.began > before.sent && before.tool != Some(tool),
                (None, Some(_)) => own,
                (Some(_), None) => true,
                (None, None) => match self.catalog.get(call.principal, name) {
                    Found::Tool(tool) => return Some(tool),
                    Found::None => return None,
                    Found::Unknown => own || !read.whole,
                },
            };
            if settled {
                return last;
            }
        }
        match self.catalog.get(call.principal, name) {
            Found::Tool(tool) => Some(tool),
            Found::None | Found::Unknown => last,
        }
    }

    /// One reading for all who wait for it.
    async fn read_tools(
        self: &Arc<Self>,
        call: &Call,
        client: &Client,
        why: CatalogFetch,
    ) -> Option<Arc<Read>> {
        let run = || {
            let (modern, headers, client) = (self.clone(), call.headers.clone(), client.clone());
            let principal = call.principal;
            modern.shared.metrics.catalog_fetch(why);
            async move { Arc::new(modern.read_list(principal, &headers, &client).await) }
        };
        let limit = self.shared.settings.timeouts.initialize;
        timeout(limit, self.lookups.flights.join(call.principal, run)).await.unwrap_or_else(|_| {
            // It goes on, for the time that a request may take, for those who come later.
            let fault = Fault::new(FaultKind::Timeout, "it takes longer than timeouts.initialize");
            self.blind(&fault);
            None
        })
    }

    fn blind(&self, fault: &Fault) {
        let upstream = &self.shared.settings.name;
        tracing::warn!(%upstream, %fault, "tools/list could not be read; calls go on without what it says");
    }

    async fn read_list(&self, principal: Principal, headers: &HeaderMap, client: &Client) -> Read {
        let reading = self.catalog.begin(principal);
        let mut found = Tools::new();
        let pages = async {
            let client = client.clone().silent();
            let mut cursor = None;
            for _ in 0..PAGES {
                let (tools, next) = self.read_page(principal, headers, &client, cursor).await?;
                let wanted = |name: &str| self.lookups.is_wanted(principal, name);
                self.catalog.page(&reading, &tools, wanted);
                let wanted = tools.into_iter().filter(|tool| wanted(&tool.name));
                found.extend(wanted.map(|tool| (tool.name.clone(), tool)));
                if next.is_none() {
                    return Ok(());
                }
                cursor = next;
            }
            Err(Fault::new(FaultKind::BadGateway, format!("tools/list has more than {PAGES} pages")))
        };
        let limit = self.shared.settings.timeouts.request;
        let ended = timeout(limit, pages)
            .await
            .unwrap_or_else(|_| Err(Fault::new(FaultKind::Timeout, "it takes longer than timeouts.request")));
        if let Err(fault) = &ended {
            self.blind(fault);
        }
        let whole = ended.is_ok();
        let same = self.catalog.end(&reading, whole);
        Read { began: reading.began, found, same, whole }
    }

    /// The guard's verdict on a list; none of its tools stays if it is none.
    pub(super) fn sift(&self, principal: Principal, page: Page, text: &[u8], result: &Object) -> Sift {
        let scope = Scope::of(principal, None);
        // What is no list says nothing of the tools, and nothing is forgotten for it.
        self.shared.guard.listed(scope, Speaker::Modern, page, text, result).unwrap_or_default()
    }

    /// The tools of one page, and where the next begins.
    async fn read_page(
        &self,
        principal: Principal,
        headers: &HeaderMap,
        client: &Client,
        cursor: Option<Bytes>,
    ) -> Result<(Vec<Arc<Tool>>, Option<Bytes>), Fault> {
        let params = cursor.as_ref().map(|cursor| format!("\"cursor\":{}", String::from_utf8_lossy(cursor)));
        let number = self.shared.next_number();
        let message = envelope::own("tools/list", &params.unwrap_or_default(), client, number);
        let response = match self.ask(headers, "tools/list", number, message).await {
            Ok(response) => response,
            Err(Trouble::Fault(fault) | Trouble::OtherEra(fault)) => return Err(fault),
        };
        let body = match &response.reply {
            Reply::Result(body) => body,
            Reply::Error(error) => {
                let told = error.brief(&response.text);
                return Err(Fault::bad_gateway(format!("tools/list: {told} ({})", error.code)));
            }
        };
        let page = Page::from(cursor.is_some(), &response.text, &body.object);
        let sift = self.sift(principal, page, &response.text, &body.object);
        let listed = tools::list(&response, body, &Id::number(number), client.revision, &sift)
            .map_err(|fault| Fault::bad_gateway(fault.to_string()))?;
        Ok((listed.tools.into_iter().map(Arc::new).collect(), listed.cursor))
    }
}
