//! D36, D38, B1.2: the state is the attacker's to write; whatever is not the proxy's own word for this very call is
//! refused, and the call that waits is not harmed by it.

use crate::stage::{STATES_REFUSED, Stage, asking, done, ends_with};
use crate::support::questions::{ACCEPT, ALL, elicit};
use crate::support::rounds::{responses, retry};
use crate::support::{Ask, Calls, LegacyServer, Net, Proxy, Round, call, get_prompt, json, list, pass, read};

/// The right retry still works, and has run nothing twice.
async fn goes_on(stage: &Stage, round: &Round, call: &crate::support::Call) {
    assert_eq!(stage.parked(), 1, "it is still parked");
    let client = stage.run(&round.answer("99", ACCEPT));
    stage.elicited("7").await;
    call.finish("the end");
    ends_with(&done(client).await, "the end");
    stage.is_over(1).await;
}

/// `round`'s retry with another state, as raw JSON.
fn with_state(round: &Round, raw: &str) -> Ask {
    round
        .ask()
        .clone()
        .id("2")
        .member("inputResponses", &responses(&[(&round.only(), ACCEPT)]))
        .member("requestState", raw)
}

#[tokio::test(start_paused = true)]
async fn d36_state_tamper() {
    let stage = Stage::new().await;
    let (round, call) = stage.asked(&asking(1), &[&elicit("7", "m")]).await;
    let state = round.state().to_owned();
    assert!(state.is_ascii() && state.len() < 4096, "{state}");
    let mut altered = vec![
        String::new(),
        "s1".to_owned(),
        format!("{state}-TAMPERED"),
        format!("{state}A"),
        format!("{state}="),
        format!("{state}\n"),
        format!(" {state}"),
        format!("{state}{state}"),
        format!("{state}\u{e4}"),
        state.to_ascii_lowercase(),
        state[..state.len() - 1].to_owned(),
        state[..state.len() / 2].to_owned(),
        state.chars().rev().collect(),
        "A".repeat(200_000),
    ];
    // Each character in turn becomes its neighbour: not even the last one, which may hold spare bits, is free.
    for at in 0..state.len() {
        for other in ['A', 'B', 'w', '_'] {
            altered.push(format!("{}{other}{}", &state[..at], &state[at + 1..]));
        }
    }
    altered.retain(|other| *other != state);
    let before = stage.up.briefs();
    for other in &altered {
        let done = stage.proxy.send(&with_state(&round, &serde_json::to_string(other).unwrap())).await;
        assert_eq!((done.status, done.code()), (200, -32602), "{other}: {}", done.raw);
    }
    assert_eq!(stage.up.briefs(), before, "the server is not bothered");
    assert!(stage.metric(STATES_REFUSED, &["unreadable"]) >= altered.len() as f64 * 0.9);
    goes_on(&stage, &round, &call).await;
}

/// D36 tamper, D38: a state that is no text.
#[tokio::test(start_paused = true)]
async fn d36_state_of_another_type() {
    let stage = Stage::new().await;
    let (round, call) = stage.asked(&asking(1), &[&elicit("7", "m")]).await;
    for raw in ["5", "true", "{}", r#"["s"]"#] {
        let done = stage.unmoved(stage.proxy.send(&with_state(&round, raw))).await;
        assert_eq!(done.code(), -32602, "{raw}: {}", done.raw);
    }
    goes_on(&stage, &round, &call).await;
}

/// The state occurs twice: two readers could take it for two things.
#[tokio::test(start_paused = true)]
async fn d36_state_twice_in_one_request() {
    let stage = Stage::new().await;
    let (round, call) = stage.asked(&asking(1), &[&elicit("7", "m")]).await;
    let state = serde_json::to_string(round.state()).unwrap();
    for name in ["requestState", "request\\u0053tate", "inputResponses"] {
        let value = if name == "inputResponses" { "{}" } else { &state };
        let twice = round.answer("2", ACCEPT).member(name, value);
        let done = stage.unmoved(stage.proxy.send(&twice)).await;
        assert!([-32600, -32602].contains(&done.code()), "{name}: {}", done.raw);
    }
    goes_on(&stage, &round, &call).await;
}

#[tokio::test(start_paused = true)]
async fn d36_state_other_principal() {
    let stage = Stage::new().await;
    let (round, call) = stage.asked(&asking(1).bearer("alice"), &[&elicit("7", "alice's m")]).await;
    for thief in [round.answer("2", ACCEPT).bearer("bob"), round.answer("2", ACCEPT).without("Authorization")]
    {
        let done = stage.unmoved(stage.proxy.send(&thief)).await;
        Stage::is_state_refused(&done);
        assert!(!done.raw.contains("alice"), "nothing leaks: {}", done.raw);
    }
    assert_eq!(stage.metric(STATES_REFUSED, &["principal"]), 2.0);
    goes_on(&stage, &round, &call).await;
}

#[tokio::test(start_paused = true)]
async fn d36_state_of_the_anonymous_principal() {
    let stage = Stage::new().await;
    let (round, call) = stage.asked(&asking(1), &[&elicit("7", "m")]).await;
    stage.refuses(&round.answer("2", ACCEPT).bearer("bob")).await;
    goes_on(&stage, &round, &call).await;
}

/// `requestState` of `round`, on another request.
fn on(round: &Round, ask: &Ask) -> Ask {
    retry(ask, "2", &responses(&[(&round.only(), ACCEPT)]), round.state())
}

#[tokio::test(start_paused = true)]
async fn d36_state_other_args() {
    let stage = Stage::new().await;
    let ask = call("ask", r#"{"n":1,"text":"a b","deep":{"x":[1,2]}}"#).caps(ALL);
    let (round, at) = stage.asked(&ask, &[&elicit("7", "m")]).await;
    let others = [
        r#"{"n":2,"text":"a b","deep":{"x":[1,2]}}"#,
        r#"{"n":"1","text":"a b","deep":{"x":[1,2]}}"#,
        r#"{"n":1,"text":"a  b","deep":{"x":[1,2]}}"#,
        r#"{"n":1,"text":"ab","deep":{"x":[1,2]}}"#,
        r#"{"n":1,"text":"a b","deep":{"x":[2,1]}}"#,
        r#"{"n":1,"text":"a b","deep":{"x":[12]}}"#,
        r#"{"n":1,"text":"a b"}"#,
        r#"{"n":1,"text":"a b","deep":{"x":[1,2]},"more":null}"#,
        "{}",
    ];
    for arguments in others {
        stage.refuses(&on(&round, &call("ask", arguments).caps(ALL))).await;
    }
    stage.refuses(&on(&round, &ask.clone().member("more", "1"))).await;
    let other_tool = call("wipe", r#"{"n":1,"text":"a b","deep":{"x":[1,2]}}"#).caps(ALL);
    stage.refuses(&on(&round, &other_tool)).await;
    assert_eq!(stage.metric(STATES_REFUSED, &["request"]), 11.0);
    goes_on(&stage, &round, &at).await;
}

#[tokio::test(start_paused = true)]
async fn d36_state_other_method() {
    let stage = Stage::new().await;
    let (round, at) = stage.asked(&get_prompt("x").caps(ALL), &[&elicit("7", "m")]).await;
    for ask in
        [call("x", "{}"), Ask::new("tools/call").header("Mcp-Name", "x").params(r#""name":"x""#), read("x")]
    {
        stage.refuses(&on(&round, &ask.caps(ALL))).await;
    }
    goes_on(&stage, &round, &at).await;
}

/// B1.2: the digest is of meaning, not of blanks: a client that writes its request anew may do so.
#[tokio::test(start_paused = true)]
async fn b1_2_the_same_request_in_other_writing() {
    let spellings: [&dyn Fn(&Ask) -> Ask; 4] = [
        &|_| {
            call("ask", "").params("\"name\" : \"ask\" ,\n \"arguments\" : { \"n\" : 1 ,\t\"text\":\"a b\" }")
        },
        &|_| call("ask", "").params(r#""arguments":{"n":1,"text":"a b"},"name":"ask""#),
        &|ask| ask.clone().meta("progressToken", "77").meta("com.acme/x", "[1]"),
        &|ask| ask.clone().meta("io.modelcontextprotocol/clientInfo", r#"{"name":"d","version":"2"}"#),
    ];
    for spelling in spellings {
        let stage = Stage::new().await;
        let ask = call("ask", r#"{"n":1,"text":"a b"}"#).caps(ALL);
        let (round, at) = stage.asked(&ask, &[&elicit("7", "m")]).await;
        let client = stage.run(&on(&round, &spelling(&ask).caps(ALL)));
        stage.elicited("7").await;
        at.finish("the end");
        ends_with(&done(client).await, "the end");
        stage.is_over(1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn d36_state_expired() {
    let stage = Stage::new().await;
    let (round, _call) = stage.asked(&asking(1), &[&elicit("7", "m")]).await;
    pass(301_000).await;
    stage.refuses(&round.answer("2", ACCEPT)).await;
    assert_eq!(stage.answers_to("7").len(), 1, "B1.7 only: {:?}", stage.answers());
    assert_ne!(stage.answers_to("7")[0]["result"]["action"], "accept");
    assert_eq!(stage.metric(STATES_REFUSED, &["expired"]) + stage.metric(STATES_REFUSED, &["unknown"]), 1.0);
    stage.is_over(1).await;
}

#[tokio::test(start_paused = true)]
async fn d36_state_after_restart() {
    let mut stage = Stage::new().await;
    let (round, _call) = stage.asked(&asking(1), &[&elicit("7", "m")]).await;
    stage.restart().await;
    // What the end of the first process meant for the server is another matter.
    let answers = stage.answers().len();
    Stage::is_state_refused(&stage.proxy.send(&round.answer("2", ACCEPT)).await);
    pass(1000).await;
    assert_eq!((stage.up.posts("tools/call").len(), stage.answers().len()), (1, answers));
    let other = stage.proxy.send(&list("tools/list")).await;
    other.result();
}

/// A state pins the process that has the call: another one in front of the same server refuses it, and the call waits on.
#[tokio::test(start_paused = true)]
async fn b1_13_a_state_of_another_instance() {
    let stage = Stage::new().await;
    let other = Proxy::start(&stage.net).await;
    let (round, call) = stage.asked(&asking(1), &[&elicit("7", "m")]).await;
    Stage::is_state_refused(&other.send(&round.answer("2", ACCEPT)).await);
    assert_eq!((stage.calls.all().len(), stage.answers().len()), (1, 0));
    let client = stage.run(&round.answer("3", ACCEPT));
    stage.elicited("7").await;
    call.finish("the end");
    ends_with(&done(client).await, "the end");
    stage.is_over(1).await;
}

#[tokio::test(start_paused = true)]
async fn d38_state_on_plain_call() {
    let stage = Stage::new().await;
    stage.proxy.send(&list("tools/list")).await.result();
    for ask in [asking(1), get_prompt("p"), read("file:///x"), call("echo", "{}")] {
        for state in ["garbage", "", "AAAA"] {
            stage.refuses(&retry(&ask, "2", "{}", state)).await;
        }
    }
    assert_eq!(stage.calls.all().len(), 0, "nothing has run");
}

/// A1.5: answers without a state belong to nothing: a fresh call, and never seen by the server. C32: `null` is none.
#[tokio::test(start_paused = true)]
async fn a1_5_answers_without_a_state_are_left_out() {
    let some = r#"{"user_name":{"action":"accept","content":{}}}"#;
    let table =
        [(some, false), ("{}", false), ("12345", false), ("null", false), (some, true), ("null", true)];
    for (answers, null) in table {
        let stage = Stage::new().await;
        let ask = asking(1).member("inputResponses", answers);
        let ask = if null { ask.member("requestState", "null") } else { ask };
        let begun = stage.begin(&ask).await;
        assert_eq!(begun.call.seen.json()["params"], json!({"name": "ask", "arguments": {"n": 1}}));
        begun.call.event(&elicit("7", "m"));
        let (call, round) = (begun.call.clone(), begun.round().await);
        let client =
            stage.run(&retry(&asking(1), "2", &responses(&[(&round.only(), ACCEPT)]), round.state()));
        stage.elicited("7").await;
        call.finish("the end");
        ends_with(&done(client).await, "the end");
        stage.is_over(1).await;
    }
}

/// The state names its upstream: the same caller's same request to another server is another request.
#[tokio::test(start_paused = true)]
async fn d36_state_of_another_upstream() {
    let (net, calls) = (Net::new(), Calls::new());
    let up = calls.of(LegacyServer::telling()).start(&net);
    let other = Calls::new();
    let down = other.of(LegacyServer::telling()).start_at(&net, "down.test");
    let toml =
        "[upstream.up]\nurl = \"http://up.test/mcp\"\n[upstream.down]\nurl = \"http://down.test/mcp\"\n";
    let proxy = Proxy::configured(&net, toml).await;
    let ask = asking(1).path("/up/mcp");
    let client = proxy.spawn(&ask);
    let call = calls.wait(1).await;
    call.event(&elicit("7", "m"));
    let round = Round::of(&ask, done(client).await);
    // Known there or not yet.
    for _ in 0..2 {
        let stolen = proxy.send(&round.answer("2", ACCEPT).path("/down/mcp")).await;
        Stage::is_state_refused(&stolen);
        proxy.send(&list("tools/list").path("/down/mcp")).await.result();
    }
    assert_eq!((other.all().len(), down.posts("tools/call").len(), up.posts("").len()), (0, 0, 0));
    let client = proxy.spawn(&round.answer("3", ACCEPT));
    up.wait("response", 1).await;
    call.finish("the end");
    ends_with(&done(client).await, "the end");
}

/// Nothing can be read off a state, and none comes twice.
#[tokio::test(start_paused = true)]
async fn b1_2_states_tell_nothing() {
    let stage = Stage::new().await;
    let mut states = std::collections::BTreeSet::new();
    for n in 1..5 {
        let (round, call) = stage.asked(&asking(1).bearer("alice"), &[&elicit(&n.to_string(), "m")]).await;
        let state = round.state().to_owned();
        for word in ["alice", "ask", &call.session(), "tools"] {
            assert!(!state.contains(word) || word.len() < 3, "{word} in {state}");
        }
        // The part that all of them share is short: nothing of the call is in the clear.
        let shared = states.iter().map(|other: &String| {
            other.bytes().zip(state.bytes()).take_while(|(one, two)| one == two).count()
        });
        assert!(shared.max().unwrap_or(0) <= 12, "{state} beside {states:?}");
        assert!(states.insert(state));
        call.finish("no matter");
    }
}
