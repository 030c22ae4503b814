//! Who may take a parked call up, how often and until when, and what is left of it. Rules: B1.2, B1.6; vectors D36, D37.

use super::*;
use crate::exchange::channel;
use crate::telemetry::metrics::{Meter, Metrics};
use crate::translate::capabilities::Capabilities;
use crate::translate::question::Asked;
use crate::wire::json::Limits;
use crate::wire::jsonrpc::{self, Message, Request};
use crate::wire::method::Method;

const LIMITS: Limits = Limits { nesting: 32, members: 64 };
const LASTS: Duration = Duration::from_secs(300);

fn registry(bounds: Bounds) -> Arc<Parked> {
    Parked::new(bounds, Shutdown::new(Duration::ZERO)).unwrap()
}

fn roomy() -> Arc<Parked> {
    registry(Bounds { calls: 8, calls_per_principal: 4, replay_bytes: 8192 })
}

fn request(text: &str) -> Request {
    match jsonrpc::parse(text.to_owned().into(), LIMITS).unwrap() {
        Message::Request(request) => request,
        other => panic!("{other:?}"),
    }
}

fn question() -> Question {
    let asked = request(r#"{"jsonrpc":"2.0","id":7,"method":"roots/list"}"#);
    match Question::of(&asked, &Capabilities::none(), LIMITS) {
        Asked::Question(question) => question,
        other => panic!("{other:?}"),
    }
}

fn owner(principal: u8, request: u8) -> Owner {
    Owner { principal: Principal::Credential([principal; 32]), request: [request; 32] }
}

fn retry() -> Retry {
    let metrics = Metrics::new().unwrap().upstream("u");
    let call = Call {
        request: request(r#"{"jsonrpc":"2.0","id":2,"method":"tools/call"}"#),
        method: Method::ToolsCall,
        principal: Principal::Anonymous,
        headers: Default::default(),
        binding: Default::default(),
        deadline: Instant::now(),
        meter: Meter::new(metrics),
    };
    Retry { call: Arc::new(call), sender: channel(1, 1).0, answers: Vec::new() }
}

fn ask(slot: &mut Slot) -> (Arc<Shown>, oneshot::Receiver<Retry>) {
    let asked = vec![("q1".to_owned(), question())];
    slot.ask(asked, LegacyRevision::LATEST, &Bytes::from_static(b"{}"), LASTS).unwrap()
}

fn refused(parked: &Parked, state: &str, owner: Owner) -> Refused {
    match parked.find(state, owner, &Id::number(2)) {
        Err(refused) => refused,
        Ok(_) => panic!("it was found"),
    }
}

fn claim(parked: &Parked, state: &str, owner: Owner) -> Claim {
    match parked.find(state, owner, &Id::number(2)) {
        Ok(Found::Claim(claim)) => claim,
        Ok(Found::Again(outcome)) => panic!("{outcome:?}"),
        Err(refused) => panic!("{refused}"),
    }
}

/// B1.2, D36: each thing that a state is bound to, and the order in which that is looked at.
#[tokio::test(start_paused = true)]
async fn a_state_is_good_for_its_caller_its_request_and_its_time() {
    let parked = roomy();
    let mut slot = parked.admit(owner(1, 1)).unwrap();
    let (shown, _from) = ask(&mut slot);
    assert_eq!(refused(&parked, "garbage", owner(1, 1)), Refused::Unreadable);
    assert_eq!(refused(&roomy(), &shown.state, owner(1, 1)), Refused::Unreadable);
    assert_eq!(refused(&parked, &shown.state, owner(2, 1)), Refused::Principal);
    assert_eq!(refused(&parked, &shown.state, owner(1, 2)), Refused::Request);
    assert_eq!(claim(&parked, &shown.state, owner(1, 1)).shown().asked.len(), 1);
    tokio::time::advance(LASTS - Duration::from_millis(1)).await;
    claim(&parked, &shown.state, owner(1, 1));
    tokio::time::advance(Duration::from_millis(1)).await;
    assert_eq!(refused(&parked, &shown.state, owner(1, 1)), Refused::Expired);
}

/// B1.6, D37: of two that come with the same state one takes the call up, and looking does not take it.
#[tokio::test(start_paused = true)]
async fn a_call_is_taken_up_once_a_round() {
    let parked = roomy();
    let mut slot = parked.admit(owner(1, 1)).unwrap();
    let (shown, mut from) = ask(&mut slot);
    let (first, second) =
        (claim(&parked, &shown.state, owner(1, 1)), claim(&parked, &shown.state, owner(1, 1)));
    assert!(from.try_recv().is_err());
    first.take(retry()).unwrap();
    assert_eq!(second.take(retry()), Err(Refused::Used));
    assert!(from.try_recv().is_ok());
    assert_eq!(refused(&parked, &shown.state, owner(1, 1)), Refused::Used);
}

/// B1.6: whoever lost the next round's questions gets them again; a state from before that is used up.
#[tokio::test(start_paused = true)]
async fn the_last_states_answer_is_given_again() {
    let parked = roomy();
    let mut slot = parked.admit(owner(1, 1)).unwrap();
    let (one, _from) = ask(&mut slot);
    claim(&parked, &one.state, owner(1, 1)).take(retry()).unwrap();
    let (two, _from) = ask(&mut slot);
    assert_ne!(one.state, two.state);
    let again = |state: &str| match parked.find(state, owner(1, 1), &Id::number(9)) {
        Ok(Found::Again(outcome)) => outcome,
        _ => panic!("not given again"),
    };
    let Outcome::InputRequired(message) = again(&one.state) else { panic!() };
    assert_eq!(message.to_bytes(), two.message(&Id::number(9)).to_bytes());
    claim(&parked, &two.state, owner(1, 1)).take(retry()).unwrap();
    let outcome = Outcome::Result(Payload::from(r#"{"jsonrpc":"2.0","id":2,"result":{}}"#));
    slot.finish(&outcome, LASTS * 2);
    let Outcome::Result(message) = again(&two.state) else { panic!() };
    assert_eq!(message.to_bytes(), r#"{"jsonrpc":"2.0","id":9,"result":{}}"#);
    assert_eq!(refused(&parked, &one.state, owner(1, 1)), Refused::Used);
    assert_eq!(refused(&parked, &two.state, owner(2, 1)), Refused::Principal);
    // Its time was for answering, which was done.
    tokio::time::advance(LASTS).await;
    assert!(matches!(again(&two.state), Outcome::Result(_)));
    assert_eq!((parked.len(), parked.kept(), parked.calls.len()), (0, 1, 1));
    tokio::time::sleep(LASTS + Duration::from_secs(1)).await;
    assert_eq!(refused(&parked, &two.state, owner(1, 1)), Refused::Expired);
    assert_eq!((parked.kept(), parked.calls.len()), (0, 0));
}

/// Invariant 5; whatever way a driver ends, its call is gone from the registry.
#[tokio::test(start_paused = true)]
async fn calls_and_last_answers_are_bounded_and_leave_nothing_behind() {
    let parked = registry(Bounds { calls: 3, calls_per_principal: 2, replay_bytes: 3000 });
    let mut slots: Vec<_> = (0..2).map(|_| parked.admit(owner(1, 1)).unwrap()).collect();
    assert_eq!(parked.admit(owner(1, 1)).err(), Some(Full::Principal));
    slots.push(parked.admit(owner(2, 1)).unwrap());
    assert_eq!(parked.admit(owner(3, 1)).err(), Some(Full::All));
    let (shown, from) = ask(&mut slots[0]);
    drop(from);
    assert_eq!(claim(&parked, &shown.state, owner(1, 1)).take(retry()), Err(Refused::Unknown));
    slots.clear();
    assert_eq!((parked.len(), parked.calls.len()), (0, 0));
    for _ in 0..5 {
        let outcome = Outcome::Error(Payload::from("x"));
        parked.admit(owner(1, 1)).unwrap().finish(&outcome, LASTS);
    }
    assert_eq!((parked.len(), parked.kept(), parked.calls.len()), (0, 2, 2));
    parked.admit(owner(1, 1)).unwrap().finish(&Outcome::Flowed, LASTS);
    parked.admit(owner(1, 1)).unwrap().finish(&Outcome::Error(Payload::from("x")), Duration::ZERO);
    assert_eq!((parked.kept(), parked.calls.len()), (2, 2));
}
