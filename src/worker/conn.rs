//! A socket with what it needs: memory of readiness (mio tells of edges only), bytes that the peer has not taken yet, and
//! TLS when there is some. It knows nothing of the protocol.

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};
use socket2::{SockRef, TcpKeepalive};

use super::sys;
use super::tls::TlsSession;

/// Reads of what nobody wants any more, in one go.
const DISCARDS_PER_TURN: usize = 64;

/// A stream socket of either family.
#[derive(Debug)]
pub enum Socket {
    /// TCP.
    Tcp(TcpStream),
    /// A unix socket.
    Unix(UnixStream),
    /// None: the peer is in this worker, and takes what is kept for it by [`Conn::take_kept`].
    Inner,
}

impl Socket {
    /// Delay and keepalive: a peer that vanished without a word is noticed within a minute.
    pub(super) fn tune(&self) {
        if let Self::Tcp(stream) = self {
            let _ = stream.set_nodelay(true);
            let socket = SockRef::from(stream);
            let keepalive = TcpKeepalive::new()
                .with_time(Duration::from_secs(30))
                .with_interval(Duration::from_secs(10))
                .with_retries(3);
            let _ = socket.set_tcp_keepalive(&keepalive);
            let _ = socket.set_tcp_user_timeout(Some(Duration::from_secs(60)));
        }
    }

    fn fd(&self) -> io::Result<BorrowedFd<'_>> {
        match self {
            Self::Tcp(stream) => Ok(stream.as_fd()),
            Self::Unix(stream) => Ok(stream.as_fd()),
            Self::Inner => Err(ErrorKind::WouldBlock.into()),
        }
    }

    /// The error that a connect ended with, if it did; `Ok(false)` while it goes on.
    ///
    /// # Errors
    /// The connect's.
    pub(super) fn connected(&self) -> io::Result<bool> {
        let pending = match self {
            Self::Tcp(stream) => stream.take_error()?,
            Self::Unix(stream) => stream.take_error()?,
            Self::Inner => None,
        };
        if let Some(error) = pending {
            return Err(error);
        }
        let peer = match self {
            Self::Tcp(stream) => stream.peer_addr().map(|_| ()),
            Self::Unix(stream) => stream.peer_addr().map(|_| ()),
            Self::Inner => Ok(()),
        };
        match peer {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotConnected => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        sys::receive(self.fd()?, buffer)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        sys::send(self.fd()?, bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What a read brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Received {
    /// So many bytes; more may be there if [`Conn::may_read`].
    Bytes(usize),
    /// Nothing now.
    Nothing,
    /// The peer will send no more, or the connection is broken.
    Closed,
}

/// A unix socket's place in the event loop, for changing what is watched.
#[derive(Debug)]
struct Watch {
    registry: Arc<Registry>,
    token: Token,
}

/// See the module's words.
#[derive(Debug)]
pub(super) struct Conn {
    socket: Socket,
    /// Of a unix socket that is registered.
    watch: Option<Box<Watch>>,
    tls: Option<Box<TlsSession>>,
    /// Bytes for the peer that its socket did not take, from `out_start`.
    out: Vec<u8>,
    out_start: usize,
    /// The peer can do nothing with what is kept for it before there is more.
    wants_more: bool,
    may_read: bool,
    may_write: bool,
    peer_closed: bool,
    broken: bool,
    /// What TLS ended with.
    fault: Option<Box<str>>,
}

impl Conn {
    /// A connection over a socket that is to be registered next. There is room to write until a write says otherwise.
    #[must_use]
    pub(super) fn new(socket: Socket) -> Self {
        Self {
            socket,
            watch: None,
            tls: None,
            out: Vec::new(),
            out_start: 0,
            wants_more: false,
            may_read: false,
            may_write: true,
            peer_closed: false,
            broken: false,
            fault: None,
        }
    }

    /// Registers for events. The kernel tells of room in a TCP socket only after the socket was full, so that is watched once and
    /// for all. In a unix socket it tells of room each time that the peer has read, which would be one more wait for every
    /// statement, so that is watched only while the socket is full.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn register(&mut self, registry: &Arc<Registry>, token: Token) -> io::Result<()> {
        match &mut self.socket {
            Socket::Tcp(stream) => {
                registry.register(stream, token, Interest::READABLE | Interest::WRITABLE)
            }
            Socket::Unix(stream) => {
                registry.register(stream, token, Interest::READABLE)?;
                let registry = registry.clone();
                self.watch = Some(Box::new(Watch { registry, token }));
                Ok(())
            }
            Socket::Inner => Ok(()),
        }
    }

    /// Stops watching, for a connection that goes to another worker.
    pub(super) fn deregister(&mut self, registry: &Registry) {
        let _ = match &mut self.socket {
            Socket::Tcp(stream) => registry.deregister(stream),
            Socket::Unix(stream) => registry.deregister(stream),
            Socket::Inner => Ok(()),
        };
        self.watch = None;
    }

    /// Looks whether the peer has closed, or has sent what nobody asked for, without an event having told yet.
    pub(super) fn is_alive(&self) -> bool {
        let mut byte = [std::mem::MaybeUninit::uninit()];
        let peeked = match &self.socket {
            Socket::Tcp(stream) => SockRef::from(stream).peek(&mut byte),
            Socket::Unix(stream) => SockRef::from(stream).peek(&mut byte),
            Socket::Inner => return true,
        };
        matches!(peeked, Err(error) if error.kind() == ErrorKind::WouldBlock)
    }

    /// Notes that the socket is full, or no longer so.
    fn set_may_write(&mut self, may_write: bool) {
        if self.may_write == may_write {
            return;
        }
        self.may_write = may_write;
        if let (Socket::Unix(stream), Some(watch)) = (&mut self.socket, &self.watch) {
            let interest = if may_write {
                Interest::READABLE
            } else {
                Interest::READABLE | Interest::WRITABLE
            };
            // Where there is room by now the kernel tells at once.
            if watch
                .registry
                .reregister(stream, watch.token, interest)
                .is_err()
            {
                self.broken = true;
            }
        }
    }

    /// The socket, for connecting.
    pub(super) fn socket(&mut self) -> &mut Socket {
        &mut self.socket
    }

    /// How long ago something was last sent; nothing is known of unix sockets.
    pub(super) fn since_last_sent(&self) -> Option<Duration> {
        match &self.socket {
            Socket::Tcp(stream) => sys::since_last_sent(stream.as_fd()),
            Socket::Unix(_) | Socket::Inner => None,
        }
    }

    /// How long ago something was last sent or came; nothing is known of unix sockets.
    pub(super) fn quiet_for(&self) -> Option<Duration> {
        match &self.socket {
            Socket::Tcp(stream) => sys::quiet_for(stream.as_fd()),
            Socket::Unix(_) | Socket::Inner => None,
        }
    }

    /// Notes an event.
    pub(super) fn ready(&mut self, readable: bool, writable: bool, closed: bool) {
        self.may_read |= readable || closed;
        if writable {
            self.set_may_write(true);
        }
        self.peer_closed |= closed;
    }

    /// Bytes may be waiting in the socket.
    #[must_use]
    pub(super) fn may_read(&self) -> bool {
        self.may_read
    }

    /// The peer has said that it will send no more (or the connection broke). There may be bytes to read before that.
    #[must_use]
    pub(super) fn peer_closed(&self) -> bool {
        self.peer_closed || self.broken
    }

    /// The connection is of no use in either direction.
    #[must_use]
    pub(super) fn is_broken(&self) -> bool {
        self.broken
    }

    /// Why TLS ended, where it ended otherwise than by the peer's goodbye.
    #[must_use]
    pub(super) fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// The peer has not taken all bytes yet: whoever feeds it must wait.
    #[must_use]
    pub(super) fn is_behind(&self) -> bool {
        self.out_start < self.out.len() && !self.wants_more
            || self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Goes on in TLS. `received` are bytes that were read already and belong to it.
    pub(super) fn start_tls(&mut self, mut session: TlsSession, received: &[u8]) {
        session.feed(received);
        self.tls = Some(Box::new(session));
        self.may_read = true;
    }

    /// Whether the TLS handshake still goes on.
    #[must_use]
    pub(super) fn is_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    /// Reads once. A read that does not fill the buffer has emptied the socket, so no second one is spent on learning that;
    /// the next edge tells of more.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Received {
        if self.tls.is_some() {
            return self.read_tls(buffer);
        }
        loop {
            return match self.socket.read(buffer) {
                Ok(0) => Received::Closed,
                Ok(n) => {
                    // After a hang-up there is the end of the stream to be read yet, and no further edge.
                    self.may_read = n == buffer.len() || self.peer_closed;
                    Received::Bytes(n)
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.may_read = false;
                    Received::Nothing
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => {
                    self.broken = true;
                    Received::Closed
                }
            };
        }
    }

    #[inline(never)]
    fn read_tls(&mut self, buffer: &mut [u8]) -> Received {
        let Some(tls) = &mut self.tls else {
            return Received::Nothing;
        };
        match tls.read_from(&mut self.socket, buffer) {
            Ok(outcome) => {
                self.may_read = outcome.more_possible || (outcome.bytes > 0 && self.peer_closed);
                self.flush();
                match outcome.bytes {
                    0 if outcome.eof => Received::Closed,
                    0 => Received::Nothing,
                    n => {
                        self.may_read |= outcome.eof;
                        Received::Bytes(n)
                    }
                }
            }
            Err(error) => {
                // The peer is told why, if it still listens.
                let _ = tls.flush_to(&mut self.socket);
                self.fault = Some(error.to_string().into());
                self.broken = true;
                Received::Closed
            }
        }
    }

    /// Writes, keeping what the peer does not take. Errors show at the next read.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        if self.tls.is_none() && self.out_start == self.out.len() && self.may_write {
            match self.write_plain(bytes) {
                Ok(n) if n == bytes.len() => return,
                Ok(n) => rest = bytes.get(n..).unwrap_or_default(),
                Err(()) => return,
            }
        }
        self.keep(rest);
    }

    /// Bytes for TLS, or for a peer that takes no more now.
    #[inline(never)]
    fn keep(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.out.extend_from_slice(bytes);
            self.wants_more = false;
            if self.tls.is_some() {
                self.flush();
            }
        }
    }

    fn write_plain(&mut self, bytes: &[u8]) -> Result<usize, ()> {
        let mut written = 0;
        while written < bytes.len() {
            match self.socket.write(&bytes[written..]) {
                Ok(0) => break,
                Ok(n) => {
                    written += n;
                    if written < bytes.len() {
                        // A short write filled the socket; the next edge tells of room.
                        self.set_may_write(false);
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.set_may_write(false);
                    break;
                }
                // Still connecting: the first edge tells of it.
                Err(error) if error.kind() == ErrorKind::NotConnected => {
                    self.set_may_write(false);
                    break;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    self.broken = true;
                    self.out = Vec::new();
                    self.out_start = 0;
                    return Err(());
                }
            }
        }
        Ok(written)
    }

    /// Writes what was kept, as far as the peer takes it.
    pub(super) fn flush(&mut self) {
        if self.broken || !self.may_write {
            return;
        }
        let mut is_full = false;
        if let Some(tls) = &mut self.tls {
            loop {
                match tls.flush_to(&mut self.socket) {
                    Ok(true) => {}
                    Ok(false) => {
                        is_full = true;
                        break;
                    }
                    Err(_) => {
                        self.broken = true;
                        break;
                    }
                }
                if tls.is_handshaking() || self.out_start == self.out.len() {
                    break;
                }
                let taken = tls.write(self.out.get(self.out_start..).unwrap_or_default());
                self.out_start += taken;
                if taken == 0 {
                    break;
                }
            }
        } else if self.out_start < self.out.len() {
            let out = std::mem::take(&mut self.out);
            if let Ok(n) = self.write_plain(&out[self.out_start..]) {
                self.out = out;
                self.out_start += n;
            }
        }
        if is_full {
            self.set_may_write(false);
        }
        if self.out_start == self.out.len() {
            // An idle connection owns no memory for this.
            self.out = Vec::new();
            self.out_start = 0;
        }
    }

    /// Takes what is kept for a peer in this worker.
    pub(super) fn take_kept(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// What of it the peer has not dealt with, and whether it can when there is more.
    pub(super) fn put_back(&mut self, mut kept: Vec<u8>, consumed: usize, wants_more: bool) {
        kept.drain(..consumed.min(kept.len()));
        self.wants_more = wants_more;
        self.out = kept;
    }

    /// Tells the peer that nothing more will be said to it, and goes on hearing.
    pub(super) fn finish_sending(&mut self) {
        self.close();
        let _ = match &self.socket {
            Socket::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Socket::Unix(stream) => stream.shutdown(Shutdown::Write),
            Socket::Inner => Ok(()),
        };
    }

    /// Throws away what the peer still says. False when it has ended, or the connection has.
    pub(super) fn discard(&mut self) -> bool {
        let mut buffer = [0; 4096];
        for _ in 0..DISCARDS_PER_TURN {
            match self.socket.read(&mut buffer) {
                Ok(0) => return false,
                Ok(n) if n < buffer.len() && !self.peer_closed => return true,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
        // Who says so much after the end has no claim to hear why.
        false
    }

    /// Says goodbye where the protocol has a word for it.
    pub(super) fn close(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.close();
            let _ = tls.flush_to(&mut self.socket);
        }
    }
}
