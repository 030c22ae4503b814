//! C38, C40: programs that are slow to start, answer the probe late, or never say a word.

use std::sync::Arc;

use tokio::time::Instant;

use crate::stage::{HANDSHAKE, Stage, UNKNOWN, ends_with, scripted, words};
use crate::support::{Child, LegacyServer, Reply, Seen, call, list, pass};

/// A program that reads nothing for so long, as one that is downloaded first.
fn late(stage: &Stage, millis: u64) {
    stage.first(move |_| async move {
        pass(millis).await;
        None
    });
}

#[tokio::test(start_paused = true)]
async fn c38_a_slow_legacy_program_is_waited_for() {
    for seconds in [5, 15, 35, 50] {
        let stage = Stage::legacy("").await;
        late(&stage, seconds * 1_000);
        stage.finished(&call("ask", "{}"), "done").await;
        assert_eq!(stage.children().len(), 1, "{seconds} s");
        assert_eq!(stage.child(1).await.briefs(), [&HANDSHAKE[..], &["tools/call"]].concat(), "{seconds} s");
        assert_eq!(stage.up.posts("tools/call").len(), 1, "{seconds} s");
    }
}

/// It answers the probe when `initialize` has been sent: modern after all.
#[tokio::test(start_paused = true)]
async fn c38_a_slow_modern_program_is_modern() {
    for seconds in [5, 15, 35, 50] {
        let stage = Stage::modern("").await;
        late(&stage, seconds * 1_000);
        let began = Instant::now();
        let begun = stage.begin(&call("echo", "{}")).await;
        begun.call.completes("done");
        ends_with(&begun.done().await, "done");
        let took = began.elapsed().as_secs();
        assert!(took <= seconds + 1, "{seconds} s: it took {took} s");
        assert_eq!(stage.calls.all().len(), 1, "{seconds} s: the call ran once");
        // And stays so, for others too.
        stage.send(&list("tools/list").bearer("b")).await.result();
        assert!(stage.up.posts("initialize").len() <= 1, "{seconds} s: {:?}", stage.up.briefs());
    }
}

/// The refusal of the probe comes when `initialize` has been sent already, and is nobody's answer.
#[tokio::test(start_paused = true)]
async fn c38_a_late_refusal_of_the_probe_is_dropped() {
    for after in [0, 5_000] {
        let server =
            LegacyServer::new().on("server/discover", move |seen: Arc<Seen>, reply: Reply| async move {
                pass(10_050 + after).await;
                reply.error(200, &seen, UNKNOWN).await;
            });
        let stage = Stage::canned(server, "").await;
        stage.send(&call("echo", "{}").id("1")).await.result();
        pass(20_000).await;
        stage.send(&call("echo", "{}").id("2")).await.result();
        let expected = [&HANDSHAKE[..], &["tools/call", "tools/call"]].concat();
        assert_eq!(stage.child(1).await.briefs(), expected, "{after} ms");
    }
}

/// The probe is answered before `initialize` is, though sent first; and only then.
#[tokio::test(start_paused = true)]
async fn c38_the_probe_is_answered_after_initialize_only() {
    let stage = scripted("", |mut child: Child| async move {
        let probe = child.next("server/discover").await.unwrap_or_default();
        let id = child.next("initialize").await.unwrap_or_default();
        child.say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"s","version":"1"}}}}}}"#));
        child.say(&format!(r#"{{"jsonrpc":"2.0","id":{probe},"error":{UNKNOWN}}}"#));
        while let Some(id) = child.next("tools/call").await {
            child.say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}"#));
        }
        0
    })
    .await;
    for n in 0..2 {
        stage.send(&call("echo", "{}").id(&n.to_string())).await.result();
    }
    let expected = [&HANDSHAKE[..], &["tools/call", "tools/call"]].concat();
    assert_eq!(stage.child(1).await.briefs(), expected);
}

/// A program of both eras that answers both late: whichever it is then, calls work, and none runs twice.
#[tokio::test(start_paused = true)]
async fn c38_a_late_discover_result_of_a_program_of_both_eras() {
    let (net, calls) = (crate::support::Net::new(), crate::support::Calls::new());
    let legacy = calls.of(LegacyServer::new());
    let modern = calls.of_modern(crate::support::ModernServer::full());
    let handler = crate::support::net::handler(move |seen: Arc<Seen>, reply: Reply| {
        let (legacy, modern) = (legacy.clone(), modern.clone());
        async move {
            if seen.brief() == "server/discover" {
                pass(10_500).await;
            }
            match seen.header("mcp-protocol-version") {
                Some(_) => modern.answer(seen, reply).await,
                None => legacy.answer(seen, reply).await,
            }
        }
    });
    let up = net.serve("server", crate::support::net::Receiver::Unchecked, handler);
    let up = crate::support::lines::start(&net, "server", up);
    let stage = Stage::before(net, up, calls, "").await;
    for n in 1..4 {
        let begun = stage.begin(&call("echo", "{}")).await;
        let claims = begun.call.params()["_meta"].to_string().contains("protocolVersion");
        if claims {
            begun.call.completes("done")
        } else {
            begun.call.finish("done")
        }
        ends_with(&begun.done().await, "done");
        pass(1_000).await;
        assert_eq!(stage.calls.all().len(), n);
    }
    assert!(stage.up.posts("initialize").len() <= 1);
    assert_eq!(stage.up.posts("server/discover").len(), 1);
}

/// `timeouts.start`: from the start to the first message.
#[tokio::test(start_paused = true)]
async fn c38_a_program_that_says_nothing_is_given_up() {
    for (lines, seconds) in [("", 60), ("[upstream.up.timeouts]\nstart = \"20s\"\nprobe = \"2s\"\n", 20)] {
        let stage = scripted(lines, |mut child: Child| async move {
            child.listen().await;
            0
        })
        .await;
        let began = Instant::now();
        let done = stage.send(&call("echo", "{}").id("5")).await;
        done.is_error(504, -32603);
        let took = began.elapsed().as_secs();
        assert!((seconds..=seconds + 2).contains(&took), "after {seconds} s, not {took}");
        let words = words(&done);
        assert!(words.contains("start") || words.contains(&format!("{seconds}s")), "{words}");
        pass(10_000).await;
        assert_eq!(stage.alive(), 0, "nobody waits for it any more");
        assert_eq!(stage.up.posts("tools/call").len(), 0);
    }
}

/// A line that is no message is no sign of life that counts.
#[tokio::test(start_paused = true)]
async fn c38_a_program_that_logs_only_is_given_up() {
    let stage = scripted("", |mut child: Child| async move {
        let running = child.running();
        child.spawn(async move {
            loop {
                running.say("still compiling");
                pass(1_000).await;
            }
        });
        child.listen().await;
        0
    })
    .await;
    let began = Instant::now();
    let done = stage.send(&call("echo", "{}").id("5")).await;
    done.is_error(504, -32603);
    assert!(began.elapsed().as_secs() <= 62, "{:?}", began.elapsed());
}

/// A client that does not wait for a slow program leaves nothing that hangs, and whoever comes next finds it started.
#[tokio::test(start_paused = true)]
async fn c38_a_client_that_leaves_in_the_meantime() {
    let stage = Stage::legacy("").await;
    late(&stage, 15_000);
    let client = stage.run(&call("ask", "{}"));
    pass(5_000).await;
    client.abort();
    stage.finished(&call("ask", "{\"n\":2}"), "done").await;
    assert_eq!(stage.calls.all().len(), 1, "the one that was waited for");
    assert!(stage.children().len() <= 2);
    stage.nothing_is_left().await;
}

/// C40: what is run is never the probe, and runs once, however the program fails then.
#[tokio::test(start_paused = true)]
async fn c40_the_first_call_ever_runs_at_most_once() {
    for how in ["exits", "dies", "is silent", "fails", "answers"] {
        let stage = Stage::legacy("[upstream.up.timeouts]\nrequest = \"30s\"\n").await;
        let begun = stage.begin(&call("charge_card", "{}").id("1")).await;
        let child = stage.child(1).await;
        match how {
            "exits" => child.exit(1),
            "dies" => child.dies(),
            "fails" => begun.call.error(r#"{"code":-32603,"message":"m"}"#),
            "answers" => begun.call.finish("done"),
            _ => {}
        }
        let done = begun.done().await;
        assert_eq!(done.message.get("result").is_some(), how == "answers", "{how}: {}", done.raw);
        pass(600_000).await;
        assert_eq!(stage.calls.all().len(), 1, "{how}");
    }
}

/// A modern program that answers no probe in time, or none at all, and says what it is in answer to `initialize`: that is a
/// verdict (A15.3), and the call that was waiting is served.
#[tokio::test(start_paused = true)]
async fn a15_3_a_modern_program_that_refuses_initialize_is_modern() {
    for slow in [Some(12_000), None] {
        let (net, calls) = (crate::support::Net::new(), crate::support::Calls::new());
        let result = crate::support::modern::complete(
            "server/discover",
            r#""supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}"#,
        );
        let server = calls.of_modern(crate::support::ModernServer::full()).on(
            "server/discover",
            move |seen: Arc<Seen>, reply: Reply| {
                let result = result.clone();
                async move {
                    match slow {
                        Some(millis) => pass(millis).await,
                        None => return reply.never().await,
                    }
                    reply.result(&seen, &result).await;
                }
            },
        );
        let up = server.start_program(&net, "server");
        let stage = Stage::before(net, up, calls, "").await;
        for n in 1..3 {
            let begun = stage.begin(&call("echo", "{}").bearer(&n.to_string())).await;
            begun.call.completes("done");
            ends_with(&begun.done().await, "done");
            assert_eq!(stage.calls.all().len(), n, "run once");
        }
        let briefs = stage.up.briefs();
        let count = |method: &str| briefs.iter().filter(|brief| *brief == method).count();
        assert_eq!(
            (count("server/discover"), count("initialize")),
            (1, 1),
            "{slow:?}: found out once: {briefs:?}"
        );
        stage.nothing_is_left().await;
    }
}

/// The same where a legacy client is the first to come: it is bridged.
#[tokio::test(start_paused = true)]
async fn a15_3_for_a_legacy_client() {
    let (net, calls) = (crate::support::Net::new(), crate::support::Calls::new());
    let server = calls.of_modern(crate::support::ModernServer::full()).on(
        "server/discover",
        |seen: Arc<Seen>, reply: Reply| async move {
            // What is asked for later, when its kind is known, is answered.
            pass(12_000).await;
            let members = r#""supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}"#;
            reply.result(&seen, &crate::support::modern::complete("server/discover", members)).await;
        },
    );
    let up = server.start_program(&net, "server");
    let stage = Stage::before(net, up, calls, "").await;
    let user = stage.user().await;
    user.list("tools/list").await;
    let (opening, call) = stage.start(&user, &user.old.call("t", "{}")).await;
    call.completes("done");
    assert_eq!(crate::stage::opened(opening).await.result().await["content"][0]["text"], "done");
}
