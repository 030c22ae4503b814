//! C44, C45: questions of a legacy program to its legacy client, which answers them itself, with calls in flight.

use crate::stage::{Stage, opened};
use crate::support::questions::{ACCEPT, ROOTS, SAMPLED, elicit, roots, sample};
use crate::support::{Stream, Value, json, pass, rpc};

/// The questions on a GET stream, which only a legacy server may put there.
struct Get(crate::support::Answer);

impl Get {
    async fn question(&mut self) -> Value {
        loop {
            let message = self.0.message().await;
            if message.get("id").is_some() {
                return message;
            }
        }
    }
}

fn value(raw: &str) -> Value {
    serde_json::from_str(raw).unwrap()
}

fn kinds() -> [(&'static str, String, &'static str); 3] {
    [
        ("elicitation/create", elicit("7", "m"), ACCEPT),
        ("sampling/createMessage", sample("\"7\"", "p"), SAMPLED),
        ("roots/list", roots("8"), ROOTS),
    ]
}

/// With a GET stream: there, once, and with the very id of the program's.
#[tokio::test(start_paused = true)]
async fn on_the_get_stream_with_parallel_calls() {
    let stage = Stage::legacy("").await;
    let user = stage.user().await;
    let mut get = Get(stage.proxy.open(&user.old.get()).await);
    let mut begun = Vec::new();
    for n in 1..4 {
        begun.push(stage.start(&user, &user.old.call("t", "{}").id(&n.to_string())).await);
    }
    let child = stage.child(1).await;
    for (n, (_, question, answer)) in kinds().into_iter().enumerate() {
        child.say(&question);
        let asked = get.question().await;
        assert_eq!(asked["params"], value(&question)["params"]);
        user.answer(&asked, answer).await;
        let got = child.wait("response", n + 1).await;
        assert_eq!(got["id"].to_string(), rpc::id(question.as_bytes()).unwrap());
        assert_eq!(got["result"], value(answer));
    }
    for (opening, call) in begun {
        call.finish("done");
        let stream: Stream = opened(opening).await;
        stream.result().await;
        assert_eq!(stream.asked(), 0, "once");
    }
}

/// Without one: on the stream of a request of its own, of which there may be several; once.
#[tokio::test(start_paused = true)]
async fn on_a_calls_stream_without_a_get_stream() {
    for parallel in [1, 3] {
        let stage = Stage::legacy("").await;
        let user = stage.user().await;
        let mut begun = Vec::new();
        for n in 0..parallel {
            begun.push(stage.start(&user, &user.old.call("t", "{}").id(&n.to_string())).await);
        }
        let child = stage.child(1).await;
        for (_, question, _) in kinds() {
            child.say(&question);
        }
        pass(1_000).await;
        let mut streams = Vec::new();
        for (opening, call) in begun {
            if parallel > 1 && !opening.is_finished() {
                call.finish("done");
            }
            streams.push((opened(opening).await, call));
        }
        let asked: Vec<_> = streams.iter().flat_map(|(stream, _)| questions(stream)).collect();
        assert_eq!(asked.len(), 3, "each on one of them, once: {asked:?}");
        for (method, question, answer) in kinds() {
            let of_it = asked.iter().find(|one| one["method"] == method).expect("asked");
            user.answer(of_it, answer).await;
            let id = rpc::id(question.as_bytes()).unwrap();
            assert_eq!(stage.answer(&id, method).await["result"], value(answer));
        }
        for (stream, call) in streams {
            call.finish("done");
            assert_eq!(stream.result().await["content"][0]["text"], "done");
        }
    }
}

fn questions(stream: &Stream) -> Vec<Value> {
    let asks = |one: &Value| one.get("method").is_some() && one.get("id").is_some();
    stream.messages().into_iter().filter(asks).collect()
}

/// C45: two sessions, each asked twice, at once; the ids of the two programs are the same.
#[tokio::test(start_paused = true)]
async fn c45_two_sessions_do_not_mix() {
    let stage = Stage::legacy("").await;
    let mut all = Vec::new();
    for n in 1..3 {
        let user = stage.user().await;
        let (opening, call) = stage.start(&user, &user.old.call("t", "{}").id("1")).await;
        let child = stage.child(n).await;
        child.say(&elicit("1", &format!("one of {n}")));
        child.say(&elicit("2", &format!("two of {n}")));
        all.push((user, opened(opening).await, call, child, n));
    }
    for (user, stream, _, _, n) in all.iter().rev() {
        let asked = stream.questions(2).await;
        for (question, word) in asked.iter().zip(["one", "two"]) {
            assert_eq!(question["params"]["message"], format!("{word} of {n}"));
            let answer = format!(r#"{{"action":"accept","content":{{"n":"{word} of {n}"}}}}"#);
            user.answer(question, &answer).await;
        }
    }
    for (_, stream, call, child, n) in all {
        for (at, (id, word)) in [(1, "one"), (2, "two")].into_iter().enumerate() {
            let answer = child.wait("response", at + 1).await;
            assert_eq!(
                (&answer["id"], &answer["result"]["content"]["n"]),
                (&json!(id), &json!(format!("{word} of {n}")))
            );
        }
        call.finish("done");
        stream.result().await;
    }
}

/// The program takes a question back: the client is told under the id that it was asked by.
#[tokio::test(start_paused = true)]
async fn a_question_that_is_taken_back() {
    let stage = Stage::legacy("").await;
    let user = stage.user().await;
    let (opening, call) = stage.start(&user, &user.old.call("t", "{}")).await;
    let child = stage.child(1).await;
    child.say(&elicit("7", "m"));
    let stream = opened(opening).await;
    let question = stream.question().await;
    child.say(&crate::support::calls::withdrawal("7"));
    let told = stream.wait(2).await;
    assert_eq!(told[1]["method"], "notifications/cancelled");
    assert_eq!(told[1]["params"]["requestId"], question["id"]);
    call.finish("done");
    stream.result().await;
}
