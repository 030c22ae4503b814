//! C56: which ends of processes count as failed starts, and what callers are told in a pause.

use crate::stage::{Stage, done, ends_with, legacy_server, plain, words};
use crate::support::{Child, Old, json, list, pass};

/// A program that ends at its first line.
fn breaks(stage: &Stage) {
    stage.net.programs().put("server", |mut child: Child| async move {
        child.line().await;
        pass(10).await;
        1
    });
}

fn mends(stage: &Stage) {
    stage.net.programs().put_script("server", stage.behind());
}

/// A healthy program that is only looked at, by many, and whose processes end for want of use.
#[tokio::test(start_paused = true)]
async fn looks_are_no_failures() {
    let stage = Stage::modern("[upstream.up.session]\nidle = \"10s\"\n").await;
    for n in 0..8 {
        stage.send(&list("server/discover").bearer(&n.to_string())).await.result();
        pass(30_000).await;
    }
    let all: Vec<_> =
        (0..8).map(|n| stage.run(&list("server/discover").bearer(&format!("again {n}")))).collect();
    for client in all {
        done(client).await.result();
    }
    pass(60_000).await;
    stage.send(&list("tools/list").bearer("last")).await.result();
}

/// The first success ends the count: a single failure much later costs no pause.
#[tokio::test(start_paused = true)]
async fn a_success_forgives_what_was_before() {
    let stage = Stage::legacy("era = \"legacy\"\n").await;
    breaks(&stage);
    for _ in 0..6 {
        let failed = stage.send(&plain(0)).await;
        assert!([502, 503].contains(&failed.status), "{}", failed.raw);
        pass(60_000).await;
    }
    mends(&stage);
    stage.finished(&plain(1).bearer("a"), "done").await;
    breaks(&stage);
    for n in 0..2 {
        let failed = stage.send(&plain(2).bearer("b")).await;
        assert_eq!(failed.status, 502, "try {n} is made at once: {}", failed.raw);
    }
    // The one that runs is not bothered.
    stage.finished(&plain(3).bearer("a"), "done").await;
}

/// Clients that do not wait for a slow program do not make it one that cannot be started.
#[tokio::test(start_paused = true)]
async fn impatient_clients_are_no_failures() {
    let stage = Stage::legacy("").await;
    stage.first(|_| async {
        pass(8_000).await;
        None
    });
    for n in 0..6 {
        let client = stage.run(&Old::initialize("2025-11-25").bearer(&n.to_string()));
        pass(2_000).await;
        client.abort();
        pass(500).await;
    }
    let client = stage.run(&plain(1).bearer("patient"));
    stage.calls.wait(1).await.finish("done");
    ends_with(&done(client).await, "done");
}

/// Many starts that fail at once are one failure in a row.
#[tokio::test(start_paused = true)]
async fn failures_at_one_moment_count_once() {
    let stage = Stage::legacy("era = \"legacy\"\n").await;
    breaks(&stage);
    let all: Vec<_> = (0..20).map(|n| stage.run(&plain(n).bearer(&n.to_string()))).collect();
    for client in all {
        let done = done(client).await;
        assert!([502, 503].contains(&done.status), "{} {}", done.status, done.raw);
    }
    mends(&stage);
    pass(5_000).await;
    let client = stage.run(&plain(100));
    pass(1_000).await;
    if client.is_finished() {
        panic!("it is started again after a short pause, not {}", done(client).await.raw);
    }
    stage.calls.wait(1).await.finish("done");
    ends_with(&done(client).await, "done");
}

/// Who waits as long as is said is not refused once more; and what is said is so.
#[tokio::test(start_paused = true)]
async fn a_pause_is_as_long_as_is_said() {
    let stage = Stage::legacy("").await;
    stage.net.programs().fail("server", std::io::ErrorKind::NotFound);
    let mut pauses = 0;
    for _ in 0..12 {
        let refused = stage.send(&plain(1)).await;
        if refused.status != 503 {
            continue;
        }
        pauses += 1;
        let text = words(&refused);
        assert!(!text.contains("ends whenever"), "it never ran: {text}");
        let seconds = text.split(' ').find_map(|word| word.trim_end_matches('s').parse::<u64>().ok());
        let seconds = seconds.unwrap_or_else(|| panic!("when to come again: {text}"));
        pass(seconds * 1_000).await;
        let again = stage.send(&plain(1)).await;
        assert_ne!(again.status, 503, "it came when it was told to: {}", again.raw);
    }
    assert!(pauses >= 3, "{pauses}");
}

/// A program that is over before it was asked anything: no client is told of headers that it lacks, and no era is doubted.
#[tokio::test(start_paused = true)]
async fn over_before_initialize() {
    for era in ["", "era = \"legacy\"\n"] {
        let stage = Stage::legacy(era).await;
        stage.net.programs().put("server", |_| async { 3 });
        for _ in 0..3 {
            let done = stage.send(&Old::initialize("2025-11-25").id("5")).await;
            assert_eq!((done.code(), &done.message["id"]), (-32603, &json!(5)), "{era}: {}", done.raw);
            assert!(!words(&done).contains("Session"), "{era}: {}", done.raw);
            pass(40_000).await;
        }
        let done = stage.send(&plain(1)).await;
        assert_eq!(done.code(), -32603, "{era}: {}", done.raw);
    }
}

/// The same once it is known to be a legacy one: what it is stays known.
#[tokio::test(start_paused = true)]
async fn a_crash_is_no_doubt_about_the_era() {
    let stage = Stage::legacy_of(legacy_server(), "").await;
    stage.finished(&plain(1), "done").await;
    stage.net.programs().put("server", |_| async { 3 });
    stage.child(1).await.dies();
    for _ in 0..5 {
        let done = stage.send(&plain(2)).await;
        assert_eq!(done.code(), -32603, "{}", done.raw);
        pass(40_000).await;
    }
    mends(&stage);
    stage.finished(&plain(3), "done").await;
    assert_eq!(stage.up.posts("server/discover").len(), 1, "{:?}", stage.up.briefs());
}
