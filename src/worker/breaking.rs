//! The breaker of each host in a worker: what its connections come to, who has to go elsewhere when it opens, and what a primary's
//! sessions do while it is open.

use std::time::{Duration, Instant};

use super::gate::Who;
use super::slots::Key;
use super::{Deferred, Message, Worker};
use crate::pool::{HostId, Turn};
use crate::session::{Failure, Role};

impl Worker {
    /// A connection was opened, or could not be, that was begun at that moment.
    pub(super) fn note_opening(&mut self, host: HostId, is_success: bool, begun: Instant) {
        let turn = self
            .gate(host)
            .and_then(|gate| gate.note_opening(is_success, begun, self.now));
        let Some(turn) = turn else {
            return;
        };
        let limits = &self.live.snapshot.config.pool.breaker;
        let (name, pause) = (self.address(host), limits.open_for);
        let text = match turn {
            Turn::Opened { failed, tried } => format!(
                "no connections to {name} are opened for {pause:?}: {failed} of {tried} have failed within {:?}",
                limits.window
            ),
            Turn::OpenedAgain => {
                format!(
                    "no connections to {name} are opened for {pause:?} more: the next one has failed too"
                )
            }
            Turn::Closed => format!("connections to {name} are opened again"),
        };
        self.shared.notices.tell("breaker", text);
        if turn == Turn::Closed {
            self.grant_after(host, Duration::ZERO);
        } else {
            self.disperse(host);
        }
    }

    /// Sends those away who wait for a connection to this host.
    fn disperse(&mut self, host: HostId) {
        let waiters = self.gate(host).map(super::Gate::disperse);
        for waiter in waiters.into_iter().flatten() {
            let who = waiter.who;
            if who.worker == self.index {
                self.go_elsewhere(who, host);
            } else if let Some(mailbox) = self.shared.mailboxes.get(who.worker) {
                // Where this finds no room the client's time runs out.
                let _ = mailbox.send(Message::Elsewhere { who, host });
            }
        }
    }

    /// A client of this worker no longer waits for this host.
    pub(super) fn go_elsewhere(&mut self, who: Who, host: HostId) {
        if !self.still_waits(who) {
            return;
        }
        if let Some(client) = self.clients.get_mut(who.client) {
            client.tickets[who.role as usize] = 0;
        }
        let avoid = Some(host).filter(|_| who.role == Role::Replica);
        self.open(who.client, who.role, avoid);
    }

    /// How long no connections to this host have been opened, where that concerns a session that asks for one. A primary that checks
    /// have found down is tried all the same, by one at a time: sessions wait for its return, or for another one.
    pub(super) fn is_stopped(&self, host: HostId, role: Role) -> Option<Duration> {
        if role == Role::Primary && !self.live.hosts.get(host).is_up() {
            return None;
        }
        self.gate(host)?.stopped_for(self.now)
    }

    /// A session asks for a connection to a host to which none are opened. A read goes elsewhere. What needs the primary waits as it
    /// does when that does not answer, for another one may be on its way; after `primary_wait` none is, and nobody has to wait.
    pub(super) fn turn_request_away(
        &mut self,
        key: Key,
        role: Role,
        host: HostId,
        stopped: Duration,
    ) {
        let why = format!(
            "no connections to {} are opened for now, too many have failed (pool.breaker)",
            self.address(host)
        );
        let failure = Failure::Unreachable(why);
        let entry = self.live.snapshot.hosts.get(host.index());
        let groups = &self.live.snapshot.groups;
        let patience = entry
            .and_then(|entry| groups.get(entry.group))
            .map_or(Duration::ZERO, |group| group.config.primary_wait);
        if role == Role::Primary && stopped < patience {
            return self.open_failed(key, role, host, failure);
        }
        if let Some(owner) = self.clients.get_mut(key) {
            owner.waiting_since = None;
            owner.cut_at = None;
        }
        self.deferred.push_back(Deferred::OpenFailed {
            client: key,
            role,
            host: Some(host),
            failure,
        });
    }
}
