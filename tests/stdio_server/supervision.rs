//! C56: a process that ends with calls in flight, in every way that there is; what was sent is never sent again.

use tokio::time::Instant;

use crate::stage::{Begun, Stage, ends_with, opened, plain, words};
use crate::support::{Running, json, list, pass, rpc};

const RESTARTED: [&str; 3] = ["initialize", "notifications/initialized", "tools/call"];

/// What becomes of a process.
type Ends = fn(&Running);

/// By name: how a process ends.
fn ends() -> [(&'static str, Ends); 6] {
    [
        ("kill -9", |child| child.dies()),
        ("exit 1", |child| child.exit(1)),
        ("exit 0", |child| child.exit(0)),
        ("half a line, then exit", |child| {
            child.write(br#"{"jsonrpc":"2.0","id":"#);
            child.exit(1);
        }),
        ("words, then exit", |child| {
            child.say("Segmentation fault");
            child.complain(b"core dumped\n");
            child.exit(139);
        }),
        ("its output is closed", |child| child.close_output()),
    ]
}

async fn three(stage: &Stage) -> Vec<Begun> {
    let mut all = Vec::new();
    for id in ["1", "\"1\"", "\"c\""] {
        all.push(stage.begin(&plain(all.len()).id(id)).await);
    }
    all
}

#[tokio::test(start_paused = true)]
async fn c56_three_calls_pending_at_the_end() {
    for modern in [false, true] {
        for (name, end) in ends() {
            let stage = if modern { Stage::modern("").await } else { Stage::legacy("").await };
            let all = three(&stage).await;
            let began = Instant::now();
            end(stage.child(1).await.as_ref());
            for (begun, id) in all.into_iter().zip([json!(1), json!("1"), json!("c")]) {
                let done = begun.done().await;
                done.is_error(502, -32603);
                assert_eq!(done.message["id"], id, "{name}");
                assert!(words(&done).contains("ended"), "{name}: {}", done.raw);
            }
            assert!(began.elapsed().as_millis() <= 1_000, "{name}: {:?}", began.elapsed());
            // Nothing is sent again, and the next call starts another one, without a probe.
            pass(60_000).await;
            assert_eq!((stage.calls.all().len(), stage.children().len()), (3, 1), "{name}");
            let begun = stage.begin(&plain(9)).await;
            if modern {
                begun.call.completes("done")
            } else {
                begun.call.finish("done")
            }
            ends_with(&begun.done().await, "done");
            let expected = if modern { &RESTARTED[2..] } else { &RESTARTED[..] };
            assert_eq!(stage.child(2).await.briefs(), expected, "{name}");
            stage.child(1).await.reaped().await;
            stage.nothing_is_left().await;
        }
    }
}

/// A12.21: a legacy client has its answers, and then begins a new session.
#[tokio::test(start_paused = true)]
async fn c56_of_a_legacy_client() {
    for (name, end) in ends() {
        let stage = Stage::legacy("").await;
        let user = stage.user().await;
        let mut all = Vec::new();
        for id in ["1", "\"1\"", "\"c\""] {
            all.push(stage.start(&user, &user.old.call("t", "{}").id(id)).await.0);
        }
        let began = Instant::now();
        end(stage.child(1).await.as_ref());
        for (opening, id) in all.into_iter().zip([json!(1), json!("1"), json!("c")]) {
            let answer = opened(opening).await.answer().await;
            assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(-32603)), "{name}: {answer}");
        }
        assert!(began.elapsed().as_millis() <= 1_000, "{name}: {:?}", began.elapsed());
        assert!(!user.lives().await, "{name}: 404");
        assert_eq!(stage.calls.all().len(), 3, "{name}");
        stage.user().await.list("tools/list").await;
    }
}

/// The answer and then the end, in one write: it is an answer.
#[tokio::test(start_paused = true)]
async fn c56_what_was_said_before_the_end_counts() {
    for code in [0, 1] {
        let stage = Stage::legacy("").await;
        let begun = stage.begin(&plain(1)).await;
        let other = stage.begin(&plain(2)).await;
        let child = stage.child(1).await;
        child.say(&rpc::result_message(
            &begun.call.seen.id(),
            r#"{"content":[{"type":"text","text":"last"}]}"#,
        ));
        child.exit(code);
        ends_with(&begun.done().await, "last");
        other.done().await.is_error(502, -32603);
    }
}

/// The last message lacks its line end: taken or failed, once.
#[tokio::test(start_paused = true)]
async fn c56_the_last_message_without_its_line_end() {
    let stage = Stage::legacy("").await;
    let begun = stage.begin(&plain(1)).await;
    let child = stage.child(1).await;
    let answer = rpc::result_message(&begun.call.seen.id(), r#"{"content":[{"type":"text","text":"last"}]}"#);
    child.write(answer.as_bytes());
    child.exit(0);
    let began = Instant::now();
    let done = begun.done().await;
    match done.status {
        200 => ends_with(&done, "last"),
        _ => done.is_error(502, -32603),
    }
    assert!(began.elapsed().as_millis() <= 1_000, "{:?}", began.elapsed());
    stage.finished(&plain(2), "done").await;
}

/// A child of its own holds the output open: the end is noticed all the same, and what it left is ended.
#[tokio::test(start_paused = true)]
async fn c55_a_grandchild_holds_the_output() {
    let stage = Stage::legacy("").await;
    stage.first(|running| async move {
        running.leaves_output_open();
        None
    });
    let begun = stage.begin(&plain(1)).await;
    stage.child(1).await.exit(1);
    let began = Instant::now();
    begun.done().await.is_error(502, -32603);
    assert!(began.elapsed().as_millis() <= 1_000, "{:?}", began.elapsed());
    stage.finished(&plain(2), "done").await;
    stage.child(1).await.reaped().await;
    stage.nothing_is_left().await;
}

/// It ends while nobody waits: the next call finds out before it is lost.
#[tokio::test(start_paused = true)]
async fn c56_it_ends_between_calls() {
    for modern in [false, true] {
        for (name, end) in ends() {
            let stage = if modern { Stage::modern("").await } else { Stage::legacy("").await };
            for n in 0..3 {
                let begun = stage.begin(&plain(n)).await;
                if modern {
                    begun.call.completes("done")
                } else {
                    begun.call.finish("done")
                }
                ends_with(&begun.done().await, "done");
                end(stage.child(n + 1).await.as_ref());
                pass(5_000).await;
            }
            assert_eq!(stage.children().len(), 3, "{name}");
        }
    }
}

/// It dies in the very moment of the call: one answer, and one run at most.
#[tokio::test(start_paused = true)]
async fn c56_it_ends_as_the_call_comes() {
    for yields in 0..40 {
        let stage = Stage::legacy("").await;
        stage.finished(&plain(0), "done").await;
        let client = stage.run(&plain(1));
        for _ in 0..yields {
            tokio::task::yield_now().await;
        }
        stage.child(1).await.dies();
        let calls = stage.calls.clone();
        let server = tokio::spawn(async move {
            let mut n = 2;
            loop {
                calls.wait(n).await.finish("again");
                n += 1;
            }
        });
        let done = crate::stage::done(client).await;
        match done.status {
            200 => ends_with(&done, "again"),
            _ => done.is_error(502, -32603),
        }
        server.abort();
        assert!(stage.calls.all().len() <= 2, "{yields}: {:?}", stage.up.briefs());
    }
}

/// Lists may be asked for again, once; a tool never is (architecture, Retries).
#[tokio::test(start_paused = true)]
async fn c56_a_list_in_flight() {
    let server =
        crate::stage::legacy_server().on("tools/list", |_, reply: crate::support::Reply| reply.never());
    let stage = Stage::canned(server, "").await;
    let client = stage.run(&list("tools/list"));
    stage.up.wait("tools/list", 1).await;
    crate::stage::legacy_server().start_program(&stage.net, "server");
    stage.child(1).await.dies();
    let done = crate::stage::done(client).await;
    assert!([200, 502].contains(&done.status), "{}", done.raw);
    assert!(stage.children().len() <= 2);
}

/// Metrics: how they ended.
#[tokio::test(start_paused = true)]
async fn processes_are_counted() {
    let stage = Stage::legacy("").await;
    stage.finished(&plain(1), "done").await;
    assert_eq!(stage.metric("mcp_janus_upstream_processes", &["upstream=\"up\""]), 1.0);
    stage.child(1).await.dies();
    pass(1_000).await;
    assert_eq!(stage.metric("mcp_janus_upstream_processes", &[]), 0.0);
    let exits = "mcp_janus_upstream_process_exits_total";
    assert_eq!(stage.metric(exits, &["by_itself"]), 1.0);
    stage.finished(&plain(2), "done").await;
    stage.nothing_is_left().await;
    assert_eq!(stage.metric(exits, &["asked"]), 1.0);
    assert_eq!(stage.metric("mcp_janus_upstream_process_starts_total", &["started"]), 2.0);
}
