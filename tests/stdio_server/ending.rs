//! Processes that are on their way out, and the places that they leave (C55, C06, C10).

use tokio::time::Instant;

use crate::stage::{Stage, done, ends_with, legacy_server, plain};
use crate::support::{Child, End, Old, list, pass};

/// A program that needs so long to end once its input has.
fn lingers(stage: &Stage, millis: u64) {
    let serve = stage.behind();
    stage.net.programs().put("server", move |child: Child| {
        let serve = serve.clone();
        async move {
            serve(child).await;
            pass(millis).await;
            0
        }
    });
}

/// While the idle process of a caller ends, the caller's next request finds another one.
#[tokio::test(start_paused = true)]
async fn a_request_while_the_idle_process_ends() {
    for modern in [false, true] {
        let lines = "[upstream.up.session]\nidle = \"60s\"\n";
        let stage = if modern { Stage::modern(lines).await } else { Stage::legacy(lines).await };
        lingers(&stage, 1_500);
        let finish = |call: &crate::support::Call| {
            if modern { call.completes("done") } else { call.finish("done") }
        };
        let begun = stage.begin(&plain(1)).await;
        finish(&begun.call);
        ends_with(&begun.done().await, "done");
        let first = stage.child(1).await;
        while first.input_ended().is_none() {
            pass(100).await;
        }
        for n in 2..5 {
            let began = Instant::now();
            let client = stage.run(&plain(n));
            finish(stage.calls.wait(n).await.as_ref());
            ends_with(&done(client).await, "done");
            assert!(began.elapsed().as_millis() < 500, "modern: {modern}: {:?}", began.elapsed());
        }
        assert_eq!(stage.children().len(), 2, "modern: {modern}");
        assert!(first.terminations().is_empty());
    }
}

/// It closes its output and lingers: it is over for everybody at once.
#[tokio::test(start_paused = true)]
async fn a_request_while_a_process_without_an_output_lingers() {
    for modern in [false, true] {
        let stage = if modern { Stage::modern("").await } else { Stage::legacy("").await };
        lingers(&stage, 1_500);
        let finish = |call: &crate::support::Call| {
            if modern { call.completes("done") } else { call.finish("done") }
        };
        let begun = stage.begin(&plain(1)).await;
        finish(&begun.call);
        ends_with(&begun.done().await, "done");
        stage.child(1).await.close_output();
        pass(300).await;
        assert!(stage.child(1).await.is_alive());
        let client = stage.run(&plain(2));
        finish(stage.calls.wait(2).await.as_ref());
        ends_with(&done(client).await, "done");
    }
}

/// One place: whoever ends a session and begins another one waits for the place that becomes free.
#[tokio::test(start_paused = true)]
async fn a_place_that_becomes_free_is_waited_for() {
    for era in ["", "era = \"legacy\"\n"] {
        let lines = format!("{era}[upstream.up.limits]\nmax_processes = 1\n");
        let stage = Stage::canned(legacy_server(), &lines).await;
        lingers(&stage, 500);
        for n in 1..5 {
            let user = stage.user().await;
            user.list("tools/list").await;
            assert_eq!(stage.children().len(), n, "{era}");
            assert!((200..300).contains(&user.delete().await.status), "{era}");
        }
        assert!(stage.children().iter().all(|child| child.terminations().is_empty()));
    }
}

/// Where a place is about to become free, nobody else's session is ended for one.
#[tokio::test(start_paused = true)]
async fn nobody_is_ended_for_a_place_that_becomes_free() {
    let stage = Stage::canned(legacy_server(), "[upstream.up.limits]\nmax_processes = 2\n").await;
    lingers(&stage, 500);
    let (quiet, other) = (stage.user().await, stage.user().await);
    pass(10_000).await;
    other.delete().await;
    let newcomer = stage.user().await;
    newcomer.list("tools/list").await;
    assert!(quiet.lives().await, "its session has nothing to do with it");
}

/// As many newcomers as there are sessions that nobody uses: each gets the place of another one.
#[tokio::test(start_paused = true)]
async fn each_newcomer_gets_a_place_of_its_own() {
    let stage = Stage::canned(legacy_server(), "[upstream.up.limits]\nmax_processes = 4\n").await;
    lingers(&stage, 1_000);
    for _ in 0..4 {
        stage.user().await;
    }
    pass(10_000).await;
    let initialize = Old::initialize("2025-11-25");
    let began = Instant::now();
    let all: Vec<_> = (0..4).map(|_| stage.run(&initialize)).collect();
    for client in all {
        done(client).await.result();
    }
    assert!(began.elapsed().as_millis() < 3_000, "{:?}", began.elapsed());
    assert_eq!(stage.alive(), 4);
}

/// More newcomers than that: those who get one do at once, the others are told in time.
#[tokio::test(start_paused = true)]
async fn newcomers_without_a_place_are_told() {
    let stage = Stage::legacy("[upstream.up.limits]\nmax_processes = 3\n").await;
    lingers(&stage, 500);
    let busy = stage.begin(&plain(1).bearer("busy")).await;
    for token in ["a", "b"] {
        stage.send(&list("tools/list").bearer(token)).await.result();
    }
    pass(5_000).await;
    let all: Vec<_> = (0..6).map(|n| stage.run(&plain(10 + n).bearer(&format!("new {n}")))).collect();
    let calls = stage.calls.clone();
    tokio::spawn(async move {
        for n in 2.. {
            calls.wait(n).await.finish("done");
        }
    });
    let mut served = 0;
    for client in all {
        let done = done(client).await;
        assert!([200, 503].contains(&done.status), "{} {}", done.status, done.raw);
        served += usize::from(done.status == 200 && done.message.get("result").is_some());
        assert!(stage.alive() <= 3);
    }
    assert!(served >= 2, "{served}");
    assert!(busy.call.is_open(), "who is in work makes no room");
    busy.call.finish("done");
    ends_with(&busy.done().await, "done");
}

/// A call that has run for longer than `session.idle` was use to its end.
#[tokio::test(start_paused = true)]
async fn a_long_call_is_no_idleness() {
    for modern in [false, true] {
        let lines = "[upstream.up.session]\nidle = \"60s\"\n";
        let stage = if modern { Stage::modern(lines).await } else { Stage::legacy(lines).await };
        let begun = stage.begin(&plain(1)).await;
        pass(300_000).await;
        if modern {
            begun.call.completes("done")
        } else {
            begun.call.finish("done")
        }
        ends_with(&begun.done().await, "done");
        pass(50_000).await;
        assert_eq!(stage.alive(), 1, "modern: {modern}");
        stage.send(&list("tools/list")).await.result();
        assert_eq!(stage.children().len(), 1, "modern: {modern}");
    }
    let stage = Stage::legacy("[upstream.up.session]\nidle = \"60s\"\n").await;
    let user = stage.user().await;
    let (opening, call) = stage.start(&user, &user.old.call("t", "{}")).await;
    pass(300_000).await;
    call.finish("done");
    crate::stage::opened(opening).await.result().await;
    pass(50_000).await;
    assert!(user.lives().await);
}

/// Nor is a stream that is taken up again a moment after it broke off.
#[tokio::test(start_paused = true)]
async fn a_long_stream_is_no_idleness() {
    let stage = Stage::canned(legacy_server(), "[upstream.up.session]\nidle = \"60s\"\n").await;
    let user = stage.user().await;
    let mut stream = user.get().await;
    for _ in 0..20 {
        pass(300_000).await;
        stream.drop_connection().await;
        pass(5_000).await;
        stream = user.get().await;
    }
    assert!(user.lives().await);
    assert_eq!(stage.children().len(), 1);
    user.delete().await;
    assert_eq!(stream.end().await, End::Clean);
}

/// A session that the program says it does not know goes with its process, and is replaced by one.
#[tokio::test(start_paused = true)]
async fn a_session_that_is_given_up_leaves_no_process() {
    for lines in ["", "[upstream.up.session]\nscope = \"request\"\n"] {
        let stage = Stage::legacy(lines).await;
        for n in 0..3 {
            let client = stage.run(&plain(n));
            let call = stage.calls.wait(2 * n + 1).await;
            call.error(r#"{"code":-32000,"message":"Bad Request: Server not initialized"}"#);
            // It may be sent again, since it did not run, or be answered so.
            let calls = stage.calls.clone();
            let again = tokio::spawn(async move { calls.wait(2 * n + 2).await.finish("again") });
            let done = done(client).await;
            assert!(done.message.get("result").is_some() || done.code() != 0, "{}", done.raw);
            again.abort();
            if stage.calls.all().len() == 2 * n + 1 {
                return;
            }
        }
        pass(30_000).await;
        assert!(stage.alive() <= 1, "{lines}: {} processes", stage.alive());
    }
}
