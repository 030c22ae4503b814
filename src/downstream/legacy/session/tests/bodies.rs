//! Readers as response bodies: pauses, polling, and the end of the process.

use super::streams::error_of;
use super::*;
use crate::downstream::FrontBody;
use crate::downstream::ends::Ends;
use crate::telemetry::metrics::Ended;
use crate::wire::jsonrpc::Id;
use crate::wire::sse::KEEP_ALIVE;
use http_body::Body;
use http_body_util::BodyExt;
use tokio::time::Instant;

const QUIET: Duration = Duration::from_secs(15);

fn body(reader: Reader, ends: Ends) -> FrontBody {
    FrontBody::reading(reader, QUIET, ends)
}

async fn next(body: &mut FrontBody) -> Option<String> {
    let frame = body.frame().await?;
    Some(
        frame.map_or("!".to_owned(), |frame| String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap()),
    )
}

/// C16, A13.9.
#[tokio::test(start_paused = true)]
async fn c16_a_quiet_stream_is_kept_alive() {
    let stage = stage(|_| {});
    let (session, _) = stage.begin_as(LegacyRevision::V2025_06_18, None);
    let id = Id::number(1);
    let track = session.track([id.clone()]);
    let mut call = body(track.reader(), Ends::after_last_words(stage.shutdown.clone()));
    let began = Instant::now();
    assert_eq!(next(&mut call).await.unwrap().as_bytes(), KEEP_ALIVE);
    assert_eq!(began.elapsed(), QUIET);
    track.push(&message("1")).await;
    assert!(next(&mut call).await.unwrap().contains("data: 1"));
    assert_eq!(next(&mut call).await.unwrap().as_bytes(), KEEP_ALIVE);
    // Nothing of it stands in the middle of an event's line.
    track.piece(&id, &Bytes::from("12")).await;
    assert!(next(&mut call).await.unwrap().contains("id: "));
    assert_eq!(next(&mut call).await.unwrap(), "data: 12");
    let more = tokio::time::timeout(QUIET * 10, call.frame()).await;
    assert!(more.is_err(), "a comment would break the line");
    track.piece(&id, &Bytes::from("34\n")).await;
    assert_eq!(next(&mut call).await.unwrap(), "34\n");
    assert_eq!(next(&mut call).await.unwrap(), ":\n");
    track.end_pieces(true);
    assert_eq!(next(&mut call).await.unwrap(), "data: \n\n");
    assert_eq!(next(&mut call).await, None);
}

/// Events that are there together are one write, and the last one says that it is.
#[tokio::test(start_paused = true)]
async fn what_is_ready_together_goes_out_together() {
    let stage = stage(|_| {});
    let (session, _) = stage.begin(None);
    let id = Id::number(1);
    let track = session.track([id.clone()]);
    let mut call = body(track.reader(), Ends::after_last_words(stage.shutdown.clone()));
    track.push(&message("1")).await;
    track.answer(&id, &message("2"), Ended::Result).await;
    assert!(!call.is_end_stream());
    assert_eq!(data(&next(&mut call).await.unwrap()), ["-", "1", "2"]);
    assert!(call.is_end_stream());
    assert_eq!(next(&mut call).await, None);
}

/// `session.poll`: the stream ends whole, its client comes back, and the time begins anew.
#[tokio::test(start_paused = true)]
async fn a_call_is_polled_for_where_that_is_set() {
    let poll = Duration::from_secs(5);
    let stage = stage(|settings| settings.session.poll = poll);
    let (session, _) = stage.begin(None);
    let id = Id::number(1);
    let track = session.track([id.clone()]);
    let ends = || Ends::after_last_words(stage.shutdown.clone());
    let mut call = body(track.reader(), ends());
    let began = Instant::now();
    let primed = ids(&next(&mut call).await.unwrap()).remove(0);
    assert_eq!((next(&mut call).await, began.elapsed()), (None, poll));
    drop(call);
    for _ in 0..2 {
        let Resumed::Call(reader) = session.resume(primed.as_bytes()) else { panic!() };
        let (mut call, began) = (body(reader, ends()), Instant::now());
        assert_eq!((next(&mut call).await, began.elapsed()), (None, poll));
    }
    let Resumed::Call(reader) = session.resume(primed.as_bytes()) else { panic!() };
    let mut call = body(reader, ends());
    track.answer(&id, &message("1"), Ended::Result).await;
    assert_eq!(data(&next(&mut call).await.unwrap()), ["1"]);
    // Not the session's own stream, and nobody who would not know where to come back to.
    let mut own = body(session.own_stream(), Ends::quietly(stage.shutdown.clone()));
    next(&mut own).await.unwrap();
    let (old, _) = stage.begin_as(LegacyRevision::V2025_06_18, None);
    let track = old.track([Id::number(1)]);
    let mut call = body(track.reader(), ends());
    let began = Instant::now();
    assert!(next(&mut own).await.is_some() && next(&mut call).await.is_some());
    assert!(began.elapsed() >= QUIET);
}

/// Half of a large result is not polled for.
#[tokio::test(start_paused = true)]
async fn a_large_result_in_its_middle_is_not_cut_off_by_polling() {
    let stage = stage(|settings| settings.session.poll = Duration::from_secs(1));
    let (session, _) = stage.begin(None);
    let id = Id::number(1);
    let track = session.track([id.clone()]);
    let mut call = body(track.reader(), Ends::after_last_words(stage.shutdown.clone()));
    track.piece(&id, &Bytes::from("12")).await;
    while !next(&mut call).await.unwrap().contains("data: 12") {}
    assert!(tokio::time::timeout(Duration::from_secs(60), call.frame()).await.is_err());
    track.end_pieces(true);
    assert_eq!(next(&mut call).await.unwrap(), "\n\n");
    assert_eq!(next(&mut call).await, None);
}

/// The session's own stream ends without a word at the drain; a call's stream stays, and at the end its caller is told.
#[tokio::test(start_paused = true)]
async fn the_end_of_the_process_is_told_to_calls_and_not_to_the_own_stream() {
    let stage = stage(|_| {});
    let (session, _) = stage.begin_as(LegacyRevision::V2025_06_18, None);
    let track = session.track([Id::number(1)]);
    let mut own = body(session.own_stream(), Ends::quietly(stage.shutdown.clone()));
    let mut call = body(track.reader(), Ends::cut(stage.shutdown.clone()));
    stage.shutdown.drain();
    // But for when to come back.
    let pause = stage.shutdown.grace().as_millis() + 2000;
    assert_eq!(next(&mut own).await.unwrap(), format!("retry: {pause}\n\n"));
    assert_eq!(next(&mut own).await, None);
    assert_eq!(next(&mut call).await.unwrap().as_bytes(), KEEP_ALIVE);
    stage.shutdown.cut();
    let told = next(&mut call).await.unwrap();
    assert!(error_of(&told) && told.contains(r#""id":1,"#), "{told}");
    assert_eq!(next(&mut call).await, None);
}

/// A result that breaks off breaks the response off.
#[tokio::test(start_paused = true)]
async fn a_broken_result_is_no_whole_response() {
    let stage = stage(|_| {});
    let (session, _) = stage.begin_as(LegacyRevision::V2025_06_18, None);
    let id = Id::number(1);
    let track = session.track([id.clone()]);
    let mut call = body(track.reader(), Ends::after_last_words(stage.shutdown.clone()));
    track.piece(&id, &Bytes::from("12")).await;
    while !next(&mut call).await.unwrap().contains("data: 12") {}
    track.end_pieces(false);
    assert_eq!(next(&mut call).await.unwrap(), "!");
    assert_eq!(next(&mut call).await, None);
}
