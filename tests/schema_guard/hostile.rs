//! Servers that try to get a list or a form past the guard: by spelling, by saying a thing twice, by place. Whatever comes of it,
//! a client never has what is bad.

use crate::canary::Canary;
use crate::stage::{PAIRS, bad, good, toml};
use crate::support::questions::ALL;
use crate::support::{
    Ask, Calls, Era, Gets, LegacyServer, ModernServer, Net, Old, Proxy, Reply, User, call, list, modern, pass,
};

/// Members of a list that is spelled oddly; `{bad}` and `{good}` are tools.
const LISTS: [&str; 10] = [
    r#""tools":{"0":{bad},"length":1}"#,
    r#""to\u006fls":[{bad},{good}]"#,
    r#""\u0074\u006F\u006f\u006c\u0073" : [ {bad} ]"#,
    r#""tools":[{good}],"tools":[{bad}]"#,
    r#""tools":[{bad}],"tools":[{good}]"#,
    r#""tools":null,"tools":[{bad}]"#,
    r#""tools":[{good}],"to\u006fls":[{bad}]"#,
    r#""tools":[[{bad}],{good}]"#,
    r#""tools":[{good},{"name":"x","inputSchema":{"type":"object"},"inputSchema":{"type":"object","properties":{"a":{"$ref":"https://canary.test/x"}}}}]"#,
    r#""tools":[{good},{"name":"x","inputSchem\u0061":{"type":"object","properties":{"a":{"$ref":"https://canary.test/x"}}}}]"#,
];

fn put(members: &str) -> String {
    members.replace("{bad}", &bad("out")).replace("{good}", &good("g0"))
}

async fn everything(proxy: &Proxy, ask: &Ask) -> String {
    let mut answer = proxy.open(ask).await;
    let (bytes, broken) = answer.pieces().await;
    // A stream that ends as it should has had its answer.
    assert!(broken || !bytes.is_empty(), "{} and nothing, to {}", answer.status, ask.method);
    String::from_utf8(bytes).unwrap()
}

#[tokio::test(start_paused = true)]
async fn lists_that_are_spelled_oddly() {
    let canary = Canary::new();
    for members in LISTS {
        for (client, server) in PAIRS {
            for streamed in [false, true] {
                let net = Net::new();
                let cell = crate::stage::Cell::http((client, server));
                let result = match server {
                    Era::Modern => modern::complete("tools/list", &put(members)),
                    Era::Legacy(_) => format!("{{{}}}", put(members)),
                };
                let answer = move |seen: std::sync::Arc<crate::support::Seen>, reply: Reply| {
                    let result = result.clone();
                    async move {
                        if streamed {
                            reply.streamed_result(&seen, &result).await
                        } else {
                            reply.result(&seen, &result).await
                        }
                    }
                };
                match (server, client) {
                    (Era::Modern, Era::Modern) => ModernServer::full().on("tools/list", answer).start(&net),
                    (Era::Modern, Era::Legacy(_)) => {
                        ModernServer::full().on("tools/list", answer).start_bridged(&net)
                    }
                    (Era::Legacy(_), _) => LegacyServer::new().on("tools/list", answer).start(&net),
                };
                let proxy = Proxy::configured(&net, &toml(cell, "", "", "")).await;
                let ask = match client {
                    Era::Modern => list("tools/list").id("7"),
                    Era::Legacy(_) => Old::latest(&proxy).await.ask("tools/list").id("7"),
                };
                let text = everything(&proxy, &ask).await;
                assert!(!text.contains("canary"), "{cell:?} {streamed} {members}: {text}");
                assert!(text.contains(r#""id":7"#), "{cell:?} {streamed} {members}: it is answered: {text}");
                canary.is_untouched(&net);
            }
        }
    }
}

/// A message that says its result twice.
#[tokio::test(start_paused = true)]
async fn a_result_that_stands_there_twice() {
    for (first, second) in [(good("g0"), bad("out")), (bad("out"), good("g0"))] {
        for streamed in [false, true] {
            let (first, second) = (first.clone(), second.clone());
            let both = move |seen: std::sync::Arc<crate::support::Seen>, reply: Reply| {
                let id = seen.id();
                let text = format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[{first}]}},"result":{{"tools":[{second}]}}}}"#
                );
                async move {
                    if !streamed {
                        return reply.json(200, &text).await;
                    }
                    let mut reply = reply;
                    reply.stream().await;
                    reply.event(&text).await;
                    reply.end().await;
                }
            };
            let (proxy, _up) = Proxy::before(&LegacyServer::new().on("tools/list", both.clone())).await;
            let ask = Old::latest(&proxy).await.ask("tools/list").id("7");
            let text = everything(&proxy, &ask).await;
            assert!(!text.contains("canary"), "{streamed}: {text}");
            let (proxy, _up) =
                Proxy::before_modern(&ModernServer::full().on("tools/list", both.clone())).await;
            let text = everything(&proxy, &list("tools/list").id("7")).await;
            assert!(!text.contains("canary"), "{streamed}: {text}");
        }
    }
}

/// An answer that nobody asked for, beside a call and on the session's own stream.
#[tokio::test(start_paused = true)]
async fn a_list_that_nobody_asked_for() {
    let answer = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[{}]}}}}"#, bad("out"));
    let (net, calls, gets) = (Net::new(), Calls::new(), Gets::open());
    calls.of(gets.of(LegacyServer::telling())).start(&net);
    let proxy = Proxy::start(&net).await;
    let old = Old::latest(&proxy).await;
    let mut stream = proxy.open(&old.get()).await;
    gets.wait(1).await.event(&answer("99"));
    gets.tell(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    // Whether such an answer is passed on or not: it is not as it was.
    loop {
        let event = stream.event().await.expect("a change");
        assert!(!event.data.contains("canary"), "{}", event.data);
        if event.data.contains("list_changed") {
            break;
        }
    }
    let mut open = {
        let ask = old.call("echo", "{}").id("5");
        let opening = proxy.open(&ask);
        let asking = async {
            let call = calls.wait(1).await;
            call.event(&answer("98"));
            pass(10).await;
            call.finish("the end");
        };
        tokio::join!(opening, asking).0
    };
    let (bytes, _) = open.pieces().await;
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.contains("the end") && !text.contains("canary"), "{text}");
}

/// Forms that are spelled oddly, from legacy servers to legacy clients.
#[tokio::test(start_paused = true)]
async fn forms_that_are_spelled_oddly() {
    let canary = Canary::new();
    let schema = r#"{"type":"object","properties":{"n":{"type":"string","$ref":"https://canary.test/x"}}}"#;
    let fine = r#"{"type":"object","properties":{"n":{"type":"string"}}}"#;
    let questions = [
        format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"elicitation\/create","params":{{"message":"m","requested\u0053chema":{schema}}}}}"#
        ),
        format!(
            r#"{{"params":{{"requestedSchema":{schema},"message":"m"}},"method":"\u0065licitation/create","id":7,"jsonrpc":"2.0"}}"#
        ),
        format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{{"message":"m","requestedSchema":{fine},"requestedSchema":{schema}}}}}"#
        ),
        format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{{"message":"m","requestedSchema":{schema},"requestedSchema":{fine}}}}}"#
        ),
        format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"elicitation/create","p\u0061rams":{{"mode":"form","message":"m","requestedSchema":{schema}}}}}"#
        ),
    ];
    for question in questions {
        let (net, calls) = (Net::new(), Calls::new());
        let up = calls.of(LegacyServer::telling()).start(&net);
        let proxy = std::sync::Arc::new(Proxy::start(&net).await);
        let user = User::begin(&proxy, "2025-11-25").await;
        let asking = {
            let user = user.clone();
            tokio::spawn(async move { everything(&proxy, &user.old.call("ask", "{}")).await })
        };
        let at = calls.wait(1).await;
        at.event(&question);
        pass(1000).await;
        at.finish("the end");
        let text = asking.await.unwrap();
        assert!(!text.contains("canary"), "{question}: {text}");
        assert_eq!(up.posts("").len(), 1, "{question}: the server is answered");
        canary.is_untouched(&net);
    }
}

/// The same from modern servers to modern clients.
#[tokio::test(start_paused = true)]
async fn questions_that_are_spelled_oddly() {
    let form = r#"{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{"n":{"type":"string","$ref":"https://canary.test/x"}}}}}"#;
    let escaped = form
        .replace("elicitation/create", r"elicitation\/cre\u0061te")
        .replace("requestedSchema", r"r\u0065questedSchema");
    let results = [
        format!(r#""input\u0052equests":{{"k":{form}}}"#),
        format!(r#""inputRequests":{{"k":{escaped}}}"#),
        format!(r#""inputRequests":{{"a":{{"method":"roots/list"}},"k":{form}}}"#),
        format!(r#""inputRequests":{{"k":{{"method":"roots/list"}},"k":{form}}}"#),
        format!(
            r#""inputRequests":{{"k":{}}}"#,
            form.replace(
                r#""requestedSchema":"#,
                r#""requestedSchema":{"type":"object","properties":{}},"requestedSchema":"#
            )
        ),
        format!(
            r#""inputRequests":{{"k":{}}}"#,
            form.replace(
                r#""params":"#,
                r#""params":{"message":"m","requestedSchema":{"type":"object","properties":{}}},"params":"#
            )
        ),
        format!(r#""inputRequests":{{}},"inputRequests":{{"k":{form}}}"#),
        format!(r#""inputRequests":{{"k":{form}}},"inputRequests":{{}}"#),
    ];
    for members in results {
        let result =
            format!(r#"{{"resultType":"input_required",{members},"requestState":"s",{}}}"#, modern::SI);
        let (proxy, _up) = Proxy::before_modern(&ModernServer::full().result("tools/call", &result)).await;
        let text = everything(&proxy, &call("ask", "{}").caps(ALL).id("7")).await;
        assert!(!text.contains("input_required") && !text.contains(r#""message":"m""#), "{members}: {text}");
        assert!(text.contains("-32603"), "{members}: {text}");
    }
}
