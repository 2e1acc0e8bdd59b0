//! A server connection on its way to being usable: greeting, TLS, log-in. Bytes in, packets out; the shell owns the socket.
//!
//! ```text
//! AwaitGreeting ──(TLS wanted)──► AwaitTls ──► AwaitVerdict ⇄ (auth rounds) ──► Ready
//!       └──────────(no TLS)──────────────────►┘      └─ ERR ─► Failed
//! ```

use std::sync::Arc;

use crate::auth::{AuthStep, ClientAuth, Secret};
use crate::pool::ServerFacts;
use crate::wire::{
    Capabilities, Greeting, Header, Login, OkPacket, SslRequest, Status, write_payload,
};

/// Whether a server connection is to be encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsWish {
    /// Never.
    No,
    /// When the server offers it.
    IfOffered,
    /// Or not at all.
    Required,
}

/// How to log in.
#[derive(Debug, Clone)]
pub struct Credentials {
    /// User name on the server.
    pub user: Vec<u8>,
    /// Passwords to try in turn.
    pub passwords: Arc<[Secret]>,
}

/// What the log-in packet says beside the credentials.
#[derive(Debug, Clone)]
pub struct Wish {
    /// The abilities that the session uses; the connection gets those that the server has.
    pub capabilities: Capabilities,
    /// Abilities without which the connection would not speak as the client was promised.
    pub needed: Capabilities,
    /// Largest packet.
    pub max_packet: u32,
    /// Collation id.
    pub charset: u16,
    /// Initial schema.
    pub schema: Option<Vec<u8>>,
    /// Connection attributes, the body of their block.
    pub attributes: Box<[u8]>,
    /// Encryption.
    pub tls: TlsWish,
    /// The connection cannot be listened to anyway (a unix socket).
    pub local: bool,
}

impl Wish {
    /// A log-in for Atlas's own questions, of no client's abilities.
    #[must_use]
    pub fn bare(tls: TlsWish, local: bool) -> Self {
        Self {
            capabilities: Capabilities::LONG_PASSWORD | Capabilities::PLUGIN_AUTH,
            needed: Capabilities::NONE,
            max_packet: 1 << 24,
            charset: 45,
            schema: None,
            attributes: Box::default(),
            tls,
            local,
        }
    }
}

/// Why a server connection did not come to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// No host may be asked.
    NoHost,
    /// Connecting, TLS or log-in did not succeed; what happened, where.
    Unreachable(String),
    /// This process may open no more sockets; it says nothing about the server.
    Exhausted(String),
    /// The server's own refusal.
    Refused {
        /// Code.
        code: u16,
        /// SQL state.
        sqlstate: [u8; 5],
        /// Text.
        message: String,
    },
    /// The server lacks what the client was promised.
    Incompatible,
}

impl Failure {
    /// What a server says of a statement that a KILL QUERY has ended: nobody waits for a connection any more.
    #[must_use]
    pub fn interrupted() -> Self {
        let fault = super::Fault::Interrupted;
        let (code, sqlstate) = fault.code();
        Self::Refused {
            code,
            sqlstate,
            message: fault.to_string(),
        }
    }
}

/// A connection that may be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ready {
    /// The server's id of the connection.
    pub thread_id: u32,
    /// Negotiated capabilities.
    pub capabilities: Capabilities,
    /// Status flags of the log-in's OK.
    pub status: Status,
    /// The payload of the log-in's OK.
    pub ok: Vec<u8>,
    /// What the server said of itself.
    pub facts: ServerFacts,
}

/// What the shell is to do.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// More bytes are needed.
    Wait,
    /// Send these packets.
    Send(Vec<u8>),
    /// Send these packets, then go on in TLS and call [`Upstream::tls_ready`].
    SendThenTls(Vec<u8>),
    /// Done; bytes that follow belong to replies.
    Ready(Box<Ready>),
    /// The connection is of no use.
    Failed(Failure),
}

#[derive(Debug)]
enum State {
    AwaitGreeting,
    AwaitTls {
        greeting: Box<Seen>,
        seq: u8,
    },
    AwaitVerdict {
        greeting: Box<Seen>,
        auth: Box<ClientAuth>,
        capabilities: Capabilities,
    },
    Over,
}

#[derive(Debug)]
struct Seen {
    facts: ServerFacts,
    thread_id: u32,
    nonce: [u8; 20],
}

/// The log-in to one server.
#[derive(Debug)]
pub struct Upstream {
    wish: Wish,
    credentials: Credentials,
    /// Which of the passwords is being tried.
    attempt: usize,
    encrypted: bool,
    state: State,
}

/// A packet of the log-in is at most this long; anything longer is not a server's.
const PACKET_MAX: usize = 64 * 1024;

impl Upstream {
    /// Starts with nothing received. `attempt` counts the passwords tried on earlier connections.
    #[must_use]
    pub fn new(wish: Wish, credentials: Credentials, attempt: usize) -> Self {
        Self {
            wish,
            credentials,
            attempt,
            encrypted: false,
            state: State::AwaitGreeting,
        }
    }

    /// The same log-in, for another connection, by the password listed next; `None` when this was the last.
    #[must_use]
    pub fn by_next_password(&self) -> Option<Self> {
        let next = self.attempt.saturating_add(1);
        (next < self.credentials.passwords.len())
            .then(|| Self::new(self.wish.clone(), self.credentials.clone(), next))
    }

    /// Takes one packet from the front of the bytes; returns how many bytes it took.
    pub fn handle(&mut self, bytes: &[u8]) -> (usize, Step) {
        let Some(header) = Header::parse(bytes) else {
            return (0, Step::Wait);
        };
        if header.len > PACKET_MAX {
            return (0, self.fail("a packet too long for a log-in"));
        }
        let end = header.len + 4;
        let Some(payload) = bytes.get(4..end) else {
            return (0, Step::Wait);
        };
        let step = match std::mem::replace(&mut self.state, State::Over) {
            State::AwaitGreeting => self.greeting(payload, header.seq),
            State::AwaitVerdict {
                greeting,
                auth,
                capabilities,
            } => self.verdict(payload, header.seq, greeting, auth, capabilities),
            State::AwaitTls { .. } => self.fail("bytes in clear after the request for TLS"),
            State::Over => self.fail("a packet after the log-in failed"),
        };
        (end, step)
    }

    /// Whether the TLS handshake is waited for.
    #[must_use]
    pub fn awaits_tls(&self) -> bool {
        matches!(self.state, State::AwaitTls { .. })
    }

    /// The TLS handshake is through: the log-in follows.
    pub fn tls_ready(&mut self) -> Step {
        self.encrypted = true;
        match std::mem::replace(&mut self.state, State::Over) {
            State::AwaitTls { greeting, seq } => self.login(greeting, seq, Vec::new()),
            State::AwaitGreeting | State::AwaitVerdict { .. } | State::Over => {
                self.fail("TLS out of turn")
            }
        }
    }

    fn greeting(&mut self, payload: &[u8], seq: u8) -> Step {
        if payload.first() == Some(&0xff) {
            return refused(payload).map_or_else(|| self.fail("a malformed refusal"), Step::Failed);
        }
        let Ok(greeting) = Greeting::parse(payload) else {
            return self.fail("a malformed greeting");
        };
        let seen = Box::new(Seen {
            facts: ServerFacts::from_greeting(&greeting),
            thread_id: greeting.thread_id,
            nonce: greeting.nonce,
        });
        if !seen.facts.capabilities.contains(self.wish.needed) {
            return Step::Failed(Failure::Incompatible);
        }
        let offered = seen.facts.capabilities.contains(Capabilities::SSL);
        let use_tls = match self.wish.tls {
            TlsWish::No => false,
            TlsWish::IfOffered => offered,
            TlsWish::Required if offered => true,
            TlsWish::Required => {
                return Step::Failed(Failure::Unreachable(
                    "the server offers no TLS, which the group's `tls` requires".to_owned(),
                ));
            }
        };
        let seq = seq.wrapping_add(1);
        if !use_tls {
            return self.login(seen, seq, Vec::new());
        }
        let mut out = Vec::new();
        let request = SslRequest {
            capabilities: self.capabilities(&seen) | Capabilities::SSL,
            max_packet: self.wish.max_packet,
            charset: self.wish.charset,
        };
        let seq = request.write(&mut out, seq);
        self.state = State::AwaitTls {
            greeting: seen,
            seq,
        };
        Step::SendThenTls(out)
    }

    fn capabilities(&self, seen: &Seen) -> Capabilities {
        let mut capabilities = self.wish.capabilities.intersection(seen.facts.capabilities);
        // Bit 0 tells a MySQL client from a MariaDB one, whatever the server's own bit says.
        capabilities = capabilities
            | self
                .wish
                .capabilities
                .intersection(Capabilities::LONG_PASSWORD);
        capabilities = capabilities.without(Capabilities::SSL)
            | Capabilities::PROTOCOL_41
            | Capabilities::SECURE_CONNECTION
            | seen
                .facts
                .capabilities
                .intersection(Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA);
        // What the log-in packet will have in it is Atlas's to say, not the client's. A request for TLS must say the same:
        // MariaDB reads the log-in behind it by the flags of the request.
        let has = |flag| seen.facts.capabilities.contains(flag);
        for (flag, is_there) in [
            (Capabilities::PLUGIN_AUTH, has(Capabilities::PLUGIN_AUTH)),
            (Capabilities::CONNECT_WITH_DB, self.wish.schema.is_some()),
            (
                Capabilities::CONNECT_ATTRS,
                has(Capabilities::CONNECT_ATTRS) && !self.wish.attributes.is_empty(),
            ),
        ] {
            capabilities = if is_there {
                capabilities | flag
            } else {
                capabilities.without(flag)
            };
        }
        capabilities
    }

    fn login(&mut self, seen: Box<Seen>, seq: u8, mut out: Vec<u8>) -> Step {
        let password = self
            .credentials
            .passwords
            .get(self.attempt)
            .cloned()
            .unwrap_or_else(|| Secret::from(""));
        let mut auth = Box::new(if self.wish.local && !self.encrypted {
            ClientAuth::on_unix_socket(password)
        } else {
            ClientAuth::new(password, self.encrypted)
        });
        let response = auth.first(&seen.facts.plugin, &seen.nonce);
        let mut capabilities = self.capabilities(&seen);
        if self.encrypted {
            capabilities = capabilities | Capabilities::SSL;
        }
        let attributes: &[u8] = if capabilities.contains(Capabilities::CONNECT_ATTRS) {
            &self.wish.attributes
        } else {
            &[]
        };
        let has_plugins = capabilities.contains(Capabilities::PLUGIN_AUTH);
        let login = Login {
            capabilities,
            max_packet: self.wish.max_packet,
            charset: self.wish.charset,
            user: &self.credentials.user,
            auth: &response,
            schema: self.wish.schema.as_deref(),
            plugin: has_plugins.then_some(auth.plugin().as_bytes()),
            attributes,
            zstd_level: None,
        };
        login.write(&mut out, seq);
        self.state = State::AwaitVerdict {
            greeting: seen,
            auth,
            capabilities,
        };
        Step::Send(out)
    }

    fn verdict(
        &mut self,
        payload: &[u8],
        seq: u8,
        greeting: Box<Seen>,
        mut auth: Box<ClientAuth>,
        capabilities: Capabilities,
    ) -> Step {
        match auth.handle(payload) {
            Ok(AuthStep::Send(answer)) => {
                let mut out = Vec::new();
                write_payload(&mut out, seq.wrapping_add(1), &answer);
                self.state = State::AwaitVerdict {
                    greeting,
                    auth,
                    capabilities,
                };
                Step::Send(out)
            }
            Ok(AuthStep::Wait) => {
                self.state = State::AwaitVerdict {
                    greeting,
                    auth,
                    capabilities,
                };
                Step::Wait
            }
            Ok(AuthStep::Done) => {
                let status = OkPacket::parse(payload, capabilities)
                    .map_or(Status::AUTOCOMMIT, |ok| ok.status);
                Step::Ready(Box::new(Ready {
                    thread_id: greeting.thread_id,
                    capabilities,
                    status,
                    ok: payload.to_vec(),
                    facts: greeting.facts,
                }))
            }
            Ok(AuthStep::Refused {
                code,
                sqlstate,
                message,
            }) => Step::Failed(Failure::Refused {
                code,
                sqlstate: sqlstate.unwrap_or(*b"HY000"),
                message: String::from_utf8_lossy(&message).into_owned(),
            }),
            Err(error) => Step::Failed(Failure::Unreachable(error.to_string())),
        }
    }

    fn fail(&mut self, why: &str) -> Step {
        self.state = State::Over;
        Step::Failed(Failure::Unreachable(format!("the server sent {why}")))
    }
}

fn refused(payload: &[u8]) -> Option<Failure> {
    let err = crate::wire::ErrPacket::parse(payload).ok()?;
    Some(Failure::Refused {
        code: err.code,
        sqlstate: err.sqlstate.unwrap_or(if err.code == 1040 {
            *b"08004"
        } else {
            *b"HY000"
        }),
        message: String::from_utf8_lossy(err.message).into_owned(),
    })
}

#[cfg(test)]
mod tests;
