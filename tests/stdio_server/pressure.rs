//! C53 (reads, writes and standard error never block one another): pipes that are full in one direction.

use crate::stage::{Stage, done, ends_with, plain, scripted};
use crate::support::{Child, call, json, list, pass, rpc};

const MIB: usize = 1 << 20;

/// Megabytes on standard error, before, during and after calls.
#[tokio::test(start_paused = true)]
async fn a_flood_on_standard_error() {
    let stage = Stage::legacy("").await;
    stage.first(|running| async move {
        (0..32).for_each(|_| running.complain(&[b'e'; 256 * 1024]));
        None
    });
    for n in 0..3 {
        let begun = stage.begin(&plain(n)).await;
        let child = stage.child(1).await;
        (0..2_000)
            .for_each(|line| child.complain(format!("warning {line}: {}\n", "w".repeat(1000)).as_bytes()));
        begun.call.finish("done");
        ends_with(&begun.done().await, "done");
    }
    pass(60_000).await;
    assert_eq!(stage.child(1).await.unwritten(), 0, "all of it was read");
}

/// A program that writes a lot before it reads: neither side waits for the other.
#[tokio::test(start_paused = true)]
async fn a_program_that_writes_before_it_reads() {
    let stage = Stage::legacy("").await;
    let serve = stage.behind();
    stage.net.programs().put("server", move |child: Child| {
        let serve = serve.clone();
        async move {
            let running = child.running();
            for n in 0..200 {
                running.say(&format!("[INFO] {n} {}", "i".repeat(64 * 1024)));
                running.say(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
            }
            while running.unwritten() > 0 {
                pass(10).await;
            }
            serve(child).await
        }
    });
    let client = stage.run(&call("t", &format!(r#"{{"s":"{}"}}"#, "z".repeat(3 * MIB))));
    stage.calls.wait(1).await.finish("done");
    ends_with(&done(client).await, "done");
}

/// A program that does not read: its input fills up; calls wait for their time and no longer, cancellation does not hang, and
/// another upstream works. When it reads again, it is served.
#[tokio::test(start_paused = true)]
async fn a_program_that_does_not_read() {
    let toml = "[upstream.up]\ncommand = \"server\"\npath = \"/mcp\"\n[upstream.up.timeouts]\nrequest = \"20s\"\n[upstream.other]\ncommand = \"other\"\npath = \"/other\"\n";
    let stage = Stage::configured(crate::stage::legacy_server(), toml).await;
    crate::stage::legacy_server().start_program(&stage.net, "other");
    let stopped = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let (serve, gate) = (stage.behind(), stopped.clone());
    // What was read goes on to the server; between this pipe and that one is a gate.
    stage.net.programs().put("server", move |mut child: Child| {
        let (serve, gate) = (serve.clone(), gate.clone());
        async move {
            if child.running().n == 1 {
                child.gated(gate);
            }
            serve(child).await
        }
    });
    stopped.add_permits(4);
    stage.finished(&plain(0), "done").await;
    let all: Vec<_> = (1..11)
        .map(|n| stage.run(&call("t", &format!(r#"{{"n":{n},"s":"{}"}}"#, "z".repeat(MIB)))))
        .collect();
    pass(1_000).await;
    stage.send(&list("tools/list").path("/other")).await.result();
    for client in all {
        assert_eq!(done(client).await.code(), -32603);
    }
    stopped.add_permits(tokio::sync::Semaphore::MAX_PERMITS / 2);
    pass(1_000).await;
    let client = stage.run(&plain(100));
    stage.calls.marked(100).await.finish("done");
    ends_with(&done(client).await, "done");
    let runs: Vec<_> = stage.calls.all().iter().map(|call| call.argument("n").to_string()).collect();
    let mut once = runs.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), runs.len(), "none was sent twice: {runs:?}");
}

/// A client that does not read its answer: others of the same process have theirs, and the process is read all the time.
#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read() {
    for modern in [false, true] {
        let stage = if modern { Stage::modern("").await } else { Stage::legacy("").await };
        let io = stage.proxy.connect();
        let ask = plain(1).meta("progressToken", "\"t\"");
        // The head is read, the rest is not.
        let slow = tokio::spawn(async move { crate::support::client::open(io, &ask).await });
        let call = stage.calls.wait(1).await;
        let (child, token) = (stage.child(1).await, call.meta("progressToken"));
        for n in 0..20_000 {
            child.say(&format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{n},"message":"{}"}}}}"#,
                "p".repeat(1_000)
            ));
        }
        let other = stage.run(&plain(2));
        let beside = stage.calls.wait(2).await;
        if modern {
            beside.completes("other")
        } else {
            beside.finish("other")
        }
        ends_with(&done(other).await, "other");
        assert_eq!(child.unwritten(), 0, "all that it says is read");
        drop(slow.await);
        pass(1_000).await;
        stage.send(&list("tools/list")).await.result();
    }
}

/// A program that answers a line only after it has been given another one.
#[tokio::test(start_paused = true)]
async fn a_program_that_is_one_answer_behind() {
    let stage = scripted("era = \"modern\"\n", |mut child: Child| async move {
        let mut before: Option<String> = None;
        while let Some(line) = child.line().await {
            let id = rpc::id(line.as_bytes());
            if let Some(id) = std::mem::replace(&mut before, id) {
                let result = crate::support::modern::complete("tools/call", r#""content":[]"#);
                child.say(&rpc::result_message(&id, &result));
            }
        }
        0
    })
    .await;
    let one = stage.run(&plain(1).id("1"));
    pass(100).await;
    let two = stage.run(&plain(2).id("2"));
    assert_eq!(done(one).await.message["id"], 1);
    let _three = stage.run(&plain(3).id("3"));
    assert_eq!(done(two).await.message["id"], 2);
}

/// A process that says hundreds of small things in one write, of which a client that reads them misses none.
#[tokio::test(start_paused = true)]
async fn a_burst_for_a_client_that_reads() {
    for modern in [false, true] {
        let stage = if modern { Stage::modern("").await } else { Stage::legacy("").await };
        let begun = stage.begin(&plain(1).meta("progressToken", "\"t\"")).await;
        let token = begun.call.meta("progressToken");
        let all: Vec<_> = (0..500)
            .map(|n| {
                format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{n}}}}}"#
                )
            })
            .collect();
        stage.child(1).await.write(format!("{}\n", all.join("\n")).as_bytes());
        pass(1_000).await;
        if modern {
            begun.call.completes("done")
        } else {
            begun.call.finish("done")
        }
        let done = begun.done().await;
        ends_with(&done, "done");
        let last = done.before.last().map(|one| one["params"]["progress"].clone());
        assert_eq!((done.before.len(), last), (500, Some(json!(499))), "modern: {modern}");
    }
}

/// The same of a legacy client's own session: what concerns it as a whole, and pings, each of which is answered.
#[tokio::test(start_paused = true)]
async fn a_burst_for_a_session() {
    let stage = Stage::legacy("").await;
    let user = stage.user().await;
    let get = user.get().await;
    let all: Vec<_> = (0..500)
        .map(|n| {
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":"file:///{n}"}}}}"#
            )
        })
        .collect();
    stage.child(1).await.write(format!("{}\n", all.join("\n")).as_bytes());
    pass(1_000).await;
    assert_eq!(get.changes().len(), 500);
}

/// And of pings to the proxy itself.
#[tokio::test(start_paused = true)]
async fn a_burst_of_pings() {
    let stage = Stage::legacy("").await;
    stage.finished(&plain(1), "done").await;
    let child = stage.child(1).await;
    let all: Vec<_> = (0..300).map(|n| format!(r#"{{"jsonrpc":"2.0","id":{n},"method":"ping"}}"#)).collect();
    child.write(format!("{}\n", all.join("\n")).as_bytes());
    pass(10_000).await;
    let answers: Vec<_> = child.messages().into_iter().filter(|one| one.get("method").is_none()).collect();
    assert_eq!(answers.len(), 300);
    let refused = answers.iter().filter(|one| one["result"] != json!({})).count();
    assert_eq!(refused, 0, "of 300");
}

/// C16: a call that is silent for long: its answer is kept alive by comments, whatever the eras.
#[tokio::test(start_paused = true)]
async fn c16_a_silent_call_is_kept_alive() {
    for modern in [false, true] {
        let stage = if modern { Stage::modern("").await } else { Stage::legacy("").await };
        let begun = stage.begin(&plain(1)).await;
        pass(90_000).await;
        if modern {
            begun.call.completes("done")
        } else {
            begun.call.finish("done")
        }
        let done = begun.done().await;
        assert!(done.comments >= 4, "modern: {modern}: {} comments in 90 s", done.comments);
    }
    for bridged in [false, true] {
        let stage = if bridged { Stage::bridged("").await } else { Stage::legacy("").await };
        let user = stage.user().await;
        let (opening, call) = stage.start(&user, &user.old.call("t", "{}")).await;
        pass(90_000).await;
        assert!(opening.is_finished(), "bridged: {bridged}: not even a head after 90 s");
        if bridged {
            call.completes("done")
        } else {
            call.finish("done")
        }
        let stream = crate::stage::opened(opening).await;
        stream.result().await;
        assert!(stream.comments() >= 3, "bridged: {bridged}: {} comments in 90 s", stream.comments());
    }
}
