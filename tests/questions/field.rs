//! C20, C45, C46: inputs from the field, with questions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::stage::{Stage, asking, done, ends_with, next_round};
use crate::support::questions::{ACCEPT, DECLINE, FORM, elicit, request};
use crate::support::rounds::retry;
use crate::support::{
    Done, Gets, LegacyServer, Net, Proxy, Reply, Round, Value, call, json, pass, rpc, within,
};

/// Where a server asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Call,
    Beside,
}

/// A server whose tool asks for a name, waits for it, and greets; the message says whose call it is.
struct Greeter {
    server: LegacyServer,
    answers: tokio::sync::broadcast::Sender<(String, Value)>,
    runs: Arc<AtomicU64>,
}

impl Greeter {
    fn new(way: Way, gets: &Gets) -> Self {
        let (answers, _) = tokio::sync::broadcast::channel(1024);
        let (runs, ids) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(1)));
        let (told, counted, all_gets) = (answers.clone(), runs.clone(), gets.clone());
        let server = gets.of(LegacyServer::telling()).on("tools/call", move |seen, mut reply: Reply| {
            let (mut answers, gets) = (told.subscribe(), all_gets.clone());
            let (n, id) = (counted.fetch_add(1, Ordering::SeqCst), ids.fetch_add(1, Ordering::SeqCst));
            async move {
                let who = seen.json()["params"]["arguments"]["who"].as_str().unwrap().to_owned();
                reply.stream().await;
                pass(n * 37 % 101).await;
                let question = elicit(&id.to_string(), &format!("name of {who}?"));
                match way {
                    Way::Call => reply.event(&question).await,
                    Way::Beside => {
                        let session = seen.session().unwrap_or_default();
                        let get =
                            gets.all().into_iter().find(|get| get.session() == session && get.is_open());
                        get.expect("a stream of the session").event(&question);
                    }
                }
                let name = within("an answer", async {
                    loop {
                        let (answered, value): (String, Value) = answers.recv().await.unwrap();
                        if answered == id.to_string() {
                            return value["result"]["content"]["n"].as_str().unwrap_or("nobody").to_owned();
                        }
                    }
                })
                .await;
                pass(n * 53 % 97).await;
                let result = format!(r#"{{"content":[{{"type":"text","text":"{who} is {name}"}}]}}"#);
                reply.result_event(&seen, &result).await;
                reply.end().await;
            }
        });
        let told = answers.clone();
        let server = server.on("response", move |seen, reply: Reply| {
            let _ = told.send((rpc::id(&seen.body).unwrap_or_default(), seen.json()));
            async move { reply.empty(202).await }
        });
        Self { server, answers, runs }
    }
}

/// One call, answered as its question wants it, as often as it is asked.
async fn greeted(proxy: &Proxy, token: Option<&str>, id: &str, who: &str) -> Done {
    let ask = call("ask_name", &format!(r#"{{"who":"{who}"}}"#)).caps(FORM).id(id);
    let ask = token.map_or(ask.clone(), |token| ask.bearer(token));
    let round = Round::of(&ask, proxy.send(&ask).await);
    let key = round.only();
    let message = round.entry(&key)["params"]["message"].as_str().unwrap().to_owned();
    assert_eq!(message, format!("name of {who}?"), "the question of its own call");
    proxy.send(&round.answer(id, &format!(r#"{{"action":"accept","content":{{"n":"N{who}"}}}}"#))).await
}

/// C20: the same id from everybody at once.
#[tokio::test(start_paused = true)]
async fn c20_fifty_callers_with_the_same_id() {
    let (net, gets) = (Net::new(), Gets::open());
    let greeter = Greeter::new(Way::Call, &gets);
    let up = greeter.server.start(&net);
    let proxy = Arc::new(Proxy::start(&net).await);
    let all: Vec<_> = (0..50)
        .map(|n| {
            let proxy = proxy.clone();
            tokio::spawn(
                async move { greeted(&proxy, Some(&format!("user-{n}")), "1", &format!("u{n}")).await },
            )
        })
        .collect();
    for (n, one) in all.into_iter().enumerate() {
        let done = within("an end", one).await.unwrap();
        ends_with(&done, &format!("u{n} is Nu{n}"));
    }
    assert_eq!(greeter.runs.load(Ordering::SeqCst), 50);
    let ids: std::collections::BTreeSet<_> =
        up.posts("tools/call").iter().map(|seen| (seen.session(), seen.id())).collect();
    assert_eq!(ids.len(), 50);
    drop(greeter.answers);
}

/// C45: two clients, each calls twice, at once.
async fn two_clients_twice(way: Way, tokens: [Option<&'static str>; 2]) {
    let (net, gets) = (Net::new(), Gets::open());
    let greeter = Greeter::new(way, &gets);
    let up = greeter.server.start(&net);
    let proxy = Arc::new(Proxy::start(&net).await);
    let mut all = Vec::new();
    for (client, token) in tokens.into_iter().enumerate() {
        for n in 0..2 {
            let (proxy, who) = (proxy.clone(), format!("c{client}-{n}"));
            let one = async move { greeted(&proxy, token, &n.to_string(), &who).await };
            all.push((format!("c{client}-{n} is Nc{client}-{n}"), tokio::spawn(one)));
        }
    }
    for (text, one) in all {
        ends_with(&within("an end", one).await.unwrap(), &text);
    }
    assert_eq!(greeter.runs.load(Ordering::SeqCst), 4, "4 of 4, each once");
    let sessions: std::collections::BTreeSet<_> =
        up.posts("tools/call").iter().map(|seen| seen.session()).collect();
    assert_eq!(sessions.len(), if tokens[0] == tokens[1] { 1 } else { 2 });
    // A second round of the same works as the first one did.
    let again = within("an end", greeted(&proxy, tokens[0], "9", "again")).await;
    ends_with(&again, "again is Nagain");
    pass(3_600_000).await;
    assert_eq!((proxy.sessions(), proxy.feeds()), (0, 0));
    assert_eq!(crate::support::leftovers::standing(&proxy.metrics()), [] as [String; 0]);
}

#[tokio::test(start_paused = true)]
async fn c45_on_the_calls_stream() {
    two_clients_twice(Way::Call, [Some("alice"), Some("bob")]).await;
}

#[tokio::test(start_paused = true)]
async fn c45_on_the_get_stream() {
    two_clients_twice(Way::Beside, [Some("alice"), Some("bob")]).await;
}

/// All of them are one principal, "anonymous": one session, and still each gets its own.
#[tokio::test(start_paused = true)]
async fn c45_without_credentials() {
    for way in [Way::Call, Way::Beside] {
        two_clients_twice(way, [None, None]).await;
    }
}

/// C46, in one go: everything that may go wrong with one parked call, and it still ends well.
#[tokio::test(start_paused = true)]
async fn c46_everything_around_one_call() {
    let stage = Stage::new().await;
    let ask = asking(1).bearer("alice");
    let (round, at) = stage.asked(&ask, &[&elicit("7", "first"), &elicit("8", "second")]).await;
    let declared = stage.up.only("initialize").json()["params"]["capabilities"].clone();
    assert_eq!(declared, serde_json::from_str::<Value>(crate::support::questions::ALL).unwrap());
    let (first, second) = (round.key_of("first"), round.key_of("second"));
    // Foreign, altered, mismatched.
    stage.refuses(&round.answer_all("2", ACCEPT).bearer("bob")).await;
    let altered = round.state().replacen(|c: char| c.is_ascii_alphabetic(), "0", 1);
    stage.refuses(&retry(&ask, "2", "{}", &altered)).await;
    stage.refuses(&retry(&asking(2).bearer("alice"), "2", "{}", round.state())).await;
    // Partial, with a new id, after a while.
    pass(200_000).await;
    let partial = round.retry("2", &[(&first, DECLINE)]);
    let again = next_round(&partial, stage.run(&partial)).await;
    assert_eq!(again.keys(), [second]);
    assert_eq!(stage.elicited("7").await, json!({"action": "decline"}));
    // Twice at once: one wins.
    let (one, two) = (stage.run(&again.answer("3", ACCEPT)), stage.run(&again.answer("4", ACCEPT)));
    assert_eq!(stage.elicited("8").await["action"], "accept");
    pass(1_000).await;
    at.finish("the end");
    let (one, two) = (done(one).await, done(two).await);
    let won = [&one, &two].iter().filter(|done| done.message.get("result").is_some()).count();
    assert!(won >= 1, "{} and {}", one.raw, two.raw);
    for done in [one, two] {
        if done.message.get("error").is_some() {
            Stage::is_state_refused(&done);
        } else {
            ends_with(&done, "the end");
        }
    }
    assert_eq!(stage.answers().len(), 2);
    stage.is_over(1).await;
    stage.nothing_is_left().await;
}

/// C46: after ten minutes it is over, at the server too.
#[tokio::test(start_paused = true)]
async fn c46_after_ten_minutes() {
    let stage = Stage::new().await;
    let question = request(
        "7",
        "elicitation/create",
        r#"{"message":"m","requestedSchema":{"type":"object","properties":{}}}"#,
    );
    let (round, at) = stage.asked(&asking(1), &[&question]).await;
    pass(600_000).await;
    stage.is_cancelled_once(&at).await;
    stage.refuses(&round.answer("2", ACCEPT)).await;
    assert_eq!(stage.answers_to("7").len(), 1);
    stage.is_over(1).await;
}
