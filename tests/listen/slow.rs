//! Invariant 5, B9.1: a listener that does not read holds nobody up, is held in bounded memory, and hears of everything
//! that has changed once it reads again.

use std::time::Duration;

use tokio::time::Instant;

use crate::stage::{A, SOME, Stage, TOOLS, uris};
use crate::support::{Gets, LegacyServer, call, listen, pass};

/// An update with something to carry.
fn heavy(uri: &str) -> String {
    let weight = "w".repeat(8000);
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":"{uri}","x":"{weight}"}}}}"#
    )
}

const DIRECTORIES: [&str; 4] = ["file:///d0", "file:///d1", "file:///d2", "file:///d3"];

#[tokio::test(start_paused = true)]
async fn inv5_a_listener_that_does_not_read() {
    for front in ["", "[limits]\nevents = 2\n"] {
        let stage = Stage::configured(LegacyServer::telling(), Gets::open(), front, "").await;
        let quoted = DIRECTORIES.map(|uri| format!("\"{uri}\"")).join(",");
        let filter = format!(r#"{{"toolsListChanged":true,"resourceSubscriptions":[{quoted}]}}"#);
        let slow = stage.proxy.open(&listen(r#""slow""#, &filter)).await;
        let quick = stage.listens("1", SOME).await;
        for n in 0..5000 {
            stage.gets.tell(&heavy(&format!("{}/{n}", DIRECTORIES[n % 3])));
            if n % 50 == 0 {
                pass(1).await;
            }
        }
        // Said once each, when nothing of it can go out any more.
        stage.gets.tell(&heavy("file:///d3/last"));
        stage.gets.tell(TOOLS);
        stage.gets.tell(&crate::stage::updated(A));
        let start = Instant::now();
        quick.wait(3).await;
        stage.proxy.send(&call("echo", "{}")).await.result();
        assert!(start.elapsed() < Duration::from_secs(1), "others wait {:?}", start.elapsed());
        assert_eq!(quick.changes(), ["tools", A]);
        stage.proxy.drain();
        let (messages, broken) = slow.rest().await;
        assert!(!broken);
        assert_eq!(messages[0]["method"], "notifications/subscriptions/acknowledged", "first of all");
        // What lies in the connection's buffers, and twice the setting on the way there.
        assert!(messages.len() < 400, "{} of 5000 were kept", messages.len());
    }
}

#[tokio::test(start_paused = true)]
async fn b9_1_it_hears_of_everything_when_it_reads_again() {
    for front in ["", "[limits]\nevents = 1\n"] {
        let stage = Stage::configured(LegacyServer::telling(), Gets::open(), front, "").await;
        let filter = format!(
            r#"{{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,{}"#,
            &uris(&DIRECTORIES)[1..]
        );
        let mut slow = stage.proxy.open(&listen("7", &filter)).await;
        pass(1000).await;
        for n in 0..2000 {
            stage.gets.tell(&heavy(&format!("file:///d0/{n}")));
            if n % 50 == 0 {
                pass(1).await;
            }
        }
        let once = ["file:///d1/x", "file:///d2", "file:///d3/y/z"];
        once.iter().for_each(|uri| stage.gets.tell(&heavy(uri)));
        for message in [TOOLS, crate::stage::PROMPTS, crate::stage::RESOURCES] {
            stage.gets.tell(message);
        }
        pass(1000).await;
        let mut heard = Vec::new();
        let wanted = ["tools", "prompts", "resources"];
        let lists: Vec<_> = wanted.iter().map(|list| format!("notifications/{list}/list_changed")).collect();
        let covered = |heard: &Vec<crate::support::Value>| {
            let lists = lists.iter().all(|list| heard.iter().any(|m| m["method"] == **list));
            let told = |uri: &str| heard.iter().any(|m| m["params"]["uri"] == uri);
            let parent = |uri: &&str| told(uri) || told(&uri[..10]);
            lists && once.iter().all(parent) && (told("file:///d0/1999") || told("file:///d0"))
        };
        let reading = async {
            while !covered(&heard) {
                heard.push(slow.message().await);
            }
        };
        let read = tokio::time::timeout(Duration::from_secs(5), reading).await;
        assert!(read.is_ok(), "{front}: heard only {} messages", heard.len());
        assert_eq!(heard[0]["method"], "notifications/subscriptions/acknowledged", "first of all");
        // And from then on as exactly as ever.
        stage.gets.tell(&crate::stage::updated("file:///d2/again"));
        let rest = async { while slow.message().await["params"]["uri"] != "file:///d2/again" {} };
        tokio::time::timeout(Duration::from_secs(5), rest).await.expect("the next one");
    }
}

/// A resource with an endless name does not wait as such; its parent is told instead.
#[tokio::test(start_paused = true)]
async fn inv5_a_resource_with_an_endless_name() {
    let stage = Stage::new().await;
    let listener = stage.listens("1", &uris(&["file:///d"])).await;
    stage.gets.tell(&crate::stage::updated(&format!("file:///d/{}", "n".repeat(1_000_000))));
    listener.wait(2).await;
    pass(1000).await;
    assert_eq!(listener.changes(), ["file:///d"]);
}
