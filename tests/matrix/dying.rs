//! A server's process that dies in the middle of calls, for every client: each call has its answer at once, under its own id; none
//! is run again; the next call starts the server anew (C56).

use tokio::time::{Duration, Instant};

use crate::stage::Stage;
use crate::support::{Call, Era, Party, Transport, json, pass};
use crate::{Cell, cell, pairs, scenes};

async fn one(stage: &Stage) {
    let context = stage.context();
    let party = &stage.party;
    for (n, id) in [(700, "70"), (701, "71")] {
        let ask = party.call("echo", &format!(r#"{{"n":{n}}}"#)).id(id).meta("progressToken", id);
        party.send(&ask).await;
    }
    let (begun, other) = (stage.calls.marked(700).await, stage.calls.marked(701).await);
    begun.progress(1);
    party.ear.first("progress", |said| said.message["params"]["progressToken"] == 70).await;
    let killed = Instant::now();
    stage.net.programs().alive().iter().for_each(|one| one.dies());
    for id in ["70", "71"] {
        let answer = party.ear.answer(id).await;
        assert_eq!(answer.message["error"]["code"], -32603, "{context}: {}", answer.raw);
    }
    assert!(killed.elapsed() < Duration::from_secs(1), "{context}: {:?}", killed.elapsed());
    pass(100).await;
    assert!(!begun.is_open() && !other.is_open(), "{context}");
}

async fn goes_on(stage: &Stage, party: &Party, n: i64) {
    let (context, id) = (stage.context(), n.to_string());
    party.send(&party.call("echo", &format!(r#"{{"n":{n}}}"#)).id(&id)).await;
    let at = stage.calls.marked(n).await;
    scenes::finish(stage, &at, "alive");
    let answer = party.ear.answer(&id).await;
    assert_eq!(answer.message["result"]["content"][0]["text"], "alive", "{context}: {}", answer.raw);
}

async fn every_client_of(server: impl Fn(Era) -> bool, shield: bool) {
    let to_children = pairs().into_iter().filter(|pair| pair.to == Transport::Stdio && server(pair.server));
    for pair in to_children.filter(|pair| cell(*pair) == Cell::Runs) {
        eprintln!("{pair:?} shield={shield}");
        let stage = Stage::set(pair, shield).await;
        one(&stage).await;
        let own = matches!((pair.client, pair.server), (Era::Legacy(_), Era::Legacy(_)));
        if own && pair.from == Transport::Http && !shield {
            // The session was the server's, and is over; its client begins another.
            let answer = stage.party.answered(&stage.party.ask("tools/list").id("72")).await;
            assert!(answer.message.get("error").is_some() && stage.party.is_lost(), "{}", answer.raw);
            let again = Party::join(&stage.proxy, pair.client, pair.from).await;
            goes_on(&stage, &again, 702).await;
        } else {
            goes_on(&stage, &stage.party, 702).await;
        }
        let ran = |call: &&std::sync::Arc<Call>| [json!(700), json!(701)].contains(&call.argument("n"));
        assert_eq!(stage.calls.all().iter().filter(ran).count(), 2, "once each: {}", stage.context());
        let ids: Vec<_> = stage.party.ear.all().into_iter().filter(|said| said.is_answer()).collect();
        let of_it = ids.iter().filter(|said| ["70", "71"].contains(&said.id().as_str())).count();
        assert_eq!(of_it, 2, "one answer each: {}", stage.context());
    }
}

#[tokio::test(start_paused = true)]
async fn c56_a_modern_child_that_dies_in_calls() {
    every_client_of(|server| server == Era::Modern, false).await;
}

#[tokio::test(start_paused = true)]
async fn c56_a_legacy_child_that_dies_in_calls() {
    every_client_of(|server| server != Era::Modern, false).await;
}

#[tokio::test(start_paused = true)]
async fn c56_a_legacy_child_that_dies_in_calls_of_shielded_sessions() {
    every_client_of(|server| server != Era::Modern, true).await;
}
