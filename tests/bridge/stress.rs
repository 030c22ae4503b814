//! Hundreds of sessions with open streams and calls in the middle of a round, whose clients vanish, come back, cancel, answer
//! badly or steal at random, on a paused clock and from a fixed seed.
//!
//! Holds the proxy to invariants 1, 2, 3, 5 and 6: every request has one answer at most, under its own id; every question goes
//! to its own caller, and its answer to the call that asked; at the end nothing is left, neither here nor at the server.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::stage::{LATEST, Stage, parse};
use crate::support::{
    Calls, Choice, Listens, ModernServer, Reply, Seen, Stream, User, Value, json, modern, pass,
};

/// What the server has seen of each call, by its mark.
#[derive(Default)]
struct Ledger {
    rounds: Mutex<HashMap<u64, u64>>,
    running: AtomicU64,
    faults: Mutex<Vec<String>>,
}

impl Ledger {
    fn fault(&self, text: String) {
        self.faults.lock().unwrap().push(text);
    }

    /// One request of a call: the state says which round it is, and its answers must be of this call.
    async fn run(&self, seen: &Seen, mut reply: Reply, seed: u64) {
        let params = seen.json()["params"].clone();
        let n = params["arguments"]["n"].as_u64().unwrap();
        let who = seen.header("authorization").unwrap_or_default();
        let round = match params.get("requestState").and_then(Value::as_str) {
            None => 0,
            Some(state) => match state.strip_prefix(&format!("{n}:")).and_then(|round| round.parse().ok()) {
                Some(round) => round,
                None => return self.fault(format!("the state of another call: {params}")),
            },
        };
        {
            let mut rounds = self.rounds.lock().unwrap();
            let next = rounds.entry(n).or_default();
            if *next != round {
                self.fault(format!("call {n} is in round {next}, not {round}"));
            }
            *next = round + 1;
        }
        if round > 0 {
            for (key, value) in params["inputResponses"].as_object().into_iter().flatten() {
                let text = value.to_string();
                if !text.contains(&format!("of {n}\"")) || !key.starts_with(&format!("{n}-{round}")) {
                    self.fault(format!(
                        "call {n} of {who}, round {round}: an answer of another: {key} {text}"
                    ));
                }
            }
        }
        let mut choice = Choice::nth(seed, n * 31 + round);
        choice.pause(3000).await;
        if choice.below(3) == 0 {
            reply.stream().await;
            let token = &params["_meta"]["progressToken"];
            if !token.is_null() {
                for progress in 0..choice.below(4) {
                    let progress = round * 10 + progress;
                    reply.event(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": progress}}).to_string()).await;
                }
            }
            match choice.below(20) {
                0 => return reply.reset(),
                1 => return reply.end().await,
                2 => return reply.never().await,
                _ => {}
            }
            reply.result_event(seen, &self.result(n, round, &mut choice)).await;
            return reply.end().await;
        }
        let result = self.result(n, round, &mut choice);
        reply.result(seen, &result).await;
    }

    fn result(&self, n: u64, round: u64, choice: &mut Choice) -> String {
        if round >= 3 || choice.below(4) == 0 {
            return modern::complete(
                "tools/call",
                &format!(r#""content":[{{"type":"text","text":"done {n}"}}]"#),
            );
        }
        let next = round + 1;
        let entries: Vec<_> = (0..1 + choice.below(3))
            .map(|at| {
                let entry = match choice.below(3) {
                    0 => format!(
                        r#"{{"method":"elicitation/create","params":{{"message":"of {n}","requestedSchema":{{"type":"object","properties":{{"n":{{"type":"string"}}}}}}}}}}"#
                    ),
                    _ => format!(
                        r#"{{"method":"sampling/createMessage","params":{{"messages":[],"systemPrompt":"of {n}","maxTokens":1}}}}"#
                    )
                    .replace(r#""messages":[]"#, r#""messages":[{"role":"user","content":{"type":"text","text":"x"}}]"#),
                };
                (format!("{n}-{next}-{at}"), entry)
            })
            .collect();
        let entries: Vec<_> = entries.iter().map(|(key, entry)| (key.as_str(), entry.as_str())).collect();
        modern::asks(&entries, Some(&format!(r#""{n}:{next}""#)))
    }
}

#[derive(Default)]
struct Tally {
    answered: AtomicU64,
    failed: AtomicU64,
    vanished: AtomicU64,
    cancelled: AtomicU64,
    resumed: AtomicU64,
    polled: AtomicU64,
    questions: AtomicU64,
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// A good answer to a question of this call; another's question fails the test.
fn good(question: &Value, n: u64) -> String {
    let params = &question["params"];
    let words = [&params["message"], &params["systemPrompt"]];
    assert!(
        words.iter().any(|words| **words == format!("of {n}")),
        "another's question, not {n}'s: {question}"
    );
    if question["method"] == "elicitation/create" {
        return format!(r#"{{"action":"accept","content":{{"n":"of {n}"}}}}"#);
    }
    format!(r#"{{"role":"assistant","model":"m","content":{{"type":"text","text":"of {n}"}}}}"#)
}

/// All of one call, until it is answered or its client has had enough.
async fn one_call(user: &User, thief: &User, n: u64, seed: u64, tally: &Tally) {
    let mut choice = Choice::nth(seed + 1000, n);
    choice.pause(5000).await;
    let id = if choice.below(2) == 0 { n.to_string() } else { format!("\"{n}\"") };
    let ask = user.old.call("ask", &format!(r#"{{"n":{n}}}"#)).id(&id).meta("progressToken", &id);
    let mut stream = user.open(&ask).await;
    let mut answered = 0;
    let mut last = String::new();
    loop {
        pass(200).await;
        let messages = stream.messages();
        if !stream.last_id().is_empty() {
            last = stream.last_id();
        }
        if let Some(answer) = messages.iter().find(|message| message.get("method").is_none()) {
            assert_eq!(answer["id"], parse(&id), "{answer}");
            let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
            add(if text == format!("done {n}") { &tally.answered } else { &tally.failed });
            return;
        }
        let questions: Vec<_> =
            messages.into_iter().filter(|m| m.get("method").is_some() && m.get("id").is_some()).collect();
        if questions.len() > answered {
            let question = &questions[answered];
            let answer = good(question, n);
            add(&tally.questions);
            match choice.below(24) {
                0 => return add(&tally.vanished),
                1 => {
                    user.cancel(&id).await;
                    stream.end().await;
                    assert!(!stream.briefs().contains(&"answer".to_owned()));
                    return add(&tally.cancelled);
                }
                2 => user.refuse(question, -1).await,
                3 => user.answer(question, r#"{"x":1}"#).await,
                4 => {
                    thief.answer(question, &answer.replace(&format!("of {n}"), "stolen")).await;
                    user.answer(question, &answer).await;
                }
                5 => {
                    user.answer(question, &answer).await;
                    user.answer(question, &answer).await;
                }
                _ => user.answer(question, &answer).await,
            }
            answered += 1;
            continue;
        }
        if stream.is_over() && user.revision() == LATEST {
            // Let go (`session.poll`): it comes back for the rest.
            let resumed = user.resume(&last).await;
            assert!(resumed.is_stream(), "{} {}", resumed.status, resumed.text());
            (stream, answered) = (resumed, 0);
            add(&tally.polled);
            continue;
        }
        assert!(!stream.is_over(), "an end without an answer: {:?}", stream.briefs());
        if choice.below(15) == 0 && !last.is_empty() {
            // The connection goes, and the client comes back for the rest.
            stream.drop_connection().await;
            choice.pause(3000).await;
            let resumed = user.resume(&last).await;
            assert!(resumed.is_stream(), "{}", resumed.text());
            stream = resumed;
            answered = 0;
            add(&tally.resumed);
        }
        if choice.below(100) == 0 {
            return add(&tally.vanished);
        }
    }
}

/// Opens, loses and opens the session's own stream; whatever is heard there are changes.
async fn own_stream(user: User, seed: u64, n: u64) {
    let mut choice = Choice::nth(seed + 2000, n);
    let mut kept: Option<Stream> = None;
    for _ in 0..6 {
        choice.pause(4000).await;
        if let Some(stream) = &kept {
            stream.messages();
        }
        match choice.below(4) {
            0 => kept = None,
            1 if user.subscribe(&format!("file:///{}", n % 7)).await.status != 200 => return,
            _ => kept = Some(user.get().await),
        }
    }
}

async fn run(seed: u64, sessions: u64, calls: u64, poll: &str) {
    let ledger = Arc::new(Ledger::default());
    let (of_call, listens) = (ledger.clone(), Listens::open());
    let server = ModernServer::full().on("tools/call", move |seen, reply| {
        let ledger = of_call.clone();
        async move {
            ledger.running.fetch_add(1, Ordering::SeqCst);
            ledger.run(&seen, reply, seed).await;
            ledger.running.fetch_sub(1, Ordering::SeqCst);
        }
    });
    let front = "limits = { streams = 10000, requests = 10000, connections = 100000 }";
    let lines = format!(
        "cache_lists = true\ntimeouts.request = \"30s\"\ntimeouts.answer = \"20s\"\nsession = {{ idle = \"5m\", max = 2000, replay = \"1m\", poll = \"{poll}\" }}"
    );
    let stage = Stage::build(server, Calls::new(), listens, front, &lines).await;
    let tally = Arc::new(Tally::default());
    let mut users = Vec::new();
    for n in 0..sessions {
        let revision = if n % 3 == 0 { "2025-06-18" } else { "2025-11-25" };
        let caps = crate::support::user::everything(revision);
        let token = format!("user-{}", n % 20);
        users.push(User::begin_with(&stage.proxy, revision, caps, Some(&token)).await);
    }
    let mut running = Vec::new();
    for (at, user) in users.iter().enumerate() {
        running.push(tokio::spawn(own_stream(user.clone(), seed, at as u64)));
        for call in 0..calls {
            let n = at as u64 * calls + call;
            let (user, thief) = (user.clone(), users[(at + 1) % users.len()].clone());
            let tally = tally.clone();
            running.push(tokio::spawn(async move { one_call(&user, &thief, n, seed, &tally).await }));
        }
    }
    for _ in 0..20 {
        pass(1000).await;
        if stage.listens.now() > 0 {
            for change in ["tools", "prompts", "resources"] {
                stage.listens.tell(change);
            }
        }
    }
    for one in running {
        one.await.expect("no client fails");
    }
    let most = stage.metric("mcp_janus_client_sessions", &[]);
    // Some say goodbye; the others have simply gone.
    for user in users.iter().step_by(3) {
        user.delete().await;
    }
    drop(users);
    stage.nothing_is_left().await;
    assert_eq!(ledger.running.load(Ordering::SeqCst), 0, "no request is left at the server");
    assert_eq!(*ledger.faults.lock().unwrap(), [] as [String; 0]);
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let (answered, failed, vanished) = (count(&tally.answered), count(&tally.failed), count(&tally.vanished));
    let (cancelled, resumed, questions) =
        (count(&tally.cancelled), count(&tally.resumed), count(&tally.questions));
    let polled = count(&tally.polled);
    assert_eq!(polled > 0, poll != "0s");
    println!(
        "seed {seed}: {most} sessions, {answered} answered, {failed} failed, {vanished} vanished, {cancelled} cancelled, {resumed} resumed, {polled} polled, {questions} questions"
    );
    assert_eq!(answered + failed + vanished + cancelled, sessions * calls, "every call has one end");
    assert!(answered > sessions * calls / 3 && vanished > 0 && cancelled > 0 && resumed > 0);
}

#[tokio::test(start_paused = true)]
async fn inv1_inv2_inv3_inv5_inv6_hundreds_of_sessions() {
    run(1, 300, 2, "0s").await;
    for seed in 2..4 {
        run(seed, 40, 4, "0s").await;
    }
    for seed in 4..6 {
        run(seed, 40, 4, "700ms").await;
    }
}

/// Many more streams than calls: opened by GET and left.
#[tokio::test(start_paused = true)]
async fn inv5_hundreds_of_open_streams() {
    let front = "limits = { streams = 10000, requests = 10000, connections = 100000 }";
    let stage =
        Stage::build(ModernServer::full(), Calls::new(), Listens::open(), front, "session.max = 2000").await;
    let mut held = Vec::new();
    for n in 0..500 {
        let user = stage.user_as(&format!("user-{}", n % 50)).await;
        let stream = user.get().await;
        held.push((user, stream));
    }
    pass(5000).await;
    assert_eq!(stage.listens.now(), 50, "one for each caller");
    stage.listens.tell("tools");
    pass(5000).await;
    for (_, stream) in &held {
        assert_eq!(stream.changes(), ["tools"]);
    }
    // Half of the clients vanish, and the server ends everything.
    held.truncate(250);
    for listen in stage.listens.standing() {
        listen.cut();
    }
    pass(60_000).await;
    for (user, stream) in &held {
        assert_eq!(stream.changes()[..2], ["tools", "tools"], "told again after the gap");
        assert!(!stream.is_over());
        user.list("tools/list").await;
    }
    drop(held);
    stage.nothing_is_left().await;
}
