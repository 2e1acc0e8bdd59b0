//! Sessions that have set their wait_timeout: one that says nothing for so long ends as it would on a server. Its connections
//! serve others meanwhile, so that no server can do it. What servers themselves begin with is not held against clients.

use super::Worker;
use super::slots::Key;
use crate::session::Fault;
use crate::sql::Server;

impl Worker {
    /// The next word is the client's, and the session has set for how long it may be awaited.
    pub(super) fn note_rest(&mut self, key: Key) {
        if let Some(client) = self.clients.get_mut(key)
            && client.rests_since.replace(self.now).is_none()
        {
            self.resting.push(key);
        }
    }

    /// Ends those that rest for too long.
    pub(super) fn end_rests(&mut self) {
        let mut overdue = Vec::new();
        self.resting.retain(|key| {
            let Some(client) = self.clients.get_mut(*key) else {
                return false;
            };
            let (Some(limit), Some(since)) = (client.session.idle_limit(), client.rests_since)
            else {
                client.rests_since = None;
                return false;
            };
            if self.now.saturating_duration_since(since) >= limit
                && client.session.is_idle()
                && client.received.is_empty()
                && !client.conn.is_behind()
                && client.conn.is_alive()
            {
                overdue.push((*key, client.session.server()));
            }
            true
        });
        for (key, server) in overdue {
            match server {
                Server::MySql => self.dismiss(key, &Fault::Inactive),
                // Without a word there.
                Server::MariaDb => self.client_gone(key),
            }
        }
    }
}
