//! What every cell is put through, but for questions (`asking`) and changes (`told`).
//!
//! Owns the scenes and what each must come to, in words that hold for every era and transport.

use crate::stage::Stage;
use crate::support::{Era, Transport, json, rpc, within};

/// Lists, a call to the byte, errors of the server's and of the proxy's own.
pub(crate) async fn plain(stage: &Stage) {
    let (context, party) = (stage.context(), &stage.party);
    if party.era == Era::Modern {
        let discovered = party.result(&party.ask("server/discover").id(r#""d""#)).await;
        assert!(discovered["capabilities"].get("tools").is_some(), "{context}: {discovered}");
    } else {
        assert_eq!(party.result(&party.ask("ping").id(r#""p""#)).await, json!({}), "{context}");
    }
    let tools = party.result(&party.ask("tools/list").id("2")).await;
    assert_eq!(tools["tools"][0]["name"], "echo", "{context}");
    party.send(&party.call("echo", r#"{"n":100,"x":1e400}"#).id(r#""\u0033""#)).await;
    let at = stage.calls.marked(100).await;
    assert!(at.seen.text().contains(r#""arguments":{"n":100,"x":1e400}"#), "{context}: {}", at.seen.text());
    finish(stage, &at, "echoed");
    let called = party.ear.answer(r#""\u0033""#).await;
    assert_eq!(called.message["result"]["content"][0]["text"], "echoed", "{context}: {}", called.raw);
    let unknown = party.answered(&party.ask("acme/unknown").id("4")).await;
    assert_eq!(unknown.message["error"]["code"], -32601, "{context}: {}", unknown.raw);
    party.send(&party.call("echo", r#"{"n":101}"#).id("5")).await;
    let at = stage.calls.marked(101).await;
    at.whole_error(r#"{"code":-32602,"message":"no such thing","data":{"why":[1e400]}}"#);
    let refused = party.ear.answer("5").await;
    assert_eq!(refused.message["error"]["code"], -32602, "{context}: {}", refused.raw);
    assert!(refused.raw.contains(r#"{"why":[1e400]}"#), "{context}: {}", refused.raw);
    if let (Era::Legacy(_), Era::Legacy(_)) = (stage.pair.client, stage.pair.server) {
        // One that finds out the transport goes to where event streams are, and is refused.
        let begun = stage.up.posts("initialize").into_iter().filter(|seen| seen.target != "/sse").count();
        assert_eq!(begun, 1, "{context}");
    }
}

/// Progress under the caller's token, in its own type, and a log message.
pub(crate) async fn on_the_way(stage: &Stage) {
    let (context, party) = (stage.context(), &stage.party);
    if let Era::Legacy(_) = party.era {
        let level = party.ask("logging/setLevel").params(r#""level":"info""#).id(r#""level""#);
        assert_eq!(party.result(&level).await, json!({}), "{context}");
    }
    for (n, token) in [(200, "7"), (201, r#""7""#)] {
        let ask = party.call("work", &format!(r#"{{"n":{n}}}"#)).id(&n.to_string());
        let mut ask = ask.meta("progressToken", token);
        if party.era == Era::Modern {
            ask = ask.meta("io.modelcontextprotocol/logLevel", r#""info""#);
        }
        party.send(&ask).await;
        let at = stage.calls.marked(n).await;
        at.progress(1);
        at.log("info", &format!("half of {n}"));
        at.progress(2);
        let token = rpc::value(token.as_bytes()).unwrap();
        let second = party.ear.first("progress", |said| {
            let params = &said.message["params"];
            params["progressToken"] == token && params["progress"] == 2
        });
        second.await;
        let log = party.ear.first("a log message", |said| {
            said.brief() == "notifications/message"
                && said.message["params"]["data"] == format!("half of {n}")
        });
        log.await;
        finish(stage, &at, "worked");
        party.ear.answer(&n.to_string()).await;
        let of_it =
            party.ear.all().into_iter().filter(|said| said.message["params"]["progressToken"] == token);
        assert_eq!(of_it.count(), 2, "{context}: {:?}", party.ear.raws());
    }
}

/// Calls that are at the server at once, answered in the other order.
pub(crate) async fn in_parallel(stage: &Stage) {
    let (context, party) = (stage.context(), &stage.party);
    let calls = [(300, "1"), (301, r#""1""#), (302, r#""\u0032""#)];
    for (n, id) in calls {
        party.send(&party.call("echo", &format!(r#"{{"n":{n}}}"#)).id(id).meta("progressToken", id)).await;
    }
    let mut at = Vec::new();
    for (n, _) in calls {
        at.push(stage.calls.marked(n).await);
    }
    for at in &at {
        at.progress(1);
    }
    for (at, (n, _)) in at.iter().zip(calls).rev() {
        finish(stage, at, &format!("of {n}"));
    }
    for (n, id) in calls {
        let answer = party.ear.answer(id).await;
        let text = &answer.message["result"]["content"][0]["text"];
        assert_eq!(*text, format!("of {n}"), "{context}: {}", answer.raw);
    }
}

/// A call that the client gives up: its server hears of it, nothing else is touched, and there is no answer.
pub(crate) async fn given_up(stage: &Stage) {
    let (context, party) = (stage.context(), &stage.party);
    party.send(&party.call("echo", r#"{"n":400}"#).id("40")).await;
    party.send(&party.call("echo", r#"{"n":401}"#).id("41")).await;
    let (given_up, other) = (stage.calls.marked(400).await, stage.calls.marked(401).await);
    party.cancel("40").await;
    if stage.is_told_of_cancels() {
        let told = stage.up.wait("notifications/cancelled", 1).await;
        assert_eq!(told.len(), 1, "{context}");
        assert_eq!(told[0].json()["params"]["requestId"], given_up.id(), "C23: {context}");
    } else {
        let closed = async {
            while given_up.is_open() {
                tokio::task::yield_now().await;
            }
        };
        within("the end of a call that was given up", closed).await;
    }
    finish(stage, &other, "untouched");
    let answer = party.ear.answer("41").await;
    assert_eq!(answer.message["result"]["content"][0]["text"], "untouched", "{context}");
    let answers = party.ear.all().into_iter().filter(|said| said.is_answer() && said.id() == "40").count();
    assert_eq!(answers, 0, "C23: {context}: {:?}", party.ear.raws());
}

/// The client goes as its transport has it, in the middle of a call.
pub(crate) async fn ends(stage: Stage) {
    let party = &stage.party;
    party.check();
    party.send(&party.call("echo", r#"{"n":900}"#).id("90")).await;
    let at = stage.calls.marked(900).await;
    if !party.leave().await {
        return;
    }
    match (stage.pair.from, stage.pair.server, stage.pair.to) {
        // Without its client a session is over, and with it its process.
        (_, Era::Legacy(_), Transport::Stdio) => stage.net.programs().over().await,
        // Its calls are nobody's any more.
        (Transport::Stdio | Transport::HttpSse, _, _) => {
            let closed = async {
                let told = || stage.up.posts("notifications/cancelled");
                let of_it = || told().iter().any(|one| one.json()["params"]["requestId"] == at.id());
                while at.is_open() && !of_it() {
                    crate::support::pass(10).await;
                }
            };
            within("the end of a call whose client has gone", closed).await;
        }
        (Transport::Http, _, _) => {}
    }
}

/// The server answers in its own era's way.
pub(crate) fn finish(stage: &Stage, at: &crate::support::Call, text: &str) {
    match stage.pair.server {
        Era::Modern => at.completes(text),
        Era::Legacy(_) => at.finish(text),
    }
}
