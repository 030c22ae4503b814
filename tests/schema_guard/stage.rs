//! A proxy before one server of either era whose tools a test may change at any time, and a client of either era before it.
//!
//! Owns the setting and what is looked at in it: the list to the byte, calls that are refused or go through, metrics. Does not
//! own what is expected (`case` has the tables' part).

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::value::RawValue;

use crate::support::{
    Ask, Era, LegacyServer, ModernServer, Net, Party, Proxy, Reply, Said, Seen, Transport, Upstream, Value,
    modern, rpc,
};

pub(crate) const LATEST: Era = Era::Legacy("2025-11-25");
/// Every pair of eras: client, server.
pub(crate) const PAIRS: [(Era, Era); 4] =
    [(Era::Modern, Era::Modern), (Era::Modern, LATEST), (LATEST, Era::Modern), (LATEST, LATEST)];

pub(crate) const FINDINGS: &str = "mcp_janus_schema_findings_total";
pub(crate) const REFUSED: &str = "mcp_janus_schema_calls_refused_total";
pub(crate) const CHECKS: &str = "mcp_janus_schema_checks_total";
pub(crate) const FORMS_REFUSED: &str = "mcp_janus_schema_forms_refused_total";

/// Client and server, each with its transport.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cell {
    pub(crate) client: Era,
    pub(crate) from: Transport,
    pub(crate) server: Era,
    pub(crate) to: Transport,
}

impl Cell {
    /// Over Streamable HTTP on both sides.
    pub(crate) fn http((client, server): (Era, Era)) -> Self {
        Self { client, from: Transport::Http, server, to: Transport::Http }
    }

    pub(crate) fn is_like(self) -> bool {
        (self.client == Era::Modern) == (self.server == Era::Modern)
    }
}

/// What the server says of its tools, and what a call of any is answered.
#[derive(Clone, Default)]
pub(crate) struct Tools(Arc<Script>);

#[derive(Default)]
struct Script {
    /// Tools of each page, as raw JSON without brackets.
    pages: Mutex<Vec<String>>,
    /// The same for those who come with this token; one page.
    of_token: Mutex<HashMap<String, String>>,
    /// Members of a call's result.
    called: Mutex<String>,
}

impl Tools {
    pub(crate) fn new(list: &str) -> Self {
        let tools = Self::default();
        tools.set(list);
        tools.answers(r#""content":[{"type":"text","text":"done"}]"#);
        tools
    }

    /// From now on its tools are these.
    pub(crate) fn set(&self, list: &str) {
        self.pages(&[list]);
    }

    pub(crate) fn pages(&self, pages: &[&str]) {
        *self.0.pages.lock().unwrap() = pages.iter().map(|page| (*page).to_owned()).collect();
    }

    pub(crate) fn of_token(&self, token: &str, list: &str) {
        self.0.of_token.lock().unwrap().insert(format!("Bearer {token}"), list.to_owned());
    }

    /// From now on a call's result has these members.
    pub(crate) fn answers(&self, members: &str) {
        members.clone_into(&mut self.0.called.lock().unwrap());
    }

    pub(crate) fn called(&self) -> String {
        self.0.called.lock().unwrap().clone()
    }

    /// The members of the list that this request is answered; cursors are the numbers of pages.
    pub(crate) fn members(&self, seen: &Seen) -> String {
        let token = seen.header("authorization").unwrap_or_default();
        if let Some(own) = self.0.of_token.lock().unwrap().get(&token) {
            return format!(r#""tools":[{own}]"#);
        }
        let pages = self.0.pages.lock().unwrap();
        let at = seen.json()["params"]["cursor"].as_str().map_or(0, |cursor| cursor.parse().expect("a page"));
        let next =
            if at + 1 < pages.len() { format!(r#","nextCursor":"{}""#, at + 1) } else { String::new() };
        format!(r#""tools":[{}]{next}"#, pages[at])
    }

    pub(crate) fn of_modern(&self, server: ModernServer) -> ModernServer {
        let (list, call) = (self.clone(), self.clone());
        server
            .on("tools/list", move |seen, reply: Reply| {
                let result = modern::complete("tools/list", &list.members(&seen));
                async move { reply.result(&seen, &result).await }
            })
            .on("tools/call", move |seen, reply: Reply| {
                let result = modern::complete("tools/call", &call.called());
                async move { reply.result(&seen, &result).await }
            })
    }

    pub(crate) fn of_legacy(&self, server: LegacyServer) -> LegacyServer {
        let (list, call) = (self.clone(), self.clone());
        server
            .on("tools/list", move |seen, reply: Reply| {
                let result = format!("{{{}}}", list.members(&seen));
                async move { reply.result(&seen, &result).await }
            })
            .on("tools/call", move |seen, reply: Reply| {
                let result = format!("{{{}}}", call.called());
                async move { reply.result(&seen, &result).await }
            })
    }
}

pub(crate) struct Stage {
    pub(crate) cell: Cell,
    pub(crate) net: Net,
    pub(crate) proxy: Arc<Proxy>,
    pub(crate) up: Upstream,
    pub(crate) party: Party,
    pub(crate) tools: Tools,
    ids: AtomicUsize,
}

impl Stage {
    /// Before a server with these tools, with these lines of `[upstream.up.schema]`.
    pub(crate) async fn set(cell: Cell, list: &str, schema: &str) -> Self {
        Self::with(cell, list, "", "", schema).await
    }

    /// With lines before the upstream's section, and more lines in it.
    pub(crate) async fn with(cell: Cell, list: &str, front: &str, lines: &str, schema: &str) -> Self {
        let (net, tools) = (Net::new(), Tools::new(list));
        let up = start(cell, &net, &tools);
        let proxy = Arc::new(Proxy::configured(&net, &toml(cell, front, lines, schema)).await);
        let party = Party::join(&proxy, cell.client, cell.from).await;
        Self { cell, net, proxy, up, party, tools, ids: AtomicUsize::new(1000) }
    }

    /// One that no other request of this stage has.
    pub(crate) fn id(&self) -> String {
        self.ids.fetch_add(1, Ordering::SeqCst).to_string()
    }

    pub(crate) fn ask(&self, method: &str) -> Ask {
        self.party.ask(method).id(&self.id())
    }

    /// The list, which is a result.
    pub(crate) async fn listed(&self) -> List {
        self.page(None).await
    }

    /// The page at this cursor.
    pub(crate) async fn page(&self, cursor: Option<&str>) -> List {
        let ask = self.ask("tools/list");
        let ask = cursor.map_or(ask.clone(), |cursor| ask.params(&format!(r#""cursor":"{cursor}""#)));
        List::of(&self.party.answered(&ask).await.raw)
    }

    pub(crate) async fn call(&self, tool: &str, arguments: &str) -> Said {
        self.party.answered(&self.party.call(tool, arguments).id(&self.id())).await
    }

    pub(crate) fn calls(&self) -> usize {
        self.up.posts("tools/call").len()
    }

    /// A call that is refused before the server sees it, as one of a tool that there is not; the reason.
    pub(crate) async fn refused(&self, tool: &str) -> String {
        let before = self.calls();
        let said = self.call(tool, "{}").await;
        assert_eq!(said.message["error"]["code"], -32602, "{tool}: {} {:?}", said.raw, self.cell);
        assert_eq!(self.calls(), before, "{tool}: the server is not bothered");
        let words = said.message["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert!(words.contains(tool), "it names the tool {tool}: {words}");
        words
    }

    /// A call that reaches the server; its result.
    pub(crate) async fn passes(&self, tool: &str, arguments: &str) -> Value {
        let before = self.calls();
        let said = self.call(tool, arguments).await;
        assert_eq!(self.calls(), before + 1, "{tool}: once at the server: {}", said.raw);
        said.message.get("result").cloned().unwrap_or_else(|| panic!("a result of {tool}, not {}", said.raw))
    }

    /// The sum of all samples of a metric whose labels contain all of these.
    pub(crate) fn metric(&self, name: &str, labels: &[&str]) -> f64 {
        metric(&self.proxy, name, labels)
    }

    /// How many findings there were of this kind, or of those that begin so (`header_`).
    pub(crate) fn found(&self, kind: &str) -> f64 {
        let end = if kind.is_empty() || kind.ends_with('_') { "" } else { "\"" };
        self.metric(FINDINGS, &[&format!("kind=\"{kind}{end}")])
    }
}

pub(crate) fn metric(proxy: &Proxy, name: &str, labels: &[&str]) -> f64 {
    let metrics = proxy.metrics();
    assert!(metrics.contains(&format!("# TYPE {name} ")), "a metric {name}");
    let of_it = |line: &&str| line.split(['{', ' ']).next() == Some(name);
    let fits = |line: &&str| labels.iter().all(|label| line.contains(label));
    let value = |line: &str| line.rsplit(' ').next()?.parse::<f64>().ok();
    metrics.lines().filter(of_it).filter(fits).filter_map(value).sum()
}

/// The configuration of a cell.
pub(crate) fn toml(cell: Cell, front: &str, lines: &str, schema: &str) -> String {
    let target = match cell.to {
        Transport::Http => "url = \"http://up.test/mcp\"",
        Transport::HttpSse => "url = \"http://up.test/sse\"\ntransport = \"sse\"",
        Transport::Stdio => "command = \"server\"",
    };
    let sse_path = match cell.from {
        Transport::HttpSse => "sse_path = \"/sse\"",
        Transport::Http | Transport::Stdio => "",
    };
    // Unoptimized on a busy machine nothing is as quick as it is to be.
    let time = if schema.contains("time =") { "" } else { "time = \"1s\"" };
    format!("{front}\n[upstream.up]\n{target}\n{sse_path}\n{lines}\n[upstream.up.schema]\n{time}\n{schema}\n")
}

fn start(cell: Cell, net: &Net, tools: &Tools) -> Upstream {
    match cell.server {
        Era::Modern => {
            let server = tools.of_modern(ModernServer::full());
            match (cell.to, cell.client) {
                (Transport::Stdio, Era::Legacy(_)) => server.start_bridged_program(net, "server"),
                (Transport::Stdio, Era::Modern) => server.start_program(net, "server"),
                (Transport::Http | Transport::HttpSse, Era::Legacy(_)) => server.start_bridged(net),
                (Transport::Http | Transport::HttpSse, Era::Modern) => server.start(net),
            }
        }
        Era::Legacy(version) => {
            // A server of a later revision agrees on the client's.
            let agreed = match cell.client {
                Era::Legacy(client) => version.min(client),
                Era::Modern => version,
            };
            let server = tools.of_legacy(LegacyServer::telling().version(agreed));
            match cell.to {
                Transport::Http => server.start(net),
                Transport::Stdio => server.start_program(net, "server"),
                Transport::HttpSse => server.start_old_sse(net),
            }
        }
    }
}

/// A list as a client got it.
#[derive(Debug)]
pub(crate) struct List {
    /// The whole message.
    pub(crate) raw: String,
    /// Each tool to the byte.
    pub(crate) tools: Vec<String>,
}

impl List {
    pub(crate) fn of(raw: &str) -> Self {
        #[derive(serde::Deserialize)]
        struct Tools {
            tools: Vec<Box<RawValue>>,
        }
        let result = rpc::result(raw.as_bytes()).unwrap_or_else(|| panic!("a list, not {raw}"));
        let list: Tools = serde_json::from_str(&result).unwrap_or_else(|e| panic!("{e}: {raw}"));
        Self { raw: raw.to_owned(), tools: list.tools.iter().map(|tool| tool.get().to_owned()).collect() }
    }

    pub(crate) fn result(&self) -> Value {
        rpc::value(self.raw.as_bytes()).unwrap()["result"].clone()
    }

    /// The names in order; what has none is `null`.
    pub(crate) fn names(&self) -> Vec<String> {
        let name = |tool: &String| rpc::value(tool.as_bytes()).unwrap()["name"].clone();
        self.tools.iter().map(|tool| name(tool).as_str().unwrap_or("null").to_owned()).collect()
    }

    /// The only tool of this name.
    pub(crate) fn raw_tool(&self, name: &str) -> &str {
        let at: Vec<_> =
            self.names().iter().enumerate().filter(|(_, n)| *n == name).map(|(at, _)| at).collect();
        assert_eq!(at.len(), 1, "one tool {name}: {}", self.raw);
        &self.tools[at[0]]
    }

    pub(crate) fn tool(&self, name: &str) -> Value {
        rpc::value(self.raw_tool(name).as_bytes()).unwrap()
    }
}

/// A tool of this name and `inputSchema`, as raw JSON.
pub(crate) fn tool(name: &str, schema: &str) -> String {
    format!(r#"{{"name":"{name}","inputSchema":{schema}}}"#)
}

/// One with an `outputSchema` too.
pub(crate) fn tool_with_output(name: &str, schema: &str, output: &str) -> String {
    format!(r#"{{"name":"{name}","inputSchema":{schema},"outputSchema":{output}}}"#)
}

/// A tool that nothing is wrong with, written so that every reader who writes it anew shows.
pub(crate) fn good(name: &str) -> String {
    format!(
        r#"{{ "description":"\u00fc \/ \"q\"" ,"name" : "{name}","x-own":{{"a":[1.50,-0,1E2]}}, "inputSchema" :{{"type":"object" , "properties":{{"z":{{"type":"number","maximum":2.50 }},"a":{{}},"t":{{"items":true,"not":false}}}},"additionalProperties":{{}} }} }}"#
    )
}

/// A tool with a reference that leads out.
pub(crate) fn bad(name: &str) -> String {
    tool(name, r#"{"type":"object","properties":{"a":{"$ref":"https://canary.test/x.json"}}}"#)
}

/// Where that is.
pub(crate) const BAD_AT: &str = "/inputSchema/properties/a/$ref";
