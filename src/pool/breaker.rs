//! Whether connections to a host are still opened: after too many failures none are for a while, then one, and if that succeeds, all
//! again. Decides; opens nothing, and reads no clock: moments are times since some start that all workers have in common.
//!
//! ```text
//! closed ──share of failures in the window──► open ──open_for──► one tries ──success──► closed
//!                                              ▲                    │
//!                                              └─────failure────────┘
//! ```

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
    /// None is opened until then.
    Open { since: Duration, until: Duration },
    /// One is being opened; when nothing is heard of it by then, another one is.
    Trying { since: Duration, until: Duration },
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
            State::Open { until, .. } | State::Trying { until, .. } if now < until => false,
            State::Open { since, .. } | State::Trying { since, .. } => {
                self.state = State::Trying {
                    since,
                    until: now.saturating_add(limits.open_for),
                };
                true
            }
        }
    }

    /// Notes how opening a connection went.
    pub fn note(
        &mut self,
        is_success: bool,
        now: Duration,
        limits: &BreakerConfig,
    ) -> Option<Turn> {
        match (self.state, is_success) {
            (State::Closed, _) => self.count(is_success, now, limits),
            // Whoever it was that tried: the host can be reached.
            (State::Open { .. } | State::Trying { .. }, true) => {
                self.state = State::Closed;
                Some(Turn::Closed)
            }
            // Of an attempt that began before.
            (State::Open { until, .. }, false) if now < until => None,
            (State::Open { since, .. } | State::Trying { since, .. }, false) => {
                self.open(since, now, limits);
                Some(Turn::OpenedAgain)
            }
        }
    }

    /// Since when, and until when at least, no connections are opened.
    #[must_use]
    pub fn stop(&self) -> Option<(Duration, Duration)> {
        match self.state {
            State::Closed => None,
            State::Open { since, until } | State::Trying { since, until } => Some((since, until)),
        }
    }

    fn open(&mut self, since: Duration, now: Duration, limits: &BreakerConfig) {
        self.parts = [Part::default(); PARTS];
        self.state = State::Open {
            since,
            until: now.saturating_add(limits.open_for),
        };
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
        self.open(now, now, limits);
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
        breaker.note(false, at(ms), &LIMITS)
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
        assert_eq!(breaker.note(true, at(16_001), &LIMITS), Some(Turn::Closed));
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
            let turn = breaker.note(n % 3 != 0, at(n * 10), &LIMITS);
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
            breaker.note(true, at(n), &LIMITS);
        }
        for n in 0..4 {
            assert_eq!(fail(&mut breaker, 20_000 + n), None);
        }
        assert!(fail(&mut breaker, 20_005).is_some());
    }

    proptest! {
        /// Never more than one tries while it is open; it always comes to a try again.
        #[test]
        fn any_course(steps in proptest::collection::vec((0..3_u8, 0..2000_u64), 1..200)) {
            let mut breaker = Breaker::default();
            let mut ms = 0;
            for (what, later) in steps {
                ms += later;
                match what {
                    0 => { breaker.note(true, at(ms), &LIMITS); }
                    1 => { breaker.note(false, at(ms), &LIMITS); }
                    _ => {
                        let was_stopped = breaker.stop().is_some();
                        let may = breaker.may_open(at(ms), &LIMITS);
                        prop_assert!(was_stopped || may);
                        if was_stopped && may {
                            prop_assert!(!breaker.may_open(at(ms), &LIMITS));
                        }
                    }
                }
                if let Some((since, until)) = breaker.stop() {
                    prop_assert!(since <= at(ms) && until <= at(ms) + LIMITS.open_for);
                    prop_assert!(until >= since);
                }
            }
        }
    }
}
