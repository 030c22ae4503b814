//! C56 (SIGSTOP), invariant 5: a process that reads nothing any more holds up nobody but those who call it, and not the end.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::stage::{Stage, done, ends_with, plain};
use crate::support::{Child, User, call, json, pass};

const MIB: usize = 1 << 20;

/// From now on the program reads a line only where there is a permit.
fn gated(stage: &Stage, permits: usize) -> Arc<Semaphore> {
    let (serve, gate) = (stage.behind(), Arc::new(Semaphore::new(permits)));
    let reads = gate.clone();
    stage.net.programs().put("server", move |mut child: Child| {
        let (serve, gate) = (serve.clone(), reads.clone());
        async move {
            child.gated(gate);
            serve(child).await
        }
    });
    gate
}

/// Calls of a process that is stopped fail in their time, leave no task that waits, and the proxy ends at once.
#[tokio::test(start_paused = true)]
async fn a_stopped_process_does_not_hold_up_the_end() {
    for modern in [false, true] {
        let lines = "[upstream.up.timeouts]\nrequest = \"5s\"\n";
        let stage = if modern { Stage::modern(lines).await } else { Stage::legacy(lines).await };
        gated(&stage, if modern { 1 } else { 3 });
        let all: Vec<_> = (0..40)
            .map(|n| stage.run(&call("t", &format!(r#"{{"n":{n},"s":"{}"}}"#, "z".repeat(MIB / 4)))))
            .collect();
        for client in all {
            assert_eq!(done(client).await.code(), -32603);
        }
        pass(1_000).await;
        let began = Instant::now();
        stage.proxy.drain();
        stage.proxy.finished().await;
        assert!(began.elapsed() < Duration::from_secs(1), "modern: {modern}: {:?}", began.elapsed());
        stage.proxy.end().await;
        stage.net.programs().over().await;
    }
}

/// What was never sent is not cancelled either, once the process reads again.
#[tokio::test(start_paused = true)]
async fn what_was_never_sent_is_not_cancelled() {
    for modern in [false, true] {
        let lines = "[upstream.up.timeouts]\nrequest = \"5s\"\n";
        let stage = if modern { Stage::modern(lines).await } else { Stage::legacy(lines).await };
        let gate = gated(&stage, if modern { 1 } else { 3 });
        let all: Vec<_> = (0..40)
            .map(|n| stage.run(&call("t", &format!(r#"{{"n":{n},"s":"{}"}}"#, "z".repeat(MIB / 4)))))
            .collect();
        for client in all {
            assert_eq!(done(client).await.code(), -32603);
        }
        gate.add_permits(1_000);
        pass(5_000).await;
        let sent: Vec<_> = stage.calls.all().iter().map(|call| call.id()).collect();
        let unknown: Vec<_> = stage.cancelled().into_iter().filter(|id| !sent.contains(id)).collect();
        assert!(unknown.is_empty(), "modern: {modern}: {unknown:?} of {sent:?}");
        let client = stage.run(&plain(100));
        let call = stage.calls.marked(100).await;
        if modern {
            call.completes("done")
        } else {
            call.finish("done")
        }
        ends_with(&done(client).await, "done");
    }
}

/// A program that asks and asks and does not read the answers: bounded, and the end is not held up.
#[tokio::test(start_paused = true)]
async fn a_program_that_pings_and_does_not_read() {
    let stage = Stage::legacy("").await;
    gated(&stage, 3);
    let client = stage.run(&plain(1));
    pass(1_000).await;
    let child = stage.child(1).await;
    for n in 0..20_000 {
        child.say(&format!(r#"{{"jsonrpc":"2.0","id":"{n}-{}","method":"ping"}}"#, "p".repeat(200)));
    }
    pass(10_000).await;
    assert_eq!(child.unwritten(), 0, "it is read all the time");
    client.abort();
    pass(1_000).await;
    let began = Instant::now();
    stage.proxy.drain();
    stage.proxy.finished().await;
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    stage.proxy.end().await;
    stage.net.programs().over().await;
}

/// A cancellation that waits for room, whose own client goes: the cancelled call's stream does not stay open for ever.
#[tokio::test(start_paused = true)]
async fn a_cancellation_that_is_given_up_half_way() {
    let stage = Stage::legacy("").await;
    let gate = gated(&stage, 4);
    let user: User = stage.user().await;
    let (opening, call) = stage.start(&user, &user.old.call("t", "{}").id("1")).await;
    assert_eq!(gate.available_permits(), 0);
    for n in 0..12 {
        let fill = format!(r#""s":"{}","n":{n}"#, "z".repeat(MIB / 4));
        let note = user.old.note("notifications/acme").params(&fill);
        let filling = stage.run(&note);
        pass(10).await;
        drop(filling);
    }
    let note = user.old.note("notifications/cancelled").params(r#""requestId":1"#);
    let cancelling = stage.run(&note);
    pass(1_000).await;
    cancelling.abort();
    pass(1_000).await;
    gate.add_permits(1_000);
    pass(5_000).await;
    call.finish("done");
    pass(5_000).await;
    // Either it was cancelled, or it has its answer.
    let stream =
        tokio::time::timeout(Duration::from_secs(30), opening).await.expect("it is not left open").unwrap();
    stream.end().await;
    let answered = stream.messages().iter().any(|one| one["result"]["content"][0]["text"] == json!("done"));
    assert!(answered || stage.cancelled().contains(&call.id()) || stream.messages().is_empty());
    assert!(user.lives().await);
}

/// Calls that are over let go of what they brought: what comes after them finds room at once, however long the process read
/// nothing, and none of them is run.
#[tokio::test(start_paused = true)]
async fn calls_that_are_over_leave_the_queue() {
    for modern in [false, true] {
        let lines = "[upstream.up.timeouts]\nrequest = \"2s\"\n";
        let stage = if modern { Stage::modern(lines).await } else { Stage::legacy(lines).await };
        let gate = gated(&stage, if modern { 1 } else { 3 });
        for round in 0..3 {
            let all: Vec<_> = (0..5)
                .map(|n| stage.run(&call("t", &format!(r#"{{"n":{n},"s":"{}"}}"#, "z".repeat(3 * MIB)))))
                .collect();
            let began = Instant::now();
            for client in all {
                assert_eq!(done(client).await.code(), -32603);
            }
            assert!(began.elapsed().as_secs() <= 3, "modern: {modern}, round {round}: {:?}", began.elapsed());
        }
        gate.add_permits(1_000);
        let client = stage.run(&plain(100));
        let call = stage.calls.marked(100).await;
        if modern {
            call.completes("done")
        } else {
            call.finish("done")
        }
        ends_with(&done(client).await, "done");
        // Of fifteen at most what was on the pipe or in its queue by then.
        assert!(stage.calls.all().len() <= 3, "modern: {modern}: {} calls", stage.calls.all().len());
    }
}

/// An array of which a part has been handed over when the process dies: it may have run, so every request of it has an error
/// of its own, and nobody is told that the session was not known (invariant 3).
#[tokio::test(start_paused = true)]
async fn half_an_array_is_not_refused_as_a_whole() {
    for end in ["dies", "closes its output"] {
        let net = crate::support::Net::new();
        let up = crate::stage::legacy_server().version("2025-03-26").start_program(&net, "server");
        let stage = Stage::before(net, up, crate::support::Calls::new(), "").await;
        gated(&stage, 3);
        let user = User::begin(&stage.proxy, "2025-03-26").await;
        let text = "z".repeat(8 * 1024);
        let one = |n: usize| {
            format!(
                r#"{{"jsonrpc":"2.0","id":{n},"method":"tools/call","params":{{"name":"t","arguments":{{"s":"{text}"}}}}}}"#
            )
        };
        let all: Vec<_> = (0..300).map(one).collect();
        let client = stage.run(&user.old.raw(&format!("[{}]", all.join(","))));
        pass(1_000).await;
        assert!(!client.is_finished(), "it does not fit into the pipe");
        match end {
            "dies" => stage.child(1).await.dies(),
            _ => stage.child(1).await.close_output(),
        }
        let done = done(client).await;
        assert_eq!(done.status, 200, "{end}: {}", done.raw);
        let mut answers = match &done.message {
            crate::support::Value::Array(all) => all.clone(),
            one => done.before.iter().cloned().chain([one.clone()]).collect(),
        };
        answers.sort_by_key(|one| one["id"].as_u64());
        let ids: Vec<_> = answers.iter().filter_map(|one| one["id"].as_u64()).collect();
        assert_eq!(ids, (0..300).collect::<Vec<_>>(), "{end}: each once");
        assert!(answers.iter().all(|one| one["error"]["code"] == -32603), "{end}");
    }
}
