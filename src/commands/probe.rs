//! `mcp-janus probe`: what kind of server is at a URL, or started by a command.
//!
//! Owns asking one server and saying what was found, for people or as JSON. A process is ended again. Sends `server/discover` and, where that does
//! not show a modern server, `initialize`; the session is ended again. Never calls anything.

use crate::cli::Exit;
use crate::config;
use crate::exchange::{Binding, Call, Principal};
use crate::net::{Processes, TcpDialer};
use crate::shutdown::Shutdown;
use crate::telemetry::metrics::{Meter, Metrics};
use crate::translate::discover;
use crate::upstream::Upstream;
use crate::upstream::era::{Finding, Verdicts};
use crate::upstream::parked::{Bounds, Parked};
use crate::upstream::{Asking, Common, Found, Room, Ways};
use crate::wire::headers::{MCP_METHOD, MCP_PROTOCOL_VERSION};
use crate::wire::json::Limits;
use crate::wire::jsonrpc::{self, Id, Message};
use crate::wire::method::Method;
use crate::wire::version::{Era, MODERN};
use http_body_util::BodyExt;
use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};
use serde_json::{Value, json};
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// What was found.
struct Report {
    /// Where the server is, or what it is.
    target: String,
    transport: Found,
    first: Finding,
    /// Era, the answer to `server/discover` (the server's own or made from `initialize`) and the negotiated version.
    found: Result<(Era, Value, String), String>,
}

/// Prints what is found; 0 if the server speaks MCP in either era.
pub async fn probe(upstream: config::Upstream, as_json: bool) -> Exit {
    let report = match look(upstream).await {
        Ok(report) => report,
        Err(error) => {
            eprintln!("mcp-janus: {error}");
            return Exit::Failure;
        }
    };
    let text = if as_json { format!("{}\n", report.json()) } else { report.text() };
    if let Err(error) = std::io::stdout().write_all(text.as_bytes()) {
        eprintln!("mcp-janus: standard output: {error}");
        return Exit::Failure;
    }
    if report.found.is_ok() { Exit::Ok } else { Exit::Failure }
}

async fn look(mut settings: config::Upstream) -> Result<Report, Box<dyn std::error::Error>> {
    let target = settings.target.to_string();
    let limits = config::Limits::default();
    let limits = Limits { nesting: limits.nesting, members: limits.members };
    let dial = Arc::new(TcpDialer::new(settings.timeouts.connect));
    let shutdown = Shutdown::new(Duration::from_secs(5));
    if settings.target == config::Target::Demo {
        settings.target = config::Target::Http(crate::app::start_demo(&shutdown).await?);
    }
    let metrics = Metrics::new()?.upstream(&settings.name);
    let meter = Meter::new(metrics.clone());
    let parked = Parked::new(Bounds::of(&config::Limits::default()), shutdown.clone())?;
    let verdicts = Arc::new(Verdicts::default());
    let common = Common {
        verdicts,
        parked,
        asking: Arc::new(Asking::new()?),
        room: Room { events: 64, bytes: 1 << 20, hold: Duration::from_secs(1) },
    };
    let upstream = Upstream::new(
        settings,
        limits,
        Ways { dial, launch: Arc::new(Processes::of_this_program()) },
        common,
        shutdown,
        metrics,
    )?;
    let text = discover::discover_request(1).to_bytes();
    let Message::Request(request) = jsonrpc::parse(text, limits)? else { return Err("not a request".into()) };
    let mut headers = HeaderMap::new();
    headers.insert(HeaderName::from_static(MCP_PROTOCOL_VERSION), HeaderValue::from_static(MODERN));
    headers.insert(HeaderName::from_static(MCP_METHOD), HeaderValue::from_static("server/discover"));
    let deadline = Instant::now() + upstream.settings.timeouts.request;
    let call = Call {
        request,
        method: Method::Discover,
        principal: Principal::Anonymous,
        headers,
        binding: Binding::Http,
        deadline,
        meter,
    };
    let (first, era) = upstream.era.examine(&call).await;
    let found = match era {
        Err(fault) => Err(fault.text.to_string()),
        Ok(Era::Modern) => match upstream.modern.send(&call).await {
            Ok(response) => {
                let body = match response.into_body() {
                    crate::upstream::UpstreamBody::Read(bytes) => bytes,
                    crate::upstream::UpstreamBody::Streaming(body) => {
                        body.collect().await.map_err(|error| error.to_string())?.to_bytes()
                    }
                    // Only legacy clients have such.
                    crate::upstream::UpstreamBody::Held(_) | crate::upstream::UpstreamBody::Sifted(_) => Default::default(),
                };
                let answer: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
                Ok((Era::Modern, answer["result"].clone(), MODERN.to_owned()))
            }
            Err(trouble) => Err(format!("{trouble:?}")),
        },
        Ok(Era::Legacy) => match upstream.legacy.lease(&call).await {
            Ok(lease) => {
                let initialized = &lease.session().initialized;
                let answer: Value =
                    serde_json::from_slice(&initialized.discover(&Id::number(1), limits).to_bytes())?;
                Ok((Era::Legacy, answer["result"].clone(), initialized.revision.as_str().to_owned()))
            }
            Err(open) => Err(open.fault.to_string()),
        },
    };
    let transport = upstream.transport();
    upstream.close().await;
    Ok(Report { target, transport, first, found })
}

impl Report {
    /// What the target is called.
    fn kind(&self) -> &'static str {
        match self.transport {
            Found::Stdio => "command",
            Found::StreamableHttp | Found::OldSse => "url",
        }
    }

    fn json(&self) -> Value {
        let (kind, target, first) = (self.kind(), &self.target, self.first.to_string());
        match &self.found {
            Ok((era, discovered, version)) => json!({
                kind: target,
                "transport": self.transport.word(),
                "era": era.name(),
                "version": version,
                "probe": first,
                "serverInfo": discovered["_meta"]["io.modelcontextprotocol/serverInfo"],
                "capabilities": discovered["capabilities"],
                "instructions": discovered["instructions"],
            }),
            Err(error) => json!({kind: target, "era": null, "probe": first, "error": error}),
        }
    }

    fn text(&self) -> String {
        let (kind, target, first) = (self.kind(), &self.target, self.first.to_string());
        let mut lines = vec![format!("{kind:<13} {target}")];
        if self.found.as_ref().err() != Some(&first) {
            lines.push(format!("probe         {first}"));
        }
        match &self.found {
            Ok((era, discovered, version)) => {
                let info = &discovered["_meta"]["io.modelcontextprotocol/serverInfo"];
                let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
                lines.push(format!("transport     {}", self.transport));
                lines.push(format!("era           {}", era.name()));
                lines.push(format!("version       {version}"));
                lines.push(format!("server        {} {}", text(&info["name"]), text(&info["version"])));
                lines.push(format!("capabilities  {}", discovered["capabilities"]));
                if let Some(instructions) = discovered["instructions"].as_str() {
                    lines.push(format!("instructions  {}", instructions.lines().next().unwrap_or_default()));
                }
            }
            Err(error) => lines.push(format!("error         {error}")),
        }
        lines.join("\n") + "\n"
    }
}
