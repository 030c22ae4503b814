//! `session.shield`, streams: C02 (what was streaming), C08, C44, A12.19-A12.21, A13.5, D104.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::shield::{SHIELD, shielded};
use crate::support::{LegacyServer, Net, Old, Proxy, Reply, json, pass, rpc, within};

const NOTE: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;

fn note(n: usize) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/acme","params":{{"n":{n}}}}}"#)
}

/// The GET stream of each session tells its number, and ends when the server restarts.
fn numbered(restart: &Arc<Notify>) -> LegacyServer {
    let server = LegacyServer::new();
    let (count, restart) = (server.clone(), Arc::clone(restart));
    server.on("GET", move |_, mut reply: Reply| {
        let (n, restart) = (count.count("GET"), Arc::clone(&restart));
        async move {
            reply.stream().await;
            reply.chunk(format!("id: e{n}\ndata: {}\n\n", note(n)).as_bytes()).await;
            restart.notified().await;
        }
    })
}

#[tokio::test(start_paused = true)]
async fn c02_the_get_stream_stays_open_across_a_restart() {
    let restart = Arc::new(Notify::new());
    let server = numbered(&restart);
    let (proxy, up) = shielded(&server).await;
    let old = Old::latest(&proxy).await;
    let mut stream = proxy.open(&old.get()).await;
    let first = stream.event().await.unwrap();
    assert_eq!((first.id.as_str(), first.data), ("0.e0", note(0)));
    server.forget_sessions();
    restart.notify_waiters();
    let second = stream.message().await;
    assert_eq!(second["params"]["n"], 1, "the next session's stream, on the same response");
    let gets = up.wait("GET", 2).await;
    assert_eq!(up.posts("initialize").len(), 2);
    let last = gets.last().unwrap();
    assert_eq!((last.session().as_deref(), last.header("last-event-id")), (Some("S2"), None));
    assert_eq!(gets[1].header("last-event-id").as_deref(), Some("e0"), "in the old session it was tried");
    proxy.send(&old.call("echo", "{}")).await.result();
    assert_eq!(up.posts("initialize").len(), 2, "calls are in the new session already");
}

#[tokio::test(start_paused = true)]
async fn c02_a_call_that_finds_the_loss_moves_the_open_stream() {
    let restart = Arc::new(Notify::new());
    let server = numbered(&restart);
    let (proxy, up) = shielded(&server).await;
    let old = Old::latest(&proxy).await;
    let mut stream = proxy.open(&old.get()).await;
    stream.message().await;
    // The stream's connection stays though the session is gone.
    server.forget_sessions();
    proxy.send(&old.call("echo", "{}")).await.result();
    assert_eq!(stream.message().await["params"]["n"], 1);
    assert_eq!((up.posts("initialize").len(), up.wait("GET", 2).await.len()), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn a13_5_a_get_stream_that_ends_is_opened_again_where_it_was() {
    let restart = Arc::new(Notify::new());
    let (proxy, up) = shielded(&numbered(&restart)).await;
    let old = Old::latest(&proxy).await;
    let mut stream = proxy.open(&old.get()).await;
    stream.message().await;
    restart.notify_waiters();
    assert_eq!(stream.message().await["params"]["n"], 1);
    let gets = up.wait("GET", 2).await;
    assert_eq!(gets[1].header("last-event-id").as_deref(), Some("e0"));
    assert_eq!(up.posts("initialize").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn c08_a_404_on_get_alone_loses_nothing() {
    for (status, expected) in [(404, 405), (405, 405), (406, 406), (400, 400)] {
        let server = LegacyServer::new().on("GET", move |_, reply: Reply| reply.empty(status));
        let (proxy, up) = shielded(&server).await;
        let old = Old::latest(&proxy).await;
        assert_eq!(proxy.send(&old.get()).await.status, expected, "{status}");
        proxy.send(&old.call("echo", "{}")).await.result();
        assert_eq!(up.posts("initialize").len(), 1, "{status}: POST is asked first");
    }
}

#[tokio::test(start_paused = true)]
async fn c08_a_get_that_finds_the_session_gone_opens_another() {
    let restart = Arc::new(Notify::new());
    let server = numbered(&restart);
    let (proxy, up) = shielded(&server).await;
    let old = Old::latest(&proxy).await;
    server.forget_sessions();
    let mut stream = proxy.open(&old.get()).await;
    stream.message().await;
    assert_eq!(up.posts("initialize").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn c02_a_call_in_flight_at_the_restart_is_answered_with_an_error() {
    for (ids, broken) in [(true, true), (true, false), (false, true), (false, false)] {
        let base = LegacyServer::new();
        let forget = base.clone();
        let server = base.clone().on("tools/call", move |_, mut reply: Reply| {
            let forget = forget.clone();
            async move {
                reply.stream().await;
                let id = if ids { "id: a\n" } else { "" };
                reply.chunk(format!("{id}data: {NOTE}\n\n").as_bytes()).await;
                forget.forget_sessions();
                if !broken {
                    reply.end().await;
                }
            }
        });
        let (proxy, up) = shielded(&server).await;
        let old = Old::latest(&proxy).await;
        let done = proxy.send(&old.call("charge", "{}").id("\"x\"")).await;
        done.is_answered_error(-32603);
        assert_eq!(done.before.len(), 1, "what came before stays");
        assert_eq!(up.posts("tools/call").len(), 1, "ids {ids}, broken {broken}: never again");
        proxy.send(&old.ask("tools/list")).await.result();
    }
}

#[tokio::test(start_paused = true)]
async fn d104_a_stream_that_ends_early_is_taken_up_for_the_client() {
    let server = LegacyServer::new()
        .on("tools/call", |_, mut reply: Reply| async move {
            reply.stream().await;
            reply.chunk(b"id: p:0\nretry: 1500\ndata: \n\n").await;
            reply.end().await;
        })
        .on("GET", |_, mut reply: Reply| async move {
            reply.stream().await;
            reply
                .chunk(b"id: p:1\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"content\":[]}}\n\n")
                .await;
            reply.never().await;
        });
    let (proxy, up) = shielded(&server).await;
    let old = Old::latest(&proxy).await;
    let start = Instant::now();
    let done = proxy.send(&old.call("slow", "{}").id("7")).await;
    done.result();
    assert!(
        start.elapsed() >= Duration::from_millis(1500),
        "the server's time is kept: {:?}",
        start.elapsed()
    );
    assert_eq!(up.wait("GET", 1).await[0].header("last-event-id").as_deref(), Some("p:0"));
    assert_eq!(up.posts("tools/call").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a12_19_a_client_that_lost_its_stream_gets_the_answer_by_get() {
    for (restarts, renewed) in [(false, false), (true, false), (true, true)] {
        let base = LegacyServer::new();
        let server = base
            .clone()
            .on("tools/call", |_, mut reply: Reply| async move {
                reply.stream().await;
                reply.chunk(format!("id: c:0\ndata: {NOTE}\n\n").as_bytes()).await;
                reply.never().await;
            })
            .on("GET", |seen, mut reply: Reply| async move {
                reply.stream().await;
                if seen.header("last-event-id").as_deref() == Some("c:0") {
                    reply.event(&rpc::result_message("7", r#"{"content":[]}"#)).await;
                    return reply.end().await;
                }
                reply.never().await;
            });
        let (proxy, up) = shielded(&server).await;
        let old = Old::latest(&proxy).await;
        let mut call = proxy.open(&old.call("slow", "{}").id("7")).await;
        assert_eq!(call.event().await.unwrap().id, "0.c:0");
        call.close();
        pass(1000).await;
        if restarts {
            base.forget_sessions();
        }
        if renewed {
            // The id is the lost session's: to the new one it would be another event's.
            proxy.send(&old.ask("tools/list").id("8")).await.result();
        }
        let gets = up.requests().iter().filter(|seen| seen.verb == "GET").count();
        let mut resumed = proxy.open(&old.get().header("Last-Event-ID", "0.c:0")).await;
        let answer = resumed.message().await;
        assert_eq!(answer["id"], 7);
        if renewed {
            let first = up.wait("GET", gets + 1).await[gets].clone();
            assert_eq!(first.header("last-event-id"), None);
        }
        if restarts {
            assert_eq!(answer["error"]["code"], -32603, "{answer}");
        } else {
            assert_eq!(answer["result"], json!({"content": []}));
            assert_eq!(resumed.event().await, None, "it was that call's stream");
        }
        assert_eq!(up.posts("tools/call").len(), 1);
        assert_eq!(up.posts("notifications/cancelled").len(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn c44_an_answer_goes_to_the_session_that_asked_or_nowhere() {
    let server = LegacyServer::new().on("GET", |_, mut reply: Reply| async move {
        reply.stream().await;
        reply.event(r#"{"jsonrpc":"2.0","id":5,"method":"roots/list"}"#).await;
        reply.never().await;
    });
    let (proxy, up) = shielded(&server).await;
    let old = Old::latest(&proxy).await;
    let mut stream = proxy.open(&old.get()).await;
    assert_eq!(stream.message().await["id"], 5);
    let roots = r#"{"roots":[]}"#;
    let answered = proxy.send(&old.answer("5", roots)).await;
    assert_eq!((answered.status, answered.raw.as_str()), (202, ""));
    assert_eq!(up.wait("response", 1).await[0].session().as_deref(), Some("S1"));
    // The next session asks under the same id; an answer to the first one's question must not reach it.
    let server_asks_again = server;
    server_asks_again.forget_sessions();
    let mut other = proxy.open(&old.get()).await;
    other.message().await;
    let fresh = proxy.send(&old.answer("5", roots)).await;
    assert_eq!(fresh.status, 202);
    assert_eq!(up.wait("response", 2).await[1].session().as_deref(), Some("S2"));
}

#[tokio::test(start_paused = true)]
async fn c44_a_late_answer_to_a_lost_session_is_dropped() {
    let server = LegacyServer::new().on("tools/call", |_, mut reply: Reply| async move {
        reply.stream().await;
        reply.event(r#"{"jsonrpc":"2.0","id":5,"method":"roots/list"}"#).await;
        reply.never().await;
    });
    let (proxy, up) = shielded(&server).await;
    let old = Old::latest(&proxy).await;
    let mut call = proxy.open(&old.call("ask", "{}").id("7")).await;
    call.message().await;
    server.forget_sessions();
    proxy.send(&old.ask("tools/list")).await.result();
    assert_eq!(proxy.send(&old.answer("5", "{}")).await.status, 202);
    // What the proxy cannot tell apart goes on: the server knows its own ids.
    assert_eq!(proxy.send(&old.answer("6", "{}")).await.status, 202);
    let seen = up.wait("response", 1).await;
    assert_eq!((seen.len(), seen[0].json()["id"].clone()), (1, json!(6)));
}

#[tokio::test(start_paused = true)]
async fn a12_21_a_call_that_takes_too_long_is_told_in_band() {
    let server = LegacyServer::new().on("tools/call", |_, mut reply: Reply| async move {
        reply.stream().await;
        reply.event(NOTE).await;
        reply.never().await;
    });
    let net = Net::new();
    server.start(&net);
    let proxy = Proxy::with(&net, &format!("{SHIELD}\ntimeouts = {{ request = \"1s\" }}")).await;
    let old = Old::latest(&proxy).await;
    proxy.send(&old.call("slow", "{}").id("7")).await.is_answered_error(-32603);
}

#[tokio::test(start_paused = true)]
async fn c25_a_client_of_json_only_gets_the_answer_alone() {
    let server = LegacyServer::new().on("tools/call", |seen, mut reply: Reply| async move {
        reply.stream().await;
        reply.event(NOTE).await;
        reply.result_event(&seen, r#"{"content":[]}"#).await;
        reply.end().await;
    });
    let (proxy, _up) = shielded(&server).await;
    let old = Old::latest(&proxy).await;
    let done = proxy.send(&old.call("echo", "{}").id("7").header("Accept", "application/json")).await;
    done.result();
    assert_eq!(done.headers.media_type().as_deref(), Some("application/json"));
}

#[tokio::test(start_paused = true)]
async fn a12_15_delete_closes_the_sessions_streams() {
    let gone = Arc::new(Notify::new());
    let told = Arc::clone(&gone);
    let server = LegacyServer::new().on("GET", move |_, mut reply: Reply| {
        let told = Arc::clone(&told);
        async move {
            reply.stream().await;
            reply.event(NOTE).await;
            reply.closed().await;
            told.notify_one();
        }
    });
    let (proxy, up) = shielded(&server).await;
    let old = Old::latest(&proxy).await;
    let mut stream = proxy.open(&old.get()).await;
    stream.message().await;
    assert_eq!(proxy.send(&old.delete()).await.status, 200);
    assert_eq!(stream.event().await, None);
    within("the server's stream is let go", gone.notified()).await;
    pass(120_000).await;
    assert_eq!(
        (up.wait("GET", 1).await.len(), up.posts("initialize").len()),
        (1, 1),
        "nothing is opened again"
    );
}

#[tokio::test(start_paused = true)]
async fn c10_a_session_with_an_open_stream_is_in_use_and_without_it_expires() {
    let restart = Arc::new(Notify::new());
    let server = numbered(&restart);
    let net = Net::new();
    server.start(&net);
    let proxy = Proxy::with(&net, "session = { shield = true, idle = \"60s\" }").await;
    let old = Old::latest(&proxy).await;
    let mut stream = proxy.open(&old.get()).await;
    stream.message().await;
    pass(600_000).await;
    proxy.send(&old.ask("tools/list")).await.result();
    stream.close();
    pass(90_000).await;
    assert_eq!(proxy.send(&old.ask("tools/list")).await.status, 404);
    assert_eq!(server.deleted(), ["S1"]);
}

#[tokio::test(start_paused = true)]
async fn a14_7_the_drain_ends_a_shielded_stream_too() {
    let restart = Arc::new(Notify::new());
    let (proxy, _up) = shielded(&numbered(&restart)).await;
    let old = Old::latest(&proxy).await;
    let mut stream = proxy.open(&old.get()).await;
    stream.message().await;
    proxy.drain();
    let (messages, broken) = stream.rest().await;
    assert_eq!((messages.len(), broken), (0, false));
}

#[tokio::test(start_paused = true)]
async fn c16_a_shielded_stream_gets_comments_while_the_server_is_away() {
    let restart = Arc::new(Notify::new());
    let server = numbered(&restart);
    let (proxy, up) = shielded(&server).await;
    let old = Old::latest(&proxy).await;
    let mut stream = proxy.open(&old.get()).await;
    stream.message().await;
    up.refuse();
    server.forget_sessions();
    restart.notify_waiters();
    let nothing = tokio::time::timeout(Duration::from_secs(120), stream.event()).await;
    assert!(nothing.is_err(), "{nothing:?}");
    assert!(stream.events.comments() >= 7, "{}", stream.events.comments());
    up.restore();
    // A call that finds the server again is not kept waiting for, whatever pause the stream has come to.
    proxy.send(&old.call("echo", "{}")).await.result();
    let start = Instant::now();
    assert_eq!(stream.message().await["params"]["n"], 1);
    assert!(start.elapsed() < Duration::from_millis(500), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn c13_priming_events_reach_only_clients_that_know_them() {
    for version in ["2025-11-25", "2025-06-18"] {
        let server =
            LegacyServer::new().version(version).on("tools/call", |seen, mut reply: Reply| async move {
                reply.stream().await;
                reply
                    .chunk(b"id: s:0\nretry: 1000\ndata: \n\n: keepalive\n\nevent: ping\ndata: 2026\n\n")
                    .await;
                reply.result_event(&seen, r#"{"content":[]}"#).await;
                reply.end().await;
            });
        let (proxy, _up) = shielded(&server).await;
        let old = Old::open(&proxy, version).await;
        let mut call = proxy.open(&old.call("x", "{}").id("7")).await;
        let mut datas = Vec::new();
        while let Some(event) = call.event().await {
            assert_eq!(event.id, "0.s:0");
            datas.push(event.data);
        }
        let result = rpc::result_message("7", r#"{"content":[]}"#);
        let expected: Vec<&str> =
            if version == "2025-11-25" { vec!["", "2026", &result] } else { vec!["2026", &result] };
        assert_eq!(datas, expected, "{version}");
    }
}

/// Servers of the official SDKs answer 409 while they take the former stream to be open.
#[tokio::test(start_paused = true)]
async fn a_stream_that_the_server_takes_to_be_open_still_is_tried_again() {
    for (conflicts, status) in [(3, 200), (99, 409)] {
        let base = LegacyServer::new();
        let counting = base.clone();
        let server = base.on("GET", move |_, mut reply: Reply| {
            let before = counting.count("GET");
            async move {
                if before < conflicts {
                    let text = r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Conflict"},"id":null}"#;
                    return reply.json(409, text).await;
                }
                reply.stream().await;
                reply.never().await;
            }
        });
        let (proxy, up) = shielded(&server).await;
        let old = Old::latest(&proxy).await;
        let answer = proxy.open(&old.get()).await;
        assert_eq!(answer.status, status);
        assert!(up.requests().iter().filter(|seen| seen.verb == "GET").count() <= 6);
        if status == 409 {
            let done = answer.done().await;
            assert_eq!(done.message.get("id"), None, "no id, and no null: {}", done.raw);
        }
    }
}
