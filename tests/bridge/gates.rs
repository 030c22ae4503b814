//! B2.1, B2.9, D76, D86, D90, C46: clients that cannot be asked, and the bounds of asking.

use tokio::time::{Duration, Instant};

use crate::stage::{ACCEPT, FORM, LATEST, REVISIONS, ROOTED, ROOTS, SAMPLE, SAMPLED, Stage, opened, visit};
use crate::support::{pass, user::everything};

const WITH_TOOLS: &str = r#"{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":10,"tools":[{"name":"t","inputSchema":{"type":"object"}}],"toolChoice":{"mode":"auto"}}}"#;

/// Fails for each entry that a client with these capabilities cannot be asked, on tools and on others.
async fn refused(revision: &str, capabilities: &str, entry: &str) {
    let stage = Stage::new().await;
    let user = stage.user_with(revision, capabilities).await;
    // Together with one that it could be asked: nobody is asked anything.
    let stream = stage.asked(&user, &[("a", ROOTS), ("k", entry)], Some(r#""S""#)).await;
    stream.tool_error().await;
    assert_eq!(stream.asked(), 0, "{revision} {capabilities} {entry}");
    let ask = user.old.ask("prompts/get").params(r#""name":"p""#);
    let stream = stage.asked_at(&user, &ask, &[("k", entry)], Some(r#""S""#)).await;
    assert_eq!(stream.code().await, -32603, "{revision} {capabilities} {entry}");
    assert_eq!(stream.asked(), 0);
    stage.is_over(2).await;
    assert!(stage.metric("mcp_janus_questions_refused_total", &["undeclared"]) >= 2.0);
}

#[tokio::test(start_paused = true)]
async fn b2_1_what_was_not_declared_is_not_asked() {
    let page = visit("https://s.test/1");
    let table: [(&str, &str, &str); 12] = [
        (LATEST, r#"{"roots":{}}"#, FORM),
        (LATEST, r#"{"roots":{}}"#, SAMPLE),
        (LATEST, r#"{"roots":{}}"#, &page),
        (LATEST, r#"{"roots":{},"elicitation":{}}"#, &page),
        (LATEST, r#"{"roots":{},"elicitation":{"form":{}}}"#, &page),
        (LATEST, r#"{"roots":{},"elicitation":{"url":{}}}"#, FORM),
        (LATEST, r#"{"roots":{},"sampling":{}}"#, WITH_TOOLS),
        ("2025-06-18", r#"{"roots":{},"elicitation":{}}"#, &page),
        ("2025-06-18", r#"{"roots":{},"sampling":{"tools":{}}}"#, WITH_TOOLS),
        ("2025-03-26", r#"{"roots":{},"elicitation":{},"sampling":{}}"#, FORM),
        ("2024-11-05", r#"{"roots":{},"elicitation":{}}"#, FORM),
        ("2024-11-05", r#"{"roots":{}}"#, SAMPLE),
    ];
    for (revision, capabilities, entry) in table {
        refused(revision, capabilities, entry).await;
    }
}

/// A client that declares nothing is asked nothing, and is answered all the same.
#[tokio::test(start_paused = true)]
async fn b2_1_a_client_that_can_be_asked_nothing() {
    for revision in REVISIONS {
        let stage = Stage::new().await;
        let user = stage.user_with(revision, "{}").await;
        let (opening, call) = stage.start(&user, &user.old.call("ask", "{}")).await;
        call.asks(&[("k", ROOTS)], None);
        opened(opening).await.tool_error().await;
        let (opening, call) = stage.start(&user, &user.old.call("ask", "{}")).await;
        call.completes("done");
        opened(opening).await.result().await;
        stage.is_over(2).await;
    }
}

/// B2.9, C25: a client that takes no event stream cannot be asked, whatever it declared; it hears so at once.
#[tokio::test(start_paused = true)]
async fn b2_9_a_client_that_cannot_be_reached() {
    for revision in REVISIONS {
        let stage = Stage::new().await;
        let user = stage.user(revision).await;
        let call = user.old.call("ask", "{}").header("Accept", "application/json");
        let began = Instant::now();
        let stream = stage.asked_at(&user, &call, &[("k", ROOTS)], Some(r#""S""#)).await;
        stream.tool_error().await;
        assert!(!stream.is_stream());
        let prompt = user.old.ask("prompts/get").params(r#""name":"p""#).header("Accept", "application/json");
        let stream = stage.asked_at(&user, &prompt, &[("k", ROOTS)], None).await;
        assert_eq!(stream.code().await, -32603, "{revision}");
        assert!(began.elapsed() < Duration::from_secs(1), "at once: {:?}", began.elapsed());
        // Without a question it is served as anybody.
        let (opening, call) = stage.start(&user, &call).await;
        call.completes("done");
        opened(opening).await.result().await;
        stage.is_over(3).await;
    }
}

#[tokio::test(start_paused = true)]
async fn b2_interactive_off() {
    let stage = Stage::with("interactive = false").await;
    let user = stage.latest().await;
    for entry in [FORM, SAMPLE, ROOTS] {
        let stream = stage.asked(&user, &[("k", entry)], Some(r#""S""#)).await;
        stream.tool_error().await;
        assert_eq!(stream.asked(), 0);
    }
    stage.is_over(3).await;
}

/// `limits.rounds`: how often the client of one call is asked.
#[tokio::test(start_paused = true)]
async fn b2_rounds_are_bounded() {
    let stage = Stage::with("limits.rounds = 2").await;
    let user = stage.latest().await;
    let stream = stage.asked(&user, &[("k", ROOTS)], Some(r#""S""#)).await;
    for n in 1..=2 {
        user.answer(&stream.question().await, ROOTED).await;
        stage.retried(n).await.asks(&[("k", ROOTS)], Some(r#""S""#));
    }
    stream.tool_error().await;
    assert_eq!(stream.asked(), 2);
    stage.is_over(3).await;
    let ask = user.old.ask("prompts/get").params(r#""name":"p""#);
    let stream = stage.asked_at(&user, &ask, &[("k", ROOTS)], None).await;
    for n in 4..=5 {
        user.answer(&stream.question().await, ROOTED).await;
        stage.retried(n).await.asks(&[("k", ROOTS)], None);
    }
    assert_eq!(stream.code().await, -32603);
    stage.is_over(6).await;
    assert!(stage.metric("mcp_janus_upstream_limit_hits_total", &["limits.rounds"]) >= 2.0);
    stage.nothing_is_left().await;
}

/// `limits.questions` and `limits.question_bytes`: what one round may ask.
#[tokio::test(start_paused = true)]
async fn b2_a_round_is_bounded() {
    let stage = Stage::with("limits.questions = 2\nlimits.question_bytes = \"1KiB\"").await;
    let user = stage.latest().await;
    let long = SAMPLE.replace("hi", &"h".repeat(2000));
    let too_many: &[(&str, &str)] = &[("a", ROOTS), ("b", ROOTS), ("c", ROOTS)];
    let too_long: &[(&str, &str)] = &[("a", &long)];
    for entries in [too_many, too_long] {
        let stream = stage.asked(&user, entries, Some(r#""S""#)).await;
        let answer = stream.answer().await;
        assert!(answer["error"]["code"] == -32603 || answer["result"]["isError"] == true, "{answer}");
        assert_eq!(stream.asked(), 0);
    }
    stage.is_over(2).await;
    let stream = stage.asked(&user, &[("a", ROOTS), ("b", ROOTS)], None).await;
    for question in stream.questions(2).await {
        user.answer(&question, ROOTED).await;
    }
    stage.retried(3).await.completes("done");
    stream.result().await;
}

#[tokio::test(start_paused = true)]
async fn d86_loop_state_only() {
    let stage = Stage::with("timeouts.pace = \"1s\"\nlimits.polls = 4").await;
    let user = stage.latest().await;
    for (method, params) in
        [("tools/call", r#""name":"ask","arguments":{"a":1}"#), ("prompts/get", r#""name":"p""#)]
    {
        let from = stage.calls.all().len();
        let (opening, first) = stage.start(&user, &user.old.ask(method).params(params)).await;
        first.asks(&[], Some(r#""s0""#));
        for n in 1..=4 {
            let call = stage.calls.wait(from + n + 1).await;
            assert_eq!(call.params()["requestState"], format!("s{}", n - 1), "{method}");
            assert_eq!(call.params().get("inputResponses"), None, "{method}: nothing was asked");
            call.asks(&[], Some(&format!("\"s{n}\"")));
        }
        let stream = opened(opening).await;
        let answer = stream.answer().await;
        let failed = answer["error"]["code"] == -32603
            || method == "tools/call" && answer["result"]["isError"] == true;
        assert!(failed, "capped, then an error: {answer}");
        let times: Vec<_> = stage.calls.all()[from..].iter().map(|call| call.at).collect();
        let pauses: Vec<_> = times.windows(2).map(|pair| (pair[1] - pair[0]).as_millis()).collect();
        for (pause, least) in pauses.iter().zip([1000, 2000, 4000, 8000]) {
            assert!((least..least * 2).contains(pause), "{pauses:?}");
        }
        stage.is_over(from + 5).await;
    }
    assert!(stage.metric("mcp_janus_upstream_limit_hits_total", &["limits.polls"]) >= 1.0);
}

/// A server that needs a while and then goes on.
#[tokio::test(start_paused = true)]
async fn d86_state_only_and_then_the_result() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    let (opening, first) = stage.start(&user, &user.old.call("ask", "{}")).await;
    first.asks(&[], Some(r#""a""#));
    stage.retried(1).await.asks(&[("k", FORM)], Some(r#""b""#));
    let stream = opened(opening).await;
    user.answer(&stream.question().await, ACCEPT).await;
    let third = stage.retried(2).await;
    third.asks(&[], Some(r#""c""#));
    let fourth = stage.retried(3).await;
    assert_eq!(fourth.params().get("inputResponses"), None, "D85: this round's only");
    fourth.completes("done");
    stream.result().await;
    // `rounds` counts what the client is asked.
    assert_eq!(stream.asked(), 1);
}

/// The pause grows to ten seconds and no further.
#[tokio::test(start_paused = true)]
async fn d86_the_pace_has_an_end() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    let (opening, first) = stage.start(&user, &user.old.call("ask", "{}")).await;
    first.asks(&[], Some(r#""s""#));
    for n in 1..=8 {
        stage.retried(n).await.asks(&[], Some(r#""s""#));
    }
    stage.retried(9).await.completes("done");
    opened(opening).await.result().await;
    let times: Vec<_> = stage.calls.all().iter().map(|call| call.at).collect();
    let last = (times[8] - times[7]).as_secs();
    assert!((9..=13).contains(&last), "{last} s");
    assert!((times[9] - times[8]).as_secs() <= 13);
}

/// `timeouts.answer`: a client that does not answer is not waited for for ever (B2.6).
#[tokio::test(start_paused = true)]
async fn b2_6_a_client_that_does_not_answer() {
    let stage = Stage::with("timeouts.answer = \"10s\"").await;
    let user = stage.latest().await;
    let stream = stage.asked(&user, &[("a", ROOTS), ("b", FORM)], Some(r#""S""#)).await;
    let questions = stream.questions(2).await;
    let answered = usize::from(questions[0]["method"] != "roots/list");
    user.answer(&questions[answered], ROOTED).await;
    let began = Instant::now();
    stream.tool_error().await;
    assert!((9..=11).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    let cancelled = stream.notes("notifications/cancelled");
    assert_eq!(cancelled.len(), 1, "{:?}", stream.messages());
    assert_eq!(cancelled[0]["params"]["requestId"], questions[1 - answered]["id"]);
    user.answer(&questions[1 - answered], ACCEPT).await;
    stage.is_over(1).await;
    assert_eq!(stage.metric("mcp_janus_client_answers_total", &["timeout"]), 1.0);
    stage.nothing_is_left().await;
}

/// `timeouts.request` is the server's time, for each request of its own; people may take longer.
#[tokio::test(start_paused = true)]
async fn b2_each_leg_has_its_own_time() {
    let stage = Stage::with("timeouts.request = \"20s\"\ntimeouts.answer = \"2m\"").await;
    let user = stage.latest().await;
    let (stream, first) = stage.begin(&user).await;
    pass(15_000).await;
    first.asks(&[("k", SAMPLE)], Some(r#""S""#));
    let question = stream.question().await;
    pass(100_000).await;
    user.answer(&question, SAMPLED).await;
    let second = stage.retried(1).await;
    pass(15_000).await;
    second.completes("done");
    stream.result().await;
    // And a leg that takes too long is one, whatever came before it.
    let (stream, first) = stage.begin(&user).await;
    first.asks(&[("k", SAMPLE)], Some(r#""S""#));
    user.answer(&stream.question().await, SAMPLED).await;
    stage.calls.wait(4).await;
    assert_eq!(stream.code().await, -32603);
    stage.is_over(4).await;
}

/// The questions that a client of each revision can be asked, once each.
#[tokio::test(start_paused = true)]
async fn b2_1_what_was_declared_is_asked() {
    for revision in REVISIONS {
        let stage = Stage::new().await;
        let user = stage.user_with(revision, everything(revision)).await;
        let mut kinds = vec![(SAMPLE, SAMPLED), (ROOTS, ROOTED)];
        if revision >= "2025-06-18" {
            kinds.push((FORM, ACCEPT));
        }
        if revision == LATEST {
            kinds.push((WITH_TOOLS, SAMPLED));
        }
        for (n, (entry, answer)) in kinds.into_iter().enumerate() {
            let stream = stage.asked(&user, &[("k", entry)], None).await;
            user.answer(&stream.question().await, answer).await;
            stage.calls.wait(2 * n + 2).await.completes("done");
            stream.result().await;
        }
    }
}
