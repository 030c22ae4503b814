//! Legacy clients before a modern server: their sessions and streams, what they are asked, the changes they are told of.

use crate::requests::{REQUESTS, one};
use crate::scrape::scrape;
use crate::stage::{ACCEPT, FORM, LATEST, ROOTS, SAMPLE, SAMPLED, Stage, visit};
use crate::support::pass;

const SESSIONS: &str = "mcp_janus_client_sessions";
const BEGAN: &str = "mcp_janus_client_sessions_total";
const ENDED: &str = "mcp_janus_client_sessions_ended_total";
const STREAMS: &str = "mcp_janus_client_streams";
const QUESTIONS: &str = "mcp_janus_client_questions_total";
const ANSWERS: &str = "mcp_janus_client_answers_total";
const REFUSED: &str = "mcp_janus_questions_refused_total";
const ROUNDS: &str = "mcp_janus_input_rounds_total";
const NOTICES: &str = "mcp_janus_notices_total";
const RESUMED: &str = "mcp_janus_resumed_streams_total";
const FETCHES: &str = "mcp_janus_catalog_fetches_total";
const HITS: &str = "mcp_janus_upstream_limit_hits_total";
const KEY: &str = "session.key = \"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"\n";
const NONE: [&str; 0] = [];

/// Told of the server's era, so that a client's `initialize` is not tried there.
async fn stage(lines: &str) -> Stage {
    Stage::with(&format!("era = \"modern\"\n{lines}")).await
}

/// D84: one call with two questions is one request, one round and two answers.
#[tokio::test(start_paused = true)]
async fn d84_a_round_of_questions() {
    let stage = stage("").await;
    let user = stage.latest().await;
    let stream = stage.asked(&user, &[("a", FORM), ("b", SAMPLE)], Some(r#""s""#)).await;
    let (form, sample) = (stream.question().await, stream.question().await);
    let seen = scrape(&stage.proxy).await;
    assert_eq!(seen.listed(QUESTIONS), ["kind=elicitation,upstream=up 1", "kind=sampling,upstream=up 1"]);
    assert_eq!(seen.listed(ANSWERS), NONE);
    assert_eq!(seen.listed(STREAMS), ["kind=call,upstream=up 1"]);
    user.answer(&form, ACCEPT).await;
    user.answer(&sample, SAMPLED).await;
    stage.retried(1).await.completes_with(r#""content":[]"#);
    stream.result().await;
    let seen = scrape(&stage.proxy).await;
    assert_eq!(seen.listed(ANSWERS), ["how=answered,upstream=up 2"]);
    assert_eq!(seen.listed(ROUNDS), ["upstream=up 1"]);
    assert_eq!(seen.listed("mcp_janus_input_retries_total"), NONE);
    assert_eq!(seen.listed(FETCHES), ["upstream=up,why=unknown 1"]);
    assert_eq!(seen.listed(REFUSED), NONE);
    let calls: Vec<_> =
        seen.listed(REQUESTS).into_iter().filter(|line| line.contains("tools/call")).collect();
    assert_eq!(calls, [one("legacy", "tools/call", "result", "modern", 1)]);
    assert_eq!(seen.count(REQUESTS, &[("method", "response"), ("outcome", "accepted")]), 2);
    assert_eq!(seen.listed(STREAMS), NONE);
}

/// D88, D89, B2.6: what is not an answer is told apart.
#[tokio::test(start_paused = true)]
async fn b2_6_what_became_of_a_question() {
    let stage = stage("timeouts.answer = \"10s\"\n").await;
    let user = stage.latest().await;
    let asked = |entry: &'static str| {
        let (stage, user) = (&stage, &user);
        async move {
            let stream = stage.asked(user, &[("k", entry)], None).await;
            let question = stream.question().await;
            (stream, question)
        }
    };
    let declines = |how: &'static str| format!(r#"{{"action":"{how}"}}"#);
    for (how, retries) in [("decline", 1), ("cancel", 2)] {
        let (stream, question) = asked(FORM).await;
        user.answer(&question, &declines(how)).await;
        stage.retried(2 * retries - 1).await.completes_with(r#""content":[]"#);
        stream.result().await;
    }
    let (stream, question) = asked(SAMPLE).await;
    user.refuse(&question, -1).await;
    stream.tool_error().await;
    let (stream, question) = asked(ROOTS).await;
    user.answer(&question, r#"{"roots":"none"}"#).await;
    stream.tool_error().await;
    let (stream, _) = asked(FORM).await;
    pass(10_500).await;
    stream.tool_error().await;
    let (stream, _) = asked(FORM).await;
    let cancelled = user.old.note("notifications/cancelled").params(r#""requestId":1"#);
    assert_eq!(user.send(&cancelled).await.status, 202);
    stream.end().await;
    let seen = scrape(&stage.proxy).await;
    assert_eq!(
        seen.listed(ANSWERS),
        [
            "how=cancelled,upstream=up 1",
            "how=declined,upstream=up 2",
            "how=error,upstream=up 1",
            "how=timeout,upstream=up 1",
            "how=unfit,upstream=up 1",
        ]
    );
    assert_eq!(seen.count(QUESTIONS, &[]), 6);
    assert_eq!(seen.listed(ROUNDS), ["upstream=up 6"]);
    // Each of them was one request, whatever its end.
    let calls = |outcome: &str| seen.count(REQUESTS, &[("method", "tools/call"), ("outcome", outcome)]);
    assert_eq!((calls("result"), calls("cancelled")), (5, 1));
    assert_eq!(seen.listed("mcp_janus_tool_errors_total"), NONE, "none was the tool's own");
}

/// B2.1: what the client has not declared is put to nobody.
#[tokio::test(start_paused = true)]
async fn b2_1_questions_that_nobody_is_asked() {
    let stage = stage("limits.questions = 1\n").await;
    let user = stage.user_with(LATEST, "{}").await;
    let stream = stage.asked(&user, &[("k", FORM)], None).await;
    stream.tool_error().await;
    let able = stage.latest().await;
    let stream = stage.asked(&able, &[("a", FORM), ("b", FORM)], None).await;
    stream.answer().await;
    let seen = scrape(&stage.proxy).await;
    assert_eq!(seen.listed(REFUSED), ["reason=full,upstream=up 1", "reason=undeclared,upstream=up 1"]);
    assert_eq!(seen.listed(HITS), ["limit=limits.questions,upstream=up 1"]);
    assert_eq!((seen.listed(QUESTIONS), seen.listed(ROUNDS)), (vec![], vec![]));
}

/// B2.4, D86: sent again without answers, until it is too often.
#[tokio::test(start_paused = true)]
async fn d86_retries_that_bring_nothing() {
    let stage = stage("limits.polls = 2\n").await;
    let user = stage.latest().await;
    let (opening, first) = stage.start(&user, &user.old.call("ask", "{}")).await;
    first.asks(&[], Some(r#""s""#));
    stage.retried(1).await.asks(&[], Some(r#""s""#));
    stage.retried(2).await.asks(&[], Some(r#""s""#));
    crate::stage::opened(opening).await.tool_error().await;
    let seen = scrape(&stage.proxy).await;
    assert_eq!(seen.listed("mcp_janus_input_retries_total"), ["upstream=up 2"]);
    assert_eq!(seen.listed(HITS), ["limit=limits.polls,upstream=up 1"]);
    assert_eq!(seen.listed(ROUNDS), NONE);
}

/// B4.3: a page is asked for once, and waited for after that.
#[tokio::test(start_paused = true)]
async fn b4_3_a_page() {
    let stage = stage("").await;
    let user = stage.latest().await;
    let page = visit("https://s.test/x");
    let stream = stage.asked(&user, &[("k", &page)], Some(r#""s""#)).await;
    let question = stream.question().await;
    user.answer(&question, r#"{"action":"accept"}"#).await;
    stage.retried(1).await.asks(&[("k", &page)], Some(r#""s""#));
    stage.retried(2).await.completes_with(r#""content":[]"#);
    stream.result().await;
    let seen = scrape(&stage.proxy).await;
    assert_eq!(seen.listed(QUESTIONS), ["kind=url,upstream=up 1"]);
    assert_eq!(seen.listed(ANSWERS), ["how=answered,upstream=up 1"]);
    assert_eq!(seen.listed("mcp_janus_input_retries_total"), ["upstream=up 1"]);
}

/// D82: sessions, and each way in which one ends.
#[tokio::test(start_paused = true)]
async fn d82_sessions_begin_and_end() {
    let stage = stage("session = { max = 2, idle = \"60s\" }\n").await;
    let first = stage.latest().await;
    let second = stage.user("2025-06-18").await;
    let seen = scrape(&stage.proxy).await;
    assert_eq!(seen.listed(SESSIONS), ["upstream=up 2"]);
    assert_eq!(seen.listed(BEGAN), ["how=begun,upstream=up 2"]);
    pass(1000).await;
    first.list("tools/list").await;
    // The one idle longest makes room.
    let third = stage.latest().await;
    let seen = scrape(&stage.proxy).await;
    assert_eq!(seen.listed(SESSIONS), ["upstream=up 2"]);
    assert_eq!(seen.listed(ENDED), ["how=evicted,upstream=up 1"]);
    assert_eq!(seen.listed(HITS), ["limit=session.max,upstream=up 1"]);
    assert_eq!(second.send(&second.old.ask("ping")).await.status, 404);
    assert_eq!(third.send(&third.old.delete()).await.status, 200);
    pass(120_000).await;
    let seen = scrape(&stage.proxy).await;
    assert_eq!(seen.listed(SESSIONS), NONE);
    let ended = ["how=delete,upstream=up 1", "how=evicted,upstream=up 1", "how=idle,upstream=up 1"];
    assert_eq!(seen.listed(ENDED), ended);
    assert_eq!(seen.listed("mcp_janus_upstream_sessions"), NONE, "those are at legacy servers");
    let refused = seen.listed("mcp_janus_refusals_total");
    assert_eq!(refused, ["reason=unknown-session,upstream=up 1"]);
}

/// A session that another process has begun.
#[tokio::test(start_paused = true)]
async fn a_session_that_is_taken_up_again() {
    let mut stage = stage(KEY).await;
    let user = stage.latest().await;
    stage.restart().await;
    user.at(&stage.proxy).list("tools/list").await;
    let seen = scrape(&stage.proxy).await;
    assert_eq!(seen.listed(BEGAN), ["how=rebuilt,upstream=up 1"]);
    assert_eq!(seen.listed(SESSIONS), ["upstream=up 1"]);
}

/// A12.15, D103: streams while they are read, and what a client gets that comes back.
#[tokio::test(start_paused = true)]
async fn d103_streams_that_are_taken_up_again() {
    let stage = stage("").await;
    let user = stage.latest().await;
    let own = user.get().await;
    let ask =
        user.old.ask("tools/call").params(r#""_meta":{"progressToken":"t"},"name":"ask","arguments":{}"#);
    let (opening, call) = stage.start(&user, &ask).await;
    call.progress(1);
    let stream = crate::stage::opened(opening).await;
    stream.wait_events(1).await;
    let seen = scrape(&stage.proxy).await;
    assert_eq!(seen.listed(STREAMS), ["kind=call,upstream=up 1", "kind=own,upstream=up 1"]);
    let last = stream.last_id();
    stream.drop_connection().await;
    call.completes("done");
    pass(1000).await;
    assert_eq!(scrape(&stage.proxy).await.listed(STREAMS), ["kind=own,upstream=up 1"]);
    let again = user.resume(&last).await;
    again.result().await;
    let end = again.last_id();
    again.end().await;
    assert_eq!(user.resume(&end).await.status, 405);
    assert_eq!(user.resume("c999-1").await.status, 405);
    let seen = scrape(&stage.proxy).await;
    assert_eq!(
        seen.listed(RESUMED),
        ["how=over,upstream=up 1", "how=replayed,upstream=up 1", "how=unknown,upstream=up 1"]
    );
    drop(own);
    pass(1000).await;
    assert_eq!(scrape(&stage.proxy).await.listed(STREAMS), NONE);
    // The call is one request that its client left, and the stream that it came back for another.
    let seen = scrape(&stage.proxy).await;
    assert_eq!(seen.listed("mcp_janus_requests_in_progress"), NONE);
    assert_eq!(seen.count(REQUESTS, &[("method", "tools/call"), ("outcome", "left")]), 1);
    assert_eq!(seen.count(REQUESTS, &[("method", "get"), ("outcome", "result")]), 1);
}

/// B9.8: what has changed waits for a stream, once.
#[tokio::test(start_paused = true)]
async fn b9_8_changes() {
    let stage = stage("").await;
    let user = stage.latest().await;
    stage.listens.of_flag("toolsListChanged").await;
    pass(100).await;
    assert_eq!(scrape(&stage.proxy).await.listed("mcp_janus_listens"), ["upstream=up 1"]);
    stage.listens.tell("tools");
    pass(1000).await;
    stage.listens.tell("tools");
    pass(1000).await;
    let kept = "how=kept,kind=tools,upstream=up 1";
    let merged = "how=merged,kind=tools,upstream=up 1";
    assert_eq!(scrape(&stage.proxy).await.listed(NOTICES), [kept, merged]);
    let own = user.get().await;
    own.wait(1).await;
    stage.listens.tell("prompts");
    own.wait(2).await;
    let told = ["how=told,kind=prompts,upstream=up 1", "how=told,kind=tools,upstream=up 1"];
    let listed = scrape(&stage.proxy).await.listed(NOTICES);
    assert!(told.iter().all(|line| listed.iter().any(|found| found == line)), "{listed:?}");
    assert!(listed.iter().any(|found| found == merged), "{listed:?}");
    // The subscription breaks off: everything may have changed.
    stage.listens.standing().iter().for_each(|listen| listen.cut());
    pass(10_000).await;
    let seen = scrape(&stage.proxy).await;
    assert_eq!(seen.listed("mcp_janus_listen_reconnects_total"), ["upstream=up 1"]);
    let synthesised = seen.listed(NOTICES).into_iter().filter(|line| line.starts_with("how=synthesised"));
    assert_eq!(synthesised.count(), 3, "one of each list");
    assert_eq!(seen.listed("mcp_janus_listens"), ["upstream=up 1"]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_left_of_legacy_clients() {
    let stage = stage("").await;
    let user = stage.latest().await;
    let own = user.get().await;
    let stream = stage.asked(&user, &[("k", FORM)], None).await;
    stream.question().await;
    assert!(scrape(&stage.proxy).await.raised().len() > 4);
    drop((own, stream));
    pass(7_200_000).await;
    assert_eq!(scrape(&stage.proxy).await.raised(), NONE);
}
