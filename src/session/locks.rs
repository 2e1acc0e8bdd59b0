//! The user locks that a session may hold, counted by name. A GET_LOCK that did not get its lock counts too, which keeps the
//! connection for nothing, but never gives one back with a lock on it.

use crate::sql::LockUse;

/// Locks that are counted by name; with more, they are taken for held until all are released at once.
const NAMES: usize = 64;

#[derive(Debug, Default)]
pub(super) struct UserLocks {
    /// Names, each as often as it was taken.
    names: Vec<Vec<u8>>,
    /// There may be others beside those.
    uncounted: bool,
}

impl UserLocks {
    pub(super) fn note(&mut self, lock: LockUse<'_>) {
        match lock {
            LockUse::Takes(name) if self.names.len() < NAMES => {
                self.names.push(name.to_ascii_lowercase());
            }
            LockUse::Takes(_) | LockUse::Unknown => self.uncounted = true,
            LockUse::Releases(name) => {
                let same = |held: &Vec<u8>| held.eq_ignore_ascii_case(name);
                if let Some(at) = self.names.iter().position(same) {
                    self.names.remove(at);
                }
            }
            LockUse::ReleasesAll => *self = Self::default(),
            LockUse::Asks => {}
        }
    }

    pub(super) fn are_held(&self) -> bool {
        self.uncounted || !self.names.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_released_as_often_as_it_was_taken() {
        let mut locks = UserLocks::default();
        for lock in [LockUse::Takes(b"a"), LockUse::Takes(b"A"), LockUse::Asks] {
            locks.note(lock);
        }
        locks.note(LockUse::Releases(b"a"));
        locks.note(LockUse::Releases(b"b"));
        assert!(locks.are_held());
        locks.note(LockUse::Releases(b"a"));
        assert!(!locks.are_held());
    }

    #[test]
    fn what_is_not_counted_is_held_until_all_are_released() {
        let mut locks = UserLocks::default();
        for _ in 0..=NAMES {
            locks.note(LockUse::Takes(b"a"));
        }
        for _ in 0..=NAMES {
            locks.note(LockUse::Releases(b"a"));
        }
        assert!(locks.are_held());
        locks.note(LockUse::ReleasesAll);
        assert!(!locks.are_held());
        locks.note(LockUse::Unknown);
        assert!(locks.are_held());
    }
}
