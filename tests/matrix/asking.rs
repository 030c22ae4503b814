//! Questions in the middle of calls, in each side's own way: the client of a call is asked what its server asks, and the server
//! gets that client's answer; it runs the call once.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::scenes::finish;
use crate::stage::Stage;
use crate::support::rounds::responses;
use crate::support::{Call, Era, Said, json, rpc};

/// One call that is asked.
pub(crate) async fn one(stage: &Stage) {
    tokio::join!(serve(stage, 500), asked(stage, 500));
}

/// Three at once: each gets its own question, and its own answer (C45).
pub(crate) async fn several(stage: &Stage) {
    tokio::join!(
        serve(stage, 501),
        serve(stage, 502),
        serve(stage, 503),
        asked(stage, 501),
        asked(stage, 502),
        asked(stage, 503),
    );
}

fn params(n: i64) -> String {
    let message = r#"{"role":"user","content":{"type":"text","text":"hi"}}"#;
    format!(r#"{{"messages":[{message}],"systemPrompt":"of {n}","maxTokens":1}}"#)
}

fn sampled(n: i64) -> String {
    format!(r#"{{"role":"assistant","content":{{"type":"text","text":"yes"}},"model":"m-{n}"}}"#)
}

/// The server's side of the call with this mark.
async fn serve(stage: &Stage, n: i64) {
    let at = stage.calls.marked(n).await;
    match stage.pair.server {
        Era::Legacy(_) => serve_legacy(stage, &at, n).await,
        Era::Modern => serve_modern(stage, &at, n).await,
    }
}

async fn serve_legacy(stage: &Stage, at: &Call, n: i64) {
    let id = format!("s-{n}");
    at.event(&format!(
        r#"{{"jsonrpc":"2.0","id":"{id}","method":"sampling/createMessage","params":{}}}"#,
        params(n)
    ));
    let answer = stage.answer_to(&id).await;
    assert_eq!(answer["result"]["model"], format!("m-{n}"), "{}: {answer}", stage.context());
    at.finish(&format!("of {n}"));
}

async fn serve_modern(stage: &Stage, at: &Call, n: i64) {
    let entry = format!(r#"{{"method":"sampling/createMessage","params":{}}}"#, params(n));
    at.asks(&[("k", &entry)], Some(&format!(r#""\u0041 state of {n}""#)));
    let again = stage.again(n).await;
    let context = format!("{}: {}", stage.context(), again.seen.text());
    assert_eq!(again.params()["inputResponses"]["k"]["model"], format!("m-{n}"), "{context}");
    let state = format!(r#""requestState":"\u0041 state of {n}""#);
    assert!(again.seen.text().contains(&state), "to the byte: {context}");
    finish(stage, &again, &format!("of {n}"));
}

/// The client's side of it.
async fn asked(stage: &Stage, n: i64) {
    let (context, party) = (stage.context(), &stage.party);
    let id = n.to_string();
    let ask = party.call("ask", &format!(r#"{{"n":{n}}}"#)).id(&id);
    party.send(&ask).await;
    let done = match party.era {
        Era::Legacy(_) => {
            let asks = |said: &Said| {
                said.is_question() && said.message["params"]["systemPrompt"] == format!("of {n}")
            };
            let question = party.ear.first("a question", asks).await;
            assert!(question.on.as_ref().is_none_or(|on| *on == id), "B2.2: {context}: {}", question.raw);
            party.answer(&question, &sampled(n)).await;
            party.ear.answer(&id).await
        }
        Era::Modern => {
            let round = party.ear.answer(&id).await;
            let result = &round.message["result"];
            assert_eq!(result["resultType"], "input_required", "{context}: {}", round.raw);
            let entries = result["inputRequests"].as_object().expect("questions");
            assert_eq!(entries.len(), 1, "{context}: {}", round.raw);
            let (key, entry) = entries.iter().next().unwrap();
            assert_eq!(entry["params"]["systemPrompt"], format!("of {n}"), "{context}: {}", round.raw);
            let ask = ask.id(&format!("{n}1")).member("inputResponses", &responses(&[(key, &sampled(n))]));
            party.answered(&ask.member("requestState", &state(&round))).await
        }
    };
    let text = &done.message["result"]["content"][0]["text"];
    assert_eq!(*text, json!(format!("of {n}")), "{context}: {}", done.raw);
    if let Era::Legacy(_) = stage.pair.server {
        let runs = stage.calls.all().into_iter().filter(|call| call.argument("n") == json!(n)).count();
        assert_eq!(runs, 1, "once: {context}");
    }
}

/// The state of a round as it was written.
fn state(round: &Said) -> String {
    let result = rpc::result(round.raw.as_bytes()).expect("a result");
    let members: HashMap<String, Box<RawValue>> = serde_json::from_str(&result).unwrap();
    members["requestState"].get().to_owned()
}

impl Stage {
    /// Waits for the client's answer to a question of a legacy server.
    pub(crate) async fn answer_to(&self, id: &str) -> crate::support::Value {
        for n in 1.. {
            let answers = self.up.wait("response", n).await;
            let found = answers.iter().map(|seen| seen.json()).find(|answer| answer["id"] == id);
            if let Some(found) = found {
                return found;
            }
        }
        unreachable!()
    }

    /// Waits for the call that comes again with answers.
    async fn again(&self, n: i64) -> Arc<Call> {
        for number in 1.. {
            let call = self.calls.wait(number).await;
            if call.argument("n") == json!(n) && call.params().get("requestState").is_some() {
                return call;
            }
        }
        unreachable!()
    }
}
