//! A worker's part in a session, for the targets that drive one: it shows bytes, carries outputs out, and fails where an output
//! cannot be carried out.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::LazyLock;

use super::packets::{commands, packets_are_whole};
use super::watch::Watch;
use crate::pool::{HostId, Offer};
use crate::session::{
    Access, Ask, Cx, Known, Lend, NoLender, Output, Outputs, Peer, Ready, Role, Session, Texts,
    TlsWish, Wants,
};
use crate::snapshot::Snapshot;
use crate::wire::{Capabilities, Greeting, Login, OkPacket, Status, write_payload};

const CONFIG: &str = r#"
[[groups]]
name = "main"
primary = "127.0.0.1:3306"
replicas = [{ address = "127.0.0.1:3307" }]

[[groups]]
name = "lone"
primary = "127.0.0.1:3308"

[[users]]
name = "app"
password = "pw"
group = "main"

[[users]]
name = "held"
password = "pw"
group = "main"
limits = { statement_timeout = "1s", result_rows = 2 }

[[users]]
name = "lone"
password = "pw"
group = "lone"
read_from = "replica-only"
"#;

static SNAPSHOT: LazyLock<Snapshot> = LazyLock::new(|| {
    let config = crate::config::load(CONFIG, "fuzz.toml", &|_| None)
        .unwrap_or_else(|problems| panic!("{problems:?}"));
    Snapshot::new(config)
});

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Link {
    Absent,
    Opening,
    Ready,
}

/// Connections that the session gave back, and that it may have again.
#[derive(Default)]
pub(super) struct Idle {
    pub(super) known: [Option<Box<Known>>; 2],
    lent: [bool; 2],
}

impl Lend for Idle {
    fn lend(&mut self, ask: &Ask) -> Option<Box<Known>> {
        let place = ask.role as usize;
        let fits = |known: &Known| {
            known.shape() == ask.shape && ask.same.is_none_or(|serial| known.serial() == serial)
        };
        let known = self.known[place].take_if(|known| fits(known))?;
        self.lent[place] = true;
        Some(known)
    }
}

/// What a worker keeps of one client.
pub(super) struct Worker {
    pub(super) session: Session,
    offer: Offer,
    outputs: Outputs,
    pub(super) idle: Idle,
    texts: Texts,
    pub(super) capabilities: Capabilities,
    /// The client's bytes that are not consumed.
    pub(super) client: Vec<u8>,
    /// The servers' bytes that are not dealt with.
    pub(super) server: [Vec<u8>; 2],
    pub(super) links: [Link; 2],
    /// How many connections of each role have been opened.
    pub(super) opened: [u32; 2],
    /// The sequence id of a server's next packet.
    seq: [u8; 2],
    /// What went to the client last.
    pub(super) to_client: Vec<u8>,
    pub(super) watch: Watch,
    pub(super) kill_asked: bool,
    pub(super) tls_asked: bool,
    /// The primary has become another server, so that no write may leave for it.
    pub(super) refuses_writes: bool,
    write_refused: bool,
    outputs_seen: usize,
    /// What left for the servers, and whether it is the session's own.
    pub(super) sent: Vec<Sent>,
}

/// Bytes for a server.
pub(super) struct Sent {
    pub(super) role: Role,
    pub(super) own: bool,
    pub(super) bytes: Vec<u8>,
}

fn nonce() -> [u8; 20] {
    *b"twenty bytes, no nul"
}

const STATUS: Status = Status::AUTOCOMMIT;

impl Worker {
    pub(super) fn new(choice: u8) -> Self {
        let mut offer = Offer::default();
        let maria = choice & 4 != 0;
        offer.facts.version = if maria {
            b"10.11.19-MariaDB".to_vec()
        } else {
            b"9.7.4".to_vec()
        };
        offer.facts.ansi_quotes = (choice & 8 != 0).then_some(false);
        let mut capabilities = Capabilities::PROTOCOL_41
            | Capabilities::SECURE_CONNECTION
            | Capabilities::PLUGIN_AUTH
            | Capabilities::TRANSACTIONS
            | Capabilities::MULTI_STATEMENTS
            | Capabilities::MULTI_RESULTS
            | Capabilities::PS_MULTI_RESULTS
            | Capabilities::LOCAL_FILES
            | Capabilities::CONNECT_WITH_DB;
        if choice & 16 != 0 {
            capabilities = capabilities | Capabilities::DEPRECATE_EOF | Capabilities::SESSION_TRACK;
        }
        if !maria {
            capabilities = capabilities | Capabilities::LONG_PASSWORD;
            if choice & 64 != 0 {
                capabilities = capabilities
                    | Capabilities::QUERY_ATTRIBUTES
                    | Capabilities::OPTIONAL_RESULTSET_METADATA;
            }
        }
        offer.facts.capabilities = capabilities;
        let mut outputs = Outputs::default();
        let peer = Peer::Ip(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let mut texts = Texts::default();
        let mut cx = Cx {
            snapshot: &SNAPSHOT,
            offer: &offer,
            nonce: &mut nonce,
            now: std::time::Duration::ZERO,
            lender: &mut NoLender,
            texts: &mut texts,
        };
        let session = Session::new(1, peer, &mut cx, &mut outputs);
        let mut worker = Self {
            session,
            offer,
            outputs,
            idle: Idle::default(),
            texts,
            capabilities,
            client: Vec::new(),
            server: [Vec::new(), Vec::new()],
            links: [Link::Absent; 2],
            opened: [0; 2],
            seq: [1; 2],
            to_client: Vec::new(),
            watch: Watch::default(),
            kill_asked: false,
            tls_asked: false,
            refuses_writes: false,
            write_refused: false,
            outputs_seen: 0,
            sent: Vec::new(),
        };
        worker.perform(&[]);
        worker
    }

    pub(super) fn log_in(&mut self, user: &[u8], with_schema: bool) {
        let greeting = Greeting::parse(&self.to_client[4..]).expect("a greeting");
        let auth = crate::auth::caching_sha2_scramble(b"pw", &greeting.nonce);
        let login = Login {
            capabilities: self.capabilities,
            max_packet: 1 << 24,
            charset: 45,
            user,
            auth: &auth,
            schema: with_schema.then_some(b"shop"),
            plugin: Some(b"caching_sha2_password"),
            attributes: b"",
            zstd_level: None,
        };
        login.write(&mut self.client, 1);
        self.pump();
        if with_schema {
            self.opened(Role::Primary);
        }
        assert!(self.session.is_logged_in());
    }

    pub(super) fn packet(&mut self, role: Role, payload: &[u8]) {
        let mut bytes = Vec::new();
        let place = &mut self.seq[role as usize];
        *place = write_payload(&mut bytes, *place, payload);
        self.arrives(role, &bytes);
    }

    pub(super) fn arrives(&mut self, role: Role, bytes: &[u8]) {
        if self.links[role as usize] != Link::Ready {
            return;
        }
        self.server[role as usize].extend_from_slice(bytes);
        let mut server = std::mem::take(&mut self.server[role as usize]);
        let len = server.len();
        let consumed = self.tell(&mut server, |session, cx, input, client, out| {
            session.on_backend(cx, role, input, client, out)
        });
        assert!(consumed <= len, "more dealt with than there was");
        if self.links[role as usize] == Link::Ready {
            server.drain(..consumed);
            self.server[role as usize] = server;
        }
    }

    pub(super) fn opened(&mut self, role: Role) {
        if self.links[role as usize] != Link::Opening {
            return;
        }
        self.links[role as usize] = Link::Ready;
        self.opened[role as usize] += 1;
        self.server[role as usize].clear();
        let mut ok = Vec::new();
        let packet = OkPacket {
            status: STATUS,
            ..OkPacket::default()
        };
        packet.write(&mut ok, 0, Capabilities::PROTOCOL_41);
        let ready = Ready {
            thread_id: 7,
            capabilities: self.capabilities,
            status: STATUS,
            ok: ok.split_off(4),
            facts: self.offer.facts.clone(),
        };
        let shape = self.session.shape(role, &SNAPSHOT);
        let (wish, _) = self.session.wish(role, &SNAPSHOT, TlsWish::No, false);
        let known = Known::new(HostId(role as u16), shape, wish.schema.as_deref(), &ready);
        self.tell(&mut [], |session, _, _, _, out| {
            session.on_backend_ready(role, known, out);
        });
    }

    /// The client's turn, as in the worker's loop.
    pub(super) fn pump(&mut self) {
        self.tell_refusal();
        let mut seen = 0;
        while let Wants::Bytes(n) = self.session.wants() {
            let held = self.client.len();
            if held < n || held <= seen {
                return;
            }
            seen = held;
            let before = (self.session.wants(), self.outputs_seen);
            self.tell(&mut [], |session, cx, _, client, out| {
                session.on_client(cx, client, out);
            });
            self.tell_refusal();
            if self.client.len() < held {
                seen = 0;
                continue;
            }
            let after = (self.session.wants(), self.outputs_seen);
            let asks_for_more =
                matches!(after.0, Wants::Bytes(n) if n > self.client.len()) || self.is_uploading(n);
            assert!(
                before != after || asks_for_more,
                "the session wants {n} bytes, has {held} and does nothing"
            );
        }
    }

    fn tell_refusal(&mut self) {
        if std::mem::take(&mut self.write_refused) {
            self.tell(&mut [], |session, cx, _, client, out| {
                session.on_write_refused(cx, HostId(0), client, out);
            });
        }
    }

    /// What follows a command of the client is wanted byte by byte, whatever it is.
    fn is_uploading(&self, wanted: usize) -> bool {
        wanted <= 4 && self.client.len() < 4
    }

    pub(super) fn tell<R>(
        &mut self,
        input: &mut [u8],
        call: impl FnOnce(&mut Session, &mut Cx<'_>, &mut [u8], &mut [u8], &mut Outputs) -> R,
    ) -> R {
        let mut cx = Cx {
            snapshot: &SNAPSHOT,
            offer: &self.offer,
            nonce: &mut nonce,
            now: self.watch.now,
            lender: &mut self.idle,
            texts: &mut self.texts,
        };
        let was_closed = self.session.is_closed();
        let result = call(
            &mut self.session,
            &mut cx,
            input,
            &mut self.client,
            &mut self.outputs,
        );
        // The same as when everything else has been carried out.
        self.session
            .afterwards(self.watch.now, &mut self.texts, &mut self.outputs);
        assert!(
            !was_closed || self.outputs.list.is_empty(),
            "a session that is over asks for {:?}",
            self.outputs.list
        );
        for (link, lent) in self.links.iter_mut().zip(&mut self.idle.lent) {
            if std::mem::take(lent) {
                assert_eq!(*link, Link::Absent, "a second connection");
                *link = Link::Ready;
            }
        }
        self.perform(input);
        result
    }

    /// Carries the outputs out, if they can be.
    fn perform(&mut self, input: &[u8]) {
        let mut consumed = 0;
        let outputs = std::mem::take(&mut self.outputs);
        self.outputs_seen += outputs.list.len();
        self.watch.done = outputs.done.last().copied().or(self.watch.done);
        for output in outputs.list {
            match output {
                Output::ForwardToBackend {
                    role,
                    range,
                    access,
                } => {
                    let bytes = self.client[range].to_vec();
                    let own = false;
                    if !self.leaves(access, Sent { role, own, bytes }) {
                        break;
                    }
                }
                Output::SendToBackend {
                    role,
                    range,
                    access,
                } => {
                    let bytes = outputs.arena[range].to_vec();
                    let own = true;
                    if !self.leaves(access, Sent { role, own, bytes }) {
                        break;
                    }
                }
                Output::ForwardToClient(range) => self.to_client = input[range].to_vec(),
                Output::SendToClient(range) => {
                    self.to_client = outputs.arena[range].to_vec();
                    packets_are_whole(&self.to_client);
                }
                Output::Consume(n) => consumed += n,
                Output::Open { role, avoid } => {
                    assert_eq!(
                        self.links[role as usize],
                        Link::Absent,
                        "a second connection"
                    );
                    assert!(avoid.is_none_or(|host| host.index() < 3));
                    self.links[role as usize] = Link::Opening;
                }
                Output::Release { role, known } => {
                    assert_eq!(self.links[role as usize], Link::Ready, "given back twice");
                    assert!(
                        self.server[role as usize].is_empty(),
                        "with something unread"
                    );
                    self.links[role as usize] = Link::Absent;
                    self.idle.known[role as usize] =
                        Some(known).filter(|_| !self.watch.kills(role));
                }
                Output::OnCall { role } => assert_eq!(self.links[role as usize], Link::Ready),
                Output::DefaultsChanged { role } => {
                    assert_eq!(self.links[role as usize], Link::Ready);
                }
                Output::Cut { role } => assert_eq!(self.links[role as usize], Link::Ready),
                Output::PrimaryIsReadOnly => {
                    assert_eq!(self.links[Role::Primary as usize], Link::Ready);
                }
                Output::CloseBackend { role, parting: _ } => {
                    let is_there = self.links[role as usize] != Link::Absent;
                    assert!(is_there || input.is_empty(), "closed twice");
                    self.links[role as usize] = Link::Absent;
                    self.server[role as usize].clear();
                }
                Output::StartTls => self.tls_asked = true,
                Output::Denied => assert!(self.session.denial().is_some()),
                Output::LoggedIn(account) => assert!(account < SNAPSHOT.accounts.len()),
                Output::Unseen | Output::Note(_) => {}
                Output::CloseClient => assert!(self.session.is_closed()),
                Output::Kill { .. } => self.kill_asked = true,
                Output::Alarm(_)
                | Output::Interrupt { .. }
                | Output::CallOff { .. }
                | Output::Spare { .. } => self.watch.carry_out(&output, &self.links),
                _ => unreachable!("no table is sharded"),
            }
        }
        assert!(
            consumed <= self.client.len(),
            "consumed {consumed} of {} bytes",
            self.client.len()
        );
        self.client.drain(..consumed);
        if self.session.denial().is_some() {
            assert_eq!(self.session.wants(), Wants::Nothing);
            self.tell(&mut [], |session, _, _, _, out| session.on_denial(out));
            assert!(self.session.is_closed());
        }
        if self.session.is_closed() {
            assert_eq!(self.session.wants(), Wants::Nothing);
        }
    }

    /// The last-moment check. False when the bytes do not leave; the session is told, and the outputs behind are dropped.
    fn leaves(&mut self, access: Access, sent: Sent) -> bool {
        let place = sent.role as usize;
        assert_eq!(
            self.links[place],
            Link::Ready,
            "bytes for a connection that is not there"
        );
        assert!(
            access == Access::Read || sent.role == Role::Primary,
            "a write for a replica"
        );
        if access == Access::Write && self.refuses_writes {
            self.write_refused = true;
            return false;
        }
        if sent.own || sent.bytes.get(3) == Some(&0) {
            assert!(!self.watch.kills(sent.role), "a KILL may hit it");
            self.seq[place] = 1;
        }
        if sent.own {
            packets_are_whole(&sent.bytes);
        }
        self.sent.push(sent);
        true
    }

    /// Answers every command that left with an OK, and opens what is to be opened, until the client's turn comes.
    pub(super) fn settle(&mut self) -> Vec<Sent> {
        let mut all = Vec::new();
        for _ in 0..100 {
            for role in Role::BOTH {
                self.opened(role);
            }
            self.pump();
            if self.sent.is_empty() {
                break;
            }
            for sent in std::mem::take(&mut self.sent) {
                for _ in commands(&sent.bytes) {
                    self.seq[sent.role as usize] = 1;
                    self.packet(sent.role, &[0, 0, 0, 2, 0, 0, 0]);
                }
                all.push(sent);
            }
        }
        all
    }

    /// A command of the client.
    pub(super) fn command(&mut self, payload: &[u8]) {
        write_payload(&mut self.client, 0, payload);
        self.pump();
    }
}
