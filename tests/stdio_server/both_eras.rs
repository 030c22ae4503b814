//! Programs of both eras: each process serves one era and one principal, whatever comes in which order (invariant 2, C38, B17).

use crate::both::Both;
use crate::stage::{done, ends_with, opened, plain};
use crate::support::questions::{ACCEPT, ALL, elicit};
use crate::support::{Listener, Old, Round, User, call, json, list, listen, pass};

const CHANGES: &str = r#"{"toolsListChanged":true}"#;

/// A principal whose own first request has made the proxy look at the program, and who has gone.
async fn looked(both: &Both, token: &str) {
    both.hold("server/discover");
    let client = both.stage.run(&list("tools/list").bearer(token));
    both.stage.up.wait("server/discover", 1).await;
    client.abort();
    pass(10).await;
    both.release("server/discover");
    pass(1_000).await;
}

/// A legacy client of one principal is let into no process that another one gets requests into.
#[tokio::test(start_paused = true)]
async fn inv2_two_principals_never_share_a_process() {
    let both = Both::new("").await;
    let stage = &both.stage;
    looked(&both, "alice").await;
    both.hold("initialize");
    let all = crate::support::user::everything("2025-11-25");
    let initialize = Old::initialize_with("2025-11-25", all).bearer("bob");
    let bob = stage.run(&initialize);
    pass(1_000).await;
    // While the program thinks about it, the first one is back.
    let listener = Listener::open(&stage.proxy, &listen("\"l\"", CHANGES).bearer("alice")).await;
    listener.wait(1).await;
    let alices = stage.begin(&plain(1).bearer("alice").meta("progressToken", "\"t\"")).await;
    both.release("initialize");
    let bob = done(bob).await;
    let bob = Old::initialized(&stage.proxy, &bob, Some("bob")).await;
    let mut stream = stage.proxy.open(&bob.get()).await;
    let bobs = stage.run(&bob.call("t", "{}").id("9"));
    let bobs_call = stage.calls.wait(2).await;
    let child = alices.call.seen.connection;
    assert_ne!(bobs_call.seen.connection, child, "a process of its own");
    // What is told of the first one's reaches that one alone.
    stage.listens.tell("tools");
    alices.call.progress(1);
    stage.child(child).await.say(
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"of alice"}}"#,
    );
    pass(1_000).await;
    assert_eq!(listener.changes(), ["tools"]);
    let heard = tokio::time::timeout(std::time::Duration::from_secs(1), stream.event()).await;
    assert!(heard.is_err(), "bob heard {heard:?}");
    // The other one's cancellations are not about them.
    for id in 0..12 {
        let note = bob.note("notifications/cancelled").params(&format!(r#""requestId":{id}"#));
        if id != 9 {
            stage.send(&note).await;
        }
    }
    pass(1_000).await;
    assert!(alices.call.is_open() && stage.listens.now() == 1);
    Both::finish(&alices.call, "alice's");
    ends_with(&alices.done().await, "alice's");
    Both::finish(&bobs_call, "bob's");
    assert!(done(bobs).await.raw.contains("bob's"));
}

/// A try of a legacy client that takes too long takes nothing with it.
#[tokio::test(start_paused = true)]
async fn a_try_that_is_given_up_cancels_nothing_of_others() {
    let both = Both::new("").await;
    let stage = &both.stage;
    looked(&both, "alice").await;
    both.hold("initialize");
    let bob = stage.run(&Old::initialize("2025-11-25").bearer("bob"));
    pass(100).await;
    let alices = stage.begin(&plain(1).bearer("alice")).await;
    bob.abort();
    pass(100_000).await;
    assert!(alices.call.is_open(), "{:?}", stage.cancelled());
    let initialize = stage.up.posts("initialize")[0].json()["id"].clone();
    assert!(!stage.cancelled().contains(&initialize), "initialize is never cancelled");
    Both::finish(&alices.call, "done");
    ends_with(&alices.done().await, "done");
    both.release("initialize");
    pass(1_000).await;
    stage.nothing_is_left().await;
}

/// The program answers the probe when `initialize` has gone out, and then that too. Whichever era it is served in from then on,
/// its questions are heard, and cancellations are of what is cancelled.
#[tokio::test(start_paused = true)]
async fn c38_a_late_discover_result_spoils_no_session() {
    for late in [10_100, 15_000] {
        let both = Both::new("").await;
        let stage = &both.stage;
        both.hold("server/discover");
        both.hold("initialize");
        let first = stage.run(&call("ask", "{}").caps(ALL));
        pass(late).await;
        both.let_through("server/discover");
        pass(10).await;
        both.release("initialize");
        let begun = stage.calls.wait(1).await;
        both.release("server/discover");
        let claims = begun.seen.header("mcp-protocol-version").is_some();
        let child = stage.child(begun.seen.connection).await;
        if claims {
            begun.completes("done");
            ends_with(&done(first).await, "done");
        } else {
            child.say(&elicit("\"q\"", "who?"));
            let round = Round::of(&call("ask", "{}").caps(ALL), done(first).await);
            let client = stage.run(&round.answer("2", ACCEPT));
            assert_eq!(stage.answer("\"q\"", "elicitation/create").await["result"]["action"], "accept");
            begun.finish("done");
            ends_with(&done(client).await, "done");
        }
        // Several calls, of which one is given up.
        let all = [stage.begin(&plain(1)).await, stage.begin(&plain(2)).await, stage.begin(&plain(3)).await];
        let [one, two, three] = all;
        let gone = two.leave().await;
        stage.is_cancelled_once(&gone).await;
        assert_eq!(stage.cancelled(), [gone.id()], "{late}");
        for begun in [one, three] {
            Both::finish(&begun.call, "done");
            ends_with(&begun.done().await, "done");
        }
        assert!(stage.up.posts("server/discover").len() <= 2, "{late}: {:?}", stage.up.briefs());
    }
}

/// The same of a legacy client's own session.
#[tokio::test(start_paused = true)]
async fn c38_a_late_discover_result_spoils_no_legacy_clients_session() {
    for after in [false, true] {
        let both = Both::new("").await;
        let stage = &both.stage;
        both.hold("server/discover");
        both.hold("initialize");
        let opening = {
            let proxy = stage.proxy.clone();
            tokio::spawn(async move { User::begin(&proxy, "2025-11-25").await })
        };
        pass(10_500).await;
        if after {
            both.release("initialize");
            pass(1_000).await;
            both.let_through("server/discover");
        } else {
            both.let_through("server/discover");
            pass(10).await;
            both.release("initialize");
        }
        let user = opening.await.unwrap();
        pass(1_000).await;
        both.release("server/discover");
        let (answer, call) = stage.start(&user, &user.old.call("t", "{}").id("1")).await;
        let (other, beside) = stage.start(&user, &user.old.call("t", "{}").id("2")).await;
        if call.seen.header("mcp-protocol-version").is_none() {
            let child = stage.child(call.seen.connection).await;
            child.say(&elicit("\"q\"", "who?"));
            pass(1_000).await;
            let (one, two) = (answer.is_finished(), other.is_finished());
            assert!(one || two, "after: {after}: the question reaches its client");
            let stream = if two { opened(other).await } else { opened(answer).await };
            let question = stream.question().await;
            user.answer(&question, ACCEPT).await;
            assert_eq!(stage.answer("\"q\"", "elicitation/create").await["result"]["action"], "accept");
        }
        user.cancel("1").await;
        stage.is_cancelled_once(&call).await;
        assert!(beside.is_open(), "after: {after}");
        Both::finish(&beside, "done");
        pass(100).await;
        assert!(user.lives().await, "after: {after}");
    }
}

/// A principal's own look at the program is in flight when a legacy client comes: both are answered.
#[tokio::test(start_paused = true)]
async fn a_discover_in_flight_is_not_taken_away() {
    let both = Both::new("").await;
    let stage = &both.stage;
    stage.send(&list("tools/list").bearer("first")).await.result();
    both.hold("server/discover");
    let alice = stage.run(&list("server/discover").bearer("alice").id("\"d\""));
    pass(100).await;
    let probes = stage.up.posts("server/discover").len();
    let opening = {
        let proxy = stage.proxy.clone();
        let all = crate::support::user::everything("2025-11-25");
        tokio::spawn(async move { User::begin_with(&proxy, "2025-11-25", all, Some("bob")).await })
    };
    pass(1_000).await;
    both.release("server/discover");
    let discovered = done(alice).await;
    assert_eq!(discovered.message["id"], json!("d"));
    discovered.result();
    let user = opening.await.unwrap();
    user.list("tools/list").await;
    assert!(probes >= 1);
    let shared: Vec<_> = stage
        .children()
        .iter()
        .filter(|child| {
            let briefs = child.briefs();
            briefs.contains(&"initialize".to_owned())
                && child.messages().iter().any(|one| {
                    one["method"] != "server/discover"
                        && one["params"]["_meta"].get(crate::support::VERSION).is_some()
                })
        })
        .map(|child| child.briefs())
        .collect();
    assert_eq!(shared, [] as [Vec<String>; 0], "one era in each process");
}

/// Two who look at once, one of either era, before anything is known of a legacy program: one process is enough for the look,
/// and no other lies about afterwards.
#[tokio::test(start_paused = true)]
async fn two_looks_at_once() {
    let stage = crate::stage::Stage::canned(crate::stage::legacy_server(), "").await;
    let modern = stage.run(&call("echo", "{}"));
    let user = stage.user().await;
    done(modern).await.result();
    user.list("tools/list").await;
    pass(10_000).await;
    assert_eq!(stage.alive(), 2, "{:?}", stage.children().iter().map(|one| one.briefs()).collect::<Vec<_>>());
    assert!(stage.children().len() <= 3);
}
