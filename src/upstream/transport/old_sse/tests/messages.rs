//! Messages in both directions, and in every style of answer (C42).

use super::*;

#[tokio::test(start_paused = true)]
async fn messages_go_by_post_and_come_on_the_stream() {
    let mut stage = Stage::new();
    let (pipe, mut stream) = stage.open().await;
    let sent = sending(&pipe, CALL);
    let mut post = stage.peer.accept().await;
    let request = read_request(&mut post).await;
    assert!(request.starts_with("POST /messages?sid=1 HTTP/1.1\r\n") && request.ends_with(CALL), "{request}");
    let lower = request.to_ascii_lowercase();
    for line in [
        "content-type: application/json\r\n",
        "accept: application/json, text/event-stream\r\n",
        "authorization: bearer t\r\n",
        "host: h.test\r\n",
    ] {
        assert!(lower.contains(line), "{line} in {request}");
    }
    assert!(!lower.contains("mcp-session-id"), "{request}");
    // The answer may be there before the POST is accepted.
    write(&mut stream, ": keep-alive\n\nevent: message\ndata: {\"id\":1}\n\ndata: {\ndata: \"x\":2}\n\n")
        .await;
    assert_eq!(stage.heard.wait(2).await, ["{\"id\":1}", "{\n\"x\":2}"]);
    assert!(!sent.is_finished());
    write(&mut post, ACCEPTED).await;
    taken(sent.await.unwrap());
    // Others than messages are none.
    write(&mut stream, "event: endpoint\ndata: /other\n\nevent: ping\ndata: {}\n\ndata:\n\ndata: 3\n\n")
        .await;
    assert_eq!(stage.heard.wait(3).await[2], "3");
    // The connection of the first POST serves the second.
    let sent = sending(&pipe, NOTE);
    assert!(read_request(&mut post).await.ends_with(NOTE));
    write(&mut post, ACCEPTED).await;
    taken(sent.await.unwrap());
    assert_eq!(stage.peer.connections_waiting(), 0);
}

#[tokio::test(start_paused = true)]
async fn c42_a_reply_in_the_response_is_one_on_the_stream() {
    let json = |status: &str, body: &str| {
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let events = "data: {\"id\":1}\n\nevent: other\ndata: x\n\nevent: message\ndata: {\"id\":2}\n\n";
    let table: [(String, &[&str]); 6] = [
        (json("200 OK", "{\"id\":1}"), &["{\"id\":1}"]),
        (
            format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {}\r\n\r\n{events}",
                events.len()
            ),
            &["{\"id\":1}", "{\"id\":2}"],
        ),
        (json("202 Accepted", "\"Accepted\""), &[]),
        (json("200 OK", ""), &[]),
        ("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok".to_owned(), &[]),
        ("HTTP/1.1 204 No Content\r\n\r\n".to_owned(), &[]),
    ];
    for (answer, expected) in table {
        let mut stage = Stage::new();
        let (pipe, mut stream) = stage.open().await;
        let sent = sending(&pipe, CALL);
        let mut post = stage.peer.accept().await;
        read_request(&mut post).await;
        write(&mut post, &answer).await;
        taken(sent.await.unwrap());
        assert_eq!(stage.heard.wait(expected.len()).await, expected, "{answer}");
        // Nothing more than that has come when a later event has.
        sleep(Duration::from_secs(1)).await;
        write(&mut stream, "data: last\n\n").await;
        assert_eq!(stage.heard.wait(expected.len() + 1).await.last().unwrap(), "last", "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_message_is_refused_with_is_the_callers_answer() {
    for status in [400, 401, 403, 413, 429, 500, 503] {
        let mut stage = Stage::new();
        let (pipe, mut stream) = stage.open().await;
        let sent = sending(&pipe, CALL);
        let mut post = stage.peer.accept().await;
        read_request(&mut post).await;
        let answer = format!("HTTP/1.1 {status} X\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n");
        write(&mut post, &answer).await;
        let Err(Trouble::Refused(response)) = sent.await.unwrap() else { panic!("{status}") };
        assert_eq!(
            (response.status().as_u16(), &response.headers()[RETRY_AFTER]),
            (status, &"7".parse().unwrap())
        );
        // Only that message failed.
        write(&mut stream, "data: on\n\n").await;
        assert_eq!(stage.heard.wait(1).await, ["on"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_whose_sender_goes_is_handed_over_all_the_same() {
    let mut stage = Stage::new();
    let (pipe, _stream) = stage.open().await;
    let sent = sending(&pipe, CALL);
    let mut post = stage.peer.accept().await;
    sent.abort();
    assert!(sent.await.is_err());
    assert!(read_request(&mut post).await.ends_with(CALL));
    write(&mut post, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
        .await;
    assert_eq!(stage.heard.wait(1).await, ["{}"]);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_is_too_long_is_passed_over_with_its_id() {
    let mut stage = Stage::with(None, 100);
    let (_pipe, mut stream) = stage.open().await;
    let fill = "x".repeat(200_000);
    let fits = format!("{{\"id\":1,\"result\":\"{}\"}}", "x".repeat(80));
    assert_eq!(fits.len(), 100);
    let long = format!(
        "data: {fits}\n\nevent: message\ndata: {fits} \n\ndata: {{\"result\":\"{fill}\",\"id\":\"a\"}}\n\n: {}\n\ndata: done\n\n",
        "c".repeat(150)
    );
    write(&mut stream, &long).await;
    let heard = stage.heard.wait(4).await;
    assert_eq!(heard[0], fits);
    assert_eq!(heard[1..], ["too long: Some(\"1\")", "too long: Some(\"\\\"a\\\"\")", "done"]);
    // A line without end that is no data cannot be passed over.
    write(&mut stream, &format!(": {fill}")).await;
    assert_eq!(stage.heard.wait(5).await[4], "ended: the event stream has a line without end");
    closed(&mut stream).await;
}

#[tokio::test(start_paused = true)]
async fn a_reply_in_a_response_that_is_too_long_is_passed_over_with_its_id() {
    let mut stage = Stage::with(None, 100);
    let (pipe, _stream) = stage.open().await;
    let sent = sending(&pipe, CALL);
    let mut post = stage.peer.accept().await;
    read_request(&mut post).await;
    let body = format!("{{\"result\":\"{}\",\"id\":9}}", "x".repeat(200));
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    write(&mut post, &(head + &body)).await;
    taken(sent.await.unwrap());
    assert_eq!(stage.heard.wait(1).await, ["too long: Some(\"9\")"]);
}
