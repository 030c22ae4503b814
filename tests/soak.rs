//! A soak of bounded length: many callers and listeners, some of which go away in the middle, in front of a legacy server
//! that forgets its sessions and restarts.
//!
//! Holds the proxy to invariants 1, 2, 3 and 5: every call is answered once, under its own id and with its own content,
//! and runs once at most; when everybody has gone, nothing is left: no session, feed or stream, every gauge is at zero
//! and memory does not grow from round to round. Time is paused; the choices come from a fixed seed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/mod.rs"]
mod support;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::leftovers::{resident_kib, standing};
use support::{Ask, Choice, LegacyServer, Net, Proxy, Value, call, json, pass};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

const ROUNDS: usize = 6;
const WORKERS: u64 = 24;
const STEPS: usize = 30;
/// What the process may have grown by between the third round and the last, in KiB; one leaked call a round would
/// not show, one in ten calls would.
const GROWTH: u64 = 8 * 1024;

/// What the server has seen and what the callers have got.
#[derive(Default)]
struct Ledger {
    ran: Mutex<HashMap<u64, usize>>,
    /// Told when the server crashes: whatever it is at breaks off.
    crash: Notify,
    calls: AtomicU64,
    answered: AtomicU64,
    failed: AtomicU64,
    cancelled: AtomicU64,
    notices: AtomicU64,
    acknowledged: AtomicU64,
}

fn server(ledger: &Arc<Ledger>) -> LegacyServer {
    let (of_call, of_get) = (ledger.clone(), ledger.clone());
    LegacyServer::new()
        .capabilities(
            r#"{"tools":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"logging":{}}"#,
        )
        .result("resources/subscribe", "{}")
        .result("resources/unsubscribe", "{}")
        .on("tools/call", move |seen, mut reply| {
            let ledger = of_call.clone();
            async move {
                let params = &seen.json()["params"];
                let n = params["arguments"]["n"].as_u64().unwrap();
                *ledger.ran.lock().unwrap().entry(n).or_default() += 1;
                let result = format!(r#"{{"content":[{{"type":"text","text":"{n}"}}]}}"#);
                tokio::select! {
                    () = sleep(Duration::from_millis(n % 97)) => {}
                    () = ledger.crash.notified() => return reply.reset(),
                }
                match n % 4 {
                    0 => reply.result(&seen, &result).await,
                    1 => reply.streamed_result(&seen, &result).await,
                    _ => {
                        reply.stream().await;
                        let token = &params["_meta"]["progressToken"];
                        reply
                            .event(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#)
                            .await;
                        if !token.is_null() {
                            let progress = format!(
                                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":1}}}}"#
                            );
                            reply.event(&progress).await;
                        }
                        sleep(Duration::from_millis(n % 31)).await;
                        reply.result_event(&seen, &result).await;
                        reply.end().await;
                    }
                }
            }
        })
        .on("GET", move |seen, mut reply| {
            let ledger = of_get.clone();
            async move {
                reply.stream().await;
                let mut choice = Choice::of(seen.connection as u64 + 77);
                for turn in 0.. {
                    let quiet = Duration::from_millis(choice.below(400) + 50);
                    let closed = tokio::select! {
                        closed = timeout(quiet, reply.closed()) => closed.is_ok(),
                        () = ledger.crash.notified() => true,
                    };
                    if closed {
                        return;
                    }
                    let change = if turn % 2 == 0 {
                        r#""method":"notifications/resources/list_changed""#
                    } else {
                        r#""method":"notifications/resources/updated","params":{"uri":"file:///d/x"}"#
                    };
                    reply.event(&format!(r#"{{"jsonrpc":"2.0",{change}}}"#)).await;
                }
            }
        })
}

async fn one_call(proxy: &Proxy, ledger: &Ledger, choice: &mut Choice, token: &str) {
    let n = ledger.calls.fetch_add(1, Ordering::Relaxed);
    let id = if n.is_multiple_of(2) { format!("{}", n % 3) } else { format!("\"{}\"", n % 3) };
    let mut ask = call("echo", &format!(r#"{{"n":{n}}}"#)).id(&id).bearer(token);
    if n.is_multiple_of(3) {
        ask = ask.meta("progressToken", "\"mine\"").meta("io.modelcontextprotocol/logLevel", "\"debug\"");
    }
    let asked = proxy.spawn(&ask);
    if choice.below(5) == 0 {
        choice.pause(60).await;
        asked.abort();
        ledger.cancelled.fetch_add(1, Ordering::Relaxed);
        return;
    }
    let done = asked.await.expect("an answer");
    let expected: Value = serde_json::from_str(&id).unwrap();
    assert_eq!(done.message["id"], expected, "{}", done.raw);
    for before in &done.before {
        assert_ne!(before["method"], "notifications/tools/list_changed", "A2.5");
    }
    if done.message.get("result").is_some() {
        assert_eq!(
            done.message["result"]["content"][0]["text"],
            json!(n.to_string()),
            "another call's answer"
        );
        ledger.answered.fetch_add(1, Ordering::Relaxed);
    } else {
        assert_eq!(done.code(), -32603, "{}", done.raw);
        ledger.failed.fetch_add(1, Ordering::Relaxed);
    }
}

async fn one_listener(proxy: &Proxy, ledger: &Ledger, choice: &mut Choice, token: &str) {
    let id = format!("\"l{}\"", choice.below(9));
    let tag: Value = serde_json::from_str(&id).unwrap();
    let ask = Ask::new("subscriptions/listen").id(&id).bearer(token).params(
        r#""notifications":{"toolsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["file:///d","file:///e"]}"#,
    );
    let mut answer = proxy.open(&ask).await;
    if answer.status != 200 {
        let done = answer.done().await;
        assert_eq!((done.code(), &done.message["id"]), (-32603, &tag), "{}", done.raw);
        return;
    }
    let stay = Duration::from_millis(choice.below(3000) + 20);
    let heard = async {
        let first = answer.message().await;
        if first.get("error").is_some() {
            return;
        }
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
        ledger.acknowledged.fetch_add(1, Ordering::Relaxed);
        while let Some(event) = answer.event().await {
            let message: Value = serde_json::from_str(&event.data).unwrap();
            assert_eq!(
                message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], tag,
                "{message}"
            );
            let method = message["method"].as_str().unwrap();
            assert!(!method.contains("prompts"), "not asked for: {message}");
            ledger.notices.fetch_add(1, Ordering::Relaxed);
        }
    };
    let _ = timeout(stay, heard).await;
}

async fn worker(proxy: Arc<Proxy>, ledger: Arc<Ledger>, seed: u64) {
    let mut choice = Choice::of(seed);
    let token = format!("t{}", seed % 4);
    for _ in 0..STEPS {
        match choice.below(5) {
            0 => one_listener(&proxy, &ledger, &mut choice, &token).await,
            1 => choice.pause(200).await,
            _ => one_call(&proxy, &ledger, &mut choice, &token).await,
        }
    }
}

/// The server's restarts and losses while `over` has not happened.
async fn trouble(net: Net, server: LegacyServer, ledger: Arc<Ledger>, seed: u64) {
    let mut choice = Choice::nth(seed, 0);
    loop {
        pass(choice.below(4000) + 500).await;
        server.forget_sessions();
        if choice.below(2) == 0 {
            ledger.crash.notify_waiters();
            server.start(&net);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_lost_doubled_or_left_over() {
    let net = Net::new();
    let ledger = Arc::new(Ledger::default());
    let server = server(&ledger);
    server.start(&net);
    let proxy = Arc::new(Proxy::start(&net).await);
    let mut sizes = Vec::new();
    for round in 0..ROUNDS as u64 {
        let troubles = tokio::spawn(trouble(net.clone(), server.clone(), ledger.clone(), round + 3));
        let workers: Vec<_> = (0..WORKERS)
            .map(|n| tokio::spawn(worker(proxy.clone(), ledger.clone(), round * WORKERS + n + 1)))
            .collect();
        for worker in workers {
            worker.await.expect("no worker fails");
        }
        troubles.abort();
        // Longer than `session.idle` and every timeout of a call: whatever is still there stays.
        pass(3_600_000).await;
        let legacy = &proxy.upstream().legacy;
        assert_eq!((legacy.sessions(), legacy.feeds()), (0, 0), "round {round}");
        assert_eq!(standing(&proxy.metrics()), [] as [String; 0], "round {round}");
        sizes.push(resident_kib());
        // The record of requests that the peer keeps is not the proxy's.
        server.start(&net);
    }
    let ran = ledger.ran.lock().unwrap();
    let twice: Vec<_> = ran.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "ran more than once: {twice:?}");
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let (answered, failed, cancelled) =
        (count(&ledger.answered), count(&ledger.failed), count(&ledger.cancelled));
    assert_eq!(answered + failed + cancelled, count(&ledger.calls), "every call has one end");
    assert!(failed > 0 && answered > failed * 10, "{answered} answered, {failed} failed");
    assert!(count(&ledger.acknowledged) > 100 && count(&ledger.notices) > 1000, "listeners have listened");
    let (early, late) = (sizes[2], sizes[ROUNDS - 1]);
    assert!(late <= early + GROWTH, "resident KiB after each round: {sizes:?}");
    println!(
        "{answered} answered, {failed} failed, {cancelled} cancelled, {} notices; resident KiB {sizes:?}",
        count(&ledger.notices)
    );
}
