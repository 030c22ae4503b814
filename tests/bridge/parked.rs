//! Architecture, invariant 5, `limits.parked` and `limits.parked_per_principal`: calls that wait for their legacy client.

use crate::stage::{FORM, LATEST, ROOTED, ROOTS, Stage, opened};
use crate::support::leftovers::standing;
use crate::support::{Stream, User, pass, user::everything};

fn waiting(stage: &Stage) -> f64 {
    stage.metric("mcp_janus_parked_calls", &[])
}

/// The client is asked nothing, and hears that it is not.
async fn is_refused(stage: &Stage, user: &User, id: &str) {
    let n = stage.calls.all().len();
    let (opening, call) = stage.start(user, &user.old.call("ask", "{}").id(id)).await;
    call.asks(&[("k", ROOTS)], Some(r#""S""#));
    let stream = opened(opening).await;
    if stream.status == 503 {
        assert!(stream.headers.has("retry-after"));
    } else {
        let answer = stream.answer().await;
        assert!(answer["error"]["code"] == -32603 || answer["result"]["isError"] == true, "{answer}");
    }
    assert_eq!(stream.asked(), 0);
    pass(1000).await;
    assert_eq!(stage.calls.all().len(), n + 1, "and is not tried again");
}

async fn answers(stage: &Stage, user: &User, stream: &Stream) {
    let n = stage.calls.all().len();
    user.answer(&stream.question().await, ROOTED).await;
    stage.calls.wait(n + 1).await.completes("done");
    stream.result().await;
}

#[tokio::test(start_paused = true)]
async fn inv5_parked() {
    let stage = Stage::bounded("[limits]\nparked = 2\n", "").await;
    let (alice, bob) = (stage.user_as("alice").await, stage.user_as("bob").await);
    let first = stage.asked(&alice, &[("k", ROOTS)], Some(r#""S""#)).await;
    let second = stage.asked(&bob, &[("k", ROOTS), ("l", ROOTS)], Some(r#""S""#)).await;
    second.questions(2).await;
    assert_eq!(waiting(&stage), 2.0, "calls, not questions");
    is_refused(&stage, &alice, "2").await;
    assert!(stage.metric("mcp_janus_limit_hits_total", &["limits.parked\""]) >= 1.0);
    assert_eq!(waiting(&stage), 2.0);
    // Calls that are not asked anything do not need such a place.
    let (plain, call) = stage.begin_at(&alice, &alice.old.call("ask", "{}").id("3")).await;
    call.completes("done");
    plain.result().await;
    answers(&stage, &alice, &first).await;
    let third = stage.asked(&alice, &[("k", ROOTS)], Some(r#""S""#)).await;
    answers(&stage, &alice, &third).await;
}

#[tokio::test(start_paused = true)]
async fn inv5_parked_per_principal() {
    let stage = Stage::bounded("[limits]\nparked_per_principal = 1\n", "").await;
    let (alice, other) = (stage.user_as("alice").await, stage.user_as("alice").await);
    let bob = stage.user_as("bob").await;
    let first = stage.asked(&alice, &[("k", ROOTS)], Some(r#""S""#)).await;
    first.wait(1).await;
    // Another session of the same caller.
    is_refused(&stage, &other, "2").await;
    assert!(stage.metric("mcp_janus_limit_hits_total", &["limits.parked_per_principal"]) >= 1.0);
    let of_bob = stage.asked(&bob, &[("k", ROOTS)], Some(r#""S""#)).await;
    answers(&stage, &bob, &of_bob).await;
    answers(&stage, &alice, &first).await;
}

/// A call that is asked again has its place, and every way out of the wait gives it back.
#[tokio::test(start_paused = true)]
async fn inv5_places_are_given_back() {
    let stage = Stage::bounded("[limits]\nparked = 1\n", "timeouts.answer = \"10s\"").await;
    let user = stage.user_with(LATEST, everything(LATEST)).await;
    for end in 0..6 {
        let stream = stage.asked(&user, &[("k", ROOTS)], Some(r#""S""#)).await;
        let question = stream.question().await;
        assert_eq!(waiting(&stage), 1.0, "{end}");
        match end {
            0 => {
                user.answer(&question, ROOTED).await;
                let n = stage.calls.all().len();
                stage.calls.wait(n).await;
                pass(100).await;
                let again = stage.calls.all().pop().unwrap();
                again.asks(&[("k", FORM)], Some(r#""S""#));
                user.answer(&stream.question().await, crate::stage::ACCEPT).await;
                pass(100).await;
                stage.calls.all().pop().unwrap().completes("done");
                stream.result().await;
            }
            1 => user.refuse(&question, -1).await,
            2 => user.cancel("1").await,
            3 => {
                stream.tool_error().await;
            }
            4 => {
                stream.drop_connection().await;
                pass(20_000).await;
            }
            _ => user.answer(&question, r#"{"x":1}"#).await,
        }
        pass(2000).await;
        assert_eq!(waiting(&stage), 0.0, "{end}");
    }
    let other = stage.latest().await;
    let stream = stage.asked(&other, &[("k", ROOTS)], Some(r#""S""#)).await;
    stream.question().await;
    other.delete().await;
    pass(2000).await;
    assert_eq!(waiting(&stage), 0.0, "with its session");
    user.delete().await;
    pass(20_000).await;
    assert_eq!(standing(&stage.proxy.metrics()).iter().filter(|line| line.contains("parked")).count(), 0);
}
