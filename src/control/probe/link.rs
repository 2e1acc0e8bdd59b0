//! A blocking connection of a check: a socket, its TLS if any, and what has arrived. Every step has the check's deadline.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use socket2::{Domain, SockAddr, Socket, Type};

use super::Fault;
use crate::wire::Header;
use crate::worker::is_exhaustion;
use crate::worker::tls::TlsSession;

/// Bytes that may be held: nothing that a check asks for is longer.
const RECEIVED_MAX: usize = 1 << 20;

/// Connects to the first of the addresses that lets it.
pub(super) fn tcp(
    addresses: &[SocketAddr],
    deadline: Instant,
) -> Result<(Stream, SocketAddr), Fault> {
    let mut why = "its name has no address".to_owned();
    for address in addresses {
        let Some(left) = left(deadline) else {
            return Err("it did not answer in time".into());
        };
        match TcpStream::connect_timeout(address, left) {
            Ok(stream) => {
                let _ = stream.set_nodelay(true);
                return Ok((Stream::Tcp(stream), *address));
            }
            Err(error) if is_exhaustion(&error) => return Err(error.into()),
            Err(error) => why = format!("cannot connect to {address}: {error}"),
        }
    }
    Err(why.into())
}

/// Connects to a unix socket. A server that does not accept lets that wait too, once its queue is full.
pub(super) fn unix(path: &Path, deadline: Instant) -> io::Result<Stream> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_write_timeout(Some(left(deadline).ok_or(ErrorKind::TimedOut)?))?;
    socket.connect(&SockAddr::unix(path)?).map_err(in_time)?;
    Ok(Stream::Unix(socket.into()))
}

fn left(deadline: Instant) -> Option<Duration> {
    Some(deadline.saturating_duration_since(Instant::now())).filter(|left| !left.is_zero())
}

/// The kernel says "try again" when a time limit is over.
fn in_time(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            io::Error::new(ErrorKind::TimedOut, "it did not answer in time")
        }
        _ => error,
    }
}

pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    pub(super) fn is_local(&self) -> bool {
        matches!(self, Self::Unix(_))
    }

    fn set_deadline(&self, deadline: Instant) -> io::Result<()> {
        let left = Some(left(deadline).ok_or_else(|| in_time(ErrorKind::TimedOut.into()))?);
        match self {
            Self::Tcp(stream) => stream
                .set_read_timeout(left)
                .and_then(|()| stream.set_write_timeout(left)),
            Self::Unix(stream) => stream
                .set_read_timeout(left)
                .and_then(|()| stream.set_write_timeout(left)),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A stream with its TLS and the bytes not looked at yet.
pub(in crate::control) struct Link {
    stream: Stream,
    tls: Option<TlsSession>,
    pub(in crate::control) received: Vec<u8>,
}

impl Link {
    pub(super) fn new(stream: Stream) -> Self {
        Self {
            stream,
            tls: None,
            received: Vec::new(),
        }
    }

    /// Goes on in TLS; what has arrived already belongs to it.
    pub(super) fn start_tls(&mut self, mut tls: TlsSession, deadline: Instant) -> io::Result<()> {
        tls.feed(&std::mem::take(&mut self.received));
        self.tls = Some(tls);
        while self.tls.as_ref().is_some_and(TlsSession::is_handshaking) {
            self.send(&[], deadline)?;
            if self.tls.as_ref().is_some_and(TlsSession::is_handshaking) {
                self.receive(deadline)?;
            }
        }
        Ok(())
    }

    pub(in crate::control) fn send(&mut self, bytes: &[u8], deadline: Instant) -> io::Result<()> {
        self.stream.set_deadline(deadline)?;
        match &mut self.tls {
            None => self.stream.write_all(bytes).map_err(in_time),
            Some(tls) => {
                if tls.write(bytes) < bytes.len() {
                    return Err(ErrorKind::WriteZero.into());
                }
                tls.flush_to(&mut self.stream)
                    .map_err(io::Error::other)
                    .map(|_| ())
            }
        }
    }

    pub(in crate::control) fn receive(&mut self, deadline: Instant) -> io::Result<()> {
        if self.received.len() > RECEIVED_MAX {
            return Err(io::Error::new(
                ErrorKind::InvalidData,
                "it says more than it was asked",
            ));
        }
        let mut buffer = [0; 16 * 1024];
        let n = match &mut self.tls {
            None => {
                self.stream.set_deadline(deadline)?;
                match self.stream.read(&mut buffer).map_err(in_time)? {
                    0 => return Err(ErrorKind::UnexpectedEof.into()),
                    n => n,
                }
            }
            Some(tls) => {
                let was_handshaking = tls.is_handshaking();
                loop {
                    self.stream.set_deadline(deadline)?;
                    let outcome = tls
                        .read_from(&mut self.stream, &mut buffer)
                        .map_err(io::Error::other)?;
                    // A part of a handshake may want an answer before more comes. Otherwise what was read was a part of a record,
                    // or nothing that is for us.
                    if outcome.bytes > 0 || was_handshaking {
                        break outcome.bytes;
                    }
                    if outcome.eof {
                        return Err(ErrorKind::UnexpectedEof.into());
                    }
                }
            }
        };
        self.received
            .extend_from_slice(buffer.get(..n).unwrap_or_default());
        Ok(())
    }

    /// The next packet's payload.
    pub(super) fn packet(&mut self, deadline: Instant) -> io::Result<Vec<u8>> {
        loop {
            if let Some(header) = Header::parse(&self.received)
                && let Some(payload) = self.received.get(4..4 + header.len)
            {
                let payload = payload.to_vec();
                self.received.drain(..4 + header.len);
                return Ok(payload);
            }
            self.receive(deadline)?;
        }
    }
}
