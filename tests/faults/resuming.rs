//! D104, A12.20, invariant 5: taking up a broken stream again, as long as that may go on.

use std::sync::{Arc, Mutex};

use crate::support::{Ask, LegacyServer, Proxy, Reply, Seen, Upstream, call, json};

/// A call's stream that begins so and ends; `get` answers the n-th GET, with the call that it belongs to.
fn resumable<F, T>(begin: &'static str, get: F) -> LegacyServer
where
    F: Fn(usize, Arc<Seen>, Reply) -> T + Send + Sync + 'static,
    T: Future<Output = ()> + Send + 'static,
{
    let base = LegacyServer::new();
    let counts = base.clone();
    let call = Arc::new(Mutex::new(None));
    let noted = Arc::clone(&call);
    base.on("tools/call", move |seen, mut reply: Reply| {
        *noted.lock().unwrap() = Some(seen);
        async move {
            reply.stream().await;
            reply.chunk(begin.as_bytes()).await;
            reply.end().await;
        }
    })
    .on("GET", move |_, reply: Reply| {
        let seen = call.lock().unwrap().clone().expect("a call before the GET");
        get(counts.count("GET"), seen, reply)
    })
}

fn gets(up: &Upstream) -> Vec<Arc<Seen>> {
    up.requests().into_iter().filter(|s| s.verb == "GET").collect()
}

/// A call whose status waits for its outcome, however long that takes (B11, C25).
fn for_json() -> Ask {
    call("echo", "{}").id("7").header("Accept", "application/json")
}

const PRIMING: &str = "id: s:0\nretry: 0\ndata: \n\n";

#[tokio::test(start_paused = true)]
async fn inv5_priming_events_for_ever() {
    for moving in [false, true] {
        let server = resumable(PRIMING, move |n, _, mut reply| async move {
            if n > 200 {
                return reply.empty(405).await;
            }
            let id = if moving { n + 1 } else { 0 };
            reply.stream().await;
            reply.chunk(format!("id: s:{id}\nretry: 0\ndata: \n\n").as_bytes()).await;
            reply.end().await;
        });
        let (proxy, up) = Proxy::before(&server).await;
        proxy.send(&for_json()).await.is_error(502, -32603);
        assert_eq!(up.posts("tools/call").len(), 1, "never sent again");
        let n = gets(&up).len();
        // As the setting `limits.resumptions` says.
        assert!((1..=5).contains(&n), "{n} GETs, ids moving: {moving}");
    }
}

#[tokio::test(start_paused = true)]
async fn inv5_a_stream_that_moves_on_may_be_taken_up_as_often_as_it_breaks() {
    let server = resumable(PRIMING, |n, seen, mut reply| async move {
        reply.stream().await;
        match n {
            0..20 => {
                let params = json!({"progressToken": seen.json()["params"]["_meta"]["progressToken"], "progress": n + 1});
                let message = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
                reply.chunk(format!("id: s:{}\nretry: 0\ndata: {message}\n\n", n + 1).as_bytes()).await;
            }
            _ => reply.result_event(&seen, r#"{"content":[]}"#).await,
        }
        reply.end().await;
    });
    let (proxy, up) = Proxy::before(&server).await;
    let done = proxy.send(&call("echo", "{}").id("7").meta("progressToken", "1")).await;
    done.result();
    assert_eq!(done.before.len(), 20, "each progress once");
    let from: Vec<_> = gets(&up).iter().filter_map(|s| s.header("last-event-id")).collect();
    assert_eq!(from, (0..=20).map(|n| format!("s:{n}")).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn d104_a_resumed_stream_that_breaks_before_it_repeats_an_id() {
    for clean in [true, false] {
        let server = resumable(PRIMING, move |n, seen, mut reply| async move {
            reply.stream().await;
            match (n, clean) {
                (0, true) => reply.end().await,
                (0, false) => reply.reset(),
                _ => {
                    reply.result_event(&seen, r#"{"content":[],"n":1}"#).await;
                    reply.end().await;
                }
            }
        });
        let (proxy, up) = Proxy::before(&server).await;
        let done = proxy.send(&call("echo", "{}").id("7")).await;
        assert_eq!(done.result()["n"], 1, "clean end: {clean}");
        let from: Vec<_> = gets(&up).iter().filter_map(|s| s.header("last-event-id")).collect();
        assert_eq!(from, ["s:0", "s:0"], "clean end: {clean}");
        assert_eq!(up.posts("tools/call").len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn d104_a_get_that_is_reset_once_is_tried_again() {
    for what in ["reset", "closed", "503"] {
        let server = resumable(PRIMING, move |n, seen, mut reply| async move {
            match (n, what) {
                (0, "reset") => reply.reset(),
                (0, "closed") => drop(reply),
                (0, _) => reply.empty(503).await,
                _ => {
                    reply.stream().await;
                    reply.result_event(&seen, r#"{"content":[],"n":1}"#).await;
                    reply.end().await;
                }
            }
        });
        let (proxy, up) = Proxy::before(&server).await;
        let done = proxy.send(&call("echo", "{}").id("7")).await;
        assert_eq!(done.result()["n"], 1, "{what}");
        assert_eq!(gets(&up)[1].header("last-event-id").as_deref(), Some("s:0"), "{what}");
        assert_eq!(up.posts("tools/call").len(), 1, "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn d104_gets_that_are_always_reset_have_an_end() {
    let server = resumable(PRIMING, |_, _, reply| async move { reply.reset() });
    let (proxy, up) = Proxy::before(&server).await;
    proxy.send(&for_json()).await.is_error(502, -32603);
    // A connection that breaks at once may be tried anew below, without counting as a resumption.
    assert!((1..=10).contains(&gets(&up).len()), "{} GETs", gets(&up).len());
}
