//! Ids that Atlas generates for `id = { generator = "snowflake" }`: 41 bits of milliseconds, 10 bits of node, 12 bits that count.
//!
//! A node is a number that one instance has at a time: it holds a lock of that number on the primary of the table's first group, and says so
//! to that server at every check. The milliseconds are the server's, whatever the clock of this machine says. An id is given only within
//! [`HOLDS`] after the server confirmed the lock, and never one that is later than that; who gets a number anew begins with ids that are
//! later still. So two instances cannot give the same id: not when one dies and another gets its number, not when one is cut off from the
//! server and goes on, and not when a clock is wrong. Ids of one number only grow: where the server's clock steps back, they wait for it.
//!
//! Not here: taking the lock, which is control's, and the clock.

use std::time::Duration;

use super::refused::Refused;

/// So long after a check the lock is believed to be held, in milliseconds.
const HOLDS: u64 = 5_000;

/// How many nodes there can be.
pub const NODES: u16 = 1 << NODE_BITS;

const NODE_BITS: u32 = 10;
const COUNT_BITS: u32 = 12;

/// 2024-01-01, in milliseconds since 1970.
const EPOCH: u64 = 1_704_067_200_000;

/// Ids of one statement are in one millisecond, so that they follow each other.
const IDS_MAX: u32 = 1 << COUNT_BITS;

/// That a server confirmed the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The number.
    pub node: u16,
    /// Who holds it: another number for another connection.
    pub holder: u64,
    /// The server's clock, in milliseconds since 1970.
    pub told: u64,
    /// When it was asked.
    pub at: Duration,
}

/// The ids of one node.
#[derive(Debug, Default)]
pub struct Ids {
    lease: Option<Lease>,
    /// Ids up to this millisecond may have been given by who had the number before.
    from: u64,
    /// The last that was given: milliseconds, and the count within.
    last: u64,
}

impl Ids {
    /// A server has confirmed the lock.
    pub fn confirm(&mut self, lease: Lease) {
        let is_same = self
            .lease
            .is_some_and(|old| (old.node, old.holder) == (lease.node, lease.holder));
        if !is_same {
            self.from = lease.told.saturating_add(HOLDS);
        }
        self.lease = Some(lease);
    }

    /// This holder has the lock no more.
    pub fn lose(&mut self, holder: u64) {
        self.lease = self.lease.filter(|lease| lease.holder != holder);
    }

    /// Gives so many ids that follow each other: the first of them.
    ///
    /// # Errors
    /// None can be given now, or never so many.
    pub fn take(&mut self, count: u32, now: Duration) -> Result<u64, Refused> {
        if count > IDS_MAX {
            return Err(Refused::new(format!(
                "one statement can have {IDS_MAX} generated keys at most: insert the rows in portions"
            )));
        }
        let lease = self.lease.ok_or(Refused::NO_NODE)?;
        let passed = u64::try_from(now.saturating_sub(lease.at).as_millis()).unwrap_or(u64::MAX);
        let until = lease.told.saturating_add(HOLDS);
        let moment = lease.told.saturating_add(passed);
        if moment >= until {
            return Err(Refused::NO_NODE);
        }
        let mut start = (moment.max(self.from) << COUNT_BITS).max(self.last.saturating_add(1));
        let room = u64::from(IDS_MAX) - (start & u64::from(IDS_MAX - 1));
        if u64::from(count) > room {
            start = ((start >> COUNT_BITS) + 1) << COUNT_BITS;
        }
        let millisecond = start >> COUNT_BITS;
        if millisecond >= until {
            return Err(Refused::NO_NODE);
        }
        self.last = start + u64::from(count.max(1)) - 1;
        let since = millisecond.saturating_sub(EPOCH);
        Ok(since << (NODE_BITS + COUNT_BITS)
            | u64::from(lease.node % NODES) << COUNT_BITS
            | start & u64::from(IDS_MAX - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000_000;

    fn lease(node: u16, holder: u64, told: u64, at: u64) -> Lease {
        Lease {
            node,
            holder,
            told,
            at: Duration::from_millis(at),
        }
    }

    /// One that may give ids, which it could at this moment of its clock.
    fn ready(node: u16) -> Ids {
        let mut ids = Ids::default();
        ids.confirm(lease(node, 1, NOW - HOLDS, 0));
        ids.confirm(lease(node, 1, NOW, HOLDS));
        ids
    }

    const START: Duration = Duration::from_millis(HOLDS);

    #[test]
    fn ids_follow_each_other_and_say_what_they_are() {
        let mut ids = ready(7);
        let first = ids.take(3, START).unwrap();
        assert_eq!(first >> 22, NOW - EPOCH);
        assert_eq!(first >> 12 & 1023, 7);
        assert_eq!(first & 4095, 0);
        assert_eq!(ids.take(1, START).unwrap(), first + 3);
        // Those of one statement are in one millisecond.
        assert_eq!(ids.take(4096, START).unwrap(), first + (1 << 22));
        assert_eq!(ids.take(1, START).unwrap(), first + (2 << 22));
        let later = START + Duration::from_millis(500);
        assert_eq!(ids.take(2, later).unwrap() >> 22, NOW + 500 - EPOCH);
        assert!(first < 1 << 63);
        assert!(ids.take(4097, later).is_err());
    }

    #[test]
    fn without_a_lease_there_are_none() {
        let mut ids = Ids::default();
        assert!(ids.take(1, Duration::ZERO).is_err());
        // Who had the number before may have given ids up to five seconds from now.
        ids.confirm(lease(1, 1, NOW, 0));
        assert!(ids.take(1, Duration::ZERO).is_err());
        ids.confirm(lease(1, 1, NOW + HOLDS, HOLDS));
        assert!(ids.take(1, START).is_ok());
        // It was not confirmed for too long.
        assert!(ids.take(1, START * 2).is_err());
        ids.confirm(lease(1, 1, NOW + 2 * HOLDS, 2 * HOLDS));
        assert!(ids.take(1, START * 2).is_ok());
        ids.lose(2);
        assert!(ids.take(1, START * 2).is_ok());
        ids.lose(1);
        assert!(ids.take(1, START * 2).is_err());
    }

    #[test]
    fn a_clock_that_steps_back_is_waited_for() {
        let mut ids = ready(1);
        let mut last = ids.take(1, START).unwrap();
        // By two seconds: they grow on, ahead of the clock.
        ids.confirm(lease(1, 1, NOW - 2_000, HOLDS + 1_000));
        for _ in 0..100 {
            let next = ids.take(1, START + Duration::from_secs(1)).unwrap();
            assert!(next > last);
            last = next;
        }
        // By a minute: none are given.
        ids.confirm(lease(1, 1, NOW - 60_000, HOLDS + 2_000));
        assert!(ids.take(1, START + Duration::from_secs(2)).is_err());
    }

    /// Whoever has a number next, at whatever moment the one before was cut off: no id is given twice.
    #[test]
    fn who_gets_the_number_next_gives_no_id_again() {
        for cut in (0..HOLDS).step_by(250) {
            let mut old = ready(1);
            let mut last = 0;
            // The server gives the lock away at once; the old instance does not know.
            let mut new = Ids::default();
            for step in 0..60_u64 {
                let passed = step * 250;
                let now = Duration::from_millis(HOLDS + passed);
                if passed <= cut {
                    old.confirm(lease(1, 1, NOW + passed, HOLDS + passed));
                } else {
                    new.confirm(lease(1, 2, NOW + passed, HOLDS + passed));
                }
                for _ in 0..20 {
                    if let Ok(id) = old.take(4000, now) {
                        last = last.max(id + 4000);
                    }
                }
                if let Ok(id) = new.take(1, now) {
                    assert!(id > last, "{cut} {step}");
                }
            }
        }
    }
}
