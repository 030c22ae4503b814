//! Faults that a newcomer found and that are mended: what an operator reads in the log and the metrics, what a client is told, and
//! the end of the process. Each test fails on what the program did before.

use tokio::time::{Duration, Instant};

use crate::stage::{FORM, LATEST, REVISIONS, ROOTS, Stage};
use crate::support::log::Log;
use crate::support::{End, ModernServer, Reply, json, pass, within};

/// README, Operating it: calls that wait for their client are ended at once; nobody can answer them any more.
#[tokio::test(start_paused = true)]
async fn a14_7_a_drain_does_not_wait_for_people() {
    for away in [false, true] {
        let stage = Stage::bounded("shutdown_grace = \"60s\"", "").await;
        let user = stage.latest().await;
        let stream = stage.asked(&user, &[("k", FORM)], Some(r#""S""#)).await;
        stream.question().await;
        if away {
            stream.drop_connection().await;
        }
        let began = Instant::now();
        stage.proxy.drain();
        if !away {
            let answer = stream.answer().await;
            assert!(answer["error"]["code"] == -32603 || answer["result"]["isError"] == true, "{answer}");
            assert_eq!(stream.end().await, End::Clean);
        }
        within("the end", stage.proxy.finished()).await;
        assert!(began.elapsed() < Duration::from_secs(5), "away {away}: {:?}", began.elapsed());
        stage.is_over(1).await;
    }
}

/// A call that runs at the server has its time, and is answered.
#[tokio::test(start_paused = true)]
async fn a14_7_a_drain_waits_for_servers() {
    let stage = Stage::bounded("shutdown_grace = \"60s\"", "").await;
    let user = stage.latest().await;
    let (stream, call) = stage.begin(&user).await;
    stage.proxy.drain();
    pass(30_000).await;
    assert!(call.is_open() && !stream.is_over());
    // It asks now: nobody can be asked.
    call.asks(&[("k", ROOTS)], Some(r#""S""#));
    let answer = stream.answer().await;
    assert!(answer["error"]["code"] == -32603 || answer["result"]["isError"] == true, "{answer}");
    within("the end", stage.proxy.finished()).await;
    stage.is_over(1).await;
}

/// Streams that end with the process say when to come again: not before it can be up anew.
#[tokio::test(start_paused = true)]
async fn a14_7_streams_say_when_to_come_again() {
    for revision in REVISIONS {
        let stage = Stage::bounded("shutdown_grace = \"20s\"", "").await;
        let user = stage.user(revision).await;
        let get = user.get().await;
        pass(1000).await;
        stage.proxy.drain();
        assert_eq!(get.end().await, End::Clean, "{revision}");
        assert!(get.retry().is_some_and(|retry| retry >= 20_000), "{revision}: {:?}", get.retry());
    }
}

/// A result that fits what is kept is kept, also where its connection breaks in its middle.
#[tokio::test(start_paused = true)]
async fn b14_a_result_that_broke_in_its_middle() {
    for size in [100_000, 300_000, 900_000] {
        let stage = Stage::new().await;
        let user = stage.latest().await;
        let mut stream = stage.proxy.open(&user.old.call("ask", "{}")).await;
        let call = stage.calls.wait(1).await;
        let primed = stream.event().await.unwrap();
        call.completes_with(&format!(r#""content":[{{"type":"text","text":"{}"}}]"#, "x".repeat(size)));
        // Some of it is read.
        let mut read = 0;
        while read < 64 * 1024 {
            read += stream.piece().await.unwrap().map_or(usize::MAX / 2, |piece| piece.len());
        }
        drop(stream);
        pass(5000).await;
        let resumed = user.resume(&primed.id).await;
        let answer = resumed.answer().await;
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
        assert_eq!((text.len(), &answer["id"]), (size, &json!(1)), "{}", &answer.to_string()[..200]);
    }
}

/// No word of a client or its user is in the log, at any level.
#[tokio::test(start_paused = true)]
async fn inv2_words_of_clients_are_not_logged() {
    let log = Log::open();
    let stage = Stage::new().await;
    let user = stage.latest().await;
    let stream = stage.asked(&user, &[("k", FORM)], Some(r#""S""#)).await;
    let question = stream.question().await;
    let error = r#"{"code":-1,"message":"User SECRET rejected","data":{"why":"SECRET"}}"#;
    let raw = crate::support::rpc::error_message(&question["id"].to_string(), error);
    assert_eq!(stage.proxy.send(&user.old.raw(&raw)).await.status, 202);
    stream.tool_error().await;
    let stream = stage.asked(&user, &[("k", FORM)], Some(r#""SECRET state""#)).await;
    let question = stream.question().await;
    user.answer(&question, r#"{"action":"accept","content":{"n":["SECRET"]},"x":"SECRET"}"#).await;
    pass(1000).await;
    if let Some(call) = stage.calls.all().get(2) {
        call.completes("SECRET");
    }
    stream.answer().await;
    let (plain, call) = stage.begin_at(&user, &user.old.call("ask", r#"{"password":"SECRET"}"#)).await;
    call.whole_error(r#"{"code":-32000,"message":"no SECRET"}"#);
    plain.answer().await;
    assert!(!log.lines().is_empty());
    assert_eq!(log.with(&["SECRET"]), [] as [String; 0]);
    assert_eq!(log.with(&[user.session()]), [] as [String; 0], "nor a session's name");
}

/// Why a server's answer was none is in the log.
#[tokio::test(start_paused = true)]
async fn inv7_the_log_says_why() {
    let answers: [(u16, &str, &str); 4] = [
        (500, "text/html", "500"),
        (503, "application/json", "503"),
        (200, "text/html", "text/html"),
        (418, "text/plain", "418"),
    ];
    for (status, media_type, word) in answers {
        let log = Log::open();
        let server = ModernServer::full().on("prompts/get", move |_, reply: Reply| async move {
            reply.body(status, media_type, "<html>x</html>").await;
        });
        let stage = Stage::before(server).await;
        let user = stage.latest().await;
        user.send(&user.old.ask("prompts/get").params(r#""name":"p""#)).await.is_answered_error(-32603);
        let told = log.with(&[word]);
        assert!(
            told.iter().any(|line| line.contains("bad-gateway") || line.contains("WARN")),
            "{word}: {:#?}",
            log.lines()
        );
    }
}

/// `interactive = false` is the proxy's doing, and is said to be.
#[tokio::test(start_paused = true)]
async fn b2_interactive_off_is_said() {
    let stage = Stage::with("interactive = false").await;
    let user = stage.latest().await;
    let stream = stage.asked(&user, &[("k", FORM)], Some(r#""S""#)).await;
    let words = stream.tool_error().await;
    assert!(words.contains("interactive"), "{words}");
    assert!(!words.contains("does not declare"), "{words}");
}

/// Each fact stands once in a line.
#[tokio::test(start_paused = true)]
async fn a_line_says_each_thing_once() {
    let log = Log::open();
    let stage = Stage::new().await;
    let user = stage.latest().await;
    user.list("tools/list").await;
    let old = crate::support::Old { session: Some("nope".into()), ..crate::stage::stranger(Some(LATEST)) };
    stage.proxy.send(&old.ask("tools/list")).await;
    stage.proxy.send(&old.get()).await;
    pass(1000).await;
    assert!(!log.with(&["server=\"modern\""]).is_empty(), "{:#?}", log.lines());
    for line in log.lines() {
        let span = line
            .split_once("request{")
            .and_then(|(_, rest)| rest.split_once('}'))
            .map_or("", |(span, _)| span);
        for field in ["server=", "client=", "method=", "upstream="] {
            assert!(span.matches(field).count() <= 1, "{field} more than once: {line}");
        }
    }
}

/// A client that lost its stream has left; its call is not cancelled, and its answer is counted when it is had.
#[tokio::test(start_paused = true)]
async fn d103_a_lost_stream_is_not_a_cancelled_call() {
    let log = Log::open();
    let stage = Stage::new().await;
    let user = stage.latest().await;
    let (stream, call) = stage.begin(&user).await;
    pass(1000).await;
    let last = stream.last_id();
    stream.drop_connection().await;
    pass(1000).await;
    let counted = |outcome: &str| {
        stage.metric("mcp_janus_requests_total", &["tools/call", &format!("outcome=\"{outcome}\"")])
    };
    assert_eq!((counted("left"), counted("cancelled")), (1.0, 0.0));
    assert!(!log.with(&["left"]).is_empty(), "{:#?}", log.lines());
    call.completes("done");
    pass(1000).await;
    let resumed = user.resume(&last).await;
    resumed.result().await;
    resumed.end().await;
    pass(1000).await;
    assert_eq!(stage.metric("mcp_janus_requests_total", &["\"get\"", "outcome=\"result\""]), 1.0);
}

/// What is served where is said rightly.
#[tokio::test(start_paused = true)]
async fn a12_14_what_405_says() {
    let stage = Stage::new().await;
    for ask in [crate::stage::stranger(None).get(), crate::stage::stranger(Some(LATEST)).get()] {
        let done = stage.proxy.send(&ask).await;
        assert_eq!(done.status, 405);
        assert!(!done.raw.contains("in front of legacy servers"), "{}", done.raw);
        assert!(done.raw.contains("session"), "{}", done.raw);
    }
}
