//! What is to go to the logs of statements, on its way from workers to the threads that write: two queues, with limits. A worker hands
//! over what a turn of its loop has had, so that it takes the lock seldom, and wakes a writer only if that sleeps.
//!
//! Where statements are to wait for a log that cannot take more, the entries of those that run already are taken all the same: no client
//! has more than one of them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::record::Entry;

/// Entries that wait to be written.
const ENTRIES_MAX: usize = 64 * 1024;
/// Bytes of entries that wait to be written.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// Bytes of entries that are taken at a time, and those of one more.
const BYTES_TAKEN: usize = 1024 * 1024;

/// Both logs.
#[derive(Debug, Default)]
pub struct Logs {
    /// Statements that took long.
    pub slow: Queue,
    /// Statements and log-ins.
    pub audit: Queue,
}

/// What is to be written to one of them.
#[derive(Debug, Default)]
pub struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    is_full: AtomicBool,
    written: AtomicU64,
    dropped: AtomicU64,
}

#[derive(Debug, Default)]
struct Waiting {
    entries: VecDeque<Arc<Entry>>,
    bytes: usize,
    reopen: bool,
    closed: bool,
    sleeps: bool,
}

/// What a writer is to do.
#[derive(Debug, Default)]
pub struct Work {
    /// Entries to be written, in order.
    pub entries: Vec<Arc<Entry>>,
    /// The file is to be opened again first.
    pub reopen: bool,
    /// Nothing else waits now.
    pub is_last: bool,
    /// Nothing comes any more.
    pub closed: bool,
    /// Who waited for room may go on.
    pub has_room_again: bool,
}

impl Logs {
    /// Has both files opened again, which other ones may have come in place of.
    pub fn reopen(&self) {
        for queue in [&self.slow, &self.audit] {
            queue.lock().reopen = true;
            queue.changed.notify_all();
        }
    }

    /// Nothing comes any more.
    pub fn close(&self) {
        for queue in [&self.slow, &self.audit] {
            queue.lock().closed = true;
            queue.changed.notify_all();
        }
    }
}

impl Queue {
    /// Hands entries over. Those that find no room are dropped and counted, unless all are to be kept.
    pub fn put(&self, entries: &mut Vec<Arc<Entry>>, keeps_all: bool) {
        let mut waiting = self.lock();
        for entry in entries.drain(..) {
            if waiting.is_full() && !keeps_all {
                self.dropped.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            waiting.bytes += entry.size();
            waiting.entries.push_back(entry);
        }
        if waiting.is_full() {
            self.is_full.store(true, Ordering::SeqCst);
        }
        if std::mem::take(&mut waiting.sleeps) {
            self.changed.notify_all();
        }
    }

    /// Whether there is no room.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.is_full.load(Ordering::SeqCst)
    }

    /// The next work, so many entries at most; waits for it.
    pub fn take(&self, most: usize) -> Work {
        let mut waiting = self.lock();
        while waiting.entries.is_empty() && !waiting.reopen && !waiting.closed {
            waiting.sleeps = true;
            waiting = self
                .changed
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner);
        }
        waiting.sleeps = false;
        let (mut entries, mut bytes) = (Vec::new(), 0);
        while entries.len() < most && bytes < BYTES_TAKEN {
            let Some(entry) = waiting.entries.pop_front() else {
                break;
            };
            bytes += entry.size();
            entries.push(entry);
        }
        waiting.bytes = waiting.bytes.saturating_sub(bytes);
        let has_room = waiting.entries.len() <= ENTRIES_MAX / 2 && waiting.bytes <= BYTES_MAX / 2;
        Work {
            entries,
            reopen: std::mem::take(&mut waiting.reopen),
            is_last: waiting.entries.is_empty(),
            closed: waiting.closed,
            has_room_again: has_room && self.is_full.swap(false, Ordering::SeqCst),
        }
    }

    /// Waits for so long, or until the file is to be opened again, or nothing comes any more. Tells of these two.
    pub fn pause(&self, time: Duration) -> (bool, bool) {
        let waiting = self.lock();
        let goes_on = |waiting: &mut Waiting| !waiting.reopen && !waiting.closed;
        let mut waiting = match self.changed.wait_timeout_while(waiting, time, goes_on) {
            Ok((waiting, _)) => waiting,
            Err(poisoned) => poisoned.into_inner().0,
        };
        (std::mem::take(&mut waiting.reopen), waiting.closed)
    }

    /// Counts entries that were written.
    pub fn note_written(&self, count: usize) {
        self.written.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// Counts entries that are not.
    pub fn note_dropped(&self, count: usize) {
        self.dropped.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// How many were written, and how many dropped.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (read(&self.written), read(&self.dropped))
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // What is in it is whole between any two of its changes.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn is_full(&self) -> bool {
        self.entries.len() >= ENTRIES_MAX || self.bytes >= BYTES_MAX
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::record::What;

    fn entries(count: usize) -> Vec<Arc<Entry>> {
        let entry = Arc::new(Entry {
            at: SystemTime::UNIX_EPOCH,
            connection: 1,
            client: None,
            account: None,
            claimed: Vec::new(),
            what: What::LogOut,
        });
        vec![entry; count]
    }

    #[test]
    fn what_finds_no_room_is_dropped_or_kept() {
        let queue = Queue::default();
        let max = BYTES_MAX.div_ceil(entries(1)[0].size()).min(ENTRIES_MAX);
        queue.put(&mut entries(max - 1), false);
        assert!(!queue.is_full());
        queue.put(&mut entries(10), false);
        assert!(queue.is_full());
        assert_eq!(queue.counts(), (0, 9));
        queue.put(&mut entries(5), true);
        assert_eq!(queue.counts(), (0, 9));
        // Room is told of once, when half is written.
        let mut told = 0;
        let mut taken = 0;
        while taken < max + 5 {
            let work = queue.take(1000);
            taken += work.entries.len();
            assert!(!work.closed && !work.reopen);
            if work.has_room_again {
                told += 1;
                assert!(taken >= max / 2 && !queue.is_full());
            }
        }
        assert_eq!((told, taken), (1, max + 5));
    }

    #[test]
    fn what_is_left_comes_before_the_end() {
        let logs = Logs::default();
        logs.audit.put(&mut entries(3), true);
        logs.reopen();
        logs.close();
        let work = logs.audit.take(2);
        assert_eq!(
            (work.entries.len(), work.reopen, work.is_last),
            (2, true, false)
        );
        let work = logs.audit.take(2);
        assert_eq!(
            (work.entries.len(), work.reopen, work.is_last),
            (1, false, true)
        );
        assert!(work.closed);
        assert_eq!(logs.audit.pause(Duration::ZERO), (false, true));
        assert_eq!(logs.slow.pause(Duration::ZERO), (true, true));
    }
}
