//! The question of `book`, from its asking on the call's own stream to each of its ends.
//!
//! Expectations are those of specification 2025-11-25: client/elicitation, basic/utilities/cancellation, and
//! basic/transports, Sending Messages to the Server.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use super::tests::{Client, parse};

/// The stream of a call of `book`, read as far as it was looked at.
struct Call {
    stream: TcpStream,
    text: String,
}

impl Call {
    async fn start(client: &Client, id: Value) -> Self {
        Self { stream: client.open("POST", "", &book(id).to_string()).await, text: String::new() }
    }

    /// The question, once it is there.
    async fn question(&mut self) -> Value {
        let mut buffer = [0; 4096];
        let data = |text: &str| {
            let at = text.find("data: ")? + "data: ".len();
            Some(text[at..at + text[at..].find("\n\n")?].to_owned())
        };
        while data(&self.text).is_none() {
            let read = self.stream.read(&mut buffer).await.unwrap();
            assert!(read > 0, "the stream ended: {}", self.text);
            self.text += std::str::from_utf8(&buffer[..read]).unwrap();
        }
        serde_json::from_str(&data(&self.text).unwrap()).unwrap()
    }

    /// What comes after the question, to the end of the stream.
    async fn rest(mut self) -> Vec<Value> {
        self.stream.read_to_string(&mut self.text).await.unwrap();
        parse(&self.text).events().split_off(1)
    }
}

fn book(id: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": { "name": "book", "arguments": { "place": "Luigi's" } } })
}

fn response(question: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": question["id"], "result": result })
}

async fn client_with(patience: Duration) -> Client {
    let mut client = Client::start_with(patience).await;
    client.initialize("2025-11-25", json!({ "elicitation": { "form": {} } })).await;
    client
}

async fn client() -> Client {
    client_with(Duration::from_secs(60)).await
}

fn text(message: &Value) -> &str {
    message["result"]["content"][0]["text"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn it_asks_on_the_calls_stream_and_takes_the_answer_by_post() {
    let client = client().await;
    // The numbers of both sides are their own: here they are the same.
    let mut call = Call::start(&client, json!(1)).await;
    let question = call.question().await;
    assert_eq!((&question["id"], &question["method"]), (&json!(1), &json!("elicitation/create")));
    assert_eq!(question["params"]["message"], "A table at Luigi's: for how many?");
    assert_eq!(question["params"]["requestedSchema"]["required"], json!(["guests"]));
    // A response to another question is not the answer.
    let answer = json!({ "action": "accept", "content": { "guests": 4, "terrace": true } });
    assert_eq!(client.post(&response(&json!({ "id": 2 }), json!({ "action": "cancel" }))).await.status, 202);
    let accepted = client.post(&response(&question, answer.clone())).await;
    assert_eq!(accepted.status, 202);
    let rest = call.rest().await;
    assert_eq!((rest.len(), &rest[0]["id"]), (1, &json!(1)));
    assert_eq!(text(&rest[0]), "A table for 4 at Luigi's, on the terrace.");
    assert_eq!(client.post(&response(&question, answer)).await.status, 202, "once more, of no effect");
}

#[tokio::test]
async fn each_session_and_each_call_has_its_own_answer() {
    let mut client = client().await;
    let mut first = Call::start(&client, json!("a")).await;
    let mut second = Call::start(&client, json!("b")).await;
    let (one, two) = (first.question().await, second.question().await);
    assert_ne!(one["id"], two["id"]);
    let guests = |n: u64| json!({ "action": "accept", "content": { "guests": n } });
    assert_eq!(client.post(&response(&two, guests(2))).await.status, 202);
    assert_eq!(client.post(&response(&one, guests(1))).await.status, 202);
    assert_eq!(text(&second.rest().await[0]), "A table for 2 at Luigi's, inside.");
    assert_eq!(text(&first.rest().await[0]), "A table for 1 at Luigi's, inside.");
    let mut theirs = Call::start(&client, json!("c")).await;
    let asked = theirs.question().await;
    client.initialize("2025-11-25", json!({ "elicitation": {} })).await;
    assert_eq!(client.post(&response(&asked, guests(3))).await.status, 202);
    // It still waits: a server that stops withdraws what is open.
    drop(client);
    assert_eq!(theirs.rest().await[0]["method"], "notifications/cancelled");
}

#[tokio::test]
async fn every_end_of_the_question_is_an_end_of_the_call() {
    let client = client().await;
    for (result, failed, part) in [
        (json!({ "action": "decline" }), false, "was declined"),
        (json!({ "action": "cancel" }), false, "was dismissed"),
        (json!({ "action": "accept", "content": {} }), true, "guests, an integer"),
        (json!({}), true, "no action"),
    ] {
        let mut call = Call::start(&client, json!("x")).await;
        let question = call.question().await;
        client.post(&response(&question, result)).await;
        let rest = call.rest().await;
        assert!(text(&rest[0]).contains(part), "{part}: {rest:?}");
        assert_eq!(rest[0]["result"].get("isError").is_some(), failed, "{part}");
    }
    let mut call = Call::start(&client, json!("x")).await;
    let id = call.question().await["id"].clone();
    let error = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "not here" } });
    assert_eq!(client.post(&error).await.status, 202);
    assert!(text(&call.rest().await[0]).contains("(not here)"));
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_is_told_so_by_the_tool() {
    let mut client = Client::start_with(Duration::from_secs(60)).await;
    for (version, capabilities) in [
        ("2025-11-25", json!({})),
        ("2025-11-25", json!({ "elicitation": { "url": {} } })),
        ("2025-03-26", json!({ "elicitation": {} })),
    ] {
        client.initialize(version, capabilities).await;
        let reply = client.post(&book(json!(1))).await.json();
        assert_eq!(reply["result"]["isError"], true, "{reply}");
        assert!(text(&reply).contains("elicitation"), "{reply}");
    }
    let none = client.call("tools/call", json!({ "name": "book", "arguments": {} })).await;
    assert_eq!(text(&none), "book needs a place");
}

#[tokio::test]
async fn nobody_is_waited_for_without_end() {
    let client = client_with(Duration::from_millis(20)).await;
    let mut call = Call::start(&client, json!(1)).await;
    let question = call.question().await;
    let rest = call.rest().await;
    assert_eq!(rest.len(), 2, "{rest:?}");
    assert_eq!(rest[0]["method"], "notifications/cancelled");
    assert_eq!(rest[0]["params"]["requestId"], question["id"]);
    assert_eq!((&rest[1]["id"], &rest[1]["result"]["isError"]), (&json!(1), &json!(true)));
    let late = client.post(&response(&question, json!({ "action": "decline" }))).await;
    assert_eq!(late.status, 202);
}

#[tokio::test]
async fn a_cancelled_call_withdraws_its_question_and_ends_without_a_response() {
    let client = client().await;
    let mut call = Call::start(&client, json!("c")).await;
    let question = call.question().await;
    assert_eq!(client.post(&book(json!("c"))).await.json()["error"]["code"], -32600, "the id is in use");
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "c" } });
    assert_eq!(client.post(&cancel).await.status, 202);
    let rest = call.rest().await;
    assert_eq!(rest.len(), 1, "{rest:?}");
    assert_eq!(rest[0]["params"]["requestId"], question["id"]);
    let mut again = Call::start(&client, json!("c")).await;
    assert_ne!(again.question().await["id"], question["id"]);
    // So does the end of the session.
    assert_eq!(client.send("DELETE", "", "").await.status, 200);
    assert_eq!(again.rest().await.len(), 1);
}
