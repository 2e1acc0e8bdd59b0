//! The ids that this process generates, of all workers together: which node it is by each group's primary, as control is told. The lock is
//! taken by INSERTs that need such ids, and by checks.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::shard::{Ids, Lease, Refused};

/// See the module's words.
#[derive(Debug)]
pub struct Nodes {
    started: Instant,
    of: Mutex<BTreeMap<usize, Ids>>,
}

impl Default for Nodes {
    fn default() -> Self {
        Self {
            started: Instant::now(),
            of: Mutex::default(),
        }
    }
}

impl Nodes {
    /// The moment by which leases are told.
    #[must_use]
    pub fn moment(&self) -> Duration {
        self.started.elapsed()
    }

    /// A primary of this group has confirmed a node.
    pub fn confirm(&self, group: usize, lease: Lease) {
        self.lock().entry(group).or_default().confirm(lease);
    }

    /// What this holder held it holds no more.
    pub fn lose(&self, group: usize, holder: u64) {
        if let Some(ids) = self.lock().get_mut(&group) {
            ids.lose(holder);
        }
    }

    pub(in crate::worker) fn take(&self, group: usize, count: u32) -> Result<u64, Refused> {
        let now = self.moment();
        match self.lock().get_mut(&group) {
            Some(ids) => ids.take(count, now),
            None => Err(Refused::NO_NODE),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<usize, Ids>> {
        // What is held is changed by single assignments.
        self.of.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
