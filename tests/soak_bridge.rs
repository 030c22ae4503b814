//! A soak of bounded length: legacy clients of all revisions that begin sessions, call, are asked, listen, lose connections and
//! go away, in front of a modern server that breaks and restarts.
//!
//! Holds the proxy to invariants 1, 2, 3, 5 and 6: every call is answered once at most, under its own id and with its own
//! content; when everybody has gone, nothing is left: no session, no stream, every gauge is at zero and memory does not grow
//! from round to round. Time is paused; the choices come from a fixed seed. `bridge::stress` has many sessions at once.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use support::leftovers::{resident_kib, standing};
use support::{Choice, Listens, ModernServer, Net, Proxy, Reply, Seen, Stream, User, Value, modern, pass};
use tokio::sync::Notify;

const ROUNDS: u64 = 6;
const WORKERS: u64 = 16;
const STEPS: usize = 16;
/// What the process may have grown by between the third round and the last, in KiB; one leaked session or call in ten
/// would not show less.
const GROWTH: u64 = 8 * 1024;
const REVISIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
const SAMPLE: &str = r#"{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"systemPrompt":"of N","maxTokens":1}}"#;

#[derive(Default)]
struct Ledger {
    /// Told when the server crashes: whatever it is at breaks off.
    crash: Notify,
    running: AtomicU64,
    calls: AtomicU64,
    answered: AtomicU64,
    failed: AtomicU64,
    left: AtomicU64,
    questions: AtomicU64,
    changes: AtomicU64,
}

fn server(ledger: &Arc<Ledger>) -> ModernServer {
    let ledger = ledger.clone();
    ModernServer::full().on("tools/call", move |seen, reply| {
        let ledger = ledger.clone();
        async move {
            ledger.running.fetch_add(1, Ordering::SeqCst);
            run(&ledger, &seen, reply).await;
            ledger.running.fetch_sub(1, Ordering::SeqCst);
        }
    })
}

async fn run(ledger: &Ledger, seen: &Seen, mut reply: Reply) {
    let params = seen.json()["params"].clone();
    let n = params["arguments"]["n"].as_u64().unwrap();
    let rounds = params["requestState"].as_str().map_or(0, |state| state.len() as u64);
    let mut choice = Choice::of(n * 7 + rounds);
    tokio::select! {
        () = choice.pause(200) => {}
        () = ledger.crash.notified() => return reply.reset(),
        () = reply.closed() => return,
    }
    let result = if n.is_multiple_of(3) && rounds < 1 + n % 3 {
        let entry = SAMPLE.replace("of N", &format!("of {n}"));
        modern::asks(&[("k", &entry)], Some(&format!("\"{}\"", "s".repeat(rounds as usize + 1))))
    } else {
        let text = if n.is_multiple_of(11) { "x".repeat(200_000) } else { String::new() };
        let content =
            format!(r#""content":[{{"type":"text","text":"{n} {text}"}}],"structuredContent":[{n}]"#);
        modern::complete("tools/call", &content)
    };
    if choice.below(2) == 0 {
        return reply.result(seen, &result).await;
    }
    reply.stream().await;
    for progress in 0..choice.below(3) {
        let token = &params["_meta"]["progressToken"];
        reply
            .event(&format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{progress}}}}}"#
            ))
            .await;
    }
    reply.result_event(seen, &result).await;
    reply.end().await;
}

/// How a call came to its end.
async fn one_call(user: &User, ledger: &Ledger, choice: &mut Choice) {
    let n = ledger.calls.fetch_add(1, Ordering::Relaxed);
    let id = if n.is_multiple_of(2) { n.to_string() } else { format!("\"{n}\"") };
    let ask = user.old.call("t", &format!(r#"{{"n":{n}}}"#)).id(&id).meta("progressToken", &id);
    let mut stream = user.open(&ask).await;
    let mut heard = 0;
    loop {
        pass(20).await;
        let messages = stream.messages();
        if let Some(answer) = messages.iter().find(|message| message.get("method").is_none()) {
            assert_eq!(answer["id"], serde_json::from_str::<Value>(&id).unwrap(), "{answer}");
            match answer["result"]["content"][0]["text"].as_str() {
                Some(text) if text.starts_with(&format!("{n} ")) => {
                    ledger.answered.fetch_add(1, Ordering::Relaxed)
                }
                _ => ledger.failed.fetch_add(1, Ordering::Relaxed),
            };
            return;
        }
        let questions: Vec<_> =
            messages.into_iter().filter(|m| m.get("id").is_some() && m.get("method").is_some()).collect();
        for question in &questions[heard.min(questions.len())..] {
            ledger.questions.fetch_add(1, Ordering::Relaxed);
            assert_eq!(question["params"]["systemPrompt"], format!("of {n}"), "another's question");
            match choice.below(8) {
                0 => {
                    ledger.left.fetch_add(1, Ordering::Relaxed);
                    return;
                }
                1 => user.refuse(question, -1).await,
                _ => {
                    let answer = r#"{"role":"assistant","model":"m","content":{"type":"text","text":"y"}}"#;
                    user.answer(question, answer).await;
                }
            }
        }
        heard = questions.len();
        match choice.below(40) {
            0 if !stream.last_id().is_empty() && !stream.is_over() => {
                let last = stream.last_id();
                stream.drop_connection().await;
                choice.pause(300).await;
                let resumed = user.resume(&last).await;
                assert!(resumed.is_stream(), "{} {}", resumed.status, resumed.text());
                (stream, heard) = (resumed, 0);
            }
            1 => {
                user.cancel(&id).await;
                ledger.left.fetch_add(1, Ordering::Relaxed);
                return;
            }
            2 => {
                ledger.left.fetch_add(1, Ordering::Relaxed);
                return;
            }
            _ => {}
        }
    }
}

async fn worker(proxy: Arc<Proxy>, ledger: Arc<Ledger>, seed: u64) {
    let mut choice = Choice::of(seed);
    let token = format!("t{}", seed % 4);
    let mut get: Option<Stream> = None;
    let mut user: Option<User> = None;
    for _ in 0..STEPS {
        let now = match &user {
            Some(user) => user.clone(),
            None => {
                let revision = REVISIONS[choice.below(4) as usize];
                let caps = support::user::everything(revision);
                // The server may be away just now.
                match begin(&proxy, revision, caps, &token).await {
                    Some(begun) => user.insert(begun).clone(),
                    None => continue,
                }
            }
        };
        match choice.below(8) {
            0 => {
                if let Some(old) = get.replace(now.get().await) {
                    ledger.changes.fetch_add(old.changes().len() as u64, Ordering::Relaxed);
                }
            }
            1 => get = None,
            2 => {
                now.subscribe(&format!("file:///{}", choice.below(5))).await;
                choice.pause(200).await;
            }
            3 => {
                now.delete().await;
                user = None;
            }
            4 => user = None,
            _ => one_call(&now, &ledger, &mut choice).await,
        }
    }
}

async fn begin(proxy: &Arc<Proxy>, revision: &str, caps: &str, token: &str) -> Option<User> {
    let done = proxy.send(&support::Old::initialize_with(revision, caps).bearer(token)).await;
    done.message.get("result")?;
    Some(User::begin_with(proxy, revision, caps, Some(token)).await)
}

/// The server's crashes and changes while there are workers.
async fn trouble(ledger: Arc<Ledger>, listens: Listens, seed: u64) {
    let mut choice = Choice::of(seed);
    loop {
        choice.pause(1500).await;
        match choice.below(4) {
            0 => {
                ledger.crash.notify_waiters();
                listens.standing().iter().for_each(|listen| listen.cut());
            }
            change => {
                let change = ["tools", "prompts", "resources"][change as usize - 1];
                listens
                    .standing()
                    .iter()
                    .filter(|listen| !listen.flags().is_empty())
                    .for_each(|l| l.tell(change));
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn inv5_nothing_of_legacy_clients_is_left_over() {
    let net = Net::new();
    let ledger = Arc::new(Ledger::default());
    let first = Listens::open();
    first.of(server(&ledger)).start_bridged(&net);
    let lines =
        "cache_lists = true\ntimeouts = { request = \"30s\", answer = \"20s\" }\nsession.idle = \"2m\"\n";
    let proxy = Arc::new(Proxy::with(&net, lines).await);
    let mut sizes = Vec::new();
    for round in 0..ROUNDS {
        // The record of requests that the peer keeps is not the proxy's.
        let listens = Listens::open();
        listens.of(server(&ledger)).start_bridged(&net);
        let troubles = tokio::spawn(trouble(ledger.clone(), listens.clone(), round + 3));
        let workers: Vec<_> = (0..WORKERS)
            .map(|n| tokio::spawn(worker(proxy.clone(), ledger.clone(), round * WORKERS + n + 1)))
            .collect();
        for worker in workers {
            worker.await.expect("no worker fails");
        }
        troubles.abort();
        // Longer than `session.idle` and every timeout of a call: whatever is still there stays.
        pass(3_600_000).await;
        assert_eq!(listens.now(), 0, "round {round}");
        assert_eq!(ledger.running.load(Ordering::SeqCst), 0, "round {round}");
        assert_eq!(standing(&proxy.metrics()), [] as [String; 0], "round {round}");
        sizes.push(resident_kib());
    }
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let (answered, failed, left) = (count(&ledger.answered), count(&ledger.failed), count(&ledger.left));
    println!(
        "{answered} answered, {failed} failed, {left} left, {} questions, {} changes; resident KiB {sizes:?}",
        count(&ledger.questions),
        count(&ledger.changes)
    );
    assert_eq!(answered + failed + left, count(&ledger.calls), "every call has one end");
    assert!(answered > count(&ledger.calls) / 2 && failed > 0 && left > 0);
    assert!(count(&ledger.questions) > 50 && count(&ledger.changes) > 0);
    let (early, late) = (sizes[2], sizes[ROUNDS as usize - 1]);
    assert!(late <= early + GROWTH, "resident KiB after each round: {sizes:?}");
}
