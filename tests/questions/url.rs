//! D27, D28, D30, B4.1: the error -32042 as questions, and the call that is sent anew when all of them are agreed to.
//! What a retry waits for is in `url_wait`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::stage::{Stage, done, ends_with, is_tool_error, next_round};
use crate::support::questions::{ACCEPT, ALL, CONSENT, DECLINE, URL, elicit, elicit_url, url_required};
use crate::support::{
    Ask, Call, LegacyServer, Proxy, Reply, Round, Value, call, get_prompt, json, pass, read,
};

/// No wait for the server's word that the URL was visited.
const AT_ONCE: &str = "[upstream.up.timeouts]\nurl = \"0s\"\n";

fn asks() -> [Ask; 3] {
    [call("pay", r#"{"n":1,"sum":2.50}"#).caps(URL), get_prompt("p").caps(URL), read("file:///x").caps(URL)]
}

/// The round that the error leads to, and the call that ended with it.
async fn required(stage: &Stage, ask: &Ask, ids: &[&str]) -> (Round, Arc<Call>) {
    let begun = stage.begin(ask).await;
    begun.call.whole_error(&url_required(ids));
    let call = begun.call.clone();
    (begun.round().await, call)
}

#[tokio::test(start_paused = true)]
async fn d27_url_required() {
    for ask in asks() {
        for streamed in [false, true] {
            let stage = Stage::with(AT_ONCE).await;
            let begun = stage.begin(&ask).await;
            let first = begun.call.clone();
            let error = url_required(&["e1"]);
            if streamed {
                first.error(&error)
            } else {
                first.whole_error(&error)
            }
            let round = begun.round().await;
            let params = json!({"mode": "url", "url": "https://s.test/e1", "message": "go to e1"});
            let entry = json!({"method": "elicitation/create", "params": params});
            assert_eq!(round.entry(&round.only()), &entry);
            assert!(!round.done.raw.contains("elicitationId"), "{}", round.done.raw);
            assert_eq!(stage.parked(), 1);
            let client = stage.run(&round.answer("2", CONSENT));
            let second = stage.calls.wait(2).await;
            assert_ne!(second.id(), first.id(), "under a new id");
            assert_eq!(second.seen.json()["params"], first.seen.json()["params"], "the same call");
            assert_eq!(second.session(), first.session(), "in the session that asked");
            second.finish("paid");
            let done = done(client).await;
            ends_with(&done, "paid");
            assert_eq!(done.message["id"], 2);
            stage.is_over(2).await;
            assert_eq!((stage.answers().len(), stage.cancelled().len()), (0, 0));
            stage.nothing_is_left().await;
        }
    }
}

/// The bytes of the arguments go out again as they were.
#[tokio::test(start_paused = true)]
async fn d27_the_arguments_survive() {
    let stage = Stage::with(AT_ONCE).await;
    let ask = call("pay", r#"{ "b":2.50,"a":1e400,"t":"\u00dc\/" }"#).caps(URL);
    let (round, _) = required(&stage, &ask, &["e1"]).await;
    let client = stage.run(&round.answer("2", CONSENT));
    let second = stage.calls.wait(2).await;
    assert!(
        second.seen.text().contains(r#"{ "b":2.50,"a":1e400,"t":"\u00dc\/" }"#),
        "{}",
        second.seen.text()
    );
    second.finish("paid");
    ends_with(&done(client).await, "paid");
}

#[tokio::test(start_paused = true)]
async fn d28_url_required_nocap() {
    for caps in [r#"{"elicitation":{}}"#, r#"{"elicitation":{"form":{}}}"#, "{}", r#"{"sampling":{}}"#] {
        for ask in asks() {
            let stage = Stage::new().await;
            let begun = stage.begin(&ask.caps(caps)).await;
            begun.call.whole_error(&url_required(&["e1"]));
            let done = begun.done().await;
            done.is_error(400, -32021);
            assert_eq!(done.data()["requiredCapabilities"], json!({"elicitation": {"url": {}}}));
            stage.is_over(1).await;
            assert_eq!(stage.cancelled().len(), 0, "it is over at the server");
        }
    }
}

/// B11: the same in band, where progress has gone out.
#[tokio::test(start_paused = true)]
async fn d28_in_band() {
    let stage = Stage::new().await;
    let begun = stage.begin(&call("pay", "{}").meta("progressToken", "1")).await;
    begun.call.progress(1);
    pass(1000).await;
    begun.call.error(&url_required(&["e1"]));
    let done = begun.done().await;
    done.is_error(200, -32021);
    assert_eq!(done.before.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn d30_url_required_decline() {
    for answer in [DECLINE, r#"{"action":"cancel"}"#] {
        for ask in asks() {
            let stage = Stage::with(AT_ONCE).await;
            let (round, _) = required(&stage, &ask, &["e1"]).await;
            let done = stage.unmoved(stage.proxy.send(&round.answer("2", answer))).await;
            if ask.method == "tools/call" {
                is_tool_error(&done);
            } else {
                done.is_error(200, -32603);
            }
            stage.is_over(1).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn b4_1_one_of_two_declined() {
    for order in [[CONSENT, DECLINE], [DECLINE, CONSENT]] {
        let stage = Stage::with(AT_ONCE).await;
        let (round, _) = required(&stage, &asks()[0], &["e1", "e2"]).await;
        let (one, two) = (round.key_of("go to e1"), round.key_of("go to e2"));
        let retry = round.retry("2", &[(&one, order[0]), (&two, order[1])]);
        is_tool_error(&stage.unmoved(stage.proxy.send(&retry)).await);
        stage.is_over(1).await;
    }
}

/// B1.5 for these: what is not answered is asked again, what was agreed to is not.
#[tokio::test(start_paused = true)]
async fn b4_1_one_of_two_is_missing() {
    let stage = Stage::with(AT_ONCE).await;
    let (round, _) = required(&stage, &asks()[0], &["e1", "e2"]).await;
    let (one, two) = (round.key_of("go to e1"), round.key_of("go to e2"));
    let retry = round.retry("2", &[(&two, CONSENT)]);
    let again = next_round(&retry, stage.run(&retry)).await;
    assert_eq!(again.keys(), [one]);
    assert_eq!(stage.calls.all().len(), 1, "not all of them are agreed to");
    let client = stage.run(&again.answer("3", CONSENT));
    stage.calls.wait(2).await.finish("paid");
    ends_with(&done(client).await, "paid");
    stage.is_over(2).await;
}

#[tokio::test(start_paused = true)]
async fn b4_1_still_required_is_asked_again() {
    let stage = Stage::with(AT_ONCE).await;
    let (round, _) = required(&stage, &asks()[0], &["e1"]).await;
    let retry = round.answer("2", CONSENT);
    let client = stage.run(&retry);
    stage.calls.wait(2).await.whole_error(&url_required(&["e2"]));
    let again = next_round(&retry, client).await;
    assert_ne!(again.only(), round.only(), "B1.3: a key of its own");
    assert_ne!(again.state(), round.state());
    assert_eq!(again.entry(&again.only())["params"]["url"], "https://s.test/e2");
    let client = stage.run(&again.answer("3", CONSENT));
    let third = stage.calls.wait(3).await;
    third.finish("paid");
    ends_with(&done(client).await, "paid");
    stage.is_over(3).await;
    let ids: std::collections::BTreeSet<_> = stage.calls.all().iter().map(|at| at.id().to_string()).collect();
    assert_eq!(ids.len(), 3, "each under its own id");
}

/// A server that never has enough: the rounds are bounded.
#[tokio::test(start_paused = true)]
async fn b1_5_still_required_for_ever() {
    let stage = Stage::with(&format!("{AT_ONCE}[upstream.up.limits]\nrounds = 3\n")).await;
    let (mut round, _) = required(&stage, &asks()[0], &["e0"]).await;
    for n in 2..4 {
        let retry = round.answer(&n.to_string(), CONSENT);
        let client = stage.run(&retry);
        stage.calls.wait(n).await.whole_error(&url_required(&[&format!("e{n}")]));
        round = next_round(&retry, client).await;
    }
    let client = stage.run(&round.answer("9", CONSENT));
    stage.calls.wait(4).await.whole_error(&url_required(&["e9"]));
    let done = done(client).await;
    assert_ne!(done.message["result"]["resultType"], "input_required", "{}", done.raw);
    assert!(done.message.get("error").is_some() || done.message["result"]["isError"] == true, "{}", done.raw);
    stage.is_over(4).await;
}

#[tokio::test(start_paused = true)]
async fn b4_1_malformed_data() {
    let entry = r#"{"mode":"url","elicitationId":"e1","url":"https://s.test/e1","message":"m"}"#;
    let form = r#"{"mode":"form","message":"m","requestedSchema":{"type":"object","properties":{}}}"#;
    let data = [
        String::new(),
        r#","data":null"#.to_owned(),
        r#","data":"https://s.test/e1""#.to_owned(),
        r#","data":[]"#.to_owned(),
        r#","data":{}"#.to_owned(),
        r#","data":{"elicitations":null}"#.to_owned(),
        r#","data":{"elicitations":{}}"#.to_owned(),
        r#","data":{"elicitations":[]}"#.to_owned(),
        r#","data":{"elicitations":["https://s.test/e1"]}"#.to_owned(),
        r#","data":{"elicitations":[{"mode":"url","elicitationId":"e1","message":"m"}]}"#.to_owned(),
        r#","data":{"elicitations":[{"mode":"url","elicitationId":"e1","url":5,"message":"m"}]}"#.to_owned(),
        r#","data":{"elicitations":[{"mode":"url","elicitationId":"e1","url":"https://s.test/e1"}]}"#
            .to_owned(),
        format!(r#","data":{{"elicitations":[{form}]}}"#),
        format!(r#","data":{{"elicitations":[{entry},{form}]}}"#),
    ];
    for data in data {
        let stage = Stage::with(AT_ONCE).await;
        let begun = stage.begin(&asks()[0]).await;
        begun.call.whole_error(&format!(r#"{{"code":-32042,"message":"URL elicitation required"{data}}}"#));
        let done = begun.done().await;
        assert_eq!(
            (done.status, done.message["error"]["code"].as_i64()),
            (200, Some(-32603)),
            "{data}: {}",
            done.raw
        );
        stage.is_over(1).await;
    }
}

/// A call that asked on its stream first, then ends with -32042, then asks by URL when it runs again.
#[tokio::test(start_paused = true)]
async fn b4_1_between_questions_on_the_stream() {
    let stage = Stage::with(AT_ONCE).await;
    let ask = call("pay", r#"{"n":1}"#).caps(ALL);
    let (round, first) = stage.asked(&ask, &[&elicit("7", "who")]).await;
    let retry = round.answer("2", ACCEPT);
    let client = stage.run(&retry);
    stage.elicited("7").await;
    first.error(&url_required(&["e1"]));
    let round = next_round(&retry, client).await;
    let retry = round.answer("3", CONSENT);
    let client = stage.run(&retry);
    let second = stage.calls.wait(2).await;
    second.event(&elicit_url("8", "again", "e2"));
    let round = next_round(&retry, client).await;
    let client = stage.run(&round.answer("4", CONSENT));
    assert_eq!(stage.elicited("8").await, json!({"action": "accept"}));
    second.finish("paid");
    ends_with(&done(client).await, "paid");
    stage.is_over(2).await;
}

/// B1.2 for these states; B1.10 for these answers; B1.6 for what is sent anew.
#[tokio::test(start_paused = true)]
async fn b4_1_the_state_is_bound_and_used_once() {
    let stage = Stage::with(AT_ONCE).await;
    let (round, _) = required(&stage, &asks()[0].clone().bearer("alice"), &["e1"]).await;
    stage.refuses(&round.answer("2", CONSENT).bearer("bob")).await;
    stage.refuses(&round.answer("2", r#"{"action":"maybe"}"#)).await;
    stage.refuses(&round.answer("2", "{}")).await;
    let first = stage.run(&round.answer("3", CONSENT));
    let at = stage.calls.wait(2).await;
    stage.refuses(&round.answer("4", CONSENT)).await;
    at.finish("paid");
    ends_with(&done(first).await, "paid");
    let again = stage.unmoved(stage.proxy.send(&round.answer("5", CONSENT))).await;
    ends_with(&again, "paid");
    stage.is_over(2).await;
}

/// B1.7: nothing is open at the server, so there is nothing to tell it.
#[tokio::test(start_paused = true)]
async fn b1_7_nobody_comes_back_from_the_url() {
    let stage = Stage::with(AT_ONCE).await;
    let (round, _) = required(&stage, &asks()[0], &["e1"]).await;
    pass(301_000).await;
    assert_eq!((stage.answers(), stage.cancelled()), (vec![], vec![] as Vec<Value>));
    stage.refuses(&round.answer("2", CONSENT)).await;
    stage.is_over(1).await;
    stage.nothing_is_left().await;
}

/// The client comes back without an answer and no longer declares what the pages take: it is told so, and the server, which
/// has made no request, is told nothing.
#[tokio::test(start_paused = true)]
async fn b4_1_a_page_is_no_request_that_could_be_answered() {
    for caps in ["{}", r#"{"elicitation":{}}"#] {
        let stage = Stage::with(AT_ONCE).await;
        let (round, _) = required(&stage, &asks()[0], &["e1"]).await;
        let retry = round.retry("2", &[]).caps(caps);
        let done = stage.unmoved(stage.proxy.send(&retry)).await;
        done.is_error(400, -32021);
        assert_eq!(done.data()["requiredCapabilities"], json!({"elicitation": {"url": {}}}));
        stage.is_over(1).await;
    }
}

/// A11.7: the status of an error makes no difference to what the error says.
#[tokio::test(start_paused = true)]
async fn a11_7_pages_are_required_with_the_status_of_an_error() {
    let asked = Arc::new(AtomicBool::new(false));
    let server = LegacyServer::new().on("tools/call", move |seen, reply: Reply| {
        let again = asked.swap(true, Ordering::AcqRel);
        async move {
            match again {
                false => reply.error(400, &seen, &url_required(&["e1"])).await,
                true => reply.result(&seen, r#"{"content":[]}"#).await,
            }
        }
    });
    let (proxy, up) = Proxy::before(&server).await;
    let ask = call("pay", "{}").caps(URL);
    let round = Round::of(&ask, proxy.send(&ask).await);
    let done = proxy.send(&round.answer("2", CONSENT)).await;
    assert_eq!(done.result()["resultType"], "complete");
    assert_eq!(up.posts("tools/call").len(), 2);
}
