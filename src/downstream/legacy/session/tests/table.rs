//! Sessions and their ids.

use super::*;
use crate::wire::log_level::LogLevel;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::collections::HashSet;
use tokio::time::sleep;

fn unknown(found: Found) -> bool {
    matches!(found, Found::Unknown)
}

/// A bearer token of these claims.
fn jwt(claims: &str, signature: &str) -> String {
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    format!("Bearer {}.{}.{}", part(r#"{"alg":"RS256"}"#), part(claims), part(signature))
}

fn alice(n: u32) -> String {
    jwt(&format!(r#"{{"iss":"https://as","sub":"alice","aud":"up","iat":{n}}}"#), &n.to_string())
}

/// A12.12, A12.13, A12.15, A13.4; D82, C03 (client side).
#[tokio::test(start_paused = true)]
async fn d82_a_session_is_found_by_its_id_until_it_is_ended() {
    for key in [false, true] {
        let stage = stage(|settings| {
            if key {
                keyed(settings);
            }
        });
        let (session, name) = stage.begin(None);
        assert!(stage.sessions.open(&name).is_some() && stage.finds(&name, None));
        assert_eq!(stage.sessions.len(), 1);
        stage.sessions.end(&session);
        stage.sessions.end(&session);
        assert!(unknown(stage.find(&name, None)) && stage.sessions.open(&name).is_some());
        for wrong in ["", "wrong", "AAAA", "%"] {
            let wrong = HeaderValue::from_static(wrong);
            assert!(unknown(stage.find(&wrong, None)) && stage.sessions.open(&wrong).is_none());
        }
        drop(session);
        assert_eq!(stage.sessions.len(), 0);
        assert_eq!(
            stage.counted("client_sessions_ended_total"),
            [r#"client_sessions_ended_total{how="delete"} 1"#]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn ids_are_unique_and_say_nothing_of_their_clients() {
    let stage = stage(|_| {});
    let all: Vec<_> = (0..50).map(|_| stage.begin(Some("Bearer secret"))).collect();
    let names: HashSet<_> = all.iter().map(|(_, name)| name.clone()).collect();
    assert_eq!(names.len(), 50);
    let name = all[0].1.to_str().unwrap();
    let raw = URL_SAFE_NO_PAD.decode(name).unwrap();
    let hides = |text: &[u8]| !raw.windows(text.len()).any(|part| part == text);
    assert!(
        hides(b"name") && hides(b"elicitation") && hides(&principal(&headers(Some("Bearer secret"))).name())
    );
    assert!(name.len() < 512, "{} bytes in every request", name.len());
}

/// D103: every bit of an id counts.
#[tokio::test(start_paused = true)]
async fn an_altered_id_is_unknown() {
    let stage = stage(keyed);
    let (_session, name) = stage.begin(None);
    let raw = URL_SAFE_NO_PAD.decode(name.as_bytes()).unwrap();
    for bit in 0..raw.len() * 8 {
        let mut altered = raw.clone();
        altered[bit / 8] ^= 1 << (bit % 8);
        let altered = HeaderValue::try_from(URL_SAFE_NO_PAD.encode(altered)).unwrap();
        assert!(unknown(stage.find(&altered, None)), "bit {bit}");
    }
}

/// Invariant 2: one key for all upstreams makes their sessions no common good.
#[tokio::test(start_paused = true)]
async fn an_id_of_another_upstream_or_of_another_key_is_unknown() {
    let stage_of = |name: &str, byte| {
        stage(|settings| {
            settings.name = name.to_owned();
            settings.session.key = Some(SessionKey::new([byte; 32]));
        })
    };
    let (_session, name) = stage_of("one", 7).begin(None);
    assert!(stage_of("one", 7).finds(&name, None));
    for other in [stage_of("other", 7), stage_of("one", 8), stage(|_| {})] {
        assert!(unknown(other.find(&name, None)) && other.sessions.open(&name).is_none());
    }
}

/// Invariant 2.
#[tokio::test(start_paused = true)]
async fn inv2_another_caller_does_not_find_it() {
    let all = [None, Some("Bearer a"), Some("Bearer b"), Some(""), Some("Basic a")];
    for key in [false, true] {
        let (one, other) = (stage(keyed), stage(keyed));
        for owner in all {
            let (_session, name) = one.begin(owner);
            // A table that does not know it yet, too.
            let stage = if key { &other } else { &one };
            for caller in all {
                assert_eq!(stage.finds(&name, caller), owner == caller, "{owner:?} {caller:?}");
                assert!(owner == caller || unknown(stage.find(&name, caller)));
            }
        }
    }
}

/// A stranger cannot make a table take up sessions.
#[tokio::test(start_paused = true)]
async fn what_is_not_the_callers_is_not_rebuilt() {
    let (one, other) = (stage(keyed), stage(keyed));
    let (_session, name) = one.begin(Some("Bearer a"));
    assert!(unknown(other.find(&name, Some("Bearer b"))));
    assert_eq!(other.sessions.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_newer_token_of_the_same_subject_is_taken_once_it_is_vouched_for() {
    for rebuilt in [false, true] {
        let (one, other) = (stage(keyed), stage(keyed));
        let (_session, name) = one.begin(Some(&alice(1)));
        let stage = if rebuilt { &other } else { &one };
        let Found::Stranger(refresh) = stage.find(&name, Some(&alice(2))) else { panic!() };
        drop(refresh);
        let Found::Stranger(refresh) = stage.find(&name, Some(&alice(2))) else {
            panic!("looking is not vouching")
        };
        drop(refresh.accept());
        assert!(stage.finds(&name, Some(&alice(2))));
        assert!(stage.finds(&name, Some(&alice(1))), "the former one is good until the next");
        let Found::Stranger(refresh) = stage.find(&name, Some(&alice(3))) else { panic!() };
        drop(refresh.accept());
        assert!(stage.finds(&name, Some(&alice(3))) && stage.finds(&name, Some(&alice(2))));
        assert!(matches!(stage.find(&name, Some(&alice(1))), Found::Stranger(_)));
    }
}

/// Invariant 2: nothing but the same subject can be vouched for, and only where the server sees the credential.
#[tokio::test(start_paused = true)]
async fn inv2_others_are_not_even_asked_for() {
    let stage = stage(|_| {});
    let (_session, name) = stage.begin(Some(&alice(1)));
    let others = [
        jwt(r#"{"iss":"https://as","sub":"bob","aud":"up"}"#, "s"),
        jwt(r#"{"iss":"https://other","sub":"alice","aud":"up"}"#, "s"),
        jwt(r#"{"iss":"https://as","sub":"alice","aud":"other"}"#, "s"),
        jwt(r#"{"iss":"https://as","sub":"alice"}"#, "s"),
        jwt(r#"{"iss":"https://as","sub":"alice","aud":"up","azp":"x"}"#, "s"),
        "Bearer opaque".to_owned(),
    ];
    for other in &others {
        assert!(unknown(stage.find(&name, Some(other))), "{other}");
    }
    assert!(unknown(stage.find(&name, None)));
    // An opaque token has no subject, so a newer one is somebody else's.
    let (_session, name) = stage.begin(Some("Bearer opaque"));
    assert!(unknown(stage.find(&name, Some("Bearer newer"))));
    for authorization in
        [config::Authorization::Strip, config::Authorization::Fixed(config::Secret::new("x"))]
    {
        let stage = super::stage(|settings| settings.authorization = authorization);
        let (_session, name) = stage.begin(Some(&alice(1)));
        assert!(unknown(stage.find(&name, Some(&alice(2)))));
    }
}

/// A12.13, C10: idle is without request and without stream.
#[tokio::test(start_paused = true)]
async fn c10_a_session_that_is_idle_for_too_long_is_gone() {
    for key in [false, true] {
        let stage = stage(|settings| {
            settings.session.idle = Duration::from_secs(60);
            if key {
                keyed(settings);
            }
        });
        let (session, name) = stage.begin(None);
        drop(session);
        sleep(Duration::from_secs(45)).await;
        // A request begins it anew.
        assert!(stage.finds(&name, None));
        sleep(Duration::from_secs(45)).await;
        let Found::Session(session) = stage.find(&name, None) else { panic!() };
        let stream = session.own_stream();
        drop(session);
        sleep(Duration::from_secs(3600)).await;
        assert!(stage.finds(&name, None), "a stream keeps it");
        drop(stream);
        let Found::Session(session) = stage.find(&name, None) else { panic!() };
        let call = session.enter(&crate::wire::jsonrpc::Id::number(1));
        drop(session);
        sleep(Duration::from_secs(3600)).await;
        assert!(stage.finds(&name, None), "a call keeps it");
        drop(call);
        sleep(Duration::from_secs(76)).await;
        assert_eq!(stage.sessions.len(), 0);
        assert!(unknown(stage.find(&name, None)), "also where its id can still be read");
        assert_eq!(
            stage.counted("client_sessions_ended_total"),
            [r#"client_sessions_ended_total{how="idle"} 1"#]
        );
    }
}

/// Architecture section 4: a restart, or a sibling with the same key, serves it.
#[tokio::test(start_paused = true)]
async fn with_a_key_another_process_takes_it_up() {
    let keyed = |settings: &mut Upstream| {
        keyed(settings);
        settings.session.log_level = Some(LogLevel::Warning);
    };
    let (one, other) = (stage(keyed), stage(keyed));
    let offers = Offers { tools_changed: true, ..Offers::default() };
    let client = client(LegacyRevision::V2025_03_26);
    let begun = one.sessions.begin(client.clone(), offers, Principal::Anonymous, &headers(None));
    let (session, name) = begun.unwrap();
    session.set_level(LogLevel::Debug);
    let Found::Session(rebuilt) = other.find(&name, None) else { panic!() };
    assert_eq!((&rebuilt.client, rebuilt.offers), (&client, offers));
    assert_eq!(rebuilt.level(), Some(LogLevel::Warning), "the level of the time when it began");
    assert_eq!(other.counted("client_sessions_total"), [r#"client_sessions_total{how="rebuilt"} 1"#]);
    // It is one session, and what it may have missed is told.
    let Found::Session(again) = other.find(&name, None) else { panic!() };
    assert!(Arc::ptr_eq(rebuilt.session(), again.session()));
    let told = data(&read(&mut rebuilt.own_stream()).await);
    assert_eq!(told, [r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#]);
    other.sessions.end(&rebuilt);
    assert!(unknown(other.find(&name, None)));
    assert!(one.finds(&name, None), "the first process does not hear of that");
    let without = stage(|_| {});
    assert!(unknown(without.find(&name, None)));
}

#[tokio::test(start_paused = true)]
async fn an_id_can_be_too_old_to_be_taken_up() {
    let mut settings = settings();
    keyed(&mut settings);
    settings.session.max_age = Duration::from_secs(100);
    let stage = stage_with(&settings, &config::Limits::default());
    let of_age = |age: u64| {
        let ticket = Ticket {
            key: [age as u8; 16],
            minted: now() - age,
            principal: Principal::Anonymous.name(),
            subject: None,
            level: None,
            offers: Offers::default(),
            client: client(LegacyRevision::LATEST),
        };
        let seal = Seal::keyed(&[7; 32], &ticket::purpose(&settings.name)).unwrap();
        HeaderValue::try_from(seal.close(&ticket.write()).unwrap()).unwrap()
    };
    assert!(stage.finds(&of_age(50), None));
    assert!(unknown(stage.find(&of_age(100), None)) && unknown(stage.find(&of_age(200), None)));
    // What is at work is not ended for its age.
    assert!(stage.finds(&of_age(50), None));
}

/// `session.max`, invariant 5.
#[tokio::test(start_paused = true)]
async fn inv5_the_session_that_is_idle_longest_makes_room_and_one_in_use_does_not() {
    for key in [false, true] {
        let stage = stage(|settings| {
            settings.session.max = 2;
            if key {
                keyed(settings);
            }
        });
        let (first, oldest) = stage.begin(None);
        drop(first);
        sleep(Duration::from_secs(1)).await;
        let (second, newer) = stage.begin(None);
        let (third, _) = stage.begin(None);
        assert_eq!(stage.sessions.len(), 2);
        assert_eq!(
            stage.counted("client_sessions_ended_total"),
            [r#"client_sessions_ended_total{how="evicted"} 1"#]
        );
        let full = stage.sessions.begin(
            client(LegacyRevision::LATEST),
            Offers::default(),
            Principal::Anonymous,
            &headers(None),
        );
        assert_eq!(full.err().unwrap().kind, FaultKind::Busy);
        match stage.find(&oldest, None) {
            Found::Full(fault) => assert!(key && fault.kind == FaultKind::Busy),
            Found::Unknown => assert!(!key),
            Found::Session(_) | Found::Stranger(_) => panic!(),
        }
        assert!(stage.finds(&newer, None));
        drop((second, third));
        // Where the id is good without the table, only room was missing.
        assert_eq!(stage.finds(&oldest, None), key);
        assert_eq!(stage.sessions.len(), 2);
    }
}

/// A12.15, D82: used-up ids are remembered within a bound, and those that are not stay used up all the same.
#[tokio::test(start_paused = true)]
async fn inv5_ids_that_are_used_up_are_remembered_within_a_bound() {
    let stage = stage(|settings| {
        keyed(settings);
        settings.session.max = 3;
    });
    let names: Vec<_> = (0..5)
        .map(|_| {
            let (session, name) = stage.begin(None);
            stage.sessions.end(&session);
            name
        })
        .collect();
    let found: Vec<_> = names.iter().map(|name| stage.finds(name, None)).collect();
    assert_eq!(found, [false; 5]);
}

/// The bar is 2 KB; what requests need is there only with them.
#[tokio::test(start_paused = true)]
async fn a_session_at_rest_is_small() {
    let stage = stage(|_| {});
    let (session, _) = stage.begin(None);
    let client = &session.client;
    let held = size_of::<Session>() + client.info.len() + client.capabilities.len();
    assert!(held <= 1024, "{held}");
    assert!(session.is_at_rest());
    let entered = session.enter(&crate::wire::jsonrpc::Id::number(1));
    let (sender, _receiver) = tokio::sync::oneshot::channel();
    session.ask(1, sender);
    drop(session.own_stream());
    assert!(!session.is_at_rest());
    session.withdraw(1);
    drop(entered);
    assert!(session.is_at_rest());
}

#[tokio::test(start_paused = true)]
async fn sessions_that_the_process_ends_with_are_counted() {
    let stage = stage(|_| {});
    let begun = stage.begin(None);
    assert_eq!(stage.counted("client_sessions"), ["client_sessions{} 1"]);
    let Stage { sessions, metrics, shutdown } = stage;
    shutdown.drain();
    shutdown.finished().await;
    drop((begun, sessions));
    let text = metrics.render().unwrap();
    assert!(text.contains(r#"mcp_janus_client_sessions{upstream="up"} 0"#));
    assert!(text.contains(r#"mcp_janus_client_sessions_ended_total{how="drain",upstream="up"} 1"#));
}

/// A session that expires while its client comes back is used up, or goes on: never both, or its client would lose it later
/// without a reason.
#[test]
fn a_session_that_is_rebuilt_is_not_buried() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _inside = runtime.enter();
    let stage = stage(keyed);
    for _ in 0..150 {
        let (session, name) = stage.begin(None);
        let (key, minted) = (session.key, session.minted);
        drop(session);
        let swept = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                stage.sessions.sweep(Duration::ZERO);
                swept.store(true, Ordering::Release);
            });
            while !swept.load(Ordering::Acquire) {
                drop(stage.find(&name, None));
            }
        });
        let is_there = stage.sessions.table.contains_key(&key);
        let is_buried = lock(stage.sessions.graves.as_ref().unwrap()).has(minted, &key);
        assert!(!(is_there && is_buried), "alive in its grave");
        stage.sessions.sweep(Duration::ZERO);
    }
}

/// Architecture section 4: an id is taken up by a process that does not know it as long as it is young enough.
#[tokio::test(start_paused = true)]
async fn an_id_that_is_too_old_is_not_rebuilt() {
    let stage = stage(|settings| {
        keyed(settings);
        settings.session.max_age = Duration::from_secs(3600);
    });
    for (age, rebuilt) in [(0, true), (3000, true), (3600, false), (86_400, false)] {
        let ticket = Ticket {
            key: seal::random().unwrap(),
            minted: now() - age,
            principal: principal(&headers(None)).name(),
            subject: None,
            level: None,
            offers: Offers::default(),
            client: client(LegacyRevision::LATEST),
        };
        let name = stage.sessions.seal.close(&ticket.write()).unwrap();
        assert_eq!(stage.finds(&HeaderValue::try_from(name).unwrap(), None), rebuilt, "{age} s");
    }
}
