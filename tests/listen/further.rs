//! B5, learn: further sessions of one key at a server that asks on the session's stream (`session.max_per_key`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::stage::Stage;
use crate::support::{Ask, Done, Gets, LegacyServer, Reply, call, json, list, pass};

const FORM: &str = r#"{"elicitation":{}}"#;
const ASKS: &str = r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}}"#;

/// Calls that the server works on, by session: now, and at most at once.
#[derive(Clone, Default)]
struct AtWork(Arc<Mutex<HashMap<String, (usize, usize)>>>);

impl AtWork {
    /// Every call takes a tenth of a second, but for the one that is named so.
    fn server(&self, base: LegacyServer) -> LegacyServer {
        let at_work = self.clone();
        base.on("tools/call", move |seen, reply: Reply| {
            let (session, at_work) = (seen.session().unwrap_or_default(), at_work.clone());
            async move {
                if seen.json()["params"]["name"] == "waits" {
                    return reply.never().await;
                }
                {
                    let mut all = at_work.0.lock().unwrap();
                    let (now, most) = all.entry(session.clone()).or_default();
                    *now += 1;
                    *most = (*most).max(*now);
                }
                pass(100).await;
                at_work.0.lock().unwrap().get_mut(&session).unwrap().0 -= 1;
                reply.result(&seen, r#"{"content":[]}"#).await;
            }
        })
    }

    /// The sessions with calls, and how many each had at once.
    fn most(&self) -> Vec<(String, usize)> {
        let all = self.0.lock().unwrap();
        let mut most: Vec<_> = all.iter().map(|(session, (_, most))| (session.clone(), *most)).collect();
        most.sort();
        most
    }
}

fn asking(n: usize) -> Ask {
    call("echo", &format!(r#"{{"n":{n}}}"#)).caps(FORM).id(&n.to_string())
}

/// A server that has asked on the session's stream; the call that asked waits for its client.
async fn learned(server: LegacyServer, lines: &str) -> Stage {
    let stage = Stage::with(server, Gets::open(), lines).await;
    let first = stage.proxy.spawn(&call("waits", "{}").caps(FORM));
    let get = stage.gets.wait(1).await;
    stage.up.wait("tools/call", 1).await;
    get.event(ASKS);
    let asked = first.await.unwrap();
    assert_eq!(asked.result()["resultType"], "input_required", "{}", asked.raw);
    stage
}

async fn all(calls: Vec<JoinHandle<Done>>) {
    for one in calls {
        one.await.unwrap().result();
    }
}

#[tokio::test(start_paused = true)]
async fn b5_calls_spread_over_the_sessions_of_their_key() {
    let at_work = AtWork::default();
    let stage = learned(at_work.server(LegacyServer::telling()), "session.max_per_key = 3").await;
    let start = Instant::now();
    all((1..=6).map(|n| stage.proxy.spawn(&asking(n))).collect()).await;
    let one_each = ["S1", "S2", "S3"].map(|session| (session.to_owned(), 1));
    assert_eq!(at_work.most(), one_each, "the parked call holds no place");
    assert!(start.elapsed() < Duration::from_millis(400), "two after another: {:?}", start.elapsed());
    assert_eq!((stage.proxy.sessions(), stage.gets.now()), (3, 3), "each with a stream of its own");
    // What asks nothing, and who cannot be asked, has what it had before.
    stage.proxy.send(&list("tools/list").caps(FORM)).await.result();
    assert_eq!(stage.up.only("tools/list").session().as_deref(), Some("S1"));
    all((1..=3).map(|n| stage.proxy.spawn(&asking(n).caps("{}"))).collect()).await;
    assert_eq!(at_work.most().last().unwrap(), &("S4".to_owned(), 3));
    // One at a time there is no need for another.
    for n in 1..=3 {
        stage.proxy.send(&asking(n)).await.result();
    }
    assert_eq!(stage.proxy.sessions(), 4);
}

#[tokio::test(start_paused = true)]
async fn b5_no_further_session_before_the_server_has_asked() {
    let at_work = AtWork::default();
    let server = at_work.server(LegacyServer::telling());
    let stage = Stage::with(server, Gets::open(), "session.max_per_key = 3").await;
    all((1..=4).map(|n| stage.proxy.spawn(&asking(n))).collect()).await;
    assert_eq!(at_work.most().len(), 1);
    assert_eq!(stage.proxy.sessions(), 1);
}

/// A server, or the settings, may not allow another session: then calls wait for their turn in the one there is.
#[tokio::test(start_paused = true)]
async fn b5_where_there_can_be_no_further_session_calls_take_turns() {
    for lines in ["session.max_per_key = 3", "session.max_per_key = 3\nsession.max = 1"] {
        let at_work = AtWork::default();
        let base = LegacyServer::telling();
        let counter = base.clone();
        let server = at_work.server(base.clone()).on("initialize", move |seen, reply| {
            let (base, first) = (base.clone(), counter.count("initialize") == 0);
            async move {
                match first {
                    true => base.initialize_as_usual(&seen, reply).await,
                    false => {
                        reply.error(400, &seen, r#"{"code":-32600,"message":"already initialized"}"#).await;
                    }
                }
            }
        });
        let stage = learned(server, lines).await;
        all((1..=4).map(|n| stage.proxy.spawn(&asking(n))).collect()).await;
        assert_eq!(at_work.most(), [("S1".to_owned(), 1)], "{lines}");
        assert_eq!(stage.proxy.sessions(), 1, "{lines}");
    }
}

/// A12.13: the call that finds its session lost does not take it for one that is busy.
#[tokio::test(start_paused = true)]
async fn d31_a_lost_session_is_replaced_by_one() {
    let at_work = AtWork::default();
    let stage = learned(at_work.server(LegacyServer::telling()), "session.max_per_key = 3").await;
    stage.proxy.send(&asking(1)).await.result();
    stage.server.forget_sessions();
    stage.proxy.send(&asking(2)).await.result();
    assert_eq!(stage.up.posts("initialize").len(), 2);
    let sessions: Vec<_> = at_work.most().into_iter().map(|(session, _)| session).collect();
    assert_eq!(json!(sessions), json!(["S1", "S2"]));
}
