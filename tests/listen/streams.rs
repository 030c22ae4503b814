//! C08: everything that a server may answer to the GET. Calls never wait for it, and the acknowledgement is honest.

use std::time::Duration;

use tokio::time::Instant;

use crate::stage::{A, SOME, Stage, TOOLS, updated};
use crate::support::{Begin, Gets, LegacyServer, Listener, call, json, listen, pass};

/// The setting `timeouts.stream`, and a little.
const IN_TIME: Duration = Duration::from_millis(600);

const NOT_FOUND: &str =
    r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}"#;

/// Listens and calls at once, before a server whose first GET is answered so.
async fn before(begin: Begin) -> (Stage, Listener) {
    let what = format!("{begin:?}");
    let gets = Gets::script(move |n| if n == 0 { begin.clone() } else { Begin::Open });
    let stage = Stage::of(LegacyServer::telling(), gets).await;
    let start = Instant::now();
    let ask = listen("1", SOME);
    let (listener, ()) = tokio::join!(Listener::open(&stage.proxy, &ask), async {
        for n in 0..3 {
            stage.proxy.send(&call("echo", "{}").id(&format!("{n}"))).await.result();
        }
        assert!(start.elapsed() < Duration::from_millis(50), "{what}: calls wait {:?}", start.elapsed());
    });
    listener.wait(1).await;
    let took = listener.at(0) - start;
    assert!(took <= IN_TIME, "{what}: acknowledged after {took:?}");
    (stage, listener)
}

#[tokio::test(start_paused = true)]
async fn c08_a_server_that_has_no_stream() {
    let faults = [
        Begin::Empty(404),
        Begin::Body(404, "application/json", NOT_FOUND),
        Begin::Body(404, "text/html", "<html>not here</html>"),
        Begin::Empty(405),
        Begin::Body(405, "application/json", r#"{"error":"Method not allowed"}"#),
        Begin::Empty(406),
        Begin::Empty(400),
        Begin::Body(
            400,
            "application/json",
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}"#,
        ),
        Begin::Empty(501),
        Begin::Body(200, "application/json", r#"{"status":"ok"}"#),
        Begin::Body(200, "text/html", "<html>hello</html>"),
        Begin::Empty(202),
        Begin::Empty(204),
    ];
    for begin in faults {
        let what = format!("{begin:?}");
        let (stage, listener) = before(begin).await;
        assert_eq!(listener.promised().await, json!({}), "{what}");
        pass(120_000).await;
        assert_eq!(stage.gets.all().len(), 1, "{what}: it is not asked again");
        assert_eq!((listener.changes(), listener.is_over()), (vec![], false), "{what}");
        assert_eq!(stage.up.posts("initialize").len(), 1, "{what}: the session lives");
        stage.proxy.send(&call("echo", "{}")).await.result();
        assert_eq!(stage.up.posts("initialize").len(), 1, "{what}");
        // What was subscribed in vain is taken back.
        let (on, off) = (stage.asked("resources/subscribe"), stage.asked("resources/unsubscribe"));
        assert_eq!(on.len(), off.len(), "{what}");
        listener.close();
        stage.nothing_is_left().await;
    }
}

#[tokio::test(start_paused = true)]
async fn c08_a_server_whose_stream_is_silent() {
    for begin in [Begin::Hang, Begin::Open, Begin::With(": hello\n\n".to_owned())] {
        let what = format!("{begin:?}");
        let hangs = matches!(begin, Begin::Hang);
        let (stage, listener) = before(begin).await;
        let promised = json!({"toolsListChanged": true, "resourceSubscriptions": [A]});
        assert_eq!(listener.promised().await, promised, "{what}");
        pass(120_000).await;
        assert_eq!(listener.changes(), Vec::<String>::new(), "{what}: nothing can have been missed");
        assert_eq!(stage.gets.all().len(), 1, "{what}");
        if !hangs {
            stage.gets.tell(TOOLS);
            listener.wait(2).await;
        }
        listener.close();
        stage.nothing_is_left().await;
    }
}

/// Credentials and load come and go. What is promised meanwhile is made good when the stream opens.
#[tokio::test(start_paused = true)]
async fn c08_a_server_that_has_no_stream_just_now() {
    let statuses = [401, 403, 408, 429, 500, 502, 503, 504];
    let faults = statuses.map(Begin::Empty).into_iter().chain([Begin::Cut]);
    for begin in faults {
        let what = format!("{begin:?}");
        let (stage, listener) = before(begin).await;
        let promised = listener.promised().await;
        stage.gets.wait(2).await;
        pass(30_000).await;
        let all = stage.gets.all();
        let pause = all[1].at - all[0].at;
        let bounds = Duration::from_secs(1)..=Duration::from_millis(1300);
        assert!(bounds.contains(&pause), "{what}: again after {pause:?}");
        if promised == json!({}) {
            assert_eq!(listener.changes(), Vec::<String>::new(), "{what}");
            continue;
        }
        assert_eq!(listener.changes(), ["tools", A], "{what}: one set after the gap");
        stage.gets.tell(&updated(A));
        pass(1000).await;
        assert_eq!(listener.changes(), ["tools", A, A], "{what}");
        listener.close();
        stage.nothing_is_left().await;
    }
}

/// A stream that opens and closes at once, again and again: what changes between two of them is not lost for good.
#[tokio::test(start_paused = true)]
async fn c08_a_stream_that_closes_at_once_again_and_again() {
    let gets = Gets::script(|n| match n {
        1..=5 => Begin::Only(String::new()),
        _ => Begin::Open,
    });
    let stage = Stage::of(LegacyServer::telling(), gets).await;
    let listener = stage.listens("1", SOME).await;
    pass(5000).await;
    stage.gets.wait(1).await.end();
    // Each gap is one in which the server may tell something to nobody, the last one too.
    stage.gets.wait(6).await;
    let before_last = listener.changes();
    stage.gets.wait(7).await;
    pass(5000).await;
    let after = listener.changes();
    assert_eq!(after[before_last.len()..], ["tools", A], "told after the last gap: {before_last:?}");
    assert!(after.len() <= 6 * 2, "once a gap at most: {after:?}");
    pass(60_000).await;
    assert_eq!(listener.changes(), after);
    stage.proxy.send(&call("echo", "{}")).await.result();
}

/// The very first stream dies young: what changed until the next one is made good.
#[tokio::test(start_paused = true)]
async fn c08_a_first_stream_that_closes_at_once() {
    let gets = Gets::script(|n| if n == 0 { Begin::Only(String::new()) } else { Begin::Open });
    let stage = Stage::of(LegacyServer::telling(), gets).await;
    let listener = stage.listens("1", SOME).await;
    stage.gets.wait(2).await;
    pass(5000).await;
    if listener.promised().await != json!({}) {
        assert_eq!(listener.changes(), ["tools", A]);
    }
}

/// Half an event is no event; whole ones before it are told.
#[tokio::test(start_paused = true)]
async fn c08_half_an_event() {
    for clean in [true, false] {
        let stage = Stage::new().await;
        let listener = stage.listens("1", SOME).await;
        let first = stage.gets.wait(1).await;
        first.event(&updated(A));
        first.bytes(format!("data: {TOOLS}\n").as_bytes());
        pass(1000).await;
        assert_eq!(listener.changes(), [A]);
        if clean {
            first.end()
        } else {
            first.cut()
        }
        stage.gets.wait(2).await;
        pass(5000).await;
        assert_eq!(listener.changes(), [A, "tools", A], "one set after the gap");
    }
}

/// What is no event stream, or no message, neither ends the stream nor gets through.
#[tokio::test(start_paused = true)]
async fn c08_garbage_on_the_stream() {
    let stage = Stage::new().await;
    let listener = stage.listens("1", SOME).await;
    let stream = stage.gets.wait(1).await;
    let garbage: [&[u8]; 9] = [
        b"<html>\n\n",
        b"data\n\n",
        b"data:\n\n",
        b"data: {\"jsonrpc\":\n\n",
        b"data: hello\n\n",
        b"data: {\"jsonrpc\":\"2.0\"}\n\n",
        b"data: \xff\xfe{}\n\n",
        b"\r\r\n:\r\nretry: soon\nid\n\n",
        b"event: ping\ndata: 2026\n\n",
    ];
    for bytes in garbage {
        stream.bytes(bytes);
        pass(100).await;
    }
    stream.bytes(format!("data: {TOOLS}\r\r").as_bytes());
    listener.wait(2).await;
    pass(60_000).await;
    assert_eq!(listener.changes(), ["tools"]);
    assert_eq!(stage.gets.all().len(), 1, "still the first stream");
}

/// An event beyond `message_bytes` cannot be read. It is not asked for again, and what may have been in it is made good.
#[tokio::test(start_paused = true)]
async fn c08_an_event_that_is_too_large() {
    for ids in [false, true] {
        let gets = Gets::script(move |n| {
            let id = if ids { "id: e1\n" } else { "" };
            let begun =
                format!("{id}data: {TOOLS}\n\n{}data: {}\n\n", id.replace('1', "2"), "x".repeat(4096));
            if n == 0 { Begin::With(begun) } else { Begin::Open }
        });
        let lines = "[upstream.up.limits]\nmessage_bytes = 2048\n";
        let stage = Stage::with(LegacyServer::telling(), gets, lines).await;
        let listener = stage.listens("1", SOME).await;
        let again = stage.gets.wait(2).await;
        assert_eq!(again.last_event(), None, "ids: {ids}; what follows it would be the same again");
        pass(60_000).await;
        assert_eq!(listener.changes(), ["tools", "tools", A], "ids: {ids}");
        assert_eq!(stage.gets.all().len(), 2);
        stage.proxy.send(&call("echo", "{}")).await.result();
    }
}
