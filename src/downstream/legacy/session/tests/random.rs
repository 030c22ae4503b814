//! Calls and clients that do anything in any order: what must hold whatever happens.

use super::*;
use crate::telemetry::metrics::Ended;
use crate::wire::jsonrpc::Id;
use futures_util::FutureExt;

/// A row of numbers that a seed decides.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % most
    }
}

/// One call and the client that waits for it, which comes back with the id of the last event that it had.
struct Scene {
    id: Id,
    track: Option<Track>,
    reader: Option<Reader>,
    last: Option<String>,
    /// Of an event whose end has not come.
    half: String,
    /// Data of the events in the order in which they came.
    had: Vec<String>,
    ended: bool,
    said: u64,
    answered: bool,
    large: bool,
}

impl Scene {
    fn new(session: &Use, number: u64) -> Self {
        let id = Id::number(number);
        let track = session.track([id.clone()]);
        let reader = Some(track.reader());
        Self {
            id,
            track: Some(track),
            reader,
            last: None,
            half: String::new(),
            had: Vec::new(),
            ended: false,
            said: 0,
            answered: false,
            large: false,
        }
    }

    /// Something happens at the server.
    fn speak(&mut self, dice: &mut Dice) {
        let Some(track) = &self.track else { return };
        let size = dice.below(120) as usize;
        self.said += 1;
        let text = message(&format!("{} {}", self.said, "x".repeat(size)));
        let action = dice.below(12);
        if self.large || (action == 0 && !self.answered) {
            self.large = true;
            // A reader that is behind has to be waited for, which is not what this is about.
            let _ = track.piece(&self.id, &Bytes::from("p".repeat(size + 1))).now_or_never();
            if dice.below(6) == 0 {
                track.end_pieces(dice.below(4) > 0);
                self.answered = true;
                self.track = None;
            }
            return;
        }
        match action {
            1 => {
                let text = message(&format!("answer {}", "a".repeat(size * 8)));
                let told = track.answer(&self.id, &text, Ended::Result);
                if told.now_or_never().is_some() {
                    self.answered = true;
                    self.track = None;
                }
            }
            2 => {
                // Whoever held it is gone.
                self.answered = true;
                self.track = None;
            }
            3 | 4 => {
                let _ = track.ask(self.said, &text).now_or_never();
            }
            5 => track.take_back(dice.below(self.said) + 1, &text),
            _ => {
                let _ = track.push(&text).now_or_never();
            }
        }
    }

    /// The client reads, leaves, or comes back.
    async fn listen(&mut self, session: &Use, dice: &mut Dice) {
        match (&mut self.reader, dice.below(4)) {
            (Some(_), 0) => {
                self.reader = None;
                self.half.clear();
            }
            (Some(reader), _) => {
                let text = read(reader).await;
                self.take(&text);
            }
            (None, 0) => {}
            (None, _) => match session.resume(self.last.as_deref().unwrap_or("x").as_bytes()) {
                Resumed::Call(reader) => self.reader = Some(reader),
                Resumed::Over => self.ended = true,
                // Without an id there is nothing to come back with.
                Resumed::Own(_) => self.ended = true,
            },
        }
    }

    fn take(&mut self, text: &str) {
        self.half += text.trim_end_matches(['.', '!']);
        // The end of an event is its blank line: half of one is no event.
        let end = self.half.rfind("\n\n").map_or(0, |at| at + 2);
        let whole: String = self.half.drain(..end).collect();
        for event in whole.split_inclusive("\n\n") {
            if let Some(id) = ids(event).pop() {
                let n = |id: &str| id.split_once('-').unwrap().1.parse::<u64>().unwrap();
                assert!(self.last.as_deref().is_none_or(|last| n(last) < n(&id)), "{:?} {id}", self.last);
                self.last = Some(id);
            }
            self.had.extend(data(event).into_iter().filter(|data| data != "-"));
        }
        if text.ends_with('!') {
            self.reader = None;
            self.half.clear();
        } else if text.ends_with('.') {
            self.reader = None;
            self.ended = true;
        }
    }

    fn answers(&self) -> usize {
        let is_answer =
            |had: &&String| had.starts_with("answer") || had.starts_with('p') || had.contains("-32603");
        self.had.iter().filter(is_answer).count()
    }
}

/// Invariants 1 and 5: no event twice, none out of order, one answer at most, and one for whoever keeps coming back; nothing
/// is kept for ever, and nobody waits for ever.
#[tokio::test(start_paused = true)]
async fn whatever_happens_each_call_is_answered_once() {
    for seed in 1..=100 {
        let mut dice = Dice(u64::wrapping_mul(seed, 0x9E37_79B9_7F4A_7C15));
        let front = config::Limits {
            events: 1 + dice.below(8) as usize,
            event_bytes: 200 + dice.below(2000) as usize,
            ..config::Limits::default()
        };
        let mut settings = settings();
        settings.session.replay_events = 4 + dice.below(40) as usize;
        settings.session.replay_bytes = 1024 + dice.below(4096) as usize;
        let (events, bytes) = (settings.session.replay_events, settings.session.replay_bytes);
        let stage = stage_with(&settings, &front);
        let (session, _) = stage.begin(None);
        let mut scenes: Vec<_> = (0..3).map(|number| Scene::new(&session, number)).collect();
        for _ in 0..200 {
            let scene = &mut scenes[dice.below(3) as usize];
            if dice.below(2) == 0 {
                scene.speak(&mut dice);
            } else if !scene.ended {
                scene.listen(&session, &mut dice).await;
            }
            assert!(scene.answers() <= 1, "{seed}: {:?}", scene.had);
            let kept = session.work(|work| work.rows.kept());
            assert!(kept.0 <= events + 3 * (front.events + 1), "{seed}: {kept:?}");
            assert!(kept.1 <= bytes + 3 * (front.event_bytes + 1200), "{seed}: {kept:?}");
        }
        for scene in &mut scenes {
            scene.track = None;
            let mut tries = 0;
            while !scene.ended {
                scene.listen(&session, &mut dice).await;
                tries += 1;
                assert!(tries < 1000, "{seed}: {:?}", scene.had);
            }
            let lost = stage.counted("replay_dropped_total").iter().any(|line| line.contains("answer"));
            // One that had no event yet has nothing to come back with.
            let answered = scene.answers() == 1 || scene.last.is_none() || lost;
            assert!(answered, "{seed}: {:?}", scene.had);
        }
        let waits = session.work(|work| work.rows.kept());
        assert!(waits.0 <= events && waits.1 <= bytes, "{seed}: {waits:?}");
        drop(scenes);
        tokio::time::sleep(settings.session.replay * 2).await;
        assert!(session.is_at_rest(), "{seed}");
    }
}
