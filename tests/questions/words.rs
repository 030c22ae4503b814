//! Invariant 7: whoever is refused because of a setting is told which one it is.

use crate::stage::{Stage, asking, next_round};
use crate::support::questions::{ACCEPT, CONSENT, URL, elicit, url_required};
use crate::support::{Done, call, pass};

#[track_caller]
fn says(done: &Done, setting: &str) {
    let text = done.message["error"]["message"].as_str().unwrap_or_default();
    assert!(text.contains(setting), "{setting}: {}", done.raw);
}

#[tokio::test(start_paused = true)]
async fn inv7_no_place_for_a_parked_call() {
    let table = [("parked", "limits.parked)"), ("parked_per_principal", "limits.parked_per_principal)")];
    for (setting, told) in table {
        let stage = Stage::bounded(&format!("[limits]\n{setting} = 1\n"), "").await;
        stage.asked(&asking(1), &[&elicit("1", "m")]).await;
        let begun = stage.begin(&asking(2)).await;
        begun.call.event(&elicit("2", "m"));
        let done = begun.done().await;
        says(&done, told);
        assert_eq!(done.status, 503);
    }
}

/// A call that was never sent is not told that the server was slow.
#[tokio::test(start_paused = true)]
async fn inv7_no_turn_in_time() {
    let stage = Stage::with("[upstream.up.timeouts]\nrequest = \"20s\"\n").await;
    let begun = stage.begin(&asking(1)).await;
    stage.gets.wait(1).await.event(&elicit("1", "m"));
    begun.call.finish("the end");
    begun.done().await;
    let running = stage.begin(&asking(2)).await;
    let waiting = stage.run(&asking(3));
    let (done, late) = (running.done().await, waiting.await.unwrap());
    says(&done, "did not answer in time");
    says(&late, "session.max_per_key");
    says(&late, "has not run");
    assert_eq!(late.code(), -32603);
    assert_eq!(stage.calls.all().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn inv7_pages_without_end() {
    let lines = "[upstream.up.limits]\nrounds = 1\n[upstream.up.timeouts]\nurl = \"0s\"\n";
    let stage = Stage::with(lines).await;
    let begun = stage.begin(&call("pay", "{}").caps(URL)).await;
    begun.call.whole_error(&url_required(&["e1"]));
    let client = stage.run(&begun.round().await.answer("2", CONSENT));
    stage.calls.wait(2).await.whole_error(&url_required(&["e2"]));
    says(&client.await.unwrap(), "limits.rounds");
}

#[tokio::test(start_paused = true)]
async fn inv7_states_that_came_too_late() {
    let stage = Stage::new().await;
    let (round, at) = stage.asked(&asking(1), &[&elicit("1", "m")]).await;
    let retry = round.answer("2", ACCEPT);
    let client = stage.run(&retry);
    stage.elicited("1").await;
    at.event(&elicit("2", "n"));
    let next = next_round(&retry, client).await;
    let client = stage.run(&next.answer("3", ACCEPT));
    stage.elicited("2").await;
    at.finish("the end");
    client.await.unwrap().result();
    pass(31_000).await;
    says(&stage.proxy.send(&next.answer("4", ACCEPT)).await, "timeouts.replay");
    let (round, _) = stage.asked(&asking(2), &[&elicit("3", "m")]).await;
    pass(301_000).await;
    says(&stage.proxy.send(&round.answer("2", ACCEPT)).await, "timeouts.answer");
}
