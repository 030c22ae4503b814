//! The schema guard at work: what one upstream's servers say of their tools, and what is done about it.
//!
//! Owns the policy (`config::Schema`), verdicts kept by the list's bytes (`verdicts`), what is known of each tool for the calls that
//! follow (`known`), the log line once per change and the metrics (`report`), checks of arguments and results (`check`), and
//! looking into what passes between like pairs (`sieve`). Does not own judging (`schema`), nor how a list is written anew
//! (`translate`). Nothing here connects to anything.
//! Rules: A5.3, A5.4, A5.10; cases C62, C64, C65, C67; architecture section 4, "Schema guard".

mod check;
mod known;
mod report;
pub mod sieve;
mod verdicts;

use crate::config::{self, SchemaPolicy};
use crate::exchange::Principal;
use crate::schema::finding::short;
use crate::schema::sift::Sift;
use crate::schema::tool::Judged;
use crate::schema::{Bounds, Documents, Finding, Kind, Rules, Speaker, Weight, form, list};
use crate::telemetry::metrics::{CallValue, ListVerdict, UpstreamLimit, UpstreamMetrics};
use crate::wire::json::{self, Object, Span, UNBOUNDED, object, once};
use crate::wire::jsonrpc::{Request, string};
use check::{Checks, Schema};
use hyper::header::HeaderValue;
use known::Known;
use report::Reports;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::sync::Arc;
use verdicts::{Judgement, Verdicts};

/// One upstream's guard.
pub struct Guard {
    name: String,
    settings: config::Schema,
    bounds: Bounds,
    documents: Documents,
    verdicts: Verdicts,
    known: Known,
    reports: Reports,
    checks: Checks,
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

impl Denied {
    pub fn words(&self) -> &str {
        match self {
            Denied::Tool(words) | Denied::Value(words) => words,
        }
    }
}

impl Page {
    /// What a result of `tools/list` is, to a request that named a cursor or did not.
    pub fn of(request: &Request, text: &[u8], result: &Object) -> Self {
        let cursor = request.params.body().and_then(|body| body.object.first(&request.text, "cursor"));
        Self::from(cursor.is_some_and(|span| span.of(&request.text) != b"null"), text, result)
    }

    /// The same; `goes_on`: the request named a cursor.
    pub fn from(goes_on: bool, text: &[u8], result: &Object) -> Self {
        let more = result.first(text, "nextCursor").is_some_and(|span| span.of(text) != b"null");
        if goes_on || more { Page::Part } else { Page::Whole }
    }
}

impl Guard {
    pub fn new(settings: &config::Upstream, metrics: Arc<UpstreamMetrics>) -> Self {
        let (schema, limits) = (&settings.schema, &settings.limits);
        let documents = schema.documents.iter();
        let documents =
            Documents::new(documents.map(|document| (document.uri.as_str().into(), document.text.clone())));
        let bounds = Bounds {
            depth: schema.depth,
            subschemas: schema.subschemas,
            bytes: schema.bytes,
            references: schema.references,
            time: schema.time,
        };
        Self {
            name: settings.name.clone(),
            settings: schema.clone(),
            checks: Checks::new(&settings.name, schema, documents.clone(), metrics.clone()),
            bounds,
            documents,
            verdicts: Verdicts::new(schema.cache_bytes),
            known: Known::new(limits.catalogs, schema.cache_bytes),
            reports: Reports::new(limits.catalog_tools),
            metrics,
        }
    }

    fn rules(&self, speaker: Speaker) -> Rules<'_> {
        Rules { speaker, bounds: &self.bounds, documents: &self.documents }
    }

    /// Judges a list that passes, or knows it from before, and remembers what it says of each tool. `tools` is the array's span in
    /// `text`, which was scanned before; the verdict's spans count from the array's first byte.
    pub fn list(&self, scope: Scope, speaker: Speaker, text: &[u8], tools: Span, page: Page) -> Sift {
        let array = tools.of(text);
        let found = self.verdicts.find(speaker, array);
        self.metrics.schema_list(if found.is_some() { ListVerdict::Known } else { ListVerdict::Judged });
        let judgement = found.unwrap_or_else(|| {
            let verdict = list::judge(array, Span::new(0, array.len()), &self.rules(speaker));
            let judgement = Arc::new(Judgement::new(speaker, array, verdict, &self.metrics));
            // That it took too long may be the machine's fault: it is judged anew when it comes again.
            let findings = judgement.verdict.tools.iter().flat_map(|judged| &judged.findings);
            if findings.into_iter().all(|finding| finding.kind != Kind::Time) {
                self.verdicts.keep(&judgement);
            }
            judgement
        });
        let learned = self.known.learn(scope, &judgement, page);
        if learned.full {
            self.metrics.limit(UpstreamLimit::Catalogs);
        }
        if learned.news {
            self.reports.list(&self.name, &judgement.verdict.tools, self.leaves_out(), |kind| {
                self.metrics.schema_finding(kind);
            });
        }
        Sift { verdict: judgement.verdict.clone(), base: tools.start, drop: self.leaves_out() }
    }

    /// [`list`](Self::list) for a result of `tools/list`; `None` if it has no list of tools, or two.
    pub fn listed(
        &self,
        scope: Scope,
        speaker: Speaker,
        page: Page,
        text: &[u8],
        result: &Object,
    ) -> Option<Sift> {
        let tools = once(result, text, "tools")
            .filter(|span| json::Kind::of(span.of(text)) == Some(json::Kind::Array))?;
        Some(self.list(scope, speaker, text, tools, page))
    }

    /// Whether bad tools are left out.
    pub fn leaves_out(&self) -> bool {
        match self.settings.policy {
            SchemaPolicy::Drop => true,
            SchemaPolicy::Warn => false,
        }
    }

    /// Tells of what was found where a list was written anew.
    pub fn report(&self, scope: Scope, findings: &[Finding]) {
        self.known.note(scope, findings);
        self.tell(findings);
    }

    fn tell(&self, findings: &[Finding]) {
        for finding in findings {
            self.reports.one(&self.name, finding, self.leaves_out(), |kind| {
                self.metrics.schema_finding(kind);
            });
        }
    }

    /// Judges the form that a legacy server's `elicitation/create` asks for. `Err`: it is refused, in words for the server.
    pub fn question(&self, speaker: Speaker, asked: &Request) -> Result<(), String> {
        let schema = || asked.params.body()?.object.first(&asked.text, "requestedSchema");
        match schema().filter(|_| asked.method == "elicitation/create") {
            Some(schema) => self.form(speaker, &asked.text, schema, &asked.method),
            None => Ok(()),
        }
    }

    /// Judges the forms among the `inputRequests` of a modern server's `result`. `Err`: it is refused, in words for the client.
    pub fn inputs(&self, text: &[u8], result: &Object) -> Result<(), String> {
        let Some(all) = result.first(text, "inputRequests").and_then(|span| object(text, span, UNBOUNDED))
        else {
            return Ok(());
        };
        for member in &all.members {
            // Two of one name could be taken for either by two readers, so each is judged.
            let Some(entry) = object(text, member.value, UNBOUNDED) else { continue };
            let params = entry.members.iter().filter(|member| member.is(text, "params"));
            for params in params.filter_map(|member| object(text, member.value, UNBOUNDED)) {
                for schema in params.members.iter().filter(|member| member.is(text, "requestedSchema")) {
                    let name = member.name(text).unwrap_or_default();
                    self.form(Speaker::Modern, text, schema.value, &name)?;
                }
            }
        }
        Ok(())
    }

    fn form(&self, speaker: Speaker, text: &[u8], schema: Span, asks: &str) -> Result<(), String> {
        let findings = form::judge(text, schema, &self.rules(speaker));
        let Some(worst) = findings.iter().find(|finding| finding.kind.weight() == Weight::Bad) else {
            return Ok(());
        };
        let finding = Finding { tool: short(asks), ..worst.clone() };
        self.tell(std::slice::from_ref(&finding));
        if !self.leaves_out() {
            return Ok(());
        }
        self.metrics.schema_form_refused();
        Err(format!("the form's schema is not passed on: {finding}; {}", finding.kind.remedy()))
    }

    /// Whether a `tools/call` may be sent: its tool is not left out of the list, and its arguments fit where that is wanted.
    pub fn admit(&self, scope: Scope, request: &Request) -> Result<(), Denied> {
        let Some(name) = tool_called(request) else { return Ok(()) };
        let fact = self.known.find(scope, &name);
        let Some((fact, judged)) = fact.as_ref().and_then(|fact| Some((fact, fact.judged()?))) else {
            self.checks.unknown_tool(CallValue::Arguments);
            return Ok(());
        };
        if let Some(worst) = judged.worst() {
            if !self.leaves_out() {
                self.checks.unchecked(CallValue::Arguments);
                return Ok(());
            }
            self.metrics.schema_call_refused();
            let (name, remedy) = (short(&name), worst.kind.remedy());
            return Err(Denied::Tool(format!(
                "the tool {name:?} is left out of the list and cannot be called: {worst}; {remedy}"
            )));
        }
        let (Some(body), Some((text, dialect))) = (request.params.body(), fact.input()) else {
            return Ok(());
        };
        let schema = Schema { tool: &name, text: &text, dialect };
        self.checks.arguments(schema, &request.text, &body.object).map_err(Denied::Value)
    }

    /// Whether a `tools/call` should wait until its list has been read: what does not fit is refused, and its tool is not known.
    pub fn wants_list(&self, scope: Scope, request: &Request) -> bool {
        self.checks.enforces()
            && tool_called(request).is_some_and(|name| self.known.find(scope, &name).is_none())
    }

    /// Whether the result of this call is checked, so that it has to be whole.
    pub fn checks_result(&self, scope: Scope, request: &Request) -> bool {
        self.checks.checks(CallValue::Result)
            && tool_called(request)
                .and_then(|name| self.known.find(scope, &name))
                .is_some_and(|fact| fact.output().is_some())
    }

    /// Whether the result of this call may be passed on: its `structuredContent` fits where that is wanted. `result` is of `text`.
    pub fn result(
        &self,
        scope: Scope,
        request: &Request,
        text: &[u8],
        result: &Object,
    ) -> Result<(), Denied> {
        let Some(name) = tool_called(request).filter(|_| self.checks.checks(CallValue::Result)) else {
            return Ok(());
        };
        let Some(fact) = self.known.find(scope, &name) else {
            self.checks.unknown_tool(CallValue::Result);
            return Ok(());
        };
        let Some((schema, dialect)) = fact.output() else { return Ok(()) };
        if fact.judged().is_some_and(Judged::is_bad) {
            self.checks.unchecked(CallValue::Result);
            return Ok(());
        }
        let schema = Schema { tool: &name, text: &schema, dialect };
        self.checks.result(schema, text, result).map_err(Denied::Value)
    }

    /// How many tools the server has listed for `scope`, those that are left out among them: for `probe`.
    pub fn tools(&self, scope: Scope) -> usize {
        self.known.tools(scope)
    }

    /// What was found of the tools that `scope` was shown last, in their order: for `probe`.
    pub fn findings(&self, scope: Scope) -> Vec<Finding> {
        self.known.findings(scope)
    }
}

/// The tool that a `tools/call` names.
pub fn tool_called(request: &Request) -> Option<Cow<'_, str>> {
    let body = request.params.body().filter(|_| request.method == "tools/call")?;
    string(&request.text, once(&body.object, &request.text, "name")?)
}
