//! Copies of statements for another group (the rule action `mirror`): what a copy is, a queue of them for each rule, with limits, and what
//! is counted. Sessions make copies when their clients have the answer, workers hand them over, `control` has them run; none of that is here.
//!
//! Nothing waits for a copy: one that finds no room is dropped, and one that runs takes no connection of clients'.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::config::{MirrorConfig, RuleConfig};
use crate::record::Said;
use crate::sql::Dialect;
use crate::wire::Capabilities;

/// Copies of a rule that wait to be run.
const COPIES_MAX: usize = 1024;
/// Bytes of copies of a rule that wait to be run.
const BYTES_MAX: usize = 8 * 1024 * 1024;

/// What a statement came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Rows that it gave.
    pub rows: u64,
    /// Rows that it changed; nothing where it gave some.
    pub affected: Option<u64>,
    /// The code of its error; 0 for none.
    pub error: u16,
}

/// How two outcomes of one statement compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// As many rows, as many changed ones, the same error.
    Same,
    /// Both have succeeded, or the client's has failed, and they differ.
    Differs,
    /// The client's has succeeded and the copy has not.
    Failed,
}

impl Outcome {
    /// How a copy's outcome compares with this one of the client's statement.
    #[must_use]
    pub fn compare(self, copy: Self) -> Comparison {
        match (self.error, copy.error) {
            (0, 0) if self == copy => Comparison::Same,
            (0, 0) => Comparison::Differs,
            (0, _) => Comparison::Failed,
            (own, other) if own == other => Comparison::Same,
            _ => Comparison::Differs,
        }
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.error, self.affected) {
            (0, Some(count)) => write!(f, "{count} rows changed"),
            (0, None) => write!(f, "{} rows", self.rows),
            (code, _) => write!(f, "error {code}"),
        }
    }
}

/// The state that a copy's connection is to be in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Setting {
    /// Collation id of the log-in.
    pub charset: u16,
    /// What the client asked for at its log-in and shapes what statements do.
    pub capabilities: Capabilities,
    /// Payloads of commands that give a fresh connection the session's state, in order.
    pub commands: Vec<Vec<u8>>,
}

/// A statement that is to be run once more.
#[derive(Debug)]
pub struct Copy {
    /// The account, an index into the snapshot's.
    pub account: usize,
    /// What the client said.
    pub said: Said,
    /// How that is read.
    pub dialect: Dialect,
    /// The session's state before it.
    pub setting: Setting,
    /// It may change something.
    pub is_write: bool,
    /// What the client was told.
    pub outcome: Outcome,
    /// When the statement began, counted as the sessions' moments are.
    pub since: Duration,
    /// How long the client waited for its answer.
    pub took: Duration,
}

impl Copy {
    /// About how many bytes it holds.
    fn size(&self) -> usize {
        const ITSELF: usize = 512;
        let setting: usize = self.setting.commands.iter().map(Vec::capacity).sum();
        ITSELF + self.said.size() + setting
    }
}

/// What is counted of a rule's copies.
#[derive(Debug, Default)]
struct Counts {
    same: AtomicU64,
    differs: AtomicU64,
    failed: AtomicU64,
    dropped: AtomicU64,
    skipped: AtomicU64,
    /// Of those that have run, in microseconds.
    client_time: AtomicU64,
    copy_time: AtomicU64,
}

/// The same, read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures {
    /// Copies with the client's outcome.
    pub same: u64,
    /// Copies with another.
    pub differs: u64,
    /// Copies that failed, or could not be run.
    pub failed: u64,
    /// Copies for which there was no room.
    pub dropped: u64,
    /// Statements that were chosen, but are none that can be copied.
    pub skipped: u64,
    /// How long clients waited for the statements whose copies have run.
    pub client_time: Duration,
    /// How long these copies took.
    pub copy_time: Duration,
}

/// What a rule copies.
#[derive(Debug)]
pub struct Mirror {
    /// The rule's name.
    pub rule: Box<str>,
    /// What it says.
    pub config: MirrorConfig,
    /// The name of the group that copies go to.
    pub group: Box<str>,
    waiting: Mutex<Waiting>,
    changed: Condvar,
    seen: Arc<AtomicU64>,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Waiting {
    copies: VecDeque<Box<Copy>>,
    bytes: usize,
    /// Threads that have to be woken.
    asleep: usize,
    is_closed: bool,
}

impl Mirror {
    /// That of a rule, if it copies. What was counted of `before`, a rule of this name, goes on; where it says the same it is the same.
    #[must_use]
    pub fn of(rule: &RuleConfig, before: Option<&Arc<Self>>) -> Option<Arc<Self>> {
        let config = rule.action.mirror()?;
        Some(Self::new(&rule.name, config, &rule.copies_to, before))
    }

    fn new(rule: &str, config: MirrorConfig, group: &str, before: Option<&Arc<Self>>) -> Arc<Self> {
        let is_same = |before: &&Arc<Self>| before.config == config && *before.group == *group;
        if let Some(same) = before.filter(is_same) {
            return same.clone();
        }
        Arc::new(Self {
            rule: rule.into(),
            config,
            group: group.into(),
            waiting: Mutex::default(),
            changed: Condvar::new(),
            seen: before.map_or_else(Arc::default, |before| before.seen.clone()),
            counts: before.map_or_else(Arc::default, |before| before.counts.clone()),
        })
    }

    /// A statement that it is about comes; whether it is among those to be copied. By chance, as it were: a pattern in which
    /// statements come must not choose.
    pub fn chooses(&self) -> bool {
        if self.config.sample >= 100 {
            return true;
        }
        let number = self.seen.fetch_add(1, Ordering::Relaxed);
        scattered(number) % 100 < u64::from(self.config.sample)
    }

    /// A statement that was chosen is none that can be copied.
    pub fn note_skipped(&self) {
        self.counts.skipped.fetch_add(1, Ordering::Relaxed);
    }

    /// Hands a copy over. Where there is no room for it it is dropped and counted.
    pub fn put(&self, copy: Box<Copy>) {
        let size = copy.size();
        let mut waiting = self.lock();
        let is_full =
            waiting.copies.len() >= COPIES_MAX || waiting.bytes.saturating_add(size) > BYTES_MAX;
        if is_full || waiting.is_closed {
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        waiting.bytes += size;
        waiting.copies.push_back(copy);
        if waiting.asleep > 0 {
            waiting.asleep -= 1;
            self.changed.notify_one();
        }
    }

    /// The next copy, if one waits.
    pub fn try_take(&self) -> Option<Box<Copy>> {
        self.lock().pop()
    }

    /// The next copy; waits for it, for so long at most. True with it where none comes any more.
    pub fn take(&self, patience: Duration) -> (Option<Box<Copy>>, bool) {
        let mut waiting = self.lock();
        if waiting.copies.is_empty() && !waiting.is_closed {
            waiting.asleep += 1;
            let woken = self.changed.wait_timeout(waiting, patience);
            let (guard, timeout) = woken.unwrap_or_else(PoisonError::into_inner);
            waiting = guard;
            if timeout.timed_out() {
                // Who hands a copy over has taken the sleeper off already, or does so without need.
                waiting.asleep = waiting.asleep.saturating_sub(1);
            }
        }
        (waiting.pop(), waiting.is_closed)
    }

    /// The rule is there no more: what waits is dropped, and nothing else is taken.
    pub fn close(&self) {
        let mut waiting = self.lock();
        waiting.is_closed = true;
        let left = waiting.copies.len() as u64;
        waiting.copies.clear();
        waiting.bytes = 0;
        self.counts.dropped.fetch_add(left, Ordering::Relaxed);
        self.changed.notify_all();
    }

    /// A copy is over.
    pub fn note(&self, comparison: Comparison, client: Duration, copy: Duration) {
        let count = match comparison {
            Comparison::Same => &self.counts.same,
            Comparison::Differs => &self.counts.differs,
            Comparison::Failed => &self.counts.failed,
        };
        count.fetch_add(1, Ordering::Relaxed);
        let add = |sum: &AtomicU64, time: Duration| {
            let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
            sum.fetch_add(micros, Ordering::Relaxed);
        };
        if comparison != Comparison::Failed {
            add(&self.counts.client_time, client);
            add(&self.counts.copy_time, copy);
        }
    }

    /// A copy could not be run.
    pub fn note_failed(&self) {
        self.counts.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// What was counted.
    #[must_use]
    pub fn figures(&self) -> Figures {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Figures {
            same: read(&self.counts.same),
            differs: read(&self.counts.differs),
            failed: read(&self.counts.failed),
            dropped: read(&self.counts.dropped),
            skipped: read(&self.counts.skipped),
            client_time: Duration::from_micros(read(&self.counts.client_time)),
            copy_time: Duration::from_micros(read(&self.counts.copy_time)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // What is in it is whole between any two of its changes.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn pop(&mut self) -> Option<Box<Copy>> {
        let copy = self.copies.pop_front()?;
        self.bytes = self.bytes.saturating_sub(copy.size());
        Some(copy)
    }
}

/// Numbers that follow each other, far apart: the output function of `SplitMix64`.
fn scattered(number: u64) -> u64 {
    let mut z = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::Server;

    fn mirror(sample: u8) -> Arc<Mirror> {
        let config = MirrorConfig {
            sample,
            writes: false,
            copies: 4,
            timeout: Duration::from_secs(1),
        };
        Mirror::new("m", config, "next", None)
    }

    fn copy(bytes: usize) -> Box<Copy> {
        Box::new(Copy {
            account: 0,
            said: Said::Text {
                text: vec![b' '; bytes],
                len: bytes,
            },
            dialect: Dialect::new(Server::MySql, 80_036),
            setting: Setting::default(),
            is_write: false,
            outcome: Outcome::default(),
            since: Duration::ZERO,
            took: Duration::ZERO,
        })
    }

    #[test]
    fn what_finds_no_room_is_dropped() {
        let mirror = mirror(100);
        for _ in 0..COPIES_MAX + 7 {
            mirror.put(copy(1));
        }
        assert_eq!(mirror.figures().dropped, 7);
        let taken = std::iter::from_fn(|| mirror.try_take()).count();
        assert_eq!(taken, COPIES_MAX);
        // Long ones sooner, and what was taken makes room.
        for _ in 0..20 {
            mirror.put(copy(1024 * 1024));
        }
        assert_eq!(mirror.figures().dropped, 7 + 13);
        assert!(mirror.try_take().is_some());
        mirror.put(copy(1024 * 1024));
        assert_eq!(mirror.figures().dropped, 7 + 13);
        mirror.close();
        mirror.put(copy(1));
        assert_eq!(mirror.figures().dropped, 7 + 13 + 7 + 1);
        let (left, is_closed) = mirror.take(Duration::from_secs(60));
        assert!(left.is_none() && is_closed);
    }

    #[test]
    fn a_share_is_chosen_whatever_the_pattern() {
        for (sample, least, most) in [(1, 60, 140), (25, 2300, 2700), (100, 10_000, 10_000)] {
            let mirror = mirror(sample);
            let chosen: Vec<bool> = (0..10_000).map(|_| mirror.chooses()).collect();
            let count = |chosen: &mut dyn Iterator<Item = &bool>| chosen.filter(|c| **c).count();
            let all = count(&mut chosen.iter());
            assert!((least..=most).contains(&all), "{sample}: {all}");
            // Of each second one it is the same share.
            let half = count(&mut chosen.iter().step_by(2));
            assert!(
                (least / 3..=most * 2 / 3).contains(&half),
                "{sample}: {half}"
            );
        }
    }

    #[test]
    fn outcomes_are_compared() {
        let rows = |rows| Outcome {
            rows,
            ..Outcome::default()
        };
        let changed = |count| Outcome {
            affected: Some(count),
            ..Outcome::default()
        };
        let failed = |error| Outcome {
            error,
            ..Outcome::default()
        };
        for (client, copy, wanted) in [
            (rows(3), rows(3), Comparison::Same),
            (rows(3), rows(2), Comparison::Differs),
            (changed(1), changed(1), Comparison::Same),
            (changed(1), changed(0), Comparison::Differs),
            (rows(3), failed(1146), Comparison::Failed),
            (failed(1146), failed(1146), Comparison::Same),
            (failed(1146), failed(1054), Comparison::Differs),
            (failed(1146), rows(0), Comparison::Differs),
        ] {
            assert_eq!(client.compare(copy), wanted, "{client} {copy}");
        }
    }

    #[test]
    fn counts_live_on() {
        let first = mirror(100);
        first.note(
            Comparison::Same,
            Duration::from_millis(2),
            Duration::from_millis(3),
        );
        first.note_failed();
        let config = first.config;
        assert!(Arc::ptr_eq(
            &first,
            &Mirror::new("m", config, "next", Some(&first))
        ));
        let config = MirrorConfig {
            sample: 5,
            ..config
        };
        let second = Mirror::new("m", config, "next", Some(&first));
        let third = Mirror::new("m", config, "other", Some(&second));
        assert!(!Arc::ptr_eq(&second, &third));
        second.note_skipped();
        let figures = first.figures();
        assert_eq!(figures, second.figures());
        assert_eq!((figures.same, figures.failed, figures.skipped), (1, 1, 1));
        assert_eq!(figures.copy_time, Duration::from_millis(3));
    }
}
