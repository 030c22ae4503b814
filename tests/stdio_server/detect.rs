//! A15.1, C38, D105: what each answer of a program to the probe says about it, and what its processes are sent in which order.
//! Programs that are slow are in `detect_slow`.

use std::sync::Arc;

use tokio::time::Instant;

use crate::stage::{HANDSHAKE, Stage, UNKNOWN, legacy_server, scripted, words};
use crate::support::{Calls, Child, LegacyServer, ModernServer, Net, Proxy, Reply, Seen, call, list, rpc};

const LEGACY_DISCOVER: &str = r#"{"resultType":"complete","supportedVersions":["2025-11-25","2025-06-18"],"capabilities":{},"ttlMs":0,"cacheScope":"private"}"#;

/// A legacy program that answers the probe with this line, in which `ID` stands for its id; with nothing, if it is empty.
fn probed(line: &'static str) -> LegacyServer {
    LegacyServer::new().on("server/discover", move |seen: Arc<Seen>, reply: Reply| async move {
        let line = line.replace("DISCOVER", LEGACY_DISCOVER).replace("ID", &seen.id());
        match line.as_str() {
            "" => reply.never().await,
            line => reply.body(200, "application/json", line).await,
        }
    })
}

/// By name: the line, and whether it leaves no doubt, so that nothing more is waited for.
const LEGACY: [(&str, &str, bool); 16] = [
    ("-32601", r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"m"}}"#, true),
    ("-32602", r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32602,"message":"m"}}"#, true),
    ("-32600", r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32600,"message":"m"}}"#, true),
    ("-32000", r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"m"}}"#, true),
    ("-32603", r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32603,"message":"m"}}"#, true),
    ("-32001", r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32001,"message":"m"}}"#, true),
    ("code 0", r#"{"jsonrpc":"2.0","id":ID,"error":{"code":0,"message":"m"}}"#, true),
    ("-32022 without data", r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32022,"message":"m"}}"#, true),
    (
        "-32022 with legacy versions only",
        r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32022,"message":"m","data":{"supported":["2025-11-25"],"requested":"2026-07-28"}}}"#,
        true,
    ),
    ("a discover result without overlap", r#"{"jsonrpc":"2.0","id":ID,"result":DISCOVER}"#, true),
    ("an empty result", r#"{"jsonrpc":"2.0","id":ID,"result":{}}"#, true),
    ("a null result", r#"{"jsonrpc":"2.0","id":ID,"result":null}"#, true),
    ("error with id null", r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"m"}}"#, false),
    ("a result for another id", r#"{"jsonrpc":"2.0","id":"another","result":{}}"#, false),
    ("nothing", "", false),
    ("a log line only", "[INFO] unknown method server/discover", false),
];

#[tokio::test(start_paused = true)]
async fn c38_every_other_answer_is_legacy() {
    for (name, line, at_once) in LEGACY {
        let stage = Stage::canned(probed(line), "").await;
        let began = Instant::now();
        let done = stage.send(&call("echo", "{}")).await;
        assert_eq!(done.status, 200, "{name}: {}", done.raw);
        let took = began.elapsed().as_millis();
        assert!(took < if at_once { 1_000 } else { 11_000 }, "{name}: {took} ms");
        stage.send(&list("tools/list")).await.result();
        let expected = [&HANDSHAKE[..], &["tools/call", "tools/list"]].concat();
        assert_eq!(stage.child(1).await.briefs(), expected, "{name}");
        assert_eq!(stage.children().len(), 1, "{name}: the process that was probed is the one that is used");
    }
}

/// `timeouts.probe` bounds how long silence is waited for.
#[tokio::test(start_paused = true)]
async fn c38_silence_is_waited_for_as_long_as_is_set() {
    let stage = Stage::canned(probed(""), "[upstream.up.timeouts]\nprobe = \"2s\"\n").await;
    let began = Instant::now();
    stage.send(&call("echo", "{}")).await.result();
    let took = began.elapsed().as_millis();
    assert!((1_900..3_000).contains(&took), "{took} ms");
}

#[tokio::test(start_paused = true)]
async fn c38_a_program_that_exits_on_the_probe_is_started_again_without_one() {
    for code in [1, 0] {
        let stage = Stage::legacy("").await;
        // As rmcp: whatever comes before `initialize` ends it.
        let serve = stage.behind();
        stage.net.programs().put("server", move |mut child: Child| {
            let (serve, running) = (serve.clone(), child.running());
            async move {
                if running.n > 1 {
                    return serve(child).await;
                }
                child.line().await;
                code
            }
        });
        stage.finished(&call("ask", "{}"), "done").await;
        assert_eq!(stage.child(1).await.briefs(), ["server/discover"], "exit {code}");
        let second = ["initialize", "notifications/initialized", "tools/call"];
        assert_eq!(stage.child(2).await.briefs(), second, "exit {code}");
        assert_eq!(stage.children().len(), 2, "exit {code}");
        assert!(stage.child(1).await.is_reaped(), "exit {code}");
        // Nor does another one's process get a probe.
        stage.finished(&call("ask", "{}").bearer("b"), "done").await;
        assert_eq!(stage.child(3).await.briefs(), second, "exit {code}");
    }
}

/// A log line before the exit, as most programs have it.
#[tokio::test(start_paused = true)]
async fn c38_a_program_that_says_why_it_exits_is_legacy_all_the_same() {
    let stage = Stage::legacy("").await;
    let serve = stage.behind();
    stage.net.programs().put("server", move |mut child: Child| {
        let (serve, running) = (serve.clone(), child.running());
        async move {
            if running.n > 1 {
                return serve(child).await;
            }
            child.line().await;
            child.say("Error: expected initialize request");
            running.complain(b"thread panicked\n");
            101
        }
    });
    stage.finished(&call("ask", "{}"), "done").await;
    assert_eq!(stage.children().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn c38_a_modern_program_is_never_sent_initialize() {
    let usable = r#"{"code":-32022,"message":"m","data":{"supported":["2026-07-28","2025-11-25"],"requested":"2026-07-28"}}"#;
    for (name, probe) in [("a discover result", None), ("-32022 with a modern version", Some(usable))] {
        let (net, calls) = (Net::new(), Calls::new());
        let mut server = calls.of_modern(ModernServer::full());
        if let Some(error) = probe {
            server = server.fails("server/discover", 200, error);
        }
        let up = server.start_program(&net, "server");
        let stage = Stage::before(net, up, calls, "").await;
        for n in 0..2 {
            let begun = stage.begin(&call("echo", "{}").id(&n.to_string())).await;
            begun.call.completes("done");
            assert_eq!(begun.done().await.result()["content"][0]["text"], "done", "{name}");
        }
        let briefs = stage.child(1).await.briefs();
        assert_eq!(briefs[0], "server/discover", "{name}: {briefs:?}");
        let probes = briefs.iter().filter(|brief| *brief == "server/discover").count();
        assert!(probes <= 2, "{name}: probed again once at most: {briefs:?}");
        assert!(!briefs.contains(&"initialize".to_owned()), "{name}: {briefs:?}");
        assert_eq!(stage.children().len(), 1, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn c38_a_program_of_later_versions_only_is_refused() {
    let error =
        r#"{"code":-32022,"message":"m","data":{"supported":["2099-01-01"],"requested":"2026-07-28"}}"#;
    let net = Net::new();
    let up = ModernServer::new().fails("server/discover", 200, error).start_program(&net, "server");
    let stage = Stage::before(net, up, Calls::new(), "").await;
    assert_eq!(stage.send(&call("echo", "{}").id("5")).await.code(), -32603);
    assert_eq!((stage.up.posts("initialize").len(), stage.up.posts("tools/call").len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn c38_the_error_names_both_phases() {
    let stage = scripted("", |mut child: Child| async move {
        child.line().await;
        1
    })
    .await;
    let done = stage.send(&call("echo", "{}").id("5")).await;
    done.is_error(502, -32603);
    let words = words(&done);
    assert!(words.contains("server/discover") && words.contains("initialize"), "{words}");
    let briefs: Vec<_> = stage.children().iter().map(|child| child.briefs()).collect();
    assert_eq!(briefs, [["server/discover"], ["initialize"]]);
}

/// The program refuses the handshake in so many words: no verdict, and the words are told.
#[tokio::test(start_paused = true)]
async fn c38_legacy_is_believed_once_initialize_has_succeeded() {
    let server = legacy_server().error("initialize", r#"{"code":-32603,"message":"no licence"}"#);
    let stage = Stage::canned(server, "").await;
    let done = stage.send(&call("echo", "{}").id("5")).await;
    assert_eq!(done.code(), -32603, "{}", done.raw);
    let words = words(&done);
    assert!(words.contains("server/discover") && words.contains("no licence"), "{words}");
    // It was mended: found out anew.
    ModernServer::new().start_program(&stage.net, "server");
    for _ in 0..20 {
        if stage.send(&list("tools/list")).await.status == 200 {
            return;
        }
        crate::support::pass(5_000).await;
    }
    panic!("the program is not found out anew");
}

#[tokio::test(start_paused = true)]
async fn d105_one_probe_for_all() {
    let slow = LegacyServer::new().on("server/discover", |seen, reply: Reply| async move {
        crate::support::pass(2_000).await;
        reply.error(200, &seen, UNKNOWN).await;
    });
    let stage = Stage::canned(slow, "").await;
    let calls: Vec<_> = (0..20).map(|n| stage.run(&call("echo", "{}").id(&n.to_string()))).collect();
    for call in calls {
        call.await.unwrap().result();
    }
    assert_eq!(stage.children().len(), 1, "one process for one caller");
    let others: Vec<_> = (0..5).map(|n| stage.run(&call("echo", "{}").bearer(&n.to_string()))).collect();
    for other in others {
        other.await.unwrap().result();
    }
    assert_eq!(stage.children().len(), 6, "one for each other caller");
    assert_eq!(stage.up.posts("server/discover").len(), 1);
    assert_eq!(stage.up.posts("tools/call").len(), 25);
}

/// Several callers at once, before anything is known.
#[tokio::test(start_paused = true)]
async fn d105_one_probe_for_several_callers() {
    let stage = Stage::canned(legacy_server(), "").await;
    let calls: Vec<_> = (0..5).map(|n| stage.run(&call("echo", "{}").bearer(&n.to_string()))).collect();
    for call in calls {
        call.await.unwrap().result();
    }
    assert_eq!(stage.up.posts("server/discover").len(), 1);
    assert_eq!(stage.up.posts("initialize").len(), 5);
    assert_eq!(stage.alive(), 5);
}

#[tokio::test(start_paused = true)]
async fn d105_a_set_era_needs_no_probe() {
    let stage = Stage::canned(legacy_server(), "era = \"legacy\"\n").await;
    stage.send(&call("echo", "{}")).await.result();
    assert_eq!(stage.up.briefs(), ["initialize", "notifications/initialized", "tools/call"]);
    let stage = Stage::modern("era = \"modern\"\n").await;
    stage.send(&list("tools/list")).await.result();
    assert_eq!(stage.up.briefs(), ["tools/list"]);
}

/// The first to come is a legacy client: the probed process is its own.
#[tokio::test(start_paused = true)]
async fn d105_found_out_for_a_legacy_client() {
    let stage = Stage::canned(legacy_server(), "").await;
    let user = stage.user().await;
    user.list("tools/list").await;
    assert_eq!(stage.child(1).await.briefs(), [&HANDSHAKE[..], &["tools/list"]].concat());
    assert_eq!(stage.children().len(), 1);
    // Two more at once.
    let (one, two) = tokio::join!(stage.user(), stage.user());
    one.list("tools/list").await;
    two.list("tools/list").await;
    assert_eq!(stage.alive(), 3);
    assert_eq!(stage.up.posts("server/discover").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn c38_exits_on_the_probe_of_a_legacy_client() {
    let stage = Stage::legacy("").await;
    let serve = stage.behind();
    stage.net.programs().put("server", move |mut child: Child| {
        let (serve, running) = (serve.clone(), child.running());
        async move {
            if running.n > 1 {
                return serve(child).await;
            }
            child.line().await;
            1
        }
    });
    stage.user().await.list("tools/list").await;
    assert_eq!(stage.child(1).await.briefs(), ["server/discover"]);
    let second = ["initialize", "notifications/initialized", "tools/list"];
    assert_eq!(stage.child(2).await.briefs(), second);
}

/// B13: the same command is the same server, whatever it is called; with other arguments it is another one.
#[tokio::test(start_paused = true)]
async fn b13_the_verdict_is_the_commands() {
    let table = |name: &str, more: &str| {
        format!("[upstream.{name}]\ncommand = \"server\"\npath = \"/{name}\"\n{more}\n")
    };
    let toml = [table("a", ""), table("b", ""), table("c", "args = [\"--other\"]")].concat();
    let stage = Stage::configured(legacy_server(), &toml).await;
    for (path, probes) in [("/a", 1), ("/b", 1), ("/c", 2), ("/a", 2), ("/c", 2)] {
        stage.send(&list("tools/list").path(path)).await.result();
        assert_eq!(stage.up.posts("server/discover").len(), probes, "{path}");
    }
    let args: Vec<_> = stage.children().iter().map(|child| child.args.clone()).collect();
    assert_eq!(args, [vec![], vec![], vec!["--other".to_owned()]]);
}

/// The verdict outlives the process, and the proxy where there is a file for it.
#[tokio::test(start_paused = true)]
async fn b13_the_verdict_is_kept() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::remove_file(file.path()).unwrap();
    let net = Net::new();
    let up = legacy_server().start_program(&net, "server");
    let toml = format!(
        "era_cache_file = {:?}\n[upstream.up]\ncommand = \"server\"\nenv = {{ TOKEN = \"hidden-word\" }}\n",
        file.path()
    );
    for _ in 0..2 {
        let proxy = Proxy::configured(&net, &toml).await;
        proxy.send(&list("tools/list")).await.result();
        net.programs().alive().iter().for_each(|child| child.dies());
        proxy.send(&list("tools/list")).await.result();
        crate::support::pass(60_000).await;
    }
    assert_eq!(up.posts("server/discover").len(), 1);
    let kept = std::fs::read_to_string(file.path()).unwrap();
    assert!(kept.contains("server") && !kept.contains("hidden-word"), "{kept}");
}

/// What the probe says is of the proxy, not of the client.
#[tokio::test(start_paused = true)]
async fn d105_the_probe_says_nothing_of_the_client() {
    let stage = Stage::canned(legacy_server(), "").await;
    stage.send(&call("secret-tool", "{}").bearer("hidden-word")).await.result();
    let lines = stage.child(1).await.lines();
    assert!(!lines[0].contains("secret-tool"), "{}", lines[0]);
    assert!(lines.iter().all(|line| !line.contains("hidden-word")), "a token has no place on a pipe");
    assert_eq!(rpc::method(lines[0].as_bytes()).as_deref(), Some("server/discover"));
}

/// D26: codes of 2026-07-28 that a legacy program's tools have for something else say nothing of its era, and nothing is run
/// again for them.
#[tokio::test(start_paused = true)]
async fn d26_foreign_codes_of_a_legacy_program() {
    for code in [-32020, -32021, -32022, -32601, -32002] {
        for data in ["", r#","data":{"supported":["2026-07-28"],"requested":"x"}"#] {
            let stage = Stage::legacy("").await;
            let begun = stage.begin(&call("ask", "{}")).await;
            begun.call.error(&format!(r#"{{"code":{code},"message":"m"{data}}}"#));
            let done = begun.done().await;
            assert!(done.message.get("error").is_some(), "{code}: {}", done.raw);
            stage.finished(&call("ask", "{}"), "done").await;
            assert_eq!(stage.calls.all().len(), 2, "{code}: run once each");
            assert_eq!(stage.up.posts("server/discover").len(), 1, "{code}{data}: no doubt about the era");
            assert_eq!(stage.children().len(), 1, "{code}{data}");
        }
    }
}
