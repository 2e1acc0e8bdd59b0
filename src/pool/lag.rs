//! How far a replica is behind and whether it may serve reads for that. What servers say of their replication goes in,
//! decisions come out: no sockets and no clock.

use std::time::{Duration, Instant};

/// What a server says of its replication. Of several sources, the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replication {
    /// It runs, so far behind.
    Behind(Duration),
    /// It runs, but does not reach its source, so that it does not know how far behind it is.
    Disconnected,
    /// It does not run: somebody or a fault has stopped it.
    Stopped,
    /// The server replicates nothing.
    Absent,
    /// It does not tell: the account may not ask.
    Hidden,
    /// It was asked and did not answer in time, though it answers other questions: so it is while replication is being stopped.
    Silent,
    /// A heartbeat is to tell how far it is behind, and does not.
    Unmeasured,
}

/// Whether a replica's data are fresh enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Freshness {
    /// They are, or nobody has asked for more.
    Fresh = 0,
    /// It is too far behind.
    Behind = 1,
    /// Its replication is stopped.
    Stopped = 2,
    /// It cannot be known how far it is behind.
    Unknown = 3,
}

impl Freshness {
    /// One word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Behind => "behind",
            Self::Stopped => "stopped",
            Self::Unknown => "unknown",
        }
    }

    pub(super) fn from_byte(byte: u8) -> Self {
        match byte {
            0 => Self::Fresh,
            1 => Self::Behind,
            2 => Self::Stopped,
            _ => Self::Unknown,
        }
    }
}

/// What a replica must fulfil.
#[derive(Debug, Clone, Copy)]
pub struct LagPolicy {
    /// Further behind it serves no reads.
    pub max: Duration,
    /// Whether lag that cannot be known counts as too much even where nothing says that there is any: the server replicates
    /// nothing, or the account may not ask. So it is where the operator has named a limit.
    pub is_strict: bool,
    /// Good answers in a row that bring it back.
    pub rise: u32,
}

/// The lag of one replica.
#[derive(Debug)]
pub struct LagGate {
    freshness: Freshness,
    /// The last lag that the server told, and when.
    known: Option<(Duration, Instant)>,
    has_replicated: bool,
    is_first: bool,
    good: u32,
}

impl Default for LagGate {
    fn default() -> Self {
        Self {
            freshness: Freshness::Fresh,
            known: None,
            has_replicated: false,
            is_first: true,
            good: 0,
        }
    }
}

impl LagGate {
    /// For a server that was the primary: one that replicates from nobody is not fresh, and falls behind more and more.
    #[must_use]
    pub fn of_former_primary() -> Self {
        Self {
            freshness: Freshness::Unknown,
            has_replicated: true,
            ..Self::default()
        }
    }

    /// Notes what the replica says. `primary_seen` is when the primary answered last; nothing when it never has.
    ///
    /// A replica leaves at once and comes back after `rise` good answers, with at most half the lag that is allowed: one that
    /// stays about the limit does not come and go. The first answer decides alone.
    pub fn note(
        &mut self,
        said: Replication,
        now: Instant,
        primary_seen: Option<Instant>,
        policy: &LagPolicy,
    ) -> Freshness {
        let is_fresh = self.is_first || self.freshness == Freshness::Fresh;
        let limit = if is_fresh { policy.max } else { policy.max / 2 };
        let found = match said {
            Replication::Behind(lag) => {
                self.known = Some((lag, now));
                self.has_replicated = true;
                within(lag, limit)
            }
            Replication::Disconnected => {
                self.has_replicated = true;
                match (self.lag(primary_seen), primary_seen) {
                    (Some(lag), _) => within(lag, limit),
                    // It may have been disconnected for days.
                    (None, Some(_)) => Freshness::Unknown,
                    // There is no primary that it could be behind.
                    (None, None) => Freshness::Fresh,
                }
            }
            Replication::Stopped => {
                self.known = None;
                self.has_replicated = true;
                Freshness::Stopped
            }
            Replication::Absent if self.has_replicated || policy.is_strict => Freshness::Unknown,
            Replication::Silent | Replication::Unmeasured => Freshness::Unknown,
            Replication::Hidden if policy.is_strict => Freshness::Unknown,
            Replication::Absent | Replication::Hidden => Freshness::Fresh,
        };
        let is_first = std::mem::take(&mut self.is_first);
        self.good = match found {
            Freshness::Fresh => self.good.saturating_add(1),
            Freshness::Behind | Freshness::Stopped | Freshness::Unknown => 0,
        };
        if found != Freshness::Fresh {
            self.freshness = found;
        } else if is_first || self.good >= policy.rise {
            self.freshness = Freshness::Fresh;
        }
        self.freshness
    }

    /// How far it is behind, as far as one can know. A replica that has lost its primary falls behind no longer than that
    /// lives: when the primary is gone, there is nothing newer to be read.
    #[must_use]
    pub fn lag(&self, primary_seen: Option<Instant>) -> Option<Duration> {
        let (lag, at) = self.known?;
        let since = primary_seen.map_or(Duration::ZERO, |seen| seen.saturating_duration_since(at));
        Some(lag.saturating_add(since))
    }
}

fn within(lag: Duration, limit: Duration) -> Freshness {
    if lag > limit {
        Freshness::Behind
    } else {
        Freshness::Fresh
    }
}

#[cfg(test)]
mod tests {
    #![expect(
        clippy::disallowed_methods,
        reason = "an Instant to count from can be had in no other way"
    )]

    use super::*;
    use Freshness::{Behind, Fresh, Stopped, Unknown};
    use Replication::{Absent, Disconnected, Hidden};

    const POLICY: LagPolicy = LagPolicy {
        max: Duration::from_secs(10),
        is_strict: false,
        rise: 2,
    };

    fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    /// Notes one answer a second, with a primary that answers as often, or with none.
    struct Replica {
        gate: LagGate,
        start: Instant,
        now: u64,
        primary_seen: Option<u64>,
        policy: LagPolicy,
    }

    impl Replica {
        fn new(policy: LagPolicy) -> Self {
            Self {
                gate: LagGate::default(),
                start: Instant::now(),
                now: 0,
                primary_seen: None,
                policy,
            }
        }

        fn says(&mut self, said: Replication, primary_answers: bool) -> Freshness {
            self.now += 1;
            if primary_answers {
                self.primary_seen = Some(self.now);
            }
            let seen = self.primary_seen.map(|at| self.start + secs(at));
            self.gate
                .note(said, self.start + secs(self.now), seen, &self.policy)
        }

        fn all(&mut self, said: &[Replication]) -> Vec<Freshness> {
            said.iter().map(|said| self.says(*said, true)).collect()
        }
    }

    fn lags(lags: &[u64]) -> Vec<Replication> {
        lags.iter()
            .map(|lag| Replication::Behind(secs(*lag)))
            .collect()
    }

    #[test]
    fn leaves_at_the_limit_and_returns_below_half_of_it() {
        let mut replica = Replica::new(POLICY);
        let told = replica.all(&lags(&[0, 10, 11, 10, 6, 5, 6, 5, 4, 10]));
        assert_eq!(
            told,
            [
                Fresh, Fresh, Behind, Behind, Behind, Behind, Behind, Behind, Fresh, Fresh
            ]
        );
    }

    #[test]
    fn the_first_answer_decides() {
        assert_eq!(Replica::new(POLICY).all(&lags(&[10])), [Fresh]);
        assert_eq!(
            Replica::new(POLICY).all(&lags(&[11, 0, 0])),
            [Behind, Behind, Fresh]
        );
    }

    #[test]
    fn stopped_is_out_whatever_the_policy() {
        let said = [lags(&[0]), vec![Replication::Stopped], lags(&[0, 0])].concat();
        assert_eq!(
            Replica::new(POLICY).all(&said),
            [Fresh, Stopped, Stopped, Fresh]
        );
        assert_eq!(Replica::new(POLICY).all(&[Replication::Stopped]), [Stopped]);
    }

    #[test]
    fn a_lost_primary_that_lives_lets_the_lag_grow() {
        let mut replica = Replica::new(POLICY);
        replica.all(&lags(&[3]));
        let told = replica.all(&[Disconnected; 8]);
        assert_eq!(told, [[Fresh; 7].as_slice(), &[Behind]].concat());
        let seen = Some(replica.start + secs(replica.now));
        assert_eq!(replica.gate.lag(seen), Some(secs(11)));
    }

    #[test]
    fn a_dead_primary_lets_replicas_serve_on() {
        let mut replica = Replica::new(POLICY);
        replica.all(&lags(&[3]));
        for _ in 0..100 {
            assert_eq!(replica.says(Disconnected, false), Fresh);
        }
        // It is back, and the replica has not found it yet: from now on it may be behind.
        let told: Vec<_> = (0..3).map(|_| replica.says(Disconnected, true)).collect();
        assert_eq!(told, [Behind, Behind, Behind]);
        assert_eq!(replica.all(&lags(&[0, 0])), [Behind, Fresh]);
    }

    #[test]
    fn disconnected_from_the_start() {
        // Without a primary there is nothing better to read from.
        assert_eq!(Replica::new(POLICY).says(Disconnected, false), Fresh);
        // With one, the lag is unknown, and that is too much.
        assert_eq!(Replica::new(POLICY).says(Disconnected, true), Unknown);
    }

    #[test]
    fn who_does_not_tell_serves_unless_a_limit_was_named() {
        let strict = LagPolicy {
            is_strict: true,
            ..POLICY
        };
        for said in [Absent, Hidden] {
            assert_eq!(Replica::new(POLICY).all(&[said]), [Fresh]);
            assert_eq!(Replica::new(strict).all(&[said]), [Unknown]);
        }
        // One whose replication was taken away is detached.
        let said = [lags(&[0]), vec![Absent]].concat();
        assert_eq!(Replica::new(POLICY).all(&said), [Fresh, Unknown]);
    }

    #[test]
    fn who_does_not_answer_is_out_until_it_does() {
        let said = [lags(&[0]), vec![Replication::Silent], lags(&[0, 0])].concat();
        assert_eq!(
            Replica::new(POLICY).all(&said),
            [Fresh, Unknown, Unknown, Fresh]
        );
        assert_eq!(Replica::new(POLICY).all(&[Replication::Silent]), [Unknown]);
        // Where there is a heartbeat, it is to tell.
        let said = [lags(&[0]), vec![Replication::Unmeasured], lags(&[0, 0])].concat();
        assert_eq!(
            Replica::new(POLICY).all(&said),
            [Fresh, Unknown, Unknown, Fresh]
        );
    }

    #[test]
    fn bytes_of_freshness() {
        for freshness in [Fresh, Behind, Stopped, Unknown] {
            assert_eq!(Freshness::from_byte(freshness as u8), freshness);
        }
    }
}
