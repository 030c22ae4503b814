//! B1, B5, C45: questions of a legacy program to a modern client. Nothing on a pipe says which call a question belongs to.

use std::sync::Arc;

use tokio::time::Instant;

use crate::stage::{Begun, Stage, asking, done, ends_with, legacy_server, plain};
use crate::support::questions::{ACCEPT, ROOTS, SAMPLED, elicit, elicit_url, roots, sample};
use crate::support::{Ask, Calls, Gets, Net, Reply, Round, Running, Seen, Value, json, list, pass, rpc};

/// The round of questions that a call's client gets when the program asks this.
async fn asked(begun: Begun, child: &Running, questions: &[&str]) -> Round {
    questions.iter().for_each(|question| child.say(question));
    begun.round().await
}

#[tokio::test(start_paused = true)]
async fn b1_asked_and_answered() {
    let table = [
        ("elicitation/create", elicit("7", "m"), ACCEPT),
        ("elicitation/create", elicit_url("\"7\"", "m", "e1"), r#"{"action":"accept"}"#),
        ("sampling/createMessage", sample("7", "p"), SAMPLED),
        ("roots/list", roots("\"7\""), ROOTS),
    ];
    for (method, question, answer) in table {
        let stage = Stage::legacy("").await;
        let begun = stage.begin(&asking(1)).await;
        let (call, child) = (begun.call.clone(), stage.child(1).await);
        let round = asked(begun, &child, &[&question]).await;
        let client = stage.run(&round.answer("\"retry\"", answer));
        let id = rpc::id(question.as_bytes()).unwrap();
        let got = stage.answer(&id, method).await;
        assert_eq!(got["id"].to_string(), id, "the program's id, in its type");
        call.finish("the end");
        let done = done(client).await;
        assert_eq!(done.message["id"], "retry");
        ends_with(&done, "the end");
        assert_eq!((stage.calls.all().len(), stage.children().len()), (1, 1), "{method}: it ran once");
    }
}

/// Several at once, of all kinds, in one round; and another round then.
#[tokio::test(start_paused = true)]
async fn b1_several_questions_and_rounds() {
    let stage = Stage::legacy("").await;
    let begun = stage.begin(&asking(1)).await;
    let (call, child) = (begun.call.clone(), stage.child(1).await);
    let round = asked(begun, &child, &[&elicit("1", "one"), &sample("2", "two"), &roots("3")]).await;
    assert_eq!(round.keys().len(), 3);
    let answers =
        [(round.key_of("one"), ACCEPT), (round.key_of("two"), SAMPLED), (round.key_of("roots/list"), ROOTS)];
    let answers: Vec<_> = answers.iter().map(|(key, answer)| (key.as_str(), *answer)).collect();
    let retry = round.retry("2", &answers);
    let client = stage.run(&retry);
    for (id, method) in [("1", "elicitation/create"), ("2", "sampling/createMessage"), ("3", "roots/list")] {
        assert!(stage.answer(id, method).await.get("result").is_some());
    }
    child.say(&elicit("4", "four"));
    let round = Round::of(&retry, done(client).await);
    let client = stage.run(&round.answer("3", r#"{"action":"decline"}"#));
    assert_eq!(stage.answer("4", "elicitation/create").await["result"], json!({"action": "decline"}));
    call.finish("the end");
    ends_with(&done(client).await, "the end");
}

#[tokio::test(start_paused = true)]
async fn b5_wait_to_attribute() {
    let stage = Stage::legacy("").await;
    let mut all = Vec::new();
    for n in 1..4 {
        all.push(stage.begin(&asking(n)).await);
    }
    let child = stage.child(1).await;
    child.say(&elicit("7", "of two"));
    pass(200).await;
    assert_eq!(stage.answers_to("7").len(), 0);
    assert!(all.iter().all(|begun| !begun.client.is_finished()), "held: it could be anyone's");
    // Lists go on, and calls of those who cannot be asked.
    stage.send(&list("tools/list").caps(crate::support::questions::ALL)).await.result();
    let (third, second, first) = (all.pop().unwrap(), all.pop().unwrap(), all.pop().unwrap());
    first.call.finish("one");
    third.call.finish("three");
    ends_with(&first.done().await, "one");
    ends_with(&third.done().await, "three");
    let call = second.call.clone();
    let round = second.round().await;
    assert_eq!(round.entry(&round.only())["params"]["message"], "of two");
    let client = stage.run(&round.answer("2", ACCEPT));
    stage.answer("7", "elicitation/create").await;
    call.finish("two");
    ends_with(&done(client).await, "two");
}

#[tokio::test(start_paused = true)]
async fn b5_what_stays_ambiguous_is_refused() {
    let stage = Stage::legacy("").await;
    let all = [stage.begin(&asking(1)).await, stage.begin(&asking(2)).await];
    let child = stage.child(1).await;
    let began = Instant::now();
    child.say(&elicit("7", "whose?"));
    child.say(&sample("8", "whose?"));
    child.say(&roots("9"));
    assert_eq!(stage.answer("7", "elicitation/create").await["result"], json!({"action": "cancel"}));
    let waited = began.elapsed().as_millis();
    assert!((9_900..11_000).contains(&waited), "{waited} ms");
    assert_eq!(stage.answer("8", "sampling/createMessage").await["error"]["code"], -1);
    assert_eq!(stage.answer("9", "roots/list").await["error"]["code"], -32601);
    for begun in all {
        begun.call.finish("without it");
        let done = begun.done().await;
        ends_with(&done, "without it");
        assert!(!done.raw.contains("whose?"), "{}", done.raw);
    }
}

/// A question when no call runs is refused at once.
#[tokio::test(start_paused = true)]
async fn b5_asked_when_nobody_is_there() {
    let stage = Stage::legacy("").await;
    let begun = stage.begin(&asking(1)).await;
    begun.call.finish("done");
    ends_with(&begun.done().await, "done");
    stage.child(1).await.say(&elicit("7", "m"));
    assert_eq!(stage.answer("7", "elicitation/create").await["result"], json!({"action": "cancel"}));
}

/// B5: what a client has not declared it is not asked; that is the program's to make the best of.
#[tokio::test(start_paused = true)]
async fn b5_a_kind_that_is_not_declared() {
    let stage = Stage::legacy("").await;
    let begun = stage.begin(&plain(1).caps(r#"{"roots":{}}"#)).await;
    let child = stage.child(1).await;
    child.say(&elicit("7", "m"));
    assert!(stage.answer("7", "elicitation/create").await.get("error").is_some());
    begun.call.finish("without it");
    ends_with(&begun.done().await, "without it");
}

/// The program takes its question back (B1.9), and the client's answer then is nobody's.
#[tokio::test(start_paused = true)]
async fn b1_9_a_question_that_is_taken_back() {
    let stage = Stage::legacy("").await;
    let begun = stage.begin(&asking(1)).await;
    let (call, child) = (begun.call.clone(), stage.child(1).await);
    let round = asked(begun, &child, &[&elicit("7", "m")]).await;
    child.say(&crate::support::calls::withdrawal("7"));
    pass(100).await;
    let client = stage.run(&round.answer("2", ACCEPT));
    pass(100).await;
    call.finish("the end");
    ends_with(&done(client).await, "the end");
    assert_eq!(stage.answers_to("7").len(), 0);
}

/// A client that never comes back: the program is told, and its call is cancelled (B1.7).
#[tokio::test(start_paused = true)]
async fn b1_7_a_client_that_never_answers() {
    let stage = Stage::legacy("[upstream.up.timeouts]\nanswer = \"30s\"\n").await;
    let begun = stage.begin(&asking(1)).await;
    let (call, child) = (begun.call.clone(), stage.child(1).await);
    asked(begun, &child, &[&elicit("7", "m")]).await;
    assert_eq!(stage.answer("7", "elicitation/create").await["result"], json!({"action": "cancel"}));
    stage.is_cancelled_once(&call).await;
    stage.nothing_is_left().await;
}

/// The process dies while its question waits: the client's answer finds nothing, and nothing runs again.
#[tokio::test(start_paused = true)]
async fn c56_the_process_dies_while_its_question_waits() {
    let stage = Stage::legacy("").await;
    let begun = stage.begin(&asking(1)).await;
    let child = stage.child(1).await;
    let round = asked(begun, &child, &[&elicit("7", "m")]).await;
    child.dies();
    pass(1_000).await;
    let answered = stage.send(&round.answer("2", ACCEPT)).await;
    assert!(answered.message.get("error").is_some(), "{}", answered.raw);
    assert_eq!(answered.message["id"], 2);
    assert_eq!(stage.calls.all().len(), 1);
    stage.nothing_is_left().await;
}

/// A program that asks for a name and gives it back, as C45 has it.
async fn ask_name(gets: Gets, waiting: Arc<Waiting>, seen: Arc<Seen>, mut reply: Reply) {
    let mut names = Vec::new();
    let n = seen.json()["params"]["arguments"]["n"].to_string();
    reply.stream().await;
    for _ in 0..2 {
        let (id, answer) = waiting.next();
        let all = gets.all();
        let get = all.iter().rfind(|get| get.session() == seen.session().unwrap_or_default());
        get.expect("a stream of the session").event(&elicit(&id, &n));
        let answer: Value = answer.await.expect("an answer");
        names.push(answer["result"]["content"]["n"].as_str().unwrap_or("nobody").to_owned());
    }
    let result = format!(r#"{{"content":[{{"type":"text","text":"{}"}}]}}"#, names.join("+"));
    reply.result_event(&seen, &result).await;
    reply.end().await;
}

#[derive(Default)]
struct Waiting(std::sync::Mutex<Vec<tokio::sync::oneshot::Sender<Value>>>);

impl Waiting {
    fn next(&self) -> (String, tokio::sync::oneshot::Receiver<Value>) {
        let (answered, answer) = tokio::sync::oneshot::channel();
        let mut all = self.0.lock().unwrap();
        all.push(answered);
        (all.len().to_string(), answer)
    }

    fn answer(&self, message: Value) {
        let at = message["id"].as_u64().expect("an id of ours") as usize - 1;
        let (gone, _) = tokio::sync::oneshot::channel();
        let answered = std::mem::replace(&mut self.0.lock().unwrap()[at], gone);
        answered.send(message).expect("answered once");
    }
}

async fn names() -> Stage {
    let (net, gets, waiting) = (Net::new(), Gets::open(), Arc::<Waiting>::default());
    let (streams, answers) = (gets.clone(), waiting.clone());
    let server = gets
        .of(legacy_server())
        .on("tools/call", move |seen, reply| ask_name(streams.clone(), waiting.clone(), seen, reply))
        .on("response", move |seen: Arc<Seen>, reply: Reply| {
            answers.answer(seen.json());
            async move { reply.empty(202).await }
        });
    let up = server.start_program(&net, "server");
    Stage::before(net, up, Calls::new(), "").await
}

/// Calls, is asked twice, and says a name of its own each time.
async fn named(stage: &Stage, ask: Ask, n: usize) {
    let mut ask = ask;
    let mut done = stage.send(&ask).await;
    for name in ["first", "second"] {
        let round = Round::of(&ask, done);
        let message = &round.entry(&round.only())["params"]["message"];
        assert_eq!(*message, json!(n.to_string()), "asked for another one's call");
        let answer = format!(r#"{{"action":"accept","content":{{"n":"{name} of {n}"}}}}"#);
        ask = round.answer(&format!("\"{name}\""), &answer);
        done = stage.send(&ask).await;
    }
    ends_with(&done, &format!("first of {n}+second of {n}"));
}

/// C45: two clients with two calls each, all at once: 4 of 4.
#[tokio::test(start_paused = true)]
async fn c45_two_clients_ask_name_twice_at_once() {
    let stage = names().await;
    let ask = |n: usize, token: &str| asking(n).bearer(token);
    tokio::join!(
        named(&stage, ask(1, "a"), 1),
        named(&stage, ask(2, "b"), 2),
        named(&stage, ask(3, "a"), 3),
        named(&stage, ask(4, "b"), 4),
    );
    assert_eq!(stage.alive(), 2);
}

/// The same of one principal, all in one process.
#[tokio::test(start_paused = true)]
async fn c45_one_principal_with_many_calls_at_once() {
    let stage = names().await;
    futures_util::future::join_all((1..9).map(|n| named(&stage, asking(n), n))).await;
    assert_eq!(stage.alive(), 1);
    // With clients beside them that cannot be asked.
    let plain: Vec<_> = (20..24).map(|n| stage.run(&list("tools/list").id(&n.to_string()))).collect();
    futures_util::future::join_all((11..15).map(|n| named(&stage, asking(n), n))).await;
    for client in plain {
        done(client).await.result();
    }
}

/// A call whose only question was taken back waits for nobody: its program is at work and may ask again. Never guess.
#[tokio::test(start_paused = true)]
async fn b5_a_question_of_a_call_whose_question_was_taken_back() {
    let stage = Stage::legacy("").await;
    let begun = stage.begin(&asking(1)).await;
    let (first, child) = (begun.call.clone(), stage.child(1).await);
    let round = asked(begun, &child, &[&elicit("7", "one")]).await;
    child.say(&crate::support::calls::withdrawal("7"));
    pass(1_000).await;
    let other = stage.run(&asking(2));
    pass(2_000).await;
    // Asked by the first one.
    child.say(&elicit("8", "of the first"));
    pass(11_000).await;
    assert!(!other.is_finished(), "asked for another one's call");
    first.finish("one");
    ends_with(&stage.send(&round.retry("2", &[])).await, "one");
    stage.calls.wait(2).await.finish("two");
    ends_with(&done(other).await, "two");
}
