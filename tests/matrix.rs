//! The matrix: one body of checks for every pair of client era, server era and transport.
//!
//! Owns the list of all cells, each either run or named with the reason why it is not. A feature that works in one
//! cell only shows here. Details of a translation are in `vectors`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use support::{Ask, LegacyServer, ModernServer, Net, Proxy, Upstream, call, list};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Era {
    Modern,
    Legacy(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transport {
    Http,
    /// The legacy HTTP with Server-Sent Events of 2024-11-05.
    HttpSse,
    Stdio,
}

/// What is done about a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cell {
    Runs,
    /// The pair cannot exist.
    Inapplicable(&'static str),
    /// The proxy refuses the pair with an error that says so.
    NotServed(&'static str),
}

const ERAS: [Era; 5] = [
    Era::Modern,
    Era::Legacy("2025-11-25"),
    Era::Legacy("2025-06-18"),
    Era::Legacy("2025-03-26"),
    Era::Legacy("2024-11-05"),
];
const TRANSPORTS: [Transport; 3] = [Transport::Http, Transport::HttpSse, Transport::Stdio];

fn cell(client: Era, server: Era, transport: Transport) -> Cell {
    match (client, server, transport) {
        (_, Era::Modern, Transport::HttpSse) => {
            Cell::Inapplicable("HTTP+SSE was gone before the modern revision")
        }
        (_, _, Transport::HttpSse) => Cell::NotServed("HTTP+SSE servers are not reached yet"),
        (_, _, Transport::Stdio) => Cell::NotServed("stdio servers are not started yet"),
        (Era::Legacy(_), _, Transport::Http) => {
            Cell::NotServed("legacy clients are told the versions that are served")
        }
        (Era::Modern, _, Transport::Http) => Cell::Runs,
    }
}

fn cells() -> Vec<(Era, Era, Transport)> {
    let pairs = ERAS.iter().flat_map(|c| ERAS.iter().map(move |s| (*c, *s)));
    pairs.flat_map(|(c, s)| TRANSPORTS.iter().map(move |t| (c, s, *t))).collect()
}

async fn start(server: Era) -> (Proxy, Upstream) {
    let net = Net::new();
    let up = match server {
        Era::Modern => ModernServer::new().start(&net),
        Era::Legacy(version) => LegacyServer::new().version(version).start(&net),
    };
    (Proxy::start(&net).await, up)
}

/// The body: what any client may expect of any server.
async fn body(server: Era) {
    let (proxy, up) = start(server).await;
    let discovered = proxy.send(&Ask::new("server/discover").id(r#""d""#)).await;
    assert!(discovered.result()["capabilities"].get("tools").is_some(), "{server:?}");
    let tools = proxy.send(&list("tools/list").id("2")).await;
    assert_eq!(tools.result()["tools"][0]["name"], "echo", "{server:?}");
    let called = proxy.send(&call("echo", r#"{"n":1e400}"#).id("3")).await;
    assert_eq!(called.result()["content"][0]["type"], "text", "{server:?}");
    assert!(up.only("tools/call").text().contains(r#""arguments":{"n":1e400}"#), "{server:?}");
    proxy.send(&Ask::new("acme/unknown").id("4")).await.is_error(404, -32601);
    proxy.send(&call("echo", "{}").without("Mcp-Name").id("5")).await.is_error(400, -32020);
}

#[tokio::test(start_paused = true)]
async fn every_cell_that_runs() {
    let running: Vec<_> = cells().into_iter().filter(|(c, s, t)| cell(*c, *s, *t) == Cell::Runs).collect();
    assert_eq!(running.len(), 5);
    for (_, server, _) in running {
        body(server).await;
    }
}

#[tokio::test(start_paused = true)]
async fn every_legacy_client_over_http_is_told_the_versions() {
    for (client, server, transport) in cells() {
        let (Era::Legacy(version), Transport::Http) = (client, transport) else { continue };
        let (proxy, up) = start(server).await;
        let initialize = format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{{}},"clientInfo":{{"name":"a","version":"1"}}}}}}"#
        );
        let ask = Ask::new("initialize")
            .raw_body(initialize.as_bytes())
            .without("MCP-Protocol-Version")
            .without("Mcp-Method");
        let done = proxy.send(&ask).await;
        done.is_error(400, -32022);
        assert_eq!(done.data()["requested"], version);
        assert_eq!(up.briefs(), Vec::<String>::new(), "{client:?} {server:?}");
    }
}

#[test]
fn every_other_cell_has_its_reason() {
    let mut counts = [0; 3];
    for (client, server, transport) in cells() {
        match cell(client, server, transport) {
            Cell::Runs => counts[0] += 1,
            Cell::Inapplicable(reason) => {
                assert!(!reason.is_empty());
                counts[1] += 1;
            }
            Cell::NotServed(reason) => {
                assert!(!reason.is_empty());
                counts[2] += 1;
            }
        }
    }
    assert_eq!(counts, [5, 5, 65], "{} cells in all", ERAS.len() * ERAS.len() * TRANSPORTS.len());
}
