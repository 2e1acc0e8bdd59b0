//! Reads on servers that hang: a server that takes what it is sent and says nothing, and that checks have found down, closes no
//! connection by itself. What is asked of it is given up like a connection that is lost, so that reads go elsewhere.
//!
//! Only reads: nobody knows what becomes of a write there, and its client waits as it would without a proxy, or until another server
//! takes the primary's place.

use std::time::Duration;

use super::Worker;
use super::backend::Purpose;
use super::slots::Key;
use crate::session::{Parting, Role};

impl Worker {
    /// Looks through the connections to servers that are down.
    pub(super) fn give_up_silent(&mut self) {
        let live = self.live.clone();
        if live.present().all(|host| live.hosts.get(host).is_up()) {
            return;
        }
        // As long as a check may take: whoever goes on answering is let go on.
        let patience = live.snapshot.config.monitor.timeout;
        let silent: Vec<(Key, Key)> = self
            .backends
            .iter()
            .filter_map(|(key, backend)| {
                let Purpose::Session {
                    client,
                    role: Role::Replica,
                    ..
                } = backend.purpose
                else {
                    return None;
                };
                let owner = self.clients.get(client)?;
                let is_silent = backend.login.is_none()
                    && !live.hosts.get(backend.host).is_up()
                    && owner.session.awaits(Role::Replica)
                    // Of a unix socket nothing is known.
                    && backend.conn.quiet_for().unwrap_or(Duration::MAX) >= patience;
                is_silent.then_some((key, client))
            })
            .collect();
        for (key, client) in silent {
            self.give_up_on(key, client);
        }
    }

    fn give_up_on(&mut self, key: Key, client: Key) {
        self.drop_backend(key, Parting::Silent);
        let role = Role::Replica;
        if let Some(owner) = self.clients.get_mut(client) {
            owner.backends[role as usize] = None;
        }
        self.tell(client, |session, cx, bytes, out| {
            let why = "the server does not answer, nor does it answer checks";
            session.on_backend_lost(cx, role, why, bytes, out);
        });
        self.pump_client(client);
    }
}
