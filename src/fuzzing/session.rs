//! The fuzz target of a whole session: any bytes of a client and of its servers, connections that open, fail, are lost, and
//! whatever else a worker tells a session, in any order. Nothing panics, and every output is one that a worker can carry out.

use super::worker::{Link, Worker};
use crate::pool::HostId;
use crate::session::{Failure, Role};
use crate::wire::{Capabilities, write_payload};

/// A byte of choices (server, framing, account, whether the log-in is the input's too), then operations: a byte that says what
/// happens, and what belongs to it.
pub fn session_bytes(data: &[u8]) {
    let Some((&choice, operations)) = data.split_first() else {
        return;
    };
    let mut worker = Worker::new(choice);
    if choice & 1 == 0 {
        worker.log_in(
            match choice & 0x82 {
                0 => b"app",
                2 => b"lone",
                _ => b"held",
            },
            choice & 32 != 0,
        );
    }
    let mut input = Input(operations);
    // Enough for any state to be reached; more is only slower.
    for _ in 0..200 {
        let Some(operation) = input.byte() else {
            break;
        };
        worker.operation(operation, &mut input);
        worker.pump();
        worker.sent.clear();
    }
    worker.tell(&mut [], |session, _, _, _, out| {
        session.on_client_closed(out)
    });
    assert!(worker.session.is_closed());
}

struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// A length, and as many bytes as there are of it.
    fn bytes(&mut self) -> &'a [u8] {
        let len = usize::from(self.byte().unwrap_or(0)).min(self.0.len());
        let (bytes, rest) = self.0.split_at(len);
        self.0 = rest;
        bytes
    }

    fn role(&mut self) -> Role {
        if self.byte().unwrap_or(0) & 1 == 0 {
            Role::Primary
        } else {
            Role::Replica
        }
    }
}

impl Worker {
    fn operation(&mut self, operation: u8, input: &mut Input<'_>) {
        match operation % 16 {
            0 => self.client.extend_from_slice(input.bytes()),
            // A command.
            1..=3 => {
                let payload = input.bytes();
                write_payload(&mut self.client, 0, payload);
            }
            // A query.
            4 | 5 => {
                let mut payload = vec![3];
                if self.capabilities.contains(Capabilities::QUERY_ATTRIBUTES) {
                    payload.extend([0, 1]);
                }
                payload.extend_from_slice(input.bytes());
                write_payload(&mut self.client, 0, &payload);
            }
            6 => {
                let role = input.role();
                let bytes = input.bytes();
                self.arrives(role, bytes);
            }
            // A packet in its turn.
            7..=9 => {
                let role = input.role();
                let payload = input.bytes();
                self.packet(role, payload);
            }
            10 => self.usual_reply(input.role(), input.byte().unwrap_or(0)),
            11 => {
                let role = input.role();
                self.opened(role);
            }
            12 => {
                let role = input.role();
                let kind = input.byte().unwrap_or(0);
                self.fails(role, kind);
            }
            13 => {
                let role = input.role();
                self.lost(role);
            }
            14 => self.other(input.byte().unwrap_or(0)),
            _ => {
                for role in Role::BOTH {
                    self.opened(role);
                }
            }
        }
    }

    /// What else a worker tells a session.
    fn other(&mut self, kind: u8) {
        if kind & 4 != 0 && self.watch.has_something() {
            match kind & 8 {
                0 => self.ring(),
                _ => self.answer_kill(kind >> 4),
            }
        } else if self.kill_asked {
            self.kill_asked = false;
            self.tell(&mut [], |session, _, _, _, out| match kind % 3 {
                0 => session.on_kill_done(true, out),
                1 => session.on_kill_done(false, out),
                _ => session.on_kill_refused(out),
            });
        } else if self.tls_asked {
            self.tls_asked = false;
            self.session.on_tls_ready();
        } else if kind & 2 == 0 {
            self.refuses_writes = kind & 1 != 0;
        } else {
            let role = if kind & 1 == 0 {
                Role::Primary
            } else {
                Role::Replica
            };
            self.tell(&mut [], |session, _, _, _, out| {
                session.on_reclaim(role, out);
            });
        }
    }

    fn usual_reply(&mut self, role: Role, kind: u8) {
        let eof = self.capabilities.contains(Capabilities::DEPRECATE_EOF);
        let status = if kind & 0x80 == 0 { 2 } else { 3 };
        let ok: &[u8] = &[0, 0, kind & 0x40, status, 0, 0, 0];
        let end_of_old: &[u8] = &[0xfe, 0, 0, status, 0];
        let end: &[u8] = if eof {
            &[0xfe, 0, 0, status, 0, 0, 0]
        } else {
            end_of_old
        };
        let column: &[u8] = b"\x03def\0\0\0\x01a\0\x0c\x3f\0\x01\0\0\0\x03\x81\0\0\0\0";
        let packets: &[&[u8]] = match kind % 6 {
            0 | 1 => &[ok],
            2 if eof => &[&[1], column, &[1, b'7'], end],
            2 => &[&[1], column, end_of_old, &[1, b'7'], end],
            3 => &[b"\xff\x7a\x04#42S02no such table"],
            4 => &[b"\xff\x1d\x04#08S01going away"],
            _ => &[&[0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]],
        };
        for payload in packets {
            self.packet(role, payload);
        }
    }

    fn fails(&mut self, role: Role, kind: u8) {
        if self.links[role as usize] != Link::Opening {
            return;
        }
        self.links[role as usize] = Link::Absent;
        let failure = match kind % 5 {
            0 => Failure::NoHost,
            1 => Failure::Unreachable("no".to_owned()),
            2 => Failure::Exhausted("no".to_owned()),
            3 => Failure::Refused {
                code: 1049,
                sqlstate: *b"42000",
                message: "no such schema".to_owned(),
            },
            _ => Failure::Incompatible,
        };
        let host = (kind & 0x80 != 0).then_some(HostId(role as u16));
        self.tell(&mut [], |session, cx, _, client, out| {
            session.on_backend_failed(cx, role, host, &failure, client, out);
        });
    }

    fn lost(&mut self, role: Role) {
        if self.links[role as usize] != Link::Ready {
            return;
        }
        self.links[role as usize] = Link::Absent;
        self.server[role as usize].clear();
        self.tell(&mut [], |session, cx, _, client, out| {
            session.on_backend_lost(cx, role, "the server closed the connection", client, out);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_pass() {
        crate::fuzzing::replay("session_bytes", session_bytes);
    }
}
