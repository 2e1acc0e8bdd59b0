//! Server connections between sessions: lending idle ones, taking them back, waiting in line, and moving them to the worker
//! that needs them. Who may have which is decided in `pool`.

use std::time::Duration;

use super::backend::{Backend, Purpose};
use super::gate::{PATIENCE, Who};
use super::lender::is_fit;
use super::slots::Key;
use super::timer::Timer;
use super::{Deferred, Message, Target, Worker};
use crate::pool::{Grant, HostId, Shelf, Slot};
use crate::session::{Failure, Known, Parting, Role};

/// A server connection on its way to another worker.
#[derive(Debug)]
pub struct Moving {
    backend: Backend,
    who: Who,
}

impl Worker {
    /// A session gives a connection back.
    pub(super) fn take_back(&mut self, client: Key, role: Role, known: Box<Known>) {
        let key = self
            .clients
            .get_mut(client)
            .and_then(|client| client.backends[role as usize].take());
        let Some(key) = key else {
            return;
        };
        self.set_idle(key, known);
    }

    /// A connection is between two sessions: it goes to who waits for one like it, or on the shelf.
    pub(super) fn set_idle(&mut self, key: Key, known: Box<Known>) {
        let now = self.moment;
        let Some(backend) = self.backends.get_mut(key) else {
            return;
        };
        let is_dead = backend.is_condemned
            || backend.conn.peer_closed()
            || backend.conn.is_behind()
            || backend.epoch != self.live.hosts.get(backend.host).epoch()
            || self.live.is_out(backend.host)
            || !self.live.snapshot.has_backend(known.shape().account);
        if is_dead || backend.expires <= now || !backend.received.is_empty() {
            return self.drop_backend(key, Parting::Quit);
        }
        let host = backend.host;
        let slot = Slot {
            key,
            shape: known.shape(),
            state: known.state_hash(),
            serial: known.serial(),
            since: now,
            expires: backend.expires,
        };
        backend.purpose = Purpose::Idle;
        backend.known = Some(known);
        let waiting = self.gate(host).is_some_and(|gate| gate.waiting() > 0);
        if let Some(shelf) = self.shelves.get_mut(host.index()) {
            shelf.put(slot);
            let count = shelf.len();
            if let Some(gate) = self.live.gates.get(host.index()) {
                gate.set_idle(self.index, count);
            }
        }
        if waiting {
            self.serve(host);
        }
    }

    /// Whether this worker has idle connections to a host.
    pub(super) fn has_idle(&self, host: HostId) -> bool {
        self.shelves
            .get(host.index())
            .is_some_and(|shelf| !shelf.is_empty())
    }

    pub(super) fn gate(&self, host: HostId) -> Option<&super::Gate> {
        self.live.gates.get(host.index()).map(AsRef::as_ref)
    }

    /// Gives idle connections of this worker to those who wait for them, of whatever worker.
    pub(super) fn serve(&mut self, host: HostId) {
        self.drop_unfit(host, false);
        loop {
            let live = self.live.clone();
            let Some(gate) = live.gates.get(host.index()) else {
                return;
            };
            if gate.waiting() == 0 {
                return;
            }
            let Some(shelf) = self.shelves.get_mut(host.index()) else {
                return;
            };
            let found = shelf
                .shapes()
                .find_map(|shape| gate.take_for(shape, self.now).map(|w| (shape, w)));
            let Some((shape, waiter)) = found else {
                return self.grant(host);
            };
            let slot = shelf.take(shape, 0);
            gate.set_idle(self.index, shelf.len());
            if let Some(slot) = slot {
                self.pass_to(slot.key, waiter.who);
            }
        }
    }

    /// Takes those from the shelf that have died there; `looks` also at those whose end no event may have told of yet.
    pub(super) fn drop_unfit(&mut self, host: HostId, looks: bool) {
        let now = self.moment;
        loop {
            let (backends, hosts) = (&self.backends, &self.live.hosts);
            let is_unfit = |slot: &Slot<Key>| {
                let backend = backends.get(slot.key);
                let rested = if looks {
                    Duration::MAX
                } else {
                    now.saturating_sub(slot.since)
                };
                backend.is_none_or(|b| !is_fit(b, hosts, rested))
            };
            let shelf = self.shelves.get_mut(host.index());
            let Some(slot) = shelf.and_then(|shelf| shelf.take_if(is_unfit)) else {
                return;
            };
            self.drop_backend(slot.key, Parting::Silent);
        }
    }

    /// Gives a connection to who has waited for it.
    fn pass_to(&mut self, key: Key, who: Who) {
        if who.worker == self.index {
            return self.deliver(key, who);
        }
        let Some(mut backend) = self.backends.remove(key) else {
            return;
        };
        backend.conn.deregister(&self.registry);
        let message = Message::Lend(Box::new(Moving { backend, who }));
        let sent = match self.shared.mailboxes.get(who.worker) {
            Some(mailbox) => mailbox.send(message),
            None => Err(message),
        };
        if let Err(Message::Lend(moving)) = sent {
            // Its mailbox is full: the connection is given up, and who waits goes on waiting.
            self.give_up(moving.backend, Parting::Quit);
        }
    }

    /// A connection came from another worker.
    pub(super) fn receive(&mut self, moving: Moving) {
        let Moving { backend, who } = moving;
        let host = backend.host;
        let key = self.backends.insert_with(|_| backend);
        let token = Target::Backend(key).token();
        let registered = match self.backends.get_mut(key) {
            Some(backend) => backend.conn.register(&self.registry, token),
            None => Ok(()),
        };
        if let Err(error) = registered {
            log::warn!("cannot watch a server connection: {error}");
            self.drop_backend(key, Parting::Silent);
            return self.wait_again(who, host);
        }
        self.deliver(key, who);
    }

    /// Gives a connection of this worker to a client of this worker, if that still waits.
    pub(super) fn deliver(&mut self, key: Key, who: Who) {
        let known = self
            .backends
            .get_mut(key)
            .and_then(|backend| backend.known.take());
        let Some(mut known) = known else {
            return;
        };
        if !self.still_waits(who) {
            return self.set_idle(key, known);
        }
        self.serials += 1;
        known.set_serial(self.serials);
        if let Some(backend) = self.backends.get_mut(key) {
            backend.purpose = Purpose::Session {
                client: who.client,
                role: who.role,
                thread_id: known.thread_id(),
            };
        }
        if let Some(client) = self.clients.get_mut(who.client) {
            client.backends[who.role as usize] = Some(key);
            client.tickets[who.role as usize] = 0;
        }
        self.deferred.push_back(Deferred::Lent {
            client: who.client,
            role: who.role,
            known,
        });
    }

    pub(super) fn still_waits(&self, who: Who) -> bool {
        self.clients.get(who.client).is_some_and(|client| {
            client.tickets[who.role as usize] == who.ticket
                && client.backends[who.role as usize].is_none()
        })
    }

    /// Does for the first in the queue what can be done beside waiting for a connection to become free.
    pub(super) fn grant(&mut self, host: HostId) {
        let live = self.live.clone();
        let Some(gate) = live.gates.get(host.index()) else {
            return;
        };
        if self.is_stopped(host, Role::Replica).is_some() && gate.waiting() > 0 {
            return self.grant_after(host, PATIENCE);
        }
        loop {
            match gate.grant(self.now) {
                Grant::Nobody => return,
                Grant::Open(waiter) => self.grant_to(waiter.who, host),
                Grant::Later(wait) => {
                    self.grant_after(host, wait);
                    return;
                }
                Grant::Full(first) => {
                    let waited = gate.moment(self.now).saturating_sub(first.since);
                    let impatient = waited > PATIENCE;
                    let shelf = self.shelves.get_mut(host.index());
                    let slot = shelf.filter(|_| impatient).and_then(Shelf::take_oldest);
                    let Some(slot) = slot else {
                        if !impatient {
                            self.grant_after(host, PATIENCE);
                        }
                        return;
                    };
                    // One of another shape makes room.
                    self.drop_backend(slot.key, Parting::Quit);
                }
            }
        }
    }

    /// Looks again after so long; one such look at a time is enough, however many wait.
    pub(super) fn grant_after(&mut self, host: HostId, wait: Duration) {
        let at = self.now + wait;
        if let Some(pending) = self.grants.get_mut(host.index())
            && pending.is_none_or(|pending| at < pending)
        {
            *pending = Some(at);
            self.timers.add(at, Timer::Grant(host));
        }
    }

    /// It is time to look again. A look that an earlier one has replaced is passed over.
    pub(super) fn grant_due(&mut self, host: HostId) {
        let pending = self.grants.get_mut(host.index());
        if let Some(pending) = pending.filter(|at| at.is_some_and(|at| at <= self.now)) {
            *pending = None;
            self.grant(host);
        }
    }

    /// A counted place for a new connection is somebody's.
    fn grant_to(&mut self, who: Who, host: HostId) {
        if who.worker == self.index {
            return self.use_grant(who, host);
        }
        let message = Message::Grant { who, host };
        let sent = match self.shared.mailboxes.get(who.worker) {
            Some(mailbox) => mailbox.send(message),
            None => Err(message),
        };
        if sent.is_err() {
            self.uncount_backend(host);
        }
    }

    /// Opens the connection for which a place was given.
    pub(super) fn use_grant(&mut self, who: Who, host: HostId) {
        if self.still_waits(who) {
            if let Some(client) = self.clients.get_mut(who.client) {
                client.tickets[who.role as usize] = 0;
            }
            self.open_counted(who.client, who.role, host);
        } else {
            self.uncount_backend(host);
        }
    }

    /// A connection is gone, or was not opened: its place is free.
    pub(super) fn uncount_backend(&mut self, host: HostId) {
        let waiting = self.gate(host).map(|gate| {
            gate.closed();
            gate.waiting()
        });
        if waiting > Some(0) {
            self.grant_after(host, Duration::ZERO);
        }
    }

    /// Waits in line for a connection.
    pub(super) fn wait_in_line(&mut self, client: Key, role: Role, host: HostId) {
        self.tickets += 1;
        let ticket = self.tickets;
        let Some(waiter) = self.clients.get_mut(client) else {
            return;
        };
        waiter.tickets[role as usize] = ticket;
        waiter.waits_at[role as usize] = Some(host);
        let who = Who {
            worker: self.index,
            client,
            role,
            ticket,
        };
        self.wait_again(who, host);
        let timeout = self.live.snapshot.config.pool.acquire_timeout;
        self.timers.add(
            self.now + timeout,
            Timer::Acquire(who.client, role == Role::Replica, ticket, host),
        );
    }

    fn wait_again(&mut self, who: Who, host: HostId) {
        let (shared, live) = (self.shared.clone(), self.live.clone());
        let (Some(client), Some(gate)) =
            (self.clients.get(who.client), live.gates.get(host.index()))
        else {
            return;
        };
        let client_shares = client.session.shares();
        let shape = client.session.shape(who.role, &live.snapshot);
        gate.wait(who, shape, self.now);
        if client_shares && self.has_idle(host) {
            self.serve(host);
            if !self.still_waits(who) {
                return;
            }
        }
        // What may end the wait, at once or soon. Who is asked for an idle connection and has none that fits sees to the rest.
        let other = gate.who_has_idle(self.index).filter(|_| client_shares);
        if let Some(mailbox) = other.and_then(|other| shared.mailboxes.get(other))
            && mailbox.send(Message::Serve(host)).is_ok()
        {
            return;
        }
        self.reclaim(host);
        self.grant(host);
        if gate.waiting() > 0 {
            for (worker, mailbox) in shared.mailboxes.iter().enumerate() {
                if worker != self.index {
                    let _ = mailbox.send(Message::Serve(host));
                }
            }
        }
    }

    /// Asks sessions of this worker for connections that they have on call. True when one was given back, or soon is.
    pub(super) fn reclaim(&mut self, host: HostId) -> bool {
        let mut elsewhere = Vec::new();
        let mut given = false;
        while !given && let Some((client, role)) = self.on_call.pop_front() {
            let is_there = self
                .backend_of(client, role)
                .and_then(|key| self.backends.get(key))
                .map(|backend| backend.host);
            if is_there.is_some() && is_there != Some(host) {
                elsewhere.push((client, role));
                continue;
            }
            if let Some(client) = self.clients.get_mut(client) {
                client.on_call[role as usize] = false;
            }
            if is_there.is_some() {
                let answer = self.tell(client, |session, _, _, out| session.on_reclaim(role, out));
                given = answer == Some(true);
            }
        }
        self.on_call.extend(elsewhere);
        given
    }

    /// A session has a connection that it would give back when asked.
    pub(super) fn note_on_call(&mut self, client: Key, role: Role) {
        if let Some(owner) = self.clients.get_mut(client)
            && !std::mem::replace(&mut owner.on_call[role as usize], true)
        {
            self.on_call.push_back((client, role));
        }
        // Who waits already asked when there was nothing on call.
        let host = self
            .backend_of(client, role)
            .and_then(|key| self.backends.get(key))
            .map(|backend| backend.host);
        if let Some(host) = host
            && self.gate(host).is_some_and(|gate| gate.waiting() > 0)
        {
            self.deferred.push_back(Deferred::Reclaim(host));
        }
    }

    /// Another worker's client waits for a connection to this host.
    pub(super) fn serve_others(&mut self, host: HostId) {
        self.serve(host);
        if self.gate(host).is_some_and(|gate| gate.waiting() > 0) {
            self.reclaim(host);
            self.grant(host);
        }
    }

    /// A client has waited for too long.
    pub(super) fn acquire_timed_out(&mut self, client: Key, role: Role, ticket: u64, host: HostId) {
        let who = Who {
            worker: self.index,
            client,
            role,
            ticket,
        };
        if !self.gate(host).is_some_and(|gate| gate.leave(who)) || !self.still_waits(who) {
            return;
        }
        if let Some(client) = self.clients.get_mut(client) {
            client.tickets[role as usize] = 0;
            client.waiting_since = None;
        }
        let pool = &self.live.snapshot.config.pool;
        let why = format!(
            "no connection to {} within acquire_timeout ({:?}): all {} of pool.max_connections are in use, or pool.connect_rate ({} a second) is used up",
            self.address(host),
            pool.acquire_timeout,
            pool.max_connections,
            pool.connect_rate,
        );
        self.deferred.push_back(Deferred::OpenFailed {
            client,
            role,
            host: None,
            failure: Failure::Exhausted(why),
        });
    }

    /// A client is gone: it waits no longer.
    pub(super) fn leave_line(&mut self, client: Key, tickets: [u64; 2], hosts: usize) {
        for role in Role::BOTH {
            let ticket = tickets[role as usize];
            if ticket == 0 {
                continue;
            }
            let who = Who {
                worker: self.index,
                client,
                role,
                ticket,
            };
            for host in 0..hosts {
                if let Some(gate) = self.live.gates.get(host) {
                    gate.leave(who);
                }
            }
        }
    }

    /// Closes idle connections whose time is over, one a turn, so that a server does not lose many at once, and opens the few
    /// that are to be there always.
    pub(super) fn sweep(&mut self) {
        let live = self.live.clone();
        let pool = &live.snapshot.config.pool;
        for (index, gate) in live.gates.iter().enumerate() {
            let spare = gate.open() > pool.min_idle;
            let host = HostId(u16::try_from(index).unwrap_or(u16::MAX));
            // Well before the server does it.
            let idle_timeout = match live.hosts.get(host).wait_timeout() {
                Some(timeout) => pool.idle_timeout.min(timeout * 3 / 4),
                None => pool.idle_timeout,
            };
            let Some(shelf) = self.shelves.get_mut(index) else {
                continue;
            };
            let slot = shelf.take_overdue(self.moment, idle_timeout, spare);
            gate.set_idle(self.index, shelf.len());
            if let Some(slot) = slot {
                self.drop_backend(slot.key, Parting::Quit);
            }
        }
        self.give_up_silent();
        self.warm();
    }
}
