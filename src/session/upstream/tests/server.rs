//! A server, as far as its log-in goes: it asks in the way of one plugin, checks what the client proves, and says OK.

use std::sync::LazyLock;

use crate::auth::{ServerKey, ed25519_sign, verify_caching_sha2, verify_native};
use crate::wire::{
    AuthSwitch, Capabilities, Greeting, HEADER_LEN, Header, Login, SslRequest, Status,
    write_payload,
};

pub(super) const NONCE: [u8; 20] = *b"greeting-nonce-12345";
pub(super) const OTHER: [u8; 20] = *b"switched-nonce-67890";
pub(super) const OK: [u8; 7] = [0, 0, 0, 2, 0, 0, 0];

static KEY: LazyLock<ServerKey> = LazyLock::new(ServerKey::generate);

/// How a server wants the password proved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Native,
    CachingFast,
    /// Clear, where nobody listens.
    CachingClear,
    CachingKey,
    /// Another plugin than the greeting's.
    SwitchToNative,
    SwitchToCachingKey,
    SwitchToEd25519,
    SwitchToSha256Clear,
    SwitchToSha256Key,
    SwitchToClear,
    /// Changes its mind before it decides.
    TwoSwitches,
}

/// A server, as far as its log-in goes.
pub(super) struct Server {
    way: Way,
    offers_tls: bool,
    pub(super) in_tls: bool,
    received: Vec<u8>,
    /// Where in the exchange it is.
    turn: u8,
    seq: u8,
    login: Option<(Vec<u8>, Option<Vec<u8>>)>,
}

pub(super) const SERVER_CAPABILITIES: Capabilities = Capabilities::PROTOCOL_41
    .union(Capabilities::SECURE_CONNECTION)
    .union(Capabilities::PLUGIN_AUTH)
    .union(Capabilities::CONNECT_ATTRS)
    .union(Capabilities::CONNECT_WITH_DB)
    .union(Capabilities::DEPRECATE_EOF)
    .union(Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA);

impl Server {
    pub(super) fn new(way: Way, offers_tls: bool) -> Self {
        Self {
            way,
            offers_tls,
            in_tls: false,
            received: Vec::new(),
            turn: 0,
            seq: 0,
            login: None,
        }
    }

    fn put(&mut self, out: &mut Vec<u8>, payload: &[u8]) {
        self.seq = write_payload(out, self.seq, payload);
    }

    pub(super) fn greeting(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        let plugin: &[u8] = match self.way {
            Way::Native
            | Way::SwitchToCachingKey
            | Way::SwitchToEd25519
            | Way::SwitchToSha256Clear
            | Way::SwitchToSha256Key
            | Way::SwitchToClear => b"mysql_native_password",
            Way::CachingFast
            | Way::CachingClear
            | Way::CachingKey
            | Way::SwitchToNative
            | Way::TwoSwitches => b"caching_sha2_password",
        };
        let greeting = Greeting {
            version: b"9.7.4",
            thread_id: 77,
            nonce: NONCE,
            capabilities: if self.offers_tls {
                SERVER_CAPABILITIES | Capabilities::SSL
            } else {
                SERVER_CAPABILITIES
            },
            charset: 255,
            status: Status::AUTOCOMMIT,
            plugin,
        };
        self.seq = greeting.write(&mut out, 0);
        out
    }

    fn switch(&mut self, out: &mut Vec<u8>, plugin: &str, nonce: &[u8]) {
        self.seq = AuthSwitch {
            plugin: plugin.as_bytes(),
            data: nonce,
        }
        .write(out, self.seq);
    }

    fn data(&mut self, out: &mut Vec<u8>, data: &[u8]) {
        self.put(out, &[&[1], data].concat());
    }

    /// Takes what the client sent; gives the answer.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.received.extend_from_slice(bytes);
        let mut out = Vec::new();
        while let Some(header) = Header::parse(&self.received)
            && self.received.len() >= HEADER_LEN + header.len
        {
            assert_eq!(header.seq, self.seq, "out of order");
            self.seq = self.seq.wrapping_add(1);
            let payload = self.received[HEADER_LEN..HEADER_LEN + header.len].to_vec();
            self.received.drain(..HEADER_LEN + header.len);
            self.packet(&payload, &mut out);
        }
        out
    }

    fn packet(&mut self, payload: &[u8], out: &mut Vec<u8>) {
        if self.login.is_none() {
            // A request for TLS is the head of a log-in.
            if payload.len() == 32 {
                let request = SslRequest::parse(payload).expect("a request for TLS");
                assert!(self.offers_tls && !self.in_tls);
                assert!(request.capabilities.contains(Capabilities::SSL));
                return;
            }
            let login = Login::parse(payload).expect("a log-in");
            assert_eq!(login.user, b"app");
            assert_eq!(login.capabilities.contains(Capabilities::SSL), self.in_tls);
            self.login = Some((login.auth.to_vec(), login.plugin.map(<[u8]>::to_vec)));
            let answer = login.auth.to_vec();
            return self.answer(&answer, out);
        }
        self.answer(payload, out);
    }

    /// An answer of the client to the challenge of this turn.
    fn answer(&mut self, answer: &[u8], out: &mut Vec<u8>) {
        let clear = b"pw\0";
        let turn = self.turn;
        self.turn += 1;
        match (self.way, turn) {
            (Way::Native, 0) => {
                assert!(verify_native(b"pw", &NONCE, answer));
                self.put(out, &OK);
            }
            (Way::CachingFast, 0) => {
                assert!(verify_caching_sha2(b"pw", &NONCE, answer));
                self.data(out, &[3]);
                self.put(out, &OK);
            }
            (Way::CachingClear | Way::CachingKey, 0) => {
                assert!(verify_caching_sha2(b"pw", &NONCE, answer));
                self.data(out, &[4]);
            }
            (Way::CachingClear, 1) => {
                assert_eq!(answer, clear);
                self.put(out, &OK);
            }
            (Way::CachingKey, 1) => {
                assert_eq!(answer, [2]);
                self.data(out, &KEY.pem.clone());
            }
            (Way::CachingKey, 2) => {
                assert_eq!(KEY.decrypt(answer, &NONCE), clear);
                self.put(out, &OK);
            }
            (Way::SwitchToNative, 0) => {
                self.switch(out, "mysql_native_password", &with_zero(&OTHER));
            }
            (Way::SwitchToNative, 1) => {
                assert!(verify_native(b"pw", &OTHER, answer));
                self.put(out, &OK);
            }
            (Way::SwitchToCachingKey, 0) => {
                self.switch(out, "caching_sha2_password", &with_zero(&OTHER));
            }
            (Way::SwitchToCachingKey, 1) => {
                assert!(verify_caching_sha2(b"pw", &OTHER, answer));
                self.data(out, &[4]);
            }
            (Way::SwitchToCachingKey, 2) => {
                assert_eq!(answer, [2]);
                self.data(out, &KEY.pem.clone());
            }
            (Way::SwitchToCachingKey, 3) | (Way::SwitchToSha256Key, 2) => {
                assert_eq!(KEY.decrypt(answer, &OTHER), clear);
                self.put(out, &OK);
            }
            (Way::SwitchToEd25519, 0) => self.switch(out, "client_ed25519", &[7; 32]),
            (Way::SwitchToEd25519, 1) => {
                assert_eq!(answer, ed25519_sign(b"pw", &[7; 32]));
                self.put(out, &OK);
            }
            (Way::SwitchToSha256Clear | Way::SwitchToSha256Key, 0) => {
                self.switch(out, "sha256_password", &with_zero(&OTHER));
            }
            (Way::SwitchToSha256Key, 1) => {
                assert_eq!(answer, [1]);
                self.data(out, &KEY.pem.clone());
            }
            (Way::SwitchToClear, 0) => self.switch(out, "mysql_clear_password", b""),
            (Way::SwitchToSha256Clear | Way::SwitchToClear, 1) => {
                assert_eq!(answer, clear);
                self.put(out, &OK);
            }
            (Way::TwoSwitches, 0) => self.switch(out, "client_ed25519", &[7; 32]),
            (Way::TwoSwitches, 1) => {
                self.switch(out, "mysql_native_password", &with_zero(&OTHER));
            }
            (Way::TwoSwitches, 2) => {
                assert!(verify_native(b"pw", &OTHER, answer));
                self.put(out, &OK);
            }
            (way, turn) => panic!("{way:?} has no turn {turn}"),
        }
    }
}

pub(super) fn with_zero(nonce: &[u8; 20]) -> Vec<u8> {
    [&nonce[..], &[0]].concat()
}
