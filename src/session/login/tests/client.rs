//! A client's side of a log-in, and the worker's part in it.

use std::net::{IpAddr, Ipv4Addr};

use crate::auth::{caching_sha2_scramble, native_scramble};
use crate::pool::Offer;
use crate::session::{Cx, Output, Outputs, Peer, Role, Session, Wants};
use crate::snapshot::Snapshot;
use crate::wire::{Capabilities, ErrPacket, Header, Login};

pub(super) const NONCE: [u8; 20] = *b"nonce-of-a-greeting-";
pub(super) const FRESH: [u8; 20] = *b"nonce-of-a-switch---";

/// One client's side of a session, as the worker has it.
pub(super) struct Client {
    pub(super) session: Session,
    pub(super) snapshot: Snapshot,
    pub(super) offer: Offer,
    nonces: Vec<[u8; 20]>,
    pub(super) received: Vec<u8>,
    sent: Vec<Vec<u8>>,
    pub(super) starts_tls: bool,
    pub(super) opens: Vec<Role>,
    closed: bool,
}

impl Client {
    pub(super) fn new(server: &str) -> Self {
        let config = format!(
            "[server]\n{server}\n\
             [[groups]]\nname = \"main\"\nprimary = \"127.0.0.1:3306\"\nreplicas = [{{ address = \"127.0.0.1:3307\" }}]\n\
             [[users]]\nname = \"app\"\npassword = [\"old\", \"pw\"]\n\
             [[users]]\nname = \"far\"\npassword = \"pw\"\nnetworks = [\"10.0.0.0/8\"]\n\
             [[users]]\nname = \"home\"\npassword = \"pw\"\nschema = \"shop\"\n"
        );
        let config = crate::config::load(&config, "test.toml", &|_| None)
            .unwrap_or_else(|problems| panic!("{problems:?}"));
        let snapshot = Snapshot::new(config);
        let mut offer = Offer::default();
        offer.facts.version = b"9.7.4".to_vec();
        offer.facts.capabilities = Capabilities::DEPRECATE_EOF | Capabilities::LONG_PASSWORD;
        let mut out = Outputs::default();
        let mut nonces = vec![FRESH, NONCE];
        let mut nonce = || nonces.pop().expect("two nonces");
        let mut cx = Cx {
            snapshot: &snapshot,
            offer: &offer,
            nonce: &mut nonce,
            now: std::time::Duration::ZERO,
            lender: &mut crate::session::NoLender,
            texts: &mut crate::session::Texts::default(),
        };
        let peer = Peer::Ip(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let session = Session::new(7, peer, &mut cx, &mut out);
        let mut client = Self {
            session,
            snapshot,
            offer,
            nonces: vec![FRESH],
            received: Vec::new(),
            sent: Vec::new(),
            starts_tls: false,
            opens: Vec::new(),
            closed: false,
        };
        client.perform(out);
        client
    }

    pub(super) fn tell(
        &mut self,
        call: impl FnOnce(&mut Session, &mut Cx<'_>, &mut [u8], &mut Outputs),
    ) {
        let mut out = Outputs::default();
        let nonces = &mut self.nonces;
        let mut nonce = || nonces.pop().unwrap_or(FRESH);
        let mut cx = Cx {
            snapshot: &self.snapshot,
            offer: &self.offer,
            nonce: &mut nonce,
            now: std::time::Duration::ZERO,
            lender: &mut crate::session::NoLender,
            texts: &mut crate::session::Texts::default(),
        };
        call(&mut self.session, &mut cx, &mut self.received, &mut out);
        self.perform(out);
    }

    fn perform(&mut self, out: Outputs) {
        let mut consumed = 0;
        for output in out.list {
            let is_said = !matches!(output, Output::Consume(_));
            assert!(!(self.closed && is_said), "{output:?} behind the end");
            match output {
                Output::SendToClient(range) => {
                    let mut bytes = &out.arena[range];
                    while let Some(header) = Header::parse(bytes) {
                        self.sent.push(bytes[3..4 + header.len].to_vec());
                        bytes = &bytes[4 + header.len..];
                    }
                }
                Output::Consume(n) => consumed += n,
                Output::StartTls => {
                    // As the worker does it: what came behind the request is not read as a packet.
                    self.starts_tls = true;
                    consumed = self.received.len();
                }
                Output::Open { role, .. } => self.opens.push(role),
                Output::LoggedIn(_) | Output::Release { .. } | Output::Denied => {}
                Output::CloseClient => self.closed = true,
                other => panic!("not part of a log-in: {other:?}"),
            }
        }
        self.received.drain(..consumed.min(self.received.len()));
        if self.session.denial().is_some() {
            self.tell(|session, _, _, out| session.on_denial(out));
        }
    }

    /// The bytes arrive, `size` at a time.
    pub(super) fn arrive(&mut self, bytes: &[u8], size: usize) {
        for piece in bytes.chunks(size) {
            self.received.extend_from_slice(piece);
            let mut seen = 0;
            while let Wants::Bytes(n) = self.session.wants()
                && self.received.len() >= n
                && self.received.len() > seen
            {
                seen = self.received.len();
                self.tell(|session, cx, bytes, out| session.on_client(cx, bytes, out));
                if self.received.len() < seen {
                    seen = 0;
                }
            }
        }
    }

    /// What was sent since the last look: sequence id and payload.
    pub(super) fn take(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.sent)
    }

    /// The one error that a refused client gets.
    pub(super) fn refusal(&mut self) -> (u16, String) {
        let sent = self.take();
        let last = sent.last().expect("an error");
        assert_eq!(sent.len(), 1, "one packet");
        assert!(self.closed && self.session.is_closed());
        assert_eq!(self.session.wants(), Wants::Nothing);
        let err = ErrPacket::parse(&last[1..]).expect("an error");
        (err.code, String::from_utf8_lossy(err.message).into_owned())
    }
}

/// What a client says of itself.
#[derive(Clone)]
pub(super) struct Says {
    pub(super) user: &'static str,
    pub(super) password: &'static str,
    pub(super) plugin: Option<&'static str>,
    pub(super) schema: Option<&'static str>,
    pub(super) seq: u8,
}

pub(super) const APP: Says = Says {
    user: "app",
    password: "pw",
    plugin: Some("caching_sha2_password"),
    schema: None,
    seq: 1,
};

pub(super) fn proof(plugin: Option<&str>, password: &str, nonce: &[u8; 20]) -> Vec<u8> {
    match plugin {
        Some("caching_sha2_password") => caching_sha2_scramble(password.as_bytes(), nonce),
        Some("mysql_native_password") | None => native_scramble(password.as_bytes(), nonce),
        Some(_) => b"what another plugin says".to_vec(),
    }
}

impl Says {
    pub(super) fn bytes(&self) -> Vec<u8> {
        let auth = proof(self.plugin, self.password, &NONCE);
        let mut capabilities = Capabilities::PROTOCOL_41
            | Capabilities::SECURE_CONNECTION
            | Capabilities::DEPRECATE_EOF
            | Capabilities::LONG_PASSWORD;
        if self.plugin.is_some() {
            capabilities = capabilities | Capabilities::PLUGIN_AUTH;
        }
        let mut bytes = Vec::new();
        Login {
            capabilities,
            max_packet: 1 << 24,
            charset: 45,
            user: self.user.as_bytes(),
            auth: &auth,
            schema: self.schema.map(str::as_bytes),
            plugin: self.plugin.map(str::as_bytes),
            attributes: b"",
            zstd_level: None,
        }
        .write(&mut bytes, self.seq);
        bytes
    }
}
