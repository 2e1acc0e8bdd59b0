//! Clients that leave: that hung up, were told goodbye, or are killed by another. How they come and what they say is in `client`.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::side::KillWish;
use super::slots::Key;
use super::timer::Timer;
use super::{Deferred, Killed, Worker};
use crate::session::{Failure, Parting};

/// A client that was told goodbye must have taken it by then.
const LINGER_TIME: Duration = Duration::from_secs(5);

/// How a client's connection ends. Closing a socket that holds bytes unread is a reset, which can overtake the error that the
/// client was told: such a one is closed when the client has closed it, or has had its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Farewell {
    /// There is nothing to be told.
    None,
    /// The last packet tells why the session is over.
    Due,
    /// It was sent and nothing follows.
    Said,
}

impl Worker {
    /// The client hung up, or its connection broke.
    #[cold]
    pub(super) fn client_gone(&mut self, key: Key) {
        self.tell(key, |session, _, _, out| session.on_client_closed(out));
        self.drop_client(key);
    }

    /// The session is over: the client is dropped when it has taken what is left for it.
    #[cold]
    pub(super) fn finish_client(&mut self, key: Key) {
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        if let Some((of, _)) = client.leg_of() {
            // It is forgotten when what it said last has been heard.
            return self.deferred.push_back(Deferred::Legs { client: of });
        }
        client.conn.flush();
        if client.conn.is_broken() {
            return self.drop_client(key);
        }
        if client.conn.is_behind() {
            self.timers
                .add(Instant::now() + LINGER_TIME, Timer::Linger(key));
            return;
        }
        match client.farewell {
            Farewell::None => self.drop_client(key),
            Farewell::Due => {
                client.farewell = Farewell::Said;
                client.conn.finish_sending();
                if client.conn.discard() {
                    self.timers
                        .add(Instant::now() + LINGER_TIME, Timer::Linger(key));
                } else {
                    self.drop_client(key);
                }
            }
            Farewell::Said => {
                if !client.conn.discard() {
                    self.drop_client(key);
                }
            }
        }
    }

    /// Forgets a client and everything that is its.
    #[cold]
    pub(super) fn drop_client(&mut self, key: Key) {
        let Some(mut client) = self.clients.remove(key) else {
            return;
        };
        for backend in client.backends.into_iter().flatten() {
            self.drop_backend(backend, Parting::Silent);
        }
        self.watch.forget(key);
        if client.tickets != [0; 2] {
            self.leave_line(key, client.tickets, self.live.gates.len());
        }
        if client.leg_of().is_some() {
            return;
        }
        self.note_gone(&client);
        if let Some(xid) = client.session.across() {
            // Somebody else sees to it.
            self.shared.decisions.over(xid, false);
        }
        for leg in client.take_legs() {
            self.client_gone(leg);
        }
        client.conn.close();
        self.live.uncount_client(client.admitted);
        self.uncount();
    }

    /// KILL for one of this worker's clients, by a client of this account. Like an account without further rights on a server
    /// it may end its own connections only; an operator, who has none, may end all.
    pub(super) fn kill_client(
        &mut self,
        id: u32,
        query_only: bool,
        account: Option<usize>,
    ) -> Killed {
        let found = self
            .clients
            .iter()
            .find(|(_, client)| client.session.id() == id && client.leg_of().is_none());
        let Some((key, client)) = found else {
            return Killed::Unknown;
        };
        let session = &client.session;
        let legs = client.legs();
        let owns = |own| session.is_logged_in() && session.account_index() == own;
        if !account.is_none_or(owns) {
            return Killed::NotOwner;
        }
        let running = session.running();
        if !query_only {
            self.client_gone(key);
        } else if let Some((role, thread_id)) = running {
            self.kill_on_server(key, role, thread_id, KillWish::Statement);
        } else if legs.is_empty() {
            self.kill_unsent(key);
        } else {
            self.kill_legs(&legs);
        }
        Killed::Done
    }

    /// KILL QUERY for a statement that has not left: it is not sent, and does not wait for a connection any longer.
    #[cold]
    fn kill_unsent(&mut self, key: Key) {
        let waits = self.tell(key, |session, _, bytes, _| session.on_killed_unsent(bytes));
        let Some(role) = waits.flatten() else {
            return;
        };
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        client.waiting_since = None;
        client.cut_at = None;
        let mut tickets = [0; 2];
        tickets[role as usize] = std::mem::take(&mut client.tickets[role as usize]);
        let opening = client.backends[role as usize].take();
        self.leave_line(key, tickets, self.live.gates.len());
        if let Some(opening) = opening {
            self.drop_backend(opening, Parting::Silent);
        }
        self.deferred.push_back(Deferred::OpenFailed {
            client: key,
            role,
            host: None,
            failure: Failure::interrupted(),
        });
    }

    pub(super) fn uncount(&self) {
        if let Some(load) = self.shared.loads.get(self.index) {
            load.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
