//! What is kept of streams, what makes room, and who waits for whom.

use super::streams::error_of;
use super::*;
use crate::telemetry::metrics::Ended;
use crate::wire::jsonrpc::Id;
use futures_util::FutureExt;

fn small(events: usize, bytes: usize) -> Stage {
    stage(|settings| {
        settings.session.replay_events = events;
        settings.session.replay_bytes = bytes;
    })
}

fn of(stage: &Stage) -> Use {
    stage.begin_as(LegacyRevision::V2025_06_18, None).0
}

/// The stream as whoever comes back with nothing sees it.
async fn from_the_beginning(session: &Use, id: &str) -> Vec<String> {
    let (number, _) = id.split_once('-').unwrap();
    match session.resume(format!("{number}-0").as_bytes()) {
        Resumed::Call(mut reader) => data(&read(&mut reader).await),
        Resumed::Over => vec!["over".to_owned()],
        Resumed::Own(_) => panic!(),
    }
}

/// A row's id, learned from its first event.
async fn begun(session: &Use, id: &Id) -> (Track, String) {
    let track = session.track([id.clone()]);
    let mut reader = track.reader();
    track.push(&message("0")).await;
    let id = ids(&read(&mut reader).await).remove(0);
    (track, id)
}

/// Invariant 5, B14: notifications make room, the oldest first; questions and the answer stay.
#[tokio::test(start_paused = true)]
async fn inv5_the_oldest_notification_makes_room_and_questions_and_the_answer_stay() {
    let stage = small(4, 1 << 20);
    let session = of(&stage);
    let id = Id::number(1);
    let (track, at) = begun(&session, &id).await;
    track.ask(1, &message("question")).await;
    for text in ["1", "2", "3", "4"] {
        track.push(&message(text)).await;
    }
    track.ask(2, &message("another")).await;
    track.answer(&id, &message("answer"), Ended::Result).await;
    assert_eq!(from_the_beginning(&session, &at).await, ["question", "4", "another", "answer", "."]);
    assert_eq!(stage.counted("replay_dropped_total"), [r#"replay_dropped_total{what="notice"} 3"#]);
}

/// Bytes bound as well as numbers; the same across all streams of a session.
#[tokio::test(start_paused = true)]
async fn inv5_all_streams_of_a_session_share_one_bound() {
    let stage = small(100, 1000);
    let session = of(&stage);
    let (first, second) = (Id::number(1), Id::number(2));
    let (one, at_one) = begun(&session, &first).await;
    let (two, at_two) = begun(&session, &second).await;
    one.answer(&first, &message(&"a".repeat(300)), Ended::Result).await;
    for _ in 0..20 {
        two.push(&message(&"b".repeat(100))).await;
    }
    two.answer(&second, &message(&"c".repeat(300)), Ended::Result).await;
    let told = from_the_beginning(&session, &at_one).await;
    assert_eq!(told.last().unwrap(), ".");
    assert_eq!(
        told[told.len() - 2],
        "a".repeat(300),
        "an answer that nobody has read outlives what is said elsewhere"
    );
    let told = from_the_beginning(&session, &at_two).await;
    assert!(told.contains(&"c".repeat(300)) && told.len() < 5, "{told:?}");
}

/// An answer that cannot be kept leaves a word: its caller gets an error and does not wait for ever.
#[tokio::test(start_paused = true)]
async fn b14_an_answer_that_is_not_kept_becomes_an_error_in_words() {
    let stage = small(100, 1000);
    let session = of(&stage);
    let id = Id::number(1);
    let (track, at) = begun(&session, &id).await;
    track.answer(&id, &message(&"a".repeat(2000)), Ended::Result).await;
    let told = from_the_beginning(&session, &at).await;
    let [.., error, end] = &told[..] else { panic!() };
    assert!(error_of(error) && error.contains(r#""id":1,"#) && error.contains("replay_bytes"), "{error}");
    assert_eq!(end, ".");
    assert_eq!(stage.counted("replay_dropped_total"), [r#"replay_dropped_total{what="answer"} 1"#]);
    // With a reader it comes whole, however large; it is only not there a second time.
    let (track, at) = begun(&session, &id).await;
    let mut reader = track.reader();
    track.answer(&id, &message(&"a".repeat(2000)), Ended::Result).await;
    assert_eq!(data(&read(&mut reader).await), ["a".repeat(2000), ".".to_owned()]);
    drop(reader);
    let told = from_the_beginning(&session, &at).await;
    assert!(error_of(&told[told.len() - 2]), "{told:?}");
    assert_eq!(stage.counted("replay_dropped_total").len(), 1, "it was read");
}

/// Whole streams make room too, those that were read first.
#[tokio::test(start_paused = true)]
async fn inv5_streams_that_are_over_make_room_for_others() {
    let stage = small(3, 1 << 20);
    let session = of(&stage);
    let mut all = Vec::new();
    for n in 0..6 {
        let id = Id::number(n);
        let track = session.track([id.clone()]);
        let mut reader = track.reader();
        track.answer(&id, &message(&n.to_string()), Ended::Result).await;
        // The second and the fourth were never read.
        if n == 1 || n == 3 {
            drop(reader);
            let mut probe = track.reader();
            all.push(ids(&read(&mut probe).await).remove(0));
            continue;
        }
        all.push(ids(&read(&mut reader).await).remove(0));
    }
    let mut kept = Vec::new();
    for id in &all {
        kept.push(from_the_beginning(&session, id).await.remove(0));
    }
    assert_eq!(kept, ["over", "over", "over", "3", "4", "5"]);
}

/// A reader that is behind slows down whoever speaks; without a reader nobody waits.
#[tokio::test(start_paused = true)]
async fn a_slow_reader_is_waited_for_and_a_missing_one_is_not() {
    let front = config::Limits { events: 2, event_bytes: 1000, ..config::Limits::default() };
    let stage = stage_with(&settings(), &front);
    let session = of(&stage);
    let track = Arc::new(session.track([Id::number(1)]));
    let mut reader = track.reader();
    for text in ["1", "2"] {
        track.push(&message(text)).await;
    }
    let third = tokio::spawn({
        let track = track.clone();
        async move { track.push(&message("3")).await }
    });
    tokio::task::yield_now().await;
    assert!(!third.is_finished());
    assert_eq!(data(&read(&mut reader).await), ["1", "2"]);
    third.await.unwrap();
    assert_eq!(data(&read(&mut reader).await), ["3"]);
    // One that is larger than all may go alone.
    track.push(&message(&"x".repeat(5000))).await;
    let next = tokio::spawn({
        let track = track.clone();
        async move { track.push(&message("4")).await }
    });
    tokio::task::yield_now().await;
    assert!(!next.is_finished());
    drop(reader);
    next.await.unwrap();
    for text in ["5", "6", "7", "8"] {
        assert!(track.push(&message(text)).now_or_never().is_some());
    }
}

/// Architecture, "Raw JSON": a large result passes and is not kept.
#[tokio::test(start_paused = true)]
async fn a_large_result_passes_as_one_event_and_is_not_there_again() {
    let stage = small(100, 1000);
    let session = of(&stage);
    let id = Id::number(1);
    let (track, at) = begun(&session, &id).await;
    let mut reader = track.reader();
    let mut text = String::new();
    for _ in 0..10 {
        track.piece(&id, &Bytes::from("p".repeat(500))).await;
        text += &read(&mut reader).await;
        assert_eq!(reader.gap(), Gap::None);
    }
    track.end_pieces(true);
    text += &read(&mut reader).await;
    assert_eq!(data(&text), ["p".repeat(5000), ".".to_owned()]);
    assert_eq!((ids(&text).len(), reader.ended()), (1, Some(Ended::Result)));
    let all = ids(&text);
    drop(reader);
    let told = from_the_beginning(&session, &at).await;
    assert!(error_of(&told[1]) && told.len() == 3, "{told:?}");
    assert!(matches!(session.resume(all[0].as_bytes()), Resumed::Over), "who has had it has had it");
}

/// Its reader slows it down.
#[tokio::test(start_paused = true)]
async fn a_large_result_waits_for_its_reader() {
    let front = config::Limits { events: 2, event_bytes: 1000, ..config::Limits::default() };
    let stage = stage_with(&settings(), &front);
    let session = of(&stage);
    let id = Id::number(1);
    let track = Arc::new(session.track([id.clone()]));
    let mut reader = track.reader();
    let pieces = tokio::spawn({
        let (track, id) = (track.clone(), id.clone());
        async move {
            for _ in 0..100 {
                track.piece(&id, &Bytes::from("p".repeat(500))).await;
            }
            track.end_pieces(true);
        }
    });
    let mut text = String::new();
    for _ in 0..100_000 {
        tokio::task::yield_now().await;
        let more = read(&mut reader).await;
        assert!(more.len() < 2000, "{}", more.len());
        text += &more;
        if text.ends_with('.') {
            break;
        }
    }
    pieces.await.unwrap();
    assert_eq!(data(&text), ["p".repeat(50_000), ".".to_owned()]);
}

/// B14, A12.20: lost with its connection in the middle, it is an error for whoever comes back.
#[tokio::test(start_paused = true)]
async fn b14_a_large_result_that_is_lost_in_the_middle_becomes_an_error() {
    let stage = stage(|_| {});
    let session = of(&stage);
    let id = Id::number(1);
    for comes_back_early in [false, true] {
        let (track, at) = begun(&session, &id).await;
        let mut reader = track.reader();
        // More than is kept.
        for _ in 0..20 {
            track.piece(&id, &Bytes::from("p".repeat(100_000))).await;
            assert!(!read(&mut reader).await.is_empty());
        }
        drop(reader);
        let early = comes_back_early.then(|| session.resume(at.as_bytes()));
        for _ in 0..100 {
            assert!(track.piece(&id, &Bytes::from("p".repeat(100_000))).now_or_never().is_some());
        }
        track.end_pieces(true);
        let mut reader = match early.unwrap_or_else(|| session.resume(at.as_bytes())) {
            Resumed::Call(reader) => reader,
            Resumed::Own(_) | Resumed::Over => panic!(),
        };
        let told = data(&read(&mut reader).await);
        assert!(told.len() == 2 && error_of(&told[0]) && told[1] == ".", "{told:?}");
    }
    assert_eq!(stage.counted("replay_dropped_total"), [r#"replay_dropped_total{what="answer"} 2"#]);
}

/// B14: what is no larger than may be kept is not lost, wherever its connection breaks.
#[tokio::test(start_paused = true)]
async fn b14_a_result_that_fits_can_be_had_from_its_beginning() {
    let stage = stage(|_| {});
    let session = of(&stage);
    let id = Id::number(1);
    for (before, after) in [(1, 0), (1, 4), (5, 4), (9, 0)] {
        let (track, at) = begun(&session, &id).await;
        let mut reader = track.reader();
        let piece = Bytes::from("p".repeat(100_000));
        for _ in 0..before {
            track.piece(&id, &piece).await;
            assert!(!read(&mut reader).await.is_empty());
        }
        drop(reader);
        for _ in 0..after {
            track.piece(&id, &piece).await;
        }
        track.end_pieces(true);
        for _ in 0..2 {
            let Resumed::Call(mut reader) = session.resume(at.as_bytes()) else { panic!() };
            let mut text = String::new();
            while !text.ends_with('.') {
                text += &read(&mut reader).await;
            }
            assert_eq!(data(&text), ["p".repeat(100_000 * (before + after)), ".".to_owned()]);
        }
    }
    assert!(stage.counted("replay_dropped_total").is_empty());
}

/// Invariant 5: one that is over before its reader has taken anything counts like everything that is kept, when that has gone.
#[tokio::test(start_paused = true)]
async fn inv5_large_results_that_nobody_took_share_one_bound() {
    let stage = small(100, 10_000);
    let session = of(&stage);
    let mut all = Vec::new();
    for n in 0..6 {
        let id = Id::number(n);
        let (track, at) = begun(&session, &id).await;
        let reader = track.reader();
        track.piece(&id, &Bytes::from("p".repeat(4000))).await;
        track.end_pieces(true);
        drop(reader);
        all.push(at);
    }
    let kept = session.work(|work| work.rows.kept());
    assert!(kept.1 <= 10_000, "{kept:?}");
    let told = from_the_beginning(&session, &all[5]).await;
    assert_eq!(told[told.len() - 2], "p".repeat(4000));
    let told = from_the_beginning(&session, &all[0]).await;
    assert!(error_of(&told[told.len() - 2]), "{told:?}");
    assert_eq!(stage.counted("replay_dropped_total"), [r#"replay_dropped_total{what="answer"} 4"#]);
}

/// Invariant 7: what makes room for the last words of another stream, or when another reader takes something, is counted.
#[tokio::test(start_paused = true)]
async fn inv7_whatever_makes_room_is_counted() {
    let stage = small(4, 1 << 20);
    let session = of(&stage);
    let (quiet, other, ends) = (Id::number(1), Id::number(2), Id::number(3));
    let (unread, _) = begun(&session, &quiet).await;
    for text in ["1", "2", "3"] {
        unread.push(&message(text)).await;
    }
    let dropped = |n: u32| {
        let line = format!(r#"replay_dropped_total{{what="notice"}} {n}"#);
        assert_eq!(stage.counted("replay_dropped_total"), if n == 0 { vec![] } else { vec![line] });
    };
    dropped(0);
    // "0" goes uncounted, since it was read.
    session.track([ends.clone()]).finish("over", Ended::Internal);
    session.track([Id::number(4)]).finish("over", Ended::Internal);
    dropped(1);
    // A large result that its reader has taken is kept from then on.
    let stage = small(100, 5000);
    let session = of(&stage);
    let (unread, _) = begun(&session, &quiet).await;
    for text in ["1", "2", "3"] {
        unread.push(&message(&text.repeat(1000))).await;
    }
    let track = session.track([other.clone()]);
    let mut reader = track.reader();
    track.piece(&other, &Bytes::from("p".repeat(3000))).await;
    track.end_pieces(true);
    assert!(read(&mut reader).await.ends_with('.'));
    assert_eq!(stage.counted("replay_dropped_total"), [r#"replay_dropped_total{what="notice"} 2"#]);
}

/// As long as nobody has its beginning it is held, as far as it may be.
#[tokio::test(start_paused = true)]
async fn a_large_result_is_held_for_a_reader_that_is_not_there() {
    let stage = small(100, 10_000);
    let session = of(&stage);
    let id = Id::number(1);
    for (size, held) in [(50, true), (500, false)] {
        let (track, at) = begun(&session, &id).await;
        for _ in 0..100 {
            track.piece(&id, &Bytes::from("p".repeat(size))).await;
        }
        track.end_pieces(true);
        let told = from_the_beginning(&session, &at).await;
        if held {
            assert_eq!(told, ["0".to_owned(), "p".repeat(5000), ".".to_owned()]);
        } else {
            assert!(error_of(&told[1]), "{told:?}");
        }
    }
    // Its reader comes in the middle.
    let (track, at) = begun(&session, &id).await;
    track.piece(&id, &Bytes::from("12")).await;
    let Resumed::Call(mut reader) = session.resume(at.as_bytes()) else { panic!() };
    track.piece(&id, &Bytes::from("34")).await;
    track.end_pieces(true);
    assert_eq!(data(&read(&mut reader).await), ["1234", "."]);
}

/// A server that breaks off: whoever has the beginning sees the break, and the others an error.
#[tokio::test(start_paused = true)]
async fn a_result_that_breaks_off_breaks_its_readers_stream() {
    let stage = stage(|_| {});
    let session = of(&stage);
    let id = Id::number(1);
    let (track, at) = begun(&session, &id).await;
    let mut reader = track.reader();
    track.piece(&id, &Bytes::from("12")).await;
    let begun_text = read(&mut reader).await;
    assert!(begun_text.ends_with("data: 12"));
    track.piece(&id, &Bytes::from("34")).await;
    track.end_pieces(false);
    assert_eq!(read(&mut reader).await, "34!");
    drop(reader);
    let told = from_the_beginning(&session, &at).await;
    assert!(error_of(&told[1]), "{told:?}");
    // Nobody had anything of it.
    let (track, _) = begun(&session, &id).await;
    let mut reader = track.reader();
    track.piece(&id, &Bytes::from("12")).await;
    track.finish("stopped", Ended::Draining);
    let told = data(&read(&mut reader).await);
    assert!(told.len() == 2 && error_of(&told[0]) && told[1] == ".", "{told:?}");
}

/// Answers of an array that come while a large one passes wait for its end.
#[tokio::test(start_paused = true)]
async fn what_comes_beside_a_large_result_comes_after_it() {
    let stage = stage(|_| {});
    let session = of(&stage);
    let (one, two) = (Id::number(1), Id::number(2));
    let track = session.track([one.clone(), two.clone()]);
    let mut reader = track.reader();
    track.push(&message("before")).await;
    track.piece(&one, &Bytes::from("12")).await;
    track.answer(&two, &message("two"), Ended::Result).await;
    let mut text = read(&mut reader).await;
    track.piece(&one, &Bytes::from("34")).await;
    track.end_pieces(true);
    text += &read(&mut reader).await;
    assert_eq!(data(&text), ["before", "1234", "two", "."]);
}
