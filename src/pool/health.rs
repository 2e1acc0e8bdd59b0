//! When a server counts as up, how soon it is looked at again, and how much of its work it gets back after it was away. Checks
//! that were made go in, decisions come out: no sockets and no clock.

use std::time::Duration;

/// How checks are made and what they decide.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Time between two checks of a server that is up.
    pub interval: Duration,
    /// Failed checks in a row that take a server out.
    pub fall: u32,
    /// Good checks in a row that bring it back.
    pub rise: u32,
}

/// How a check went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The server answered.
    Answered,
    /// It did not, in time or at all.
    Failed,
}

/// What a check changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The server is in.
    Up,
    /// It is out.
    Down,
}

/// The checks of one server.
#[derive(Debug, Default)]
pub struct Health {
    failures: u32,
    successes: u32,
    was_up: bool,
}

impl Health {
    /// Notes a check that has learnt something. `is_up` is what everyone believes of the server: traffic may have taken it out since the last check, and
    /// then only checks made after that bring it back.
    pub fn note(&mut self, outcome: Outcome, is_up: bool, pace: &Pace) -> Option<Change> {
        if self.was_up && !is_up {
            self.successes = 0;
        }
        let change = match outcome {
            Outcome::Answered => {
                self.failures = 0;
                self.successes = self.successes.saturating_add(1);
                (!is_up && self.successes >= pace.rise).then_some(Change::Up)
            }
            Outcome::Failed => {
                self.successes = 0;
                self.failures = self.failures.saturating_add(1);
                (is_up && self.failures >= pace.fall).then_some(Change::Down)
            }
        };
        self.was_up = change.map_or(is_up, |change| change == Change::Up);
        change
    }

    /// Checks that have failed in a row.
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// From the start of the last check to the next one. A server that has been away for long is asked less often, up to
    /// [`BACK_OFF_MAX`] intervals; one good answer ends that. Spread by a tenth to either side, so that the checks of many do not
    /// keep falling together.
    #[must_use]
    pub fn next(&self, pace: &Pace, random: u32) -> Duration {
        let patience = self
            .failures
            .saturating_sub(pace.fall)
            .saturating_sub(BACK_OFF_AFTER);
        let factor = 1_u32.saturating_add(patience / 2).min(BACK_OFF_MAX);
        let interval = pace.interval.saturating_mul(factor);
        // 900 to 1100 thousandths.
        let spread = 900_u32.saturating_add(random % 201);
        interval.saturating_mul(spread) / 1000
    }
}

/// Failed checks beyond `fall` before the interval grows.
const BACK_OFF_AFTER: u32 = 20;
/// How many times the interval it may become.
const BACK_OFF_MAX: u32 = 5;

/// The share of its weight, in hundredths, that a server gets of new work: all of it, unless it has just come back. Its caches
/// are cold then, and it may be about to fail again.
#[derive(Debug)]
pub struct Ramp(u32);

/// What a server that has come back starts with, and what each further good check adds.
const STEP: u32 = 10;

impl Default for Ramp {
    fn default() -> Self {
        Self(Self::FULL)
    }
}

impl Ramp {
    /// The whole weight.
    pub const FULL: u32 = 100;

    /// Notes a check after which the server may serve, and whether it could before; gives the share until the next one.
    pub fn note(&mut self, may_serve: bool, could_serve: bool) -> u32 {
        self.0 = if may_serve && !could_serve {
            STEP
        } else if may_serve {
            self.0.saturating_add(STEP).min(Self::FULL)
        } else {
            self.0
        };
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Outcome::{Answered, Failed};

    const PACE: Pace = Pace {
        interval: Duration::from_millis(1000),
        fall: 3,
        rise: 2,
    };

    /// Notes the checks on a server that is believed what they say, and tells where that changed.
    fn changes(outcomes: &[Outcome], mut is_up: bool) -> Vec<(usize, Change)> {
        let mut health = Health::default();
        let mut changes = Vec::new();
        for (index, outcome) in outcomes.iter().enumerate() {
            if let Some(change) = health.note(*outcome, is_up, &PACE) {
                is_up = change == Change::Up;
                changes.push((index, change));
            }
        }
        changes
    }

    #[test]
    fn fall_and_rise() {
        for (outcomes, wanted) in [
            (
                &[Answered, Failed, Failed, Answered, Failed, Failed][..],
                &[][..],
            ),
            (
                &[Answered, Failed, Failed, Failed, Failed],
                &[(3, Change::Down)],
            ),
            (
                &[
                    Answered, Failed, Failed, Failed, Answered, Failed, Answered, Answered, Failed,
                    Failed, Failed,
                ],
                &[(3, Change::Down), (7, Change::Up), (10, Change::Down)],
            ),
        ] {
            assert_eq!(changes(outcomes, true), wanted, "{outcomes:?}");
        }
    }

    #[test]
    fn what_traffic_took_out_needs_fresh_checks() {
        let mut health = Health::default();
        for _ in 0..10 {
            assert_eq!(health.note(Answered, true, &PACE), None);
        }
        assert_eq!(health.note(Answered, false, &PACE), None);
        assert_eq!(health.note(Answered, false, &PACE), Some(Change::Up));
        // And again at once.
        assert_eq!(health.note(Answered, false, &PACE), None);
        assert_eq!(health.note(Answered, false, &PACE), Some(Change::Up));
    }

    #[test]
    fn checks_are_spread_and_back_off() {
        let mut health = Health::default();
        let bounds = |health: &Health| {
            let all = (0..1000).map(|random| health.next(&PACE, random).as_millis());
            (all.clone().min().unwrap(), all.max().unwrap())
        };
        assert_eq!(bounds(&health), (900, 1100));
        let mut before = 0;
        for n in 0..100 {
            health.note(Failed, n < 3, &PACE);
            let (low, high) = bounds(&health);
            assert!(low >= before && high <= 5500, "{low} {high}");
            // A server that fails is not looked at less often for as long as most failures last.
            assert!(n >= 20 || high == 1100, "{n} {high}");
            before = low;
        }
        assert_eq!(bounds(&health), (4500, 5500));
        health.note(Answered, false, &PACE);
        assert_eq!(bounds(&health), (900, 1100));
        assert_eq!(
            health
                .next(
                    &Pace {
                        interval: Duration::MAX,
                        ..PACE
                    },
                    200
                )
                .as_secs(),
            Duration::MAX.as_secs() / 1000
        );
    }

    #[test]
    fn full_weight_comes_back_in_steps() {
        let mut ramp = Ramp::default();
        assert_eq!(ramp.note(true, true), 100);
        assert_eq!(ramp.note(false, true), 100);
        let shares: Vec<u32> = (0..12).map(|n| ramp.note(true, n > 0)).collect();
        assert_eq!(shares, [10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 100, 100]);
    }
}
