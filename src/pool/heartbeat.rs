//! How far a replica is behind by a heartbeat: a row that somebody keeps writing on the primary, with the time of each beat. What
//! servers show of it goes in, lag comes out: no sockets and no clock; moments are times since some start.
//!
//! Two beats are compared with each other, never with a clock, so clocks and time zones that differ do no harm: the replica's is
//! older than the primary's by so much, and the primary's has not changed for so long. Thus lag grows too when nobody beats any
//! more, which would otherwise look as if nobody were behind. It grows no longer than the primary answers: when that is gone, there
//! is nothing newer to be read.

use std::time::Duration;

/// What a server shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beat {
    /// Its time as it is written, in microseconds, whatever the zone.
    pub written: i64,
    /// How long ago that was by the server's clock, in the zone in which it is least.
    pub age: Option<Duration>,
}

/// The heartbeat of a primary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pulse {
    /// The server id that its row bears.
    pub server_id: u64,
    written: i64,
    /// Since when it shows this beat.
    since: Duration,
    /// When it was seen to.
    seen: Duration,
    /// Somebody beats, or did a moment ago.
    is_alive: bool,
}

impl Pulse {
    /// What a primary shows, after what was known before. A first beat that is older than `max` tells nothing: who wrote it may be
    /// gone for long.
    #[must_use]
    pub fn next(
        before: Option<&Self>,
        server_id: u64,
        beat: Beat,
        now: Duration,
        max: Duration,
    ) -> Self {
        let new = Self {
            server_id,
            written: beat.written,
            since: now,
            seen: now,
            is_alive: true,
        };
        match before.filter(|before| before.server_id == server_id) {
            Some(before) if before.written == beat.written => Self {
                seen: now,
                ..*before
            },
            Some(_) => new,
            None => Self {
                since: now.saturating_sub(beat.age.unwrap_or_default()),
                is_alive: beat.age.is_some_and(|age| age <= max),
                ..new
            },
        }
    }

    /// How far a server is behind that shows this beat; nothing where that cannot be known.
    #[must_use]
    pub fn lag(&self, shown: Beat) -> Option<Duration> {
        let apart = self.written.saturating_sub(shown.written);
        let apart = Duration::from_micros(u64::try_from(apart).unwrap_or(0));
        let unchanged = self.seen.saturating_sub(self.since);
        self.is_alive.then(|| apart.saturating_add(unchanged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAX: Duration = secs(10);

    const fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    fn beat(second: i64) -> Beat {
        Beat {
            written: second * 1_000_000,
            age: Some(secs(1)),
        }
    }

    fn of_age(age: Option<Duration>) -> Beat {
        Beat { age, ..beat(5) }
    }

    #[test]
    fn a_replica_is_behind_by_what_its_beat_is_older() {
        let first = Pulse::next(None, 1, beat(100), secs(50), MAX);
        let pulse = Pulse::next(Some(&first), 1, beat(101), secs(51), MAX);
        assert_eq!(pulse.lag(beat(101)), Some(secs(0)));
        assert_eq!(pulse.lag(beat(95)), Some(secs(6)));
        // It was asked a moment later than the primary.
        assert_eq!(pulse.lag(beat(102)), Some(secs(0)));
    }

    #[test]
    fn lag_grows_while_nobody_beats_and_the_primary_answers() {
        let first = Pulse::next(None, 1, beat(100), secs(50), MAX);
        // A second old when it was first seen.
        assert_eq!(first.lag(beat(100)), Some(secs(1)));
        let later = Pulse::next(Some(&first), 1, beat(100), secs(60), MAX);
        assert_eq!(later.lag(beat(100)), Some(secs(11)));
        assert_eq!(later.lag(beat(97)), Some(secs(14)));
        let again = Pulse::next(Some(&later), 1, beat(170), secs(61), MAX);
        assert_eq!(again.lag(beat(170)), Some(secs(0)));
        assert_eq!(again.lag(beat(100)), Some(secs(70)));
        // A clock was set back.
        let back = Pulse::next(Some(&again), 1, beat(20), secs(62), MAX);
        assert_eq!(back.lag(beat(20)), Some(secs(0)));
    }

    #[test]
    fn a_first_beat_counts_when_it_is_fresh() {
        for (age, lag) in [
            (Some(secs(0)), Some(secs(0))),
            (Some(secs(10)), Some(secs(10))),
            (Some(secs(11)), None),
            (None, None),
        ] {
            let pulse = Pulse::next(None, 1, of_age(age), secs(50), MAX);
            assert_eq!(pulse.lag(beat(5)), lag, "{age:?}");
            // Somebody beats after all.
            let moved = Pulse::next(Some(&pulse), 1, beat(6), secs(51), MAX);
            assert_eq!(moved.lag(beat(6)), Some(secs(0)));
        }
        // Another primary has to show its own.
        let old = Pulse::next(None, 1, beat(5), secs(50), MAX);
        let new = Pulse::next(Some(&old), 2, of_age(None), secs(51), MAX);
        assert_eq!((new.server_id, new.lag(beat(5))), (2, None));
    }

    proptest! {
        /// Lag that is told is never less than what the replica truly lacks, up to what passes between two looks.
        #[test]
        fn never_too_little(
            looks in proptest::collection::vec((1..5_u64, any::<bool>(), 0..20_u64), 1..60),
        ) {
            let (mut now, mut written) = (1000_u64, 1000_u64);
            let mut pulse = None;
            for (later, is_beaten, behind) in looks {
                now += later;
                if is_beaten {
                    written = now;
                }
                let shows = |second: u64| Beat {
                    written: i64::try_from(second).unwrap() * 1_000_000,
                    age: Some(secs(now - second.min(now))),
                };
                let next = Pulse::next(pulse.as_ref(), 7, shows(written), secs(now), MAX);
                pulse = Some(next);
                // What the replica has is that old.
                let has = (now - behind).min(written);
                match next.lag(shows(has)) {
                    Some(lag) => prop_assert!(lag + secs(5) >= secs(now - has)),
                    None => prop_assert!(now - written > 10),
                }
            }
        }
    }
}
