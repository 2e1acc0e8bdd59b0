//! TLS of one connection, on either side, over buffers: bytes of a socket in, plaintext out, and back. This file and its
//! folder are the only ones that name rustls. What certificates and keys are used, and whom a server's certificate must
//! name, is in `config`; reading files is the configuration's business, when to start TLS the session's.
//!
//! A non-blocking, edge-triggered loop uses a [`TlsSession`] like this:
//!
//! 1. Before TLS, the client's SSLRequest travels in clear. Whatever lies behind it in the same read goes to
//!    [`feed`](TlsSession::feed), and nowhere else: bytes that somebody slipped in between must never be read as commands,
//!    and as TLS records they are nonsense, which ends the connection. The same holds for bytes behind a server's greeting.
//! 2. When the socket is readable (and once after `feed`): [`read_from`](TlsSession::read_from) until it says that no more
//!    is possible, or until the loop wants no more for now; then it must come back without waiting for an edge.
//! 3. After every `read_from`, and after [`write`](TlsSession::write): [`flush_to`](TlsSession::flush_to) while
//!    [`wants_write`](TlsSession::wants_write). Reading makes bytes to write, during the handshake and sometimes later.
//! 4. To end: [`close`](TlsSession::close), `flush_to`, close the socket. After an error, `flush_to` once, so that the peer
//!    gets the alert that tells why.
//!
//! Memory is bounded whatever the peer does: [`WRITE_BUFFER_MAX`] for what goes out; for what comes in, one record or
//! handshake message in rustls, plaintext of at most two records, and ciphertext of at most one read.

mod config;
mod error;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};

use rustls::Connection;

pub use config::{BackendTls, ServerTls};
pub use error::{TlsConfigError, TlsError};

/// Bytes that [`TlsSession::write`] takes before the socket takes any. Then it accepts less, or nothing.
pub const WRITE_BUFFER_MAX: usize = 64 * 1024;

/// TLS on one connection.
pub struct TlsSession {
    /// Boxed: more than a kilobyte, and most connections have no TLS.
    conn: Box<Connection>,
    /// Bytes of the peer that were read from the socket and not yet taken by rustls.
    pending: Vec<u8>,
    /// Plaintext that rustls holds because the caller's buffer was full.
    undrained: usize,
    end: Option<End>,
    has_failed: bool,
}

/// What one call of [`TlsSession::read_from`] gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadOutcome {
    /// Bytes of plaintext at the front of the caller's buffer. The rest of the buffer is scratch space: its content is lost.
    pub bytes: usize,
    /// No more plaintext will ever come.
    pub eof: bool,
    /// With `eof`: the peer closed its socket without the closing message of TLS. Many MySQL clients do; whether anything is
    /// missing is for the reader of packets to see.
    pub truncated: bool,
    /// Call again without waiting for an edge: plaintext or bytes of the peer are held here, or the socket may have more. When
    /// false, the read was shorter than the room for it, so that the next bytes (and an end of stream that comes later, but not
    /// one that the poll has reported already) will make a new edge.
    pub more_possible: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// By TLS's own closing message.
    Clean,
    /// By the socket alone.
    Truncated,
}

impl TlsSession {
    fn new(mut conn: Connection) -> Self {
        conn.set_buffer_limit(Some(WRITE_BUFFER_MAX));
        Self {
            conn: Box::new(conn),
            pending: Vec::new(),
            undrained: 0,
            end: None,
            has_failed: false,
        }
    }

    /// Takes bytes that were read from the socket before TLS began. They are processed by the next
    /// [`read_from`](Self::read_from), before anything from the socket. They are copied: the caller bounds them by its own
    /// receive buffer.
    pub fn feed(&mut self, already_read: &[u8]) {
        self.pending.extend_from_slice(already_read);
    }

    /// Reads from the socket at most once and gives the plaintext that comes of it. `plain` must not be empty; from 8 KiB on,
    /// its back half receives the encrypted bytes, so that one system call fetches much.
    ///
    /// # Errors
    /// The handshake failed, the peer broke the protocol, or the socket did. The session is of no more use; see step 4 above.
    pub fn read_from(
        &mut self,
        io: &mut dyn Read,
        plain: &mut [u8],
    ) -> Result<ReadOutcome, TlsError> {
        if self.has_failed {
            return Err(TlsError::AlreadyFailed);
        }
        let outcome = self.try_read(io, plain);
        self.has_failed = outcome.is_err();
        outcome
    }

    fn try_read(&mut self, io: &mut dyn Read, plain: &mut [u8]) -> Result<ReadOutcome, TlsError> {
        let mut small;
        let (text, cipher) = if plain.len() >= SPLIT_MIN {
            plain.split_at_mut(plain.len() / 2)
        } else {
            small = [0; SMALL_READ];
            (plain, &mut small[..])
        };
        let mut text = Text {
            buffer: text,
            bytes: 0,
        };
        let mut socket_is_drained = false;
        self.drain(&mut text)?;
        if self.undrained > 0 {
            // The caller's buffer is full: neither rustls nor the socket is asked for more.
        } else if !self.pending.is_empty() {
            let mut pending = std::mem::take(&mut self.pending);
            let used = self.decrypt(&pending, &mut text)?;
            if used < pending.len() {
                pending.drain(..used);
                self.pending = pending;
            }
        } else if self.end.is_none() {
            match read_once(io, cipher)? {
                None => socket_is_drained = true,
                Some(0) => {
                    if self.conn.is_handshaking() {
                        return Err(TlsError::ClosedInHandshake);
                    }
                    self.end = Some(End::Truncated);
                }
                Some(n) => {
                    socket_is_drained = n < cipher.len();
                    let received = cipher.get(..n).unwrap_or_default();
                    let used = self.decrypt(received, &mut text)?;
                    self.pending = received.get(used..).unwrap_or_default().to_vec();
                }
            }
        }
        let is_held = self.undrained > 0 || !self.pending.is_empty();
        let eof = self.end.is_some() && !is_held;
        Ok(ReadOutcome {
            bytes: text.bytes,
            eof,
            truncated: eof && self.end == Some(End::Truncated),
            more_possible: !eof && (is_held || !socket_is_drained),
        })
    }

    /// Gives the peer's bytes to rustls as far as the plaintext has room; returns how many it took.
    fn decrypt(&mut self, received: &[u8], text: &mut Text<'_>) -> Result<usize, TlsError> {
        let mut rest = received;
        while !rest.is_empty() && self.undrained == 0 {
            match self.conn.read_tls(&mut rest) {
                // "Any data received after a closure alert has been received MUST be ignored." (RFC 8446, 6.1)
                Ok(0) if self.end.is_some() => return Ok(received.len()),
                Ok(0) => return Err(TlsError::Protocol("a record that is too long".to_owned())),
                Ok(_) => {}
                Err(error) => return Err(TlsError::Protocol(error.to_string())),
            }
            let is_handshaking = self.conn.is_handshaking();
            let state = self
                .conn
                .process_new_packets()
                .map_err(|error| TlsError::new(error, is_handshaking))?;
            self.undrained = state.plaintext_bytes_to_read();
            if state.peer_has_closed() {
                self.end = Some(End::Clean);
            }
            self.drain(text)?;
        }
        Ok(received.len().saturating_sub(rest.len()))
    }

    /// Moves plaintext from rustls to the caller's buffer.
    fn drain(&mut self, text: &mut Text<'_>) -> Result<(), TlsError> {
        while self.undrained > 0 {
            let room = text.buffer.get_mut(text.bytes..).unwrap_or_default();
            if room.is_empty() {
                break;
            }
            let n = self.conn.reader().read(room).map_err(TlsError::Io)?;
            if n == 0 {
                // rustls counts what it holds: this would be its fault. Believing it avoids a loop.
                self.undrained = 0;
            }
            text.bytes = text.bytes.saturating_add(n);
            self.undrained = self.undrained.saturating_sub(n);
        }
        Ok(())
    }

    /// Encrypts as much of `plain` as the buffer takes, and returns how much that was: 0 when it is full (flush first), and
    /// after a failure. Before the handshake is over the bytes wait.
    pub fn write(&mut self, plain: &[u8]) -> usize {
        if self.has_failed {
            0
        } else {
            self.conn.writer().write(plain).unwrap_or(0)
        }
    }

    /// Writes encrypted bytes to the socket; true when all of them left, false when the socket takes no more for now.
    ///
    /// # Errors
    /// The socket's.
    pub fn flush_to(&mut self, io: &mut dyn Write) -> Result<bool, TlsError> {
        while self.conn.wants_write() {
            match self.conn.write_tls(io) {
                Ok(0) => return Err(TlsError::Io(ErrorKind::WriteZero.into())),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(TlsError::Io(error)),
            }
        }
        Ok(true)
    }

    /// Whether the handshake is still going on. Plaintext comes only after it.
    pub fn is_handshaking(&self) -> bool {
        self.conn.is_handshaking()
    }

    /// Whether there is something to flush.
    pub fn wants_write(&self) -> bool {
        self.conn.wants_write()
    }

    /// Says to the peer that nothing will follow; goes out with the next [`flush_to`](Self::flush_to). Reading stays possible.
    pub fn close(&mut self) {
        self.conn.send_close_notify();
    }

    /// Version and cipher suite for the log, such as `TLSv1_3 TLS13_AES_256_GCM_SHA384`; empty before they are agreed.
    pub fn describe(&self) -> String {
        match (
            self.conn.protocol_version(),
            self.conn.negotiated_cipher_suite(),
        ) {
            (Some(version), Some(suite)) => format!("{version:?} {:?}", suite.suite()),
            _ => String::new(),
        }
    }
}

impl fmt::Debug for TlsSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsSession")
            .field("agreed", &self.describe())
            .field("pending", &self.pending.len())
            .field("undrained", &self.undrained)
            .field("end", &self.end)
            .field("has_failed", &self.has_failed)
            .finish_non_exhaustive()
    }
}

/// The caller's buffer and how much of it is filled.
struct Text<'a> {
    buffer: &'a mut [u8],
    bytes: usize,
}

/// One read; `None` when the socket has nothing now.
fn read_once(io: &mut dyn Read, buffer: &mut [u8]) -> Result<Option<usize>, TlsError> {
    loop {
        return match io.read(buffer) {
            Ok(n) => Ok(Some(n)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => Err(TlsError::Io(error)),
        };
    }
}

impl From<TlsError> for io::Error {
    fn from(error: TlsError) -> Self {
        match error {
            TlsError::Io(error) => error,
            other => Self::new(ErrorKind::InvalidData, other),
        }
    }
}

/// From this size of the caller's buffer on, half of it is used for reading.
const SPLIT_MIN: usize = 8 * 1024;
/// Bytes of one read when the caller's buffer is small.
const SMALL_READ: usize = 4 * 1024;
