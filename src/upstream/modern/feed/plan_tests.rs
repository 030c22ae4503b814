//! When listens are opened, replaced, tried again and closed.

use super::*;
use crate::exchange::FaultKind;

const PATIENCE: Duration = Duration::from_millis(500);
const REQUEST: Duration = Duration::from_secs(60);
const FIRST: Duration = Duration::from_secs(2);
const MOST: Duration = Duration::from_secs(30);

const NOTHING: Fit = Fit { wanted: false, short: false, surplus: false, waiting: false };
const WANTED: Fit = Fit { wanted: true, short: true, surplus: false, waiting: false };
const FITS: Fit = Fit { wanted: true, short: false, surplus: false, waiting: false };
const MORE: Fit = Fit { wanted: true, short: false, surplus: true, waiting: false };
const LEFT: Fit = Fit { wanted: false, short: false, surplus: true, waiting: false };
const WAITING: Fit = Fit { wanted: true, short: true, surplus: false, waiting: true };

struct Clock {
    plan: Plan,
    now: Instant,
}

impl Clock {
    fn new() -> Self {
        let timeouts = UpstreamTimeouts {
            initialize: PATIENCE,
            request: REQUEST,
            reconnect: FIRST,
            reconnect_max: MOST,
            ..UpstreamTimeouts::default()
        };
        Self { plan: Plan::new(&timeouts), now: Instant::now() }
    }

    fn step(&mut self, fit: Fit) -> Step {
        self.plan.step(fit, self.now)
    }

    /// The step, and how long it waits.
    fn waits(&mut self, fit: Fit) -> Option<Duration> {
        match self.step(fit) {
            Step::Wait(at) => at.map(|at| at - self.now),
            step => panic!("{step:?}"),
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
    }

    /// Opens one and has it acknowledged.
    fn stand(&mut self, fit: Fit) -> bool {
        assert_eq!(self.step(fit), Step::Open);
        self.plan.acknowledged(self.now)
    }

    fn fail(&mut self, end: End) {
        self.plan.failed(&end, false, self.now);
    }
}

fn within(pause: Option<Duration>, base: Duration) {
    let pause = pause.unwrap();
    assert!(pause >= base && pause <= base + base / 4, "{pause:?} is about {base:?}");
}

fn failed() -> End {
    End::Failed(Fault::bad_gateway("no"))
}

#[test]
fn nothing_is_done_as_long_as_nothing_is_wanted() {
    let mut clock = Clock::new();
    assert_eq!(clock.waits(NOTHING), None);
    assert!(!clock.stand(WANTED));
    assert_eq!(clock.waits(FITS), None);
}

/// B9.7: make before break, one change at a time, and the old one is read for a moment longer.
#[test]
fn a_set_that_grows_is_another_listen_before_the_old_one_goes() {
    let mut clock = Clock::new();
    clock.stand(WANTED);
    assert_eq!(clock.step(WAITING), Step::Open);
    // More wishes wait for the next.
    assert_eq!(clock.waits(WAITING), Some(PATIENCE));
    assert!(!clock.plan.acknowledged(clock.now), "no gap");
    assert_eq!(clock.waits(WAITING), Some(LAG));
    clock.pass(LAG);
    assert_eq!(clock.step(WAITING), Step::Release);
    assert_eq!(clock.step(WAITING), Step::Open);
}

#[test]
fn a_set_that_shrinks_is_left_alone_for_a_while() {
    let mut clock = Clock::new();
    clock.stand(WANTED);
    assert_eq!(clock.waits(MORE), Some(REST));
    clock.pass(REST / 2);
    assert_eq!(clock.waits(FITS), None, "wanted again");
    clock.pass(REST);
    assert_eq!(clock.waits(MORE), Some(REST));
    clock.pass(REST);
    assert!(!clock.stand(MORE));
    clock.pass(LAG);
    assert_eq!(clock.step(FITS), Step::Release);
    assert_eq!(clock.waits(LEFT), Some(REST));
    clock.pass(REST);
    assert_eq!(clock.step(LEFT), Step::Close);
    clock.plan.closed();
    assert!(clock.plan.is_idle());
    assert_eq!(clock.waits(NOTHING), None);
}

/// D99: an end is a gap, and the pauses grow as long as the listens do not last.
#[test]
fn what_ends_at_once_is_opened_again_more_and_more_seldom() {
    let mut clock = Clock::new();
    let mut base = FIRST;
    assert!(!clock.stand(WANTED));
    for _ in 0..6 {
        clock.pass(Duration::from_millis(10));
        clock.plan.ended(None, clock.now);
        let pause = clock.waits(WANTED);
        within(pause, base);
        base = (base * 2).min(MOST);
        clock.pass(pause.unwrap());
        assert!(clock.stand(WANTED), "a gap");
    }
    clock.pass(STOOD);
    clock.plan.ended(Some(Duration::from_secs(1)), clock.now);
    within(clock.waits(WANTED), Duration::from_secs(1));
}

#[test]
fn failures_grow_the_pauses_and_who_waits_is_not_held_up_by_them() {
    let mut clock = Clock::new();
    let mut base = FIRST;
    for _ in 0..6 {
        assert_eq!(clock.step(WANTED), Step::Open);
        clock.fail(failed());
        let pause = clock.waits(WANTED);
        within(pause, base);
        base = (base * 2).min(MOST);
        clock.pass(pause.unwrap());
    }
    assert_eq!(clock.step(WANTED), Step::Open);
    clock.fail(failed());
    assert_eq!(clock.waits(WAITING), Some(SELDOM));
    clock.pass(SELDOM);
    // Those who were told of nothing meanwhile look again.
    assert!(clock.stand(WAITING));
}

#[test]
fn a_late_acknowledgement_is_waited_for_but_not_by_clients() {
    let mut clock = Clock::new();
    assert_eq!(clock.step(WAITING), Step::Open);
    clock.pass(PATIENCE);
    assert_eq!(clock.step(WAITING), Step::Late);
    assert_eq!(clock.waits(WANTED), Some(REQUEST - PATIENCE));
    // Whoever comes now has it tried again.
    assert_eq!(clock.step(WAITING), Step::Open);
    clock.pass(PATIENCE);
    assert_eq!(clock.step(WANTED), Step::Late);
    assert_eq!(clock.waits(WANTED), Some(REQUEST - PATIENCE));
    assert!(clock.plan.acknowledged(clock.now), "something may have been missed");
    assert_eq!(clock.waits(FITS), None);
    clock.plan.ended(None, clock.now);
    let pause = clock.waits(WANTED);
    clock.pass(pause.unwrap());
    assert_eq!(clock.step(WANTED), Step::Open);
    clock.pass(PATIENCE);
    assert_eq!(clock.step(WANTED), Step::Late);
    clock.pass(REQUEST);
    assert_eq!(clock.step(WANTED), Step::GiveUp);
}

/// B9.7 for a server without the method: it is asked again when there is a reason to, and seldom.
#[test]
fn what_the_server_does_not_have_is_not_asked_for_over_and_over() {
    let mut clock = Clock::new();
    assert_eq!(clock.step(WANTED), Step::Open);
    clock.fail(End::Absent);
    assert_eq!(clock.waits(WANTED), None);
    assert_eq!(clock.step(WAITING), Step::Deny(NotSubscribed::Refused));
    clock.pass(MOST);
    assert_eq!(clock.waits(WANTED), None);
    assert_eq!(clock.step(WAITING), Step::Open);
    clock.fail(End::Absent);
    clock.plan.prod(clock.now);
    assert_eq!(clock.waits(WANTED), Some(MOST));
}

/// A credential that is refused is not sent again until there is a newer one, or somebody comes.
#[test]
fn a_refused_credential_stops_it() {
    let mut clock = Clock::new();
    let fault = Fault::new(FaultKind::Unauthorized { status: 401, challenges: vec![] }, "no");
    assert_eq!(clock.step(WANTED), Step::Open);
    clock.fail(End::Denied(fault.clone()));
    assert_eq!(clock.waits(WANTED), None);
    assert_eq!(clock.step(WAITING), Step::Deny(NotSubscribed::Fault(fault.clone())));
    clock.plan.prod(clock.now);
    within(clock.waits(WANTED), FIRST);
    clock.pass(2 * FIRST);
    assert_eq!(clock.step(WANTED), Step::Open);
    clock.fail(End::Denied(fault));
    clock.plan.prod(clock.now);
    within(clock.waits(WANTED), 2 * FIRST);
    // The one that stands is not concerned.
    clock.plan.acknowledged(clock.now);
    assert_eq!(clock.waits(FITS), None);
}

/// 429 with Retry-After: nobody causes another request before.
#[test]
fn a_server_that_limits_is_left_alone_for_as_long_as_it_says() {
    let mut clock = Clock::new();
    let fault = Fault::new(FaultKind::RateLimited, "slow down");
    let denied = Step::Deny(NotSubscribed::Fault(fault.clone()));
    assert_eq!(clock.step(WANTED), Step::Open);
    clock.fail(End::Limited(fault.clone(), Some(Duration::from_secs(100))));
    assert_eq!(clock.waits(WANTED), Some(Duration::from_secs(100)));
    assert_eq!(clock.step(WAITING), denied);
    clock.plan.prod(clock.now);
    clock.pass(Duration::from_secs(99));
    assert_eq!(clock.step(WAITING), denied);
    clock.pass(Duration::from_secs(1));
    assert_eq!(clock.step(WAITING), Step::Open);
    clock.fail(End::Limited(fault.clone(), None));
    within(clock.waits(WANTED), 2 * FIRST);
    clock.pass(MOST);
    assert_eq!(clock.step(WANTED), Step::Open);
    clock.fail(End::Limited(fault, Some(Duration::from_secs(1 << 40))));
    assert_eq!(clock.waits(WANTED), Some(MOST_AWAY));
}

#[test]
fn a_refusal_that_leaves_other_wishes_holds_nothing_up() {
    let mut clock = Clock::new();
    clock.stand(WANTED);
    assert_eq!(clock.step(WAITING), Step::Open);
    clock.plan.failed(&End::Refused(Fault::bad_gateway("bad uri")), true, clock.now);
    assert_eq!(clock.step(WAITING), Step::Open);
    clock.plan.failed(&End::Refused(Fault::bad_gateway("bad uri")), false, clock.now);
    within(clock.waits(WANTED), FIRST);
    assert_eq!(clock.waits(FITS), None);
}
