//! Event streams of sessions: ids, order, replay and what is owed on them.

use super::*;
use crate::telemetry::metrics::Ended;
use crate::wire::jsonrpc::Id;
use std::collections::HashSet;
use tokio::time::sleep;

pub(super) fn error_of(text: &str) -> bool {
    text.contains("-32603")
}

/// A13.5, B14, A12.19: what one reader has not taken the next one gets, and what it has taken is given again to whoever asks.
#[tokio::test(start_paused = true)]
async fn b14_a_call_goes_on_without_its_reader_and_its_answer_is_found_again() {
    let stage = stage(|_| {});
    let (session, _) = stage.begin(None);
    let id = Id::number(1);
    let track = session.track([id.clone()]);
    let mut reader = track.reader();
    let text = read(&mut reader).await;
    let primed = ids(&text).remove(0);
    track.push(&message("1")).await;
    assert_eq!(data(&read(&mut reader).await), ["1"]);
    drop(reader);
    track.push(&message("2")).await;
    track.answer(&id, &message("3"), Ended::Result).await;
    drop(track);
    for _ in 0..2 {
        let Resumed::Call(mut again) = session.resume(primed.as_bytes()) else { panic!() };
        let text = read(&mut again).await;
        assert_eq!(data(&text), ["1", "2", "3", "."]);
        assert_eq!(again.ended(), Some(Ended::Result));
        let all = ids(&text);
        let Resumed::Call(mut again) = session.resume(all[1].as_bytes()) else { panic!() };
        assert_eq!(data(&read(&mut again).await), ["3", "."]);
        assert!(matches!(session.resume(all[2].as_bytes()), Resumed::Over));
    }
    assert_eq!(
        stage.counted("resumed_streams_total"),
        [r#"resumed_streams_total{how="over"} 2"#, r#"resumed_streams_total{how="replayed"} 4"#,]
    );
}

/// A13.5: an event without data comes first, and only to those who know what it means.
#[tokio::test(start_paused = true)]
async fn a13_5_a_client_is_primed_from_2025_11_25_on() {
    let stage = stage(|_| {});
    for (revision, primed) in [
        (LegacyRevision::V2024_11_05, false),
        (LegacyRevision::V2025_03_26, false),
        (LegacyRevision::V2025_06_18, false),
        (LegacyRevision::V2025_11_25, true),
    ] {
        let (session, _) = stage.begin_as(revision, None);
        let track = session.track([Id::number(1)]);
        let (mut call, mut own) = (track.reader(), session.own_stream());
        track.push(&message("1")).await;
        let (call, own) = (read(&mut call).await, read(&mut own).await);
        if primed {
            let [priming, event] = call.split_terminator("\n\n").collect::<Vec<_>>()[..] else { panic!() };
            let [id, retry, empty] = priming.lines().collect::<Vec<_>>()[..] else { panic!("{priming:?}") };
            assert!(id.starts_with("id: c") && id.ends_with("-0"), "{id}");
            assert_eq!((retry, empty), ("retry: 1000", "data: "));
            assert!(event.starts_with("id: c") && event.ends_with("-1\ndata: 1"), "{event}");
            assert!(own.starts_with("id: s") && own.ends_with("-0\nretry: 1000\ndata: \n\n"), "{own}");
        } else {
            assert_eq!(data(&call), ["1"]);
            assert_eq!(own, "");
        }
    }
}

/// Ids are unique among all streams of all sessions, and a client's other stream can be told from its calls.
#[tokio::test(start_paused = true)]
async fn event_ids_are_unique() {
    let stage = stage(|_| {});
    let mut all = HashSet::new();
    for _ in 0..3 {
        let (session, _) = stage.begin(None);
        for _ in 0..3 {
            let track = session.track([Id::number(1)]);
            let mut reader = track.reader();
            for text in ["1", "2", "3"] {
                track.push(&message(text)).await;
            }
            let given = ids(&read(&mut reader).await);
            assert_eq!(given.len(), 4);
            assert!(given.into_iter().all(|id| id.starts_with('c') && all.insert(id)));
        }
        let given = ids(&read(&mut session.own_stream()).await);
        assert!(given.into_iter().all(|id| id.starts_with('s') && all.insert(id)));
    }
}

/// Raw line ends in a message are line ends of its event.
#[tokio::test(start_paused = true)]
async fn a_message_of_several_lines_is_one_event() {
    let stage = stage(|_| {});
    let (session, _) = stage.begin_as(LegacyRevision::V2025_06_18, None);
    let track = session.track([Id::number(1)]);
    let mut reader = track.reader();
    track.push(&message("{\n}\r\n")).await;
    let text = read(&mut reader).await;
    assert!(text.ends_with("-1\ndata: {\ndata: }\ndata: \n\n"), "{text:?}");
}

/// 11/basic/transports, Multiple Connections: a message goes to one stream.
#[tokio::test(start_paused = true)]
async fn a_newer_reader_ends_the_older_one() {
    let stage = stage(|_| {});
    let (session, _) = stage.begin_as(LegacyRevision::V2025_06_18, None);
    let track = session.track([Id::number(1)]);
    let mut older = track.reader();
    let waits = tokio::spawn(async move {
        let next = poll_fn(|cx| older.poll_next(cx)).await;
        (matches!(next, Next::End), older)
    });
    tokio::task::yield_now().await;
    let mut newer = track.reader();
    let (ended, older) = waits.await.unwrap();
    assert!(ended);
    track.push(&message("1")).await;
    drop(older);
    track.push(&message("2")).await;
    assert_eq!(data(&read(&mut newer).await), ["1", "2"]);
}

/// Invariant 1: an answer for each request, and no second one.
#[tokio::test(start_paused = true)]
async fn inv1_a_stream_ends_with_the_answers_that_are_owed_on_it() {
    let stage = stage(|_| {});
    let (session, _) = stage.begin_as(LegacyRevision::V2025_03_26, None);
    let (one, two) = (Id::number(1), Id::number(2));
    let track = session.track([one.clone(), two.clone()]);
    let mut reader = track.reader();
    track.answer(&two, &message("two"), Ended::Result).await;
    track.answer(&two, &message("again"), Ended::Result).await;
    track.answer(&Id::number(3), &message("nobody's"), Ended::Result).await;
    assert_eq!(data(&read(&mut reader).await), ["two"]);
    track.answer(&one, &message("one"), Ended::Error).await;
    track.push(&message("late")).await;
    assert_eq!(data(&read(&mut reader).await), ["one", "."]);
    assert_eq!(reader.ended(), Some(Ended::Error));
}

#[tokio::test(start_paused = true)]
async fn inv1_whoever_lets_go_of_a_stream_leaves_errors_behind() {
    let stage = stage(|_| {});
    let (session, _) = stage.begin_as(LegacyRevision::V2025_06_18, None);
    let track = session.track([Id::number(1), Id::number(2)]);
    let mut reader = track.reader();
    track.answer(&Id::number(1), &message("one"), Ended::Result).await;
    drop(track);
    let told = data(&read(&mut reader).await);
    assert!(told.len() == 3 && told[0] == "one" && told[2] == ".", "{told:?}");
    assert!(told[1].contains(r#""id":2,"#) && error_of(&told[1]));
    let track = session.track([Id::number(3)]);
    let mut reader = track.reader();
    track.finish("in words", Ended::Internal);
    assert!(read(&mut reader).await.contains("in words"));
}

/// A2.2: a request that its client takes back has no answer, and nothing is left to come back for.
#[tokio::test(start_paused = true)]
async fn a_cancelled_request_is_not_answered() {
    let stage = stage(|_| {});
    let (session, _) = stage.begin(None);
    let track = session.track([Id::number(1)]);
    let mut reader = track.reader();
    track.push(&message("1")).await;
    let text = read(&mut reader).await;
    track.push(&message("2")).await;
    track.forgive(&Id::number(1));
    track.answer(&Id::number(1), &message("late"), Ended::Result).await;
    assert_eq!(data(&read(&mut reader).await), ["2", "."]);
    assert_eq!(reader.ended(), Some(Ended::Cancelled));
    drop((reader, track));
    for id in ids(&text) {
        assert!(matches!(session.resume(id.as_bytes()), Resumed::Over));
    }
    assert!(session.is_at_rest());
}

/// `session.replay`.
#[tokio::test(start_paused = true)]
async fn what_is_over_for_long_enough_is_let_go_of() {
    let stage = stage(|settings| settings.session.replay = Duration::from_secs(60));
    let (session, _) = stage.begin(None);
    let track = session.track([Id::number(1)]);
    let primed = ids(&read(&mut track.reader()).await).remove(0);
    sleep(Duration::from_secs(600)).await;
    // Its time begins with its end.
    track.answer(&Id::number(1), &message("1"), Ended::Result).await;
    sleep(Duration::from_secs(59)).await;
    assert!(matches!(session.resume(primed.as_bytes()), Resumed::Call(_)));
    sleep(Duration::from_secs(1)).await;
    assert!(matches!(session.resume(primed.as_bytes()), Resumed::Over));
    drop(track);
    sleep(Duration::from_secs(20)).await;
    assert!(session.is_at_rest(), "nobody has to come for that");
}

/// Ids of other processes, of other sessions and of no process.
#[tokio::test(start_paused = true)]
async fn a_foreign_event_id_opens_no_call() {
    let stage = stage(|_| {});
    let (session, _) = stage.begin(None);
    let (other, _) = stage.begin(None);
    let track = other.track([Id::number(1)]);
    let foreign = ids(&read(&mut track.reader()).await).remove(0);
    assert!(matches!(session.resume(foreign.as_bytes()), Resumed::Over));
    assert!(matches!(session.resume(b"c12-0"), Resumed::Over));
    for own in ["s12-0", "", "x", "c", "c-", "cx-0", "c1-", "1-2", "\u{e9}", "c1-99999999999999999999999"] {
        assert!(matches!(session.resume(own.as_bytes()), Resumed::Own(_)), "{own:?}");
    }
    // An event of the future is none that the client can have had.
    let ahead = foreign.replace("-0", "-99");
    track.push(&message("1")).await;
    let Resumed::Call(mut reader) = other.resume(ahead.as_bytes()) else { panic!() };
    track.push(&message("2")).await;
    assert_eq!(data(&read(&mut reader).await), ["2"]);
}

/// A12.15.
#[tokio::test(start_paused = true)]
async fn with_the_session_its_streams_and_calls_end() {
    let stage = stage(|_| {});
    let (session, _) = stage.begin_as(LegacyRevision::V2025_06_18, None);
    let id = Id::number(1);
    let (entered, track) = (session.enter(&id), session.track([id.clone()]));
    let (mut call, mut own) = (track.reader(), session.own_stream());
    let (sender, receiver) = tokio::sync::oneshot::channel();
    session.ask(7, sender);
    stage.sessions.end(&session);
    entered.cancelled().await;
    assert!(receiver.await.is_err());
    let told = data(&read(&mut call).await);
    assert!(told.len() == 2 && error_of(&told[0]) && told[0].contains(r#""id":1,"#), "{told:?}");
    assert_eq!(data(&read(&mut own).await), ["."]);
    track.answer(&id, &message("late"), Ended::Result).await;
    // What begins now, as the session was found just before, ends at once.
    let late = session.track([Id::number(2)]);
    let told = data(&read(&mut late.reader()).await);
    assert!(told.len() == 2 && error_of(&told[0]) && told[1] == ".", "{told:?}");
    session.enter(&id).cancelled().await;
    assert_eq!(data(&read(&mut session.own_stream()).await), ["."]);
}

/// A2.2, A14: every call under the id, and no other.
#[tokio::test(start_paused = true)]
async fn a_cancellation_is_of_the_id_as_it_was_written() {
    let stage = stage(|_| {});
    let (session, _) = stage.begin(None);
    let one = session.enter(&Id::number(1));
    let text = Bytes::from_static(br#""1""#);
    let other = session.enter(&Id::accept(&text, crate::wire::json::Span::new(0, text.len())).unwrap());
    let twin = session.enter(&Id::number(1));
    assert!(session.cancel(b"1"));
    one.cancelled().await;
    twin.cancelled().await;
    assert!(futures_util::FutureExt::now_or_never(other.cancelled()).is_none());
    assert!(!session.cancel(b"2"));
    drop((one, twin));
    assert!(!session.cancel(b"1"));
    assert!(session.cancel(br#""1""#));
}

/// B2.2, C17: an answer goes to the question of its id, once.
#[tokio::test(start_paused = true)]
async fn an_answer_finds_its_question() {
    let stage = stage(|_| {});
    let (session, _) = stage.begin(None);
    let ask = |id| {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        session.ask(id, sender);
        receiver
    };
    let (one, two, three) = (ask(1), ask(2), ask(3));
    assert!(session.answer(answer("2")));
    assert!(!session.answer(answer("2")), "once");
    assert!(session.answer(answer(r#""1""#)));
    session.withdraw(3);
    for nobody in ["3", "4", "null", r#""x""#, "-1"] {
        assert!(!session.answer(answer(nobody)), "{nobody}");
    }
    assert!(one.await.is_ok() && two.await.is_ok() && three.await.is_err());
    let (other, _) = stage.begin(None);
    let _waiting = ask(5);
    assert!(!other.answer(answer("5")), "another session's");
    assert!(!session.is_at_rest());
}

/// B2.8, B14: nobody is asked again what was answered or taken back, and nobody hears of a question only to hear that it is
/// void.
#[tokio::test(start_paused = true)]
async fn a_question_that_is_settled_is_not_put_again() {
    let stage = stage(|_| {});
    let (session, _) = stage.begin(None);
    let track = session.track([Id::number(1)]);
    let mut reader = track.reader();
    let primed = ids(&read(&mut reader).await).remove(0);
    #[allow(clippy::async_yields_async, reason = "the answer is waited for later")]
    let ask = async |id: u64| {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        session.ask(id, sender);
        track.ask(id, &message(&format!("question {id}"))).await;
        receiver
    };
    let answered = ask(1).await;
    let read_and_void = ask(2).await;
    assert_eq!(data(&read(&mut reader).await), ["question 1", "question 2"]);
    drop(reader);
    let unread_and_void = ask(3).await;
    let open = ask(4).await;
    assert!(session.answer(answer("1")));
    assert!(!session.withdraw(1));
    for id in [2, 3] {
        assert!(session.withdraw(id));
        track.take_back(id, &message(&format!("void {id}")));
    }
    let Resumed::Call(mut reader) = session.resume(primed.as_bytes()) else { panic!() };
    assert_eq!(data(&read(&mut reader).await), ["question 4", "void 2"]);
    drop((answered, read_and_void, unread_and_void, open));
}

fn answer(id: &str) -> crate::exchange::Reply {
    let text = Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
    let limits = crate::wire::json::Limits { nesting: 9, members: 9 };
    match crate::wire::jsonrpc::parse(text, limits) {
        Ok(crate::wire::jsonrpc::Message::Response(response)) => {
            crate::exchange::Reply { response, authorization: None }
        }
        Ok(_) | Err(_) => panic!("{id} is no answer's"),
    }
}
