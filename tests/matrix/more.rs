//! What single pairs of transports are apt to get wrong: long messages, arrays, the same id twice, pings, cancellations of
//! nothing.

use crate::scenes::finish;
use crate::stage::{Stage, Streams};
use crate::support::{Ask, Era, Transport, json, rpc};

/// More than a pipe holds, in both directions, while another call goes on.
pub(crate) async fn long_ones(stage: &Stage) {
    let (context, party) = (stage.context(), &stage.party);
    let long = "x".repeat(300_000);
    party.send(&party.call("echo", r#"{"n":600}"#).id("60")).await;
    party.send(&party.call("echo", &format!(r#"{{"n":601,"long":"{long}"}}"#)).id("61")).await;
    let (short, at) = (stage.calls.marked(600).await, stage.calls.marked(601).await);
    assert_eq!(at.argument("long").as_str().map(str::len), Some(long.len()), "{context}");
    finish(stage, &at, &long);
    finish(stage, &short, "short");
    let (short, long_one) = (party.ear.answer("60").await, party.ear.answer("61").await);
    assert_eq!(short.message["result"]["content"][0]["text"], "short", "{context}");
    assert_eq!(long_one.message["result"]["content"][0]["text"], long.as_str(), "{context}");
}

/// A message whose sender writes it over many lines is one line where lines are messages.
pub(crate) async fn over_many_lines(stage: &Stage) {
    let (context, party) = (stage.context(), &stage.party);
    if stage.pair.from == Transport::Stdio {
        return;
    }
    let ask = party.call("echo", "{\r\n  \"n\": 610,\n  \"text\": \"a\\nb\"\r\n}").id("62");
    party.send(&ask).await;
    let at = stage.calls.marked(610).await;
    assert_eq!(at.argument("text"), "a\nb", "{context}");
    finish(stage, &at, "one");
    party.ear.answer("62").await;
}

/// An array of a client of 2025-03-26 (A14.1): each of its requests is answered.
pub(crate) async fn arrays(stage: &Stage) {
    let (context, party) = (stage.context(), &stage.party);
    let takes = match (stage.pair.server, stage.pair.to) {
        (Era::Modern, _) => true,
        (Era::Legacy(version), Transport::Stdio | Transport::HttpSse) => version >= "2025-03-26",
        // It gets the array as it is, and this one takes none.
        (Era::Legacy(_), Transport::Http) => false,
    };
    if party.era != Era::Legacy("2025-03-26") || !takes {
        return;
    }
    let texts: Vec<_> = [
        party.ask("tools/list").id(r#""a-1""#),
        party.call("echo", r#"{"n":620}"#).id(r#""a-2""#),
        party.ask("notifications/roots/list_changed").notification(),
        party.ask("ping").id(r#""a-3""#),
    ]
    .iter()
    .map(|ask| String::from_utf8(ask.body()).unwrap())
    .collect();
    party.send_array(&texts).await;
    let at = stage.calls.marked(620).await;
    finish(stage, &at, "in an array");
    for id in [r#""a-1""#, r#""a-2""#, r#""a-3""#] {
        let answer = party.ear.answer(id).await;
        assert!(answer.message.get("result").is_some(), "{context}: {}", answer.raw);
    }
}

/// Over HTTP two requests at once may have one id, if they come from modern clients (C20).
pub(crate) async fn one_id_twice(stage: &Stage) {
    let context = stage.context();
    if (stage.pair.client, stage.pair.from) != (Era::Modern, Transport::Http) {
        return;
    }
    let ask =
        |n: i64| stage.party.call("echo", &format!(r#"{{"n":{n}}}"#)).id("1").meta("progressToken", "1");
    let clients = [640, 641].map(|n| (n, stage.proxy.spawn(&ask(n))));
    for n in [640, 641] {
        stage.calls.marked(n).await.progress(n as u32);
    }
    for n in [641, 640] {
        finish(stage, &*stage.calls.marked(n).await, &format!("of {n}"));
    }
    for (n, client) in clients {
        let done = client.await.unwrap();
        assert_eq!(done.result()["content"][0]["text"], format!("of {n}"), "{context}");
        assert_eq!(done.message["id"], json!(1), "{context}");
        let before: Vec<_> = done.before.iter().map(|one| one["params"].clone()).collect();
        assert_eq!(before, [json!({"progressToken": 1, "progress": n})], "{context}");
    }
}

/// A legacy server that pings is answered, by its client or for it.
pub(crate) async fn pings(stage: &Stage) {
    let (context, party) = (stage.context(), &stage.party);
    let Streams::Legacy(gets) = &stage.streams else { return };
    gets.wait(1).await;
    gets.tell(r#"{"jsonrpc":"2.0","id":"ping-1","method":"ping"}"#);
    // A client whose session is its own answers for itself.
    let answering = async {
        let ping = party.ear.first("a ping", |said| said.is_question() && said.brief() == "ping").await;
        assert!(party.era != Era::Modern, "{context}");
        party.answer(&ping, "{}").await;
        std::future::pending::<()>().await;
    };
    let answer = tokio::select! {
        answer = stage.answer_to("ping-1") => answer,
        () = answering => return,
    };
    assert_eq!(answer["result"], json!({}), "{context}");
}

/// Cancellations of what is not there are nobody's business (C23).
pub(crate) async fn of_nothing(stage: &Stage) {
    let (context, party) = (stage.context(), &stage.party);
    if (stage.pair.client, stage.pair.from) == (Era::Modern, Transport::Http) {
        return;
    }
    for id in ["0", "777", r#""none""#] {
        party.note(&Ask::old("notifications/cancelled").params(&format!(r#""requestId":{id}"#))).await;
    }
    let tools = party.result(&party.ask("tools/list").id("66")).await;
    assert_eq!(tools["tools"][0]["name"], "echo", "{context}");
    for told in stage.up.posts("notifications/cancelled") {
        let of = rpc::value(&told.body).unwrap()["params"]["requestId"].clone();
        assert!(of != json!(0) || stage.pair.server != Era::Modern, "C23: of `initialize`: {context}");
    }
}
