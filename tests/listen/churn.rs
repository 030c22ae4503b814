//! B9.2, invariant 5, on several threads: listeners that come and go at any moment leave nothing behind.

use crate::stage::{A, SOME, Stage, TOOLS_ONLY, uris};
use crate::support::{Listener, listen};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn b9_2_listeners_come_and_go_on_several_threads() {
    let stage = std::sync::Arc::new(Stage::new().await);
    let clients: Vec<_> = (0..8_usize)
        .map(|client| {
            let stage = std::sync::Arc::clone(&stage);
            tokio::spawn(async move {
                let filters =
                    [SOME.to_owned(), TOOLS_ONLY.to_owned(), uris(&[A, "file:///b"]), uris(&["file:///b"])];
                for round in 0..40 {
                    let filter = &filters[(client + round) % filters.len()];
                    let listener = Listener::open(&stage.proxy, &listen("1", filter)).await;
                    if (client + round) % 3 > 0 {
                        let promised = listener.promised().await;
                        assert_eq!(promised, serde_json::from_str::<crate::support::Value>(filter).unwrap());
                    }
                    listener.close();
                }
            })
        })
        .collect();
    for client in clients {
        client.await.unwrap();
    }
    let gone = async {
        while stage.proxy.feeds() > 0 || stage.gets.now() > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), gone).await.expect("nothing is left");
}
