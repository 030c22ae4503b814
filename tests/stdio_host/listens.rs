//! B9, B17, A14.7: several subscriptions on one channel, each with its own id in its own type.

use super::stage::{Host, modern};
use super::support::{Gets, LegacyServer, Listens, ModernServer, Proxy, Take, Value, json};

const ID: &str = "io.modelcontextprotocol/subscriptionId";
const LISTEN: &str = "subscriptions/listen";
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

fn tools(id: &str) -> String {
    modern(id, LISTEN, r#""notifications":{"toolsListChanged":true}"#)
}

fn subscription(message: &Value) -> &Value {
    &message["params"]["_meta"][ID]
}

async fn acknowledged(host: &mut Host, id: &Value) {
    host.find(|message| message["method"] == ACKNOWLEDGED && subscription(message) == id).await;
}

/// D96: ids `1` and `"1"` beside each other; one that did not ask hears nothing.
#[tokio::test(start_paused = true)]
async fn b17_several_beside_each_other() {
    for modern_server in [true, false] {
        let (gets, listens) = (Gets::open(), Listens::open());
        let proxy = match modern_server {
            true => Proxy::before_modern(&listens.of(ModernServer::full())).await.0,
            false => Proxy::before(&gets.of(LegacyServer::telling())).await.0,
        };
        let mut host = Host::launch(&proxy);
        for id in ["1", "\"1\""] {
            host.say(&tools(id)).await;
        }
        host.say(&modern("3", LISTEN, r#""notifications":{"promptsListChanged":true}"#)).await;
        for id in [json!(1), json!("1"), json!(3)] {
            acknowledged(&mut host, &id).await;
        }
        match modern_server {
            true => listens.tell("tools"),
            false => gets.tell(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#),
        }
        for id in [json!(1), json!("1")] {
            host.find(|message| {
                message["method"] == "notifications/tools/list_changed" && *subscription(message) == id
            })
            .await;
        }
        host.quiet(5000).await;
        // Calls go on beside them.
        host.say(&modern("4", "tools/list", "")).await;
        host.answer("4").await["result"].as_object().unwrap();
    }
}

/// A14.7, B9.6: at a drain each ends with its result.
#[tokio::test(start_paused = true)]
async fn a14_7_a_drain_ends_each_with_its_result() {
    for modern_server in [true, false] {
        let (gets, listens) = (Gets::open(), Listens::open());
        let proxy = match modern_server {
            true => Proxy::before_modern(&listens.of(ModernServer::full())).await.0,
            false => Proxy::before(&gets.of(LegacyServer::telling())).await.0,
        };
        let mut host = Host::launch(&proxy);
        for (id, raw) in [(json!(1), "1"), (json!("s"), "\"s\"")] {
            host.say(&tools(raw)).await;
            acknowledged(&mut host, &id).await;
        }
        proxy.drain();
        for (id, raw) in [(json!(1), "1"), (json!("s"), "\"s\"")] {
            let ended = host.answer(raw).await;
            assert_eq!(ended["result"]["resultType"], "complete", "{ended}");
            assert_eq!(ended["result"]["_meta"][ID], id);
        }
        host.quiet(0).await;
        assert_eq!(host.ending().await, "Drained");
    }
}

/// What the server refuses, and a subscription that it ends itself.
#[tokio::test(start_paused = true)]
async fn b9_one_that_the_server_refuses_or_ends() {
    let listens = Listens::script(|n, _| match n {
        0 => Take::Error(400, r#"{"code":-32602,"message":"no"}"#),
        1 => Take::Result,
        2 => Take::Ended,
        _ => Take::Cut,
    });
    let (proxy, _up) = Proxy::before_modern(&listens.of(ModernServer::full())).await;
    let mut host = Host::launch(&proxy);
    host.say(&tools("0")).await;
    assert_eq!(host.answer("0").await["error"]["code"], -32602);
    host.say(&tools("1")).await;
    acknowledged(&mut host, &json!(1)).await;
    assert_eq!(host.answer("1").await["result"]["_meta"][ID], 1);
    // Whatever its end, a request has an answer.
    host.say(&tools("2")).await;
    acknowledged(&mut host, &json!(2)).await;
    assert_eq!(host.answer("2").await["error"]["code"], -32603);
    host.say(&tools("3")).await;
    assert_eq!(host.answer("3").await["error"]["code"], -32603);
    host.quiet(1000).await;
}

/// D99, A2.5: a legacy host hears of changes at a modern server, without the subscription's vocabulary.
#[tokio::test(start_paused = true)]
async fn d99_a_legacy_host_before_a_modern_server() {
    let listens = Listens::open();
    let (proxy, _up) = Proxy::before_modern(&listens.of(ModernServer::full())).await;
    let mut host = Host::initialized(&proxy, "2025-11-25", "{}").await;
    listens.of_flag("toolsListChanged").await.tell("tools");
    let told = host.told("notifications/tools/list_changed").await;
    assert!(told["params"]["_meta"].get(ID).is_none(), "{told}");
    host.say(r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"file:///a"}}"#).await;
    assert_eq!(host.answer("1").await["result"], json!({}));
    listens.of_uri("file:///a").await.tell("file:///a");
    assert_eq!(host.told("notifications/resources/updated").await["params"]["uri"], "file:///a");
    host.quiet(1000).await;
}
