//! Clients: their sockets, what they have sent, and the turn in which their sessions look at it.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use super::buffer::Buffer;
use super::conn::{Conn, Received, Socket};
use super::leaving::Farewell;
use super::legs::Spread;
use super::lender::Lender;
use super::slots::Key;
use super::timer::Timer;
use super::{Deferred, READS_PER_TURN, Target, Worker};
use crate::pool::HostId;
use crate::session::{Cx, NoLender, Outputs, Parting, Peer, Role, Session, Wants, client_id};

/// A client must have logged in by then.
const LOGIN_TIME: Duration = Duration::from_secs(10);
/// One client.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) conn: Conn,
    pub(super) session: Session,
    pub(super) received: Buffer,
    pub(super) backends: [Option<Key>; 2],
    /// When the primary was first asked for without an answer, for `primary_wait`.
    pub(super) waiting_since: Option<Instant>,
    /// A read was running there for a while when its connection was cut. Whether the server died or somebody killed the
    /// connection shows when it is asked for another one.
    pub(super) cut_at: Option<HostId>,
    /// Numbers of the requests for server connections that wait in line; 0 for none.
    pub(super) tickets: [u64; 2],
    /// Where it waits, for each of them.
    pub(super) waits_at: [Option<HostId>; 2],
    /// The account as one of whose clients it counts.
    pub(super) admitted: Option<u32>,
    /// It is to go as soon as nothing would be lost: its account or address is configured no more.
    pub(super) is_dismissed: bool,
    /// It is listed as having a connection on call.
    pub(super) on_call: [bool; 2],
    /// The replica that was chosen for it when that had no idle connection.
    pub(super) chosen: Option<HostId>,
    pub(super) farewell: Farewell,
    /// When it last said something.
    pub(super) heard: Instant,
    /// Since when it could say the next word, where its session limits that.
    pub(super) rests_since: Option<Instant>,
    /// What it has to do with legs.
    pub(super) spread: Option<Box<Spread>>,
}

/// Twenty random bytes, none of them zero: a nonce travels as a string that ends with zero.
pub(super) fn nonce() -> [u8; 20] {
    let mut random = [0; 20];
    if aws_lc_rs::rand::fill(&mut random).is_err() {
        // The library's generator does not fail; if it did, a log-in with a guessable nonce would be worse than none.
        log::error!("no random bytes for a log-in");
    }
    crate::auth::nonce_from_random(random)
}

impl Worker {
    /// Takes a socket in as a client (already counted) and greets it.
    pub(super) fn adopt(&mut self, socket: Socket, peer: Peer) {
        socket.tune();
        let id = self.next_client_id();
        let (shared, live) = (self.shared.clone(), self.live.clone());
        let offer = shared.offer.load();
        let mut cx = Cx {
            snapshot: &live.snapshot,
            offer: &offer,
            nonce: &mut nonce,
            now: self.moment,
            lender: &mut NoLender,
            texts: &mut self.texts,
        };
        let mut outputs = std::mem::take(&mut self.outputs);
        let session = Session::new(id, peer, &mut cx, &mut outputs);
        let key = self.add_client(Conn::new(socket), session, None);
        self.outputs = outputs;
        let token = Target::Client(key).token();
        let registered = match self.clients.get_mut(key) {
            Some(client) => client.conn.register(&self.registry, token),
            None => Ok(()),
        };
        if let Err(error) = registered {
            log::warn!("cannot watch a client's socket: {error}");
            self.outputs.clear();
            return self.drop_client(key);
        }
        self.timers
            .add(Instant::now() + LOGIN_TIME, Timer::Login(key));
        self.perform(key, &[]);
    }

    pub(super) fn add_client(
        &mut self,
        conn: Conn,
        session: Session,
        spread: Option<Spread>,
    ) -> Key {
        let heard = self.now;
        self.clients.insert_with(|_| Client {
            conn,
            session,
            received: Buffer::default(),
            backends: [None; 2],
            waiting_since: None,
            cut_at: None,
            tickets: [0; 2],
            waits_at: [None; 2],
            admitted: None,
            is_dismissed: false,
            on_call: [false; 2],
            chosen: None,
            farewell: Farewell::None,
            heard,
            rests_since: None,
            spread: spread.map(Box::new),
        })
    }

    fn next_client_id(&mut self) -> u32 {
        self.client_count = self.client_count.wrapping_add(1);
        client_id(u8::try_from(self.index).unwrap_or(0), self.client_count)
    }

    /// Calls into a client's session and carries out what it asks for. The closure gets the client's unconsumed bytes.
    pub(super) fn tell<R>(
        &mut self,
        key: Key,
        call: impl FnOnce(&mut Session, &mut Cx<'_>, &mut [u8], &mut Outputs) -> R,
    ) -> Option<R> {
        self.tell_of(key, &mut [], |session, cx, _, bytes, out| {
            call(session, cx, bytes, out)
        })
    }

    /// As [`Self::tell`], with bytes of a server that outputs may refer to.
    pub(super) fn tell_of<R>(
        &mut self,
        key: Key,
        input: &mut [u8],
        call: impl FnOnce(&mut Session, &mut Cx<'_>, &mut [u8], &mut [u8], &mut Outputs) -> R,
    ) -> Option<R> {
        let client = self.clients.get_mut(key)?;
        let mut lender = Lender {
            live: &self.live,
            shelves: &mut self.shelves,
            backends: &mut self.backends,
            balances: &mut self.balances,
            serials: &mut self.serials,
            worker: self.index,
            now: self.now,
            moment: self.moment,
            client: key,
            is_cut: client.cut_at.is_some(),
            lent: [None; 2],
            chosen: None,
            admitted: client.admitted,
            dead: Vec::new(),
        };
        let mut cx = Cx {
            snapshot: &self.live.snapshot,
            offer: self.offer.load(),
            nonce: &mut nonce,
            now: self.moment,
            lender: &mut lender,
            texts: &mut self.texts,
        };
        let result = call(
            &mut client.session,
            &mut cx,
            input,
            client.received.filled_mut(),
            &mut self.outputs,
        );
        let Lender {
            lent,
            chosen,
            admitted,
            dead,
            ..
        } = lender;
        for (place, lent) in client.backends.iter_mut().zip(lent) {
            if lent.is_some() {
                *place = lent;
            }
        }
        client.chosen = chosen;
        client.admitted = admitted;
        for key in dead {
            self.drop_backend(key, Parting::Silent);
        }
        self.perform(key, input);
        Some(result)
    }

    /// A password was wrong: the client is told at once, or later when there were too many before.
    #[cold]
    pub(super) fn put_denial_off(&mut self, key: Key) {
        let Some(session) = self.clients.get(key).map(|client| &client.session) else {
            return;
        };
        let (user, text) = session.denial().unwrap_or_default();
        let delay = match session.peer() {
            Peer::Local => Duration::ZERO,
            Peer::Ip(ip) => {
                let mut failures = self
                    .shared
                    .failures
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                let now = self.moment;
                let (count, delay) = failures.note(ip, user, now);
                // Once in a while, so that who guesses does not fill the log.
                if !delay.is_zero() && count.is_power_of_two() {
                    log::warn!("{text}; {count} times in a row: it is answered later and later");
                } else {
                    log::debug!("{text}");
                }
                delay
            }
        };
        if delay.is_zero() {
            self.deferred.push_back(Deferred::Denied { client: key });
        } else {
            self.timers.add(Instant::now() + delay, Timer::Denial(key));
        }
    }

    pub(super) fn tell_denial(&mut self, key: Key) {
        self.tell(key, |session, _, _, out| session.on_denial(out));
    }

    /// A client's turn: writes what it can take, lets its session look at what it sent, reads more.
    pub(super) fn work_client(&mut self, key: Key) {
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        if client.conn.is_behind() {
            client.conn.flush();
            if !client.conn.is_behind() {
                // Servers waited for this.
                for backend in client.backends.into_iter().flatten() {
                    self.again.push_back(Target::Backend(backend));
                }
                if client.has_legs() {
                    self.deferred.push_back(Deferred::Legs { client: key });
                }
            }
        }
        self.pump_client(key);
    }

    /// Lets the session look at the client's bytes for as long as there are new ones and it wants them.
    pub(super) fn pump_client(&mut self, key: Key) {
        let mut reads = 0;
        // Bytes that the session has seen and left for want of more are shown again only with more behind them.
        let mut seen = 0;
        loop {
            let Some(client) = self.clients.get_mut(key) else {
                return;
            };
            if client.session.is_closed() {
                return self.finish_client(key);
            }
            if client.conn.is_broken() {
                return self.client_gone(key);
            }
            let wanted = match client.session.wants() {
                Wants::Bytes(n) => n,
                // The session has nothing to see before the handshake is through, but the handshake has to be read.
                Wants::Nothing if client.conn.is_handshaking() => 1,
                Wants::Nothing => {
                    if client.conn.peer_closed() {
                        return self.client_gone(key);
                    }
                    return;
                }
            };
            // A client that does not take its replies gets no further commands done.
            if client.conn.is_behind() || self.is_upload_behind(key) || self.must_wait_for_log(key)
            {
                return;
            }
            let Some(client) = self.clients.get_mut(key) else {
                return;
            };
            let held = client.received.len();
            if held >= wanted && held > seen {
                seen = held;
                let before = held;
                self.tell(key, |session, cx, bytes, out| {
                    session.on_client(cx, bytes, out)
                });
                let Some(client) = self.clients.get_mut(key) else {
                    return;
                };
                if client.received.len() < before {
                    seen = 0;
                }
                client.received.release(&mut self.buffers);
                continue;
            }
            if !client.conn.may_read() {
                client.received.release(&mut self.buffers);
                let limits_rest = client.session.idle_limit().is_some();
                if self.drain.is_some() || client.is_dismissed {
                    self.look(key);
                }
                if limits_rest {
                    self.note_rest(key);
                }
                return;
            }
            if reads == READS_PER_TURN {
                self.again.push_back(Target::Client(key));
                return;
            }
            reads += 1;
            let space = client.received.space(wanted, &mut self.buffers);
            match client.conn.read(space) {
                Received::Bytes(n) => {
                    client.received.filled_more(n);
                    client.heard = self.now;
                }
                Received::Nothing => client.received.release(&mut self.buffers),
                Received::Closed => return self.client_gone(key),
            }
            if !client.session.is_logged_in() && !client.conn.is_handshaking() {
                client.session.on_tls_ready();
            }
        }
    }

    /// The server that the client uploads to has not taken everything yet.
    fn is_upload_behind(&self, key: Key) -> bool {
        let Some(client) = self.clients.get(key) else {
            return false;
        };
        client.backends.iter().flatten().any(|backend| {
            self.backends
                .get(*backend)
                .is_some_and(|backend| backend.conn.is_behind())
        })
    }

    pub(super) fn backend_of(&self, key: Key, role: Role) -> Option<Key> {
        self.clients.get(key)?.backends[role as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::backend::Backend;

    /// An idle client and its server connection own these and nothing else of size; see "Limits" in the README.
    #[test]
    fn an_idle_client_is_small() {
        eprintln!(
            "client {} session {} conn {} backend {}",
            size_of::<Client>(),
            size_of::<Session>(),
            size_of::<Conn>(),
            size_of::<Backend>()
        );
        assert!(size_of::<Client>() + 2 * size_of::<Backend>() <= 2048);
    }
}
