//! The servers' side of the world: what they do with what arrives, and all that goes wrong by intent.

use atlas::session::Role;

use crate::greeter::{Refusal, Verdict};
use crate::rng::Rng;
use crate::server::Reaction;
use crate::world::{Event, World};

impl World {
    /// Faults may happen now.
    fn is_troubled(&self) -> bool {
        self.faulty && self.now < self.faults_end
    }

    pub fn refusal(&mut self) -> Option<Refusal> {
        if !self.is_troubled() || !self.rng.one_in(8) {
            return None;
        }
        self.faults_seen = true;
        Some(match self.rng.below(5) {
            0 => Refusal::AtOnce(1040),
            1 => Refusal::AtTheEnd(1045),
            2 => Refusal::AtTheEnd(1130),
            3 => Refusal::Silent,
            _ => Refusal::Garbage,
        })
    }

    pub fn server_receives(&mut self, b: usize) {
        let link = &mut self.back_links[b];
        link.up.scheduled = false;
        let breaks = link.up.deliver(&mut self.rng);
        let bytes = link.up.read(usize::MAX);
        if breaks {
            link.break_off();
        }
        self.schedule_server_up(b);
        self.schedule_server_down(b);
        let server = &mut self.servers[b];
        if !server.is_closed {
            server.receive(&bytes);
            if server.memory.is_none() {
                self.server_log_in(b);
            }
            self.schedule_execution(b);
            if self.back_links[b].up.is_at_end() && !self.servers[b].is_busy {
                self.close_server(b);
            }
        }
        // There is room again.
        self.work_backend(b);
    }

    fn server_log_in(&mut self, b: usize) {
        while self.servers[b].memory.is_none() && !self.servers[b].is_closed {
            let server = &mut self.servers[b];
            let Some((_, payload, next_seq)) = server.next_packet() else {
                return;
            };
            let Some(greeter) = &mut server.greeter else {
                return;
            };
            let reaction = match greeter.packet(&self.estate, &payload, next_seq) {
                Verdict::GoesOn(reaction) => reaction,
                Verdict::In(memory, caps, reaction) => {
                    server.memory = Some(*memory);
                    server.caps = caps;
                    server.greeter = None;
                    reaction
                }
            };
            self.server_sends(b, &reaction);
        }
    }

    fn schedule_execution(&mut self, b: usize) {
        let server = &mut self.servers[b];
        if server.is_busy || server.is_closed || server.memory.is_none() || !server.has_packet() {
            return;
        }
        server.is_busy = true;
        let delay = match self.rng.below(20) {
            0 => self.rng.between(0, 300_000),
            _ => self.rng.between(0, 800),
        };
        self.after(delay as u64, Event::Execute(b));
    }

    pub fn execute(&mut self, b: usize) {
        let server = &mut self.servers[b];
        server.is_busy = false;
        if server.is_closed {
            return;
        }
        let Some((seq, payload, next_seq)) = server.next_packet() else {
            return self.after_execution(b);
        };
        // Log-ins have refusals of their own, and a file is no command.
        if self.is_troubled() && self.rng.one_in(40) && !self.servers[b].awaits_file() {
            self.faults_seen = true;
            return self.execute_badly(b, seq, &payload, next_seq);
        }
        let reaction = self.servers[b].react(&mut self.estate, seq, &payload, next_seq);
        self.server_sends(b, &reaction);
        self.after_execution(b);
    }

    fn after_execution(&mut self, b: usize) {
        self.schedule_execution(b);
        let server = &self.servers[b];
        if self.back_links[b].up.is_at_end() && !server.is_busy && !server.is_closed {
            self.close_server(b);
        }
    }

    fn execute_badly(&mut self, b: usize, seq: u8, payload: &[u8], next_seq: u8) {
        let choice = self.rng.below(6);
        if choice == 0 {
            self.back_links[b].break_off();
            return self.close_server(b);
        }
        if choice == 1 {
            let code = [1053_u16, 4031][self.rng.below(2)];
            let bytes = error_packet(1, code);
            return self.server_sends(b, &Reaction { bytes, close: true });
        }
        let mut reaction = self.servers[b].react(&mut self.estate, seq, payload, next_seq);
        match choice {
            2 => {
                self.back_links[b].break_off();
                return self.close_server(b);
            }
            3 => {
                let all = reaction.bytes.len();
                self.back_links[b].down.breaks_after = Some(self.rng.between(0, all));
            }
            // To COM_STATISTICS any text is an answer, and to COM_FIELD_LIST and COM_STMT_FETCH the beginning of one.
            4 if !reaction.bytes.is_empty()
                && !matches!(payload.first(), Some(0x04 | 0x09 | 0x1c)) =>
            {
                let gives_rows = matches!(payload.first(), Some(0x03 | 0x17));
                reaction.bytes = malformed(&mut self.rng, gives_rows);
                reaction.close = self.rng.one_in(2);
            }
            _ => {
                // Slow, nothing worse.
                let until = self.now + self.rng.between(1, 1_500_000) as u64;
                self.back_links[b].down.stalled_until = until;
            }
        }
        self.server_sends(b, &reaction);
        self.after_execution(b);
    }

    pub fn server_sends(&mut self, b: usize, reaction: &Reaction) {
        self.back_links[b].down.send_all(&reaction.bytes);
        if reaction.close {
            return self.close_server(b);
        }
        self.schedule_server_down(b);
    }

    /// The server's side of a connection ends; what it was doing is undone.
    pub fn close_server(&mut self, b: usize) {
        let server = &mut self.servers[b];
        server.is_closed = true;
        server.memory = None;
        self.back_links[b].down.close();
        self.schedule_server_down(b);
    }

    /// Something goes wrong somewhere.
    pub fn fault(&mut self) {
        if !self.is_troubled() {
            for host in 0..self.hosts.len() {
                self.hosts[host].accepts = true;
            }
            return;
        }
        let pause = self.rng.between(1000, 400_000) as u64;
        self.after(pause, Event::Fault);
        match self.rng.below(8) {
            0 => self.idle_farewell(),
            1 => {
                let host = self.rng.below(self.hosts.len());
                self.crash(host);
            }
            2 => {
                if let Some(place) = self.some_client() {
                    self.faults_seen = true;
                    self.links[place].break_off();
                    self.schedule_client_up(place);
                    self.schedule_client_down(place);
                }
            }
            3 => {
                if let Some(place) = self.some_client() {
                    let until = self.now + self.rng.between(1, 700_000) as u64;
                    self.links[place].down.stalled_until = until;
                }
            }
            4 => {
                if let Some(place) = self.some_client() {
                    self.faults_seen = true;
                    let bytes = self.rng.between(1, 3000);
                    if self.rng.one_in(2) {
                        self.links[place].up.breaks_after = Some(bytes);
                    } else {
                        self.links[place].down.breaks_after = Some(bytes);
                    }
                }
            }
            5 => {
                if let Some(b) = self.some_server() {
                    self.faults_seen = true;
                    self.back_links[b].break_off();
                    self.close_server(b);
                    self.schedule_server_up(b);
                }
            }
            6 if self.rng.one_in(4) => {
                let next = self.rng.below(self.hosts.len());
                // Servers that take turns as the primary are set up alike.
                let of = |host: usize| self.hosts[host].defaults.autocommit;
                if of(next) == of(self.primary) {
                    self.faults_seen = true;
                    self.primary = next;
                    if self.rng.one_in(2) {
                        self.demote_others();
                    }
                    // What led there as to a replica may serve writes now.
                    for (server, back) in self.servers.iter_mut().zip(&self.backs) {
                        server.is_replica &= back.host != next;
                    }
                }
            }
            _ => {
                if let Some(b) = self.some_server() {
                    let until = self.now + self.rng.between(1, 700_000) as u64;
                    self.back_links[b].up.stalled_until = until;
                }
            }
        }
    }

    /// Sessions learn that their connection does not lead to the primary any more.
    fn demote_others(&mut self) {
        for place in 0..self.fronts.len() {
            let Some(b) = self.fronts[place].backends[Role::Primary as usize] else {
                continue;
            };
            if self.fronts[place].is_gone
                || self.backs[b].host == self.primary
                || self.backs[b].login.is_some()
            {
                continue;
            }
            let is_closed = self.rng.one_in(2) && self.backs[b].out.is_empty();
            self.tell(place, &mut [], |session, cx, _, bytes, out| {
                session.on_demoted(cx, is_closed, bytes, out);
            });
            self.work_client(place);
        }
    }

    fn some_client(&mut self) -> Option<usize> {
        let count = self.clients.len();
        (count > 0).then(|| self.rng.below(count))
    }

    fn some_server(&mut self) -> Option<usize> {
        let open: Vec<usize> = (0..self.servers.len())
            .filter(|b| !self.servers[*b].is_closed && self.backs[*b].is_connected)
            .collect();
        (!open.is_empty()).then(|| open[self.rng.below(open.len())])
    }

    /// A server ends an idle connection, with a word or without.
    fn idle_farewell(&mut self) {
        let Some(b) = self.some_server() else {
            return;
        };
        if self.servers[b].is_busy || self.servers[b].awaits_file() {
            return;
        }
        self.faults_seen = true;
        let bytes = if self.rng.one_in(2) {
            error_packet(0, 4031)
        } else {
            Vec::new()
        };
        self.server_sends(b, &Reaction { bytes, close: true });
    }

    fn crash(&mut self, host: usize) {
        self.faults_seen = true;
        self.hosts[host].accepts = false;
        let down_for = self.rng.between(1000, 1_500_000) as u64;
        self.after(down_for, Event::HostUp(host));
        for b in 0..self.servers.len() {
            if self.backs[b].host == host && !self.servers[b].is_closed {
                self.back_links[b].break_off();
                self.close_server(b);
                self.schedule_server_up(b);
            }
        }
    }
}

fn error_packet(seq: u8, code: u16) -> Vec<u8> {
    let mut bytes = Vec::new();
    atlas::wire::ErrPacket {
        code,
        sqlstate: Some(*b"08S01"),
        message: b"going away",
    }
    .write(&mut bytes, seq, atlas::wire::Capabilities::PROTOCOL_41);
    bytes
}

/// Replies that no server sends (B169).
fn malformed(rng: &mut Rng, gives_rows: bool) -> Vec<u8> {
    // An error without a code, an OK of one byte, nothing at all; column counts that are a NULL, without their digits, and
    // beyond all measure.
    let for_all: [&[u8]; 5] = [b"\xff", b"\xff\x01", b"\x00", b"", b"\xfc\x01"];
    let for_rows: [&[u8]; 3] = [
        b"\xfb",
        b"\xfe\x00\x00\x00\x00\x00\x00\x00\x10",
        b"\xfd\x40\x42\x0f",
    ];
    let of = if gives_rows && rng.one_in(2) {
        &for_rows[..]
    } else {
        &for_all[..]
    };
    let seq = if rng.one_in(8) { 7 } else { 1 };
    let mut bytes = Vec::new();
    atlas::wire::write_payload(&mut bytes, seq, rng.pick(of));
    bytes
}
