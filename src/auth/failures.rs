//! Wrong passwords by the address and the account: how long the next refusal is put off, so that guessing takes its time. A
//! log-in that succeeds is never put off: behind one address there may be many clients, one of them misconfigured. An account
//! that does not exist counts like one that does, or the delay would tell which do.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

/// So many are answered at once: somebody mistypes.
const FREE: u32 = 5;
/// The first delay; each further one doubles it.
const FIRST: Duration = Duration::from_millis(250);
/// The longest.
const LONGEST: Duration = Duration::from_secs(1);
/// Who has not guessed for so long is forgotten.
const FORGOTTEN: Duration = Duration::from_secs(60);
/// Pairs of address and account that are remembered; those that have been quiet for the longest make room.
const ENTRIES_MAX: usize = 4096;

/// See the module's words.
#[derive(Debug, Default)]
pub struct Failures(HashMap<(IpAddr, u64), Entry>);

#[derive(Debug, Clone, Copy)]
struct Entry {
    count: u32,
    last: Duration,
}

impl Failures {
    /// Notes a wrong password; gives how many there were in a row, and how long its answer is to be put off. Moments count from
    /// some start.
    pub fn note(&mut self, address: IpAddr, user: &[u8], now: Duration) -> (u32, Duration) {
        let place = (network(address), self.0.hasher().hash_one(user));
        if self.0.len() >= ENTRIES_MAX && !self.0.contains_key(&place) {
            self.make_room(now);
        }
        let entry = self.0.entry(place).or_insert(Entry {
            count: 0,
            last: now,
        });
        if now.saturating_sub(entry.last) >= FORGOTTEN {
            entry.count = 0;
        }
        entry.count = entry.count.saturating_add(1);
        entry.last = now;
        (entry.count, delay(entry.count))
    }

    fn make_room(&mut self, now: Duration) {
        self.0
            .retain(|_, entry| now.saturating_sub(entry.last) < FORGOTTEN);
        if self.0.len() >= ENTRIES_MAX {
            // Many at once, so that the next ones cost nothing.
            let mut moments: Vec<Duration> = self.0.values().map(|entry| entry.last).collect();
            let (_, &mut quiet, _) = moments.select_nth_unstable(ENTRIES_MAX / 4);
            self.0.retain(|_, entry| entry.last > quiet);
        }
    }
}

fn delay(count: u32) -> Duration {
    match count.checked_sub(FREE + 1) {
        None => Duration::ZERO,
        Some(doublings) => FIRST.saturating_mul(1 << doublings.min(16)).min(LONGEST),
    }
}

/// Who has one IPv6 address has its whole network of 64 bits.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => {
            let network = u128::from(address) >> 64 << 64;
            Ipv6Addr::from(network).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn doubles_to_a_bound_and_is_forgotten() {
        let mut failures = Failures::default();
        let address = "10.0.0.1".parse().unwrap();
        let delays: Vec<u128> = (0..12)
            .map(|n| failures.note(address, b"app", at(n)).1.as_millis())
            .collect();
        assert_eq!(
            delays,
            [0, 0, 0, 0, 0, 250, 500, 1000, 1000, 1000, 1000, 1000]
        );
        // Written as IPv6 it is the same one; others are not concerned.
        let mapped = "::ffff:10.0.0.1".parse().unwrap();
        assert_eq!(failures.note(mapped, b"app", at(12)), (13, LONGEST));
        assert_eq!(
            failures.note("10.0.0.2".parse().unwrap(), b"app", at(12)).0,
            1
        );
        assert_eq!(failures.note(address, b"other", at(12)).0, 1);
        assert_eq!(failures.note(address, b"app", at(71)).0, 14);
        assert_eq!(failures.note(address, b"app", at(131)).0, 1);
        for _ in 0..100_000 {
            failures.note(address, b"app", at(131));
        }
        assert_eq!(failures.note(address, b"app", at(131)).1, LONGEST);
    }

    #[test]
    fn a_network_of_ipv6_is_one() {
        let mut failures = Failures::default();
        for host in 0..10 {
            let address = format!("2001:db8::{host}").parse().unwrap();
            assert_eq!(failures.note(address, b"app", at(0)).0, host + 1);
        }
        let other = "2001:db8:0:1::1".parse().unwrap();
        assert_eq!(failures.note(other, b"app", at(0)).0, 1);
    }

    #[test]
    fn bounded() {
        let mut failures = Failures::default();
        let guesser = "10.0.0.1".parse().unwrap();
        for n in 0..20_000_u32 {
            let now = Duration::from_millis(u64::from(n));
            failures.note(IpAddr::V4((0x0b00_0000 + n).into()), b"app", now);
            failures.note(guesser, b"app", now);
        }
        assert!(failures.0.len() <= ENTRIES_MAX);
        // Who goes on is not forgotten for the others.
        assert_eq!(failures.note(guesser, b"app", at(20)).0, 20_001);
        // All of them are, when they have been quiet.
        for n in 0..5_000_u32 {
            failures.note(IpAddr::V4((0x0c00_0000 + n).into()), b"app", at(1_000));
        }
        assert!(failures.0.len() <= ENTRIES_MAX);
    }
}
