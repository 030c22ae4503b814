//! One body for every pair of eras over every transport: what is listed, refused, passed, and mended later.

use crate::stage::{BAD_AT, Cell, FINDINGS, LATEST, PAIRS, REFUSED, Stage, bad, good, tool};
use crate::support::{Era, Transport};

const TRANSPORTS: [Transport; 3] = [Transport::Http, Transport::HttpSse, Transport::Stdio];

fn cells() -> Vec<Cell> {
    let mut all = Vec::new();
    for (client, server) in PAIRS {
        for from in TRANSPORTS {
            all.extend(TRANSPORTS.map(|to| Cell { client, from, server, to }));
        }
    }
    // HTTP+SSE was gone before the modern revision.
    let modern = |era: Era, way| era == Era::Modern && way == Transport::HttpSse;
    all.retain(|cell| !modern(cell.client, cell.from) && !modern(cell.server, cell.to));
    all
}

async fn body(cell: Cell, lines: &str) {
    let list = [good("g0"), bad("out"), tool("null", "null"), good("g1")].join(",");
    let stage = Stage::with(cell, &list, "", lines, "").await;
    for _ in 0..2 {
        let shown = stage.listed().await;
        assert_eq!(shown.tools, [good("g0"), good("g1")], "{cell:?} {lines}");
    }
    assert!(stage.refused("out").await.contains(BAD_AT), "{cell:?} {lines}");
    stage.refused("null").await;
    for name in ["g0", "g1"] {
        assert_eq!(stage.passes(name, "{}").await["content"][0]["text"], "done", "{cell:?} {lines}");
    }
    assert_eq!(stage.metric(REFUSED, &["upstream=\"up\""]), 2.0, "{cell:?} {lines}");
    assert_eq!(stage.metric(FINDINGS, &["external_ref"]), 1.0, "{cell:?} {lines}");
    stage.tools.set(&[good("g0"), good("out")].join(" , "));
    assert_eq!(stage.listed().await.tools, [good("g0"), good("out")], "{cell:?} {lines}");
    stage.passes("out", "{}").await;
    stage.party.leave().await;
}

#[tokio::test(start_paused = true)]
async fn every_pair_over_every_transport() {
    assert_eq!(cells().len(), 25);
    for cell in cells() {
        eprintln!("{cell:?}");
        body(cell, "").await;
    }
}

#[tokio::test(start_paused = true)]
async fn with_shielded_sessions() {
    for cell in cells().into_iter().filter(|cell| (cell.client, cell.server) == (LATEST, LATEST)) {
        eprintln!("{cell:?}");
        body(cell, "session = { shield = true }").await;
    }
}

/// B9.5: a list that is kept is as it was when it was read.
#[tokio::test(start_paused = true)]
async fn with_lists_that_are_kept() {
    for pair in PAIRS {
        body_of_kept(Cell::http(pair)).await;
    }
}

async fn body_of_kept(cell: Cell) {
    let list = [good("g0"), bad("out")].join(",");
    let stage = Stage::with(cell, &list, "", "cache_lists = true", "").await;
    for _ in 0..3 {
        assert_eq!(stage.listed().await.names(), ["g0"], "{cell:?}");
        stage.refused("out").await;
        stage.passes("g0", "{}").await;
    }
}

/// Every older revision, on both sides.
#[tokio::test(start_paused = true)]
async fn of_every_revision() {
    for revision in ["2025-06-18", "2025-03-26", "2024-11-05"] {
        for (client, server) in [
            (Era::Modern, Era::Legacy(revision)),
            (Era::Legacy(revision), Era::Modern),
            (Era::Legacy(revision), Era::Legacy(revision)),
        ] {
            body(Cell::http((client, server)), "").await;
        }
    }
}
