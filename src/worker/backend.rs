//! Server connections: reading what servers send, losing them. They are opened in `opening`, log-ins are in `backend_login`,
//! the connections that kill in `side`.

use std::time::{Duration, Instant};

use super::buffer::Buffer;
use super::conn::{Conn, Received};
use super::slots::Key;
use super::timer::Timer;
use super::{READS_PER_TURN, Target, Worker};
use crate::pool::{HostId, Shape};
use crate::session::{Failure, Known, Parting, Ready, Role, Upstream};

/// A server to which goodbye was said has closed the connection by then.
const LEAVE: Duration = Duration::from_secs(1);

/// A read that was cut off after so long had been running: it is not said again where somebody may have killed it.
const CUT_AFTER: Duration = Duration::from_millis(100);

/// One server connection.
#[derive(Debug)]
pub(super) struct Backend {
    pub(super) conn: Conn,
    pub(super) host: HostId,
    pub(super) purpose: Purpose,
    /// The log-in, until it is through.
    pub(super) login: Option<Box<Upstream>>,
    pub(super) received: Buffer,
    /// When it was begun to open it.
    pub(super) begun: Instant,
    pub(super) connected: bool,
    /// It counts for the bounds of `[pool]`; side connections do not.
    pub(super) is_counted: bool,
    /// A KILL for its statement is on its way, and may come late: no other session is to meet it.
    pub(super) is_condemned: bool,
    /// The host's epoch when it was opened: in a later one it is as good as lost.
    pub(super) epoch: u64,
    /// To be closed after that, when it is idle.
    pub(super) expires: Duration,
    /// What it is made for, until the log-in is through.
    pub(super) made: Option<Box<Made>>,
    /// What is known of it while no session has it.
    pub(super) known: Option<Box<Known>>,
}

/// What a connection is made for.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) shape: Shape,
    pub(super) schema: Option<Vec<u8>>,
}

impl Made {
    pub(super) fn known(&self, host: HostId, ready: &Ready) -> Box<Known> {
        Known::new(host, self.shape, self.schema.as_deref(), ready)
    }
}

/// What a server connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A client's session.
    Session {
        /// Whose.
        client: Key,
        /// Which of its connections.
        role: Role,
        /// The server's id of the connection, 0 before the greeting.
        thread_id: u32,
    },
    /// None for now: it waits for a session, or logs in to do so.
    Idle,
    /// It was said goodbye to. Its place is free when the server has closed it too, so that no server ever sees one too many.
    Leaving,
    /// Killing a statement (or its connection) on the server.
    Kill {
        /// The server's id of the connection to be killed.
        thread_id: u32,
        /// Only its statement.
        query_only: bool,
        /// The KILL has been sent.
        sent: bool,
    },
}

impl Worker {
    /// What is known of a connection whose log-in is through.
    pub(super) fn known_of(&self, made: &Made, host: HostId, ready: &Ready) -> Box<Known> {
        let mut known = made.known(host, ready);
        let facts = self.live.hosts.get(host).facts();
        known.set_begins_with_more(facts.is_some_and(|facts| facts.init_connect));
        known
    }

    /// A server connection's turn.
    pub(super) fn work_backend(&mut self, key: Key) {
        let Some(backend) = self.backends.get_mut(key) else {
            return;
        };
        if !backend.connected {
            match backend.conn.socket().connected() {
                Ok(true) => backend.connected = true,
                Ok(false) => return,
                Err(error) => {
                    let why = format!("cannot connect to {}: {error}", self.host_name(key));
                    return self.login_failed(key, Failure::Unreachable(why));
                }
            }
        }
        if backend.conn.is_behind() {
            if is_for_primary(backend) && !self.live.hosts.get(backend.host).leads() {
                // What has not left by now does not leave: the session is told when the turn is over.
                return;
            }
            backend.conn.flush();
            if !backend.conn.is_behind()
                && let Purpose::Session { client, .. } = backend.purpose
            {
                // The client waited for this.
                self.again.push_back(Target::Client(client));
            }
        }
        for _ in 0..READS_PER_TURN {
            if !self.read_backend(key) {
                return;
            }
        }
        self.again.push_back(Target::Backend(key));
    }

    /// Reads once and passes on what came. False when there is nothing more to do for now.
    fn read_backend(&mut self, key: Key) -> bool {
        let Some(backend) = self.backends.get_mut(key) else {
            return false;
        };
        if !backend.conn.may_read() {
            return false;
        }
        let owner = match backend.purpose {
            Purpose::Session { client, role, .. } if backend.login.is_none() => {
                Some((client, role))
            }
            Purpose::Idle if backend.login.is_none() => return self.read_idle(key),
            Purpose::Leaving => return self.read_farewell(key),
            Purpose::Session { .. } | Purpose::Idle | Purpose::Kill { .. } => None,
        };
        let Some((client, role)) = owner else {
            return self.read_login(key);
        };
        if self
            .clients
            .get(client)
            .is_some_and(|client| client.conn.is_behind())
        {
            // The client is slow: what the server sends waits in the server. The client's turn wakes this one.
            return false;
        }
        let Some(backend) = self.backends.get_mut(key) else {
            return false;
        };
        if !backend.received.is_empty() {
            return self.read_behind(key, client, role);
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        let received = backend.conn.read(&mut scratch);
        let more = match received {
            Received::Bytes(n) => {
                let input = scratch.get_mut(..n).unwrap_or_default();
                let consumed = self.pass_on(client, role, input);
                if let Some(backend) = self.backends.get_mut(key) {
                    backend
                        .received
                        .append(input.get(consumed..).unwrap_or_default(), &mut self.buffers);
                }
                self.pump_client(client);
                true
            }
            Received::Nothing => false,
            Received::Closed => {
                self.lost(key, client, role);
                false
            }
        };
        self.scratch = scratch;
        more
    }

    /// Nobody has asked an idle connection for anything: whatever comes is a farewell.
    fn read_idle(&mut self, key: Key) -> bool {
        let Some(backend) = self.backends.get_mut(key) else {
            return false;
        };
        let mut scratch = std::mem::take(&mut self.scratch);
        let received = backend.conn.read(&mut scratch);
        self.scratch = scratch;
        let host = backend.host;
        if received != Received::Nothing {
            if let Some(shelf) = self.shelves.get_mut(host.index()) {
                shelf.remove(key);
                let count = shelf.len();
                if let Some(gate) = self.gate(host) {
                    gate.set_idle(self.index, count);
                }
            }
            self.drop_backend(key, Parting::Silent);
        }
        false
    }

    /// Reads behind a packet head that was left for want of the rest.
    #[cold]
    fn read_behind(&mut self, key: Key, client: Key, role: Role) -> bool {
        let Some(backend) = self.backends.get_mut(key) else {
            return false;
        };
        let mut held = std::mem::take(&mut backend.received);
        let space = held.space(super::SCRATCH, &mut self.buffers);
        match backend.conn.read(space) {
            Received::Bytes(n) => {
                held.filled_more(n);
                let consumed = self.pass_on(client, role, held.filled_mut());
                held.consume(consumed);
                held.release(&mut self.buffers);
                if let Some(backend) = self.backends.get_mut(key) {
                    backend.received = held;
                }
                self.pump_client(client);
                true
            }
            Received::Nothing => {
                backend.received = held;
                false
            }
            Received::Closed => {
                self.lost(key, client, role);
                false
            }
        }
    }

    fn pass_on(&mut self, client: Key, role: Role, input: &mut [u8]) -> usize {
        let n = input.len();
        self.tell_of(client, input, |session, cx, input, bytes, out| {
            session.on_backend(cx, role, input, bytes, out)
        })
        .unwrap_or(n)
    }

    #[cold]
    pub(super) fn connect_timed_out(&mut self, key: Key) {
        let Some(backend) = self.backends.get(key) else {
            return;
        };
        let still_waits =
            backend.login.is_some() || matches!(backend.purpose, Purpose::Kill { .. });
        if self.awaits_kill(key) {
            let pause = self.live.snapshot.config.pool.connect_timeout;
            self.timers.add(self.now + pause, Timer::Connect(key));
        } else if still_waits {
            let why = format!(
                "{} did not answer the log-in within connect_timeout",
                self.host_name(key)
            );
            self.login_failed(key, Failure::Unreachable(why));
        }
    }

    #[cold]
    pub(super) fn login_failed(&mut self, key: Key, mut failure: Failure) {
        let Some(mut backend) = self.backends.remove(key) else {
            return;
        };
        let denied = matches!(&failure, Failure::Refused { code: 1045, .. });
        if denied && let Some(upstream) = backend.login.as_ref().and_then(|l| l.by_next_password())
        {
            match self.connect(backend.host, backend.purpose, upstream) {
                Ok(next) => {
                    // In the place of this one, also in what is counted.
                    if let Some(new) = self.backends.get_mut(next) {
                        new.is_counted = backend.is_counted;
                        new.made = backend.made.take();
                    }
                    self.watch.replace(key, next);
                    return self.replace_backend(backend.purpose, next);
                }
                Err(other) => failure = other,
            }
        }
        if let Failure::Refused { code, message, .. } = &failure
            && backend.login.is_some()
        {
            self.tell_refusal(backend.host, *code, message);
        }
        if backend.is_counted {
            self.uncount_backend(backend.host);
        }
        if backend.login.is_some() && matches!(failure, Failure::Unreachable(_)) {
            self.note_opening(backend.host, false, backend.begun);
        }
        match backend.purpose {
            // Long after its log-in.
            Purpose::Leaving => {}
            Purpose::Kill {
                thread_id, sent, ..
            } => {
                log::warn!("could not kill statement {thread_id}: {failure:?}");
                self.kill_failed(key, sent);
            }
            Purpose::Idle => {
                // Who is refused is not to ask twice a second.
                self.warm_after = self.now + super::warm::PAUSE;
                log::debug!(
                    "an idle connection to {} could not be opened: {failure:?}",
                    self.address(backend.host)
                );
            }
            Purpose::Session { client, role, .. } => {
                if let Some(owner) = self.clients.get_mut(client) {
                    owner.backends[role as usize] = None;
                }
                self.open_failed(client, role, backend.host, failure);
            }
        }
    }

    /// A server has refused the log-in of an account of the configuration, which its client has got right: operators hear of it, once in
    /// a while.
    fn tell_refusal(&mut self, host: HostId, code: u16, message: &str) {
        const PAUSE: Duration = Duration::from_secs(60);
        if self.now >= self.refusals_after {
            self.refusals_after = self.now + PAUSE;
            let text = format!("{} refuses a log-in: {code} {message}", self.address(host));
            self.shared.notices.tell("log-in", text);
        }
    }

    fn replace_backend(&mut self, purpose: Purpose, next: Key) {
        if let Purpose::Session { client, role, .. } = purpose
            && let Some(owner) = self.clients.get_mut(client)
        {
            owner.backends[role as usize] = Some(next);
        }
    }

    #[cold]
    fn lost(&mut self, key: Key, client: Key, role: Role) {
        if let (Some(backend), Some(owner)) = (self.backends.get(key), self.clients.get_mut(client))
            && owner.session.may_move(role)
            && backend.conn.since_last_sent() >= Some(CUT_AFTER)
        {
            owner.cut_at = Some(backend.host);
            owner.session.ask_first();
        }
        if let Some(backend) = self.backends.get(key) {
            self.ask_for_look(backend.host);
        }
        self.drop_backend(key, Parting::Silent);
        if let Some(owner) = self.clients.get_mut(client) {
            owner.backends[role as usize] = None;
        }
        self.tell(client, |session, cx, bytes, out| {
            session.on_backend_lost(cx, role, "the server closed the connection", bytes, out);
        });
        self.pump_client(client);
    }

    #[cold]
    pub(super) fn drop_backend(&mut self, key: Key, parting: Parting) {
        if parting == Parting::Quit && self.take_leave(key) {
            return;
        }
        if let Some(backend) = self.backends.remove(key) {
            if let Purpose::Kill { sent, .. } = backend.purpose {
                self.kill_failed(key, sent);
            }
            self.give_up(backend, parting);
        }
    }

    /// Says goodbye and waits for the server to close. False for a connection to which nothing can be said.
    fn take_leave(&mut self, key: Key) -> bool {
        let Some(backend) = self.backends.get_mut(key) else {
            return false;
        };
        let may_speak = backend.login.is_none() && !backend.conn.is_behind();
        if !backend.is_counted || !may_speak || backend.conn.peer_closed() {
            return false;
        }
        backend.conn.write(&[1, 0, 0, 0, 1]);
        backend.purpose = Purpose::Leaving;
        backend.known = None;
        self.timers.add(self.now + LEAVE, Timer::Leave(key));
        true
    }

    /// Reads on until the server has closed.
    fn read_farewell(&mut self, key: Key) -> bool {
        let Some(backend) = self.backends.get_mut(key) else {
            return false;
        };
        let mut scratch = std::mem::take(&mut self.scratch);
        let received = backend.conn.read(&mut scratch);
        self.scratch = scratch;
        match received {
            Received::Bytes(_) => true,
            Received::Nothing => false,
            Received::Closed => {
                self.drop_backend(key, Parting::Silent);
                false
            }
        }
    }

    /// The server has had its time to close.
    pub(super) fn leave_timed_out(&mut self, key: Key) {
        if matches!(
            self.backends.get(key).map(|backend| backend.purpose),
            Some(Purpose::Leaving)
        ) {
            self.drop_backend(key, Parting::Silent);
        }
    }

    /// Closes a connection that has been taken out.
    pub(super) fn give_up(&mut self, mut backend: Backend, parting: Parting) {
        let may_speak = backend.login.is_none() && !backend.conn.is_behind();
        if may_speak && parting == Parting::Quit {
            backend.conn.write(&[1, 0, 0, 0, 1]);
        }
        backend.conn.close();
        if backend.is_counted {
            self.uncount_backend(backend.host);
        }
    }

    pub(super) fn host_name(&self, key: Key) -> String {
        self.backends
            .get(key)
            .map_or_else(String::new, |backend| self.address(backend.host))
    }

    pub(super) fn address(&self, host: HostId) -> String {
        self.live
            .snapshot
            .hosts
            .get(host.index())
            .map_or_else(String::new, |entry| entry.address.to_string())
    }
}

/// Whether a session's statements for the primary leave on this connection.
fn is_for_primary(backend: &Backend) -> bool {
    backend.login.is_none()
        && matches!(
            backend.purpose,
            Purpose::Session {
                role: Role::Primary,
                ..
            }
        )
}

/// The want is this process's or machine's: descriptors, memory, ports.
pub fn is_exhaustion(error: &std::io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM | libc::EADDRNOTAVAIL)
    )
}
