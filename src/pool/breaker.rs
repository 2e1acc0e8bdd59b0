//! Whether connections to a host are still opened: after too many failures none are for a while, then one, and if that succeeds, all
//! again. Decides; opens nothing, and reads no clock: moments are times since some start that all workers have in common.
//!
//! ```text
//! closed ──share of failures in the window──► open ──open_for, or a check──► one tries ──success──► closed
//!                                              ▲     that could log in         │
//!                                              └───────────failure─────────────┘
//! ```
//!
//! A check ends a break once. Where the one that tries on its word fails all the same, checks reach what others do not, and the next
//! break lasts for `open_for`.

use std::time::Duration;

use crate::config::BreakerConfig;

/// Fewer failures say nothing about a server.
const FAILURES_MIN: u32 = 5;
/// The window is counted in so many parts, of which the oldest is forgotten at a time.
const PARTS: usize = 10;

/// See the module's words.
#[derive(Debug, Default)]
pub struct Breaker {
    parts: [Part; PARTS],
    state: State,
}

#[derive(Debug, Clone, Copy, Default)]
struct Part {
    /// Which part of time it counts.
    number: u64,
    tried: u32,
    failed: u32,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Closed,
    /// None is opened until the stop's end.
    Open(Stop),
    /// One is being opened, from the moment named on; when nothing is heard of it by the stop's end, another one is.
    Trying(Stop, Duration),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stop {
    /// When the first of a row of stops began.
    since: Duration,
    /// When this one began.
    opened: Duration,
    until: Duration,
    word: Word,
}

/// What the word of a check is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    /// It ends the stop.
    Heeded,
    /// It has ended the stop.
    Taken,
    /// It has ended the stop before, and was wrong.
    Doubted,
}

/// What changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// No more connections: so many of so many have failed.
    Opened {
        /// Failures within the window.
        failed: u32,
        /// Attempts within the window.
        tried: u32,
    },
    /// The one that tried has failed too.
    OpenedAgain,
    /// Connections are opened again.
    Closed,
}

impl Breaker {
    /// Whether a connection may be opened. Of those who ask after the break one gets the leave to try.
    pub fn may_open(&mut self, now: Duration, limits: &BreakerConfig) -> bool {
        match self.state {
            State::Closed => true,
            State::Open(stop) | State::Trying(stop, _) if now < stop.until => false,
            State::Open(stop) | State::Trying(stop, _) => {
                let until = now.saturating_add(limits.open_for);
                self.state = State::Trying(Stop { until, ..stop }, now);
                true
            }
        }
    }

    /// Notes how opening a connection went that was begun at that moment.
    pub fn note(
        &mut self,
        is_success: bool,
        begun: Duration,
        now: Duration,
        limits: &BreakerConfig,
    ) -> Option<Turn> {
        let (stop, heeded_from) = match self.state {
            State::Closed => return self.count(is_success, now, limits),
            State::Open(stop) => (stop, stop.until),
            State::Trying(stop, from) => (stop, from),
        };
        if is_success {
            // Whoever it was that tried: the host can be reached.
            self.state = State::Closed;
            return Some(Turn::Closed);
        }
        // Of an attempt that began before.
        if begun < heeded_from {
            return None;
        }
        let word = match stop.word {
            Word::Taken => Word::Doubted,
            Word::Heeded | Word::Doubted => Word::Heeded,
        };
        self.open(stop.since, word, now, limits);
        Some(Turn::OpenedAgain)
    }

    /// Notes that a check, begun at that moment, has opened a connection and logged in: one may try now. Whether that changes
    /// anything.
    pub fn note_check(&mut self, begun: Duration, now: Duration) -> bool {
        match &mut self.state {
            State::Open(stop)
                if stop.word == Word::Heeded && begun > stop.opened && now < stop.until =>
            {
                stop.word = Word::Taken;
                stop.until = now;
                true
            }
            State::Open(_) | State::Trying(..) | State::Closed => false,
        }
    }

    /// Since when, and until when at least, no connections are opened.
    #[must_use]
    pub fn stop(&self) -> Option<(Duration, Duration)> {
        match self.state {
            State::Closed => None,
            State::Open(stop) | State::Trying(stop, _) => Some((stop.since, stop.until)),
        }
    }

    fn open(&mut self, since: Duration, word: Word, now: Duration, limits: &BreakerConfig) {
        self.parts = [Part::default(); PARTS];
        self.state = State::Open(Stop {
            since,
            opened: now,
            until: now.saturating_add(limits.open_for),
            word,
        });
    }

    fn count(&mut self, is_success: bool, now: Duration, limits: &BreakerConfig) -> Option<Turn> {
        let span = (limits.window / 10).max(Duration::from_millis(1));
        // From 1, so that a part that has counted nothing is of no time.
        let number = u64::try_from(now.as_millis() / span.as_millis()).unwrap_or(u64::MAX - 1) + 1;
        let place = usize::try_from(number % PARTS as u64).unwrap_or(0);
        let part = self.parts.get_mut(place)?;
        if part.number != number {
            *part = Part {
                number,
                ..Part::default()
            };
        }
        part.tried = part.tried.saturating_add(1);
        part.failed = part.failed.saturating_add(u32::from(!is_success));
        let recent = |part: &&Part| part.number.saturating_add(PARTS as u64) > number;
        let (mut tried, mut failed) = (0_u32, 0_u32);
        for part in self.parts.iter().filter(recent) {
            tried = tried.saturating_add(part.tried);
            failed = failed.saturating_add(part.failed);
        }
        let is_too_much =
            failed >= FAILURES_MIN && f64::from(failed) >= limits.failure_ratio * f64::from(tried);
        if is_success || !is_too_much {
            return None;
        }
        self.open(now, Word::Heeded, now, limits);
        Some(Turn::Opened { failed, tried })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: BreakerConfig = BreakerConfig {
        failure_ratio: 0.5,
        window: Duration::from_secs(10),
        open_for: Duration::from_secs(5),
    };

    fn at(ms: u64) -> Duration {
        Duration::from_secs(1000) + Duration::from_millis(ms)
    }

    fn fail(breaker: &mut Breaker, ms: u64) -> Option<Turn> {
        breaker.note(false, at(ms), at(ms), &LIMITS)
    }

    fn succeed(breaker: &mut Breaker, ms: u64) -> Option<Turn> {
        breaker.note(true, at(ms), at(ms), &LIMITS)
    }

    #[test]
    fn opens_tries_and_closes() {
        let mut breaker = Breaker::default();
        for ms in 0..4 {
            assert_eq!(fail(&mut breaker, ms), None);
        }
        assert_eq!(
            fail(&mut breaker, 4),
            Some(Turn::Opened {
                failed: 5,
                tried: 5
            })
        );
        assert!(!breaker.may_open(at(5), &LIMITS));
        assert_eq!(breaker.stop(), Some((at(4), at(5004))));
        // Those that were under way say nothing new.
        assert_eq!(fail(&mut breaker, 100), None);
        // One tries, and only one.
        assert!(!breaker.may_open(at(5003), &LIMITS));
        assert!(breaker.may_open(at(5004), &LIMITS));
        assert!(!breaker.may_open(at(5005), &LIMITS));
        assert_eq!(fail(&mut breaker, 6000), Some(Turn::OpenedAgain));
        assert_eq!(breaker.stop(), Some((at(4), at(11_000))));
        assert!(breaker.may_open(at(11_000), &LIMITS));
        // Nothing is heard of it: another one.
        assert!(!breaker.may_open(at(15_999), &LIMITS));
        assert!(breaker.may_open(at(16_000), &LIMITS));
        assert_eq!(succeed(&mut breaker, 16_001), Some(Turn::Closed));
        assert_eq!(breaker.stop(), None);
        // It begins anew: what was before the break is forgotten.
        for ms in 16_002..16_006 {
            assert_eq!(fail(&mut breaker, ms), None);
        }
        assert!(fail(&mut breaker, 16_006).is_some());
    }

    #[test]
    fn by_the_share_within_the_window() {
        let mut breaker = Breaker::default();
        // A third: not half.
        for n in 0..300 {
            let moment = at(n * 10);
            let turn = breaker.note(n % 3 != 0, moment, moment, &LIMITS);
            assert_eq!(turn, None);
        }
        // One failure in each three seconds is not many, whatever the share.
        let mut breaker = Breaker::default();
        for n in 0..100 {
            assert_eq!(fail(&mut breaker, n * 3000), None);
        }
        // What is out of the window does not count.
        let mut breaker = Breaker::default();
        for n in 0..100 {
            succeed(&mut breaker, n);
        }
        for n in 0..4 {
            assert_eq!(fail(&mut breaker, 20_000 + n), None);
        }
        assert!(fail(&mut breaker, 20_005).is_some());
    }

    fn opened() -> Breaker {
        let mut breaker = Breaker::default();
        for _ in 0..5 {
            fail(&mut breaker, 0);
        }
        assert!(breaker.stop().is_some());
        breaker
    }

    #[test]
    fn a_check_that_logs_in_lets_one_try() {
        let mut breaker = opened();
        // A check that began before says nothing.
        assert!(!breaker.note_check(at(0), at(100)));
        assert!(!breaker.may_open(at(100), &LIMITS));
        assert!(breaker.note_check(at(90), at(100)));
        // What began before fails late, and says nothing new.
        assert_eq!(breaker.note(false, at(0), at(101), &LIMITS), None);
        assert!(breaker.may_open(at(102), &LIMITS));
        assert!(!breaker.may_open(at(103), &LIMITS), "one only");
        assert_eq!(breaker.note(false, at(0), at(104), &LIMITS), None);
        assert_eq!(
            breaker.note(false, at(102), at(105), &LIMITS),
            Some(Turn::OpenedAgain)
        );
        // The check was wrong: the next one is not believed, and the stop has its time.
        assert!(!breaker.note_check(at(200), at(210)));
        assert!(!breaker.may_open(at(5104), &LIMITS));
        assert!(breaker.may_open(at(5105), &LIMITS));
        // The one that tried by the clock has failed as well: the server may be well again when a check says so.
        assert_eq!(fail(&mut breaker, 5106), Some(Turn::OpenedAgain));
        assert!(breaker.note_check(at(5200), at(5210)));
        assert!(breaker.may_open(at(5210), &LIMITS));
        assert_eq!(succeed(&mut breaker, 5211), Some(Turn::Closed));
        assert!(!breaker.note_check(at(5300), at(5310)));
    }

    proptest! {
        /// Never more than one tries while it is open; it always comes to a try again; checks shorten a stop, and none twice in a
        /// row.
        #[test]
        fn any_course(steps in proptest::collection::vec((0..4_u8, 0..2000_u64, 0..2000_u64), 1..200)) {
            let mut breaker = Breaker::default();
            let mut ms = 2000;
            let mut has_shortened = false;
            for (what, later, took) in steps {
                ms += later;
                match what {
                    0 => { breaker.note(true, at(ms - took), at(ms), &LIMITS); }
                    1 => {
                        let turn = breaker.note(false, at(ms - took), at(ms), &LIMITS);
                        if turn == Some(Turn::OpenedAgain) && has_shortened {
                            has_shortened = false;
                            prop_assert!(!breaker.note_check(at(ms + 1), at(ms + 1)));
                        }
                    }
                    2 => {
                        if breaker.note_check(at(ms - took), at(ms)) {
                            prop_assert!(!has_shortened);
                            has_shortened = true;
                            prop_assert_eq!(breaker.stop().map(|(_, until)| until), Some(at(ms)));
                        }
                    }
                    _ => {
                        let was_stopped = breaker.stop().is_some();
                        let may = breaker.may_open(at(ms), &LIMITS);
                        prop_assert!(was_stopped || may);
                        if was_stopped && may {
                            prop_assert!(!breaker.may_open(at(ms), &LIMITS));
                        }
                    }
                }
                if breaker.stop().is_none() {
                    has_shortened = false;
                }
                if let Some((since, until)) = breaker.stop() {
                    prop_assert!(since <= at(ms) && until <= at(ms) + LIMITS.open_for);
                    prop_assert!(until >= since);
                }
            }
        }
    }
}
