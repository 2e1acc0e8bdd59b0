//! Kinds of statements with how often they ran and how long they took, for one worker. Of a busy worker a sample is looked at, which
//! stands for those between: looking at a text costs more than passing it on. The table is bounded.
//!
//! Texts wait until there are some, or somebody asks: one by one, with the caches gone cold between, they would cost more than all else
//! that is done for a statement, and the statement would wait for it.

use std::collections::HashMap;
use std::time::Duration;

use crate::sql::{self, Dialect};

/// Kinds that are kept. When there are more, those that came least often make room.
const KINDS_MAX: usize = 2000;
/// A text is looked at for each so much time that passes, and a few more after a pause.
const PACE: Duration = Duration::from_millis(2);
const SAVED_MAX: u32 = 200;
/// So many statements wait to be looked at, with so many bytes of text together.
const WAITING_MAX: usize = 64;
const ROOM: usize = 16 * 1024;
/// Of so many that run, and were looked at meanwhile, it is known of which kind they are.
const RUNNING_MAX: usize = 8192;

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

/// A statement that waits to be looked at.
#[derive(Debug)]
struct Waiting {
    /// Where its text ends; it begins where that of the one before does.
    end: usize,
    /// Itself and those before it that are not looked at.
    stands_for: u64,
    dialect: Dialect,
    /// How long it took and whether it failed, if it has been answered.
    answer: Option<(Duration, bool)>,
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
    waiting: Vec<Waiting>,
    /// The texts of those.
    room: Vec<u8>,
    /// The number of the first of those.
    first: u64,
    /// Kinds of statements that have been looked at and not been answered, by the statements' numbers.
    running: HashMap<u64, u64>,
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
            waiting: Vec::with_capacity(WAITING_MAX),
            room: Vec::with_capacity(ROOM),
            first: 0,
            running: HashMap::with_capacity(WAITING_MAX),
        }
    }
}

impl Digests {
    /// A statement begins; gives its number when it is looked at.
    pub(super) fn begin(&mut self, now: Duration, text: &[u8], dialect: &Dialect) -> Option<u64> {
        self.passed += 1;
        if self.saved == 0 && !self.save(now) {
            return None;
        }
        self.saved -= 1;
        if self.waiting.len() == WAITING_MAX || self.room.len() + text.len() > ROOM {
            self.look();
        }
        let number = self.first + self.waiting.len() as u64;
        let stands_for = std::mem::take(&mut self.passed);
        if text.len() > ROOM {
            // There is nothing before it that waits.
            self.first += 1;
            let kind = self.look_at(text, dialect, stands_for);
            self.note_running(number, kind);
            return Some(number);
        }
        self.room.extend_from_slice(text);
        self.waiting.push(Waiting {
            end: self.room.len(),
            stands_for,
            dialect: *dialect,
            answer: None,
        });
        Some(number)
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

    /// Looks at all that wait.
    #[cold]
    fn look(&mut self) {
        let (room, mut waiting) = (
            std::mem::take(&mut self.room),
            std::mem::take(&mut self.waiting),
        );
        let mut start = 0;
        for statement in waiting.drain(..) {
            let text = room.get(start..statement.end).unwrap_or_default();
            start = statement.end;
            let kind = self.look_at(text, &statement.dialect, statement.stands_for);
            match statement.answer {
                Some((took, failed)) => self.note_answer(kind, took, failed),
                None => self.note_running(self.first, kind),
            }
            self.first += 1;
        }
        (self.room, self.waiting) = (room, waiting);
        self.room.clear();
    }

    fn look_at(&mut self, text: &[u8], dialect: &Dialect, stands_for: u64) -> u64 {
        let digest = sql::digest(text, dialect, &mut self.form);
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

    /// Some are never answered: their clients have gone. The oldest are forgotten then.
    fn note_running(&mut self, number: u64, kind: u64) {
        if self.running.len() >= RUNNING_MAX {
            let mut numbers: Vec<u64> = self.running.keys().copied().collect();
            let (_, &mut middle, _) = numbers.select_nth_unstable(RUNNING_MAX / 2);
            self.running.retain(|number, _| *number > middle);
        }
        self.running.insert(number, kind);
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

    /// The statement with this number has been answered.
    pub(super) fn end(&mut self, number: u64, took: Duration, failed: bool) {
        let place = number.checked_sub(self.first);
        match place.and_then(|place| self.waiting.get_mut(usize::try_from(place).ok()?)) {
            Some(statement) => statement.answer = Some((took, failed)),
            None => self.end_running(number, took, failed),
        }
    }

    #[cold]
    fn end_running(&mut self, number: u64, took: Duration, failed: bool) {
        if let Some(kind) = self.running.remove(&number) {
            self.note_answer(kind, took, failed);
        }
    }

    fn note_answer(&mut self, kind: u64, took: Duration, failed: bool) {
        if let Some(kind) = self.kinds.get_mut(&kind) {
            kind.total += took;
            kind.longest = kind.longest.max(took);
            kind.errors += u64::from(failed);
        }
    }

    /// All kinds, and how many statements were of kinds that were dropped.
    #[must_use]
    pub fn all(&mut self) -> (Vec<(u64, Digest)>, u64) {
        self.look();
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

    /// Whether a statement is answered before it is looked at or after, and whether its text has room beside others or not.
    #[test]
    fn answers_find_their_statements() {
        let mut digests = Digests::default();
        let long = format!("SELECT '{}'", "x".repeat(ROOM));
        let texts = ["SELECT 1", long.as_str(), "SELECT a", "SELECT b FROM c"];
        let begun: Vec<Option<u64>> = texts
            .iter()
            .map(|text| digests.begin(Duration::ZERO, text.as_bytes(), &dialect()))
            .collect();
        for (n, number) in (1..).zip(&begun) {
            if n == 4 {
                // The last is answered when it has been looked at.
                assert_eq!(digests.all().0.len(), 3);
            }
            digests.end(number.unwrap(), Duration::from_millis(n), n > 2);
            // Nobody is answered twice; a number that was never given is nobody's.
            digests.end(1000, Duration::from_secs(1), true);
        }
        let (kinds, _) = digests.all();
        let mut told: Vec<_> = kinds
            .iter()
            .map(|(_, k)| {
                let form = String::from_utf8_lossy(&k.form).into_owned();
                (form, k.count, k.errors, k.total, k.longest)
            })
            .collect();
        told.sort();
        let ms = Duration::from_millis;
        let expected = [
            ("select ?".to_owned(), 2, 0, ms(3), ms(2)),
            ("select a".to_owned(), 1, 1, ms(3), ms(3)),
            ("select b from c".to_owned(), 1, 1, ms(4), ms(4)),
        ];
        assert_eq!(told, expected);
        assert!(digests.running.is_empty() && digests.waiting.is_empty());
    }

    /// At the bounds of what waits, nothing is lost.
    #[test]
    fn as_many_wait_as_there_is_room_for() {
        let mut digests = Digests::default();
        for n in 1..=200_u64 {
            digests.begin(Duration::ZERO, b"SELECT 1", &dialect());
            assert!(digests.waiting.len() as u64 == (n - 1) % WAITING_MAX as u64 + 1);
        }
        let half = format!("SELECT '{}'", "x".repeat(ROOM / 2 - 9));
        let now = Duration::from_secs(1);
        assert_eq!(half.len(), ROOM / 2);
        digests.look();
        for waits in [1, 2, 1] {
            digests.begin(now, half.as_bytes(), &dialect());
            assert_eq!(digests.waiting.len(), waits);
        }
        let (kinds, _) = digests.all();
        assert_eq!((kinds[0].1.count, kinds.len()), (203, 1));
        assert_eq!(digests.running.len(), 203);
    }

    /// Statements that are never answered are not remembered for ever.
    #[test]
    fn those_that_are_never_answered_are_forgotten() {
        let mut digests = Digests::default();
        let mut last = None;
        for n in 0..2 * RUNNING_MAX as u64 {
            last = digests.begin(Duration::from_millis(n * 2), b"SELECT 1", &dialect());
        }
        digests.look();
        assert!(digests.running.len() <= RUNNING_MAX);
        digests.end(last.unwrap(), Duration::from_secs(7), false);
        assert_eq!(digests.all().0[0].1.longest, Duration::from_secs(7));
    }
}
