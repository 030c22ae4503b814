//! A14.6, B5 (pool), C06: which process a modern client's request goes to, how many there are, and when they end.

use tokio::time::Instant;

use crate::stage::{Stage, done, ends_with, legacy_server, plain, words};
use crate::support::{ModernServer, Net, call, json, list, pass};

#[tokio::test(start_paused = true)]
async fn one_process_for_one_key() {
    let stage = Stage::legacy("").await;
    for n in 0..5 {
        stage.finished(&plain(n), "done").await;
    }
    assert_eq!(stage.children().len(), 1);
    for (n, ask) in [(2, plain(6).bearer("a")), (3, plain(7).bearer("b")), (3, plain(8).bearer("a"))] {
        stage.finished(&ask, "done").await;
        assert_eq!(stage.children().len(), n);
    }
    // What a client can be asked is said at `initialize`, so other capabilities are another session.
    stage.finished(&plain(9).bearer("a").caps(r#"{"roots":{}}"#), "done").await;
    assert_eq!(stage.children().len(), 4);
    let initialize = stage.child(4).await.wait("initialize", 1).await;
    assert_eq!(initialize["params"]["capabilities"]["roots"], json!({}));
    // Nothing of one principal is told to the process of another one.
    let marks: Vec<Vec<_>> = stage
        .children()
        .iter()
        .map(|child| {
            let calls = child.messages().into_iter().filter(|message| message["method"] == "tools/call");
            calls.map(|message| message["params"]["arguments"]["n"].as_i64().unwrap()).collect()
        })
        .collect();
    assert_eq!(marks, [vec![0, 1, 2, 3, 4], vec![6, 8], vec![7], vec![9]]);
}

#[tokio::test(start_paused = true)]
async fn the_affinity_splits_further() {
    let stage = Stage::legacy("[upstream.up.session]\naffinity = \"header:X-Tab\"\n").await;
    for (tab, n) in [("1", 1), ("2", 2), ("1", 2), ("2", 2)] {
        stage.finished(&plain(0).header("X-Tab", tab), "done").await;
        assert_eq!(stage.children().len(), n);
    }
}

/// `session.scope = "request"`: a process for each call, which ends with it.
#[tokio::test(start_paused = true)]
async fn a_process_for_each_call() {
    let stage = Stage::legacy("[upstream.up.session]\nscope = \"request\"\n").await;
    let one = stage.begin(&plain(1)).await;
    let two = stage.begin(&plain(2)).await;
    assert_eq!(stage.alive(), 2);
    one.call.finish("one");
    ends_with(&one.done().await, "one");
    pass(3_000).await;
    assert_eq!(stage.alive(), 1);
    two.call.finish("two");
    ends_with(&two.done().await, "two");
    pass(3_000).await;
    assert_eq!(stage.alive(), 0);
    assert!(stage.children().iter().all(|child| child.is_reaped()));
}

#[tokio::test(start_paused = true)]
async fn an_idle_process_is_ended_and_started_again_without_a_probe() {
    let stage = Stage::legacy("[upstream.up.session]\nidle = \"60s\"\n").await;
    let long = stage.begin(&plain(1)).await;
    pass(300_000).await;
    assert_eq!(stage.alive(), 1, "a call is in it");
    long.call.finish("done");
    ends_with(&long.done().await, "done");
    let since = Instant::now();
    let child = stage.child(1).await;
    child.ended().await;
    let took = since.elapsed().as_secs();
    assert!((59..=125).contains(&took), "{took} s");
    assert!(child.input_ended().is_some() && child.terminations().is_empty(), "it was asked politely");
    child.reaped().await;
    stage.finished(&plain(2), "done").await;
    assert_eq!(stage.child(2).await.briefs(), ["initialize", "notifications/initialized", "tools/call"]);
    stage.nothing_is_left().await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_modern_process_is_ended_too() {
    let stage = Stage::modern("[upstream.up.session]\nidle = \"60s\"\n").await;
    stage.send(&list("tools/list")).await.result();
    stage.child(1).await.ended().await;
    stage.send(&list("tools/list")).await.result();
    assert_eq!(stage.child(2).await.briefs(), ["tools/list"], "no second probe");
    stage.nothing_is_left().await;
}

/// C55: the number of processes does not grow with that of requests.
#[tokio::test(start_paused = true)]
async fn c55_two_hundred_short_requests_need_one_process() {
    let stage = Stage::canned(legacy_server(), "").await;
    for n in 0..200 {
        stage.send(&call("echo", "{}").id(&n.to_string())).await.result();
    }
    assert_eq!(stage.children().len(), 1);
    let net = Net::new();
    let up = ModernServer::new().start_program(&net, "server");
    let stage = Stage::before(net, up, crate::support::Calls::new(), "").await;
    for n in 0..200 {
        stage.send(&call("echo", "{}").id(&n.to_string())).await.result();
    }
    assert_eq!(stage.children().len(), 1);
}

/// `limits.max_processes`: whoever comes then is told so at once; nobody else is bothered.
#[tokio::test(start_paused = true)]
async fn no_more_processes_than_are_allowed() {
    let stage = Stage::legacy("[upstream.up.limits]\nmax_processes = 2\n").await;
    let one = stage.begin(&plain(1).bearer("a")).await;
    let two = stage.begin(&plain(2).bearer("b")).await;
    let began = Instant::now();
    let refused = stage.send(&plain(3).bearer("c").id("7")).await;
    refused.is_error(503, -32603);
    assert_eq!(refused.message["id"], 7);
    assert!(words(&refused).contains("processes"), "{}", refused.raw);
    assert!(began.elapsed().as_secs() <= 3, "{:?}", began.elapsed());
    assert_eq!(stage.children().len(), 2);
    // Those who have one go on.
    stage.send(&list("tools/list").bearer("a")).await.result();
    one.call.finish("one");
    ends_with(&one.done().await, "one");
    two.call.finish("two");
    ends_with(&two.done().await, "two");
    // When one has ended there is room again.
    stage.child(1).await.dies();
    pass(100).await;
    stage.finished(&plain(4).bearer("c"), "done").await;
    assert!(stage.alive() <= 2);
}

#[tokio::test(start_paused = true)]
async fn no_more_processes_than_are_allowed_for_modern_programs() {
    let stage = Stage::modern("[upstream.up.limits]\nmax_processes = 2\n").await;
    let one = stage.begin(&plain(1).bearer("a")).await;
    let two = stage.begin(&plain(2).bearer("b")).await;
    stage.send(&plain(3).bearer("c")).await.is_error(503, -32603);
    assert_eq!(stage.children().len(), 2);
    one.call.completes("one");
    ends_with(&one.done().await, "one");
    two.call.completes("two");
    ends_with(&two.done().await, "two");
    stage.child(1).await.dies();
    pass(100).await;
    let begun = stage.begin(&plain(4).bearer("c")).await;
    begun.call.completes("done");
    ends_with(&begun.done().await, "done");
    assert!(stage.alive() <= 2);
}

/// Those who come at once do not get past the bound together.
#[tokio::test(start_paused = true)]
async fn no_more_processes_than_are_allowed_at_once() {
    let stage = Stage::canned(legacy_server(), "[upstream.up.limits]\nmax_processes = 3\n").await;
    stage.send(&list("tools/list").bearer("0")).await.result();
    let all: Vec<_> = (1..20).map(|n| stage.run(&list("tools/list").bearer(&n.to_string()))).collect();
    let mut served = 0;
    for client in all {
        let done = done(client).await;
        assert!([200, 503].contains(&done.status), "{} {}", done.status, done.raw);
        served += usize::from(done.status == 200);
        assert!(stage.alive() <= 3);
    }
    assert!(served >= 2, "{served}");
}

/// C57: what a program is started with.
#[tokio::test(start_paused = true)]
async fn c57_arguments_and_environment_are_passed_as_they_are() {
    let lines = "args = [\"-y\", \"a b & c\", \"$HOME\", \"\"]\nenv = { EMPTY = \"\", PAIR = \"a=b\" }\ncwd = \"/tmp\"\n";
    let stage = Stage::canned(legacy_server(), lines).await;
    stage.send(&list("tools/list")).await.result();
    let child = stage.child(1).await;
    assert_eq!(child.args, ["-y", "a b & c", "$HOME", ""]);
    assert_eq!(child.cwd.as_deref(), Some(std::path::Path::new("/tmp")));
    let has = |name: &str, value: &str| child.env.contains(&(name.to_owned(), value.to_owned()));
    assert!(has("EMPTY", "") && has("PAIR", "a=b"), "{:?}", child.env);
    let cargo = child.env.iter().find(|(name, _)| name.starts_with("CARGO"));
    assert_eq!(cargo, None, "no more of this process's environment than every program needs");
    assert!(child.env.iter().any(|(name, _)| name == "PATH"), "{:?}", child.env);
}
