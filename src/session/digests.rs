//! Kinds of statements with how often they ran and how long they took, for one worker. Of a busy worker a sample is looked at, which
//! stands for those between: looking at a text costs more than passing it on. The table is bounded.

use std::collections::HashMap;
use std::time::Duration;

use crate::sql::{self, Dialect};

/// Kinds that are kept. When there are more, those that came least often make room.
const KINDS_MAX: usize = 2000;
/// A text is looked at for each so much time that passes, and a few more after a pause.
const PACE: Duration = Duration::from_millis(2);
const SAVED_MAX: u32 = 200;

/// One kind of statement.
#[derive(Debug, Clone)]
pub struct Digest {
    /// Its normal form.
    pub form: Box<[u8]>,
    /// How many of them there were, as far as the sample tells.
    pub count: u64,
    /// How many were looked at.
    pub sampled: u64,
    /// Of those looked at: how many failed.
    pub errors: u64,
    /// Of those looked at: how long they took together.
    pub total: Duration,
    /// Of those looked at: the longest.
    pub longest: Duration,
}

/// See the module's words.
#[derive(Debug)]
pub struct Digests {
    kinds: HashMap<u64, Digest>,
    /// Texts that may be looked at now.
    saved: u32,
    /// Up to when time was turned into those.
    paid: Duration,
    /// Statements since the last one that was looked at.
    passed: u64,
    /// Statements of kinds that were dropped.
    pub(super) dropped: u64,
    form: Vec<u8>,
}

impl Default for Digests {
    fn default() -> Self {
        Self {
            kinds: HashMap::new(),
            saved: SAVED_MAX,
            paid: Duration::ZERO,
            passed: 0,
            dropped: 0,
            form: Vec::with_capacity(1024),
        }
    }
}

impl Digests {
    /// A statement begins; gives the number of its kind when it is looked at.
    pub(super) fn begin(&mut self, now: Duration, text: &[u8], dialect: &Dialect) -> Option<u64> {
        self.passed += 1;
        if self.saved == 0 && !self.save(now) {
            return None;
        }
        self.saved -= 1;
        Some(self.look(text, dialect))
    }

    /// Turns the time that has passed into texts that may be looked at.
    fn save(&mut self, now: Duration) -> bool {
        let passed = now.saturating_sub(self.paid);
        if passed < PACE {
            return false;
        }
        let passed = passed.as_nanos() / PACE.as_nanos();
        self.saved = u32::try_from(passed).unwrap_or(SAVED_MAX).min(SAVED_MAX);
        self.paid = now;
        true
    }

    // Out of the way of those that are not looked at.
    #[cold]
    fn look(&mut self, text: &[u8], dialect: &Dialect) -> u64 {
        let digest = sql::digest(text, dialect, &mut self.form);
        let stands_for = std::mem::take(&mut self.passed);
        if !self.kinds.contains_key(&digest) {
            if self.kinds.len() >= KINDS_MAX {
                self.make_room();
            }
            let kind = Digest {
                form: self.form.as_slice().into(),
                count: 0,
                sampled: 0,
                errors: 0,
                total: Duration::ZERO,
                longest: Duration::ZERO,
            };
            self.kinds.insert(digest, kind);
        }
        if let Some(kind) = self.kinds.get_mut(&digest) {
            kind.count += stands_for;
            kind.sampled += 1;
        }
        digest
    }

    /// Drops the quarter that came least often, so that this is seldom needed.
    fn make_room(&mut self) {
        let mut counts: Vec<u64> = self.kinds.values().map(|kind| kind.count).collect();
        let at = counts.len() / 4;
        let (_, &mut few, _) = counts.select_nth_unstable(at);
        let mut dropped = 0;
        let mut left = at + 1;
        self.kinds.retain(|_, kind| {
            let is_kept = kind.count > few || left == 0;
            if !is_kept {
                left -= 1;
                dropped += kind.count;
            }
            is_kept
        });
        self.dropped += dropped;
    }

    /// A statement that was looked at has been answered.
    #[cold]
    pub(super) fn end(&mut self, digest: u64, took: Duration, failed: bool) {
        if let Some(kind) = self.kinds.get_mut(&digest) {
            kind.total += took;
            kind.longest = kind.longest.max(took);
            kind.errors += u64::from(failed);
        }
    }

    /// All kinds, and how many statements were of kinds that were dropped.
    #[must_use]
    pub fn all(&self) -> (Vec<(u64, Digest)>, u64) {
        let kinds = self
            .kinds
            .iter()
            .map(|(digest, kind)| (*digest, kind.clone()));
        (kinds.collect(), self.dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::Server;

    fn dialect() -> Dialect {
        Dialect::new(Server::MySql, 80_036)
    }

    /// What is not looked at is counted with what is.
    #[test]
    fn a_sample_stands_for_all() {
        let mut digests = Digests::default();
        let mut looked = 0;
        for n in 0..10_000_u64 {
            // A statement each 20 microseconds.
            let now = Duration::from_micros(n * 20);
            if let Some(digest) = digests.begin(now, b"SELECT 1", &dialect()) {
                digests.end(digest, Duration::from_millis(2), n % 2 == 0);
                looked += 1;
            }
        }
        // 200 ms at this pace, and what was saved.
        assert!((290..=310).contains(&looked), "{looked}");
        let (kinds, dropped) = digests.all();
        let (_, kind) = &kinds[0];
        assert_eq!((kinds.len(), dropped), (1, 0));
        assert_eq!(kind.sampled, looked);
        assert!(kind.count > 9_900 && kind.count <= 10_000, "{}", kind.count);
        assert_eq!(
            (&*kind.form, kind.longest),
            (&b"select ?"[..], Duration::from_millis(2))
        );
    }

    /// B271: a flood of kinds does not grow the table, and drops none of those that come often.
    #[test]
    fn a_flood_is_bounded() {
        let mut digests = Digests::default();
        let mut total = 0_u64;
        for n in 0..20_000_u64 {
            let now = Duration::from_millis(n * 10);
            let flood = format!("SELECT 1 AS c{n}");
            digests.begin(now, flood.as_bytes(), &dialect());
            digests.begin(now, b"SELECT often", &dialect());
            total += 2;
        }
        let (kinds, dropped) = digests.all();
        assert!(kinds.len() <= KINDS_MAX);
        let often = kinds
            .iter()
            .find(|(_, kind)| &*kind.form == b"select often")
            .unwrap();
        assert!(often.1.count >= 19_000, "{}", often.1.count);
        let counted: u64 = kinds.iter().map(|(_, kind)| kind.count).sum();
        assert!(counted + dropped <= total && counted + dropped + 10 >= total);
    }
}
