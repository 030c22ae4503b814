//! Hundreds of parked calls of many callers, answered, left, answered twice, answered badly and stolen at random, on a
//! paused clock and from a fixed seed.
//!
//! Holds the proxy to invariants 1, 2, 3 and 5: every request has one answer, under its own id; every call is run once and
//! every question answered once at most, by its own caller (`stress_server` looks at that); at the end nothing is left.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::stage::PARKED;
use crate::stress_server::Ledger;
use crate::support::leftovers::standing;
use crate::support::questions::ALL;
use crate::support::{Ask, Choice, Done, Gets, Net, Proxy, Round, Value, call, pass, within};

struct Users {
    proxy: Arc<Proxy>,
    ended: AtomicU64,
    left: AtomicU64,
    refused: AtomicU64,
    rounds: AtomicU64,
}

/// How a call of a user came to its end.
enum End {
    Answered,
    Left,
}

fn id(choice: &mut Choice) -> String {
    let n = choice.below(4);
    if choice.below(2) == 0 { n.to_string() } else { format!("\"{n}\"") }
}

/// Good answers to all questions of a round, or to those that `keep` says.
fn answers(round: &Round, n: u64, user: &str, keep: impl Fn(usize) -> bool) -> Vec<(String, String)> {
    let answer = |entry: &Value| match entry["method"].as_str() {
        Some("roots/list") => format!(r#"{{"roots":[{{"uri":"file:///{user}"}}]}}"#),
        Some("sampling/createMessage") => {
            format!(r#"{{"role":"assistant","model":"m","content":{{"type":"text","text":"of {n}"}}}}"#)
        }
        _ if entry["params"]["mode"] == "url" => r#"{"action":"accept"}"#.to_owned(),
        _ => format!(r#"{{"action":"accept","content":{{"n":"of {n}"}}}}"#),
    };
    let kept = round.entries().iter().enumerate().filter(|(at, _)| keep(*at));
    kept.map(|(_, (key, entry))| (key.clone(), answer(entry))).collect()
}

fn retry(round: &Round, id: &str, answers: &[(String, String)]) -> Ask {
    let answers: Vec<_> = answers.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    round.retry(id, &answers)
}

/// A result but for its state, which may be written anew.
fn stateless(result: &Value) -> Value {
    let mut result = result.clone();
    result.as_object_mut().unwrap().remove("requestState");
    result
}

impl Users {
    async fn send(&self, ask: &Ask) -> Done {
        let done = within("an answer", self.proxy.send(ask)).await;
        let id: Value = serde_json::from_str(ask.id.as_ref().unwrap()).unwrap();
        assert_eq!(done.message["id"], id, "{}", done.raw);
        done
    }

    fn is_refused(&self, done: &Done) {
        assert_eq!(
            (done.status, done.message["error"]["code"].as_i64()),
            (200, Some(-32602)),
            "{}",
            done.raw
        );
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// All of one call, until it is answered for good or its caller has had enough.
    async fn one_call(&self, n: u64, user: &str, seed: u64) -> End {
        let mut choice = Choice::nth(seed.wrapping_add(1000), n);
        choice.pause(2_000).await;
        let mut ask = call("ask", &format!(r#"{{"n":{n}}}"#)).caps(ALL).bearer(user).id(&id(&mut choice));
        let mut done = self.send(&ask).await;
        let mut old: Option<Round> = None;
        while done.message["result"]["resultType"] == "input_required" {
            let round = Round::of(&ask, done);
            self.rounds.fetch_add(1, Ordering::Relaxed);
            for entry in round.entries().values() {
                let words = [&entry["params"]["message"], &entry["params"]["systemPrompt"]];
                let own = words.iter().any(|words| **words == format!("of {n}"));
                assert!(
                    own || entry["method"] == "roots/list",
                    "another's question, not {n}'s: {}",
                    round.done.raw
                );
            }
            if choice.below(3) > 0 {
                choice.pause(20_000).await;
            }
            if let Some(old) = &old {
                let again = self.send(&retry(old, "7", &answers(old, n, user, |_| true))).await;
                if again.message.get("error").is_some() {
                    self.is_refused(&again);
                }
            }
            let Some((next, answered)) = self.one_round(&round, n, user, &mut choice).await else {
                return End::Left;
            };
            old = (choice.below(8) == 0).then_some(round);
            (ask, done) = (next, answered);
        }
        self.is_an_end(&done, n);
        End::Answered
    }

    fn is_an_end(&self, done: &Done, n: u64) {
        if done.message.get("result").is_some() {
            assert_eq!(done.result()["content"][0]["text"], format!("done {n}"), "{}", done.raw);
        } else {
            // The server died, or its question was never told.
            assert!([-32603, -32602].contains(&done.code()), "{} {}", done.status, done.raw);
        }
    }

    /// What one caller makes of a round; `None` where it never comes back.
    async fn one_round(&self, round: &Round, n: u64, user: &str, choice: &mut Choice) -> Option<(Ask, Done)> {
        let all = answers(round, n, user, |_| true);
        let good = retry(round, &id(choice), &all);
        match choice.below(16) {
            0 => {
                // Too late.
                choice.pause(60_000).await;
                pass(310_000).await;
                self.is_refused(&self.send(&good).await);
                return None;
            }
            1 => return None,
            2 => {
                let running = self.proxy.spawn(&good);
                choice.pause(30).await;
                running.abort();
                pass(1_000).await;
                return None;
            }
            3 | 4 => {
                let (first, second) = (self.proxy.spawn(&good), self.proxy.spawn(&good.clone().id("\"b\"")));
                let (first, second) =
                    (within("an end", first).await.unwrap(), within("an end", second).await.unwrap());
                let (won, other) =
                    if first.message.get("error").is_some() { (second, first) } else { (first, second) };
                match (won.message.get("result"), other.message.get("result")) {
                    (Some(one), Some(two)) => assert_eq!(stateless(one), stateless(two), "the same for both"),
                    (Some(_), None) => self.is_refused(&other),
                    (None, _) => {}
                }
                return Some((good.id(&won.message["id"].to_string()), won));
            }
            5 => {
                let bad: Vec<_> = all.iter().map(|(key, _)| (key.clone(), r#"{"x":1}"#.to_owned())).collect();
                let done = self.send(&retry(round, "\"bad\"", &bad)).await;
                // The server may be done meanwhile: then there is nothing to look at any more.
                if done.message.get("result").is_some() || done.code() == -32603 {
                    return Some((good.id("\"bad\""), done));
                }
                self.is_refused(&done);
            }
            6 => self.is_refused(&self.send(&good.clone().bearer("thief").id("\"t\"")).await),
            7 => {
                let one = retry(round, "\"part\"", &answers(round, n, user, |at| at == 0));
                let done = self.send(&one).await;
                return Some((one, done));
            }
            _ => {}
        }
        let done = self.send(&good).await;
        Some((good, done))
    }
}

async fn run(beside: bool, users: u64, calls: u64, seed: u64) -> (f64, (usize, usize), Arc<Users>) {
    let (net, gets, ledger) = (Net::new(), Gets::open(), Arc::new(Ledger::default()));
    let _up = ledger.server(&gets, beside, seed).start(&net);
    let proxy = Arc::new(Proxy::start(&net).await);
    let all = Arc::new(Users {
        proxy: proxy.clone(),
        ended: AtomicU64::new(0),
        left: AtomicU64::new(0),
        refused: AtomicU64::new(0),
        rounds: AtomicU64::new(0),
    });
    let running: Vec<_> = (0..users * calls)
        .map(|n| {
            let all = all.clone();
            tokio::spawn(async move {
                match all.one_call(n, &format!("user-{}", n % users), seed).await {
                    End::Answered => all.ended.fetch_add(1, Ordering::Relaxed),
                    End::Left => all.left.fetch_add(1, Ordering::Relaxed),
                };
            })
        })
        .collect();
    let mut most = 0.0;
    for _ in 0..40 {
        pass(500).await;
        let metrics = proxy.metrics();
        let parked = metrics.lines().find(|line| line.starts_with(&format!("{PARKED}{{")));
        let parked = parked.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0.0);
        most = f64::max(most, parked);
    }
    for one in running {
        one.await.expect("no caller fails");
    }
    // Longer than every timeout: whatever is still there stays.
    pass(3_600_000).await;
    assert_eq!((proxy.sessions(), proxy.feeds(), gets.now()), (0, 0, 0));
    assert_eq!(standing(&proxy.metrics()), [] as [String; 0]);
    ledger.holds(users * calls);
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    assert_eq!(count(&all.ended) + count(&all.left), users * calls, "every call has one end");
    (most, ledger.questions(), all)
}

#[tokio::test(start_paused = true)]
async fn inv1_inv2_inv3_inv5_hundreds_of_parked_calls() {
    for seed in [1, 2] {
        let (most, (asked, answered), all) = run(false, 25, 24, seed).await;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        println!(
            "seed {seed}: {most} parked at once, {asked} questions, {answered} answered by callers, {} rounds, {} ended, {} left, {} refused",
            count(&all.rounds),
            count(&all.ended),
            count(&all.left),
            count(&all.refused)
        );
        assert!(most >= 200.0, "{most} parked at once");
        assert!(answered * 2 > asked && count(&all.refused) > 50, "{answered} of {asked}");
    }
}

/// The same where the server asks on the GET streams of its sessions.
#[tokio::test(start_paused = true)]
async fn inv1_inv2_inv3_inv5_beside_the_calls() {
    for seed in 3..9 {
        let (most, (asked, answered), all) = run(true, 12, 8, seed).await;
        println!(
            "seed {seed}: {most} parked at once, {asked} questions, {answered} answered by callers, {:?} rounds",
            all.rounds
        );
        assert!(answered * 3 > asked, "{answered} of {asked}");
    }
}
