//! B4.1, A2.8: how long a retry waits for the server's word that a URL was visited, and where that word goes.

use std::time::Duration;

use tokio::time::Instant;

use crate::stage::{Stage, done, ends_with};
use crate::support::questions::{CONSENT, URL, completed, url_required};
use crate::support::{Ask, Begin, Gets, LegacyServer, Listener, Round, call, list, listen, pass};

fn ask() -> Ask {
    call("pay", r#"{"n":1}"#).caps(URL)
}

async fn required(stage: &Stage, ids: &[&str]) -> Round {
    let begun = stage.begin(&ask()).await;
    begun.call.whole_error(&url_required(ids));
    begun.round().await
}

/// How long after the retry the call is sent anew, in milliseconds.
async fn resent_after(stage: &Stage, round: &Round, meanwhile: impl Future<Output = ()>) -> u64 {
    let began = Instant::now();
    let client = stage.run(&round.answer_all("2", CONSENT));
    meanwhile.await;
    let second = stage.calls.wait(2).await;
    let took = second.at.duration_since(began).as_millis() as u64;
    second.finish("paid");
    let done = done(client).await;
    ends_with(&done, "paid");
    assert_eq!(done.before.len(), 0, "notifications/elicitation/complete is not leaked: {:?}", done.before);
    stage.is_over(2).await;
    took
}

#[tokio::test(start_paused = true)]
async fn b4_1_the_wait_is_bounded() {
    for (lines, least, most) in [
        ("", 9_000, 10_500),
        ("[upstream.up.timeouts]\nurl = \"2s\"\n", 1_500, 2_500),
        ("[upstream.up.timeouts]\nurl = \"0s\"\n", 0, 200),
        // The call needs some of its own time for itself.
        ("[upstream.up.timeouts]\nrequest = \"4s\"\n", 1_000, 3_000),
    ] {
        let stage = Stage::with(lines).await;
        let round = required(&stage, &["e1"]).await;
        let took = resent_after(&stage, &round, async {}).await;
        assert!((least..=most).contains(&took), "{lines}: {took} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn b4_1_the_word_ends_the_wait() {
    let stage = Stage::new().await;
    let round = required(&stage, &["e1"]).await;
    let get = stage.gets.wait(1).await;
    let took = resent_after(&stage, &round, async {
        pass(1000).await;
        get.event(&completed("e2"));
        get.event(&completed(""));
        get.event(r#"{"jsonrpc":"2.0","method":"notifications/elicitation/complete"}"#);
        pass(2000).await;
        assert_eq!(stage.calls.all().len(), 1, "another's word");
        get.event(&completed("e1"));
    })
    .await;
    assert!((3000..3500).contains(&took), "{took} ms");
}

#[tokio::test(start_paused = true)]
async fn b4_1_the_word_came_before_the_retry() {
    let stage = Stage::new().await;
    let round = required(&stage, &["e1"]).await;
    stage.gets.wait(1).await.event(&completed("e1"));
    pass(60_000).await;
    let took = resent_after(&stage, &round, async {}).await;
    assert!(took < 500, "{took} ms");
}

#[tokio::test(start_paused = true)]
async fn b4_1_every_one_of_several_is_waited_for() {
    let stage = Stage::new().await;
    let round = required(&stage, &["e1", "e2"]).await;
    let get = stage.gets.wait(1).await;
    let took = resent_after(&stage, &round, async {
        get.event(&completed("e2"));
        pass(2000).await;
        assert_eq!(stage.calls.all().len(), 1);
        pass(1000).await;
        get.event(&completed("e1"));
    })
    .await;
    assert!((3000..3500).contains(&took), "{took} ms");
}

/// The word on the stream of another call of the session is as good.
#[tokio::test(start_paused = true)]
async fn b4_1_the_word_on_another_calls_stream() {
    let stage = Stage::of(LegacyServer::telling(), Gets::script(|_| Begin::Empty(405)), "", "").await;
    let round = required(&stage, &["e1"]).await;
    let other = stage.run(&call("other", r#"{"n":2}"#).caps(URL));
    let at = stage.calls.marked(2).await;
    at.event(&completed("e1"));
    pass(1000).await;
    at.finish("done");
    let other = done(other).await;
    ends_with(&other, "done");
    assert_eq!(other.before.len(), 0, "it is not leaked: {:?}", other.before);
    let began = Instant::now();
    let client = stage.run(&round.answer("2", CONSENT));
    let second = stage.calls.wait(3).await;
    assert!(began.elapsed() < Duration::from_millis(500), "{:?}", began.elapsed());
    second.finish("paid");
    ends_with(&done(client).await, "paid");
    stage.is_over(3).await;
}

/// Another session's word with the same id is another's (invariant 2).
#[tokio::test(start_paused = true)]
async fn b4_1_the_word_of_another_session_does_not_count() {
    let stage = Stage::new().await;
    let round = required(&stage, &["e1"]).await;
    stage.proxy.send(&list("tools/list").caps(URL).bearer("bob")).await.result();
    let bobs = stage.gets.wait(2).await;
    bobs.event(&completed("e1"));
    pass(1000).await;
    let took = resent_after(&stage, &round, async {}).await;
    assert!(took > 9_000, "{took} ms");
}

/// A2.8: no listener hears of it.
#[tokio::test(start_paused = true)]
async fn a2_8_a_subscription_hears_nothing_of_it() {
    let stage = Stage::new().await;
    let listener = Listener::open(&stage.proxy, &listen("1", r#"{"toolsListChanged":true}"#).caps(URL)).await;
    listener.wait(1).await;
    let round = required(&stage, &["e1"]).await;
    stage.gets.wait(1).await;
    stage.gets.tell(&completed("e1"));
    pass(1000).await;
    assert_eq!(listener.messages().len(), 1, "{:?}", listener.messages());
    let took = resent_after(&stage, &round, async {}).await;
    assert!(took < 500, "{took} ms");
    assert_eq!(listener.messages().len(), 1, "{:?}", listener.messages());
}

/// The client goes away while its retry waits: nothing is sent, nothing is cancelled, nothing is left.
#[tokio::test(start_paused = true)]
async fn b14_gone_while_it_waits() {
    let stage = Stage::new().await;
    let round = required(&stage, &["e1"]).await;
    let client = stage.run(&round.answer("2", CONSENT));
    pass(3000).await;
    client.abort();
    pass(30_000).await;
    assert_eq!(stage.calls.all().len(), 1, "nobody waits for it");
    assert_eq!(stage.cancelled().len(), 0);
    stage.is_over(1).await;
    stage.nothing_is_left().await;
}

/// Invariant 5: words that nobody waits for are not collected without a bound.
#[tokio::test(start_paused = true)]
async fn inv5_words_that_nobody_waits_for() {
    let stage = Stage::new().await;
    let round = required(&stage, &["e1"]).await;
    let get = stage.gets.wait(1).await;
    for n in 0..5000 {
        get.event(&completed(&format!("{n}-{}", "x".repeat(500))));
        if n % 100 == 0 {
            pass(1).await;
        }
    }
    get.event(&completed("e1"));
    pass(1000).await;
    let took = resent_after(&stage, &round, async {}).await;
    assert!(took < 500, "{took} ms");
}
