//! Taking up what control has put in force: lists grow, connections that nobody may use any more are closed, and sessions are told
//! what they have to give up. Between two turns of the loop, so that a statement under way goes on as it began.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Worker;
use super::slots::Key;
use crate::pool::{HostId, Shelf, Slot};
use crate::route::Balance;
use crate::session::{Parting, Peer, Role};

impl Worker {
    /// Takes up what is in force, if that is something else than before.
    pub(super) fn keep_current(&mut self) {
        let live = self.shared.live.load();
        if Arc::ptr_eq(&live, &self.live) {
            return;
        }
        self.live = arc_swap::Guard::into_inner(live);
        let version = self.live.snapshot.version;
        self.balances
            .resize_with(self.live.snapshot.groups.len(), Balance::default);
        self.shelves
            .resize_with(self.live.hosts.len(), Shelf::default);
        self.grants.resize(self.live.hosts.len(), None);
        self.close_unusable();
        for key in self.clients.keys() {
            self.revise(key);
        }
        // From here on nothing is decided by what was in force before, and nothing that was decided is still to be sent.
        if let Some(applied) = self.shared.applied.get(self.index) {
            applied.store(version, Ordering::SeqCst);
        }
    }

    /// Clients that wait for a primary look whether there is one.
    pub(super) fn ask_again(&mut self) {
        for key in self.clients.keys() {
            let waits = self.clients.get(key).is_some_and(|client| {
                client.waiting_since.is_some() && client.session.waits_for(Role::Primary)
            });
            if waits {
                self.reopen(key, Role::Primary);
            }
        }
    }

    /// Closes idle connections to hosts that are out, and those of accounts that nobody has.
    fn close_unusable(&mut self) {
        let live = self.live.clone();
        for (index, gate) in live.gates.iter().enumerate() {
            gate.drop_template(|account| live.snapshot.has_backend(account));
            let host = HostId(u16::try_from(index).unwrap_or(u16::MAX));
            let epoch = live.hosts.get(host).epoch();
            loop {
                let backends = &self.backends;
                let is_unusable = |slot: &Slot<Key>| {
                    live.is_out(host)
                        || !live.snapshot.has_backend(slot.shape.account)
                        || backends.get(slot.key).is_none_or(|b| b.epoch != epoch)
                };
                let shelf = self.shelves.get_mut(index);
                let Some(slot) = shelf.and_then(|shelf| shelf.take_if(is_unusable)) else {
                    break;
                };
                self.drop_backend(slot.key, Parting::Quit);
            }
            gate.set_idle(self.index, self.shelves.get(index).map_or(0, Shelf::len));
        }
    }

    /// What a client's session has to give up.
    fn revise(&mut self, key: Key) {
        let live = self.live.clone();
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        if client.session.is_logged_in() && client.leg_of().is_none() {
            let account = live.snapshot.accounts.get(client.session.account_index());
            let is_welcome = account.is_some_and(|account| {
                !account.is_gone
                    && match client.session.peer() {
                        Peer::Ip(ip) => {
                            account.networks.allows(ip)
                                && live.snapshot.config.server.client_networks.allows(ip)
                        }
                        Peer::Local => true,
                    }
            });
            client.is_dismissed = !is_welcome;
            if !is_welcome {
                return self.work_client(key);
            }
        }
        for role in Role::BOTH {
            self.revise_backend(key, role);
        }
    }

    /// A session's connection to a host that is not the primary any more. False when it has none.
    fn give_up_demoted(&mut self, key: Key) -> bool {
        let Some(backend_key) = self.backend_of(key, Role::Primary) else {
            return false;
        };
        let Some(backend) = self.backends.get(backend_key) else {
            return false;
        };
        let host = self.live.hosts.get(backend.host);
        if self.live.snapshot.leads(backend.host) || backend.login.is_some() {
            return false;
        }
        // What has not left yet must not leave any more.
        let is_closed = host.standing.is_closed() && host.is_up() && !backend.conn.is_behind();
        self.tell(key, |session, cx, bytes, out| {
            session.on_demoted(cx, is_closed, bytes, out);
        });
        self.work_client(key);
        true
    }

    /// A connection to a host that is out is given up when nothing ties it, one that is awaited from there is looked for elsewhere.
    fn revise_backend(&mut self, key: Key, role: Role) {
        if role == Role::Primary && self.give_up_demoted(key) {
            return;
        }
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        let hosts = &self.live.hosts;
        if let Some(host) =
            client.waits_at[role as usize].filter(|_| client.tickets[role as usize] != 0)
        {
            let is_out =
                self.live.is_out(host) || role == Role::Primary && !self.live.snapshot.leads(host);
            if is_out {
                let tickets = std::mem::take(&mut client.tickets[role as usize]);
                let mut left = [0; 2];
                left[role as usize] = tickets;
                self.leave_line(key, left, self.live.gates.len());
                self.open(key, role, None);
            }
            return;
        }
        let Some(backend_key) = client.backends[role as usize] else {
            return;
        };
        let Some(backend) = self.backends.get(backend_key) else {
            return;
        };
        let group = client.session.group_index(&self.live.snapshot);
        let entry = self.live.snapshot.hosts.get(backend.host.index());
        if !self.live.is_out(backend.host)
            && backend.epoch == hosts.get(backend.host).epoch()
            && entry.is_some_and(|entry| entry.group == group)
        {
            return;
        }
        if backend.login.is_some() {
            client.backends[role as usize] = None;
            self.drop_backend(backend_key, Parting::Silent);
            return self.open(key, role, None);
        }
        self.tell(key, |session, _, _, out| session.on_retire(role, out));
        self.work_client(key);
    }
}
