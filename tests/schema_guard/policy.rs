//! What becomes of bad tools: left out and refused, or passed on with a word; who is told, and what like pairs see to the byte.

use crate::canary::Canary;
use crate::stage::{BAD_AT, Cell, FINDINGS, PAIRS, REFUSED, Stage, Tools, bad, good, metric, toml, tool};
use crate::support::log::Log;
use crate::support::{Era, LegacyServer, ModernServer, Net, Old, Proxy, Reply, call, list, rpc};

#[tokio::test(start_paused = true)]
async fn drop_is_what_comes_without_a_word() {
    for schema in ["", "policy = \"drop\""] {
        for pair in PAIRS {
            let stage = Stage::set(Cell::http(pair), &format!("{},{}", bad("out"), good("g0")), schema).await;
            assert_eq!(stage.listed().await.names(), ["g0"], "{pair:?}");
            let words = stage.refused("out").await;
            assert!(words.contains(BAD_AT), "it names the place: {words}");
            assert!(words.to_lowercase().contains("reference"), "it names what is wrong: {words}");
            assert_eq!(stage.metric(REFUSED, &["upstream=\"up\""]), 1.0, "{pair:?}");
            assert_eq!(
                stage.metric(FINDINGS, &["upstream=\"up\"", "kind=\"external_ref\""]),
                1.0,
                "{pair:?}"
            );
            stage.passes("g0", "{}").await;
            assert_eq!(stage.metric(REFUSED, &[]), 1.0, "{pair:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn warn_passes_it_logged_and_counted() {
    let log = Log::open();
    for pair in PAIRS {
        let own = [bad("out"), good("g0"), tool("circle", r##"{"type":"object","$ref":"#"}"##)];
        let before = log.with(&["WARN", "out", BAD_AT]).len();
        let stage = Stage::set(Cell::http(pair), &own.join(","), "policy = \"warn\"").await;
        for _ in 0..3 {
            assert_eq!(stage.listed().await.tools, own, "{pair:?}");
        }
        for name in ["out", "g0", "circle"] {
            stage.passes(name, "{}").await;
        }
        assert_eq!((stage.found("external_ref"), stage.found("ref_loop")), (1.0, 1.0), "{pair:?}");
        assert_eq!(stage.metric(REFUSED, &[]), 0.0);
        let told = log.with(&["WARN", "out", BAD_AT]).len() - before;
        assert_eq!(told, 1, "once: {pair:?}: {:?}", log.with(&["out"]));
    }
}

/// A tool's name can be written in many ways; it is one tool all the same.
#[tokio::test(start_paused = true)]
async fn a_refusal_is_not_got_around_by_spelling() {
    for pair in PAIRS {
        let stage = Stage::set(Cell::http(pair), &format!("{},{}", bad("out"), good("g0")), "").await;
        stage.listed().await;
        let before = stage.calls();
        for name in [r"\u006fut", r"o\u0075t", r"\u006F\u0075\u0074"] {
            let ask = stage.ask("tools/call").params(&format!(r#""arguments":{{}},"name" : "{name}""#));
            let ask = if pair.0 == Era::Modern { ask.header("Mcp-Name", "out") } else { ask };
            let said = stage.party.answered(&ask).await;
            assert_eq!(said.message["error"]["code"], -32602, "{pair:?} {name}: {}", said.raw);
        }
        // Another name is another tool's.
        stage.call("OUT", "{}").await;
        stage.call("out ", "{}").await;
        assert!(stage.calls() - before <= 2, "{pair:?}");
        stage.refused("out").await;
    }
}

/// Whoever has not asked for the list knows nothing of it, and neither does the proxy: the server's word holds.
#[tokio::test(start_paused = true)]
async fn what_is_not_known_is_the_servers_affair() {
    for pair in PAIRS {
        let stage = Stage::set(Cell::http(pair), &good("g0"), "").await;
        stage.passes("unheard", "{}").await;
        stage.listed().await;
        stage.passes("unlisted", "{}").await;
        assert_eq!(stage.metric(REFUSED, &[]), 0.0, "{pair:?}");
    }
}

/// Notes and mended tools are called like any other.
#[tokio::test(start_paused = true)]
async fn what_is_only_noted_is_called() {
    for pair in PAIRS {
        let own = format!(
            "{},{}",
            tool("mended", "{}"),
            tool("noted", r#"{"$schema":"https://acme.test/d","type":"object"}"#)
        );
        let stage = Stage::set(Cell::http(pair), &own, "").await;
        assert_eq!(stage.listed().await.names(), ["mended", "noted"], "{pair:?}");
        stage.passes("mended", "{}").await;
        stage.passes("noted", "{}").await;
    }
}

const MODERN_RESULT: &str = r#"{ "x-own":[1.50, 1e400] ,"resultType":"complete","ttlMs":5000,"cacheScope":"public","tools" :[ {TOOLS} ] ,"nextCursor":"\u0061\/","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"new","version":"8"},"k":-0}}"#;
const LEGACY_RESULT: &str =
    r#"{ "x-own":[1.50, 1e400] ,"tools" :[ {TOOLS} ] ,"nextCursor":"\u0061\/","_meta":{"k":-0} }"#;

/// Between like pairs a list in which nothing is bad passes to the byte, and of one with a bad tool everything else does.
#[tokio::test(start_paused = true)]
async fn like_pairs_get_the_rest_to_the_byte() {
    let own = [good("g0"), good("g1"), good("g2")];
    let with_bad = [own[0].clone(), bad("out"), own[1].clone(), own[2].clone()].join(" ,\t");
    for (tools, touched) in [(own.join(" , "), false), (with_bad, true)] {
        let modern_result = MODERN_RESULT.replace("{TOOLS}", &tools);
        let legacy_result = LEGACY_RESULT.replace("{TOOLS}", &tools);
        let net = Net::new();
        ModernServer::full().result("tools/list", &modern_result).start(&net);
        LegacyServer::new().result("tools/list", &legacy_result).start_at(&net, "old.test");
        let proxy = Proxy::configured(
            &net,
            "[upstream.up]\nurl = \"http://up.test/mcp\"\npath = \"/new\"\n[upstream.old]\nurl = \"http://old.test/mcp\"\npath = \"/old\"\n",
        )
        .await;
        let modern_done = proxy.send(&list("tools/list").path("/new").id(r#""\u0031""#)).await;
        let old = open_at(&proxy, "/old").await;
        let legacy_done = proxy.send(&old.ask("tools/list").path("/old").id("7")).await;
        for (done, result, id) in
            [(modern_done, modern_result, r#""\u0031""#), (legacy_done, legacy_result, "7")]
        {
            if !touched {
                assert_eq!(done.raw, rpc::result_message(id, &result));
                continue;
            }
            let (head, tail) = result.split_once(r#""tools" :["#).unwrap();
            let (_, tail) = tail.rsplit_once(" ] ,").unwrap();
            assert!(done.raw.contains(head), "{}", done.raw);
            assert!(done.raw.ends_with(&format!("] ,{tail}}}")), "{}", done.raw);
            assert_eq!(crate::stage::List::of(&done.raw).tools, own);
            if let Some(length) = done.headers.get("content-length") {
                assert_eq!(length, done.body.len().to_string(), "it says its own length");
            }
        }
    }
}

async fn open_at(proxy: &Proxy, path: &str) -> Old {
    let done = proxy.send(&Old::initialize("2025-11-25").path(path)).await;
    let old = Old::answered(&done, None);
    assert_eq!(proxy.send(&old.note("notifications/initialized").path(path)).await.status, 202);
    old
}

/// Upstreams have settings, findings and refusals of their own.
#[tokio::test(start_paused = true)]
async fn each_upstream_has_its_own_policy() {
    let (net, tools) = (Net::new(), Tools::new(&format!("{},{}", bad("out"), good("g0"))));
    let server = || tools.of_modern(ModernServer::full());
    let (one, two) = (server().start_at(&net, "one.test"), server().start_at(&net, "two.test"));
    let toml = "[upstream.one]\nurl = \"http://one.test/mcp\"\npath = \"/one\"\n[upstream.two]\nurl = \"http://two.test/mcp\"\npath = \"/two\"\nschema = { policy = \"warn\" }\n";
    let proxy = Proxy::configured(&net, toml).await;
    for (path, wanted) in [("/one", vec!["g0"]), ("/two", vec!["out", "g0"])] {
        let done = proxy.send(&list("tools/list").path(path)).await;
        assert_eq!(crate::stage::List::of(&done.raw).names(), wanted, "{path}");
    }
    proxy.send(&call("out", "{}").path("/one")).await.is_error(200, -32602);
    proxy.send(&call("out", "{}").path("/two")).await.result();
    assert_eq!((one.posts("tools/call").len(), two.posts("tools/call").len()), (0, 1));
    for name in ["one", "two"] {
        assert_eq!(metric(&proxy, FINDINGS, &[&format!("upstream=\"{name}\""), "external_ref"]), 1.0);
    }
    assert_eq!(metric(&proxy, REFUSED, &["upstream=\"one\""]), 1.0);
    assert_eq!(metric(&proxy, REFUSED, &["upstream=\"two\""]), 0.0);
}

/// Whatever a server answers: an error, a fault on the way and an empty result are not the guard's to change.
#[tokio::test(start_paused = true)]
async fn what_is_no_list_passes() {
    let error = r#"{"code":-32001,"message":"not now","data":{"tools":[1e400]}}"#;
    let canary = Canary::new();
    for (client, server) in PAIRS {
        let (net, cell) = (Net::new(), Cell::http((client, server)));
        match server {
            Era::Modern => {
                let server = ModernServer::full().on("tools/list", move |seen, reply: Reply| async move {
                    reply.error(200, &seen, error).await;
                });
                if client == Era::Modern { server.start(&net) } else { server.start_bridged(&net) }
            }
            Era::Legacy(_) => LegacyServer::new().error("tools/list", error).start(&net),
        };
        let proxy = Proxy::configured(&net, &toml(cell, "", "", "")).await;
        let ask = match client {
            Era::Modern => list("tools/list").id("3"),
            Era::Legacy(_) => Old::latest(&proxy).await.ask("tools/list").id("3"),
        };
        let done = proxy.send(&ask).await;
        assert_eq!(done.code(), -32001, "{:?}: {}", cell, done.raw);
        assert!(done.raw.contains(r#"{"tools":[1e400]}"#), "{}", done.raw);
        canary.is_untouched(&net);
    }
}
