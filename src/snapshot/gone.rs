//! Groups that are configured no more while something of them still runs: whether their primary is to be left to end it.

use super::{Group, Snapshot};
use crate::pool::HostId;

impl Snapshot {
    /// All groups are gone until they are found in the next configuration; gives the primaries that they had.
    pub(super) fn clear_groups(&mut self) -> Vec<Option<HostId>> {
        let clear = |group: &mut Group| {
            group.is_gone = true;
            group.replicas.clear();
            group.primary.take()
        };
        self.groups.iter_mut().map(clear).collect()
    }

    /// A group that has another name now, or whose accounts have gone to another group of the same server, has the primary that it had for
    /// what runs there. Where that server leads nowhere any more it is one that was replaced, and nothing more is to be sent to it.
    pub(super) fn keep_primaries(&mut self, before: &[Option<HostId>]) {
        let leading: Vec<_> = self
            .groups
            .iter()
            .filter(|group| !group.is_gone)
            .filter_map(|group| self.hosts.get(group.primary?.index()))
            .map(|host| host.address.clone())
            .collect();
        for (group, primary) in self.groups.iter_mut().zip(before) {
            let entry = primary.and_then(|host| self.hosts.get(host.index()));
            if group.is_gone && entry.is_some_and(|entry| leading.contains(&entry.address)) {
                group.primary = *primary;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;
    use crate::snapshot::Seen;

    fn config(groups: &[(&str, &str)]) -> config::Config {
        let mut text = String::new();
        for (name, primary) in groups {
            text.push_str(&format!(
                "[[groups]]\nname = \"{name}\"\nprimary = \"{primary}\"\n"
            ));
        }
        let name = groups[0].0;
        text.push_str(&format!(
            "[[users]]\nname = \"u\"\npassword = \"p\"\ngroup = \"{name}\"\n"
        ));
        config::load(&text, "f", &|_| None).unwrap()
    }

    #[test]
    fn a_group_with_another_name_ends_what_runs() {
        let seen = Seen::default();
        let first = Snapshot::new(config(&[("a", "h:1")]));
        let old = first.groups[0].primary.unwrap();
        let renamed = first.next(config(&[("b", "h:1")]), &seen).unwrap();
        assert!(renamed.groups[0].is_gone && renamed.leads(old));
        assert!(renamed.hosts[old.index()].is_gone);
        assert!(renamed.leads(renamed.groups[1].primary.unwrap()));
        // Also when something else is changed later, and not when another server leads.
        let later = renamed
            .next(config(&[("b", "h:1"), ("c", "h:2")]), &seen)
            .unwrap();
        assert!(later.leads(old));
        let moved = later.next(config(&[("b", "h:2")]), &seen).unwrap();
        assert!(!moved.leads(old));
        // What leads no more does not lead again for being configured elsewhere.
        let back = moved.next(config(&[("b", "h:1")]), &seen).unwrap();
        assert!(!back.leads(old));
        let replaced = first.next(config(&[("b", "h:2")]), &seen).unwrap();
        assert!(!replaced.leads(old));
    }
}
