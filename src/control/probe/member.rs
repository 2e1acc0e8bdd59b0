//! Whether a server has its part in the replication group that its primary leads. One that has left it, or has not caught up yet after
//! joining, gets nothing new: it serves no reads, however little is asked of its lag. What members say is `part`'s.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Prober;
use crate::pool::{Freshness, Sight};

/// Members that the primary of each group sees, by the group's place; none for groups that are no replication groups.
#[derive(Debug, Default)]
pub(in crate::control) struct Views(Mutex<HashMap<usize, Vec<Vec<u8>>>>);

impl Views {
    fn known(&self) -> MutexGuard<'_, HashMap<usize, Vec<Vec<u8>>>> {
        // Nothing can be half done in there.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, group: usize, members: Option<Vec<Vec<u8>>>) {
        match members {
            Some(members) => self.known().insert(group, members),
            None => self.known().remove(&group),
        };
    }

    /// Whether there is a replication group, and this is none of its members.
    fn lacks(&self, group: usize, uuid: &[u8]) -> bool {
        let known = self.known();
        let members = known.get(&group);
        members.is_some_and(|members| !members.iter().any(|member| member == uuid))
    }
}

/// Whether nothing new comes to a server by its group. One that replicates from a server in the usual way needs no group.
fn is_outside(sight: &Sight, lacks: impl FnOnce(&[u8]) -> bool) -> bool {
    match &sight.view {
        Some(view) => !view.is_online || !view.has_majority,
        None => sight.sources.is_empty() && lacks(&sight.identity.uuid),
    }
}

impl Prober {
    /// Notes what a server sees of its replication group, and keeps reads away from one that has no part in it.
    pub(super) fn note_membership(&mut self, sight: &Sight) {
        let group = self.entry().group;
        if self.has_led {
            let members = sight.view.as_ref().map(|view| view.members.clone());
            self.checks.views.note(group, members);
        }
        let lacks = |uuid: &[u8]| self.checks.views.lacks(group, uuid);
        let is_outside = !self.has_led && is_outside(sight, lacks);
        let was_outside = std::mem::replace(&mut self.is_outside, is_outside);
        if is_outside {
            self.published().set_freshness(Freshness::Unknown);
            if !was_outside {
                log::warn!(
                    "{} has no part in its replication group: it serves no reads",
                    self.address()
                );
            }
        } else if was_outside {
            log::info!("{} has its part in its replication group", self.address());
            // Where lag is looked at, that decides.
            if self.lag_policy.is_none() {
                self.published().set_freshness(Freshness::Fresh);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::{GroupView, Identity, Source};

    fn sight(view: Option<(bool, bool)>, replicates: bool) -> Sight {
        let identity = Identity {
            server_id: 1,
            uuid: b"a".to_vec(),
        };
        let source = Source {
            address: "10.0.0.1:3306".to_owned(),
            identity: Identity::default(),
        };
        Sight {
            identity,
            sources: replicates.then_some(source).into_iter().collect(),
            view: view.map(|(is_online, has_majority)| GroupView {
                is_online,
                is_secondary: true,
                has_majority,
                members: vec![b"a".to_vec()],
            }),
            ..Sight::default()
        }
    }

    #[test]
    fn who_is_outside() {
        for (view, replicates, is_missing, wanted) in [
            (Some((true, true)), false, true, false),
            (Some((false, true)), false, false, true),
            (Some((true, false)), false, false, true),
            (None, false, true, true),
            (None, false, false, false),
            (None, true, true, false),
        ] {
            let found = is_outside(&sight(view, replicates), |_| is_missing);
            assert_eq!(found, wanted, "{view:?} {replicates} {is_missing}");
        }
    }

    #[test]
    fn a_group_is_one_while_its_primary_says_so() {
        let views = Views::default();
        assert!(!views.lacks(0, b"a"));
        views.note(0, Some(vec![b"b".to_vec()]));
        assert!(views.lacks(0, b"a") && !views.lacks(0, b"b") && !views.lacks(1, b"a"));
        views.note(0, None);
        assert!(!views.lacks(0, b"a"));
    }
}
