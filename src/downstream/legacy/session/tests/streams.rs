//! Event streams of sessions: ids, order, replay and bounds.

use super::*;
use crate::telemetry::metrics::Ended;
use crate::wire::jsonrpc::Id;
use crate::wire::payload::Payload;

fn message(text: &str) -> Payload {
    Payload::from(text.to_owned())
}

/// A13.5, B14: what one reader has not taken the next one gets, and what it has taken is given again to whoever asks.
#[tokio::test(start_paused = true)]
async fn b14_a_call_goes_on_without_its_reader_and_its_answer_is_found_again() {
    let stage = stage(|_| {});
    let (session, _) = stage.begin(None);
    let id = Id::number(1);
    let track = session.track([id.clone()]);
    let mut reader = track.reader();
    let text = read(&mut reader).await;
    assert_eq!((data(&text), ids(&text).len()), (vec!["-".to_owned()], 1));
    assert!(text.contains("\nretry: 1000\ndata: \n\n"), "{text:?}");
    let primed = ids(&text).remove(0);
    track.push(&message("1")).await;
    assert_eq!(data(&read(&mut reader).await), ["1"]);
    drop(reader);
    track.push(&message("2")).await;
    track.answer(&id, &message("3"), Ended::Result).await;
    drop(track);
    let Resumed::Call(mut again) = session.resume(primed.as_bytes()) else { panic!() };
    let text = read(&mut again).await;
    assert_eq!(data(&text), ["1", "2", "3", "."]);
    let last = ids(&text).remove(2);
    assert!(matches!(session.resume(last.as_bytes()), Resumed::Over));
}
