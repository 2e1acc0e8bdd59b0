//! A worker's idle connections as sessions see them: what can be lent at once.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use super::Live;
use super::backend::{Backend, Purpose};
use super::slots::{Key, Slots};
use crate::pool::{HostId, Hosts, Shape, Shelf, Slot};
use crate::route::{Balance, Candidate};
use crate::session::{Ask, Known, Lend, Role};
use crate::shard::Refused;

/// A connection that was idle for longer may have been closed by its server without this being noticed yet.
const FRESH: Duration = Duration::from_millis(500);

/// A worker's idle connections, as a session sees them.
#[derive(Debug)]
pub(super) struct Lender<'w> {
    pub(super) live: &'w Live,
    pub(super) shelves: &'w mut [Shelf<Key>],
    pub(super) backends: &'w mut Slots<Backend>,
    pub(super) balances: &'w mut [Balance],
    pub(super) serials: &'w mut u64,
    pub(super) worker: usize,
    pub(super) now: Instant,
    /// The same as shelves and sessions count it.
    pub(super) moment: Duration,
    pub(super) client: Key,
    /// A read of the client's was cut off: whether its server is still there a new connection finds out.
    pub(super) is_cut: bool,
    /// What was lent.
    pub(super) lent: [Option<Key>; 2],
    /// The replica that has been chosen, when it had no idle connection.
    pub(super) chosen: Option<HostId>,
    /// The account as one of whose clients the client counts.
    pub(super) admitted: Option<u32>,
    /// Connections that turned out to be dead.
    pub(super) dead: Vec<Key>,
}

impl Lend for Lender<'_> {
    fn lend(&mut self, ask: &Ask) -> Option<Box<Known>> {
        if let Some(serial) = ask.same {
            let group = self.live.snapshot.groups.get(ask.group)?;
            for host in group.members() {
                let shelf = self.shelves.get_mut(host.index())?;
                if let Some(slot) = shelf.take_same(serial) {
                    return self.hand_out(slot, host, ask.role, true);
                }
            }
            return None;
        }
        if self.is_cut && ask.role == Role::Replica {
            return None;
        }
        let host = choose(
            self.live,
            self.balances,
            self.now,
            ask.group,
            ask.role,
            ask.avoid,
        )?;
        let known = self.lend_at(host, ask.role, ask.shape, ask.state);
        if known.is_some() {
            return known;
        }
        if ask.role == Role::Replica {
            self.chosen = Some(host);
        }
        None
    }

    fn ids(&mut self, count: u32, group: usize) -> Result<u64, Refused> {
        self.live.nodes.take(group, count)
    }

    fn admit(&mut self, account: usize) -> bool {
        let Ok(place) = u32::try_from(account) else {
            return false;
        };
        if self.admitted == Some(place) {
            return true;
        }
        let (Some(count), Some(entry)) = (
            self.live.clients.get(account),
            self.live.snapshot.accounts.get(account),
        ) else {
            return false;
        };
        let max = match entry.max_connections {
            0 => usize::MAX,
            max => max,
        };
        let one_more = |n: usize| (n < max).then_some(n + 1);
        if count.fetch_update(Relaxed, Relaxed, one_more).is_err() {
            return false;
        }
        self.live.uncount_client(self.admitted.replace(place));
        true
    }
}

impl Lender<'_> {
    /// Lends an idle connection to this host.
    fn lend_at(
        &mut self,
        host: HostId,
        role: Role,
        shape: Shape,
        state: u64,
    ) -> Option<Box<Known>> {
        loop {
            let slot = self.shelves.get_mut(host.index())?.take(shape, state)?;
            let known = self.hand_out(slot, host, role, false);
            if known.is_some() {
                return known;
            }
        }
    }

    fn hand_out(
        &mut self,
        slot: Slot<Key>,
        host: HostId,
        role: Role,
        same: bool,
    ) -> Option<Box<Known>> {
        if let (Some(gate), Some(shelf)) = (
            self.live.gates.get(host.index()),
            self.shelves.get(host.index()),
        ) {
            gate.set_idle(self.worker, shelf.len());
        }
        let backend = self.backends.get_mut(slot.key)?;
        let rested = self.moment.saturating_sub(slot.since);
        if !is_fit(backend, &self.live.hosts, rested) {
            self.dead.push(slot.key);
            return None;
        }
        let mut known = backend.known.take()?;
        backend.purpose = Purpose::Session {
            client: self.client,
            role,
            thread_id: known.thread_id(),
        };
        if !same {
            *self.serials += 1;
            known.set_serial(*self.serials);
        }
        self.lent[role as usize] = Some(slot.key);
        Some(known)
    }
}

/// Whether an idle connection may serve: its host is the one that it was opened to, and has not closed it.
pub(super) fn is_fit(backend: &Backend, hosts: &Hosts, rested: Duration) -> bool {
    backend.epoch == hosts.get(backend.host).epoch()
        && !backend.conn.peer_closed()
        && (rested <= FRESH || backend.conn.is_alive())
}

/// The host for a role of a group's sessions.
pub(super) fn choose(
    live: &Live,
    balances: &mut [Balance],
    now: Instant,
    group: usize,
    role: Role,
    avoid: Option<HostId>,
) -> Option<HostId> {
    let members = live.snapshot.groups.get(group)?;
    match role {
        Role::Primary => members
            .primary
            .map(|host| (host, live.hosts.get(host)))
            .filter(|(_, state)| {
                state.leads() && !state.standing.is_doubted() && !state.is_offline()
            })
            .map(|(host, _)| host),
        Role::Replica => {
            let candidates = members
                .replicas
                .iter()
                .filter(|(host, _)| {
                    let gate = live.gates.get(host.index());
                    Some(*host) != avoid
                        && live.hosts.get(*host).may_serve()
                        && gate.is_none_or(|gate| gate.admits(now))
                })
                .map(|(host, weight)| Candidate {
                    host: *host,
                    weight: weight.saturating_mul(live.hosts.get(*host).share()),
                });
            balances.get_mut(group)?.pick(candidates)
        }
    }
}
