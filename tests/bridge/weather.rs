//! A12.18, A12.21, C35, B9.7: servers that come and go under the sessions of legacy clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::stage::{LATEST, REVISIONS, ROOTED, ROOTS, Stage};
use crate::support::{Calls, LegacyServer, Listens, ModernServer, Net, Old, Proxy, User, pass};

/// The server is away for a while: requests fail in words, sessions and streams stay, and what was missed is told.
#[tokio::test(start_paused = true)]
async fn a12_21_a_server_that_is_away_for_a_while() {
    for revision in REVISIONS {
        let stage = Stage::new().await;
        let user = stage.user(revision).await;
        let get = user.get().await;
        user.subscribe("file:///a").await.result();
        pass(2000).await;
        stage.up.refuse();
        stage.up.hang_up();
        for listen in stage.listens.standing() {
            listen.cut();
        }
        for n in 0..3 {
            let done = user.send(&user.old.ask("tools/list").id(&n.to_string())).await;
            done.is_answered_error(-32603);
            let stream = user.call("t", "{}").await;
            assert_eq!(stream.code().await, -32603, "{revision}");
            pass(5000).await;
        }
        assert!(!get.is_over(), "{revision}");
        stage.up.restore();
        pass(60_000).await;
        user.list("tools/list").await;
        let mut heard = get.changes();
        heard.sort();
        assert_eq!(
            heard,
            ["file:///a", "prompts", "resources", "tools"],
            "{revision}: what may have been missed"
        );
        stage.listens.tell("file:///a");
        pass(1000).await;
        assert_eq!(get.changes().len(), 5, "{revision}");
        assert!(user.lives().await);
    }
}

/// A fixed era and a server of the other: an error in words.
#[tokio::test(start_paused = true)]
async fn a15_a_server_of_the_other_era() {
    let net = Net::new();
    let base = LegacyServer::new();
    let answer = crate::support::net::handler(move |seen, reply| base.clone().answer(seen, reply));
    let up = net.serve("up.test", crate::support::net::Receiver::Unchecked, answer);
    let proxy = Proxy::with(&net, "era = \"modern\"").await;
    let done = proxy.send(&Old::initialize(LATEST).id("7")).await;
    done.is_answered_error(-32603);
    assert_eq!(done.headers.get("mcp-session-id"), None);
    assert_eq!(up.posts("initialize").len(), 0, "{:?}", up.briefs());
}

/// C35: a server that answers nothing of use to the first question is none; the next time it is.
#[tokio::test(start_paused = true)]
async fn c35_a_server_that_comes_up_late() {
    let up_now = Arc::new(AtomicBool::new(false));
    let (is_up, good) = (up_now.clone(), ModernServer::full());
    let discover = good.clone();
    let server = good.on("server/discover", move |seen, reply: crate::support::Reply| {
        let (is_up, discover) = (is_up.clone(), discover.clone());
        async move {
            if is_up.load(Ordering::SeqCst) {
                return discover.answer(seen, reply).await;
            }
            reply.body(503, "text/html", "<html>soon</html>").await;
        }
    });
    let net = Net::new();
    server.start_bridged(&net);
    let proxy = Arc::new(Proxy::start(&net).await);
    proxy.send(&Old::initialize(LATEST)).await.is_answered_error(-32603);
    up_now.store(true, Ordering::SeqCst);
    User::begin(&proxy, LATEST).await.list("tools/list").await;
}

/// B9.7: a listen goes on in the newest credential of its caller.
#[tokio::test(start_paused = true)]
async fn b9_7_the_newest_credential_listens() {
    use base64::Engine as _;
    let part = |text: &str| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text);
    let token = |n: u32| {
        format!(
            "{}.{}.{}",
            part(r#"{"alg":"RS256"}"#),
            part(&format!(
                r#"{{"iss":"https://as.test","sub":"alice","aud":"u","client_id":"c","iat":{n}}}"#
            )),
            part(&format!("signature {n}"))
        )
    };
    let (first, second) = (token(1), token(2));
    let expired = Arc::new(AtomicBool::new(false));
    let (is_over, tokens) = (expired.clone(), (first.clone(), second.clone()));
    let calls = Calls::new();
    let server = calls
        .of_modern(ModernServer::full())
        .guarded(move |t| t == tokens.1 || t == tokens.0 && !is_over.load(Ordering::SeqCst));
    let stage = Stage::build(server, calls, Listens::open(), "", "").await;
    let user = stage.user_as(&first).await;
    let get = user.get().await;
    stage.listens.wait(1).await;
    pass(1000).await;
    expired.store(true, Ordering::SeqCst);
    stage.listens.standing()[0].cut();
    pass(60_000).await;
    assert_eq!(stage.listens.now(), 0, "nobody has a credential that is taken");
    assert!(!get.is_over());
    let refreshed = user.with_token(&second);
    refreshed.list("tools/list").await;
    let listen = stage.listens.of_flag("toolsListChanged").await;
    assert_eq!(listen.token(), Some(format!("Bearer {second}")));
    pass(5000).await;
    let mut heard = get.changes();
    heard.sort();
    assert_eq!(heard, ["prompts", "resources", "tools"], "what may have been missed, once");
}

/// A call that runs while its server goes away has its error, and another server has the next.
#[tokio::test(start_paused = true)]
async fn a12_20_a_server_that_is_replaced() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    let (stream, call) = stage.begin(&user).await;
    let asked = stage.asked(&user, &[("k", ROOTS)], Some(r#""S""#)).await;
    let question = asked.question().await;
    call.cut();
    let calls = Calls::new();
    let up = Listens::open().of(calls.of_modern(ModernServer::full())).start_bridged(&stage.net);
    assert_eq!(stream.code().await, -32603);
    // The call in the middle of a round belongs to nobody: whoever reads its state goes on with it.
    user.answer(&question, ROOTED).await;
    let second = calls.wait(1).await;
    assert_eq!(second.params()["requestState"], "S");
    second.completes("done");
    asked.result().await;
    assert_eq!(up.posts("tools/call").len(), 1);
}

/// One session, two windows: the newer stream has the changes, both may call.
#[tokio::test(start_paused = true)]
async fn b9_8_one_session_two_windows() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    let window = user.clone();
    let first = user.get().await;
    stage.listens.wait(1).await;
    let second = window.get().await;
    first.end().await;
    stage.listens.tell("tools");
    second.wait(1).await;
    let one = stage.asked(&user, &[("k", ROOTS)], Some(r#""S""#)).await;
    // Whichever window answers.
    window.answer(&one.question().await, ROOTED).await;
    stage.retried(1).await.completes("done");
    one.result().await;
}

/// Handshakes in the forms that clients accept.
#[tokio::test(start_paused = true)]
async fn c25_a_handshake_in_either_form() {
    let stage = Stage::new().await;
    for accept in ["text/event-stream", "application/json", "*/*", "application/json, text/event-stream"] {
        let done = stage.proxy.send(&Old::initialize(LATEST).header("Accept", accept)).await;
        let old = Old::initialized(&stage.proxy, &done, None).await;
        assert!(old.session.is_some(), "{accept}");
        stage.proxy.send(&old.ask("tools/list")).await.result();
    }
    let verbs = ["PUT", "PATCH", "OPTIONS", "HEAD"];
    let user = stage.latest().await;
    for verb in verbs {
        let mut ask = user.old.get();
        verb.clone_into(&mut ask.verb);
        let answer = stage.proxy.open(&ask).await;
        assert_eq!(answer.status, 405, "{verb}");
    }
}
