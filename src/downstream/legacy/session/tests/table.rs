//! Sessions and their ids.

use super::*;

/// A12.12, A12.13, A12.15, A13.4; D82.
#[tokio::test(start_paused = true)]
async fn d82_a_session_is_found_by_its_id_until_it_is_ended() {
    let stage = stage(|_| {});
    let (session, name) = stage.begin(None);
    assert!(stage.sessions.is_ours(&name) && stage.finds(&name, None));
    assert_eq!(stage.sessions.len(), 1);
    stage.sessions.end(&session);
    assert!(stage.sessions.is_ours(&name));
    assert!(matches!(stage.find(&name, None), Found::Unknown));
    assert!(matches!(stage.find(&HeaderValue::from_static("wrong"), None), Found::Unknown));
    assert!(!stage.sessions.is_ours(&HeaderValue::from_static("wrong")));
    drop(session);
    assert_eq!(stage.sessions.len(), 0);
}
