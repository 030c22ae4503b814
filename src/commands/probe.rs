//! `mcp-janus probe`: what kind of server is at a URL, or started by a command, and what the schema guard finds in its tools.
//!
//! Owns asking one server and saying what was found (`report`), for people or as JSON. A process is ended again. Sends
//! `server/discover` and, where that does not show a modern server, `initialize`; then, as a modern client of the proxy
//! (`client`), `tools/list` if the server has tools (`tools`). The session is ended again. Never calls anything.

mod client;
mod report;
mod tools;

use crate::cli::Exit;
use crate::config::{self, FrontTimeouts};
use crate::downstream::Front;
use crate::exchange::{Binding, Call, Principal};
use crate::net::{Processes, TcpDialer};
use crate::relay::Relay;
use crate::shutdown::Shutdown;
use crate::telemetry::metrics::{Meter, Metrics};
use crate::translate::discover;
use crate::upstream::era::Verdicts;
use crate::upstream::parked::{Bounds, Parked};
use crate::upstream::{Asking, Common, Room, Upstream, Ways};
use crate::wire::headers::{MCP_METHOD, MCP_PROTOCOL_VERSION};
use crate::wire::json::Limits;
use crate::wire::jsonrpc::{self, Id, Message};
use crate::wire::method::Method;
use crate::wire::version::{Era, MODERN};
use client::Client;
use futures_util::future::join;
use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};
use report::{Report, Server};
use serde_json::Value;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tools::Tools;

/// Room for the lists of one server with what is found in them, all of which is to be told.
const LISTS: usize = 256 << 20;

/// Prints what is found; 0 if the server speaks MCP in either era, whatever its tools are.
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
    let front_limits = config::Limits::default();
    let limits = Limits { nesting: front_limits.nesting, members: front_limits.members };
    let dial = Arc::new(TcpDialer::new(settings.timeouts.connect));
    let shutdown = Shutdown::new(Duration::from_secs(5));
    if settings.target == config::Target::Demo {
        settings.target = config::Target::Http(crate::app::start_demo(&shutdown).await?);
    }
    settings.schema.cache_bytes = LISTS;
    let all_metrics = Metrics::new()?;
    let metrics = all_metrics.upstream(&settings.name);
    let meter = Meter::new(metrics.clone());
    let parked = Parked::new(Bounds::of(&front_limits), shutdown.clone())?;
    let verdicts = Arc::new(Verdicts::default());
    let common = Common {
        verdicts,
        parked,
        asking: Arc::new(Asking::new()?),
        room: Room { events: 64, bytes: 1 << 20, hold: Duration::from_secs(1) },
    };
    let upstream = Arc::new(Upstream::new(
        settings,
        limits,
        Ways { dial, launch: Arc::new(Processes::of_this_program()) },
        common,
        shutdown.clone(),
        metrics,
    )?);
    let call = first_call(&upstream, limits, meter)?;
    let (first, era) = upstream.era.examine(&call).await;

    let relay = Arc::new(Relay::new(vec![upstream.clone()], front_limits.clone(), shutdown.clone()));
    let timeouts = FrontTimeouts::default();
    let front = Front::new(relay, front_limits, timeouts, shutdown, all_metrics.front().clone())?;
    let (client, other_end) = Client::new(&upstream.settings.path);
    let asking = async {
        match era {
            Ok(era) => server(era, &upstream, &call, client, limits).await,
            Err(fault) => Err(fault.text.to_string()),
        }
    };
    let ((), found) = join(front.serve_channel(other_end), asking).await;
    let transport = upstream.transport();
    upstream.close().await;
    Ok(Report { target, transport, first, found })
}

/// In whose name the server is looked at and a session is opened.
fn first_call(upstream: &Upstream, limits: Limits, meter: Meter) -> Result<Call, Box<dyn std::error::Error>> {
    let text = discover::discover_request(1).to_bytes();
    let Message::Request(request) = jsonrpc::parse(text, limits)? else { return Err("not a request".into()) };
    let mut headers = HeaderMap::new();
    headers.insert(HeaderName::from_static(MCP_PROTOCOL_VERSION), HeaderValue::from_static(MODERN));
    headers.insert(HeaderName::from_static(MCP_METHOD), HeaderValue::from_static("server/discover"));
    Ok(Call {
        request,
        method: Method::Discover,
        principal: Principal::Anonymous,
        headers,
        binding: Binding::Http,
        deadline: Instant::now() + upstream.settings.timeouts.request,
        meter,
    })
}

/// What a server of this era says of itself, and its tools.
async fn server(
    era: Era,
    upstream: &Upstream,
    call: &Call,
    mut client: Client,
    limits: Limits,
) -> Result<Server, String> {
    let wait = upstream.settings.timeouts.probe;
    let (discovered, version) = match era {
        Era::Modern => {
            let answer = client.ask("server/discover", "", wait).await?;
            let result = answer.body.object.span.of(&answer.text);
            (serde_json::from_slice(result).unwrap_or(Value::Null), MODERN.to_owned())
        }
        Era::Legacy => {
            let lease = upstream.legacy.lease(call).await.map_err(|open| open.fault.to_string())?;
            let initialized = &lease.session().initialized;
            let answer = initialized.discover(&Id::number(1), limits).to_bytes();
            let answer: Value = serde_json::from_slice(&answer).unwrap_or(Value::Null);
            (answer["result"].clone(), initialized.revision.as_str().to_owned())
        }
    };
    let tools = match discovered["capabilities"]["tools"] {
        Value::Object(_) => tools::list(&mut client, &upstream.guard, wait).await,
        _ => Tools::default(),
    };
    Ok(Server { era, discovered, version, tools })
}
