//! What is known of the hosts behind Atlas. Keys and facts, no sockets. Connections are not shared between clients here.

mod hosts;

pub use hosts::{Host, Hosts, Offer, ServerFacts};

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
