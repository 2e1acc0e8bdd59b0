//! Server connections: opening them, reading what servers send, losing them. Log-ins are in `backend_login`, the
//! connections that kill in `side`.

use std::time::{Duration, Instant};

use mio::net::{TcpStream, UnixStream};

use super::buffer::Buffer;
use super::conn::{Conn, Received, Socket};
use super::slots::Key;
use super::timer::Timer;
use super::{Deferred, READS_PER_TURN, Target, Worker};
use crate::config::{BackendTlsMode, HostAddress};
use crate::pool::HostId;
use crate::route::Candidate;
use crate::session::{Failure, Parting, Role, TlsWish, Upstream};

/// While the primary does not answer it is tried again after so long, up to `primary_wait`.
const RETRY: Duration = Duration::from_millis(200);

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
    connected: bool,
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
    /// Opens a server connection for a client.
    pub(super) fn open(&mut self, key: Key, role: Role, avoid: Option<HostId>) {
        let Some(client) = self.clients.get(key) else {
            return;
        };
        let group = client.session.group_index(&self.shared.snapshot);
        let same = client.cut_at.filter(|_| role == Role::Replica);
        let Some(host) = same.or_else(|| self.choose(group, role, avoid)) else {
            self.deferred.push_back(Deferred::OpenFailed {
                client: key,
                role,
                host: None,
                failure: Failure::NoHost,
            });
            return;
        };
        let (tls, local) = self.transport(host);
        let Some(client) = self.clients.get(key) else {
            return;
        };
        let (wish, credentials) = client.session.wish(role, &self.shared.snapshot, tls, local);
        let purpose = Purpose::Session {
            client: key,
            role,
            thread_id: 0,
        };
        let upstream = Upstream::new(wish, credentials, 0);
        match self.connect(host, purpose, upstream) {
            Ok(backend) => {
                if let Some(client) = self.clients.get_mut(key) {
                    client.backends[role as usize] = Some(backend);
                }
            }
            Err(failure) => self.open_failed(key, role, host, failure),
        }
    }

    fn choose(&mut self, group: usize, role: Role, avoid: Option<HostId>) -> Option<HostId> {
        let members = self.shared.snapshot.groups.get(group)?;
        match role {
            Role::Primary => Some(members.primary),
            Role::Replica => {
                let hosts = &self.shared.hosts;
                let candidates = members
                    .replicas
                    .iter()
                    .filter(|(host, _)| Some(*host) != avoid && hosts.get(*host).may_serve())
                    .map(|(host, weight)| Candidate {
                        host: *host,
                        weight: weight.saturating_mul(hosts.get(*host).share()),
                    });
                self.balances.get_mut(group)?.pick(candidates)
            }
        }
    }

    /// Whether connections to this host are encrypted, and whether they leave the machine.
    pub(super) fn transport(&self, host: HostId) -> (TlsWish, bool) {
        let Some(entry) = self.shared.snapshot.hosts.get(host.index()) else {
            return (TlsWish::No, false);
        };
        let mode = self
            .shared
            .snapshot
            .config
            .groups
            .get(entry.group)
            .map(|group| group.tls.mode);
        let tls = match mode {
            None | Some(BackendTlsMode::Off) => TlsWish::No,
            Some(BackendTlsMode::Preferred) => TlsWish::IfOffered,
            Some(
                BackendTlsMode::Required
                | BackendTlsMode::VerifyCa
                | BackendTlsMode::VerifyIdentity,
            ) => TlsWish::Required,
        };
        (tls, matches!(entry.address, HostAddress::Unix(_)))
    }

    pub(super) fn connect(
        &mut self,
        host: HostId,
        purpose: Purpose,
        upstream: Upstream,
    ) -> Result<Key, Failure> {
        let entry = self
            .shared
            .snapshot
            .hosts
            .get(host.index())
            .ok_or(Failure::NoHost)?;
        let socket = match &entry.address {
            HostAddress::Unix(path) => UnixStream::connect(path).map(Socket::Unix),
            HostAddress::Ip(address) => TcpStream::connect(*address).map(Socket::Tcp),
            // Names are resolved by the control thread: resolving blocks.
            HostAddress::Name(..) => match self.shared.hosts.get(host).address() {
                Some(address) => TcpStream::connect(address).map(Socket::Tcp),
                None => {
                    return Err(Failure::Unreachable(format!(
                        "the name of {} could not be resolved",
                        entry.address
                    )));
                }
            },
        };
        let socket = socket.map_err(|error| {
            let why = format!("cannot connect to {}: {error}", entry.address);
            if is_exhaustion(&error) {
                Failure::Exhausted(why)
            } else {
                Failure::Unreachable(why)
            }
        })?;
        socket.tune();
        let key = self.backends.insert_with(|_| Backend {
            conn: Conn::new(socket),
            host,
            purpose,
            login: Some(Box::new(upstream)),
            received: Buffer::default(),
            connected: false,
        });
        let token = Target::Backend(key).token();
        if let Some(backend) = self.backends.get_mut(key)
            && let Err(error) = backend.conn.register(&self.registry, token)
        {
            self.backends.remove(key);
            return Err(Failure::Exhausted(format!(
                "cannot watch a server connection: {error}"
            )));
        }
        self.timers.add(
            Instant::now() + self.shared.snapshot.config.pool.connect_timeout,
            Timer::Connect(key),
        );
        Ok(key)
    }

    pub(super) fn is_primary(&self, host: HostId) -> bool {
        self.shared
            .snapshot
            .groups
            .iter()
            .any(|group| group.primary == host)
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
            Purpose::Session { .. } | Purpose::Kill { .. } => None,
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

    /// Reads behind a packet head that was left for want of the rest.
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

    pub(super) fn connect_timed_out(&mut self, key: Key) {
        let Some(backend) = self.backends.get(key) else {
            return;
        };
        let still_waits =
            backend.login.is_some() || matches!(backend.purpose, Purpose::Kill { .. });
        if still_waits {
            let why = format!(
                "{} did not answer the log-in within connect_timeout",
                self.host_name(key)
            );
            self.login_failed(key, Failure::Unreachable(why));
        }
    }

    pub(super) fn login_failed(&mut self, key: Key, mut failure: Failure) {
        let Some(backend) = self.backends.remove(key) else {
            return;
        };
        let denied = matches!(&failure, Failure::Refused { code: 1045, .. });
        if denied && let Some(upstream) = backend.login.as_ref().and_then(|l| l.by_next_password())
        {
            match self.connect(backend.host, backend.purpose, upstream) {
                Ok(next) => return self.replace_backend(backend.purpose, next),
                Err(other) => failure = other,
            }
        }
        match backend.purpose {
            Purpose::Kill { thread_id, .. } => {
                log::warn!(
                    "could not kill statement {thread_id} of a client that is gone: {failure:?}"
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

    fn replace_backend(&mut self, purpose: Purpose, next: Key) {
        if let Purpose::Session { client, role, .. } = purpose
            && let Some(owner) = self.clients.get_mut(client)
        {
            owner.backends[role as usize] = Some(next);
        }
    }

    /// A connection could not be opened: the primary is tried again for a while, a replica is passed over.
    fn open_failed(&mut self, client: Key, role: Role, host: HostId, failure: Failure) {
        let unreachable = matches!(failure, Failure::Unreachable(_));
        if unreachable && role == Role::Replica && self.shared.hosts.get(host).set_up(false) {
            log::warn!(
                "replica {} is passed over until a check reaches it: {failure:?}",
                self.address(host)
            );
        }
        if unreachable && role == Role::Primary && self.may_wait_longer(client) {
            self.timers
                .add(Instant::now() + RETRY, Timer::Reopen(client, false));
            return;
        }
        if let Some(owner) = self.clients.get_mut(client) {
            owner.waiting_since = None;
            owner.cut_at = None;
        }
        self.deferred.push_back(Deferred::OpenFailed {
            client,
            role,
            host: Some(host),
            failure,
        });
    }

    fn may_wait_longer(&mut self, client: Key) -> bool {
        let Some(owner) = self.clients.get_mut(client) else {
            return false;
        };
        let group = owner.session.group_index(&self.shared.snapshot);
        let wait = self
            .shared
            .snapshot
            .config
            .groups
            .get(group)
            .map_or(Duration::ZERO, |group| group.primary_wait);
        let now = Instant::now();
        let since = *owner.waiting_since.get_or_insert(now);
        now.saturating_duration_since(since) + RETRY <= wait
    }

    pub(super) fn reopen(&mut self, client: Key, role: Role) {
        if self.clients.get(client).is_some_and(|owner| {
            owner.backends[role as usize].is_none() && !owner.session.is_closed()
        }) {
            self.open(client, role, None);
        }
    }

    fn lost(&mut self, key: Key, client: Key, role: Role) {
        if let (Some(backend), Some(owner)) = (self.backends.get(key), self.clients.get_mut(client))
            && owner.session.may_move(role)
            && backend.conn.since_last_sent() >= Some(CUT_AFTER)
        {
            owner.cut_at = Some(backend.host);
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

    pub(super) fn drop_backend(&mut self, key: Key, parting: Parting) {
        if let Some(mut backend) = self.backends.remove(key) {
            let may_speak = backend.login.is_none() && !backend.conn.is_behind();
            if may_speak && parting == Parting::Quit {
                backend.conn.write(&[1, 0, 0, 0, 1]);
            }
            backend.conn.close();
        }
    }

    pub(super) fn host_name(&self, key: Key) -> String {
        self.backends
            .get(key)
            .map_or_else(String::new, |backend| self.address(backend.host))
    }

    pub(super) fn address(&self, host: HostId) -> String {
        self.shared
            .snapshot
            .hosts
            .get(host.index())
            .map_or_else(String::new, |entry| entry.address.to_string())
    }
}

/// The want is this process's or machine's: descriptors, memory, ports.
pub fn is_exhaustion(error: &std::io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM | libc::EADDRNOTAVAIL)
    )
}
