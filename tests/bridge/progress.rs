//! D93, A2.3, A4.5, B2.5: one token of the client's for all rounds of a call.

use crate::stage::{REVISIONS, ROOTED, ROOTS, Stage, opened, parse};
use crate::support::{Stream, json};

fn heard(stream: &Stream) -> Vec<serde_json::Value> {
    let notes = stream.notes("notifications/progress");
    notes.into_iter().map(|note| note["params"]["progress"].clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn d93_loop_progress() {
    for revision in REVISIONS {
        for token in [r#""t\u0041""#, "7", r#""7""#, "0"] {
            let stage = Stage::new().await;
            let user = stage.user(revision).await;
            let ask = user.old.call("ask", "{}").meta("progressToken", token);
            let (opening, first) = stage.start(&user, &ask).await;
            first.progress(1);
            first.progress(2);
            first.asks(&[("k", ROOTS)], Some(r#""S""#));
            let stream = opened(opening).await;
            user.answer(&stream.question().await, ROOTED).await;
            let second = stage.retried(1).await;
            assert_ne!(first.meta("progressToken"), second.meta("progressToken"), "fresh for each round");
            second.progress(1);
            second.progress(3);
            second.completes("done");
            stream.result().await;
            assert_eq!(heard(&stream), [json!(1), json!(2), json!(3)], "{revision} {token}");
            for note in stream.notes("notifications/progress") {
                assert_eq!(note["params"]["progressToken"], parse(token), "{revision}");
            }
        }
    }
}

/// What else is said of progress is kept, in every revision.
#[tokio::test(start_paused = true)]
async fn d93_message_and_total_are_kept() {
    for revision in REVISIONS {
        let stage = Stage::new().await;
        let user = stage.user(revision).await;
        let ask = user.old.call("ask", "{}").meta("progressToken", "\"t\"");
        let (opening, call) = stage.start(&user, &ask).await;
        let token = call.meta("progressToken");
        for (progress, rest) in
            [("0.50", r#","total":2.50,"message":"h\u0061lf","x-own":[1.0]"#), ("1e0", "")]
        {
            call.event(&format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{progress}{rest}}}}}"#
            ));
        }
        // Neither of this call's, nor of anybody's; and none at all.
        for odd in [r#""progressToken":"other","progress":5"#, r#""progress":5"#, r#""progressToken":1"#] {
            call.event(&format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{{odd}}}}}"#
            ));
        }
        call.completes("done");
        let stream = opened(opening).await;
        stream.result().await;
        let events = stream.events();
        let raw: Vec<_> = events.iter().filter(|e| e.message["method"] == "notifications/progress").collect();
        assert_eq!(raw.len(), 2, "{revision}: {raw:?}");
        assert!(raw[0].raw.contains(r#""progress":0.50"#), "{}", raw[0].raw);
        assert!(raw[0].raw.contains(r#""total":2.50,"message":"h\u0061lf","x-own":[1.0]"#), "{}", raw[0].raw);
    }
}

/// A client that takes no stream has no use for it; its answer comes all the same.
#[tokio::test(start_paused = true)]
async fn d93_without_a_stream() {
    let stage = Stage::new().await;
    let user = stage.user_with(crate::stage::LATEST, "{}").await;
    let ask = user.old.call("ask", "{}").meta("progressToken", "\"t\"").header("Accept", "application/json");
    let (opening, call) = stage.start(&user, &ask).await;
    call.event(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}"#);
    call.completes("done");
    let stream = opened(opening).await;
    stream.result().await;
    assert_eq!(stream.briefs(), ["answer"]);
}
