//! The session's own stream and what waits for it.

use super::*;
use crate::translate::legacy_client::notify::{Change, announce};
use crate::wire::jsonrpc::Id;

fn tells(session: &Use, change: &Change) {
    session.heard(change, &announce(change));
}

fn updated(uri: &str) -> Change {
    Change::Updated(uri.into())
}

/// What an event is about.
fn about(text: &str) -> Vec<String> {
    let short = |data: String| {
        let uri = data.split(r#""uri":""#).nth(1).map(|rest| rest.split('"').next().unwrap().to_owned());
        let method =
            data.split("notifications/").nth(1).map(|rest| rest.split('"').next().unwrap().to_owned());
        uri.or(method).unwrap_or(data)
    };
    data(text).into_iter().map(short).collect()
}

/// B9.8: one of each kind waits while no stream is open.
#[tokio::test(start_paused = true)]
async fn b9_8_one_notice_of_each_kind_waits_for_the_stream() {
    let stage = stage(|_| {});
    let (session, _) = stage.begin_as(LegacyRevision::V2025_06_18, None);
    let all = [Change::Tools, updated("u"), Change::Tools, updated("v"), updated("u"), Change::Prompts];
    all.iter().for_each(|change| tells(&session, change));
    let mut own = session.own_stream();
    assert_eq!(about(&read(&mut own).await), ["tools/list_changed", "u", "v", "prompts/list_changed"]);
    tells(&session, &Change::Resources);
    assert_eq!(about(&read(&mut own).await), ["resources/list_changed"]);
    tokio::time::sleep(AGAIN).await;
    drop(own);
    tells(&session, &Change::Tools);
    assert_eq!(about(&read(&mut session.own_stream()).await), ["tools/list_changed"]);
    assert_eq!(
        stage.counted("notices_total"),
        [
            r#"notices_total{how="told",kind="prompts"} 1"#,
            r#"notices_total{how="kept",kind="prompts"} 1"#,
            r#"notices_total{how="told",kind="resources"} 1"#,
            r#"notices_total{how="told",kind="tools"} 2"#,
            r#"notices_total{how="kept",kind="tools"} 2"#,
            r#"notices_total{how="merged",kind="tools"} 1"#,
            r#"notices_total{how="told",kind="updated"} 2"#,
            r#"notices_total{how="kept",kind="updated"} 2"#,
            r#"notices_total{how="merged",kind="updated"} 1"#,
        ]
        .map(str::to_owned)
        .into_iter()
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .collect::<Vec<_>>()
    );
}

/// A reader that waits is woken, and only the session's own stream tells.
#[tokio::test(start_paused = true)]
async fn b9_8_only_the_sessions_own_stream_tells_of_changes() {
    let stage = stage(|_| {});
    let (session, _) = stage.begin_as(LegacyRevision::V2025_06_18, None);
    let track = session.track([Id::number(1)]);
    let (mut call, mut own) = (track.reader(), session.own_stream());
    let waits = tokio::spawn(async move {
        let Next::Bytes { bytes, .. } = poll_fn(|cx| own.poll_next(cx)).await else { panic!() };
        (own, String::from_utf8(bytes.to_vec()).unwrap())
    });
    tokio::task::yield_now().await;
    tells(&session, &Change::Tools);
    let (own, text) = waits.await.unwrap();
    assert_eq!(about(&text), ["tools/list_changed"]);
    assert_eq!(read(&mut call).await, "");
    // One stream only: a newer one ends it.
    tokio::time::sleep(AGAIN).await;
    let mut newer = session.own_stream();
    tells(&session, &Change::Prompts);
    let mut own = own;
    assert_eq!(read(&mut own).await, ".");
    drop(own);
    assert_eq!(about(&read(&mut newer).await), ["prompts/list_changed"]);
    let (other, _) = stage.begin_as(LegacyRevision::V2025_06_18, None);
    assert_eq!(read(&mut other.own_stream()).await, "");
}

/// A13.5: the client's own stream is taken up like any other; where that is not known any more, it goes on from now.
#[tokio::test(start_paused = true)]
async fn the_sessions_own_stream_is_taken_up_again() {
    let stage = stage(|settings| settings.session.replay = Duration::from_secs(60));
    let (session, _) = stage.begin(None);
    let mut own = session.own_stream();
    tells(&session, &updated("u"));
    tells(&session, &updated("v"));
    let text = read(&mut own).await;
    assert_eq!(about(&text), ["-", "u", "v"]);
    drop(own);
    tells(&session, &updated("w"));
    let Resumed::Own(mut own) = session.resume(ids(&text)[1].as_bytes()) else { panic!() };
    assert_eq!(about(&read(&mut own).await), ["v", "w"]);
    drop(own);
    tokio::time::sleep(Duration::from_secs(61)).await;
    tells(&session, &updated("x"));
    let Resumed::Own(mut own) = session.resume(ids(&text)[1].as_bytes()) else { panic!() };
    assert_eq!(about(&read(&mut own).await), ["-", "x"]);
    drop(own);
    // A fresh GET is not given again what was given.
    tokio::time::sleep(AGAIN).await;
    assert_eq!(about(&read(&mut session.own_stream()).await), ["-"]);
}

/// B9.8: what went into a connection that was dead already is told again to a client that comes back without an event id. What
/// was told longer ago has arrived: the stream has been kept alive since.
#[tokio::test(start_paused = true)]
async fn b9_8_what_may_not_have_arrived_is_told_again() {
    let stage = stage(|_| {});
    let (session, _) = stage.begin_as(LegacyRevision::V2025_06_18, None);
    let mut dead = session.own_stream();
    tells(&session, &updated("old"));
    assert_eq!(about(&read(&mut dead).await), ["old"]);
    tokio::time::sleep(AGAIN).await;
    tells(&session, &Change::Tools);
    let text = read(&mut dead).await;
    assert_eq!(about(&text), ["tools/list_changed"]);
    tells(&session, &Change::Prompts);
    tokio::time::sleep(AGAIN / 2).await;
    let again = read(&mut session.own_stream()).await;
    assert_eq!(about(&again), ["tools/list_changed", "prompts/list_changed"]);
    assert_eq!(ids(&again)[0], ids(&text)[0], "the same event");
    // Who says what it had is believed.
    let Resumed::Own(mut own) = session.resume(ids(&again)[1].as_bytes()) else { panic!() };
    assert_eq!(about(&read(&mut own).await), [""; 0]);
}

/// `limits.subscriptions` bounds the resources that wait; what does not fit is counted.
#[tokio::test(start_paused = true)]
async fn inv5_resources_that_wait_are_bounded() {
    let front = config::Limits { subscriptions: 2, ..config::Limits::default() };
    let stage = stage_with(&settings(), &front);
    let (session, _) = stage.begin_as(LegacyRevision::V2025_06_18, None);
    for uri in ["a", "b", "c", "a"] {
        tells(&session, &updated(uri));
    }
    tells(&session, &Change::Tools);
    assert_eq!(about(&read(&mut session.own_stream()).await), ["a", "b", "tools/list_changed"]);
    assert_eq!(stage.counted("replay_dropped_total"), [r#"replay_dropped_total{what="notice"} 1"#]);
}

/// What a server adds to a notice is kept within reason.
#[tokio::test(start_paused = true)]
async fn a_notice_in_many_words_is_told_in_few() {
    let stage = stage(|_| {});
    let (session, _) = stage.begin_as(LegacyRevision::V2025_06_18, None);
    let of = |size: usize| {
        let meta = "m".repeat(size);
        message(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{{"_meta":{{"x":"{meta}"}}}}}}"#
        ))
    };
    session.heard(&Change::Tools, &of(100));
    assert!(read(&mut session.own_stream()).await.contains("mmm"));
    tokio::time::sleep(AGAIN).await;
    session.heard(&Change::Tools, &of(10_000));
    let text = read(&mut session.own_stream()).await;
    assert_eq!(data(&text), [r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#]);
}
