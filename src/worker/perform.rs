//! Carrying out what a session asks for.

use super::backend::Purpose;
use super::client::Client;
use super::leaving::Farewell;
use super::side::KillWish;
use super::slots::Key;
use super::{Deferred, Killed, Live, Message, Worker};
use crate::config::Topology;
use crate::pool::HostId;
use crate::session::{Access, Output, Outputs, Parting, Role, Session, worker_of};

/// Pieces of a reply are put together up to this size.
const GATHERED_MAX: usize = 16 * 1024;

/// What carrying out has come to.
#[derive(Debug, Default)]
struct Tally {
    /// Bytes of what was written to the client, and to servers.
    to_client: usize,
    to_server: usize,
    /// Bytes of the client's that are done with. Ranges count from the first as the session saw it, so taking them away waits for the
    /// end.
    consumed: usize,
    /// The client was told something of Atlas's own.
    is_told: bool,
}

impl Worker {
    /// Carries out the outputs in order, and what the session has to do then. `input` are the bytes of the server that
    /// `ForwardToClient` refers to.
    pub(super) fn perform(&mut self, key: Key, input: &[u8]) {
        // Who owes something has at least said what it owes it for.
        if self.outputs.list.is_empty() && self.outputs.told.is_empty() {
            return;
        }
        let mut outputs = std::mem::take(&mut self.outputs);
        if !outputs.told.is_empty() {
            self.take_down(key, &mut outputs);
        }
        let mut tally = Tally::default();
        self.carry_out_all(key, input, &mut outputs, &mut tally);
        // Somebody waits for what has been written now, and nobody for the rest.
        if let Some(client) = self.clients.get_mut(key)
            && client.session.owes()
        {
            let texts = &mut self.texts;
            client.session.afterwards(self.moment, texts, &mut outputs);
            self.carry_out_all(key, input, &mut outputs, &mut tally);
        }
        if !outputs.done.is_empty() {
            let session = self.clients.get(key).map(|client| &client.session);
            let account = session.and_then(Session::account_logged_in);
            self.count(&outputs.done, account);
        }
        outputs.clear();
        self.outputs = outputs;
        let Tally {
            mut to_client,
            to_server,
            consumed,
            ..
        } = tally;
        if let Some(client) = self.clients.get_mut(key) {
            client.received.consume(consumed);
            if let Some((of, _)) = client.leg_of() {
                if to_client > 0 {
                    self.deferred.push_back(Deferred::Legs { client: of });
                }
                to_client = 0;
            }
        }
        self.count_bytes(to_client, to_server);
        let is_over = |client: &Client| client.session.is_closed();
        if self.clients.get(key).is_some_and(is_over) {
            self.finish_client(key);
        }
    }

    fn carry_out_all(&mut self, key: Key, input: &[u8], outputs: &mut Outputs, tally: &mut Tally) {
        let mut list = outputs.list.drain(..);
        while let Some(output) = list.next() {
            match output {
                Output::ForwardToBackend {
                    role,
                    range,
                    access,
                } => {
                    let Some(client) = self.clients.get(key) else {
                        break;
                    };
                    let backend = client.backends[role as usize]
                        .and_then(|backend_key| self.backends.get_mut(backend_key));
                    let Some(backend) = backend else {
                        continue;
                    };
                    let host = backend.host;
                    if !may_have(&self.live, host, access) {
                        if access == Access::Rest {
                            self.refuse_rest(key, host);
                            continue;
                        }
                        self.refuse_write(key, host);
                        break;
                    }
                    tally.to_server += range.len();
                    backend
                        .conn
                        .write(client.received.filled().get(range).unwrap_or_default());
                }
                Output::ForwardToClient(range) => {
                    tally.to_client += range.len();
                    let has_more = list.as_slice().iter().any(Output::is_for_client);
                    self.write_to_client(key, input.get(range).unwrap_or_default(), has_more);
                }
                Output::SendToBackend {
                    role,
                    range,
                    access,
                } => {
                    let Some(backend_key) = self.backend_of(key, role) else {
                        continue;
                    };
                    if !self.may_leave(key, backend_key, access) {
                        break;
                    }
                    tally.to_server += range.len();
                    if let Some(backend) = self.backends.get_mut(backend_key) {
                        backend
                            .conn
                            .write(outputs.arena.get(range).unwrap_or_default());
                    }
                }
                Output::SendToClient(range) => {
                    tally.to_client += range.len();
                    tally.is_told = true;
                    let has_more = list.as_slice().iter().any(Output::is_for_client);
                    let bytes = outputs.arena.get(range).unwrap_or_default();
                    self.write_to_client(key, bytes, has_more);
                }
                Output::Consume(n) => tally.consumed += n,
                Output::Release { role, known } => self.take_back(key, role, known),
                other => {
                    self.write_gathered(key);
                    self.carry_out(key, other, &outputs.arena, tally);
                }
            }
        }
        drop(list);
        self.write_gathered(key);
    }

    fn write_to_client(&mut self, key: Key, bytes: &[u8], has_more: bool) {
        if has_more || !self.gathered.is_empty() {
            return self.gather(key, bytes, has_more);
        }
        if let Some(client) = self.clients.get_mut(key) {
            client.conn.write(bytes);
        }
    }

    /// A reply that is in pieces, some the server's and some Atlas's own, is put together: to copy small ones costs less than a
    /// system call for each.
    #[inline(never)]
    fn gather(&mut self, key: Key, bytes: &[u8], has_more: bool) {
        if self.gathered.len() + bytes.len() > GATHERED_MAX {
            self.write_gathered(key);
        }
        let is_small = bytes.len() <= GATHERED_MAX;
        if is_small {
            self.gathered.extend_from_slice(bytes);
        } else if let Some(client) = self.clients.get_mut(key) {
            client.conn.write(bytes);
        }
        if !has_more {
            self.write_gathered(key);
        }
    }

    fn write_gathered(&mut self, key: Key) {
        if !self.gathered.is_empty() {
            if let Some(client) = self.clients.get_mut(key) {
                client.conn.write(&self.gathered);
            }
            self.gathered.clear();
        }
    }

    /// What a statement on a connection that is there does not ask for.
    #[inline(never)]
    fn carry_out(&mut self, key: Key, output: Output, arena: &[u8], tally: &mut Tally) {
        match output {
            // These are carried out where they come up.
            Output::ForwardToBackend { .. }
            | Output::ForwardToClient(_)
            | Output::SendToBackend { .. }
            | Output::SendToClient(_)
            | Output::Consume(_)
            | Output::Release { .. } => {}
            Output::Open { role, avoid } => self.open(key, role, avoid),
            Output::OnCall { role } => self.note_on_call(key, role),
            Output::CloseBackend { role, parting } => {
                self.close_backend_of(key, role, parting);
            }
            Output::StartTls => self.start_client_tls(key, &mut tally.consumed),
            Output::Denied => self.put_denial_off(key),
            Output::LoggedIn(account) => {
                log::trace!("a client logged in as account {account}");
            }
            Output::DefaultsChanged { role } => self.retire_connections(key, role),
            Output::Unseen => {
                log::info!(
                    "client {} keeps its server connection: a routine or trigger changed session state that only it has",
                    self.clients
                        .get(key)
                        .map_or(0, |client| client.session.id())
                );
            }
            Output::Note(line) => self.note(&line),
            Output::Cut { role } => {
                let host = self
                    .backend_of(key, role)
                    .and_then(|key| self.backends.get(key));
                let host = host.map(|backend| backend.host);
                if let Some(client) = self.clients.get_mut(key) {
                    client.cut_at = host;
                }
            }
            Output::PrimaryIsReadOnly => self.doubt_primary(key),
            Output::BeginLeg { leg, range } => {
                let bytes = arena.get(range).unwrap_or_default();
                self.begin_leg(key, leg, bytes);
            }
            Output::TellLeg { leg, range } => {
                let bytes = arena.get(range).unwrap_or_default();
                self.tell_leg(key, leg, bytes);
            }
            Output::Across(xid, turn) => self.note_turn(key, xid, turn),
            Output::EndLeg(leg) => {
                let client = self.clients.get_mut(key);
                if let Some(leg) = client.and_then(|client| client.forget_leg(leg)) {
                    self.deferred.push_back(Deferred::EndLeg { leg });
                }
            }
            Output::EndLegs => {
                let legs = self.clients.get_mut(key).map(Client::take_legs);
                for leg in legs.into_iter().flatten() {
                    self.learn_from(key, leg);
                    self.deferred.push_back(Deferred::EndLeg { leg });
                }
            }
            Output::CloseClient => {
                // The turn that follows sees that the session is over.
                if let Some(client) = self.clients.get_mut(key)
                    && tally.is_told
                    && client.farewell == Farewell::None
                {
                    client.farewell = Farewell::Due;
                }
            }
            Output::Kill { id, query_only } => self.kill(key, id, query_only),
            Output::Alarm(at) => self.set_alarm(key, at),
            Output::Interrupt { role, thread_id } => self.interrupt(key, role, thread_id),
            Output::CallOff { role } => self.call_off(key, role),
            Output::Spare { role } => self.spare(key, role),
            Output::InterruptLegs => {
                let legs = self.clients.get(key).map_or_else(Vec::new, Client::legs);
                self.kill_legs(&legs);
            }
        }
    }

    #[cold]
    fn refuse_write(&mut self, client: Key, host: HostId) {
        self.deferred
            .push_back(Deferred::WriteRefused { client, host });
    }

    #[cold]
    fn refuse_rest(&mut self, client: Key, host: HostId) {
        self.deferred
            .push_back(Deferred::RestRefused { client, host });
    }

    /// Whether what is about to be sent may leave on this connection; a write that may not is refused.
    fn may_leave(&mut self, client: Key, backend: Key, access: Access) -> bool {
        let Some(backend) = self.backends.get(backend) else {
            return true;
        };
        let host = backend.host;
        if may_have(&self.live, host, access) {
            return true;
        }
        self.refuse_write(client, host);
        false
    }

    /// The host of a session's primary connection refuses writes: none is tried there before somebody has looked.
    #[cold]
    fn doubt_primary(&self, key: Key) {
        let backend = self
            .backend_of(key, Role::Primary)
            .and_then(|key| self.backends.get(key));
        if let Some(backend) = backend
            && self.live.hosts.get(backend.host).standing.set_doubted(true)
        {
            self.ask_for_look(backend.host);
        }
    }

    /// Something was seen of a host that may mean another role, where roles are the servers': it is looked at now.
    pub(super) fn ask_for_look(&self, host: HostId) {
        let entry = self.live.snapshot.hosts.get(host.index());
        let group = entry.and_then(|entry| self.live.snapshot.groups.get(entry.group));
        if group.is_some_and(|group| group.config.topology == Topology::Follow)
            && let Some(gate) = self.gate(host)
        {
            gate.bell.ring();
        }
    }

    /// Sessions that begin from here on get connections that begin with them, on all workers.
    #[cold]
    fn retire_connections(&self, key: Key, role: Role) {
        let backend = self
            .backend_of(key, role)
            .and_then(|key| self.backends.get(key));
        if let Some(backend) = backend {
            self.live.hosts.get(backend.host).retire_connections();
        }
    }

    #[cold]
    fn close_backend_of(&mut self, key: Key, role: Role, parting: Parting) {
        let Some(backend_key) = self.backend_of(key, role) else {
            return;
        };
        if parting == Parting::Kill
            && let Some(Purpose::Session { thread_id, .. }) =
                self.backends.get(backend_key).map(|b| b.purpose)
        {
            self.kill_on_server(key, role, thread_id, KillWish::Connection);
        }
        if let Some(client) = self.clients.get_mut(key) {
            client.backends[role as usize] = None;
        }
        self.drop_backend(backend_key, parting);
    }

    #[cold]
    fn start_client_tls(&mut self, key: Key, consumed: &mut usize) {
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        let Some(Ok(session)) = self
            .live
            .tls
            .clients
            .as_ref()
            .map(super::tls::ServerTls::session)
        else {
            log::error!("a client asked for TLS but there is no usable certificate");
            return self.client_gone(key);
        };
        // What came behind the request belongs to TLS, and is never read as a command.
        let packet = client.received.filled();
        let own = crate::wire::Header::parse(packet).map_or(packet.len(), |header| header.len + 4);
        let rest = packet.get(own..).unwrap_or_default().to_vec();
        *consumed = packet.len();
        client.conn.start_tls(session, &rest);
    }

    #[cold]
    fn kill(&mut self, key: Key, id: u32, query_only: bool) {
        let Some(client) = self.clients.get(key) else {
            return;
        };
        let account = client.session.account_index();
        let worker = worker_of(id);
        if worker == self.index {
            let killed = self.kill_client(id, query_only, Some(account));
            self.deferred.push_back(Deferred::KillDone {
                client: key,
                killed,
            });
            return;
        }
        let asker = (self.index, key);
        let sent = self.shared.mailboxes.get(worker).map(|mailbox| {
            mailbox.send(Message::Kill {
                id,
                query_only,
                asker,
                account,
            })
        });
        if !matches!(sent, Some(Ok(()))) {
            self.deferred.push_back(Deferred::KillDone {
                client: key,
                killed: Killed::Unknown,
            });
        }
    }
}

/// The last-moment check: a write leaves for its group's primary or not at all.
fn may_have(live: &Live, host: HostId, access: Access) -> bool {
    access == Access::Read || live.hosts.get(host).leads()
}
