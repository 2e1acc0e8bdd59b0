//! Atlas as the client of a server: answers the server's challenges until it says OK or ERR. Payloads in, payloads out; framing,
//! sequence ids and the log-in packet around the first answer are the caller's.
//!
//! Spoken: `mysql_native_password`, `caching_sha2_password`, `sha256_password`, MariaDB's `client_ed25519`, and
//! `mysql_clear_password` over TLS. A server may switch plugins at any point before its OK.
//!
//! ```text
//!  first ── Login packet ──► AwaitVerdict ── OK ──────────────► Done   (ERR anywhere ──► Refused)
//!                              │ │ ▲  01 03 ──► AwaitOk ─ OK ─► Done
//!   fe: switch, anywhere,      │ └─┘              ▲
//!   is answered at once        │ 01 04 ─ safe: clear password
//!                              │ 01 04 ─ else: "send your key" ──► AwaitKey ─ key: encrypted password ──► AwaitOk
//!                              └ sha256_password without TLS starts in AwaitKey
//! ```
//!
//! A clear-text password leaves only where [`ClientAuth`] was told that nobody can listen.

use std::fmt;

use thiserror::Error;

use crate::wire::{AuthSwitch, ErrPacket, Malformed};

use super::rsa::{self, RsaError};
use super::{Secret, caching_sha2_scramble, ed25519_sign, native_scramble};

/// What to do after a packet of the server.
#[derive(Clone, PartialEq, Eq)]
pub enum AuthStep {
    /// Send this payload (it may be empty: an empty packet is an answer too), with the next sequence id.
    Send(Vec<u8>),
    /// Nothing to send: the server's next packet follows.
    Wait,
    /// That was the OK packet: logged in. Its status and session state are the caller's to read.
    Done,
    /// That was an ERR packet: the server refuses.
    Refused {
        /// The server's error code.
        code: u16,
        /// The SQL state, where the packet has one.
        sqlstate: Option<[u8; 5]>,
        /// The server's text, as it came.
        message: Vec<u8>,
    },
}

/// Why a log-in to a server cannot go on. The server connection is of no more use.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum AuthError {
    /// The account uses a plugin that Atlas does not speak.
    #[error(
        "the server asks for the authentication plugin `{plugin}`, which Atlas does not speak: give the account \
         mysql_native_password, caching_sha2_password, sha256_password or client_ed25519"
    )]
    UnsupportedPlugin {
        /// The plugin's name, cut and made printable.
        plugin: String,
    },
    /// The plugin sends the password as it is, and the connection is not encrypted.
    #[error(
        "the server asks for the clear-text password (plugin `mysql_clear_password`) over a connection without TLS: \
         set the group's `tls` to \"required\" or stricter, or give the account another plugin"
    )]
    ClearTextWithoutTls,
    /// The one-byte switch request of servers before 4.1, or of accounts that kept such a password.
    #[error(
        "the server asks for the pre-4.1 password scheme, which is not safe: set the account's password again with \
         mysql_native_password or a later plugin (on the server, old_passwords=0)"
    )]
    OldPassword,
    /// The account needs more than one factor.
    #[error(
        "the account asks for a second authentication factor: Atlas needs an account with one password only"
    )]
    SecondFactor,
    /// The server's challenge is too short for its plugin.
    #[error(
        "the server's challenge for `{plugin}` has {len} bytes, {wanted} are needed: is this a MySQL or MariaDB server?"
    )]
    ShortNonce {
        /// The plugin.
        plugin: &'static str,
        /// Bytes received.
        len: usize,
        /// Bytes needed.
        wanted: usize,
    },
    /// What the server sent as its RSA key cannot be used.
    #[error(
        "the server's RSA public key cannot be read: check caching_sha2_password_public_key_path on the server, or use TLS"
    )]
    BadKey,
    /// The password does not fit into one RSA block.
    #[error(
        "the password is too long for the server's RSA key: use TLS, a longer key, or a shorter password"
    )]
    PasswordTooLong,
    /// The server sent something that does not belong here.
    #[error(
        "unexpected packet from the server while {awaiting} (first byte {first:#04x}, {len} bytes)"
    )]
    Unexpected {
        /// What was awaited.
        awaiting: &'static str,
        /// First byte of the payload, 0 when it is empty.
        first: u8,
        /// Length of the payload in bytes.
        len: usize,
    },
    /// A packet of the server that cannot be read.
    #[error("log-in to the server: {0}")]
    Malformed(#[from] Malformed),
    /// The server goes on asking.
    #[error("the server asked {ROUNDS_MAX} times without an answer to the log-in: giving up")]
    TooManyRounds,
}

/// A log-in (or a COM_CHANGE_USER) in progress.
pub struct ClientAuth {
    password: Secret,
    transport: Transport,
    /// The plugin that answers now.
    method: Method,
    nonce: [u8; 20],
    state: State,
    rounds: u8,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Transport {
    Plain,
    Tls,
    /// Safe from listeners; but `sha256_password` and `mysql_clear_password` go by encryption alone.
    UnixSocket,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Method {
    Native,
    CachingSha2,
    Sha256,
    Ed25519,
    Clear,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    AwaitVerdict,
    /// `caching_sha2_password` said 0x03: only OK or ERR may follow.
    AwaitOk,
    AwaitKey,
    Done,
    Failed(AuthError),
}

impl ClientAuth {
    /// `secure` says that the connection is encrypted by TLS, so that a clear-text password may be sent. For unix sockets see
    /// [`on_unix_socket`](Self::on_unix_socket).
    pub fn new(password: Secret, secure: bool) -> Self {
        Self::with_transport(
            password,
            if secure {
                Transport::Tls
            } else {
                Transport::Plain
            },
        )
    }

    /// For a connection over a unix socket without TLS: `caching_sha2_password` sends the clear password there as MySQL's own
    /// client does, the other plugins treat it as not encrypted, because the server does.
    pub fn on_unix_socket(password: Secret) -> Self {
        Self::with_transport(password, Transport::UnixSocket)
    }

    fn with_transport(password: Secret, transport: Transport) -> Self {
        Self {
            password,
            transport,
            method: Method::Native,
            nonce: [0; 20],
            state: State::AwaitVerdict,
            rounds: 0,
        }
    }

    /// The answer for the log-in packet, by the plugin and nonce of the greeting. The packet must name
    /// [`plugin`](Self::plugin). When the greeting's plugin cannot be used here, the answer is made with
    /// `mysql_native_password`, and the server switches.
    pub fn first(&mut self, plugin: &[u8], nonce: &[u8]) -> Vec<u8> {
        let mut start = || {
            let method = Method::from_name(plugin)?;
            self.begin(method, nonce).ok()
        };
        if let Some(answer) = start() {
            return answer;
        }
        self.begin(Method::Native, nonce).unwrap_or_default()
    }

    /// Name of the plugin that made the last answer.
    pub fn plugin(&self) -> &'static str {
        self.method.name()
    }

    /// Takes a packet of the server. After `Done`, `Refused` or an error, every further packet is an error.
    pub fn handle(&mut self, payload: &[u8]) -> Result<AuthStep, AuthError> {
        if let State::Failed(error) = &self.state {
            return Err(error.clone());
        }
        let step = self.on_packet(payload);
        if let Err(error) = &step {
            self.state = State::Failed(error.clone());
        }
        step
    }

    fn on_packet(&mut self, payload: &[u8]) -> Result<AuthStep, AuthError> {
        if self.state == State::Done {
            return Err(self.unexpected(payload));
        }
        self.rounds = self.rounds.saturating_add(1);
        if self.rounds > ROUNDS_MAX {
            return Err(AuthError::TooManyRounds);
        }
        match payload {
            [0x00, _, ..] => {
                self.state = State::Done;
                Ok(AuthStep::Done)
            }
            [0xff, ..] => {
                let refusal = ErrPacket::parse(payload)?;
                self.state = State::Done;
                Ok(AuthStep::Refused {
                    code: refusal.code,
                    sqlstate: refusal.sqlstate,
                    message: refusal.message.to_vec(),
                })
            }
            [0xfe, ..] => self.on_switch(AuthSwitch::parse(payload)?),
            [0x02, ..] => Err(AuthError::SecondFactor),
            // MySQL puts 0x01 before all plugin data, MariaDB only where the data could be taken for another packet.
            [0x01, data @ ..] => self.on_data(data, payload),
            data => self.on_data(data, payload),
        }
    }

    fn on_switch(&mut self, switch: AuthSwitch<'_>) -> Result<AuthStep, AuthError> {
        if switch.plugin == b"mysql_old_password" {
            return Err(AuthError::OldPassword);
        }
        let Some(method) = Method::from_name(switch.plugin) else {
            return Err(AuthError::UnsupportedPlugin {
                plugin: printable(switch.plugin),
            });
        };
        self.begin(method, switch.nonce()).map(AuthStep::Send)
    }

    /// Starts `method` and gives its first answer.
    fn begin(&mut self, method: Method, nonce: &[u8]) -> Result<Vec<u8>, AuthError> {
        let short = |wanted| AuthError::ShortNonce {
            plugin: method.name(),
            len: nonce.len(),
            wanted,
        };
        let password = self.password.expose();
        let mut nonce20 = [0; 20];
        if method != Method::Clear {
            nonce20 = *nonce.first_chunk().ok_or_else(|| short(20))?;
        }
        let (answer, state) = match method {
            Method::Native => (native_scramble(password, &nonce20), State::AwaitVerdict),
            Method::CachingSha2 => (
                caching_sha2_scramble(password, &nonce20),
                State::AwaitVerdict,
            ),
            Method::Ed25519 => {
                let nonce32: &[u8; 32] = nonce.first_chunk().ok_or_else(|| short(32))?;
                (
                    ed25519_sign(password, nonce32).to_vec(),
                    State::AwaitVerdict,
                )
            }
            Method::Sha256 if password.is_empty() => (vec![0], State::AwaitVerdict),
            Method::Sha256 if self.transport == Transport::Tls => {
                (self.clear_password(), State::AwaitVerdict)
            }
            Method::Sha256 => (vec![SHA256_ASKS_FOR_KEY], State::AwaitKey),
            Method::Clear if self.transport == Transport::Tls => {
                (self.clear_password(), State::AwaitVerdict)
            }
            Method::Clear => return Err(AuthError::ClearTextWithoutTls),
        };
        (self.method, self.nonce, self.state) = (method, nonce20, state);
        Ok(answer)
    }

    /// Data of the plugin. `payload` is the whole packet, for the error.
    fn on_data(&mut self, data: &[u8], payload: &[u8]) -> Result<AuthStep, AuthError> {
        match (&self.state, self.method, data) {
            (State::AwaitVerdict, Method::CachingSha2, [CACHING_SHA2_FAST_OK]) => {
                self.state = State::AwaitOk;
                Ok(AuthStep::Wait)
            }
            (State::AwaitVerdict, Method::CachingSha2, [CACHING_SHA2_FULL]) => match self.transport
            {
                Transport::Tls | Transport::UnixSocket => {
                    self.state = State::AwaitOk;
                    Ok(AuthStep::Send(self.clear_password()))
                }
                Transport::Plain => {
                    self.state = State::AwaitKey;
                    Ok(AuthStep::Send(vec![CACHING_SHA2_ASKS_FOR_KEY]))
                }
            },
            (State::AwaitKey, Method::CachingSha2 | Method::Sha256, pem) => {
                let encrypted = rsa::encrypt_password(self.password.expose(), &self.nonce, pem)
                    .map_err(|error| match error {
                        RsaError::Key => AuthError::BadKey,
                        RsaError::PasswordTooLong => AuthError::PasswordTooLong,
                    })?;
                self.state = State::AwaitOk;
                Ok(AuthStep::Send(encrypted))
            }
            _ => Err(self.unexpected(payload)),
        }
    }

    /// The password and a zero byte. Callers have checked the transport.
    fn clear_password(&self) -> Vec<u8> {
        let password = self.password.expose();
        let mut out = Vec::with_capacity(password.len().saturating_add(1));
        out.extend_from_slice(password);
        out.push(0);
        out
    }

    fn unexpected(&self, payload: &[u8]) -> AuthError {
        let first = payload.first().copied().unwrap_or_default();
        AuthError::Unexpected {
            awaiting: self.awaiting(),
            first,
            len: payload.len(),
        }
    }

    fn awaiting(&self) -> &'static str {
        match self.state {
            State::AwaitVerdict => "waiting for the answer to a log-in",
            State::AwaitOk => "waiting for OK after the password was checked",
            State::AwaitKey => "waiting for the server's RSA public key",
            State::Done | State::Failed(_) => "nothing was awaited: the log-in is over",
        }
    }
}

impl Method {
    const ALL: [Self; 5] = [
        Self::Native,
        Self::CachingSha2,
        Self::Sha256,
        Self::Ed25519,
        Self::Clear,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Native => "mysql_native_password",
            Self::CachingSha2 => "caching_sha2_password",
            Self::Sha256 => "sha256_password",
            Self::Ed25519 => "client_ed25519",
            Self::Clear => "mysql_clear_password",
        }
    }

    fn from_name(name: &[u8]) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|m| name.eq_ignore_ascii_case(m.name().as_bytes()))
    }
}

/// A name from the network for an error text: at most 64 bytes, anything but printable ASCII replaced.
fn printable(name: &[u8]) -> String {
    name.iter()
        .take(64)
        .map(|byte| {
            if byte.is_ascii_graphic() {
                char::from(*byte)
            } else {
                '?'
            }
        })
        .collect()
}

impl fmt::Debug for ClientAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientAuth")
            .field("plugin", &self.plugin())
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

/// What is sent may be the clear password: only its length is shown.
impl fmt::Debug for AuthStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Send(payload) => write!(f, "Send({} bytes)", payload.len()),
            Self::Wait => f.write_str("Wait"),
            Self::Done => f.write_str("Done"),
            Self::Refused { code, message, .. } => {
                write!(f, "Refused({code}, {:?})", String::from_utf8_lossy(message))
            }
        }
    }
}

/// Packets of a server before the verdict; a real log-in needs at most five.
const ROUNDS_MAX: u8 = 16;

/// `caching_sha2_password`: the server had the password's digest cached, and it fits.
const CACHING_SHA2_FAST_OK: u8 = 3;
/// `caching_sha2_password`: the server wants the password itself.
const CACHING_SHA2_FULL: u8 = 4;
/// `caching_sha2_password`: the client wants the server's RSA key.
const CACHING_SHA2_ASKS_FOR_KEY: u8 = 2;
/// `sha256_password`: the same wish has another number.
const SHA256_ASKS_FOR_KEY: u8 = 1;

#[cfg(test)]
mod tests;
