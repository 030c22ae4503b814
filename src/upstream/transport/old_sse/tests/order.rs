//! What waits for what, and for how long.

use super::*;

#[tokio::test(start_paused = true)]
async fn notifications_keep_their_place_and_requests_go_side_by_side() {
    let mut stage = Stage::new();
    let (pipe, _stream) = stage.open().await;
    let first = sending(&pipe, CALL);
    let mut one = stage.peer.accept().await;
    read_request(&mut one).await;
    let second = sending(&pipe, CALL);
    let mut two = stage.peer.accept().await;
    read_request(&mut two).await;
    // A notification waits for both of them, and a request for it.
    let note = sending(&pipe, NOTE);
    tokio::task::yield_now().await;
    let third = sending(&pipe, CALL);
    write(&mut one, ACCEPTED).await;
    taken(first.await.unwrap());
    tokio::task::yield_now().await;
    assert_eq!(stage.peer.connections_waiting(), 0);
    assert!(!note.is_finished() && !third.is_finished());
    write(&mut two, ACCEPTED).await;
    taken(second.await.unwrap());
    let (mut noted, text) = either_of(one, two).await;
    assert!(text.ends_with(NOTE), "{text}");
    assert!(!third.is_finished());
    write(&mut noted, ACCEPTED).await;
    taken(note.await.unwrap());
    let (mut last, text) = next(&mut stage.peer, noted).await;
    assert!(text.ends_with(CALL), "{text}");
    write(&mut last, ACCEPTED).await;
    taken(third.await.unwrap());
}

/// The next request on either of two connections; the other one is closed.
async fn either_of(mut one: DuplexStream, mut two: DuplexStream) -> (DuplexStream, String) {
    tokio::select! {
        text = read_request(&mut one) => (one, text),
        text = read_request(&mut two) => (two, text),
    }
}

/// The next request on this connection or on a new one.
async fn next(peer: &mut Peer, mut old: DuplexStream) -> (DuplexStream, String) {
    tokio::select! {
        text = read_request(&mut old) => (old, text),
        mut new = peer.accept() => {
            let text = read_request(&mut new).await;
            (new, text)
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_a_post_late_holds_up_nobody_for_long() {
    let mut stage = Stage::new();
    let (pipe, _stream) = stage.open().await;
    let call = sending(&pipe, CALL);
    let mut slow = stage.peer.accept().await;
    read_request(&mut slow).await;
    let since = Instant::now();
    let note = sending(&pipe, NOTE);
    let mut quick = stage.peer.accept().await;
    assert!(read_request(&mut quick).await.ends_with(NOTE));
    assert!(since.elapsed() <= Duration::from_secs(1), "{:?}", since.elapsed());
    write(&mut quick, ACCEPTED).await;
    taken(note.await.unwrap());
    // Nobody waits a second time for it.
    let since = Instant::now();
    let note = sending(&pipe, NOTE);
    read_request(&mut quick).await;
    assert_eq!(since.elapsed(), Duration::ZERO);
    write(&mut quick, ACCEPTED).await;
    taken(note.await.unwrap());
    let reply = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 8\r\n\r\n{\"id\":1}";
    write(&mut slow, reply).await;
    taken(call.await.unwrap());
    assert_eq!(stage.heard.wait(1).await, ["{\"id\":1}"]);
}
