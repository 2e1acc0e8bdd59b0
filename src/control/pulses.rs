//! The heartbeats of the groups' primaries, as the checks of the primaries saw them and those of the replicas need them.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::pool::Pulse;

/// What is known of a primary's heartbeat, or why nothing is.
pub(super) type Known = Result<Pulse, String>;

/// By the group's place; a group has an entry when its primary was looked at once.
#[derive(Debug, Default)]
pub(super) struct Pulses {
    known: Mutex<HashMap<usize, Known>>,
    changed: Condvar,
}

impl Pulses {
    /// The last one.
    pub(super) fn get(&self, group: usize) -> Option<Known> {
        self.known().get(&group).cloned()
    }

    /// The same; waits for the first look at the primary.
    pub(super) fn wait(&self, group: usize, deadline: Instant) -> Option<Known> {
        let mut known = self.known();
        loop {
            if let Some(pulse) = known.get(&group) {
                return Some(pulse.clone());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            known = self
                .changed
                .wait_timeout(known, left)
                .map_or_else(|poisoned| poisoned.into_inner().0, |(known, _)| known);
        }
    }

    /// Notes a look at the primary.
    pub(super) fn note(&self, group: usize, next: impl FnOnce(Option<&Known>) -> Known) {
        let mut known = self.known();
        let next = next(known.get(&group));
        known.insert(group, next);
        self.changed.notify_all();
    }

    fn known(&self) -> MutexGuard<'_, HashMap<usize, Known>> {
        // Nothing can be half done in there.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
