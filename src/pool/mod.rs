//! What is known of the hosts behind Atlas and of the connections to them: who may use which, who waits, when one may be
//! opened. Keys and facts, no sockets and no clock.

mod breaker;
mod health;
mod heartbeat;
mod hosts;
mod lag;
mod queue;
mod shape;
mod shelf;
mod standing;
mod topology;

pub use breaker::{Breaker, Turn};
pub use health::{Change, Health, Outcome, Pace, Ramp};
pub use heartbeat::{Beat, Pulse};
pub use hosts::{Host, Hosts, Offer, ServerFacts};
pub use lag::{Freshness, LagGate, LagPolicy, Replication};
pub use queue::{Bounds, Grant, Queue, Waiter};
pub use shape::Shape;
pub use shelf::{Shelf, Slot};
pub use standing::Standing;
pub use topology::{
    GroupView, Identity, Look, Notice, Oddity, Sight, Source, SwitchRefused, Topology,
};

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
