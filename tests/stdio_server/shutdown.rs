//! C55, A14.7: how processes are ended: their input is closed, they are asked, they are made to; in these times.

use std::time::Duration;

use tokio::time::Instant;

use crate::stage::{Stage, done, ends_with, legacy_server, plain, scripted};
use crate::support::{Child, Running, list, pass};

/// A program that serves, and then hangs for so long after the end of its input.
fn stubborn(stage: &Stage, ignores_term: bool, after: Option<u64>) {
    let serve = stage.behind();
    stage.net.programs().put("server", move |child: Child| {
        let serve = serve.clone();
        async move {
            if ignores_term {
                child.ignore_term();
            }
            serve(child).await;
            match after {
                Some(millis) => pass(millis).await,
                None => std::future::pending().await,
            }
            0
        }
    });
}

fn after(from: Instant, to: Instant) -> u128 {
    to.duration_since(from).as_millis()
}

#[track_caller]
fn about(took: u128, millis: u128, what: &str) {
    assert!((millis..millis + 300).contains(&took), "{what} after {took} ms, not {millis}");
}

/// Of one process: closed, asked and made to end, as `stop` has it.
async fn steps(child: &Running, stop: u128, asked: bool, killed: bool) {
    let (ended, how) = child.ended().await;
    let closed = child.input_ended().expect("its input was closed first");
    if !asked {
        assert!(child.terminations().is_empty(), "it went by itself");
        assert_eq!(how, "exit status: 0");
        return;
    }
    about(after(closed, child.terminations()[0]), stop, "SIGTERM");
    if killed {
        about(after(child.terminations()[0], child.kills()[0]), stop, "SIGKILL");
        assert_eq!(how, "signal: 9 (SIGKILL)");
    } else {
        assert_eq!(how, "signal: 15 (SIGTERM)");
        assert!(after(child.terminations()[0], ended) < 100);
    }
}

#[tokio::test(start_paused = true)]
async fn c55_delete_ends_a_process_in_steps() {
    let table = [
        ("goes at once", false, Some(0), false, false),
        ("goes a little later", false, Some(1_500), false, false),
        ("goes at SIGTERM", false, None, true, false),
        ("goes never", true, None, true, true),
    ];
    for (lines, stop) in [("", 2_000), ("[upstream.up.timeouts]\nstop = \"500ms\"\n", 500)] {
        for (name, ignores, hangs, asked, killed) in table {
            if stop == 500 && hangs == Some(1_500) {
                continue;
            }
            let stage = Stage::canned(legacy_server(), lines).await;
            stubborn(&stage, ignores, hangs);
            let user = stage.user().await;
            user.list("tools/list").await;
            let began = Instant::now();
            user.delete().await;
            assert!(began.elapsed().as_secs() <= 5, "{name}: the client need not wait");
            let child = stage.child(1).await;
            steps(&child, stop, asked, killed).await;
            child.reaped().await;
            about(after(began, child.input_ended().unwrap()), 0, "the end of its input");
        }
    }
}

/// Everything that runs is ended when the proxy is.
#[tokio::test(start_paused = true)]
async fn c55_all_are_ended_when_the_proxy_ends() {
    for (ignores, hangs) in [(false, Some(0)), (false, None), (true, None)] {
        let stage = Stage::canned(legacy_server(), "").await;
        stubborn(&stage, ignores, hangs);
        for token in ["a", "b", "c"] {
            stage.send(&list("tools/list").bearer(token)).await.result();
        }
        let user = stage.user().await;
        let _get = user.get().await;
        assert_eq!(stage.alive(), 4);
        let began = Instant::now();
        stage.proxy.end().await;
        stage.net.programs().over().await;
        assert!(began.elapsed() <= Duration::from_secs(16), "{:?}", began.elapsed());
        for child in stage.children() {
            assert!(child.input_ended().is_some(), "asked politely first");
            assert_eq!(!child.kills().is_empty() && child.ended().await.1.contains("KILL"), ignores);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn c55_modern_processes_are_ended_too() {
    let stage = Stage::modern("").await;
    for token in ["a", "b"] {
        stage.send(&list("tools/list").bearer(token)).await.result();
    }
    stage.proxy.end().await;
    stage.net.programs().over().await;
    assert!(stage.children().iter().all(|child| child.terminations().is_empty()));
}

/// Calls in flight have the grace period; then they are told, and the processes go.
#[tokio::test(start_paused = true)]
async fn c55_calls_come_to_their_end_first() {
    let stage = Stage::legacy("").await;
    let quick = stage.begin(&plain(1)).await;
    let slow = stage.begin(&plain(2).id("\"slow\"")).await;
    let proxy = stage.proxy.clone();
    let ending = tokio::spawn(async move { proxy.end().await });
    pass(1_000).await;
    assert_eq!(stage.alive(), 1, "calls are in it");
    quick.call.finish("done");
    ends_with(&quick.done().await, "done");
    let late = slow.done().await;
    assert_eq!((late.code(), late.message["id"].as_str()), (-32603, Some("slow")), "{}", late.raw);
    ending.await.unwrap();
    stage.net.programs().over().await;
}

/// One that was started in the last moment, and one that has not said a word yet.
#[tokio::test(start_paused = true)]
async fn c55_a_process_that_is_starting() {
    let stage = scripted("", |mut child: Child| async move {
        child.listen().await;
        0
    })
    .await;
    let client = stage.run(&plain(1));
    pass(1_000).await;
    assert_eq!(stage.alive(), 1);
    stage.proxy.end().await;
    assert!(done(client).await.message.get("error").is_some());
    stage.net.programs().over().await;
}

/// A second process of the same key starts while the first one is still on its way out.
#[tokio::test(start_paused = true)]
async fn c55_a_slow_end_holds_up_nobody() {
    let stage = Stage::legacy("[upstream.up.session]\nidle = \"60s\"\n").await;
    stubborn(&stage, true, None);
    stage.finished(&plain(1), "done").await;
    let first = stage.child(1).await;
    while first.input_ended().is_none() {
        pass(1_000).await;
    }
    let began = Instant::now();
    let client = stage.run(&plain(2));
    stage.calls.wait(2).await.finish("done");
    ends_with(&done(client).await, "done");
    assert!(began.elapsed().as_millis() < 1_000, "{:?}", began.elapsed());
    first.reaped().await;
    stage.nothing_is_left().await;
}

/// A program that goes on talking while it is ended.
#[tokio::test(start_paused = true)]
async fn c55_a_program_that_talks_to_the_end() {
    let stage = Stage::canned(legacy_server(), "").await;
    let serve = stage.behind();
    stage.net.programs().put("server", move |child: Child| {
        let serve = serve.clone();
        async move {
            let running = child.running();
            serve(child).await;
            for n in 0..100_000 {
                running.say(&format!("bye {n} {}", "b".repeat(1_000)));
                running.complain(b"bye\n");
            }
            0
        }
    });
    let user = stage.user().await;
    user.delete().await;
    let (_, how) = stage.child(1).await.ended().await;
    assert_eq!(how, "exit status: 0", "it is read to its end");
    stage.child(1).await.reaped().await;
}
