//! Carrying a server connection's log-in: its packets to and from `session::Upstream`, and TLS in between.

use super::backend::Purpose;
use super::conn::Received;
use super::slots::Key;
use super::{Target, Worker};
use crate::config::HostAddress;
use crate::route::Role;
use crate::session::{Failure, Step};

impl Worker {
    /// Reads during a log-in, or on a side connection.
    pub(super) fn read_login(&mut self, key: Key) -> bool {
        let Some(backend) = self.backends.get_mut(key) else {
            return false;
        };
        let space = backend.received.space(0, &mut self.buffers);
        match backend.conn.read(space) {
            Received::Bytes(n) => backend.received.filled_more(n),
            Received::Nothing => {
                backend.received.release(&mut self.buffers);
                if backend.conn.is_broken() {
                    return false;
                }
                return self.after_backend_handshake(key);
            }
            Received::Closed => {
                let name = self.host_name(key);
                let why = match self.backends.get(key).and_then(|b| b.conn.fault()) {
                    Some(fault) => format!("{name}: {fault}"),
                    None => format!("{name} closed the connection during log-in"),
                };
                self.login_failed(key, Failure::Unreachable(why));
                return false;
            }
        }
        self.step_login(key)
    }

    fn after_backend_handshake(&mut self, key: Key) -> bool {
        let Some(backend) = self.backends.get_mut(key) else {
            return false;
        };
        let may_read = backend.conn.may_read();
        let Some(login) = &mut backend.login else {
            return may_read;
        };
        if backend.conn.is_handshaking() || !login.awaits_tls() {
            return may_read;
        }
        let step = login.tls_ready();
        self.take_step(key, step);
        self.backends
            .get(key)
            .is_some_and(|backend| backend.conn.may_read())
    }

    fn step_login(&mut self, key: Key) -> bool {
        loop {
            let Some(backend) = self.backends.get_mut(key) else {
                return false;
            };
            let Some(login) = &mut backend.login else {
                // Through: an idle connection owns no buffer. What has come behind the log-in answers a KILL, if one was sent.
                let has_answer = !backend.received.filled().is_empty();
                backend.received.release(&mut self.buffers);
                return !has_answer || self.side_connection(key);
            };
            let (consumed, step) = login.handle(backend.received.filled());
            backend.received.consume(consumed);
            let waits = step == Step::Wait && consumed == 0;
            self.take_step(key, step);
            if waits {
                break;
            }
        }
        if let Some(backend) = self.backends.get_mut(key) {
            backend.received.release(&mut self.buffers);
        }
        true
    }

    fn take_step(&mut self, key: Key, step: Step) {
        let host_name = self.host_name(key);
        let Some(backend) = self.backends.get_mut(key) else {
            return;
        };
        match step {
            Step::Wait => {}
            Step::Send(packets) => backend.conn.write(&packets),
            Step::SendThenTls(packets) => {
                backend.conn.write(&packets);
                self.start_backend_tls(key);
            }
            Step::Ready(ready) => {
                backend.login = None;
                let (host, begun) = (backend.host, backend.begun);
                self.note_opening(host, true, begun);
                let Some(backend) = self.backends.get_mut(key) else {
                    return;
                };
                let made = backend.made.take();
                match &mut backend.purpose {
                    Purpose::Leaving => {}
                    Purpose::Idle => {
                        if let Some(made) = made {
                            self.set_idle(key, self.known_of(&made, host, &ready));
                        }
                    }
                    Purpose::Session {
                        client,
                        role,
                        thread_id,
                    } => {
                        *thread_id = ready.thread_id;
                        let (client, role) = (*client, *role);
                        if let Some(client) = self.clients.get_mut(client) {
                            client.waiting_since = None;
                            if role == Role::Replica && client.cut_at.take() == Some(host) {
                                client.session.note_cut(&host_name);
                            }
                        }
                        let Some(made) = made else {
                            return;
                        };
                        let mut known = self.known_of(&made, host, &ready);
                        self.serials += 1;
                        known.set_serial(self.serials);
                        self.tell(client, |session, cx, _, out| {
                            session.note_acquired(cx.now);
                            session.on_backend_ready(role, known, out)
                        });
                        self.pump_client(client);
                    }
                    Purpose::Kill { .. } => self.say_kill(key),
                }
            }
            Step::Failed(Failure::Unreachable(why)) => {
                self.login_failed(key, Failure::Unreachable(format!("{host_name}: {why}")));
            }
            Step::Failed(failure) => self.login_failed(key, failure),
        }
    }

    fn start_backend_tls(&mut self, key: Key) {
        let Some(backend) = self.backends.get_mut(key) else {
            return;
        };
        let Some(entry) = self.live.snapshot.hosts.get(backend.host.index()) else {
            return;
        };
        let name = match &entry.address {
            HostAddress::Name(name, _) => name.clone(),
            HostAddress::Ip(address) => address.ip().to_string(),
            HostAddress::Unix(_) => "localhost".to_owned(),
        };
        let session = match self.live.tls.backends.get(entry.group) {
            Some(Some(tls)) => tls.session(&name).map_err(|error| error.to_string()),
            _ => Err("no TLS is configured for the group".to_owned()),
        };
        match session {
            Ok(session) => {
                let rest = backend.received.filled().to_vec();
                backend.received.consume(rest.len());
                backend.conn.start_tls(session, &rest);
                // The handshake's first bytes leave with the first look at the socket.
                self.again.push_back(Target::Backend(key));
            }
            Err(why) => self.login_failed(key, Failure::Unreachable(format!("TLS: {why}"))),
        }
    }
}
