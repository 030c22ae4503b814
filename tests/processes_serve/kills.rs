//! C55, C56: `kill -9` of anything leaves the rest right.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::procs::{below, gone, lives, signal, until, zombies};
use crate::stage::{Legacy, Served, peer};

/// Files by which calls say that they are in their process.
struct Marks(tempfile::TempDir);

impl Marks {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn arguments(&self, name: &str) -> Value {
        json!({"mark": self.path(name)})
    }

    fn wait(&self, name: &str) {
        until(&format!("the call {name}"), || self.path(name).exists());
    }
}

#[track_caller]
fn is_lost(response: &Value, id: &Value) {
    assert_eq!((&response["id"], &response["error"]["code"]), (id, &json!(-32603)), "{response}");
}

/// Fifty times, with three calls in the middle: each has its one answer, and nothing is left over.
#[test]
fn c56_fifty_kills_in_the_middle_of_calls() {
    for words in [&["modern"][..], &[]] {
        let (served, marks) = (Served::before(words), Marks::new());
        for round in 0..25 {
            let (pid, _) = served.pids();
            thread::scope(|scope| {
                let calls: Vec<_> = (0..3)
                    .map(|n| {
                        let (served, name) = (&served, format!("{round}-{n}"));
                        let arguments = marks.arguments(&name);
                        scope.spawn(move || served.call(&name, "hang", arguments))
                    })
                    .collect();
                (0..3).for_each(|n| marks.wait(&format!("{round}-{n}")));
                signal("-KILL", pid);
                let killed = std::time::Instant::now();
                for (n, call) in calls.into_iter().enumerate() {
                    is_lost(&call.join().unwrap(), &json!(format!("{round}-{n}")));
                }
                assert!(killed.elapsed() < Duration::from_secs(2), "{:?}", killed.elapsed());
            });
            until("its reaping", || zombies(served.pid()).is_empty());
        }
        // The next one serves as the first did.
        assert_eq!(served.text("echo", json!({"text": "after"})), "after");
        assert_eq!(below(served.pid()).len(), 1, "{words:?}");
        let runs = std::fs::read_dir(marks.0.path()).unwrap().count();
        assert_eq!(runs, 75, "none ran twice");
    }
}

/// The same of a legacy client, which begins a new session each time.
#[test]
fn c56_kills_under_legacy_clients() {
    for words in [&["modern"][..], &[]] {
        let (served, marks) = (Served::before(words), Marks::new());
        for round in 0..10_u32 {
            let client = Legacy::begin(&served);
            let (pid, _): (u32, Option<u32>) = serde_json::from_str(&client.text("pid", json!({}))).unwrap();
            let name = round.to_string();
            let arguments = marks.arguments(&name);
            thread::scope(|scope| {
                let call = scope.spawn(|| client.open(round, "hang", arguments).response());
                marks.wait(&name);
                signal("-KILL", pid);
                is_lost(&call.join().unwrap(), &json!(round));
            });
        }
        until("their reaping", || zombies(served.pid()).is_empty());
        assert!(below(served.pid()).len() <= 1, "{:?}", below(served.pid()));
    }
}

/// What a process leaves behind in its group ends with it.
#[test]
fn c55_a_grandchild_does_not_outlive_its_parent() {
    let served = Served::before(&["forks"]);
    let (pid, grandchild) = served.pids();
    let grandchild = grandchild.expect("a child of its own");
    assert!(lives(grandchild));
    signal("-KILL", pid);
    gone(&[pid, grandchild]);
    assert_eq!(served.text("echo", json!({"text": "after"})), "after");
}

/// The child's child serves, as with `npx`.
#[test]
fn c55_a_shell_between() {
    let command = format!("{} modern forks; exit 9", peer().display());
    let served = Served::command(&["sh", "-c", &command]);
    let (pid, grandchild) = served.pids();
    let all = below(served.pid());
    assert!(all.contains(&pid) && all.len() == 3, "{all:?}");
    signal("-KILL", pid);
    gone(&[pid, grandchild.unwrap()]);
    assert_eq!(served.text("echo", json!({"text": "after"})), "after");
    let all = below(served.pid());
    assert_eq!(served.terminate().0, Some(0));
    assert!(all.iter().all(|pid| !lives(*pid)), "{all:?}");
}

/// The proxy itself is killed: its children go, whatever they heed, and those of a shell by the end of their input.
#[test]
fn c55_the_proxy_is_killed() {
    for words in [&["modern"][..], &[], &["stubborn"], &["modern", "stubborn", "floods"], &["silent"]] {
        let served = Served::before(words);
        let hanging = words.contains(&"silent").then(|| {
            let address = served.address;
            thread::spawn(move || {
                // Its answer never comes.
                let _ = std::panic::catch_unwind(|| {
                    crate::http::send(address, "POST", &[], r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#)
                });
            })
        });
        if hanging.is_none() {
            served.text("echo", json!({"text": "x"}));
        }
        until("a process", || !below(served.pid()).is_empty());
        let all = below(served.pid());
        served.kill();
        let took = gone(&all);
        assert!(took < Duration::from_secs(3), "{words:?}: {took:?}");
        drop(hanging);
    }
    let command = format!("{} modern; exit 9", peer().display());
    let served = Served::command(&["sh", "-c", &command]);
    served.text("echo", json!({"text": "x"}));
    let all = below(served.pid());
    assert_eq!(all.len(), 2);
    served.kill();
    gone(&all);
}

/// A process that is stopped answers nothing and takes nothing: its calls have their time, others are not bothered, and it
/// goes on when it is woken.
#[test]
fn c56_a_stopped_process() {
    let served = Served::configured(&["modern"], "[upstream.up.timeouts]\nrequest = \"1500ms\"\n");
    let (pid, _) = served.pids();
    signal("-STOP", pid);
    is_lost(&served.call("a", "echo", json!({"text": "x"})), &json!("a"));
    signal("-CONT", pid);
    assert_eq!(served.text("echo", json!({"text": "after"})), "after");
    assert_eq!(served.pids().0, pid, "the same one");
    signal("-STOP", pid);
    assert_eq!(served.terminate().0, Some(0));
    assert!(!lives(pid), "also one that cannot hear");
}
