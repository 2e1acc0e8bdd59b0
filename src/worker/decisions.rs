//! Writes over several groups that are under way, of all workers: who has them, and what was decided. Writing decisions down, and finishing
//! what nobody is about any more, is control's. One lock, which only such writes take.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::slots::Key;
use crate::session::Verdict;
use crate::shard::Xid;

/// A worker wants it written down that a transaction is to be done.
#[derive(Debug)]
pub struct Wish {
    /// The transaction.
    pub xid: Xid,
    /// Worker and client that wait for [`super::Message::Decided`].
    pub asker: (usize, Key),
}

/// Where a transaction stands that its session has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// It is to be done.
    ToCommit,
    /// It is to be undone.
    ToUndo,
    /// What the log says of it is not known before it is read again.
    Unknown,
}

#[derive(Debug)]
struct Entry {
    worker: usize,
    verdict: Option<Verdict>,
    is_left: bool,
}

/// See the module's words.
#[derive(Debug, Default)]
pub struct Decisions {
    /// 0 while nothing can be decided.
    run: AtomicU64,
    known: Mutex<HashMap<Xid, Entry>>,
    log: Mutex<Option<SyncSender<Wish>>>,
}

impl Decisions {
    fn known(&self) -> MutexGuard<'_, HashMap<Xid, Entry>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decisions of this run can be written down from here on.
    pub fn open(&self, run: u64, log: SyncSender<Wish>) {
        *self.log.lock().unwrap_or_else(PoisonError::into_inner) = Some(log);
        self.run.store(run, Ordering::SeqCst);
    }

    /// They cannot any more.
    pub fn shut(&self) {
        self.run.store(0, Ordering::SeqCst);
        *self.log.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The run whose decisions can be written down.
    #[must_use]
    pub fn run(&self) -> Option<u64> {
        Some(self.run.load(Ordering::SeqCst)).filter(|run| *run != 0)
    }

    /// A worker's session is about to prepare a transaction.
    pub(super) fn begin(&self, xid: Xid, worker: usize) {
        let entry = Entry {
            worker,
            verdict: None,
            is_left: false,
        };
        self.known().insert(xid, entry);
    }

    /// Asks for the decision to be written down; false when nobody can.
    pub(super) fn ask(&self, wish: Wish) -> bool {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.as_ref().is_some_and(|log| log.try_send(wish).is_ok())
    }

    /// It was written down, or not.
    pub fn note(&self, xid: Xid, verdict: Verdict) {
        if let Some(entry) = self.known().get_mut(&xid) {
            entry.verdict = Some(verdict);
        }
    }

    /// Its session is done with it; all parts are done or undone, or else somebody has to see to that.
    pub(super) fn over(&self, xid: Xid, is_clean: bool) {
        let mut known = self.known();
        if is_clean {
            known.remove(&xid);
        } else if let Some(entry) = known.get_mut(&xid) {
            entry.is_left = true;
        }
    }

    /// A worker has lost all its sessions.
    pub(super) fn leave(&self, worker: usize) {
        for entry in self.known().values_mut() {
            entry.is_left |= entry.worker == worker;
        }
    }

    /// Nothing of it is left on any server.
    pub fn settle(&self, xid: Xid) {
        self.known().remove(&xid);
    }

    /// Those that their sessions have left, for somebody to see to.
    #[must_use]
    pub fn left(&self) -> Vec<Xid> {
        let known = self.known();
        let left = known.iter().filter(|(_, entry)| entry.is_left);
        left.map(|(xid, _)| *xid).collect()
    }

    /// Those that were decided and are not over.
    #[must_use]
    pub fn decided(&self) -> Vec<Xid> {
        let known = self.known();
        let decided = known
            .iter()
            .filter(|(_, entry)| entry.verdict.is_some_and(|verdict| verdict != Verdict::No));
        decided.map(|(xid, _)| *xid).collect()
    }

    /// What is to become of a transaction of this run that is prepared on a server; nothing while its session is about it. One that is not
    /// known was never decided, or is over everywhere.
    #[must_use]
    pub fn fate(&self, xid: Xid) -> Option<Left> {
        match self.known().get(&xid) {
            Some(entry) if !entry.is_left => None,
            Some(entry) => Some(match entry.verdict {
                Some(Verdict::Yes) => Left::ToCommit,
                Some(Verdict::Unknown) => Left::Unknown,
                Some(Verdict::No) | None => Left::ToUndo,
            }),
            None => Some(Left::ToUndo),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_under_way_is_left_alone() {
        let decisions = Decisions::default();
        let xid = |n| Xid::new(1, [n; 20]);
        assert_eq!(decisions.fate(xid(1)), Some(Left::ToUndo));
        for n in 1..=5 {
            decisions.begin(xid(n), usize::from(n % 2));
            assert_eq!(decisions.fate(xid(n)), None);
        }
        decisions.note(xid(1), Verdict::Yes);
        decisions.note(xid(2), Verdict::No);
        decisions.note(xid(3), Verdict::Unknown);
        decisions.over(xid(2), false);
        decisions.over(xid(5), true);
        assert_eq!(decisions.fate(xid(1)), None);
        assert_eq!(decisions.fate(xid(2)), Some(Left::ToUndo));
        decisions.leave(1);
        assert_eq!(decisions.fate(xid(1)), Some(Left::ToCommit));
        assert_eq!(decisions.fate(xid(3)), Some(Left::Unknown));
        assert_eq!(decisions.fate(xid(4)), None);
        let sorted = |mut xids: Vec<Xid>| {
            xids.sort();
            xids
        };
        assert_eq!(sorted(decisions.left()), [xid(1), xid(2), xid(3)]);
        assert_eq!(sorted(decisions.decided()), [xid(1), xid(3)]);
        decisions.settle(xid(1));
        assert_eq!(decisions.fate(xid(1)), Some(Left::ToUndo));
        // Without a log nothing can be asked.
        let asker = (0, Key::from_bits(0));
        assert!(!decisions.ask(Wish { xid: xid(4), asker }));
        assert_eq!(decisions.run(), None);
    }
}
