//! C56: programs that do not start, or never for long: told clearly, tried again with pauses, and nobody else suffers.

use std::io::ErrorKind;

use tokio::time::Instant;

use crate::stage::{Stage, done, ends_with, legacy_server, plain, scripted, words};
use crate::support::{Child, Old, json, list, pass};

/// Two upstreams, of which the second one is well.
async fn two() -> Stage {
    let toml = "[upstream.up]\ncommand = \"server\"\npath = \"/mcp\"\n[upstream.well]\ncommand = \"well\"\npath = \"/well\"\n";
    let stage = Stage::configured(legacy_server(), toml).await;
    legacy_server().start_program(&stage.net, "well");
    stage
}

#[tokio::test(start_paused = true)]
async fn c56_a_command_that_is_not_there() {
    for kind in [ErrorKind::NotFound, ErrorKind::PermissionDenied] {
        let stage = two().await;
        stage.net.programs().fail("server", kind);
        let began = Instant::now();
        let done = stage.send(&plain(1).id("\"x\"")).await;
        assert!([502, 503].contains(&done.status), "{} {}", done.status, done.raw);
        assert_eq!((done.code(), &done.message["id"]), (-32603, &json!("x")));
        assert!(words(&done).contains("server"), "names the command: {}", done.raw);
        assert!(began.elapsed().as_millis() < 1_000, "{:?}", began.elapsed());
        stage.send(&list("tools/list").path("/well")).await.result();
        // It is there now.
        stage.net.programs().put_script("server", stage.behind());
        pass(2_000).await;
        let client = stage.run(&plain(2));
        stage.calls.wait(1).await.finish("done");
        ends_with(&crate::stage::done(client).await, "done");
    }
}

#[tokio::test(start_paused = true)]
async fn c56_a_legacy_client_is_told_in_an_answer() {
    let stage = two().await;
    stage.net.programs().fail("server", ErrorKind::NotFound);
    let done = stage.send(&Old::initialize("2025-11-25").id("5")).await;
    assert_eq!((done.code(), &done.message["id"]), (-32603, &json!(5)));
    assert_eq!(done.headers.get("mcp-session-id"), None);
}

/// It exits in the handshake each time: the starts become fewer, calls fail fast, another upstream works all the time, and when
/// it is mended it is found so.
#[tokio::test(start_paused = true)]
async fn c56_a_crash_loop_is_backed_off() {
    for known in [false, true] {
        let stage = two().await;
        if known {
            stage.finished(&plain(0), "done").await;
            stage.child(1).await.dies();
            pass(1_000).await;
        }
        stage.net.programs().put("server", |mut child: Child| async move {
            child.line().await;
            1
        });
        let (from, mut refused) = (stage.net.programs().attempts("server").len(), 0);
        for n in 0..300 {
            let began = Instant::now();
            let done = stage.send(&plain(1).id(&n.to_string())).await;
            assert!([502, 503].contains(&done.status), "{} {}", done.status, done.raw);
            assert_eq!((done.code(), &done.message["id"]), (-32603, &json!(n)));
            refused += usize::from(done.status == 503);
            assert!(began.elapsed().as_millis() <= 1_000, "{:?}", began.elapsed());
            if n % 50 == 0 {
                stage.send(&list("tools/list").path("/well")).await.result();
            }
            pass(200).await;
        }
        let starts = stage.net.programs().attempts("server").len() - from;
        assert!((2..=20).contains(&starts), "{starts} starts in a minute");
        assert!(refused > 250, "{refused} were told so");
        let text = words(&stage.send(&plain(1)).await);
        assert!(text.contains("start") || text.contains("again"), "{text}");
        assert_eq!(stage.calls.all().len(), usize::from(known), "nothing reached it");
        // It is mended.
        stage.net.programs().put_script("server", stage.behind());
        pass(60_000).await;
        let client = stage.run(&plain(2));
        stage.calls.wait(1 + usize::from(known)).await.finish("done");
        ends_with(&done(client).await, "done");
        stage.nothing_is_left().await;
    }
}

/// It serves one call and dies in it, again and again: each call has its answer at once, and runs once.
#[tokio::test(start_paused = true)]
async fn c56_a_program_that_dies_in_every_call() {
    let stage = two().await;
    for n in 0..30 {
        let client = stage.run(&plain(n).id(&n.to_string()));
        pass(500).await;
        if let Some(call) = stage.calls.all().iter().find(|call| call.argument("n") == json!(n)) {
            assert!(call.is_open());
            stage.net.programs().of("server").iter().for_each(|child| child.dies());
        }
        let done = done(client).await;
        assert_eq!((done.code(), &done.message["id"]), (-32603, &json!(n)), "{}", done.raw);
        stage.send(&list("tools/list").path("/well")).await.result();
    }
    let mut marks: Vec<_> = stage.calls.all().iter().map(|call| call.argument("n").to_string()).collect();
    let runs = marks.len();
    marks.sort();
    marks.dedup();
    assert_eq!(marks.len(), runs, "none ran twice");
    assert_eq!(stage.up.posts("server/discover").len(), 1, "what it is stays known");
}

/// A call that comes during the pause is told so, and the first one after it starts the program.
#[tokio::test(start_paused = true)]
async fn c56_a_call_during_the_pause() {
    let stage = two().await;
    stage.net.programs().put("server", |mut child: Child| async move {
        child.line().await;
        1
    });
    let mut last = stage.send(&plain(1)).await;
    for _ in 0..10 {
        if last.status == 503 {
            break;
        }
        last = stage.send(&plain(1)).await;
    }
    last.is_error(503, -32603);
    let starts = stage.net.programs().attempts("server").len();
    let all: Vec<_> = (0..20).map(|n| stage.run(&plain(n))).collect();
    for client in all {
        done(client).await.is_error(503, -32603);
    }
    assert_eq!(stage.net.programs().attempts("server").len(), starts, "not started for any of them");
}

/// Many callers at once before a program that does not start: no storm.
#[tokio::test(start_paused = true)]
async fn c56_many_callers_before_a_program_that_does_not_start() {
    let stage = scripted("", |mut child: Child| async move {
        child.line().await;
        1
    })
    .await;
    let all: Vec<_> = (0..50).map(|n| stage.run(&plain(n).bearer(&n.to_string()))).collect();
    for client in all {
        let done = done(client).await;
        assert!([502, 503].contains(&done.status), "{} {}", done.status, done.raw);
    }
    let starts = stage.net.programs().attempts("server").len();
    assert!(starts <= 12, "{starts} starts for callers who came at once");
    stage.nothing_is_left().await;
}

/// It exits while it starts, with no message at all, as one that lacks a setting.
#[tokio::test(start_paused = true)]
async fn c56_it_exits_before_it_says_a_word() {
    let stage = scripted("", |child: Child| async move {
        child.running().complain(b"error: the secret API_KEY=hidden-word is wrong\n");
        2
    })
    .await;
    let began = Instant::now();
    let done = stage.send(&plain(1).id("1")).await;
    assert!([502, 503].contains(&done.status), "{} {}", done.status, done.raw);
    assert!(!done.raw.contains("hidden-word"), "{}", done.raw);
    assert!(words(&done).contains("exit status: 2") || words(&done).contains("ended"), "{}", done.raw);
    assert!(began.elapsed().as_millis() < 1_000, "{:?}", began.elapsed());
    assert!(stage.children().len() <= 2);
}
