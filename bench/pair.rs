//! A real session between a client and two servers that are bytes in memory: what the session costs, without sockets.
//!
//! It stands in for the worker: shows bytes, carries out outputs, opens connections at once. "Written" bytes are copied into
//! buffers that are used again, as a system call would copy them.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "shared by benches, a test and an example"
)]

use std::net::{IpAddr, Ipv4Addr};

use atlas::auth::caching_sha2_scramble;
use atlas::pool::{HostId, Offer};
use atlas::session::{
    Ask, Cx, Known, Lend, NoLender, Output, Outputs, Peer, Ready, Role, Session, Texts, Wants,
};
use atlas::snapshot::Snapshot;
use atlas::wire::{Capabilities, Greeting, Login, OkPacket, ResultSetWriter, RowFormat, Status};

use crate::script::{CAPABILITIES, Form, INSERT_ID, SELECT_ID, prepared};

const CONFIG: &str = r#"
[[groups]]
name = "main"
primary = "127.0.0.1:3306"
replicas = [{ address = "127.0.0.1:3307" }]

[[users]]
name = "app"
password = "app-pw"
"#;

/// The same account, and the table of [`Form`]'s statements spread over eight tables in two groups.
const SHARDED: &str = r#"
[[groups]]
name = "main"
primary = "127.0.0.1:3306"
replicas = [{ address = "127.0.0.1:3307" }]

[[groups]]
name = "g1"
primary = "127.0.0.1:3308"
replicas = [{ address = "127.0.0.1:3309" }]

[[users]]
name = "app"
password = "app-pw"
group = "main"

[[tables]]
name = "sbtest.sbtest1"
key = "id"
ranges = [{ groups = ["main", "g1"], tables = 4 }]
"#;

/// See the file's words.
#[derive(Debug)]
pub struct Pair {
    session: Session,
    snapshot: Snapshot,
    offer: Offer,
    outputs: Outputs,
    /// The client's bytes that the session has not consumed.
    client: Vec<u8>,
    /// What a server has sent.
    received: Vec<u8>,
    /// What the client got for its last command.
    pub to_client: Vec<u8>,
    /// What the servers got and have not answered.
    to_server: [Vec<u8>; 2],
    /// Which connection is to be opened.
    open: Option<Role>,
    /// Connections that the session gave back.
    idle: Idle,
    texts: Texts,
    /// Commands that the servers have answered.
    pub answered: [u64; 2],
}

/// An idle connection of each role.
#[derive(Debug, Default)]
struct Idle([Option<Box<Known>>; 2]);

impl Lend for Idle {
    fn lend(&mut self, ask: &Ask) -> Option<Box<Known>> {
        self.0[ask.role as usize].take()
    }
}

const SCHEMA: &[u8] = b"sbtest";

fn nonce() -> [u8; 20] {
    *b"twenty bytes, no nul"
}

impl Pair {
    /// A session whose client has logged in.
    pub fn logged_in() -> Self {
        Self::with(CONFIG)
    }

    fn with(config: &str) -> Self {
        let config = atlas::config::load(config, "bench.toml", &|_| None)
            .unwrap_or_else(|problems| panic!("{problems:?}"));
        let snapshot = Snapshot::new(config);
        let mut offer = Offer::default();
        offer.facts.version = b"10.11.19-MariaDB".to_vec();
        offer.facts.ansi_quotes = Some(false);
        let mut outputs = Outputs::default();
        let mut texts = Texts::default();
        let mut cx = Cx {
            snapshot: &snapshot,
            offer: &offer,
            nonce: &mut nonce,
            now: std::time::Duration::ZERO,
            lender: &mut NoLender,
            texts: &mut texts,
        };
        let peer = Peer::Ip(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let session = Session::new(1, peer, &mut cx, &mut outputs);
        let mut pair = Self {
            session,
            snapshot,
            offer,
            outputs,
            client: Vec::new(),
            received: Vec::new(),
            to_client: Vec::new(),
            to_server: [Vec::new(), Vec::new()],
            open: None,
            idle: Idle::default(),
            texts,
            answered: [0; 2],
        };
        pair.perform();
        pair.log_in();
        pair
    }

    /// The same, with both server connections bound and the statements prepared that [`Form`] executes.
    pub fn bound() -> Self {
        Self::logged_in().ready_for(Form::reply)
    }

    /// The same where the statements' table is sharded; servers answer with [`Form::reply_of_shard`].
    pub fn sharded() -> Self {
        Self::with(SHARDED).ready_for(Form::reply_of_shard)
    }

    fn ready_for(mut self, reply: fn(Form) -> Vec<u8>) -> Self {
        for (command, reply) in Form::prepares() {
            self.exchange(&command, &reply);
        }
        for form in Form::ALL {
            self.exchange(&form.command(), &reply(form));
        }
        self
    }

    fn log_in(&mut self) {
        let greeting = Greeting::parse(&self.to_client[4..]).expect("a greeting");
        let auth = caching_sha2_scramble(b"app-pw", &greeting.nonce);
        let login = Login {
            capabilities: CAPABILITIES.union(Capabilities::CONNECT_WITH_DB),
            max_packet: 1 << 24,
            charset: 45,
            user: b"app",
            auth: &auth,
            schema: Some(SCHEMA),
            plugin: Some(b"caching_sha2_password"),
            attributes: b"",
            zstd_level: None,
        };
        login.write(&mut self.client, 1);
        self.turn();
        assert!(self.session.is_logged_in(), "{:?}", self.to_client);
    }

    /// One command and its whole reply: from the client's bytes to the bytes for the client, which are then in `to_client`.
    pub fn exchange(&mut self, command: &[u8], reply: &[u8]) {
        self.to_client.clear();
        self.client.extend_from_slice(command);
        self.turn();
        while let Some(role) = self.asked() {
            self.received.clear();
            let said = &self.to_server[role as usize];
            let own = answers_to_setup(said).or_else(|| answers_to_prepare(said));
            match &own {
                Some(answers) => self.received.extend_from_slice(answers),
                None => self.received.extend_from_slice(reply),
            }
            self.to_server[role as usize].clear();
            self.answered[role as usize] += u64::from(own.is_none());
            self.tell(|session, cx, client, received, out| {
                session.on_backend(cx, role, received, client, out)
            });
            self.turn();
        }
    }

    /// Calls into the session and carries out what it asks for. The closure gets the client's bytes and the server's.
    fn tell<R>(
        &mut self,
        call: impl FnOnce(&mut Session, &mut Cx<'_>, &mut [u8], &mut [u8], &mut Outputs) -> R,
    ) {
        let mut cx = Cx {
            snapshot: &self.snapshot,
            offer: &self.offer,
            nonce: &mut nonce,
            now: std::time::Duration::ZERO,
            lender: &mut self.idle,
            texts: &mut self.texts,
        };
        call(
            &mut self.session,
            &mut cx,
            &mut self.client,
            &mut self.received,
            &mut self.outputs,
        );
        let now = std::time::Duration::ZERO;
        self.session
            .afterwards(now, &mut self.texts, &mut self.outputs);
        self.perform();
    }

    fn asked(&self) -> Option<Role> {
        Role::BOTH
            .into_iter()
            .find(|role| !self.to_server[*role as usize].is_empty())
    }

    /// The client's turn, as the worker's loop has it.
    fn turn(&mut self) {
        while let Wants::Bytes(n) = self.session.wants()
            && self.client.len() >= n
        {
            self.tell(|session, cx, client, _, out| session.on_client(cx, client, out));
            let Some(role) = self.open.take() else {
                break;
            };
            let ready = self.ready();
            let shape = self.session.shape(role, &self.snapshot);
            let known = Known::new(HostId(role as u16), shape, Some(SCHEMA), &ready);
            self.tell(|session, _, _, _, out| session.on_backend_ready(role, known, out));
        }
    }

    fn ready(&self) -> Ready {
        let mut ok = Vec::new();
        let packet = OkPacket {
            status: Status::AUTOCOMMIT,
            ..OkPacket::default()
        };
        packet.write(&mut ok, 0, Capabilities::PROTOCOL_41);
        Ready {
            thread_id: 7,
            capabilities: CAPABILITIES,
            status: Status::AUTOCOMMIT,
            ok: ok.split_off(4),
            facts: self.offer.facts.clone(),
        }
    }

    fn perform(&mut self) {
        let mut consumed = 0;
        for output in self.outputs.list.drain(..) {
            match output {
                Output::ForwardToBackend { role, range, .. } => {
                    self.to_server[role as usize].extend_from_slice(&self.client[range]);
                }
                Output::SendToBackend { role, range, .. } => {
                    self.to_server[role as usize].extend_from_slice(&self.outputs.arena[range]);
                }
                Output::ForwardToClient(range) => {
                    self.to_client.extend_from_slice(&self.received[range]);
                }
                Output::SendToClient(range) => {
                    self.to_client.extend_from_slice(&self.outputs.arena[range]);
                }
                Output::Consume(n) => consumed += n,
                Output::Open { role, .. } => self.open = Some(role),
                Output::Release { role, known } => self.idle.0[role as usize] = Some(known),
                Output::LoggedIn(_) => {}
                other => panic!("not part of an exchange: {other:?}"),
            }
        }
        self.outputs.clear();
        self.client.drain(..consumed);
    }
}

/// What a server says to a preparation that the client did not ask for: of a statement for a shard. Another may be closed before.
fn answers_to_prepare(said: &[u8]) -> Option<Vec<u8>> {
    const CLOSE: usize = 9;
    let at = match said.get(4) {
        Some(0x19) => CLOSE,
        _ => 0,
    };
    let text = said
        .get(at + 5..)
        .filter(|_| said.get(at + 4) == Some(&0x16))?;
    let is_of_shard = text.windows(9).any(|name| name == b"sbtest1_5");
    let is_read = text.starts_with(b"SELECT");
    let id = if is_read { SELECT_ID } else { INSERT_ID };
    is_of_shard.then(|| prepared(id + 10, u16::from(is_read)))
}

/// What a server says when Atlas makes it tell of changes of session state.
fn answers_to_setup(said: &[u8]) -> Option<Vec<u8>> {
    if !said.windows(13).any(|window| window == b"session_track") {
        return None;
    }
    let mut answers = Vec::new();
    let mut rest = said;
    while let Some((head, _)) = rest.split_first_chunk::<3>() {
        let len = usize::from(head[0]) | usize::from(head[1]) << 8 | usize::from(head[2]) << 16;
        let text = &rest[5..4 + len];
        if text.starts_with(b"SELECT") {
            let names: [&[u8]; 3] = [b"a", b"b", b"c"];
            let mut rows = ResultSetWriter::begin(
                &mut answers,
                1,
                CAPABILITIES,
                Status::AUTOCOMMIT,
                RowFormat::Text,
                &names,
            );
            rows.row(&[Some(b"1"), Some(b"0"), Some(b"autocommit,time_zone")]);
            rows.finish();
        } else {
            let ok = OkPacket {
                status: Status::AUTOCOMMIT,
                ..OkPacket::default()
            };
            ok.write(&mut answers, 1, CAPABILITIES);
        }
        rest = &rest[4 + len..];
    }
    Some(answers)
}
