//! A12.4, A14.1, B16 and the cases of odd bodies: C21, C25, C31, C32.

use crate::support::net::{Receiver, handler};
use crate::support::{LegacyServer, Net, Old, Proxy, Reply, Upstream, json, rpc};

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
const NOTE: &str = r#"{"jsonrpc":"2.0","method":"notifications/x"}"#;
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":9,"result":{}}"#;

/// A sessionless server that answers an array with two results, and everything else with 202.
async fn before_arrays() -> (Proxy, Upstream) {
    let net = Net::new();
    let up = net.serve(
        "up.test",
        Receiver::Unchecked,
        handler(|seen, reply: Reply| async move {
            let text = seen.text().trim_start().to_owned();
            match seen.brief().as_str() {
                "server/discover" => reply.json(400, "{}").await,
                _ if !text.contains(r#""id":1"#) => reply.empty(202).await,
                _ => reply.json(200, &format!("[{}]", rpc::result_message("1", "{}"))).await,
            }
        }),
    );
    (Proxy::start(&net).await, up)
}

fn client(version: Option<&str>) -> Old {
    Old { session: None, version: version.map(str::to_owned), token: None }
}

#[tokio::test(start_paused = true)]
async fn c31_arrays_of_2025_03_26_pass() {
    let (proxy, up) = before_arrays().await;
    for version in [None, Some("2025-03-26")] {
        let old = client(version);
        let body = format!("  \n[{LIST} ,{NOTE}]");
        let done = proxy.send(&old.raw(&body)).await;
        assert_eq!((done.status, &done.message[0]["id"]), (200, &json!(1)), "{}", done.raw);
        assert_eq!(up.requests().pop().unwrap().text(), body);
        for body in [format!("[{NOTE}]"), format!("[{ANSWER}]")] {
            assert_eq!(proxy.send(&old.raw(&body)).await.status, 202, "{body}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn b16_arrays_that_are_none() {
    let (proxy, up) = before_arrays().await;
    let initialize = String::from_utf8(Old::initialize("2025-03-26").body()).unwrap();
    let claimed = String::from_utf8(crate::support::list("tools/list").body()).unwrap();
    for body in [
        "[]".to_owned(),
        "[1]".to_owned(),
        format!("[{LIST},[]]"),
        format!("[{initialize}]"),
        format!("[{LIST},{initialize}]"),
        format!("[{LIST},{ANSWER}]"),
        format!("[{claimed}]"),
        r#"[{"jsonrpc":"2.0","id":null,"method":"tools/list"}]"#.to_owned(),
        r#"[{"jsonrpc":"2.0","method":"tools/list"}]"#.to_owned(),
    ] {
        let done = proxy.send(&client(None).raw(&body)).await;
        assert_eq!((done.status, done.code()), (400, -32600), "{body}");
    }
    let many = format!("[{}]", vec![NOTE; 1025].join(","));
    assert_eq!(proxy.send(&client(None).raw(&many)).await.code(), -32600);
    assert_eq!(proxy.send(&client(None).raw("[{]")).await.code(), -32700);
    for version in ["2025-06-18", "2025-11-25", "2024-11-05"] {
        for body in [format!("[{LIST}]"), "[]".to_owned()] {
            let done = proxy.send(&client(Some(version)).raw(&body)).await;
            assert_eq!((done.status, done.code()), (400, -32600), "{version} {body}");
        }
    }
    assert_eq!(up.briefs(), Vec::<String>::new(), "nothing reaches the server");
}

#[tokio::test(start_paused = true)]
async fn c32_null_params_reach_the_server_as_an_object() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    let old = Old::latest(&proxy).await;
    for (params, sent) in
        [(r#","params":null"#, r#","params":{}"#), ("", ""), (r#", "params" : {}"#, r#", "params" : {}"#)]
    {
        let body = |params| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list"{params}}}"#);
        proxy.send(&old.raw(&body(params))).await.result();
        assert_eq!(up.requests().pop().unwrap().text(), body(sent));
    }
    let note = old.raw(r#"{"jsonrpc":"2.0","method":"notifications/x","params":null}"#);
    assert_eq!(proxy.send(&note).await.status, 202);
    assert_eq!(up.requests().pop().unwrap().json()["params"], json!({}));
    let before = up.requests().len();
    for params in ["[]", r#""x""#, "5"] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":"a","method":"tools/list","params":{params}}}"#);
        let done = proxy.send(&old.raw(&body)).await;
        assert_eq!((done.status, done.code(), &done.message["id"]), (400, -32600, &json!("a")), "{params}");
    }
    assert_eq!(up.requests().len(), before);
    let (proxy, up) = before_arrays().await;
    let array = r#"[{"jsonrpc":"2.0","id":1,"method":"a","params":null},{"jsonrpc":"2.0","id":2,"method":"b","params":null}]"#;
    assert_eq!(proxy.send(&client(None).raw(array)).await.status, 200);
    assert_eq!(up.requests().pop().unwrap().text(), array.replace("null", "{}"));
}

#[tokio::test(start_paused = true)]
async fn c21_a_request_without_an_id_or_with_null() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    let old = Old::latest(&proxy).await;
    let before = up.requests().len();
    for body in [
        r#"{"jsonrpc":"2.0","method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","method":"initialize","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}"#,
    ] {
        let done = proxy.send(&old.raw(body)).await;
        assert_eq!((done.status, done.code()), (400, -32600), "{body}");
    }
    assert_eq!(up.requests().len(), before);
}

#[tokio::test(start_paused = true)]
async fn c18_every_id_comes_back_as_it_was() {
    let (proxy, _up) = Proxy::before(&LegacyServer::new()).await;
    let old = Old::latest(&proxy).await;
    let long = format!("\"{}\"", "x".repeat(200));
    for id in [r#""1""#, r#""init-1""#, r#""""#, r#""0""#, "0", "-1", &long] {
        // The check of every answer compares ids byte for byte.
        proxy.send(&old.ask("tools/list").id(id)).await.result();
        proxy.send(&old.ask("no/such").id(id)).await.is_answered_error(-32601);
    }
}

#[tokio::test(start_paused = true)]
async fn c25_whatever_is_accepted_the_server_reads_the_literal() {
    let server = LegacyServer::new().on("tools/list", |seen, reply: Reply| async move {
        reply.streamed_result(&seen, r#"{"tools":[]}"#).await;
    });
    let (proxy, up) = Proxy::before(&server).await;
    let old = Old::latest(&proxy).await;
    for (accept, media_type) in [
        ("*/*", "text/event-stream"),
        ("text/event-stream", "text/event-stream"),
        ("application/json", "application/json"),
        ("application/*", "application/json"),
        ("application/json;q=0.5, text/event-stream;q=0", "application/json"),
    ] {
        let done = proxy.send(&old.ask("tools/list").header("Accept", accept)).await;
        assert_eq!(done.result()["tools"], json!([]), "{accept}");
        assert_eq!(done.headers.media_type().as_deref(), Some(media_type), "{accept}");
    }
    proxy.send(&old.ask("tools/list").without("Accept")).await.result();
    let before = up.requests().len();
    let none = proxy.send(&old.ask("tools/list").id("7").header("Accept", "image/png")).await;
    assert_eq!((none.status, &none.message["id"]), (406, &json!(7)));
    assert_eq!(proxy.send(&old.get().header("Accept", "application/json")).await.status, 406);
    assert_eq!(up.requests().len(), before);
    // The literal on GET, too, is checked as it arrives; this server offers no stream.
    for accept in ["*/*", "text/event-stream, application/json"] {
        assert_eq!(proxy.send(&old.get().header("Accept", accept)).await.status, 405);
    }
    assert_eq!(proxy.send(&old.get().without("Accept")).await.status, 405);
}
