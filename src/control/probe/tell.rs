//! What a check tells the log of a replica and of its group.

use super::{Prober, replication};
use crate::config::NoReplica;
use crate::pool::{LagPolicy, Replication};

impl Prober {
    /// Says once that a replica does not tell how far it is behind, and what would help.
    pub(super) fn tell_of_hidden(&mut self, said: Replication, why: &str, policy: &LagPolicy) {
        let is_hidden = match said {
            Replication::Hidden | Replication::Absent | Replication::Unmeasured => true,
            Replication::Behind(_)
            | Replication::Disconnected
            | Replication::Stopped
            | Replication::Silent => false,
        };
        if !is_hidden || std::mem::replace(&mut self.is_hidden, is_hidden) {
            self.is_hidden = is_hidden;
            return;
        }
        let consequence = if said == Replication::Unmeasured {
            "it serves no reads"
        } else if policy.is_strict {
            "it serves no reads, because the group has a max_lag"
        } else {
            "it serves reads however far it is behind; with a max_lag of its own the group would keep them away"
        };
        let help = match (said, self.published().facts()) {
            (Replication::Hidden, Some(facts)) => format!(
                " (grant {} to '{}', or set max_lag = \"0s\")",
                replication::privilege(&facts),
                self.monitor().user
            ),
            _ => String::new(),
        };
        log::warn!(
            "replica {} does not tell how far it is behind: {why}: {consequence}{help}",
            self.address()
        );
    }

    /// The last replica of a group that leaves, or the first one that comes back, decides where reads go.
    pub(super) fn tell_of_group(&self, may_serve: bool) {
        let group = self.group();
        let hosts = &self.live.hosts;
        let others = group.replicas.iter().filter(|(host, _)| *host != self.host);
        if !group.replicas.iter().any(|(host, _)| *host == self.host)
            || others
                .into_iter()
                .any(|(host, _)| hosts.get(*host).may_serve())
        {
            return;
        }
        let reads = match group.no_replica {
            NoReplica::Primary => "go to the primary",
            NoReplica::Error => "fail",
        };
        if may_serve {
            log::info!("group {} has a replica for reads again", group.name);
        } else {
            log::warn!(
                "group {} has no replica that may serve reads: they {reads}",
                group.name
            );
        }
    }
}
