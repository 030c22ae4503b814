//! The matrix: one body of scenes for every pair of client era and server era, over every transport on each side.
//!
//! Owns the list of all cells, each either run or named with the reason why it is not. A feature that works in one cell only
//! shows here. `scenes` is what every cell is put through, `stage` the proxy with a server of the cell's kind behind it and a
//! client before it; `http` has what only Streamable HTTP can tell (status codes, sessions' ends). Details of a translation are in
//! `vectors`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../support/mod.rs"]
mod support;

mod asking;
mod dying;
mod http;
mod more;
mod scenes;
mod stage;
mod told;

use stage::Stage;
use support::{Era, Transport};

/// One client and one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) client: Era,
    pub(crate) from: Transport,
    pub(crate) server: Era,
    pub(crate) to: Transport,
}

/// What is done about a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cell {
    Runs,
    /// The pair cannot exist.
    Inapplicable(&'static str),
}

const ERAS: [Era; 5] = [
    Era::Modern,
    Era::Legacy("2025-11-25"),
    Era::Legacy("2025-06-18"),
    Era::Legacy("2025-03-26"),
    Era::Legacy("2024-11-05"),
];
const TRANSPORTS: [Transport; 3] = [Transport::Http, Transport::HttpSse, Transport::Stdio];

fn cell(pair: Pair) -> Cell {
    match (pair.client, pair.from, pair.server, pair.to) {
        (Era::Modern, Transport::HttpSse, _, _) => {
            Cell::Inapplicable("a modern client has no HTTP+SSE: it was gone before the modern revision")
        }
        (_, _, Era::Modern, Transport::HttpSse) => {
            Cell::Inapplicable("a modern server has no HTTP+SSE: it was gone before the modern revision")
        }
        (Era::Legacy(_), Transport::HttpSse, _, _) | (_, Transport::Http | Transport::Stdio, _, _) => {
            Cell::Runs
        }
    }
}

fn pairs() -> Vec<Pair> {
    let mut all = Vec::new();
    for client in ERAS {
        for from in TRANSPORTS {
            for server in ERAS {
                all.extend(TRANSPORTS.map(|to| Pair { client, from, server, to }));
            }
        }
    }
    all
}

/// Every cell between these transports, one after the other; of those of one legacy revision with shielded sessions too.
async fn every_cell(from: Transport, to: Transport) {
    let between = pairs().into_iter().filter(|pair| (pair.from, pair.to) == (from, to));
    for pair in between.filter(|pair| cell(*pair) == Cell::Runs) {
        for shield in [false, true] {
            // Shields stand between legacy peers; which revisions they are of is seen without.
            if shield && (pair.client != pair.server || pair.client == Era::Modern) {
                continue;
            }
            eprintln!("{pair:?} shield={shield}");
            let stage = Stage::set(pair, shield).await;
            scenes::plain(&stage).await;
            scenes::on_the_way(&stage).await;
            scenes::in_parallel(&stage).await;
            scenes::given_up(&stage).await;
            more::long_ones(&stage).await;
            more::over_many_lines(&stage).await;
            more::arrays(&stage).await;
            more::one_id_twice(&stage).await;
            more::pings(&stage).await;
            more::of_nothing(&stage).await;
            told::changes(&stage).await;
            asking::one(&stage).await;
            asking::several(&stage).await;
            scenes::ends(stage).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn http_to_http() {
    every_cell(Transport::Http, Transport::Http).await;
}

#[tokio::test(start_paused = true)]
async fn http_to_a_child_process() {
    every_cell(Transport::Http, Transport::Stdio).await;
}

#[tokio::test(start_paused = true)]
async fn http_to_http_sse() {
    every_cell(Transport::Http, Transport::HttpSse).await;
}

#[tokio::test(start_paused = true)]
async fn a_stdio_host_to_http() {
    every_cell(Transport::Stdio, Transport::Http).await;
}

#[tokio::test(start_paused = true)]
async fn a_stdio_host_to_a_child_process() {
    every_cell(Transport::Stdio, Transport::Stdio).await;
}

#[tokio::test(start_paused = true)]
async fn a_stdio_host_to_http_sse() {
    every_cell(Transport::Stdio, Transport::HttpSse).await;
}

#[tokio::test(start_paused = true)]
async fn http_sse_to_http() {
    every_cell(Transport::HttpSse, Transport::Http).await;
}

#[tokio::test(start_paused = true)]
async fn http_sse_to_a_child_process() {
    every_cell(Transport::HttpSse, Transport::Stdio).await;
}

#[tokio::test(start_paused = true)]
async fn http_sse_to_http_sse() {
    every_cell(Transport::HttpSse, Transport::HttpSse).await;
}

#[test]
fn every_other_cell_has_its_reason() {
    let mut counts = [0; 2];
    for pair in pairs() {
        match cell(pair) {
            Cell::Runs => counts[0] += 1,
            Cell::Inapplicable(reason) => {
                assert!(!reason.is_empty());
                counts[1] += 1;
            }
        }
    }
    // 14 kinds of clients before 14 kinds of servers.
    assert_eq!(counts, [14 * 14, 15 * 15 - 14 * 14]);
}
