//! Packets as they are on the wire, and the connection that they come from: plain, unix socket or TLS.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustls::{ClientConnection, StreamOwned};

/// What a packet is within its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    Greeting,
    /// Any packet of a log-in between the greeting and the verdict.
    Auth,
    Ok,
    Err,
    /// The EOF after column or parameter definitions, or the whole answer to a command.
    Eof,
    /// The column count that opens a result set.
    Count,
    Column,
    /// A parameter definition of a prepared statement.
    Param,
    Row,
    /// What ends the rows: an EOF, or an OK with header fe.
    End,
    /// The first packet of the answer to COM_STMT_PREPARE.
    Prepared,
    /// The server asks for a file of the client.
    FileRequest,
    /// MariaDB's progress report: an ERR with code 65535.
    Progress,
    /// The text of COM_STATISTICS.
    Text,
}

/// One logical packet: continuations of 16 MiB are joined, and counted.
#[derive(Clone, PartialEq, Eq)]
pub struct Packet {
    pub part: Part,
    /// The sequence id of its first frame.
    pub seq: u8,
    /// How many frames it came in: 1, or more for payloads of 16 MiB - 1 and up.
    pub frames: usize,
    pub payload: Vec<u8>,
}

impl Packet {
    pub fn first(&self) -> u8 {
        self.payload.first().copied().unwrap_or(0)
    }

    /// As the same, in the role `part`.
    pub fn in_part(self, part: Part) -> Self {
        Self { part, ..self }
    }
}

impl fmt::Debug for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.payload[..self.payload.len().min(120)];
        let more = if shown.len() < self.payload.len() {
            "…"
        } else {
            ""
        };
        write!(
            f,
            "{:?} seq {} len {}: {}{more}",
            self.part,
            self.seq,
            self.payload.len(),
            shown.escape_ascii()
        )
    }
}

/// Why no packet came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The other side closed, at a packet's border or within one (with so many bytes of it here).
    Closed {
        within: usize,
    },
    Reset,
    /// Nothing came in time; see [`super::Wire::set_timeout`].
    Timeout,
    Other(String),
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Self::Timeout,
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted => {
                Self::Reset
            }
            ErrorKind::UnexpectedEof => Self::Closed { within: 0 },
            _ => Self::Other(error.to_string()),
        }
    }
}

/// The bytes of a connection.
pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(into),
            Self::Unix(stream) => stream.read(into),
            Self::Tls(stream) => stream.read(into),
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.write_all(bytes),
            Self::Unix(stream) => stream.write_all(bytes),
            Self::Tls(stream) => {
                stream.write_all(bytes)?;
                stream.flush()
            }
        }
    }

    fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        let timeout = Some(timeout);
        match self {
            Self::Tcp(stream) => stream.set_read_timeout(timeout),
            Self::Unix(stream) => stream.set_read_timeout(timeout),
            Self::Tls(stream) => stream.sock.set_read_timeout(timeout),
        }
    }
}

/// A connection, cut into packets.
pub(super) struct Link {
    stream: Stream,
    inbox: Vec<u8>,
    /// How much of `inbox` is taken.
    taken: usize,
    /// What is written goes out in pieces of so many bytes, with a pause behind each.
    pub(super) pieces: Option<(usize, Duration)>,
}

impl Link {
    pub(super) fn new(stream: Stream) -> Self {
        Self {
            stream,
            inbox: Vec::new(),
            taken: 0,
            pieces: None,
        }
    }

    /// The plain TCP stream, to go on in TLS. Panics on any other, or when bytes have been read ahead.
    pub(super) fn into_tcp(self) -> TcpStream {
        assert_eq!(
            self.taken,
            self.inbox.len(),
            "the server spoke before the TLS handshake"
        );
        match self.stream {
            Stream::Tcp(stream) => stream,
            Stream::Unix(_) | Stream::Tls(_) => panic!("TLS goes over plain TCP here"),
        }
    }

    pub(super) fn set_timeout(&self, timeout: Duration) {
        self.stream.set_timeout(timeout).expect("set a timeout");
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Ended> {
        let Some((size, pause)) = self.pieces else {
            return Ok(self.stream.write_all(bytes)?);
        };
        for piece in bytes.chunks(size) {
            self.stream.write_all(piece)?;
            std::thread::sleep(pause);
        }
        Ok(())
    }

    /// Says that nothing more comes.
    pub(super) fn end(&mut self) {
        if let Stream::Tcp(stream) = &self.stream {
            let _ = stream.shutdown(std::net::Shutdown::Write);
        }
    }

    /// Frames `payload`, from sequence id `seq` on, and sends it.
    pub(super) fn send(&mut self, seq: u8, payload: &[u8]) -> Result<(), Ended> {
        self.write(&frame(seq, payload))
    }

    /// One logical packet.
    pub(super) fn read(&mut self) -> Result<Packet, Ended> {
        let mut packet = Packet {
            part: Part::Auth,
            seq: 0,
            frames: 0,
            payload: Vec::new(),
        };
        loop {
            self.await_bytes(4)?;
            let header = &self.inbox[self.taken..self.taken + 4];
            let len =
                usize::from(header[0]) | usize::from(header[1]) << 8 | usize::from(header[2]) << 16;
            let seq = header[3];
            self.await_bytes(4 + len)?;
            if packet.frames == 0 {
                packet.seq = seq;
            } else {
                let due = packet
                    .seq
                    .wrapping_add(u8::try_from(packet.frames % 256).expect("small"));
                assert_eq!(seq, due, "sequence id of a continuation");
            }
            packet.frames += 1;
            let from = self.taken + 4;
            packet
                .payload
                .extend_from_slice(&self.inbox[from..from + len]);
            self.taken = from + len;
            if len < MAX_FRAME {
                return Ok(packet);
            }
        }
    }

    /// Everything until the other side closes.
    pub(super) fn read_to_close(&mut self) -> Result<Vec<u8>, Ended> {
        loop {
            let have = self.inbox.len() - self.taken;
            match self.await_bytes(have + 1) {
                Ok(()) => {}
                Err(Ended::Closed { .. }) => return Ok(self.inbox.split_off(self.taken)),
                Err(other) => return Err(other),
            }
        }
    }

    /// Whether at least one byte is here or comes within the timeout.
    pub(super) fn has_bytes(&mut self) -> bool {
        self.await_bytes(1).is_ok()
    }

    fn await_bytes(&mut self, wanted: usize) -> Result<(), Ended> {
        if self.taken == self.inbox.len() {
            self.inbox.clear();
            self.taken = 0;
        } else if self.taken > COMPACT_AT {
            self.inbox.drain(..self.taken);
            self.taken = 0;
        }
        while self.inbox.len() - self.taken < wanted {
            let had = self.inbox.len();
            self.inbox.resize(had + READ_SIZE, 0);
            let read = self.stream.read(&mut self.inbox[had..]);
            self.inbox.truncate(had + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => {
                    let within = self.inbox.len() - self.taken;
                    return Err(Ended::Closed { within });
                }
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // rustls reports a close without close_notify as this.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                    let within = self.inbox.len() - self.taken;
                    return Err(Ended::Closed { within });
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Link with {} bytes unread",
            self.inbox.len() - self.taken
        )
    }
}

/// The payload with its headers, cut at 16 MiB - 1; a payload of exactly a multiple of that ends with an empty frame.
pub fn frame(seq: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(payload.len() + 8);
    let mut seq = seq;
    let mut rest = payload;
    loop {
        let (now, later) = rest.split_at(rest.len().min(MAX_FRAME));
        let len = u32::try_from(now.len()).expect("below 2^24").to_le_bytes();
        out.extend_from_slice(&[len[0], len[1], len[2], seq]);
        out.extend_from_slice(now);
        seq = seq.wrapping_add(1);
        rest = later;
        if now.len() < MAX_FRAME {
            return out;
        }
    }
}

const MAX_FRAME: usize = 0xff_ff_ff;
const READ_SIZE: usize = 64 * 1024;
const COMPACT_AT: usize = 1024 * 1024;
