//! What is known of the hosts behind Atlas. Keys and facts, no sockets. Connections are not shared between clients here.

mod health;
mod hosts;
mod lag;

pub use health::{Change, Health, Outcome, Pace, Ramp};
pub use hosts::{Host, Hosts, Offer, ServerFacts};
pub use lag::{Freshness, LagGate, LagPolicy, Replication};

/// A host's place in the snapshot's list of hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostId(pub u16);

impl HostId {
    /// As an index.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}
