//! Architecture, invariant 5: what one host may have under way, and what becomes of the rest.

use super::stage::{Host, cancelled, echo, is_error, legacy, modern, modern_echo, text};
use super::support::{Calls, LegacyServer, ModernServer, Net, Proxy, Upstream, json, pass, questions};

/// As many requests wait as `WAITING` says.
const WAITING: usize = 64;

async fn bounded(net: &Net, front: &str) -> Proxy {
    let toml = format!("[limits]\n{front}\n[upstream.up]\nurl = \"http://up.test/mcp\"\n");
    Proxy::configured(net, &toml).await
}

async fn before_legacy(front: &str) -> (Proxy, Upstream, Calls) {
    let (net, calls) = (Net::new(), Calls::new());
    let up = calls.of(LegacyServer::new()).start(&net);
    (bounded(&net, front).await, up, calls)
}

/// `limits.requests` run, the next ones wait for them in their order, and each is answered.
#[tokio::test(start_paused = true)]
async fn more_than_may_run_wait_for_their_turn() {
    for modern_host in [true, false] {
        let (proxy, _up, calls) = before_legacy("requests = 2").await;
        let mut host = match modern_host {
            true => Host::launch(&proxy),
            false => Host::initialized(&proxy, "2025-11-25", "{}").await,
        };
        for n in 0..6 {
            let (id, arguments) = (n.to_string(), format!(r#"{{"n":{n}}}"#));
            host.say(&if modern_host { modern_echo(&id, &arguments) } else { echo(&id, &arguments) }).await;
        }
        for n in 0..6 {
            let call = calls.marked(n).await;
            pass(1000).await;
            assert!(calls.running() <= 2, "{}", calls.running());
            call.finish(&format!("n{n}"));
            assert_eq!(text(&host.answer(&n.to_string()).await), format!("n{n}"));
        }
        host.quiet(1000).await;
    }
}

/// What waits is cancelled without having gone anywhere; answers and cancellations find their way past what waits.
#[tokio::test(start_paused = true)]
async fn answers_and_cancellations_overtake_what_waits() {
    let (proxy, up, calls) = before_legacy("requests = 1").await;
    let mut host = Host::initialized(&proxy, "2025-11-25", questions::ALL).await;
    host.say(&echo("0", r#"{"n":0}"#)).await;
    let first = calls.wait(1).await;
    first.event(&questions::roots("7"));
    host.told("roots/list").await;
    for n in 1..10 {
        host.say(&echo(&n.to_string(), &format!(r#"{{"n":{n}}}"#))).await;
    }
    host.say(r#"{"jsonrpc":"2.0","id":7,"result":{"roots":[]}}"#).await;
    up.wait("response", 1).await;
    for n in 1..9 {
        host.say(&cancelled(&n.to_string())).await;
    }
    pass(1000).await;
    first.finish("first");
    assert_eq!(text(&host.answer("0").await), "first");
    calls.marked(9).await.finish("last");
    assert_eq!(text(&host.answer("9").await), "last");
    host.quiet(1000).await;
    assert_eq!(up.posts("tools/call").len(), 2);
    assert!(up.posts("notifications/cancelled").is_empty());
}

/// Where nothing gets done, what is too much is refused under its id, and what is behind it is read: so a host that waits for
/// what it has to answer itself does not wait for ever.
#[tokio::test(start_paused = true)]
async fn too_many_are_refused_when_nothing_gets_done() {
    let (proxy, up, calls) = before_legacy("requests = 1").await;
    let mut host = Host::initialized(&proxy, "2025-11-25", questions::ALL).await;
    host.say(&echo("0", r#"{"n":0}"#)).await;
    let first = calls.wait(1).await;
    first.event(&questions::roots("7"));
    host.told("roots/list").await;
    let all = WAITING + 20;
    for n in 1..=all {
        host.say(&echo(&n.to_string(), &format!(r#"{{"n":{n}}}"#))).await;
    }
    host.say(r#"{"jsonrpc":"2.0","id":7,"result":{"roots":[]}}"#).await;
    for n in WAITING + 1..=all {
        is_error(&host.answer(&n.to_string()).await, -32603);
    }
    up.wait("response", 1).await;
    first.finish("first");
    assert_eq!(text(&host.answer("0").await), "first");
    for n in 1..=WAITING {
        let call = calls.marked(i64::try_from(n).unwrap()).await;
        call.finish("later");
        text(&host.answer(&n.to_string()).await);
    }
    host.quiet(1000).await;
}

/// Where it does, they only wait: nothing is read for a moment, and nothing is refused.
#[tokio::test(start_paused = true)]
async fn a_flood_of_quick_requests_is_served_in_full() {
    let net = Net::new();
    let up = LegacyServer::new().start(&net);
    let proxy = bounded(&net, "requests = 4").await;
    let mut host = Host::initialized(&proxy, "2025-11-25", "{}").await;
    for n in 0..1000 {
        host.say(&legacy(&n.to_string(), "tools/list", "")).await;
    }
    for n in 0..1000 {
        host.answer(&n.to_string()).await["result"].as_object().unwrap();
    }
    assert_eq!(up.posts("tools/list").len(), 1000);
}

/// A host that does not read what it is told is not read from either, and nothing is lost or refused.
#[tokio::test(start_paused = true)]
async fn a_host_that_does_not_read_waits_for_itself() {
    let net = Net::new();
    let big = "x".repeat(4000);
    let result = format!(r#"{{"tools":[{{"name":"{big}","inputSchema":{{"type":"object"}}}}]}}"#);
    let up = LegacyServer::new().result("tools/list", &result).start(&net);
    let proxy = bounded(&net, "requests = 4\nbody_bytes = \"8KiB\"").await;
    let mut host = Host::with_pipes(&proxy, 8 * 1024);
    host.say(&super::stage::initialize("\"i\"", "2025-11-25", "{}")).await;
    host.answer("\"i\"").await;
    host.say(super::stage::INITIALIZED).await;
    host.stop_reading();
    let mut written = 0;
    while host.try_say(&legacy(&written.to_string(), "tools/list", ""), 30_000).await {
        written += 1;
        assert!(written < 2000, "it is not read from any more at some time");
    }
    // One line has been written in part, or is still in the pipe.
    assert!(written > 50, "{written}");
    let seen = up.posts("tools/list").len();
    pass(600_000).await;
    assert_eq!(up.posts("tools/list").len(), seen, "nothing more begins");
    host.read_on();
    for n in 0..written {
        host.answer(&n.to_string()).await["result"].as_object().unwrap();
    }
}

/// Subscriptions are bounded by `limits.streams` and take no place of a request.
#[tokio::test(start_paused = true)]
async fn subscriptions_take_no_place_of_a_request() {
    let net = Net::new();
    let listens = super::support::Listens::open();
    listens.of(ModernServer::full()).start(&net);
    let proxy = bounded(&net, "requests = 1\nstreams = 3").await;
    let mut host = Host::launch(&proxy);
    for id in ["1", "2", "3", "4"] {
        let wanted = r#""notifications":{"toolsListChanged":true}"#;
        host.say(&modern(id, "subscriptions/listen", wanted)).await;
    }
    for _ in 0..3 {
        host.told("notifications/subscriptions/acknowledged").await;
    }
    let refused = host.find(|message| message.get("error").is_some()).await;
    is_error(&refused, -32603);
    host.say(&modern("5", "tools/list", "")).await;
    assert_eq!(host.answer("5").await["result"]["tools"][0]["name"], json!("echo"));
}
