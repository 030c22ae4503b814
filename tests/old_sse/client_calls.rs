//! Clients of HTTP+SSE before servers of both eras and of every transport: A14.3, A14.4, B2, C20, C23, C45.

use std::sync::Arc;

use crate::client::{Client, call, proxy, request};
use crate::support::modern::asks as input_required;
use crate::support::old_sse_server::URL;
use crate::support::questions::{ACCEPT, ROOTS, SAMPLED, elicit, roots, sample};
use crate::support::{
    Calls, LegacyServer, ModernServer, Net, OldSseServer, Proxy, Reply, Upstream, json, pass,
};

const REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Server {
    Legacy,
    Shielded,
    Modern,
    OldSse,
    Program,
}

const SERVERS: [Server; 5] =
    [Server::Legacy, Server::Shielded, Server::Modern, Server::OldSse, Server::Program];

impl Server {
    /// Started with its calls in the test's hands.
    async fn start(self, net: &Net, calls: &Calls, revision: &str) -> (Arc<Proxy>, Upstream) {
        let legacy = || calls.of(LegacyServer::telling().version(revision));
        let (up, lines) = match self {
            Server::Legacy => (legacy().start(net), String::new()),
            Server::Shielded => (legacy().start(net), "session = { shield = true }".to_owned()),
            Server::Modern => (calls.of_modern(ModernServer::full()).start(net), String::new()),
            Server::OldSse => (OldSseServer::new(&legacy()).start(net), format!("url = \"{URL}\"")),
            Server::Program => (legacy().start_program(net, "server"), "command = \"server\"".to_owned()),
        };
        (proxy(net, &lines).await, up)
    }

    /// A call of this server is answered.
    fn finish(self, call: &crate::support::Call, text: &str) {
        match self {
            Server::Modern => call.completes(text),
            Server::Legacy | Server::Shielded | Server::OldSse | Server::Program => call.finish(text),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_revision_before_every_server() {
    for server in SERVERS {
        for revision in REVISIONS {
            let (net, calls) = (Net::new(), Calls::new());
            let (proxy, up) = server.start(&net, &calls, revision).await;
            let client = Client::begin(&proxy, revision).await;
            assert_eq!(client.initialized["protocolVersion"], revision, "{server:?}");
            for method in ["tools/list", "prompts/list", "resources/list", "ping"] {
                client.result(&request("\"l\"", method, "")).await;
            }
            client.say(&call("1", "echo", r#"{"x":1e400}"#)).await;
            let running = calls.wait(1).await;
            assert!(running.seen.text().contains("1e400"), "{server:?}: its bytes");
            server.finish(&running, "done");
            let answer = client.ear.answer("1").await;
            assert_eq!(answer.message["result"]["content"][0]["text"], "done", "{server:?} {revision}");
            assert_eq!(up.posts("tools/call").len(), 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn ids_are_told_apart_by_their_type_and_answers_come_as_they_are_ready() {
    for server in SERVERS {
        let (net, calls) = (Net::new(), Calls::new());
        let (proxy, _up) = server.start(&net, &calls, "2025-06-18").await;
        let client = Client::begin(&proxy, "2025-06-18").await;
        for (n, id) in ["1", "\"1\"", "2"].iter().enumerate() {
            client.say(&call(id, "slow", &format!(r#"{{"n":{n}}}"#))).await;
        }
        for n in [2, 0, 1] {
            server.finish(&*calls.marked(n).await, &format!("call {n}"));
            let id = ["1", "\"1\"", "2"][usize::try_from(n).unwrap()];
            let answer = client.ear.answer(id).await;
            assert_eq!(answer.message["result"]["content"][0]["text"], format!("call {n}"), "{server:?}");
        }
        // One that is under way already.
        client.say(&call("7", "slow", r#"{"n":7}"#)).await;
        let running = calls.marked(7).await;
        client.say(&call("7", "slow", r#"{"n":8}"#)).await;
        pass(100).await;
        server.finish(&running, "the first");
        let answers =
            client.ear.all().into_iter().filter(|said| said.is_answer() && said.id() == "7").count();
        assert!(answers <= 1, "{server:?}: one answer: {:?}", client.ear.raws());
    }
}

#[tokio::test(start_paused = true)]
async fn c20_clients_of_one_id_hear_their_own() {
    let net = Net::new();
    LegacyServer::new()
        .on("tools/call", |seen, reply: Reply| async move {
            let n = seen.json()["params"]["arguments"]["n"].as_u64().unwrap();
            pass(n * 37 % 101).await;
            reply.result(&seen, &format!(r#"{{"content":[{{"type":"text","text":"{n}"}}]}}"#)).await;
        })
        .start(&net);
    let proxy = proxy(&net, "").await;
    let mut clients = Vec::new();
    for n in 0..20 {
        let client = Client::begin_as(&proxy, "2024-11-05", Some(["a", "b", "c"][n % 3])).await;
        client.say(&call("1", "echo", &format!(r#"{{"n":{n}}}"#))).await;
        clients.push(client);
    }
    for (n, client) in clients.iter().enumerate() {
        let answer = client.ear.answer("1").await;
        assert_eq!(answer.message["result"]["content"][0]["text"], n.to_string());
        assert_eq!(client.ear.all().iter().filter(|said| said.is_answer()).count(), 2, "and nothing else");
    }
}

#[tokio::test(start_paused = true)]
async fn progress_and_log_come_before_the_result() {
    for server in SERVERS {
        let (net, calls) = (Net::new(), Calls::new());
        let (proxy, _up) = server.start(&net, &calls, "2024-11-05").await;
        let client = Client::begin(&proxy, "2024-11-05").await;
        let asked =
            request("5", "tools/call", r#""name":"work","arguments":{},"_meta":{"progressToken":"t"}"#);
        client.say(&asked).await;
        let running = calls.wait(1).await;
        running.progress(1);
        running.progress(2);
        pass(100).await;
        server.finish(&running, "worked");
        client.ear.answer("5").await;
        let told: Vec<_> =
            client.ear.all().into_iter().filter(|said| said.brief() == "notifications/progress").collect();
        assert_eq!(told.len(), 2, "{server:?}: {:?}", client.ear.raws());
        for (n, said) in told.iter().enumerate() {
            assert_eq!(said.message["params"]["progressToken"], "t", "{server:?}");
            assert_eq!(said.message["params"]["progress"], json!(n + 1), "{server:?}");
        }
        assert!(client.ear.all().last().unwrap().is_answer(), "the result is last");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_legacy_server_asks_is_answered() {
    for server in [Server::Legacy, Server::Shielded, Server::OldSse, Server::Program] {
        for (revision, question, answer, member) in [
            ("2025-06-18", elicit("77", "m"), ACCEPT, "action"),
            ("2024-11-05", sample("77", "p"), SAMPLED, "model"),
            ("2024-11-05", roots("77"), ROOTS, "roots"),
        ] {
            let (net, calls) = (Net::new(), Calls::new());
            let (proxy, up) = server.start(&net, &calls, revision).await;
            let client = Client::begin(&proxy, revision).await;
            client.say(&call("1", "ask", "{}")).await;
            let running = calls.wait(1).await;
            running.event(&question);
            let asked = client.question(1).await;
            assert_eq!(
                asked["method"],
                serde_json::from_str::<crate::support::Value>(&question).unwrap()["method"]
            );
            client.answer(&asked, answer).await;
            let told = up.wait("response", 1).await[0].json();
            assert!(told["result"].get(member).is_some(), "{server:?}: {told}");
            assert_eq!(told["id"], 77, "{server:?}: under the server's own id");
            running.finish("so be it");
            let said = client.ear.answer("1").await;
            assert_eq!(said.message["result"]["content"][0]["text"], "so be it", "{server:?}");
            assert_eq!(calls.all().len(), 1, "{server:?}: run once");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_modern_server_asks_is_answered_by_the_retry() {
    let form = r#"{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{"n":{"type":"string"}},"required":["n"]}}}"#;
    let list = r#"{"method":"roots/list"}"#;
    for (revision, entry, answer, member) in
        [("2025-06-18", form, ACCEPT, "action"), ("2024-11-05", list, ROOTS, "roots")]
    {
        let (net, calls) = (Net::new(), Calls::new());
        let (proxy, _up) = Server::Modern.start(&net, &calls, revision).await;
        let client = Client::begin(&proxy, revision).await;
        client.say(&call("1", "ask", "{}")).await;
        calls.wait(1).await.result(&input_required(&[("k", entry)], Some("\"s\"")));
        let asked = client.question(1).await;
        client.answer(&asked, answer).await;
        let retry = calls.wait(2).await;
        assert!(retry.params()["inputResponses"]["k"].to_string().contains(member), "{}", retry.params());
        assert_eq!(retry.params()["requestState"], "s");
        retry.completes("so be it");
        let said = client.ear.answer("1").await;
        assert_eq!(said.message["result"]["content"][0]["text"], "so be it", "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn c45_clients_are_asked_for_themselves() {
    for server in [Server::Legacy, Server::OldSse, Server::Program] {
        let (net, calls) = (Net::new(), Calls::new());
        let (proxy, up) = server.start(&net, &calls, "2025-06-18").await;
        let one = Client::begin(&proxy, "2025-06-18").await;
        let two = Client::begin(&proxy, "2025-06-18").await;
        for turn in 1..=2 {
            one.say(&call(&format!("{turn}1"), "ask", &format!(r#"{{"n":{turn}1}}"#))).await;
            let first = calls.marked(turn * 10 + 1).await;
            two.say(&call(&format!("{turn}1"), "ask", &format!(r#"{{"n":{turn}2}}"#))).await;
            let second = calls.marked(turn * 10 + 2).await;
            // The same id in two sessions.
            first.event(&elicit(&format!("9{turn}"), "one"));
            second.event(&elicit(&format!("9{turn}"), "two"));
            let nth = usize::try_from(turn).unwrap();
            for (client, who, running) in [(&one, "one", &first), (&two, "two", &second)] {
                let asked = client.question(nth).await;
                assert_eq!(asked["params"]["message"], who, "{server:?}");
                let before = up.wait("response", 0).await.len();
                client.answer(&asked, &format!(r#"{{"action":"accept","content":{{"n":"{who}"}}}}"#)).await;
                let told = up.wait("response", before + 1).await;
                assert!(told.last().unwrap().text().contains(who), "{server:?}");
                running.finish(who);
                let said = client.ear.answer(&format!("{turn}1")).await;
                assert_eq!(said.message["result"]["content"][0]["text"], who, "{server:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn c23_a_cancelled_call_has_no_answer() {
    for server in SERVERS {
        let (net, calls) = (Net::new(), Calls::new());
        let (proxy, up) = server.start(&net, &calls, "2024-11-05").await;
        let client = Client::begin(&proxy, "2024-11-05").await;
        client.say(&call("101", "slow", r#"{"n":1}"#)).await;
        client.say(&call("102", "slow", r#"{"n":2}"#)).await;
        let (first, second) = (calls.marked(1).await, calls.marked(2).await);
        client
            .say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":101}}"#)
            .await;
        if server == Server::Modern {
            crate::support::within("the end of the server's stream", async {
                while first.is_open() {
                    pass(10).await;
                }
            })
            .await;
        } else {
            let told = up.wait("notifications/cancelled", 1).await;
            assert_eq!(told[0].json()["params"]["requestId"], first.id(), "{server:?}");
        }
        server.finish(&second, "on");
        client.ear.answer("102").await;
        pass(10_000).await;
        assert!(
            !client.ear.all().iter().any(|said| said.id() == "101"),
            "{server:?}: {:?}",
            client.ear.raws()
        );
        client.result(&request("103", "tools/list", "")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn changes_are_told() {
    let (net, calls) = (Net::new(), Calls::new());
    let server = OldSseServer::new(&calls.of(LegacyServer::telling()));
    server.start(&net);
    let proxy = proxy(&net, &format!("url = \"{URL}\"")).await;
    let client = Client::begin(&proxy, "2024-11-05").await;
    client.result(&request("1", "tools/list", "")).await;
    server.stream(1).await.say(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    client.ear.first("the change", |said| said.brief() == "notifications/tools/list_changed").await;
}

/// A pretty-printed answer is one line of data, and a large one comes whole.
#[tokio::test(start_paused = true)]
async fn an_answer_of_any_form_is_one_event() {
    let large = "x".repeat(300_000);
    let text = large.clone();
    let net = Net::new();
    LegacyServer::new()
        .on("tools/call", move |seen, reply: Reply| {
            let text = text.clone();
            async move {
                let id = seen.id();
                let body = format!(
                    "{{\r\n  \"jsonrpc\": \"2.0\",\n  \"id\": {id},\r  \"result\": {{\n \"content\": [{{\"type\":\"text\",\"text\":\"{text}\"}}]\n}}\n}}"
                );
                reply.json(200, &body).await;
            }
        })
        .start(&net);
    let proxy = proxy(&net, "").await;
    let client = Client::begin(&proxy, "2024-11-05").await;
    let said = client.ask(&call("1", "print", "{}")).await;
    assert!(!said.raw.contains(['\n', '\r']), "one line");
    assert_eq!(said.message["result"]["content"][0]["text"].as_str().map(str::len), Some(large.len()));
}

/// A client that does not read is waited for, and nobody waits with it.
#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_holds_up_nobody() {
    let net = Net::new();
    let text = "x".repeat(100_000);
    LegacyServer::new()
        .on("tools/call", move |seen, reply: Reply| {
            let text = text.clone();
            async move {
                reply.result(&seen, &format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#)).await;
            }
        })
        .start(&net);
    let proxy = proxy(&net, "").await;
    let deaf = Client::begin(&proxy, "2024-11-05").await;
    let other = Client::begin(&proxy, "2024-11-05").await;
    let mut deaf_stream = {
        let ask =
            crate::support::Ask::verb("GET").path(crate::client::PATH).header("Accept", "text/event-stream");
        proxy.open(&ask.without("MCP-Protocol-Version")).await
    };
    let place = deaf_stream.event().await.unwrap().data;
    let ask = |text: &str| crate::support::Ask::old("").path(&place).raw_body(text.as_bytes());
    let status = |text: String| {
        let (proxy, ask) = (Arc::clone(&proxy), ask(&text));
        async move { proxy.open(&ask).await.status }
    };
    assert_eq!(status(crate::client::initialize("2024-11-05")).await, 202);
    assert_eq!(deaf_stream.message().await["id"], 0);
    assert_eq!(status(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned()).await, 202);
    for n in 1..=20 {
        assert_eq!(status(call(&n.to_string(), "print", "{}")).await, 202);
    }
    for n in 1..=20 {
        other.result(&call(&n.to_string(), "print", "{}")).await;
        deaf.result(&call(&n.to_string(), "print", "{}")).await;
    }
    // It reads at last, and everything is there.
    let mut ids: Vec<_> = Vec::new();
    for _ in 1..=20 {
        ids.push(deaf_stream.message().await["id"].as_u64().unwrap());
    }
    ids.sort_unstable();
    assert_eq!(ids, (1..=20).collect::<Vec<_>>());
}
