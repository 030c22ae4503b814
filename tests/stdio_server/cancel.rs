//! C23, A2.2, B14: cancellation over pipes, where every one of them is said in a message.

use crate::stage::{Stage, ends_with, opened, plain};
use crate::support::{Listener, json, listen, pass, rpc};

/// C23a: a modern client closes its stream; the program is told, once, with the id that it knows; other calls go on.
#[tokio::test(start_paused = true)]
async fn c23a_a_client_that_goes_is_a_cancellation() {
    for modern in [false, true] {
        let stage = if modern { Stage::modern("").await } else { Stage::legacy("").await };
        let other = stage.begin(&plain(1)).await;
        let begun = stage.begin(&plain(2)).await;
        pass(1_000).await;
        let call = begun.leave().await;
        stage.is_cancelled_once(&call).await;
        assert_eq!(stage.cancelled().len(), 1);
        // An answer that comes all the same is dropped.
        let late = rpc::result_message(&call.seen.id(), r#"{"content":[],"resultType":"complete"}"#);
        stage.child(1).await.say(&late);
        pass(100).await;
        if modern {
            other.call.completes("done")
        } else {
            other.call.finish("done")
        }
        ends_with(&other.done().await, "done");
        assert_eq!(stage.children().len(), 1);
    }
}

/// C23b: a legacy client's own cancellation: 202 at once, the id that the program knows, and no answer.
#[tokio::test(start_paused = true)]
async fn c23b_a_legacy_client_cancels() {
    for id in ["101", "\"101\""] {
        let stage = Stage::legacy("").await;
        let user = stage.user().await;
        let (other, beside) = stage.start(&user, &user.old.call("t", "{}").id("100")).await;
        let (opening, call) = stage.start(&user, &user.old.call("t", "{}").id(id)).await;
        user.cancel(id).await;
        stage.is_cancelled_once(&call).await;
        beside.finish("done");
        assert_eq!(opened(other).await.result().await["content"][0]["text"], "done");
        // If its stream was opened at all, it ends without an answer.
        pass(1_000).await;
        if opening.is_finished() {
            let stream = opened(opening).await;
            assert!(
                stream.messages().iter().all(|one| one.get("result").is_none()),
                "{:?}",
                stream.messages()
            );
        }
    }
}

/// C23c: unknown ids and `initialize` are cancelled in vain.
#[tokio::test(start_paused = true)]
async fn c23c_cancelling_nothing() {
    let stage = Stage::legacy("").await;
    let user = stage.user().await;
    let (opening, call) = stage.start(&user, &user.old.call("t", "{}").id("1")).await;
    for nothing in ["999", "\"1\"", "0"] {
        user.cancel(nothing).await;
    }
    pass(1_000).await;
    assert!(call.is_open(), "the call of another id goes on");
    let initialize = stage.up.only("initialize").json()["id"].clone();
    assert!(!stage.cancelled().contains(&initialize), "initialize is never cancelled");
    call.finish("done");
    assert_eq!(opened(opening).await.result().await["content"][0]["text"], "done");
}

/// C23d: the answer and the cancellation pass each other: one or none, and what follows works.
#[tokio::test(start_paused = true)]
async fn c23d_the_answer_crosses_the_cancellation() {
    for modern in [false, true] {
        let stage = if modern { Stage::modern("").await } else { Stage::legacy("").await };
        for n in 0..20 {
            let begun = stage.begin(&plain(n)).await;
            if modern {
                begun.call.completes("done")
            } else {
                begun.call.finish("done")
            }
            for _ in 0..n {
                tokio::task::yield_now().await;
            }
            begun.client.abort();
        }
        pass(1_000).await;
        let begun = stage.begin(&plain(100)).await;
        if modern {
            begun.call.completes("done")
        } else {
            begun.call.finish("done")
        }
        ends_with(&begun.done().await, "done");
        assert_eq!(stage.children().len(), 1);
    }
}

/// D: the same of a legacy client's own.
#[tokio::test(start_paused = true)]
async fn c23d_of_a_legacy_client() {
    let stage = Stage::legacy("").await;
    let user = stage.user().await;
    for n in 0..10 {
        let (opening, call) = stage.start(&user, &user.old.call("t", "{}").id(&n.to_string())).await;
        call.finish("done");
        user.cancel(&n.to_string()).await;
        pass(100).await;
        if opening.is_finished() {
            let stream = opened(opening).await;
            stream.end().await;
            assert!(stream.messages().len() <= 1, "{:?}", stream.messages());
        }
    }
    assert!(user.lives().await);
}

/// A legacy client that only loses its connection cancels nothing (A12.19).
#[tokio::test(start_paused = true)]
async fn a12_19_a_lost_connection_of_a_legacy_client_is_no_cancellation() {
    let stage = Stage::legacy("").await;
    let user = stage.user().await;
    let (opening, call) = stage.start(&user, &user.old.call("t", "{}").id("1")).await;
    opening.abort();
    pass(10_000).await;
    assert_eq!(stage.cancelled(), [] as [crate::support::Value; 0]);
    call.finish("done");
    pass(100).await;
    assert!(user.lives().await);
}

/// A call that waits for its turn, or for the process, is gone without a word when its client is.
#[tokio::test(start_paused = true)]
async fn what_was_not_sent_is_not_cancelled() {
    let stage = Stage::legacy("").await;
    stage.first(|_| async {
        pass(5_000).await;
        None
    });
    let client = stage.run(&plain(1));
    pass(1_000).await;
    client.abort();
    pass(60_000).await;
    assert_eq!((stage.calls.all().len(), stage.cancelled().len()), (0, 0), "{:?}", stage.up.briefs());
}

/// `timeouts.request`: the client has its answer, and the program is told.
#[tokio::test(start_paused = true)]
async fn a_call_that_takes_too_long_is_cancelled() {
    for modern in [false, true] {
        let lines = "[upstream.up.timeouts]\nrequest = \"20s\"\n";
        let stage = if modern { Stage::modern(lines).await } else { Stage::legacy(lines).await };
        let begun = stage.begin(&plain(1).id("3")).await;
        let call = begun.call.clone();
        let done = begun.done().await;
        assert_eq!((done.code(), &done.message["id"]), (-32603, &json!(3)));
        stage.is_cancelled_once(&call).await;
        assert_eq!(stage.alive(), 1, "one that is slow is not one that is dead");
    }
}

/// A subscription that its client closes before it was acknowledged.
#[tokio::test(start_paused = true)]
async fn a_subscription_is_given_up_early() {
    let stage = Stage::modern("").await;
    let silent = crate::support::Listens::script(|_, _| crate::support::Take::Silent);
    silent.of(crate::support::ModernServer::full()).start_program(&stage.net, "server");
    let proxy = stage.proxy.clone();
    let opening =
        tokio::spawn(
            async move { Listener::open(&proxy, &listen("1", r#"{"toolsListChanged":true}"#)).await },
        );
    let heard = silent.wait(1).await;
    pass(100).await;
    opening.abort();
    pass(1_000).await;
    assert!(!heard.is_open(), "the program is told");
}

/// The same when something of the answer has come: its stream ends with an error, or breaks off.
#[tokio::test(start_paused = true)]
async fn a_call_that_takes_too_long_after_its_progress() {
    for modern in [false, true] {
        let lines = "[upstream.up.timeouts]\nrequest = \"20s\"\n";
        let stage = if modern { Stage::modern(lines).await } else { Stage::legacy(lines).await };
        let mut answer = {
            let proxy = stage.proxy.clone();
            let ask = plain(1).meta("progressToken", "\"t\"");
            let opening = tokio::spawn(async move { proxy.open(&ask).await });
            stage.calls.wait(1).await.progress(1);
            opening.await.unwrap()
        };
        assert_eq!(answer.message().await["method"], "notifications/progress");
        let (rest, broken) = answer.rest().await;
        let failed = rest.last().is_some_and(|last| last["error"]["code"] == -32603);
        assert!(failed || broken, "modern: {modern}: {rest:?}");
        let call = stage.calls.wait(1).await;
        stage.is_cancelled_once(&call).await;
    }
}
