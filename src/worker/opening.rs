//! Opening server connections: which host, whether at once or in line, the socket, and what becomes of a failure.

use std::time::{Duration, Instant};

use mio::net::{TcpStream, UnixStream};

use super::backend::{Backend, Made, Purpose, is_exhaustion};
use super::buffer::Buffer;
use super::conn::{Conn, Socket};
use super::lender::choose;
use super::slots::Key;
use super::timer::Timer;
use super::warm::Template;
use super::{Deferred, Target, Worker};
use crate::config::{BackendTlsMode, HostAddress};
use crate::pool::HostId;
use crate::session::{Failure, Role, TlsWish, Upstream};

/// While the primary does not answer it is tried again after so long, up to `primary_wait`.
const RETRY: Duration = Duration::from_millis(200);

impl Worker {
    /// Gets a server connection for a client: an idle one, a new one, or one that becomes free.
    pub(super) fn open(&mut self, key: Key, role: Role, avoid: Option<HostId>) {
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        let group = client.session.group_index(&self.live.snapshot);
        // A read that was cut off looks whether the server is still there, so no idle connection will do.
        let hosts = &self.live.hosts;
        // Of one that checks do not reach it is known already.
        let same = client
            .cut_at
            .filter(|host| role == Role::Replica && hosts.get(*host).is_up());
        if same.is_none() {
            client.cut_at = None;
        }
        let chosen = client.chosen.take().filter(|_| role == Role::Replica);
        let host = same
            .or(chosen)
            .or_else(|| choose(&self.live, &mut self.balances, self.now, group, role, avoid));
        let Some(host) = host else {
            if role == Role::Primary && self.may_wait_longer(key) {
                self.timers
                    .add(Instant::now() + RETRY, Timer::Reopen(key, false));
                return;
            }
            self.deferred.push_back(Deferred::OpenFailed {
                client: key,
                role,
                host: None,
                failure: Failure::NoHost,
            });
            return;
        };
        // A primary that is down is tried by one at a time: failing would use up the rate for all.
        let is_tried = |gate: &super::Gate| gate.open() > 0;
        if role == Role::Primary
            && !self.live.hosts.get(host).is_up()
            && self.gate(host).is_some_and(is_tried)
        {
            let why = format!("{} does not answer", self.address(host));
            return self.open_failed(key, role, host, Failure::Unreachable(why));
        }
        let may_share = same.is_none() && self.clients.get(key).is_some_and(|c| c.session.shares());
        // An idle one comes sooner than a new one, also from another worker.
        let at_hand = |gate: &super::Gate| {
            may_share && (self.has_idle(host) || gate.who_has_idle(self.index).is_some())
        };
        let is_at_hand = self.gate(host).is_some_and(at_hand);
        if !is_at_hand && let Some(stopped) = self.is_stopped(host, role) {
            return self.turn_request_away(key, role, host, stopped);
        }
        let may_open = !is_at_hand && self.gate(host).is_some_and(|gate| gate.try_open(self.now));
        if may_open {
            self.open_counted(key, role, host);
        } else {
            self.wait_in_line(key, role, host);
        }
    }

    /// Opens a connection that has been counted.
    pub(super) fn open_counted(&mut self, key: Key, role: Role, host: HostId) {
        let (tls, local) = self.transport(host);
        let Some(client) = self.clients.get(key) else {
            return self.uncount_backend(host);
        };
        let (wish, credentials) = client.session.wish(role, &self.live.snapshot, tls, local);
        let made = Made {
            shape: client.session.shape(role, &self.live.snapshot),
            schema: wish.schema.clone(),
        };
        if client.session.shares()
            && let Some(gate) = self.gate(host)
        {
            gate.set_template(Template {
                wish: wish.clone(),
                credentials: credentials.clone(),
                shape: made.shape,
            });
        }
        let purpose = Purpose::Session {
            client: key,
            role,
            thread_id: 0,
        };
        let upstream = Upstream::new(wish, credentials, 0);
        match self.connect(host, purpose, upstream) {
            Ok(backend_key) => {
                if let Some(backend) = self.backends.get_mut(backend_key) {
                    backend.is_counted = true;
                    backend.made = Some(Box::new(made));
                }
                if let Some(client) = self.clients.get_mut(key) {
                    client.backends[role as usize] = Some(backend_key);
                }
            }
            Err(failure) => {
                self.uncount_backend(host);
                if matches!(failure, Failure::Unreachable(_)) {
                    self.note_opening(host, false, self.now);
                }
                self.open_failed(key, role, host, failure);
            }
        }
    }

    /// Whether connections to this host are encrypted, and whether they leave the machine.
    pub(super) fn transport(&self, host: HostId) -> (TlsWish, bool) {
        let Some(entry) = self.live.snapshot.hosts.get(host.index()) else {
            return (TlsWish::No, false);
        };
        let groups = &self.live.snapshot.groups;
        let mode = groups.get(entry.group).map(|group| group.config.tls.mode);
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
            .live
            .snapshot
            .hosts
            .get(host.index())
            .ok_or(Failure::NoHost)?;
        let socket = match &entry.address {
            HostAddress::Unix(path) => UnixStream::connect(path).map(Socket::Unix),
            HostAddress::Ip(address) => TcpStream::connect(*address).map(Socket::Tcp),
            // Names are resolved by the control thread: resolving blocks.
            HostAddress::Name(..) => match self.live.hosts.get(host).address() {
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
        let lifetime = self.lifetime();
        let key = self.backends.insert_with(|_| Backend {
            conn: Conn::new(socket),
            host,
            purpose,
            login: Some(Box::new(upstream)),
            received: Buffer::default(),
            begun: self.now,
            connected: false,
            is_counted: false,
            is_condemned: false,
            epoch: self.live.hosts.get(host).epoch(),
            expires: self.moment.saturating_add(lifetime),
            made: None,
            known: None,
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
            Instant::now() + self.live.snapshot.config.pool.connect_timeout,
            Timer::Connect(key),
        );
        Ok(key)
    }

    /// A tenth less than `max_lifetime` at most, so that connections opened together are not replaced together.
    pub(super) fn lifetime(&self) -> Duration {
        let max = self.live.snapshot.config.pool.max_lifetime;
        let mut random = [0];
        // Without random bytes they all live for as long as they may.
        let _ = aws_lc_rs::rand::fill(&mut random);
        max.saturating_sub(max / 10 * u32::from(random[0]) / 255)
    }

    /// A connection could not be opened: the primary is tried again for a while, a replica is passed over.
    pub(super) fn open_failed(&mut self, client: Key, role: Role, host: HostId, failure: Failure) {
        let unreachable = matches!(failure, Failure::Unreachable(_));
        if unreachable {
            self.ask_for_look(host);
        }
        if unreachable && role == Role::Replica && self.live.hosts.get(host).set_up(false) {
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

    pub(super) fn may_wait_longer(&mut self, client: Key) -> bool {
        let Some(owner) = self.clients.get_mut(client) else {
            return false;
        };
        let group = owner.session.group_index(&self.live.snapshot);
        let groups = &self.live.snapshot.groups;
        let wait = groups
            .get(group)
            .map_or(Duration::ZERO, |group| group.config.primary_wait);
        let now = Instant::now();
        let since = *owner.waiting_since.get_or_insert(now);
        now.saturating_duration_since(since) + RETRY <= wait
    }

    pub(super) fn reopen(&mut self, client: Key, role: Role) {
        if self.clients.get(client).is_some_and(|owner| {
            owner.backends[role as usize].is_none()
                && owner.tickets[role as usize] == 0
                && owner.session.waits_for(role)
        }) {
            self.open(client, role, None);
        }
    }
}
