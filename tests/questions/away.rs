//! Invariant 5 while a client is asked: what its server says meanwhile stays at the server, but for a bounded number of
//! bytes, until somebody is there to take it.

use tokio::task::JoinHandle;

use crate::stage::{Stage, asking, done, ends_with, next_round};
use crate::support::calls::result_of;
use crate::support::questions::{ACCEPT, ALL, elicit};
use crate::support::{Ask, Call, Done, Round, get_prompt, json, pass, read};

/// Far more than may be under way.
const WHOLE: usize = 6 << 20;
const STEP: usize = 32 << 10;

/// What the connection of a test holds (256 KiB), and what the HTTP library reads ahead and at once.
const BETWEEN: usize = (256 << 10) + 3 * (8192 + 4096 * 100);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    Json,
    Events,
}

const STYLES: [Style; 2] = [Style::Json, Style::Events];

/// A call that is parked, by a question on its own stream or, where its answer is JSON, beside it.
async fn parked(stage: &Stage, ask: &Ask, style: Style) -> (Round, std::sync::Arc<Call>) {
    match style {
        Style::Events => stage.asked(ask, &[&elicit("7", "m")]).await,
        Style::Json => {
            let begun = stage.begin(ask).await;
            stage.gets.wait(1).await.event(&elicit("7", "m"));
            let call = begun.call.clone();
            (begun.round().await, call)
        }
    }
}

/// The main member of a large result of a method, and the text of one of its items up to its own text.
fn members(method: &str) -> (&'static str, &'static str) {
    match method {
        "prompts/get" => ("messages", r#"{"role":"user","content":{"type":"text","text":"#),
        "resources/read" => ("contents", r#"{"uri":"file:///x","text":"#),
        _ => ("content", r#"{"type":"text","text":"#),
    }
}

/// A result begins, with a text of so many bytes before its main member.
fn begins(call: &Call, style: Style, first: usize) {
    match style {
        Style::Json => call.json_head(),
        Style::Events => call.bytes(b"event: message\ndata: "),
    }
    let (id, (main, _)) = (call.seen.id(), members(&call.seen.rpc_method()));
    call.bytes(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"#).as_bytes());
    if first > 0 {
        call.bytes(b"\"structuredContent\":{\"x\":\"");
        (0..first / STEP).for_each(|_| call.bytes(&[b'y'; STEP]));
        call.bytes(b"\"},");
    }
    call.bytes(format!("\"{main}\":[").as_bytes());
}

fn item(call: &Call, n: usize) -> String {
    let method = call.seen.rpc_method();
    let close = if method == "prompts/get" { "}}" } else { "}" };
    let text = if n == WHOLE / STEP { "the end".to_owned() } else { format!("{n}-{}", "x".repeat(STEP)) };
    format!(r#"{}"{text}"{close}"#, members(&method).1)
}

/// The server writes the whole of a large result, as fast as it finds room.
fn answers(call: &Call, style: Style, first: usize) {
    begins(call, style, first);
    (0..WHOLE / STEP).for_each(|n| call.bytes(format!("{},", item(call, n)).as_bytes()));
    call.bytes(format!("{}]}}}}", item(call, WHOLE / STEP)).as_bytes());
    if style == Style::Events {
        call.bytes(b"\n\n");
    }
    call.end();
}

/// The whole of it, in order, under the id of the request that it is the answer to.
#[track_caller]
fn is_whole(done: &Done, method: &str, id: i64) {
    let result = done.result();
    assert_eq!((&done.message["id"], &result["resultType"]), (&json!(id), &json!("complete")));
    let items = result[members(method).0].as_array().unwrap();
    assert_eq!(items.len(), WHOLE / STEP + 1);
    for (n, item) in items.iter().enumerate() {
        let text = item["text"].as_str().or(item["content"]["text"].as_str()).unwrap();
        assert!(text == "the end" || text.len() > STEP && text.starts_with(&format!("{n}-")), "{n}");
    }
}

/// How far the server gets while nobody is there; it gets no further with time.
async fn stops(call: &Call, flow_bytes: usize, what: &str) {
    pass(1_000).await;
    let stopped = call.written();
    assert!(stopped < BETWEEN + flow_bytes, "{what}: the server wrote {stopped} bytes");
    assert!(stopped > flow_bytes, "{what}: it wrote only {stopped} bytes");
    pass(60_000).await;
    assert_eq!(call.written(), stopped, "{what}");
}

async fn is_given(client: JoinHandle<Done>, method: &str, id: i64) {
    is_whole(&done(client).await, method, id);
}

/// Both styles of a server, both of a client, every method that can be asked something.
#[tokio::test(start_paused = true)]
async fn inv5_a_large_result_waits_for_its_client() {
    let asks = [asking(1), get_prompt("p").caps(ALL), read("file:///x").caps(ALL)];
    for style in STYLES {
        for (ask, flow_bytes) in asks.iter().zip([64 << 10, 1 << 10, 2 << 20]) {
            for accept in ["application/json, text/event-stream", "application/json"] {
                let what = format!("{style:?}, {}, {flow_bytes}, {accept}", ask.method);
                let stage =
                    Stage::with(&format!("[upstream.up.limits]\nflow_bytes = \"{flow_bytes}B\"\n")).await;
                let ask = ask.clone().header("Accept", accept);
                let (round, call) = parked(&stage, &ask, style).await;
                answers(&call, style, 0);
                stops(&call, flow_bytes, &what).await;
                is_given(stage.run(&round.answer("2", ACCEPT)), &ask.method, 2).await;
                assert_eq!(stage.metric("mcp_janus_results_flowed_total", &[]), 1.0, "{what}");
                // It had begun its answer, so it waited for none.
                assert_eq!(stage.answers().len(), 0, "{what}");
                stage.is_over(1).await;
                assert_eq!(stage.cancelled().len(), 0, "{what}");
                stage.nothing_is_left().await;
            }
        }
    }
}

/// One whose beginning does not say that it may go on while it comes: it is read on when the client is there, and held.
#[tokio::test(start_paused = true)]
async fn inv5_one_that_is_held_whole_waits_too() {
    for style in STYLES {
        let stage = Stage::new().await;
        let (round, call) = parked(&stage, &asking(1), style).await;
        answers(&call, style, 2 << 20);
        stops(&call, 64 << 10, &format!("{style:?}")).await;
        let done = stage.proxy.send(&round.answer("2", ACCEPT)).await;
        is_whole(&done, "tools/call", 2);
        assert_eq!(done.result()["structuredContent"]["x"].as_str().map(str::len), Some(2 << 20));
        stage.is_over(1).await;
        stage.nothing_is_left().await;
    }
}

/// D45: the server takes its question back, and is done with much to say.
#[tokio::test(start_paused = true)]
async fn d45_a_large_result_after_the_question_was_taken_back() {
    for answer in [Some(ACCEPT), None] {
        let stage = Stage::new().await;
        let (round, call) = parked(&stage, &asking(1), Style::Events).await;
        call.withdraw("7");
        answers(&call, Style::Events, 0);
        stops(&call, 64 << 10, "taken back").await;
        let answers: Vec<_> = answer.map(|answer| (round.only(), answer)).into_iter().collect();
        let answers: Vec<_> = answers.iter().map(|(key, answer)| (key.as_str(), *answer)).collect();
        is_given(stage.run(&round.retry("2", &answers)), "tools/call", 2).await;
        assert_eq!(stage.answers().len(), 0);
        stage.is_over(1).await;
        stage.nothing_is_left().await;
    }
}

/// The client comes back without an answer while the result waits: it is given the result, and is not asked again.
#[tokio::test(start_paused = true)]
async fn b1_5_no_question_is_open_once_the_answer_has_begun() {
    let stage = Stage::new().await;
    let (round, call) = parked(&stage, &asking(1), Style::Events).await;
    answers(&call, Style::Events, 0);
    pass(60_000).await;
    is_given(stage.run(&round.retry("2", &[])), "tools/call", 2).await;
    assert_eq!(stage.metric("mcp_janus_question_rounds_total", &[]), 1.0);
    stage.is_over(1).await;
}

/// A notification may be large as well: it waits, and what comes behind it.
#[tokio::test(start_paused = true)]
async fn inv5_a_large_notification_waits_for_its_client() {
    let stage = Stage::new().await;
    let (round, call) = parked(&stage, &asking(1), Style::Events).await;
    call.bytes(b"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"error\",\"data\":[");
    for _ in 0..WHOLE / STEP {
        call.bytes(format!("\"{}\",", "x".repeat(STEP)).as_bytes());
    }
    call.bytes(b"0]}}\n\n");
    call.event(&elicit("8", "behind it"));
    stops(&call, 64 << 10, "a notification").await;
    let level = "io.modelcontextprotocol/logLevel";
    let retry = round.answer("2", ACCEPT).meta(level, "\"error\"");
    let next = next_round(&retry, stage.run(&retry)).await;
    next.key_of("behind it");
    assert_eq!(next.done.before.len(), 1);
    assert_eq!(next.done.before[0]["params"]["data"].as_array().map(Vec::len), Some(WHOLE / STEP + 1));
    let client = stage.run(&next.answer("3", ACCEPT));
    stage.elicited("8").await;
    call.finish("the end");
    ends_with(&done(client).await, "the end");
    stage.is_over(1).await;
}

/// B1.7, D39: nobody comes. The server is told, and what it had to say is let go.
#[tokio::test(start_paused = true)]
async fn d39_nobody_comes_for_a_large_result() {
    for style in STYLES {
        let stage = Stage::new().await;
        let (_round, call) = parked(&stage, &asking(1), style).await;
        answers(&call, style, 0);
        pass(310_000).await;
        assert_eq!(stage.elicited("7").await["action"], "cancel");
        stage.is_cancelled_once(&call).await;
        stage.is_over(1).await;
        stage.nothing_is_left().await;
    }
}

/// Invariants 1 and 3: the connection ends while the result waits. Whoever comes for it gets an error in words, or what has
/// come and no end of it where that was more than is held; nothing is run again.
#[tokio::test(start_paused = true)]
async fn inv3_a_large_result_that_breaks_off_while_it_waits() {
    for (style, items) in STYLES.into_iter().flat_map(|style| [(style, 1), (style, 10)]) {
        let stage = Stage::new().await;
        let (round, call) = parked(&stage, &asking(1), style).await;
        begins(&call, style, 0);
        pass(100).await;
        (0..items).for_each(|n| call.bytes(format!("{},", item(&call, n)).as_bytes()));
        pass(100).await;
        call.cut();
        pass(60_000).await;
        assert!(!call.is_open());
        let retry = round.answer("2", ACCEPT);
        let mut answer = stage.proxy.open(&retry).await;
        if items == 1 {
            answer.done().await.is_error(502, -32603);
        } else {
            let (body, broken) = answer.pieces().await;
            assert!(broken, "{style:?}: {}", String::from_utf8_lossy(&body));
        }
        stage.is_over(1).await;
        let again = stage.unmoved(stage.proxy.send(&retry)).await;
        assert!(again.message.get("error").is_some(), "{}", again.raw);
        stage.nothing_is_left().await;
    }
}

/// D104: the same, where little has come, so that nothing has gone out: a server that gives event ids is asked for the rest.
#[tokio::test(start_paused = true)]
async fn d104_a_large_result_that_breaks_off_while_it_waits_is_taken_up_again() {
    let stage = Stage::with("[upstream.up.limits]\nflow_bytes = \"1KiB\"\n").await;
    let begun = stage.begin(&asking(1)).await;
    let call = begun.call.clone();
    call.event(&elicit("7", "m"));
    call.bytes(b"id: e1\ndata: \n\n");
    let round = begun.round().await;
    let text = "z".repeat(4_000);
    begins(&call, Style::Events, 0);
    call.bytes(format!(r#"{{"type":"text","text":"{text}"#).as_bytes());
    pass(1_000).await;
    call.cut();
    pass(60_000).await;
    let client = stage.run(&round.answer("2", ACCEPT));
    let again = stage.gets.wait(2).await;
    assert_eq!(again.last_event().as_deref(), Some("e1"));
    let result = format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#);
    again.event(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, call.id()));
    ends_with(&done(client).await, &text);
    assert_eq!(stage.calls.all().len(), 1, "once");
}

/// A result that is there whole within the bound is taken while nobody is there, and the call is over at the server.
#[tokio::test(start_paused = true)]
async fn inv5_a_small_result_does_not_wait() {
    for style in STYLES {
        for comes in [true, false] {
            let stage = Stage::new().await;
            let (round, call) = parked(&stage, &asking(1), style).await;
            let text = "z".repeat(50_000);
            match style {
                Style::Events => call.finish(&text),
                Style::Json => call.whole_result(&result_of("tools/call", &text)),
            }
            if comes {
                pass(60_000).await;
                ends_with(&stage.proxy.send(&round.answer("2", ACCEPT)).await, &text);
            } else {
                pass(310_000).await;
            }
            assert_eq!((stage.answers().len(), stage.cancelled().len()), (0, 0));
            stage.is_over(1).await;
        }
    }
}
