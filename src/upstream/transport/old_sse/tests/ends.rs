//! How a channel ends.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_session_that_the_server_does_not_know_is_over() {
    let mut stage = Stage::new();
    let (pipe, mut stream) = stage.open().await;
    let sent = sending(&pipe, CALL);
    let mut post = stage.peer.accept().await;
    read_request(&mut post).await;
    write(&mut post, "HTTP/1.1 404 X\r\nContent-Length: 0\r\n\r\n").await;
    let Err(Trouble::Refused(response)) = sent.await.unwrap() else { panic!("not refused") };
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
    closed(&mut stream).await;
    assert_eq!(stage.heard.wait(1).await, ["ended: it was ended"]);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_is_the_end() {
    let mut stage = Stage::new();
    let (pipe, stream) = stage.open().await;
    let sent = sending(&pipe, CALL);
    let mut post = stage.peer.accept().await;
    read_request(&mut post).await;
    drop(stream);
    let Err(Trouble::Send(error)) = sent.await.unwrap() else { panic!("it was sent") };
    assert!(matches!(error, SendError::Ended { .. }) && !error.did_not_run(), "{error}");
    closed(&mut post).await;
    assert_eq!(stage.heard.wait(1).await.len(), 1);
    let Err(Trouble::Send(error)) = sending(&pipe, CALL).await.unwrap() else { panic!("it was sent") };
    assert!(error.did_not_run(), "nothing is sent any more: {error}");
    assert_eq!((stage.heard.all().len(), stage.peer.connections_waiting()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn ending_a_channel_closes_its_stream() {
    let mut stage = Stage::new();
    let (pipe, mut stream) = stage.open().await;
    pipe.end();
    closed(&mut stream).await;
    assert_eq!(stage.heard.wait(1).await, ["ended: it was ended"]);
    // Dropping the last handle is the same.
    let (pipe, mut stream) = stage.open().await;
    drop(pipe);
    closed(&mut stream).await;
    assert_eq!(stage.heard.wait(2).await[1], "ended: it was ended");
    // And so is the end of all.
    let (_pipe, mut stream) = stage.open().await;
    stage.sse.close().await;
    assert_eq!(stage.heard.all().len(), 3);
    closed(&mut stream).await;
}
