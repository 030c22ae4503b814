//! D82, C60, architecture "Sessions for legacy clients": a token that is refreshed in the middle of a session. Another one of
//! the same subject is taken only when the server vouches for it: it takes the token, and refuses it with another signature.

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::stage::Stage;
use crate::support::{Calls, Listens, ModernServer, Reply, Take, pass};

/// A JWT of these claims, as raw JSON, with this signature.
fn jwt(claims: &str, signature: &str) -> String {
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    format!("{}.{}.{}", part(r#"{"alg":"RS256","typ":"JWT"}"#), part(claims), part(signature))
}

fn of(subject: &str, n: u32) -> String {
    let claims = format!(
        r#"{{"iss":"https://as.test","sub":"{subject}","aud":"https://up.test","client_id":"c","iat":{n},"exp":{}}}"#,
        n + 3600
    );
    jwt(&claims, &format!("the signature of {subject} {n}"))
}

/// A server that takes these tokens, and no other.
async fn takes(tokens: &[&str], lines: &str) -> Stage {
    let taken: Vec<_> = tokens.iter().map(|token| (*token).to_owned()).collect();
    let calls = Calls::new();
    let server = calls.of_modern(ModernServer::full()).guarded(move |token| taken.iter().any(|t| t == token));
    Stage::build(server, calls, Listens::open(), "", lines).await
}

#[tokio::test(start_paused = true)]
async fn a_refreshed_token_of_the_same_subject_is_vouched_for() {
    let (first, second, third) = (of("alice", 1), of("alice", 2), of("alice", 3));
    let stage = takes(&[&first, &second, &third], "").await;
    let user = stage.user_as(&first).await;
    let refreshed = user.with_token(&second);
    refreshed.list("tools/list").await;
    let seen = stage.up.posts("tools/list").pop().unwrap();
    assert_eq!(seen.header("authorization").unwrap(), format!("Bearer {second}"), "each request's own token");
    // It was looked at once; the old one is good until the next.
    let looks = stage.up.posts("server/discover").len();
    refreshed.list("tools/list").await;
    user.list("tools/list").await;
    assert_eq!(stage.up.posts("server/discover").len(), looks, "vouched for once");
    user.with_token(&third).list("tools/list").await;
    assert!(stage.metric("mcp_janus_token_refresh_total", &["vouched"]) >= 2.0);
}

/// B9.7: nothing that changes between the listens of the two tokens is lost, and what listened with the former goes on until
/// the newer one listens. What is given up meanwhile is not subscribed to again.
#[tokio::test(start_paused = true)]
async fn b9_7_a_refresh_loses_no_changes() {
    let (first, second) = (of("alice", 1), of("alice", 2));
    let (taken, newer) = ([first.clone(), second.clone()], format!("Bearer {second}"));
    let calls = Calls::new();
    let server = calls.of_modern(ModernServer::full()).guarded(move |token| taken.iter().any(|t| t == token));
    let expected = newer.clone();
    let listens = Listens::script(move |_, seen| {
        let is_newer = seen.header("authorization").is_some_and(|token| token == expected);
        if is_newer { Take::Late(4000) } else { Take::All }
    });
    let stage = Stage::build(server, calls, listens, "", "timeouts.initialize = \"20s\"").await;
    let user = stage.user_as(&first).await;
    user.subscribe("file:///a").await.result();
    user.subscribe("file:///b").await.result();
    let get = user.get().await;
    let refreshed = user.with_token(&second);
    refreshed.list("tools/list").await;
    refreshed.unsubscribe("file:///b").await.result();
    stage.listens.tell("prompts");
    pass(1000).await;
    assert_eq!(get.changes(), ["prompts"], "the former token still listens");
    pass(9000).await;
    let mut heard = get.changes()[1..].to_vec();
    heard.sort();
    assert_eq!(heard, ["file:///a", "prompts", "resources", "tools"], "what may have been missed, once");
    let standing = stage.listens.standing();
    assert!(standing.iter().all(|listen| listen.token().as_ref() == Some(&newer)), "the former is given up");
    assert!(standing.iter().any(|listen| listen.uris() == ["file:///a"]));
    stage.listens.tell("file:///b");
    stage.listens.tell("file:///a");
    pass(2000).await;
    assert_eq!(get.changes()[5..], ["file:///a"]);
}

/// Invariant 2: a session that was moved to another token is still used with the former one. What listens for the newer one
/// does not go out in that.
#[tokio::test(start_paused = true)]
async fn inv2_each_token_listens_for_itself() {
    let (first, second) = (of("alice", 1), of("alice", 2));
    let refused = format!("Bearer {second}");
    let (taken, bearer) = ([first.clone(), second.clone()], refused.clone());
    let calls = Calls::new();
    let server = calls.of_modern(ModernServer::full()).guarded(move |token| taken.iter().any(|t| t == token));
    let listens = Listens::script(move |_, seen| {
        let is_newer = seen.header("authorization").is_some_and(|token| token == bearer);
        if is_newer { Take::Empty(403) } else { Take::All }
    });
    let stage = Stage::build(server, calls, listens, "", "").await;
    let user = stage.user_as(&first).await;
    stage.listens.wait(1).await;
    let refreshed = user.with_token(&second);
    refreshed.list("tools/list").await;
    pass(5000).await;
    let before = stage.listens.all().len();
    for _ in 0..20 {
        user.list("tools/list").await;
        refreshed.list("tools/list").await;
        pass(5000).await;
    }
    assert_eq!(
        stage.listens.all().len(),
        before,
        "the newer one was refused, and the former is not the same caller's"
    );
}

/// What such a session holds goes on with it: its stream, its calls, its questions.
#[tokio::test(start_paused = true)]
async fn everything_of_the_session_goes_on() {
    let (first, second) = (of("alice", 1), of("alice", 2));
    let stage = takes(&[&first, &second], "").await;
    let user = stage.user_as(&first).await;
    user.subscribe("file:///a").await.result();
    let stream = stage.asked(&user, &[("k", crate::stage::ROOTS)], Some(r#""S""#)).await;
    let refreshed = user.with_token(&second);
    let get = refreshed.get().await;
    refreshed.answer(&stream.question().await, crate::stage::ROOTED).await;
    stage.retried(1).await.completes("done");
    stream.result().await;
    stage.listens.tell("file:///a");
    get.wait(1).await;
    assert!((200..300).contains(&refreshed.delete().await.status));
    assert!(!user.lives().await);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_takes_anything_vouches_for_nothing() {
    let calls = Calls::new();
    let server = calls.of_modern(ModernServer::full());
    let stage = Stage::build(server, calls, Listens::open(), "", "").await;
    let user = stage.user_as(&of("alice", 1)).await;
    let done = stage.unmoved(stage.proxy.send(&user.with_token(&of("alice", 2)).old.ask("tools/list"))).await;
    assert_eq!(done.status, 404, "{}", done.raw);
    assert!(user.lives().await);
}

/// Invariant 2: nor does one that takes anything and refuses for another reason, just when the altered token comes.
#[tokio::test(start_paused = true)]
async fn inv2_a_refusal_for_another_reason_vouches_for_nothing() {
    // What is refused of the looks, counted from the first, and how.
    for (refused, status) in [(1..usize::MAX, 401), (1..usize::MAX, 403), (1..2, 403)] {
        let (good, looks) = (ModernServer::full(), Arc::new(Mutex::new(None)));
        let (discover, counted) = (good.clone(), looks.clone());
        let server = good.on("server/discover", move |seen, reply: Reply| {
            let discover = discover.clone();
            let n = counted.lock().unwrap().as_mut().map(|n| std::mem::replace(n, *n + 1));
            let refused = n.is_some_and(|n: usize| refused.contains(&n));
            async move {
                if refused {
                    return reply.empty(status).await;
                }
                discover.answer(seen, reply).await;
            }
        });
        let calls = Calls::new();
        let stage = Stage::build(calls.of_modern(server), calls, Listens::open(), "", "").await;
        let user = stage.user_as(&of("alice", 1)).await;
        *looks.lock().unwrap() = Some(0);
        let forged = user.with_token(&of("alice", 2));
        let done = stage.unmoved(stage.proxy.send(&forged.old.ask("tools/list"))).await;
        assert_eq!(done.status, 404, "{status}: {}", done.raw);
        assert!(user.lives().await);
    }
}

#[tokio::test(start_paused = true)]
async fn a_forged_token_is_none() {
    let first = of("alice", 1);
    let stage = takes(&[&first], "").await;
    let user = stage.user_as(&first).await;
    for _ in 0..5 {
        let forged = user.with_token(&of("alice", 2));
        for ask in [forged.old.ask("tools/list"), forged.old.get(), forged.old.delete()] {
            let done = stage.unmoved(stage.proxy.send(&ask)).await;
            assert!([401, 404].contains(&done.status), "{} {}", done.status, done.raw);
        }
    }
    assert!(user.lives().await);
}

/// Another subject, issuer, audience or client is another caller, however good its token is.
#[tokio::test(start_paused = true)]
async fn inv2_another_subject_is_another_caller() {
    let first = of("alice", 1);
    let claims = [
        r#"{"iss":"https://as.test","sub":"bob","aud":"https://up.test","client_id":"c"}"#,
        r#"{"iss":"https://other.test","sub":"alice","aud":"https://up.test","client_id":"c"}"#,
        r#"{"iss":"https://as.test","sub":"alice","aud":"https://else.test","client_id":"c"}"#,
        r#"{"iss":"https://as.test","sub":"alice","aud":"https://up.test","client_id":"d"}"#,
        r#"{"iss":"https://as.test","aud":"https://up.test","client_id":"c"}"#,
        r#"{"sub":"alice","aud":"https://up.test","client_id":"c"}"#,
        r#"{"iss":"https://as.test","sub":"alice","sub":"bob","aud":"https://up.test","client_id":"c"}"#,
        r#"{"iss":"https://as.test","sub":["alice"],"aud":"https://up.test","client_id":"c"}"#,
        "[]",
        "{",
    ];
    let others: Vec<_> = claims
        .iter()
        .map(|claims| jwt(claims, "good"))
        .chain(["opaque".to_owned(), "a.b.c".to_owned()])
        .collect();
    let mut all: Vec<&str> = others.iter().map(String::as_str).collect();
    all.push(&first);
    let stage = takes(&all, "").await;
    let user = stage.user_as(&first).await;
    for other in &others {
        let done = stage.unmoved(stage.proxy.send(&user.with_token(other).old.ask("tools/list"))).await;
        assert_eq!(done.status, 404, "{other}: {}", done.raw);
    }
    assert!(user.lives().await);
}

/// Where tokens are not passed on, the server can vouch for none.
#[tokio::test(start_paused = true)]
async fn without_forwarding_nobody_vouches() {
    for lines in ["authorization = \"strip\"", "authorization = { value = \"Bearer own\" }"] {
        let calls = Calls::new();
        let server = calls.of_modern(ModernServer::full());
        let stage = Stage::build(server, calls, Listens::open(), "", lines).await;
        let user = stage.user_as(&of("alice", 1)).await;
        let done =
            stage.unmoved(stage.proxy.send(&user.with_token(&of("alice", 2)).old.ask("tools/list"))).await;
        assert_eq!(done.status, 404, "{lines}: {}", done.raw);
    }
}

/// Many requests with a new token at once are one look; many tries with bad ones are not many.
#[tokio::test(start_paused = true)]
async fn inv5_looks_are_single_flight_and_bounded() {
    let (first, second) = (of("alice", 1), of("alice", 2));
    let taken = Arc::new(Mutex::new(vec![first.clone(), second.clone()]));
    let calls = Calls::new();
    let good = ModernServer::full();
    let discover = good.clone();
    let server = calls
        .of_modern(good)
        .on("server/discover", move |seen, reply: Reply| {
            let discover = discover.clone();
            async move {
                pass(100).await;
                discover.answer(seen, reply).await;
            }
        })
        .guarded(move |token| taken.lock().unwrap().iter().any(|t| t == token));
    let stage = Stage::build(server, calls, Listens::open(), "", "").await;
    let user = stage.user_as(&first).await;
    let before = stage.up.posts("server/discover").len();
    let refreshed = user.with_token(&second);
    let running: Vec<_> =
        (0..10).map(|n| stage.proxy.spawn(&refreshed.old.ask("tools/list").id(&n.to_string()))).collect();
    for one in running {
        one.await.unwrap().result();
    }
    let looks = stage.up.posts("server/discover").len() - before;
    assert!(looks <= 3, "{looks} looks");
    let before = stage.up.posts("server/discover").len();
    for n in 0..200 {
        let done = stage.proxy.send(&user.with_token(&of("alice", 100 + n)).old.ask("ping")).await;
        assert!([401, 404, 429].contains(&done.status), "{}", done.status);
    }
    let looks = stage.up.posts("server/discover").len() - before;
    assert!(looks < 400, "{looks} looks for 200 forged tokens");
    assert!(user.lives().await);
}

/// C60: the token of a request reaches the server; an expired one is refused by it, whatever the proxy knows.
#[tokio::test(start_paused = true)]
async fn c60_an_expired_token_is_the_servers_to_refuse() {
    let first = of("alice", 1);
    let expired = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (is_over, token) = (expired.clone(), first.clone());
    let calls = Calls::new();
    let server = calls
        .of_modern(ModernServer::full())
        .guarded(move |t| t == token && !is_over.load(std::sync::atomic::Ordering::SeqCst));
    let stage = Stage::build(server, calls, Listens::open(), "", "cache_lists = true").await;
    let user = stage.user_as(&first).await;
    user.list("tools/list").await;
    expired.store(true, std::sync::atomic::Ordering::SeqCst);
    let done = stage.proxy.send(&user.old.ask("tools/list")).await;
    assert_eq!((done.status, done.headers.has("www-authenticate")), (401, true), "{}", done.raw);
}
