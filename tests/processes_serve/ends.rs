//! C55: how processes end with their sessions and with the proxy, and that each is reaped.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::procs::{below, gone, lives, until, zombies};
use crate::stage::{Legacy, Served};

/// SIGTERM: every process and what it has started is gone when the proxy is.
#[test]
fn c55_sigterm_ends_and_reaps_all() {
    for words in [&["modern"][..], &[], &["stubborn", "forks"], &["modern", "stubborn", "floods"]] {
        let served = Served::before(words);
        served.text("echo", json!({"text": "x"}));
        let legacy = [Legacy::begin(&served), Legacy::begin(&served)];
        legacy.iter().for_each(|client| assert_eq!(client.text("echo", json!({"text": "y"})), "y"));
        let all = below(served.pid());
        assert!(!all.is_empty(), "{words:?}");
        let began = Instant::now();
        let (code, log) = served.terminate();
        assert_eq!(code, Some(0), "{words:?}: {log}");
        assert!(began.elapsed() < Duration::from_secs(12), "{words:?}: {:?}", began.elapsed());
        let left: Vec<_> = all.iter().filter(|pid| lives(**pid)).collect();
        assert!(left.is_empty(), "{words:?}: {left:?} of {all:?}\n{log}");
    }
}

/// DELETE ends the session's process and its group; the proxy and the others go on.
#[test]
fn c55_delete_ends_the_whole_group() {
    for words in [&[][..], &["forks"], &["stubborn"], &["stubborn", "forks"]] {
        let served = Served::before(words);
        let (one, two) = (Legacy::begin(&served), Legacy::begin(&served));
        let pids = |client: &Legacy| -> (u32, Option<u32>) {
            serde_json::from_str(&client.text("pid", json!({}))).unwrap()
        };
        let (pid, grandchild) = pids(&one);
        let ended: Vec<_> = [Some(pid), grandchild].into_iter().flatten().collect();
        assert!((200..300).contains(&one.send("DELETE", &Value::Null).status), "{words:?}");
        let took = gone(&ended);
        // Its input, SIGTERM, SIGKILL, two seconds apart.
        let most = if words.contains(&"stubborn") { 6 } else { 2 };
        assert!(took < Duration::from_secs(most), "{words:?}: {took:?}");
        until("its reaping", || zombies(served.pid()).is_empty());
        assert_eq!(two.text("echo", json!({"text": "x"})), "x", "{words:?}");
    }
}

/// A call that still runs has the grace period, and then its answer.
#[test]
fn c55_a_call_comes_to_its_end_first() {
    for words in [&["modern"][..], &[]] {
        let served = Served::before(words);
        served.text("echo", json!({"text": "x"}));
        let address = served.address;
        let slow = std::thread::spawn(move || {
            let params = json!({"name": "sleep", "arguments": {"ms": 1500}, "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            }});
            let body =
                json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
            let headers =
                [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "sleep")];
            crate::http::send(address, "POST", &headers, &body).response()
        });
        // The head of its answer has been sent by then.
        std::thread::sleep(Duration::from_millis(700));
        let all = below(served.pid());
        assert_eq!(served.terminate().0, Some(0), "{words:?}");
        assert_eq!(slow.join().unwrap()["result"]["content"][0]["text"], "slept", "{words:?}");
        assert!(all.iter().all(|pid| !lives(*pid)), "{words:?}");
    }
}

/// A process that nobody uses ends by itself.
#[test]
fn an_idle_process_is_ended() {
    for words in [&["modern"][..], &[], &["stubborn", "forks"]] {
        let lines = "[upstream.up.session]\nidle = \"1s\"\n[upstream.up.timeouts]\nstop = \"300ms\"\n";
        let served = Served::configured(words, lines);
        served.text("echo", json!({"text": "x"}));
        let all = below(served.pid());
        gone(&all);
        until("its reaping", || below(served.pid()).is_empty());
        assert_eq!(served.text("echo", json!({"text": "again"})), "again", "{words:?}");
    }
}
