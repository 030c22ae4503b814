//! Redirects, against a peer that writes bytes by hand (architecture, invariant 4; A13.10).

use bytes::Bytes;
use tokio::io::{AsyncWriteExt, DuplexStream};

use super::peer::{OK, Peer, read_request, stage, text};
use super::{RedirectRefusal, SendError};

/// Answers each request with the next of `responses` on one connection; returns the requests.
async fn answer_all(peer: &mut Peer, responses: &[&str]) -> Vec<String> {
    let mut requests = Vec::new();
    let mut connection: Option<DuplexStream> = None;
    for response in responses {
        let mut io = match connection.take() {
            Some(io) => io,
            None => peer.accept().await,
        };
        requests.push(read_request(&mut io).await);
        io.write_all(response.as_bytes()).await.unwrap();
        if !response.contains("Connection: close") {
            connection = Some(io);
        }
    }
    requests
}

fn moved(status: u16, location: &str) -> String {
    format!(
        "HTTP/1.1 {status} Elsewhere\r\nLocation: {location}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )
}

#[tokio::test(start_paused = true)]
async fn redirects_repeat_the_same_request_on_the_same_origin() {
    for status in [301, 302, 307, 308] {
        for location in ["/v2/mcp", "../v2/mcp", "http://U.example:80/v2/mcp#here", "//u.example/v2/mcp"] {
            let (transport, mut peer) = stage("http://u.example/v1/mcp", 1 << 16);
            let responses = [moved(status, location), String::from_utf8(OK.to_vec()).unwrap()];
            let responses = [responses[0].as_str(), responses[1].as_str()];
            let (requests, result) =
                tokio::join!(answer_all(&mut peer, &responses), text(&transport, "body"));
            assert_eq!(result.unwrap(), "ok");
            let same = requests[0].replace("/v1/mcp", "/v2/mcp");
            assert_eq!(requests[1], same);
            assert!(same.starts_with("POST /v2/mcp ") && same.contains("authorization: Bearer t"), "{same}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn redirects_elsewhere_are_refused() {
    let cross =
        ["https://u.example/v1/mcp", "http://u.example:81/", "http://evil.example/", "//evil.example/x"];
    let odd =
        ["http://a:b@u.example/", "ftp://u.example/", "file:///etc/passwd", "http://u.example.evil.example/"];
    for location in cross.into_iter().chain(odd) {
        let (transport, mut peer) = stage("http://u.example/v1/mcp", 1 << 16);
        let response = moved(307, location);
        let responses = [response.as_str()];
        let (_, result) = tokio::join!(answer_all(&mut peer, &responses), text(&transport, "x"));
        let error = result.unwrap_err();
        assert!(matches!(error, SendError::Redirect(RedirectRefusal::CrossOrigin { .. })), "{error:?}");
        assert_eq!(peer.connections_waiting(), 0, "{location}");
    }
}

#[tokio::test(start_paused = true)]
async fn other_redirects_are_refused_with_their_reason() {
    let hop = moved(308, "/again");
    let three = [hop.as_str(); 3];
    let see_other = moved(303, "/status/1");
    let nowhere = "HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n".to_owned();
    let table: [(&[&str], RedirectRefusal); 3] = [
        (&three, RedirectRefusal::TooMany { limit: 2 }),
        (&[&see_other], RedirectRefusal::SeeOther { location: "/status/1".to_owned() }),
        (&[&nowhere], RedirectRefusal::NoLocation { status: 302 }),
    ];
    for (responses, expected) in table {
        let (transport, mut peer) = stage("http://u.example/", 1 << 16);
        let (_, result) = tokio::join!(answer_all(&mut peer, responses), text(&transport, "x"));
        assert!(matches!(&result, Err(SendError::Redirect(refusal)) if *refusal == expected), "{result:?}");
        assert_eq!(peer.connections_waiting(), 0);
    }
    // Not a redirect of the request: passed on.
    let (transport, mut peer) = stage("http://u.example/", 1 << 16);
    let responses = ["HTTP/1.1 300 Choices\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n"];
    let (_, result) = tokio::join!(answer_all(&mut peer, &responses), text(&transport, Bytes::new()));
    assert_eq!(result.unwrap(), "");
}
