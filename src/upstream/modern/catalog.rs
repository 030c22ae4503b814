//! What is known of a modern server's tools, for the calls of legacy clients.
//!
//! A modern client sees a tool's schema and acts on it; for a legacy client the proxy does: the headers that repeat
//! arguments, and whether results are wrapped, both follow from the schema. Owns what was read of each tool, kept per principal
//! since lists may differ by authorization, bounded by `limits.catalogs` and `limits.catalog_tools`; learning it from lists that
//! pass by; and fetching the list where a call needs what is not known. Does not own what the facts mean
//! (`translate::legacy_client`). Rules: A5.10, A11.8, B6.1, B9.5; vectors D77, D78; case C67.

use super::super::flight::Flights;
use super::{Modern, Trouble};
use crate::exchange::{Call, Fault, FaultKind, Principal};
use crate::shutdown::Shutdown;
use crate::telemetry::metrics::{CatalogFetch, UpstreamLimit, UpstreamMetrics};
use crate::translate::legacy_client::envelope;
use crate::translate::legacy_client::initialize::Client;
use crate::translate::legacy_client::tools::{self, Tool};
use crate::wire::jsonrpc::{Id, Reply};
use dashmap::DashMap;
use hyper::HeaderMap;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// A tool that was not on a list which is no older than this does not make it fetched again.
const FRESH: Duration = Duration::from_secs(30);

/// Pages of one list at most.
const PAGES: usize = 256;

/// See the module.
pub(super) struct Catalog {
    principals: DashMap<Principal, Arc<Known>>,
    fetches: Flights<Principal, Result<(), Fault>>,
    /// Principals, and tools of each.
    most: usize,
    tools: usize,
    metrics: Arc<UpstreamMetrics>,
}

/// What one principal's list says.
struct Known {
    state: Mutex<State>,
}

struct State {
    tools: HashMap<Box<str>, Arc<Tool>>,
    /// When all of the list was read.
    whole: Option<Instant>,
    used: Instant,
}

impl Catalog {
    pub(super) fn new(most: usize, tools: usize, shutdown: Shutdown, metrics: Arc<UpstreamMetrics>) -> Self {
        Self { principals: DashMap::new(), fetches: Flights::new(shutdown), most, tools, metrics }
    }

    /// Takes in a list, or a page of one.
    pub(super) fn learn(&self, principal: Principal, listed: Vec<Tool>) {
        self.learn_for(principal, listed, None);
    }

    /// As [`learn`](Self::learn); the `wanted` tool takes the room of another, if it must.
    fn learn_for(&self, principal: Principal, listed: Vec<Tool>, wanted: Option<&str>) {
        let known = self.known(principal);
        let mut full = false;
        let mut state = known.lock();
        for tool in listed {
            if state.tools.len() >= self.tools && !state.tools.contains_key(&tool.name) {
                // What is not known is fetched when it is called.
                full = true;
                if wanted != Some(&*tool.name) {
                    continue;
                }
                if let Some(other) = state.tools.keys().next().cloned() {
                    state.tools.remove(&other);
                }
            }
            state.tools.insert(tool.name.clone(), Arc::new(tool));
        }
        drop(state);
        if full {
            self.metrics.limit(UpstreamLimit::CatalogTools);
        }
    }

    /// The server's list is not what it was.
    pub(super) fn forget(&self, principal: Principal) {
        self.principals.remove(&principal);
    }

    fn get(&self, principal: Principal, name: &str) -> Found {
        let Some(known) = self.principals.get(&principal).map(|known| known.clone()) else {
            return Found::Unknown;
        };
        let mut state = known.lock();
        state.used = Instant::now();
        match state.tools.get(name) {
            Some(tool) => Found::Tool(tool.clone()),
            // Where not all are kept, it may be on the list all the same.
            None if state.tools.len() < self.tools
                && state.whole.is_some_and(|read| read.elapsed() < FRESH) =>
            {
                Found::None
            }
            None => Found::Unknown,
        }
    }

    fn known(&self, principal: Principal) -> Arc<Known> {
        if let Some(known) = self.principals.get(&principal) {
            return known.clone();
        }
        self.make_room();
        let state = State { tools: HashMap::new(), whole: None, used: Instant::now() };
        self.principals
            .entry(principal)
            .or_insert_with(|| Arc::new(Known { state: Mutex::new(state) }))
            .clone()
    }

    /// The principal that has been quiet for longest makes room.
    fn make_room(&self) {
        if self.principals.len() < self.most {
            return;
        }
        let oldest = self.principals.iter().min_by_key(|entry| entry.lock().used).map(|entry| *entry.key());
        if let Some(oldest) = oldest {
            self.metrics.limit(UpstreamLimit::Catalogs);
            self.principals.remove(&oldest);
        }
    }
}

enum Found {
    Tool(Arc<Tool>),
    /// The list is known, and the tool is not on it.
    None,
    Unknown,
}

impl Known {
    /// Held for a look or an entry.
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Modern {
    /// The tool of this name, from a list that is fetched first where it must be. `None`: the server has no such tool, or
    /// its list cannot be had; the call itself will tell.
    pub(super) async fn tool(
        self: &Arc<Self>,
        call: &Call,
        client: &Client,
        name: &str,
    ) -> Option<Arc<Tool>> {
        match self.catalog.get(call.principal, name) {
            Found::Tool(tool) => Some(tool),
            Found::None => None,
            Found::Unknown => {
                Box::pin(self.read_tools(call, client, name, CatalogFetch::Unknown)).await;
                match self.catalog.get(call.principal, name) {
                    Found::Tool(tool) => Some(tool),
                    Found::None | Found::Unknown => None,
                }
            }
        }
    }

    /// As [`tool`](Self::tool), from a list that is fetched now: what was known of it is wrong (A11.8).
    pub(super) async fn tool_again(
        self: &Arc<Self>,
        call: &Call,
        client: &Client,
        name: &str,
    ) -> Option<Arc<Tool>> {
        self.catalog.forget(call.principal);
        Box::pin(self.read_tools(call, client, name, CatalogFetch::Mismatch)).await;
        match self.catalog.get(call.principal, name) {
            Found::Tool(tool) => Some(tool),
            Found::None | Found::Unknown => None,
        }
    }

    /// One reading for all who wait for it.
    async fn read_tools(self: &Arc<Self>, call: &Call, client: &Client, name: &str, why: CatalogFetch) {
        let run = || {
            let (modern, headers, client) = (self.clone(), call.headers.clone(), client.clone());
            let (principal, wanted) = (call.principal, name.to_owned());
            modern.shared.metrics.catalog_fetch(why);
            async move { modern.read_pages(principal, &headers, &client, &wanted).await }
        };
        let fault = match timeout(
            self.shared.settings.timeouts.initialize,
            self.catalog.fetches.join(call.principal, run),
        )
        .await
        {
            Ok(Some(Err(fault))) => fault,
            Ok(Some(Ok(())) | None) => return,
            // It goes on for those who come later.
            Err(_) => Fault::new(FaultKind::Timeout, "it takes longer than timeouts.initialize"),
        };
        tracing::warn!(
            upstream = %self.shared.settings.name,
            %fault,
            "tools/list could not be read; calls go on without what it says"
        );
    }

    async fn read_pages(
        &self,
        principal: Principal,
        headers: &HeaderMap,
        client: &Client,
        wanted: &str,
    ) -> Result<(), Fault> {
        let client = client.clone().silent();
        let mut params = String::new();
        for _ in 0..PAGES {
            let number = self.shared.next_number();
            let message = envelope::own("tools/list", &params, &client, number);
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
            let listed = tools::list(&response, body, &Id::number(number), client.revision)
                .map_err(|fault| Fault::bad_gateway(fault.to_string()))?;
            self.catalog.learn_for(principal, listed.tools, Some(wanted));
            match listed.cursor {
                Some(cursor) => params = format!("\"cursor\":{}", String::from_utf8_lossy(&cursor)),
                None => {
                    self.catalog.known(principal).lock().whole = Some(Instant::now());
                    return Ok(());
                }
            }
        }
        Err(Fault::new(FaultKind::BadGateway, format!("tools/list has more than {PAGES} pages")))
    }
}
