//! What all workers and control see: published values and counters. No locks but those of `gate`.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arc_swap::ArcSwap;

use super::condition::Condition;
use super::gate::Gate;
use super::mailbox::Mailbox;
use super::tls::{BackendTls, ServerTls};
use crate::pool::{Hosts, Offer};
use crate::snapshot::Snapshot;

/// See the module's words.
#[derive(Debug)]
pub struct Shared {
    /// Accounts, groups, hosts.
    pub snapshot: Arc<Snapshot>,
    /// What checks know of the hosts.
    pub hosts: Hosts,
    /// What clients are told.
    pub offer: ArcSwap<Offer>,
    /// TLS towards clients.
    pub client_tls: Option<ServerTls>,
    /// TLS towards the servers of each group.
    pub backend_tls: Vec<Option<BackendTls>>,
    /// The way to each host.
    pub gates: Vec<Gate>,
    /// Clients of each worker.
    pub loads: Vec<AtomicUsize>,
    /// Each worker's mailbox.
    pub mailboxes: Vec<Mailbox>,
    /// Whether this instance wants clients.
    pub condition: Condition,
}

impl Shared {
    /// Clients of all workers.
    #[must_use]
    pub fn clients(&self) -> usize {
        self.loads
            .iter()
            .map(|load| load.load(Ordering::Relaxed))
            .sum()
    }

    /// The worker with the fewest clients, the asking one where it is among them.
    #[must_use]
    pub fn least_loaded(&self, own: usize) -> usize {
        let load = |worker: usize| {
            self.loads
                .get(worker)
                .map_or(usize::MAX, |load| load.load(Ordering::Relaxed))
        };
        let least = (0..self.loads.len())
            .min_by_key(|worker| load(*worker))
            .unwrap_or(own);
        if load(least) < load(own) { least } else { own }
    }
}

/// Where the offer is published, for a worker's cache of it: looking whether it has changed costs a statement less than loading
/// it, which takes turns with whoever publishes.
#[derive(Debug)]
pub(super) struct Published(pub(super) Arc<Shared>);

impl Deref for Published {
    type Target = ArcSwap<Offer>;

    fn deref(&self) -> &ArcSwap<Offer> {
        &self.0.offer
    }
}
