//! What is in force: the snapshot, and beside it what every one of its hosts and groups has of state and of keys to TLS. Control
//! publishes a new one whole; each worker takes it up between two turns. No decisions.

mod nodes;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::gate::Gate;
use super::tls::{BackendTls, ServerTls};
use crate::config::HostAddress;
use crate::pool::{HostId, Hosts};
use crate::snapshot::Snapshot;

pub use nodes::Nodes;

/// See the module's words.
#[derive(Debug)]
pub struct Live {
    /// Accounts, groups, hosts.
    pub snapshot: Snapshot,
    /// What checks know of the hosts. The same objects for the process's life.
    pub hosts: Hosts,
    /// The way to each host. The same objects for the process's life.
    pub gates: Vec<Arc<Gate>>,
    /// Clients of each account, in the snapshot's order. The same objects for the process's life.
    pub clients: Vec<Arc<AtomicUsize>>,
    /// TLS towards clients and servers.
    pub tls: Arc<Tls>,
    /// Who this process is where keys are generated. The same object for the process's life.
    pub nodes: Arc<Nodes>,
}

/// TLS on both sides.
#[derive(Debug, Default)]
pub struct Tls {
    /// Towards clients.
    pub clients: Option<ServerTls>,
    /// Towards the servers of each group, in the snapshot's order.
    pub backends: Vec<Option<BackendTls>>,
}

impl Live {
    /// What a process begins with.
    #[must_use]
    pub fn new(snapshot: Snapshot, tls: Tls, workers: usize) -> Self {
        let tls = Arc::new(tls);
        let nodes = Arc::default();
        let live = Self::grown(snapshot, (tls, nodes), &Hosts::default(), &[], &[], workers);
        for host in live.present() {
            live.hosts.get(host).set_leads(live.snapshot.leads(host));
        }
        live
    }

    /// What comes after this: state of hosts that are there already goes on.
    #[must_use]
    pub fn next(&self, snapshot: Snapshot, tls: Arc<Tls>, workers: usize) -> Self {
        let clients = &self.clients;
        let kept = (tls, self.nodes.clone());
        Self::grown(snapshot, kept, &self.hosts, &self.gates, clients, workers)
    }

    fn grown(
        snapshot: Snapshot,
        (tls, nodes): (Arc<Tls>, Arc<Nodes>),
        hosts: &Hosts,
        gates: &[Arc<Gate>],
        clients: &[Arc<AtomicUsize>],
        workers: usize,
    ) -> Self {
        let added = snapshot.hosts.get(hosts.len()..).unwrap_or_default();
        let hosts = hosts.with(added.iter().map(|host| address(&host.address)));
        let mut gates = gates.to_vec();
        gates.extend((gates.len()..hosts.len()).map(|_| Arc::new(Gate::new(workers))));
        let mut clients = clients.to_vec();
        clients.resize_with(snapshot.accounts.len(), Arc::default);
        for gate in &gates {
            gate.set_bounds(&snapshot.config.pool);
        }
        Self {
            snapshot,
            hosts,
            gates,
            clients,
            tls,
            nodes,
        }
    }

    /// Whether no connection to the host is to serve from here on: it is configured no more, or an operator has taken it out.
    #[must_use]
    pub fn is_out(&self, host: HostId) -> bool {
        let entry = self.snapshot.hosts.get(host.index());
        entry.is_none_or(|entry| entry.is_gone) || self.hosts.get(host).is_offline()
    }

    /// A client is not one of this account's any more.
    pub(super) fn uncount_client(&self, account: Option<u32>) {
        if let Some(count) = account.and_then(|account| self.clients.get(account as usize)) {
            count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Clients of an account, an index into the snapshot's.
    #[must_use]
    pub fn clients_of(&self, account: usize) -> usize {
        let count = self.clients.get(account);
        count.map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// The keys of the hosts that are configured.
    pub fn present(&self) -> impl Iterator<Item = HostId> + '_ {
        let entries = self.snapshot.hosts.iter().zip(0..);
        entries.filter_map(|(host, id)| (!host.is_gone).then_some(HostId(id)))
    }
}

/// The address that needs no resolving.
fn address(host: &HostAddress) -> Option<SocketAddr> {
    match host {
        HostAddress::Ip(address) => Some(*address),
        HostAddress::Name(..) | HostAddress::Unix(_) => None,
    }
}
