//! Arrays of 2025-03-26: A14.1.

use crate::stage::{BAD, GOOD, Like, OTHER, streamed};
use crate::support::net::{Receiver, handler};
use crate::support::{Era, LegacyServer, Net, Reply};

const OLD: Era = Era::Legacy("2025-03-26");

fn list(id: &str, tools: &[&str]) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[{}]}}}}"#, tools.join(","))
}

#[tokio::test(start_paused = true)]
async fn a14_1_lists_in_an_array_are_judged_each_by_itself() {
    let ping = r#"{"jsonrpc":"2.0","id":2,"result":{}}"#;
    let given = format!("[ {} , {ping},{}]", list("1", &[GOOD, BAD]), list("3", &[OTHER]));
    let wanted = format!("[ {} , {ping},{}]", list("1", &[GOOD]), list("3", &[OTHER]));
    for stream in [false, true] {
        let sent = given.clone();
        let answer = move |reply: Reply| {
            let sent = sent.clone();
            async move {
                if stream {
                    streamed(reply, &format!("data: {sent}\n\n"), 13).await;
                } else {
                    reply.json(200, &sent).await;
                }
            }
        };
        let like = with(answer).await;
        let asked = r#"[{"jsonrpc":"2.0","id":1,"method":"tools/list"},{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","id":3,"method":"tools/list"}]"#;
        let body = like.body(&like.old().raw(asked)).await;
        let wanted = if stream { format!("data: {wanted}\n\n") } else { wanted.clone() };
        assert_eq!(body, wanted);
    }
}

/// Before a server whose POSTs of arrays are answered so.
async fn with<F>(answer: impl Fn(Reply) -> F + Send + Sync + 'static) -> Like
where
    F: Future<Output = ()> + Send + 'static,
{
    let net = Net::new();
    let server = LegacyServer::new().version("2025-03-26").on("response", move |_, reply| answer(reply));
    // Later revisions have no arrays, and the checks of requests know no other.
    let answers = handler(move |seen, reply| server.clone().answer(seen, reply));
    let up = net.serve("up.test", Receiver::Unchecked, answers);
    Like::before(OLD, &net, up, "").await
}

/// A question in an array goes without the rest of it.
#[tokio::test(start_paused = true)]
async fn a14_1_a_bad_form_in_an_array_is_taken_out() {
    let form = |schema: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{{"message":"m","requestedSchema":{schema}}}}}"#
        )
    };
    let bad = form(r#"{"type":"object","properties":{"a":{"type":"text","title":"canary"}}}"#);
    let note = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}"#;
    let done = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;
    let given = format!("id: a\ndata: [{bad}, {note}]\n\nid: b\ndata: [{bad}]\n\ndata: {done}\n\n");
    let answer = move |reply| {
        let given = given.clone();
        async move { streamed(reply, &given, 40).await }
    };
    let like = with(answer).await;
    let asked = r#"[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}]"#;
    let body = like.body(&like.old().raw(asked)).await;
    assert_eq!(body, format!("id: a\ndata: [{note}]\n\nid: b\n\ndata: {done}\n\n"));
}
