//! D77, D78, D79, A5.10, A13.2, A13.3, C67: what of a request is said once more in headers, and tools that ask for it wrongly.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::stage::{REVISIONS, Stage, mirrored, opened};
use crate::support::{Calls, Listens, ModernServer, Reply, Value, modern};

/// A tool `t` whose input has these properties, as raw JSON.
fn tool(properties: &str) -> String {
    format!(r#"{{"name":"t","inputSchema":{{"type":"object","properties":{properties}}}}}"#)
}

async fn stage(tools: &str) -> Stage {
    let calls = Calls::new();
    let server = calls.of_modern(ModernServer::full().tools(tools));
    Stage::build(server, calls, Listens::open(), "", "").await
}

const ANNOTATED: &str = r#"{
    "region":{"type":"string","x-mcp-header":"Region"},
    "n":{"type":"integer","x-mcp-header":"N"},
    "b":{"type":"boolean","x-mcp-header":"B"},
    "plain":{"type":"string"},
    "deep":{"type":"object","properties":{"er":{"type":"object","properties":{"x":{"type":"string","x-mcp-header":"Deep-X"}}}}}
}"#;

/// The headers that a call with these arguments has.
async fn headers(stage: &Stage, user: &crate::support::User, arguments: &str) -> Vec<(String, String)> {
    let (opening, call) = stage.start(user, &user.old.call("t", arguments)).await;
    call.completes("done");
    opened(opening).await.result().await;
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let own = |name: &str| Some(name.to_ascii_lowercase().strip_prefix("mcp-param-")?.to_owned());
    let mut all: Vec<_> =
        call.seen.headers.0.iter().filter_map(|(name, value)| Some((own(name)?, text(value)))).collect();
    all.sort();
    all
}

#[tokio::test(start_paused = true)]
async fn d78_param_headers() {
    let table: [(&str, &[(&str, &str)]); 17] = [
        (r#"{"region":"us-west1"}"#, &[("region", "us-west1")]),
        (r#"{"region":"Hello, 世界"}"#, &[("region", "=?base64?SGVsbG8sIOS4lueVjA==?=")]),
        (r#"{"region":" padded "}"#, &[("region", "=?base64?IHBhZGRlZCA=?=")]),
        (r#"{"region":"line1\nline2"}"#, &[("region", "=?base64?bGluZTEKbGluZTI=?=")]),
        (r#"{"region":"=?base64?literal?="}"#, &[("region", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=")]),
        (r#"{"region":"\u0041\u4e16"}"#, &[("region", "=?base64?QeS4lg==?=")]),
        (r#"{"region":"a\r\nEvil: 1"}"#, &[("region", "=?base64?YQ0KRXZpbDogMQ==?=")]),
        (r#"{"region":null}"#, &[]),
        (r#"{}"#, &[]),
        (r#"{"n":42}"#, &[("n", "42")]),
        (r#"{"n":-7}"#, &[("n", "-7")]),
        (r#"{"n":0,"b":false}"#, &[("b", "false"), ("n", "0")]),
        (r#"{"b":true,"plain":"x"}"#, &[("b", "true")]),
        (r#"{"deep":{"er":{"x":"v"}}}"#, &[("deep-x", "v")]),
        (r#"{"deep":{"er":null}}"#, &[]),
        (r#"{"deep":{"x":"elsewhere"}}"#, &[]),
        (r#"{"region":"a","n":9007199254740991}"#, &[("n", "9007199254740991"), ("region", "a")]),
    ];
    for revision in REVISIONS {
        let stage = stage(&tool(ANNOTATED)).await;
        let user = stage.user(revision).await;
        // The list was never asked for by this client: the proxy gets it itself (C67).
        for (arguments, expected) in table {
            let found = headers(&stage, &user, arguments).await;
            let found: Vec<_> = found.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            assert_eq!(found, expected, "{revision} {arguments}");
        }
        assert!(
            stage.up.posts("tools/list").len() <= 2,
            "known after the first time: {:?}",
            stage.up.briefs()
        );
    }
}

/// A value that is not of the annotated type says nothing, or the same as it would as text; it never breaks the request.
#[tokio::test(start_paused = true)]
async fn c67_values_of_another_type() {
    let stage = stage(&tool(ANNOTATED)).await;
    let user = stage.latest().await;
    for arguments in [
        r#"{"region":{"a":1}}"#,
        r#"{"region":["x"]}"#,
        r#"{"n":1.5}"#,
        r#"{"n":9007199254740992}"#,
        r#"{"n":1e400}"#,
        r#"{"b":"yes"}"#,
        r#"{"deep":[1]}"#,
        r#"{"deep":{"er":"text"}}"#,
    ] {
        headers(&stage, &user, arguments).await;
    }
    // Missing and null arguments have no values at all.
    for ask in [user.old.ask("tools/call").params(r#""name":"t""#), user.old.call("t", "null")] {
        let (opening, call) = stage.start(&user, &ask).await;
        call.completes("done");
        opened(opening).await.result().await;
        assert!(
            call.seen.headers.0.iter().all(|(name, _)| !name.to_ascii_lowercase().starts_with("mcp-param"))
        );
    }
}

/// Every way to ask for a header wrongly.
const WRONG: [(&str, &str); 15] = [
    ("empty", r#"{"a":{"type":"string","x-mcp-header":""}}"#),
    ("a space", r#"{"a":{"type":"string","x-mcp-header":"A B"}}"#),
    ("a line break", r#"{"a":{"type":"string","x-mcp-header":"X\r\nEvil: 1"}}"#),
    ("no ASCII", r#"{"a":{"type":"string","x-mcp-header":"Ü"}}"#),
    ("no text", r#"{"a":{"type":"string","x-mcp-header":5}}"#),
    (
        "twice",
        r#"{"a":{"type":"string","x-mcp-header":"region"},"b":{"type":"string","x-mcp-header":"REGION"}}"#,
    ),
    ("a number", r#"{"a":{"type":"number","x-mcp-header":"A"}}"#),
    ("an object", r#"{"a":{"type":"object","x-mcp-header":"A"}}"#),
    ("an array", r#"{"a":{"type":"array","x-mcp-header":"A"}}"#),
    ("items", r#"{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}"#),
    ("oneOf", r#"{"a":{"oneOf":[{"type":"string","x-mcp-header":"A"}]}}"#),
    (
        "allOf",
        r#"{"a":{"type":"object","allOf":[{"properties":{"b":{"type":"string","x-mcp-header":"A"}}}]}}"#,
    ),
    ("if", r#"{"a":{"type":"object","if":{"properties":{"b":{"type":"string","x-mcp-header":"A"}}}}}"#),
    ("not", r#"{"a":{"not":{"type":"string","x-mcp-header":"A"}}}"#),
    ("a colon", r#"{"a":{"type":"string","x-mcp-header":"A:"}}"#),
];

#[tokio::test(start_paused = true)]
async fn d78_c67_wrong_annotations_exclude_their_tool_only() {
    let good = r#"{"name":"good","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"Good"}}}}"#;
    let roots = [
        ("the root", r#"{"type":"object","x-mcp-header":"A"}"#),
        ("$defs", r#"{"type":"object","$defs":{"d":{"type":"string","x-mcp-header":"A"}}}"#),
    ];
    let wrong = WRONG
        .iter()
        .map(|(what, properties)| (*what, format!(r#"{{"type":"object","properties":{properties}}}"#)))
        .chain(roots.iter().map(|(what, schema)| (*what, (*schema).to_owned())));
    for (what, schema) in wrong {
        let bad = format!(r#"{{"name":"t","inputSchema":{schema}}}"#);
        let stage = stage(&format!("{bad},{good}")).await;
        let user = stage.latest().await;
        let list = user.list("tools/list").await;
        let names: Vec<_> =
            list["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
        assert_eq!(names, ["good"], "{what}");
        // Called all the same, it does not reach the server, and no header is made of it.
        assert_eq!(user.call("t", r#"{"a":"v","b":"w"}"#).await.code().await, -32602, "{what}");
        assert_eq!(stage.calls.all().len(), 0, "{what}");
    }
}

/// An annotation that is no annotation: data, or a property of that name.
#[tokio::test(start_paused = true)]
async fn c67_what_is_no_annotation() {
    let properties = r#"{"x-mcp-header":{"type":"string"},"a":{"type":"string","default":{"x-mcp-header":5},"enum":[{"x-mcp-header":""}]}}"#;
    let stage = stage(&tool(properties)).await;
    let user = stage.latest().await;
    assert_eq!(user.list("tools/list").await["tools"][0]["name"], "t");
    assert_eq!(headers(&stage, &user, r#"{"x-mcp-header":"v","a":"w"}"#).await, []);
}

/// A server that insists on `Mcp-Param-Region`, and whose list says so from the n-th time on.
fn insists(n: usize) -> (ModernServer, Arc<AtomicUsize>) {
    let lists = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&lists);
    let server = ModernServer::full()
        .on("tools/list", move |seen, reply: Reply| {
            let told = counted.fetch_add(1, Ordering::SeqCst) >= n;
            let annotation = if told { r#","x-mcp-header":"Region""# } else { "" };
            let tool = tool(&format!(r#"{{"region":{{"type":"string"{annotation}}}}}"#));
            async move {
                let result = modern::complete("tools/list", &format!(r#""tools":[{tool}]"#));
                reply.result(&seen, &result).await;
            }
        })
        .on("tools/call", |seen, reply: Reply| async move {
            let region = seen.json()["params"]["arguments"]["region"].clone();
            if mirrored(&seen, "mcp-param-region").map(Value::from) != Some(region) {
                return reply.error(400, &seen, r#"{"code":-32020,"message":"Header mismatch"}"#).await;
            }
            let result = modern::complete("tools/call", r#""content":[{"type":"text","text":"ok"}]"#);
            reply.result(&seen, &result).await;
        });
    (server, lists)
}

#[tokio::test(start_paused = true)]
async fn d77_header_mismatch_refresh() {
    let (server, lists) = insists(1);
    let stage = Stage::before(server).await;
    let user = stage.latest().await;
    user.list("tools/list").await;
    let result = user.call("t", r#"{"region":"世界"}"#).await.result().await;
    assert_eq!(result["content"][0]["text"], "ok");
    assert_eq!(stage.up.posts("tools/call").len(), 2, "{:?}", stage.up.briefs());
    assert_eq!(lists.load(Ordering::SeqCst), 2, "listed once more");
    // From now on it is known.
    user.call("t", r#"{"region":"b"}"#).await.result().await;
    assert_eq!(stage.up.posts("tools/call").len(), 3);
    assert_eq!(lists.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn d77_twice_is_an_error() {
    let (server, _lists) = insists(usize::MAX);
    let stage = Stage::before(server).await;
    let user = stage.latest().await;
    assert_eq!(user.call("t", r#"{"region":"a"}"#).await.code().await, -32603);
    assert!(stage.up.posts("tools/call").len() <= 2, "{:?}", stage.up.briefs());
    assert!(user.lives().await);
}

/// The same in the middle of a call: the answers that were given go with it.
#[tokio::test(start_paused = true)]
async fn d77_in_a_later_round() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    let stream = stage.asked(&user, &[("k", crate::stage::ROOTS)], Some(r#""S""#)).await;
    user.answer(&stream.question().await, crate::stage::ROOTED).await;
    let second = stage.retried(1).await;
    second.whole(
        400,
        &crate::support::rpc::error_message(&second.seen.id(), r#"{"code":-32020,"message":"m"}"#),
    );
    let third = stage.retried(2).await;
    assert_eq!(third.params()["inputResponses"], second.params()["inputResponses"]);
    assert_eq!(third.params()["requestState"], "S");
    third.completes("done");
    stream.result().await;
    assert_eq!(stream.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn d79_name_encoding() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    let table = [
        ("file:///é", "=?base64?ZmlsZTovLy/DqQ==?="),
        ("file:///plain", "file:///plain"),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
    ];
    for (name, header) in table {
        for (method, member) in [("resources/read", "uri"), ("prompts/get", "name"), ("tools/call", "name")] {
            let ask = user.old.ask(method).params(&format!(r#""{member}":"{name}""#));
            let (opening, call) = stage.start(&user, &ask).await;
            call.completes("done");
            opened(opening).await.result().await;
            assert_eq!(call.seen.header("mcp-name").as_deref(), Some(header), "{method} {name}");
        }
    }
    // Written with escapes, and with line breaks.
    for (raw, name) in [(r"\u0065cho", "echo"), (r"a\nb", "a\nb"), (r"a\u0000b", "a\0b")] {
        let ask = user.old.ask("prompts/get").params(&format!(r#""name":"{raw}""#));
        let (opening, call) = stage.start(&user, &ask).await;
        call.completes("done");
        opened(opening).await.result().await;
        assert_eq!(mirrored(&call.seen, "mcp-name").as_deref(), Some(name), "{raw}");
    }
}

/// A call that names nothing has nothing to be named by; the server never sees it, or sees it without the header.
#[tokio::test(start_paused = true)]
async fn d79_a_call_without_a_name() {
    let stage = Stage::before(ModernServer::full()).await;
    let user = stage.latest().await;
    for (method, params) in [
        ("tools/call", r#""arguments":{}"#),
        ("tools/call", r#""name":5"#),
        ("prompts/get", ""),
        ("resources/read", r#""uri":null"#),
    ] {
        let done = stage.unmoved(user.send(&user.old.ask(method).params(params).id("7"))).await;
        done.is_answered_error(-32602);
    }
}
