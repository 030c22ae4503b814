//! Calls of legacy clients in their own sessions: A12.21, A14.1.

use crate::stage::{BAD, GOOD, LEGACY, Like, members};
use crate::support::{Era, LegacyServer, Net, Old, json};

async fn before(lines: &str, version: &'static str) -> Like {
    let net = Net::new();
    let up =
        LegacyServer::new().version(version).result("tools/list", &members(LEGACY, &[GOOD, BAD])).start(&net);
    Like::before(Era::Legacy(version), &net, up, lines).await
}

#[tokio::test(start_paused = true)]
async fn c62_a_call_of_a_tool_that_is_left_out() {
    for lines in ["", "session = { shield = true }\n"] {
        let like = before(lines, "2025-11-25").await;
        // Before the list is known it passes.
        like.proxy.send(&like.call("bad")).await.result();
        like.proxy.send(&like.list()).await.result();
        let done = like.proxy.send(&like.call("bad")).await;
        done.is_error(200, -32602);
        assert_eq!(done.message["id"], 7);
        let words = done.message["error"]["message"].as_str().unwrap();
        assert!(words.contains("bad") && words.contains("/inputSchema/properties/a"), "{words}");
        like.proxy.send(&like.call("good")).await.result();
        assert_eq!(like.up.posts("tools/call").len(), 2);
        // In another session nothing is known yet.
        let other = Old::latest(&like.proxy).await;
        like.proxy.send(&other.call("bad", "{}")).await.result();
    }
}

#[tokio::test(start_paused = true)]
async fn a14_1_an_array_with_such_a_call_goes_as_a_whole_or_not_at_all() {
    let like = before("", "2025-03-26").await;
    like.proxy.send(&like.list()).await.result();
    let call = |id: u8, tool: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools\/call","params":{{"name":"{tool}"}}}}"#)
    };
    let note = r#"{"jsonrpc":"2.0","method":"notifications/acme"}"#;
    let before = like.up.requests().len();
    let array = format!("[{},{note},{}]", call(1, "good"), call(2, "bad"));
    let body = like.body(&like.old().raw(&array)).await;
    let answers: serde_json::Value = serde_json::from_str(&body).unwrap();
    let codes: Vec<_> = answers.as_array().unwrap().iter().map(|a| (&a["id"], &a["error"]["code"])).collect();
    assert_eq!(codes, [(&json!(1), &json!(-32602)), (&json!(2), &json!(-32602))]);
    let words = |at: usize| answers[at]["error"]["message"].as_str().unwrap().to_owned();
    assert!(words(0).contains("not sent") && words(0).contains(&words(1)), "{answers}");
    assert_eq!(like.up.requests().len(), before, "nothing of it is sent");
}
