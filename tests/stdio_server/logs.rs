//! B8: log messages of a legacy program, which stand beside its calls and name none of them; progress, which names one.

use crate::stage::{Stage, done, ends_with, plain};
use crate::support::{Ask, json, pass};

const LEVEL: &str = "io.modelcontextprotocol/logLevel";

fn levelled(n: usize, level: &str) -> Ask {
    plain(n).meta(LEVEL, &format!("\"{level}\""))
}

fn log(level: &str, data: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"{level}","data":"{data}"}}}}"#
    )
}

fn data(done: &crate::support::Done) -> Vec<String> {
    let logs = done.before.iter().filter(|one| one["method"] == "notifications/message");
    logs.map(|one| one["params"]["data"].as_str().unwrap().to_owned()).collect()
}

/// B8.1-B8.3: one call wants them, and it gets those of its level; the level is set before the call is sent.
#[tokio::test(start_paused = true)]
async fn b8_the_only_call_that_wants_logs_gets_them() {
    let stage = Stage::legacy("").await;
    let quiet = stage.begin(&plain(1)).await;
    let begun = stage.begin(&levelled(2, "info")).await;
    let child = stage.child(1).await;
    let briefs = child.briefs();
    let at = |brief: &str| briefs.iter().rposition(|other| other == brief);
    assert!(at("logging/setLevel") < at("tools/call") && at("logging/setLevel").is_some(), "{briefs:?}");
    assert_eq!(child.wait("logging/setLevel", 1).await["params"]["level"], "info");
    for (level, text) in [("info", "one"), ("debug", "too fine"), ("error", "two")] {
        child.say(&log(level, text));
    }
    pass(100).await;
    begun.call.finish("done");
    quiet.call.finish("done");
    let done = begun.done().await;
    assert_eq!(data(&done), ["one", "two"], "{:?}", done.before);
    let quiet = quiet.done().await;
    assert_eq!(data(&quiet), [] as [&str; 0]);
}

/// B8.3: two want them, and nothing says whose they are: nobody gets them.
#[tokio::test(start_paused = true)]
async fn b8_logs_that_could_be_two_calls_are_dropped() {
    let stage = Stage::legacy("").await;
    let one = stage.begin(&levelled(1, "info")).await;
    let two = stage.begin(&levelled(2, "debug")).await;
    let child = stage.child(1).await;
    assert_eq!(child.wait("logging/setLevel", 2).await["params"]["level"], "debug", "the most verbose");
    child.say(&log("error", "whose?"));
    pass(100).await;
    one.call.finish("one");
    let one = one.done().await;
    assert_eq!(data(&one), [] as [&str; 0]);
    // Now there is one left.
    child.say(&log("error", "the second's"));
    pass(100).await;
    two.call.finish("two");
    let two = two.done().await;
    assert_eq!(data(&two), ["the second's"]);
}

/// B8.4: nobody wants them.
#[tokio::test(start_paused = true)]
async fn b8_logs_that_nobody_wants_are_dropped() {
    let stage = Stage::legacy("").await;
    let begun = stage.begin(&plain(1)).await;
    let child = stage.child(1).await;
    child.say(&log("error", "m"));
    pass(100).await;
    begun.call.finish("done");
    assert_eq!(data(&begun.done().await), [] as [&str; 0]);
    child.say(&log("error", "m"));
    pass(100).await;
    assert!(!child.briefs().contains(&"logging/setLevel".to_owned()));
    stage.finished(&plain(2), "done").await;
}

/// Principals have processes of their own, so logs never cross.
#[tokio::test(start_paused = true)]
async fn b8_logs_stay_with_their_principal() {
    let stage = Stage::legacy("").await;
    let one = stage.begin(&levelled(1, "info").bearer("a")).await;
    let two = stage.begin(&levelled(2, "info").bearer("b")).await;
    stage.child(1).await.say(&log("info", "of a"));
    stage.child(2).await.say(&log("info", "of b"));
    pass(100).await;
    one.call.finish("one");
    two.call.finish("two");
    assert_eq!(
        (data(&one.done().await), data(&two.done().await)),
        (vec!["of a".into()], vec!["of b".into()])
    );
}

/// A14.4, A2.4: progress names its call by the token, which is renumbered and given back in its own type.
#[tokio::test(start_paused = true)]
async fn progress_goes_to_its_call_by_its_token() {
    let stage = Stage::legacy("").await;
    let tokens = ["\"t\"", "\"t\"", "1", "\"1\""];
    let mut all = Vec::new();
    for (n, token) in tokens.iter().enumerate() {
        all.push(stage.begin(&plain(n).meta("progressToken", token)).await);
    }
    let without = stage.begin(&plain(9)).await;
    let mut sent: Vec<_> = all.iter().map(|begun| begun.call.meta("progressToken").to_string()).collect();
    sent.sort();
    sent.dedup();
    assert_eq!(sent.len(), 4, "each has one of its own: {sent:?}");
    let child = stage.child(1).await;
    for round in 1..3 {
        for (n, begun) in all.iter().enumerate().rev() {
            let token = begun.call.meta("progressToken");
            child.say(&format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{round},"message":"of {n}"}}}}"#
            ));
        }
    }
    // Of nobody.
    child.say(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"none","progress":1}}"#);
    pass(100).await;
    for (n, begun) in all.into_iter().enumerate() {
        begun.call.finish("done");
        let done = begun.done().await;
        ends_with(&done, "done");
        assert_eq!(done.before.len(), 2, "{:?}", done.before);
        for progress in &done.before {
            assert_eq!(progress["params"]["progressToken"].to_string(), tokens[n]);
            assert_eq!(progress["params"]["message"], format!("of {n}"));
        }
    }
    without.call.finish("done");
    assert_eq!(without.done().await.before.len(), 0);
}

/// The same for a legacy client, whose progress comes on its call's stream and nowhere else.
#[tokio::test(start_paused = true)]
async fn progress_of_a_legacy_client() {
    let stage = Stage::legacy("").await;
    let user = stage.user().await;
    let get = user.get().await;
    let ask = |n: usize| user.old.call("t", "{}").id(&n.to_string()).meta("progressToken", &n.to_string());
    let (one, first) = stage.start(&user, &ask(1)).await;
    let (two, second) = stage.start(&user, &ask(2)).await;
    second.progress(1);
    first.progress(1);
    first.progress(2);
    pass(100).await;
    first.finish("one");
    second.finish("two");
    let (one, two) = (crate::stage::opened(one).await, crate::stage::opened(two).await);
    assert_eq!(one.result().await["content"][0]["text"], "one");
    assert_eq!(two.result().await["content"][0]["text"], "two");
    assert_eq!(
        (one.notes("notifications/progress").len(), two.notes("notifications/progress").len()),
        (2, 1)
    );
    assert_eq!(two.notes("notifications/progress")[0]["params"]["progressToken"], json!(2));
    assert_eq!(get.messages().len(), 0);
}

/// What a program tells of a call that is over is nobody's.
#[tokio::test(start_paused = true)]
async fn progress_after_the_answer_is_dropped() {
    let stage = Stage::legacy("").await;
    let begun = stage.begin(&plain(1).meta("progressToken", "\"t\"")).await;
    let token = begun.call.meta("progressToken");
    begun.call.finish("done");
    ends_with(&begun.done().await, "done");
    let next = stage.run(&plain(2).meta("progressToken", "\"t\""));
    let call = stage.calls.wait(2).await;
    stage.child(1).await.say(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":1}}}}"#
    ));
    pass(100).await;
    call.finish("done");
    assert_eq!(done(next).await.before.len(), 0);
}

/// All in one write: what was told before the answer comes before it.
#[tokio::test(start_paused = true)]
async fn what_was_told_just_before_the_answer_is_not_lost() {
    for modern in [false, true] {
        let stage = if modern { Stage::modern("").await } else { Stage::legacy("").await };
        let begun = stage.begin(&levelled(1, "info").meta("progressToken", "\"t\"")).await;
        let (id, token) = (begun.call.seen.id(), begun.call.meta("progressToken"));
        let content = r#""content":[{"type":"text","text":"done"}]"#;
        let result = match modern {
            true => crate::support::modern::complete("tools/call", content),
            false => format!("{{{content}}}"),
        };
        let progress = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":1}}}}"#
        );
        let answer = crate::support::rpc::result_message(&id, &result);
        let all = [log("info", "one"), progress, log("info", "two"), answer];
        stage.child(1).await.write(format!("{}\n", all.join("\n")).as_bytes());
        let done = begun.done().await;
        ends_with(&done, "done");
        assert_eq!(data(&done), ["one", "two"], "modern: {modern}: {:?}", done.before);
        assert_eq!(done.before.len(), 3, "modern: {modern}: {:?}", done.before);
    }
}
