//! A2.4, A2.5, B8, C16: what a program tells beside its answers, to whom it comes, and what comes of it where nobody reads.

use crate::stage::{Stage, ends_with, legacy_server, opened, plain};
use crate::support::{Ask, Gets, call, json, pass, rpc};

const LEVEL: &str = "io.modelcontextprotocol/logLevel";

fn progress(token: &str, n: u32) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{n}}}}}"#
    )
}

/// Progress of a task goes on after its call has been answered: the session's stream has it (2025-11-25, tasks).
#[tokio::test(start_paused = true)]
async fn progress_after_a_tasks_answer_comes_on_the_get_stream() {
    let stage = Stage::legacy("").await;
    let user = stage.user().await;
    let get = user.get().await;
    let ask = user.old.call("t", "{}").member("task", "{}").meta("progressToken", "\"t\"");
    let (opening, call) = stage.start(&user, &ask).await;
    let child = stage.child(1).await;
    call.result(r#"{"task":{"taskId":"x","status":"working","createdAt":"2025-11-25T00:00:00Z","lastUpdatedAt":"2025-11-25T00:00:00Z","ttl":null},"content":[]}"#);
    opened(opening).await.answer().await;
    child.say(&progress(&call.meta("progressToken").to_string(), 1));
    pass(1_000).await;
    assert_eq!(get.notes("notifications/progress").len(), 1);
}

/// C17 for tokens: one that comes back in another JSON type.
#[tokio::test(start_paused = true)]
async fn c17_a_token_that_comes_back_in_another_type() {
    for modern in [false, true] {
        let stage = if modern { Stage::modern("").await } else { Stage::legacy("").await };
        let begun = stage.begin(&plain(1).meta("progressToken", "\"mine\"")).await;
        let token = begun.call.meta("progressToken");
        let other = token.as_str().map_or_else(|| format!("\"{token}\""), str::to_owned);
        if other.parse::<u64>().is_ok() || other.starts_with('"') {
            stage.child(1).await.say(&progress(&other, 1));
            pass(100).await;
            if modern {
                begun.call.completes("done")
            } else {
                begun.call.finish("done")
            }
            let done = begun.done().await;
            assert_eq!(done.before.len(), 1, "modern: {modern}: {token} as {other}");
            assert_eq!(done.before[0]["params"]["progressToken"], "mine");
        }
    }
}

/// A legacy client that has one token for two calls: the end of the one is not that of the other's progress.
#[tokio::test(start_paused = true)]
async fn one_token_for_two_calls() {
    let stage = Stage::legacy("").await;
    let user = stage.user().await;
    let ask = |id: &str| user.old.call("t", "{}").id(id).meta("progressToken", "\"t\"");
    let (one, first) = stage.start(&user, &ask("1")).await;
    let (two, second) = stage.start(&user, &ask("2")).await;
    first.finish("one");
    opened(one).await.result().await;
    stage.child(1).await.say(&progress(&second.meta("progressToken").to_string(), 7));
    pass(100).await;
    second.finish("two");
    let two = opened(two).await;
    two.result().await;
    assert_eq!(two.notes("notifications/progress").len(), 1);
}

/// On several threads and in real time: what a program writes before its answer is not outrun by it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn b8_logs_are_not_outrun_by_the_answer() {
    for modern in [false, true] {
        let stage = if modern { Stage::modern("").await } else { Stage::legacy("").await };
        let content = r#""content":[{"type":"text","text":"done"}]"#;
        let result = match modern {
            true => crate::support::modern::complete("tools/call", content),
            false => format!("{{{content}}}"),
        };
        for n in 0..150 {
            let begun = stage.begin(&plain(n).meta(LEVEL, "\"info\"")).await;
            let log = |text: usize| {
                format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":"{text}"}}}}"#
                )
            };
            // More than are kept for a call that has not been told apart yet.
            let mut lines: Vec<_> = (0..40).map(log).collect();
            lines.push(rpc::result_message(&begun.call.seen.id(), &result));
            stage.child(1).await.write(format!("{}\n", lines.join("\n")).as_bytes());
            let done = begun.done().await;
            ends_with(&done, "done");
            let told: Vec<_> = done.before.iter().map(|one| one["params"]["data"].clone()).collect();
            let all: Vec<_> = (0..40).map(|text| json!(text.to_string())).collect();
            assert_eq!(told, all, "modern: {modern}, call {n}");
        }
    }
}

/// Asked right after the handshake, to a client that opens no GET stream: its next request carries it.
#[tokio::test(start_paused = true)]
async fn what_is_asked_before_any_stream_waits_for_the_next_request() {
    let net = crate::support::Net::new();
    let calls = crate::support::Calls::new();
    let asks = Gets::script(|_| {
        crate::support::Begin::With(format!("data: {}\n\n", crate::support::questions::roots("\"r\"")))
    });
    let up = calls.of(asks.of(legacy_server())).start_program(&net, "server");
    let stage = Stage::before(net, up, calls, "").await;
    let user = stage.user().await;
    pass(5_000).await;
    let (opening, call) = stage.start(&user, &user.old.call("t", "{}")).await;
    let stream = opened(opening).await;
    let question = stream.question().await;
    assert_eq!(question["method"], "roots/list");
    user.answer(&question, r#"{"roots":[]}"#).await;
    assert_eq!(stage.child(1).await.wait("response", 1).await["id"], "r");
    call.finish("done");
    stream.result().await;
}

/// Invariant 7: what is left out because nobody reads it is counted.
#[tokio::test(start_paused = true)]
async fn inv7_what_is_left_out_is_counted() {
    for modern in [false, true] {
        let stage = if modern { Stage::modern("").await } else { Stage::legacy("").await };
        let io = stage.proxy.connect();
        let ask: Ask = plain(1).meta("progressToken", "\"t\"");
        let slow = tokio::spawn(async move { crate::support::client::open(io, &ask).await });
        let call = stage.calls.wait(1).await;
        let token = call.meta("progressToken").to_string();
        let before = counted(&stage);
        for n in 0..20_000 {
            stage
                .child(1)
                .await
                .say(&progress(&token, n).replace("}}", &format!(r#","message":"{}"}}}}"#, "p".repeat(500))));
        }
        pass(5_000).await;
        if modern {
            call.completes("done")
        } else {
            call.finish("done")
        }
        let mut answer = slow.await.unwrap();
        let mut heard = 0;
        while let Some(event) = answer.event().await {
            heard += u64::from(event.data.contains("notifications/progress"));
        }
        let left_out = counted(&stage) - before;
        assert!(heard + left_out >= 20_000, "modern: {modern}: {heard} came, {left_out} are counted");
    }
}

/// All counts of messages that were left out.
fn counted(stage: &Stage) -> u64 {
    let metrics = stage.proxy.metrics();
    let of_it = metrics.lines().filter(|line| !line.starts_with('#') && line.contains("\"limits.events\""));
    of_it.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum::<f64>() as u64
}

/// Cancelled between a notification and its answer, in whatever order that is noticed: a notification is no answer.
#[tokio::test(start_paused = true)]
async fn a_notification_is_no_answer() {
    for yields in 0..25 {
        let stage = Stage::legacy("").await;
        let user = stage.user().await;
        let ask = user.old.call("t", "{}").id("1").meta("progressToken", "\"t\"");
        let (opening, call) = stage.start(&user, &ask).await;
        let note = user.old.note("notifications/cancelled").params(r#""requestId":1"#);
        let cancelling = stage.run(&note);
        for _ in 0..yields {
            tokio::task::yield_now().await;
        }
        stage.child(1).await.say(&progress(&call.meta("progressToken").to_string(), 1));
        let cancelled = crate::stage::done(cancelling).await;
        assert_eq!(cancelled.status, 202);
        pass(1_000).await;
        if opening.is_finished() {
            let stream = opened(opening).await;
            assert!(stream.is_stream() || stream.text().is_empty(), "{yields}: {}", stream.text());
            assert!(stream.messages().iter().all(|one| one["method"] == "notifications/progress"));
        }
    }
}

/// A call of another client in the same process never hears of it, whoever has gone.
#[tokio::test(start_paused = true)]
async fn what_is_told_of_one_that_has_gone_is_nobodys() {
    for modern in [false, true] {
        let stage = if modern { Stage::modern("").await } else { Stage::legacy("").await };
        let gone = stage.begin(&call("a", "{}").meta("progressToken", "1").meta(LEVEL, "\"info\"")).await;
        let token = gone.call.meta("progressToken").to_string();
        let gone = gone.leave().await;
        let stays = stage.begin(&plain(2).meta("progressToken", "1")).await;
        stage.child(1).await.say(&progress(&token, 1));
        pass(100).await;
        if modern {
            stays.call.completes("done")
        } else {
            stays.call.finish("done")
        }
        assert_eq!(stays.done().await.before.len(), 0, "modern: {modern}");
        assert!(!gone.is_open());
    }
}
