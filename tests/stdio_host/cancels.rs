//! A2.2, C23, B14: cancellation of calls and subscriptions, in both eras, to servers of both.

use super::stage::{Host, cancelled, echo, legacy, modern, modern_echo, modern_with, text};
use super::support::net::{Receiver, handler};
use super::support::{
    Calls, Gets, LegacyServer, Listens, ModernServer, Net, Proxy, Upstream, json, pass, questions, within,
};

async fn gone(call: &super::support::Call) {
    within("the end of the call", async {
        while call.is_open() {
            pass(10).await;
        }
    })
    .await;
}

/// A modern server is told by the end of the response, a legacy one in words and with its own id; no more is written.
#[tokio::test(start_paused = true)]
async fn a2_2_a_modern_hosts_call_before_a_modern_server() {
    let calls = Calls::new();
    let (proxy, up) = Proxy::before_modern(&calls.of_modern(ModernServer::new())).await;
    let mut host = Host::launch(&proxy);
    host.say(&modern_echo("1", r#"{"n":1}"#)).await;
    host.say(&modern_echo("2", r#"{"n":2}"#)).await;
    let (first, second) = (calls.marked(1).await, calls.marked(2).await);
    host.say(&cancelled("1")).await;
    gone(&first).await;
    assert!(second.is_open(), "the other goes on");
    second.completes("second");
    assert_eq!(text(&host.answer("2").await), "second");
    host.quiet(5000).await;
    assert!(up.posts("notifications/cancelled").is_empty(), "over HTTP the end of the response says it");
}

#[tokio::test(start_paused = true)]
async fn a2_2_a_modern_hosts_call_before_a_legacy_server() {
    let calls = Calls::new();
    let (proxy, up) = Proxy::before(&calls.of(LegacyServer::new())).await;
    let mut host = Host::launch(&proxy);
    host.say(&modern_echo("\"1\"", r#"{"n":1}"#)).await;
    host.say(&modern_echo("1", r#"{"n":2}"#)).await;
    let (first, second) = (calls.marked(1).await, calls.marked(2).await);
    host.say(&cancelled("\"1\"")).await;
    let told = up.wait("notifications/cancelled", 1).await;
    assert_eq!(told[0].json()["params"]["requestId"], first.id());
    // Too late to be heard.
    first.finish("first");
    second.finish("second");
    assert_eq!(text(&host.answer("1").await), "second");
    host.quiet(5000).await;
    assert_eq!(up.posts("notifications/cancelled").len(), 1);
}

/// After a cancellation nothing waits for the id any more, so it may be used again at once.
#[tokio::test(start_paused = true)]
async fn a_cancelled_id_is_free() {
    let calls = Calls::new();
    let (proxy, _up) = Proxy::before_modern(&calls.of_modern(ModernServer::new())).await;
    let mut host = Host::launch(&proxy);
    host.say(&modern_echo("1", r#"{"n":1}"#)).await;
    calls.wait(1).await;
    host.say(&cancelled("1")).await;
    host.say(&modern_echo("1", r#"{"n":2}"#)).await;
    calls.marked(2).await.completes("the second");
    assert_eq!(text(&host.answer("1").await), "the second");
    host.quiet(1000).await;
}

/// C23b: a legacy host's goes up as it is, to the same session; its call is not answered, others are.
#[tokio::test(start_paused = true)]
async fn c23_a_legacy_hosts_call_before_a_legacy_server() {
    let calls = Calls::new();
    let (proxy, up) = Proxy::before(&calls.of(LegacyServer::new())).await;
    let mut host = Host::initialized(&proxy, "2025-11-25", "{}").await;
    host.say(&echo("101", r#"{"n":1}"#)).await;
    host.say(&echo("102", r#"{"n":2}"#)).await;
    let (first, second) = (calls.marked(1).await, calls.marked(2).await);
    host.say(&cancelled("101")).await;
    let told = up.wait("notifications/cancelled", 1).await;
    assert_eq!(told[0].json()["params"]["requestId"], json!(101));
    assert_eq!(told[0].session(), Some(first.session()));
    first.finish("too late");
    second.finish("second");
    assert_eq!(text(&host.answer("102").await), "second");
    host.quiet(5000).await;
}

#[tokio::test(start_paused = true)]
async fn c23_a_legacy_hosts_call_before_a_modern_server() {
    let calls = Calls::new();
    let (proxy, up) = Proxy::before_modern(&calls.of_modern(ModernServer::new())).await;
    let mut host = Host::initialized(&proxy, "2025-11-25", "{}").await;
    host.say(&echo("101", r#"{"n":1}"#)).await;
    host.say(&echo("102", r#"{"n":2}"#)).await;
    let (first, second) = (calls.marked(1).await, calls.marked(2).await);
    pass(2000).await;
    host.say(&cancelled("101")).await;
    gone(&first).await;
    second.completes("second");
    assert_eq!(text(&host.answer("102").await), "second");
    host.quiet(5000).await;
    assert!(up.posts("notifications/cancelled").is_empty());
}

/// C23c: of what is not there, or over, nothing is said to anybody.
#[tokio::test(start_paused = true)]
async fn c23_of_what_is_not_under_way() {
    for modern_host in [true, false] {
        let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
        let mut host = match modern_host {
            true => Host::launch(&proxy),
            false => Host::initialized(&proxy, "2025-11-25", "{}").await,
        };
        host.say(&if modern_host { modern("1", "tools/list", "") } else { legacy("1", "tools/list", "") })
            .await;
        host.answer("1").await;
        for id in ["1", "\"1\"", "99"] {
            host.say(&cancelled(id)).await;
        }
        host.quiet(5000).await;
        assert!(up.posts("notifications/cancelled").is_empty());
    }
}

/// D89: while its host is asked, the question is taken back and nothing more goes to the server.
#[tokio::test(start_paused = true)]
async fn d89_a_call_whose_host_is_asked() {
    let calls = Calls::new();
    let (proxy, _up) = Proxy::before_modern(&calls.of_modern(ModernServer::new())).await;
    let mut host = Host::initialized(&proxy, "2025-11-25", questions::FORM).await;
    host.say(&echo("1", "{}")).await;
    let entry = format!(r#"{{"method":"elicitation/create","params":{}}}"#, questions::form_params("who?"));
    calls.wait(1).await.asks(&[("k", &entry)], None);
    let asked = host.told("elicitation/create").await;
    host.say(&cancelled("1")).await;
    let void = host.told("notifications/cancelled").await;
    assert_eq!(void["params"]["requestId"], asked["id"]);
    host.quiet(60_000).await;
    assert_eq!(calls.all().len(), 1);
}

/// A2.2, B9.6: the end of a subscription is told to its server, and nothing more is written for it.
#[tokio::test(start_paused = true)]
async fn a2_2_of_a_subscription() {
    let listens = Listens::open();
    let (proxy, _up) = Proxy::before_modern(&listens.of(ModernServer::full())).await;
    let mut host = Host::launch(&proxy);
    for id in ["1", "2"] {
        host.say(&modern(id, "subscriptions/listen", r#""notifications":{"toolsListChanged":true}"#)).await;
        host.told("notifications/subscriptions/acknowledged").await;
    }
    host.say(&cancelled("1")).await;
    within("the end of one", async {
        while listens.now() > 1 {
            pass(10).await;
        }
    })
    .await;
    listens.tell("tools");
    let told = host.told("notifications/tools/list_changed").await;
    assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], json!(2));
    host.quiet(5000).await;
}

/// The same before a legacy server, where the last one ends the subscription to a resource.
#[tokio::test(start_paused = true)]
async fn a2_2_of_a_subscription_before_a_legacy_server() {
    let gets = Gets::open();
    let (proxy, up) = Proxy::before(&gets.of(LegacyServer::telling())).await;
    let mut host = Host::launch(&proxy);
    let wanted = r#""notifications":{"resourceSubscriptions":["file:///a"]}"#;
    host.say(&modern_with("\"s\"", "subscriptions/listen", "{}", wanted)).await;
    host.told("notifications/subscriptions/acknowledged").await;
    host.say(&cancelled("\"s\"")).await;
    up.wait("resources/unsubscribe", 1).await;
    host.quiet(5000).await;
}

const ARRAY_ANSWER: &str =
    r#"[{"jsonrpc":"2.0","id":1,"result":{"content":[]}},{"jsonrpc":"2.0","id":2,"result":{"content":[]}}]"#;

/// A server of 2025-03-26 whose calls and arrays are in the test's hands.
async fn before_arrays(limits: &str) -> (Proxy, Upstream, Calls) {
    let (net, calls) = (Net::new(), Calls::new());
    let server = calls.on(calls.of(LegacyServer::new().version("2025-03-26")), "response");
    // The shapes that are looked at are those of one message.
    let answers = handler(move |seen, reply| server.clone().answer(seen, reply));
    let up = net.serve("up.test", Receiver::Unchecked, answers);
    let toml = format!("[limits]\n{limits}\n[upstream.up]\nurl = \"http://up.test/mcp\"\n");
    (Proxy::configured(&net, &toml).await, up, calls)
}

/// What was cancelled before its array went does not go with it.
#[tokio::test(start_paused = true)]
async fn a_request_of_an_array_that_waits() {
    let (proxy, up, calls) = before_arrays("requests = 1").await;
    let mut host = Host::initialized(&proxy, "2025-03-26", "{}").await;
    host.say(&echo("0", "{}")).await;
    let running = calls.wait(1).await;
    host.say(&format!("[{},{}]", echo("1", "{}"), echo("2", "{}"))).await;
    host.say(&format!("[{}]", echo("3", "{}"))).await;
    host.say(&cancelled("1")).await;
    host.say(&cancelled("3")).await;
    host.quiet(500).await;
    running.finish("first");
    assert_eq!(text(&host.answer("0").await), "first");
    let array = calls.wait(2).await;
    assert_eq!(array.seen.text(), format!("[{}]", echo("2", "{}")));
    array.whole(200, r#"[{"jsonrpc":"2.0","id":2,"result":{"content":[]}}]"#);
    assert_eq!(host.next_raw().await, r#"[{"jsonrpc":"2.0","id":2,"result":{"content":[]}}]"#);
    host.quiet(5000).await;
    assert_eq!(calls.all().len(), 2);
    assert!(up.posts("notifications/cancelled").is_empty());
}

/// What is cancelled after that is not answered, though the others are, with one array.
#[tokio::test(start_paused = true)]
async fn a_request_of_an_array_that_runs() {
    let (proxy, up, calls) = before_arrays("").await;
    let mut host = Host::initialized(&proxy, "2025-03-26", "{}").await;
    for given_up in [vec!["1"], vec!["1", "2"]] {
        let before = calls.all().len();
        host.say(&format!("[{},{}]", echo("1", "{}"), echo("2", "{}"))).await;
        let array = calls.wait(before + 1).await;
        let told = up.posts("notifications/cancelled").len();
        for id in &given_up {
            host.say(&cancelled(id)).await;
        }
        up.wait("notifications/cancelled", told + given_up.len()).await;
        array.whole(200, ARRAY_ANSWER);
        if given_up.len() == 1 {
            assert_eq!(host.next_raw().await, r#"[{"jsonrpc":"2.0","id":2,"result":{"content":[]}}]"#);
        }
        host.quiet(5000).await;
    }
}
