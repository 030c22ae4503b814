//! What the clients do: they come when they like, call one thing after the other or several at once, are asked, listen, give
//! up, go in order or without a word, and come again where their session is lost.

use std::sync::Arc;

use futures_util::future::join_all;

use crate::Ledger;
use crate::support::rounds::responses;
use crate::support::{Ask, Choice, Era, Party, Proxy, Said, Transport};

const STEPS: u64 = 12;
const PRINCIPALS: u64 = 6;
const REVISIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
const SAMPLED: &str = r#"{"role":"assistant","model":"m","content":{"type":"text","text":"y"}}"#;

pub(crate) async fn client(proxy: Arc<Proxy>, ledger: Arc<Ledger>, seed: u64) {
    let mut choice = Choice::of(seed);
    let token = format!("t{}", seed % PRINCIPALS);
    let era = match seed % 3 {
        0 => Era::Modern,
        _ => Era::Legacy(REVISIONS[choice.below(4) as usize]),
    };
    let from = match era {
        Era::Legacy("2024-11-05") => Transport::HttpSse,
        Era::Legacy(_) | Era::Modern => Transport::Http,
    };
    choice.pause(5000).await;
    let mut party: Option<Party> = None;
    for step in 0..STEPS {
        if party.as_ref().is_none_or(Party::is_lost) {
            party = Party::try_join(&proxy, era, from, Some(&token)).await.ok();
        }
        let Some(now) = &party else {
            ledger.one(|it| &it.turned_away);
            choice.pause(800).await;
            continue;
        };
        match choice.below(9) {
            0 => listen(now, &ledger, &mut choice).await,
            1 => choice.pause(400).await,
            2 => {
                now.leave().await;
                party = None;
            }
            // Without a word.
            3 => party = None,
            4 => {
                let calls = (0..3).map(|n| one_call(now, &ledger, seed * 1000 + step * 10 + n));
                join_all(calls).await;
            }
            _ => one_call(now, &ledger, seed * 1000 + step * 10 + 5).await,
        }
    }
}

async fn listen(party: &Party, ledger: &Ledger, choice: &mut Choice) {
    let before = changes(party);
    if let Era::Legacy(_) = party.era {
        party.open_stream().await;
        choice.pause(1500).await;
    } else {
        let id = format!("\"l{}\"", ledger.count(|it| &it.calls) * 1000 + choice.below(1000));
        let wanted = r#""notifications":{"toolsListChanged":true,"resourceSubscriptions":["file:///d"]}"#;
        party.send(&party.ask("subscriptions/listen").id(&id).params(wanted)).await;
        choice.pause(1500).await;
        if !party.hang_up(&id) {
            party.cancel(&id).await;
        }
    }
    for _ in before..changes(party) {
        ledger.one(|it| &it.changes);
    }
}

fn changes(party: &Party) -> usize {
    let is_one = |brief: &String| brief.ends_with("list_changed") || brief.ends_with("updated");
    party.ear.briefs().iter().filter(|brief| is_one(brief)).count()
}

/// How a call went on.
enum Next {
    Answered,
    Failed,
    Left,
    /// A modern client is asked: it tries again.
    Again(Box<Ask>),
}

async fn one_call(party: &Party, ledger: &Ledger, seed: u64) {
    let mut choice = Choice::of(seed);
    ledger.one(|it| &it.calls);
    let n = ledger.count(|it| &it.calls);
    let mut ask = party.call("t", &format!(r#"{{"n":{n}}}"#));
    if choice.below(2) == 0 {
        ask = ask.meta("progressToken", &format!("\"p{n}\""));
    }
    for round in 0.. {
        let id = if n.is_multiple_of(2) { format!("{n}{round}") } else { format!("\"{n}-{round}\"") };
        if round > 0 && n.is_multiple_of(2) {
            ask = ask.meta("progressToken", &id);
        }
        ask = ask.id(&id);
        party.send(&ask).await;
        match follow(party, ledger, &ask, n, &mut choice).await {
            Next::Answered => return ledger.one(|it| &it.answered),
            Next::Failed => return ledger.one(|it| &it.failed),
            Next::Left => return ledger.one(|it| &it.left),
            Next::Again(again) => ask = *again,
        }
    }
}

/// One request up to its answer, if it is waited for so long.
async fn follow(party: &Party, ledger: &Ledger, ask: &Ask, n: u64, choice: &mut Choice) -> Next {
    let id = ask.id.clone().unwrap();
    let waits = async {
        match choice.below(12) {
            0 => {
                choice.pause(150).await;
                party.cancel(&id).await;
            }
            1 => {
                choice.pause(150).await;
                if !party.hang_up(&id) {
                    party.cancel(&id).await;
                }
            }
            _ => std::future::pending().await,
        }
    };
    let mut patience = Choice::of(n + 5);
    tokio::select! {
        biased;
        () = waits => Next::Left,
        next = to_the_end(party, ledger, ask, n, &mut patience) => next,
    }
}

async fn to_the_end(party: &Party, ledger: &Ledger, ask: &Ask, n: u64, choice: &mut Choice) -> Next {
    let (id, mark) = (ask.id.clone().unwrap(), format!("of {n}"));
    let mut heard = Vec::new();
    loop {
        let fits = |said: &Said| {
            let asks = said.is_question() && said.message["params"]["systemPrompt"] == mark;
            asks && !heard.contains(&said.id()) || said.is_answer() && said.id() == id
        };
        let Some(said) = party.ear.first_or_over(&id, fits).await else {
            ledger.fails("nothing: its stream ended");
            return Next::Failed;
        };
        if said.is_answer() {
            return answered(ledger, ask, &said, n, choice);
        }
        ledger.one(|it| &it.questions);
        heard.push(said.id());
        choice.pause(300).await;
        match choice.below(10) {
            0 => return Next::Left,
            1 => party.refuse(&said).await,
            _ => party.answer(&said, SAMPLED).await,
        }
        // A refused sampling leaves the call running at this server; a lost session ends it.
        if party.is_lost() {
            ledger.fails("its session was not known when it answered a question");
            return Next::Failed;
        }
    }
}

fn answered(ledger: &Ledger, ask: &Ask, said: &Said, n: u64, choice: &mut Choice) -> Next {
    let result = &said.message["result"];
    if said.message.get("result").is_none() {
        ledger.fails(&said.message["error"].to_string());
        return Next::Failed;
    }
    if result["resultType"] == "input_required" {
        let entries = result["inputRequests"].as_object().expect("questions");
        let (key, entry) = entries.iter().next().expect("a question");
        assert_eq!(entry["params"]["systemPrompt"], format!("of {n}"), "another's question: {}", said.raw);
        ledger.one(|it| &it.questions);
        if choice.below(10) == 0 {
            return Next::Left;
        }
        let ask = ask.clone().without_member("inputResponses").without_member("requestState");
        let ask = ask.member("inputResponses", &responses(&[(key, SAMPLED)]));
        return Next::Again(Box::new(ask.member("requestState", &result["requestState"].to_string())));
    }
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    let failed = result["isError"] == true;
    assert!(failed || text.starts_with(&format!("{n} ")), "another call's answer to {n}: {:.200}", said.raw);
    if failed {
        ledger.fails(text);
    }
    if failed { Next::Failed } else { Next::Answered }
}
