//! C42: what a channel is opened by, and what it is not.

use super::super::endpoint::{Override, resolve};
use super::*;

#[test]
fn c42_endpoints_are_read_by_the_rules_of_urls() {
    let (http, _peer) = stage(URL, 64);
    let home = http.home();
    let good = [
        ("/messages?sid=1", "http://h.test/messages?sid=1"),
        ("messages?sid=1", "http://h.test/api/v1/messages?sid=1"),
        ("?sid=1", "http://h.test/api/v1/sse?sid=1"),
        ("../m/", "http://h.test/api/m/"),
        ("http://H.test:80/m?a=b&c=%20d#f", "http://h.test/m?a=b&c=%20d"),
        ("//h.test/m", "http://h.test/m"),
        (" /m ", "http://h.test/m"),
    ];
    for (told, expected) in good {
        let place = resolve(told, home, &http, None).unwrap();
        assert_eq!(place.url().as_str(), expected, "{told}");
        assert_eq!(place.uri().to_string(), expected, "{told}");
    }
    let elsewhere = [
        "//evil.example/m",
        "http://internal:9000/m",
        "https://other.example/m",
        "https://h.test/m",
        "http://h.test:81/m",
        "http://u:p@h.test/m",
        "file:///etc/passwd",
        "data:text/plain,x",
    ];
    for told in elsewhere {
        let error = resolve(told, home, &http, None).unwrap_err();
        assert!(matches!(error, NoEndpoint::CrossOrigin { .. }), "{told}: {error:?}");
    }
    let error = resolve("http://", home, &http, None).unwrap_err();
    assert!(matches!(error, NoEndpoint::Unusable { .. }), "{error:?}");
}

#[test]
fn c42_an_override_goes_before_the_event_and_keeps_its_query() {
    let (http, _peer) = stage(URL, 64);
    let table = [
        ("/api/v1/messages", "/messages?sid=1", "http://h.test/api/v1/messages?sid=1"),
        ("/m?key=k", "/messages?sid=1", "http://h.test/m?key=k&sid=1"),
        ("/m?key=k", "/messages", "http://h.test/m?key=k"),
        ("http://h.test/m", "http://internal:9000/messages?sid=1", "http://h.test/m?sid=1"),
    ];
    for (setting, told, expected) in table {
        let instead = Override::read(setting, &http).unwrap();
        let place = resolve(told, http.home(), &http, Some(&instead)).unwrap();
        assert_eq!(place.url().as_str(), expected, "{setting}");
    }
    for setting in ["//evil.example/m", "https://h.test/m", "http://u:p@h.test/m", "http://"] {
        let reason = Override::read(setting, &http).err().unwrap();
        assert!(reason.contains("sse_endpoint"), "{setting}: {reason}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_channel_opens_whatever_comes_before_its_endpoint() {
    let before = [
        "",
        ": hello\n\n",
        "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"early\"}\n\n",
        "data: {}\n\nevent: ping\ndata: x\n\nid: 4\n\nretry: 10\n\n",
        "event: endpoint\ndata:\n\n",
        "\u{feff}: mark\r\n\r\n",
    ];
    for before in before {
        let mut stage = Stage::new();
        let opening = stage.opening();
        let mut io = stage.peer.accept().await;
        let request = read_request(&mut io).await.to_ascii_lowercase();
        assert!(request.contains("accept: text/event-stream\r\n"), "{request}");
        assert!(request.contains("authorization: bearer t\r\n"), "{request}");
        assert!(!request.contains("mcp-session-id") && !request.contains("content-type"), "{request}");
        write(&mut io, &format!("{STREAM}{before}")).await;
        sleep(Duration::from_secs(5)).await;
        assert!(!opening.is_finished(), "{before}");
        // Cut anywhere.
        write(&mut io, "event: endpoint\r\ndata: /mess").await;
        write(&mut io, "ages?sid=1\r\n\r\n").await;
        let pipe = taken(opening.await.unwrap());
        assert_eq!(stage.sse.endpoints(), 1);
        let sent = sending(&pipe, CALL);
        let mut post = stage.peer.accept().await;
        let request = read_request(&mut post).await;
        assert!(request.starts_with("POST /messages?sid=1 HTTP/1.1\r\n"), "{request}");
        write(&mut post, ACCEPTED).await;
        taken(sent.await.unwrap());
        assert!(stage.heard.all().is_empty(), "{:?}", stage.heard.all());
    }
}

#[tokio::test(start_paused = true)]
async fn c42_an_endpoint_that_never_comes_is_a_timeout_that_says_so() {
    for silence in ["", STREAM, &format!("{STREAM}: still here\n\n")] {
        let mut stage = Stage::new();
        let opening = stage.opening();
        let mut io = stage.peer.accept().await;
        read_request(&mut io).await;
        let since = Instant::now();
        write(&mut io, silence).await;
        let Err(trouble) = opening.await.unwrap() else { panic!("a channel was opened") };
        let none = none(trouble);
        assert!(since.elapsed() < REQUEST, "before the time of `initialize` is over");
        assert!(none.to_string().contains("`endpoint` event did not come within"), "{none}");
        closed(&mut io).await;
        assert_eq!(stage.sse.endpoints(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn c42_a_stream_that_is_none_or_ends_is_no_channel() {
    let json = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
    let (trouble, _io) = Stage::new().refused(json).await;
    assert_eq!(none(trouble), NoEndpoint::NotAStream("status 200 and application/json".to_owned()));
    let empty = "HTTP/1.1 204 No Content\r\n\r\n";
    let (trouble, _io) = Stage::new().refused(empty).await;
    assert_eq!(none(trouble), NoEndpoint::NotAStream("status 204 and no media type".to_owned()));
    let ended = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 5\r\n\r\n: x\n\n";
    let (trouble, _io) = Stage::new().refused(ended).await;
    assert_eq!(none(trouble), NoEndpoint::Ended);
}

#[tokio::test(start_paused = true)]
async fn c42_a_cross_origin_endpoint_gets_nothing() {
    for told in ["//evil.example/m", "http://internal:9000/m?sid=secret", "https://h.test/m"] {
        let mut stage = Stage::new();
        let (trouble, mut io) = stage.refused(&format!("{STREAM}event: endpoint\ndata: {told}\n\n")).await;
        let error = none(trouble).to_string();
        assert!(
            error.contains(told.split('?').next().unwrap()) && error.contains("http://h.test:80"),
            "{error}"
        );
        assert!(!error.contains("secret"), "{error}");
        closed(&mut io).await;
        assert_eq!(stage.peer.connections_waiting(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_stream_is_refused_with_is_the_callers_answer() {
    let mut stage = Stage::new();
    let answer =
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer scope=\"x\"\r\nContent-Length: 0\r\n\r\n";
    let (trouble, _io) = stage.refused(answer).await;
    let Trouble::Refused(response) = trouble else { panic!("not refused") };
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(response.headers()[WWW_AUTHENTICATE], "Bearer scope=\"x\"");
}

#[tokio::test(start_paused = true)]
async fn c42_an_endpoint_is_read_against_where_the_stream_was_found() {
    let mut stage = Stage::new();
    let opening = stage.opening();
    let mut io = stage.peer.accept().await;
    read_request(&mut io).await;
    write(&mut io, "HTTP/1.1 307 X\r\nLocation: /api/v2/sse/\r\nContent-Length: 0\r\n\r\n").await;
    let request = read_request(&mut io).await;
    assert!(request.starts_with("GET /api/v2/sse/ HTTP/1.1\r\n"), "{request}");
    write(&mut io, &format!("{STREAM}event: endpoint\ndata: messages?sid=1\n\n")).await;
    let pipe = taken(opening.await.unwrap());
    let _sent = sending(&pipe, CALL);
    let request = read_request(&mut stage.peer.accept().await).await;
    assert!(request.starts_with("POST /api/v2/sse/messages?sid=1 HTTP/1.1\r\n"), "{request}");
}
